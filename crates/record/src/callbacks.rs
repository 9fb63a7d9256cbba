//! Callbacks of executors of ROS 2 as threads of their own.
//!
//! An executor thread calls one callback after another, so its own waits separate no jobs. Here, what the thread does
//! inside a callback belongs to a thread that stands for this callback on this thread, and that waits for its next call
//! in between. Task sets are inferred from these threads. Findings are not: callbacks of one thread never wait for each
//! other.

use crate::event::{Event, EventKind, Policy, Stop, Wait};
use crate::recording::{CallbackId, Recording, Site, SiteId, Thread, ThreadIndex};
use std::collections::BTreeMap;

/// What is known of a thread.
#[derive(Clone, Default)]
struct State {
    /// The thread that stands for the callback that executes, and how many calls inside it have not returned.
    inside: Option<(Own, u32)>,
    policy: Option<Policy>,
    affinity: Option<u64>,
    cpu: Option<u32>,
    /// How many times it suspended outside callbacks, except for a lock.
    suspensions: u64,
    requests: bool,
}

impl Recording {
    /// The recording in which callbacks are threads; they stand behind the threads that were recorded. `None` if it has
    /// no callbacks.
    #[must_use]
    pub fn by_callback(&self) -> Option<Self> {
        if self.callbacks.is_empty() {
            return None;
        }
        let mut split = Split {
            whole: self,
            split: Self { events: Vec::with_capacity(self.events.len()), ..self.clone() },
            own: BTreeMap::new(),
        };
        let mut states = vec![State::default(); self.threads.len()];
        for event in &self.events {
            let Some(state) = states.get_mut(event.thread as usize) else { continue };
            match (event.kind, &mut state.inside) {
                // A callback that another one calls is a part of it.
                (EventKind::CallbackStart { .. }, Some((_, depth))) => *depth += 1,
                (EventKind::CallbackStart { callback }, None) => split.start(event, callback, state),
                (EventKind::CallbackEnd { .. }, None) => {}
                (EventKind::CallbackEnd { .. }, Some((_, depth))) if *depth > 0 => *depth -= 1,
                (EventKind::CallbackEnd { .. }, Some((own, _))) => {
                    let own = *own;
                    split.end(event, own, state);
                }
                (kind, _) => {
                    state.see(kind);
                    split.put(event.at_ns, state.inside.map_or(event.thread, |(own, _)| own.thread), kind);
                }
            }
        }
        Some(split.split)
    }
}

/// A thread that stands for a callback on a thread, and the place of its waits.
#[derive(Clone, Copy)]
struct Own {
    thread: ThreadIndex,
    site: SiteId,
    /// How many times the executor had suspended when the callback returned last; `None` before.
    suspensions: Option<u64>,
}

impl State {
    fn see(&mut self, kind: EventKind) {
        match kind {
            EventKind::Scheduling(policy) => self.policy = Some(policy),
            EventKind::Affinity(cpus) => self.affinity = Some(cpus),
            EventKind::SwitchIn { cpu } => self.cpu = Some(cpu),
            EventKind::SwitchOut(stop) => {
                self.cpu = None;
                let has_waited = stop == Stop::Suspended && self.inside.is_none() && !self.requests;
                self.suspensions += u64::from(has_waited);
            }
            EventKind::Request { .. } => self.requests = true,
            EventKind::Locked { .. } | EventKind::Refused { .. } => self.requests = false,
            _ => {}
        }
    }
}

struct Split<'r> {
    whole: &'r Recording,
    split: Recording,
    own: BTreeMap<(CallbackId, ThreadIndex), Own>,
}

