//! Every order of effects: a few threads carry out the decisions of a machine one action at a time, and interleave.
//!
//! The other walks carry out a decision at once. Here each thread executes steps. On each processor, the runnable
//! thread with the highest priority takes the next step:
//!
//! ```text
//!   idle      where jobs are counted: [decides the arrival] -> carries out -> goes on, or is held;  else: goes on
//!   goes on   rises -> asks;  or, where jobs are counted: [decides the end] -> carries out -> idle
//!   asks      [decides] -> carries out, an action a step:   a priority, a move, a wake-up, a wait
//!   sleeps    woken, and granted -> holds;  else -> rises, asks again;  or, where waiters give up, gives up
//!   spins     granted -> holds;  or gives up
//!   on way    executes at home -> rises, asks again;  or gives up
//!   gives up  [granted meanwhile] -> holds;  else: [decides that] -> carries out -> goes on
//!   holds     [decides the release] -> carries out -> goes on;  or, where the section is invalidated: holds
//! ```
//!
//! As on Linux, a thread is above all tasks while it carries out actions that concern others. No thread decides while
//! another one sets priorities that must be in effect first ([`Machine::settles_others_at_once`]). Jobs of protocols
//! for several processors arrive and end above all tasks, at priorities that the machine does not use. In every state:
//! - *owners*: a resource is granted only while it has no owner whose section excludes the new one; where requests are
//!   served in their order, it goes to the earliest request for the resource, wherever its thread is; where they are
//!   served by priority, it goes to the most urgent waiter, or the most urgent one that is not held back; where phases
//!   alternate, it goes to the earliest writer after readers, and to all waiting readers after a writer;
//! - *order*: where priorities express the order of requests, of two requests on their processor the earlier one has
//!   the higher priority, between any two effects (a thread in the middle of its own decision does not count, because
//!   it is above both);
//! - *inheritance*: where owners inherit, an owner has at least the priorities of the tasks that wait for its resource,
//!   unless a pending action is to set them;
//! - *ceilings*: an owner that executes is never below the least priority of owners;
//! - *progress*: a thread that sleeps has not been granted anything, unless its wake-up is still to come; and some
//!   thread can take a step;
//! - *last words*: a thread that no pending action concerns has the priority and the place that the machine has set
//!   last;
//! - *help*: under `mrsp`, while no thread is in the middle of a decision, no waiter executes instead of the owner that
//!   it waits for.

mod checks;
mod machines;
mod setting;
mod state;

use super::harness::{check_states, reach};
use machines::{
    by_arrival, dflp, dpcp, fmlp_long, fmlp_plus, fmlp_short, icpp, ics, ics_lock, mpcp, mpcp_vs, mrsp, none, omlp,
    one_reader_per_phase, pcp, phase_fair, pip, readers_past_writers, srp, task_fair,
};
use setting::{
    APART, AT_HOME, DFLP, DPCP, Fault, HELPED, HELPED_BY_TWO, ICPP, ICPP_OF_TWO, ICS, ICS_LOCK, LONG, MPCP,
    MPCP_OF_TWO, MPCP_VS, MPCP_VS_OF_TWO, MPCP_VS_TOGETHER, MRSP, NONE, OMLP, OMLP_OF_TWO, PCP, PHASES, PHASES_APART,
    PIP, PIP_OF_TWO, PLUS, PLUS_TOGETHER, SHORT, SRP, Setting, TASK_FAIR, giving_up,
};
use state::State;
pub(super) use state::{Flag, Stepped, epoch, is_later, subject};

/// Walks all reachable states; returns how many there are.
fn walk<M: Stepped>(machine: M, setting: &Setting, fault: Fault) -> usize {
    reach(State::first(machine, setting), |state, next_states| {
        state.check(setting);
        let before = next_states.len();
        for me in (0..state.threads.len()).filter(|&me| state.executes(me)) {
            state.steps(me, setting, fault, next_states);
        }
        next_states.extend((0..state.threads.len()).filter_map(|me| state.timed_out(me, setting)));
        next_states[before..].iter_mut().for_each(State::forget);
    })
}

/// Fewer states would mean that the walk did not leave the start.
const STATES_LEAST: usize = 1_000;

