//! Schedules of the simulator, and pictures of them.

use lockwright_model::format::parse_system;
use lockwright_model::{Duration, Event, Instant, Protocol, Record, System, TaskId};
use lockwright_report::svg::{Form, Level};
use lockwright_report::text::Layout;
use lockwright_report::{By, Mark, Place, Schedule, State, Window, by_cpu, svg, text, worst_jobs};
use lockwright_sim::{Config, Simulation};

const INVERSION: &str = include_str!("../../../examples/pathfinder.toml");
const ROBOT: &str = include_str!("../../../examples/robot.toml");
const INTERRUPTIBLE: &str = include_str!("../../../examples/tutorial/12-interruptible.toml");

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
    let config = Config::default().with_protocol(protocol);
    let mut simulation = Simulation::new(&system, &config, Vec::new());
    simulation.run_until(Instant::from_ns(end_ms * 1_000_000));
    let records = simulation.into_tracer();
    (system, records)
}

fn window(from_ms: u64, until_ms: u64) -> Window {
    Window { from: Instant::from_ns(from_ms * 1_000_000), until: Instant::from_ns(until_ms * 1_000_000) }
}

/// A picture in a file of its own, with a row for each task.
fn file(title: &str) -> Form<'_> {
    Form { title, by: By::Task, place: Place::File, width: svg::WIDTH, level: Level::FINEST }
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
            if span.state.executes() {
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
        let executed: Duration =
            row.spans.iter().filter(|span| span.state.held().is_some()).map(|span| span.until.since(span.from)).sum();
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
    let drawn = svg::draw(&system, &schedule, file("under none"));
    assert!(drawn.contains("waits for `tampon_donnees`, which `tache_meteo` holds"), "{drawn}");
    assert!(drawn.contains("it misses 1 deadline"), "{drawn}");
    let drawn = text::draw(&system, &schedule, Layout { width: 100, by: By::Task });
    assert!(drawn.contains('!') && drawn.contains("! deadline missed"), "{drawn}");
}

/// Under `icpp`, a job that holds the buffer executes at the ceiling, and more urgent tasks are ready meanwhile.
#[test]
fn less_urgent_execution_is_distinguished() {
    let (system, records) = simulate(INVERSION, Protocol::Icpp, 2_000);
    let schedule = Schedule::read(&system, &records, window(0, 2_000));
    let (mut blocked, mut preempted) = (0, 0);
    for row in &schedule.rows {
        let own = system.task(row.task).priority;
        for span in &row.spans {
            match span.state {
                State::Blocked(by) => {
                    assert!(system.task(by).priority < own, "{span:?}");
                    blocked += 1;
                }
                State::Ready(Some(by)) => {
                    assert!(system.task(by).priority > own, "{span:?}");
                    preempted += 1;
                }
                _ => {}
            }
        }
    }
    assert!(blocked > 0 && preempted > 0, "{blocked} {preempted}");
    let drawn = svg::draw(&system, &schedule, file("under icpp"));
    assert!(drawn.contains("is ready, while the less urgent `tache_meteo` executes"), "{drawn}");
    assert!(text::draw(&system, &schedule, Layout { width: 100, by: By::Task }).contains("= ready, a less urgent"));
}

/// Under `icpp`, a task has the ceiling from its request to its release. Under `none`, it keeps its priority.
#[test]
fn priorities_step_with_the_sections() {
    let (system, records) = simulate(INVERSION, Protocol::Icpp, 2_000);
    let schedule = Schedule::read(&system, &records, window(0, 2_000));
    let ceiling = system.tasks().iter().filter(|task| task.name == "distribution_donnees").map(|task| task.priority);
    let ceiling = ceiling.max().expect("a user of the buffer");
    for row in &schedule.rows {
        let total = |times: &mut dyn Iterator<Item = (Instant, Instant)>| -> Duration {
            times.map(|(from, until)| until.since(from)).sum()
        };
        let raised = total(&mut row.raised.iter().map(|raised| (raised.from, raised.until)));
        let mut held = row.spans.iter().filter(|span| {
            span.state.held().is_some_and(|held| !held.is_empty()) && system.task(row.task).priority < ceiling
        });
        let held = total(&mut held.by_ref().map(|span| (span.from, span.until)));
        assert!(row.raised.iter().all(|raised| raised.to >= ceiling), "{:?}", row.raised);
        assert!(raised >= held, "{}: {raised} {held}", system.task(row.task).name);
    }
    assert!(schedule.rows.iter().any(|row| !row.raised.is_empty()));
    let drawn = svg::draw(&system, &schedule, file("under icpp"));
    assert!(
        drawn.contains("has another priority than its own") && drawn.contains("priority 6 instead of 1"),
        "{drawn}"
    );
    let (system, records) = simulate(INVERSION, Protocol::None, 2_000);
    let schedule = Schedule::read(&system, &records, window(0, 2_000));
    assert!(schedule.rows.iter().all(|row| row.raised.is_empty()));
}

