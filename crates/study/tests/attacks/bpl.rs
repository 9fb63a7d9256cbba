//! The simulation of three lock orders, compared with cases by hand,
//! with a slow and obvious simulation, and with figures from elsewhere.

use lockwright_study::bpl::{
    FreeLock, Lock, Model, ModelError, Random, Source, Statistics, TICKS_PER_SECTION, Traffic, play, run_seeds,
};
use std::ops::RangeInclusive;

fn model(cores: u32, burst: u32, rate: f64, free_lock: FreeLock) -> Model {
    Model::new(cores, burst, rate, free_lock).expect("within the limits")
}

/// Returns the merged statistics of several runs of one lock, one for each seed.
fn seen(model: &Model, lock: Lock, requests: u64, seeds: impl IntoIterator<Item = u64>) -> Statistics {
    let mut all = Statistics::default();
    for seed in seeds {
        all.merge(&play(model, lock, requests, Random::new(model, seed), |_| true).expect("the run is not stopped"));
    }
    all
}

/// Traffic given by a test. After its end, nothing comes for a long time.
struct Script {
    gaps: Vec<u64>,
    sizes: Vec<u32>,
    picks: Vec<u32>,
    sections: Vec<u64>,
}

impl Script {
    /// Three of four sources find a free lock: source 1 gets it, and sources 0 and 3 wait. A burst that takes source 2
    /// comes `late` ticks after them. It is clipped to source 2 while no other source is idle.
    fn three_and_one(late: u64) -> Self {
        Self {
            gaps: vec![7, late],
            sizes: vec![3, if late > 10 { 1 } else { 5 }],
            picks: vec![1, 0, 1, 0],
            sections: vec![10, 20, 30, 40],
        }
    }
}

fn next<T: Copy>(answers: &mut Vec<T>) -> Option<T> {
    (!answers.is_empty()).then(|| answers.remove(0))
}

impl Traffic for Script {
    fn gap(&mut self) -> u64 {
        next(&mut self.gaps).unwrap_or(1_000_000)
    }
    fn size(&mut self) -> u32 {
        next(&mut self.sizes).unwrap_or(1)
    }
    fn pick(&mut self, idle: u32) -> u32 {
        next(&mut self.picks).unwrap_or(0).min(idle - 1)
    }
    fn section(&mut self) -> u64 {
        next(&mut self.sections).unwrap_or(50)
    }
}

#[test]
fn four_requests_by_hand() {
    // Waits of sources 0 to 3, inversions, and the maximum number of sections waited.
    let cases = [
        // Source 2 comes during section 1, and is in one batch with 0 and 3. Granted: 1 0 3 2, 1 3 2 0, 1 3 2 0.
        (4, Lock::Fifo, [10, 0, 56, 30], 2, 3),
        (4, Lock::Priority, [60, 0, 26, 10], 2, 3),
        (4, Lock::Batched, [60, 0, 26, 10], 2, 3),
        // Source 2 comes at the very end of section 1, with the same result.
        (10, Lock::Batched, [60, 0, 20, 10], 2, 3),
        // Source 2 comes during section 2, in a batch of its own. Granted: 1 0 3 2, 1 3 2 0, 1 3 0 2.
        (14, Lock::Fifo, [10, 0, 46, 30], 2, 2),
        (14, Lock::Priority, [60, 0, 16, 10], 1, 3),
        (14, Lock::Batched, [30, 0, 46, 10], 2, 2),
    ];
    for (late, lock, waits, inversions, sections_max) in cases {
        let model = model(4, 2, 1.0, FreeLock::Random);
        let found = play(&model, lock, 4, Script::three_and_one(late), |_| true).expect("the run is not stopped");
        assert_eq!(found, granted_once(waits, inversions, sections_max), "{lock}, {late} ticks late");
    }
}

#[test]
fn the_best_may_get_the_free_lock() {
    let model = model(4, 2, 1.0, FreeLock::Best);
    let found = play(&model, Lock::Fifo, 4, Script::three_and_one(4), |_| true).expect("the run is not stopped");
    // Drawn 1, 0, 3; granted 3, 1, 0, 2. Only source 2 waits for less important sources.
    let waits = [30, 10, 56, 0];
    assert_eq!(found, granted_once(waits, 1, 3));
}

#[test]
fn a_run_may_be_stopped() {
    let model = model(8, 2, 0.1, FreeLock::Random);
    let mut looks = Vec::new();
    let stopped = play(&model, Lock::Fifo, 1_000_000, Random::new(&model, 1), |granted| {
        looks.push(granted);
        looks.len() < 3
    });
    assert_eq!(stopped, None);
    assert!(looks.is_sorted() && looks.len() == 3 && looks[2] < 1_000_000, "{looks:?}");
}

