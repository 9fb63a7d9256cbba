//! Spinning under MSRP with partitioned EDF.
//!
//! Symbols are those of `spin.rs`. On each remote processor, jobs spin for at most own(q) requests, and for one more at
//! the start. Spinning for x is limited to ceil((t + D_x) / T_x) times the sum over local i of N(i,q) * ceil((D_x +
//! D_i) / T_i) requests. The longest requests within these limits are the optimum.

use super::super::sum;
use super::super::view::{Entry, add_product, product};
use super::processor::{Mode, Processor};
use crate::Failure;
use crate::rows::mutant::Mutant;

/// The requests and sections that the optimum for one interval counts.
pub(super) struct Optimum {
    /// The requests for which the due jobs spin, by place in [`Processor::spun`].
    pub(super) alone: Vec<u64>,
    /// The same with one more request on each processor, which spins at the start.
    with_start: Vec<u64>,
    /// The section at the start that delays longest, and the spinning before it.
    pub(super) start: Option<(Entry, u64)>,
    /// B(t).
    pub(super) total: u64,
}

impl Optimum {
    /// Returns the requests for which jobs spin, those at the start included, by place in [`Processor::spun`].
    pub(super) fn all(&self, processor: &Processor<'_>) -> Vec<u64> {
        let q = self.start.map(|(entry, _)| entry.resource);
        let both = processor.spun.iter().zip(self.alone.iter().zip(&self.with_start));
        both.map(|(spun, (&alone, &with))| if Some(spun.entry.resource) == q { with } else { alone }).collect()
    }
}

impl Processor<'_> {
    pub(super) fn msrp(&self, t: u64, mode: Mode) -> Result<Optimum, Failure> {
        let (own, jobs) = (self.own(t, mode)?, self.jobs_of_remote(t)?);
        let pools = self.view.clusters * self.view.resources;
        // By pool: the requests taken without and with the start, and whether the start still may take one.
        let mut taken = vec![(0_u64, 0_u64, true); pools];
        // By resource, the time of the requests taken without and with the start.
        let mut times = vec![(0_u64, 0_u64); self.view.resources];
        let mut optimum = Optimum {
            alone: Vec::with_capacity(self.spun.len()),
            with_start: Vec::with_capacity(self.spun.len()),
            start: None,
            total: 0,
        };
        for spun in &self.spun {
            let (x, q, length) = (spun.entry.task, spun.entry.resource, spun.entry.length);
            let issued = if self.is_mutant(Mutant::Waiting) { 0 } else { product(spun.entry.count, jobs[x])? };
            let most = issued.min(spun.each.saturating_mul(jobs[x]));
            let (alone, with_start, is_free) = &mut taken[spun.pool];
            let without = most.min(own[q] - *alone);
            *alone += without;
            let room = sum(own[q], 1)? - *with_start;
            let with = issued.min(most.saturating_add((*is_free).into())).min(room);
            *with_start += with;
            *is_free &= with <= most;
            add_product(&mut times[q].0, without, length)?;
            add_product(&mut times[q].1, with, length)?;
            optimum.alone.push(without);
            optimum.with_start.push(with);
        }
        let mut longest = 0;
        for (entry, (without, with)) in self.at_start(t, mode).into_iter().zip(&times) {
            let Some(entry) = entry else { continue };
            // The longest requests come first, so one more never shortens the sum.
            let spinning = with.checked_sub(*without).ok_or(Failure::Overflow)?;
            let delay = sum(entry.length, spinning)?;
            if optimum.start.is_none() || delay > longest {
                longest = delay;
                optimum.start = Some((entry, spinning));
            }
        }
        optimum.total = times.iter().try_fold(longest, |total, (without, _)| sum(total, *without))?;
        Ok(optimum)
    }
}
