//! Greatest weight of items that take from pools of limited size.
//!
//! An item is taken at most so often, and each time takes from one of two pools, at most so often from either. The amounts that can be taken at once are those
//! a flow carries from items to pools, a polymatroid: taking items in order of falling weight, each as often as possible,
//! rerouting what was taken before but never putting it back, gives the greatest weight (Edmonds 1970; flows: Megiddo 1974).
//! It is the optimum of the linear program, and whole numbers reach it.

/// Pools, and what is taken from them.
#[derive(Default, Debug)]
pub(super) struct Network {
    /// What is left of each pool.
    left: Vec<u64>,
    items: Vec<Item>,
    /// Items of each pool.
    of: Vec<Vec<usize>>,
    /// How the search came to a pool: the item that moves here, and where from.
    came: Vec<Option<(usize, usize)>>,
    queue: Vec<usize>,
}

/// What one item takes.
#[derive(Debug)]
struct Item {
    pools: [usize; 2],
    most: [u64; 2],
    taken: [u64; 2],
}

/// An item without a place in the search, which starts there.
const START: usize = usize::MAX;

impl Network {
    /// Forgets all items, and has pools of these sizes.
    pub fn clear(&mut self, pools: impl Iterator<Item = u64>) {
        self.left.clear();
        self.left.extend(pools);
        self.items.clear();
        self.of.iter_mut().for_each(Vec::clear);
        self.of.resize_with(self.left.len(), Vec::new);
    }

    /// Takes an item as often as possible, at most `wanted` times: from `first` at most `first_most`, from `second` at most
    /// `second_most` times. Says how often. Weights never grow from one call to the next.
    pub fn take(&mut self, wanted: u64, first: usize, first_most: u64, second: usize, second_most: u64) -> u64 {
        let item = self.items.len();
        self.items.push(Item { pools: [first, second], most: [first_most, second_most], taken: [0, 0] });
        let mut missing = wanted;
        // BOUND: each search but the last moves items on a shortest way; there are at most items * pools such (Edmonds and Karp 1972).
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
        self.came.clear();
        self.came.resize(self.left.len(), None);
        self.queue.clear();
        for side in [0, 1] {
            let pool = self.items[item].pools[side];
            if self.items[item].room(side) > 0 && self.came[pool].is_none() {
                self.came[pool] = Some((item, START));
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
                if self.items[other].taken[here] > 0 && self.items[other].room(there) > 0 && self.came[target].is_none()
                {
                    self.came[target] = Some((other, pool));
                    self.queue.push(target);
                }
            }
        }
        0
    }

    /// Moves along the way that ends at `end`.
    fn follow(&mut self, end: usize, missing: u64) -> u64 {
        let mut amount = missing.min(self.left[end]);
        let mut pool = end;
        while let Some((item, from)) = self.came[pool] {
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
        while let Some((item, from)) = self.came[pool] {
            let (to, back) = self.items[item].sides(pool);
            self.items[item].taken[to] += amount;
            if from == START {
                break;
            }
            self.items[item].taken[back] -= amount;
            pool = from;
        }
        amount
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
