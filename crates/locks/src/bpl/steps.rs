//! One request, step by step: each step is one access to what is shared.
//!
//! The lock executes these steps on its atomics, and the search of `search.rs` on a plain state: what is searched is what runs.
//!
//! ```text
//! ReadBatch ReadWaiters [Restart] TryStatus ----------------------------------------> Inside
//!   | somebody waits, or it is taken
//!   v
//! Count Draw
//!   v                                                  later: StandBack0 Watch0
//! stage 0   Enter0 Look0 Claim0 Settled0 Settle0 Check0             barrier[0] moved: stage 0 anew
//!   v                                                  less urgent: StandBack1 Watch1
//! stage 1   Enter1 Look1 Belong1 Claim1 Settled1 Settle1            barrier[0] moved: Leave1 ResetOnExit, stage 0
//!   v
//! final     FinalLowest FinalUrgent FinalLook FinalTry              barrier[0] moved: ResetOnExit, stage 0
//!   v                                                               barrier[1] moved: stage 1
//! Uncount ResetUrgent ResetLowest --------------------------------------------------> Inside Advance Free
//! ```
//! Who waits can give up: Withdraw0 Withdraw1 WithdrawUrgent WithdrawLowest Retire.

/// What is shared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// How many wait.
    Waiters,
    /// The batch that requests join: its id below, how many joined above.
    Batch,
    /// `barrier[0]`: the earliest batch of those in stage 0, or nobody's.
    Lowest,
    /// `barrier[1]`: the most urgent of those in stage 1, or nobody's.
    Urgent,
    /// Who has not yet compared itself with `barrier[0]`, a bit a slot.
    Settling0,
    /// Who has not yet compared itself with `barrier[1]`.
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

/// How the words are laid out, and which version of the algorithm it is: there is one to use, and others for the search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rules {
    /// The width of a batch id. Ids run over: see [`Rules::is_no_later`].
    pub(super) id_bits: u32,
    /// The width of a word, greater than `id_bits`.
    pub(super) bits: u32,
    pub(super) version: Version,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Version {
    /// As this crate executes it.
    Repaired,
    /// As published: leaves the final stage for stage 0 without resetting `barrier[1]`, and resets the batch at every acquire
    /// that finds nobody.
    #[cfg(test)]
    Published,
    /// As published, but resets `barrier[1]` on that exit.
    #[cfg(test)]
    PublishedWithReset,
    /// Who gives up resets the barriers and does nothing else, as published.
    #[cfg(test)]
    PublishedGivingUp,
    /// Who gives up does not reset the barriers.
    #[cfg(test)]
    SilentGivingUp,
    /// Who found the lock free at its last look takes it by a store.
    #[cfg(test)]
    TakesByStore,
}

impl Rules {
    /// All bits of a word: nobody, as a batch and as a priority.
    pub(super) const fn nobody(self) -> u64 {
        u64::MAX >> (u64::BITS - self.bits)
    }

    pub(super) const fn id(self, batch: u64) -> u64 {
        batch & ((1 << self.id_bits) - 1)
    }

    /// What a request adds to the batch. The count is above the id, so that one that runs over changes no id.
    const fn one_joined(self) -> u64 {
        1 << self.id_bits
    }

    /// The batch after `batch`, nobody in it.
    pub(super) const fn next(self, batch: u64) -> u64 {
        self.id(batch.wrapping_add(1))
    }

    pub(super) const fn is_past_half(self, batch: u64) -> bool {
        self.id(batch) >= 1 << (self.id_bits - 1)
    }

    /// Whether the batch `id` is no later than `lowest`, an id or nobody's.
    ///
    /// Ids run over, so they are compared by their difference: right as long as those that wait are less than half the range apart.
    const fn is_no_later(self, id: u64, lowest: u64) -> bool {
        lowest == self.nobody() || !self.is_past_half(lowest.wrapping_sub(id))
    }

    /// Whether the batch `id` is earlier than the batch `other`.
    #[cfg(test)]
    pub(super) const fn is_earlier(self, id: u64, other: u64) -> bool {
        id != other && self.is_no_later(id, other)
    }

    const fn resets_at_once(self) -> bool {
        match self.version {
            #[cfg(test)]
            Version::Published | Version::PublishedWithReset => true,
            _ => false,
        }
    }

    const fn resets_on_exit(self) -> bool {
        match self.version {
            #[cfg(test)]
            Version::Published => false,
            _ => true,
        }
    }

    /// Whether who gives up clears its bits and its count.
    const fn clears_on_giving_up(self) -> bool {
        match self.version {
            #[cfg(test)]
            Version::PublishedGivingUp => false,
            _ => true,
        }
    }

    const fn resets_on_giving_up(self) -> bool {
        match self.version {
            #[cfg(test)]
            Version::SilentGivingUp => false,
            _ => true,
        }
    }

    const fn takes_by_store(self) -> bool {
        match self.version {
            #[cfg(test)]
            Version::TakesByStore => true,
            _ => false,
        }
    }
}

