//! Carries out the decisions of the machines on real threads: wakes them, makes them wait, moves them, and changes
//! their priorities.
//!
//! Decisions are made under a machine's guard and carried out after it, in the machine's order: actions on other tasks
//! first, those on the caller last, so that the next owner is awake before the caller lowers itself.
//!
//! | action | under the guard | after it |
//! |---|---|---|
//! | Grant to another | sets its flag (Release) | - |
//! | Wake | sets its flag, unless it is set already | futex wake on its flag |
//! | SetPriority, Migrate | - | see [`Claims`] |
//! | SetPriority of another, if priorities express an order ([`Machine::settles_others_at_once`]) | sets the level in the kernel | - |
//! | Block, Hold | - | the caller waits on its own flag (Acquire) |
//! | Spin | - | the caller polls its own flag |
//! | Restart | - | the caller learns of it, and executes its section again |
//!
//! A task rises *before* it requests ([`Executor::rise`]). If it requested first, it could be preempted between the
//! machine's grant and its rise, and would hold the resource at its base priority while others execute. Before the task
//! waits, its priority becomes the one that the machine decided.
//!
//! A move and the priority that belongs to it are two system calls. Between them a task has the priority of one
//! processor on the other, for about the duration of a system call.
//!
//! The claims of a task are kept under its seat's guard. Some system calls are also made under that guard:
//!
//! | call | under the seat's guard | why |
//! |---|---|---|
//! | the task sets its own level | yes | the call may lower the task, which may then be preempted before the call returns; a thread with a newer level waits for the guard and lends the task its priority |
//! | another thread sets it | no | the call may raise the task, which may then execute at once and would find its own seat locked; the caller is not preempted meanwhile |
//! | any thread sets its place | no | the call suspends the caller; if it moves the caller itself, it returns on the new processor |
//!
//! A call made without the guard may be late, after the kernel got a newer level. The caller detects this afterwards,
//! under the guard, and sets the present level. So as soon as no call is in progress, the kernel has the last level.
//! A thread that leaves a task waits for that ([`Executor::depart`]).

mod claims;
mod patience;
mod seat;

pub(crate) use claims::Source;
pub(crate) use patience::{Patience, spin_until};
pub(crate) use seat::next_turn;
pub use seat::{Seat, Turn};

use crate::tasks::journal::{Journal, Order};
use crate::tasks::priorities::Levels;
use claims::Claims;
use lockwright_model::{CpuId, Priority, TaskId};
use lockwright_protocol::{Action, Machine, Refusal};
use lockwright_sys::futex::{self, Deadline, Scope};
use lockwright_sys::guard::Guarded;
use lockwright_sys::sched::Tid;
use lockwright_sys::{SysError, clock, sched};
use seat::{GRANTED, NOTHING, WOKEN};
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

/// Nanoseconds between two looks of a thread that leaves while another sets its level or its processors.
const DEPART_NAP_NS: u64 = 20_000;
/// The most such looks: 1 s.
const DEPART_NAPS_MAX: u32 = 50_000;

thread_local! {
    /// The list for the actions of the caller's decisions; its memory is reserved before the first.
    static NOTES: Cell<Vec<Action>> = const { Cell::new(Vec::new()) };
}

/// Returns the thread's list, or a new one if the thread ends and its thread-locals are gone.
fn take_notes() -> Vec<Action> {
    NOTES.try_with(Cell::take).unwrap_or_default()
}

fn put_notes(notes: Vec<Action>) {
    // A thread whose thread-locals are gone does not need the list any more.
    let _ = NOTES.try_with(|place| place.set(notes));
}

/// A decision that is to be carried out.
pub(crate) struct Decision {
    list: Vec<Action>,
    /// The caller owns the resource that it requested.
    is_granted: bool,
    /// The section of the caller was invalidated, and the caller is still inside.
    restarts: bool,
    /// The result of setting the levels of other tasks under the guard.
    told: Result<(), SysError>,
    /// Its number, or 0 if events are not counted.
    turn: u64,
}

/// Returns the task that an action concerns.
fn subject(action: &Action) -> TaskId {
    match *action {
        Action::Grant { task, .. }
        | Action::Block { task, .. }
        | Action::Spin { task, .. }
        | Action::Hold { task }
        | Action::Restart { task, .. }
        | Action::Wake { task }
        | Action::SetPriority { task, .. }
        | Action::Migrate { task, .. } => task,
    }
}

