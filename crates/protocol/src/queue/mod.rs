//! Orders of waiting.

mod priority;

pub(crate) use priority::{Links, WaitQueue};
