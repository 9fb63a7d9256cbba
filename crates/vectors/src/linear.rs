//! Bounds by linear programs.

use crate::input::{InputRequest, InputTask};
use crate::{Analysis, Closeness, Input, Malformed, Work};
use lockwright_analysis::linear::{self, Blocked, Edf, Global, Locking, Policy, Section};
use lockwright_analysis::{Demand, Failure, Sharer, Sharing};
use serde_json::{Value, json};

/// The source rounds each term.
const ROUNDED: Closeness = Closeness::Within(1);

pub(crate) const ANALYSES: &[Analysis] = &[
    Analysis { id: "blocking.mpcp.lp_rtas13", prepare: |input| split(input, linear::mpcp), closeness: ROUNDED },
    Analysis {
        id: "blocking.fmlp_plus.partitioned.lp_rtas13",
        prepare: |input| split(input, linear::fmlp_plus),
        closeness: ROUNDED,
    },
    Analysis { id: "blocking.dflp.lp_rtas13", prepare: |input| placed(input, linear::dflp), closeness: ROUNDED },
    Analysis { id: "blocking.dpcp.lp_rtas13", prepare: |input| placed(input, linear::dpcp), closeness: ROUNDED },
    Analysis { id: "blocking.generalized_fmlp_plus.lp_ecrts14", prepare: generalized_fmlp_plus, closeness: ROUNDED },
    Analysis { id: "blocking.omip.lp_ecrts13", prepare: omip, closeness: ROUNDED },
    Analysis {
        id: "blocking.spin.fifo_nonpreemptive.lp_rtss13",
        prepare: |input| whole(input, linear::spin_fifo),
        closeness: ROUNDED,
    },
    Analysis {
        id: "blocking.spin.fifo_preemptable.lp_rtss13",
        prepare: |input| whole(input, linear::spin_fifo_preemptable),
        closeness: ROUNDED,
    },
    Analysis { id: "blocking.spin.fifo_nested.lp", prepare: nested, closeness: ROUNDED },
    Analysis { id: "blocking.spin.unordered.lp_rtss13", prepare: unordered, closeness: ROUNDED },
    Analysis {
        id: "rta.p_fp.with_blocking.mpcp.lp",
        prepare: |input| responses(input, |_| Locking::Mpcp),
        closeness: ROUNDED,
    },
    Analysis {
        id: "rta.p_fp.with_blocking.dpcp.lp",
        prepare: |input| responses(input, |sites| Locking::Dpcp(sites)),
        closeness: ROUNDED,
    },
    Analysis {
        id: "rta.p_fp.with_blocking.dflp.lp",
        prepare: |input| responses(input, |sites| Locking::Dflp(sites)),
        closeness: ROUNDED,
    },
    Analysis {
        id: "rta.p_fp.with_blocking.fmlp_plus.lp",
        prepare: |input| responses(input, |_| Locking::FmlpPlus),
        closeness: ROUNDED,
    },
    Analysis {
        id: "rta.p_fp.with_blocking.spin.fifo_nonpreemptive.lp",
        prepare: |input| responses(input, |_| Locking::SpinFifo),
        closeness: ROUNDED,
    },
    Analysis {
        id: "rta.p_fp.with_blocking.spin.fifo_preemptable.lp",
        prepare: |input| responses(input, |_| Locking::SpinFifoPreemptable),
        closeness: ROUNDED,
    },
    Analysis {
        id: "rta.p_fp.with_blocking.spin.unordered.lp",
        prepare: |input| responses(input, |_| Locking::SpinUnordered),
        closeness: ROUNDED,
    },
    Analysis { id: "response.global_fmlp.lp", prepare: |input| global(input, Global::Fmlp), closeness: ROUNDED },
    Analysis {
        id: "response.global_fmlp_plus.lp",
        prepare: |input| global(input, Global::FmlpPlus),
        closeness: ROUNDED,
    },
    Analysis {
        id: "response.global_no_progress_fifo.lp",
        prepare: |input| global(input, Global::PlainFifo),
        closeness: ROUNDED,
    },
    Analysis {
        id: "response.global_no_progress_priority.lp",
        prepare: |input| global(input, Global::PlainPriority),
        closeness: ROUNDED,
    },
    Analysis { id: "response.global_pip.lp", prepare: |input| global(input, Global::Pip), closeness: ROUNDED },
    Analysis { id: "response.global_prsb.lp", prepare: |input| global(input, Global::Prsb), closeness: ROUNDED },
    Analysis { id: "response.global_ppcp.lp", prepare: ppcp, closeness: ROUNDED },
    Analysis { id: "schedulable.p_edf.msrp.lp", prepare: |input| p_edf(input, Edf::Msrp), closeness: Closeness::Equal },
    Analysis {
        id: "schedulable.p_edf.spin_fifo_preemptable.lp",
        prepare: |input| p_edf(input, Edf::SpinFifoPreemptable),
        closeness: Closeness::Equal,
    },
    Analysis {
        id: "schedulable.p_edf.lockfree_nonpreemptable_commit.lp",
        prepare: |input| p_edf(input, Edf::LockFree),
        closeness: Closeness::Equal,
    },
];

