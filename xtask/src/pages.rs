//! Looks at the pages of the command line with a browser, and compares its pictures as the browser and a second program
//! draw them.

use crate::tool;
use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The programs that this check needs, and the Debian packages that contain them.
const PROGRAMS: [(&str, &str); 4] =
    [("chromium", "chromium"), ("node", "nodejs"), ("npm", "npm"), ("rsvg-convert", "librsvg2-bin")];

/// Pages of the examples: their names and commands.
const PAGES: [(&str, &[&str]); 9] = [
    ("pathfinder-check", &["check", "examples/pathfinder.toml", "--sensitivity"]),
    ("pathfinder-all", &["check", "examples/pathfinder.toml", "--protocol", "all"]),
    ("pathfinder-simulate", &["simulate", "examples/pathfinder.toml"]),
    ("pathfinder-late", &["simulate", "examples/pathfinder.toml", "--protocol", "none"]),
    ("robot", &["simulate", "examples/robot.toml", "--protocol", "all", "--for", "1s"]),
    ("robot-edf", &["check", "examples/robot.toml", "--scheduler", "p-edf"]),
    ("waters", &["check", "examples/waters2019.toml", "--protocol", "all"]),
    ("waters-simulate", &["simulate", "examples/waters2019.toml", "--for", "2s"]),
    ("interruptible", &["simulate", "examples/tutorial/12-interruptible.toml"]),
];

/// Pages of commands that write into a directory: their names, and their commands before and behind its name.
const WITH_FOLDERS: [(&str, [&[&str]; 2]); 3] = [
    ("study", [&["study", "examples/studies/protocols.toml", "--samples", "5"], &[]]),
    ("rtas2008", [&["study", "rtas2008", "--figure", "1", "--samples", "2"], &[]]),
    ("recording", [&["record"], &["--", "node", "--version"]]),
];

/// Pictures: their names and commands.
const PICTURES: [(&str, &[&str]); 6] = [
    ("schedule", &["simulate", "examples/pathfinder.toml", "--protocol", "none"]),
    ("cpus", &["simulate", "examples/robot.toml", "--by", "cpu"]),
    ("tasks", &["simulate", "examples/robot.toml", "--protocol", "mrsp"]),
    ("phone", &["simulate", "examples/pathfinder.toml", "--protocol", "none", "--width", "360"]),
    ("phone-cpus", &["simulate", "examples/robot.toml", "--by", "cpu", "--width", "360"]),
    ("bounds", &["check", "examples/waters2019.toml", "--protocol", "all"]),
];

/// A name that must stay text.
const HOSTILE: &str = r#"</title><script>alert(1)</script>\"&<>'"#;
/// The number of tasks of the largest page.
const TASKS: usize = 100;

/// Makes the pages and pictures, and looks at them.
pub fn run() -> Result<(), String> {
    for (program, package) in PROGRAMS {
        let there = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if there.is_err() {
            let missing = format!("there is no `{program}` (Debian package {package})");
            if std::env::var_os("LOCKWRIGHT_REQUIRE_BROWSER").is_some() {
                return Err(missing);
            }
            eprintln!("xtask: skipped: {missing}");
            return Ok(());
        }
    }
    let binary = tool::lockwright()?;
    let folder = tool::root().join("target/pages");
    let samples = fresh(&folder.join("samples"))?;
    for (name, arguments) in PAGES {
        page(&binary, &samples, name, arguments)?;
    }
    let hostile = write(&samples.join("hostile.toml"), &hostile())?;
    page(&binary, &samples, "hostile", &["simulate", &hostile])?;
    let many = write(&samples.join("many.toml"), &many())?;
    page(&binary, &samples, "many-check", &["check", &many, "--protocol", "all"])?;
    page(&binary, &samples, "many-simulate", &["simulate", &many])?;
    compare(&binary, &samples)?;
    let bpl = ["study", "bpl", "--cores", "8", "--requests", "2000", "--runs", "2", "--seed", "1", "--html"];
    finish(Command::new(&binary).args(bpl).arg(samples.join("bpl.html")))?;
    for (name, arguments) in WITH_FOLDERS {
        with_folder(&binary, &samples, name, arguments)?;
    }
    install(&folder)?;
    pictures(&binary, &folder)?;
    look(&folder, &samples)?;
    serve(&binary, &folder)
}

/// An empty folder: results of an earlier check must not be looked at again.
fn fresh(folder: &Path) -> Result<PathBuf, String> {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    Ok(folder.to_owned())
}

