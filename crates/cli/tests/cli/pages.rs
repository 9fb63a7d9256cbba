//! `--html` and `report`: the numbers of a page are those of `--json`, and a file is written as a whole or not at all.

use crate::realtime::require_realtime;
use crate::record::Program;
use crate::support::{Ended, File, HOLDS, INVERSION, LATE, end, json, lockwright};
use serde_json::Value;
use std::path::Path;

const PATHFINDER: &str = include_str!("../../../../examples/pathfinder.toml");
const ROBOT: &str = include_str!("../../../../examples/robot.toml");

/// The object and the page of one command.
fn both(text: &str, verb: &str, options: &[&str]) -> (Value, String) {
    let file = File::new(text);
    let page = file.beside("page.html");
    let ended = end(lockwright().arg(verb).arg(&file.path).args(options).arg("--json").arg("--html").arg(&page));
    let html = std::fs::read_to_string(&page).unwrap_or_else(|error| panic!("{error}: {}", ended.err));
    (json(&ended), html)
}

/// Elements of a page that are valid XML.
fn elements<'a>(html: &'a str, tag: &str) -> Vec<roxmltree::Document<'a>> {
    let (open, close) = (format!("<{tag}"), format!("</{tag}>"));
    let starts = html.match_indices(&open).map(|(at, _)| at);
    let parse = |at: usize| {
        let length = html[at..].find(&close).expect("an end") + close.len();
        roxmltree::Document::parse(&html[at..at + length]).expect("well-formed")
    };
    starts.map(parse).collect()
}

/// The numbers of the table of tasks under a protocol: name, key and value.
fn shown(html: &str, protocol: &str) -> Vec<(String, String, Option<String>)> {
    let tables = elements(html, "table");
    let caption = format!("The tasks under {protocol}");
    let is_meant = |table: &&roxmltree::Document<'_>| {
        table.descendants().any(|node| node.has_tag_name("caption") && node.text() == Some(&caption))
    };
    let table = tables.iter().find(is_meant).unwrap_or_else(|| panic!("no table of {protocol}"));
    let keys: Vec<&str> = table.descendants().filter_map(|node| node.attribute("data-key")).collect();
    let mut found = Vec::new();
    for row in table.descendants().filter(|node| node.has_tag_name("tr")).skip(1) {
        let name = row.first_element_child().and_then(|cell| cell.text()).expect("a name");
        for (cell, key) in row.children().filter(roxmltree::Node::is_element).zip(&keys) {
            if cell.attribute("class").is_some_and(|class| class.split(' ').any(|class| class == "n")) {
                found.push((name.to_owned(), (*key).to_owned(), cell.attribute("data-v").map(str::to_owned)));
            }
        }
    }
    found
}

/// The numbers that differ between the object and the page, and how many were compared.
fn differences(object: &Value, html: &str) -> (Vec<String>, usize) {
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for result in object["results"].as_array().expect("results") {
        if result.get("same_rules_as").is_some() {
            continue;
        }
        let tasks = result["tasks"].as_array().expect("tasks");
        for (name, key, value) in shown(html, result["protocol"].as_str().expect("a protocol")) {
            let task = tasks.iter().find(|task| task["name"] == name.as_str()).expect("a task");
            let told = task.get(&key).or_else(|| task["blocking"].get(&key)).filter(|told| !told.is_null());
            compared += 1;
            if told.map(Value::to_string) != value {
                wrong.push(format!("{name}: {key} is {value:?} instead of {told:?}"));
            }
        }
    }
    (wrong, compared)
}

