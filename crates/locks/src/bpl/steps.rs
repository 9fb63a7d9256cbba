//! One request as steps, each of which is one access to the shared words.
//!
//! The lock executes these steps on its atomics, and the search of `search.rs` executes them on plain numbers.
//!
//! ```text
//! ReadBatch ReadWaiters [Restart] TryStatus ----------------------------------------> Inside
//!   | a request waits, or the lock is held
//!   v
//! Count Draw
//!   v                                                  later: StandBack0 Watch0
//! stage 0   Enter0 Look0 Claim0 Settled0 Settle0 Check0             barrier[0] changed: stage 0 again
//!   v                                                  less urgent: StandBack1 Watch1
//! stage 1   Enter1 Look1 Belong1 Claim1 Settled1 Settle1            barrier[0] changed: Leave1 ResetOnExit, stage 0
//!   v
//! final     FinalLowest FinalUrgent FinalLook FinalTry              barrier[0] changed: ResetOnExit, stage 0
//!   v                                                               barrier[1] changed: stage 1
//! Uncount ResetUrgent ResetLowest --------------------------------------------------> Inside Advance Free
//! ```
//! A waiter that gives up goes on with Withdraw0 Withdraw1 WithdrawUrgent WithdrawLowest Retire.

/// A shared word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// The number of waiters.
    Waiters,
    /// The batch that requests join: its id in the lower bits, and the number of requests above.
    Batch,
    /// `barrier[0]`: the earliest batch in stage 0, or all ones.
    Lowest,
    /// `barrier[1]`: the most urgent priority in stage 1, or all ones.
    Urgent,
    /// The slots that have yet to compare themselves with `barrier[0]`, a bit each.
    Settling0,
    /// The slots that have yet to compare themselves with `barrier[1]`, a bit each.
    Settling1,
    /// 1 while the lock is held.
    Status,
}

/// The shared words of one lock.
pub(super) trait Memory {
    fn rules(&self) -> Rules;
    fn load(&self, place: Place) -> u64;
    fn store(&self, place: Place, value: u64);
    fn compare_exchange(&self, place: Place, current: u64, new: u64) -> Result<u64, u64>;
    fn fetch_add(&self, place: Place, value: u64) -> u64;
    fn fetch_sub(&self, place: Place, value: u64) -> u64;
    fn fetch_or(&self, place: Place, value: u64) -> u64;
    fn fetch_and(&self, place: Place, value: u64) -> u64;
}

/// The layout of the words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rules {
    /// The width of a batch id. Ids wrap around, see [`Rules::is_no_later`].
    pub(super) id_bits: u32,
    /// The width of a word, greater than `id_bits`.
    pub(super) bits: u32,
}

impl Rules {
    /// All bits of a word, which stand for no batch and for no priority.
    pub(super) const fn nobody(self) -> u64 {
        u64::MAX >> (u64::BITS - self.bits)
    }

    pub(super) const fn id(self, batch: u64) -> u64 {
        batch & ((1 << self.id_bits) - 1)
    }

    /// The amount that a request adds to the batch. The count is above the id, so a count that overflows changes no id.
    const fn one_joined(self) -> u64 {
        1 << self.id_bits
    }

    /// The batch after `batch`, without requests.
    pub(super) const fn next(self, batch: u64) -> u64 {
        self.id(batch.wrapping_add(1))
    }

    pub(super) const fn is_past_half(self, batch: u64) -> bool {
        self.id(batch) >= 1 << (self.id_bits - 1)
    }

    /// Whether the batch `id` is no later than `lowest`, an id or all ones.
    ///
    /// Ids wrap around and are compared by their difference.
    /// The result is right while the waiting batches are less than half of the range apart.
    const fn is_no_later(self, id: u64, lowest: u64) -> bool {
        lowest == self.nobody() || !self.is_past_half(lowest.wrapping_sub(id))
    }

