//! `lockwright doctor`: the requirements of real-time threads on this machine.

use crate::args::Doctor;
use crate::console::Console;
use crate::exit::Exit;
use crate::json::{self, DoctorFinding, DoctorOutput, DoctorState};
use lockwright_engine::doctor::{Finding, State, examine};

/// Executes `doctor`.
///
/// # Errors
/// The console has the message.
pub fn doctor(arguments: &Doctor, console: &Console) -> Result<Exit, Exit> {
    let findings = examine();
    if arguments.json {
        let findings = findings.iter().map(|finding| DoctorFinding {
            name: finding.name.to_owned(),
            state: match finding.state {
                State::Ok => DoctorState::Ok,
                State::Warn => DoctorState::Warn,
                State::Missing => DoctorState::Missing,
            },
            found: finding.found.clone(),
            fix: Some(finding.fix.clone()).filter(|fix| !fix.is_empty()),
        });
        console.print(&json::to_text(&DoctorOutput { verb: DoctorOutput::VERB, findings: findings.collect() }))?;
    } else {
        let width = findings.iter().map(|finding| finding.name.chars().count()).max().unwrap_or(0);
        let text: String = findings.iter().map(|finding| line(finding, width, console)).collect();
        console.print(&text)?;
    }
    let can_run = findings.iter().all(|finding| finding.state != State::Missing);
    Ok(if can_run { Exit::Holds } else { Exit::Machine })
}

/// The state, the name and the finding; wrapped text is aligned with the finding.
fn line(finding: &Finding, width: usize, console: &Console) -> String {
    const WORD: usize = 7;
    let code = match finding.state {
        State::Ok => 32,
        State::Warn => 33,
        State::Missing => 31,
    };
    let word = finding.state.name();
    let fix = if finding.fix.is_empty() { String::new() } else { format!("; fix: {}", finding.fix) };
    // One line, even if a file of the kernel has several.
    let line = format!("{word:<WORD$}  {:<width$}  {}{fix}", finding.name, finding.found).replace('\n', " ");
    let text = console.layout.hanging(&line, WORD + width + 4);
    match text.strip_prefix(word) {
        Some(rest) if console.color_out => format!("\x1b[{code}m{word}\x1b[0m{rest}"),
        _ => text,
    }
}