impl Split<'_> {
    fn put(&mut self, at_ns: u64, thread: ThreadIndex, kind: EventKind) {
        self.split.events.push(Event { at_ns, thread, kind });
    }

    /// The thread calls the callback, which has the scheduling and the CPU of the thread.
    fn start(&mut self, event: &Event, callback: CallbackId, state: &mut State) {
        let (at_ns, thread) = (event.at_ns, event.thread);
        let own = match self.own.get(&(callback, thread)) {
            Some(&own) => own,
            None => {
                let own = self.add(callback, thread);
                // The first call ends a wait, as the others do.
                self.put(at_ns, own.thread, EventKind::Wait { wait: Wait::Call, site: own.site });
                own
            }
        };
        let scheduling = state.policy.map(EventKind::Scheduling);
        for kind in scheduling.into_iter().chain(state.affinity.map(EventKind::Affinity)) {
            self.put(at_ns, own.thread, kind);
        }
        if let Some(cpu) = state.cpu {
            self.put(at_ns, thread, EventKind::SwitchOut(Stop::Preempted));
            // An executor that has not waited since the last call was late: the callback was ready before.
            if own.suspensions != Some(state.suspensions) {
                self.put(at_ns, own.thread, EventKind::SwitchOut(Stop::Suspended));
            }
            self.put(at_ns, own.thread, EventKind::SwitchIn { cpu });
        }
        self.put(at_ns, own.thread, EventKind::Resumed);
        state.inside = Some((own, 0));
    }

    /// The callback returns.
    fn end(&mut self, event: &Event, own: Own, state: &mut State) {
        self.put(event.at_ns, own.thread, EventKind::Wait { wait: Wait::Call, site: own.site });
        if let Some(cpu) = state.cpu {
            self.put(event.at_ns, own.thread, EventKind::SwitchOut(Stop::Preempted));
            self.put(event.at_ns, event.thread, EventKind::SwitchIn { cpu });
        }
        state.inside = None;
        if let Some(known) = self.own.values_mut().find(|known| known.thread == own.thread) {
            known.suspensions = Some(state.suspensions);
        }
    }

    /// Adds the thread that stands for a callback on a thread.
    fn add(&mut self, callback: CallbackId, thread: ThreadIndex) -> Own {
        let known = &self.whole.callbacks[callback as usize];
        let name = if known.name.is_empty() { format!("callback {:#x}", known.address) } else { known.name.clone() };
        let (thread_index, site) = (self.split.threads.len() as u32, self.split.sites.len() as u32);
        let own = Own { thread: thread_index, site, suspensions: None };
        let id = self.whole.threads[thread as usize].id;
        self.split.threads.push(Thread { id, name: name.clone(), lost: 0 });
        self.split.sites.push(Site { address: known.address, name: Some(name) });
        self.own.insert((callback, thread), own);
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::{Choices, infer};
    use crate::recording::Callback;
    use lockwright_model::Duration;

    const MS: u64 = 1_000_000;

    /// An executor that calls `timer` each 10 ms for 2 ms, and `camera` each 30 ms for 3 ms, behind it.
    fn executor() -> Recording {
        let names = ["timer", "camera"];
        let callbacks = names.iter().zip(1..).map(|(name, address)| Callback { address, name: (*name).into() });
        let mut recording = Recording {
            length_ns: 330 * MS,
            threads: vec![Thread { id: 7, name: "executor".into(), lost: 0 }],
            callbacks: callbacks.collect(),
            switches: true,
            ..Recording::default()
        };
        let mut put = |at_ns, kind| recording.events.push(Event { at_ns, thread: 0, kind });
        put(0, EventKind::Start);
        put(0, EventKind::Scheduling(Policy::Fifo(40)));
        put(0, EventKind::Affinity(1));
        for job in 0..30 {
            let at_ns = 10 * MS * job + MS;
            put(at_ns, EventKind::SwitchIn { cpu: 0 });
            put(at_ns, EventKind::CallbackStart { callback: 0 });
            // A callback that calls another one is one job.
            put(at_ns + MS, EventKind::CallbackStart { callback: 1 });
            put(at_ns + MS, EventKind::CallbackEnd { callback: 1 });
            put(at_ns + 2 * MS, EventKind::CallbackEnd { callback: 0 });
            if job % 3 == 0 {
                put(at_ns + 2 * MS, EventKind::CallbackStart { callback: 1 });
                put(at_ns + 5 * MS, EventKind::CallbackEnd { callback: 1 });
            }
            put(at_ns + 6 * MS, EventKind::SwitchOut(Stop::Suspended));
        }
        recording
    }

    #[test]
    fn callbacks_are_tasks() {
        let recording = executor();
        assert!(infer(&recording, &Choices::default()).system.is_err(), "the thread itself has no jobs");
        let split = recording.by_callback().expect("there are callbacks");
        let inferred = infer(&split, &Choices::default());
        let system = inferred.system.expect("a task set");
        let mut found: Vec<(&str, Duration, Duration)> =
            system.tasks().iter().map(|task| (task.name.as_str(), task.period, task.wcet)).collect();
        found.sort_unstable();
        let ms = Duration::from_ms;
        assert_eq!(found, [("camera", ms(30), ms(3)), ("timer", ms(10), ms(2))]);
        let ranks: Vec<u32> = inferred.tasks.iter().map(|task| task.thread).collect();
        assert_eq!(ranks, [1, 2]);
    }

    #[test]
    fn a_callback_that_is_late_tells_no_period() {
        let mut recording = executor();
        // The executor does not wait any more.
        recording.events.retain(|event| !matches!(event.kind, EventKind::SwitchOut(_)) || event.at_ns < 20 * MS);
        let split = recording.by_callback().expect("there are callbacks");
        let inferred = infer(&split, &Choices::default());
        assert!(inferred.tasks.is_empty(), "{:?}", inferred.tasks);
        assert!(inferred.left_out[1].reason.contains("a job begins behind the call of the callback"));
    }

    #[test]
    fn an_executor_does_not_suspend_for_its_callbacks() {
        let mut recording = executor();
        let wait = EventKind::Wait { wait: Wait::Poll { descriptor: 3 }, site: 0 };
        recording.sites.push(Site { address: 1, name: Some("wait".into()) });
        // The executor waits where it stops.
        let with_waits = |event: Event| {
            let own = |kind| Event { kind, ..event };
            match event.kind {
                EventKind::SwitchIn { .. } => vec![event, own(EventKind::Resumed)],
                EventKind::SwitchOut(_) => vec![own(wait), event],
                _ => vec![event],
            }
        };
        recording.events = recording.events.into_iter().flat_map(with_waits).collect();
        let split = recording.by_callback().expect("there are callbacks");
        let tasks = infer(&split, &Choices::default()).tasks;
        assert_eq!(tasks.iter().map(|task| task.suspensions).collect::<Vec<_>>(), [(0, 0); 3]);
    }

    #[test]
    fn a_recording_without_callbacks_stays() {
        assert_eq!(Recording { callbacks: Vec::new(), ..executor() }.by_callback(), None);
    }
}