    /// Whether the batch `id` is earlier than the batch `other`.
    #[cfg(test)]
    pub(super) const fn is_earlier(self, id: u64, other: u64) -> bool {
        id != other && self.is_no_later(id, other)
    }
}

/// The next step of a contender.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub(super) enum At {
    /// Reads `batch` before `waiters`, because requests change them in the other order.
    ReadBatch,
    ReadWaiters,
    /// No request waits: ids restart at 0, unless a request joined meanwhile.
    Restart,
    TryStatus,

    Count,
    /// Joins a batch, whose id the contender keeps while it waits.
    Draw,

    /// Stage 0.
    Enter0,
    Look0,
    /// The contender is in a later batch, so the others need not wait for it.
    StandBack0,
    Watch0,
    /// The contender is no later: `barrier[0]` becomes its batch.
    Claim0,
    Settled0,
    /// Waits until all others have compared themselves.
    Settle0,
    Check0,

    /// Stage 1.
    Enter1,
    Look1,
    /// Checks whether its batch is still the lowest one.
    Belong1,
    StandBack1,
    Watch1,
    StillBelong1,
    Claim1,
    Settled1,
    Settle1,

    /// Returns to stage 0.
    Leave1,
    ResetOnExit,

    /// Enters the final stage.
    FinalLowest,
    FinalUrgent,
    FinalLook,
    FinalTry,

    /// Holds the lock, and makes the others settle again.
    Uncount,
    ResetUrgent,
    ResetLowest,
    /// Executes the section, whose end reads the batch.
    Inside,
    Advance,
    Free,

    /// Begins to give up.
    Withdraw0,
    Withdraw1,
    WithdrawUrgent,
    WithdrawLowest,
    Retire,

    Outside,
}

/// The result of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// The contender continues.
    Goes,
    /// A check failed, or the contender has to begin again: the time to relax, and to give up.
    Waits,
    /// The contender has acquired the lock.
    Acquired,
    /// The contender has released the lock, or given up.
    Outside,
}

/// One request in progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Contender {
    pub(super) at: At,
    /// The bit of its slot.
    pub(super) bit: u64,
    /// Its priority. Less is more urgent, and it is not all ones.
    pub(super) priority: u64,
    /// The id of its batch.
    pub(super) batch: u64,
    /// The last value that it read and still needs.
    pub(super) seen: u64,
}

impl Contender {
    pub(super) const fn new(at: At, bit: u64, priority: u64) -> Self {
        Self { at, bit, priority, batch: 0, seen: 0 }
    }

    /// Begins to give up, which is possible after a step that [`Outcome::Waits`].
    #[inline]
    pub(super) fn give_up(&mut self) {
        self.at = At::Withdraw0;
        self.seen = 0;
    }

    /// Executes one step.
    #[inline]
    pub(super) fn step(&mut self, memory: &impl Memory) -> Outcome {
        let result = self
            .arrive(memory)
            .or_else(|| self.stage_0(memory))
            .or_else(|| self.stage_1(memory))
            .or_else(|| self.final_stage(memory))
            .or_else(|| self.hold(memory))
            .or_else(|| self.withdraw(memory));
        let (at, outcome) = result.unwrap_or((At::Outside, Outcome::Outside));
        self.at = at;
        outcome
    }

    /// The steps before stage 0.
    #[inline]
    fn arrive(&mut self, memory: &impl Memory) -> Option<(At, Outcome)> {
        let rules = memory.rules();
        Some(match self.at {
            At::ReadBatch => {
                self.seen = memory.load(Place::Batch);
                (At::ReadWaiters, Outcome::Goes)
            }
            At::ReadWaiters => match memory.load(Place::Waiters) {
                0 if rules.is_past_half(self.seen) => (At::Restart, Outcome::Goes),
                0 => self.forget(At::TryStatus, Outcome::Goes),
                _ => self.forget(At::Count, Outcome::Goes),
            },
            At::Restart => {
                let _ = memory.compare_exchange(Place::Batch, self.seen, 0);
                self.forget(At::TryStatus, Outcome::Goes)
            }
            At::TryStatus => match memory.compare_exchange(Place::Status, 0, 1) {
                Ok(_) => (At::Inside, Outcome::Acquired),
                Err(_) => (At::Count, Outcome::Goes),
            },
            At::Count => {
                memory.fetch_add(Place::Waiters, 1);
                (At::Draw, Outcome::Goes)
            }
            At::Draw => {
                self.batch = rules.id(memory.fetch_add(Place::Batch, rules.one_joined()));
                (At::Enter0, Outcome::Goes)
            }
            _ => return None,
        })
    }

