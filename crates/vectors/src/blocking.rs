//! Blocking under locking protocols, and response times with it.

use crate::{Analysis, Closeness, Input, Malformed, Work};
use lockwright_analysis::blocking::{
    Delay, DelayBounds, Platform, Responses, dpcp, fmlp, joint, mpcp, mrsp, msrp, omlp, spin,
};
use lockwright_analysis::{Demand, Failure, Sharer, Sharing};
use serde_json::{Value, json};

const fn exact(id: &'static str, prepare: fn(&Input) -> Result<Work, Malformed>) -> Analysis {
    Analysis { id, prepare, closeness: Closeness::Equal }
}

pub(crate) const ANALYSES: &[Analysis] = &[
    exact("blocking.mpcp.lakshmanan09", mpcp_lakshmanan),
    exact("blocking.dpcp.classic", dpcp_classic),
    exact("blocking.fmlp_long.global.s_oblivious", |input| obliviously(input, |set, _| fmlp::fmlp_long(set))),
    exact("blocking.fmlp_plus.partitioned.s_aware", fmlp_plus),
    exact("blocking.omlp.global.s_oblivious", |input| {
        let processors = number(input, "num_cpus")?;
        obliviously(input, move |set, _| omlp::global(set, processors))
    }),
    exact("blocking.omlp.partitioned.s_oblivious", |input| obliviously(input, omlp::clustered)),
    exact("blocking.omlp.clustered.s_oblivious", |input| {
        let (set, platform) = (sharing(input)?, platform(input)?);
        Ok(blocking(move || omlp::clustered(&set, platform), Shape::Whole))
    }),
    exact("blocking.omlp.clustered_k_exclusion.s_oblivious", |input| {
        let units = by_resource(input, "replicas", 1)?;
        obliviously(input, move |set, platform| omlp::clustered_k_exclusion(set, platform, &units))
    }),
    exact("blocking.omlp.clustered_rw.s_oblivious", |input| readers_writers(input, omlp::clustered_readers_writers)),
    exact("blocking.spin.phase_fair_rw", |input| readers_writers(input, spin::phase_fair)),
    exact("blocking.spin.task_fair_rw", |input| readers_writers(input, spin::task_fair)),
    exact("blocking.spin.fifo_nonpreemptive.holistic", |input| {
        let (set, platform) = (sharing(input)?, platform(input)?);
        Ok(blocking(move || spin::fifo(&set, platform), Shape::Whole))
    }),
    exact("blocking.msrp.holistic", |input| {
        let (set, platform) = (sharing(input)?, platform(input)?);
        Ok(blocking(move || msrp::holistic(&set, platform.interrupts), Shape::Whole))
    }),
    exact("blocking.msrp.classic", |input| {
        let set = sharing(input)?;
        Ok(blocking(move || msrp::classic(&set), Shape::ArrivalIsLocal))
    }),
    exact("rta.p_fp.with_blocking.msrp.original", |input| holding(input, msrp::original)),
    exact("rta.p_fp.with_blocking.mrsp.original_burns_wellings13", |input| holding(input, mrsp::original)),
    exact("rta.p_fp.with_blocking.mrsp.zhao17", |input| holding(input, |set| mrsp::zhao(set, mrsp::Access::Helped))),
    exact("rta.p_fp.with_blocking.spin.fifo_nonpreemptive.zhao17", |input| {
        holding(input, |set| mrsp::zhao(set, mrsp::Access::NonPreemptive))
    }),
    exact("rta.p_fp.with_blocking.spin.fifo_preemptable.zhao17", |input| {
        holding(input, |set| mrsp::zhao(set, mrsp::Access::Preemptable))
    }),
    exact("rta.p_fp.with_blocking.mpcp.lakshmanan09", |input| {
        responses(input, |set| mpcp::Mpcp::new(set, mpcp::Waiting::Suspended, mpcp::CarryIn::OneJob))
    }),
    exact("rta.p_fp.with_blocking.mpcp.virtual_spinning", |input| {
        responses(input, |set| mpcp::Mpcp::new(set, mpcp::Waiting::Virtual, mpcp::CarryIn::OneJob))
    }),
    exact("rta.p_fp.with_blocking.dpcp.classic", |input| {
        let homes = by_resource(input, "resource_location", 0)?;
        responses(input, move |set| dpcp::Dpcp::new(set, &homes))
    }),
    exact("rta.p_fp.with_blocking.fmlp_plus.partitioned", |input| {
        responses(input, |set| fmlp::FmlpPlus::new(set, fmlp::Sections::Preemptive))
    }),
    exact("rta.p_fp.with_blocking.fmlp_plus.partitioned.nonpreemptive", |input| {
        responses(input, |set| fmlp::FmlpPlus::new(set, fmlp::Sections::NonPreemptive))
    }),
    exact("rta.p_fp.with_blocking.spin.fifo_nonpreemptive.holistic", |input| {
        let platform = platform(input)?;
        responses(input, move |set| spin::Fifo::new(set, platform))
    }),
    exact("rta.p_fp.with_blocking.msrp.holistic", |input| responses(input, |set| msrp::protocol(set, None))),
];

