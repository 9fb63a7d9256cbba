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
//! The claims of a task are kept under its seat's guard. Some system calls are made under that guard as well:
//!
//! | call | under the seat's guard | why |
//! |---|---|---|
//! | the task sets its own level | yes | the call may lower the task, which may then be preempted before the call returns; a thread with a newer level waits for the guard and lends the task its priority |
//! | another thread sets it | no | the call may raise the task, which may then execute at once and would find its own seat locked; the caller is not preempted meanwhile |
//! | any thread sets its place | no | the call suspends the caller; if it moves the caller itself, it returns on the new processor |
//!
//! A call made without the guard may be late, after the kernel got a newer level. The caller notices that afterwards,
//! under the guard, and sets the present level. So as soon as no call is in progress, the kernel has the last level.

use crate::tasks::priorities::Levels;
use lockwright_model::{CpuId, Priority, TaskId};
use lockwright_protocol::{Action, Machine, Refusal};
use lockwright_sys::futex::{self, Deadline, Scope};
use lockwright_sys::guard::Guarded;
use lockwright_sys::{SysError, clock, sched};
use std::cell::Cell;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The index of a machine among those of the run.
pub(crate) type Source = usize;

/// Everything that determines the priority and the place of one task. On the task's own processor the highest priority
/// counts. Elsewhere the priority of the machine that sent it there counts, because the others do not consider that
/// processor's tasks.
#[derive(Clone, Debug)]
pub(crate) struct Claims {
    base: Priority,
    /// The claims of each machine, by source.
    machines: Box<[Said]>,
    /// The ceiling of the resource that the task is about to request.
    asking: Option<Priority>,
    /// The number of reasons for which no task may preempt it.
    exclusive: u8,
    /// The machine that sent it to another processor.
    sent_by: Option<Source>,
    /// The processor to which it was sent last, and by which machine; then the number of moves (wraps).
    sent: (CpuId, Source),
    moves: u32,
    /// The level that the kernel has, if no call is in progress.
    level: u8,
    /// The number of calls that set a level (wraps).
    calls: u32,
    /// The number of calls of other threads that are in progress.
    calls_under_way: u16,
}

/// The last claim of a machine, with the epochs of its values.
#[derive(Clone, Copy, Debug)]
struct Said {
    priority: Priority,
    priority_epoch: u32,
    place_epoch: u32,
}

/// Whether an epoch is later than another. Epochs wrap, and the later one is less than half the circle ahead.
fn is_later(epoch: u32, than: u32) -> bool {
    epoch.wrapping_sub(than) as i32 > 0
}

/// Advances an epoch that is far behind. Priorities and places are counted together, and a value that has not changed
/// for long must not appear to be ahead.
fn not_far_behind(epoch: u32, latest: u32) -> u32 {
    const FAR: u32 = 1 << 30;
    if latest.wrapping_sub(epoch) > FAR && is_later(latest, epoch) { latest.wrapping_sub(FAR) } else { epoch }
}

impl Claims {
    fn new(base: Priority, own_cpu: CpuId, level: u8, machines: usize) -> Self {
        // A machine claims nothing before its first change.
        let silent = Said { priority: Priority::MIN, priority_epoch: 0, place_epoch: 0 };
        Self {
            base,
            machines: vec![silent; machines].into(),
            asking: None,
            exclusive: 0,
            sent_by: None,
            sent: (own_cpu, 0),
            moves: 0,
            level,
            calls: 0,
            calls_under_way: 0,
        }
    }

    /// Records a machine's value, unless a later one is recorded already.
    fn set(&mut self, source: Source, priority: Priority, epoch: u32) {
        let last = &mut self.machines[source];
        if is_later(epoch, last.priority_epoch) {
            (last.priority, last.priority_epoch) = (priority, epoch);
            last.place_epoch = not_far_behind(last.place_epoch, epoch);
        }
    }

    /// Whether a machine's move is later than all its moves before. Records it if so.
    fn moves(&mut self, source: Source, epoch: u32) -> bool {
        let last = &mut self.machines[source];
        let moves = is_later(epoch, last.place_epoch);
        if moves {
            last.place_epoch = epoch;
            last.priority_epoch = not_far_behind(last.priority_epoch, epoch);
        }
        moves
    }

    fn effective(&self) -> Priority {
        if self.exclusive > 0 {
            return Priority::NON_PREEMPTIVE;
        }
        let said = match self.sent_by {
            Some(source) => self.machines[source].priority,
            None => self.machines.iter().map(|said| said.priority).fold(self.base, Priority::max),
        };
        said.max(self.asking.unwrap_or(Priority::MIN))
    }