#[test]
fn numbers_of_pages_are_those_of_json() {
    for (text, verb, options, least) in [
        (HOLDS, "check", &[][..], 10),
        (LATE, "check", &["--sensitivity"], 10),
        (INVERSION, "check", &["--protocol", "all"], 100),
        (PATHFINDER, "simulate", &[], 70),
        (INVERSION, "simulate", &["--protocol", "none", "--offsets", "random", "--runs", "3"], 20),
        (ROBOT, "simulate", &["--protocol", "all", "--for", "100ms"], 100),
    ] {
        let (object, html) = both(text, verb, options);
        let (wrong, compared) = differences(&object, &html);
        assert!(wrong.is_empty() && compared >= least, "{verb} {options:?}: {compared} {wrong:?}");
    }
    // The mutant: a page of another result.
    let (object, _) = both(PATHFINDER, "simulate", &[]);
    let (_, html) = both(PATHFINDER, "simulate", &["--protocol", "none"]);
    let (wrong, _) = differences(&object, &html.replace("The tasks under none", "The tasks under pip"));
    assert!(!wrong.is_empty());
}

#[test]
fn a_run_has_a_page() {
    let Some(_machine) = require_realtime() else { return };
    for (verb, options) in [("run", &["--for", "200ms"][..]), ("verify", &["--for", "200ms", "--overheads", "-"])] {
        let file = File::new(HOLDS);
        let (costs, page) = (file.beside("costs.toml"), file.beside("page.html"));
        std::fs::write(&costs, "release = \"3 us\"\n").expect("written");
        let costs = costs.display().to_string();
        let options: Vec<&str> = options.iter().map(|&word| if word == "-" { &costs } else { word }).collect();
        let ended = end(lockwright().arg(verb).arg(&file.path).args(options).arg("--json").arg("--html").arg(&page));
        let html = std::fs::read_to_string(&page).unwrap_or_else(|error| panic!("{error}: {}", ended.err));
        let (wrong, compared) = differences(&json(&ended), &html);
        assert!(wrong.is_empty() && compared > 10, "{wrong:?}");
        assert!(html.contains("Response times of fast under icpp") && html.contains("class=\"bin\""), "{verb}");
        assert!(html.contains("its worst job") && html.contains("Kernel"), "{verb}");
    }
}

#[test]
fn a_page_tells_the_whole_story() {
    let (_, html) = both(PATHFINDER, "simulate", &["--protocol", "none"]);
    let titles = [
        "Tasks",
        "Bounds by term",
        "Seen against promised",
        "The worst job of each task",
        "Overheads",
        "Caveats",
        "How to repeat this",
        "The task-set file",
    ];
    let places: Vec<usize> =
        titles.iter().map(|title| html.find(&format!(">{title}</h2>")).unwrap_or_else(|| panic!("{title}"))).collect();
    assert!(places.is_sorted(), "{places:?}");
    // The verdict, the holder that the worst job waits for, and the file.
    assert!(html.contains("deadlines were missed (distribution_donnees"), "{html}");
    assert!(html.contains("waits for `tampon_donnees`, which `tache_meteo` holds"), "{html}");
    assert!(html.contains("# Mars Pathfinder, 1997") && html.contains("proves nothing"), "{html}");
    assert!(html.contains("--protocol none --json --html"), "the command that repeats it");
    let (object, random) = both(PATHFINDER, "simulate", &["--offsets", "random", "--runs", "2"]);
    assert!(random.contains(&format!("--seed={}", object["seed"])), "the seed that repeats it");
}

#[test]
fn names_of_a_page_stay_text() {
    let name = "</title><script>alert(1)</script>\\\"&<>'";
    let text = INVERSION.replace("\"high\"", &format!("\"{name}\"")).replace("\"bus\"", "\"<img src=x>\"");
    let (_, html) = both(&text, "simulate", &["--protocol", "none"]);
    assert_eq!((html.matches("<script").count(), html.matches("<img").count()), (1, 0));
    assert!(html.contains("&lt;script&gt;alert(1)"));
    elements(&html, "svg");
}

/// The largest page of Pathfinder in bytes.
const PATHFINDER_MAX: usize = 150_000;
/// The largest page of 100 tasks in bytes.
const MANY_MAX: usize = 2_000_000;

