//! Lock and unlock without contention, and the costs of the machine in the same run.

use super::results::{Kind, ProtocolCost, Variant, run_error, section_error};
use crate::harness::Readings;
use crate::pace::LEVEL;
use crate::works::{BATCH, Interruptions, TURN, Work, Works};
use lockwright::mutex::{Limit, Mutex, MutexProtocol};
use lockwright::raw::{Levels, Locks, check_system};
use lockwright::section::Lazy;
use lockwright::tasks::{MachineError, TaskError};
use lockwright_engine::raw::become_realtime;
use lockwright_engine::{Control, RunError};
use lockwright_locks::{SpinLock, Ticket};
use lockwright_model::{
    CpuId, Duration, Instant, Priority, Protocol, Resource, ResourceId, Scheduler, Step, System, Task, TaskId,
};
use lockwright_sys::clock;
use lockwright_sys::sched::{self, ME};

pub(super) type Alone = (Vec<(Work, Readings)>, Vec<ProtocolCost>, Interruptions);

/// The readings of one protocol without contention.
#[derive(Default)]
struct Pairs {
    lock: Vec<u64>,
    unlock: Vec<u64>,
    job: Vec<u64>,
}

/// The calling thread as one of two tasks that share a resource. The other task has no thread, so there is no
/// contention. Under a protocol for several processors, the other task and the home of the resource are on another
/// processor, if there is one.
struct Lonely {
    system: System,
    locks: Locks,
    is_interruptible: bool,
    pairs: Pairs,
}

const ME_AS_TASK: TaskId = TaskId(0);

impl Lonely {
    fn new(kind: Kind, cpus: &[usize]) -> Result<Self, TaskError> {
        let Kind { protocol, variant } = kind;
        let clustered = variant == Variant::Clustered;
        let is_local = matches!(
            protocol,
            Protocol::None
                | Protocol::Pip
                | Protocol::Icpp
                | Protocol::Pcp
                | Protocol::Srp
                | Protocol::Ics
                | Protocol::IcsLock
        );
        let there = CpuId(u16::from(!is_local && !clustered && cpus.len() > 1));
        let mut resource = Resource::new("r");
        resource.home = (!clustered).then_some(there);
        let time = Duration::from_ms(1);
        let task = |name: &str, cpu: CpuId, priority: u32| Task {
            name: name.into(),
            cpu,
            priority: Priority::base(priority),
            period: time,
            deadline: time,
            jitter: Duration::ZERO,
            offset: Duration::ZERO,
            wcet: Duration::from_ns(1),
            body: vec![Step::Lock(R), Step::Run(Duration::from_ns(1)), Step::Unlock(R)],
        };
        let tasks = vec![task("me", CpuId(0), 10), task("other", there, 20)];
        let count = if clustered { 2 } else { there.index() + 1 };
        let mut system = System::new("alone".into(), count, Some(protocol), vec![resource], tasks)?;
        if clustered {
            system = system.in_clusters(&[0b11, 0b11])?;
        }
        if variant == Variant::ByDeadline {
            system = system.under(Scheduler::PEdf);
        }
        check_system(&system, protocol)?;
        let levels = Levels::of(&system, protocol, &[]);
        let levels = levels.map_err(|too_many| MachineError::TooManyPriorities { needed: too_many.0 })?;
        let locks = Locks::new(&system, protocol, levels, &cpus[..count]);
        let is_interruptible = system.interruptible(protocol).is_some();
        Ok(Self { system, locks, is_interruptible, pairs: Pairs::default() })
    }

    /// Takes [`TURN`] readings. Afterwards the thread is on the task's processors, at the task's level.
    fn turn(&mut self, cpus: &[usize], clock_ns: u64) -> Result<(), TaskError> {
        let executor = &self.locks.executor;
        executor.seat(ME_AS_TASK).sit();
        executor.prepare();
        executor.take_level(ME_AS_TASK)?;
        let own: Vec<usize> = self.system.cpus_of(ME_AS_TASK).map(|cpu| cpus[cpu.index()]).collect();
        sched::set_affinity(ME, &own)?;
        // The first round is not recorded, as it finds cold caches.
        for round in 0..=TURN {
            let arrived = clock::now_ns();
            self.locks.arrive(ME_AS_TASK, Instant::from_ns(arrived))?;
            let before = clock::now_ns();
            self.locks.lock(ME_AS_TASK, R)?;
            let locked = clock::now_ns();
            match self.is_interruptible {
                // No other section commits, so this one is never invalidated.
                true => drop(self.locks.end_interruptible(ME_AS_TASK, R).transpose()?),
                false => self.locks.unlock(ME_AS_TASK, R)?,
            }
            let unlocked = clock::now_ns();
            self.locks.finish(ME_AS_TASK)?;
            let after = clock::now_ns();
            if round > 0 {
                self.pairs.lock.push((locked - before).saturating_sub(clock_ns));
                self.pairs.unlock.push((unlocked - locked).saturating_sub(clock_ns));
                self.pairs.job.push((before - arrived + after - unlocked).saturating_sub(2 * clock_ns));
            }
        }
        Ok(())
    }
}