    /// Begins a call that sets a level, unless the kernel certainly has that level. Returns the number of the call.
    fn begin_call(&mut self, level: u8) -> Option<u32> {
        if level == self.level && self.calls_under_way == 0 {
            return None;
        }
        self.calls = self.calls.wrapping_add(1);
        Some(self.calls)
    }

    /// Like [`Claims::begin_call`], for a call that is made without the guard.
    fn begin_call_unguarded(&mut self, level: u8) -> Option<u32> {
        let call = self.begin_call(level)?;
        self.calls_under_way += 1;
        Some(call)
    }

    /// Ends a call that was made without the guard. Returns whether no other call began since. If one did, it is
    /// unknown which of them reached the kernel last.
    fn end_call(&mut self, call: u32) -> bool {
        self.calls_under_way -= 1;
        self.calls == call
    }
}

/// Nothing has happened to a waiting task.
const NOTHING: u32 = 0;
/// The task owns the resource for which it waits.
const GRANTED: u32 = 1;
/// The task was woken, and requests again or starts its job.
const WOKEN: u32 = 2;

/// Nanoseconds of spinning after which a task sleeps in between, because the owner was delayed by something outside the
/// protocol.
const SPIN_NS: u64 = 20_000_000;
/// Nanoseconds of each such sleep.
const NAP_NS: u64 = 1_000_000;
/// The number of spins between two readings of the clock.
const SPINS: u32 = 1 << 12;

/// Spins until `look` returns a value. After [`SPIN_NS`], `nap` is called in between to sleep until the given time, so
/// that lower threads of this processor execute as well.
///
/// BOUND: the caller's, for the value it waits for.
pub(crate) fn spin_until<T>(look: impl Fn() -> Option<T>, nap: impl Fn(u64)) -> T {
    let mut start = None;
    loop {
        for _ in 0..SPINS {
            if let Some(found) = look() {
                return found;
            }
            spin_loop();
        }
        let now = clock::now_ns();
        if now.saturating_sub(*start.get_or_insert(now)) > SPIN_NS {
            nap(now + NAP_NS);
        }
    }
}

/// The runtime state of one task's thread. It occupies its own cache lines, so that neighbours share none.
#[derive(Debug)]
#[repr(align(128))]
pub struct Seat {
    /// The thread's id, or 0 before the thread exists.
    tid: AtomicU32,
    /// What happened to the task while it waits.
    flag: AtomicU32,
    /// The processor of the system to which the task was sent last.
    place: AtomicU32,
    /// The thread is permanently under the ordinary policy, where levels have no effect.
    is_ordinary: AtomicBool,
    own_cpu: CpuId,
    claims: Guarded<Claims>,
}

impl Seat {
    /// Returns the id of the task's thread.
    pub fn tid(&self) -> sched::Tid {
        // ORDERING: Acquire pairs with the Release in `sit`.
        sched::Tid(self.tid.load(Ordering::Acquire))
    }

    /// Makes the calling thread the thread of this task.
    pub fn sit(&self) {
        // ORDERING: Release pairs with the Acquire in `tid`.
        self.tid.store(sched::gettid().0, Ordering::Release);
    }

    /// Returns the processor of the system to which the task was sent last.
    pub fn places(&self) -> &AtomicU32 {
        &self.place
    }

    /// Puts the thread under the ordinary policy, permanently.
    pub fn demote(&self) -> Result<(), SysError> {
        // ORDERING: Release pairs with the Acquire in `Executor::set_level`, which then ignores the kernel's refusal.
        self.is_ordinary.store(true, Ordering::Release);
        sched::set_other(self.tid())
    }
}

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

/// The result of the caller's request after its decision was carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Outcome {
    /// The caller owns the resource; otherwise it requests again, or starts its job.
    pub(crate) is_granted: bool,
    pub(crate) waited: bool,
    /// The caller has released nothing: its section is executed again.
    pub(crate) restarts: bool,
}

/// The seats of all tasks, and the levels of one run.
#[derive(Debug)]
pub struct Executor {
    seats: Box<[Seat]>,
    levels: Levels,
    /// The Linux number of each processor of the system.
    cpus: Box<[usize]>,
}