#[test]
fn pages_stay_small() {
    for (verb, options) in [
        ("check", &[][..]),
        ("check", &["--protocol", "all"]),
        ("check", &["--protocol", "all", "--sensitivity"]),
        ("simulate", &[]),
        ("simulate", &["--protocol", "none"]),
    ] {
        let (_, html) = both(PATHFINDER, verb, options);
        assert!(html.len() <= PATHFINDER_MAX, "{verb} {options:?}: {}", html.len());
    }
    let task = |task: usize| {
        format!(
            "[[task]]\nname = \"task with the number {task}\"\ncpu = {}\nperiod = \"{} ms\"\nwcet = \"1 ms\"\n\
             requests = [{{ resource = \"r{}\", length = \"50 us\" }}]\n",
            task % 4,
            20 + task % 17 * 10,
            task % 10
        )
    };
    let resources: String = (0..10).map(|resource| format!("[[resource]]\nname = \"r{resource}\"\n")).collect();
    let text = format!("[platform]\ncpus = 4\n{resources}{}", (0..100).map(task).collect::<String>());
    for (verb, options) in [("check", &["--protocol", "all"][..]), ("simulate", &["--for", "1s"])] {
        let (_, html) = both(&text, verb, options);
        assert!(html.len() < MANY_MAX, "{verb} {options:?}: {}", html.len());
    }
}

#[test]
fn pages_of_runs_stay_small() {
    let Some(_machine) = require_realtime() else { return };
    for (verb, more) in [("run", &[][..]), ("verify", &["--overheads", "-"])] {
        let file = File::new(PATHFINDER);
        let (costs, page) = (file.beside("costs.toml"), file.beside("page.html"));
        // Ticks and releases have terms of their own in the bounds.
        let overheads = "tick_period = \"4 ms\"\ntick = \"50 us\"\nrelease = \"30 us\"\nrelease_latency = \"200 us\"\n";
        std::fs::write(&costs, overheads).expect("written");
        let costs = costs.display().to_string();
        let more = more.iter().map(|&word| if word == "-" { costs.as_str() } else { word });
        let ended =
            end(lockwright().arg(verb).arg(&file.path).args(["--for", "1s"]).args(more).arg("--html").arg(&page));
        let html = std::fs::read_to_string(&page).unwrap_or_else(|error| panic!("{error}: {}", ended.err));
        assert!(html.len() <= PATHFINDER_MAX, "{verb}: {}", html.len());
        // Where other programs disturb the run, its worst jobs can be too long for all to be drawn.
        let (drawn, too_long) =
            (html.matches("class=\"picture schedule\"").count(), html.matches("which leaves no room").count());
        assert!(drawn >= 1 && drawn + too_long >= 5, "{verb}: {drawn} worst jobs are drawn, {too_long} are too long");
    }
}

/// Runs `report` on files with these contents.
fn report(contents: &[&str]) -> (Ended, Option<String>) {
    let file = File::named("0.json", contents[0]);
    let mut command = lockwright();
    command.arg("report");
    for (number, content) in contents.iter().enumerate() {
        let path = file.beside(&format!("{number}.json"));
        std::fs::write(&path, content).expect("written");
        command.arg(path);
    }
    let page = file.beside("page.html");
    let ended = end(command.arg("--html").arg(&page));
    let files = std::fs::read_dir(page.parent().expect("a folder")).expect("a folder").count();
    let html = std::fs::read_to_string(&page).ok();
    assert_eq!(files, contents.len() + usize::from(html.is_some()), "nothing else is left behind");
    (ended, html)
}

fn result(text: &str, verb: &str, options: &[&str]) -> String {
    let file = File::new(text);
    end(lockwright().arg(verb).arg(&file.path).args(options).arg("--json")).out
}