#[test]
fn processors_execute_what_tasks_execute() {
    let (system, records) = simulate(ROBOT, Protocol::Mpcp, 200);
    let schedule = Schedule::read(&system, &records, window(0, 200));
    let by_task = |wanted: TaskId| -> Duration {
        let row = &schedule.rows[wanted.index()];
        let executing = |span: &&lockwright_report::Span| span.state.executes();
        row.spans.iter().filter(executing).map(|span| span.until.since(span.from)).sum()
    };
    let cpus = by_cpu(&system, &schedule);
    assert_eq!(cpus.len(), system.cpus());
    for task in system.task_ids() {
        let of_task = cpus.iter().flatten().filter(|(known, _)| *known == task);
        assert_eq!(of_task.map(|(_, span)| span.until.since(span.from)).sum::<Duration>(), by_task(task));
    }
    for spans in &cpus {
        assert!(spans.windows(2).all(|pair| pair[0].1.until <= pair[1].1.from), "tasks overlap on a processor");
    }
    let drawn = svg::draw(&system, &schedule, Form { by: By::Cpu, ..file("by CPU") });
    let tree = roxmltree::Document::parse(&drawn).expect("valid XML");
    let rows = tree.descendants().filter(|node| node.attribute("class") == Some("row"));
    assert_eq!(rows.count(), system.cpus());
    let chart = text::draw(&system, &schedule, Layout { width: 100, by: By::Cpu });
    let first = chart.lines().find(|line| line.starts_with("CPU 0")).expect("a line");
    assert!(first.contains('b') && !first.contains('#'), "{chart}");
    let last = format!("CPU {}", system.cpus() - 1);
    assert!(chart.contains(&last) && chart.contains(&system.tasks()[0].name), "{chart}");
}

/// Ids of one picture must not be those of another one on the same page, and the page has the style.
#[test]
fn pictures_of_a_page_share_no_ids() {
    let (system, records) = simulate(INVERSION, Protocol::None, 400);
    let schedule = Schedule::read(&system, &records, window(0, 200));
    let draw = |place| {
        let drawn = svg::draw(&system, &schedule, Form { place, ..file("title") });
        let ids = {
            let tree = roxmltree::Document::parse(&drawn).expect("valid XML");
            tree.descendants().filter_map(|node| node.attribute("id").map(str::to_owned)).collect::<Vec<_>>()
        };
        (drawn, ids)
    };
    let (file, in_file) = draw(Place::File);
    let (first, in_first) = draw(Place::Page("p1"));
    let (_, in_second) = draw(Place::Page("p2"));
    assert!(file.contains("<style>") && !first.contains("<style>"));
    assert!(in_first.len() >= 2 && !in_first.iter().any(|id| in_second.contains(id) || in_file.contains(id)));
    for reference in first.split("labelledby=\"").skip(1) {
        let id = reference.split('"').next().expect("an id");
        assert!(in_first.iter().any(|known| known == id), "{id}");
    }
    // The patterns are in the file; a page has them once.
    for reference in file.split("url(#").skip(1) {
        let id = reference.split(')').next().expect("an id");
        assert!(in_file.iter().any(|known| known == id) && !in_first.iter().any(|known| known == id), "{id}");
    }
}

#[test]
fn names_are_escaped() {
    let source =
        INVERSION.replace("tache_radio", "</svg><script>alert('\\\"&')</script>").replace("tampon_donnees", "a<b>");
    let (system, records) = simulate(&source, Protocol::Pip, 100);
    let schedule = Schedule::read(&system, &records, Window::of(&records));
    let drawn = svg::draw(&system, &schedule, file("<b>&\"' \u{1}"));
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
        let drawn = text::draw(&system, &schedule, Layout { width, by: By::Task });
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
        let drawn = text::draw(&system, &schedule, Layout { width: 40, by: By::Task });
        assert!(drawn.lines().all(|line| line.chars().count() <= 40), "{drawn}");
        assert!(roxmltree::Document::parse(&svg::draw(&system, &schedule, file("late"))).is_ok());
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
    assert!(roxmltree::Document::parse(&svg::draw(&system, &schedule, file("none"))).is_ok());
    assert!(text::draw(&system, &schedule, Layout { width: 80, by: By::Task }).contains("executes"));
}