impl Decision {
    /// Whether another task gets a new priority or place, or several others are woken.
    fn is_about_others(&self, me: TaskId) -> bool {
        let mut others = self.list.iter().filter(|action| subject(action) != me);
        let Some(first) = others.next() else { return false };
        let tells = |action: &Action| matches!(action, Action::SetPriority { .. } | Action::Migrate { .. });
        tells(first) || others.any(|action| tells(action) || subject(action) != subject(first))
    }
}

/// How a request waited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waited {
    /// It did not wait.
    No,
    /// Its task slept.
    Slept,
    /// Its task executed meanwhile.
    Spun,
    /// Its task slept until this time of the monotonic clock, and then spun.
    SleptThenSpun {
        /// When the task executed again.
        woken_ns: u64,
    },
}

/// The result of the caller's request after its decision was carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Outcome {
    /// The caller owns the resource; otherwise it requests again, or starts its job.
    pub(crate) is_granted: bool,
    pub(crate) waited: Waited,
    /// The caller has released nothing: its section is executed again.
    pub(crate) restarts: bool,
}

/// The claims on a task before its first job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstClaims {
    pub(crate) base: Priority,
    pub(crate) cpu: CpuId,
    /// The priority that a machine gives the task from the beginning.
    pub(crate) told: Option<(Source, Priority)>,
}

/// The seats of all tasks, and the levels of one run.
#[derive(Debug)]
pub struct Executor {
    seats: Box<[Seat]>,
    levels: Levels,
    /// The Linux number of each processor of the system.
    cpus: Box<[usize]>,
    /// Whether the events of requests are counted.
    counts_turns: bool,
    journal: Option<Journal>,
}

impl Executor {
    /// Creates the executor. `tasks` holds the first claims on each task, `cpus` the Linux numbers of processors, and
    /// `machines` is the number of machines.
    pub(crate) fn new(
        tasks: impl Iterator<Item = FirstClaims>,
        levels: Levels,
        cpus: &[usize],
        machines: usize,
    ) -> Self {
        let seat = |first: FirstClaims| {
            let mut claims = Claims::new(first.base, first.cpu, 0, machines);
            if let Some((source, priority)) = first.told {
                claims.machines[source].priority = priority;
            }
            claims.level = levels.get(claims.effective());
            Seat::new(first.cpu, claims)
        };
        Self { seats: tasks.map(seat).collect(), levels, cpus: cpus.into(), counts_turns: false, journal: None }
    }

    /// Keeps a journal of at most `capacity` orders from now on.
    pub fn keep_journal(&mut self, capacity: usize) {
        self.journal = Some(Journal::new(capacity));
    }

    /// The journal, if one is kept.
    #[must_use]
    pub fn journal(&self) -> Option<&Journal> {
        self.journal.as_ref()
    }

    fn order(&self, task: TaskId, order: Order) {
        if let Some(journal) = &self.journal {
            journal.write(task, order);
        }
    }

    /// Puts the thread of a task under the ordinary policy, permanently. `leave` makes the system calls for that. Does
    /// nothing once it has succeeded.
    pub fn demote(&self, task: TaskId, leave: impl FnOnce(Tid) -> Result<(), SysError>) -> Result<(), SysError> {
        let seat = self.seat(task);
        // ORDERING: Release pairs with the Acquire in `Executor::set_level`, which then ignores the kernel's refusal.
        if seat.is_ordinary.swap(true, Ordering::Release) {
            return Ok(());
        }
        self.order(task, Order::Level(0));
        let demoted = leave(seat.tid());
        self.order(task, Order::LevelSet);
        if demoted.is_err() {
            // ORDERING: as above.
            seat.is_ordinary.store(false, Ordering::Release);
        }
        demoted
    }

    /// Counts the events of requests from now on; see [`Seat::turn`].
    pub fn count_turns(&mut self) {
        self.counts_turns = true;
    }

    /// Whether the events of requests are counted.
    pub(crate) fn counts_turns(&self) -> bool {
        self.counts_turns
    }

