//! `lockwright measure objects`: non-blocking objects, beside sequential ones under locks.

use super::costs::three_digits;
use super::figures;
use super::frame::{Findings, Frame};
use crate::args::MeasuredObjects;
use crate::console::Console;
use crate::exit::Exit;
use crate::export::{ResultFolder, csv_text};
use crate::json::{MEASURE, ObjectAlone, ObjectContention, ObjectLine, ObjectsOutput};
use crate::layout::{Column, Layout};
use crate::units;
use lockwright_measure::{
    AloneObject, ContendedObject, ObjectCosts, Readings, Sharing, contended_objects, object_costs,
};
use lockwright_model::format::write_overheads;
use lockwright_model::{Cost, Duration, ObjectKind, Overheads, Progress};

/// Executes `measure objects`.
///
/// # Errors
/// The console has the message.
pub fn objects(arguments: &MeasuredObjects, console: &Console) -> Result<Exit, Exit> {
    let folder = arguments.overheads.as_deref();
    let folder = folder.map(|path| ResultFolder::create(path, "--overheads", console)).transpose()?;
    let frame = Frame::begin(&arguments.results, console)?.works_alone(arguments.alone);
    let costs = frame.measure(|control, _| object_costs(arguments.operations, control))?;
    frame.warn_unless(costs.realtime);
    let contended = if arguments.alone {
        Vec::new()
    } else {
        frame.measure(|control, tell| contended_objects(arguments.operations, control, tell))?
    };
    let interrupted = frame.control.is_stopped();
    let per_ns = costs.cycles_per_ns;
    let output = ObjectsOutput {
        verb: MEASURE,
        subject: ObjectsOutput::SUBJECT,
        cycles_per_ns: per_ns,
        realtime: costs.realtime,
        operations: arguments.operations,
        interrupted,
        alone: costs.objects.iter().map(|object| alone(object, per_ns)).collect(),
        lines: lines(&costs),
        contention: contended.iter().map(|object| contention(object, per_ns)).collect(),
    };
    if let Some(folder) = folder.filter(|_| !costs.objects.is_empty()) {
        for (kind, pick) in KINDS {
            let text = format!(
                "# Measured by `lockwright measure objects`: {kind}, one task alone, without the longest 1 %.\n{}",
                write_overheads(&overheads(&costs, pick))
            );
            folder.write(&format!("{kind}-objects.toml"), Ok::<_, std::convert::Infallible>(text), console)?;
        }
        console.note(format!("{} in {}", units::count(2, "overheads file"), folder.path().display()));
    }
    let contended = (!output.contention.is_empty()).then(|| ("contention.csv", csv_text(&output.contention)));
    let mut csv = vec![("alone.csv", csv_text(&output.alone)), ("lines.csv", csv_text(&output.lines))];
    csv.extend(contended);
    frame.end(Findings {
        output: &output,
        text: as_text(&output, console.layout),
        csv,
        figures: figures::of_objects(&output),
        interrupted,
        cut: "incomplete objects",
    })
}

/// One of two values: the mean, or the greatest, of readings without the top 1 %.
type Pick = fn((u64, u64)) -> u64;

/// The values of the overheads files.
const KINDS: [(&str, Pick); 2] = [("average", |usual| usual.0), ("worst", |usual| usual.1)];

fn in_ns(readings: &Readings, per_ns: f64) -> (f64, f64, f64) {
    let (mean, worst) = readings.usual();
    let ns = |cycles: u64| cycles as f64 / per_ns;
    (ns(mean), ns(worst), ns(readings.quantile(1.0)))
}

fn alone(object: &AloneObject, per_ns: f64) -> ObjectAlone {
    let (mean_ns, worst_ns, max_ns) = in_ns(&object.cycles, per_ns);
    ObjectAlone {
        object: object.kind.name().to_owned(),
        sharing: object.sharing.name().to_owned(),
        tasks: object.tasks,
        mean_ns,
        worst_ns,
        max_ns,
    }
}