#[test]
#[ignore = "writes pictures for inspection"]
fn pictures() {
    for protocol in [Protocol::None, Protocol::Pip] {
        let (system, records) = simulate(INVERSION, protocol, 400);
        let schedule = Schedule::read(&system, &records, window(0, 200));
        let drawn = svg::draw(&system, &schedule, file(&format!("Pathfinder under {protocol}")));
        std::fs::write(std::env::temp_dir().join(format!("{protocol}.svg")), drawn).expect("written");
        println!("{}", text::draw(&system, &schedule, Layout { width: 100, by: By::Task }));
    }
    let (system, records) = simulate(ROBOT, Protocol::Mpcp, 100);
    let schedule = Schedule::read(&system, &records, window(0, 25));
    std::fs::write(std::env::temp_dir().join("robot.svg"), svg::draw(&system, &schedule, file("Robot under mpcp")))
        .expect("written");
    println!("{}", text::draw(&system, &schedule, Layout { width: 100, by: By::Task }));
}

#[test]
fn undone_execution_is_told_apart() {
    let (system, records) = simulate(INTERRUPTIBLE, Protocol::Ics, 200);
    let schedule = Schedule::read(&system, &records, window(0, 200));
    assert_eq!(faults(&schedule), [""; 0]);
    let mut restarts = 0;
    for row in &schedule.rows {
        let total = |wanted: fn(&State) -> bool| -> Duration {
            let spans = row.spans.iter().filter(|span| wanted(&span.state));
            spans.map(|span| span.until.since(span.from)).sum()
        };
        let marked = |wanted: Mark| row.marks.iter().filter(|(_, mark)| *mark == wanted).count() as u64;
        restarts += marked(Mark::Restart);
        let undone = total(|state| matches!(state, State::Undone(_)));
        assert_eq!(undone > Duration::ZERO, marked(Mark::Restart) > 0);
        // What is not undone is the execution time of the jobs, and nothing else.
        let jobs = marked(Mark::Finish);
        let wcet = system.task(row.task).wcet.as_ns();
        let useful = total(|state| matches!(state, State::Executes(_))).as_ns();
        assert!((jobs * wcet..=(jobs + 1) * wcet).contains(&useful), "{useful} of {jobs} jobs of {wcet}");
    }
    assert!(restarts > 0, "no section restarts");
    let drawn = svg::draw(&system, &schedule, file("undone"));
    assert!(roxmltree::Document::parse(&drawn).is_ok());
    assert!(
        drawn.contains("executes an invalidated section") && drawn.contains("executes a section that restarts"),
        "{drawn}"
    );
}

#[test]
fn interruptions_that_are_too_short_are_not_drawn() {
    let system = parse_system("[platform]\ncpus = 1\n[[task]]\nname = \"job\"\nperiod = \"20 ms\"\nwcet = \"10 ms\"\n")
        .expect("a valid system");
    // 300 interruptions of 2 us, and one of 1 ms, which is seen.
    let record = |ns, event| Record { at: Instant::from_ns(ns), task: TaskId::new(0), event };
    let mut records = vec![record(0, Event::Arrive), record(0, Event::Run)];
    for place in 1..=300 {
        let long = if place == 200 { 1_000_000 } else { 2_000 };
        records.push(record(place * 30_000, Event::Stop));
        records.push(record(place * 30_000 + long, Event::Run));
        records.retain(|record| record.at.as_ns() <= 6_000_000 || record.at.as_ns() >= 7_000_000);
    }
    records.push(record(10_000_000, Event::Finish));
    records.push(record(10_000_000, Event::Stop));
    let schedule = Schedule::read(&system, &records, window(0, 20));
    let drawn = svg::draw(&system, &schedule, file("interrupted"));
    let bars: Vec<&str> = drawn
        .split("<title>")
        .skip(1)
        .filter_map(|title| title.split("</title>").next())
        .filter(|told| told.contains(" for ") && told.contains(", from "))
        .collect();
    let told = ["199 times, for 398 us", "is ready, while its CPU executes no task for 1 ms", "times, for"];
    assert!(bars.len() == 3 && bars.iter().zip(told).all(|(bar, part)| bar.contains(part)), "{bars:#?}");
    // The sums are those of the records: what is not drawn still counts.
    let interrupted =
        |bar: &&str| bar.split("executes for ").nth(1).map(|rest| rest.split(',').next().map(str::to_owned));
    assert_eq!(interrupted(&bars[0]).flatten().as_deref(), Some("5.602 ms"), "{bars:#?}");
}