/// Wrong pages: their names, a text of the page of `pathfinder-check`, its replacement, and a part of the fault that
/// must be found.
const MUTANTS: [(&str, &str, &str, &str); 4] = [
    ("number", "data-v=\"43000000\"", "data-v=\"43000001\"", "is 43000001 instead of 43000000"),
    ("request", "<main>", "<main><img alt=\"\" src=\"https://example.org/x.png\">", "the console reports"),
    ("style", "<main>", "<main style=\"width:400px\">", "the console reports"),
    ("phone", "div class=\"scroll\"", "div", "pixels wide on a phone"),
];

/// A page and the object of the same command.
fn page(binary: &Path, samples: &Path, name: &str, arguments: &[&str]) -> Result<(), String> {
    let mut command = Command::new(binary);
    command.args(arguments).arg("--json").arg("--html").arg(samples.join(format!("{name}.html")));
    let output = finish(&mut command)?;
    write(&samples.join(format!("{name}.json")), &output).map(drop)
}

/// The page that compares two results.
fn compare(binary: &Path, samples: &Path) -> Result<(), String> {
    let mut command = Command::new(binary);
    command.arg("report").args(["pathfinder-simulate.json", "pathfinder-late.json"].map(|name| samples.join(name)));
    finish(command.arg("--html").arg(samples.join("compared.html"))).map(drop)
}

/// The page of a command that writes into a directory.
fn with_folder(binary: &Path, samples: &Path, name: &str, [before, behind]: [&[&str]; 2]) -> Result<(), String> {
    let results = samples.with_file_name(name);
    let _ = std::fs::remove_dir_all(&results);
    let mut command = Command::new(binary);
    command.args(before).arg("-o").arg(&results).arg("--html").arg(samples.join(format!("{name}.html"))).args(behind);
    finish(&mut command).map(drop)
}

/// Makes the pictures, of schedules, of bounds, of all lessons and of studies, and compares how two programs draw them.
fn pictures(binary: &Path, folder: &Path) -> Result<(), String> {
    let pictures = fresh(&folder.join("pictures"))?;
    let svg = |name: &str, arguments: &[&str]| {
        finish(Command::new(binary).args(arguments).arg("--svg").arg(pictures.join(format!("{name}.svg")))).map(drop)
    };
    for (name, arguments) in PICTURES {
        svg(name, arguments)?;
    }
    let lessons = tool::root().join("examples/tutorial");
    let lessons = lessons.read_dir().map_err(|error| format!("cannot read {}: {error}", lessons.display()))?;
    for lesson in lessons.filter_map(Result::ok).map(|entry| entry.path()) {
        if let Some(name) = lesson.file_stem().and_then(|name| name.to_str()).filter(|_| is_toml(&lesson)) {
            svg(name, &["simulate", &lesson.display().to_string()])?;
        }
    }
    let bpl = ["study", "bpl", "--cores", "8", "--burst", "2", "--requests", "2000", "--runs", "1", "--seed", "1"];
    finish(Command::new(binary).args(bpl).arg("--svg").arg(&pictures))?;
    let curves = folder.join("study/plots/schedulability.svg");
    let copied = std::fs::copy(&curves, pictures.join("schedulability.svg"));
    copied.map_err(|error| format!("cannot copy {}: {error}", curves.display()))?;
    tool::run(node(folder, "compare.mjs").arg(&pictures).arg(browser()?))
}

fn is_toml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "toml")
}

/// Runs the binary. Deadlines may be missed.
fn finish(command: &mut Command) -> Result<String, String> {
    let output = command.current_dir(tool::root()).output().map_err(|error| format!("no output: {error}"))?;
    match output.status.code() {
        Some(0 | 1) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        _ => Err(format!("{}: {}", tool::shown(command), String::from_utf8_lossy(&output.stderr))),
    }
}

fn write(path: &Path, text: &str) -> Result<String, String> {
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    Ok(path.display().to_string())
}

/// A system whose names are markup.
fn hostile() -> String {
    let task = |name: &str, period: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\nperiod = \"{period}\"\nwcet = \"2 ms\"\n\
             requests = [{{ resource = \"{HOSTILE}\", length = \"1 ms\" }}]\n"
        )
    };
    let resource = format!("[[resource]]\nname = \"{HOSTILE}\"\n");
    format!("name = \"{HOSTILE}\"\n{resource}{}{}", task(HOSTILE, "10 ms"), task("javascript:alert(1)", "20 ms"))
}

