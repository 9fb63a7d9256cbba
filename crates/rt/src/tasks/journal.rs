//! What the machines of a run order, in a list of fixed capacity that all threads write: for a judge that holds the
//! kernel's trace against it.
//!
//! An order is written before it is carried out, and its end after it, so that at any time the kernel has the value of
//! an order that has begun and is not superseded by one that has ended.

use super::log::Log;
use lockwright_model::{CpuId, TaskId};
use lockwright_sys::clock;

/// The orders of a run.
#[derive(Debug)]
pub struct Journal(Log);

/// An order about a task, or the end of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// The thread is to have this level; 0 is the ordinary policy.
    Level(u8),
    /// One call that sets a level has ended.
    LevelSet,
    /// The thread is to execute on this processor of the system.
    Place(CpuId),
    /// One thread has carried out its orders about places.
    PlaceSet,
    /// The task waits until a machine wakes it.
    Wait,
    /// The task waits no longer.
    Awake,
    /// This task, or a thread that is no task, is to wake the task.
    Wake(Option<TaskId>),
    /// It has done so.
    Woken(Option<TaskId>),
}

impl Journal {
    /// A journal for `capacity` orders, with every page touched.
    pub(crate) fn new(capacity: usize) -> Self {
        Self(Log::new(capacity).expect("there is memory for the journal"))
    }

    /// Writes an order of this moment. Counts it if the journal is full.
    pub(crate) fn write(&self, task: TaskId, order: Order) {
        self.0.write(pack(task, order), clock::now_ns);
    }

    /// The orders in the order of time. The threads that write have ended.
    #[must_use]
    pub fn orders(&self) -> Vec<(u64, TaskId, Order)> {
        let read = |(at_ns, word)| {
            let (task, order) = unpack(word);
            (at_ns, task, order)
        };
        let mut orders: Vec<_> = self.0.entries().map(read).collect();
        orders.sort_by_key(|order| order.0);
        orders
    }

    /// The number of orders that did not fit.
    #[must_use]
    pub fn dropped(&self) -> usize {
        self.0.dropped()
    }
}

/// Kind, value and task, in 16 bits each.
fn pack(task: TaskId, order: Order) -> u64 {
    let (kind, value) = match order {
        Order::Level(level) => (0, u16::from(level)),
        Order::LevelSet => (1, 0),
        Order::Place(cpu) => (2, cpu.0),
        Order::PlaceSet => (3, 0),
        Order::Wait => (4, 0),
        Order::Awake => (5, 0),
        // There are fewer than 2^16 - 1 tasks.
        Order::Wake(by) => (6, by.map_or(0, |by| by.0 + 1)),
        Order::Woken(by) => (7, by.map_or(0, |by| by.0 + 1)),
    };
    kind << 32 | u64::from(value) << 16 | u64::from(task.0)
}

fn unpack(packed: u64) -> (TaskId, Order) {
    let value = (packed >> 16) as u16;
    let order = match packed >> 32 {
        0 => Order::Level(value as u8),
        1 => Order::LevelSet,
        2 => Order::Place(CpuId(value)),
        3 => Order::PlaceSet,
        4 => Order::Wait,
        5 => Order::Awake,
        6 => Order::Wake(value.checked_sub(1).map(TaskId)),
        _ => Order::Woken(value.checked_sub(1).map(TaskId)),
    };
    (TaskId(packed as u16), order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_keeps_orders_and_counts_those_beyond_its_capacity() {
        let orders = [
            Order::Level(99),
            Order::LevelSet,
            Order::Place(CpuId(7)),
            Order::PlaceSet,
            Order::Wait,
            Order::Awake,
            Order::Wake(None),
            Order::Wake(Some(TaskId(0))),
            Order::Wake(Some(TaskId(4_095))),
            Order::Woken(Some(TaskId(7))),
        ];
        let journal = Journal::new(orders.len());
        for (order, task) in orders.into_iter().zip((0..).map(TaskId)) {
            journal.write(task, order);
        }
        let written: Vec<_> = journal.orders().into_iter().map(|(_, task, order)| (task, order)).collect();
        assert_eq!(written, (0..).map(TaskId).zip(orders).collect::<Vec<_>>());
        assert_eq!(journal.dropped(), 0);
        journal.write(TaskId(0), Order::Wait);
        assert_eq!((journal.orders().len(), journal.dropped()), (orders.len(), 1));
    }
}
