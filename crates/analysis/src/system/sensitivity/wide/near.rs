//! Tests with the delays of one processor, which cost much less than those of all.

use super::{Bounds, Delay, Load, Outcome, ROUNDS_MAX, Search, Settled};
use crate::blocking::DelayBounds as _;
use crate::system::sensitivity::joint::Climb;
use lockwright_model::Protocol;

impl Search<'_> {
    /// Returns whether the delays on one processor can be computed for much less than those on all. A deadline that is
    /// missed with these is missed in any case.
    pub(super) fn is_near(&self) -> bool {
        matches!(self.ruling, Protocol::Dpcp | Protocol::Dflp | Protocol::FmlpLong | Protocol::FmlpPlus)
    }

    /// Like [`settle`](Self::settle), with the delays of `from` except on the processor where a deadline was missed
    /// last. The result is then not above that of `settle`. Sets the delays of that processor.
    pub(super) fn settle_near(&self, load: Load, bounds: &mut Bounds, from: &Settled, delays: &mut [Delay]) -> Outcome {
        let place = self.shape.critical.get();
        let cpu = self.system.task(self.shape.id(place)).cpu.0;
        let Settled { load, form, point, .. } = self.settle_beside(load, from)?;
        let mut responses = self.responses(&form.costs, |place| point.beside[place]).ok_or(None)?;
        let mut nearby = Climb::new(&self.shape, form, &responses, self.shape.neighbours(place));
        for _ in 0..ROUNDS_MAX {
            bounds.set_responses(&responses).and_then(|()| bounds.delays_in(cpu, delays)).map_err(|_| None)?;
            for place in nearby.places() {
                let (cost, blocking) = self.charged(&load, bounds, delays, place).ok_or(None)?;
                nearby.set(place, cost, blocking);
            }
            let risen = nearby.rise(&mut responses);
            if risen != Some(true) {
                let (form, point) = nearby.into_parts();
                let settled = Settled { load, form, point, known: None, delays: Vec::new() };
                return if risen.is_some() { Ok(settled) } else { Err(Some(Box::new(settled))) };
            }
        }
        // Below the fixed point still: the search on all processors goes on from here.
        let (form, point) = nearby.into_parts();
        Ok(Settled { load, form, point, known: None, delays: Vec::new() })
    }
}
