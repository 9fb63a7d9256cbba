//! Every order of events, for a few tasks and 2 resources, under the protocols whose jobs are counted, held, sent
//! elsewhere, or served in the order of their requests.
//!
//! A [`Shadow`] decides from the rules of the protocol alone what must follow from an event. After every event it is
//! compared with the actions:
//! - *exclusion*: a resource is granted only while it has no owner, and to the task that the rules determine;
//! - *progress*: a task that sleeps waits for another one, or was woken; and from every state every task can finish;
//! - *priorities and places*: the values told are those of a computation from scratch, told once, with rising epochs;
//! - *order of actions*: other tasks come first, the caller comes last; a task rises before it waits or goes on, and
//!   goes back before it falls;
//! - *totality*: every event without meaning is refused for a correct reason, and changes nothing.

extern crate std;

mod mutants;
mod shadow;

use super::harness::{Actions, Answer, Mutation, Walk, answer, check_states, run, unchanged, walk};
use crate::{Action, Dflp, Dpcp, FmlpLong, FmlpPlus, FmlpShort, Machine, MpcpVs, Mrsp, Omlp, Pcp, Refusal, Srp};
use core::hash::Hash;
use lockwright_model::{CPUS_MAX, CpuId, Priority, ResourceId, TaskId};
use shadow::{Event, Job, MPCP_CEILINGS, Mode, RESOURCES, Rule, Setting, Shadow, TASKS};
use std::vec::Vec;

/// A machine that is walked.
trait Walked: Machine + Clone + Eq + Hash {
    fn owner_of(&self, resource: usize) -> Option<usize>;
    fn forget(&mut self);
}

macro_rules! walked {
    ($($machine:ident),*) => {$(
        impl Walked for $machine<TASKS, RESOURCES> {
            fn owner_of(&self, resource: usize) -> Option<usize> {
                self.owner(ResourceId::new(resource)).map(TaskId::index)
            }

            fn forget(&mut self) {
                self.forget_epochs();
            }
        }
    )*};
}

walked!(Pcp, Srp, MpcpVs, Dpcp, Dflp, FmlpLong, FmlpPlus, FmlpShort, Mrsp, Omlp);

/// The contents of the actions of one event.
struct Told {
    owners: [Option<usize>; RESOURCES],
    /// Of each task: granted, woken, told a priority, told a place.
    granted: [bool; TASKS],
    woken: [bool; TASKS],
    ranked: [bool; TASKS],
    moved: [bool; TASKS],
    /// The caller waits, fell, went back or was woken: the rest is for nobody else.
    is_last: bool,
    fell: bool,
}

