//! Fuzzes the readers: `cargo xtask test --deep fuzz`. The targets are built as `cargo fuzz` builds them, so that it
//! need not be installed.

use crate::tool;
use std::env::VarError;
use std::path::Path;

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// The options of the compiler with which libFuzzer sees what a run covers, and AddressSanitizer what it damages.
const FLAGS: &str = "--cfg fuzzing -Zsanitizer=address -Cdebug-assertions -Ccodegen-units=1 -Cpasses=sancov-module \
                     -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                     -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
                     -Cllvm-args=-sanitizer-coverage-stack-depth";

/// The targets, and the folders and extensions of their first inputs.
const TARGETS: [(&str, &[(&str, &str)]); 6] = [
    ("task_set", &[("crates/model/tests/corpus/task-set", "toml"), ("examples", "toml")]),
    ("rt_app", &[("crates/model/tests/corpus/rt-app", "json"), ("examples", "json")]),
    ("xml", &[("crates/model/tests/corpus/schedcat", "xml"), ("crates/model/tests/corpus/cheddar", "xmlv3")]),
    ("overheads", &[("crates/model/tests/corpus/overheads", "toml")]),
    ("study", &[("crates/study/tests/plan", "toml"), ("examples/studies", "toml")]),
    ("recording", &[]),
];

/// How many seconds each target runs, unless `XTASK_FUZZ_SECONDS` is set. Its name does not begin with LOCKWRIGHT_,
/// because the preloaded library warns of such variables that it does not know, and `.ci/run` sets it for all checks.
const SECONDS: u32 = 60;

/// The most seconds: a day.
const SECONDS_MAX: u32 = 86_400;

/// After how many seconds one input counts as a hang. libFuzzer measures the time that passes, and other checks may
/// take the CPUs from the fuzzer meanwhile.
const HANG: u32 = 120;

/// Fuzzes each reader.
pub fn run() -> Result<(), String> {
    if !tool::has_toolchain(&["run", "--install", "nightly", "rustc", "--version"]) {
        return Ok(());
    }
    let seconds = match std::env::var("XTASK_FUZZ_SECONDS") {
        Err(VarError::NotPresent) => SECONDS,
        Ok(text) => seconds(&text)?,
        Err(VarError::NotUnicode(text)) => seconds(&text.to_string_lossy())?,
    };
    let folder = tool::root().join("target/fuzz");
    let arguments = ["build", "--release", "--bins", "--manifest-path", "fuzz/Cargo.toml"];
    let mut build = tool::rustup_cargo("nightly", &arguments);
    build.args(["--target", TARGET, "--target-dir"]).arg(&folder).env("RUSTFLAGS", FLAGS);
    tool::run(&mut build)?;
    let mut fuzzers = Vec::new();
    for (target, seeds) in TARGETS {
        let corpus = made(&tool::root().join("fuzz/corpus").join(target))?;
        let artifacts = made(&tool::root().join("fuzz/artifacts").join(target))?;
        seeds.iter().try_for_each(|(source, extension)| copy(source, extension, Path::new(&corpus)))?;
        let mut fuzzer = tool::command(&folder.join(TARGET).join("release").join(target).display().to_string());
        let time = format!("-max_total_time={seconds}");
        fuzzer.args([
            time,
            format!("-artifact_prefix={artifacts}/"),
            format!("-timeout={HANG}"),
            "-len_control=0".into(),
            "-verbosity=0".into(),
            corpus,
        ]);
        fuzzers.push(fuzzer);
    }
    tool::run_pairs(fuzzers)
}

/// Reads how many seconds each target runs. libFuzzer would run for ever with 0.
fn seconds(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|seconds| (1..=SECONDS_MAX).contains(seconds));
    number.ok_or_else(|| format!("XTASK_FUZZ_SECONDS must be a whole number from 1 to {SECONDS_MAX}, not `{text}`"))
}

/// Makes a folder, and returns its path.
fn made(folder: &Path) -> Result<String, String> {
    std::fs::create_dir_all(folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    Ok(folder.display().to_string())
}

/// Copies the files with this extension from a folder of the project.
fn copy(source: &str, extension: &str, corpus: &Path) -> Result<(), String> {
    let source = tool::root().join(source);
    let entries = std::fs::read_dir(&source).map_err(|error| format!("{}: {error}", source.display()))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension().is_some_and(|found| found == extension) {
            let to = corpus.join(path.file_name().unwrap_or_default());
            std::fs::copy(&path, to).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_run_for_a_bounded_time() {
        assert_eq!((seconds("1"), seconds("86400")), (Ok(1), Ok(86_400)));
        for text in ["0", "", "-1", "10s", "1.5", " 10", "86401", "99999999999999999999"] {
            let fault = seconds(text).expect_err(text);
            assert!(fault.contains("from 1 to 86400") && fault.contains(text), "{fault}");
        }
    }
}
