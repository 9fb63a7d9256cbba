//! Schedules of the simulator, and pictures of them.

use lockwright_model::format::parse_system;
use lockwright_model::{Duration, Event, Instant, Protocol, Record, System, TaskId};
use lockwright_report::text::Layout;
use lockwright_report::{Mark, Schedule, State, Window, svg, text, worst_jobs};
use lockwright_sim::{Config, Simulation};

const INVERSION: &str = include_str!("../../../examples/pathfinder.toml");
const ROBOT: &str = include_str!("../../../examples/robot.toml");

/// Protocols for resources that tasks on several processors share.
const FOR_SEVERAL: [Protocol; 8] = [
    Protocol::Mpcp,
    Protocol::MpcpVs,
    Protocol::Dpcp,
    Protocol::Dflp,
    Protocol::FmlpLong,
    Protocol::FmlpShort,
    Protocol::Mrsp,
    Protocol::Omlp,
];

fn simulate(source: &str, protocol: Protocol, end_ms: u64) -> (System, Vec<Record>) {
    let system = parse_system(source).expect("a valid system");
    let config = Config { protocol: Some(protocol), ..Config::default() };
    let mut simulation = Simulation::new(&system, &config, Vec::new());
    simulation.run_until(Instant::from_ns(end_ms * 1_000_000));
    let records = simulation.into_tracer();
    (system, records)
}

fn window(from_ms: u64, until_ms: u64) -> Window {
    Window { from: Instant::from_ns(from_ms * 1_000_000), until: Instant::from_ns(until_ms * 1_000_000) }
}

/// The faults of a schedule that no system may show.
fn faults(schedule: &Schedule) -> Vec<String> {
    let mut faults = Vec::new();
    let mut executed = Vec::new();
    for row in &schedule.rows {
        for pair in row.spans.windows(2) {
            if pair[1].from < pair[0].until {
                faults.push(format!("{:?} and {:?} overlap", pair[0], pair[1]));
            }
        }
        for span in &row.spans {
            if span.from >= span.until || span.from < schedule.window.from || span.until > schedule.window.until {
                faults.push(format!("{span:?} is empty or outside"));
            }
            if matches!(span.state, State::Executes(_) | State::Spins(..)) {
                executed.push((span.cpu, span.from, span.until));
            }
        }
    }
    executed.sort_unstable();
    for pair in executed.windows(2) {
        if pair[0].0 == pair[1].0 && pair[1].1 < pair[0].2 {
            faults.push(format!("two tasks execute on CPU {} from {:?}", pair[0].0.0, pair[1].1));
        }
    }
    faults
}

#[test]
fn one_task_executes_on_a_processor() {
    for protocol in Protocol::ALL {
        for (source, end) in [(INVERSION, 400), (ROBOT, 200)] {
            let is_global = parse_system(source).expect("a valid system").cpus() > 1;
            if is_global && !FOR_SEVERAL.contains(&protocol) {
                continue;
            }
            let (system, records) = simulate(source, protocol, end);
            for window in [Window::of(&records), window(7, 93)] {
                let schedule = Schedule::read(&system, &records, window);
                assert_eq!(faults(&schedule), Vec::<String>::new(), "{protocol}");
                assert!(schedule.rows.iter().all(|row| !row.spans.is_empty()), "{protocol}");
            }
        }
    }
    // The mutant: a record of a preemption is lost.
    let (system, mut records) = simulate(INVERSION, Protocol::Pip, 400);
    let finishes = |stop: &Record| {
        records.iter().any(|other| other.at == stop.at && other.task == stop.task && other.event == Event::Finish)
    };
    let lost =
        records.iter().position(|record| record.event == Event::Stop && !finishes(record)).expect("a preemption");
    records.remove(lost);
    let schedule = Schedule::read(&system, &records, Window::of(&records));
    assert!(!faults(&schedule).is_empty());
}

#[test]
fn executed_time_matches_the_bodies() {
    let (system, records) = simulate(INVERSION, Protocol::Pip, 2_000);
    let schedule = Schedule::read(&system, &records, window(0, 2_000));
    for row in &schedule.rows {
        let executed: Duration = row
            .spans
            .iter()
            .filter(|span| matches!(span.state, State::Executes(_)))
            .map(|span| span.until.since(span.from))
            .sum();
        let jobs = row.marks.iter().filter(|(_, mark)| *mark == Mark::Finish).count() as u64;
        let task = system.task(row.task);
        assert_eq!(executed.as_ns(), jobs * task.wcet.as_ns(), "{}", task.name);
    }
}

#[test]
fn a_window_shows_what_began_before_it() {
    let (system, records) = simulate(INVERSION, Protocol::None, 200);
    let whole = Schedule::read(&system, &records, window(0, 200));
    let part = Schedule::read(&system, &records, window(33, 34));
    for (whole, part) in whole.rows.iter().zip(&part.rows) {
        let at = Instant::from_ns(33_500_000);
        let state = |row: &lockwright_report::Row| {
            row.spans.iter().find(|span| span.from <= at && at < span.until).map(|span| span.state.clone())
        };
        assert_eq!(state(whole), state(part));
    }
}

