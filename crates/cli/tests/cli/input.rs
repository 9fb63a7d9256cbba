//! Files and arguments: what is refused, with which message.

use crate::support::{File, GLOBAL, HOLDS, INVERSION, LATE, end, json, lockwright, on};

#[test]
fn misspelt_task_gets_a_suggestion() {
    let ended = on(INVERSION, "check", &["--explain", "hihg"]);
    assert_eq!((ended.status, ended.out.as_str()), (2, ""));
    assert!(ended.err.contains("did you mean `high`?"), "{}", ended.err);
}

#[test]
fn invalid_durations_get_helpful_advice() {
    for (wcet, says) in [
        ("nan", "a duration is a finite number and a unit"),
        ("\"nan ms\"", "a duration is a finite number and a unit"),
        ("\"1e3 ms\"", "write the number without an exponent"),
    ] {
        let ended = on(&LATE.replacen("\"60 ms\"", wcet, 1), "check", &[]);
        assert_eq!(ended.status, 2, "{wcet}");
        assert!(ended.err.contains(says) && !ended.err.contains("such as \"nan"), "{wcet}: {}", ended.err);
    }
    let hours = LATE.replacen("\"60 ms\"", "\"0.001 h\"", 1).replacen("\"100 ms\"", "\"1 h\"", 1);
    let ended = on(&hours.replacen("\"110 ms\"", "\"2 h\"", 1), "check", &["--json"]);
    assert_eq!(json(&ended)["results"][0]["tasks"][0]["deadline_ns"], 3_600_000_000_000_u64, "{}", ended.err);
}

#[test]
fn other_formats_are_named_once() {
    for (text, format) in [
        ("<?xml version=\"1.0\"?>\n<taskset>\n<task period=\"10\"/>\n</taskset>\n".to_owned(), "XML"),
        ("tasks:\n".to_owned() + &"  - name: camera\n    period: 10 ms\n".repeat(30), "YAML"),
        ("--- # a task set\ntasks: []\n".to_owned(), "YAML"),
    ] {
        let ended = on(&text, "check", &[]);
        assert_eq!((ended.status, ended.out.as_str()), (2, ""));
        for part in [&format!("this looks like {format}"), "docs/task-set.md"] {
            assert!(ended.err.contains(part), "{part} is missing in {}", ended.err);
        }
        assert_eq!(ended.err.matches("error").count(), 1, "{}", ended.err);
        let file = File::new(&text);
        let system = File::new(HOLDS);
        let study = end(lockwright().arg("study").arg(&file.path).arg("-o").arg(file.beside("out")));
        let overheads = end(lockwright().arg("check").arg(&system.path).arg("--overheads").arg(&file.path));
        for (ended, owner) in [(study, "a study"), (overheads, "an overheads file")] {
            assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{}", ended.err);
            assert!(ended.err.contains(&format!("this looks like {format}, not like {owner}")), "{}", ended.err);
            assert_eq!(ended.err.matches("error").count(), 1, "{}", ended.err);
        }
    }
}

#[test]
fn a_fault_of_toml_is_told_once() {
    let text = "platform = 3\n[platform.x]\ny = 1\n";
    let (file, system) = (File::new(text), File::new(HOLDS));
    let charged = end(lockwright().arg("check").arg(&system.path).arg("--overheads").arg(&file.path));
    for ended in [on(text, "check", &[]), charged] {
        assert_eq!(ended.status, 2);
        assert_eq!(ended.err.matches("cannot extend value").count(), 1, "{}", ended.err);
    }
}

