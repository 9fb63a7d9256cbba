//! Listens on 127.0.0.1. Every connection has one request and a time limit.

use super::guard::guard;
use super::site::{Site, read};
use super::work::answer;
use crate::args::Serve;
use crate::console::Console;
use crate::exit::Exit;
use crate::input;
use crate::interrupt::{self, Watch};
use crate::streams;
use axum::middleware::from_fn_with_state;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::fmt::{Display, Write};
use std::fs::File;
use std::io::Read;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::Semaphore;

/// Greatest number of connections at once. Others wait.
const CONNECTIONS_MAX: usize = 32;
/// Greatest time for the head of a request.
const HEAD_MAX: Duration = Duration::from_secs(5);
/// Greatest time of a connection, which has one request.
const CONNECTION_MAX: Duration = Duration::from_secs(30);
/// Greatest length of the head of a request in bytes.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Time between two checks for signals.
const SLICE: Duration = Duration::from_millis(100);
/// Greatest time for a result that is under way at the end.
const END_MAX: Duration = Duration::from_secs(1);

/// Executes `serve`, until a signal ends it.
///
/// # Errors
/// The console has the message.
pub fn serve(arguments: &Serve, console: &Console) -> Result<Exit, Exit> {
    let help = "give the path of a task-set file";
    if arguments.file.as_os_str() == "-" {
        console.error("`serve` needs a file", help);
        return Err(Exit::BadInput);
    }
    if arguments.overheads.as_deref().is_some_and(|path| path.as_os_str() == "-") {
        console
            .error("--overheads needs a file here", "each result reads it again: give the path of an overheads file");
        return Err(Exit::BadInput);
    }
    if streams::is_call() {
        console.error("`serve` needs a process of its own, which a signal can end", "execute the command `lockwright`");
        return Err(Exit::BadInput);
    }
    if let Some(server) = arguments.answer {
        return answer(server, arguments, console);
    }
    read(&arguments.file).map_err(|fault| {
        console.error(fault.message, help);
        Exit::BadInput
    })?;
    if let Some(path) = &arguments.overheads {
        input::read_overheads(path, console)?;
    }
    let refuse = |what: &str, error: &dyn Display, help: &str| {
        console.error(format!("{what}: {error}"), help);
        Exit::Machine
    };
    let token = token().map_err(|error| refuse("cannot draw a token", &error, ""))?;
    let runtime = Builder::new_current_thread().enable_io().enable_time().build();
    let runtime = runtime.map_err(|error| refuse("cannot start the server", &error, ""))?;
    interrupt::listen(|| {}, console);
    let ended = runtime.block_on(async {
        // Nothing but this machine reaches 127.0.0.1.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, arguments.port.unwrap_or(0))).await;
        let listener = listener.and_then(|listener| Ok((listener.local_addr()?, listener)));
        let help = "choose another --port, or none";
        let (address, listener) = listener.map_err(|error| refuse("cannot listen on 127.0.0.1", &error, help))?;
        let site = Arc::new(Site::new(arguments, token.clone(), address));
        console.print(&format!("http://{address}/{token}/\n"))?;
        console.note(
            "open this address in a browser of this machine; whoever knows it may use it; Ctrl-C ends the server",
        );
        accept(&listener, &site).await;
        Ok(Exit::Holds)
    });
    runtime.shutdown_timeout(END_MAX);
    ended
}

/// 128 random bits, in hexadecimal digits.
fn token() -> std::io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// Accepts connections until a signal arrives.
async fn accept(listener: &TcpListener, site: &Arc<Site>) {
    let (watch, free) = (Watch::here(), Arc::new(Semaphore::new(CONNECTIONS_MAX)));
    // BOUND: a signal ends it.
    while !watch.requested() {
        let next = async {
            let permit = Arc::clone(&free).acquire_owned().await.ok()?;
            let (stream, _) = listener.accept().await.ok()?;
            Some((permit, stream))
        };
        match tokio::time::timeout(SLICE, next).await {
            Ok(Some((permit, stream))) => {
                let site = Arc::clone(site);
                tokio::spawn(async move {
                    converse(stream, site).await;
                    drop(permit);
                });
            }
            // Without a descriptor for a connection, an end of another one helps.
            Ok(None) => tokio::time::sleep(SLICE).await,
            Err(_) => {}
        }
    }
}

/// Answers the one request of a connection.
async fn converse(stream: TcpStream, site: Arc<Site>) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_MAX).max_buf_size(HEAD_BYTES_MAX).keep_alive(false);
    let guarded = Arc::clone(&site).router().layer(from_fn_with_state(site, guard));
    let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(guarded));
    // A client that fails or is too slow gets no more.
    let _ = tokio::time::timeout(CONNECTION_MAX, connection).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ() {
        let [one, other] = [token(), token()].map(|token| token.expect("random bytes"));
        assert!(one != other && one.len() == 32 && one.chars().all(|c| c.is_ascii_hexdigit()), "{one} {other}");
    }
}
