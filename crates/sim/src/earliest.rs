//! The next of several times, each of which may change: a tournament.

/// A time for each of a few numbers, and the earliest of them. A change costs the logarithm of how many there are; to look whose the earliest is costs nothing.
pub(crate) struct Earliest {
    /// By number; as many as a power of two.
    times: Box<[u64]>,
    /// The node at `place` has who has the earlier time of those at `2 * place` and `2 * place + 1`; the leaves are the second half. Numbers have 16 bits.
    winners: Box<[u16]>,
    first: u64,
}

impl Earliest {
    /// For the numbers below `count`: all of them never.
    pub(crate) fn never(count: usize) -> Self {
        let leaves = count.next_power_of_two();
        // The least number below each node: that of its leftmost leaf.
        let leftmost = |place: usize| (place << (leaves.ilog2() - place.max(1).ilog2())) - leaves;
        let winners = (0..2 * leaves).map(|place| leftmost(place.max(1)) as u16).collect();
        Self { times: vec![u64::MAX; leaves].into(), winners, first: u64::MAX }
    }

    /// The earliest time; `u64::MAX` where all are never.
    #[inline]
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// Whose time is the earliest: of several the least number.
    #[inline]
    pub(crate) fn whose(&self) -> usize {
        usize::from(self.winners[1])
    }

    #[inline]
    pub(crate) fn get(&self, number: usize) -> u64 {
        self.times[number]
    }

    #[inline]
    pub(crate) fn set(&mut self, number: usize, time: u64) {
        let (times, winners) = (&mut *self.times, &mut *self.winners);
        times[number] = time;
        // Numbers have 16 bits.
        let (mut place, mut winner, mut earliest) = (times.len() + number, number as u16, time);
        // BOUND: a step a level.
        while place > 1 {
            let other = winners[place ^ 1];
            let its = times[usize::from(other)];
            if key(its, other) < key(earliest, winner) {
                (winner, earliest) = (other, its);
            }
            place /= 2;
            winners[place] = winner;
        }
        self.first = earliest;
    }
}

/// In the order of which numbers win, in one comparison without a branch.
#[inline]
fn key(time: u64, number: u16) -> u128 {
    u128::from(time) << 64 | u128::from(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_of_the_least_number_is_found() {
        let mut random = fastrand::Rng::with_seed(3);
        for count in [1, 2, 3, 7, 16, 100] {
            let (mut earliest, mut times) = (Earliest::never(count), vec![u64::MAX; count]);
            for _ in 0..2_000 {
                let first = (0..count).min_by_key(|&number| times[number]).expect("not empty");
                assert_eq!((earliest.first(), earliest.whose()), (times[first], first));
                let number = random.usize(0..count);
                times[number] = if random.u8(0..8) == 0 { u64::MAX } else { random.u64(0..20) };
                earliest.set(number, times[number]);
                assert_eq!(earliest.get(number), times[number]);
            }
        }
    }
}
