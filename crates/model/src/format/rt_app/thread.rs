//! One thread of a workload.

use super::events::{Event, Loop, SUPPORTED, kind_of, refused};
use super::import::Import;
use super::loose_json::{Member, Node, Value};
use crate::format::diagnostic::{nearest, shown};
use crate::{CPUS_MAX, CpuId, Duration, STEPS_MAX, TASKS_MAX};
use core::ops::Range;

/// The scheduling policies that can be imported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Policy {
    Other,
    /// SCHED_FIFO or SCHED_RR.
    Realtime,
    /// SCHED_DEADLINE.
    Deadline,
}

/// The real-time priority that rt-app assumes if a thread names none.
const PRIORITY_DEFAULT: u64 = 10;
/// The greatest real-time priority of Linux.
const PRIORITY_MAX: u64 = 99;

impl Policy {
    pub(super) fn read(import: &mut Import, member: &Member) -> Option<Self> {
        let Value::Text(name) = &member.node.value else {
            import.mistyped(member, "the name of a policy");
            return None;
        };
        let span = &member.node.span;
        match &**name {
            "SCHED_OTHER" => Some(Self::Other),
            "SCHED_FIFO" => Some(Self::Realtime),
            "SCHED_RR" => {
                import.note(
                    span,
                    "SCHED_RR alternates threads of one priority; tasks of one priority are served first come, first served",
                );
                Some(Self::Realtime)
            }
            "SCHED_DEADLINE" => Some(Self::Deadline),
            other => {
                let known = ["SCHED_OTHER", "SCHED_FIFO", "SCHED_RR", "SCHED_DEADLINE"];
                let help = match nearest(other, known) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("use one of {}", known.join(", ")),
                };
                import.fault(span, format!("the policy {} cannot be imported", shown(other)), help);
                None
            }
        }
    }
}

/// A thread with one rate, which can become a task.
pub(super) struct Thread {
    pub(super) name: String,
    pub(super) span: Range<usize>,
    pub(super) instances: usize,
    /// The CPU, if the thread names one.
    pub(super) cpu: Option<CpuId>,
    pub(super) policy: Policy,
    /// The Linux priority of a thread under SCHED_FIFO or SCHED_RR.
    pub(super) realtime: Option<u32>,
    pub(super) period: Duration,
    pub(super) deadline: Duration,
    pub(super) offset: Duration,
    pub(super) events: Vec<(Event, Range<usize>)>,
    pub(super) timer_ref: Option<(String, Range<usize>)>,
    /// The places of some keys, under their names in a task set.
    spans: Vec<(&'static str, Range<usize>)>,
}

const KEYS: [&str; 11] = [
    "instance",
    "policy",
    "priority",
    "cpus",
    "loop",
    "delay",
    "phases",
    "deadline",
    "dl-runtime",
    "dl-period",
    "dl-deadline",
];

/// Keys of a thread that change its nature, and cannot be imported.
const REFUSED: [(&str, &str); 1] = [("taskgroup", "task sets have no control groups")];

/// Keys of a thread that do not matter under fixed priorities.
const IGNORED: [&str; 3] = ["nodes_membind", "util_min", "util_max"];

impl Thread {
    pub(super) fn span_of(&self, key: Option<&str>) -> Range<usize> {
        let span = self.spans.iter().find(|(known, _)| Some(*known) == key);
        span.map_or_else(|| self.span.clone(), |(_, span)| span.clone())
    }

    pub(super) fn span_of_step(&self, step: usize) -> Range<usize> {
        self.events.get(step).map_or_else(|| self.span.clone(), |(_, span)| span.clone())
    }