/// Carries the event out on the shadow, by the rules and by the actions, and compares.
fn follow(machine: &impl Walked, shadow: &mut Shadow, setting: &Setting, event: Event, actions: &Actions) {
    let before = shadow.clone();
    shadow.foretell(setting, event);
    let caller = event.task();
    let ends = matches!(event, Event::Release(..) | Event::Cancel(_));
    let mut told = Told {
        owners: before.owners,
        granted: [false; TASKS],
        woken: [false; TASKS],
        ranked: [false; TASKS],
        moved: [false; TASKS],
        is_last: false,
        fell: false,
    };
    if let Event::Release(_, resource) = event {
        told.owners[resource] = None;
    }
    for (place, action) in actions.iter().enumerate() {
        let (Action::Grant { task, .. }
        | Action::Block { task, .. }
        | Action::Spin { task, .. }
        | Action::Hold { task }
        | Action::Migrate { task, .. }
        | Action::Restart { task, .. }
        | Action::Wake { task }
        | Action::SetPriority { task, .. }) = *action;
        let task = task.index();
        assert!(task == caller || !told.is_last, "others come after the caller, {event:?}: {actions:?}");
        match *action {
            Action::Grant { resource, .. } => {
                let resource = resource.index();
                assert_eq!(told.owners[resource], None, "granted while owned");
                assert_eq!(shadow.owners[resource], Some(task), "granted to another than the next, {event:?}");
                told.owners[resource] = Some(task);
                told.granted[task] = true;
                if shadow.mode[task] == Mode::Spins {
                    shadow.mode[task] = Mode::Runs;
                }
            }
            Action::Block { .. } | Action::Spin { .. } | Action::Hold { .. } => {
                assert_eq!((task, place), (caller, actions.len() - 1), "only the caller waits, and does it last");
                let how = match *action {
                    Action::Hold { .. } => {
                        assert_eq!(shadow.jobs[task], Job::Held, "held for nothing");
                        Mode::Sleeps
                    }
                    Action::Block { resource, .. } | Action::Spin { resource, .. } => {
                        assert_eq!(shadow.wants(task), Some(resource.index()), "waits for nothing, {event:?}");
                        if matches!(action, Action::Spin { .. }) { Mode::Spins } else { Mode::Sleeps }
                    }
                    _ => unreachable!("matched above"),
                };
                shadow.mode[task] = how;
            }
            Action::Restart { .. } => panic!("no section begins again here, {event:?}"),
            Action::Wake { .. } => {
                let cancels = task == caller && matches!(event, Event::Cancel(_));
                assert!(shadow.mode[task] == Mode::Sleeps || cancels, "woken for nothing, {event:?}: {actions:?}");
                let is_early = before.wants(task).is_some() && shadow.wants(task).is_none() && !told.granted[task];
                assert!(cancels || !is_early, "woken before the grant");
                let goes_on = shadow.wants(task).is_none() || shadow.may_go(setting, task);
                assert!(goes_on, "woken too soon, {event:?}: {actions:?}");
                shadow.mode[task] = if shadow.wants(task).is_some() { Mode::Awake } else { Mode::Runs };
                told.woken[task] = true;
                told.is_last |= cancels;
            }
            Action::Migrate { cpu, epoch, .. } => {
                assert!(!told.moved[task] && shadow.cpus[task] != cpu.index(), "sent twice, {event:?}: {actions:?}");
                assert!(!told.fell || task != caller, "fell before it went back");
                assert_eq!(epoch, shadow.epochs[task].wrapping_add(1), "an epoch was skipped");
                assert!(task == caller || !told.woken[task], "moved after it was woken");
                (shadow.cpus[task], shadow.epochs[task], told.moved[task]) = (cpu.index(), epoch, true);
                told.is_last |= ends && task == caller;
            }
            Action::SetPriority { priority, epoch, .. } => {
                let is_new = !told.ranked[task] && shadow.told[task] != priority;
                assert!(is_new, "told twice, {event:?}: {actions:?}");
                assert_eq!(epoch, shadow.epochs[task].wrapping_add(1), "an epoch was skipped");
                let rises = priority > shadow.told[task];
                assert!(
                    !rises || !told.moved[task] || ends && task == caller,
                    "went before it rose, {event:?}: {actions:?}"
                );
                assert!(task == caller || !(told.woken[task] || told.granted[task]), "told after it was woken");
                (shadow.told[task], shadow.epochs[task], told.ranked[task]) = (priority, epoch, true);
                if ends && task == caller && !rises {
                    (told.is_last, told.fell) = (true, true);
                }
            }
        }
    }
    let machine_owners: [_; RESOURCES] = core::array::from_fn(|resource| machine.owner_of(resource));
    assert_eq!(told.owners, shadow.owners, "owners as told, and by the rules, after {event:?}: {actions:?}");
    assert_eq!(machine_owners, shadow.owners, "owners the machine knows, and by the rules, after {event:?}");
    shadow.check(setting, &before, event);
}

impl<M: Walked> Walk<M> for Setting {
    type Shadow = Shadow;
    type Event = Event;

    fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        // One task and one resource more than there are.
        for task in 0..=self.tasks() {
            for resource in 0..=RESOURCES {
                events.extend([Event::Request(task, resource), Event::Release(task, resource)]);
            }
            if self.rule.counts_jobs() {
                events.extend([Event::Arrive(task), Event::Finish(task)]);
            }
            events.extend([Event::Woken(task), Event::Cancel(task)]);
            events.extend([Event::Rebase(task, true), Event::Rebase(task, false)]);
        }
        events
    }

    fn apply(&self, machine: &mut M, shadow: &Shadow, event: Event) -> Answer {
        let task = TaskId::new(event.task());
        answer(|act| match event {
            Event::Arrive(_) => machine.arrive(task, act),
            Event::Finish(_) => machine.finish(task, act),
            Event::Request(_, resource) => machine.request(task, ResourceId::new(resource), act),
            Event::Release(_, resource) => machine.release(task, ResourceId::new(resource), act),
            Event::Woken(_) => machine.woken(task, act),
            Event::Cancel(_) => machine.cancel(task, act),
            Event::Rebase(index, changes) => {
                machine.set_base(task, Priority::base(shadow.new_base(self, index, changes)), act)
            }
        })
    }

    fn refusals(&self, shadow: &Shadow, event: Event) -> Vec<Refusal> {
        shadow.refusals(self, event)
    }

    fn follow(&self, machine: &M, shadow: &mut Shadow, event: Event, actions: &Actions) {
        follow(machine, shadow, self, event, actions);
    }

    /// Tasks that run release what they hold, tasks that are awake try again, then the jobs end.
    fn finish(&self, machine: &M, shadow: &Shadow) {
        let (mut machine, mut shadow) = (machine.clone(), shadow.clone());
        let tasks = 0..self.tasks();
        run(self, (&mut machine, &mut shadow), 100, |shadow| {
            let release = (0..RESOURCES).find_map(|resource| {
                let owner = shadow.owners[resource]?;
                shadow.wants(owner).is_none().then_some(Event::Release(owner, resource))
            });
            let goes_on =
                |&task: &usize| shadow.wants(task).is_some() && matches!(shadow.mode[task], Mode::Awake | Mode::Runs);
            let ends = |&task: &usize| {
                let is_idle = shadow.wants(task).is_none() && !shadow.owners.contains(&Some(task));
                shadow.jobs[task] == Job::Started && is_idle
            };
            release
                .or_else(|| tasks.clone().find(goes_on).map(Event::Woken))
                .or_else(|| tasks.clone().find(ends).map(Event::Finish))
        });
        assert!(shadow.is_over(), "somebody never finishes");
    }

    fn forget(&self, machine: &mut M, shadow: &mut Shadow) {
        machine.forget();
        shadow.forget(self);
    }
}

/// Walks all reachable states, and returns their number.
fn walk_all<M: Walked>(first: M, setting: &Setting, mutation: Mutation<Setting, M>) -> usize {
    assert_eq!(first.counts_jobs(), setting.rule.counts_jobs());
    walk(setting, (first, Shadow::initial(setting)), mutation)
}

fn tasks(setting: &Setting) -> Vec<(Priority, CpuId)> {
    let tasks = setting.bases.iter().zip(setting.cpus);
    tasks.map(|(bases, &cpu)| (Priority::base(bases[0]), CpuId::new(cpu))).collect()
}

fn pcp(setting: &Setting) -> Pcp<TASKS, RESOURCES> {
    Pcp::new(&tasks(setting), &setting.ceilings.map(Priority::base))
}

fn srp(setting: &Setting) -> Srp<TASKS, RESOURCES> {
    Srp::new(&tasks(setting), &setting.ceilings.map(Priority::base))
}

fn mpcp_vs(setting: &Setting) -> MpcpVs<TASKS, RESOURCES> {
    MpcpVs::new(&tasks(setting), &MPCP_CEILINGS)
}