    /// Gives an event of `task` the next number.
    pub(crate) fn mark(&self, task: TaskId, turn: Turn) {
        if self.counts_turns {
            self.set_turn(task, turn, next_turn());
        }
    }

    /// Stores the number of an event of `task`, unless it is 0.
    pub(crate) fn set_turn(&self, task: TaskId, turn: Turn, number: u64) {
        if number > 0 {
            self.seat(task).set_turn(turn, number);
        }
    }

    /// Stores the number of a decision on `task`, the caller.
    pub(crate) fn note_turn(&self, task: TaskId, turn: Turn, decision: &Decision) {
        self.set_turn(task, turn, decision.turn);
    }

    /// Reserves the memory for the decisions of the calling thread, enough for any decision.
    pub fn prepare(&self) {
        let mut notes = take_notes();
        // A decision grants to, changes, moves and wakes each task at most twice.
        notes.reserve(8 + 8 * self.seats.len());
        put_notes(notes);
    }

    /// Returns the Linux number of each processor of the system.
    #[must_use]
    pub fn cpus(&self) -> &[usize] {
        &self.cpus
    }

    /// Returns the runtime state of a task.
    #[must_use]
    pub fn seat(&self, task: TaskId) -> &Seat {
        &self.seats[task.index()]
    }

    /// Gives `task`, the caller, its present level, which others may change from now on. The caller is under
    /// SCHED_FIFO.
    ///
    /// # Errors
    /// The kernel refuses the level.
    pub fn take_level(&self, task: TaskId) -> Result<(), SysError> {
        let mut claims = self.seat(task).claims.lock();
        claims.is_vacant = false;
        claims.calls = claims.calls.wrapping_add(1);
        // An earlier thread of the task may have been refused a level.
        claims.level = self.levels.get(claims.effective());
        self.set_level_guarded(task, claims.level).map(drop)
    }

    /// Ends the changes of the caller's level and processors by others, until the next [`Executor::take_level`]. A late
    /// call would change what the caller has after it has left.
    pub(crate) fn depart(&self, task: TaskId) {
        let seat = self.seat(task);
        // BOUND: the calls in progress, each of a thread that no task preempts; none begins once the caller has no job.
        // A child process that makes its thread this task has copied calls that no thread of its own ends, hence 1 s.
        for _ in 0..DEPART_NAPS_MAX {
            if seat.claims.lock().vacate() {
                return;
            }
            // Not by spinning, because the other thread may be on this processor.
            let _ = clock::sleep_until(clock::now_ns() + DEPART_NAP_NS);
        }
    }

    /// Returns the level of a priority.
    #[must_use]
    pub fn level(&self, priority: Priority) -> u8 {
        self.levels.get(priority)
    }

    /// Raises `task`, the caller, to `ceiling` before it requests. [`Executor::asked`] must follow, even after an
    /// error.
    pub(crate) fn rise(&self, task: TaskId, ceiling: Priority) -> Result<(), SysError> {
        self.change_own(task, |claims| claims.asking = Some(ceiling))
    }

    /// Ends [`Executor::rise`]: from here on only the machines' values count.
    pub(crate) fn asked(&self, task: TaskId) -> Result<(), SysError> {
        self.change_own(task, |claims| claims.asking = None)
    }

    /// Prevents all tasks from preempting `task`, the caller, until [`Executor::include`], which must follow even after
    /// an error.
    pub(crate) fn exclude(&self, task: TaskId) -> Result<(), SysError> {
        self.change_own(task, |claims| claims.exclusive = claims.exclusive.saturating_add(1))
    }

    /// Ends one [`Executor::exclude`].
    pub(crate) fn include(&self, task: TaskId) -> Result<(), SysError> {
        self.change_own(task, |claims| claims.exclusive = claims.exclusive.saturating_sub(1))
    }

    /// Changes the base priority of a task. The machines have to be informed separately.
    pub(crate) fn set_base(&self, task: TaskId, base: Priority) -> Result<(), SysError> {
        self.change_others(task, |claims| claims.base = base)
    }

    /// Returns the present base priority of a task.
    pub(crate) fn base(&self, task: TaskId) -> Priority {
        self.seat(task).claims.lock().base
    }

    /// Returns the present effective priority of a task.
    #[must_use]
    pub fn effective(&self, task: TaskId) -> Priority {
        self.seat(task).claims.lock().effective()
    }

