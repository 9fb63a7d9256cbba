//! The overheads to be charged in an analysis.

use super::results::{ProtocolCost, Protocols};
use crate::harness::Readings;
use crate::works::{Pick, Work};
use lockwright_model::{Cost, Duration, Overhead, Overheads, Protocol};

impl Protocols {
    /// Returns the overheads to be charged: common values, and a table for each of `protocols` that was measured. For a
    /// single protocol, all values are common.
    ///
    /// A cost that is part of another reading is subtracted from it, so that it is not charged twice.
    #[must_use]
    pub fn overheads(&self, pick: Pick, protocols: &[Protocol]) -> Overheads {
        let of = |work| self.work(work).map_or(0, |readings| pick.of(readings));
        let call = of(Work::SystemCall);
        let schedule = of(Work::Yield).saturating_sub(call);
        let switch = of(Work::ContextSwitch).saturating_sub(call + schedule);
        let wake = of(Work::WakeThere).saturating_sub(call + schedule + switch);
        let late = self.work(Work::ReleaseLatency).map_or(0, |readings| pick.lateness(readings));
        let lateness = late.saturating_sub(schedule + switch);
        let leave = of(Work::LeaveSection).saturating_sub(of(Work::PriorityChange) + schedule + switch);
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
            (Overhead::Release, of(Work::Release) + jobs.unwrap_or(0)),
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