/// What a contender does next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub(super) enum At {
    /// Reads `batch`: before `waiters`, because requests change them in the other order.
    ReadBatch,
    ReadWaiters,
    /// Nobody waits: ids begin at 0 again, unless somebody joined meanwhile.
    Restart,
    TryStatus,

    Count,
    /// Joins a batch: its id is mine for as long as I wait.
    Draw,

    /// Stage 0.
    Enter0,
    Look0,
    /// I belong to a later batch: the others need not wait for me.
    StandBack0,
    Watch0,
    /// I am no later: `barrier[0]` becomes my batch.
    Claim0,
    Settled0,
    /// Until all others have compared themselves.
    Settle0,
    Check0,

    /// Stage 1.
    Enter1,
    Look1,
    /// Whether mine is still the lowest batch.
    Belong1,
    StandBack1,
    Watch1,
    StillBelong1,
    Claim1,
    Settled1,
    Settle1,

    /// Back to stage 0.
    Leave1,
    ResetOnExit,

    /// The final stage.
    FinalLowest,
    FinalUrgent,
    FinalLook,
    FinalTry,

    /// Holds: the others settle anew.
    Uncount,
    ResetUrgent,
    ResetLowest,
    /// The section; its end reads the batch.
    Inside,
    Advance,
    Free,

    /// Gives up.
    Withdraw0,
    Withdraw1,
    WithdrawUrgent,
    WithdrawLowest,
    Retire,

    Outside,
}

/// What a step came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    Goes,
    /// A look that found nothing, or found that it has to begin again: the time to relax, and to give up.
    Waits,
    /// The lock is mine.
    Taken,
    /// The lock is released, or I gave up.
    Outside,
}

/// One request on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Contender {
    pub(super) at: At,
    /// The bit of its slot.
    pub(super) bit: u64,
    /// Less is more urgent; never nobody's.
    pub(super) priority: u64,
    /// The id of its batch.
    pub(super) batch: u64,
    /// What was read last, and is needed yet.
    pub(super) seen: u64,
}

impl Contender {
    pub(super) const fn new(at: At, bit: u64, priority: u64) -> Self {
        Self { at, bit, priority, batch: 0, seen: 0 }
    }

    /// Gives up: only after a step that [`Outcome::Waits`].
    #[inline]
    pub(super) fn give_up(&mut self, rules: Rules) {
        self.at = if rules.clears_on_giving_up() { At::Withdraw0 } else { At::WithdrawUrgent };
        self.seen = 0;
    }

    /// One step.
    #[inline]
    pub(super) fn step(&mut self, memory: &impl Memory) -> Outcome {
        let rules = memory.rules();
        let nobody = rules.nobody();
        let (at, outcome) = match self.at {
            At::ReadBatch => {
                self.seen = memory.load(Place::Batch);
                (At::ReadWaiters, Outcome::Goes)
            }
            At::ReadWaiters => match memory.load(Place::Waiters) {
                0 if rules.resets_at_once() || rules.is_past_half(self.seen) => (At::Restart, Outcome::Goes),
                0 => self.forget(At::TryStatus, Outcome::Goes),
                _ => self.forget(At::Count, Outcome::Goes),
            },
            At::Restart => {
                let _ = memory.compare_exchange(Place::Batch, self.seen, 0);
                self.forget(At::TryStatus, Outcome::Goes)
            }
            At::TryStatus => match memory.compare_exchange(Place::Status, 0, 1) {
                Ok(_) => (At::Inside, Outcome::Taken),
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
                memory.store(Place::Urgent, nobody);
                (At::Enter0, Outcome::Goes)
            }

            At::FinalLowest => match memory.load(Place::Lowest) == self.batch {
                true => (At::FinalUrgent, Outcome::Goes),
                false if rules.resets_on_exit() => (At::ResetOnExit, Outcome::Waits),
                false => (At::Enter0, Outcome::Waits),
            },
            At::FinalUrgent => match memory.load(Place::Urgent) == self.priority {
                true => (At::FinalLook, Outcome::Goes),
                false => (At::Enter1, Outcome::Waits),
            },
            At::FinalLook => match memory.load(Place::Status) {
                0 => (At::FinalTry, Outcome::Goes),
                _ => (At::FinalLowest, Outcome::Waits),
            },
            At::FinalTry if rules.takes_by_store() => {
                memory.store(Place::Status, 1);
                (At::Uncount, Outcome::Goes)
            }
            At::FinalTry => match memory.compare_exchange(Place::Status, 0, 1) {
                Ok(_) => (At::Uncount, Outcome::Goes),
                Err(_) => (At::FinalLowest, Outcome::Waits),
            },

            At::Uncount => {
                memory.fetch_sub(Place::Waiters, 1);
                self.batch = 0;
                (At::ResetUrgent, Outcome::Goes)
            }
            At::ResetUrgent => {
                memory.store(Place::Urgent, nobody);
                (At::ResetLowest, Outcome::Goes)
            }
            At::ResetLowest => {
                memory.store(Place::Lowest, nobody);
                (At::Inside, Outcome::Taken)
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

            At::Withdraw0 => {
                memory.fetch_and(Place::Settling0, !self.bit);
                (At::Withdraw1, Outcome::Goes)
            }
            At::Withdraw1 => {
                memory.fetch_and(Place::Settling1, !self.bit);
                (if rules.resets_on_giving_up() { At::WithdrawUrgent } else { At::Retire }, Outcome::Goes)
            }
            At::WithdrawUrgent => {
                memory.store(Place::Urgent, nobody);
                (At::WithdrawLowest, Outcome::Goes)
            }
            At::WithdrawLowest => {
                memory.store(Place::Lowest, nobody);
                match rules.clears_on_giving_up() {
                    true => (At::Retire, Outcome::Goes),
                    false => self.end(),
                }
            }
            At::Retire => {
                memory.fetch_sub(Place::Waiters, 1);
                self.end()
            }

            At::Outside => (At::Outside, Outcome::Outside),
        };
        self.at = at;
        outcome
    }

    #[inline]
    fn end(&mut self) -> (At, Outcome) {
        self.batch = 0;
        (At::Outside, Outcome::Outside)
    }

    /// What was read is not needed any more: states of the search that differ in it only are one.
    #[inline]
    fn forget(&mut self, at: At, outcome: Outcome) -> (At, Outcome) {
        self.seen = 0;
        (at, outcome)
    }
}
