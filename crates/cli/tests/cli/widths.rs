//! Tables and text fit the screen.

use crate::realtime::require_realtime;
use crate::record::{NESTED, Program};
use crate::support::{File, GLOBAL, HOLDS, INVERSION, LATE, end, lockwright};

const WIDTHS: [usize; 3] = [80, 100, 120];
const PATHFINDER: &str = include_str!("../../../../examples/pathfinder.toml");
const ROBOT: &str = include_str!("../../../../examples/robot.toml");

/// The output of a command on a screen of this width.
fn printed(arguments: &[&str], width: usize) -> String {
    let ended = end(lockwright().env("COLUMNS", width.to_string()).args(arguments));
    assert!([0, 1].contains(&ended.status), "{arguments:?}: {}{}", ended.out, ended.err);
    assert!(!ended.out.is_empty(), "{arguments:?}: {}", ended.err);
    ended.out
}

fn widest(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

fn fits(arguments: &[&str]) {
    fit(arguments, &WIDTHS);
}

/// As [`fits`], for a command that takes the machine: at the least width, and at all of them if LOCKWRIGHT_DEEP is set,
/// as in CI.
fn runs_fit(arguments: &[&str]) {
    let count = if std::env::var_os("LOCKWRIGHT_DEEP").is_some() { WIDTHS.len() } else { 1 };
    fit(arguments, &WIDTHS[..count]);
}

fn fit(arguments: &[&str], widths: &[usize]) {
    for &width in widths {
        let out = printed(arguments, width);
        assert!(widest(&out) <= width, "{arguments:?} at {width}:\n{out}");
    }
}

/// Each way to ask about a file.
fn all_fit(verb: &str, options: &[&[&str]]) {
    for text in [PATHFINDER, ROBOT, HOLDS, LATE, INVERSION, GLOBAL] {
        let file = File::new(text);
        let path = file.path.to_str().expect("a path in UTF-8");
        for options in options {
            fits(&[&[verb, path][..], *options].concat());
        }
    }
}

#[test]
fn check_fits_the_screen() {
    all_fit("check", &[&[], &["-p", "all"], &["--sensitivity"]]);
    let file = File::new(LATE);
    fits(&["check", file.path.to_str().expect("a path in UTF-8"), "--scheduler", "g-edf"]);
    let file = File::new(PATHFINDER);
    let path = file.path.to_str().expect("a path in UTF-8");
    fits(&["check", path, "--explain", "distribution_donnees", "-p", "mpcp"]);
    fits(&["check", path, "--scheduler", "p-edf", "--explain", "tache_radio"]);
}

/// Names are wrapped where nothing else can give way.
#[test]
fn explanations_fit_the_screen() {
    for name in ["PRE_SFM_gpu_POST", "PRE_Localization_gpu_POST", "Planner", "EKF"] {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/waters2019.toml");
        fits(&["check", path, "--explain", name]);
        let out = printed(&["check", path, "--explain", name], 80);
        assert!(out.lines().any(|line| line.starts_with("cause") && line.ends_with("why")), "{out}");
    }
    let long = format!("{}_telemetrie", "distribution_donnees".repeat(4));
    let file = File::new(&PATHFINDER.replace("distribution_donnees", &long));
    let path = file.path.to_str().expect("a path in UTF-8");
    fits(&["check", path]);
    fits(&["check", path, "-p", "mpcp", "--explain", &long]);
}

#[test]
fn simulate_fits_the_screen() {
    all_fit("simulate", &[&["--seed", "1"], &["--seed", "1", "-p", "all"], &["--gantt"]]);
}

#[test]
fn studies_and_reports_fit_the_screen() {
    fits(&["study", "list"]);
    let file = File::new(PATHFINDER);
    let path = file.path.to_str().expect("a path in UTF-8");
    let pages = ["pip", "none"].map(|protocol| {
        let result = file.beside(&format!("{protocol}.json"));
        let out = printed(&["simulate", path, "-p", protocol, "--json"], 80);
        std::fs::write(&result, out).expect("a writable folder");
        result.to_str().expect("a path in UTF-8").to_owned()
    });
    fits(&["report", &pages[0], &pages[1]]);
}

#[test]
fn run_fits_the_screen() {
    let Some(_machine) = require_realtime() else { return };
    let file = File::new(GLOBAL);
    let path = file.path.to_str().expect("a path in UTF-8");
    runs_fit(&["run", path, "--for", "100 ms"]);
    runs_fit(&["run", path, "--for", "50 ms", "-p", "all"]);
}

#[test]
fn verify_fits_the_screen() {
    let Some(_machine) = require_realtime() else { return };
    let overheads = File::named("overheads.toml", "schedule = \"1 us\"\nlock = \"1 us\"\n");
    let overheads = overheads.path.to_str().expect("a path in UTF-8");
    for text in [GLOBAL, LATE] {
        let file = File::new(text);
        let path = file.path.to_str().expect("a path in UTF-8");
        runs_fit(&["verify", path, "--for", "200 ms", "--overheads", overheads]);
        runs_fit(&["verify", path, "--for", "50 ms", "--overheads", overheads, "-p", "all"]);
    }
}

#[test]
fn recordings_fit_the_screen() {
    let Some(_machine) = require_realtime() else { return };
    let Some(program) = Program::of(NESTED, "pip") else { return };
    let recorded = program.record("0.1");
    assert_eq!(recorded.ended.status, 0, "{}{}", recorded.ended.out, recorded.ended.err);
    fits(&["record", "--read", recorded.folder.to_str().expect("a path in UTF-8")]);
}

/// As they measure under contention. A unit test has the tables of `measure protocols`, whose measurement is long.
#[test]
fn measurements_fit_the_screen() {
    let Some(_machine) = require_realtime() else { return };
    runs_fit(&["measure", "locks", "--readings", "1", "--requests", "40", "--rate", "2"]);
    runs_fit(&["measure", "mutex", "--readings", "1", "--waiters", "1,7", "--rounds", "3"]);
    runs_fit(&["measure", "ics", "--readings", "1", "--tick", "100us", "--operations", "30"]);
    runs_fit(&["measure", "objects", "--operations", "200"]);
}

/// The help of every verb, short and long.
#[test]
fn help_fits_the_screen() {
    let mut verbs: Vec<Vec<String>> = vec![vec![]];
    let mut seen = 0;
    while let Some(verb) = verbs.pop() {
        for help in ["-h", "--help"] {
            let arguments: Vec<&str> = verb.iter().map(String::as_str).chain([help]).collect();
            fits(&arguments);
        }
        let arguments: Vec<&str> = verb.iter().map(String::as_str).chain(["-h"]).collect();
        let out = printed(&arguments, 200);
        if let Some((_, commands)) = out.split_once("Commands:\n") {
            let names =
                commands.lines().take_while(|line| line.starts_with("  ")).filter(|line| line.as_bytes()[2] != b' ');
            let names = names.filter_map(|line| line.split_whitespace().next()).filter(|&name| name != "help");
            verbs.extend(names.map(|name| [&verb[..], &[name.to_owned()]].concat()));
        }
        seen += 1;
    }
    assert!(seen > 20, "{seen} verbs");
}

#[test]
fn verbs_without_a_file_fit_the_screen() {
    let _machine = require_realtime();
    runs_fit(&["measure", "locks", "--alone", "--readings", "10"]);
    runs_fit(&["measure", "mutex", "--alone", "--readings", "10"]);
    runs_fit(&["measure", "ics", "--alone", "--readings", "1"]);
    runs_fit(&["measure", "objects", "--alone", "--operations", "200"]);
    fits(&["study", "bpl", "--cores", "8", "--requests", "100", "--runs", "1", "--rate", "0.1"]);
    for width in WIDTHS {
        // It ends with 3 where something is missing.
        let out = end(lockwright().env("COLUMNS", width.to_string()).arg("doctor")).out;
        assert!(!out.is_empty() && widest(&out) <= width, "doctor at {width}:\n{out}");
    }
}

/// The text of a finding goes on below its begin.
#[test]
fn doctor_aligns_its_text() {
    for width in WIDTHS {
        let out = end(lockwright().env("COLUMNS", width.to_string()).arg("doctor")).out;
        let indents: Vec<usize> =
            out.lines().filter(|line| line.starts_with(' ')).map(|line| line.len() - line.trim_start().len()).collect();
        let text = out.lines().find(|line| !line.starts_with(' ')).expect("a finding");
        // The state, and the name: the rest begins after the last run of blanks.
        let begin = text.rfind("  ").expect("blanks before the text") + 2;
        assert!(indents.iter().all(|&indent| indent == begin), "{indents:?}, not {begin}, at {width}:\n{out}");
    }
}

/// The same check finds tables that are too wide, and nothing is lost in a narrow one without a word.
#[test]
fn wide_tables_show_every_column() {
    let file = File::new(PATHFINDER);
    let path = file.path.to_str().expect("a path in UTF-8");
    let narrow = printed(&["simulate", path], 60);
    let wide = printed(&["simulate", path, "--wide"], 60);
    assert!(widest(&wide) > 80, "{wide}");
    let (_, left_out) = narrow.split_once("columns left out: ").expect("some columns give way");
    let (left_out, _) = left_out.split_once(';').expect("a list of titles");
    let left_out = left_out.replace('\n', " ");
    for title in left_out.split(", ") {
        let is_header = |text: &str| text.lines().any(|line| line.starts_with("task") && line.contains(title));
        assert!(is_header(&wide) && !is_header(&narrow), "{title}:\n{narrow}\n{wide}");
    }
}

/// Columns give way in the order that the help gives.
#[test]
fn columns_give_way_in_the_order_of_the_help() {
    let help = end(lockwright().args(["simulate", "--help"])).out;
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, order) = help.split_once("in this order: ").expect("an order");
    let order: Vec<&str> = order.split_once(". ").expect("a sentence").0.split(", ").collect();
    let file = File::new(PATHFINDER);
    let path = file.path.to_str().expect("a path in UTF-8");
    let mut most = 0;
    for width in (40..=140).rev() {
        // Long enough for a thousand jobs.
        let out = printed(&["simulate", path, "-p", "pip", "--for", "60 s"], width);
        let Some((_, left_out)) = out.split_once("columns left out: ") else { continue };
        let left_out = left_out.split_once(';').expect("a list of titles").0.replace('\n', " ");
        let mut ranks: Vec<usize> =
            left_out.split(", ").map(|title| order.iter().position(|known| *known == title).expect(title)).collect();
        ranks.sort_unstable();
        let header = out.lines().find(|line| line.starts_with("task")).expect("a table");
        let last = *ranks.last().expect("a column");
        // No column that is still there gives way earlier than one that is left out.
        for title in order[..last].iter().filter(|title| !["C", "cpu"].contains(title)) {
            assert!(!header.contains(title), "{title} is still there at {width}:\n{out}");
        }
        most = most.max(ranks.len());
    }
    assert!(most > 3, "only {most} columns gave way");
    let header = |width| {
        let out = printed(&["simulate", path, "-p", "pip", "--for", "60 s"], width);
        out.lines().find(|line| line.starts_with("task")).expect("a table").to_owned()
    };
    assert!(header(200).contains("lock wait") && !header(100).contains("lock wait"), "the first that gives way");
    assert!(header(100).contains("p99.9") && !header(60).contains("p99.9"), "one of the last");
}

#[test]
fn the_verdict_follows_the_name() {
    let file = File::new(LATE);
    let path = file.path.to_str().expect("a path in UTF-8");
    let out = printed(&["check", path], 100);
    let header = out.lines().find(|line| line.starts_with("task")).expect("a table");
    assert_eq!(header.split_whitespace().nth(1), Some("verdict"), "{out}");
    let colored = printed(&["check", path, "--color", "always"], 100);
    assert!(colored.contains("\x1b[32mok\x1b[0m") && colored.contains("\x1b[31mlate\x1b[0m"), "{colored}");
}

#[test]
fn protocols_with_the_same_rules_share_a_row() {
    let file = File::new(PATHFINDER);
    let path = file.path.to_str().expect("a path in UTF-8");
    for verb in ["check", "simulate"] {
        let out = printed(&[verb, path, "-p", "all"], 100);
        let same = out.lines().find(|line| line.starts_with("= icpp: ")).expect("a group");
        assert!(same.contains("mpcp") && same.contains("msrp") && !same.contains("pip"), "{out}");
        let has_row = |name: &str| out.lines().any(|line| line.starts_with(&format!("{name} ")));
        assert!(has_row("icpp") && has_row("pip") && !has_row("mpcp"), "{out}");
    }
}
