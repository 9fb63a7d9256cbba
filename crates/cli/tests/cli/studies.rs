//! `study FILE`, `study list` and `study rtas2008`.

use crate::support::{Ended, File, Started, end, json, lockwright};
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Two axes, two protocols, and overheads beside them.
const SMALL: &str = r#"
name = "small"
seed = 7
samples = 40

[generator]
cpus = 2
tasks = 8

[sections]
accesses = 2
lengths = "medium"

[vary]
load = [0.3, 0.8]
degree = [1, 2]

[[method]]
protocols = ["mpcp", "fmlp_short"]

[[method]]
name = "charged"
protocols = ["mpcp"]
overheads = "costs.toml"
"#;

const COSTS: &str = "release = \"10 us\"\ncontext_switch = \"20 us\"\n";

/// A study file with its overheads beside it.
fn small() -> File {
    let file = File::named("study.toml", SMALL);
    fs::write(file.beside("costs.toml"), COSTS).expect("can be written");
    file
}

fn study(file: &Path, folder: &Path, arguments: &[&str]) -> Ended {
    end(lockwright().arg("study").arg(file).arg("-o").arg(folder).args(arguments))
}

/// All files of results: their names and bytes. The manifest names the machine, and is no result.
fn results(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for place in [folder.to_owned(), folder.join("plots")] {
        for entry in fs::read_dir(place).expect("is there") {
            let path = entry.expect("is readable").path();
            if path.is_file() && !path.ends_with("manifest.json") {
                let name = path.strip_prefix(folder).expect("is below").display().to_string();
                all.push((name, fs::read(&path).expect("is readable")));
            }
        }
    }
    all.sort();
    all
}

/// The parts of shares that were judged in different directories are put together.
#[test]
fn shares_add_up_to_the_study() {
    let file = small();
    let folders = TempDir::new().expect("a directory");
    let whole = folders.path().join("whole");
    assert_eq!(study(&file.path, &whole, &[]).status, 0);
    let merged = folders.path().join("merged");
    fs::create_dir_all(merged.join("parts")).expect("a directory");
    for number in ["0/3", "1/3", "2/3", "3/3"] {
        let share = folders.path().join(&number[..1]);
        let ended = study(&file.path, &share, &["--share", number]);
        assert!(ended.status == 0 && ended.out.is_empty(), "{}{}", ended.out, ended.err);
        assert!(!share.join("results.csv").exists());
        for part in fs::read_dir(share.join("parts")).expect("a directory") {
            let part = part.expect("readable");
            assert_ne!(number, "0/3", "a share without parts");
            fs::copy(part.path(), merged.join("parts").join(part.file_name())).expect("a copy");
        }
        if number == "2/3" {
            // The mutant: one share is missing.
            let ended = study(&file.path, &merged, &["--resume", "--share", "0/3"]);
            assert!(ended.status == 0 && !merged.join("results.csv").exists(), "{}", ended.err);
        }
    }
    let ended = study(&file.path, &merged, &["--resume", "--share", "0/3"]);
    assert_eq!(ended.status, 0, "{}", ended.err);
    assert_eq!(results(&merged), results(&whole), "nothing was judged again");
    for wrong in ["4/3", "1", "0/0", "-1/2", "a/b"] {
        assert_eq!(study(&file.path, &folders.path().join("wrong"), &["--share", wrong]).status, 2, "{wrong}");
    }
}

/// The parts of another seed are not those of this study, although they have the same names.
#[test]
fn parts_of_another_study_are_ignored() {
    let file = small();
    let folders = TempDir::new().expect("a directory");
    let [mine, other, whole] = ["mine", "other", "whole"].map(|name| folders.path().join(name));
    assert_eq!(study(&file.path, &whole, &[]).status, 0);
    assert_eq!(study(&file.path, &mine, &["--share", "1/2"]).status, 0);
    assert_eq!(study(&file.path, &other, &["--share", "2/2", "--seed", "8"]).status, 0);
    let mut put = 0;
    for part in fs::read_dir(other.join("parts")).expect("a directory").flatten() {
        put += u32::from(fs::copy(part.path(), mine.join("parts").join(part.file_name())).is_ok());
    }
    assert!(put > 0);
    // None of them completes the study.
    let ended = study(&file.path, &mine, &["--resume", "--share", "0/1"]);
    assert!(ended.status == 0 && !mine.join("results.csv").exists(), "{}", ended.err);
    assert!(ended.err.contains("of another study, seed or version: ignored"), "{}", ended.err);
    let ended = study(&file.path, &mine, &["--resume"]);
    assert_eq!(ended.status, 0, "{}", ended.err);
    assert_eq!(results(&mine), results(&whole));
}

/// Each share would draw a seed of its own.
#[test]
fn shares_without_a_seed_are_refused() {
    let file = File::named("study.toml", &SMALL.replace("seed = 7\n", ""));
    fs::write(file.beside("costs.toml"), COSTS).expect("can be written");
    let folder = file.beside("results");
    let ended = study(&file.path, &folder, &["--share", "1/2"]);
    assert_eq!((ended.status, ended.out.as_str()), (2, ""));
    assert!(ended.err.contains("need the same seed") && ended.err.contains("--seed 1"), "{}", ended.err);
    assert!(!folder.exists());
    for alone in [&["--share", "1/1"][..], &["--share", "1/2", "--seed", "7"]] {
        let folder = file.beside(alone[1].replace('/', "-").as_str());
        assert_eq!(study(&file.path, &folder, alone).status, 0, "{alone:?}");
    }
}

