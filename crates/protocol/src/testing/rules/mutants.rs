//! Mutants of the machines, which the walk must find.

use super::*;

/// The actions of a release.
fn released(event: Event, answer: &mut Answer) -> Option<&mut Actions> {
    answer.as_mut().ok().filter(|_| matches!(event, Event::Release(..)))
}

fn requested(event: Event, answer: &mut Answer) -> Option<&mut Actions> {
    answer.as_mut().ok().filter(|_| matches!(event, Event::Request(..)))
}

fn is_own(event: Event, action: &Action) -> bool {
    matches!(action, Action::SetPriority { task, .. } if task.index() == event.task())
}

/// A release wakes no task.
fn no_wake<M: Walked>(event: Event, _: &M, _: &mut M, answer: &mut Answer) {
    if let Some(actions) = released(event, answer) {
        actions.retain(|action| !matches!(action, Action::Wake { .. }));
    }
}

/// The priority of the caller falls before the actions of other tasks.
fn falls_first<M: Walked>(event: Event, _: &M, _: &mut M, answer: &mut Answer) {
    if let Some(actions) = released(event, answer) {
        actions.sort_by_key(|action| !is_own(event, action));
    }
}

/// The priority of the caller does not fall.
fn stays_up<M: Walked>(event: Event, _: &M, _: &mut M, answer: &mut Answer) {
    if let Some(actions) = released(event, answer) {
        actions.retain(|action| !is_own(event, action));
    }
}

/// A release does not happen.
fn keeps<M: Walked>(event: Event, before: &M, after: &mut M, answer: &mut Answer) {
    if released(event, answer).is_some() {
        *after = before.clone();
    }
}

/// Every request is granted, also if another task owns the resource.
fn grants_all<M: Walked>(event: Event, _: &M, _: &mut M, answer: &mut Answer) {
    for action in requested(event, answer).into_iter().flatten() {
        if let Action::Block { task, resource } | Action::Spin { task, resource } = *action {
            *action = Action::Grant { task, resource };
        }
    }
}

/// A waiter other than the next one gets the resource.
fn wrong_order<M: Walked>(event: Event, _: &M, _: &mut M, answer: &mut Answer) {
    for action in released(event, answer).into_iter().flatten() {
        if let Action::Wake { task } | Action::Grant { task, .. } = action {
            *task = TaskId::new((task.index() + 1) % 3);
        }
    }
}

/// A refused request leaves its mark.
fn marks<M: Walked>(event: Event, _: &M, after: &mut M, answer: &mut Answer) {
    if matches!(event, Event::Request(..)) && answer.is_err() {
        let _ = after.set_base(TaskId::new(event.task()), Priority::base(9), &mut |_| ());
    }
}

/// An event without meaning is accepted.
fn takes_all<M: Walked>(_: Event, _: &M, _: &mut M, answer: &mut Answer) {
    if answer.is_err() {
        *answer = Ok(Vec::new());
    }
}

/// No task is sent to another processor.
fn stays<M: Walked>(_: Event, _: &M, _: &mut M, answer: &mut Answer) {
    if let Ok(actions) = answer {
        actions.retain(|action| !matches!(action, Action::Migrate { .. }));
    }
}

/// A task that was sent does not come back.
fn stays_away<M: Walked>(event: Event, _: &M, _: &mut M, answer: &mut Answer) {
    if let Some(actions) = released(event, answer) {
        let away = |action: &Action| matches!(action, Action::Migrate { task, .. } if task.index() == event.task());
        if let Some(place) = actions.iter().position(away) {
            actions.remove(place);
            // The actions that follow are those of the caller.
            actions[place..].iter_mut().filter_map(action_epoch).for_each(|epoch| *epoch -= 1);
        }
    }
}

/// The caller falls on the processor to which it was sent, and goes back afterwards.
fn falls_away<M: Walked>(event: Event, _: &M, _: &mut M, answer: &mut Answer) {
    if let Some(actions) = released(event, answer) {
        actions.sort_by_key(|action| matches!(action, Action::Migrate { .. }));
        for (epoch, right) in actions.iter_mut().filter_map(action_epoch).zip(1..) {
            *epoch = right;
        }
    }
}

fn action_epoch(action: &mut Action) -> Option<&mut u32> {
    match action {
        Action::Migrate { epoch, .. } | Action::SetPriority { epoch, .. } => Some(epoch),
        _ => None,
    }
}

/// The caller does not rise.
fn not_boosted<M: Walked>(event: Event, _: &M, _: &mut M, answer: &mut Answer) {
    if let Some(actions) = requested(event, answer) {
        actions.retain(|action| !is_own(event, action));
    }
}