/// The value of an unbounded wait in the examples.
const UNBOUNDED: u64 = 4_294_967_295;

/// The parts of a bound that an example reports.
#[derive(Clone, Copy)]
enum Shape {
    /// All parts.
    Whole,
    /// The total and the blocking at arrival, without the remote and the local part.
    TotalAndArrival,
    /// The blocking at arrival is reported as local.
    ArrivalIsLocal,
}

fn mpcp_lakshmanan(input: &Input) -> Result<Work, Malformed> {
    let set = sharing(input)?;
    let waiting = if input.is("virtual_spinning") { mpcp::Waiting::Virtual } else { mpcp::Waiting::Suspended };
    Ok(blocking(move || mpcp::mpcp(&set, waiting, mpcp::CarryIn::OneJob), Shape::Whole))
}

fn dpcp_classic(input: &Input) -> Result<Work, Malformed> {
    let (set, homes) = (sharing(input)?, by_resource(input, "resource_location", 0)?);
    Ok(blocking(move || dpcp::dpcp(&set, &homes), Shape::Whole))
}

fn fmlp_plus(input: &Input) -> Result<Work, Malformed> {
    let set = sharing(input)?;
    let preemptive = input.params.get("preemptive").and_then(Value::as_bool).unwrap_or(true);
    let sections = if preemptive { fmlp::Sections::Preemptive } else { fmlp::Sections::NonPreemptive };
    Ok(blocking(move || fmlp::fmlp_plus(&set, sections), Shape::Whole))
}

/// Suspension-oblivious analyses, whose parts are not reported.
fn obliviously(
    input: &Input,
    bound: impl Fn(&Sharing, Platform) -> Result<Vec<Delay>, Failure> + 'static,
) -> Result<Work, Malformed> {
    let (set, platform) = (sharing(input)?, platform(input)?);
    Ok(blocking(move || bound(&set, platform), Shape::TotalAndArrival))
}

fn readers_writers(
    input: &Input,
    bound: fn(&spin::ReadersWriters, Platform) -> Result<Vec<Delay>, Failure>,
) -> Result<Work, Malformed> {
    let platform = platform(input)?;
    let mut set = spin::ReadersWriters { tasks: sharing_of(input, "write")?.tasks, reads: Vec::new() };
    set.reads = sharing_of(input, "read")?.tasks.into_iter().map(|task| task.requests).collect();
    Ok(blocking(move || bound(&set, platform), Shape::TotalAndArrival))
}

fn blocking(compute: impl Fn() -> Result<Vec<Delay>, Failure> + 'static, shape: Shape) -> Work {
    Work::new(compute, move |delays| match delays {
        Ok(delays) => json!({"per_task": delays.iter().map(|delay| of_task(delay, shape)).collect::<Vec<_>>()}),
        Err(why) => json!({"error": why.to_string()}),
    })
}

fn of_task(delay: &Delay, shape: Shape) -> Value {
    let remote = delay.remote.unwrap_or(UNBOUNDED);
    let total = remote + delay.local + delay.arrival;
    let (remote, local, arrival) = match shape {
        Shape::Whole => (remote, delay.local, delay.arrival),
        Shape::TotalAndArrival => (0, 0, delay.arrival),
        Shape::ArrivalIsLocal => (remote, delay.arrival, 0),
    };
    json!({"total": total, "total_count": delay.requests, "remote": remote, "local": local, "arrival": arrival})
}

/// Response times and blocking together.
pub(crate) fn responses<P: DelayBounds + 'static>(
    input: &Input,
    protocol: impl Fn(&Sharing) -> Result<P, Failure> + 'static,
) -> Result<Work, Malformed> {
    let set = sharing(input)?;
    let compute = move || -> Result<Responses, Failure> { joint(&set, &mut protocol(&set)?) };
    Ok(Work::new(compute, |found| match found {
        Ok(found) => {
            json!({"schedulable": true, "response_times": found.responses, "outer_iterations": found.rounds})
        }
        Err(why) => json!({"schedulable": false, "why": why.to_string()}),
    }))
}

/// Analyses in which sections are not part of the cost, and all sections of a resource have the same length.
fn holding(input: &Input, analysis: fn(&Sharing) -> Result<mrsp::Answer, Failure>) -> Result<Work, Malformed> {
    let set = with_resources(input)?;
    Ok(Work::new(
        move || analysis(&set),
        |found| match found {
            Ok(found) => json!({
                "schedulable": true,
                "response_times": found.responses,
                "arrival_blocking": found.arrivals,
                "own_resource_access_or_spin": found.accesses,
            }),
            Err(why) => json!({"schedulable": false, "why": why.to_string()}),
        },
    ))
}