/// Takes the readings. The costs come in the order of `kinds`; those of lazy sections and ceilings follow.
pub(super) fn alone(readings: usize, kinds: &[Kind], cpus: &[usize], control: &Control) -> Result<Alone, RunError> {
    become_realtime(LEVEL, cpus)?;
    let mut works = Works::new(cpus, control);
    let lonely = kinds.iter().map(|&kind| Lonely::new(kind, cpus));
    let mut lonely: Vec<Lonely> = lonely.collect::<Result<_, _>>().map_err(run_error)?;
    let mut lazy: [Vec<u64>; 2] = Default::default();
    let clock_ns = clock_cost();
    for _ in 0..readings.div_ceil(TURN) {
        if control.is_stopped() {
            break;
        }
        works.turn(clock_ns)?;
        for one in &mut lonely {
            one.turn(cpus, clock_ns).map_err(run_error)?;
        }
        sched::set_fifo(ME, LEVEL)?;
        sched::set_affinity(ME, &[cpus[0]])?;
        read_lazy(cpus[0], &mut lazy)?;
        // The rest of the machine has its share.
        let _ = clock::sleep_until(clock::now_ns() + 3_000_000);
    }
    sched::set_affinity(ME, cpus)?;
    let (machine, interruptions) = works.end();
    let median = |work| {
        let found = machine.iter().find(|(known, _)| *known == work);
        found.map(|(_, readings): &(Work, Readings)| readings.quantile(0.5))
    };
    let changes = median(Work::PriorityChange).map(|ns| 2 * ns);
    let moves = median(Work::MigrationTo).zip(median(Work::MigrationBack)).map(|(to, back)| to + back);
    let target = |kind: Kind| match kind.protocol {
        Protocol::None | Protocol::Pip | Protocol::Icpp | Protocol::Pcp | Protocol::Srp => None,
        Protocol::Ics | Protocol::IcsLock | Protocol::LockFree | Protocol::WaitFree => None,
        Protocol::Omlp if kind.variant == Variant::Clustered => None,
        Protocol::FmlpShort | Protocol::Msrp | Protocol::PhaseFair | Protocol::TaskFair => {
            changes.map(|changes| changes + 500)
        }
        Protocol::Dpcp | Protocol::Dflp => moves.map(|moves| moves + 2_000),
        _ => changes.map(|changes| changes + 1_000),
    };
    let mut costs = Vec::new();
    for (&kind, Lonely { pairs, .. }) in kinds.iter().zip(lonely) {
        let Pairs { lock, unlock, job } = pairs;
        let both: Vec<u64> = lock.iter().zip(&unlock).map(|(lock, unlock)| lock + unlock).collect();
        if let Some(alone) = Readings::new(both) {
            costs.push(ProtocolCost {
                name: kind.name(),
                protocol: Some(kind.protocol),
                alone,
                alone_each: Readings::new(lock).zip(Readings::new(unlock)),
                job: Readings::new(job),
                target_ns: target(kind),
                contended: None,
            });
        }
    }
    for (name, target_ns, ns) in [("fmlp_short, msrp: lazy section", 100, 0), ("srp, icpp: lazy ceiling", 30, 1)] {
        if let Some(alone) = Readings::new(std::mem::take(&mut lazy[ns])) {
            let target_ns = Some(target_ns);
            costs.push(ProtocolCost {
                name,
                protocol: None,
                alone,
                alone_each: None,
                job: None,
                target_ns,
                contended: None,
            });
        }
    }
    Ok((machine, costs, interruptions))
}

/// Returns the median cost of a reading of the clock.
fn clock_cost() -> u64 {
    let mut reads = [0; 1_001];
    let mut last = clock::now_ns();
    for read in &mut reads {
        let now = clock::now_ns();
        *read = now - last;
        last = now;
    }
    reads.sort_unstable();
    reads[reads.len() / 2]
}

const R: ResourceId = ResourceId(0);

/// Reads a ticket lock in a lazy section, and a mutex with a lazy ceiling. Each reading is the mean of a batch.
fn read_lazy(cpu: usize, [section, ceiling]: &mut [Vec<u64>; 2]) -> Result<(), RunError> {
    let managed = Lazy::manage(cpu).map_err(section_error)?;
    let spinlock = SpinLock::<Ticket, ()>::new(());
    let mutex = Mutex::<()>::builder().protocol(MutexProtocol::Protect(LEVEL + 5)).build_raw();
    for _ in 0..4 {
        let before = clock::now_ns();
        for _ in 0..BATCH {
            let _section = managed.enter().map_err(section_error)?;
            let _guard = spinlock.lock();
        }
        let between = clock::now_ns();
        for _ in 0..BATCH {
            if mutex.lock(Limit::Never).is_ok() {
                let _ = mutex.unlock();
            }
        }
        let after = clock::now_ns();
        section.push((between - before) / BATCH);
        ceiling.push((after - between) / BATCH);
    }
    Ok(())
}
