//! The events of one thread, with the CPU time that it had used at each.

use crate::event::{Event, EventKind, Policy};
use crate::recording::Recording;

/// One event of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Time since the start of the recording.
    pub(crate) at_ns: u64,
    /// The CPU time of the thread up to here, without the time in which it spun for a lock.
    pub(crate) cpu_ns: u64,
    /// The event itself.
    pub(crate) kind: EventKind,
}

/// All events of one thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct History {
    /// In order of time.
    pub(crate) entries: Vec<Entry>,
    /// The CPU time on each CPU where the thread executed, by number of the CPU.
    pub(crate) cpus: Vec<(u32, u64)>,
    /// The CPU time of the thread in the whole recording, without the time in which it spun for locks.
    pub(crate) executed_ns: u64,
}

impl History {
    /// The CPU time of the thread in the whole recording.
    pub(crate) fn cpu_ns(&self) -> u64 {
        self.cpus.iter().map(|(_, ns)| ns).sum()
    }
}

/// Whether a thread executes, as far as its events show.
#[derive(Clone, Copy, Default)]
struct Running {
    /// Since when it executes, and where if that is known.
    since: Option<(u64, Option<u32>)>,
    /// Its CPU time before that, without waits for locks.
    used_ns: u64,
    /// Whether it waits for a lock. Its CPU time is that of spinning then, in the program or in the kernel: since Linux
    /// 5.16, a thread that waits for a priority-inheriting mutex spins there while the holder executes.
    waits: bool,
    /// Whether a switch was seen.
    has_switched: bool,
}

/// Returns the history of each thread, in the order of [`Recording::threads`].
///
/// A thread executes from a [`EventKind::SwitchIn`] to the next [`EventKind::SwitchOut`]. Before its first switch, it
/// executes from its first own action. Later actions show nothing: the clock of the switches may differ by less than a
/// microsecond, so an action just before a switch may seem to be behind it.
pub(crate) fn histories(recording: &Recording) -> Vec<History> {
    let mut histories = vec![History::default(); recording.threads.len()];
    let mut running = vec![Running::default(); recording.threads.len()];
    for &Event { at_ns, thread, kind } in &recording.events {
        let index = thread as usize;
        let (Some(history), Some(running)) = (histories.get_mut(index), running.get_mut(index)) else { continue };
        let waits = match kind {
            EventKind::Request { .. } => true,
            EventKind::SwitchIn { .. }
            | EventKind::SwitchOut(_)
            | EventKind::Wakeup { .. }
            | EventKind::Boost { .. } => running.waits,
            _ => false,
        };
        if waits != running.waits {
            running.turn(waits, at_ns, history);
        }
        match kind {
            EventKind::SwitchIn { cpu } => {
                running.stop(at_ns, history);
                running.since = Some((at_ns, Some(cpu)));
                running.has_switched = true;
            }
            EventKind::SwitchOut(_) | EventKind::End => {
                running.stop(at_ns, history);
                running.has_switched = true;
            }
            EventKind::Wakeup { .. } | EventKind::Boost { .. } => {}
            _ if !running.has_switched => {
                running.since.get_or_insert((at_ns, None));
            }
            _ => {}
        }
        let executes = running.since.filter(|_| !running.waits);
        let cpu_ns = running.used_ns + executes.map_or(0, |(since, _)| at_ns.saturating_sub(since));
        history.entries.push(Entry { at_ns, cpu_ns, kind });
    }
    for (running, history) in running.iter_mut().zip(&mut histories) {
        running.stop(recording.length_ns, history);
        history.cpus.sort_unstable();
        history.executed_ns = running.used_ns;
    }
    histories
}

impl Running {
    /// The thread begins or ends to wait for a lock, and goes on executing if it does.
    fn turn(&mut self, waits: bool, at_ns: u64, history: &mut History) {
        let since = self.since;
        self.stop(at_ns, history);
        self.since = since.map(|(_, cpu)| (at_ns, cpu));
        self.waits = waits;
    }

    fn stop(&mut self, at_ns: u64, history: &mut History) {
        let Some((since, cpu)) = self.since.take() else { return };
        let ns = at_ns.saturating_sub(since);
        self.used_ns += if self.waits { 0 } else { ns };
        let Some(cpu) = cpu else { return };
        match history.cpus.iter_mut().find(|(known, _)| *known == cpu) {
            Some((_, used)) => *used += ns,
            None => history.cpus.push((cpu, ns)),
        }
    }
}

/// The urgency of a policy: 0 for ordinary threads, the priority under `SCHED_FIFO` and `SCHED_RR`, and a rank above
/// both under `SCHED_DEADLINE`.
pub(crate) fn rank(policy: Policy) -> u8 {
    match policy {
        Policy::Fair { .. } => 0,
        Policy::Fifo(priority) | Policy::RoundRobin(priority) => priority,
        Policy::Deadline { .. } => DEADLINE_RANK,
    }
}

/// The rank of `SCHED_DEADLINE`, above all priorities of `SCHED_FIFO`.
pub(crate) const DEADLINE_RANK: u8 = 100;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Stop;
    use crate::recording::Thread;

    #[test]
    fn cpu_time_is_the_time_between_switches() {
        let event = |at_ns, kind| Event { at_ns, thread: 0, kind };
        let recording = Recording {
            length_ns: 100,
            threads: vec![Thread::default()],
            events: vec![
                event(10, EventKind::Scheduling(Policy::Fifo(3))),
                event(15, EventKind::SwitchOut(Stop::Preempted)),
                event(30, EventKind::SwitchIn { cpu: 2 }),
                event(35, EventKind::Resumed),
                event(40, EventKind::SwitchOut(Stop::Suspended)),
                event(41, EventKind::Resumed),
                event(80, EventKind::SwitchIn { cpu: 1 }),
            ],
            ..Recording::default()
        };
        let history = &histories(&recording)[0];
        let cpu: Vec<u64> = history.entries.iter().map(|entry| entry.cpu_ns).collect();
        assert_eq!(cpu, [0, 5, 5, 10, 15, 15, 15]);
        assert_eq!(history.cpus, [(1, 20), (2, 10)]);
    }

    #[test]
    fn a_wait_for_a_lock_is_no_execution() {
        use lockwright_model::Mode::Write;
        let event = |at_ns, kind| Event { at_ns, thread: 0, kind };
        let request = EventKind::Request { object: 0, mode: Write, site: 0 };
        let recording = Recording {
            length_ns: 100,
            threads: vec![Thread::default()],
            events: vec![
                event(0, EventKind::SwitchIn { cpu: 0 }),
                event(10, request),
                event(25, EventKind::Locked { object: 0, mode: Write, site: 0, tried: false }),
                event(30, EventKind::Unlock { object: 0 }),
                // It spins, suspends, and spins again.
                event(40, request),
                event(45, EventKind::SwitchOut(Stop::Suspended)),
                event(60, EventKind::SwitchIn { cpu: 0 }),
                event(65, EventKind::Refused { object: 0 }),
                event(70, EventKind::SwitchOut(Stop::Suspended)),
            ],
            ..Recording::default()
        };
        let history = &histories(&recording)[0];
        let cpu: Vec<u64> = history.entries.iter().map(|entry| entry.cpu_ns).collect();
        assert_eq!(cpu, [0, 10, 10, 15, 25, 25, 25, 25, 30]);
        assert_eq!((history.executed_ns, history.cpus.as_slice()), (30, [(0, 55)].as_slice()));
    }
}
