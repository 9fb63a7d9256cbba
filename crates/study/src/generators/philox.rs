//! Counter-based random numbers.

/// The multipliers of Philox4x64.
const MULTIPLIERS: [u64; 2] = [0xd2e7_470e_e14c_6c93, 0xca5a_8263_9512_1157];

/// The increments of the key: the golden ratio, and the square root of 3 less 1.
const INCREMENTS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xbb67_ae85_84ca_a73b];

/// The number of rounds.
const ROUNDS: usize = 10;

/// Random numbers that are computed from a key and a counter: Philox4x64-10.
///
/// There is no state that one sample hands to the next. So a sample is the same whichever thread draws it, and
/// whichever samples were drawn before. The key consists of the seed of a study and of the number of a cell.
///
/// # Reference
/// Salmon, Moraes, Dror and Shaw, Parallel Random Numbers: As Easy as 1, 2, 3, SC 2011.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Philox {
    key: [u64; 2],
}

/// The random numbers of one part of one sample, in order.
///
/// The numbers are those of numpy: `Philox(key=[seed, cell], counter=[0, sample, part, 0]).random_raw()` returns the
/// same words, and a numpy `Generator` over it returns the same [units](Stream::unit).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Stream {
    philox: Philox,
    counter: [u64; 4],
    block: [u64; 4],
    /// The number of words of `block` that were drawn.
    drawn: usize,
}

impl Philox {
    /// Returns the random numbers of one cell of a study.
    #[must_use]
    pub fn new(seed: u64, cell: u64) -> Self {
        Self { key: [seed, cell] }
    }

    /// Returns the random numbers of one part of one sample. Other parts of the sample have other numbers.
    #[must_use]
    pub fn stream(self, sample: u64, part: u64) -> Stream {
        Stream { philox: self, counter: [0, sample, part, 0], block: [0; 4], drawn: 4 }
    }

    /// Returns the four words of one counter.
    fn block(self, mut counter: [u64; 4]) -> [u64; 4] {
        let mut key = self.key;
        for round in 0..ROUNDS {
            if round > 0 {
                key = [key[0].wrapping_add(INCREMENTS[0]), key[1].wrapping_add(INCREMENTS[1])];
            }
            let products = [product(counter[0], MULTIPLIERS[0]), product(counter[2], MULTIPLIERS[1])];
            counter = [
                products[1].0 ^ counter[1] ^ key[0],
                products[1].1,
                products[0].0 ^ counter[3] ^ key[1],
                products[0].1,
            ];
        }
        counter
    }
}

/// Returns the high and the low word of a product.
fn product(one: u64, other: u64) -> (u64, u64) {
    let product = u128::from(one) * u128::from(other);
    ((product >> 64) as u64, product as u64)
}

impl Stream {
    /// Returns the next word.
    pub fn word(&mut self) -> u64 {
        if self.drawn == self.block.len() {
            // The counter is incremented before each block, as in numpy. No sample draws 2^64 blocks.
            self.counter[0] += 1;
            self.block = self.philox.block(self.counter);
            self.drawn = 0;
        }
        self.drawn += 1;
        self.block[self.drawn - 1]
    }

    /// Returns a uniform number from 0 to less than 1: a multiple of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Returns a uniform number from `range`, which has at least its first number.
    pub fn real(&mut self, range: (f64, f64)) -> f64 {
        range.0 + (range.1 - range.0) * self.unit()
    }

    /// Returns a uniform whole number from `range`, both ends included. All numbers are exactly equally likely.
    ///
    /// # Panics
    /// Panics if `range` ends before it begins.
    ///
    /// # Reference
    /// Lemire, Fast Random Integer Generation in an Interval, ACM Transactions on Modeling and Computer Simulation
    /// 29(1), 2019.
    pub fn whole(&mut self, range: (u64, u64)) -> u64 {
        assert!(range.0 <= range.1, "the range is not empty");
        let Some(count) = (range.1 - range.0).checked_add(1) else { return self.word() };
        // The words below this limit would make some numbers more likely than others.
        let limit = count.wrapping_neg() % count;
        // BOUND: fewer than half of all words are below the limit.
        loop {
            let (number, rest) = product(self.word(), count);
            if rest >= limit {
                return range.0 + number;
            }
        }
    }

    /// Returns a uniform index below `end`.
    ///
    /// # Panics
    /// Panics if `end` is zero.
    pub fn index(&mut self, end: usize) -> usize {
        assert!(end > 0, "there is an index");
        self.whole((0, end as u64 - 1)) as usize
    }