#[test]
fn an_inversion_is_drawn_with_its_holder() {
    let (system, records) = simulate(INVERSION, Protocol::None, 400);
    let bus = TaskId(1);
    let job = worst_jobs(&system, &records)[bus.index()].expect("a job");
    let schedule = Schedule::read(&system, &records, job.with_margin(10));
    let row = &schedule.rows[bus.index()];
    assert!(row.marks.iter().any(|(_, mark)| *mark == Mark::Missed));
    let holder = row.spans.iter().find_map(|span| match span.state {
        State::Waits(_, holder) => holder,
        _ => None,
    });
    assert_eq!(holder.map(|holder| system.task(holder).name.as_str()), Some("tache_meteo"));
    let drawn = svg::draw(&system, &schedule, "under none");
    assert!(drawn.contains("waits for `tampon_donnees`, which `tache_meteo` holds"), "{drawn}");
    assert!(drawn.contains("it misses 1 deadline"), "{drawn}");
    let drawn = text::draw(&system, &schedule, Layout { width: 100 });
    assert!(drawn.contains('!') && drawn.contains("! deadline missed"), "{drawn}");
}

#[test]
fn names_are_escaped() {
    let source =
        INVERSION.replace("tache_radio", "</svg><script>alert('\\\"&')</script>").replace("tampon_donnees", "a<b>");
    let (system, records) = simulate(&source, Protocol::Pip, 100);
    let schedule = Schedule::read(&system, &records, Window::of(&records));
    let drawn = svg::draw(&system, &schedule, "<b>&\"' \u{1}");
    let parsed = roxmltree::Document::parse(&drawn).expect("valid XML");
    assert!(parsed.descendants().all(|node| node.tag_name().name() != "script"));
    let title = parsed.descendants().find(|node| node.tag_name().name() == "title").and_then(|node| node.text());
    assert_eq!(title, Some("<b>&\"' \u{fffd}"));
}

#[test]
fn text_keeps_its_width() {
    let (system, records) = simulate(ROBOT, Protocol::Mpcp, 100);
    let schedule = Schedule::read(&system, &records, window(0, 25));
    for width in [40, 80, 100, 200] {
        let drawn = text::draw(&system, &schedule, Layout { width });
        let lines: Vec<&str> = drawn.lines().collect();
        let longest = lines.iter().map(|line| line.chars().count()).max();
        assert!(longest <= Some(width.max(40)), "{width}: {longest:?}\n{drawn}");
        assert!(system.tasks().iter().all(|task| drawn.contains(&task.name)), "{drawn}");
    }
}

/// A label near the end of the axis may be longer than the rest of the line.
#[test]
fn long_labels_at_the_end_are_cut() {
    let system = parse_system(INVERSION).expect("a valid system");
    for (from, length) in [(100_000_000_001, 5), (u64::MAX - 9, 9), (u64::MAX - 1, 1)] {
        let window = Window { from: Instant::from_ns(from), until: Instant::from_ns(from + length) };
        let schedule = Schedule::read(&system, &[], window);
        let drawn = text::draw(&system, &schedule, Layout { width: 40 });
        assert!(drawn.lines().all(|line| line.chars().count() <= 40), "{drawn}");
        assert!(roxmltree::Document::parse(&svg::draw(&system, &schedule, "late")).is_ok());
    }
}

/// The records do not show the time after the last one.
#[test]
fn no_deadline_after_the_records_is_missed() {
    let (system, records) = simulate(INVERSION, Protocol::Pip, 105);
    let schedule = Schedule::read(&system, &records, window(0, 5_000));
    let marks = schedule.rows.iter().flat_map(|row| &row.marks);
    assert!(marks.filter(|(_, mark)| *mark == Mark::Missed).count() == 0);
}

#[test]
fn no_records_give_an_empty_picture() {
    let system = parse_system(INVERSION).expect("a valid system");
    let schedule = Schedule::read(&system, &[], Window::of(&[]));
    assert!(schedule.rows.iter().all(|row| row.spans.is_empty() && row.marks.is_empty()));
    assert!(roxmltree::Document::parse(&svg::draw(&system, &schedule, "none")).is_ok());
    assert!(text::draw(&system, &schedule, Layout { width: 80 }).contains("executes"));
}

#[test]
#[ignore = "writes pictures for inspection"]
fn pictures() {
    for protocol in [Protocol::None, Protocol::Pip] {
        let (system, records) = simulate(INVERSION, protocol, 400);
        let schedule = Schedule::read(&system, &records, window(0, 200));
        let drawn = svg::draw(&system, &schedule, &format!("Pathfinder under {protocol}"));
        std::fs::write(std::env::temp_dir().join(format!("{protocol}.svg")), drawn).expect("written");
        println!("{}", text::draw(&system, &schedule, Layout { width: 100 }));
    }
    let (system, records) = simulate(ROBOT, Protocol::Mpcp, 100);
    let schedule = Schedule::read(&system, &records, window(0, 25));
    std::fs::write(std::env::temp_dir().join("robot.svg"), svg::draw(&system, &schedule, "Robot under mpcp"))
        .expect("written");
    println!("{}", text::draw(&system, &schedule, Layout { width: 100 }));
}
