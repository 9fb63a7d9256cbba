//! The programs as bounds of [`blocking`](crate::blocking), for iterations that find response times with
//! these.

use super::mpcp::Owners;
use super::spin::{Arrivals, Order};
use super::view::View;
use super::{Blocked, Counted, Work, dflp, dpcp, fmlp_plus, mpcp, spin};
use crate::blocking::{Charge, Delay, DelayBounds};
use crate::rows::mutant::{Mutant, Omission};
use crate::{Failure, Sharing};
use lockwright_model::Protocol;

/// The programs of all tasks under one protocol.
#[derive(Debug)]
pub(crate) struct Program {
    view: View,
    which: Which,
    /// The number of requests that may still be examined.
    left: u64,
}

/// The kind of program, with its data for all tasks.
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
    /// Creates the programs, or returns `None` if the protocol has none. `homes` contains the processor of each
    /// resource, by its number, and `jitters` the release jitter of each task. Deadlines are ignored. At most `work`
    /// requests are examined.
    pub(crate) fn new(
        sharing: &Sharing,
        protocol: Protocol,
        homes: &[u16],
        jitters: &[u64],
        omission: Omission<Mutant>,
        work: u64,
    ) -> Result<Option<Self>, Failure> {
        let is_placed = matches!(protocol, Protocol::Dpcp | Protocol::Dflp);
        let mut view = View::new(sharing, if is_placed { homes } else { &[] })?;
        for (row, &jitter) in view.rows.iter_mut().zip(jitters) {
            // Waits are bounded up to the period, whatever the response times are, so no bound decreases as these grow.
            (row.jitter, row.deadline) = (jitter, row.period);
        }
        let which = match protocol {
            Protocol::Mpcp => Which::Mpcp(Owners::new(&view, omission)?),
            Protocol::Dpcp => Which::Dpcp(view.placed(homes)?),
            Protocol::Dflp => Which::Dflp(view.placed(homes)?),
            Protocol::FmlpPlus => Which::FmlpPlus,
            Protocol::FmlpShort => Which::Spin(Arrivals::All),
            Protocol::Msrp => Which::Spin(Arrivals::Shared),
            Protocol::Mrsp => Which::Spin(Arrivals::Ceilings),
            _ => return Ok(None),
        };
        Ok(Some(Self { view, which, left: work }))
    }

    /// Returns the requests that the optimum of the program of `task` counts, for the current response times. Returns
    /// `None` if the bound is not their sum.
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

impl DelayBounds for Program {
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

    /// Spinning is execution, but the bound of a less urgent task already contains the spinning of more urgent tasks.
    fn charge(&self, delay: &Delay) -> Option<Charge> {
        Charge::of_suspensions(delay)
    }
}