fn contention(object: &ContendedObject, per_ns: f64) -> ObjectContention {
    let (mean_ns, worst_ns, max_ns) = in_ns(&object.cycles, per_ns);
    ObjectContention {
        object: object.kind.name().to_owned(),
        sharing: object.sharing.name().to_owned(),
        tasks: object.tasks,
        mean_ns,
        worst_ns,
        max_ns,
        steps: object.steps.map(|steps| steps.most),
        steps_bound: object.steps.map(|steps| steps.bound),
        interfering: object.steps.map(|steps| steps.interfering),
        exceeded: object.steps.map(|steps| steps.exceeded),
    }
}

/// The costs of the objects as an overheads file has them.
fn overheads(costs: &ObjectCosts, pick: Pick) -> Overheads {
    let mut overheads = Overheads::default();
    for kind in ObjectKind::ALL {
        for (progress, sharing) in [(Progress::LockFree, Sharing::LockFree), (Progress::WaitFree, Sharing::WaitFree)] {
            let of_kind = costs.objects.iter().filter(|object| object.kind == kind && object.sharing == sharing);
            let point = |object: &AloneObject| {
                let ns = (pick(object.cycles.usual()) as f64 / costs.cycles_per_ns).ceil();
                Some((object.tasks?, Duration::from_ns(ns as u64)))
            };
            if let Some(cost) = Cost::through(of_kind.filter_map(point).collect()) {
                overheads.set_object(kind, progress, cost);
            }
        }
    }
    overheads
}

/// The objects of each kind and sharing, over the number of tasks.
fn lines(costs: &ObjectCosts) -> Vec<ObjectLine> {
    let same = |one: &AloneObject, other: &AloneObject| (one.kind, one.sharing) == (other.kind, other.sharing);
    let line = |objects: &[AloneObject]| {
        let of = |which: fn((f64, f64, f64)) -> f64| {
            let points = objects.iter().map(|object| {
                (f64::from(object.tasks.unwrap_or(0)), which(in_ns(&object.cycles, costs.cycles_per_ns)))
            });
            straight(&points.collect::<Vec<_>>())
        };
        let (mean, worst) = (of(|usual| usual.0), of(|usual| usual.1));
        ObjectLine {
            object: objects[0].kind.name().to_owned(),
            sharing: objects[0].sharing.name().to_owned(),
            mean_ns: mean.0,
            mean_ns_per_task: mean.1,
            worst_ns: worst.0,
            worst_ns_per_task: worst.1,
        }
    };
    costs.objects.chunk_by(same).map(line).collect()
}

/// Returns the straight line of least squares through points: its value at 0, and its slope. The line is constant
/// unless the slope is significant, which six points decide with a confidence of 95 %.
fn straight(points: &[(f64, f64)]) -> (f64, f64) {
    /// The quantile of 97.5 % of Student's distribution with four degrees of freedom.
    const STUDENT: f64 = 2.776;
    const POINTS: usize = 6;
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    if points.len() != POINTS {
        return (y, 0.0);
    }
    let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let slope = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>() / spread;
    let error: f64 = points.iter().map(|point| (point.1 - y - slope * (point.0 - x)).powi(2)).sum();
    let deviation = (error / (count - 2.0) / spread).sqrt();
    if slope.abs() > STUDENT * deviation { (y - slope * x, slope) } else { (y, 0.0) }
}