#[test]
fn a_report_marks_what_changed() {
    let before = result(PATHFINDER, "simulate", &["--protocol", "pip"]);
    let after = result(PATHFINDER, "simulate", &["--protocol", "none"]);
    let (ended, html) = report(&[&before, &after]);
    let html = html.expect("a page");
    assert_eq!(ended.status, 0, "{}", ended.err);
    let line = |name: &str, value: &str| {
        let is_meant = |line: &&str| {
            let mut words = line.split_whitespace();
            words.next() == Some(name) && line.contains(&format!(" {value} "))
        };
        ended.out.lines().find(is_meant).map(str::to_owned)
    };
    assert!(line("distribution_donnees", "misses").is_some_and(|line| line.contains("(+")), "{}", ended.out);
    assert!(line("ordo_bus", "misses").is_none(), "unchanged values are omitted: {}", ended.out);
    assert!(html.contains("class=\"n changed\"") && html.contains("All values"), "{html}");
    let changed: Vec<_> = elements(&html, "table")
        .iter()
        .flat_map(|table| {
            table
                .descendants()
                .filter(|node| node.has_tag_name("td"))
                .map(|node| node.attribute("class").map(str::to_owned))
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(changed.iter().flatten().any(|class| class.contains("changed")));
    let (ended, html) = report(&[&before, &before]);
    assert!(ended.out.contains("Nothing changed.") && !html.expect("a page").contains("class=\"n changed\""));
    // Files with several protocols are compared protocol by protocol.
    let several = result(PATHFINDER, "check", &["--protocol", "all"]);
    let (ended, _) = report(&[&several, &before]);
    assert!(ended.status == 0 && ended.out.contains("under pip, compared"), "{}{}", ended.out, ended.err);
}

#[test]
fn results_of_the_first_release_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compat/0.1.0/outputs");
    for name in ["check.json", "check-global.json", "check-edf.json", "check-overheads.json", "simulate.json"] {
        let text = std::fs::read_to_string(folder.join(name)).expect("is there");
        let (ended, html) = report(&[&text]);
        assert!(ended.status == 0 && html.is_some(), "{name}: {}", ended.err);
    }
}

#[test]
fn wrong_results_are_refused() {
    let whole = result(HOLDS, "check", &[]);
    let cut = &whole[..whole.len() / 2];
    let newer = whole.replacen("\"format\": 1", "\"format\": 7", 1);
    let other = "{\"verb\": \"doctor\", \"findings\": []}";
    let missing = whole.replacen("\"deadline_ns\"", "\"dead_ns\"", 1);
    for (text, message) in [
        (cut, "ends early"),
        (&newer, "has format 7; this version reads format 1"),
        (other, "a result of `doctor`, which has no tasks"),
        ("{\"error\": {\"message\": \"m\"}, \"more\": []}", "reports an error instead of a result"),
        (&missing, "missing field `deadline_ns`"),
        ("not json", "is not a result of lockwright"),
        ("", "ends early"),
    ] {
        let (ended, html) = report(&[&whole, text]);
        assert_eq!((ended.status, html), (2, None), "{message}: {}", ended.err);
        assert!(ended.err.contains(message), "{message}: {}", ended.err);
    }
    let ended = end(lockwright().args(["report", "/nowhere/a.json"]));
    assert!(ended.status == 2 && ended.err.contains("cannot read /nowhere/a.json"), "{}", ended.err);
}

#[test]
fn no_page_is_written_by_halves() {
    let file = File::new(HOLDS);
    let ended = end(lockwright().arg("check").arg(&file.path).args(["--html", "/nowhere/page.html"]));
    assert!(ended.status == 2 && ended.err.contains("cannot create /nowhere/page.html"), "{}", ended.err);
    assert!(!ended.err.contains(".tmp"), "the temporary file is not named: {}", ended.err);
    // A command that gives up leaves the old page.
    let page = file.beside("page.html");
    std::fs::write(&page, "old").expect("written");
    let ended = end(lockwright().arg("check").arg(&file.path).args(["--explain", "nobody", "--html"]).arg(&page));
    assert_eq!((ended.status, std::fs::read_to_string(&page).expect("a page").as_str()), (2, "old"));
    let ended = end(lockwright().arg("simulate").arg(&file.path).args(["--svg"]).arg(&page).args(["--job", "slow:99"]));
    assert_eq!((ended.status, std::fs::read_to_string(&page).expect("a page").as_str()), (2, "old"), "{}", ended.err);
    // A full disk is not one of these: the device takes the place of the file.
    let ended = end(lockwright().arg("check").arg(&file.path).args(["--html", "/dev/full"]));
    assert!(ended.status == 3 && ended.err.contains("cannot write /dev/full"), "{}", ended.err);
    let names: Vec<_> = std::fs::read_dir(page.parent().expect("a folder")).expect("a folder").collect();
    assert_eq!(names.len(), 2, "no temporary file remains: {names:?}");
}

#[test]
fn a_link_to_a_page_stays() {
    use std::os::unix::fs::PermissionsExt;
    let file = File::new(HOLDS);
    let (page, link) = (file.beside("page.html"), file.beside("link.html"));
    std::fs::write(&page, "old").expect("written");
    std::fs::set_permissions(&page, std::fs::Permissions::from_mode(0o640)).expect("set");
    std::os::unix::fs::symlink(&page, &link).expect("linked");
    let ended = end(lockwright().arg("check").arg(&file.path).arg("--html").arg(&link));
    assert_eq!(ended.status, 0, "{}", ended.err);
    assert!(link.is_symlink() && std::fs::read_to_string(&page).expect("a page").contains("<!DOCTYPE html>"));
    assert_eq!(page.metadata().expect("a page").permissions().mode() & 0o777, 0o640);
}

/// The table with this caption: its rows as texts.
fn table(html: &str, caption: &str) -> Vec<Vec<String>> {
    let tables = elements(html, "table");
    let has_caption = |tree: &&roxmltree::Document<'_>| {
        tree.descendants().any(|node| node.has_tag_name("caption") && node.text() == Some(caption))
    };
    let tree = tables.iter().find(has_caption).unwrap_or_else(|| panic!("no table `{caption}`: {html}"));
    let rows = tree.descendants().filter(|node| node.has_tag_name("tr")).skip(1);
    rows.map(|row| row.children().map(|cell| cell.text().unwrap_or_default().to_owned()).collect()).collect()
}