impl Executor {
    /// Creates the executor. `tasks` holds the base priority and the processor of each task, `cpus` the Linux numbers
    /// of processors, and `machines` is the number of machines.
    pub(crate) fn new(
        tasks: impl Iterator<Item = (Priority, CpuId)>,
        levels: Levels,
        cpus: &[usize],
        machines: usize,
    ) -> Self {
        let seat = |(base, own_cpu): (Priority, CpuId)| Seat {
            tid: AtomicU32::new(0),
            flag: AtomicU32::new(NOTHING),
            place: AtomicU32::new(u32::from(own_cpu.0)),
            is_ordinary: AtomicBool::new(false),
            own_cpu,
            claims: Guarded::new(Claims::new(base, own_cpu, levels.get(base), machines)),
        };
        Self { seats: tasks.map(seat).collect(), levels, cpus: cpus.into() }
    }

    /// Reserves the memory for the decisions of the calling thread, enough for any decision.
    pub fn prepare(&self) {
        let mut notes = take_notes();
        // A decision grants to, changes, moves and wakes each task at most twice.
        notes.reserve(8 + 8 * self.seats.len());
        put_notes(notes);
    }

    /// Returns the Linux number of each processor of the system.
    pub fn cpus(&self) -> &[usize] {
        &self.cpus
    }

    /// Returns the runtime state of a task.
    pub fn seat(&self, task: TaskId) -> &Seat {
        &self.seats[task.index()]
    }