fn as_text(output: &ObjectsOutput, layout: Layout) -> String {
    let line = |(at_0, slope): (f64, f64)| match slope {
        0.0 => three_digits(at_0),
        _ => format!("{} {} {} N", three_digits(at_0), if slope < 0.0 { '-' } else { '+' }, three_digits(slope.abs())),
    };
    let lines = || output.lines.iter();
    let mut text = format!(
        "one task alone, in ns: {} on each object, built for N tasks\n\n",
        units::count(output.operations as u64, "operation")
    );
    text.push_str(&layout.draw(&[
        Column::words("object", lines().map(|line| line.object.clone())),
        Column::words("sharing", lines().map(|line| line.sharing.clone())),
        Column::numbers("mean", lines().map(|cost| line((cost.mean_ns, cost.mean_ns_per_task)))),
        Column::numbers("worst", lines().map(|cost| line((cost.worst_ns, cost.worst_ns_per_task)))),
    ]));
    text.push_str(
        "mean and worst without the top 1 %; a line over N where its slope is significant; short: the sequential object \
         without a lock\n",
    );
    let Some(first) = output.contention.first() else { return text };
    text.push_str(&format!(
        "\n{} at once, one on each CPU, in ns; steps are counted in another run\n\n",
        units::count(first.tasks as u64, "task")
    ));
    let seen = || output.contention.iter();
    let ns = |of: fn(&ObjectContention) -> f64| seen().map(move |seen| three_digits(of(seen)));
    let number = |of: fn(&ObjectContention) -> Option<u64>| {
        seen().map(move |seen| of(seen).map_or_else(|| "–".to_owned(), |number| number.to_string()))
    };
    text.push_str(&layout.draw(&[
        Column::words("object", seen().map(|seen| seen.object.clone())),
        Column::words("sharing", seen().map(|seen| seen.sharing.clone())),
        Column::numbers("mean", ns(|seen| seen.mean_ns)),
        Column::numbers("worst", ns(|seen| seen.worst_ns)),
        Column::numbers("max", ns(|seen| seen.max_ns)).gives_way(2),
        Column::numbers("steps", number(|seen| seen.steps)),
        Column::numbers("bound", number(|seen| seen.steps_bound)),
        Column::numbers("overlap", number(|seen| seen.interfering)).gives_way(1),
        Column::numbers("exceeded", number(|seen| seen.exceeded)),
    ]));
    text.push_str(
        "steps: the most accesses to shared memory of one operation; bound: the greatest bound of an operation, with the \
         operations of others that overlapped it (overlap: the most); exceeded: operations above their bound\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockwright_model::format::parse_overheads;

    #[test]
    fn a_line_rises_where_its_slope_is_significant() {
        let points = |of: &dyn Fn(f64) -> f64| [2.0, 4.0, 8.0, 16.0, 24.0, 32.0].map(|n| (n, of(n)));
        let (at_0, slope) = straight(&points(&|n| 5.0 + 0.5 * n));
        assert!((at_0 - 5.0).abs() < 1e-9 && (slope - 0.5).abs() < 1e-9);
        assert_eq!(straight(&points(&|n| if n > 3.0 && n < 20.0 { 9.0 } else { 3.0 })), (6.0, 0.0));
        assert_eq!(straight(&[(0.0, 7.0)]), (7.0, 0.0), "one point is a constant");
    }

    #[test]
    fn an_overheads_file_is_read_back() {
        let object = |tasks, cycles: u64| AloneObject {
            kind: ObjectKind::Heap,
            sharing: Sharing::WaitFree,
            tasks: Some(tasks),
            cycles: Readings::new(vec![cycles, cycles + 2]).expect("not empty"),
        };
        let costs = ObjectCosts { cycles_per_ns: 2.0, realtime: true, objects: vec![object(2, 200), object(8, 399)] };
        let read = |number: usize| parse_overheads(&write_overheads(&overheads(&costs, KINDS[number].1)));
        let of = |number, tasks| {
            let overheads = read(number).expect("a file of ours");
            assert_eq!(overheads.object(ObjectKind::Heap, Progress::LockFree), None);
            overheads.object(ObjectKind::Heap, Progress::WaitFree).map(|cost| cost.with(tasks).as_ns())
        };
        // Half of the mean, or of the greatest reading, rounded up.
        assert_eq!((of(0, 2), of(0, 8), of(1, 2), of(1, 8)), (Some(101), Some(200), Some(101), Some(201)));
    }
}
