//! Computes each result in a process of its own, which ends when nobody waits for its result any more, at whatever
//! step of the analysis, the simulation or the page it is.

use super::work::overheads_word;
use crate::again;
use crate::args::Serve;
use std::ffi::OsString;
use std::process::Stdio;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// Starts the processes.
pub struct Worker {
    /// The command line: `serve --answer=PID`, with the settings of the server.
    words: Vec<OsString>,
}

impl Worker {
    /// The worker of a server.
    pub fn of(arguments: &Serve) -> Self {
        let Serve { file, overheads, duration, .. } = arguments;
        let mut words: Vec<OsString> = vec!["serve".into(), format!("--answer={}", std::process::id()).into()];
        words.extend(overheads.as_deref().map(overheads_word));
        words.extend(duration.map(|duration| format!("--for={}ns", duration.as_ns()).into()));
        words.extend(["--".into(), file.into()]);
        Self { words }
    }

    /// The answer to a question, both as JSON. The process is killed when this future is dropped.
    ///
    /// # Errors
    /// There is no answer, with the reason.
    pub async fn answer(&self, question: &[u8]) -> Result<Vec<u8>, String> {
        let (program, first) = again::get().ok_or("no command line to start")?;
        let mut command = Command::new(program);
        command.args(first).args(&self.words).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().map_err(|error| format!("no process for the result: {error}"))?;
        if let Some(mut input) = process.stdin.take() {
            // A process that ends early tells why by its status.
            let _ = input.write_all(question).await;
        }
        let ended = process.wait_with_output().await.map_err(|error| format!("no result: {error}"))?;
        if ended.status.success() { Ok(ended.stdout) } else { Err(format!("no result: {}", ended.status)) }
    }
}