/// Files of the user with the names of a study are neither replaced nor removed.
#[test]
fn files_that_no_study_wrote_stay() {
    let file = small();
    for (number, name) in ["parts/bolt.stl", "parts/0-0.json", "results.csv", "sums.json", "plots/mine.svg"]
        .into_iter()
        .chain(["figure-1.csv", "conclusions.csv", "weighted.csv", "results.parquet"])
        .enumerate()
    {
        let folder = file.beside(&format!("results-{number}"));
        let mine = folder.join(name);
        fs::create_dir_all(mine.parent().expect("a directory")).expect("can be created");
        fs::write(&mine, "mine").expect("can be written");
        for ended in [study(&file.path, &folder, &["--resume"]), rtas2008(&folder, &["--figure", "1"])] {
            assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{name}: {}", ended.err);
            assert!(ended.err.contains("is there without the manifest.json of this study"), "{name}: {}", ended.err);
        }
        assert_eq!(fs::read_to_string(&mine).ok().as_deref(), Some("mine"));
        assert!(!folder.join("manifest.json").exists());
    }
    // Beside the parts of a study as well, and other names do not matter.
    let folder = file.beside("results");
    fs::create_dir_all(&folder).expect("can be created");
    fs::write(folder.join("notes.txt"), "mine").expect("can be written");
    assert_eq!(study(&file.path, &folder, &["--share", "1/2"]).status, 0);
    fs::write(folder.join("parts/bolt.stl"), "mine").expect("can be written");
    fs::write(folder.join("parts/share-1-of-2"), "").expect("can be written");
    let ended = study(&file.path, &folder, &["--resume"]);
    assert_eq!(ended.status, 0, "{}", ended.err);
    let left: Vec<_> = fs::read_dir(folder.join("parts")).expect("is there").flatten().collect();
    assert!(left.len() == 1 && left[0].file_name() == "bolt.stl", "{left:?}");
    assert!(folder.join("notes.txt").exists());
}

/// A complete study whose sums are cut short or impossible is judged again.
#[test]
fn damaged_sums_are_judged_again() {
    let file = small();
    let folder = file.beside("results");
    assert_eq!(study(&file.path, &folder, &["--samples", "5"]).status, 0);
    let before = results(&folder);
    let sums = folder.join("sums.json");
    let one = |sums: [u64; 5]| serde_json::to_string(&vec![sums; 12]).expect("is JSON");
    let damages = ["[]", "[[5,5,1,1,0]]", "", "{}"].map(str::to_owned).into_iter();
    for damage in damages.chain([[5, 6, 9, 9, 0], [4, 4, 9, 9, 0], [5, 5, 8, 9, 0]].map(one)) {
        fs::write(&sums, &damage).expect("can be written");
        let ended = study(&file.path, &folder, &["--samples", "5"]);
        assert_eq!(ended.status, 0, "{damage}: {}", ended.err);
        assert!(ended.err.contains("damaged or missing; the study is judged again"), "{damage}: {}", ended.err);
        assert!(before == results(&folder), "{damage}");
    }
    fs::remove_file(&sums).expect("is there");
    assert_eq!(study(&file.path, &folder, &["--samples", "5"]).status, 0);
    assert!(before == results(&folder));
}

/// Clusters of every size have the same systems, so sums over the sizes say no more than those of one size.
#[test]
fn an_interval_counts_each_system_once() {
    let file = File::named(
        "study.toml",
        "seed = 3\nsamples = 40\n[generator]\ncpus = 4\ntasks = 12\nload = 0.7\n[vary]\ncluster = [1, 2, 4]\n\
         [[method]]\nscheduler = \"c-fp\"\n",
    );
    let folder = file.beside("results");
    let html = file.beside("page.html");
    let ended = study(&file.path, &folder, &["--html", html.to_str().expect("is UTF-8")]);
    assert_eq!(ended.status, 0, "{}", ended.err);
    let table = fs::read_to_string(folder.join("weighted.csv")).expect("is there");
    let row: Vec<&str> = table.lines().nth(1).expect("a row").split(',').collect();
    let number = |place: usize| row[place].parse::<f64>().expect("a number");
    let (samples, share, low, high) = (number(1), number(3), number(4), number(5));
    assert!(samples == 120.0 && share > 0.05 && share < 0.95, "{table}");
    // Wilson, for 40 systems.
    let (z, n) = (1.959_964_f64, 40.0);
    let half = z / (1.0 + z * z / n) * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    assert!((high - low - 2.0 * half).abs() < 1e-5, "{table}");
    let shown = format!("{:.2} to {:.2} %", low * 100.0, high * 100.0);
    assert!(ended.out.contains(&shown), "{shown}: {}", ended.out);
    assert!(fs::read_to_string(&html).expect("is there").contains(&shown), "{shown}");
}

