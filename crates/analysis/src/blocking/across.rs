//! The bounds of all protocols for several processors behind one type.

use super::{dflp, dpcp, fmlp_long, fmlp_plus, fmlp_short, mpcp_vs, mrsp, msrp, omlp};
use crate::bound::Unbounded;
use crate::multiprocessor::{Charge, Delay, DelayBounds};
use crate::mutant::Mutant;
use crate::tables::Tables;
use crate::{Failure, Sharing};
use lockwright_model::Protocol;

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
        Self::new_of(tables, Box::new(protocol))
    }

    /// Creates the bounds of `protocol`, or returns why there are none for this system.
    pub(crate) fn new(tables: &Tables<'_>, protocol: Protocol, sharing: &Sharing) -> Result<Self, Unbounded> {
        let bounds: Result<Box<dyn DelayBounds>, Failure> = match protocol {
            Protocol::MpcpVs => mpcp_vs::bounds(tables, sharing)?,
            Protocol::Dpcp => dpcp::bounds(tables, sharing),
            Protocol::Dflp => dflp::bounds(tables, sharing),
            Protocol::FmlpLong => fmlp_long::bounds(tables, sharing),
            Protocol::FmlpPlus => fmlp_plus::bounds(sharing),
            Protocol::FmlpShort => fmlp_short::bounds(sharing),
            Protocol::Msrp => msrp::bounds(tables, sharing)?,
            Protocol::Mrsp => mrsp::bounds(tables, sharing)?,
            _ => omlp::bounds(sharing),
        };
        // The system is valid, but its numbers do not fit.
        bounds.map(|bounds| Self::new_of(tables, bounds)).map_err(|_| Unbounded::BeyondPeriod)
    }

    fn new_of(tables: &Tables<'_>, protocol: Box<dyn DelayBounds>) -> Self {
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
pub(crate) fn refuse_fixed_ceilings(tables: &Tables<'_>, ruling: Protocol) -> Result<(), Unbounded> {
    let system = tables.system;
    let by_hand = |&id: &_| tables.protocol(id) == ruling && system.resource(id).ceiling.is_some();
    system.resource_ids().find(by_hand).map_or(Ok(()), |resource| Err(Unbounded::Ceiling { resource }))
}

/// Boxes the bounds of a protocol.
pub(crate) fn boxed<P: DelayBounds + 'static>(bounds: Result<P, Failure>) -> Result<Box<dyn DelayBounds>, Failure> {
    bounds.map(|bounds| Box::new(bounds) as Box<dyn DelayBounds>)
}
