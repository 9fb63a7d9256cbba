//! One processor: fixed priority, EDF, FIFO, job sets.

use crate::input::InputTask;
use crate::{Analysis, Closeness, Input, Malformed, Work};
use lockwright_analysis::uniprocessor::compositional::{self, Activation, Events, Link};
use lockwright_analysis::uniprocessor::jobs::{self, Job};
use lockwright_analysis::uniprocessor::{Preemption, Task, edf, fifo, fp};
use lockwright_analysis::{Demand, Failure, Sharer, Sharing, Sporadic};
use serde::Deserialize;
use serde_json::{Map, Value, json};

pub(crate) const ANALYSES: &[Analysis] = &[
    equal("rta.p_fp.uniprocessor", fixed_priority),
    equal("rta.fp.dispatch(m==1:uniprocessor,m>1:guan09)", dispatch),
    equal("rta.fp.uniprocessor.fully_preemptive", |input| fp_bounds(input, Mode::Full)),
    equal("rta.fp.uniprocessor.fully_nonpreemptive", |input| fp_bounds(input, Mode::Never)),
    equal("rta.fp.uniprocessor.floating_nonpreemptive", |input| fp_bounds(input, Mode::Floating)),
    equal("rta.fp.uniprocessor.limited_preemptive", |input| fp_bounds(input, Mode::Limited)),
    equal("rta.edf.uniprocessor.fully_preemptive", |input| edf_bounds(input, Mode::Full)),
    equal("rta.edf.uniprocessor.fully_nonpreemptive", |input| edf_bounds(input, Mode::Never)),
    equal("rta.edf.uniprocessor.floating_nonpreemptive", |input| edf_bounds(input, Mode::Floating)),
    equal("rta.edf.uniprocessor.limited_preemptive", |input| edf_bounds(input, Mode::Limited)),
    equal("rta.fifo.uniprocessor", fifo_bound),
    equal("schedulable.edf.uniprocessor.qpa", demand),
    equal("rta.edf.uniprocessor.guan_yi_exact", |input| edf_times(input, edf::response_times)),
    equal("rta.edf.uniprocessor.guan_yi_approx", |input| edf_times(input, edf::approximate_response_times)),
    equal("schedulable.p_edf.msrp.classic_qpa", msrp),
    equal("schedulable.nonpreemptive_jobs.uniprocessor.exact(JLFP, no idle-time insertion)", job_set),
    equal("schedulable.nonpreemptive_jobs.global.sufficient", job_set),
    equal("cpa.spp.two_resources_event_model_propagation", chains),
];

const fn equal(id: &'static str, prepare: fn(&Input) -> Result<Work, Malformed>) -> Analysis {
    Analysis { id, prepare, closeness: Closeness::Equal }
}

fn cost(task: &InputTask) -> Result<u64, Malformed> {
    task.cost.ok_or_else(|| Malformed("a task has no cost".into()))
}

fn sporadic(input: &Input) -> Result<Vec<Sporadic>, Malformed> {
    let one = |task: &InputTask| Ok(Sporadic { cost: cost(task)?, period: task.period, deadline: task.deadline });
    input.tasks.iter().map(one).collect()
}

/// Returns the response times if all are within the deadlines.
fn verdict(responses: &Result<Vec<u64>, Failure>) -> Value {
    match responses {
        Ok(responses) => json!({ "schedulable": true, "response_times": responses }),
        Err(_) => json!({ "schedulable": false }),
    }
}

fn bounds(responses: &[Result<u64, Failure>]) -> Value {
    json!({ "response_times": responses.iter().map(|response| response.ok()).collect::<Vec<_>>() })
}

/// Fixed priorities. If `blocked` is given, it includes the suspended time, and the difference is the blocking of a
/// job. Otherwise `prio_inversion` is its blocking.
fn fixed_priority(input: &Input) -> Result<Work, Malformed> {
    // The test of the source is for one processor and constrained deadlines, and refuses everything else.
    let refused = input.params.get("num_cpus").is_some_and(|m| m.as_u64() != Some(1))
        || input.tasks.iter().any(|task| task.deadline > task.period);
    let total = input.tasks.iter().any(|task| task.blocked > 0);
    let mut tasks = Vec::new();
    for (index, task) in input.tasks.iter().enumerate() {
        tasks.push(Task {
            cost: cost(task)?,
            period: task.period,
            deadline: task.deadline,
            jitter: task.jitter,
            blocking: if total { task.blocked.saturating_sub(task.suspended) } else { task.prio_inversion },
            suspension: task.suspended,
            priority: (input.tasks.len() - index) as u32,
            preemption: Preemption::Full,
        });
    }
    let compute = move || if refused { Err(Failure::Overload) } else { fp::response_times(&tasks) };
    Ok(Work::new(compute, verdict))
}