#[test]
fn limits_are_kept() {
    let model = |cores, burst, rate| Model::new(cores, burst, rate, FreeLock::Random).map(drop);
    for cores in [0, 65] {
        assert_eq!(model(cores, 8, 0.1), Err(ModelError::Cores(cores)));
    }
    assert_eq!(model(64, 0, 0.1), Err(ModelError::Burst(0)));
    for rate in [0.0, -1.0, f64::INFINITY, 1e-7, 1e4] {
        assert_eq!(model(64, 8, rate), Err(ModelError::Rate(rate)));
    }
    assert!(model(64, 8, f64::NAN).is_err());
    assert_eq!(model(1, 1, 1e-6), Ok(()));
}

/// One request in the slow simulation.
#[derive(Clone)]
struct Request {
    source: usize,
    at: u64,
    /// The number of critical sections begun so far, including the current one.
    section: u64,
    inverted: bool,
}

/// The statistics of a run in which each source got the lock once, after these waits.
fn granted_once(waits: [u64; 4], inversions: u64, sections_max: u64) -> Statistics {
    let source = |waited| {
        let mut source = Source::default();
        (source.granted, source.waited) = (1, waited);
        source
    };
    statistics(waits.map(source).to_vec(), inversions, sections_max)
}

fn statistics(sources: Vec<Source>, inversions: u64, sections_max: u64) -> Statistics {
    let mut found = Statistics::default();
    (found.sources, found.inversions, found.sections_max) = (sources, inversions, sections_max);
    found
}

/// The same model without optimisation: a list of requests that
/// is searched for each grant, and a clock that never restarts.
fn slow(model: &Model, lock: Lock, requests: u64, mut traffic: Random) -> Statistics {
    let mut idle: Vec<usize> = (0..model.cores() as usize).collect();
    let mut waiting: Vec<Request> = Vec::new();
    let mut holder: Option<(usize, u64)> = None;
    let mut all = vec![Source::default(); idle.len()];
    let (mut sections, mut made, mut granted, mut end) = (0, 0, 0, u64::MAX);
    let (mut inversions, mut sections_max) = (0, 0);
    let mut burst = traffic.gap();
    loop {
        // The next event is the release of the lock or a burst, whichever is first.
        let now = match holder {
            Some((source, over)) if over < burst => {
                idle.push(source);
                holder = None;
                if made >= requests && end == u64::MAX {
                    end = made;
                }
                if granted == end {
                    return statistics(all, inversions, sections_max);
                }
                over
            }
            _ => {
                for _ in 0..traffic.size().min(idle.len() as u32) {
                    let source = idle.swap_remove(traffic.pick(idle.len() as u32) as usize);
                    // With a free lock, all members come during the section that one of them begins.
                    let section = sections + u64::from(holder.is_none());
                    waiting.push(Request { source, at: burst, section, inverted: false });
                    made += 1;
                }
                burst
            }
        };
        if holder.is_none() && !waiting.is_empty() {
            let was_free = now == burst;
            let key = |(place, request): &(usize, &Request)| {
                let (urgency, age) = (request.source as i64, -(*place as i64));
                match lock {
                    _ if was_free && model.free_lock() == FreeLock::Best => (0, urgency),
                    _ if was_free => (0, age),
                    Lock::Fifo => (0, age),
                    Lock::Priority => (0, urgency),
                    Lock::Batched => (-(request.section as i64), urgency),
                }
            };
            let (place, _) = waiting.iter().enumerate().max_by_key(key).expect("some request waits");
            let request = waiting.remove(place);
            sections += 1;
            granted += 1;
            inversions += u64::from(request.inverted);
            sections_max = sections_max.max(sections - request.section);
            all[request.source].granted += 1;
            all[request.source].waited += now - request.at;
            holder = Some((request.source, now + traffic.section()));
        }
        if let Some((holder, _)) = holder {
            for request in &mut waiting {
                request.inverted |= request.source > holder;
            }
        }
        if now == burst {
            burst += traffic.gap();
        }
    }
}