#[test]
fn a_study_writes_tables_figures_and_a_manifest() {
    let file = small();
    let folder = file.beside("results");
    let ended = study(&file.path, &folder, &[]);
    assert_eq!(ended.status, 0, "{}", ended.err);
    for part in ["small: 4 cells, 40 systems each, seed 7", "p-fp mpcp", "p-fp fmlp_short", "charged mpcp", "160"] {
        assert!(ended.out.contains(part), "{part}: {}", ended.out);
    }
    let csv = fs::read_to_string(folder.join("results.csv")).expect("is there");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(
        lines[0],
        "load,degree,method,scheduler,protocol,test,overheads,samples,accepted,share,low,high,weighted,tardiness_us"
    );
    assert_eq!(lines.len(), 1 + 4 * 3, "{csv}");
    assert!(lines[1].starts_with("0.3,1,p-fp mpcp,p-fp,mpcp,classic,,40,"), "{}", lines[1]);
    assert!(lines[12].starts_with("0.8,2,charged mpcp,p-fp,mpcp,classic,costs.toml,40,"), "{}", lines[12]);
    let accepted = |line: &str| line.split(',').nth(8).and_then(|number| number.parse::<u64>().ok()).expect("a number");
    let all: Vec<u64> = lines[1..].iter().map(|line| accepted(line)).collect();
    assert!(all[..6].iter().sum::<u64>() > all[6..].iter().sum(), "a higher load is harder: {all:?}");
    assert!(all.iter().any(|accepted| (1..40).contains(accepted)), "{all:?}");
    assert!(all.chunks(3).all(|cell| cell[2] <= cell[0]), "overheads accept nothing more: {all:?}");
    let weighted = fs::read_to_string(folder.join("weighted.csv")).expect("is there");
    assert!(weighted.starts_with("degree,method,samples,") && weighted.lines().count() == 1 + 2 * 3, "{weighted}");
    let names: Vec<String> = results(&folder).into_iter().map(|(name, _)| name).collect();
    for name in ["plots/schedulability-degree-1.svg", "plots/schedulability-degree-2.svg", "plots/weighted.svg"] {
        assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
    }
    let manifest = fs::read_to_string(folder.join("manifest.json")).expect("is there");
    let manifest: serde_json::Value = serde_json::from_str(&manifest).expect("is JSON");
    assert_eq!((&manifest["seed"], &manifest["complete"], &manifest["samples"]), (&7.into(), &true.into(), &40.into()));
    assert_eq!(manifest["specification"], SMALL);
    assert!(manifest["overheads"]["costs.toml"].as_str().is_some_and(|text| text.contains("20 us")));
    assert!(!folder.join("parts").exists());
}

/// Soft real time under global EDF: more systems have bounded tardiness than meet all deadlines.
#[test]
fn tardiness_is_a_method() {
    let file = File::named(
        "study.toml",
        "seed = 1\nsamples = 30\n[generator]\ncpus = 4\ntasks = 12\n[vary]\nload = [0.3, 0.6, 0.9]\n\
         [[method]]\nscheduler = \"g-edf\"\n[[method]]\nscheduler = \"g-edf\"\ntest = \"tardiness\"\n",
    );
    let folder = file.beside("results");
    let ended = study(&file.path, &folder, &[]);
    assert_eq!(ended.status, 0, "{}", ended.err);
    let csv = fs::read_to_string(folder.join("results.csv")).expect("is there");
    let rows: Vec<Vec<&str>> = csv.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let (accepted, late) = (|row: usize| rows[row][7].parse::<u32>().expect("a number"), |row: usize| rows[row][12]);
    // At 0.6, tests without bounds on responses prove the deadlines of some systems.
    assert_eq!((accepted(1), accepted(3), accepted(5)), (30, 30, 30), "{csv}");
    assert!(accepted(4) < 30, "the deadlines of some systems are not proved: {csv}");
    assert_eq!((late(0), late(4)), ("", ""), "the other test bounds no tardiness");
    let micros = |row| late(row).parse::<f64>().expect("a number");
    assert!(micros(1) < micros(5) && micros(5) > 0.0, "{csv}");
    let svg = fs::read_to_string(folder.join("plots/tardiness.svg")).expect("is there");
    assert!(svg.contains("g-edf tardiness"), "{svg}");
}

