//! Carries out what the machines decide: wakes, waits, moves, and changes priorities, on real threads.
//!
//! Decisions are made under a machine's guard and carried out after it, in the machine's order: others first,
//! the caller last, so that the next owner is awake before the caller lowers itself.
//!
//! | action | under the guard | after it |
//! |---|---|---|
//! | Grant to another | its flag says so (Release) | - |
//! | Wake | its flag says so, if nothing else | futex wake on its flag |
//! | SetPriority, Migrate | - | see [`Claims`] |
//! | SetPriority of another, where priorities are an order ([`Machine::settles_others_at_once`]) | the kernel is told | - |
//! | Block, Hold | - | the caller waits on its own flag (Acquire) |
//! | Spin | - | the caller reads its own flag, again and again |
//! | Restart | - | the caller is told, and executes its section again |
//!
//! A task rises *before* it asks ([`Executor::rise`]): were it to ask first, it could be preempted
//! between the machine's grant and its rise, and would hold the resource at its base priority for as long as others
//! run. Before it waits, only what the machine said counts.
//!
//! A move and the priority that goes with it are two system calls: between them a task has the priority of one
//! processor on the other, for about as long as a system call takes.
//!
//! What a task claims is kept under its seat's guard. Which calls to the kernel are made under it, too:
//!
//! | call | under the seat's guard | why |
//! |---|---|---|
//! | the task sets its own level | yes | it may fall by that, and be preempted before the call returns: whoever has something newer to tell then waits for the guard, and lends it its priority |
//! | another sets it | no | the task may rise by that, and execute at once: it would find its own seat taken. The caller is not preempted meanwhile |
//! | anyone sets its place | no | the call suspends the caller, and returns to a task that goes elsewhere when that executes there |
//!
//! A call that is made without the guard may be late: the kernel hears of something newer first. The caller notices
//! that under the guard, afterwards, and tells the kernel what counts now. So the last change is also the last the
//! kernel hears of, as soon as no call is under way.

use crate::tasks::priorities::Levels;
use lockwright_model::{CpuId, Priority, TaskId};
use lockwright_protocol::{Action, Machine, Refusal};
use lockwright_sys::futex::{self, Deadline, Scope};
use lockwright_sys::guard::Guarded;
use lockwright_sys::{SysError, clock, sched};
use std::cell::Cell;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Which machine: its place among those of the run.
pub(crate) type Source = usize;

/// Everything that has a say in the priority and the place of one task. On the task's own processor the highest
/// priority counts; elsewhere that of the machine which sent it there, for the others know nothing of that processor's
/// tasks.
#[derive(Clone, Debug)]
pub(crate) struct Claims {
    base: Priority,
    /// By source.
    machines: Box<[Said]>,
    /// The ceiling of what the task is about to ask for.
    asking: Option<Priority>,
    /// How many reasons there are that no task may preempt it.
    exclusive: u8,
    /// The machine that sent it to another processor.
    sent_by: Option<Source>,
    /// Where it was sent last, by which machine; and how often it was sent (wraps).
    sent: (CpuId, Source),
    moves: u32,
    /// What the kernel was told last, where no call is under way.
    level: u8,
    /// How often the kernel was told a level (wraps).
    calls: u32,
    /// The calls of others that are under way.
    calls_under_way: u16,
}

/// What a machine said last, and when.
#[derive(Clone, Copy, Debug)]
struct Said {
    priority: Priority,
    priority_epoch: u32,
    place_epoch: u32,
}

/// Whether an epoch is later: they wrap, and the later one is less than half the circle ahead.
fn is_later(epoch: u32, than: u32) -> bool {
    epoch.wrapping_sub(than) as i32 > 0
}

/// Priorities and places are counted together: what has not changed for long must not seem to lie ahead.
fn not_far_behind(epoch: u32, latest: u32) -> u32 {
    const FAR: u32 = 1 << 30;
    if latest.wrapping_sub(epoch) > FAR && is_later(latest, epoch) { latest.wrapping_sub(FAR) } else { epoch }
}

