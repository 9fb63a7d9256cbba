//! The simulator executes the same schedules as before: the records of random systems under each scheduler and
//! protocol have the fingerprints of the table. A change that makes the simulator faster must not change one.

use fastrand::Rng;
use lockwright_model::{Duration, Event, Instant, Protocol, Record, Scheduler, System};
use lockwright_sim::{Arrivals, Config, Execution, Offsets, Simulation, Taken, Tracer};
use lockwright_study::{Shape, generate, generate_clusters};

/// The number of systems of each scheduler and protocol, and the length of a schedule in longest periods.
const SYSTEMS: u64 = 60;
const HORIZON: u64 = 4;

/// The fingerprints. If a change of the schedules is intended, replace the lines that the test prints.
const FINGERPRINTS: [(Scheduler, Protocol, u64); 34] = [
    (Scheduler::PFp, Protocol::None, 0xb0f0_ddfa_936d_2025),
    (Scheduler::PFp, Protocol::Pip, 0x10d4_2014_c6d0_b402),
    (Scheduler::PFp, Protocol::Icpp, 0x56db_5a15_48bc_ec79),
    (Scheduler::PFp, Protocol::Pcp, 0x9a04_d700_5975_777c),
    (Scheduler::PFp, Protocol::Srp, 0x5c25_b5f3_7f25_bd51),
    (Scheduler::PFp, Protocol::Ics, 0x9c82_f7b4_4a4f_1cae),
    (Scheduler::PFp, Protocol::IcsLock, 0x070e_dd32_b9df_b084),
    (Scheduler::PFp, Protocol::Mpcp, 0x0f5a_f503_fe60_9c16),
    (Scheduler::PFp, Protocol::MpcpVs, 0xf394_f727_93de_07cd),
    (Scheduler::PFp, Protocol::Dpcp, 0xed9c_fd68_9b79_ea37),
    (Scheduler::PFp, Protocol::Dflp, 0x5414_2997_8da8_eaf0),
    (Scheduler::PFp, Protocol::FmlpLong, 0xd7ef_99e3_3cc8_3f6a),
    (Scheduler::PFp, Protocol::FmlpPlus, 0xa16d_0a48_ed74_6fdc),
    (Scheduler::PFp, Protocol::FmlpShort, 0x7c37_71b0_f7c9_adc9),
    (Scheduler::PFp, Protocol::Msrp, 0x4615_3d0b_ef7b_2ef8),
    (Scheduler::PFp, Protocol::Mrsp, 0x36a1_5ea0_a256_5588),
    (Scheduler::PFp, Protocol::Omlp, 0x274d_2b18_b0e8_1f1b),
    (Scheduler::PFp, Protocol::LockFree, 0x9c82_f7b4_4a4f_1cae),
    (Scheduler::PFp, Protocol::WaitFree, 0xf941_ac5b_0924_2461),
    (Scheduler::PFp, Protocol::PhaseFair, 0x1558_8b83_daac_e3e2),
    (Scheduler::PFp, Protocol::TaskFair, 0x2d83_bf4c_96dc_aa05),
    (Scheduler::CFp, Protocol::Omlp, 0x7da3_68fd_ab59_16cc),
    (Scheduler::PEdf, Protocol::Srp, 0xd459_3f53_44f4_aa51),
    (Scheduler::PEdf, Protocol::FmlpLong, 0x9d8c_e14a_6834_a969),
    (Scheduler::PEdf, Protocol::LockFree, 0x1d0e_f0ef_48bf_1b96),
    (Scheduler::PEdf, Protocol::WaitFree, 0xe7d0_a439_8626_3488),
    (Scheduler::GEdf, Protocol::FmlpShort, 0x6f05_c1e4_91b8_3e52),
    (Scheduler::GEdf, Protocol::FmlpLong, 0x5c4c_101b_8d77_f7e9),
    (Scheduler::GEdf, Protocol::LockFree, 0xf135_7876_ffdd_1329),
    (Scheduler::GEdf, Protocol::WaitFree, 0x47c3_c020_7cd6_c8e8),
    (Scheduler::GFp, Protocol::FmlpShort, 0x1403_b379_0d47_c880),
    (Scheduler::GFp, Protocol::FmlpLong, 0xd0fe_4581_ad01_ca5d),
    (Scheduler::GFp, Protocol::LockFree, 0x3196_05e2_f3c7_a71e),
    (Scheduler::GFp, Protocol::WaitFree, 0x3803_e8c2_18f2_b8e2),
];

/// The FNV-1a hash of all records.
struct Fingerprint(u64);

