//! `study bpl`.

use crate::support::{Ended, end, json, lockwright};
use serde_json::Value;

/// A small grid: two combinations, six results.
const SMALL: [&str; 9] = ["--cores", "64", "--burst", "8", "--rate", "0.01,1", "--requests", "2000", "--json"];

/// The keys of a result, all of them.
const KEYS: [&str; 10] = [
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
];

fn bpl(arguments: &[&str]) -> Ended {
    end(lockwright().args(["study", "bpl"]).args(arguments))
}

fn results(ended: &Ended) -> Vec<Value> {
    json(ended)["results"].as_array().expect("results").clone()
}

#[test]
fn the_object_holds_a_result_for_each_lock() {
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
    assert!(results[4]["max_sections_waited"].as_u64() > Some(63), "the twin: priority knows no bound at saturation");
}

#[test]
fn one_seed_the_same_bytes_whatever_the_threads() {
    let one = bpl(&[&SMALL[..], &["--seed", "7"]].concat());
    for jobs in ["1", "2", "7"] {
        assert_eq!(one.out, bpl(&[&SMALL[..], &["--seed", "7", "--jobs", jobs]].concat()).out, "{jobs} threads");
    }
    let other = bpl(&[&SMALL[..], &["--seed", "8"]].concat());
    assert_ne!(results(&one), results(&other), "the twin has another seed");
    // One combination alone is what it is among others.
    let alone = bpl(&["--cores", "64", "--burst", "8", "--rate", "1", "--requests", "2000", "--seed", "7", "--json"]);
    assert_eq!(results(&alone), results(&one)[3..]);
}

#[test]
fn a_drawn_seed_is_said() {
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
    // Under priority, with few bursts, whoever gets the free lock decides most of them.
    assert!(inversions("best") < 20.0 && inversions("random") > 35.0);
}

#[test]
fn the_table_says_what_was_simulated() {
    let ended =
        bpl(&["--cores", "64", "--burst", "8", "--rate", "1", "--requests", "2000", "--runs", "2", "--seed", "7"]);
    assert_eq!(ended.status, 0, "{}", ended.err);
    for part in ["2 runs of 2000 requests each, seed 7, a free lock goes to a random member", "unserved", "batched"] {
        assert!(ended.out.contains(part), "{part}: {}", ended.out);
    }
}

#[test]
fn the_csv_has_what_the_object_has() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("out.csv");
    let ended = end(lockwright().args(["study", "bpl"]).args(SMALL).args(["--seed", "7", "--csv"]).arg(&path));
    let text = std::fs::read_to_string(&path).expect("is there");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(KEYS.join(",").as_str()));
    for result in results(&ended) {
        let value = |key: &str| result[key].as_str().map_or_else(|| result[key].to_string(), str::to_owned);
        let line: Vec<&str> = lines.next().expect("as many lines as results").split(',').collect();
        for (key, found) in KEYS.iter().zip(line) {
            let expected = value(key);
            let numbers = (found.parse::<f64>(), expected.parse::<f64>());
            assert!(
                found == expected || matches!(numbers, (Ok(one), Ok(other)) if one == other),
                "{key}: {found} {expected}"
            );
        }
    }
    assert_eq!(lines.next(), None);
}

#[test]
fn figures_are_drawn_for_each_cores_and_burst() {
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
    // A single rate makes an axis, too.
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
        (&["--svg", "/dev/null/figures"], "--svg"),
    ] {
        let ended = bpl(arguments);
        assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{arguments:?}");
        assert!(ended.err.contains(part), "{arguments:?}: {}", ended.err);
    }
    assert_eq!(end(lockwright().args(["study", "nothing"])).status, 2);
}