    /// Brings `items` into a random order. All orders are equally likely.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.index(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generators::testing::{distance, limit};

    /// The test vector of Random123 1.14 for `philox4x64 10` with a key and a counter of zeros.
    #[test]
    fn the_block_of_random123() {
        let block = [0x1655_4d9e_ca36_314c, 0xdb20_fe9d_672d_0fdc, 0xd7e7_72ce_e186_176b, 0x7e68_b68a_ec7b_a23b];
        assert_eq!(Philox::new(0, 0).block([0; 4]), block);
    }

    /// Printed by numpy 2.4.6: `Philox(key=[seed, cell], counter=[0, sample, part, 0]).random_raw(6)`.
    #[test]
    fn words_equal_those_of_numpy() {
        let vectors: [([u64; 4], [u64; 6]); 3] = [
            (
                [0, 0, 0, 0],
                [
                    0x02f4_ba64_08e4_d89b,
                    0x3dd6_2b0b_9ca8_c5b2,
                    0x1c86_67a5_5d90_2e79,
                    0x907d_7a05_2fd5_b4dc,
                    0x809b_f322_8839_87c3,
                    0x4711_28b9_e807_f7dd,
                ],
            ),
            (
                [1, 2, 0, 0],
                [
                    0x4f2f_4313_b553_6b09,
                    0x5b61_7be3_219f_f32a,
                    0x0972_9347_6f92_75cb,
                    0xf63f_3bf4_962c_3942,
                    0x04dc_c604_73aa_0f43,
                    0x6d90_5c9b_986b_0028,
                ],
            ),
            (
                [0x0123_4567_89ab_cdef, u64::MAX, 7, 2],
                [
                    0x9a98_044f_bf57_4fa8,
                    0x0f39_a130_122c_10c7,
                    0x275c_d1fc_ec76_8527,
                    0x24f1_62db_e4ff_5b65,
                    0x262c_2ffd_7bd3_f175,
                    0x45b5_8407_1bd4_ed4d,
                ],
            ),
        ];
        for ([seed, cell, sample, part], words) in vectors {
            let mut stream = Philox::new(seed, cell).stream(sample, part);
            assert_eq!(words.map(|_| stream.word()), words);
        }
    }

    /// Printed by numpy 2.4.6: `Generator(Philox(key=[1, 2])).random(3)`.
    #[test]
    fn units_equal_those_of_numpy() {
        let mut stream = Philox::new(1, 2).stream(0, 0);
        let units = [0.309_314_911_185_834_54, 0.356_956_236_793_507_5, 0.036_904_530_468_356_844];
        assert_eq!(units.map(|_| stream.unit()), units);
    }

    #[test]
    fn units_are_uniform() {
        let mut stream = Philox::new(1, 0).stream(0, 0);
        let units: Vec<f64> = (0..100_000).map(|_| stream.unit()).collect();
        assert!(distance(&units, |x| x) < limit(units.len()));
        // Negative control: the squares are not uniform.
        let squares: Vec<f64> = units.iter().map(|x| x * x).collect();
        assert!(distance(&squares, |x| x) > limit(units.len()));
    }

    #[test]
    fn whole_numbers_are_equally_likely() {
        // Three quarters of 2^64 numbers. Without rejection, two of four words lead to one of three neighbours.
        let most = (1_u64 << 63) + (1 << 62) - 1;
        let mut stream = Philox::new(2, 0).stream(0, 0);
        let drawn: Vec<u64> = (0..3_000).map(|_| stream.whole((0, most)) % 3).collect();
        let low: Vec<u64> = (0..3_000).map(|_| stream.whole((5, 7))).collect();
        for number in 0..3 {
            // Five standard deviations of a binomial distribution of 3,000 trials.
            let count = |drawn: &[u64], number| drawn.iter().filter(|&&drawn| drawn == number).count();
            let counts = (count(&drawn, number), count(&low, number + 5));
            assert!(counts.0.abs_diff(1_000) < 130 && counts.1.abs_diff(1_000) < 130, "{number}: {counts:?}");
        }
        assert_eq!((stream.whole((9, 9)), stream.index(1)), (9, 0));
    }

    #[test]
    fn all_orders_are_equally_likely() {
        let mut stream = Philox::new(3, 0).stream(0, 0);
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..6_000 {
            let mut items = [0, 1, 2];
            stream.shuffle(&mut items);
            *seen.entry(items).or_insert(0_usize) += 1;
        }
        // Five standard deviations.
        assert!(seen.len() == 6 && seen.values().all(|count| count.abs_diff(1_000) < 145), "{seen:?}");
    }
}