/// The parts of a picture: elements with a description, except its rows and itself.
fn drawn_parts(drawn: &str) -> usize {
    let tree = roxmltree::Document::parse(drawn).expect("valid XML");
    let described = tree.descendants().filter(|node| node.children().any(|child| child.has_tag_name("title")));
    described.filter(|node| !node.has_tag_name("g") && !node.has_tag_name("svg")).count()
}

/// Records of a simulation, where other work interrupts the task that executes, for 1 us to 2 ms after 20 us to 1 ms.
fn interrupted(system: &System, records: &[Record]) -> Vec<Record> {
    let mut random = 1_u64;
    let mut next = |least: u64, most: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        least + (random >> 33) % (most - least)
    };
    let (mut all, mut executing) = (Vec::new(), vec![None; system.cpus()]);
    let mut at = 0;
    for at_once in records.chunk_by(|one, other| one.at == other.at) {
        let end = at_once[0].at.as_ns();
        for task in executing.iter().flatten() {
            let record = |ns, event| Record { at: Instant::from_ns(ns), task: *task, event };
            let mut from = at + next(20_000, 1_000_000);
            while from < end {
                let until = (from + next(1_000, 2_000_000)).min(end);
                all.extend([record(from, Event::Stop), record(until, Event::Run)]);
                from = until + next(20_000, 1_000_000);
            }
        }
        for record in at_once {
            let cpu = system.task(record.task).cpu.index();
            match record.event {
                Event::Run => executing[cpu] = Some(record.task),
                Event::Stop if executing[cpu] == Some(record.task) => executing[cpu] = None,
                _ => {}
            }
        }
        all.extend_from_slice(at_once);
        at = end;
    }
    all.sort_by_key(|record| record.at);
    all
}

#[test]
fn a_picture_has_a_limited_number_of_parts() {
    let (system, records) = simulate(INVERSION, Protocol::Pip, 2_000);
    let noisy = interrupted(&system, &records);
    let schedule = Schedule::read(&system, &noisy, window(0, 2_000));
    assert!(schedule.rows.iter().map(|row| row.spans.len()).sum::<usize>() > 5_000);
    for by in [By::Task, By::Cpu] {
        let whole = svg::parts(&system, &schedule, by, svg::WIDTH, Level::FINEST);
        assert!(whole > 500, "{whole}");
        for parts in [400, 250, 170] {
            let level = svg::level(&system, &[&schedule], by, svg::WIDTH, parts);
            let drawn = svg::draw(&system, &schedule, Form { by, level, ..file("interrupted") });
            assert!(drawn_parts(&drawn) <= parts, "{by:?} {parts}: {}", drawn_parts(&drawn));
            assert!(drawn.contains(" several\"") && drawn.contains("merged with"), "the picture says so: {drawn}");
        }
        let drawn = svg::draw(&system, &schedule, Form { by, ..file("interrupted") });
        assert_eq!(drawn_parts(&drawn), whole);
    }
    // Without noise, nothing is merged.
    let schedule = Schedule::read(&system, &records, window(0, 200));
    let drawn = svg::draw(&system, &schedule, file("alone"));
    assert!(!drawn.contains(" several\"") && !drawn.contains("merged"), "{drawn}");
}