#[test]
fn the_fast_simulation_matches_the_slow_one() {
    let mut random = fastrand::Rng::with_seed(5);
    for number in 0..300 {
        let free_lock = if random.bool() { FreeLock::Random } else { FreeLock::Best };
        let rate = [0.001, 0.03, 0.2, 1.0, 8.0][random.usize(0..5)];
        let model = model(random.u32(1..=64), random.u32(1..=40), rate, free_lock);
        let requests = random.u64(1..500);
        let traffic = Random::new(&model, number);
        let both = |lock, other| {
            let fast = play(&model, lock, requests, traffic.clone(), |_| true).expect("the run is not stopped");
            (fast, slow(&model, other, requests, traffic.clone()))
        };
        for lock in Lock::ALL {
            let (fast, slow) = both(lock, lock);
            assert_eq!(fast, slow, "{lock}, {requests} requests of {model:?}, seed {number}");
            assert!((requests..requests + 64).contains(&fast.granted()), "{lock}: {}", fast.granted());
        }
        // The mutant: another order gives other statistics, if there is room for orders to differ.
        if model.cores() > 20 && model.burst() > 5 && requests > 100 {
            let (fast, slow) = both(Lock::Batched, Lock::Fifo);
            assert_ne!(fast, slow, "{model:?}, seed {number}");
        }
    }
}

/// Rates; inversions in percent; the weighted delay of priority and of batched relative to FIFO. They are for 64
/// cores, a mean burst of 8, and 5 runs of 100,000 requests. An independent simulation of the same model found them,
/// of which only these rounded figures are available.
///
/// The range of the last rate is our own. That simulation found 144, but a few long waits of hardly served sources
/// decide this figure (see CAVEATS.md).
const FACTS: [(f64, [f64; 3], RangeInclusive<f64>, f64); 4] = [
    (0.001, [68.0, 44.0, 44.0], 0.715..=0.745, 0.73),
    (0.01, [70.0, 44.0, 47.0], 0.705..=0.735, 0.75),
    (0.1, [88.0, 56.0, 82.0], 0.715..=0.745, 0.93),
    (1.0, [98.0, 75.0, 98.0], 30.0..=600.0, 0.995),
];

#[test]
fn the_known_figures_come_out() {
    for (rate, inversions, priority, batched) in FACTS {
        let model = model(64, 8, rate, FreeLock::Random);
        let found = Lock::ALL.map(|lock| seen(&model, lock, 100_000, run_seeds(7).take(5)));
        for (found, expected) in found.iter().zip(inversions) {
            let pct = found.inversions_pct();
            assert!((pct - expected).abs() < 1.0, "rate {rate}: {pct} %, not {expected} %");
        }
        let delay = found.each_ref().map(|found| found.weighted_delay().expect("some source was served"));
        assert!((delay[2] / delay[0] - batched).abs() < 0.01, "rate {rate}: {}", delay[2] / delay[0]);
        let ratio = delay[1] / delay[0];
        assert!(priority.contains(&ratio), "rate {rate}: {ratio}");
        assert_eq!(found[1].unserved() > 0, rate == 1.0, "priority starves at saturation");
        assert_eq!(found[0].unserved() + found[2].unserved(), 0, "the others do not");
    }
    // The mutant: if the most important member of a burst gets the free lock, other figures come out.
    let best = seen(&model(64, 8, 0.001, FreeLock::Best), Lock::Priority, 100_000, run_seeds(7).take(5));
    assert!((best.inversions_pct() - 44.0).abs() > 10.0, "{}", best.inversions_pct());
}

#[test]
fn fifo_and_batched_wait_alike_to_the_last_digit() {
    let mut differ = 0;
    for seed in 0..100 {
        for (cores, burst, rate) in [(64, 8, 0.1), (64, 32, 0.03), (16, 4, 1.0), (3, 2, 0.5)] {
            let model = model(cores, burst, rate, FreeLock::Random);
            let [fifo, priority, batched] = Lock::ALL.map(|lock| seen(&model, lock, 1_000, seed..seed + 2));
            assert_eq!(fifo.mean_wait(), batched.mean_wait(), "seed {seed}, {model:?}");
            assert_eq!((fifo.granted(), fifo.granted()), (priority.granted(), batched.granted()));
            differ += u32::from(priority.mean_wait() != fifo.mean_wait());
        }
    }
    // Negative control: priority leaves other sources unserved at the end than FIFO does.
    assert!(differ > 100, "{differ}");
}

