//! Pictures: the numbers of `check --svg` are those of `--json`, and `--job` chooses the part of a schedule.

use crate::support::{File, GLOBAL, HOLDS, INVERSION, LATE, end, json, lockwright, on};
use serde_json::Value;

/// The numbers of each task under each drawn protocol, in `--json --explain TASK` and in the picture.
fn numbers(text: &str, options: &[&str]) -> (Vec<String>, Vec<String>) {
    let file = File::new(text);
    let svg = file.beside("bounds.svg");
    let first = end(lockwright().args(["check", "--json"]).arg(&file.path).args(options).arg("--svg").arg(&svg));
    let drawn = std::fs::read_to_string(&svg).unwrap_or_else(|error| panic!("{error}: {}", first.err));
    let tree = roxmltree::Document::parse(&drawn).expect("well-formed");
    let (mut told, mut shown) = (Vec::new(), Vec::new());
    for row in tree.descendants().filter(|node| node.has_attribute("data-task")) {
        let task = row.attribute("data-task").expect("a name");
        let explained = on(text, "check", &[&["--json", "--explain", task][..], options].concat());
        let results = json(&explained)["results"].clone();
        for bar in row.descendants().filter(|node| node.has_attribute("data-protocol")) {
            let ns = |name| bar.attribute(name).map_or("null".to_owned(), str::to_owned);
            let terms = bar.descendants().filter_map(|node| node.attribute("data-ns")).collect::<Vec<_>>().join(" ");
            shown.push(format!(
                "{task} {} {} {} {} {terms}",
                bar.attribute("data-protocol").expect("a protocol"),
                row.attribute("data-deadline-ns").expect("a deadline"),
                ns("data-response-ns"),
                ns("data-proved"),
            ));
            let result = results
                .as_array()
                .and_then(|results| {
                    results.iter().find(|one| one["protocol"].as_str() == bar.attribute("data-protocol"))
                })
                .expect("a result");
            let own = result["tasks"].as_array().and_then(|rows| rows.iter().find(|row| row["name"] == task));
            let own = own.expect("a task");
            let terms = result["explain"]["terms"].as_array().expect("terms").iter().map(|term| &term["total_ns"]);
            let terms = terms.filter(|ns| ns.as_u64() != Some(0)).map(Value::to_string).collect::<Vec<_>>().join(" ");
            told.push(format!(
                "{task} {} {} {} {} {terms}",
                result["protocol"].as_str().expect("a protocol"),
                own["deadline_ns"],
                own["response_ns"],
                own["proved"],
            ));
        }
    }
    (told, shown)
}

#[test]
fn numbers_of_bounds_are_those_of_json() {
    for (text, options, rows) in [
        (HOLDS, &[][..], 2),
        (LATE, &[], 2),
        (INVERSION, &["--protocol", "none"], 3),
        (INVERSION, &["--protocol", "all"], 9),
        (GLOBAL, &["--protocol", "all"], 9),
    ] {
        let (told, shown) = numbers(text, options);
        assert!(shown.len() >= rows, "{options:?}: {shown:?}");
        assert_eq!(told, shown, "{options:?}");
    }
}

#[test]
fn bounds_without_terms_are_not_drawn() {
    let file = File::new(LATE);
    let svg = file.beside("bounds.svg");
    let mut edf = lockwright();
    let ended = end(edf.args(["check", "--scheduler", "p-edf"]).arg(&file.path).arg("--svg").arg(&svg));
    assert_eq!(ended.status, 2, "{}", ended.err);
    assert!(ended.err.contains("--svg draws the terms of response bounds"), "{}", ended.err);
    assert!(!svg.exists());
}

#[test]
fn a_job_chooses_the_window() {
    let chart = |options: &[&str]| on(INVERSION, "simulate", &[&["-p", "icpp", "--gantt"][..], options].concat());
    let second = chart(&["--job", "high:2"]);
    // The job executes alone, from 10 ms to 11 ms; a tenth of its response time is drawn on both sides.
    let same = chart(&["--window", "9900us..11100us"]);
    assert_eq!((second.status, &second.out), (0, &same.out), "{}", second.err);
    assert_ne!(second.out, chart(&["--job", "high:1"]).out);
}

