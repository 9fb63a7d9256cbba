use fastrand::Rng;
use lockwright_model::*;
use lockwright_sim::*;
use lockwright_study::{Shape, generate};
struct P;
impl Tracer for P {
    const WANTS: bool = true;
    fn record(&mut self, r: Record) {
        println!("{:?} {:?} {:?}", r.at.as_ns(), r.task, r.event);
    }
}
#[test]
fn debug() {
    let shape = Shape { cpus: (2, 4), tasks: (4, 12), resources: (1, 3), period: (20, 400), section: 8, nested: 0, own_ceiling: 0, utilization: (10, 60), shuffled: 0, ..Shape::small() };
    let system = generate(&mut Rng::with_seed(4294967653), &shape);
    println!("{}", lockwright_model::format::write_system(&system));
    let config = Config { protocol: Some(Protocol::Mrsp), offsets: Offsets::Random, execution: Execution::Random, shuffle: true, seed: 13099747498318477236, ..Config::default() };
    let mut s = Simulation::new(&system, &config, P);
    for t in 1..6000 {
        s.run_until(Instant::from_ns(t));
        if s.observations()[2].blocking > Some(Duration::ZERO) {
            println!("AT {t}");
            break;
        }
    }
}