    pub(super) fn read(import: &mut Import, member: &Member, default: Policy) -> Option<Self> {
        let owner = format!("thread {}", shown(&member.key));
        let mut draft = Draft::default();
        draft.read(import, &member.node, &owner);
        if draft.faulty {
            return None;
        }
        let name = member.key.to_string();
        let span = member.key_span.clone();
        if name.is_empty() {
            import.fault(&span, "a thread without a name", "give it a name");
        }
        draft.body.check_timer_place(import, &owner);
        let Some(timer) = draft.body.timer.take() else {
            let help = "end its loop with \"timer\" : { \"ref\" : \"unique\", \"period\" : 10000 }";
            // A sleep or a suspend has already been refused with the same advice.
            if !draft.refused_event {
                import.fault(&span, format!("{owner} has no timer, and so no period"), help);
            }
            return None;
        };
        if draft.body.events.is_empty() {
            if !draft.refused_event {
                import.fault(&span, format!("{owner} does nothing"), "add a \"run\"");
            }
            return None;
        }
        let policy = draft.policy.unwrap_or(default);
        let realtime = match policy {
            Policy::Realtime => Some(realtime_priority(import, draft.priority.as_ref())? as u32),
            Policy::Other => {
                if let Some((_, span)) = &draft.priority {
                    import.note(span, "the nice value is ignored: it is not a real-time priority");
                }
                None
            }
            Policy::Deadline => {
                if let Some((_, span)) = &draft.priority {
                    import.note(span, "the priority is ignored: SCHED_DEADLINE has none");
                }
                None
            }
        };
        if draft.cpu.is_none() && policy != Policy::Deadline {
            import.note(&span, format!("{owner} names no CPU: CPU 0 is assumed"));
        }
        let deadline = draft.deadline_under(import, policy, timer.period, &owner);
        let mut spans = vec![("period", timer.span.clone())];
        spans.extend(deadline.as_ref().map(|(_, span)| ("deadline", span.clone())));
        Some(Self {
            name,
            span,
            instances: draft.instances.unwrap_or(1),
            cpu: draft.cpu,
            policy,
            realtime,
            period: timer.period,
            deadline: deadline.map_or(timer.period, |(deadline, _)| deadline),
            offset: draft.offset.unwrap_or(Duration::ZERO),
            events: draft.body.events,
            timer_ref: timer.name.map(|name| (name, timer.span)),
            spans,
        })
    }
}

fn realtime_priority(import: &mut Import, given: Option<&(Option<i64>, Range<usize>)>) -> Option<u64> {
    let Some((number, span)) = given else { return Some(PRIORITY_DEFAULT) };
    let priority =
        number.and_then(|number| u64::try_from(number).ok()).filter(|priority| (1..=PRIORITY_MAX).contains(priority));
    if priority.is_none() {
        import.fault(span, "a real-time priority is from 1 to 99", "greater is more urgent");
    }
    priority
}

/// The keys of SCHED_DEADLINE, with their places.
#[derive(Default)]
struct Reservation {
    runtime: Option<(Duration, Range<usize>)>,
    period: Option<(Duration, Range<usize>)>,
    deadline: Option<(Duration, Range<usize>)>,
}

/// A thread being read.
#[derive(Default)]
struct Draft {
    instances: Option<usize>,
    policy: Option<Policy>,
    priority: Option<(Option<i64>, Range<usize>)>,
    cpu: Option<CpuId>,
    offset: Option<Duration>,
    deadline: Option<(Duration, Range<usize>)>,
    reservation: Reservation,
    body: Loop,
    refused_event: bool,
    faulty: bool,
    seen: Vec<&'static str>,
}

impl Draft {
    fn read(&mut self, import: &mut Import, node: &Node, owner: &str) {
        let Some(members) = import.object(node, owner) else {
            self.faulty = true;
            return;
        };
        let mut events = Loop::default();
        for member in members {
            if import.faults.is_full() {
                break;
            }
            self.refused_event |= refused(kind_of(&member.key)).is_some();
            if events.take(import, member, owner) || self.take_key(import, member, owner) {
                continue;
            }
            self.faulty = true;
            let valid = KEYS.iter().chain(&SUPPORTED).copied().collect::<Vec<_>>();
            import.unknown_key(member, owner, &valid);
        }
        if let Some(phases) = members.iter().find(|member| member.key == "phases") {
            if let Some(timer) = &events.timer {
                import.fault(
                    &timer.span,
                    format!("{owner} has both phases and events"),
                    "move the events into the phases",
                );
                self.faulty = true;
            } else if let Some((_, span)) = events.events.first() {
                import.fault(span, format!("{owner} has both phases and events"), "move the events into the phases");
                self.faulty = true;
            } else {
                self.read_phases(import, &phases.node, owner);
            }
        } else {
            self.body = events;
        }
    }

