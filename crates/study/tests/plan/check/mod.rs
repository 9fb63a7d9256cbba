//! The property of the reader of study files for any input: it returns a study that can be judged, or faults with
//! places inside the source. The tests here and the fuzz target use it.

use lockwright_model::Overheads;
use lockwright_model::format::{Diagnostic, Diagnostics};
use lockwright_study::experiment::Experiment;
use lockwright_study::plan::{CELLS_MAX, Plan, SAMPLES_MAX, parse_plan};

/// The result of an input that was handled correctly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Accepted,
    Refused,
}

/// Checks the reader on any text. Every path leads to overheads of zero, except those that contain "missing".
pub fn plan(source: &str) -> Result<Outcome, String> {
    let read = parse_plan(source, &mut |path| {
        if path.contains("missing") { Err(format!("cannot read {path}")) } else { Ok(Overheads::default()) }
    });
    match read {
        Ok(plan) => accepted(&plan).map(|()| Outcome::Accepted),
        Err(faults) => refused(source, &faults).map(|()| Outcome::Refused),
    }
}

fn accepted(plan: &Plan) -> Result<(), String> {
    let cells = plan.cells();
    if !(1..=CELLS_MAX).contains(&cells) || plan.methods() == 0 || !(1..=SAMPLES_MAX).contains(&plan.samples()) {
        return Err(format!("a study of {cells} cells, {} methods, {} samples", plan.methods(), plan.samples()));
    }
    for cell in 0..cells {
        let places = plan.places(cell);
        if places.len() != plan.axes.len() || !places.iter().zip(&plan.axes).all(|(&at, axis)| at < axis.values.len()) {
            return Err(format!("cell {cell} is at {places:?}"));
        }
    }
    if plan.x.is_some_and(|axis| axis >= plan.axes.len()) {
        return Err("the curves are over an axis that does not exist".into());
    }
    for (index, method) in plan.methods.iter().enumerate() {
        if plan.methods[..index].iter().any(|other| other.name == method.name) {
            return Err(format!("two methods are called {:?}", method.name));
        }
    }
    // The generators accept the values of the first and of the last cell. No system is drawn, as that may take long.
    drop((plan.judge(0), plan.judge(cells - 1)));
    Ok(())
}

fn refused(source: &str, faults: &Diagnostics) -> Result<(), String> {
    if faults.is_empty() {
        return Err("refused without a fault".into());
    }
    let start = |fault: &Diagnostic| fault.span.as_ref().map_or(0, |span| span.start);
    if !faults.is_sorted_by_key(start) {
        return Err("faults out of order".into());
    }
    for fault in faults {
        if fault.message.is_empty() {
            return Err("a fault without a message".into());
        }
        let Some(span) = &fault.span else { continue };
        if source.get(span.clone()).is_none() || fault.line_column(source).is_none() {
            return Err(format!("{span:?} is not in the source: {fault:?}"));
        }
    }
    Ok(())
}