fn with_resources(input: &Input) -> Result<Sharing, Malformed> {
    let resources = input.rest.get("resources").and_then(Value::as_array);
    let resources = resources.ok_or_else(|| Malformed("resources must be a list".into()))?;
    let length = |id: u16| {
        let resource = resources.iter().find(|resource| resource["id"].as_u64() == Some(u64::from(id)));
        resource.and_then(|resource| resource["length"].as_u64())
    };
    let mut tasks = Vec::new();
    for task in &input.tasks {
        let alone = task.cost_excluding_critical_sections;
        let mut cost = alone.ok_or_else(|| Malformed("a task needs cost_excluding_critical_sections".into()))?;
        let mut requests = Vec::new();
        for request in &task.requests {
            let length = length(request.resource)
                .ok_or_else(|| Malformed(format!("resource {} needs a length", request.resource)))?;
            cost += u64::from(request.count) * length;
            requests.push(Demand { resource: request.resource, count: request.count, length });
        }
        // In these examples a greater number is more urgent.
        let priority = task.priority.and_then(|priority| u32::try_from(priority).ok());
        tasks.push(Sharer {
            cost,
            period: task.period,
            deadline: task.deadline,
            response: 0,
            priority: priority.ok_or_else(|| Malformed("a task needs a priority of at most 32 bits".into()))?,
            cluster: task.partition.or(task.cluster).unwrap_or(0),
            requests,
        });
    }
    Ok(Sharing { tasks })
}

/// Returns the tasks with their requests.
pub(crate) fn sharing(input: &Input) -> Result<Sharing, Malformed> {
    sharing_of(input, "")
}

/// Returns the tasks with their requests of one kind, or of all kinds if `kind` is empty.
fn sharing_of(input: &Input, kind: &str) -> Result<Sharing, Malformed> {
    let mut tasks = Vec::with_capacity(input.tasks.len());
    for (index, task) in input.tasks.iter().enumerate() {
        let mut requests = Vec::with_capacity(task.requests.len());
        for request in &task.requests {
            if !kind.is_empty() && request.kind.as_deref().unwrap_or("write") != kind {
                continue;
            }
            let length = request.length.ok_or_else(|| Malformed("a request needs a length".into()))?;
            requests.push(Demand { resource: request.resource, count: request.count, length });
        }
        let priority = task.priority.unwrap_or(index as u64);
        let priority = u32::try_from(priority).map_err(|_| Malformed("a priority has more than 32 bits".into()))?;
        let cost = task.cost.unwrap_or(0);
        tasks.push(Sharer {
            cost,
            period: task.period,
            deadline: task.deadline,
            response: task.response.unwrap_or(cost),
            priority: u32::MAX - priority,
            cluster: task.cluster.or(task.partition).unwrap_or(0),
            requests,
        });
    }
    Ok(Sharing { tasks })
}

/// Returns the platform, with as many clusters as the tasks name.
fn platform(input: &Input) -> Result<Platform, Malformed> {
    let processors = match input.params.get("procs_per_cluster") {
        Some(_) => number(input, "procs_per_cluster")?,
        None => 1,
    };
    let of = input.tasks.iter().map(|task| task.cluster.or(task.partition).unwrap_or(0).saturating_add(1));
    let interrupts = input.params.get("dedicated_irq_cluster").and_then(Value::as_u64);
    let interrupts = interrupts.and_then(|cluster| u16::try_from(cluster).ok());
    Ok(Platform { clusters: of.max().unwrap_or(0), processors, interrupts })
}

fn number<T: TryFrom<u64>>(input: &Input, name: &str) -> Result<T, Malformed> {
    T::try_from(input.number(name)?).map_err(|_| Malformed(format!("params.{name} is too large")))
}

/// Returns a parameter that has a number for each resource.
pub(crate) fn by_resource<T: TryFrom<u64> + Copy>(input: &Input, name: &str, default: T) -> Result<Vec<T>, Malformed> {
    let malformed = || Malformed(format!("params.{name} must have a number for each resource"));
    let map = input.params.get(name).and_then(Value::as_object).ok_or_else(malformed)?;
    let mut all = Vec::new();
    for (resource, value) in map {
        let resource = usize::from(resource.parse::<u16>().map_err(|_| malformed())?);
        if all.len() <= resource {
            all.resize(resource + 1, default);
        }
        let value = value.as_u64().and_then(|value| T::try_from(value).ok());
        all[resource] = value.ok_or_else(malformed)?;
    }
    Ok(all)
}
