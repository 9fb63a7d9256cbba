//! The requests that the server answers: the page, the file, results, and the file as it is saved.

use super::work::{Question, fault_of, protocols};
use super::worker::Worker;
use crate::args::{ProtocolChoice, Serve};
use crate::console::{Color, Console};
use crate::export::ResultFile;
use crate::fault::{self, Fault};
use crate::tame::{line, tame};
use crate::{input, streams};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::StatusCode;
use axum::http::header::{ALLOW, CONTENT_TYPE};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use lockwright_report::page::Live;
use serde::{Deserialize, Serialize};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::{Instant, timeout_at};

/// Greatest length of a text in bytes.
const TEXT_MAX: usize = 256 * 1024;
/// Greatest length of a request: in JSON, a character of the text may take six.
pub const BODY_MAX: usize = 6 * TEXT_MAX + 1024;
/// Greatest number of results at once. Others wait.
const RESULTS_MAX: usize = 2;
/// Time after which a result is given up.
const TIME_MAX: Duration = Duration::from_secs(10);

/// The state of the server.
pub struct Site {
    /// The token in its address.
    pub token: String,
    /// The hosts under which it may be asked.
    pub hosts: Vec<String>,
    /// The task-set file.
    path: PathBuf,
    page: String,
    saves: bool,
    worker: Worker,
    /// Two results at a time: that of the newest text, and that of the text that a page shows next.
    turns: Semaphore,
    /// One file saved at a time.
    saving: Arc<Mutex<()>>,
}

impl Site {
    /// The site for a server at this address.
    pub fn new(arguments: &Serve, token: String, address: SocketAddr) -> Self {
        let first = match arguments.protocol {
            ProtocolChoice::One(protocol) => protocol.name(),
            ProtocolChoice::All => "all",
            ProtocolChoice::File => "file",
        };
        let file = line(&arguments.file.display().to_string());
        let protocols = protocols(first);
        let page = Live { file: &file, protocols: &protocols, saves: arguments.save }.to_html();
        Self {
            token,
            hosts: hosts(address.port()),
            path: arguments.file.clone(),
            page,
            saves: arguments.save,
            worker: Worker::of(arguments),
            turns: Semaphore::new(RESULTS_MAX),
            saving: Arc::default(),
        }
    }

    /// The answers to requests.
    pub fn router(self: Arc<Self>) -> Router {
        let nothing = || async { (StatusCode::NOT_FOUND, "there is nothing here\n") };
        Router::new()
            .route("/{token}/", get(page))
            .route("/{token}/file", get(file))
            .route("/{token}/result", post(result))
            .route("/{token}/save", post(save))
            .fallback(nothing)
            .layer(DefaultBodyLimit::max(BODY_MAX))
            .with_state(self)
    }

    /// Saves `text`, unless another program changed the file after the version `seen`. The file keeps its ends of
    /// lines, those of its first line.
    ///
    /// The file is compared before it is replaced; a change between these two steps is lost.
    fn save(&self, text: &str, seen: &str) -> Result<Saved, Fault> {
        if text.len() > TEXT_MAX {
            return Err(fault_of(format!("the text is longer than {TEXT_MAX} bytes")));
        }
        let is_dos = read(&self.path)?.text.split_once('\n').is_some_and(|(first, _)| first.ends_with('\r'));
        let lines = text.replace("\r\n", "\n");
        let text = if is_dos { lines.replace('\n', "\r\n") } else { lines };
        let mut changed = None;
        let write = || {
            let console = Console::new(Color::Never, true);
            let file = ResultFile::open(&self.path, "FILE", &console)?;
            let fill = |out: &mut dyn Write| {
                out.write_all(text.as_bytes())?;
                out.flush()?;
                changed = match read(&self.path) {
                    Ok(now) if now.version == seen => return Ok(()),
                    Ok(_) => Some(fault_of(
                        "another program changed the file meanwhile; to load it, copy what was typed first",
                    )),
                    Err(fault) => Some(fault),
                };
                Err("it was changed".into())
            };
            file.write(fill, &console)
        };
        let (written, _) = streams::collect(Vec::new(), Arc::default(), write);
        let told = fault::take().pop();
        match written {
            Ok(_) => Ok(Saved { version: version(&text) }),
            Err(_) => Err(changed.or(told).unwrap_or_else(|| fault_of("the file cannot be written"))),
        }
    }
}