impl Claims {
    fn new(base: Priority, own_cpu: CpuId, level: u8, machines: usize) -> Self {
        // A machine says nothing before its first change.
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

    /// Takes a machine's value, unless a later one was taken already.
    fn set(&mut self, source: Source, priority: Priority, epoch: u32) {
        let last = &mut self.machines[source];
        if is_later(epoch, last.priority_epoch) {
            (last.priority, last.priority_epoch) = (priority, epoch);
            last.place_epoch = not_far_behind(last.place_epoch, epoch);
        }
    }

    /// Whether a machine's move is later than all before it.
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

    /// A call that tells the kernel a level begins, unless the kernel has that level for sure. Says which call it is.
    fn begin_call(&mut self, level: u8) -> Option<u32> {
        if level == self.level && self.calls_under_way == 0 {
            return None;
        }
        self.calls = self.calls.wrapping_add(1);
        Some(self.calls)
    }

    /// As [`Claims::begin_call`], where the call is made without the guard.
    fn begin_call_unguarded(&mut self, level: u8) -> Option<u32> {
        let call = self.begin_call(level)?;
        self.calls_under_way += 1;
        Some(call)
    }

    /// A call without the guard is over. Says whether no other began since; if one did, it is not known which of them
    /// the kernel heard of last.
    fn end_call(&mut self, call: u32) -> bool {
        self.calls_under_way -= 1;
        self.calls == call
    }
}

/// Nothing has happened to a task that waits.
const NOTHING: u32 = 0;
/// What it waits for is its own.
const GRANTED: u32 = 1;
/// It was woken, and tries again, or starts.
const WOKEN: u32 = 2;

/// After so much spinning a task sleeps in between: its owner has met something that no protocol knows of.
const SPIN_NS: u64 = 20_000_000;
/// For so long.
const NAP_NS: u64 = 1_000_000;
/// Between two looks at the clock.
const SPINS: u32 = 1 << 12;

/// Spins until `look` finds something. After [`SPIN_NS`] it lets `nap` sleep until a time in between, that lower
/// threads of this processor execute, too.
///
/// BOUND: the caller's, for what it looks for.
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

/// What the runtime keeps for the thread of one task. One cache line and more each, so that neighbours do not meet.
#[derive(Debug)]
#[repr(align(128))]
pub struct Seat {
    /// The thread; 0 before it exists.
    tid: AtomicU32,
    /// What the task was told while it waits.
    flag: AtomicU32,
    /// The processor of the system where it was sent last.
    place: AtomicU32,
    /// The thread is under the ordinary policy for good: levels mean nothing to it any more.
    is_ordinary: AtomicBool,
    own_cpu: CpuId,
    claims: Guarded<Claims>,
}

impl Seat {
    /// The thread that is this task.
    pub fn tid(&self) -> sched::Tid {
        // ORDERING: Acquire pairs with the Release in `sit`.
        sched::Tid(self.tid.load(Ordering::Acquire))
    }

    /// The calling thread takes the seat.
    pub fn sit(&self) {
        // ORDERING: Release pairs with the Acquire in `tid`.
        self.tid.store(sched::gettid().0, Ordering::Release);
    }

    /// The processor of the system where the task was sent last.
    pub fn places(&self) -> &AtomicU32 {
        &self.place
    }

    /// Puts the thread under the ordinary policy, for good.
    pub fn demote(&self) -> Result<(), SysError> {
        // ORDERING: Release pairs with the Acquire in `Executor::change`: who meets the ordinary policy knows why.
        self.is_ordinary.store(true, Ordering::Release);
        sched::set_other(self.tid())
    }
}

thread_local! {
    /// Where the caller's decisions are noted; its memory is there before the first.
    static NOTES: Cell<Vec<Action>> = const { Cell::new(Vec::new()) };
}

/// At the end of a thread, when its thread-locals are gone, there is other memory.
fn take_notes() -> Vec<Action> {
    NOTES.try_with(Cell::take).unwrap_or_default()
}

fn put_notes(notes: Vec<Action>) {
    // Where it is gone, so is the need.
    let _ = NOTES.try_with(|place| place.set(notes));
}

/// A decision that waits to be carried out.
pub(crate) struct Decision {
    list: Vec<Action>,
    /// The caller owns what it asked for.
    is_granted: bool,
    /// The section of the caller was in vain; it is inside still.
    restarts: bool,
    /// How telling those went that were told under the guard.
    told: Result<(), SysError>,
}

/// Whom an action is about.
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
    /// Whether another task is told its priority or its place, or several are woken.
    fn is_about_others(&self, me: TaskId) -> bool {
        let mut others = self.list.iter().filter(|action| subject(action) != me);
        let Some(first) = others.next() else { return false };
        let tells = |action: &Action| matches!(action, Action::SetPriority { .. } | Action::Migrate { .. });
        tells(first) || others.any(|action| tells(action) || subject(action) != subject(first))
    }
}

/// What has become of the caller's request when its decision was carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Outcome {
    /// It owns what it asked for; else it tries again, or starts.
    pub(crate) is_granted: bool,
    pub(crate) waited: bool,
    /// It has given nothing back: its section is executed again.
    pub(crate) restarts: bool,
}

/// The seats of all tasks, and the levels of one run.
#[derive(Debug)]
pub struct Executor {
    seats: Box<[Seat]>,
    levels: Levels,
    /// By processor of the system: its Linux number.
    cpus: Box<[usize]>,
}

