//! The files that one command line names: standard input is read once, and no result replaces an input or another
//! result.

use crate::support::{Ended, File, HOLDS, Started, end, json, lockwright, on, refuses_files_in_sys};
use std::fs;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

const COSTS: &str = "context_switch = \"20 us\"\n";

/// A study that takes no time.
const STUDY: &str = "samples = 1\nseed = 1\n[generator]\ncpus = 1\ntasks = 2\nload = 0.5\n\
    [[method]]\nprotocols = [\"none\"]\noverheads = \"costs.toml\"\n";

/// The task set, a link to it, and files of other kinds beside it.
fn files() -> File {
    let file = File::new(HOLDS);
    std::os::unix::fs::symlink("system.toml", file.beside("link")).expect("linked");
    let result = on(HOLDS, "check", &["--json"]).out;
    for (name, text) in [("costs.toml", COSTS), ("study.toml", STUDY), ("a.json", &result), ("b.json", &result)] {
        fs::write(file.beside(name), text).expect("written");
    }
    file
}

/// All files in the folder, and what is in them.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("readable").path());
    let mut all: Vec<_> = entries.map(|path| (path.clone(), fs::read(&path).unwrap_or_default())).collect();
    all.sort();
    all
}

/// Refused with status 2 and this text, before anything is computed or written.
fn is_refused(file: &File, words: &[&str], text: &str) {
    let folder = file.path.parent().expect("a folder");
    let before = contents(folder);
    let ended = end(lockwright().args(words).current_dir(folder));
    assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{words:?}: {}", ended.err);
    assert!(ended.err.contains(text) && ended.err.contains("help: "), "{words:?}: {}", ended.err);
    assert!(!ended.err.contains("note: "), "{words:?}: {}", ended.err);
    assert!(before == contents(folder), "{words:?} changed a file");
}

/// With the task set as standard input.
fn with_input(words: &[&str], folder: &Path) -> Ended {
    let mut input = tempfile::tempfile().expect("a temporary file");
    input.write_all(HOLDS.as_bytes()).and_then(|()| input.rewind()).expect("written");
    end(lockwright().args(words).current_dir(folder).stdin(input))
}

#[test]
fn standard_input_is_one_file() {
    let file = files();
    let folder = file.path.parent().expect("a folder");
    for verb in ["check", "simulate", "run", "verify"] {
        let ended = with_input(&[verb, "-", "--overheads", "-"], folder);
        assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{verb}: {}", ended.err);
        assert!(ended.err.contains("standard input has one file") && ended.err.contains("help: "), "{}", ended.err);
    }
    let ended = with_input(&["check", "-", "--json", "--overheads", "-"], folder);
    assert!(json(&ended)["error"]["message"].as_str().is_some_and(|text| text.contains("standard input")));
    let ended = with_input(&["check", "-", "--overheads", "costs.toml"], folder);
    assert_eq!((ended.status, ended.err.as_str()), (0, ""));
}

#[test]
fn overheads_without_costs_get_a_note() {
    for (text, is_told) in [("", true), ("# none\n", true), (COSTS, false)] {
        let costs = File::named("costs.toml", text);
        let path = costs.path.to_str().expect("UTF-8");
        for verb in ["check", "simulate"] {
            let ended = on(HOLDS, verb, &["--overheads", path]);
            assert_eq!(ended.status, 0, "{}", ended.err);
            let note = format!("note: {path} has no costs, so nothing is charged\n");
            assert_eq!(ended.err, if is_told { note.as_str() } else { "" }, "{verb} {text}");
        }
    }
}

#[test]
fn results_do_not_replace_inputs() {
    let file = files();
    for words in [
        &["check", "system.toml", "--html", "system.toml"][..],
        &["check", "system.toml", "--svg", "link"],
        &["check", "link", "--svg", "./system.toml"],
        &["check", "system.toml", "--overheads", "costs.toml", "--html", "costs.toml"],
        &["simulate", "system.toml", "--svg", "system.toml"],
        &["simulate", "system.toml", "--trace", "link"],
        &["run", "system.toml", "--html", "system.toml"],
        &["verify", "system.toml", "--trace", "system.toml"],
        &["report", "a.json", "b.json", "--html", "b.json"],
        &["study", "study.toml", "-o", "results", "--html", "study.toml"],
        &["study", "study.toml", "-o", "results", "--html", "costs.toml"],
        &["record", "--html", "system.toml", "--", "./system.toml"],
    ] {
        is_refused(&file, words, "is read by this command");
    }
    // With several protocols, each has its own file.
    fs::copy(&file.path, file.beside("out-pip.svg")).expect("copied");
    is_refused(&file, &["simulate", "out-pip.svg", "-p", "all", "--svg", "out.svg"], "is read by this command");
    let folder = file.path.parent().expect("a folder");
    let input = fs::File::open(&file.path).expect("is there");
    let ended = end(lockwright().args(["check", "-", "--html", "system.toml"]).current_dir(folder).stdin(input));
    assert!(ended.status == 2 && ended.err.contains("is read by this command"), "{}", ended.err);
    assert_eq!(fs::read_to_string(&file.path).expect("is there"), HOLDS);
}

