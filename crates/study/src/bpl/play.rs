//! The simulation: bursts, and ends of critical sections, in turn.

use super::model::{FreeLock, Model};
use super::order::{Batched, Fifo, Lock, Order, Priority, Set};
use super::statistics::{Source, Statistics};
use super::traffic::Traffic;

/// The maximum number of sources.
const PLACES: usize = super::model::CORES_MAX as usize;
/// The number of critical sections between two calls of the watcher.
const SECTIONS_PER_LOOK: u64 = 1 << 15;

/// Simulates one lock until at least `requests` requests have been made and granted.
/// No batch is cut in two: the run ends when all requests are granted that had been
/// made by the end of the section in which request number `requests` was made.
///
/// `watch` is called now and then with the number of granted requests, and returns whether to continue. The result is
/// `None` if it stops the run.
///
/// # Common random numbers
/// The number of waiting requests does not depend on the order of the grants. So with one
/// `traffic`, all locks see their bursts clipped to the same sizes, and their k-th sections
/// begin and end at the same instants. FIFO and batched moreover grant the same requests
/// until the end. So the sums of their waits are equal, exactly, because times are integers.
///
/// # Panics
/// Panics if `traffic` picks a source that does not exist, or has a burst without a member for a free lock.
pub fn play(
    model: &Model,
    lock: Lock,
    requests: u64,
    traffic: impl Traffic,
    watch: impl FnMut(u64) -> bool,
) -> Option<Statistics> {
    match lock {
        Lock::Fifo => Player::<Fifo, _>::new(model, traffic).play(requests, watch),
        Lock::Priority => Player::<Priority, _>::new(model, traffic).play(requests, watch),
        Lock::Batched => Player::<Batched, _>::new(model, traffic).play(requests, watch),
    }
}

struct Player<O, T> {
    traffic: T,
    order: O,
    free_lock: FreeLock,
    /// The idle sources in no order, so that any of them is taken in
    /// a few instructions. Places from `idle_count` on are unused.
    idle: [u8; PLACES],
    idle_count: u32,
    waiting: Set,
    /// The waiting sources that waited at some instant while a less important one held the lock.
    inverted: Set,
    /// The time at which each waiting source requested, in ticks since the lock was last free.
    requested: [u64; PLACES],
    /// The critical section during which each waiting source requested.
    requested_in: [u64; PLACES],
    /// The time of the next grant, in ticks since the lock was last free.
    now: u64,
    /// The time of the next burst, in the same unit as `now`.
    burst: u64,
    /// The number of critical sections begun, which is the number
    /// of requests granted and the number of the current section.
    sections: u64,
    /// The number of requests made.
    made: u64,
    cores: usize,
    sources: [Source; PLACES],
    inversions: u64,
    sections_max: u64,
}

impl<O: Order, T: Traffic> Player<O, T> {
    fn new(model: &Model, mut traffic: T) -> Self {
        Self {
            burst: traffic.gap(),
            traffic,
            order: O::default(),
            free_lock: model.free_lock(),
            idle: std::array::from_fn(|source| source as u8),
            idle_count: model.cores(),
            waiting: 0,
            inverted: 0,
            requested: [0; PLACES],
            requested_in: [0; PLACES],
            now: 0,
            sections: 0,
            made: 0,
            cores: model.cores() as usize,
            sources: [Source::default(); PLACES],
            inversions: 0,
            sections_max: 0,
        }
    }

    fn play(mut self, requests: u64, mut watch: impl FnMut(u64) -> bool) -> Option<Statistics> {
        // Known once `requests` requests have been made.
        let mut end = None;
        // BOUND: every round grants one request, and the last one is fewer than 64 after `requests`.
        while end.is_none_or(|end| self.sections < end) {
            let holder = if self.waiting == 0 { self.grant_free() } else { self.grant_waiting() };
            let over = self.now + self.traffic.section();
            // BOUND: the bursts of one critical section. A burst at its very end still belongs to it.
            while self.burst <= over {
                let members = self.traffic.size().min(self.idle_count);
                self.request(members, holder, self.burst);
                self.burst += self.traffic.gap();
            }
            self.now = over;
            self.order.section_ends();
            self.idle[self.idle_count as usize] = holder as u8;
            self.idle_count += 1;
            if end.is_none() && self.made >= requests {
                end = Some(self.made);
            }
            if self.sections.is_multiple_of(SECTIONS_PER_LOOK) && !watch(self.sections) {
                return None;
            }
        }
        Some(Statistics {
            sources: self.sources[..self.cores].to_vec(),
            inversions: self.inversions,
            sections_max: self.sections_max,
        })
    }

    /// Grants the lock to one member of the next burst, because no
    /// request waits. The others request during its section.
    fn grant_free(&mut self) -> u32 {
        // No earlier instant is needed any more, so the clock starts at 0 and cannot overflow however rare bursts are.
        self.now = 0;
        self.burst = self.traffic.gap();
        self.sections += 1;
        let members = self.traffic.size().min(self.idle_count);
        // All sources are idle.
        assert_ne!(members, 0, "a burst has a member");
        let holder = match self.free_lock {
            FreeLock::Random => {
                let holder = self.take_idle();
                self.request(members - 1, holder, 0);
                holder
            }
            FreeLock::Best => self.grant_best(members),
        };
        self.made += 1;
        self.sources[holder as usize].granted += 1;
        holder
    }

    /// Grants the lock to the most important of `members` idle sources. The others wait.
    fn grant_best(&mut self, members: u32) -> u32 {
        let mut drawn = [0; PLACES];
        let drawn = &mut drawn[..members as usize];
        drawn.fill_with(|| self.take_idle());
        let holder = drawn.iter().copied().max().expect("a burst has a member");
        for &source in drawn.iter().filter(|&&source| source != holder) {
            self.wait(source, 0);
        }
        self.made += u64::from(members) - 1;
        holder
    }

    /// Lets `members` idle sources request while `holder` has the lock.
    fn request(&mut self, members: u32, holder: u32, now: u64) {
        let before = self.waiting;
        for _ in 0..members {
            let source = self.take_idle();
            self.wait(source, now);
        }
        self.inverted |= self.waiting & !before & above(holder);
        self.made += u64::from(members);
    }

    fn wait(&mut self, source: u32, now: u64) {
        self.waiting |= 1 << source;
        self.requested[source as usize] = now;
        self.requested_in[source as usize] = self.sections;
        self.order.request(source);
    }

    /// Removes and returns one of the idle sources, of which there is at least one.
    fn take_idle(&mut self) -> u32 {
        let place = self.traffic.pick(self.idle_count) as usize;
        self.idle_count -= 1;
        let source = self.idle[place];
        self.idle[place] = self.idle[self.idle_count as usize];
        u32::from(source)
    }

    /// Grants the lock to the next waiting source, and returns it.
    fn grant_waiting(&mut self) -> u32 {
        let holder = self.order.next(self.waiting);
        let (index, member) = (holder as usize, 1 << holder);
        self.sections += 1;
        self.waiting &= !member;
        self.sources[index].granted += 1;
        self.sources[index].waited += self.now - self.requested[index];
        self.sections_max = self.sections_max.max(self.sections - self.requested_in[index]);
        self.inversions += u64::from(self.inverted & member != 0);
        self.inverted = self.inverted & !member | self.waiting & above(holder);
        holder
    }
}

/// Returns the set of all sources more important than this one.
fn above(source: u32) -> Set {
    !1 << source
}