impl Executor {
    /// `tasks[t]` is the base priority and the processor of task `t`, `cpus` the Linux numbers of processors; with so
    /// many machines.
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

    /// Memory for the decisions of the calling thread, as much as any takes.
    pub fn prepare(&self) {
        let mut notes = take_notes();
        // Each task is granted something, told a priority and a place and woken, at most twice.
        notes.reserve(8 + 8 * self.seats.len());
        put_notes(notes);
    }

    /// By processor of the system: its Linux number.
    pub fn cpus(&self) -> &[usize] {
        &self.cpus
    }

    /// What the executor keeps of a task.
    pub fn seat(&self, task: TaskId) -> &Seat {
        &self.seats[task.index()]
    }

    /// The level a task has when it claims nothing.
    pub fn level(&self, priority: Priority) -> u8 {
        self.levels.get(priority)
    }

    /// `task`, the caller, rises to `ceiling` before it asks. Ends with [`Executor::asked`], after an error too.
    pub(crate) fn rise(&self, task: TaskId, ceiling: Priority) -> Result<(), SysError> {
        self.change_own(task, |claims| claims.asking = Some(ceiling))
    }

    /// The answer is there: from here on only the machines' values count.
    pub(crate) fn asked(&self, task: TaskId) -> Result<(), SysError> {
        self.change_own(task, |claims| claims.asking = None)
    }

    /// From now on no task preempts `task`, the caller, until [`Executor::include`]; after an error, too.
    pub(crate) fn exclude(&self, task: TaskId) -> Result<(), SysError> {
        self.change_own(task, |claims| claims.exclusive = claims.exclusive.saturating_add(1))
    }

    /// As often as [`Executor::exclude`].
    pub(crate) fn include(&self, task: TaskId) -> Result<(), SysError> {
        self.change_own(task, |claims| claims.exclusive = claims.exclusive.saturating_sub(1))
    }

    /// The base priority of a task changes. The machines are told apart.
    pub(crate) fn set_base(&self, task: TaskId, base: Priority) -> Result<(), SysError> {
        self.change_others(task, |claims| claims.base = base)
    }

    /// The base priority of a task now.
    pub(crate) fn base(&self, task: TaskId) -> Priority {
        self.seat(task).claims.lock().base
    }

    /// What counts for a task now.
    pub fn effective(&self, task: TaskId) -> Priority {
        self.seat(task).claims.lock().effective()
    }