/// Sections under global schedulers, and objects under partitioned EDF. One and two threads give the same bytes.
#[test]
fn sections_under_edf_and_global_schedulers_are_methods() {
    let file = File::named(
        "study.toml",
        "seed = 3\nsamples = 40\n[generator]\ncpus = 4\ntasks = 12\n\
         [sections]\nlengths = \"short\"\nresources = 4\nrequests = 2\nprobability = 0.25\n\
         [vary]\nload = [0.3, 0.6]\n\
         [[method]]\nscheduler = \"g-edf\"\nprotocols = [\"fmlp_short\", \"fmlp_long\", \"lock_free\", \"wait_free\"]\n\
         [[method]]\nscheduler = \"g-fp\"\nprotocols = [\"fmlp_short\", \"fmlp_long\", \"lock_free\", \"wait_free\"]\n\
         [[method]]\nscheduler = \"p-edf\"\n\
         [[method]]\nscheduler = \"p-edf\"\nprotocols = [\"lock_free\", \"wait_free\"]\n",
    );
    let (one, two) = (file.beside("one"), file.beside("two"));
    let ended = study(&file.path, &one, &["--jobs", "1"]);
    assert_eq!(ended.status, 0, "{}", ended.err);
    assert_eq!(study(&file.path, &two, &["--jobs", "2"]).status, 0);
    assert!(results(&one) == results(&two), "another number of threads gives other bytes");
    let csv = fs::read_to_string(one.join("results.csv")).expect("is there");
    for method in
        ["g-edf fmlp_short", "g-fp fmlp_long", "g-edf lock_free", "g-fp wait_free", "p-edf", "p-edf lock_free"]
    {
        let named = |line: &&str| line.split(',').nth(1) == Some(method);
        let accepted = csv.lines().filter(named).map(|line| line.split(',').nth(7).and_then(|n| n.parse::<u32>().ok()));
        let accepted: Vec<_> = accepted.collect();
        assert!(accepted.len() == 2 && accepted[0] > Some(0) && accepted[0] >= accepted[1], "{method}: {csv}");
    }
}

