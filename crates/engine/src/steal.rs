//! Steal time: the time that a host took from the CPUs of a virtual machine, from `/proc/stat`.
//!
//! The kernel counts it for each CPU in steps of [`STEP`], and rounds down. So two readings of a counter show how much
//! was taken in between, to within one step, but not when.

use std::time::Duration as Wall;

/// The unit of the counters: Linux shows hundredths of a second on all architectures that this crate supports.
pub(crate) const STEP: Wall = Wall::from_millis(10);
/// The field of a line that counts steal time, after the name of the CPU.
const FIELD: usize = 7;

/// Time that the host took from one CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Steal {
    /// The time in which it was taken, on the clock of the switches. It includes a step before the first reading,
    /// because the counter is rounded down.
    pub(crate) from_ns: u64,
    pub(crate) until_ns: u64,
    pub(crate) taken_ns: u64,
}

/// The counters of the CPUs of a run, and what they told so far.
pub(crate) struct Steals {
    /// For each CPU of the system, its Linux number and its last reading.
    cpus: Vec<(usize, Option<u64>)>,
    read_ns: u64,
    taken: Vec<Vec<Steal>>,
}

impl Steals {
    /// No readings yet of these CPUs, given by their Linux numbers.
    pub(crate) fn new(cpus: &[usize]) -> Self {
        Self { cpus: cpus.iter().map(|&cpu| (cpu, None)).collect(), read_ns: 0, taken: vec![Vec::new(); cpus.len()] }
    }

    /// Reads the counters at this time.
    pub(crate) fn read(&mut self, now_ns: u64) {
        if let Ok(stat) = std::fs::read_to_string("/proc/stat") {
            self.note(&stat, now_ns);
        }
    }

    fn note(&mut self, stat: &str, now_ns: u64) {
        let step_ns = STEP.as_nanos() as u64;
        for ((number, last), taken) in self.cpus.iter_mut().zip(&mut self.taken) {
            let Some(steps) = steps(stat, *number) else { continue };
            // The counter of a CPU that was offline begins anew.
            let more = last.map_or(0, |last| steps.saturating_sub(last));
            *last = Some(steps);
            if more > 0 {
                let from_ns = self.read_ns.saturating_sub(step_ns);
                taken.push(Steal { from_ns, until_ns: now_ns, taken_ns: more.saturating_mul(step_ns) });
            }
        }
        self.read_ns = now_ns;
    }

    /// Returns the time taken from each CPU of the system, in order of time.
    pub(crate) fn into_taken(self) -> Vec<Vec<Steal>> {
        self.taken
    }
}

/// Charges a stretch of time to the host, as far as it took time meanwhile. Returns how much of the stretch that is;
/// the same time is not charged again.
pub(crate) fn charge(steals: &mut [Steal], from_ns: u64, until_ns: u64) -> u64 {
    let mut charged = 0;
    for steal in steals.iter_mut().filter(|steal| steal.from_ns < until_ns && from_ns < steal.until_ns) {
        let common = until_ns.min(steal.until_ns) - from_ns.max(steal.from_ns);
        let part = common.min(steal.taken_ns).min(until_ns - from_ns - charged);
        steal.taken_ns -= part;
        charged += part;
    }
    charged
}

/// The steal time of a CPU in steps, since the machine was started.
fn steps(stat: &str, cpu: usize) -> Option<u64> {
    let line = stat.lines().find_map(|line| line.strip_prefix(&format!("cpu{cpu} ")))?;
    line.split_whitespace().nth(FIELD)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two recordings of one virtual machine, and one of a kernel without steal time.
    const BEFORE: &str = "cpu  2233562 70797 245057 769202 6248 0 1273 2451 0 0\n\
        cpu0 1104706 34541 120952 400753 1931 0 113 1269 0 0\n\
        cpu1 1128856 36256 124104 368449 4317 0 1159 1182 0 0\n\
        intr 25646057 0 0\nctxt 1\nbtime 1\n";
    const AFTER: &str = "cpu  2233601 70797 245061 769202 6248 0 1273 2454 0 0\n\
        cpu0 1104731 34541 120954 400753 1931 0 113 1272 0 0\n\
        cpu1 1128870 36256 124107 368449 4317 0 1159 1182 0 0\n\
        intr 25646112 0 0\nctxt 1\nbtime 1\n";
    const OLD: &str = "cpu0 1104706 34541 120952 400753 1931 0 113\n";

    #[test]
    fn the_steal_time_of_each_cpu_is_read() {
        assert_eq!([0, 1, 2, 11].map(|cpu| steps(BEFORE, cpu)), [Some(1269), Some(1182), None, None]);
        assert_eq!(steps(OLD, 0), None);
        let mut steals = Steals::new(&[1, 0]);
        steals.note(BEFORE, 1_000_000_000);
        steals.note(AFTER, 1_100_000_000);
        steals.note(OLD, 1_200_000_000);
        steals.note(AFTER, 1_300_000_000);
        // The counter of the other CPU did not move.
        let taken = Steal { from_ns: 990_000_000, until_ns: 1_100_000_000, taken_ns: 30_000_000 };
        assert_eq!(steals.into_taken(), [vec![], vec![taken]]);
    }

    #[test]
    fn no_time_is_charged_twice() {
        let mut steals =
            [Steal { from_ns: 100, until_ns: 200, taken_ns: 30 }, Steal { from_ns: 190, until_ns: 300, taken_ns: 30 }];
        assert_eq!(charge(&mut steals, 0, 100), 0);
        assert_eq!(charge(&mut steals, 90, 110), 10);
        assert_eq!(charge(&mut steals, 150, 250), 50);
        assert_eq!(charge(&mut steals, 150, 250), 0);
        let mut both =
            [Steal { from_ns: 100, until_ns: 200, taken_ns: 30 }, Steal { from_ns: 190, until_ns: 300, taken_ns: 30 }];
        assert_eq!(charge(&mut both, 192, 198), 6, "not more than there is");
    }
}