    /// Lets a machine decide on an event of `me`, the caller; `None` where the event is of another. A grant to another,
    /// and that it may go on, take effect here, under the guard.
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
            // Machines tell nobody else.
            Action::Restart { .. } => decision.restarts = true,
            // It is awake.
            Action::Wake { task } if Some(task) == me => {}
            Action::Grant { task, .. } => {
                // ORDERING: Release pairs with the Acquire in `told`: the new owner sees the section before.
                self.seat(task).flag.store(GRANTED, Ordering::Release);
                decision.list.push(action);
            }
            Action::Wake { task } => {
                // The new owner may have taken the grant by now: a word more would stay for its next wait, and wake it
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

    /// Tells the kernel the priorities of others, in the order given, and takes them off the list: nobody decides
    /// before all are told. An error does not keep the others from being told.
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
    /// Where others are told something, none of them preempts the caller meanwhile: of two that it wakes the first
    /// would keep it from waking the second, however urgent that is; and a call that came late must be made good at
    /// once, see [`Executor::change_others`]. `is_excluded`: it is not preempted already.
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
        // Who is not a task is above all tasks.
        let mut exclusive = me.filter(|&me| is_excluded || decision.is_about_others(me));
        if let Some(me) = exclusive.filter(|_| !is_excluded) {
            result = result.and(self.exclude(me));
        }
        for action in &decision.list {
            // The caller's own come last.
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
                // Machines tell nobody but the caller to wait. What it asked with counts no more: the machine has said
                // what it waits with.
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

    /// What the task was told, once.
    fn told(flag: &AtomicU32) -> Option<u32> {
        // ORDERING: Acquire pairs with the Release in `note`.
        let told = flag.load(Ordering::Acquire);
        if told == NOTHING {
            return None;
        }
        // ORDERING: as above: a grant may have come since the wake, and what comes after this comes after the task's
        // next event, under the same guard.
        let told = flag.swap(NOTHING, Ordering::Acquire);
        Some(told)
    }

    /// BOUND: the sections of those who come before; every holder gives back when the run ends.
    fn wait(&self, task: TaskId) -> u32 {
        let flag = &self.seat(task).flag;
        loop {
            if let Some(told) = Self::told(flag) {
                return told;
            }
            futex::wait(Scope::Private, flag, NOTHING, None).or_panic();
        }
    }

    /// BOUND: as in `wait`. It never spins for one that it keeps from executing: owners go before those that spin for
    /// them; and after [`SPIN_NS`] it sleeps in between, for whatever comes that no protocol knows of.
    fn spin(&self, task: TaskId) -> u32 {
        let flag = &self.seat(task).flag;
        let nap = |until| {
            futex::wait(Scope::Private, flag, NOTHING, Some(Deadline::monotonic(until))).or_panic();
        };
        spin_until(|| Self::told(flag), nap)
    }

    /// Changes a claim of `task` and tells the kernel, if the outcome is another level; `me` is the caller.
    fn change(&self, me: Option<TaskId>, task: TaskId, change: impl FnOnce(&mut Claims)) -> Result<(), SysError> {
        if me == Some(task) { self.change_own(task, change) } else { self.change_others(task, change) }
    }

    /// As [`Executor::change`], of the caller: all under the seat's guard.
    fn change_own(&self, task: TaskId, change: impl FnOnce(&mut Claims)) -> Result<(), SysError> {
        let seat = self.seat(task);
        let mut claims = seat.claims.lock();
        change(&mut claims);
        self.tell(seat, &mut claims)
    }

    /// As [`Executor::change`], by another thread, which is not preempted: the call is made without the guard. If the
    /// kernel was told another level in between, it is not known which it heard of last, and it is told once more, this
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

    /// Tells the kernel what counts, unless it has that for sure; under the seat's guard.
    fn tell(&self, seat: &Seat, claims: &mut Claims) -> Result<(), SysError> {
        let level = self.levels.get(claims.effective());
        if claims.begin_call(level).is_none() {
            return Ok(());
        }
        Self::set_level(seat, level).map(|level| claims.level = level.unwrap_or(claims.level))
    }

    /// Returns the level that the kernel has then; `None` where levels mean nothing to the thread any more.
    fn set_level(seat: &Seat, level: u8) -> Result<Option<u8>, SysError> {
        match sched::set_level(seat.tid(), level) {
            // ORDERING: Acquire pairs with the Release in `Seat::demote`.
            Err(SysError { errno: libc::EINVAL, .. }) if seat.is_ordinary.load(Ordering::Acquire) => Ok(None),
            result => result.map(|()| Some(level)),
        }
    }

    /// As [`Executor::change`], for the place; the guard is not held while the task moves. A task that comes back has
    /// its base priority again, and one that leaves has not.
    ///
    /// BOUND: a round for each later move of the task that is decided meanwhile; who decides one carries it out, too.
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
            // What was decided later is carried out by whom decided it.
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

    /// The priority it tells; the level and the call, when that has begun; how far it is.
    type Other = (Priority, Option<(u8, u32)>, u8);

    /// What the kernel has, and three that tell it: the task itself, twice, and two others. `repeats`: as it is done,
    /// else a call that was late stays.
    #[derive(Clone)]
    struct Tellers {
        claims: Claims,
        kernel: u8,
        own: Vec<Option<Priority>>,
        /// Of each other: the priority it tells; the level and the call, when that has begun; whether the kernel has
        /// heard.
        others: [Other; 2],
        repeats: bool,
    }

    impl Tellers {
        fn level(&self) -> u8 {
            self.claims.effective().level() as u8
        }

        /// One step of a teller; `false` where it is done.
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

        /// Whether the kernel has what counts at last, whoever executes when; and whenever no call is under way.
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
    fn the_last_change_is_the_last_the_kernel_hears_of() {
        let base = Priority::base(1);
        for (low, high) in [(2, 3), (3, 2), (5, 6), (6, 5), (2, 6)] {
            let tellers = |repeats| Tellers {
                claims: Claims::new(base, CpuId(0), 1, 2),
                kernel: 1,
                // It rises to 4, and falls again; twice.
                own: vec![None, Some(Priority::base(4)), None, Some(Priority::base(4))],
                others: [(Priority::base(low), None, 0), (Priority::base(high), None, 0)],
                repeats,
            };
            assert!(tellers(true).ends_well());
            assert!(!tellers(false).ends_well(), "a call that was late stays, and nobody notices");
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
    fn what_has_not_changed_for_long_is_not_taken_for_stale() {
        let mut claims = Claims::new(Priority::base(1), CpuId(0), 1, 1);
        for epoch in (0..u32::MAX).step_by(1 << 29).skip(1) {
            claims.set(0, Priority::base(5), epoch);
        }
        assert!(claims.moves(0, u32::MAX), "the first move after four thousand million changes of priority");
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