#[test]
fn no_request_waits_for_more_sections_than_other_sources() {
    let mut reached = 0;
    for (cores, burst, rate) in [(64, 8, 1.0), (64, 32, 0.1), (8, 8, 1.0), (2, 1, 1.0), (1, 4, 1.0)] {
        let model = model(cores, burst, rate, FreeLock::Random);
        let [fifo, priority, batched] = Lock::ALL.map(|lock| seen(&model, lock, 50_000, 0..1).sections_max);
        let bound = u64::from(cores) - 1;
        assert!(fifo <= bound && batched <= bound, "{model:?}: {fifo}, {batched}");
        reached += u32::from(batched == bound);
        // Negative control: priority has no such bound if there are at least three cores.
        assert!(cores < 3 || priority > bound, "{model:?}: {priority}");
    }
    assert!(reached >= 3, "the bound is tight: {reached}");
}

#[test]
fn one_core_never_waits() {
    let model = model(1, 8, 1.0, FreeLock::Random);
    for lock in Lock::ALL {
        let found = seen(&model, lock, 1_000, 0..1);
        assert_eq!((found.inversions, found.mean_wait(), found.weighted_delay()), (0, 0.0, Some(0.0)));
    }
}

#[test]
fn a_seed_determines_the_simulation() {
    let model = model(64, 8, 0.1, FreeLock::Random);
    for lock in Lock::ALL {
        let one = seen(&model, lock, 5_000, 3..4);
        assert_eq!(one, seen(&model, lock, 5_000, 3..4));
        assert_ne!(one, seen(&model, lock, 5_000, 4..5), "another seed gives another simulation");
    }
}

#[test]
fn drawn_traffic_has_the_means_of_the_model() {
    let model = model(64, 8, 0.1, FreeLock::Random);
    let mut traffic = Random::new(&model, 1);
    const COUNT: u64 = 1 << 18;
    let mean = |draw: &mut dyn FnMut() -> u64| (0..COUNT).map(|_| draw()).sum::<u64>() as f64 / COUNT as f64;
    let section = TICKS_PER_SECTION as f64;
    // Standard errors: 0.2 % of the mean of an exponential distribution, 0.01 sources, 0.04 places.
    assert!((mean(&mut || traffic.section()) / section - 1.0).abs() < 0.008);
    assert!((mean(&mut || traffic.gap()) / section - 10.0).abs() < 0.08);
    assert!((mean(&mut || u64::from(traffic.size())) - 8.0).abs() < 0.04);
    assert!((mean(&mut || u64::from(traffic.pick(64))) - 31.5).abs() < 0.16);
    let sizes = (0..1_000).map(|_| traffic.size());
    assert_eq!(sizes.fold((u32::MAX, 0), |(least, most), size| (least.min(size), most.max(size))), (1, 15));
}

/// Each stream is independent, and all are the same on every platform. A stream that shared the numbers of another
/// one, or used them differently, would fail here.
#[test]
fn seed_7_draws_known_numbers() {
    let model = model(64, 8, 0.1, FreeLock::Random);
    let mut traffic = Random::new(&model, 7);
    assert_eq!([(); 5].map(|()| traffic.gap()), [30_323_668, 10_652_990, 4_695_672, 10_616_883, 532_639]);
    assert_eq!([(); 5].map(|()| traffic.size()), [15, 7, 15, 14, 14]);
    assert_eq!([(); 5].map(|()| traffic.pick(64)), [37, 2, 4, 23, 43]);
    assert_eq!([(); 5].map(|()| traffic.section()), [493_148, 765_063, 1_985_675, 133_461, 709_307]);
    let found = Lock::ALL.map(|lock| {
        let found = seen(&model, lock, 10_000, [7]);
        let waited: u64 = found.sources.iter().map(|source| source.waited).sum();
        (found.granted(), waited, found.inversions, found.sections_max)
    });
    assert_eq!(
        found,
        [
            (10_001, 232_300_063_343, 8_808, 63),
            (10_001, 232_300_063_343, 5_718, 466),
            (10_001, 232_300_063_343, 8_160, 63)
        ]
    );
}

#[test]
fn studies_with_neighbouring_seeds_share_no_run() {
    let seeds: Vec<u64> = run_seeds(7).take(3).collect();
    assert_eq!(seeds, [7_191_089_600_892_374_487, 309_689_372_594_955_804, 16_616_101_746_815_609_346]);
    let mut all: Vec<u64> = (0..100).flat_map(|seed| run_seeds(seed).take(1_000)).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 100_000);
}

#[test]
#[should_panic(expected = "a burst has a member")]
fn an_empty_burst_is_refused() {
    let nobody = Script { gaps: vec![], sizes: vec![0], picks: vec![], sections: vec![] };
    play(&model(4, 2, 1.0, FreeLock::Random), Lock::Fifo, 1, nobody, |_| true);
}
