//! The claims of the machines on one task, from which its priority and its place follow.

use lockwright_model::{CpuId, Priority};

/// The index of a machine among those of the run.
pub(crate) type Source = usize;

/// Everything that determines the priority and the place of one task. On the task's own processor the highest priority
/// counts. Elsewhere the priority of the machine that sent it there counts, because the others do not consider that
/// processor's tasks.
#[derive(Clone, Debug)]
pub(crate) struct Claims {
    pub(super) base: Priority,
    /// The claims of each machine, by source.
    pub(super) machines: Box<[Said]>,
    /// The ceiling of the resource that the task is about to request.
    pub(super) asking: Option<Priority>,
    /// The number of reasons for which no task may preempt it.
    pub(super) exclusive: u8,
    /// The machine that sent it to another processor.
    pub(super) sent_by: Option<Source>,
    /// The processor to which it was sent last, and by which machine; then the number of moves (wraps).
    pub(super) sent: (CpuId, Source),
    pub(super) moves: u32,
    /// The level that the kernel has, if no call is in progress.
    pub(super) level: u8,
    /// The number of calls that set a level (wraps).
    pub(super) calls: u32,
    /// The number of calls of other threads that are in progress.
    pub(super) calls_under_way: u16,
    /// The number of moves that are in progress.
    pub(super) moves_under_way: u16,
    /// The task has no thread yet, or its thread has left: nobody sets a level, or moves it.
    pub(super) is_vacant: bool,
}

/// The last claim of a machine, with the epochs of its values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said {
    pub(super) priority: Priority,
    pub(super) priority_epoch: u32,
    pub(super) place_epoch: u32,
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
    pub(super) fn new(base: Priority, own_cpu: CpuId, level: u8, machines: usize) -> Self {
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
            moves_under_way: 0,
            is_vacant: true,
        }
    }

    /// Records a machine's value, unless a later one is recorded already.
    pub(super) fn set(&mut self, source: Source, priority: Priority, epoch: u32) {
        let last = &mut self.machines[source];
        if is_later(epoch, last.priority_epoch) {
            (last.priority, last.priority_epoch) = (priority, epoch);
            last.place_epoch = not_far_behind(last.place_epoch, epoch);
        }
    }

    /// Whether a machine's move is later than all its moves before. Records it if so.
    pub(super) fn moves(&mut self, source: Source, epoch: u32) -> bool {
        let last = &mut self.machines[source];
        let moves = is_later(epoch, last.place_epoch);
        if moves {
            last.place_epoch = epoch;
            last.priority_epoch = not_far_behind(last.priority_epoch, epoch);
        }
        moves
    }

    pub(super) fn effective(&self) -> Priority {
        if self.exclusive > 0 {
            return Priority::NON_PREEMPTIVE;
        }
        let said = match self.sent_by {
            Some(source) => self.machines[source].priority,
            None => self.machines.iter().map(|said| said.priority).fold(self.base, Priority::max),
        };
        said.max(self.asking.unwrap_or(Priority::MIN))
    }

    /// Begins a call that sets a level, unless the kernel certainly has that level, or the thread has left. Returns the
    /// number of the call.
    pub(super) fn begin_call(&mut self, level: u8) -> Option<u32> {
        if self.is_vacant || level == self.level && self.calls_under_way == 0 {
            return None;
        }
        self.calls = self.calls.wrapping_add(1);
        Some(self.calls)
    }

    /// Like [`Claims::begin_call`], for a call that is made without the guard.
    pub(super) fn begin_call_unguarded(&mut self, level: u8) -> Option<u32> {
        let call = self.begin_call(level)?;
        self.calls_under_way += 1;
        Some(call)
    }

    /// Ends a call that was made without the guard. Returns whether no other call began since. If one did, it is
    /// unknown which of them reached the kernel last.
    pub(super) fn end_call(&mut self, call: u32) -> bool {
        self.calls_under_way -= 1;
        self.calls == call
    }

    /// Begins a move that is made without the guard, unless a later one was recorded, or the thread has left. Returns
    /// the number of the move. The caller subtracts 1 from `moves_under_way` at its end.
    pub(super) fn begin_move(&mut self, source: Source, epoch: u32, cpu: CpuId) -> Option<u32> {
        if self.is_vacant || !self.moves(source, epoch) {
            return None;
        }
        self.sent = (cpu, source);
        self.moves = self.moves.wrapping_add(1);
        self.moves_under_way += 1;
        Some(self.moves)
    }

    /// Lets the task's thread leave, unless a call is in progress that would set its level or its processors
    /// afterwards. Returns whether it may leave.
    pub(super) fn vacate(&mut self) -> bool {
        self.is_vacant = self.calls_under_way == 0 && self.moves_under_way == 0;
        self.is_vacant
    }
}
