//! The bounds of each protocol for several processors, as `analyse` uses them for a system.

use super::delay::{Charge, Delay, DelayBounds, Platform};
use super::dflp::Dflp;
use super::dpcp::Dpcp;
use super::fmlp::{FmlpPlus, Sections};
use super::fmlp_long::FmlpLong;
use super::mpcp::{CarryIn, Mpcp, Waiting};
use super::mrsp::system::Mrsp;
use super::msrp;
use super::spin::Fifo;
use crate::rows::bound::Unbounded;
use crate::rows::failure::Failure;
use crate::rows::mutant::Mutant;
use crate::rows::sharing::Sharing;
use crate::rows::tables::Tables;
use lockwright_model::{Protocol, TaskId};

/// The bounds of one protocol.
pub(crate) struct Bounds {
    protocol: Box<dyn DelayBounds>,
    /// The response times, for the mutant that omits jobs which arrived before the window.
    without_carry_in: Option<Vec<u64>>,
}

impl Bounds {
    /// Wraps the bounds of `protocol`.
    #[cfg(feature = "lp")]
    pub(crate) fn of(tables: &Tables<'_>, protocol: impl DelayBounds + 'static) -> Self {
        Self::of_boxed(tables, Box::new(protocol))
    }

    /// Creates the bounds of `protocol`, or returns why there are none for this system.
    pub(crate) fn new(tables: &Tables<'_>, protocol: Protocol, sharing: &Sharing) -> Result<Self, Unbounded> {
        let bounds = match protocol {
            Protocol::MpcpVs => {
                refuse_fixed_ceilings(tables, Protocol::MpcpVs)?;
                boxed(Mpcp::new(sharing, Waiting::Virtual, CarryIn::Response))
            }
            Protocol::Dpcp => boxed(Dpcp::new(sharing, &tables.homes())),
            Protocol::Dflp => boxed(Dflp::new(sharing, &tables.homes())),
            Protocol::FmlpLong => boxed(FmlpLong::new(tables, sharing)),
            // A holder can be preempted by a holder whose request was earlier.
            Protocol::FmlpPlus => boxed(FmlpPlus::new(sharing, Sections::Preemptive)),
            Protocol::Msrp => {
                refuse_fixed_ceilings(tables, Protocol::Icpp)?;
                boxed(msrp::protocol(sharing, None))
            }
            Protocol::Mrsp => {
                refuse_equal_priorities(tables)?;
                boxed(Mrsp::new(tables, sharing))
            }
            // FIFO spinlocks for all resources, including those of one processor, and the partitioned OMLP, whose
            // waits are the same.
            _ => boxed(Fifo::new(sharing, Platform::partitioned(sharing))),
        };
        // The system is valid, but its numbers do not fit.
        bounds.map(|bounds| Self::of_boxed(tables, bounds)).map_err(|_| Unbounded::BeyondPeriod)
    }

    fn of_boxed(tables: &Tables<'_>, protocol: Box<dyn DelayBounds>) -> Self {
        Self { protocol, without_carry_in: tables.is_mutant(Mutant::RemoteCarryIn).then(Vec::new) }
    }
}

impl DelayBounds for Bounds {
    fn set_responses(&mut self, responses: &[u64]) -> Result<(), Failure> {
        if let Some(kept) = &mut self.without_carry_in {
            *kept = responses.to_vec();
        }
        self.protocol.set_responses(responses)
    }

    fn delays(&mut self, delays: &mut [Delay]) -> Result<(), Failure> {
        let Some(kept) = &self.without_carry_in else { return self.protocol.delays(delays) };
        let mut all = vec![Delay::default(); delays.len()];
        for (task, delay) in delays.iter_mut().enumerate() {
            // The jobs of others count as if each finished at once.
            let alone: Vec<u64> = (0..kept.len()).map(|other| if other == task { kept[task] } else { 0 }).collect();
            self.protocol.set_responses(&alone)?;
            self.protocol.delays(&mut all)?;
            *delay = all[task];
        }
        Ok(())
    }

    fn charge(&self, delay: &Delay) -> Option<Charge> {
        self.protocol.charge(delay)
    }
}

/// Returns an error for a resource under `ruling` whose ceiling is set explicitly, as the bounds assume the ceilings of
/// the users.
fn refuse_fixed_ceilings(tables: &Tables<'_>, ruling: Protocol) -> Result<(), Unbounded> {
    let system = tables.system;
    let by_hand = |&id: &_| tables.protocol(id) == ruling && system.resource(id).ceiling.is_some();
    system.resource_ids().find(by_hand).map_or(Ok(()), |resource| Err(Unbounded::Ceiling { resource }))
}

/// Returns an error if two tasks of one processor have the same priority.
fn refuse_equal_priorities(tables: &Tables<'_>) -> Result<(), Unbounded> {
    for tasks in &tables.cpus {
        let equal = |pair: &&[TaskId]| tables.system.task(pair[0]).priority == tables.system.task(pair[1]).priority;
        if let Some(pair) = tasks.windows(2).find(equal) {
            return Err(Unbounded::Equals { one: pair[0], other: pair[1] });
        }
    }
    Ok(())
}

fn boxed<P: DelayBounds + 'static>(bounds: Result<P, Failure>) -> Result<Box<dyn DelayBounds>, Failure> {
    bounds.map(|bounds| Box::new(bounds) as Box<dyn DelayBounds>)
}