#[test]
fn a_study_has_a_page() {
    let study = "name = \"small <study>\"\nseed = 7\nsamples = 40\n[generator]\ncpus = 2\ntasks = 8\n\
                 [sections]\naccesses = 2\nlengths = \"medium\"\n[vary]\nload = [0.3, 0.8]\ndegree = [1, 2]\n\
                 [[method]]\nprotocols = [\"mpcp\", \"fmlp_short\"]\n";
    let file = File::named("study.toml", study);
    let (folder, page) = (file.beside("results"), file.beside("page.html"));
    let mut command = lockwright();
    command.arg("study").arg(&file.path).arg("-o").arg(&folder).arg("--html").arg(&page);
    let ended = end(&mut command);
    let html = std::fs::read_to_string(&page).unwrap_or_else(|error| panic!("{error}: {}", ended.err));
    assert!(html.contains("small &lt;study&gt;, studied") && html.contains("Of 2 methods, "), "{html}");
    // The numbers are those of the tables beside the figures.
    let csv = std::fs::read_to_string(folder.join("results.csv")).expect("a table");
    let mut compared = 0;
    for degree in ["1", "2"] {
        let title = format!("degree = {degree}: share of accepted systems");
        let points = table(&html, &title);
        for (line, method) in [(0, "p-fp mpcp"), (0, "p-fp fmlp_short"), (1, "p-fp mpcp"), (1, "p-fp fmlp_short")] {
            let load = ["0.3", "0.8"][line];
            let row = csv.lines().find(|row| row.starts_with(&format!("{load},{degree},{method},"))).expect("a row");
            let cells: Vec<&str> = row.split(',').collect();
            let place = if method == "p-fp mpcp" { 1 } else { 2 };
            let number = |text: &str| text.parse::<f64>().expect("a number");
            let told: Vec<f64> = [9, 10, 11].map(|cell| number(cells[cell])).to_vec();
            let words: Vec<f64> = points[line][place]
                .replace(['(', ')'], "")
                .split_whitespace()
                .filter(|word| *word != "to")
                .map(number)
                .collect();
            assert!(
                told.len() == words.len() && told.iter().zip(&words).all(|(a, b)| (a - b).abs() < 1e-4),
                "{row} {points:?}"
            );
            compared += 1;
        }
    }
    assert_eq!((compared, table(&html, &csv_caption()).len()), (8, 2));
    for svg in elements(&html, "svg") {
        assert!(svg.descendants().all(|node| !node.has_attribute("style")), "the policy refuses styles of elements");
    }
    assert!(html.matches("<polygon").count() >= 4, "the intervals are bands");
    assert_eq!(ended.status, 0, "{}", ended.err);
    let ended = end(command.args(["--resume", "--html", "/nowhere/page.html"]));
    assert_eq!(ended.status, 2, "{}", ended.err);
}