#[test]
fn files_of_other_commands_are_named_once() {
    const STUDY: &str = include_str!("../../../../examples/studies/readers.toml");
    let [system, study, costs] = [HOLDS, STUDY, "release = \"1 us\"\n"].map(File::new);
    let check = |file: &File| end(lockwright().arg("check").arg(&file.path));
    let study_of = |file: &File| end(lockwright().arg("study").arg(&file.path).arg("-o").arg(file.beside("out")));
    let charge = |file: &File| end(lockwright().arg("check").arg(&system.path).arg("--overheads").arg(&file.path));
    for (ended, message, help) in [
        (check(&study), "this is a study, not a task-set file", "use `lockwright study FILE -o DIR`"),
        (study_of(&system), "this is a task-set file, not a study", "use `lockwright check FILE`"),
        (charge(&system), "this is a task-set file, not an overheads file", "use `lockwright check FILE`"),
        (charge(&study), "this is a study, not an overheads file", "use `lockwright study FILE -o DIR`"),
    ] {
        assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{}", ended.err);
        assert!(ended.err.contains(message) && ended.err.contains(help), "{}", ended.err);
        assert_eq!(ended.err.matches("error").count(), 1, "{}", ended.err);
    }
    // A file of the right kind has its own faults.
    let ended = on(&format!("{HOLDS}\n[[method]]\n"), "check", &[]);
    assert!(ended.status == 2 && ended.err.contains("unknown key `method`"), "{}", ended.err);
    let ended = on(&STUDY.replace("samples", "sample"), "study", &["-o", "/dev/null"]);
    assert!(ended.status == 2 && ended.err.contains("unknown key `sample`"), "{}", ended.err);
    assert_eq!(check(&costs).status, 2);
}

#[test]
fn errors_are_json_objects_with_json() {
    let error = |ended: &crate::support::Ended| json(ended)["error"].clone();
    let text = HOLDS.replacen("resource = \"bus\"", "resource = \"buss\"", 1).replace("\"200 us\"", "5");
    let ended = on(&text, "check", &["--json"]);
    let line = text.lines().position(|line| line.contains("buss")).expect("is there") + 1;
    assert_eq!(ended.status, 2);
    let first = error(&ended);
    assert_eq!((&first["place"]["line"], &first["help"]), (&line.into(), &"did you mean `bus`?".into()), "{first}");
    assert!(first["place"]["file"].as_str().is_some_and(|file| file.ends_with("system.toml")), "{first}");
    assert_eq!(json(&ended)["more"].as_array().map(Vec::len), Some(1), "{}", ended.out);
    assert!(ended.err.contains("did you mean `bus`?"), "people read it as ever: {}", ended.err);
    // Every kind of refusal: of a file, of a task, of the arguments.
    let missing = end(lockwright().args(["check", "/nowhere/at-all.toml", "--json"]));
    assert!(error(&missing)["message"].as_str().is_some_and(|text| text.contains("at-all.toml")), "{}", missing.out);
    let task = on(HOLDS, "check", &["--json", "--explain", "fats"]);
    assert_eq!(error(&task)["help"], "did you mean `fast`?");
    let arguments = on(HOLDS, "check", &["--json", "--protocol", "icp"]);
    assert_eq!((arguments.status, error(&arguments)["place"].is_null()), (2, true), "{}", arguments.out);
    assert!(error(&arguments)["message"].as_str().is_some_and(|text| text.contains("icp")), "{}", arguments.out);
    for verb in ["simulate", "run"] {
        assert!(error(&on("nonsense", verb, &["--json"]))["message"].is_string(), "{verb}");
    }
    // Without --json standard output stays empty.
    assert_eq!(on(&text, "check", &[]).out, "");
}

#[test]
fn a_fault_is_shown_with_a_caret_and_a_correction() {
    let text = HOLDS.replacen("resource = \"bus\"", "resource = \"buss\"", 1);
    let line = text.lines().position(|line| line.contains("buss")).expect("is there") + 1;
    let ended = on(&text, "check", &[]);
    assert_eq!((ended.status, ended.out.as_str()), (2, ""));
    for part in ["error: ", &format!("system.toml:{line}:"), "^^^", "did you mean `bus`?"] {
        assert!(ended.err.contains(part), "{part} is missing in {}", ended.err);
    }
}

#[test]
fn only_the_first_faults_are_shown() {
    let faults = |count: usize| format!("{HOLDS}{}", "[[task]]\nname = \"x\"\n".repeat(count));
    let (few, many) = (on(&faults(2), "check", &[]), on(&faults(200), "check", &[]));
    assert!(many.err.ends_with("note: only the first 50 faults are shown\n"), "{}", many.err);
    assert!(!few.err.contains("only the first"), "{}", few.err);
}