/// What is merged is still counted: the parts of a row cover its intervals, and the times of the states are its own.
#[test]
fn merged_intervals_are_told() {
    let system = parse_system("[platform]\ncpus = 1\n[[task]]\nname = \"job\"\nperiod = \"20 ms\"\nwcet = \"10 ms\"\n")
        .expect("a valid system");
    let record = |us: u64, event| Record { at: Instant::from_ns(us * 1_000), task: TaskId::new(0), event };
    let mut records = vec![record(0, Event::Arrive), record(0, Event::Run)];
    for place in 1..10 {
        records.extend([record(place * 1_000, Event::Stop), record(place * 1_000 + 100, Event::Run)]);
    }
    records.extend([record(10_000, Event::Finish), record(10_000, Event::Stop)]);
    let schedule = Schedule::read(&system, &records, window(0, 20));
    let level = svg::level(&system, &[&schedule], By::Task, svg::WIDTH, 3);
    let drawn = svg::draw(&system, &schedule, Form { level, ..file("merged") });
    assert!(drawn.contains(">executes for 9.1 ms, from 0 ns; no task executes 9 times, for 900 us</title>"), "{drawn}");
    assert!(drawn.contains(">deadline at 20 ms</title>") && drawn.contains(">arrival at 0 ns</title>"), "{drawn}");
}

/// However coarse a picture is, each mark and each step stands where it happened.
#[test]
fn marks_keep_their_places() {
    let system = parse_system("[platform]\ncpus = 1\n[[task]]\nname = \"job\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\n")
        .expect("a valid system");
    let record = |ms: u64, event| Record { at: Instant::from_ns(ms * 1_000_000), task: TaskId::new(0), event };
    let mut records = Vec::new();
    for (arrival, run, finish) in [(0, 1, 2), (10, 22, 23), (20, 33, 34), (30, 34, 35)] {
        records.push(record(arrival, Event::Arrive));
        let executes = [(run, Event::Run), (finish, Event::Finish), (finish, Event::Stop)];
        records.extend(executes.map(|(ms, event)| record(ms, event)));
    }
    records.sort_by_key(|record| record.at);
    let schedule = Schedule::read(&system, &records, window(0, 40));
    let level = svg::level(&system, &[&schedule], By::Task, svg::WIDTH, 1);
    let drawn = svg::draw(&system, &schedule, Form { level, ..file("marks") });
    for told in
        ["deadline and arrival at 10 ms", "missed deadline at 20 ms", "missed deadline at 30 ms", "arrival at 0 ns"]
    {
        assert!(drawn.contains(told), "{told}: {drawn}");
    }
    assert_eq!(drawn.matches("class=\"late\"").count(), 3, "two misses, and the legend: {drawn}");
    // Marks that are nearer than a pixel are one, and the legend says so.
    let records = [record(0, Event::Arrive), record(1, Event::Run), record(2, Event::Finish), record(2, Event::Stop)];
    let later = Record { at: Instant::from_ns(10_020_000), ..record(0, Event::Arrive) };
    let records: Vec<Record> = records.into_iter().chain([later]).collect();
    let drawn = svg::draw(&system, &Schedule::read(&system, &records, window(0, 40)), file("near marks"));
    assert!(drawn.contains(">deadline and arrival from 10 ms to 10."), "{drawn}");
    assert!(drawn.contains("marks merged up to "), "{drawn}");
}

#[test]
fn narrow_pictures_stay_inside() {
    let (system, records) = simulate(INVERSION, Protocol::None, 400);
    let schedule = Schedule::read(&system, &records, window(90, 200));
    for width in [320, 360, 599, 600, 1000, 2000] {
        let drawn =
            svg::draw(&system, &schedule, Form { width, ..file("a title that is longer than a phone is wide") });
        let tree = roxmltree::Document::parse(&drawn).expect("valid XML");
        assert!(
            tree.root_element().attribute("viewBox").is_some_and(|view| view.starts_with(&format!("0 0 {width} ")))
        );
        let number =
            |node: &roxmltree::Node<'_, '_>, name| node.attribute(name).and_then(|text| text.parse::<f64>().ok());
        for bar in tree.descendants().filter(|node| node.has_tag_name("rect") && node.has_attribute("x")) {
            let (x, wide) = (number(&bar, "x").expect("x"), number(&bar, "width").expect("width"));
            assert!(x >= 12.0 && x + wide <= f64::from(width), "{bar:?}");
        }
        // The characters of text have 6 to 9 units.
        for text in tree.descendants().filter(|node| node.has_tag_name("text") && node.has_attribute("x")) {
            let letters = text.text().unwrap_or_default().chars().count() as f64;
            let x = number(&text, "x").expect("x");
            assert!(
                x + if text.attribute("class").is_none() { 3.0 } else { 6.0 } * letters <= f64::from(width),
                "{text:?}"
            );
        }
    }
}
