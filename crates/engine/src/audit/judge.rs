//! The judge: goes through orders and trace in the order of time.

use super::departure::{Audit, DEPARTURES_MAX, Departed, Departure};
use super::trace::Traced;
use lockwright::raw::{Order, SCRIPT_LEVEL, WATCHDOG_LEVEL};
use lockwright_model::{CpuId, Instant, TaskId};
use std::collections::HashMap;

/// How far the clock of the trace and that of the journal may be apart. An order holds this much earlier than it was
/// written, and its end this much later.
const SLACK_NS: u64 = 10_000;
/// The kernel's number for level 0; less urgent is greater.
const PRIORITY_0: i32 = 99;

/// What a task may have, as far as orders tell.
#[derive(Debug)]
struct State {
    levels: Values<u8>,
    places: Values<CpuId>,
    /// The level that it inherited last.
    boost: Option<u8>,
    /// It was put under the ordinary policy, which no later order changes.
    is_ordinary: bool,
    /// The task waits for a machine.
    waits: bool,
    /// The task left its CPU to wait for a futex or a time, and was not woken since.
    sleeps: bool,
    /// When it last ended a wait.
    awake_ns: u64,
    /// The orders to wake it that may have an effect.
    to_wake: Vec<ToWake>,
}

/// An order to wake a task.
#[derive(Debug)]
struct ToWake {
    at_ns: u64,
    by: Option<TaskId>,
    /// The call has ended. Before that, it may also end a later wait of the task, which looks at its flag again.
    is_over: bool,
}

/// The values that the kernel may have: several while calls are in progress, otherwise the last one.
#[derive(Debug)]
struct Values<T> {
    possible: Vec<T>,
    last: T,
    calls: u32,
}

impl<T: Copy + PartialEq> Values<T> {
    fn new(possible: Vec<T>, last: T) -> Self {
        Self { possible, last, calls: 0 }
    }

    fn order(&mut self, value: T) {
        self.calls += 1;
        self.last = value;
        if !self.possible.contains(&value) {
            self.possible.push(value);
        }
    }

    fn is_set(&mut self) {
        self.calls = self.calls.saturating_sub(1);
        if self.calls == 0 {
            self.possible = vec![self.last];
        }
    }
}

enum Item<'a> {
    Order(u64, TaskId, Order),
    Traced(u64, usize, &'a Traced),
}

pub(super) struct Judge<'a> {
    tasks: HashMap<u32, TaskId>,
    states: Vec<State>,
    cpus: &'a [usize],
    start_ns: u64,
    /// The kernel's own locks lend priorities and wake threads, as on PREEMPT_RT.
    kernel_inherits: bool,
    audit: Audit,
}

impl<'a> Judge<'a> {
    /// `places` are the CPUs on which each task may begin, and `cpus` the Linux numbers of the system's CPUs.
    pub(super) fn new(
        tids: impl Iterator<Item = u32>,
        places: impl Iterator<Item = Vec<CpuId>>,
        cpus: &'a [usize],
        start_ns: u64,
        audit: Audit,
    ) -> Self {
        let state = |places: Vec<CpuId>| State {
            levels: Values::new(Vec::new(), 0),
            places: Values::new(places.clone(), places.first().copied().unwrap_or(CpuId(0))),
            boost: None,
            is_ordinary: false,
            waits: false,
            sleeps: false,
            awake_ns: 0,
            to_wake: Vec::new(),
        };
        let tasks = tids.zip((0..).map(TaskId)).collect();
        Self { tasks, states: places.map(state).collect(), cpus, start_ns, kernel_inherits: false, audit }
    }

    /// The kernel's own locks lend priorities and wake threads. Boosts are then accepted, and so are wake-ups of tasks
    /// that wait for such a lock.
    pub(super) fn on_preempt_rt(self, kernel_inherits: bool) -> Self {
        Self { kernel_inherits, ..self }
    }