    /// Reads a key of a thread. Returns whether the key is one of a thread's.
    fn take_key(&mut self, import: &mut Import, member: &Member, owner: &str) -> bool {
        let Some(key) = KEYS.iter().find(|key| **key == member.key) else {
            return self.take_foreign_key(import, member, owner);
        };
        if self.seen.contains(key) {
            import.given_twice(member);
            return true;
        }
        self.seen.push(key);
        match *key {
            "instance" => {
                self.instances = import.whole(member, TASKS_MAX as u64).map(|instances| instances as usize);
                if self.instances == Some(0) {
                    import.fault(&member.node.span, format!("{owner} has no instance"), "leave the thread out");
                }
            }
            "policy" => self.policy = Policy::read(import, member),
            "priority" => {
                let number = match member.node.value {
                    Value::Number(number) => number.parse().ok(),
                    _ => None,
                };
                if number.is_none() {
                    import.mistyped(member, "a whole number");
                }
                self.priority = Some((number, member.node.span.clone()));
            }
            "cpus" => self.cpu = read_cpus(import, member, owner),
            "loop" => {
                if let Some(Some(times)) = read_loop(import, member) {
                    import.note(
                        &member.key_span,
                        format!("the limit of {times} rounds of {owner} is ignored: a task does not end"),
                    );
                }
            }
            "delay" => self.offset = import.microseconds(member),
            "deadline" => self.deadline = import.time_at(member),
            "dl-runtime" => self.reservation.runtime = import.time_at(member),
            "dl-period" => self.reservation.period = import.time_at(member),
            "dl-deadline" => self.reservation.deadline = import.time_at(member),
            // The phases are read after all keys.
            _ => {}
        }
        true
    }

    /// The relative deadline of the task, if one is given. The deadline of a reservation is that of its jobs, and its
    /// period is the least distance of two jobs; the runtime limits what the thread executes.
    fn deadline_under(
        &mut self,
        import: &mut Import,
        policy: Policy,
        period: Duration,
        owner: &str,
    ) -> Option<(Duration, Range<usize>)> {
        let Reservation { runtime, period: own_period, deadline } = core::mem::take(&mut self.reservation);
        let keys = [("dl-runtime", &runtime), ("dl-period", &own_period), ("dl-deadline", &deadline)];
        if policy != Policy::Deadline {
            for (key, given) in keys {
                if let Some((_, span)) = given {
                    import.note(span, format!("{} is ignored: {owner} is not under SCHED_DEADLINE", shown(key)));
                }
            }
            return self.deadline.take();
        }
        let runs = self.body.events.iter().filter_map(|(event, _)| match event {
            Event::Run(time) => Some(*time),
            Event::Lock(_) | Event::Unlock(_) => None,
        });
        let cost = Duration::from_ns(runs.fold(0, |sum, time| sum.saturating_add(time.as_ns())));
        if let Some((runtime, span)) = runtime.filter(|(runtime, _)| *runtime < cost) {
            import.note(
                &span,
                format!("{owner} executes for {cost} and reserves {runtime}: Linux stops it; its task is not stopped"),
            );
        }
        if let Some((own, span)) = own_period.filter(|(own, _)| *own != period) {
            import.note(&span, format!("the period of the reservation, {own}, is ignored: the timer has {period}"));
        }
        // As in rt-app, the deadline of a reservation is its period unless it is given.
        deadline.or_else(|| self.deadline.take())
    }

