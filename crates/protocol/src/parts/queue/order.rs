//! The order in which a lock serves its waiters. Spinlocks are tested against it.
//!
//! The implementation is obvious rather than fast: it keeps every waiter with its arrival, its batch and its priority,
//! and searches for the next one.

use lockwright_model::Priority;

/// The maximum number of waiters.
pub const WAITING_MAX: usize = 64;

/// An order of waiting.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Order {
    /// First come, first served.
    Fifo,
    /// The most urgent first, first come first served among equals.
    Priority,
    /// The waiters that arrive during one critical section are a batch. The earliest batch is served first, and in a
    /// batch the most urgent waiter. Any order is correct among equals: [`Waiting::may_be_next`] holds for each of
    /// them.
    Batched,
}

/// The waiters of one lock.
///
/// # Example
/// ```
/// use lockwright_model::Priority;
/// use lockwright_protocol::{Order, Waiting};
///
/// let mut waiting = Waiting::new(Order::Priority);
/// waiting.request(1, Priority::base(2));
/// waiting.request(2, Priority::base(5));
/// assert!(waiting.may_be_next(2) && !waiting.may_be_next(1));
/// waiting.hand_off(2);
/// assert!(waiting.may_be_next(1));
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Waiting {
    order: Order,
    waiters: [Option<Waiter>; WAITING_MAX],
    /// The number of requests so far.
    requests: u64,
    /// The number of sections that have ended.
    sections: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Waiter {
    came: u64,
    batch: u64,
    priority: Priority,
}

impl Waiting {
    /// No waiters.
    #[must_use]
    pub const fn new(order: Order) -> Self {
        Self { order, waiters: [None; WAITING_MAX], requests: 0, sections: 0 }
    }

    /// `who` waits from now on. It arrives during the critical section of the holder.
    ///
    /// # Panics
    /// Panics if `who` waits already, or is not below [`WAITING_MAX`].
    pub fn request(&mut self, who: usize, priority: Priority) {
        assert!(self.waiters[who].is_none(), "a waiter does not request again");
        self.waiters[who] = Some(Waiter { came: self.requests, batch: self.sections, priority });
        self.requests += 1;
    }

    /// Returns whether the lock may go to `who` if it is released now.
    #[must_use]
    pub fn may_be_next(&self, who: usize) -> bool {
        let before = |one: &Waiter, other: &Waiter| match self.order {
            Order::Fifo => one.came < other.came,
            Order::Priority => (other.priority, one.came) < (one.priority, other.came),
            Order::Batched => (one.batch, other.priority) < (other.batch, one.priority),
        };
        self.waiters[who].is_some_and(|who| !self.waiters.iter().flatten().any(|other| before(other, &who)))
    }

    /// The section of the holder ends, and that of `who` begins.
    ///
    /// # Panics
    /// Panics if `who` is not next.
    pub fn hand_off(&mut self, who: usize) {
        assert!(self.may_be_next(who), "{who} is not next of {:?}", self.waiters);
        self.waiters[who] = None;
        self.sections += 1;
    }

    /// Returns whether there are no waiters.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiters.iter().all(Option::is_none)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0 holds; 1 (low) and 2 (high) come; 0 hands over; 3 (highest) and 4 (lowest) come.
    fn served(order: Order, first: usize) -> [usize; 4] {
        let mut waiting = Waiting::new(order);
        waiting.request(1, Priority::base(1));
        waiting.request(2, Priority::base(5));
        waiting.hand_off(first);
        waiting.request(3, Priority::base(9));
        waiting.request(4, Priority::base(0));
        let mut served = [first; 4];
        for place in &mut served[1..] {
            *place = (1..5).find(|&who| waiting.may_be_next(who)).expect("somebody waits");
            waiting.hand_off(*place);
        }
        assert!(waiting.is_empty());
        served
    }

    #[test]
    fn each_order_serves_as_it_says() {
        assert_eq!(served(Order::Fifo, 1), [1, 2, 3, 4]);
        assert_eq!(served(Order::Priority, 2), [2, 3, 1, 4]);
        assert_eq!(served(Order::Batched, 2), [2, 1, 3, 4]);
    }

    #[test]
    #[should_panic(expected = "is not next")]
    fn another_order_is_refused() {
        served(Order::Priority, 1);
    }
}