#[test]
fn results_do_not_depend_on_threads_or_interruptions() {
    let file = small();
    let (one, two) = (file.beside("one"), file.beside("two"));
    // Enough parts that some are unfinished when the study is killed.
    let samples = ["--samples", "2000"];
    assert_eq!(study(&file.path, &one, &[&samples[..], &["--jobs", "1"]].concat()).status, 0);
    assert_eq!(study(&file.path, &two, &[&samples[..], &["--jobs", "2"]].concat()).status, 0);
    let expected = results(&one);
    assert!(expected.len() >= 6, "tables, sums and figures");
    assert!(expected == results(&two), "another number of threads gives other bytes");

    // Killed in the middle, several times, then resumed to the end.
    let killed = file.beside("killed");
    let mut interrupted = 0;
    for round in 0..4 {
        let mut command = lockwright();
        command.arg("study").arg(&file.path).arg("-o").arg(&killed).args(samples).args(["--jobs", "1", "--resume"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts");
        let parts = || fs::read_dir(killed.join("parts")).map_or(0, Iterator::count);
        let before = parts();
        let deadline = Instant::now() + Duration::from_secs(60);
        // BOUND: the study ends, or the deadline passes.
        while parts() <= before + 2 && child.try_wait().expect("is known").is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().expect("is killed or has ended");
        interrupted += u32::from(!child.wait().expect("ends").success());
        if round == 1 {
            // A part that was cut short by the crash of the machine is judged again.
            let torn = fs::read_dir(killed.join("parts")).ok().and_then(|mut parts| parts.next());
            if let Some(Ok(torn)) = torn {
                fs::write(torn.path(), "{\"cell\": 0").expect("can be written");
            }
        }
    }
    assert!(interrupted > 0, "no run was interrupted");
    let ended = study(&file.path, &killed, &[&samples[..], &["--resume"]].concat());
    assert_eq!(ended.status, 0, "{}", ended.err);
    assert!(expected == results(&killed), "an interruption gives other bytes");

    // Negative control: another seed gives other bytes.
    let other = file.beside("other");
    assert_eq!(study(&file.path, &other, &[&samples[..], &["--seed", "8"]].concat()).status, 0);
    assert!(expected != results(&other));
}

#[test]
fn a_signal_keeps_finished_parts() {
    let file = small();
    let folder = file.beside("results");
    let mut command = lockwright();
    command.arg("study").arg(&file.path).arg("-o").arg(&folder).args(["--samples", "1000000", "--jobs", "1"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    let deadline = Instant::now() + Duration::from_secs(60);
    let parts = || fs::read_dir(folder.join("parts")).map_or(0, Iterator::count);
    // BOUND: the deadline.
    while parts() < 2 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    let killed = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()));
    let ended: Ended = child.wait_with_output().expect("ends").into();
    assert_eq!(ended.status, 130, "{}", ended.err);
    assert!(ended.err.contains("--resume continues the study"), "{}", ended.err);
    let manifest = json(&Ended {
        status: 0,
        out: fs::read_to_string(folder.join("manifest.json")).expect("is there"),
        err: String::new(),
    });
    assert_eq!(manifest["complete"], false);
    let csv = fs::read_to_string(folder.join("results.csv")).expect("what is finished is in the table");
    assert!(csv.lines().count() > 1);
}

#[test]
fn a_directory_belongs_to_one_study() {
    let file = small();
    let folder = file.beside("results");
    assert_eq!(study(&file.path, &folder, &["--samples", "5"]).status, 0);
    let before = results(&folder);
    for (arguments, part) in [
        (&["--samples", "6"][..], "has the results of another study"),
        (&["--samples", "5", "--seed", "9"], "has the results of another study"),
    ] {
        let ended = study(&file.path, &folder, arguments);
        assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{arguments:?}");
        assert!(ended.err.contains(part), "{}", ended.err);
    }
    let again = study(&file.path, &folder, &["--samples", "5"]);
    assert!(again.status == 0 && again.err.contains("already has all results"), "{}", again.err);
    assert!(before == results(&folder));
    // An unfinished run is continued only on request.
    fs::create_dir_all(folder.join("parts")).expect("can be created");
    let manifest = folder.join("manifest.json");
    let text = fs::read_to_string(&manifest).expect("is there").replace("\"complete\": true", "\"complete\": false");
    fs::write(&manifest, text).expect("can be written");
    let ended = study(&file.path, &folder, &["--samples", "5"]);
    assert!(ended.status == 2 && ended.err.contains("--resume"), "{}", ended.err);
    assert_eq!(study(&file.path, &folder, &["--samples", "5", "--resume"]).status, 0);
    assert!(before == results(&folder));
    fs::write(&manifest, "nonsense").expect("can be written");
    assert_eq!(study(&file.path, &folder, &["--samples", "5", "--resume"]).status, 2);
}

#[test]
fn what_cannot_be_written_is_reported() {
    let file = small();
    let folder = file.beside("results");
    assert_eq!(study(&file.path, Path::new("/dev/null/results"), &[]).status, 2);
    // A directory in the place of a table.
    assert_eq!(study(&file.path, &folder, &["--samples", "5", "--share", "0/1"]).status, 0);
    fs::create_dir_all(folder.join("weighted.csv/x")).expect("can be created");
    let ended = study(&file.path, &folder, &["--samples", "5", "--resume"]);
    assert_eq!(ended.status, 3, "{}", ended.err);
    assert!(!ended.err.contains(".unfinished"), "{}", ended.err);
    assert!(ended.err.contains("cannot write") && ended.err.contains("weighted.csv"), "{}", ended.err);
    assert!(folder.join("results.csv").exists() && folder.join("sums.json").exists(), "nothing is lost");
    fs::remove_dir_all(folder.join("weighted.csv")).expect("is there");
    let ended = study(&file.path, &folder, &["--samples", "5", "--resume"]);
    assert_eq!(ended.status, 0, "{}", ended.err);
    assert!(folder.join("weighted.csv").is_file());
}

/// On a full disk, finished parts stay, and the study continues once there is space.
#[test]
fn a_full_disk_keeps_what_is_finished() {
    let file = small();
    let folder = file.beside("results");
    // A limit on the size of files, of 512 bytes, in place of the disk: the table is longer than a part.
    let limited = |blocks: &str| {
        let mut shell = std::process::Command::new("sh");
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
        shell.args(["-c", &script, "sh"]).arg(lockwright().get_program()).arg("study").arg(&file.path);
        end(shell.arg("-o").arg(&folder).args(["--samples", "5", "--resume"]))
    };
    let ended = limited("2");
    assert_eq!(ended.status, 3, "{}{}", ended.out, ended.err);
    assert!(ended.err.contains("cannot write") && ended.err.contains("--resume"), "{}", ended.err);
    assert!(
        fs::read_dir(folder.join("parts")).is_ok_and(|mut parts| parts.next().is_some())
            || folder.join("sums.json").exists()
    );
    let unfinished = |folder: &Path| {
        let entries = fs::read_dir(folder).expect("is there").flatten();
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(".unfinished")).count()
    };
    assert_eq!(unfinished(&folder), 0, "no part of a file is left");
    assert_eq!(study(&file.path, &folder, &["--samples", "5", "--resume"]).status, 0);
    let whole = file.beside("whole");
    assert_eq!(study(&file.path, &whole, &["--samples", "5"]).status, 0);
    assert!(results(&folder) == results(&whole));
}

/// Each fault has its line, its column and a remedy.
#[test]
fn faults_of_a_file_have_places() {
    let folder = TempDir::new().expect("a temporary folder");
    for (from, to, place, message, help) in [
        ("samples = 40", "samples = 0", "4:11", "the number of samples is `0`", "from 1 to"),
        ("samples = 40", "sample = 40", "4:1", "unknown key `sample` in a study", "did you mean `samples`?"),
        ("cpus = 2", "cpus = 65", "7:8", "the number of CPUs is `65`", "from 1 to 64"),
        ("tasks = 8", "tasks = \"8\"", "8:9", "the number of tasks is a string", "without quotes"),
        ("tasks = 8", "", "6:2", "the study has no tasks", "tasks = 40"),
        (
            "tasks = 8",
            "tasks = 8\nperiods = { uniform = [\"1 s\", \"1 ms\"] }",
            "9:23",
            "ends before it begins",
            "least",
        ),
        ("tasks = 8", "tasks = 8\nutilizations = \"uniform\"", "9:16", "no distribution `uniform`", "it is one of"),
        (
            "tasks = 8",
            "tasks = 8\nutilizations = { convolutional-fixed-sum = [[0.1]] }",
            "9:45",
            "a task has 1 limits, and not 2",
            "in turn",
        ),
        (
            "tasks = 8",
            "tasks = 8\nutilizations = { convolutional-fixed-sum = [[0.5, 0.1]] }",
            "9:45",
            "the limits end before they begin",
            "in turn",
        ),
        (
            "tasks = 8",
            "tasks = 8\nutilizations = { convolutional-fixed-sum = [[0, 0.05]] }",
            "16:9",
            "utilizations from 0 to 0.4 together, and not 0.6",
            "change the load",
        ),
        ("tasks = 8", "tasks = 8\nutilizations = \"uniform-high\"\nload = 0.1", "17:1", "`load` varies", "remove one"),
        ("\"medium\"", "\"0 us\"", "12:11", "the length of sections is zero", "positive"),
        ("\"medium\"", "\"big\"", "12:11", "there are no lengths `big`", "short, medium or long"),
        ("accesses = 2", "accesses = 2\nresources = 3", "12:13", "`accesses` and `resources` exclude", "give accesses"),
        ("accesses = 2", "accesses = 1000", "11:12", "the tasks would share 4000 resources", "lower accesses"),
        ("[0.3, 0.8]", "[0.3, 0.3]", "15:14", "takes the value 0.3 twice", "remove"),
        ("[0.3, 0.8]", "[0.3, 1.5]", "15:14", "the load is `1.5`", "from 0.001 to 1"),
        ("[0.3, 0.8]", "{ from = 0.3, to = 0.1, step = 0.1 }", "15:8", "ends before it begins", "swap"),
        (
            "[0.3, 0.8]",
            "{ from = 0.001, to = 1.0, step = 0.001 }\nutilizations = [\"uunifast\", \"uunifast-discard\", \
             \"rand-fixed-sum\", \"bimodal\", \"uniform-low\", \"uniform-medium\"]",
            "14:1",
            "too many combinations",
            "remove values",
        ),
        ("\"fmlp_short\"]", "\"fmlp_shot\"]", "19:22", "there is no protocol `fmlp_shot`", "`fmlp_short`"),
        (
            "protocols = [\"mpcp\", ",
            "scheduler = \"g-edf\"\nprotocols = [\"mpcp\", ",
            "20:14",
            "there is no protocol of studies under g-edf `mpcp`",
            "fmlp_short, fmlp_long, lock_free, wait_free",
        ),
        (
            "protocols = [\"mpcp\", \"fmlp_short\"]",
            "scheduler = \"g-edf\"",
            "19:13",
            "without a protocol",
            "\"fmlp_long\"",
        ),
        (
            "protocols = [\"mpcp\", \"fmlp_short\"]",
            "test = \"lp\"",
            "19:8",
            "there is no test of p-fp `lp`",
            "classic, best",
        ),
        (
            "protocols = [\"mpcp\", \"fmlp_short\"]",
            "scheduler = \"p-fp\"",
            "19:13",
            "without a protocol",
            "add protocols",
        ),
        ("name = \"charged\"", "", "", "", ""),
        ("\"costs.toml\"", "\"none.toml\"", "24:13", "cannot read none.toml", "overheads file"),
        ("\"costs.toml\"", "\"wrong.toml\"", "24:13", "wrong.toml:1:1: unknown key", "overheads"),
        (
            "lengths = \"medium\"",
            "lengths = \"medium\"\nnesting = \"traced\"",
            "20:14",
            "no bounds for nested",
            "traced-groups",
        ),
        (
            "lengths = \"medium\"",
            "lengths = \"medium\"\nnesting = { traced = [60, 50] }",
            "13:22",
            "more than 100 %",
            "percentages",
        ),
        (
            "lengths = \"medium\"",
            "lengths = \"medium\"\nnesting = { traced = [6.65] }",
            "13:22",
            "has 1 shares, and not 2",
            "percentages",
        ),
        (
            "lengths = \"medium\"",
            "lengths = \"medium\"\nnesting = { traced-groups = [6, 1], deepest = 2 }",
            "13:11",
            "hold at least 3",
            "leave `deepest` out",
        ),
        ("seed = 7", "seed = 7\nx = \"tasks\"", "4:5", "there is no axis `tasks`", "it is one of"),
    ] {
        let text = SMALL.replacen(from, to, 1);
        assert_ne!(text, SMALL, "{from} is in the file");
        let file = File::named("study.toml", &text);
        fs::write(file.beside("costs.toml"), COSTS).expect("can be written");
        fs::write(file.beside("wrong.toml"), "relaese = \"1 us\"\n").expect("can be written");
        let ended = study(&file.path, &folder.path().join("results"), &["--samples", "1"]);
        if place.is_empty() {
            // A method without a name is called after its parts.
            assert!(ended.out.contains("p-fp mpcp costs.toml"), "{}", ended.out);
            continue;
        }
        assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{to}: {}", ended.err);
        assert!(ended.err.contains(&format!("study.toml:{place}\n")), "{to}: {place}: {}", ended.err);
        assert!(ended.err.contains(message) && ended.err.contains(help), "{to}: {}", ended.err);
    }
}

/// The examples of the repository are valid, and their methods differ.
#[test]
fn examples_are_studies() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/studies");
    let folder = TempDir::new().expect("a temporary folder");
    let mut seen = 0;
    for entry in fs::read_dir(examples).expect("is there") {
        let path = entry.expect("is readable").path();
        if path.ends_with("machine.toml") {
            continue;
        }
        seen += 1;
        let results = folder.path().join(path.file_stem().expect("has a name"));
        let ended = study(&path, &results, &["--samples", "5"]);
        assert_eq!(ended.status, 0, "{}: {}", path.display(), ended.err);
        assert!(results.join("plots").is_dir());
    }
    assert!(seen >= 3, "{seen}");
}

