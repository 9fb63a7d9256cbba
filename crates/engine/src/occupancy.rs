//! Which threads had the CPUs of a run, from the kernel's record of context switches.
//!
//! An ordinary thread empties the kernel's rings during the run. If it does not execute in time, or there are too many
//! records, the missing time is reported as [`Taker::Unknown`].

use crate::observe::Gap;
use crate::rounds::Rounds;
use crate::steal::{Steal, Steals, charge};
use crate::switches::{Ring, Switch};
use lockwright_model::{Duration, Instant, TaskId};
use lockwright_sys::clock;
use lockwright_sys::sched::Tid;
use std::collections::HashMap;
use std::fmt;

/// The number of rounds between two readings of the steal time.
const STEAL_ROUNDS: u32 = 5;
/// The most switches and waits that are kept for all CPUs together: 32 MiB.
const SWITCHES_MAX: usize = 1 << 21;

/// The user of a CPU while no task of the run executed on it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Taker {
    /// A thread that is not a task of the run, by name.
    Thread(String),
    /// A thread that is not a task of the run, or none. The kernel does not disclose more to this user.
    Others,
    /// No thread: the CPU was idle.
    Idle,
    /// The host, by the steal time of the CPU, which has steps of 10 ms: the kernel's record shows a task of the run,
    /// but it did not execute.
    Host,
    /// Interrupts, the kernel, or the host for less than a step: the kernel's record shows a task of the run, but it
    /// did not execute.
    Machine,
    /// Unknown: there is no record of that time.
    Unknown,
}

impl fmt::Display for Taker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Thread(name) => write!(f, "`{name}`"),
            Self::Others => f.write_str("other threads, or none"),
            Self::Idle => f.write_str("idle"),
            Self::Host => f.write_str("the host (steal time)"),
            Self::Machine => f.write_str("the kernel, interrupts or the host"),
            Self::Unknown => f.write_str("not recorded"),
        }
    }
}

/// The thread that has a CPU from some time on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Holder {
    Thread(u32),
    /// A thread that is not recorded.
    Other,
    Unknown,
}

/// Which threads had the CPUs of a run.
#[derive(Clone, Debug)]
pub struct Occupancy {
    /// The holders of each CPU of the system, in order of time.
    cpus: Vec<Vec<(u64, Holder)>>,
    /// The threads of the run that execute tasks.
    tasks: Vec<u32>,
    names: HashMap<u32, String>,
    /// When a thread left its CPU to wait.
    waits: Vec<(u64, u32)>,
    /// The time that the host took from each CPU of the system.
    steals: Vec<Vec<Steal>>,
    start_ns: u64,
}

impl Occupancy {
    /// The users of the CPUs in these stretches of time, and how long each had one; the longest first.
    #[must_use]
    pub fn takers<'a>(&self, gaps: impl IntoIterator<Item = &'a Gap>) -> Vec<(Taker, Duration)> {
        let mut taken: HashMap<Taker, Duration> = HashMap::new();
        let mut steals = self.steals.clone();
        for gap in gaps {
            let steals = steals.get_mut(gap.cpu.index()).map_or(&mut [][..], |steals| steals);
            self.take(gap, steals, &mut taken);
        }
        let mut taken: Vec<(Taker, Duration)> = taken.into_iter().collect();
        taken.sort_by(|(taker, time), (other, others)| others.cmp(time).then_with(|| taker.cmp(other)));
        taken
    }

    /// The times at which the thread of a task left its CPU to wait, as far as the kernel recorded them.
    pub fn waits(&self, task: TaskId) -> impl Iterator<Item = Instant> {
        let id = self.tasks.get(task.index());
        let waits = self.waits.iter().filter(move |(at, thread)| Some(thread) == id && *at >= self.start_ns);
        waits.map(|(at, _)| Instant::from_ns(at - self.start_ns))
    }

    fn take(&self, gap: &Gap, steals: &mut [Steal], taken: &mut HashMap<Taker, Duration>) {
        let at = |instant: Instant| self.start_ns.saturating_add(instant.since(Instant::ZERO).as_ns());
        let (from, until) = (at(gap.from), at(gap.until));
        let Some(switches) = self.cpus.get(gap.cpu.index()) else { return };
        let first = switches.partition_point(|&(at, _)| at <= from);
        let before = first.checked_sub(1).map_or(Holder::Unknown, |before| switches[before].1);
        let (mut since, mut holder) = (from, before);
        let later = switches[first..].iter().copied().take_while(|&(at, _)| at < until);
        for (next, holds) in later.chain([(until, Holder::Unknown)]) {
            if next > since {
                let (taker, mut rest) = (self.taker(holder), next - since);
                if taker == Taker::Machine {
                    let stolen = charge(steals, since, next);
                    if stolen > 0 {
                        *taken.entry(Taker::Host).or_default() += Duration::from_ns(stolen);
                    }
                    rest -= stolen;
                }
                if rest > 0 {
                    *taken.entry(taker).or_default() += Duration::from_ns(rest);
                }
            }
            (since, holder) = (next, holds);
        }
    }

    fn taker(&self, holder: Holder) -> Taker {
        match holder {
            Holder::Thread(0) => Taker::Idle,
            Holder::Thread(id) if self.tasks.contains(&id) => Taker::Machine,
            // Every thread that `Book::holder` returns has a name.
            Holder::Thread(id) => self.names.get(&id).cloned().map_or(Taker::Unknown, Taker::Thread),
            Holder::Other => Taker::Others,
            Holder::Unknown => Taker::Unknown,
        }
    }
}