fn dpcp(setting: &Setting) -> Dpcp<TASKS, RESOURCES> {
    let homes: [_; RESOURCES] = core::array::from_fn(|resource| {
        (CpuId::new(setting.homes[resource]), Priority::base(setting.ceilings[resource]))
    });
    Dpcp::new(&tasks(setting), &homes)
}

fn dflp(setting: &Setting) -> Dflp<TASKS, RESOURCES> {
    Dflp::new(&tasks(setting), &setting.homes.map(CpuId::new))
}

fn fmlp_long(setting: &Setting) -> FmlpLong<TASKS, RESOURCES> {
    FmlpLong::new(&tasks(setting), RESOURCES)
}

fn fmlp_plus(setting: &Setting) -> FmlpPlus<TASKS, RESOURCES> {
    FmlpPlus::new(&tasks(setting), RESOURCES)
}

fn fmlp_short(setting: &Setting) -> FmlpShort<TASKS, RESOURCES> {
    FmlpShort::new(&tasks(setting), RESOURCES)
}

fn mrsp(setting: &Setting) -> Mrsp<TASKS, RESOURCES> {
    let users = setting.users.map(|users| users.iter().map(|&user| TaskId::new(user)).collect::<Vec<_>>());
    Mrsp::new(&tasks(setting), users.iter().map(Vec::as_slice))
}

fn omlp(setting: &Setting) -> Omlp<TASKS, RESOURCES> {
    let mut sizes = [1; CPUS_MAX];
    for (known, &size) in sizes.iter_mut().zip(&setting.sizes) {
        *known = size as u8;
    }
    Omlp::new(&tasks(setting), RESOURCES).with_clusters(sizes)
}

/// Every machine has at least this many states; fewer would mean that the walk did not leave the start. (Three tasks
/// whose base priorities stay have a tenth.)
const STATES_LEAST: usize = 1_000;

macro_rules! walks {
    ($($name:ident: $machine:ident, $setting:expr;)*) => {$(
        #[test]
        fn $name() {
            let setting = $setting;
            let states = walk_all($machine(&setting), &setting, unchanged);
            let stays = setting.bases.iter().all(|[first, second]| first == second);
            check_states(stringify!($name), states, if stays { STATES_LEAST / 10 } else { STATES_LEAST });
        }
    )*};
}

/// The settings: two tasks share each processor, or all one.
const fn two(rule: Rule) -> Setting {
    Setting {
        rule,
        cpus: &[0, 0, 1, 1],
        bases: &[[2, 4], [2, 1], [3, 1], [2, 2]],
        ceilings: [3, 2],
        homes: [0, 1],
        users: [&[], &[]],
        sizes: [1; 3],
    }
}

const fn one(rule: Rule) -> Setting {
    Setting { cpus: &[0, 0, 0], bases: &[[2, 4], [2, 1], [3, 1]], ceilings: [2, 4], ..two(rule) }
}

/// A task of another processor, which should not be there, uses the same resources.
const fn one_and_another(rule: Rule) -> Setting {
    Setting { cpus: &[0, 0, 0, 1], bases: &[[2, 4], [2, 1], [3, 3], [2, 2]], ..one(rule) }
}

/// No task is above the ceiling of the second resource; an owner of the first is preempted.
const fn ceilings(rule: Rule) -> Setting {
    Setting { bases: &[[4, 2], [2, 1], [3, 1], [4, 2]], users: [&[1, 2], &[0, 1, 2]], ..two(rule) }
}

/// Two tasks on each of two processors, so that either of two waiters may help.
const fn helped(rule: Rule) -> Setting {
    Setting {
        cpus: &[0, 0, 1, 1],
        bases: &[[2, 4], [2, 1], [2, 3], [4, 1]],
        users: [&[0, 1, 2], &[0, 1, 2, 3]],
        ..two(rule)
    }
}

/// Two tasks on one processor, and one on each of two others.
const fn on_three(rule: Rule) -> Setting {
    Setting { cpus: &[0, 0, 1, 2], ..helped(rule) }
}

