//! `study bpl`.

use crate::support::{Ended, end, json, lockwright};
use lockwright_study::bpl::{FreeLock, Lock, Model, Random, Statistics, play, run_seeds};
use serde_json::Value;
use std::path::Path;

/// A small grid: two combinations, six results.
const SMALL: [&str; 9] = ["--cores", "64", "--burst", "8", "--rate", "0.01,1", "--requests", "2000", "--json"];

/// The keys of a result, all of them.
pub const KEYS: [&str; 11] = [
    "cores",
    "burst",
    "rate",
    "lock",
    "inversions_pct",
    "weighted_delay",
    "weighted_delay_over_fifo",
    "mean_wait",
    "top_mean_wait",
    "max_sections_waited",
    "unserved",
];

fn bpl(arguments: &[&str]) -> Ended {
    end(lockwright().args(["study", "bpl"]).args(arguments))
}

pub fn results(ended: &Ended) -> Vec<Value> {
    json(ended)["results"].as_array().expect("results").clone()
}

#[test]
fn json_has_a_result_for_each_lock() {
    let ended = bpl(&[&SMALL[..], &["--seed", "7"]].concat());
    assert_eq!((ended.status, ended.err.as_str()), (0, ""));
    let value = json(&ended);
    assert_eq!((&value["seed"], &value["requests"], &value["runs"]), (&7.into(), &2000.into(), &5.into()));
    let results = results(&ended);
    assert_eq!(results.len(), 6);
    for (index, result) in results.iter().enumerate() {
        let mut keys: Vec<&str> = result.as_object().expect("an object").keys().map(String::as_str).collect();
        let mut expected = KEYS;
        keys.sort_unstable();
        expected.sort_unstable();
        assert_eq!(keys, expected);
        assert_eq!(result["lock"], ["fifo", "priority", "batched"][index % 3]);
        assert_eq!(result["rate"].as_f64(), Some([0.01, 1.0][index / 3]));
    }
    for cell in results.chunks(3) {
        assert_eq!(cell[0]["weighted_delay_over_fifo"], 1.0);
        assert_eq!(cell[0]["mean_wait"], cell[2]["mean_wait"], "to the last digit");
        assert!(
            cell[0]["max_sections_waited"].as_u64() <= Some(63) && cell[2]["max_sections_waited"].as_u64() <= Some(63)
        );
    }
    assert!(results[4]["max_sections_waited"].as_u64() > Some(63), "priority has no bound at saturation");
}

#[test]
fn runs_with_different_seeds_are_merged() {
    let arguments =
        ["--cores", "64", "--burst", "8", "--rate", "1", "--requests", "2000", "--runs", "2", "--seed", "7"];
    let found = results(&bpl(&[&arguments[..], &["--json"]].concat()));
    let model = Model::new(64, 8, 1.0, FreeLock::Random).expect("within the limits");
    let merged = |lock: Lock, seeds: [u64; 2]| {
        let mut all = Statistics::default();
        for seed in seeds {
            all.merge(&play(&model, lock, 2_000, Random::new(&model, seed), |_| true).expect("is not stopped"));
        }
        all
    };
    let seeds: Vec<u64> = run_seeds(7).take(2).collect();
    for (result, lock) in found.iter().zip(Lock::ALL) {
        let is = |all: &Statistics| {
            result["inversions_pct"].as_f64() == Some(all.inversions_pct())
                && result["weighted_delay"].as_f64() == all.weighted_delay()
                && result["mean_wait"].as_f64() == Some(all.mean_wait())
                && result["top_mean_wait"].as_f64() == all.top_mean_wait()
                && result["max_sections_waited"].as_u64() == Some(all.sections_max)
                && result["unserved"].as_u64() == Some(all.unserved() as u64)
        };
        assert!(is(&merged(lock, [seeds[0], seeds[1]])), "{lock}: {result}");
        assert!(!is(&merged(lock, [seeds[0]; 2])), "equal seeds give another result: {result}");
    }
    assert!(found[1]["unserved"].as_u64() > Some(0), "priority starves: {}", found[1]);
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let one = bpl(&[&SMALL[..], &["--seed", "7"]].concat());
    for jobs in ["1", "2", "7"] {
        assert_eq!(one.out, bpl(&[&SMALL[..], &["--seed", "7", "--jobs", jobs]].concat()).out, "{jobs} threads");
    }
    let other = bpl(&[&SMALL[..], &["--seed", "8"]].concat());
    assert_ne!(results(&one), results(&other), "another seed gives another result");
    // The result of a combination does not depend on the others.
    let alone = bpl(&["--cores", "64", "--burst", "8", "--rate", "1", "--requests", "2000", "--seed", "7", "--json"]);
    assert_eq!(results(&alone), results(&one)[3..]);
}

