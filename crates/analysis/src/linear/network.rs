//! The greatest weight of items that take from pools of limited size.
//!
//! An item is taken at most a given number of times. Each time it takes from one of two pools, with a limit for each.
//! The amounts that can be taken together are those of a flow from items to pools, which is a polymatroid. Taking items
//! in order of decreasing weight, each as often as possible, and rerouting earlier ones without returning them,
//! therefore yields the greatest weight (Edmonds 1970; flows: Megiddo 1974). It is the optimum of the linear program,
//! and integers attain it.

/// Pools, with the amounts taken from them.
#[derive(Default, Debug)]
pub(super) struct Network {
    /// The amount left in each pool.
    left: Vec<u64>,
    items: Vec<Item>,
    /// The items of each pool.
    of: Vec<Vec<usize>>,
    /// How the search reached a pool.
    came: Vec<Came>,
    search: u32,
    queue: Vec<usize>,
    /// Pools out of which nothing can be moved, and into which nothing can be put, now or later.
    full: Vec<bool>,
}

/// The amounts that one item takes.
#[derive(Debug)]
struct Item {
    pools: [usize; 2],
    most: [u64; 2],
    taken: [u64; 2],
}

/// A step of a search.
#[derive(Clone, Copy, Default, Debug)]
struct Came {
    /// The number of the search; searches count from 1.
    search: u32,
    /// The item that moves to the pool.
    item: usize,
    /// The pool that it leaves.
    from: usize,
}

/// Marks the item at which the search starts.
const START: usize = usize::MAX;

impl Network {
    /// Removes all items, and creates pools of these sizes.
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

    /// Takes an item as often as possible, at most `wanted` times: from `first` at most `first_most` times, from
    /// `second` at most `second_most` times. Returns how often. Weights must not increase from one call to the next.
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
        // BOUND: each search except the last moves items along a shortest path, of which there are at most items *
        // pools (Edmonds and Karp 1972).
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

    /// Finds a path from an item to a pool with an amount left, and moves as much as possible along it.
    fn find(&mut self, item: usize, missing: u64) -> u64 {
        // BOUND: the searches number at most items * pools, so the counter cannot wrap for networks that fit in memory.
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
        // No path leads out of these pools, and none ever will, as nothing new is put into them.
        for &pool in &self.queue {
            self.full[pool] = true;
        }
        0
    }

    /// Moves along the path that ends at `end`.
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
    /// Returns how many more times it may take from the pool of a side.
    fn room(&self, side: usize) -> u64 {
        self.most[side] - self.taken[side]
    }

    /// Returns the side of a pool, and the other side.
    fn sides(&self, pool: usize) -> (usize, usize) {
        if self.pools[0] == pool { (0, 1) } else { (1, 0) }
    }
}
