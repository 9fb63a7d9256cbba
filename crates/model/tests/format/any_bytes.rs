//! Every reader turns any file into a system or faults with their places, and never panics.

use crate::check::{self, Outcome};
use lockwright_model::format::{Diagnostic, parse_system};
use proptest::prelude::*;
use proptest::sample::Index;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

const CASES: u32 = 3_000;

struct Seed {
    name: String,
    source: String,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    TaskSet,
    RtApp,
    Xml,
}

impl Kind {
    fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "toml" => Some(Self::TaskSet),
            "json" => Some(Self::RtApp),
            "xml" | "xmlv3" => Some(Self::Xml),
            _ => None,
        }
    }
}

impl Seed {
    fn check(&self, source: &str) -> Result<Outcome, String> {
        match self.kind {
            Kind::TaskSet => check::task_set(source.as_bytes()),
            Kind::RtApp => check::rt_app(source),
            Kind::Xml => check::xml(source),
        }
    }
}

/// The files of the examples and of the corpus.
static SEEDS: LazyLock<Vec<Seed>> = LazyLock::new(|| {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let corpus = ["task-set", "rt-app", "schedcat", "cheddar"].map(|name| here.join("tests/corpus").join(name));
    let folders = [&[here.join("../../examples")], &corpus[..]].concat();
    let mut paths: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).expect("in the repository"))
        .map(|entry| entry.expect("readable").path())
        .filter(|path| Kind::of(path).is_some())
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| Seed {
            name: path.file_name().expect("a file").to_string_lossy().into_owned(),
            source: fs::read_to_string(path).expect("UTF-8"),
            kind: Kind::of(path).expect("filtered"),
        })
        .collect()
});

/// Splits a text into words, runs of blanks, and single other characters.
fn tokens(source: &str) -> Vec<&str> {
    let class = |c: char| if c.is_alphanumeric() || c == '_' { 1 } else { u8::from(c.is_whitespace()) * 2 };
    let mut tokens = Vec::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let kind = class(first);
        let end = rest.char_indices().skip(1).find(|(_, c)| kind == 0 || class(*c) != kind);
        let (token, after) = rest.split_at(end.map_or(rest.len(), |(at, _)| at));
        tokens.push(token);
        rest = after;
    }
    tokens
}

const STRANGE: [&str; 30] = [
    "<",
    "/>",
    "&amp;",
    "<!--",
    "\"",
    "'",
    "[",
    "]",
    "{",
    "}",
    "=",
    ":",
    ",",
    ".",
    "\n",
    "#",
    "/*",
    "-",
    "\u{feff}",
    "µ",
    "\u{0}",
    "0",
    "18446744073709551616",
    "9e999",
    "1.5",
    "true",
    "\"0 ns\"",
    "\"1000000000000000 ns\"",
    "\"\\u0000\"",
    "4096",
];

#[derive(Clone, Debug)]
enum Mutation {
    Delete(Index),
    Duplicate(Index),
    Swap(Index, Index),
    /// Replaces one token of the file by another.
    Replace(Index, Index),
    Insert(Index, Index),
    Strange(Index, Index),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let index = any::<Index>;
    prop_oneof![
        index().prop_map(Mutation::Delete),
        index().prop_map(Mutation::Duplicate),
        (index(), index()).prop_map(|(a, b)| Mutation::Swap(a, b)),
        (index(), index()).prop_map(|(a, b)| Mutation::Replace(a, b)),
        (index(), index()).prop_map(|(a, b)| Mutation::Insert(a, b)),
        (index(), index()).prop_map(|(a, b)| Mutation::Strange(a, b)),
    ]
}