#[test]
fn a_random_seed_is_printed() {
    let drawn = bpl(&SMALL);
    let seed = json(&drawn)["seed"].to_string();
    assert!(drawn.err.contains(&format!("--seed {seed}")), "{}", drawn.err);
    assert_eq!(bpl(&[&SMALL[..], &["--seed", &seed]].concat()).out, drawn.out);
}

#[test]
fn the_free_lock_may_go_to_the_best() {
    let inversions = |who: &str| {
        let ended = bpl(&[&SMALL[..], &["--seed", "7", "--free-lock", who]].concat());
        assert_eq!(json(&ended)["free_lock"], who);
        results(&ended)[1]["inversions_pct"].as_f64().expect("a number")
    };
    // Under priority with few bursts, most inversions depend on the member that gets the free lock.
    assert!(inversions("best") < 20.0 && inversions("random") > 35.0);
}

#[test]
fn the_table_names_the_simulation() {
    let ended =
        bpl(&["--cores", "64", "--burst", "8", "--rate", "1", "--requests", "2000", "--runs", "2", "--seed", "7"]);
    assert_eq!(ended.status, 0, "{}", ended.err);
    for part in ["2 runs of 2000 requests each, seed 7, a free lock goes to a random member", "unserved", "batched"] {
        assert!(ended.out.contains(part), "{part}: {}", ended.out);
    }
}

#[test]
fn csv_and_json_agree() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("out.csv");
    // One core never waits, and 0 divided by 0 is null.
    let arguments = ["study", "bpl", "--cores", "1,64", "--burst", "8", "--rate", "0.01,1", "--requests", "2000"];
    let ended = end(lockwright().args(arguments).args(["--seed", "7", "--json", "--csv"]).arg(&path));
    let results = results(&ended);
    assert_eq!((results.len(), &results[0]["weighted_delay_over_fifo"]), (12, &Value::Null));
    holds(&path, &results);
}

#[test]
fn the_page_checks_what_the_batched_order_promises() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("bpl.html");
    let page = path.to_str().expect("a name");
    let ended = bpl(&[&SMALL[..], &["--html", page]].concat());
    let html = std::fs::read_to_string(&path).expect("a page");
    let seed = json(&ended)["seed"].to_string();
    assert!(html.contains(&format!("--seed={seed}")), "the command repeats the study");
    let ended = bpl(&[&SMALL[..], &["--seed", "7", "--html", page]].concat());
    assert_eq!(ended.status, 0, "{}", ended.err);
    let html = std::fs::read_to_string(&path).expect("a page");
    for part in [
        "Of 3 promises of the batched order, 3 hold, and 0 do not (2 cells).",
        "requests with an inversion, % (64 cores, mean burst 8)",
        "weighted mean delay over that of fifo, cut at 1.25 (64 cores, mean burst 8)",
    ] {
        assert!(html.contains(part), "{part}");
    }
    for result in results(&ended) {
        let sections = result["max_sections_waited"].to_string();
        assert!(html.contains(&format!("data-v=\"{sections}\"")), "{sections}");
    }
    let ended = bpl(&[&SMALL[..], &["--html", "/proc/nowhere/bpl.html"]].concat());
    let is_told = ended.err.contains("--html") && json(&ended)["error"]["message"].is_string();
    assert!(ended.status == 2 && is_told, "{}{}", ended.out, ended.err);
}

/// The CSV has these results, in this order, and no others.
pub fn holds(csv: &Path, results: &[Value]) {
    let text = std::fs::read_to_string(csv).expect("is there");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(KEYS.join(",").as_str()));
    for result in results {
        let line: Vec<&str> = lines.next().expect("as many lines as results").split(',').collect();
        assert_eq!(line.len(), KEYS.len(), "{line:?}");
        for (key, found) in KEYS.iter().zip(line) {
            let same = match &result[key] {
                Value::Null => found.is_empty(),
                Value::String(word) => found == word,
                // Another way to write the same number.
                number => found.parse().ok() == number.as_f64(),
            };
            assert!(same, "{key}: {found}, not {}", result[key]);
        }
    }
    assert_eq!(lines.next(), None);
}

