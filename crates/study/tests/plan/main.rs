//! The reader of study files turns any text into a study or faults with their places, and never panics.

mod check;
mod clusters;

use check::Outcome;
use fastrand::Rng;
use std::path::Path;

const CASES: usize = 3_000;

/// A study with every key and many forms of values.
const EVERY_KEY: &str = include_str!("every-key.toml");

/// Words that no study contains where they are inserted.
const STRANGE: [&str; 16] = [
    "[",
    "]",
    "{",
    "}",
    "=",
    ",",
    "\n",
    "\"",
    "#",
    "-",
    "\u{0}",
    "µ",
    "0",
    "9e999",
    "18446744073709551616",
    "[[method]]",
];

/// The studies among the examples, and the one with every key.
fn seeds() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/studies");
    let entries = std::fs::read_dir(folder).expect("in the repository");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.sort();
    let mut seeds: Vec<String> = paths.iter().map(|path| std::fs::read_to_string(path).expect("UTF-8")).collect();
    seeds.push(EVERY_KEY.to_owned());
    seeds
}

/// Splits a text into words, and single other characters.
fn tokens(source: &str) -> Vec<&str> {
    source.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_').collect()
}

#[test]
fn the_examples_are_accepted() {
    let refused: Vec<String> = seeds().into_iter().filter(|seed| check::plan(seed) != Ok(Outcome::Accepted)).collect();
    // One of the files has the overheads of a study.
    assert!(refused.len() == 1 && refused[0].contains("context_switch"), "{}", refused.join("\n---\n"));
}

/// Requests that no job has room for are refused where they are given.
#[test]
fn more_sections_than_steps_are_refused() {
    let study = |sections: &str| {
        let text = format!(
            "samples = 1\n[generator]\ntasks = 4\nload = 0.5\n[sections]\n{sections}\n[[method]]\nprotocols = [\"icpp\"]\n"
        );
        let read = lockwright_study::plan::parse_plan(&text, &mut |_| Err("none".into()));
        read.err().map(|faults| (faults[0].message.clone(), text[faults[0].span.clone().expect("a place")].to_owned()))
    };
    for (sections, place) in [
        ("resources = 256\nrequests = 100\nlengths = \"10 us\"", "100"),
        ("resources = 256\nrequests = 7", "7"),
        ("resources = 256\nprobability = 0.95\nnesting = { traced = [0, 100], deepest = 8 }", "256"),
        ("accesses = 1000\ndegree = 20\nnesting = \"traced\"", "1000"),
    ] {
        let (message, found) = study(sections).unwrap_or_else(|| panic!("{sections} is accepted"));
        assert!(message.contains("a job has at most 4096") && found == place, "{message}: {found}");
    }
    for sections in [
        "resources = 256\nrequests = 5",
        "resources = 256\nprobability = 0.1\nrequests = 30",
        "accesses = 1000\ndegree = 20",
        "accesses = 1000\ndegree = 20\nnesting = \"traced-groups\"",
    ] {
        assert_eq!(study(sections), None, "{sections}");
    }
}

#[test]
fn any_text_is_handled() {
    let (mut random, seeds) = (Rng::with_seed(1), seeds());
    for _ in 0..CASES {
        let length = random.usize(0..400);
        let bytes: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(length).collect();
        let text = String::from_utf8_lossy(&bytes);
        assert_eq!(check::plan(&text), Ok(Outcome::Refused), "{text:?}");
        let pick = |random: &mut Rng| {
            let seed = &seeds[random.usize(0..seeds.len())];
            let tokens = tokens(seed);
            tokens[random.usize(0..tokens.len())]
        };
        let mix: String = (0..random.usize(0..80)).map(|_| pick(&mut random)).collect();
        check::plan(&mix).unwrap_or_else(|error| panic!("{error}:\n{mix}"));
    }
}

#[test]
fn any_mutation_of_a_study_is_handled() {
    let (mut random, seeds) = (Rng::with_seed(2), seeds());
    let mut outcomes = [0, 0];
    for _ in 0..CASES {
        let mut tokens = tokens(&seeds[random.usize(0..seeds.len())]);
        for _ in 0..random.usize(1..4) {
            let at = random.usize(0..tokens.len());
            match random.u8(0..5) {
                0 => drop(tokens.remove(at)),
                1 => tokens.insert(at, tokens[random.usize(0..tokens.len())]),
                2 => tokens[at] = tokens[random.usize(0..tokens.len())],
                3 => {
                    let other = random.usize(0..tokens.len());
                    tokens.swap(at, other);
                }
                _ => tokens.insert(at, STRANGE[random.usize(0..STRANGE.len())]),
            }
        }
        let source = tokens.concat();
        let outcome = check::plan(&source).unwrap_or_else(|error| panic!("{error}:\n{source}"));
        outcomes[usize::from(outcome == Outcome::Accepted)] += 1;
    }
    assert!(outcomes.iter().all(|&count| count > CASES / 50), "{outcomes:?}");
}
