//! Orders of waiting.

mod order;
mod priority;

pub use order::{Order, WAITING_MAX, Waiting};
pub(crate) use priority::{Links, PriorityList, WaitQueue};