    /// Lets a machine decide on an event of `me`, the caller, or of another task if `me` is `None`. Grants and wake-ups
    /// of other tasks take effect in their flags here, under the guard.
    pub(crate) fn decide(
        &self,
        source: Source,
        machine: &Guarded<Box<dyn Machine + Send>>,
        me: Option<TaskId>,
        event: impl FnOnce(&mut dyn Machine, &mut dyn FnMut(Action)) -> Result<(), Refusal>,
    ) -> Result<Decision, Refusal> {
        let mut decision = Decision { list: take_notes(), is_granted: false, restarts: false, told: Ok(()), turn: 0 };
        decision.list.clear();
        let answer = {
            let mut machine = machine.lock();
            if self.counts_turns {
                decision.turn = next_turn();
            }
            let answer = event(&mut **machine, &mut |action| self.note(me, &mut decision, action));
            if answer.is_ok() && machine.settles_others_at_once() {
                decision.told = self.settle_others(source, me, &mut decision.list);
            }
            answer
        };
        match answer {
            Ok(()) => Ok(decision),
            Err(refusal) => {
                put_notes(decision.list);
                Err(refusal)
            }
        }
    }

    fn note(&self, me: Option<TaskId>, decision: &mut Decision, action: Action) {
        match action {
            Action::Grant { task, .. } if Some(task) == me => {
                self.note_turn(task, Turn::Owned, decision);
                decision.is_granted = true;
            }
            // A machine restarts only the caller.
            Action::Restart { .. } => decision.restarts = true,
            // The caller is awake.
            Action::Wake { task } if Some(task) == me => {}
            Action::Grant { task, .. } => {
                self.note_turn(task, Turn::Owned, decision);
                // ORDERING: Release pairs with the Acquire in `told`: the new owner sees the section before.
                self.seat(task).flag.store(GRANTED, Ordering::Release);
                decision.list.push(action);
            }
            Action::Wake { task } => {
                self.order(task, Order::Wake(me));
                // The new owner may have consumed the grant by now. A further wake-up would then end its next wait
                // without a grant.
                let is_granted = |noted: &Action| matches!(*noted, Action::Grant { task: owner, .. } if owner == task);
                if !decision.list.iter().any(is_granted) {
                    // ORDERING: Release, as above.
                    let flag = &self.seat(task).flag;
                    let _ = flag.compare_exchange(NOTHING, WOKEN, Ordering::Release, Ordering::Relaxed);
                }
                decision.list.push(action);
            }
            Action::SetPriority { task, .. } => {
                self.note_turn(task, Turn::Changed, decision);
                decision.list.push(action);
            }
            _ => decision.list.push(action),
        }
    }

    /// Sets the levels of other tasks in the kernel, in the order given, and removes these actions from the list. No
    /// other decision is made before all are set. An error does not keep the others from being set.
    ///
    /// BOUND: two system calls for each task, and two more.
    fn settle_others(&self, source: Source, me: Option<TaskId>, list: &mut Vec<Action>) -> Result<(), SysError> {
        let other = |action: &Action| match *action {
            Action::SetPriority { task, priority, epoch } if Some(task) != me => Some((task, priority, epoch)),
            _ => None,
        };
        if !list.iter().any(|action| other(action).is_some()) {
            return Ok(());
        }
        let mut result = me.map_or(Ok(()), |me| self.exclude(me));
        for (task, priority, epoch) in list.iter().filter_map(other) {
            result = result.and(self.change_others(task, |claims| claims.set(source, priority, epoch)));
        }
        list.retain(|action| other(action).is_none());
        result.and(me.map_or(Ok(()), |me| self.include(me)))
    }