macro_rules! walks {
    ($($name:ident: $machine:ident, $setting:expr;)*) => {$(
        #[test]
        fn $name() {
            let states = walk($machine(&$setting), &$setting, Fault::None);
            check_states(stringify!($name), states, STATES_LEAST);
        }
    )*};
}

walks! {
    dflp_effects: dflp, DFLP;
    dflp_effects_with_a_task_at_home: dflp, AT_HOME;
    dflp_effects_from_all_processors: dflp, APART;
    dpcp_effects: dpcp, DPCP;
    fmlp_plus_effects: fmlp_plus, PLUS;
    fmlp_plus_effects_of_three_on_a_processor: fmlp_plus, PLUS_TOGETHER;
    fmlp_long_effects: fmlp_long, LONG;
    fmlp_short_effects: fmlp_short, SHORT;
    mpcp_effects: mpcp, MPCP;
    mpcp_effects_of_two_resources: mpcp, MPCP_OF_TWO;
    mpcp_vs_effects: mpcp_vs, MPCP_VS;
    mpcp_vs_effects_of_two_resources: mpcp_vs, MPCP_VS_OF_TWO;
    mpcp_vs_effects_of_three_on_a_processor: mpcp_vs, MPCP_VS_TOGETHER;
    mrsp_effects: mrsp, MRSP;
    mrsp_effects_with_help: mrsp, HELPED;
    mrsp_effects_with_help_of_two: mrsp, HELPED_BY_TWO;
    omlp_effects: omlp, OMLP;
    omlp_effects_of_two_resources: omlp, OMLP_OF_TWO;
    none_effects: none, NONE;
    pip_effects: pip, PIP;
    pip_effects_of_two_resources: pip, PIP_OF_TWO;
    icpp_effects: icpp, ICPP;
    icpp_effects_of_two_resources: icpp, ICPP_OF_TWO;
    pcp_effects: pcp, PCP;
    srp_effects: srp, SRP;
    ics_effects: ics, ICS;
    ics_lock_effects: ics_lock, ICS_LOCK;
    phase_fair_effects: phase_fair, PHASES;
    task_fair_effects: task_fair, TASK_FAIR;
    none_effects_of_giving_up: none, giving_up(NONE);
    pip_effects_of_giving_up: pip, giving_up(PIP);
    icpp_effects_of_giving_up: icpp, giving_up(ICPP_OF_TWO);
    pcp_effects_of_giving_up: pcp, giving_up(PCP);
    ics_lock_effects_of_giving_up: ics_lock, giving_up(ICS_LOCK);
    phase_fair_effects_of_giving_up: phase_fair, giving_up(PHASES);
    phase_fair_effects_of_giving_up_apart: phase_fair, giving_up(PHASES_APART);
    task_fair_effects_of_giving_up: task_fair, giving_up(TASK_FAIR);
    dflp_effects_of_giving_up: dflp, giving_up(AT_HOME);
    dpcp_effects_of_giving_up: dpcp, giving_up(DPCP);
    fmlp_long_effects_of_giving_up: fmlp_long, giving_up(LONG);
    fmlp_plus_effects_of_giving_up: fmlp_plus, giving_up(PLUS);
    fmlp_short_effects_of_giving_up: fmlp_short, giving_up(SHORT);
    mpcp_effects_of_giving_up: mpcp, giving_up(MPCP);
    mpcp_vs_effects_of_giving_up: mpcp_vs, giving_up(MPCP_VS_OF_TWO);
    mrsp_effects_of_giving_up: mrsp, giving_up(HELPED);
    omlp_effects_of_giving_up: omlp, giving_up(OMLP_OF_TWO);
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
    dflp_told_by_id: dflp, DFLP, ToldById, "a later request is above an earlier one";
    dflp_told_while_others_decide: dflp, APART, DecidesMeanwhile, "a later request is above an earlier one";
    dflp_not_told: dflp, DFLP, NotTold, "was told otherwise last";
    dflp_served_by_arrival: by_arrival, AT_HOME, None, "granted out of order";
    dflp_takes_stale: dflp, AT_HOME, TakesStale, "was told otherwise last";
    dflp_without_wake: dflp, AT_HOME, NoWake, "was told something, and sleeps";
    fmlp_plus_told_by_id: fmlp_plus, PLUS_TOGETHER, ToldById, "a later request is above an earlier one";
    fmlp_plus_not_told: fmlp_plus, PLUS, NotTold, "was told otherwise last";
    fmlp_plus_without_wake: fmlp_plus, PLUS, NoWake, "was told something, and sleeps";
    fmlp_long_without_wake: fmlp_long, LONG, NoWake, "was told something, and sleeps";
    dpcp_without_wake: dpcp, DPCP, NoWake, "was told something, and sleeps";
    fmlp_long_takes_stale: fmlp_long, LONG, TakesStale, "was told otherwise last";
    fmlp_short_not_raised: fmlp_short, SHORT, NotRaised, "executes below its ceiling";
    mpcp_not_raised: mpcp, MPCP, NotRaised, "executes below its ceiling";
    mpcp_without_wake: mpcp, MPCP, NoWake, "was told something, and sleeps";
    mpcp_vs_not_raised: mpcp_vs, MPCP_VS, NotRaised, "executes below its ceiling";
    mpcp_vs_without_wake: mpcp_vs, MPCP_VS, NoWake, "was told something, and sleeps";
    mrsp_not_raised: mrsp, MRSP, NotRaised, "executes below its ceiling";
    mrsp_not_moved: mrsp, HELPED, NotMoved, "spins for";
    mrsp_takes_stale: mrsp, HELPED, TakesStale, "was told otherwise last";
    omlp_not_raised: omlp, OMLP, NotRaised, "executes below its ceiling";
    omlp_without_wake: omlp, OMLP, NoWake, "was told something, and sleeps";
    none_without_wake: none, NONE, NoWake, "was told something, and sleeps";
    pip_without_wake: pip, PIP, NoWake, "was told something, and sleeps";
    pip_not_inherited: pip, PIP, NotInherited, "does not inherit";
    pip_not_inherited_of_two_resources: pip, PIP_OF_TWO, NotInherited, "does not inherit";
    pcp_not_inherited: pcp, PCP, NotInherited, "does not inherit";
    pip_takes_stale: pip, PIP, TakesStale, "was told otherwise last";
    icpp_not_raised: icpp, ICPP, NotRaised, "executes below its ceiling";
    icpp_without_wake: icpp, ICPP, NoWake, "was told something, and sleeps";
    pcp_without_wake: pcp, PCP, NoWake, "was told something, and sleeps";
    srp_without_wake: srp, SRP, NoWake, "was told something, and sleeps";
    ics_without_restart: ics, ICS, NoRestart, "an event with a meaning";
    ics_lock_not_raised: ics_lock, ICS_LOCK, NotRaised, "executes below its ceiling";
    ics_lock_without_wake: ics_lock, ICS_LOCK, NoWake, "was told something, and sleeps";
    phase_fair_not_raised: phase_fair, PHASES, NotRaised, "executes below its ceiling";
    phase_fair_gives_up_blindly: phase_fair, giving_up(PHASES), GivesUpBlindly, "an event with a meaning";
    phase_fair_with_one_reader: one_reader_per_phase, PHASES, None, "a reader is left out of its phase";
    phase_fair_past_writers: readers_past_writers, giving_up(PHASES_APART), None, "granted out of order";
    phase_fair_by_tasks: task_fair, PHASES, None, "granted out of order";
    task_fair_by_phases: phase_fair, TASK_FAIR, None, "granted out of order";
    dflp_gives_up_without_wake: dflp, giving_up(AT_HOME), NoWakeOnGivingUp, "was told something, and sleeps";
    omlp_gives_up_without_wake: omlp, giving_up(OMLP_OF_TWO), NoWakeOnGivingUp, "was told something, and sleeps";
    fmlp_short_gives_up_blindly: fmlp_short, giving_up(SHORT), GivesUpBlindly, "an event with a meaning";
    mrsp_gives_up_blindly: mrsp, giving_up(MRSP), GivesUpBlindly, "an event with a meaning";
    fmlp_plus_gives_up_blindly: fmlp_plus, giving_up(PLUS), GivesUpBlindly, "an event with a meaning";
}