#[test]
fn names_cannot_control_the_terminal() {
    let text =
        GLOBAL.replace("here", "he\\u001b[31mre").replace("state", "st\\u001bate").replace("global", "g\\nl\\u001b");
    for arguments in [&["--protocol", "pip"][..], &["--protocol", "all"], &["--explain", "there"], &["--explain", "x"]]
    {
        let ended = on(&text, "check", arguments);
        assert!(
            !ended.out.contains('\x1b') && !ended.err.contains('\x1b'),
            "{arguments:?}: {:?}{:?}",
            ended.out,
            ended.err
        );
    }
    let value = json(&on(&text, "check", &["--json"]));
    assert_eq!(value["results"][0]["tasks"][0]["name"], "he\x1b[31mre", "JSON has its own way to write it");
}

#[test]
fn arbitrary_bytes_are_refused_with_a_message() {
    let files: [&[u8]; 7] = [
        b"",
        b"\0",
        b"\xff\xfe",
        b"[[task]]\nname = \"\x1b[31m\"",
        b"{\"tasks\": {}}",
        b"[[[[",
        "µ = \u{200d}".as_bytes(),
    ];
    for bytes in files {
        let file = File::new("");
        std::fs::write(&file.path, bytes).expect("can be written");
        let ended = end(lockwright().arg("check").arg(&file.path));
        assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{bytes:?}");
        assert!(ended.err.contains("error: "), "{bytes:?}: {}", ended.err);
        assert!(!ended.err.contains('\x1b'), "{bytes:?}: {}", ended.err);
    }
}

#[test]
fn unreadable_files_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    for path in [folder.path().join("nowhere.toml"), folder.path().to_owned()] {
        let ended = end(lockwright().arg("check").arg(&path));
        assert_eq!((ended.status, ended.out.as_str()), (2, ""));
        assert!(ended.err.contains(&path.display().to_string()) && ended.err.contains("help: "), "{}", ended.err);
    }
}

#[test]
fn all_tables_of_statuses_agree() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).expect("is there");
    let row = |status: &str| readme.lines().find(|line| line.starts_with(&format!("| {status} |"))).expect("a row");
    let help = |verb: Option<&str>| end(lockwright().args(verb).arg("--help")).out;
    let line = |help: &str, status: &str| -> Option<String> {
        let (_, table) = help.split_once("Exit status:").expect("a table");
        table.lines().find(|line| line.starts_with(&format!("  {status} "))).map(str::to_owned)
    };
    let verbs =
        ["check", "simulate", "run", "verify", "report", "serve", "doctor", "import", "export", "record", "watch"];
    for verb in verbs {
        let is_in_row = row("1").contains(&format!("`{verb}"));
        assert_eq!(line(&help(Some(verb)), "1").is_some(), is_in_row, "{verb}");
    }
    assert!(row("1").contains("`run --audit`"), "{}", row("1"));
    for verb in ["record", "serve"] {
        assert!(line(&help(Some(verb)), "130").is_none() && row("130").contains(&format!("`{verb}`")), "{verb}");
    }
    for status in ["0", "1", "130"] {
        assert!(line(&help(None), status).expect("a line").contains("record"), "{status}: {}", help(None));
    }
}

