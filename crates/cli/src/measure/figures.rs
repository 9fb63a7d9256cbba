//! The figures of `measure`: uncontended costs, delays over the rate, hand-overs over the waiters, and histograms of
//! response times.

use super::costs::caches;
use crate::figure::{BLUE, Figure, GREEN, Mark, ORANGE, Series, Vertical};
use crate::json::{
    IcsBin, IcsCost, IcsOperation, IcsOutput, IcsResponses, LockArrivals, LockContention, LockCost, LocksOutput,
    MachineCost, MutexHandOver, MutexOutput, ObjectAlone, ObjectsOutput, ProtocolTimes, ProtocolsOutput,
};

/// Costs with warm and cold caches, and delays for each pattern of arrivals, as far as they were measured.
pub fn of_locks(output: &LocksOutput) -> Vec<(String, Figure)> {
    let mut figures = costs(&output.costs);
    for arrivals in [LockArrivals::Equal, LockArrivals::Rising] {
        let name = arrivals.name();
        let results: Vec<&LockContention> =
            output.contention.iter().filter(|result| result.arrivals == arrivals).collect();
        if !results.is_empty() {
            let weighted = "weighted mean delay over that of fifo";
            figures.push((
                format!("delay-{name}.svg"),
                delay(&results, format!("{weighted}, {name} rates"), |result| result.weighted_delay_over_fifo),
            ));
            let top = "delay of the most important task over that under fifo";
            figures.push((
                format!("top-{name}.svg"),
                delay(&results, format!("{top}, {name} rates"), |result| result.top_delay_over_fifo),
            ));
        }
    }
    figures
}

/// Costs and hand-overs with warm and cold caches, as far as they were measured.
pub fn of_mutexes(output: &MutexOutput) -> Vec<(String, Figure)> {
    let mut figures = costs(&output.costs);
    for cold in [false, true] {
        let seen: Vec<&MutexHandOver> = output.hand_over.iter().filter(|seen| seen.cold == cold).collect();
        if !seen.is_empty() {
            let caches = caches(cold);
            figures.push((format!("hand-over-{caches}.svg"), hand_over(&seen, caches)));
        }
    }
    figures
}

/// Lock and unlock of each protocol, and the costs of the machine.
pub fn of_protocols(output: &ProtocolsOutput) -> Vec<(String, Figure)> {
    let rows = |names: Vec<String>, title: &str, series: Vec<Series>| Figure {
        title: title.into(),
        x: "ns",
        y: Vertical::Names(names),
        series,
    };
    // A logarithmic axis has no 0.
    let place = |ns: u64, row: usize| (ns.max(1) as f64, row as f64);
    let mut figures = Vec::new();
    if !output.protocols.is_empty() {
        let names = output.protocols.iter().map(|protocol| protocol.protocol.clone()).collect();
        let series = |name: &str, mark, color, of: fn(&ProtocolTimes) -> Option<u64>| Series {
            name: name.to_owned(),
            mark,
            color,
            points: output.protocols.iter().enumerate().filter_map(|(row, seen)| Some(place(of(seen)?, row))).collect(),
        };
        let alone = series("alone, both (circles)", Mark::Circle, BLUE, |seen| Some(seen.alone_median_ns));
        let lock = series("lock, mean under load (triangles)", Mark::Triangle, ORANGE, |seen| seen.lock_mean_ns);
        let unlock = series("unlock, mean under load (crosses)", Mark::Cross, GREEN, |seen| seen.unlock_mean_ns);
        figures.push(("protocols.svg".into(), rows(names, "lock and unlock", vec![alone, lock, unlock])));
    }
    if !output.machine.is_empty() {
        let names = output.machine.iter().map(|cost| cost.work.clone()).collect();
        let series = |name: &str, mark, color, of: fn(&MachineCost) -> u64| Series {
            name: name.to_owned(),
            mark,
            color,
            points: output.machine.iter().enumerate().map(|(row, cost)| place(of(cost), row)).collect(),
        };
        let average = series("average (circles)", Mark::Circle, BLUE, |cost| cost.average_ns);
        let worst = series("worst without the top 1 % (triangles)", Mark::Triangle, ORANGE, |cost| cost.worst_ns);
        figures.push(("machine.svg".into(), rows(names, "the machine and its kernel", vec![average, worst])));
    }
    figures
}

