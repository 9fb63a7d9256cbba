//! Bodies of tasks that costs lengthen.

use lockwright_model::{Duration, ResourceId, Step};

/// Returns the sum, or `None` if it does not fit.
pub(crate) fn sum(parts: &[Duration]) -> Option<Duration> {
    parts.iter().try_fold(Duration::ZERO, |sum, part| sum.checked_add(*part))
}

/// Returns the execution time of a body, or `None` if it does not fit.
pub(crate) fn runs(body: &[Step]) -> Option<Duration> {
    body.iter().try_fold(Duration::ZERO, |sum, step| match step {
        Step::Run(time) => sum.checked_add(*time),
        Step::Lock(_) | Step::Read(_) | Step::Unlock(_) => Some(sum),
    })
}

/// Returns whether a job locks the resource while it holds another one.
pub(crate) fn is_inner(body: &[Step], resource: ResourceId) -> bool {
    let mut depth = 0_u32;
    body.iter().any(|step| match step {
        Step::Lock(requested) | Step::Read(requested) => {
            depth += 1;
            depth > 1 && *requested == resource
        }
        Step::Unlock(_) => {
            depth = depth.saturating_sub(1);
            false
        }
        Step::Run(_) => false,
    })
}

/// Appends a run, or prolongs the last step if that is a run.
fn run(body: &mut Vec<Step>, time: Duration) -> Option<()> {
    if let Some(Step::Run(last)) = body.last_mut() {
        *last = last.checked_add(time)?;
    } else if time != Duration::ZERO {
        body.push(Step::Run(time));
    }
    Some(())
}

/// Returns the body with a run of `job` at its start, and with the two runs of `section` before and in each section.
pub(crate) fn lengthened(
    body: &[Step],
    job: Duration,
    section: impl Fn(ResourceId) -> Option<(Duration, Duration)>,
) -> Option<Vec<Step>> {
    let mut longer = Vec::with_capacity(body.len() + 1);
    run(&mut longer, job)?;
    for &step in body {
        match step {
            Step::Run(time) => run(&mut longer, time)?,
            Step::Lock(resource) | Step::Read(resource) => {
                let (before, inside) = section(resource)?;
                run(&mut longer, before)?;
                longer.push(step);
                run(&mut longer, inside)?;
            }
            Step::Unlock(_) => longer.push(step),
        }
    }
    Some(longer)
}

/// Returns the body with each section prolonged to the length that `stretch` returns, inner sections first. Returns
/// `None` if `stretch` does.
pub(crate) fn interrupted(
    body: &[Step],
    stretch: impl Fn(ResourceId, Duration) -> Option<Duration>,
) -> Option<Vec<Step>> {
    let mut longer: Vec<Step> = Vec::with_capacity(body.len());
    // The places where the open sections began.
    let mut open: Vec<usize> = Vec::new();
    for &step in body {
        match step {
            Step::Lock(_) | Step::Read(_) => open.push(longer.len()),
            Step::Unlock(resource) => {
                let begun = open.pop().unwrap_or(0);
                let length = runs(&longer[begun..])?;
                let more = stretch(resource, length)?.checked_sub(length)?;
                run(&mut longer, more)?;
            }
            Step::Run(_) => {}
        }
        longer.push(step);
    }
    Some(longer)
}
