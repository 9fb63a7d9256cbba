//! The costs of protocols: lock and unlock without contention and under the workload of a published measurement on
//! RTEMS.

mod alone;
mod charged;
mod results;
mod workload;

pub use results::{ProtocolCost, Protocols};

use crate::harness::measuring;
use crate::works::Pick;
use alone::alone;
use lockwright_engine::raw::{Recorder, Ring};
use lockwright_engine::{Control, RunError};
use lockwright_model::{Overheads, Protocol};
use lockwright_sys::sched;
use results::Kind;
use workload::workload;

type Tell<'a> = &'a mut dyn FnMut(usize, usize);

/// Takes `readings` readings (at least 100) of each operation without contention, and then at least `pairs` readings of
/// lock and unlock with each protocol under the workload. If `pairs` is 0, the workload is not executed. If `control`
/// is stopped, incomplete protocols are left out.
///
/// # Errors
/// Fails without permission for real-time priorities, and if threads cannot be started or do not return.
pub fn protocols(readings: usize, pairs: usize, control: &Control, progress: Tell<'_>) -> Result<Protocols, RunError> {
    let cpus = sched::affinity()?;
    let kinds = Kind::of(&Protocol::ALL, cpus.len());
    let loaded = kinds.iter().filter(|kind| kind.has_workload()).count();
    let parts = 2 + if pairs > 0 { loaded } else { 0 };
    let mut seen = measured_alone(readings, kinds, control, false)?;
    progress(2, parts);
    let mut done = 2;
    for cost in seen.costs.iter_mut().filter(|_| pairs > 0) {
        let Some(protocol) = cost.protocol.filter(|&protocol| Kind::plain(protocol).has_workload()) else {
            continue;
        };
        if cost.name != protocol.name() {
            continue;
        }
        if control.is_stopped() {
            break;
        }
        cost.contended = workload(protocol, seen.applications, seen.has_synchronisation, pairs, control)?;
        done += 1;
        progress(done, parts);
    }
    seen.interrupted = control.is_stopped();
    Ok(seen)
}

/// Measures the overheads under these protocols: [`Pick::Latest`] of `readings` readings of each operation without
/// contention. With several protocols, there is a table for each. Cache delays are not measured.
///
/// A thousand readings take about a second and a half. Meanwhile, switches are recorded as in a run with
/// [`RunConfig::watch`](lockwright_engine::RunConfig::watch), so that the overheads include the recording.
///
/// # Errors
/// Fails as [`protocols()`] does.
pub fn overheads(protocols: &[Protocol], readings: usize, control: &Control) -> Result<Overheads, RunError> {
    let cpus = sched::affinity()?;
    let kinds = Kind::of(protocols, cpus.len());
    let recorder = Recorder::start(&cpus, &[]);
    let measured = measured_alone(readings, kinds, control, recorder.is_none());
    if let Some(recorder) = recorder {
        recorder.stop(0);
    }
    Ok(measured?.overheads(Pick::Latest, protocols))
}

/// Takes the readings without contention. With `records_itself`, the measuring thread records its own switches.
fn measured_alone(
    readings: usize,
    kinds: Vec<Kind>,
    control: &Control,
    records_itself: bool,
) -> Result<Protocols, RunError> {
    let cpus = sched::affinity()?;
    let (own, on) = (control.clone(), cpus.clone());
    let (machine, costs, interruptions) = measuring(cpus[0], control, move |_| {
        let _ring = records_itself.then(|| Ring::of_thread(sched::gettid()));
        alone(readings.max(100), &kinds, &on, &own)
    })?;
    let applications = cpus.len().min(3);
    Ok(Protocols {
        machine,
        interruptions,
        costs,
        applications,
        has_synchronisation: cpus.len() > applications,
        interrupted: control.is_stopped(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::require_realtime;
    use crate::works::Work;
    use lockwright_model::Overhead;

    #[test]
    fn everything_is_measured() {
        let Some(_machine) = require_realtime() else { return };
        let mut parts = Vec::new();
        let seen = protocols(100, 60, &Control::new(), &mut |done, whole| parts.push((done, whole)));
        let seen = seen.expect("permission was checked");
        assert_eq!(parts.last(), Some(&(19, 19)));
        let kinds = Kind::of(&Protocol::ALL, sched::affinity().expect("a CPU set").len());
        assert_eq!(seen.costs.len(), kinds.len() + 2);
        for cost in &seen.costs {
            let contended = cost.contended.as_ref().map(|(lock, unlock)| (lock.count() >= 60, unlock.count() >= 60));
            let is_loaded = kinds.iter().any(|kind| kind.name() == cost.name && kind.has_workload());
            assert_eq!(contended, is_loaded.then_some((true, true)), "{}", cost.name);
            assert!(cost.alone.count() >= 8, "{}", cost.name);
        }
        for protocol in Protocol::ALL {
            let overheads = seen.overheads(Pick::Worst, &[protocol]);
            let of = |of| overheads.cost(of).with(1).as_ns();
            // The few instructions of an object can take no longer than reading the clock.
            let takes_time = of(Overhead::Lock) > 0 && of(Overhead::Unlock) > 0;
            assert!(takes_time || protocol.is_object(), "{protocol}: {overheads:?}");
            assert!(overheads.protocols().next().is_none());
        }
        let all = seen.overheads(Pick::Worst, &Protocol::ALL);
        assert_eq!(all.protocols().collect::<Vec<_>>(), Protocol::ALL);
        // Without contention, a lock has no system call under `none`, and a change of priority under `mpcp`.
        let lock = |protocol| all.cost_under(Overhead::Lock, protocol).with(1);
        assert!(lock(Protocol::None) < lock(Protocol::Mpcp), "{all:?}");
        assert!(seen.work(Work::SystemCall).is_some_and(|readings| readings.quantile(0.5) > 0));
    }

    #[test]
    fn a_stopped_measurement_has_no_costs() {
        let Some(_machine) = require_realtime() else { return };
        let control = Control::new();
        control.stop();
        let seen = protocols(100, 60, &control, &mut |_, _| ()).expect("permission was checked");
        assert!(seen.interrupted && seen.machine.is_empty() && seen.costs.is_empty());
    }
}
