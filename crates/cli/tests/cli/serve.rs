//! `serve`: what it answers to its own page, and what it refuses to everybody else.

use crate::support::{File, INVERSION, LATE, end, lockwright};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A server for a file. It ends when dropped.
struct Server {
    child: Child,
    /// `127.0.0.1:PORT`.
    host: String,
    /// `/TOKEN/`.
    base: String,
}

impl Server {
    fn of(file: &File, options: &[&str]) -> Self {
        let mut command = lockwright();
        command.arg("serve").arg(&file.path).args(options).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the binary starts");
        let mut address = String::new();
        let out = child.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut address).expect("an address");
        let rest = address.trim().strip_prefix("http://").unwrap_or_else(|| panic!("no address: {address}"));
        let (host, token) = rest.split_once('/').expect("a token");
        Self { child, host: host.to_owned(), base: format!("/{token}") }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.host).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
        stream
    }

    /// Sends bytes, and reads all of the answer: its status and its text with the head.
    fn send(&self, bytes: &str) -> (u16, String) {
        let mut stream = self.connect();
        // A server may answer and close before it has read everything.
        let _ = stream.write_all(bytes.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, answer)
    }

    fn get(&self, path: &str, headers: &str) -> (u16, String) {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{headers}\r\n", self.host))
    }

    fn post(&self, path: &str, headers: &str, body: &str) -> (u16, String) {
        let (host, length) = (&self.host, body.len());
        let head = format!("POST {}{path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n", self.base);
        self.send(&format!("{head}{headers}\r\n{body}"))
    }

    /// The object that answers a question of the page.
    fn ask(&self, path: &str, question: &Value) -> Value {
        let (status, answer) = self.post(path, JSON, &question.to_string());
        assert_eq!(status, 200, "{answer}");
        let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
    }

    fn result(&self, text: &str, protocol: &str) -> Value {
        self.ask("result", &json!({ "text": text, "protocol": protocol }))
    }

    /// Asks for a result under all protocols, and does not wait for it.
    fn asks(&self, text: &str) -> TcpStream {
        let question = json!({ "text": text, "protocol": "all" }).to_string();
        let mut stream = self.connect();
        let (host, base, length) = (&self.host, &self.base, question.len());
        let head = format!("POST {base}result HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n{JSON}\r\n");
        stream.write_all((head + &question).as_bytes()).expect("sent");
        stream
    }

    /// The number of results that the server computes.
    fn computing(&self) -> usize {
        let parent = self.child.id().to_string();
        let processes = std::fs::read_dir("/proc").expect("a list").flatten();
        let stats = processes.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
        // `71 (name) S 70 ...`: the name may contain anything.
        let is_running = |stat: &String| {
            let mut fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
            fields.next() != Some("Z") && fields.next() == Some(&parent)
        };
        stats.filter(is_running).count()
    }

    /// Waits for this number. Returns whether it came.
    fn until_computing(&self, number: usize) -> bool {
        let begun = Instant::now();
        // BOUND: half of the time after which results are given up.
        while self.computing() != number {
            if begun.elapsed() > Duration::from_secs(5) {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }

    /// The file as the server has it, unless it has this version.
    fn file(&self, seen: &str) -> Option<Value> {
        let (status, answer) = self.get(&format!("{}file?seen={seen}", self.base), "");
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
        (status != 204).then(|| serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}")))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const JSON: &str = "Content-Type: application/json\r\n";

#[test]
fn the_page_follows_the_text() {
    let file = File::new(INVERSION);
    let server = Server::of(&file, &["--protocol", "icpp"]);
    let (status, page) = server.get(&server.base, "");
    assert!(status == 200 && page.contains("<textarea") && page.contains("<option value=\"icpp\" selected>"), "{page}");
    let first = server.result(INVERSION, "icpp");
    let html = first["html"].as_str().expect("a page");
    assert!(html.contains("Under icpp, no deadline was missed") && html.contains("<svg"), "{html}");
    assert!(html.contains("--protocol=icpp") && html.contains(&*file.path.to_string_lossy()), "the command: {html}");
    let longer = INVERSION.replace(
        "wcet = \"2 ms\"\nrequests = [{ resource = \"bus\", length = \"1 ms\"",
        "wcet = \"21 ms\"\nrequests = [{ resource = \"bus\", length = \"20 ms\"",
    );
    assert_ne!(longer, INVERSION);
    let late = server.result(&longer, "icpp");
    assert!(late["html"].as_str().expect("a page").contains(" missed (high"), "{late}");
    // The sections, and where their lengths are.
    let section = &late["sections"][1];
    assert_eq!(
        (&section["task"], &section["resources"], &section["ns"]),
        (&json!("low"), &json!("bus"), &json!(20_000_000))
    );
    let place = |at: usize| section["place"][at].as_u64().expect("a place") as usize;
    assert_eq!(&longer[place(0)..place(1)], "\"20 ms\"");
    // A fault has its place, and the page of an earlier text stays.
    let wrong = server.result(&INVERSION.replace("20 ms", "20 msec"), "icpp");
    assert!(wrong["html"].is_null() && wrong["faults"][0]["place"]["line"].as_u64() > Some(10), "{wrong}");
    let unknown = server.result(INVERSION, "icpp --html=/tmp/x");
    assert!(unknown["faults"][0]["message"].as_str().is_some_and(|text| text.contains("invalid value")), "{unknown}");
    // Every protocol, and a global scheduler.
    assert!(server.result(INVERSION, "all")["html"].as_str().is_some_and(|html| html.contains("Protocols compared")));
    let global = LATE.replace("cpus = 1\npriorities = \"rate-monotonic\"", "cpus = 2\nscheduler = \"g-edf\"");
    let global = server.result(&global, "file");
    let html = global["html"].as_str().unwrap_or_else(|| panic!("{global}"));
    assert!(html.contains("class=\"picture schedule\""), "{html}");
}

/// A system whose bounds under all protocols take much longer than a result may.
fn large() -> String {
    let task = |n: usize| {
        let requests: Vec<String> =
            (0..4).map(|k| format!("{{resource=\"r{}\",length=\"1 us\"}}", (n + k) % 30)).collect();
        let (period, cpu) = (100 + 7 * n, n % 2);
        let requests = requests.join(",");
        format!("[[task]]\nname=\"t{n}\"\nperiod=\"{period} ms\"\nwcet=\"50 us\"\ncpu={cpu}\nrequests=[{requests}]\n")
    };
    let resources: String = (0..30).map(|n| format!("[[resource]]\nname=\"r{n}\"\n")).collect();
    let tasks: String = (0..1_000).map(task).collect();
    format!("[platform]\ncpus=2\npriorities=\"rate-monotonic\"\n{resources}{tasks}")
}

#[test]
fn a_result_that_takes_too_long_is_given_up() {
    let file = File::new(INVERSION);
    let server = Server::of(&file, &["--save"]);
    let late = server.result(&large(), "all");
    if late["html"].is_string() {
        return eprintln!("not judged: this machine has the result within 10 s");
    }
    assert!(late["faults"][0]["message"].as_str().is_some_and(|text| text.contains("takes too long")), "{late}");
    assert!(server.result(INVERSION, "pip")["html"].is_string());
    assert!(server.until_computing(0));
}

/// A server that is killed leaves no computation.
#[test]
fn results_end_with_their_server() {
    let file = File::new(INVERSION);
    let mut server = Server::of(&file, &[]);
    let _slow = server.asks(&large());
    if !server.until_computing(1) {
        return eprintln!("not judged: the large system is computed too fast for this test");
    }
    server.child.kill().expect("it executes");
    // The kernel gives the children to another parent at the end of the server.
    let text = file.path.to_str().expect("a path in UTF-8");
    let is_ours = |entry: &std::fs::DirEntry| {
        let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).into_owned();
        words.contains("--answer") && words.contains(text)
    };
    let begun = Instant::now();
    // BOUND: half of the time after which results are given up.
    while std::fs::read_dir("/proc").expect("a list").flatten().any(|entry| is_ours(&entry)) {
        assert!(begun.elapsed() < Duration::from_secs(5), "a result is computed without its server");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Also a server that ends while it starts the process of a result leaves no computation.
#[test]
fn a_result_without_a_server_ends() {
    let files =
        [File::new(INVERSION), File::named("question", &json!({ "text": large(), "protocol": "all" }).to_string())];
    // The parent of this command is this test, and no process 1.
    for (server, is_ended) in [("1".to_owned(), true), (std::process::id().to_string(), false)] {
        let mut command = lockwright();
        command.args(["serve", &format!("--answer={server}")]).arg(&files[0].path);
        let question = std::fs::File::open(&files[1].path).expect("a file");
        let child = command.stdin(question).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut child = child.expect("the binary starts");
        std::thread::sleep(Duration::from_secs(2));
        let status = child.try_wait().expect("it is a child");
        if !is_ended && status.is_some_and(|status| status.success()) {
            return eprintln!("not judged: the large system is computed too fast for this test");
        }
        assert_eq!(status.is_some(), is_ended, "{status:?}");
        if status.is_none() {
            child.kill().and_then(|()| child.wait()).expect("it ends");
        }
    }
}

#[test]
fn a_result_that_nobody_waits_for_ends() {
    let file = File::new(INVERSION);
    let server = Server::of(&file, &["--save"]);
    let large = large();
    let begun = Instant::now();
    // A newer text does not wait for the one that is computed.
    let slow = server.asks(&large);
    let is_computed = server.until_computing(1);
    let is_answered = server.result(INVERSION, "pip")["html"].is_string();
    let other = server.asks(&large);
    let are_computed = server.until_computing(2);
    // The first one is given up after ten seconds.
    if begun.elapsed() > Duration::from_secs(9) {
        return eprintln!("not judged: this machine is too slow for this test");
    }
    assert!(is_computed && is_answered && are_computed, "{is_computed} {is_answered} {are_computed}");
    // The file can be saved meanwhile.
    let seen = server.file("").expect("a version")["version"].clone();
    server.ask("save", &json!({ "text": LATE, "seen": seen }));
    assert_eq!(std::fs::read_to_string(&file.path).expect("a file"), LATE);
    // A page that leaves has its process ended, and the next text takes its place.
    drop(slow);
    assert!(server.until_computing(1));
    assert!(server.result(INVERSION, "pip")["html"].is_string());
    drop(other);
    assert!(server.until_computing(0));
}

#[test]
fn changes_of_the_file_are_seen() {
    let file = File::new(INVERSION);
    let server = Server::of(&file, &[]);
    let first = server.file("").expect("a version");
    assert_eq!(first["text"], INVERSION);
    let version = first["version"].as_str().expect("a version").to_owned();
    assert_eq!(server.file(&version), None, "nothing changed");
    std::fs::write(&file.path, LATE).expect("written");
    assert_eq!(server.file(&version).expect("a version")["text"], LATE);
    std::fs::remove_file(&file.path).expect("removed");
    let gone = server.file(&version).expect("an answer");
    assert!(gone["faults"][0]["message"].as_str().is_some_and(|text| text.contains("cannot read")), "{gone}");
    // A pipe in its place keeps nobody waiting.
    let made = std::process::Command::new("mkfifo").arg(&file.path).status();
    assert!(made.is_ok_and(|status| status.success()));
    let pipe = server.file(&version).expect("an answer");
    assert!(pipe["faults"][0]["message"].as_str().is_some_and(|text| text.contains("not a regular")), "{pipe}");
}

#[test]
fn the_file_is_saved_on_request_only() {
    let file = File::new(INVERSION);
    let save = |server: &Server, text: &str, seen: &Value| {
        server.post("save", JSON, &json!({ "text": text, "seen": seen }).to_string())
    };
    let server = Server::of(&file, &[]);
    let seen = server.file("").expect("a version")["version"].clone();
    let (status, _) = save(&server, LATE, &seen);
    assert_eq!((status, std::fs::read_to_string(&file.path).expect("a file")), (405, INVERSION.into()));
    server.result(LATE, "file");
    assert_eq!(std::fs::read_to_string(&file.path).expect("a file"), INVERSION, "a result writes nothing");
    let names = std::fs::read_dir(file.path.parent().expect("a folder")).expect("a folder").count();
    assert_eq!(names, 1, "and leaves no other file");
    drop(server);
    let server = Server::of(&file, &["--save"]);
    let (status, answer) = save(&server, LATE, &seen);
    assert_eq!((status, std::fs::read_to_string(&file.path).expect("a file")), (200, LATE.into()), "{answer}");
    // A browser sends LF; the file keeps its ends of lines.
    let dos = |text: &str| text.replace('\n', "\r\n");
    std::fs::write(&file.path, dos(LATE)).expect("written");
    let seen = server.file("").expect("a version")["version"].clone();
    let (status, answer) = save(&server, INVERSION, &seen);
    assert_eq!((status, std::fs::read_to_string(&file.path).expect("a file")), (200, dos(INVERSION)), "{answer}");
    let kept = server.file("").expect("a version")["version"].clone();
    assert!(answer.contains(kept.as_str().expect("a version")), "{answer}");
    std::fs::write(&file.path, LATE).expect("written");
    // Another program wrote it meanwhile.
    let (_, refused) = save(&server, INVERSION, &seen);
    assert!(refused.contains("another program changed the file"), "{refused}");
    assert_eq!(std::fs::read_to_string(&file.path).expect("a file"), LATE);
}

#[test]
fn strangers_are_refused() {
    let file = File::new(INVERSION);
    let server = Server::of(&file, &["--save"]);
    let (host, base) = (&server.host, &server.base);
    assert!(host.starts_with("127.0.0.1:"), "{host}");
    let question = json!({ "text": LATE, "protocol": "pip" }).to_string();
    let port = host.rsplit(':').next().expect("a port");
    // Without the token, with a part of it, and with one that differs in its last digit.
    let last = if base.ends_with("0/") { "1/" } else { "0/" };
    let other = format!("{}{last}", &base[..base.len() - 2]);
    for path in ["/", "/result", "/file", "//", &base[..base.len() - 1][..9], &other, &format!("/x{base}")] {
        let (status, answer) = server.get(path, "");
        assert!(status == 404 && !answer.contains("<textarea"), "{path}: {answer}");
    }
    // Another name that leads here, as with DNS rebinding, or none, or two.
    for wrong in [
        "Host: evil.example",
        "Host: 127.0.0.1",
        "Host: 127.0.0.1:1",
        "X: y",
        &format!("Host: {host}\r\nHost: evil.example"),
    ] {
        let (status, answer) = server.send(&format!("GET {base} HTTP/1.1\r\n{wrong}\r\n\r\n"));
        assert!(status == 421 || status == 400, "{wrong}: {answer}");
        assert!(!answer.contains("<textarea"), "{wrong}");
    }
    assert_eq!(server.send(&format!("GET {base} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n")).0, 200);
    // Pages of other origins, also where they know the address.
    for origin in [
        "http://evil.example",
        "null",
        "https://127.0.0.1",
        &format!("http://{host}.evil.example"),
        &format!("https://{host}"),
    ] {
        for path in ["result", "save"] {
            let (status, answer) = server.post(path, &format!("{JSON}Origin: {origin}\r\n"), &question);
            assert_eq!(status, 403, "{origin}: {answer}");
            assert!(!answer.to_lowercase().contains("access-control-allow"), "{answer}");
        }
    }
    for site in ["cross-site", "same-site"] {
        assert_eq!(server.get(base, &format!("Sec-Fetch-Site: {site}\r\n")).0, 403, "{site}");
    }
    assert_eq!(
        server.post("result", &format!("{JSON}Origin: http://{host}\r\nSec-Fetch-Site: same-origin\r\n"), &question).0,
        200
    );
    // What a form of another page can send.
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        assert_eq!(server.post("result", &format!("Content-Type: {kind}\r\n"), &question).0, 415, "{kind}");
    }
    let (status, answer) =
        server.send(&format!("OPTIONS {base}result HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\n\r\n"));
    assert!(status == 405 && !answer.to_lowercase().contains("access-control-allow"), "{answer}");
    assert_eq!(std::fs::read_to_string(&file.path).expect("a file"), INVERSION);
}

#[test]
fn answers_are_kept_and_framed_by_nobody() {
    let file = File::new(INVERSION);
    let server = Server::of(&file, &[]);
    for (path, status) in [(server.base.as_str(), 200), ("/", 404)] {
        let (found, answer) = server.get(path, "");
        let head = answer.split_once("\r\n\r\n").expect("a head").0.to_lowercase();
        for header in [
            "cache-control: no-store",
            "referrer-policy: no-referrer",
            "x-content-type-options: nosniff",
            "frame-ancestors 'none'",
            "cross-origin-resource-policy: same-origin",
        ] {
            assert!(head.contains(header), "{header}: {head}");
        }
        assert_eq!(found, status);
    }
    let (_, page) = server.get(&server.base, "");
    assert!(page.contains("default-src &#39;none&#39;") || page.contains("default-src 'none'"), "{page}");
    assert!(page.contains("connect-src &#39;self&#39;") || page.contains("connect-src 'self'"), "{page}");
}

#[test]
fn huge_and_broken_requests_end() {
    let file = File::new(INVERSION);
    let server = Server::of(&file, &["--save"]);
    let (host, base) = (&server.host, &server.base);
    // Bodies: announced as too long, in pieces without an end, and wrong.
    let head = format!("POST {base}result HTTP/1.1\r\nHost: {host}\r\n{JSON}");
    assert_eq!(server.send(&format!("{head}Content-Length: 99999999999\r\n\r\n")).0, 413);
    let mut stream = server.connect();
    let _ = stream.write_all(format!("{head}Transfer-Encoding: chunked\r\n\r\n").as_bytes());
    let piece = format!("10000\r\n{}\r\n", "x".repeat(65_536));
    // BOUND: the server ends the connection long before.
    let sent = (0..1_000).take_while(|_| stream.write_all(piece.as_bytes()).is_ok()).count();
    assert!(sent < 1_000, "64 MB were taken");
    let long = "#".repeat(300 * 1024);
    let saved = server.ask("save", &json!({ "text": long, "seen": server.file("").expect("a version")["version"] }));
    assert!(saved["faults"][0]["message"].as_str().is_some_and(|text| text.contains("longer than")), "{saved}");
    for body in ["", "{}", "[]", "{\"text\": 1}", "{\"text\": \"\", \"protocol\": \"pip\"", &"[".repeat(100_000)] {
        assert_eq!(server.post("result", JSON, body).0, 400, "{body:.20}");
    }
    // Heads. An answer may be lost when the server closes a connection that still sends.
    let long = "x".repeat(100_000);
    for (path, header) in [(base.clone(), format!("X: {long}\r\n")), (format!("/{long}"), String::new())] {
        let (status, answer) = server.get(&path, &header);
        assert!(matches!(status, 0 | 414 | 431) && !answer.contains("<textarea"), "{answer}");
    }
    for wrong in ["\r\n\r\n", "GET\r\n\r\n", "\0\0\0\0", "GET / HTTP/9.9\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        let status = server.send(&format!("{wrong}\r\n\r\n")).0;
        assert!(matches!(status, 0 | 400 | 421 | 505), "{wrong:?}: {status}");
    }
    let traversal = server.get(&format!("{base}../../../../etc/passwd"), "");
    assert!(traversal.0 == 404 && !traversal.1.contains("root:"), "{}", traversal.1);
    // It still answers.
    assert!(server.result(INVERSION, "pip")["html"].is_string());
}

#[test]
fn slow_clients_keep_nobody_waiting() {
    let file = File::new(INVERSION);
    let server = Server::of(&file, &[]);
    // More than the server accepts at once: some send nothing, some half a head.
    let mut slow: Vec<TcpStream> = (0..40).map(|_| server.connect()).collect();
    for stream in slow.iter_mut().step_by(2) {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: ").expect("sent");
    }
    assert!(server.result(INVERSION, "pip")["html"].is_string());
    let mut rest = Vec::new();
    assert!(slow[0].read_to_end(&mut rest).is_ok(), "the server ended the connection");
}

#[test]
fn a_signal_ends_it() {
    let file = File::new(INVERSION);
    let mut server = Server::of(&file, &[]);
    let _idle = server.connect();
    let pid = i32::try_from(server.child.id()).expect("a process");
    terminate(pid);
    let status = server.child.wait().expect("it ends");
    assert_eq!(status.code(), Some(0));
    assert!(TcpStream::connect(&server.host).is_err(), "nobody listens");
}

/// Sends SIGTERM, which is handled as Ctrl-C is. A script that starts the tests in the background has them ignore
/// SIGINT.
fn terminate(pid: i32) {
    let sent = std::process::Command::new("kill").args(["-TERM", &pid.to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()));
}

#[test]
fn bad_arguments_are_refused() {
    let file = File::new(INVERSION);
    let ended = end(lockwright().args(["serve", "-"]));
    assert!(ended.status == 2 && ended.err.contains("`serve` needs a file"), "{}", ended.err);
    let ended = end(lockwright().args(["serve", "/nowhere/a.toml"]));
    assert!(ended.status == 2 && ended.err.contains("cannot read /nowhere/a.toml"), "{}", ended.err);
    let ended = end(lockwright().arg("serve").arg(&file.path).args(["--overheads", "-"]));
    assert!(ended.status == 2 && ended.err.contains("--overheads needs a file"), "{}", ended.err);
    // What is no regular file, such as a pipe that nobody writes, and what is too long.
    let pipe = file.beside("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|status| status.success()));
    let ended = end(lockwright().arg("serve").arg(&pipe));
    assert!(ended.status == 2 && ended.err.contains("not a regular file"), "{}", ended.err);
    let long = File::new(&"#".repeat(300 * 1024));
    let ended = end(lockwright().arg("serve").arg(&long.path));
    assert!(ended.status == 2 && ended.err.contains("longer than"), "{}", ended.err);
    let taken = Server::of(&file, &[]);
    let port = taken.host.rsplit(':').next().expect("a port");
    let ended = end(lockwright().arg("serve").arg(&file.path).args(["--port", port]));
    assert!(ended.status == 3 && ended.err.contains("cannot listen on 127.0.0.1"), "{}", ended.err);
}