/// What is not simulated is not drawn: a window ends with the schedule at the latest, and does not begin after it.
#[test]
fn windows_end_with_the_schedule() {
    let file = File::new(LATE);
    let svg = file.beside("schedule.svg");
    let simulate = |window: &str, html: bool| {
        let mut command = lockwright();
        command.arg("simulate").arg(&file.path).args(["--for", "200ms", "--gantt", "--window", window, "--svg"]);
        command.arg(&svg);
        if html {
            command.arg("--html").arg(file.beside("page.html"));
        }
        end(&mut command)
    };
    // `second` executes at the end of the schedule.
    let ended = simulate("190ms..250ms", true);
    assert_eq!(ended.status, 1, "{}", ended.err);
    let drawn = std::fs::read_to_string(&svg).expect("a picture");
    assert!(drawn.contains("from 190 ms to 200 ms"), "{drawn}");
    assert!(drawn.contains("for 10 ms, from 190 ms") && !drawn.contains("for 60 ms, from 190 ms"), "{drawn}");
    assert!(ended.err.contains("--window reaches beyond the schedule, which ends at 200 ms"), "{}", ended.err);
    let inside = simulate("190ms..200ms", false);
    assert!(!inside.err.contains("beyond"), "{}", inside.err);
    assert_eq!(inside.out, ended.out);
    for window in ["200ms..201ms", "100h..101h"] {
        let ended = simulate(window, false);
        assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{window}: {}", ended.err);
        for part in ["--window", "the schedule has ended, at 200 ms", "longer --for"] {
            assert!(ended.err.contains(part), "{window}: {part}: {}", ended.err);
        }
    }
    // Nor does the margin around a job reach beyond the schedule.
    let mut command = lockwright();
    let margin =
        end(command.arg("simulate").arg(&file.path).args(["--for", "190ms", "--job", "second:1", "--svg"]).arg(&svg));
    assert_eq!(margin.status, 1, "{}", margin.err);
    let drawn = std::fs::read_to_string(&svg).expect("a picture");
    assert!(drawn.contains(" to 190 ms."), "{drawn}");
}

/// A schedule with more intervals than a picture may have: the picture shows the end of the late job, and the result is
/// the same as without it.
#[test]
fn a_dense_schedule_is_drawn_in_part() {
    let dense = "[platform]\ncpus = 1\npriorities = \"rate-monotonic\"\n\
                 [[task]]\nname = \"fast\"\nperiod = \"1 ms\"\nwcet = \"400 us\"\n\
                 [[task]]\nname = \"slow\"\nperiod = \"10 s\"\nwcet = \"6100 ms\"\n";
    let file = File::new(dense);
    let folder = file.beside("pictures");
    std::fs::create_dir(&folder).expect("created");
    let simulate = |options: &[&str]| {
        end(lockwright().arg("simulate").arg(&file.path).args(["--for", "15s", "--json"]).args(options))
    };
    let plain = simulate(&[]);
    assert_eq!(plain.status, 1, "{}", plain.err);
    let svg = file.beside("dense.svg");
    let (path, dir) = (svg.to_str().expect("a path"), folder.to_str().expect("a path"));
    for options in [&["--svg", path][..], &["--svg", path, "--window", "0s..14s"], &["--svg", dir]] {
        let ended = simulate(options);
        assert_eq!((ended.status, &ended.out), (1, &plain.out), "{options:?}: {}", ended.err);
        assert!(ended.err.contains("would have") && ended.err.contains("it shows the last"), "{}", ended.err);
    }
    // The job of `slow` ends at 10.16 s, late.
    let drawn = std::fs::read_to_string(folder.join("2-slow.svg")).expect("a picture");
    assert!(drawn.contains("misses its deadline") || drawn.contains("missed"), "{}", &drawn[..2000]);
}

