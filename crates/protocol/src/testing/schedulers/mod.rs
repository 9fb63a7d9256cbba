//! Every order of effects of the schedulers of `p-edf` and `g-edf`: a few threads carry out the decisions one action at
//! a time, and interleave.
//!
//! The walks of the machines carry out a decision at once. Here each thread executes steps, as on Linux under
//! SCHED_FIFO: a runnable thread executes if fewer threads are above it than there are processors.
//!
//! ```text
//!   idle      released -> arrives
//!   arrives   [guard: decides] -> carries out, an action a step -> executes, or is held
//!   held      falls asleep; woken -> begins:   [guard: decides] -> carries out -> executes
//!   executes  rises -> ends;  or g-edf: rises -> asks;  p-edf: asks
//!   asks      [guard: decides] -> carries out -> holds, spins or waits
//!   waits     falls asleep; granted -> holds;  woken -> rises, asks again
//!   spins     granted -> holds
//!   holds     g-edf: rises -> releases;  p-edf: releases
//!   releases  [guard: decides] -> carries out -> executes
//!   ends      [guard: decides] -> carries out -> idle
//! ```
//!
//! To get the guard is a step of its own: a thread that finds it held sleeps, and lends the holder its priority. A
//! thread that changes others, or arrives under `g-edf`, is above all jobs until its own actions. In every state:
//! - *exclusion*: a resource is granted only while it has no owner;
//! - *order*: a release grants to the earliest request of the queue;
//! - *no lost wake-up*: a thread that sleeps was told nothing, unless its wake-up is still to come; and if no further
//!   job arrives, every job ends;
//! - *levels*: a thread that no pending action concerns has the priority that the machine has set last;
//! - *above the jobs*: threads that decide on the begin or the end of a job, act on others under `g-edf`, or must not
//!   be preempted; of the last, there are at most as many as processors;
//! - *choice*: where nothing is left to carry out, the jobs that execute have the earliest deadlines, as far as
//!   ceilings and jobs that are not preempted admit, and no processor is idle while a job could execute.

extern crate std;

mod checks;
mod setting;
mod threads;

use super::effects::Stepped;
use super::harness::{check_states, reach};
use crate::{Edf, GlobalEdf};
use lockwright_model::{CpuId, Priority};
use setting::{BOTH_ON_ONE, Fault, LONG, LONG_ON_ONE, PARTITIONED, SHORT, SHORT_ON_ONE, Setting};
use std::vec::Vec;
use threads::{Phase, State};

const TASKS: usize = 3;
const RESOURCES: usize = 2;

impl Stepped for Edf<TASKS, RESOURCES> {
    fn zero_epochs(&mut self) {
        self.forget_epochs();
    }
}

impl Stepped for GlobalEdf<TASKS, RESOURCES> {
    fn zero_epochs(&mut self) {
        self.forget_epochs();
    }
}

fn partitioned(setting: &Setting) -> Edf<TASKS, RESOURCES> {
    let tasks: Vec<_> = setting.levels.iter().map(|&level| (Priority::base(level), CpuId(0))).collect();
    let ceilings: Vec<_> = setting.ceilings.iter().map(|&ceiling| Priority::base(ceiling)).collect();
    Edf::new(&tasks, &ceilings)
}

fn global(setting: &Setting) -> GlobalEdf<TASKS, RESOURCES> {
    GlobalEdf::new(setting.tasks(), setting.locks, setting.processors)
}

/// The scheduler of one processor more than there is.
fn global_of_more(setting: &Setting) -> GlobalEdf<TASKS, RESOURCES> {
    GlobalEdf::new(setting.tasks(), setting.locks, setting.processors + 1)
}

/// Walks all reachable states; returns how many there are.
fn walk<M: Stepped>(machine: M, setting: &Setting, fault: Fault) -> usize {
    reach(State::first(machine, setting), |state, next| {
        state.check(setting);
        // Any other state leads to a settled one.
        if state.is_settled() {
            state.end_all(setting, fault);
        } else {
            assert!(state.can_go_on(setting, fault), "no thread can take a step, and decisions are not carried out");
        }
        state.successors(setting, fault, next);
    })
}

macro_rules! walks {
    ($($name:ident: $machine:ident, $setting:expr, $least:expr;)*) => {$(
        #[test]
        fn $name() {
            let states = walk($machine(&$setting), &$setting, Fault::None);
            check_states(stringify!($name), states, $least);
        }
    )*};
}

walks! {
    p_edf: partitioned, PARTITIONED, 50_000;
    g_edf_short: global, SHORT, 500_000;
    g_edf_long: global, LONG, 500_000;
    g_edf_short_on_one_processor: global, SHORT_ON_ONE, 20_000;
    g_edf_long_on_one_processor: global, LONG_ON_ONE, 20_000;
    g_edf_both_on_one_processor: global, BOTH_ON_ONE, 50_000;
}

macro_rules! mutants {
    ($($name:ident: $machine:ident, $setting:expr, $fault:ident, $expected:literal;)*) => {$(
        #[test]
        #[should_panic(expected = $expected)]
        #[cfg_attr(miri, ignore = "walks all states")]
        fn $name() {
            walk($machine(&$setting), &$setting, Fault::$fault);
        }
    )*};
}

mutants! {
    p_edf_without_wake: partitioned, PARTITIONED, NoWake, "was told something, and sleeps";
    p_edf_by_latest_deadlines: partitioned, PARTITIONED, ByLatest, "executes in place of";
    p_edf_not_raised: partitioned, PARTITIONED, NotRaised, "is not above the jobs";
    g_edf_without_wake: global, LONG, NoWake, "a job never ends";
    g_edf_guard_kept: global, SHORT, GuardKept, "no thread can take a step";
    g_edf_not_told: global, SHORT, NotTold, "was told otherwise last";
    g_edf_by_latest_deadlines: global, SHORT, ByLatest, "executes in place of";
    g_edf_granted_while_owned: global, SHORT, GrantsOwned, "granted while owned";
    g_edf_granted_to_the_latest: global, LONG_ON_ONE, GrantsLatest, "granted out of order";
    g_edf_takes_stale: global, SHORT, TakesStale, "was told otherwise last";
    g_edf_not_raised: global, SHORT, NotRaised, "is not above the jobs";
    g_edf_of_more_processors: global_of_more, SHORT_ON_ONE, None, "the wrong number of jobs executes";
    g_edf_own_first: global, SHORT, OwnFirst, "is not above the jobs";
}

/// The walks of mutants find another broken promise first.
#[test]
#[should_panic(expected = "more jobs are not preempted")]
fn two_jobs_that_are_not_preempted_on_one_processor() {
    let mut state = State::first(global(&SHORT_ON_ONE), &SHORT_ON_ONE);
    state.threads[..2].iter_mut().for_each(|thread| thread.phase = Phase::Holds(0));
    state.check(&SHORT_ON_ONE);
}
