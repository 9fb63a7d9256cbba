//! Global scheduling: hard tests, response times, tardiness.

use crate::{Analysis, Closeness, Input, Malformed, Work};
use lockwright_analysis::global::{
    Blocked, CarryIn, Inherited, bak, bar, bcl, bcl_iterative, bertogna_cirinei, devi_anderson,
    devi_anderson_non_preemptive_as_published, easwaran_andersson, edf, ff_dbf, g_edf, g_fl, g_fl_point, gfb, guan,
    rta,
};
use lockwright_analysis::{Demand, Failure, Sharer, Sharing, Sporadic, uniprocessor};
use lockwright_sim::plain::{Order, Outcome, Periodic, PlainTask, simulate};
use serde_json::{Value, json};

pub(crate) const ANALYSES: &[Analysis] = &[
    equal("schedulable.edf.dispatch(m==1:QPA,m>1:BAK|GFB|RTA|BAR)", dispatch),
    equal("schedulable.g_edf.bar", |input| verdict(input, bar)),
    equal("schedulable.g_edf.all_tests", all_tests),
    equal("rta.g_fp.bertogna_cirinei07", fixed_priority_bertogna_cirinei),
    equal("rta.g_fp.guan09", guan_response_times),
    equal("tardiness.g_edf.devi_anderson", tardiness),
    equal("response.g_edf.gel_compliant_vector_exact", |input| {
        compliant_vector(input, g_edf, |task, _| Some(task.deadline))
    }),
    equal("response.g_fl.gel_compliant_vector_exact", |input| compliant_vector(input, g_fl, g_fl_point)),
    equal("simulate.g_edf.synchronous_periodic", simulation),
    equal("blocking.global_pip.easwaran_andersson09", inheritance),
];

const fn equal(id: &'static str, prepare: fn(&Input) -> Result<Work, Malformed>) -> Analysis {
    Analysis { id, prepare, closeness: Closeness::Equal }
}

/// Returns the tasks without their resources.
fn sporadic(input: &Input) -> Result<Vec<Sporadic>, Malformed> {
    input
        .tasks
        .iter()
        .map(|task| {
            let cost = task.cost.ok_or_else(|| Malformed("a task needs a cost".into()))?;
            Ok(Sporadic { cost, period: task.period, deadline: task.deadline })
        })
        .collect()
}

fn processors(input: &Input) -> Result<u32, Malformed> {
    u32::try_from(input.number("num_cpus")?).map_err(|_| Malformed("params.num_cpus is too large".into()))
}

/// A test of global EDF that returns only a verdict.
type Test = fn(&[Sporadic], u32) -> Result<(), Failure>;

fn verdict(input: &Input, test: Test) -> Result<Work, Malformed> {
    let (tasks, m) = (sporadic(input)?, processors(input)?);
    Ok(Work::new(move || test(&tasks, m).is_ok(), |accepted| json!({ "schedulable": accepted })))
}

fn dispatch(input: &Input) -> Result<Work, Malformed> {
    let test: Test = if processors(input)? == 1 { |tasks, _| uniprocessor::edf::schedulable(tasks, &[]) } else { edf };
    verdict(input, test)
}

fn all_tests(input: &Input) -> Result<Work, Malformed> {
    let (tasks, m) = (sporadic(input)?, processors(input)?);
    let compute = move || {
        let yes = |test: Test| test(&tasks, m).is_ok();
        ([gfb, bak, bcl, bcl_iterative, bar, ff_dbf, edf].map(yes), rta(&tasks, m).ok())
    };
    Ok(Work::new(compute, |([gfb, bak, bcl, bcl_iterative, bar, ff_dbf, any], responses)| {
        json!({
            "gfb": gfb, "bak": bak, "bcl": bcl, "bcl_iterative": bcl_iterative, "rta": responses.is_some(), "bar": bar, "ff_dbf": ff_dbf,
            "any(bak|gfb|rta|bar)": any, "rta_response_bounds": responses,
        })
    }))
}

fn responses(found: &Option<Vec<u64>>) -> Value {
    json!({ "schedulable": found.is_some(), "response_times": found })
}

pub(crate) fn guan_response_times(input: &Input) -> Result<Work, Malformed> {
    let (tasks, m) = (sporadic(input)?, processors(input)?);
    Ok(Work::new(move || guan(&tasks, m).ok(), responses))
}

fn fixed_priority_bertogna_cirinei(input: &Input) -> Result<Work, Malformed> {
    let (tasks, m) = (sporadic(input)?, processors(input)?);
    let blocked: Vec<Blocked> = input
        .tasks
        .iter()
        .map(|task| Blocked { total: task.blocked, urgent: task.hp_direct_blocked.unwrap_or(0) })
        .collect();
    let carry_in = if input.is("dont_use_slack") { CarryIn::Deadlines } else { CarryIn::Responses };
    Ok(Work::new(move || bertogna_cirinei(&tasks, &blocked, m, carry_in).ok(), responses))
}