#[test]
fn results_do_not_replace_each_other() {
    let file = files();
    fs::create_dir(file.beside("results")).expect("created");
    for words in [
        &["check", "system.toml", "--html", "x", "--svg", "x"][..],
        &["check", "system.toml", "--html", "a.json", "--svg", "./a.json"],
        &["simulate", "system.toml", "--trace", "x", "--svg", "results/../x"],
        &["run", "system.toml", "--trace", "x", "--html", "x"],
        &["study", "bpl", "--csv", "x", "--html", "./x"],
        &["study", "study.toml", "-o", "results", "--html", "results/results.csv"],
        &["record", "-o", "results", "--html", "results/report.json", "--", "true"],
    ] {
        is_refused(&file, words, "name the same file");
    }
    // A device keeps nothing.
    let ended = on(HOLDS, "check", &["--html", "/dev/null", "--svg", "/dev/null"]);
    assert_eq!(ended.status, 0, "{}", ended.err);
}

#[test]
fn a_directory_is_no_file_for_results() {
    let file = files();
    for path in ["nodir/", "nodir/.", "nodir/.."] {
        for words in [
            &["check", "system.toml", "--html", path][..],
            &["check", "system.toml", "--svg", path],
            &["simulate", "system.toml", "--svg", path],
            &["simulate", "system.toml", "--trace", path],
            &["run", "system.toml", "--svg", path],
            &["run", "system.toml", "--html", path],
            &["verify", "system.toml", "--trace", path],
            &["report", "a.json", "b.json", "--html", path],
            &["study", "bpl", "--csv", path],
            &["study", "bpl", "--html", path],
        ] {
            is_refused(&file, words, "cannot create nodir/");
        }
    }
    for words in [
        &["study", "study.toml", "-o", "results", "--html", "nodir/"][..],
        &["record", "-o", "results", "--html", "nodir/", "--", "true"],
    ] {
        let ended = end(lockwright().args(words).current_dir(file.path.parent().expect("a folder")));
        assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{words:?}: {}", ended.err);
        assert!(ended.err.contains("cannot create nodir/"), "{}", ended.err);
    }
}

/// Where the machine permits no files, the status is 3; where a path cannot be one of a file, it is 2.
#[test]
fn places_that_cannot_be_written_are_3() {
    if !refuses_files_in_sys() {
        return;
    }
    let file = files();
    for (folder, status) in [("/sys", 3), ("/dev/null", 2)] {
        for words in [
            &["check", "system.toml", "--html", "WHERE/x.html"][..],
            &["check", "system.toml", "--svg", "WHERE/x.svg"],
            &["simulate", "system.toml", "--trace", "WHERE/x.pftrace"],
            &["study", "study.toml", "-o", "WHERE/x"],
            &["study", "study.toml", "-o", "x", "--html", "WHERE/x.html"],
            &["study", "rtas2008", "-o", "WHERE/x"],
            &["study", "bpl", "--svg", "WHERE/x"],
            &["man", "WHERE/x"],
        ] {
            let words: Vec<String> = words.iter().map(|word| word.replace("WHERE", folder)).collect();
            let ended = end(lockwright().args(&words).current_dir(file.path.parent().expect("a folder")));
            assert_eq!((ended.status, ended.out.as_str()), (status, ""), "{words:?}: {}", ended.err);
            assert!(ended.err.contains("cannot create") && !ended.err.contains(".unfinished"), "{}", ended.err);
        }
    }
}

/// However a command ends, nothing is left of a file that is not complete.
#[test]
fn a_killed_command_leaves_no_files() {
    let file = File::new(HOLDS);
    let folder = file.path.parent().expect("a folder").to_owned();
    let mut command = lockwright();
    command.arg("simulate").arg(&file.path).args(["--random-execution", "--for", "1000000 s"]);
    // The first word is the seed; the files are opened then.
    let mut started = Started::new(command.arg("--trace").arg(file.beside("trace")));
    std::thread::sleep(Duration::from_millis(500));
    started.child.kill().expect("is ours");
    started.child.wait().expect("ends");
    let names: Vec<_> = fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(names, ["system.toml"]);
}