#[test]
fn published_studies_are_listed() {
    let ended = end(lockwright().args(["study", "list"]));
    assert_eq!(ended.status, 0, "{}", ended.err);
    let words: Vec<&str> = ended.out.split_whitespace().collect();
    let (out, commands) =
        (words.join(" "), ["study bpl", "study rtas2008", "measure locks", "measure ics", "measure mutex"]);
    assert!(commands.iter().all(|command| out.contains(&format!("lockwright {command}"))), "{out}");
    for part in ["RTAS 2008", "figures 1 to 4", "figures 3 to 8", "figures 8 and 9"] {
        assert!(ended.out.contains(part), "{part}: {}", ended.out);
    }
}

/// Without the Python package, the message says how to install it. The tests of the package cover the rest.
#[test]
fn a_cluster_needs_the_python_package() {
    let file = small();
    let script = |name: &str, text: &str| {
        let path = file.beside(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("can be written");
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("can be set");
        path
    };
    let python = |path: &Path, file: &Path| {
        let mut command = lockwright();
        command.env("LOCKWRIGHT_PYTHON", path).arg("study").arg(file).args([
            "--dask",
            "tcp://127.0.0.1:1",
            "-o",
            "out",
        ]);
        end(&mut command)
    };
    for (path, part) in [
        (Path::new("/nowhere/python").to_owned(), "Python 3.11 or later"),
        (script("neither", "echo lockwright distributed"), "lockwright and distributed"),
        (script("without-dask", "echo distributed"), "pip install"),
        (script("other", "echo; echo 0.0.1"), "version 0.0.1"),
        (script("broken", "echo unknown option -P >&2; exit 2"), "unknown option -P"),
    ] {
        let ended = python(&path, &file.path);
        assert_eq!((ended.status, ended.out.as_str()), (3, ""), "{}", path.display());
        assert!(ended.err.contains(part), "{part}: {}", ended.err);
    }
    let version = env!("CARGO_PKG_VERSION");
    // A signal to the command alone ends the interpreter: its standard input ends.
    let ends =
        format!("[ $2 = -c ] && echo && echo {version} || {{ echo note: begun >&2; cat; touch ended; exit 130; }}");
    let folder = TempDir::new().expect("a temporary folder");
    let mut command = lockwright();
    command.env("LOCKWRIGHT_PYTHON", script("ends", &ends)).current_dir(folder.path());
    let started = Started::new(command.arg("study").arg(&file.path).args(["--dask", "tcp://127.0.0.1:1", "-o", "out"]));
    // Time for an end without a signal.
    std::thread::sleep(Duration::from_secs(1));
    assert!(started.first.contains("begun") && !folder.path().join("ended").exists(), "{}", started.first);
    started.signal("TERM");
    assert_eq!(started.end().status, 130);
    assert!(folder.path().join("ended").exists());
    // What the package prints is printed, and its status is that of the command.
    let package = script("package", &format!("[ $2 = -c ] && echo && echo {version} || {{ echo \"$@\"; exit 130; }}"));
    let ended = python(&package, &file.path);
    assert_eq!(ended.status, 130, "{}", ended.err);
    assert!(ended.out.starts_with("-P -m lockwright.cluster tcp://127.0.0.1:1 "), "{}", ended.out);
    for alone in [&["--html", "page.html"][..], &["--jobs", "2"], &["--share", "1/2"]] {
        let ended = study(&file.path, Path::new("out"), &[&["--dask", "tcp://127.0.0.1:1"], alone].concat());
        assert!(ended.status == 2 && ended.err.contains("cannot be used with"), "{alone:?}: {}", ended.err);
    }
    let ended = python(&package, Path::new("-"));
    assert!(ended.status == 2 && ended.err.contains("standard input"), "{}", ended.err);
}

fn rtas2008(folder: &Path, arguments: &[&str]) -> Ended {
    end(lockwright().args(["study", "rtas2008", "-o"]).arg(folder).args(arguments))
}

#[test]
fn figures_of_a_paper_are_repeated() {
    let folder = TempDir::new().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name);
    let ended = rtas2008(&at("one"), &["--figure", "4,1", "--samples", "2", "--jobs", "1"]);
    assert_eq!(ended.status, 0, "{}", ended.err);
    for part in ["RTAS 2008: 2 figures, 2 task sets at each of", "C1 ", "C15", "holds", "not shown"] {
        assert!(ended.out.contains(part), "{part}: {}", ended.out);
    }
    let csv = fs::read_to_string(at("one/figure-1.csv")).expect("is there");
    assert!(
        csv.starts_with("figure,inset,curve,x,samples,schedulable,share,low,high,tardiness_us,background\n"),
        "{csv}"
    );
    // Six insets with four curves and three with two, each of 14 points.
    assert_eq!(csv.lines().count(), 1 + (6 * 4 + 3 * 2) * 14);
    let svg = fs::read_to_string(at("one/plots/figure-1.svg")).expect("is there");
    for part in ["(a) HRT, uniform low", "(i) tardiness, uniform high", "G-EDF short", "P-EDF long"] {
        assert!(svg.contains(part), "{part} is missing");
    }
    assert_eq!(fs::read_to_string(at("one/conclusions.csv")).expect("is there").lines().count(), 16);
    let two = rtas2008(&at("two"), &["--figure", "1,4", "--samples", "2", "--jobs", "2"]);
    assert_eq!((two.status, &two.out), (0, &ended.out));
    assert!(results(&at("one")) == results(&at("two")), "another number of threads gives other bytes");
    // Negative control: another reading gives other results, in a directory of its own.
    let refused = rtas2008(&at("two"), &["--figure", "1,4", "--samples", "2", "--lengths", "up-to"]);
    assert!(refused.status == 2 && refused.err.contains("another study"), "{}", refused.err);
    let other = rtas2008(&at("other"), &["--figure", "1,4", "--samples", "2", "--lengths", "up-to"]);
    assert_eq!(other.status, 0, "{}", other.err);
    assert!(results(&at("one")) != results(&at("other")));
    for number in ["5", "6"] {
        let ended = rtas2008(&at("none"), &["--figure", number]);
        assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{number}");
        assert!(ended.err.contains(&format!("figure {number} cannot be repeated")), "{}", ended.err);
    }
}