/// Returns the tasks of an example. A greater priority is more urgent in the result.
pub(crate) fn sharing(input: &Input) -> Result<Sharing, Malformed> {
    let tasks = input.tasks.iter().map(sharer).collect::<Result<_, _>>()?;
    Ok(Sharing { tasks })
}

fn sharer(task: &InputTask) -> Result<Sharer, Malformed> {
    let needs = |what: &str| Malformed(format!("a task needs `{what}`"));
    let priority = match task.priority {
        Some(priority) => u32::try_from(priority).map_err(|_| Malformed("a priority has more than 32 bits".into()))?,
        None => 0,
    };
    let demand = |request: &InputRequest| {
        Ok(Demand {
            resource: request.resource,
            count: request.count,
            length: request.length.ok_or_else(|| needs("requests.length"))?,
        })
    };
    Ok(Sharer {
        cost: task.cost.ok_or_else(|| needs("cost"))?,
        period: task.period,
        deadline: task.deadline,
        response: task.response.unwrap_or(task.deadline),
        priority: u32::MAX - priority,
        cluster: task.cluster.or(task.partition).unwrap_or(0),
        requests: task.requests.iter().map(demand).collect::<Result<_, Malformed>>()?,
    })
}

/// Returns the processor of each resource, by number.
pub(crate) fn sites(input: &Input) -> Result<Vec<u16>, Malformed> {
    let malformed = || Malformed("params.resource_location must have a number for each resource".into());
    let Some(Value::Object(places)) = input.params.get("resource_location") else { return Ok(Vec::new()) };
    let mut sites = Vec::new();
    for (resource, place) in places {
        let resource: u16 = resource.parse().map_err(|_| malformed())?;
        let place = place.as_u64().and_then(|place| u16::try_from(place).ok()).ok_or_else(malformed)?;
        if sites.len() <= usize::from(resource) {
            sites.resize(usize::from(resource) + 1, 0);
        }
        sites[usize::from(resource)] = place;
    }
    Ok(sites)
}

fn term(total: u64, remote: u64, local: u64) -> Value {
    json!({"total": total, "total_count": 0, "remote": remote, "local": local, "arrival": 0})
}

fn tell_split(bounds: &Result<Vec<Blocked>, Failure>) -> Value {
    let told = bounds.as_ref().map_err(|why| *why).and_then(|bounds| {
        let terms = bounds.iter().map(|bound| Ok(term(bound.total()?, bound.remote, bound.local)));
        terms.collect::<Result<Vec<_>, Failure>>()
    });
    tell_or(&told, |terms| json!({"per_task": terms}))
}

fn tell_whole(bounds: &Result<Vec<u64>, Failure>) -> Value {
    tell_or(bounds, |all| json!({"per_task": all.iter().map(|&total| term(total, 0, 0)).collect::<Vec<_>>()}))
}

fn tell_or<T>(result: &Result<T, Failure>, tell: impl Fn(&T) -> Value) -> Value {
    match result {
        Ok(result) => tell(result),
        Err(why) => json!({"failure": why.to_string()}),
    }
}

fn split(input: &Input, analysis: fn(&Sharing) -> Result<Vec<Blocked>, Failure>) -> Result<Work, Malformed> {
    let sharing = sharing(input)?;
    Ok(Work::new(move || analysis(&sharing), tell_split))
}

