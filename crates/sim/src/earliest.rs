//! The next of several times, each of which may change: a tournament.

/// A time for each of a few numbers, and the earliest of them. A change costs the logarithm of how many there are, and so does it to find whose the earliest is; to
/// look at it costs nothing.
pub(crate) struct Earliest {
    /// The node at `place` has the earlier of those at `2 * place` and `2 * place + 1`; the leaves are the second half.
    nodes: Vec<u64>,
}

impl Earliest {
    /// For the numbers below `count`: all of them never.
    pub(crate) fn never(count: usize) -> Self {
        Self { nodes: vec![u64::MAX; 2 * count.next_power_of_two()] }
    }

    /// The earliest time; `u64::MAX` where all are never.
    pub(crate) fn first(&self) -> u64 {
        self.nodes[1]
    }

    /// Whose time is the earliest: of several the least number.
    pub(crate) fn whose(&self) -> usize {
        let (first, leaves) = (self.first(), self.nodes.len() / 2);
        let mut place = 1;
        // BOUND: a step a level.
        while place < leaves {
            place = 2 * place + usize::from(self.nodes[2 * place] != first);
        }
        place - leaves
    }

    pub(crate) fn get(&self, number: usize) -> u64 {
        self.nodes[self.nodes.len() / 2 + number]
    }

    pub(crate) fn set(&mut self, number: usize, time: u64) {
        let nodes = &mut *self.nodes;
        let (mut place, mut earlier) = (nodes.len() / 2 + number, time);
        nodes[place] = time;
        // BOUND: a step a level.
        while place > 1 {
            earlier = earlier.min(nodes[place ^ 1]);
            place /= 2;
            nodes[place] = earlier;
        }
    }
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