/// A system of very many tasks on four CPUs.
fn many() -> String {
    let mut text = "name = \"many\"\n[platform]\ncpus = 4\n".to_owned();
    for resource in 0..10 {
        let _ = writeln!(text, "[[resource]]\nname = \"resource {resource}\"");
    }
    for task in 0..TASKS {
        let (period, cpu, resource) = (20 + task % 17 * 10, task % 4, task % 10);
        let _ = writeln!(
            text,
            "[[task]]\nname = \"a task with the number {task}\"\ncpu = {cpu}\nperiod = \"{period} ms\"\n\
             wcet = \"1 ms\"\nrequests = [{{ resource = \"resource {resource}\", length = \"50 us\" }}]"
        );
    }
    text
}

/// Copies the scripts into the folder, and installs what they need there.
fn install(folder: &Path) -> Result<(), String> {
    let source = tool::root().join("xtask/pages");
    for name in ["package.json", "package-lock.json", "compare.mjs", "look.mjs", "serve.mjs"] {
        let copied = std::fs::copy(source.join(name), folder.join(name));
        copied.map_err(|error| format!("cannot copy {name} to {}: {error}", folder.display()))?;
    }
    let mut npm = Command::new("npm");
    tool::run(npm.current_dir(folder).args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]))
}

/// A script of the folder.
fn node(folder: &Path, script: &str) -> Command {
    let mut node = Command::new("node");
    node.current_dir(folder).arg(script);
    node
}

fn browser() -> Result<PathBuf, String> {
    found("chromium").ok_or_else(|| "there is no `chromium` on the path".into())
}

/// Runs the script that opens the pages.
fn look(folder: &Path, samples: &Path) -> Result<(), String> {
    let browser = browser()?;
    let looking = |pages: &Path| {
        let mut node = node(folder, "look.mjs");
        node.arg(pages).arg(&browser);
        node
    };
    tool::run(&mut looking(samples))?;
    let read = |name: &str| std::fs::read_to_string(samples.join(name)).map_err(|error| format!("{name}: {error}"));
    let (page, object) = (read("pathfinder-check.html")?, read("pathfinder-check.json")?);
    for (name, old, new, fault) in MUTANTS {
        let wrong = folder.join("mutants").join(name);
        std::fs::create_dir_all(&wrong).map_err(|error| format!("cannot create {}: {error}", wrong.display()))?;
        write(&wrong.join("mutant.html"), &page.replacen(old, new, 1))?;
        write(&wrong.join("mutant.json"), &object)?;
        let output = looking(&wrong).output().map_err(|error| format!("node does not start: {error}"))?;
        let found = String::from_utf8_lossy(&output.stderr);
        if output.status.success() || !found.contains(fault) {
            return Err(format!("the mutant `{name}` was not found: {found}"));
        }
    }
    Ok(())
}

/// A server, which ends when dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs the script that uses `lockwright serve`; and once more for a server that shows another protocol, which it must
/// find.
fn serve(binary: &Path, folder: &Path) -> Result<(), String> {
    let file = folder.join("served.toml");
    let using = |options: &[&str], patience: &str| -> Result<(Server, Command), String> {
        let copied = std::fs::copy(tool::root().join("examples/pathfinder.toml"), &file);
        copied.map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        let mut command = Command::new(binary);
        command.arg("serve").arg(&file).arg("--save").args(options).stdout(Stdio::piped());
        let child = command.spawn().map_err(|error| format!("{} does not start: {error}", tool::shown(&command)))?;
        let mut server = Server(child);
        let mut address = String::new();
        let out = server.0.stdout.take().ok_or("the server has no output")?;
        BufReader::new(out).read_line(&mut address).map_err(|error| format!("no address: {error}"))?;
        let mut script = node(folder, "serve.mjs");
        script.arg(address.trim()).arg(&file).arg(browser()?).arg(patience);
        Ok((server, script))
    };
    let (server, mut script) = using(&[], "30000")?;
    tool::run(&mut script)?;
    drop(server);
    let (_server, mut script) = using(&["--protocol", "none"], "2000")?;
    let output = script.output().map_err(|error| format!("node does not start: {error}"))?;
    let found = String::from_utf8_lossy(&output.stderr);
    if output.status.success() || !found.contains("no verdict says Under pip") {
        return Err(format!("the server of another protocol was not found: {found}"));
    }
    Ok(())
}

/// The path of a program.
fn found(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|folder| folder.join(program)).find(|path| path.is_file())
}