/// With the overheads of another machine, and with none, other sets are schedulable.
#[test]
fn overheads_of_another_machine_count() {
    let folder = TempDir::new().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("free")).expect("can be created");
    for name in ["free/worst.toml", "free/average.toml"] {
        fs::write(at(name), "").expect("can be written");
    }
    let free = at("free");
    let arguments = ["--figure", "1", "--samples", "3", "--overheads", free.to_str().expect("is UTF-8")];
    let ended = rtas2008(&at("here"), &arguments);
    assert_eq!(ended.status, 0, "{}", ended.err);
    assert_eq!(rtas2008(&at("paper"), &arguments[..4]).status, 0);
    let schedulable = |name: &str| -> u64 {
        let csv = fs::read_to_string(at(name).join("figure-1.csv")).expect("is there");
        csv.lines().skip(1).filter_map(|line| line.split(',').nth(5)?.parse::<u64>().ok()).sum()
    };
    assert!(schedulable("here") > schedulable("paper"), "nothing takes time on the free machine");
    // Without cache costs, there are no larger working sets.
    let lacking = rtas2008(&at("none"), &[&["--figure", "21"][..], &arguments[2..]].concat());
    assert!(lacking.status == 2 && lacking.err.contains("figure 21 needs the cache costs"), "{}", lacking.err);
    for name in ["free/worst.toml", "free/average.toml"] {
        fs::write(at(name), "cache_delay = [[4, \"0 us\"], [64, \"90 us\"]]").expect("can be written");
    }
    let ended = rtas2008(&at("larger"), &[&["--figure", "7,35"][..], &arguments[2..]].concat());
    assert_eq!(ended.status, 0, "{}", ended.err);
    let csv = |number: u32| fs::read_to_string(at("larger").join(format!("figure-{number}.csv"))).expect("is there");
    let shares = |number| -> Vec<String> {
        csv(number).lines().skip(1).map(|line| line.split(',').skip(1).collect::<Vec<_>>().join(",")).collect()
    };
    assert!(shares(7).len() == shares(35).len() && shares(7) != shares(35), "caches cost time");
    let missing = rtas2008(&at("none"), &["--overheads", "/nowhere"]);
    assert!(missing.status == 2 && missing.err.contains("worst.toml"), "{}", missing.err);
}