/// Records context switches until it is stopped or dropped.
pub struct Recorder {
    rounds: Rounds<Book>,
    tasks: Vec<Tid>,
}

impl Recorder {
    /// Starts to record these CPUs, given by their Linux numbers in the order of the system's CPUs. If that is not
    /// permitted, records only these threads. Returns `None` if neither is permitted.
    pub fn start(cpus: &[usize], tasks: &[Tid]) -> Option<Self> {
        let all: Result<Vec<Ring>, _> = cpus.iter().map(|&cpu| Ring::of_cpu(cpu)).collect();
        let mut rings = all.or_else(|_| tasks.iter().map(|&task| Ring::of_thread(task)).collect()).ok()?;
        if rings.is_empty() {
            return None;
        }
        let mut rounds = 0_u32;
        let round = move |book: &mut Book, is_last| {
            if is_last || rounds.is_multiple_of(STEAL_ROUNDS) {
                book.steals.read(clock::now_ns());
            }
            rounds = rounds.wrapping_add(1);
            for ring in &mut rings {
                book.read(ring);
            }
        };
        let rounds = Rounds::start("lockwright-recorder", Book::new(cpus), round).ok()?;
        Some(Self { rounds, tasks: tasks.to_vec() })
    }

    /// Stops, and returns what was recorded of a run that began at `start_ns`.
    ///
    /// BOUND: one last read of the rings.
    pub fn stop(self, start_ns: u64) -> Option<Occupancy> {
        let occupancy = self.rounds.stop()?.close(&self.tasks);
        Some(Occupancy { start_ns, ..occupancy })
    }
}

/// The records so far.
struct Book {
    /// For each CPU of the system, its Linux number and its holders in order of time.
    cpus: Vec<(usize, Vec<(u64, Holder)>)>,
    names: HashMap<u32, String>,
    waits: Vec<(u64, u32)>,
    steals: Steals,
    written: usize,
    /// Whether threads of all PID namespaces have ids here.
    sees_all: bool,
}

impl Book {
    fn new(cpus: &[usize]) -> Self {
        let steals = Steals::new(cpus);
        let cpus = cpus.iter().map(|&cpu| (cpu, Vec::new())).collect();
        Self { cpus, names: HashMap::new(), waits: Vec::new(), steals, written: 0, sees_all: is_first_namespace() }
    }

    fn read(&mut self, ring: &mut Ring) {
        ring.drain(|switch| self.note(switch));
    }

    fn note(&mut self, switch: Switch) {
        // The next record names the thread that follows a preempted one.
        let is_kept = !matches!(switch, Switch::Out { waits: false, is_last: false, .. });
        if self.written >= SWITCHES_MAX || !is_kept {
            return;
        }
        self.written += 1;
        match switch {
            Switch::In { at_ns, cpu, thread } => {
                let holder = self.holder(thread);
                self.put(cpu, at_ns, holder);
            }
            Switch::Out { at_ns, cpu, thread, waits, is_last } => {
                if waits {
                    self.waits.push((at_ns, thread));
                }
                if is_last {
                    self.put(cpu, at_ns, Holder::Other);
                }
            }
            Switch::Lost => self.lose(),
        }
        if self.written == SWITCHES_MAX {
            self.lose();
        }
    }

    fn put(&mut self, number: usize, at_ns: u64, holder: Holder) {
        if let Some((_, switches)) = self.cpus.iter_mut().find(|(known, _)| *known == number) {
            switches.push((at_ns, holder));
        }
    }

    /// Notes that records were lost: each CPU's holder is unknown from its last record to its next one.
    fn lose(&mut self) {
        for (_, switches) in &mut self.cpus {
            if let Some(&(at, _)) = switches.last() {
                switches.push((at, Holder::Unknown));
            }
        }
    }

    /// The holder for the kernel's thread id. The id is 0 for the idle thread and for threads outside the process's
    /// namespace, and `u32::MAX` for a thread that has ended.
    fn holder(&mut self, thread: u32) -> Holder {
        match thread {
            0 if self.sees_all => Holder::Thread(0),
            0 | u32::MAX => Holder::Other,
            id => {
                self.names.entry(id).or_insert_with(|| name(id));
                Holder::Thread(id)
            }
        }
    }