fn tardiness(input: &Input) -> Result<Work, Malformed> {
    let (tasks, m) = (sporadic(input)?, processors(input)?);
    let x = bound(input, &tasks, m);
    Ok(Work::new(
        move || {
            let x = x()?;
            Some((
                x,
                tasks.iter().map(|task| task.cost + x).collect(),
                tasks.iter().map(|t| t.period + t.cost + x).collect(),
            ))
        },
        |found: &Option<(u64, Vec<u64>, Vec<u64>)>| match found {
            Some((x, tardiness, responses)) => {
                json!({ "schedulable": true, "bounded": true, "x": x, "tardiness": tardiness, "response_times": responses })
            }
            None => {
                json!({ "schedulable": false, "bounded": false, "x": null, "tardiness": null, "response_times": null })
            }
        },
    ))
}

/// The bound of Devi and Anderson. For non-preemptive tasks it is the published form that the examples use.
fn bound(input: &Input, tasks: &[Sporadic], m: u32) -> impl Fn() -> Option<u64> + use<> {
    let preemptive = !input.params.contains_key("preemptive") || input.is("preemptive");
    let tasks = tasks.to_vec();
    move || {
        if preemptive { devi_anderson(&tasks, m) } else { devi_anderson_non_preemptive_as_published(&tasks, m) }.ok()
    }
}

/// Compliant-vector bounds. A bound is y + C + x, where x may be negative if a
/// task's priority point is far. The source of the examples then takes the absolute
/// value of x, and so does this report: the library's bounds are the tighter ones.
fn compliant_vector(
    input: &Input,
    bounds: fn(&[Sporadic], u32) -> Result<Vec<u64>, Failure>,
    point: fn(&Sporadic, u32) -> Option<u64>,
) -> Result<Work, Malformed> {
    let (tasks, m) = (sporadic(input)?, processors(input)?);
    let points: Vec<u64> = tasks.iter().filter_map(|task| point(task, m)).collect();
    let least = points.iter().copied().min().unwrap_or(0);
    let without: Vec<u64> =
        tasks.iter().zip(&points).map(|(task, point)| (point - least).saturating_add(task.cost)).collect();
    Ok(Work::new(
        move || bounds(&tasks, m).ok(),
        move |found| {
            let unsigned = |(&bound, &without): (&u64, &u64)| without + bound.abs_diff(without);
            let told = found.as_ref().map(|all| all.iter().zip(&without).map(unsigned).collect::<Vec<u64>>());
            json!({ "response_times": told })
        },
    ))
}

fn simulation(input: &Input) -> Result<Work, Malformed> {
    let (tasks, m, end) = (sporadic(input)?, processors(input)?, input.number("end")?);
    let x = bound(input, &tasks, m);
    let section = if input.is("preemptive") { 0 } else { u64::MAX };
    let plain: Vec<PlainTask> = tasks
        .iter()
        .map(|task| PlainTask {
            cost: task.cost,
            period: task.period,
            deadline: task.deadline,
            section,
            ..PlainTask::default()
        })
        .collect();
    Ok(Work::new(
        move || (x(), simulate(&plain, m as usize, Order::EarliestDeadline, end, &mut Periodic)),
        |(x, seen): &(Option<u64>, Outcome)| {
            json!({
                "devi_anderson_x": x, "first_miss": seen.first_miss.unwrap_or(0), "max_tardiness": seen.tardiness(), "tardy_jobs": seen.late(),
                "total_tardiness": seen.total_tardiness(), "ok_jobs": seen.jobs() - seen.late(),
            })
        },
    ))
}

fn inheritance(input: &Input) -> Result<Work, Malformed> {
    let m = processors(input)?;
    let mut sharing = Sharing::default();
    for task in &input.tasks {
        let missing = || Malformed("a task needs a priority, a response, and the lengths of its requests".into());
        let requests: Option<Vec<Demand>> = task
            .requests
            .iter()
            .map(|it| it.length.map(|length| Demand { resource: it.resource, count: it.count, length }))
            .collect();
        let priority = task.priority.and_then(|priority| u32::try_from(priority).ok()).ok_or_else(missing)?;
        sharing.tasks.push(Sharer {
            cost: task.cost.ok_or_else(missing)?,
            period: task.period,
            deadline: task.deadline,
            response: task.response.ok_or_else(missing)?,
            priority: u32::MAX - priority,
            cluster: task.cluster.unwrap_or(0),
            requests: requests.ok_or_else(missing)?,
        });
    }
    Ok(Work::new(
        move || easwaran_andersson(&sharing, m),
        |found: &Result<Vec<Inherited>, Failure>| match found {
            Ok(found) => {
                let task = |it: &Inherited| json!({ "total": it.total, "total_count": 0, "remote": 0, "local": it.urgent, "arrival": 0 });
                json!({ "per_task": found.iter().map(task).collect::<Vec<_>>() })
            }
            Err(why) => json!({ "failure": why.to_string() }),
        },
    ))
}