/// An owner does not inherit.
fn not_inherited<M: Walked>(event: Event, _: &M, _: &mut M, answer: &mut Answer) {
    if let Some(actions) = requested(event, answer) {
        actions.retain(|action| !matches!(action, Action::SetPriority { .. }) || is_own(event, action));
    }
}

/// The caller waits before the other actions.
fn waits_first<M: Walked>(event: Event, _: &M, _: &mut M, answer: &mut Answer) {
    if let Some(actions) = requested(event, answer) {
        actions.sort_by_key(|action| !matches!(action, Action::Block { .. } | Action::Spin { .. }));
    }
}

/// Every job starts.
fn starts_all<M: Walked>(_: Event, _: &M, _: &mut M, answer: &mut Answer) {
    if let Ok(actions) = answer {
        actions.retain(|action| !matches!(action, Action::Hold { .. }));
    }
}

/// Each change is reported twice.
fn repeats<M: Walked>(_: Event, _: &M, _: &mut M, answer: &mut Answer) {
    let Ok(actions) = answer else { return };
    if let Some(&last) = actions.last()
        && matches!(last, Action::SetPriority { .. })
    {
        actions.push(last);
    }
}

/// Epochs rise by two.
fn skips<M: Walked>(_: Event, _: &M, _: &mut M, answer: &mut Answer) {
    for epoch in answer.iter_mut().flatten().filter_map(action_epoch) {
        *epoch += 1;
    }
}

/// A task that gives up is woken before the others.
fn wakes_itself_first<M: Walked>(event: Event, _: &M, _: &mut M, answer: &mut Answer) {
    if let (Event::Cancel(task), Ok(actions)) = (event, answer) {
        actions.sort_by_key(|action| *action != Action::Wake { task: TaskId::new(task) });
    }
}

/// A change of base priority is not propagated.
fn forgets_base<M: Walked>(event: Event, before: &M, after: &mut M, _: &mut Answer) {
    if matches!(event, Event::Rebase(_, true)) {
        *after = before.clone();
    }
}

/// A lender is not woken when another job lends in its place.
fn never_relieved<M: Walked>(event: Event, _: &M, _: &mut M, answer: &mut Answer) {
    if let (Event::Arrive(_), Ok(actions)) = (event, answer) {
        actions.retain(|action| !matches!(action, Action::Wake { .. }));
    }
}

/// No change: the machine was built for another setting.
fn none<M: Walked>(_: Event, _: &M, _: &mut M, _: &mut Answer) {}

macro_rules! mutants {
    ($($name:ident: $machine:ident of $other:expr, $setting:expr, $fault:ident, $expected:literal;)*) => {$(
        #[test]
        #[should_panic(expected = $expected)]
        #[cfg_attr(miri, ignore = "walks all states")]
        fn $name() {
            walk_all($machine(&$other), &$setting, $fault);
        }
    )*};
}

/// The first two tasks share no processor.
const fn apart(rule: Rule) -> Setting {
    Setting { cpus: &[0, 2, 1, 1], ..two(rule) }
}

const fn other_ceilings(rule: Rule) -> Setting {
    Setting { ceilings: [4, 4], ..one(rule) }
}

const fn other_homes(rule: Rule) -> Setting {
    Setting { homes: [1, 1], ..two(rule) }
}

const fn other_users(rule: Rule) -> Setting {
    Setting { users: [&[0, 1, 2], &[0, 1, 2]], ..ceilings(rule) }
}

const PCP: Setting = one(Rule::Pcp);
const SRP: Setting = one(Rule::Srp);
const MPCP_VS: Setting = two(Rule::MpcpVs);
const DPCP: Setting = two(Rule::Dpcp);
const DFLP: Setting = two(Rule::Dflp);
const LONG: Setting = two(Rule::FmlpLong);
const PLUS: Setting = two(Rule::FmlpPlus);
const SHORT: Setting = two(Rule::FmlpShort);
const MRSP: Setting = ceilings(Rule::Mrsp);
const OMLP: Setting = two(Rule::Omlp);
const CLUSTER: Setting = relieved(Rule::Omlp);

/// As if it had more processors than it has.
const fn larger(rule: Rule) -> Setting {
    Setting { sizes: [3, 1, 1], ..relieved(rule) }
}

const fn smaller(rule: Rule) -> Setting {
    Setting { sizes: [1; 3], ..relieved(rule) }
}