fn dispatch(input: &Input) -> Result<Work, Malformed> {
    if input.number("num_cpus")? == 1 { fixed_priority(input) } else { crate::global::guan_response_times(input) }
}

#[derive(Clone, Copy)]
enum Mode {
    Full,
    Never,
    Floating,
    Limited,
}

/// Returns the tasks, the most urgent first, with their places in
/// the input. A greater number is a more urgent priority here.
fn segmented(input: &Input, mode: Mode) -> Result<(Vec<Task>, Vec<usize>), Malformed> {
    let mut order: Vec<usize> = (0..input.tasks.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(input.tasks[index].priority));
    let mut tasks = Vec::new();
    for &index in &order {
        let task = &input.tasks[index];
        let segment = || task.segment.ok_or_else(|| Malformed("a task has no segment".into()));
        let last = || task.last_segment.ok_or_else(|| Malformed("a task has no last_segment".into()));
        let priority = u32::try_from(task.priority.unwrap_or(0)).map_err(|why| Malformed(why.to_string()))?;
        tasks.push(Task {
            cost: cost(task)?,
            period: task.period,
            deadline: task.deadline,
            jitter: task.jitter,
            priority,
            preemption: match mode {
                Mode::Full => Preemption::Full,
                Mode::Never => Preemption::Never,
                Mode::Floating => Preemption::Floating { longest: segment()? },
                Mode::Limited => Preemption::Limited { longest: segment()?, last: last()? },
            },
            ..Task::default()
        });
    }
    Ok((tasks, order))
}

fn horizon(input: &Input) -> u64 {
    input.number("horizon").unwrap_or(u64::MAX)
}

/// Returns the values in the order of the input.
fn back<T: Copy>(order: &[usize], sorted: &[T]) -> Vec<T> {
    let mut all: Vec<(usize, T)> = order.iter().copied().zip(sorted.iter().copied()).collect();
    all.sort_by_key(|&(index, _)| index);
    all.into_iter().map(|(_, value)| value).collect()
}

/// Fixed priorities. The response times of these examples count from the release.
fn fp_bounds(input: &Input, mode: Mode) -> Result<Work, Malformed> {
    let ((tasks, order), horizon) = (segmented(input, mode)?, horizon(input));
    let jitters: Vec<u64> = tasks.iter().map(|task| task.jitter).collect();
    Ok(Work::new(
        move || fp::response_bounds(&tasks, horizon),
        move |responses| {
            let responses: Vec<_> =
                responses.iter().zip(&jitters).map(|(response, jitter)| response.map(|r| r - jitter)).collect();
            bounds(&back(&order, &responses))
        },
    ))
}

fn edf_bounds(input: &Input, mode: Mode) -> Result<Work, Malformed> {
    let ((tasks, order), horizon) = (segmented(input, mode)?, horizon(input));
    Ok(Work::new(
        move || edf::response_bounds(&tasks, horizon),
        move |responses| {
            let one = |index: usize| responses.as_ref().map(|all| all[index]).map_err(|&why| why);
            bounds(&back(&order, &(0..order.len()).map(one).collect::<Vec<_>>()))
        },
    ))
}

fn fifo_bound(input: &Input) -> Result<Work, Malformed> {
    let ((tasks, _), horizon) = (segmented(input, Mode::Full)?, horizon(input));
    let count = tasks.len();
    Ok(Work::new(
        move || fifo::response_bound(&tasks, horizon),
        move |bound| {
            let bound = bound.ok();
            json!({ "response_time_all_tasks": bound, "response_times": vec![bound; count] })
        },
    ))
}

fn demand(input: &Input) -> Result<Work, Malformed> {
    let tasks = sporadic(input)?;
    Ok(Work::new(move || edf::schedulable(&tasks, &[]), |met| json!({ "schedulable": met.is_ok() })))
}

fn edf_times(input: &Input, test: fn(&[Task]) -> Result<Vec<u64>, Failure>) -> Result<Work, Malformed> {
    let tasks: Vec<Task> = sporadic(input)?.into_iter().map(Task::from).collect();
    Ok(Work::new(move || test(&tasks), verdict))
}

fn msrp(input: &Input) -> Result<Work, Malformed> {
    let mut sharing = Sharing::default();
    for task in &input.tasks {
        let cluster = task.cluster.or(task.partition);
        let mut requests = Vec::new();
        for request in &task.requests {
            let length = request.length.ok_or_else(|| Malformed("a request has no length".into()))?;
            requests.push(Demand { resource: request.resource, count: request.count, length });
        }
        sharing.tasks.push(Sharer {
            cost: cost(task)?,
            period: task.period,
            deadline: task.deadline,
            response: task.response.unwrap_or(task.deadline),
            cluster: cluster.ok_or_else(|| Malformed("a task has no cluster".into()))?,
            requests,
            ..Sharer::default()
        });
    }
    let mut clusters: Vec<u16> = sharing.tasks.iter().map(|task| task.cluster).collect();
    clusters.sort_unstable();
    clusters.dedup();
    let compute = move || {
        clusters.iter().try_for_each(|&cluster| {
            let (tasks, blocking) = edf::msrp(&sharing, cluster)?;
            edf::schedulable(&tasks, &blocking)
        })
    };
    Ok(Work::new(compute, |met| json!({ "schedulable": met.is_ok() })))
}