    pub(super) fn judge(mut self, orders: &[(u64, TaskId, Order)], trace: &[(u64, usize, Traced)]) -> Audit {
        let orders = orders.iter().map(|&(at, task, order)| {
            let holds_at = match order {
                Order::Level(_) | Order::Place(_) | Order::Wake(_) => at.saturating_sub(SLACK_NS),
                Order::LevelSet | Order::PlaceSet | Order::Woken(_) => at.saturating_add(SLACK_NS),
                Order::Wait | Order::Awake => at,
            };
            (holds_at, Item::Order(at, task, order))
        });
        let trace = trace.iter().map(|(at, cpu, traced)| (*at, Item::Traced(*at, *cpu, traced)));
        let mut items: Vec<(u64, Item<'_>)> = orders.chain(trace).collect();
        items.sort_by_key(|item| item.0);
        for (_, item) in items {
            match item {
                Item::Order(at, task, order) => self.order(at, task, order),
                Item::Traced(at, cpu, traced) => self.traced(at, cpu, *traced),
            }
        }
        self.audit
    }

    fn order(&mut self, at: u64, task: TaskId, order: Order) {
        let state = &mut self.states[task.index()];
        match order {
            Order::Level(level) => {
                state.is_ordinary |= level == 0;
                state.levels.order(level);
            }
            Order::LevelSet => state.levels.is_set(),
            Order::Place(cpu) => state.places.order(cpu),
            Order::PlaceSet => state.places.is_set(),
            Order::Wait => state.waits = true,
            Order::Awake => {
                (state.waits, state.awake_ns) = (false, at);
                // An order for the next wait may hold already.
                state.to_wake.retain(|order| order.at_ns >= at || !order.is_over);
            }
            Order::Wake(by) => state.to_wake.push(ToWake { at_ns: at, by, is_over: false }),
            Order::Woken(by) => {
                let awake_ns = state.awake_ns;
                if let Some(order) = state.to_wake.iter_mut().find(|order| order.by == by && !order.is_over) {
                    order.is_over = true;
                }
                state.to_wake.retain(|order| order.at_ns >= awake_ns || !order.is_over);
            }
        }
    }

    fn traced(&mut self, at: u64, cpu: usize, traced: Traced) {
        match traced {
            Traced::Switch { from, to, sleeps } => {
                if let Some(task) = self.tasks.get(&from.0) {
                    self.states[task.index()].sleeps = sleeps;
                }
                for (thread, priority) in [from, to] {
                    let Some(&task) = self.tasks.get(&thread) else { continue };
                    self.audit.switches += 1;
                    self.level(at, task, level(priority));
                }
                if let Some(&task) = self.tasks.get(&to.0) {
                    self.place(at, task, cpu);
                }
            }
            Traced::Boost { thread, priority } => {
                let Some(&task) = self.tasks.get(&thread) else { return };
                self.audit.boosts += 1;
                self.boost(at, task, level(priority));
            }
            Traced::WakeUp { thread, by } => {
                let Some(&task) = self.tasks.get(&thread) else { return };
                self.wake_up(at, task, by);
            }
        }
    }

    fn level(&mut self, at: u64, task: TaskId, seen: Option<u8>) {
        let state = &self.states[task.index()];
        // The kernel traces no inheritance that leaves the level as it is. An order to a lower level, which it then
        // passes over, leaves the task with the level of another one.
        let least = state.levels.possible.iter().copied().min().unwrap_or(0);
        let is_inherited = |seen: u8| {
            let mut others = self.states.iter().enumerate().filter(|(other, _)| *other != task.index());
            let mut is_of_another = || others.any(|(_, other)| other.levels.possible.contains(&seen));
            seen == 0 && state.is_ordinary || seen > least && (state.boost == Some(seen) || is_of_another())
        };
        let is_ordered = seen.is_some_and(|seen| state.levels.possible.contains(&seen) || is_inherited(seen));
        if !is_ordered {
            let ordered = state.levels.possible.clone();
            self.departs(at, task, Departed::Level { seen, ordered });
        }
    }

    fn boost(&mut self, at: u64, task: TaskId, to: Option<u8>) {
        let has = |level: u8| self.states.iter().any(|state| state.levels.possible.contains(&level));
        let is_ordinary = self.states[task.index()].is_ordinary;
        let is_known =
            |level| has(level) || [SCRIPT_LEVEL, WATCHDOG_LEVEL].contains(&level) || level == 0 && is_ordinary;
        if !self.kernel_inherits && !to.is_some_and(is_known) {
            self.departs(at, task, Departed::Boost { to });
        }
        self.states[task.index()].boost = to;
    }

    fn place(&mut self, at: u64, task: TaskId, cpu: usize) {
        let possible = &self.states[task.index()].places.possible;
        let is_ordered = possible.iter().any(|place| self.cpus.get(place.index()) == Some(&cpu));
        if !is_ordered {
            let ordered = possible.clone();
            self.departs(at, task, Departed::Place { cpu, ordered });
        }
    }

    fn wake_up(&mut self, at: u64, task: TaskId, by: u32) {
        let state = &mut self.states[task.index()];
        let sleeps = std::mem::take(&mut state.sleeps);
        if !state.waits || self.kernel_inherits && !sleeps {
            return;
        }
        self.audit.wake_ups += 1;
        let by = self.tasks.get(&by).copied();
        if !state.to_wake.iter().any(|order| order.by == by) {
            self.departs(at, task, Departed::WakeUp { by });
        }
    }

    fn departs(&mut self, at: u64, task: TaskId, what: Departed) {
        self.audit.departed += 1;
        if self.audit.departures.len() < DEPARTURES_MAX {
            let at = Instant::from_ns(at.saturating_sub(self.start_ns));
            self.audit.departures.push(Departure { at, task, what });
        }
    }
}

/// The level of a priority of the kernel, or `None` for SCHED_DEADLINE.
fn level(priority: i32) -> Option<u8> {
    u8::try_from((PRIORITY_0 - priority).max(0)).ok().filter(|&level| level <= 99)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TaskId = TaskId(0);
    const B: TaskId = TaskId(1);
    /// The threads of the tasks; A is at level 1 on CPU 0 of the system, B at level 2 on CPU 1.
    const THREADS: [u32; 2] = [100, 200];
    /// The Linux numbers of the CPUs.
    const CPUS: [usize; 2] = [4, 6];
    const MS: u64 = 1_000_000;

    /// What departs if these orders follow the first ones, and the kernel traces this.
    fn departed(orders: &[(u64, TaskId, Order)], trace: &[(u64, usize, Traced)]) -> Vec<(TaskId, Departed)> {
        let first = [(A, 1), (B, 2)].into_iter();
        let first = first.flat_map(|(task, level)| [(1, task, Order::Level(level)), (1, task, Order::LevelSet)]);
        let orders: Vec<_> = first.chain(orders.iter().copied()).collect();
        let places = [vec![CpuId(0)], vec![CpuId(1)]].into_iter();
        let judge = Judge::new(THREADS.into_iter(), places, &CPUS, 0, Audit::default());
        let audit = judge.judge(&orders, trace);
        assert_eq!(audit.departed, audit.departures.len() as u64);
        audit.departures.into_iter().map(|departure| (departure.task, departure.what)).collect()
    }

    /// A switch from the idle thread to a task at a level.
    fn to(task: TaskId, level: i32) -> Traced {
        Traced::Switch { from: (0, 120), to: (THREADS[task.index()], PRIORITY_0 - level), sleeps: false }
    }

    #[test]
    fn a_level_must_be_ordered() {
        let raised = [(MS, A, Order::Level(5)), (3 * MS, A, Order::LevelSet)];
        let wrong = |seen, ordered: &[u8]| vec![(A, Departed::Level { seen: Some(seen), ordered: ordered.to_vec() })];
        // While the call is in progress, the kernel may have either level.
        for (at, level) in [(MS / 2, 1), (2 * MS, 1), (2 * MS, 5), (4 * MS, 5)] {
            assert_eq!(departed(&raised, &[(at, 4, to(A, level))]), [], "{at} {level}");
        }
        assert_eq!(departed(&raised, &[(MS / 2, 4, to(A, 5))]), wrong(5, &[1]));
        assert_eq!(departed(&raised, &[(2 * MS, 4, to(A, 3))]), wrong(3, &[1, 5]));
        assert_eq!(departed(&raised, &[(4 * MS, 4, to(A, 1))]), wrong(1, &[5]));
        // A thread that leaves its CPU is judged as well; after its last order it is an ordinary one.
        let from = |priority| Traced::Switch { from: (THREADS[0], priority), to: (0, 120), sleeps: false };
        assert_eq!(departed(&[], &[(MS, 4, from(120))]), wrong(0, &[1]));
        assert_eq!(departed(&[(MS / 2, A, Order::Level(0)), (MS, A, Order::LevelSet)], &[(2 * MS, 4, from(120))]), []);
        let deadline = vec![(A, Departed::Level { seen: None, ordered: vec![1] })];
        assert_eq!(departed(&[], &[(MS, 4, from(-1))]), deadline);
    }

    #[test]
    fn a_late_call_leaves_the_level_open() {
        // Two threads set the level of one task, and the first call ends last.
        let orders = [
            (MS, A, Order::Level(5)),
            (2 * MS, A, Order::Level(3)),
            (3 * MS, A, Order::LevelSet),
            (5 * MS, A, Order::LevelSet),
        ];
        assert_eq!(departed(&orders, &[(4 * MS, 4, to(A, 5))]), []);
        assert_eq!(departed(&orders, &[(6 * MS, 4, to(A, 3))]), []);
        assert_eq!(departed(&orders, &[(6 * MS, 4, to(A, 5))]).len(), 1);
    }

    #[test]
    fn a_task_inherits_only_what_another_has() {
        let boost = |level| Traced::Boost { thread: THREADS[0], priority: PRIORITY_0 - level };
        assert_eq!(departed(&[], &[(MS, 4, boost(2)), (2 * MS, 4, to(A, 2)), (3 * MS, 4, boost(1))]), []);
        assert_eq!(departed(&[], &[(MS, 4, boost(7))]), [(A, Departed::Boost { to: Some(7) })]);
        // What it has after an inheritance is no level that it may keep.
        let raised = [(3 * MS, A, Order::Level(5)), (4 * MS, A, Order::LevelSet)];
        let stale = vec![(A, Departed::Level { seen: Some(1), ordered: vec![5] })];
        assert_eq!(departed(&raised, &[(MS, 4, boost(2)), (2 * MS, 4, boost(1)), (5 * MS, 4, to(A, 1))]), stale);
        // The kernel traces no inheritance while an order gives the same level.
        assert_eq!(departed(&[], &[(MS, 4, to(A, 2))]), []);
        // Nothing is inherited that is less urgent.
        assert_eq!(departed(&[], &[(MS, 6, to(B, 1))]), [(B, Departed::Level { seen: Some(1), ordered: vec![2] })]);
    }

    #[test]
    fn a_thread_that_has_ended_is_an_ordinary_one_for_good() {
        let after = [
            (MS, A, Order::Level(0)),
            (2 * MS, A, Order::LevelSet),
            (3 * MS, A, Order::Level(5)),
            (4 * MS, A, Order::LevelSet),
        ];
        let switch = Traced::Switch { from: (0, 120), to: (THREADS[0], 120), sleeps: false };
        let boost = Traced::Boost { thread: THREADS[0], priority: 120 };
        assert_eq!(departed(&after, &[(5 * MS, 4, switch), (6 * MS, 4, boost)]), []);
        assert_eq!(departed(&after[2..], &[(5 * MS, 4, boost)]).len(), 1);
        assert_eq!(departed(&after[2..], &[(5 * MS, 4, switch)]).len(), 1);
    }

    #[test]
    fn a_kernel_whose_locks_inherit_lends_any_level_and_wakes_for_its_locks() {
        let boost = Traced::Boost { thread: THREADS[0], priority: PRIORITY_0 - 50 };
        let woken = Traced::WakeUp { thread: THREADS[0], by: 7 };
        let leaves = |sleeps| Traced::Switch { from: (THREADS[0], PRIORITY_0 - 1), to: (0, 120), sleeps };
        let judged = |kernel_inherits, trace: &[Traced]| {
            let places = [vec![CpuId(0)], vec![CpuId(1)]].into_iter();
            let judge = Judge::new(THREADS.into_iter(), places, &CPUS, 0, Audit::default());
            let trace: Vec<_> = (2..).map(|at| at * MS).zip(trace).map(|(at, &traced)| (at, 4, traced)).collect();
            let orders = [(1, A, Order::Level(1)), (1, A, Order::LevelSet), (MS, A, Order::Wait)];
            let audit = judge.on_preempt_rt(kernel_inherits).judge(&orders, &trace);
            (audit.departed, audit.wake_ups)
        };
        assert_eq!((judged(false, &[boost]), judged(true, &[boost])), ((1, 0), (0, 0)));
        // It waits for a lock of the kernel, or has not left its CPU.
        for trace in [&[leaves(false), woken][..], &[woken]] {
            assert_eq!((judged(false, trace), judged(true, trace)), ((1, 1), (0, 0)));
        }
        // It waits for the protocol, and is woken once.
        assert_eq!(judged(true, &[leaves(true), woken]), (1, 1));
        assert_eq!(judged(true, &[leaves(true), woken, woken]), (1, 1));
    }

    #[test]
    fn a_task_executes_where_it_was_sent() {
        assert_eq!(departed(&[], &[(MS, 4, to(A, 1)), (MS, 6, to(B, 2))]), []);
        let at_home = vec![(A, Departed::Place { cpu: 6, ordered: vec![CpuId(0)] })];
        assert_eq!(departed(&[], &[(MS, 6, to(A, 1))]), at_home);
        let sent = [(MS, A, Order::Place(CpuId(1))), (3 * MS, A, Order::PlaceSet)];
        for (at, cpu) in [(2 * MS, 4), (2 * MS, 6), (4 * MS, 6)] {
            assert_eq!(departed(&sent, &[(at, cpu, to(A, 1))]), [], "{at} {cpu}");
        }
        assert_eq!(departed(&sent, &[(4 * MS, 4, to(A, 1))]).len(), 1);
    }

    #[test]
    fn a_waiting_task_is_woken_as_ordered() {
        let woken = |by| Traced::WakeUp { thread: THREADS[0], by };
        let waits = [
            (MS, A, Order::Wait),
            (3 * MS, A, Order::Wake(Some(B))),
            (4 * MS, A, Order::Woken(Some(B))),
            (5 * MS, A, Order::Awake),
        ];
        assert_eq!(departed(&waits, &[(4 * MS, 6, woken(200))]), []);
        // By another thread, too early, or without a wait.
        assert_eq!(departed(&waits, &[(4 * MS, 6, woken(300))]), [(A, Departed::WakeUp { by: None })]);
        assert_eq!(departed(&waits, &[(2 * MS, 6, woken(200))]), [(A, Departed::WakeUp { by: Some(B) })]);
        assert_eq!(departed(&waits, &[(MS / 2, 6, woken(200))]), []);
        // The order of one wait does not serve the next one.
        let again = [&waits[..], &[(6 * MS, A, Order::Wait)]].concat();
        assert_eq!(departed(&again, &[(7 * MS, 6, woken(200))]).len(), 1);
        // The thread that wakes was late: the task had seen the grant before.
        let late = [
            (MS, A, Order::Wake(Some(B))),
            (2 * MS, A, Order::Awake),
            (3 * MS, A, Order::Wait),
            (5 * MS, A, Order::Woken(Some(B))),
        ];
        assert_eq!(departed(&late, &[(4 * MS, 6, woken(200))]), []);
        assert_eq!(departed(&late, &[(6 * MS, 6, woken(200))]).len(), 1);
    }
}