mutants! {
    pcp_without_wake: pcp of PCP, PCP, no_wake, "may go on, and sleeps";
    pcp_grants_all: pcp of PCP, PCP, grants_all, "granted";
    pcp_does_not_inherit: pcp of PCP, PCP, not_inherited, "priorities after";
    pcp_wakes_itself_first: pcp of PCP, PCP, wakes_itself_first, "others come after the caller";
    pcp_falls_first: pcp of PCP, PCP, falls_first, "others come after the caller";
    pcp_with_other_ceilings: pcp of other_ceilings(Rule::Pcp), PCP, none, "an event without meaning was accepted";
    srp_without_wake: srp of SRP, SRP, no_wake, "does not run";
    srp_starts_all: srp of SRP, SRP, starts_all, "starts below a ceiling";
    srp_takes_all: srp of SRP, SRP, takes_all, "an event without meaning was accepted";
    srp_forgets_base: srp of SRP, SRP, forgets_base, "priorities after";
    mpcp_vs_without_wake: mpcp_vs of MPCP_VS, MPCP_VS, no_wake, "may go on, and sleeps";
    mpcp_vs_falls_first: mpcp_vs of MPCP_VS, MPCP_VS, falls_first, "others come after the caller";
    mpcp_vs_is_not_boosted: mpcp_vs of MPCP_VS, MPCP_VS, not_boosted, "priorities after";
    mpcp_vs_admits_all: mpcp_vs of apart(Rule::MpcpVs), MPCP_VS, none, "granted to another than the next";
    mpcp_vs_in_wrong_order: mpcp_vs of MPCP_VS, MPCP_VS, wrong_order, "woken for nothing";
    dpcp_stays_away: dpcp of DPCP, DPCP, stays_away, "places after";
    dpcp_falls_away: dpcp of DPCP, DPCP, falls_away, "fell before it went back";
    dpcp_elsewhere: dpcp of other_homes(Rule::Dpcp), DPCP, none, "owners as told";
    dpcp_keeps: dpcp of DPCP, DPCP, keeps, "owners the machine knows";
    dflp_in_wrong_order: dflp of DFLP, DFLP, wrong_order, "granted to another than the next";
    dflp_stays: dflp of DFLP, DFLP, stays, "places after";
    dflp_is_not_boosted: dflp of DFLP, DFLP, not_boosted, "not boosted after";
    dflp_falls_away: dflp of DFLP, DFLP, falls_away, "fell before it went back";
    fmlp_long_does_not_inherit: fmlp_long of LONG, LONG, not_inherited, "priorities after";
    fmlp_long_without_wake: fmlp_long of LONG, LONG, no_wake, "does not run";
    fmlp_long_waits_first: fmlp_long of LONG, LONG, waits_first, "only the caller waits, and does it last";
    fmlp_long_falls_first: fmlp_long of LONG, LONG, falls_first, "others come after the caller";
    fmlp_plus_in_wrong_order: fmlp_plus of PLUS, PLUS, wrong_order, "granted to another than the next";
    fmlp_plus_is_not_boosted: fmlp_plus of PLUS, PLUS, not_boosted, "not boosted after";
    fmlp_plus_repeats: fmlp_plus of PLUS, PLUS, repeats, "told twice";
    fmlp_plus_stays_up: fmlp_plus of PLUS, PLUS, stays_up, "priorities after";
    fmlp_short_grants_all: fmlp_short of SHORT, SHORT, grants_all, "granted while owned";
    fmlp_short_waits_first: fmlp_short of SHORT, SHORT, waits_first, "only the caller waits, and does it last";
    fmlp_short_marks: fmlp_short of SHORT, SHORT, marks, "a refused event changed something";
    fmlp_short_skips: fmlp_short of SHORT, SHORT, skips, "an epoch was skipped";
    mrsp_stays: mrsp of MRSP, MRSP, stays, "places after";
    mrsp_stays_away: mrsp of MRSP, MRSP, stays_away, "places after";
    mrsp_waits_first: mrsp of MRSP, MRSP, waits_first, "only the caller waits, and does it last";
    mrsp_with_other_ceilings: mrsp of other_users(Rule::Mrsp), MRSP, none, "priorities after";
    omlp_without_wake: omlp of OMLP, OMLP, no_wake, "does not run";
    omlp_admits_all: omlp of apart(Rule::Omlp), OMLP, none, "granted to another than the next";
    omlp_falls_first: omlp of OMLP, OMLP, falls_first, "others come after the caller";
    omlp_forgets_base: omlp of OMLP, OMLP, forgets_base, "priorities after";
    omlp_starts_all: omlp of CLUSTER, CLUSTER, starts_all, "starts";
    omlp_without_wake_in_a_cluster: omlp of CLUSTER, CLUSTER, no_wake, "does not run";
    omlp_lends_for_ever: omlp of CLUSTER, CLUSTER, never_relieved, "does not run";
    omlp_in_wrong_order: omlp of CLUSTER, CLUSTER, wrong_order, "";
    omlp_with_too_many_places: omlp of larger(Rule::Omlp), CLUSTER, none, "";
    omlp_with_too_few_places: omlp of smaller(Rule::Omlp), CLUSTER, none, "";
}