    /// Carries a decision out, without the guard. An error does not keep the rest from being carried out.
    ///
    /// BOUND: the waits of the protocol.
    ///
    /// If the decision concerns other tasks, none of them preempts the caller meanwhile. Otherwise the first of two
    /// woken tasks could keep the caller from waking the second, however urgent that is; and a late call must be
    /// corrected at once, see [`Executor::change_others`]. `is_excluded` means that the caller is already protected
    /// from preemption.
    pub(crate) fn carry_out(
        &self,
        source: Source,
        me: Option<TaskId>,
        is_excluded: bool,
        decision: Decision,
    ) -> (Outcome, Result<(), SysError>) {
        let (is_granted, restarts) = (decision.is_granted, decision.restarts);
        let mut outcome = Outcome { is_granted, waited: Waited::No, restarts };
        let mut result = decision.told;
        // A caller that is not a task is above all tasks.
        let mut exclusive = me.filter(|&me| is_excluded || decision.is_about_others(me));
        if let Some(me) = exclusive.filter(|_| !is_excluded) {
            result = result.and(self.exclude(me));
        }
        for action in &decision.list {
            // The actions on the caller come last.
            if let Some(me) = exclusive.take_if(|me| subject(action) == *me) {
                result = result.and(self.include(me));
            }
            match *action {
                Action::Grant { .. } | Action::Restart { .. } => {}
                Action::Wake { task } => {
                    futex::wake(Scope::Private, &self.seat(task).flag, 1);
                    self.order(task, Order::Woken(me));
                }
                Action::SetPriority { task, priority, epoch } => {
                    result = result.and(self.change(me, task, |claims| claims.set(source, priority, epoch)));
                }
                Action::Migrate { task, cpu, epoch } => result = result.and(self.migrate(source, me, task, cpu, epoch)),
                // A machine makes only the caller wait. The priority of the request ends here, because the machine has
                // decided the priority of the wait.
                Action::Block { task, .. } | Action::Hold { task } => {
                    result = result.and(self.asked(task));
                    (outcome.is_granted, outcome.waited) = (self.wait(task) == GRANTED, Waited::Slept);
                }
                Action::Spin { task, .. } => {
                    result = result.and(self.asked(task));
                    (outcome.is_granted, outcome.waited) = (self.spin(task) == GRANTED, Waited::Spun);
                }
            }
        }
        if let Some(me) = exclusive {
            result = result.and(self.include(me));
        }
        put_notes(decision.list);
        (outcome, result)
    }

    /// Returns what happened to the task, once.
    fn told(flag: &AtomicU32) -> Option<u32> {
        // ORDERING: Acquire pairs with the Release in `note`.
        let told = flag.load(Ordering::Acquire);
        if told == NOTHING {
            return None;
        }
        // ORDERING: as above. A grant may have come since the wake-up. Anything later belongs to the task's next event,
        // under the same guard.
        let told = flag.swap(NOTHING, Ordering::Acquire);
        Some(told)
    }

    /// Waits until the flag is set, and returns it.
    ///
    /// BOUND: the sections of the tasks before this one, or, for a job that waits to start, the jobs that its scheduler
    /// prefers; every holder unlocks when the run ends.
    fn wait(&self, task: TaskId) -> u32 {
        let flag = &self.seat(task).flag;
        self.order(task, Order::Wait);
        loop {
            if let Some(told) = Self::told(flag) {
                self.order(task, Order::Awake);
                return told;
            }
            futex::wait(Scope::Private, flag, NOTHING, None).or_panic();
        }
    }

    /// Spins until the flag is set, and returns it.
    ///
    /// BOUND: as in `wait`. A task never spins for one that it keeps from executing, because owners are above the tasks
    /// that spin for them. In case of a delay outside the protocol, see [`Patience`].
    fn spin(&self, task: TaskId) -> u32 {
        let flag = &self.seat(task).flag;
        let nap = |until| {
            futex::wait(Scope::Private, flag, NOTHING, Some(Deadline::monotonic(until))).or_panic();
        };
        let told = spin_until(|| Self::told(flag), nap);
        self.order(task, Order::Awake);
        told
    }

    /// Changes a claim of `task`, and sets its level in the kernel if that changes. `me` is the caller.
    fn change(&self, me: Option<TaskId>, task: TaskId, change: impl FnOnce(&mut Claims)) -> Result<(), SysError> {
        if me == Some(task) { self.change_own(task, change) } else { self.change_others(task, change) }
    }

    /// Like [`Executor::change`], for the caller's own claims: everything happens under the seat's guard.
    fn change_own(&self, task: TaskId, change: impl FnOnce(&mut Claims)) -> Result<(), SysError> {
        let mut claims = self.seat(task).claims.lock();
        change(&mut claims);
        self.tell(task, &mut claims)
    }