/// The caption of the table of methods.
fn csv_caption() -> String {
    "The methods over all cells; weighted: the share of the utilization that belongs to accepted systems".into()
}

#[test]
fn many_results_are_compared_in_parts() {
    let results: Vec<String> =
        (1..=9).map(|cost| result(&HOLDS.replace("100 us", &format!("{cost}00 us")), "check", &[])).collect();
    let file = File::new("");
    let mut command = lockwright();
    command.arg("report").env("COLUMNS", "80");
    for (number, content) in results.iter().enumerate() {
        let path = file.beside(&format!("result-{number}.json"));
        std::fs::write(&path, content).expect("written");
        command.arg(path);
    }
    let ended = end(&mut command);
    let table: Vec<&str> = ended.out.lines().skip_while(|line| !line.starts_with("What changed")).collect();
    assert!(table.iter().all(|line| line.chars().count() <= 80), "{}", ended.out);
    let heads: Vec<&&str> = table.iter().filter(|line| line.starts_with("task ")).collect();
    assert!(heads.len() > 1 && heads.iter().all(|head| head.contains("result-0.json")), "{}", ended.out);
    for number in 1..9 {
        let name = format!("result-{number}.json");
        assert_eq!(heads.iter().filter(|head| head.contains(&name)).count(), 1, "{name}: {}", ended.out);
    }
}

#[test]
fn whatever_changed_is_not_called_unchanged() {
    let before = result(HOLDS, "check", &[]);
    let (same, _) = report(&[&before, &before]);
    assert!(same.out.contains("Nothing changed."), "{}", same.out);
    let (moved, html) = report(&[&before, &before.replace("\"cpu\": 0", "\"cpu\": 1")]);
    assert!(moved.out.contains("cpu") && !moved.out.contains("Nothing changed"), "{}", moved.out);
    assert!(!html.expect("is written").contains("Nothing changed"));
    let (other, _) = report(&[&before, &result(HOLDS, "check", &["--sensitivity"])]);
    let text = "No value of a task changed; other keys of the files differ.";
    assert!(other.out.contains(text) && !other.out.contains("Nothing changed"), "{}", other.out);
}

