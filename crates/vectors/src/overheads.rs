//! Overhead accounting.

use crate::{Analysis, Closeness, Input, Malformed, Work};
use lockwright_analysis::overheads::jlfp::{self, Interrupts};
use lockwright_analysis::overheads::locking::{self, Semaphore};
use lockwright_analysis::overheads::{CacheDelay, Costs, Curve, Task, fp};
use lockwright_analysis::{Demand, Failure};
use serde_json::{Map, Value, json};

const fn exact(id: &'static str, prepare: fn(&Input) -> Result<Work, Malformed>) -> Analysis {
    Analysis { id, prepare, closeness: Closeness::Equal }
}

pub(crate) const ANALYSES: &[Analysis] = &[
    exact("overheads.jlfp.preemption_centric", jlfp_charge),
    exact("overheads.jlfp.preemption_centric.quantised", |input| {
        let (platform, tasks) = (Platform::of(input)?, tasks(input)?);
        Ok(charged(move || {
            let charged = jlfp::charge(&platform.overheads, platform.interrupts, &tasks)?;
            jlfp::quantise(&charged, &tasks)
        }))
    }),
    exact("overheads.fp.pseudo_tasks", fp_charge),
    exact("overheads.locking.spin", |input| {
        let (platform, tasks) = (Platform::of(input)?, tasks(input)?);
        Ok(charged(move || locking::spin(&platform.overheads, &tasks)))
    }),
    exact("overheads.locking.semaphore(preemptive=True,suspension_aware=True)", |input| semaphore(input, true, true)),
    exact("overheads.locking.semaphore(preemptive=True,suspension_aware=False)", |input| semaphore(input, true, false)),
    exact("overheads.locking.semaphore(preemptive=False,suspension_aware=True)", |input| semaphore(input, false, true)),
    exact("overheads.locking.semaphore(preemptive=False,suspension_aware=False)", |input| {
        semaphore(input, false, false)
    }),
    exact("overheads.locking.dpcp", |input| {
        let (platform, tasks) = (Platform::of(input)?, tasks(input)?);
        Ok(charged(move || locking::dpcp(&platform.overheads, &tasks)))
    }),
    exact("overheads.model.piecewise_linear_monotone", |input| {
        let points = input.rest.get("points").ok_or_else(|| Malformed("the field points is missing".into()))?;
        values(input, CacheDelay { levels: vec![curve(points)?] })
    }),
    exact("overheads.cache_delay.max_over_levels", |input| {
        let levels = input.rest.get("points").and_then(Value::as_object);
        let levels = levels.ok_or_else(|| Malformed("points must have a list for each level".into()))?;
        values(input, CacheDelay { levels: levels.values().map(curve).collect::<Result<_, _>>()? })
    }),
];

fn jlfp_charge(input: &Input) -> Result<Work, Malformed> {
    let (platform, tasks) = (Platform::of(input)?, tasks(input)?);
    let kept = tasks.clone();
    Ok(Work::new(
        move || jlfp::charge(&platform.overheads, platform.interrupts, &tasks),
        move |charged| match charged {
            Ok(charged) => {
                let tasks: Vec<Value> = charged
                    .iter()
                    .zip(&kept)
                    .map(|(charged, task)| {
                        json!({
                            "period": charged.period.to_f64(),
                            "cost": charged.cost.to_f64(),
                            "deadline": charged.deadline.to_f64(),
                            "jitter": task.jitter,
                            "suspended": task.suspended,
                            "requests": requests(task),
                        })
                    })
                    .collect();
                json!({"feasible": true, "tasks": tasks})
            }
            Err(why) => json!({"feasible": false, "why": why.to_string()}),
        },
    ))
}

fn fp_charge(input: &Input) -> Result<Work, Malformed> {
    let (platform, tasks) = (Platform::of(input)?, tasks(input)?);
    Ok(Work::new(
        move || fp::charge(&platform.overheads, platform.interrupts.dedicated, &tasks),
        |charged| match charged {
            Ok(charged) => {
                let all: Vec<Value> = charged.interrupts.iter().chain(&charged.tasks).map(told).collect();
                json!({"tasks_with_isr_pseudo_tasks": all})
            }
            Err(why) => json!({"why": why.to_string()}),
        },
    ))
}

