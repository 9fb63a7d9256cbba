//! Global scheduling: m identical processors and one queue of ready jobs, which may migrate.
//!
//! - Deadlines under global EDF: [`gfb()`], [`bak()`], [`bcl()`], [`bcl_iterative()`], [`bar()`], [`rta()`] (with
//!   response times), [`ff_dbf()`], and [`edf()`] (several of them).
//! - Response times under global fixed priorities: [`bertogna_cirinei()`], [`guan()`].
//! - Tardiness under global EDF, if deadlines may be missed: [`devi_anderson()`], [`devi_anderson_sections()`].
//! - Tardiness under EDF-like schedulers, including G-FL: [`compliant_vector()`], [`g_edf()`], [`g_fl()`].
//! - Blocking under priority inheritance: [`easwaran_andersson()`].
//!
//! Tasks are sporadic and independent, and preemptive unless stated otherwise. Each executes on one processor at a
//! time. Time is discrete: the "+1" of several tests holds for integers only. All times are in the unit of the input.
//! All tests are sufficient, none is exact, and none dominates all others.
//!
//! Every test returns an error for an invalid set: [`Failure::Unsupported`](crate::Failure::Unsupported) if a period or
//! deadline is 0 or the test does not support a deadline, [`Failure::Task`](crate::Failure::Task) if a task has C >
//! min(D, T), [`Failure::Overload`](crate::Failure::Overload) for tasks without processors, and
//! [`Failure::Overflow`](crate::Failure::Overflow) if a sum could overflow.
//! Symbols: m is the number of processors, C the execution time, T the period, D the deadline, u = C/T, U the sum of
//! all u, and δ = C/min(D, T).
//!
//! # Examples
//! ```
//! use lockwright_analysis::{Sporadic, global};
//! let task = |cost, period| Sporadic { cost, period, deadline: period };
//! let tasks = [task(1, 3), task(1, 3), task(2, 6)];
//! assert!(global::gfb(&tasks, 2).is_ok());
//! // Response times under fixed priorities, the most urgent task first.
//! assert_eq!(global::guan(&tasks, 2)?, [1, 1, 3]);
//! # Ok::<(), lockwright_analysis::Failure>(())
//! ```

mod bak;
mod bar;
mod bcl;
mod bcl_iterative;
mod edf;
mod ff_dbf;
mod fp;
mod gel;
mod gfb;
mod pip;
mod rta;
mod set;
mod tardiness;

pub use bak::bak;
pub use bar::{POINTS_MAX as BAR_POINTS_MAX, bar};
pub use bcl::bcl;
pub use bcl_iterative::{ROUNDS_MAX as BCL_ROUNDS_MAX, bcl_iterative};
pub use edf::edf;
pub use ff_dbf::{POINTS_MAX as FF_DBF_POINTS_MAX, ff_dbf};
pub use fp::{Blocked, CarryIn, bertogna_cirinei, guan};
pub use gel::{compliant_vector, g_edf, g_fl, g_fl_point};
pub use gfb::gfb;
pub use pip::{Inherited, easwaran_andersson};
pub use rta::{ROUNDS_MAX as RTA_ROUNDS_MAX, rta};
pub use set::STEPS_MAX;
pub use tardiness::{devi_anderson, devi_anderson_non_preemptive_as_published, devi_anderson_sections};

/// The same tests as mutants: each omits something that it needs.
#[cfg(feature = "mutants")]
pub mod mutants {
    pub use super::bak::mutant as bak_without_early_deadlines;
    pub use super::bar::mutant as bar_without_carry_in;
    pub use super::bcl::mutant as bcl_without_carry_in;
    pub use super::bcl_iterative::mutant as bcl_iterative_without_carry_in;
    pub use super::ff_dbf::mutant as ff_dbf_without_forced_demand;
    pub use super::fp::mutant_bertogna_cirinei as bertogna_cirinei_without_carry_in;
    pub use super::fp::mutant_guan as guan_without_carry_in;
    pub use super::gfb::mutant as gfb_without_the_densest;
    pub use super::rta::mutant as rta_without_carry_in;
}

#[cfg(test)]
mod tests;
