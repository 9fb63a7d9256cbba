//! Greatest weight of items that take from pools of limited size.
//!
//! An item is taken at most so often, and each time takes from one of two pools, at most so often from either. The
//! amounts that can be taken at once are those a flow carries from items to pools, a polymatroid: taking items in order
//! of falling weight, each as often as possible, rerouting what was taken before but never putting it back, gives the
//! greatest weight (Edmonds 1970; flows: Megiddo 1974). It is the optimum of the linear program, and whole numbers
//! reach it.

/// Pools, and what is taken from them.
#[derive(Default, Debug)]
pub(super) struct Network {
    /// What is left of each pool.
    left: Vec<u64>,
    items: Vec<Item>,
    /// Items of each pool.
    of: Vec<Vec<usize>>,
    /// How the search came to a pool.
    came: Vec<Came>,
    search: u32,
    queue: Vec<usize>,
    /// Nothing can be moved out of these, and nothing put into them, now or later.
    full: Vec<bool>,
}

/// What one item takes.
#[derive(Debug)]
struct Item {
    pools: [usize; 2],
    most: [u64; 2],
    taken: [u64; 2],
}

/// A step of a search.
#[derive(Clone, Copy, Default, Debug)]
struct Came {
    /// In which search; searches count from 1.
    search: u32,
    /// The item that moves to the pool.
    item: usize,
    /// From which pool.
    from: usize,
}

/// An item without a place in the search, which starts there.
const START: usize = usize::MAX;

impl Network {
    /// Forgets all items, and has pools of these sizes.
    pub fn clear(&mut self, pools: impl Iterator<Item = u64>) {
        self.left.clear();
        self.left.extend(pools);
        self.items.clear();
        self.search = 0;
        self.came.clear();
        self.came.resize(self.left.len(), Came::default());
        self.full.clear();
        self.full.resize(self.left.len(), false);
        self.of.iter_mut().for_each(Vec::clear);
        self.of.resize_with(self.left.len(), Vec::new);
    }

    /// Takes an item as often as possible, at most `wanted` times: from `first` at most `first_most`, from `second` at
    /// most `second_most` times. Says how often. Weights never grow from one call to the next.
    pub fn take(&mut self, wanted: u64, first: usize, first_most: u64, second: usize, second_most: u64) -> u64 {
        let item = self.items.len();
        self.items.push(Item { pools: [first, second], most: [first_most, second_most], taken: [0, 0] });
        let mut missing = wanted;
        for side in [0, 1] {
            let one = &mut self.items[item];
            let amount = missing.min(one.room(side)).min(self.left[one.pools[side]]);
            one.taken[side] += amount;
            self.left[one.pools[side]] -= amount;
            missing -= amount;
        }
        // BOUND: each search but the last moves items on a shortest way; there are at most items * pools such (Edmonds
        // and Karp 1972).
        while missing > 0 {
            let moved = self.find(item, missing);
            if moved == 0 {
                break;
            }
            missing -= moved;
        }
        for side in [0, 1] {
            if self.items[item].most[side] > 0 {
                self.of[self.items[item].pools[side]].push(item);
            }
        }
        wanted - missing
    }

    /// Finds a way from an item to a pool that has something left, and moves as much as fits along it.
    fn find(&mut self, item: usize, missing: u64) -> u64 {
        // BOUND: as searches, at most items * pools; the count cannot wrap within what fits memory.
        self.search = self.search.wrapping_add(1);
        let search = self.search;
        self.queue.clear();
        for side in [0, 1] {
            let pool = self.items[item].pools[side];
            if self.items[item].room(side) > 0 && !self.full[pool] {
                self.came[pool] = Came { search, item, from: START };
                self.queue.push(pool);
            }
        }
        let mut next = 0;
        while let Some(&pool) = self.queue.get(next) {
            if self.left[pool] > 0 {
                return self.follow(pool, missing);
            }
            next += 1;
            for &other in &self.of[pool] {
                let (here, there) = self.items[other].sides(pool);
                let target = self.items[other].pools[there];
                let movable = self.items[other].taken[here] > 0 && self.items[other].room(there) > 0;
                if movable && !self.full[target] && self.came[target].search != search {
                    self.came[target] = Came { search, item: other, from: pool };
                    self.queue.push(target);
                }
            }
        }
        // No way leads out of all these: none ever will, for nothing new is put into them.
        for &pool in &self.queue {
            self.full[pool] = true;
        }
        0
    }

    /// Moves along the way that ends at `end`.
    fn follow(&mut self, end: usize, missing: u64) -> u64 {
        let mut amount = missing.min(self.left[end]);
        let mut pool = end;
        loop {
            let Came { item, from, .. } = self.came[pool];
            let (to, back) = self.items[item].sides(pool);
            amount = amount.min(self.items[item].room(to));
            if from == START {
                break;
            }
            amount = amount.min(self.items[item].taken[back]);
            pool = from;
        }
        self.left[end] -= amount;
        let mut pool = end;
        loop {
            let Came { item, from, .. } = self.came[pool];
            let (to, back) = self.items[item].sides(pool);
            self.items[item].taken[to] += amount;
            if from == START {
                return amount;
            }
            self.items[item].taken[back] -= amount;
            pool = from;
        }
    }
}

impl Item {
    /// How often more it may take from a side's pool.
    fn room(&self, side: usize) -> u64 {
        self.most[side] - self.taken[side]
    }

    /// The side of a pool, and the other.
    fn sides(&self, pool: usize) -> (usize, usize) {
        if self.pools[0] == pool { (0, 1) } else { (1, 0) }
    }
}