fn rest<T: for<'a> Deserialize<'a>>(input: &Input, name: &str) -> Result<T, Malformed> {
    let value = input.rest.get(name).ok_or_else(|| Malformed(format!("the field {name} is missing")))?;
    T::deserialize(value).map_err(|why| Malformed(why.to_string()))
}

#[derive(Deserialize, Clone)]
struct InputJob {
    task: u64,
    job: u64,
    arrival_min: u64,
    arrival_max: u64,
    cost_min: u64,
    cost_max: u64,
    deadline: u64,
    priority: u64,
}

/// Job sets. Among equal jobs, the smaller task number and then the smaller job number is more urgent.
fn job_set(input: &Input) -> Result<Work, Malformed> {
    let given: Vec<InputJob> = rest(input, "jobs")?;
    let processors = input.number("num_cpus")? as usize;
    let mut order: Vec<usize> = (0..given.len()).collect();
    order.sort_by_key(|&index| (given[index].task, given[index].job));
    let one = |&index: &usize| {
        let job = &given[index];
        Job {
            release_min: job.arrival_min,
            release_max: job.arrival_max,
            cost_min: job.cost_min,
            cost_max: job.cost_max,
            deadline: job.deadline,
            priority: u64::MAX - job.priority,
        }
    };
    let jobs: Vec<Job> = order.iter().map(one).collect();
    Ok(Work::new(
        move || jobs::completions(&jobs, processors),
        move |found| match found {
            Err(_) => json!({ "schedulable": false, "note": "analysis stops at the first possible deadline miss" }),
            Ok(found) => {
                let told = given.iter().zip(back(&order, found)).map(|(job, done)| {
                    json!({
                        "task": job.task, "job": job.job,
                        "best_completion": done.best, "worst_completion": done.worst,
                        "best_response": done.best.saturating_sub(job.arrival_min),
                        "worst_response": done.worst - job.arrival_min,
                    })
                });
                json!({ "schedulable": true, "jobs": told.collect::<Vec<_>>() })
            }
        },
    ))
}

#[derive(Deserialize)]
struct InputProcessor {
    policy: String,
    tasks: Vec<InputLink>,
}

#[derive(Deserialize)]
struct InputLink {
    name: String,
    wcet: u64,
    bcet: u64,
    priority: u32,
    activation: Option<InputEvents>,
    activated_by: Option<String>,
}

#[derive(Deserialize)]
struct InputEvents {
    #[serde(rename = "P")]
    period: u64,
    #[serde(rename = "J", default)]
    jitter: u64,
    #[serde(rename = "dmin", default)]
    distance: u64,
}

fn chains(input: &Input) -> Result<Work, Malformed> {
    let processors: Vec<InputProcessor> = rest(input, "resources")?;
    let given: Vec<(u16, &InputLink)> =
        (0..).zip(&processors).flat_map(|(at, processor)| processor.tasks.iter().map(move |task| (at, task))).collect();
    if processors.iter().any(|processor| processor.policy != "static priority preemptive") {
        return Err(Malformed("a resource's policy is not `static priority preemptive`".into()));
    }
    let names: Vec<String> = given.iter().map(|(_, task)| task.name.clone()).collect();
    let mut tasks = Vec::new();
    for (processor, task) in given {
        let activation = match (&task.activation, &task.activated_by) {
            (Some(events), None) => {
                Activation::Source(Events { period: events.period, jitter: events.jitter, distance: events.distance })
            }
            (None, Some(before)) => Activation::After(
                names
                    .iter()
                    .position(|name| name == before)
                    .ok_or_else(|| Malformed(format!("no task is called {before}")))?,
            ),
            _ => return Err(Malformed(format!("{} must have exactly one activation", task.name))),
        };
        let priority = u32::MAX - task.priority;
        tasks.push(Link { cost: task.wcet, cost_min: task.bcet, processor, priority, activation });
    }
    Ok(Work::new(
        move || compositional::response_times(&tasks),
        move |found| {
            let Ok(found) = found else { return json!({ "schedulable": false }) };
            let (mut worst, mut busy) = (Map::new(), Map::new());
            for (name, response) in names.iter().zip(found) {
                worst.insert(name.clone(), json!(response.worst));
                busy.insert(name.clone(), json!(response.busy));
            }
            json!({ "wcrt": worst, "busy_times": busy })
        },
    ))
}
