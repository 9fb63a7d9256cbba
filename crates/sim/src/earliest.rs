//! The earliest of many times that change: a tournament tree.

/// A time for each number below a limit, and the earliest of these times. A change takes logarithmic time; reading the
/// earliest takes constant time.
pub(crate) struct Earliest {
    /// The times, by number. Their count is a power of two.
    times: Box<[u64]>,
    /// A tree of numbers: of its two children at `2 * place` and `2 * place + 1`, the node at `place` holds the number
    /// with the earlier time. The second half are the leaves. Numbers have 16 bits.
    winners: Box<[u16]>,
    first: u64,
}

impl Earliest {
    /// Creates the times of the numbers below `count`; all are `u64::MAX`, which stands for never.
    pub(crate) fn never(count: usize) -> Self {
        let leaves = count.next_power_of_two();
        // Each node begins with the least number below it, which is that of its leftmost leaf.
        let leftmost = |place: usize| (place << (leaves.ilog2() - place.max(1).ilog2())) - leaves;
        let winners = (0..2 * leaves).map(|place| leftmost(place.max(1)) as u16).collect();
        Self { times: vec![u64::MAX; leaves].into(), winners, first: u64::MAX }
    }

    /// Returns the earliest time.
    #[inline]
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// Returns the number with the earliest time. Of several such numbers, it is the least.
    #[inline]
    pub(crate) fn whose(&self) -> usize {
        usize::from(self.winners[1])
    }

    #[inline]
    pub(crate) fn set(&mut self, number: usize, time: u64) {
        let (times, winners) = (&mut *self.times, &mut *self.winners);
        times[number] = time;
        // Numbers have 16 bits.
        let (mut place, mut winner, mut earliest) = (times.len() + number, number as u16, time);
        // BOUND: one step for each level of the tree.
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

/// Returns a key by which numbers are ordered, so that one comparison without a branch decides.
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
            }
        }
    }
}