#[test]
fn invalid_arguments_are_2_and_help_is_0() {
    for arguments in
        [&["check"][..], &["chekc", "x"], &["check", "x", "--protocol", "pp"], &["simulate", "x", "--for", "10"]]
    {
        let ended = end(lockwright().args(arguments));
        assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{arguments:?}");
    }
    for verb in [&[][..], &["check"], &["simulate"], &["run"], &["doctor"], &["import"]] {
        let ended = end(lockwright().args(verb).arg("--help"));
        assert_eq!(ended.status, 0, "{verb:?}");
        assert!(ended.out.contains("Exit status:"), "{verb:?}: {}", ended.out);
        assert!(verb.is_empty() || ended.out.contains("Example"), "{verb:?}: {}", ended.out);
    }
    for verb in [&["measure"][..], &["measure", "locks"], &["measure", "ics"], &["study"], &["study", "bpl"]] {
        let ended = end(lockwright().args(verb).arg("--help"));
        assert_eq!(ended.status, 0, "{verb:?}");
        assert!(ended.out.contains("  0    success\n") && ended.out.contains("  130  "), "{verb:?}: {}", ended.out);
        assert!(!ended.out.contains("deadline"), "{verb:?} judges no deadlines: {}", ended.out);
    }
    assert!(end(lockwright().arg("--version")).out.starts_with("lockwright "));
}

#[test]
fn task_sets_of_schedcat_and_cheddar_are_imported_and_checked() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../model/tests/corpus");
    for (tool, unit, file, period) in [
        ("schedcat", None, "schedcat/good-requirements.xml", "\"10 ms\""),
        ("schedcat", Some("ns"), "schedcat/good-nested.xml", "\"100 ns\""),
        ("cheddar", None, "cheddar/good-ceiling.xmlv3", "\"10 ms\""),
        ("cheddar", Some("s"), "cheddar/good-edf.xmlv3", "\"5 s\""),
    ] {
        let mut command = lockwright();
        command.args(["import", tool]).arg(corpus.join(file));
        if let Some(unit) = unit {
            command.args(["--unit", unit]);
        }
        let imported = end(&mut command);
        assert_eq!(imported.status, 0, "{file}: {}", imported.err);
        assert!(imported.out.contains(period), "{file}: {}", imported.out);
        assert!(on(&imported.out, "check", &[]).status < 2, "{file}: {}", imported.out);
    }
    let as_system = end(lockwright().arg("check").arg(corpus.join("schedcat/good-nested.xml")));
    assert!(as_system.status == 2 && as_system.err.contains("import schedcat"), "{}", as_system.err);
    let refused = end(lockwright().args(["import", "cheddar"]).arg(corpus.join("cheddar/bad-overlap.xmlv3")));
    assert_eq!((refused.status, refused.out.as_str()), (2, ""), "{}", refused.err);
    let file = File::named("workload.json", "{}");
    let unit = end(lockwright().args(["import", "rt-app", "--unit", "ms"]).arg(&file.path));
    assert!(unit.status == 2 && unit.err.contains("remove --unit"), "{}", unit.err);
}

#[test]
fn rt_app_is_imported_and_checked() {
    let workload = r#"{ "resources": { "m": { "type": "mutex" } },
        "tasks": { "t": { "policy": "SCHED_FIFO", "priority": 5, "cpus": [0], "loop": -1,
            "lock0": "m", "run0": 1000, "unlock0": "m", "timer": { "ref": "tick", "period": 10000 } } } }"#;
    let file = File::named("workload.json", workload);
    let imported = end(lockwright().args(["import", "rt-app"]).arg(&file.path));
    assert_eq!(imported.status, 0, "{}", imported.err);
    assert_eq!(on(&imported.out, "check", &[]).status, 0, "{}", imported.out);
    let as_system = end(lockwright().arg("check").arg(&file.path));
    assert_eq!(as_system.status, 2);
    assert!(as_system.err.contains("import rt-app"), "{}", as_system.err);
    assert_eq!(as_system.err.matches("error: ").count(), 1, "{}", as_system.err);
    let missing = end(lockwright().args(["import", "rt-app"]).arg(file.beside("missing.json")));
    assert!(!missing.err.contains("task-set"), "{}", missing.err);
    let commented = on("\n/* a workload */ {", "simulate", &[]);
    assert!(commented.status == 2 && commented.err.contains("rt-app's JSON"), "{}", commented.err);
    let broken = File::named("workload.json", "{ \"tasks\": ");
    let refused = end(lockwright().args(["import", "rt-app"]).arg(&broken.path));
    assert_eq!((refused.status, refused.out.as_str()), (2, ""), "{}", refused.err);
}