    /// The earliest batch passes stage 0.
    #[inline]
    fn stage_0(&mut self, memory: &impl Memory) -> Option<(At, Outcome)> {
        let rules = memory.rules();
        Some(match self.at {
            At::Enter0 => {
                memory.fetch_or(Place::Settling0, self.bit);
                (At::Look0, Outcome::Goes)
            }
            at @ (At::Look0 | At::Watch0) => {
                let lowest = memory.load(Place::Lowest);
                match (rules.is_no_later(self.batch, lowest), at) {
                    (true, _) => {
                        self.seen = lowest;
                        (At::Claim0, Outcome::Goes)
                    }
                    (false, At::Look0) => (At::StandBack0, Outcome::Goes),
                    (false, _) => (At::Watch0, Outcome::Waits),
                }
            }
            At::StandBack0 => {
                memory.fetch_and(Place::Settling0, !self.bit);
                (At::Watch0, Outcome::Goes)
            }
            At::Claim0 => match memory.compare_exchange(Place::Lowest, self.seen, self.batch) {
                Ok(_) => self.forget(At::Settled0, Outcome::Goes),
                Err(_) => self.forget(At::Look0, Outcome::Waits),
            },
            At::Settled0 => {
                memory.fetch_and(Place::Settling0, !self.bit);
                (At::Settle0, Outcome::Goes)
            }
            At::Settle0 => match memory.load(Place::Settling0) {
                0 => (At::Check0, Outcome::Goes),
                _ => (At::Settle0, Outcome::Waits),
            },
            At::Check0 => match memory.load(Place::Lowest) == self.batch {
                true => (At::Enter1, Outcome::Goes),
                false => (At::Enter0, Outcome::Waits),
            },
            _ => return None,
        })
    }

    /// The most urgent priority passes stage 1.
    #[inline]
    fn stage_1(&mut self, memory: &impl Memory) -> Option<(At, Outcome)> {
        Some(match self.at {
            At::Enter1 => {
                memory.fetch_or(Place::Settling1, self.bit);
                (At::Look1, Outcome::Goes)
            }
            at @ (At::Look1 | At::Watch1) => {
                self.seen = memory.load(Place::Urgent);
                (if at == At::Look1 { At::Belong1 } else { At::StillBelong1 }, Outcome::Goes)
            }
            at @ (At::Belong1 | At::StillBelong1) => {
                match (memory.load(Place::Lowest) == self.batch, self.priority <= self.seen, at) {
                    (false, ..) => self.forget(At::Leave1, Outcome::Waits),
                    (true, true, _) => (At::Claim1, Outcome::Goes),
                    (true, false, At::Belong1) => self.forget(At::StandBack1, Outcome::Goes),
                    (true, false, _) => self.forget(At::Watch1, Outcome::Waits),
                }
            }
            At::StandBack1 => {
                memory.fetch_and(Place::Settling1, !self.bit);
                (At::Watch1, Outcome::Goes)
            }
            At::Claim1 => match memory.compare_exchange(Place::Urgent, self.seen, self.priority) {
                Ok(_) => self.forget(At::Settled1, Outcome::Goes),
                Err(_) => self.forget(At::Look1, Outcome::Waits),
            },
            At::Settled1 => {
                memory.fetch_and(Place::Settling1, !self.bit);
                (At::Settle1, Outcome::Goes)
            }
            At::Settle1 => match memory.load(Place::Settling1) {
                0 => (At::FinalLowest, Outcome::Goes),
                _ => (At::Settle1, Outcome::Waits),
            },
            At::Leave1 => {
                memory.fetch_and(Place::Settling1, !self.bit);
                (At::ResetOnExit, Outcome::Goes)
            }
            At::ResetOnExit => {
                memory.store(Place::Urgent, memory.rules().nobody());
                (At::Enter0, Outcome::Goes)
            }
            _ => return None,
        })
    }

