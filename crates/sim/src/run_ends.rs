//! The ends of the processors' current runs.
//!
//! There are few processors, and an event often changes several ends. So the ends are not kept in order: to find the
//! earliest, all are compared, in groups and without branches, which would be unpredictable.

/// Stands for the end of a run on an idle processor.
pub(crate) const NEVER: u64 = u64::MAX;

/// The number of ends in a group.
const GROUP: usize = 8;

/// The end of each processor's run, or [`NEVER`].
pub(crate) struct RunEnds {
    ends: Box<[[u64; GROUP]]>,
}

impl RunEnds {
    pub(crate) fn never(cpus: usize) -> Self {
        Self { ends: vec![[NEVER; GROUP]; cpus.div_ceil(GROUP)].into() }
    }

    /// Returns the earliest end.
    ///
    /// BOUND: one step for each group of processors.
    #[inline]
    pub(crate) fn first(&self) -> u64 {
        self.ends.iter().fold(NEVER, |first, group| first.min(earliest(group)))
    }

    /// Returns the set of processors whose runs end at this time, as bits.
    ///
    /// BOUND: one step for each processor.
    #[inline]
    pub(crate) fn ending(&self, at: u64) -> u64 {
        let bits =
            |group: &[u64; GROUP]| (0..GROUP).fold(0, |bits, place| bits | u64::from(group[place] == at) << place);
        self.ends.iter().rev().fold(0, |all, group| all << GROUP | bits(group))
    }

    #[inline]
    pub(crate) fn get(&self, cpu: usize) -> u64 {
        self.ends[cpu / GROUP][cpu % GROUP]
    }

    #[inline]
    pub(crate) fn set(&mut self, cpu: usize, end: u64) {
        self.ends[cpu / GROUP][cpu % GROUP] = end;
    }
}

/// Returns the earliest of some ends. It is not inlined, because the compiler makes branches of it in a loop.
#[inline(never)]
fn earliest(ends: &[u64; GROUP]) -> u64 {
    let [a, b, c, d, e, f, g, h] = *ends;
    a.min(b).min(c.min(d)).min(e.min(f).min(g.min(h)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_end_and_its_processors_are_found() {
        let mut random = fastrand::Rng::with_seed(3);
        for cpus in [1, 2, 3, 8, 9, 16, 64] {
            let (mut run_ends, mut ends) = (RunEnds::never(cpus), vec![NEVER; cpus]);
            for _ in 0..2_000 {
                let cpu = random.usize(0..cpus);
                ends[cpu] = if random.u8(0..8) == 0 { NEVER } else { random.u64(0..20) };
                run_ends.set(cpu, ends[cpu]);
                assert_eq!(run_ends.get(cpu), ends[cpu]);
                assert_eq!(Some(run_ends.first()), ends.iter().copied().min());
                let at = random.u64(0..20);
                let ending = (0..cpus).filter(|&cpu| ends[cpu] == at).fold(0, |bits, cpu| bits | 1 << cpu);
                assert_eq!(run_ends.ending(at), ending);
            }
        }
    }
}