/// A file that cannot be written does not prevent other results.
#[test]
fn a_full_disk_loses_no_other_result() {
    let Ok(full) = std::fs::File::options().write(true).open("/dev/full") else {
        eprintln!("SKIPPED: no /dev/full here");
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let csv = folder.path().join("out.csv");
    let csv = csv.to_str().expect("is UTF-8");
    let expected = bpl(&[&SMALL[..], &["--seed", "7"]].concat());
    for (files, refused) in [
        (["--csv", "/dev/full", "--svg", "/proc"], &["/dev/full", "/proc/"][..]),
        (["--csv", csv, "--svg", "/proc"], &["/proc/"]),
    ] {
        let ended = bpl(&[&SMALL[..], &["--seed", "7"], &files].concat());
        assert_eq!((ended.status, &ended.out), (3, &expected.out), "{files:?}: {}", ended.err);
        for path in refused {
            assert!(ended.err.contains(&format!("cannot write {path}")), "{path}: {}", ended.err);
        }
    }
    holds(Path::new(csv), &results(&expected));
    std::fs::remove_file(csv).expect("is there");
    let ended = end(lockwright().args(["study", "bpl"]).args(SMALL).args(["--seed", "7", "--csv", csv]).stdout(full));
    assert_eq!(ended.status, 3, "{}", ended.err);
    holds(Path::new(csv), &results(&expected));
}

#[test]
fn the_csv_cannot_overwrite_a_figure() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let svg = folder.path().join("new").join("figures");
    let draw = |csv: &Path| {
        let arguments = ["study", "bpl", "--cores", "64", "--burst", "8", "--rate", "1", "--requests", "10", "--svg"];
        end(lockwright().args(arguments).arg(&svg).arg("--csv").arg(csv))
    };
    // Another number of cores is no figure of these.
    for name in ["out.csv", "delay-8-8.svg"] {
        let ended = draw(&svg.join(name));
        assert_eq!(ended.status, 0, "{}", ended.err);
        assert!(std::fs::read_to_string(svg.join(name)).expect("is there").starts_with(KEYS[0]));
    }
    let figure = std::fs::read_to_string(svg.join("delay-64-8.svg")).expect("is there");
    for name in ["delay-64-8.svg", "inversions-64-8.svg", "../figures/delay-64-8.svg"] {
        let ended = draw(&svg.join(name));
        assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{name}: {}", ended.err);
        assert!(ended.err.contains("is also the name of a figure") && ended.err.contains("--csv"), "{}", ended.err);
    }
    assert_eq!(std::fs::read_to_string(svg.join("delay-64-8.svg")).expect("is there"), figure, "it is as it was");
}

#[test]
fn each_number_of_cores_and_burst_has_figures() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let draw = |name: &str| {
        let to = folder.path().join(name).join("new");
        let arguments =
            ["study", "bpl", "--cores", "64,8", "--burst", "8,32", "--rate", "0.01,0.1,1", "--requests", "2000"];
        let ended = end(lockwright().args(arguments).args(["--seed", "7", "--svg"]).arg(&to));
        assert_eq!(ended.status, 0, "{}", ended.err);
        assert!(ended.err.contains("8 figures"), "{}", ended.err);
        to
    };
    let (one, again) = (draw("one"), draw("again"));
    for quantity in ["inversions", "delay"] {
        for cores in [64, 8] {
            for burst in [8, 32] {
                let name = format!("{quantity}-{cores}-{burst}.svg");
                let svg = std::fs::read_to_string(one.join(&name)).expect("is there");
                assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{name}");
                for part in ["priority (triangles)", "batched (crosses)", "0.01", "mean burst"] {
                    assert!(svg.contains(part), "{part} is missing in {name}");
                }
                assert_eq!(svg.contains("cut at 1.25"), quantity == "delay", "{name}");
                assert_eq!(svg, std::fs::read_to_string(again.join(&name)).expect("is there"), "the same bytes");
            }
        }
    }
    // A single rate makes an axis as well.
    let arguments = ["study", "bpl", "--cores", "8", "--burst", "1", "--rate", "1", "--requests", "10", "--svg"];
    assert_eq!(end(lockwright().args(arguments).arg(folder.path())).status, 0);
}

#[test]
fn wrong_arguments_are_refused() {
    for (arguments, part) in [
        (&["--cores", "0"][..], "1..=64"),
        (&["--cores", "8,65"], "1..=64"),
        (&["--cores", "many"], "invalid digit"),
        (&["--burst", "0"], "1..=1000000"),
        (&["--rate", "0"], "it must be from 0.000001 to 1000"),
        (&["--rate", "-1"], "it must be from"),
        (&["--rate", "inf"], "it must be from"),
        (&["--rate", "0.1,NaN"], "it must be from"),
        (&["--rate", "fast"], "it must be a number"),
        (&["--requests", "0"], "1..=1000000000"),
        (&["--runs", "0"], "1..=1000"),
        (&["--jobs", "0"], "1..=1024"),
        (&["--free-lock", "worst"], "possible values"),
        (&["--csv", "/no/such/folder/out.csv"], "--csv"),
        (&["--csv", "-"], "`--json` prints the results to standard output"),
        (&["--svg", "/dev/null/figures"], "--svg"),
    ] {
        let ended = bpl(arguments);
        assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{arguments:?}");
        assert!(ended.err.contains(part), "{arguments:?}: {}", ended.err);
    }
    assert_eq!(end(lockwright().args(["study", "nothing"])).status, 2);
}
