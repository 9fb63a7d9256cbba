//! Analyses of whole systems: bounds and verdicts, and the reasons behind them.

pub(crate) mod across;
pub(crate) mod clustered;
pub(crate) mod explain;
pub(crate) mod hazard;
pub(crate) mod partition;
pub(crate) mod response;
pub(crate) mod scheduled;
pub(crate) mod sensitivity;
pub(crate) mod solve;
#[cfg(feature = "lp")]
pub(crate) mod tighten;