impl Fingerprint {
    fn add(&mut self, word: u64) {
        for byte in word.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

impl Tracer for Fingerprint {
    fn record(&mut self, record: Record) {
        let (kind, of) = match record.event {
            Event::Arrive => (0, 0),
            Event::Run => (1, 0),
            Event::Stop => (2, 0),
            Event::Request(resource) => (3, resource.index() as u64),
            Event::Acquire(resource) => (4, resource.index() as u64),
            Event::Release(resource) => (5, resource.index() as u64),
            Event::Restart(resource) => (6, resource.index() as u64),
            Event::Priority(priority) => (7, u64::from(priority.level()) << 1 | u64::from(priority.is_boosted())),
            Event::Migrate(cpu) => (8, cpu.index() as u64),
            Event::Finish => (9, 0),
        };
        [record.at.as_ns(), record.task.index() as u64, kind, of].into_iter().for_each(|word| self.add(word));
    }
}

/// All schedulers, each with the protocols that it supports.
fn subjects() -> impl Iterator<Item = (Scheduler, Protocol)> {
    let global = [Protocol::FmlpShort, Protocol::FmlpLong, Protocol::LockFree, Protocol::WaitFree];
    let of = |scheduler, protocols: &[Protocol]| protocols.iter().map(|&it| (scheduler, it)).collect::<Vec<_>>();
    [
        of(Scheduler::PFp, &Protocol::ALL),
        of(Scheduler::CFp, &[Protocol::Omlp]),
        of(Scheduler::PEdf, &[Protocol::Srp, Protocol::FmlpLong, Protocol::LockFree, Protocol::WaitFree]),
        of(Scheduler::GEdf, &global),
        of(Scheduler::GFp, &global),
    ]
    .into_iter()
    .flatten()
}

fn drawn(random: &mut Rng, scheduler: Scheduler, protocol: Protocol) -> System {
    let is_of_one = matches!(protocol, Protocol::Pcp | Protocol::Srp) && scheduler == Scheduler::PFp;
    let is_flat = !matches!(protocol, Protocol::Pip | Protocol::Icpp | Protocol::Pcp | Protocol::Srp);
    let shape = Shape {
        cpus: if is_of_one { (1, 1) } else { (1, 4) },
        tasks: (3, 12),
        nested: if is_flat || scheduler != Scheduler::PFp { 0 } else { 40 },
        jitter: if scheduler == Scheduler::PFp { 20 } else { 0 },
        own_ceiling: 0,
        cutoff: if protocol.is_interruptible() { 50 } else { 0 },
        reads: if matches!(protocol, Protocol::PhaseFair | Protocol::TaskFair) { 50 } else { 0 },
        ..Shape::small()
    };
    match scheduler {
        Scheduler::PFp => generate(random, &shape),
        Scheduler::CFp => {
            let sizes: [&[usize]; 4] = [&[2], &[3], &[2, 2], &[1, 3]];
            let sizes = sizes[random.usize(..sizes.len())];
            generate_clusters(random, &shape, sizes)
        }
        _ => generate(random, &shape).under(scheduler).with_protocol(protocol),
    }
}

/// A configuration in which offsets, arrivals, execution times and, in every other system, overheads vary.
fn config(random: &mut Rng, number: u64) -> Config {
    let offsets = [Offsets::File, Offsets::Synchronous, Offsets::Random];
    let config = Config::default()
        .with_offsets(offsets[random.usize(..3)].clone())
        .with_arrivals(if random.bool() { Arrivals::Sporadic } else { Arrivals::Periodic })
        .with_execution(if random.bool() { Execution::Random } else { Execution::Worst })
        .with_seed(random.u64(..))
        .with_shuffle(random.bool());
    if number.is_multiple_of(2) {
        return config;
    }
    let mut taken = Taken::default();
    taken.tick_period = Duration::from_ns(40);
    (taken.tick, taken.release, taken.latency) = (Duration::from_ns(1), Duration::from_ns(1), Duration::from_ns(3));
    (taken.switch, taken.refill) = (Duration::from_ns(1), Duration::from_ns(2));
    config.with_taken(taken)
}

fn fingerprint(scheduler: Scheduler, protocol: Protocol) -> u64 {
    let mut fingerprint = Fingerprint(0xcbf2_9ce4_8422_2325);
    for number in 0..SYSTEMS {
        let mut random = Rng::with_seed(number);
        let system = drawn(&mut random, scheduler, protocol);
        let config = config(&mut random, number).with_protocol(protocol);
        let longest = system.tasks().iter().map(|task| task.period.as_ns()).max().unwrap_or(1);
        let mut simulation = Simulation::new(&system, &config, fingerprint);
        simulation.run_until(Instant::from_ns(longest * HORIZON));
        fingerprint = simulation.into_tracer();
    }
    fingerprint.0
}

#[test]
fn schedules_have_their_fingerprints() {
    let found: Vec<_> =
        subjects().map(|(scheduler, protocol)| (scheduler, protocol, fingerprint(scheduler, protocol))).collect();
    let line = |(scheduler, protocol, value): &(Scheduler, Protocol, u64)| {
        format!("    (Scheduler::{scheduler:?}, Protocol::{protocol:?}, 0x{value:x}),\n")
    };
    let other = found.iter().filter(|it| !FINGERPRINTS.contains(it)).map(line).collect::<String>();
    assert!(other.is_empty(), "other schedules:\n{other}");
    assert_eq!(found.len(), FINGERPRINTS.len(), "a line of the table has no scheduler and protocol");
}