/// The names of this host at a port. Browsers leave the port of HTTP out.
fn hosts(port: u16) -> Vec<String> {
    const NAMES: [&str; 2] = ["127.0.0.1", "localhost"];
    let bare = NAMES.into_iter().filter(|_| port == 80).map(str::to_owned);
    bare.chain(NAMES.map(|name| format!("{name}:{port}"))).collect()
}

/// The file as it is now. A pipe could keep its reader waiting: it is refused.
///
/// # Errors
/// The file cannot be read, is too long, or is none.
pub fn read(path: &Path) -> Result<File, Fault> {
    let shown = path.display();
    let refuse = |why: &str| fault_of(tame(&format!("cannot read {shown}: {why}")));
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return Err(refuse("it is not a regular file"));
    }
    let text = input::read_text(path).map_err(|why| refuse(&why))?;
    if text.len() > TEXT_MAX {
        return Err(refuse(&format!("it is longer than {TEXT_MAX} bytes")));
    }
    Ok(File { version: version(&text), text })
}

/// A version of the file.
#[derive(Serialize)]
pub struct File {
    version: String,
    text: String,
}

/// Tells versions apart.
fn version(text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Why there is no answer.
#[derive(Serialize)]
struct Refused {
    faults: Vec<Fault>,
}

fn refuse(fault: Fault) -> Response {
    json(&Refused { faults: vec![fault] })
}

fn json(value: &impl Serialize) -> Response {
    match serde_json::to_string(value) {
        Ok(text) => ([(CONTENT_TYPE, "application/json")], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

async fn page(State(site): State<Arc<Site>>) -> Html<String> {
    Html(site.page.clone())
}

/// The version that a page has.
#[derive(Deserialize)]
struct Seen {
    #[serde(default)]
    seen: String,
}

async fn file(State(site): State<Arc<Site>>, Query(Seen { seen }): Query<Seen>) -> Response {
    match tokio::task::spawn_blocking(move || read(&site.path)).await {
        Ok(Ok(file)) if file.version == seen => StatusCode::NO_CONTENT.into_response(),
        Ok(Ok(file)) => json(&file),
        Ok(Err(fault)) => refuse(fault),
        Err(error) => refuse(fault_of(error.to_string())),
    }
}

async fn result(State(site): State<Arc<Site>>, body: Bytes) -> Response {
    if let Err(error) = serde_json::from_slice::<Question>(&body) {
        return (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response();
    }
    let end = Instant::now() + TIME_MAX;
    let Ok(_turn) = timeout_at(end, site.turns.acquire()).await else {
        return refuse(fault_of("the results of other pages still take their time; change the text to ask again"));
    };
    match timeout_at(end, site.worker.answer(&body)).await {
        Ok(Ok(answer)) => ([(CONTENT_TYPE, "application/json")], answer).into_response(),
        Ok(Err(error)) => refuse(fault_of(error)),
        Err(_) => refuse(fault_of("the result takes too long: it was given up")),
    }
}

/// A text to save, and the version that it replaces.
#[derive(Deserialize)]
struct Save {
    text: String,
    seen: String,
}

/// A version that was saved.
#[derive(Serialize)]
struct Saved {
    version: String,
}

async fn save(State(site): State<Arc<Site>>, body: Bytes) -> Response {
    if !site.saves {
        let text = "the server was started without --save\n";
        return (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, "")], text).into_response();
    }
    let Save { text, seen } = match serde_json::from_slice(&body) {
        Ok(save) => save,
        Err(error) => return (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response(),
    };
    let saving = Arc::clone(&site.saving).lock_owned().await;
    let saved = tokio::task::spawn_blocking(move || {
        let _saving = saving;
        site.save(&text, &seen)
    });
    match saved.await {
        Ok(Ok(saved)) => json(&saved),
        Ok(Err(fault)) => refuse(fault),
        Err(error) => refuse(fault_of(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_port_of_http_may_be_left_out() {
        assert_eq!(hosts(8080), ["127.0.0.1:8080", "localhost:8080"]);
        assert_eq!(hosts(80), ["127.0.0.1", "localhost", "127.0.0.1:80", "localhost:80"]);
    }
}
