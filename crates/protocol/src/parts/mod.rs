//! The parts that several machines share.

pub(crate) mod cycle;
pub(crate) mod distributed;
pub(crate) mod handoff;
pub(crate) mod peers;
pub(crate) mod queue;
pub(crate) mod request_order;
pub(crate) mod single;