/// For each kind of object, the mean and the greatest cost over the number of tasks for which it was built.
pub fn of_objects(output: &ObjectsOutput) -> Vec<(String, Figure)> {
    let mut kinds: Vec<&str> = output.alone.iter().map(|cost| cost.object.as_str()).collect();
    kinds.dedup();
    let figure = |kind: &str| {
        let of_kind = || output.alone.iter().filter(|cost| cost.object == kind && cost.tasks.is_some());
        let series = |sharing: &str, name: &str, mark, color, of: fn(&ObjectAlone) -> f64| Series {
            name: format!("{sharing}, {name}"),
            mark,
            color,
            points: of_kind()
                .filter(|cost| cost.sharing == sharing)
                .filter_map(|cost| Some((f64::from(cost.tasks?), of(cost) / 1e3)))
                .collect(),
        };
        let most = of_kind().map(|cost| cost.worst_ns).fold(0.0, f64::max) / 1e3;
        let series = vec![
            series("lock-free", "mean (circles)", Mark::Circle, BLUE, |cost| cost.mean_ns),
            series("lock-free", "worst (triangles)", Mark::Triangle, BLUE, |cost| cost.worst_ns),
            series("wait-free", "mean (circles)", Mark::Circle, ORANGE, |cost| cost.mean_ns),
            series("wait-free", "worst (triangles)", Mark::Triangle, ORANGE, |cost| cost.worst_ns),
        ];
        let title = format!("operation on a {kind} alone, us");
        let y = Vertical::UpTo(1.1 * most.max(0.001));
        (format!("{kind}.svg"), Figure { title, x: "tasks for which it is built", y, series })
    };
    kinds.into_iter().map(figure).collect()
}

/// Costs of sections, and a histogram for each mechanism in each setting.
pub fn of_ics(output: &IcsOutput) -> Vec<(String, Figure)> {
    let costs = |name: &str, mark, color, of: fn(&IcsCost) -> f64| Series {
        name: name.to_owned(),
        mark,
        color,
        points: output.costs.iter().enumerate().map(|(row, cost)| (of(cost), row as f64)).collect(),
    };
    let name = |cost: &IcsCost| match cost.strategy {
        Some(strategy) => format!("{}, {}", cost.what, strategy.name()),
        None => cost.what.clone(),
    };
    let cost = Figure {
        title: "sections, locks and switches alone".into(),
        x: "ns",
        y: Vertical::Names(output.costs.iter().map(name).collect()),
        series: vec![
            costs("least (circles)", Mark::Circle, BLUE, |cost| cost.min_ns),
            costs("median (triangles)", Mark::Triangle, ORANGE, |cost| cost.median_ns),
        ],
    };
    let histograms = output.responses.iter().filter(|seen| seen.enqueued + seen.dequeued > 0);
    std::iter::once(("cost.svg".into(), cost))
        .chain(histograms.map(|seen| {
            let mechanism = seen.mechanism.to_lowercase().replace(' ', "-");
            let name = format!("histogram-{mechanism}-{}-{}.svg", seen.outside_ticks, seen.inside_ticks);
            (name, histogram(seen, &output.histogram, output.tick_ns))
        }))
        .collect()
}

fn histogram(seen: &IcsResponses, bins: &[IcsBin], tick_ns: u64) -> Figure {
    let setting = (&seen.mechanism, seen.outside_ticks, seen.inside_ticks);
    let bars = |name: String, operation, whole: u64, mark, color| {
        let of_these = |bin: &&IcsBin| {
            (&bin.mechanism, bin.outside_ticks, bin.inside_ticks) == setting && bin.operation == operation
        };
        let share = |bin: &IcsBin| (bin.response_ticks as f64, 100.0 * bin.times as f64 / whole.max(1) as f64);
        Series { name, mark, color, points: bins.iter().filter(of_these).map(share).collect() }
    };
    let (left, right) = (Mark::Bar { from: -0.4, to: 0.0 }, Mark::Bar { from: 0.0, to: 0.4 });
    let dequeue = format!("dequeue (right); alone it takes {:.2}", seen.alone_ns as f64 / tick_ns as f64);
    Figure {
        title: format!(
            "operations, %: {}, {} ticks outside, {} inside",
            seen.mechanism, seen.outside_ticks, seen.inside_ticks
        ),
        x: "response time, ticks",
        y: Vertical::UpTo(100.0),
        series: vec![
            bars("enqueue (left)".into(), IcsOperation::Enqueue, seen.enqueued, left, ORANGE),
            bars(dequeue, IcsOperation::Dequeue, seen.dequeued, right, BLUE),
        ],
    }
}

