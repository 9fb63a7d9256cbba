//! The programs as bounds of [`multiprocessor`](crate::multiprocessor), for whoever finds response times with those.

use super::mpcp::Owners;
use super::spin::{Arrivals, Order};
use super::view::View;
use super::{Blocked, Counted, Work, dflp, dpcp, fmlp_plus, mpcp, spin};
use crate::multiprocessor::{Charge, Delay, Protocol};
use crate::{Failure, Sharing};
use lockwright_model::Protocol as Name;

/// The programs of all tasks under one protocol.
#[derive(Debug)]
pub(crate) struct Program {
    view: View,
    which: Which,
    /// Requests that can still be looked at.
    left: u64,
}

/// Which programs, and what they need of all tasks.
#[derive(Debug)]
enum Which {
    Mpcp(Owners),
    Dpcp(Vec<usize>),
    Dflp(Vec<usize>),
    FmlpPlus,
    Spin(Arrivals),
}

impl Which {
    fn bounds(&self, view: &View, work: &mut Work) -> Result<Vec<Blocked>, Failure> {
        match self {
            Self::Mpcp(owners) => mpcp::bounds(view, owners, work),
            Self::Dpcp(placed) => dpcp::bounds(view, placed, work),
            Self::Dflp(placed) => dflp::bounds(view, placed, work),
            Self::FmlpPlus => fmlp_plus::bounds(view, work),
            Self::Spin(arrivals) => spin::bounds(view, Order::Fifo, *arrivals, work),
        }
    }
}

impl Program {
    /// `None` where the protocol has no program. `homes` has the processor of each resource, by its number, and
    /// `jitters` the release jitter of each task. Deadlines play no part. At most `work` requests are looked at.
    pub(crate) fn new(
        sharing: &Sharing,
        protocol: Name,
        homes: &[u16],
        jitters: &[u64],
        work: u64,
    ) -> Result<Option<Self>, Failure> {
        let is_placed = matches!(protocol, Name::Dpcp | Name::Dflp);
        let mut view = View::new(sharing, if is_placed { homes } else { &[] })?;
        for (row, &jitter) in view.rows.iter_mut().zip(jitters) {
            // Waits are sought up to the period, whatever the response times are: so no bound falls as these grow.
            (row.jitter, row.deadline) = (jitter, row.period);
        }
        let which = match protocol {
            Name::Mpcp => Which::Mpcp(Owners::new(&view)?),
            Name::Dpcp => Which::Dpcp(view.placed(homes)?),
            Name::Dflp => Which::Dflp(view.placed(homes)?),
            Name::FmlpPlus => Which::FmlpPlus,
            Name::FmlpShort => Which::Spin(Arrivals::All),
            Name::Msrp => Which::Spin(Arrivals::Shared),
            Name::Mrsp => Which::Spin(Arrivals::Ceilings),
            _ => return Ok(None),
        };
        Ok(Some(Self { view, which, left: work }))
    }

    /// What the optimum of the program of `task` counts, with the response times there are; `None` where the bound is
    /// not that sum.
    pub(crate) fn counted(&self, task: usize) -> Result<Option<(Blocked, Vec<Counted>)>, Failure> {
        let mut work = Work::of_one(task);
        let blocked = self.which.bounds(&self.view, &mut work)?;
        let (Some(&blocked), Some(counted)) = (blocked.first(), work.counted) else { return Ok(None) };
        let sum = |remote: bool| {
            let its = counted.iter().filter(|counted| counted.remote == remote);
            its.fold(0_u64, |sum, counted| sum.saturating_add(counted.count.saturating_mul(counted.length)))
        };
        let is_sum = sum(true) == blocked.remote && sum(false) == blocked.local;
        Ok(is_sum.then_some((blocked, counted)))
    }
}

impl Protocol for Program {
    fn set_responses(&mut self, responses: &[u64]) -> Result<(), Failure> {
        for (row, &response) in self.view.rows.iter_mut().zip(responses) {
            row.response = response;
        }
        Ok(())
    }

    fn delays(&mut self, delays: &mut [Delay]) -> Result<(), Failure> {
        let mut work = Work::limited(&self.view, self.left);
        let bounds = self.which.bounds(&self.view, &mut work)?;
        self.left = work.left;
        for (delay, blocked) in delays.iter_mut().zip(bounds) {
            *delay = Delay { remote: Some(blocked.remote), local: blocked.local, ..Delay::default() };
        }
        Ok(())
    }

    /// Whoever spins executes, but what more urgent tasks spin is in the bound of the less urgent one.
    fn charge(&self, delay: &Delay) -> Option<Charge> {
        Some(Charge { suspended: delay.remote?, blocked: delay.local, executed: 0 })
    }
}