    /// Like [`Executor::change`], by another thread, which is not preempted: the call is made without the guard. If
    /// another call began in between, it is unknown which reached the kernel last, and the level is set once more, this
    /// time under the guard.
    ///
    /// BOUND: two system calls.
    fn change_others(&self, task: TaskId, change: impl FnOnce(&mut Claims)) -> Result<(), SysError> {
        let seat = self.seat(task);
        let (level, call) = {
            let mut claims = seat.claims.lock();
            change(&mut claims);
            let level = self.levels.get(claims.effective());
            let Some(call) = claims.begin_call_unguarded(level) else { return Ok(()) };
            self.order(task, Order::Level(level));
            (level, call)
        };
        let told = Self::set_level(seat, level);
        let mut claims = seat.claims.lock();
        let told = if claims.end_call(call) {
            told
        } else {
            claims.calls = claims.calls.wrapping_add(1);
            self.set_level_guarded(task, self.levels.get(claims.effective()))
        };
        self.order(task, Order::LevelSet);
        told.map(|level| claims.level = level.unwrap_or(claims.level))
    }

    /// Sets the effective level in the kernel, unless the kernel certainly has it. The caller holds the seat's guard.
    fn tell(&self, task: TaskId, claims: &mut Claims) -> Result<(), SysError> {
        let level = self.levels.get(claims.effective());
        if claims.begin_call(level).is_none() {
            return Ok(());
        }
        self.set_level_guarded(task, level).map(|level| claims.level = level.unwrap_or(claims.level))
    }

    /// Like [`Executor::set_level`], under the guard of the task's seat.
    fn set_level_guarded(&self, task: TaskId, level: u8) -> Result<Option<u8>, SysError> {
        self.order(task, Order::Level(level));
        let told = Self::set_level(self.seat(task), level);
        self.order(task, Order::LevelSet);
        told
    }

    /// Sets the level of a seat's thread. Returns the level that the kernel then has, or `None` if levels have no
    /// effect on the thread any more, or if the thread is one of the parent process.
    fn set_level(seat: &Seat, level: u8) -> Result<Option<u8>, SysError> {
        if !seat.is_of_this_process() {
            return Ok(None);
        }
        match sched::set_level(seat.tid(), level) {
            // ORDERING: Acquire pairs with the Release in `Executor::demote`.
            Err(SysError { errno: libc::EINVAL, .. }) if seat.is_ordinary.load(Ordering::Acquire) => Ok(None),
            result => result.map(|()| Some(level)),
        }
    }

    /// Moves a task, unless its thread is one of the parent process. The guard is not held while the task moves. A task
    /// that comes back has its base priority again, and one that leaves does not.
    ///
    /// BOUND: one round for each later move of the task that is decided meanwhile. Each deciding thread carries its own
    /// move out as well.
    fn migrate(
        &self,
        source: Source,
        me: Option<TaskId>,
        task: TaskId,
        cpu: CpuId,
        epoch: u32,
    ) -> Result<(), SysError> {
        let seat = self.seat(task);
        let (mut cpu, mut moves) = {
            let mut claims = seat.claims.lock();
            let Some(moves) = claims.begin_move(source, epoch, cpu) else { return Ok(()) };
            self.order(task, Order::Place(cpu));
            (cpu, moves)
        };
        loop {
            let moved = match seat.is_of_this_process() {
                true => sched::set_affinity(seat.tid(), &[self.cpus[cpu.index()]]),
                false => Ok(()),
            };
            let mut claims = seat.claims.lock();
            if moved.is_err() || claims.moves == moves {
                claims.moves_under_way -= 1;
                moved?;
                self.order(task, Order::PlaceSet);
                break;
            }
            (cpu, moves) = (claims.sent.0, claims.moves);
        }
        self.change(me, task, |claims| {
            // A later move is carried out by the thread that decided it.
            if claims.moves == moves {
                let (cpu, source) = claims.sent;
                // ORDERING: Relaxed: for the log.
                seat.place.store(u32::from(cpu.0), Ordering::Relaxed);
                claims.sent_by = Some(source).filter(|_| cpu != seat.own_cpu);
            }
        })
    }
}

#[cfg(test)]
mod tests;