fn mutate(source: &str, mutations: &[Mutation]) -> String {
    let mut tokens = tokens(source);
    for mutation in mutations.iter().filter(|_| !source.is_empty()) {
        let count = tokens.len();
        if count == 0 {
            break;
        }
        match mutation {
            Mutation::Delete(at) => {
                tokens.remove(at.index(count));
            }
            Mutation::Duplicate(at) => tokens.insert(at.index(count), tokens[at.index(count)]),
            Mutation::Swap(a, b) => tokens.swap(a.index(count), b.index(count)),
            Mutation::Replace(at, by) => tokens[at.index(count)] = tokens[by.index(count)],
            Mutation::Insert(at, what) => tokens.insert(at.index(count), tokens[what.index(count)]),
            Mutation::Strange(at, what) => tokens.insert(at.index(count), STRANGE[what.index(STRANGE.len())]),
        }
    }
    tokens.concat()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_handled(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        check::task_set(&bytes).map_err(TestCaseError::fail)?;
        check::rt_app(&String::from_utf8_lossy(&bytes)).map_err(TestCaseError::fail)?;
        check::xml(&String::from_utf8_lossy(&bytes)).map_err(TestCaseError::fail)?;
        check::overheads(&String::from_utf8_lossy(&bytes)).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn any_mix_of_tokens_is_handled(picks in prop::collection::vec((any::<Index>(), any::<Index>()), 0..80)) {
        let text: String = picks
            .iter()
            .map(|(seed, token)| {
                let tokens = tokens(&SEEDS[seed.index(SEEDS.len())].source);
                if tokens.is_empty() { "" } else { tokens[token.index(tokens.len())] }
            })
            .collect();
        check::task_set(text.as_bytes()).map_err(TestCaseError::fail)?;
        check::rt_app(&text).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn any_mutation_of_a_known_file_is_handled(
        seed in any::<Index>(),
        mutations in prop::collection::vec(mutation(), 1..6),
    ) {
        let seed = &SEEDS[seed.index(SEEDS.len())];
        let source = mutate(&seed.source, &mutations);
        seed.check(&source).map_err(|error| TestCaseError::fail(format!("{}: {error}", seed.name)))?;
    }
}

const OVERHEADS: &str = include_str!("../corpus/overheads/good-every-kind.toml");

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_mutation_of_overheads_is_handled(mutations in prop::collection::vec(mutation(), 0..6)) {
        check::overheads(&mutate(OVERHEADS, &mutations)).map_err(TestCaseError::fail)?;
    }
}

#[test]
fn the_corpus_is_read_as_its_names_say() {
    for seed in SEEDS.iter() {
        let outcome = seed.check(&seed.source).unwrap_or_else(|error| panic!("{}: {error}", seed.name));
        let wanted = if seed.name.starts_with("bad-") { Outcome::Refused } else { Outcome::Accepted };
        assert_eq!(outcome, wanted, "{}", seed.name);
    }
    for kind in [Kind::TaskSet, Kind::RtApp, Kind::Xml] {
        for prefix in ["bad-", "good-"] {
            let any = SEEDS.iter().any(|seed| seed.kind == kind && seed.name.starts_with(prefix));
            assert!(any, "the corpus has no file of a kind");
        }
    }
}

#[test]
fn mutations_reach_both_outcomes() {
    // One mutation no longer parses and one still does, so the property above is about both.
    let pathfinder = SEEDS.iter().find(|seed| seed.name == "pathfinder.toml").expect("an example");
    let blank = tokens(&pathfinder.source).iter().position(|token| *token == "\n").expect("lines");
    let longer = mutate(&pathfinder.source, &[]).replacen('\n', "\n\n", blank);
    assert_eq!(pathfinder.check(&longer), Ok(Outcome::Accepted));
    assert_eq!(pathfinder.check(&pathfinder.source.replace('=', "")), Ok(Outcome::Refused));
}

/// Negative control: the check itself refuses diagnostics with wrong places.
#[test]
fn the_check_catches_wrong_places() {
    let fault = |span| Diagnostic::new("m").at(span);
    let source = "µ = 1";
    assert_eq!(check::diagnostic(source, &fault(0..2)), Ok(()));
    for wrong in [0..source.len() + 1, 1..2, 0..1, 90..95] {
        let wrong = fault(wrong);
        assert!(check::diagnostic(source, &wrong).is_err(), "{wrong:?}");
        assert!(check::outcome(source, Err(vec![wrong])).is_err());
    }
    assert!(check::outcome(source, Err(Vec::new())).is_err(), "no fault at all");
    assert!(check::outcome(source, Err(vec![fault(3..4), fault(0..2)])).is_err(), "out of order");
    let mute = Diagnostic::new("");
    assert!(check::diagnostic(source, &mute).is_err());
}

/// For how long this thread has executed. Other threads may take its CPU for much longer.
fn executed() -> std::time::Duration {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").expect("the kernel counts it");
    let ns = stat.split(' ').next().and_then(|ns| ns.parse().ok());
    std::time::Duration::from_nanos(ns.expect("nanoseconds"))
}

#[test]
fn long_files_take_seconds_at_most() {
    let bodies = "[[task]]\nname=\"t\"\nperiod=\"9 s\"\nbody=[".to_string()
        + &"{lock=\"r\"},{run=\"1 ns\"},{unlock=\"r\"},".repeat(60_000)
        + "]";
    let many = [
        "[[task]]\nname=\"x\"\n".repeat(100_000),
        "x=\n".repeat(200_000),
        "=\n".repeat(200_000),
        format!("{}=1", "a.".repeat(200_000)),
        format!("a={}", "[".repeat(1_000_000)),
        (0..100_000).map(|key| format!("k{key}=1\n")).collect(),
        format!("{}=1", "k".repeat(1_000_000)),
        "[[resource]]\nname=\"r\"\n".repeat(50_000) + &bodies,
        bodies,
        "\"".repeat(1_000_000),
        format!("<taskset>{}</taskset>", "<task period='9' wcet='1'/>".repeat(50_000)),
        "<taskset>".repeat(100_000),
        format!("<taskset><task><resources>{}", "<requirement max_writes='4096'/>".repeat(50_000))
            + "</resources></task></taskset>",
        format!("<taskset {}/>", (0..200_000).map(|key| format!("a{key}='' ")).collect::<String>()),
        format!(
            "<a {}>{}</a>",
            (0..20_000).map(|n| format!("xmlns:n{n}='{n}' ")).collect::<String>(),
            "<b xmlns:z='z'/>".repeat(20_000)
        ),
        format!(
            "<cheddar><core_units/><processors>{}</processors></cheddar>",
            "<p><name>a</name><c ref='z'/></p>".repeat(100_000)
        ),
        format!("{}{}", "<taskset>".repeat(20_000), "</taskset>".repeat(20_000)),
        format!("<cheddar><processors>{}</processors></cheddar>", "<p><name>a</name><c ref='x'/></p>".repeat(20_000)),
        format!("<taskset>{}", "<task a='1' b='2'/>".repeat(50_000)),
        format!("{{\"tasks\":{{{}}}}}", "t:{run:x,sleep:1},".repeat(100_000)),
        format!("{{\"tasks\":{{\"t\":{{{}}}}}}}", "run:1,lock:m,".repeat(100_000)),
        format!("{{\"tasks\":{{\"t\":{{{}}}}}}}", "\"x\":1,".repeat(150_000)),
        "/**/".repeat(200_000),
        "{\"a\":".repeat(150_000),
        "#".repeat(17 << 20),
    ];
    for source in &many {
        let begin = executed();
        check::task_set(source.as_bytes()).expect("handled");
        check::rt_app(source).expect("handled");
        check::xml(source).expect("handled");
        // The limit is generous: a quadratic reader would take minutes.
        assert!((executed() - begin).as_secs() < 20, "{}...", &source[..20]);
    }
    assert!(parse_system(&many[many.len() - 1]).expect_err("too long")[0].message.contains("bytes"));
}