/// Both homes are a processor without tasks.
const fn away(rule: Rule) -> Setting {
    Setting { homes: [2, 2], ..two(rule) }
}

/// On each processor another resource has the higher ceiling.
const fn crossed(rule: Rule) -> Setting {
    Setting { bases: &[[2, 3], [4, 1], [2, 3], [4, 2]], users: [&[0, 2, 3], &[0, 1, 2]], ..helped(rule) }
}

/// All tasks are in one cluster of two processors. Base priorities do not change: the rules of donation have no such
/// event.
const fn clustered(rule: Rule) -> Setting {
    Setting { cpus: &[0, 0, 0], bases: &[[2, 2], [1, 1], [3, 3]], sizes: [2, 1, 1], ..two(rule) }
}

/// The same with a fourth task, which can take the place of a lender.
const fn relieved(rule: Rule) -> Setting {
    Setting { cpus: &[0, 0, 0, 0], bases: &[[2, 2], [1, 1], [3, 3], [4, 4]], ..clustered(rule) }
}

/// A cluster of three processors.
const fn in_three(rule: Rule) -> Setting {
    Setting { sizes: [3, 1, 1], ..relieved(rule) }
}

/// A cluster of four processors, and one job more.
const fn in_four(rule: Rule) -> Setting {
    let bases = &[[2, 2], [1, 1], [3, 3], [4, 4], [5, 5]];
    Setting { cpus: &[0, 0, 0, 0, 0], bases, sizes: [4, 1, 1], ..clustered(rule) }
}

/// A cluster of two processors, and one of one.
const fn clusters(rule: Rule) -> Setting {
    Setting { cpus: &[0, 0, 0, 2], bases: &[[2, 2], [1, 1], [3, 3], [2, 2]], ..clustered(rule) }
}

/// Two clusters of two: nobody is displaced, and both may ask on each.
const fn pairs(rule: Rule) -> Setting {
    Setting { cpus: &[0, 0, 2, 2], sizes: [2, 1, 2], ..relieved(rule) }
}

walks! {
    pcp_walks: pcp, one(Rule::Pcp);
    pcp_with_another_processor: pcp, one_and_another(Rule::Pcp);
    srp_walks: srp, one(Rule::Srp);
    srp_with_another_processor: srp, one_and_another(Rule::Srp);
    mpcp_vs_walks: mpcp_vs, two(Rule::MpcpVs);
    dpcp_walks: dpcp, two(Rule::Dpcp);
    dpcp_with_homes_elsewhere: dpcp, away(Rule::Dpcp);
    dflp_walks: dflp, two(Rule::Dflp);
    dflp_with_homes_elsewhere: dflp, away(Rule::Dflp);
    fmlp_long_walks: fmlp_long, two(Rule::FmlpLong);
    fmlp_plus_walks: fmlp_plus, two(Rule::FmlpPlus);
    fmlp_short_walks: fmlp_short, two(Rule::FmlpShort);
    mrsp_walks: mrsp, ceilings(Rule::Mrsp);
    mrsp_with_two_helpers: mrsp, helped(Rule::Mrsp);
    mrsp_on_three_processors: mrsp, on_three(Rule::Mrsp);
    mrsp_with_crossed_ceilings: mrsp, crossed(Rule::Mrsp);
    omlp_walks: omlp, two(Rule::Omlp);
    omlp_in_a_cluster: omlp, clustered(Rule::Omlp);
    omlp_with_relief: omlp, relieved(Rule::Omlp);
    omlp_in_a_cluster_of_three: omlp, in_three(Rule::Omlp);
    omlp_in_a_cluster_of_four: omlp, in_four(Rule::Omlp);
    omlp_in_two_clusters: omlp, clusters(Rule::Omlp);
    omlp_in_pairs: omlp, pairs(Rule::Omlp);
}