fn semaphore(input: &Input, preemptive: bool, suspension_aware: bool) -> Result<Work, Malformed> {
    let (platform, tasks) = (Platform::of(input)?, tasks(input)?);
    let kind = Semaphore { preemptive, suspension_aware };
    Ok(charged(move || locking::semaphore(&platform.overheads, kind, &tasks).map(|charged| charged.tasks)))
}

fn charged(compute: impl Fn() -> Result<Vec<Task>, Failure> + 'static) -> Work {
    Work::new(compute, |tasks| match tasks {
        Ok(tasks) => json!({"feasible": true, "tasks": tasks.iter().map(told).collect::<Vec<_>>()}),
        Err(why) => json!({"feasible": false, "why": why.to_string()}),
    })
}

fn told(task: &Task) -> Value {
    json!({
        "period": task.period,
        "cost": task.cost,
        "deadline": task.deadline,
        "jitter": task.jitter,
        "suspended": task.suspended,
        "requests": requests(task),
    })
}

fn requests(task: &Task) -> Vec<Value> {
    let tell = |demand: &Demand| json!({"resource": demand.resource, "count": demand.count, "length": demand.length});
    task.requests.iter().map(tell).collect()
}

fn values(input: &Input, delay: CacheDelay) -> Result<Work, Malformed> {
    let query = input.rest.get("query").and_then(Value::as_array);
    let query: Option<Vec<u64>> = query.and_then(|query| query.iter().map(Value::as_u64).collect());
    let query = query.ok_or_else(|| Malformed("query must be a list of numbers".into()))?;
    Ok(Work::new(
        move || query.iter().map(|x| delay.at(*x)).collect::<Vec<_>>(),
        |values| json!({"values": values.iter().map(|value| value.to_f64()).collect::<Vec<_>>()}),
    ))
}

struct Platform {
    overheads: Costs,
    interrupts: Interrupts,
}

impl Platform {
    fn of(input: &Input) -> Result<Self, Malformed> {
        let all = input.params.get("overheads").and_then(Value::as_object);
        let all = all.ok_or_else(|| Malformed("params.overheads is missing".into()))?;
        let constant = |name: &str| number(all, name).map(Curve::constant);
        let mut overheads = Costs::default();
        overheads.quantum = number(all, "quantum_length")?;
        overheads.tick = constant("tick")?;
        overheads.release = constant("release")?;
        overheads.release_latency = constant("release_latency")?;
        overheads.schedule = constant("schedule")?;
        overheads.context_switch = constant("ctx_switch")?;
        overheads.ipi_latency = constant("ipi_latency")?;
        overheads.lock = constant("lock")?;
        overheads.unlock = constant("unlock")?;
        overheads.read_lock = constant("read_lock")?;
        overheads.read_unlock = constant("read_unlock")?;
        overheads.syscall_in = constant("syscall_in")?;
        overheads.syscall_out = constant("syscall_out")?;
        overheads.cache = CacheDelay { levels: vec![constant("cache_affinity_loss")?] };
        let processors = u16::try_from(input.number("num_cpus")?);
        let processors = processors.map_err(|_| Malformed("params.num_cpus is too large".into()))?;
        Ok(Self { overheads, interrupts: Interrupts { processors, dedicated: input.is("dedicated_irq") } })
    }
}

fn number(of: &Map<String, Value>, name: &str) -> Result<u64, Malformed> {
    let malformed = || Malformed(format!("params.overheads.{name} must be a number"));
    of.get(name).and_then(Value::as_u64).ok_or_else(malformed)
}

fn curve(points: &Value) -> Result<Curve, Malformed> {
    let points: Vec<(u64, u64)> =
        serde_json::from_value(points.clone()).map_err(|why| Malformed(format!("points: {why}")))?;
    Curve::through(&points).map_err(|why| Malformed(why.to_string()))
}

fn tasks(input: &Input) -> Result<Vec<Task>, Malformed> {
    let task = |task: &crate::input::InputTask| {
        let demand = |request: &crate::input::InputRequest| {
            let length = request.length.ok_or_else(|| Malformed("a request needs a length".into()))?;
            Ok(Demand { resource: request.resource, count: request.count, length })
        };
        Ok(Task {
            cost: task.cost.ok_or_else(|| Malformed("a task needs a cost".into()))?,
            period: task.period,
            deadline: task.deadline,
            jitter: task.jitter,
            suspended: task.suspended,
            working_set: 0,
            requests: task.requests.iter().map(demand).collect::<Result<_, Malformed>>()?,
            reads: Vec::new(),
        })
    };
    input.tasks.iter().map(task).collect()
}
