//! The overheads to be charged in an analysis.

use super::results::{ProtocolCost, Protocols};
use crate::harness::Readings;
use crate::works::{Pick, Work};
use lockwright_model::{Cost, Duration, Overhead, Overheads, Protocol};

impl Protocols {
    /// Returns the overheads to be charged: common values, and a table for each of `protocols` that was measured. For a
    /// single protocol, all values are common.
    ///
    /// A cost that is part of another reading is subtracted from it, so that it is not charged twice. It counts there
    /// with its average: the worst reading does not contain the worst of its parts.
    #[must_use]
    pub fn overheads(&self, pick: Pick, protocols: &[Protocol]) -> Overheads {
        let picked = |pick: Pick, work| self.work(work).map_or(0, |readings| pick.of(readings));
        let (of, part) = (|work| picked(pick, work), |work| picked(Pick::Average, work));
        // The scheduler and a switch, without the system call.
        let change = part(Work::ContextSwitch).saturating_sub(part(Work::SystemCall));
        let call = of(Work::SystemCall);
        let schedule = of(Work::Yield).saturating_sub(part(Work::SystemCall));
        // It is charged with `schedule` only, so both together are as long as the reading.
        let rest = of(Work::ContextSwitch).saturating_sub(part(Work::SystemCall) + schedule);
        let switch = rest.max(part(Work::ContextSwitch).saturating_sub(part(Work::Yield)));
        let wake = of(Work::WakeThere).saturating_sub(part(Work::ContextSwitch));
        let late = self.work(Work::ReleaseLatency).map_or(0, |readings| pick.lateness(readings));
        let lateness = late.saturating_sub(change);
        // Its two switches are charged to the released job.
        let release = of(Work::Release).saturating_sub(2 * change);
        let leave = of(Work::LeaveSection).saturating_sub(part(Work::PriorityChange) + change);
        let costs = |protocol| self.costs.iter().filter(move |cost| cost.protocol == Some(protocol));
        let most = |protocol, part: fn(&ProtocolCost) -> Option<&Readings>| {
            costs(protocol).filter_map(part).map(|readings| pick.of(readings)).max()
        };
        // The work of protocols at the begin and end of jobs is part of a release.
        let jobs = protocols.iter().filter_map(|&protocol| most(protocol, |cost| cost.job.as_ref())).max();
        let ns = |ns: u64| Cost::constant(Duration::from_ns(ns));
        let mut overheads = Overheads::default();
        if let Some((period, taken)) = self.interruptions.charged(pick) {
            overheads.tick_period = Duration::from_ns(period);
            overheads.set(Overhead::Tick, ns(taken));
        }
        for (overhead, time) in [
            (Overhead::Release, release + jobs.unwrap_or(0)),
            (Overhead::ReleaseLatency, lateness),
            (Overhead::Schedule, schedule),
            (Overhead::ContextSwitch, switch),
            (Overhead::IpiLatency, wake),
            (Overhead::LeaveSection, leave),
            (Overhead::SyscallIn, call.div_ceil(2)),
            (Overhead::SyscallOut, call.div_ceil(2)),
        ] {
            overheads.set(overhead, ns(time));
        }
        for &protocol in protocols {
            let lock = most(protocol, |cost| cost.alone_each.as_ref().map(|each| &each.0));
            let unlock = most(protocol, |cost| cost.alone_each.as_ref().map(|each| &each.1));
            let (Some(lock), Some(unlock)) = (lock, unlock) else { continue };
            let mut rows = vec![(Overhead::Lock, lock), (Overhead::Unlock, unlock)];
            // No priority is raised in a section, so no preemption is delayed to its end.
            if matches!(protocol, Protocol::None | Protocol::Ics) || protocol.is_object() {
                rows.push((Overhead::LeaveSection, 0));
            }
            for (overhead, time) in rows {
                match protocols {
                    [_] => overheads.set(overhead, ns(time)),
                    _ => overheads.set_under(overhead, protocol, ns(time)),
                }
            }
        }
        overheads
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::works::Interruptions;

    /// One reading of 50 is much longer, for each set of operations.
    #[test]
    fn no_cost_is_lower_at_worst_than_on_average_and_a_release_is_charged_whole() {
        for long in 0..1 << Work::ALL.len() {
            let readings = |(index, work): (usize, Work)| {
                let often = 1_000 + 500 * index as u64;
                let seldom = if long & 1 << index == 0 { often } else { 50_000 };
                let all = (0..200).map(|index| if index % 50 == 0 { seldom } else { often }).collect();
                (work, Readings::new(all).expect("there are some"))
            };
            let seen = Protocols {
                machine: Work::ALL.into_iter().enumerate().map(readings).collect(),
                interruptions: Interruptions::default(),
                costs: Vec::new(),
                applications: 2,
                has_synchronisation: false,
                interrupted: false,
            };
            for pick in [Pick::Average, Pick::Worst] {
                let charged = seen.overheads(pick, &[]);
                let of = |overhead| charged.cost(overhead).with(1).as_ns();
                let switches = 2 * (of(Overhead::Schedule) + of(Overhead::ContextSwitch));
                let release = of(Overhead::Release) + switches;
                assert!(release >= pick.of(seen.work(Work::Release).expect("readings")), "{pick:?}, with {long:b}");
            }
            let [average, worst] = [Pick::Average, Pick::Worst].map(|pick| seen.overheads(pick, &[]));
            for overhead in Overhead::ALL {
                let [average, worst] = [&average, &worst].map(|all| all.cost(overhead).with(1));
                assert!(average <= worst, "{overhead:?}: {average:?} on average, {worst:?} at worst, with {long:b}");
            }
        }
    }
}