#[test]
fn conclusions_of_a_paper_are_checks() {
    let file = File::new(HOLDS);
    let folder = file.beside("results");
    // Also in the directory that does not exist yet.
    let page = folder.join("page.html");
    let mut command = lockwright();
    command.args(["study", "rtas2008", "--figure", "3", "--samples", "2", "-o"]).arg(&folder).arg("--html").arg(&page);
    let ended = end(&mut command);
    assert_eq!(ended.status, 0, "{}", ended.err);
    let html = std::fs::read_to_string(&page).expect("a page");
    let csv = std::fs::read_to_string(folder.join("conclusions.csv")).expect("a table");
    let rows = table(&html, "The conclusions of the paper, checked");
    assert_eq!(rows.len(), csv.lines().count() - 1, "{rows:?}");
    for row in &rows {
        let verdict = row[1].trim_start_matches(['✓', '✗', ' ']);
        assert!(csv.lines().any(|line| line.starts_with(&format!("{},{verdict},", row[0]))), "{row:?}");
    }
    let holds = rows.iter().filter(|row| row[1].starts_with('✓')).count();
    assert!(html.contains(&format!("Of the conclusions of the paper, {holds} hold")), "{html}");
    // A share has no page.
    let ended = end(command.args(["--share", "1/2"]));
    assert!(ended.status == 2 && ended.err.contains("a share has no page"), "{}", ended.err);
}

#[test]
fn a_recording_has_a_page() {
    let Some(_machine) = require_realtime() else { return };
    let Some(program) = Program::of(PATHFINDER, "none") else { return };
    let recorded = program.record("1");
    // In a directory that does not exist yet.
    let folder = recorded.folder.join("again");
    let page = folder.join("page.html");
    let mut command = lockwright();
    command.args(["record", "--json", "--read"]).arg(&recorded.folder).arg("-o").arg(&folder).arg("--html").arg(&page);
    let ended = end(&mut command);
    let html = std::fs::read_to_string(&page).unwrap_or_else(|error| panic!("{error}: {}", ended.err));
    assert!(html.len() <= PATHFINDER_MAX, "{}", html.len());
    let object = json(&ended);
    let list = |key: &str| object[key].as_array().expect("a list").clone();
    let threads = table(&html, "The threads");
    let names: Vec<&str> = threads.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(
        names,
        list("threads").iter().map(|thread| thread["name"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
    );
    assert_eq!(table(&html, "The locks, those with the most waits first").len(), list("locks").len());
    for inversion in list("inversions") {
        let rows = table(&html, "Waits of urgent threads while less urgent ones executed");
        let times = inversion["times"].to_string();
        let is_it = |row: &&Vec<String>| row[0] == inversion["waiter"].as_str().expect("a name") && row[4] == times;
        assert!(rows.iter().any(|row| is_it(&row)), "{inversion}: {rows:?}");
    }
    // The worst jobs, as the program executed them.
    let tasks = list("threads").iter().filter(|thread| thread["task"].is_object()).count();
    let is_inferred = object["system"].is_string();
    assert_eq!(html.matches("as recorded: its worst job, and").count() > 0, is_inferred && tasks > 0);
    // Every job is in the histogram of its task.
    let of_title = |title: &str| title.split(" job").next().and_then(|jobs| jobs.parse::<u64>().ok());
    let bins = html.split("class=\"bin\"").skip(1).filter_map(|bin| of_title(bin.split("<title>").nth(1)?));
    let jobs = object["check"][0]["tasks"].as_array().into_iter().flatten().filter_map(|task| task["jobs"].as_u64());
    assert_eq!(bins.sum::<u64>(), jobs.sum::<u64>());
    let text = html.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
    for sentence in list("sentences") {
        assert!(text.contains(sentence.as_str().expect("a sentence")), "{sentence}");
    }
}

#[cfg(not(feature = "serve"))]
#[test]
fn a_build_without_a_server_says_so() {
    let file = File::new(HOLDS);
    let ended = end(lockwright().arg("serve").arg(&file.path));
    assert!(ended.status == 3 && ended.err.contains("was built without the feature `serve`"), "{}", ended.err);
}