fn costs(costs: &[LockCost]) -> Vec<(String, Figure)> {
    let mut figures = Vec::new();
    for cold in [false, true] {
        let name = caches(cold);
        let costs: Vec<&LockCost> = costs.iter().filter(|cost| cost.cold == cold).collect();
        if !costs.is_empty() {
            figures.push((format!("cost-{name}.svg"), cost(&costs, name)));
        }
    }
    figures
}

fn hand_over(seen: &[&MutexHandOver], caches: &str) -> Figure {
    let series = |(number, lock): (usize, &str)| {
        let of_lock = seen.iter().filter(|seen| seen.lock == lock);
        Series {
            name: lock.to_owned(),
            mark: [Mark::Circle, Mark::Triangle, Mark::Cross][number % 3],
            color: [BLUE, ORANGE, GREEN][number % 3],
            points: of_lock.map(|seen| (seen.waiters as f64, seen.median_ns as f64 / 1e3)).collect(),
        }
    };
    let mut locks: Vec<&str> = seen.iter().map(|seen| seen.lock.as_str()).collect();
    locks.sort_unstable();
    locks.dedup();
    let most = seen.iter().map(|seen| seen.median_ns).max().unwrap_or(0) as f64 / 1e3;
    Figure {
        title: format!("from an unlock until the first waiter executes, us (median, {caches} caches)"),
        x: "waiters",
        y: Vertical::UpTo(1.1 * most.max(0.001)),
        series: locks.into_iter().enumerate().map(series).collect(),
    }
}

fn cost(costs: &[&LockCost], caches: &str) -> Figure {
    let series = |name: &str, mark, color, of: fn(&LockCost) -> u64| Series {
        name: name.to_owned(),
        mark,
        color,
        points: costs.iter().enumerate().map(|(row, cost)| (of(cost) as f64, row as f64)).collect(),
    };
    Figure {
        title: format!("lock and unlock alone, {caches} caches"),
        x: "cycles of the time-stamp counter",
        y: Vertical::Names(costs.iter().map(|cost| cost.lock.clone()).collect()),
        series: vec![
            series("median (circles)", Mark::Circle, BLUE, |cost| cost.median_cycles),
            series("p99.9 (triangles)", Mark::Triangle, ORANGE, |cost| cost.p999_cycles),
            series("max (crosses)", Mark::Cross, GREEN, |cost| cost.max_cycles),
        ],
    }
}

fn delay(results: &[&LockContention], title: String, of: fn(&LockContention) -> Option<f64>) -> Figure {
    let mut locks: Vec<&str> = Vec::new();
    for result in results {
        if !locks.contains(&result.lock.as_str()) {
            locks.push(&result.lock);
        }
    }
    // Nine locks: each colour has each shape once.
    let marks = [(Mark::Circle, "circles"), (Mark::Triangle, "triangles"), (Mark::Cross, "crosses")];
    let series = locks.iter().enumerate().map(|(number, &lock)| {
        let (mark, shape) = marks[number % marks.len()];
        let of_lock = results.iter().filter(|result| result.lock == lock);
        let mut points: Vec<(f64, f64)> = of_lock.filter_map(|result| Some((result.rate, of(result)?))).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        let color = [BLUE, ORANGE, GREEN][number / marks.len() % 3];
        Series { name: format!("{lock} ({shape})"), mark, color, points }
    });
    let series: Vec<Series> = series.collect();
    let most = series.iter().flat_map(|series| &series.points).map(|&(_, ratio)| ratio).fold(1.25, f64::max);
    Figure { title, x: "arrivals over the service rate", y: Vertical::UpTo(1.05 * most), series }
}