    fn take_foreign_key(&mut self, import: &mut Import, member: &Member, owner: &str) -> bool {
        if let Some((_, why)) = REFUSED.iter().find(|(refused, _)| *refused == member.key) {
            import.fault(&member.key_span, format!("{owner} has the key {}", shown(&member.key)), *why);
            return true;
        }
        if IGNORED.contains(&&*member.key) {
            import.note(&member.key_span, format!("{} is ignored", shown(&member.key)));
            return true;
        }
        false
    }

    fn read_phases(&mut self, import: &mut Import, node: &Node, owner: &str) {
        let Some(phases) = import.object(node, &format!("`phases` of {owner}")) else {
            self.faulty = true;
            return;
        };
        let several = phases.len() > 1;
        let timers = phases.iter().filter(|phase| has_timer(&phase.node)).count();
        for phase in phases {
            if import.faults.is_full() {
                break;
            }
            let Some(members) = import.object(&phase.node, &format!("phase {}", shown(&phase.key))) else {
                self.faulty = true;
                continue;
            };
            let mut events = Loop::default();
            let mut times = Some(1);
            for member in members {
                self.refused_event |= refused(kind_of(&member.key)).is_some();
                if events.take(import, member, owner) {
                    continue;
                }
                match &*member.key {
                    "loop" => times = read_loop(import, member).unwrap_or(Some(1)),
                    "cpus" if !several => {
                        self.take_key(import, member, owner);
                    }
                    _ => {
                        let why = "a phase cannot change what its thread is: give the key to the thread";
                        self.faulty = true;
                        import.fault(
                            &member.key_span,
                            format!("a phase of {owner} has the key {}", shown(&member.key)),
                            why,
                        );
                    }
                }
            }
            if events.timer.is_some() {
                // Each round of the phase is a job of its own, and so are the rounds of the thread.
                if several && timers == 1 && times != Some(1) {
                    let help = "its timer makes each round a job, unlike the other phases: make it a task of its own";
                    import.fault(&phase.key_span, format!("a phase of {owner} loops by itself"), help);
                    self.faulty = true;
                }
                self.body.append(events, 1, import, owner);
            } else {
                let times = times.unwrap_or(u64::MAX);
                if times > STEPS_MAX as u64 {
                    let help = format!("at most {STEPS_MAX} rounds make a job");
                    import.fault(&phase.key_span, format!("a phase of {owner} has no timer and never ends"), help);
                    self.faulty = true;
                    continue;
                }
                self.body.append(events, times, import, owner);
            }
        }
    }
}

fn has_timer(phase: &Node) -> bool {
    let Value::Object(members) = &phase.value else { return false };
    members.iter().any(|member| kind_of(&member.key) == "timer")
}

/// Reads a number of rounds. `Some(None)` stands for an endless loop, and `None` for a reported fault.
fn read_loop(import: &mut Import, member: &Member) -> Option<Option<u64>> {
    let number: Option<i64> = match member.node.value {
        Value::Number(number) => number.parse().ok(),
        _ => None,
    };
    match number {
        Some(-1) => Some(None),
        Some(times @ 1..) => Some(Some(times.unsigned_abs())),
        _ => {
            import.mistyped(member, "-1, for ever, or a number of rounds");
            None
        }
    }
}

fn read_cpus(import: &mut Import, member: &Member, owner: &str) -> Option<CpuId> {
    let Value::List(cpus) = &member.node.value else {
        import.mistyped(member, "a list of one CPU, [0]");
        return None;
    };
    let [cpu] = cpus.as_slice() else {
        let message = format!("{owner} may run on {} CPUs", cpus.len());
        import.fault(&member.node.span, message, "tasks stay on one CPU: name it, [0]");
        return None;
    };
    let number = match cpu.value {
        Value::Number(number) => number.parse::<u16>().ok(),
        _ => None,
    };
    let number = number.filter(|cpu| usize::from(*cpu) < CPUS_MAX);
    if number.is_none() {
        import.fault(&cpu.span, "this is not a CPU", format!("CPUs are numbered 0 to {}", CPUS_MAX - 1));
    }
    number.map(CpuId)
}