    fn close(self, tasks: &[Tid]) -> Occupancy {
        let mut cpus: Vec<Vec<(u64, Holder)>> = self.cpus.into_iter().map(|(_, switches)| switches).collect();
        // The rings of several threads were read one after the other. Of two records with the same time, the later one
        // counts.
        cpus.iter_mut().for_each(|switches| switches.sort_by_key(|&(at, _)| at));
        let tasks = tasks.iter().map(|task| task.0).collect();
        Occupancy { cpus, tasks, names: self.names, waits: self.waits, steals: self.steals.into_taken(), start_ns: 0 }
    }
}

/// The kernel's name for a thread, or its id if it has ended.
fn name(thread: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{thread}/comm"));
    // A thread can set any name, including control characters.
    let tame = |name: &str| name.trim_end().replace(|c: char| c.is_control(), "?");
    name.map_or_else(|_| format!("thread {thread}"), |name| tame(&name))
}

/// Whether the process is in the initial PID namespace.
pub(crate) fn is_first_namespace() -> bool {
    std::fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link.as_os_str() == "pid:[4026531836]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockwright_model::CpuId;

    fn at(ns: u64) -> Instant {
        Instant::from_ns(ns)
    }

    fn gap(from: u64, until: u64) -> Gap {
        Gap { cpu: CpuId::new(0), from: at(from), until: at(until) }
    }

    fn book() -> Book {
        let mut book = Book { sees_all: true, ..Book::new(&[3]) };
        book.names.insert(8, "cat".into());
        for (at_ns, thread) in [(1_000, 7), (1_010, 8), (1_030, 0), (1_040, 7)] {
            book.note(Switch::In { at_ns, cpu: 3, thread });
        }
        // A record of another CPU is ignored.
        book.note(Switch::In { at_ns: 1_050, cpu: 2, thread: 8 });
        book
    }

    fn taken(book: Book, gaps: &[Gap]) -> Vec<(Taker, u64)> {
        let occupancy = Occupancy { start_ns: 900, ..book.close(&[Tid(7)]) };
        occupancy.takers(gaps).into_iter().map(|(taker, time)| (taker, time.as_ns())).collect()
    }

    #[test]
    fn each_holder_gets_its_time() {
        let cat = || Taker::Thread("cat".into());
        assert_eq!(taken(book(), &[gap(100, 145)]), [(cat(), 20), (Taker::Machine, 15), (Taker::Idle, 10)]);
        assert_eq!(taken(book(), &[gap(115, 120), gap(125, 135)]), [(cat(), 10), (Taker::Idle, 5)]);
        // The holder before the first record is unknown.
        assert_eq!(taken(book(), &[gap(90, 105)]), [(Taker::Unknown, 10), (Taker::Machine, 5)]);
        assert_eq!(taken(book(), &[gap(110, 110)]), []);
    }

    #[test]
    fn the_host_is_told_by_the_steal_time() {
        let occupancy = Occupancy { start_ns: 900, ..book().close(&[Tid(7)]) };
        let steal = Steal { from_ns: 1_035, until_ns: 2_000, taken_ns: 8 };
        let occupancy = Occupancy { steals: vec![vec![steal]], ..occupancy };
        let taken = |gaps: &[Gap]| -> Vec<(Taker, u64)> {
            occupancy.takers(gaps).into_iter().map(|(taker, time)| (taker, time.as_ns())).collect()
        };
        // A task had the CPU from 100 to 110 and from 140 on.
        assert_eq!(taken(&[gap(100, 110)]), [(Taker::Machine, 10)]);
        assert_eq!(taken(&[gap(140, 145)]), [(Taker::Host, 5)]);
        assert_eq!(taken(&[gap(130, 145)]), [(Taker::Idle, 10), (Taker::Host, 5)]);
        assert_eq!(taken(&[gap(140, 145), gap(145, 150)]), [(Taker::Host, 8), (Taker::Machine, 2)]);
    }

    #[test]
    fn lost_records_are_unknown_until_the_next_one() {
        let mut book = book();
        book.note(Switch::Lost);
        book.note(Switch::Out { at_ns: 1_100, cpu: 3, thread: 8, waits: true, is_last: true });
        assert_eq!(
            taken(book, &[gap(120, 210)]),
            [(Taker::Unknown, 60), (Taker::Thread("cat".into()), 10), (Taker::Others, 10), (Taker::Idle, 10)]
        );
    }

    #[test]
    fn time_after_a_full_book_is_unknown() {
        let mut book = book();
        book.written = SWITCHES_MAX - 1;
        book.note(Switch::In { at_ns: 1_060, cpu: 3, thread: 0 });
        book.note(Switch::In { at_ns: 1_070, cpu: 3, thread: 8 });
        assert_eq!(taken(book, &[gap(140, 180)]), [(Taker::Machine, 20), (Taker::Unknown, 20)]);
    }

    #[test]
    fn an_unnamed_thread_counts_as_others() {
        let mut book = Book { sees_all: false, ..Book::new(&[3]) };
        book.note(Switch::In { at_ns: 1_000, cpu: 3, thread: 0 });
        book.note(Switch::In { at_ns: 1_010, cpu: 3, thread: u32::MAX });
        assert_eq!(taken(book, &[gap(100, 120)]), [(Taker::Others, 20)]);
    }
}