#[test]
fn the_note_names_all_tables() {
    let file = small();
    let folder = file.beside("out");
    let ended = study(&file.path, &folder, &["--samples", "1"]);
    assert_eq!(ended.status, 0, "{}", ended.err);
    let note = ended.err.lines().find(|line| line.contains("weighted.csv")).expect("a note");
    for name in ["results.csv", "results.parquet", "weighted.csv"] {
        assert_eq!(note.contains(name), folder.join(name).exists(), "{name}: {note}");
    }
}

/// Values with long names: the names of figures are short, and the study has its table. Its name is that of the file.
#[test]
fn figures_have_short_names_and_titles() {
    let limits = |low: u32| {
        let all: Vec<String> = (0..24).map(|task| format!("[0.0{low}, 0.{}]", 5 + task % 4)).collect();
        format!("{{ convolutional-fixed-sum = [{}] }}", all.join(", "))
    };
    let text = format!(
        "seed = 1\nsamples = 2\n[generator]\ncpus = 4\ntasks = 24\n[vary]\nload = [0.3, 0.6]\n\
         utilizations = [{}, {}]\n[[method]]\nscheduler = \"p-fp\"\nprotocols = [\"none\"]\n",
        limits(0),
        limits(1)
    );
    let file = File::named("long.toml", &text);
    let folder = file.beside("results");
    let ended = study(&file.path, &folder, &[]);
    assert_eq!(ended.status, 0, "{}", ended.err);
    assert!(ended.out.starts_with("long: 4 cells"), "{}", ended.out);
    let names: Vec<String> = results(&folder).into_iter().map(|(name, _)| name).collect();
    let figures: Vec<&String> = names.iter().filter(|name| name.ends_with(".svg")).collect();
    assert_eq!(figures.len(), 2, "{names:?}");
    for name in figures {
        let svg = fs::read_to_string(folder.join(name)).expect("is there");
        assert!(svg.contains("long: share of accepted systems"), "{svg}");
    }
}