    /// Returns the level of a priority.
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
        let mut decision = Decision { list: take_notes(), is_granted: false, restarts: false, told: Ok(()) };
        decision.list.clear();
        let answer = {
            let mut machine = machine.lock();
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
            Action::Grant { task, .. } if Some(task) == me => decision.is_granted = true,
            // A machine restarts only the caller.
            Action::Restart { .. } => decision.restarts = true,
            // The caller is awake.
            Action::Wake { task } if Some(task) == me => {}
            Action::Grant { task, .. } => {
                // ORDERING: Release pairs with the Acquire in `told`: the new owner sees the section before.
                self.seat(task).flag.store(GRANTED, Ordering::Release);
                decision.list.push(action);
            }
            Action::Wake { task } => {
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
        let mut outcome = Outcome { is_granted, waited: false, restarts };
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
                }
                Action::SetPriority { task, priority, epoch } => {
                    result = result.and(self.change(me, task, |claims| claims.set(source, priority, epoch)));
                }
                Action::Migrate { task, cpu, epoch } => result = result.and(self.migrate(source, me, task, cpu, epoch)),
                // A machine makes only the caller wait. The priority of the request ends here, because the machine has
                // decided the priority of the wait.
                Action::Block { task, .. } | Action::Hold { task } => {
                    result = result.and(self.asked(task));
                    (outcome.is_granted, outcome.waited) = (self.wait(task) == GRANTED, true);
                }
                Action::Spin { task, .. } => {
                    result = result.and(self.asked(task));
                    (outcome.is_granted, outcome.waited) = (self.spin(task) == GRANTED, true);
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
    /// BOUND: the sections of the tasks before this one; every holder unlocks when the run ends.
    fn wait(&self, task: TaskId) -> u32 {
        let flag = &self.seat(task).flag;
        loop {
            if let Some(told) = Self::told(flag) {
                return told;
            }
            futex::wait(Scope::Private, flag, NOTHING, None).or_panic();
        }
    }

    /// Spins until the flag is set, and returns it.
    ///
    /// BOUND: as in `wait`. A task never spins for one that it keeps from executing, because owners are above the tasks
    /// that spin for them. After [`SPIN_NS`] it sleeps in between, in case of a delay outside the protocol.
    fn spin(&self, task: TaskId) -> u32 {
        let flag = &self.seat(task).flag;
        let nap = |until| {
            futex::wait(Scope::Private, flag, NOTHING, Some(Deadline::monotonic(until))).or_panic();
        };
        spin_until(|| Self::told(flag), nap)
    }

    /// Changes a claim of `task`, and sets its level in the kernel if that changes. `me` is the caller.
    fn change(&self, me: Option<TaskId>, task: TaskId, change: impl FnOnce(&mut Claims)) -> Result<(), SysError> {
        if me == Some(task) { self.change_own(task, change) } else { self.change_others(task, change) }
    }

    /// Like [`Executor::change`], for the caller's own claims: everything happens under the seat's guard.
    fn change_own(&self, task: TaskId, change: impl FnOnce(&mut Claims)) -> Result<(), SysError> {
        let seat = self.seat(task);
        let mut claims = seat.claims.lock();
        change(&mut claims);
        self.tell(seat, &mut claims)
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
            (level, call)
        };
        let told = Self::set_level(seat, level);
        let mut claims = seat.claims.lock();
        if claims.end_call(call) {
            return told.map(|level| claims.level = level.unwrap_or(claims.level));
        }
        claims.calls = claims.calls.wrapping_add(1);
        let level = self.levels.get(claims.effective());
        Self::set_level(seat, level).map(|level| claims.level = level.unwrap_or(claims.level))
    }

    /// Sets the effective level in the kernel, unless the kernel certainly has it. The caller holds the seat's guard.
    fn tell(&self, seat: &Seat, claims: &mut Claims) -> Result<(), SysError> {
        let level = self.levels.get(claims.effective());
        if claims.begin_call(level).is_none() {
            return Ok(());
        }
        Self::set_level(seat, level).map(|level| claims.level = level.unwrap_or(claims.level))
    }

    /// Sets the level of a seat's thread. Returns the level that the kernel then has, or `None` if levels have no
    /// effect on the thread any more.
    fn set_level(seat: &Seat, level: u8) -> Result<Option<u8>, SysError> {
        match sched::set_level(seat.tid(), level) {
            // ORDERING: Acquire pairs with the Release in `Seat::demote`.
            Err(SysError { errno: libc::EINVAL, .. }) if seat.is_ordinary.load(Ordering::Acquire) => Ok(None),
            result => result.map(|()| Some(level)),
        }
    }

    /// Moves a task. The guard is not held while the task moves. A task that comes back has its base priority again,
    /// and one that leaves does not.
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
            if !claims.moves(source, epoch) {
                return Ok(());
            }
            claims.sent = (cpu, source);
            claims.moves = claims.moves.wrapping_add(1);
            (cpu, claims.moves)
        };
        loop {
            sched::set_affinity(seat.tid(), &[self.cpus[cpu.index()]])?;
            let claims = seat.claims.lock();
            if claims.moves == moves {
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
mod tests {
    use super::*;

    #[test]
    fn a_stale_priority_is_dropped() {
        let [low, high, top] = [1, 2, 3].map(Priority::base);
        let mut claims = Claims::new(low, CpuId(0), 1, 1);
        claims.set(0, top, 2);
        claims.set(0, high, 1);
        assert_eq!(claims.effective(), top, "epoch 1 arrived after epoch 2");
        claims.set(0, low, 3);
        assert_eq!(claims.effective(), low);
    }

    #[test]
    fn epochs_are_compared_across_their_wrap() {
        let [low, high, top] = [1, 2, 3].map(Priority::base);
        let mut claims = Claims::new(low, CpuId(0), 1, 1);
        claims.machines[0].priority_epoch = u32::MAX;
        claims.set(0, top, 0);
        assert_eq!(claims.effective(), top);
        claims.set(0, high, u32::MAX);
        assert_eq!(claims.effective(), top);
    }

    /// The priority that a setter sets; the level and the call, once that has begun; its progress.
    type Other = (Priority, Option<(u8, u32)>, u8);

    /// The kernel's level, and three setters of it: the task itself, twice, and two others. Without `repeats`, which
    /// the implementation does, a late call stays in effect.
    #[derive(Clone)]
    struct Tellers {
        claims: Claims,
        kernel: u8,
        own: Vec<Option<Priority>>,
        /// For each of the others: the priority that it sets; the level and the call, once that has begun; whether the
        /// kernel has it.
        others: [Other; 2],
        repeats: bool,
    }

    impl Tellers {
        fn level(&self) -> u8 {
            self.claims.effective().level() as u8
        }

        /// Executes one step of a setter. Returns `false` if the setter is done.
        fn step(&mut self, teller: usize) -> bool {
            let Some(other) = teller.checked_sub(1) else {
                let Some(asking) = self.own.pop() else { return false };
                self.claims.asking = asking;
                let level = self.level();
                if self.claims.begin_call(level).is_some() {
                    (self.kernel, self.claims.level) = (level, level);
                }
                return true;
            };
            match self.others[other] {
                (priority, None, 0) => {
                    self.claims.set(other, priority, 1);
                    let level = self.level();
                    let call = self.claims.begin_call_unguarded(level);
                    self.others[other] = (priority, call.map(|call| (level, call)), if call.is_some() { 1 } else { 3 });
                }
                (priority, Some((level, call)), 1) => {
                    self.kernel = level;
                    self.others[other] = (priority, Some((level, call)), 2);
                }
                (priority, Some((level, call)), 2) => {
                    self.others[other] = (priority, None, 3);
                    if self.claims.end_call(call) {
                        self.claims.level = level;
                    } else if self.repeats {
                        self.claims.calls = self.claims.calls.wrapping_add(1);
                        (self.kernel, self.claims.level) = (self.level(), self.level());
                    }
                }
                _ => return false,
            }
            true
        }

        /// Whether the kernel has the effective level whenever no call is in progress, in every interleaving.
        fn ends_well(&self) -> bool {
            let is_right = self.claims.calls_under_way > 0 || self.kernel == self.level();
            let goes_on = |teller| {
                let mut next = self.clone();
                !next.step(teller) || next.ends_well()
            };
            is_right && (0..3).all(goes_on)
        }
    }

    #[test]
    fn the_kernel_ends_with_the_last_change() {
        let base = Priority::base(1);
        for (low, high) in [(2, 3), (3, 2), (5, 6), (6, 5), (2, 6)] {
            let tellers = |repeats| Tellers {
                claims: Claims::new(base, CpuId(0), 1, 2),
                kernel: 1,
                // The task rises to 4 and falls again, twice.
                own: vec![None, Some(Priority::base(4)), None, Some(Priority::base(4))],
                others: [(Priority::base(low), None, 0), (Priority::base(high), None, 0)],
                repeats,
            };
            assert!(tellers(true).ends_well());
            assert!(!tellers(false).ends_well(), "without the repetition a late call stays in effect");
        }
    }

    #[test]
    fn a_base_priority_falls_where_no_machine_holds_it_up() {
        let mut claims = Claims::new(Priority::base(5), CpuId(0), 1, 1);
        claims.base = Priority::base(0);
        assert_eq!(claims.effective(), Priority::base(0));
    }

    #[test]
    fn the_highest_claim_counts() {
        let mut claims = Claims::new(Priority::base(1), CpuId(0), 1, 2);
        claims.set(0, Priority::base(5), 1);
        claims.set(1, Priority::base(2).boosted(), 1);
        assert_eq!(claims.effective(), Priority::base(2).boosted());
        claims.set(1, Priority::base(1), 2);
        assert_eq!(claims.effective(), Priority::base(5));
        claims.asking = Some(Priority::base(9));
        assert_eq!(claims.effective(), Priority::base(9));
    }

    #[test]
    fn a_decision_about_others_is_noticed() {
        let [me, one, other] = [0, 1, 2].map(TaskId);
        let wake = |task| Action::Wake { task };
        let rise = |task| Action::SetPriority { task, priority: Priority::MIN, epoch: 1 };
        let about = |list: &[Action]| {
            Decision { list: list.to_vec(), is_granted: false, restarts: false, told: Ok(()) }.is_about_others(me)
        };
        assert!(!about(&[]) && !about(&[rise(me)]) && !about(&[wake(one), rise(me)]));
        assert!(about(&[wake(one), wake(other)]) && about(&[rise(one), wake(one), rise(me)]));
        assert!(about(&[rise(one), Action::Migrate { task: one, cpu: CpuId(1), epoch: 2 }]));
    }

    #[test]
    fn exclusions_nest() {
        let mut claims = Claims::new(Priority::base(1), CpuId(0), 1, 0);
        claims.exclusive = 2;
        assert_eq!(claims.effective(), Priority::NON_PREEMPTIVE);
        claims.exclusive -= 1;
        assert_eq!(claims.effective(), Priority::NON_PREEMPTIVE);
        claims.exclusive -= 1;
        assert_eq!(claims.effective(), Priority::base(1));
    }

    #[test]
    fn a_base_priority_counts_at_home_only() {
        let mut claims = Claims::new(Priority::base(9), CpuId(0), 1, 2);
        claims.set(0, Priority::base(5), 1);
        claims.set(1, Priority::base(9), 1);
        assert_eq!(claims.effective(), Priority::base(9));
        claims.sent_by = Some(0);
        assert_eq!(claims.effective(), Priority::base(5));
    }

    #[test]
    fn a_value_unchanged_for_long_is_not_taken_for_stale() {
        let mut claims = Claims::new(Priority::base(1), CpuId(0), 1, 1);
        for epoch in (0..u32::MAX).step_by(1 << 29).skip(1) {
            claims.set(0, Priority::base(5), epoch);
        }
        assert!(claims.moves(0, u32::MAX), "the first move after four billion changes of priority");
        assert!(!claims.moves(0, u32::MAX - 1));
    }

    #[test]
    fn a_grant_that_comes_after_a_wake_is_not_lost() {
        let flag = AtomicU32::new(WOKEN);
        assert_eq!(Executor::told(&flag), Some(WOKEN));
        assert_eq!(Executor::told(&flag), None);
        flag.store(GRANTED, Ordering::Relaxed);
        assert_eq!(Executor::told(&flag), Some(GRANTED));
        assert_eq!(flag.load(Ordering::Relaxed), NOTHING);
    }
}