fn placed(input: &Input, analysis: fn(&Sharing, &[u16]) -> Result<Vec<Blocked>, Failure>) -> Result<Work, Malformed> {
    let (sharing, sites) = (sharing(input)?, sites(input)?);
    Ok(Work::new(move || analysis(&sharing, &sites), tell_split))
}

fn whole(input: &Input, analysis: fn(&Sharing) -> Result<Vec<u64>, Failure>) -> Result<Work, Malformed> {
    let sharing = sharing(input)?;
    Ok(Work::new(move || analysis(&sharing), tell_whole))
}

fn small(input: &Input, name: &str) -> Result<u16, Malformed> {
    u16::try_from(input.number(name)?).map_err(|_| Malformed(format!("params.{name} is too large")))
}

fn generalized_fmlp_plus(input: &Input) -> Result<Work, Malformed> {
    let (sharing, processors) = (sharing(input)?, small(input, "cluster_size")?);
    let policy = if input.is("using_edf") { Policy::Edf } else { Policy::Fixed };
    Ok(Work::new(move || linear::generalized_fmlp_plus(&sharing, processors, policy), tell_split))
}

fn omip(input: &Input) -> Result<Work, Malformed> {
    let (sharing, processors, cluster_size) =
        (sharing(input)?, small(input, "num_cpus")?, small(input, "cluster_size")?);
    Ok(Work::new(move || linear::omip(&sharing, processors, cluster_size), tell_whole))
}

fn unordered(input: &Input) -> Result<Work, Malformed> {
    let preemptable = input.is("preemptable_spinning");
    whole(input, if preemptable { linear::spin_unordered_preemptable } else { linear::spin_unordered })
}

fn global(input: &Input, protocol: Global) -> Result<Work, Malformed> {
    let (sharing, processors) = (sharing(input)?, small(input, "num_cpus")?);
    Ok(Work::new(move || linear::global(&sharing, processors, protocol), tell_delays))
}

fn ppcp(input: &Input) -> Result<Work, Malformed> {
    global(input, Global::Ppcp { reasonable: input.is("reasonable_priorities") })
}

fn nested(input: &Input) -> Result<Work, Malformed> {
    #[derive(serde::Deserialize)]
    struct Listed {
        resource: u16,
        length: u64,
        /// The surrounding section; below 0 if there is none.
        outer: i64,
    }
    let sharing = sharing(input)?;
    let listed = input.params.get("critical_sections").cloned().unwrap_or_default();
    let listed: Vec<Vec<Listed>> = serde_json::from_value(listed).map_err(|why| Malformed(why.to_string()))?;
    let section = |listed: Listed| Section {
        resource: listed.resource,
        length: listed.length,
        outer: usize::try_from(listed.outer).ok(),
    };
    let sections: Vec<Vec<Section>> = listed.into_iter().map(|task| task.into_iter().map(section).collect()).collect();
    Ok(Work::new(move || linear::spin_fifo_nested(&sharing, &sections), tell_delays))
}

fn tell_delays(delays: &Result<Vec<u64>, Failure>) -> Value {
    // Each bound is for one interval, that of the job.
    let tell = |&total: &u64| json!({"total": total, "total_count": 1, "remote": 0, "local": 0, "arrival": 0});
    tell_or(delays, |all| json!({"per_task": all.iter().map(tell).collect::<Vec<_>>()}))
}

fn p_edf(input: &Input, edf: Edf) -> Result<Work, Malformed> {
    let sharing = sharing(input)?;
    Ok(Work::new(
        move || linear::p_edf(&sharing, edf),
        |result| match result {
            Ok(()) => json!({"schedulable": true}),
            Err(why) => json!({"schedulable": false, "why": why.to_string()}),
        },
    ))
}

fn responses(input: &Input, protocol: fn(&[u16]) -> Locking<'_>) -> Result<Work, Malformed> {
    let (sharing, sites) = (sharing(input)?, sites(input)?);
    Ok(Work::new(
        move || linear::responses_of_program(&sharing, protocol(&sites)),
        |result| match result {
            Ok(found) => {
                json!({"schedulable": true, "response_times": found.responses, "outer_iterations": found.rounds})
            }
            Err(why) => json!({"schedulable": false, "why": why.to_string()}),
        },
    ))
}
