//! `lockwright doctor`: what this machine lacks for real time.

use crate::args::Doctor;
use crate::console::Console;
use crate::exit::Exit;
use crate::json::{self, DoctorFinding, DoctorOutput, DoctorState, DoctorVerb};
use lockwright::doctor::{Finding, State, examine};

/// Does `doctor`.
///
/// # Errors
/// What was wrong has been said on the console.
pub fn doctor(arguments: &Doctor, console: &Console) -> Result<Exit, Exit> {
    let findings = examine();
    let text = if arguments.json {
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
        json::to_text(&DoctorOutput { verb: DoctorVerb::Doctor, findings: findings.collect() })
    } else {
        let width = findings.iter().map(|finding| finding.name.chars().count()).max().unwrap_or(0);
        findings.iter().map(|finding| line(finding, width, console.color_out)).collect()
    };
    console.print(&text)?;
    let can_run = findings.iter().all(|finding| finding.state != State::Missing);
    Ok(if can_run { Exit::Holds } else { Exit::Machine })
}

fn line(finding: &Finding, width: usize, color: bool) -> String {
    let code = match finding.state {
        State::Ok => 32,
        State::Warn => 33,
        State::Missing => 31,
    };
    let word = format!("{:<7}", finding.state.name());
    let word = if color { format!("\x1b[{code}m{word}\x1b[0m") } else { word };
    let fix = if finding.fix.is_empty() { String::new() } else { format!("; fix: {}", finding.fix) };
    // One line each, whatever a file of the kernel said.
    format!("{word}  {:<width$}  {}{fix}", finding.name, finding.found).replace('\n', " ") + "\n"
}