#[test]
fn a_directory_gets_the_worst_job_of_each_task() {
    let file = File::new(&INVERSION.replace("\"high\"", "\"../hi gh\""));
    let folder = file.beside("pictures");
    std::fs::create_dir(&folder).expect("created");
    let simulate = |options: &[&str]| {
        end(lockwright().arg("simulate").arg(&file.path).args(["-p", "icpp"]).args(options).arg("--svg").arg(&folder))
    };
    assert_eq!(simulate(&[]).status, 0);
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .expect("a folder")
        .map(|entry| entry.expect("a file").file_name().into_string().expect("a name"))
        .collect();
    names.sort();
    assert_eq!(names, ["1-___hi_gh.svg", "2-medium.svg", "3-low.svg"]);
    let drawn = std::fs::read_to_string(folder.join("1-___hi_gh.svg")).expect("a picture");
    assert!(drawn.contains("the worst job of ../hi gh") && roxmltree::Document::parse(&drawn).is_ok());
    let refused = simulate(&["--window", "0ms..1ms"]);
    assert!(refused.status == 2 && refused.err.contains("--svg names a directory"), "{}", refused.err);
    // A directory that cannot be written is refused before the simulation.
    let mut unwritable = lockwright();
    let ended = end(unwritable.arg("simulate").arg(&file.path).args(["--for", "1000000s", "--svg", "/proc"]));
    assert!(ended.status == 2 && ended.err.contains("cannot write into /proc"), "{}", ended.err);
    // With several protocols, the names of the files begin with the protocol.
    let all = end(lockwright().arg("simulate").arg(&file.path).args(["-p", "all", "--svg"]).arg(&folder));
    assert!(all.status < 2 && folder.join("pip-3-low.svg").is_file(), "{}", all.err);
}

#[test]
fn jobs_that_do_not_exist_are_refused() {
    for (job, help) in [
        ("hihg:1", "did you mean `high`?"),
        ("elsewhere:1", "the tasks are `high`, `medium`, `low`"),
        ("low:1000", "its jobs are 1 to 2"),
        ("low:0", "the first job is 1"),
        ("low", "it must be a task and a number"),
    ] {
        let ended = on(INVERSION, "simulate", &["-p", "icpp", "--gantt", "--job", job]);
        assert_eq!(ended.status, 2, "{job}: {}", ended.err);
        assert!(ended.err.contains(help), "{job}: {}", ended.err);
    }
}

#[test]
fn pictures_have_the_chosen_width() {
    let file = File::new(INVERSION);
    let svg = file.beside("drawn.svg");
    let simulate = |options: &[&str]| end(lockwright().arg("simulate").arg(&file.path).args(options));
    let path = svg.display().to_string();
    for (options, width) in [(&[][..], 1000), (&["--width", "360"], 360), (&["--width", "4000"], 4000)] {
        let ended = simulate(&[&["-p", "icpp", "--svg", &path], options].concat());
        assert_eq!(ended.status, 0, "{}", ended.err);
        let drawn = std::fs::read_to_string(&svg).expect("a picture");
        assert!(drawn.contains(&format!("viewBox=\"0 0 {width} ")), "{options:?}: {drawn}");
    }
    for (options, message) in [
        (&["--svg", &path, "--width", "319"][..], "319 is not in 320..=4000"),
        (&["--svg", &path, "--width", "4001"], "4001 is not in 320..=4000"),
        (&["--width", "360"], "--svg <FILE>"),
    ] {
        let ended = simulate(options);
        assert!(ended.status == 2 && ended.err.contains(message), "{options:?}: {}", ended.err);
    }
}

/// The pictures of the README are those that the command draws.
#[test]
fn pictures_of_the_readme_are_drawn_by_the_command() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for protocol in ["none", "pip"] {
        let file = File::new("");
        let svg = file.beside("drawn.svg");
        let mut command = lockwright();
        command.arg("simulate").arg(root.join("examples/pathfinder.toml")).args(["--protocol", protocol]);
        let ended = end(command.args(["--window", "90ms..200ms", "--svg"]).arg(&svg));
        let drawn = std::fs::read_to_string(&svg).unwrap_or_else(|error| panic!("{error}: {}", ended.err));
        let path = root.join(format!("docs/pathfinder-{protocol}.svg"));
        let kept = std::fs::read_to_string(&path).expect("in the repository");
        assert!(kept.trim_end() == drawn.trim_end(), "draw {} again: {command:?}", path.display());
    }
}

#[test]
fn options_of_pictures_need_a_picture() {
    for option in [["--window", "0ms..1ms"], ["--job", "high:1"], ["--by", "cpu"], ["--width", "700"]] {
        let ended = on(INVERSION, "simulate", &option);
        assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{option:?}");
        assert!(ended.err.contains("--svg <FILE>"), "{option:?}: {}", ended.err);
        if option[0] != "--width" {
            assert!(ended.err.contains("--gantt"), "{option:?}: {}", ended.err);
            let drawn = on(INVERSION, "simulate", &[&option[..], &["--gantt"]].concat());
            assert_eq!(drawn.status, 0, "{option:?}: {}", drawn.err);
        }
    }
}