    /// One contender passes the final stage.
    #[inline]
    fn final_stage(&mut self, memory: &impl Memory) -> Option<(At, Outcome)> {
        Some(match self.at {
            At::FinalLowest => match memory.load(Place::Lowest) == self.batch {
                true => (At::FinalUrgent, Outcome::Goes),
                false => (At::ResetOnExit, Outcome::Waits),
            },
            At::FinalUrgent => match memory.load(Place::Urgent) == self.priority {
                true => (At::FinalLook, Outcome::Goes),
                false => (At::Enter1, Outcome::Waits),
            },
            At::FinalLook => match memory.load(Place::Status) {
                0 => (At::FinalTry, Outcome::Goes),
                _ => (At::FinalLowest, Outcome::Waits),
            },
            At::FinalTry => match memory.compare_exchange(Place::Status, 0, 1) {
                Ok(_) => (At::Uncount, Outcome::Goes),
                Err(_) => (At::FinalLowest, Outcome::Waits),
            },
            _ => return None,
        })
    }

    /// The steps of the holder.
    #[inline]
    fn hold(&mut self, memory: &impl Memory) -> Option<(At, Outcome)> {
        let rules = memory.rules();
        Some(match self.at {
            At::Uncount => {
                memory.fetch_sub(Place::Waiters, 1);
                self.batch = 0;
                (At::ResetUrgent, Outcome::Goes)
            }
            At::ResetUrgent => {
                memory.store(Place::Urgent, rules.nobody());
                (At::ResetLowest, Outcome::Goes)
            }
            At::ResetLowest => {
                memory.store(Place::Lowest, rules.nobody());
                (At::Inside, Outcome::Acquired)
            }
            At::Inside => {
                self.seen = memory.load(Place::Batch);
                (At::Advance, Outcome::Goes)
            }
            At::Advance => {
                memory.store(Place::Batch, rules.next(self.seen));
                self.forget(At::Free, Outcome::Goes)
            }
            At::Free => {
                memory.store(Place::Status, 0);
                self.end()
            }
            _ => return None,
        })
    }

    /// The steps of a contender that gives up.
    #[inline]
    fn withdraw(&mut self, memory: &impl Memory) -> Option<(At, Outcome)> {
        let nobody = memory.rules().nobody();
        Some(match self.at {
            At::Withdraw0 => {
                memory.fetch_and(Place::Settling0, !self.bit);
                (At::Withdraw1, Outcome::Goes)
            }
            At::Withdraw1 => {
                memory.fetch_and(Place::Settling1, !self.bit);
                (At::WithdrawUrgent, Outcome::Goes)
            }
            At::WithdrawUrgent => {
                memory.store(Place::Urgent, nobody);
                (At::WithdrawLowest, Outcome::Goes)
            }
            At::WithdrawLowest => {
                memory.store(Place::Lowest, nobody);
                (At::Retire, Outcome::Goes)
            }
            At::Retire => {
                memory.fetch_sub(Place::Waiters, 1);
                self.end()
            }
            _ => return None,
        })
    }

    #[inline]
    fn end(&mut self) -> (At, Outcome) {
        self.batch = 0;
        (At::Outside, Outcome::Outside)
    }

    /// Clears the value read last, so that states of the search that differ only in it are one state.
    #[inline]
    fn forget(&mut self, at: At, outcome: Outcome) -> (At, Outcome) {
        self.seen = 0;
        (at, outcome)
    }
}
