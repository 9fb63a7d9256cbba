//! What is published: the crates, and what their licences permit.

use crate::tool;

/// The crates that are published, each after those it depends on.
const CRATES: [&str; 8] = [
    "lockwright-model",
    "lockwright-protocol",
    "lockwright-locks",
    "lockwright-ics",
    "lockwright-analysis",
    "lockwright-sim",
    "lockwright",
    "lockwright-study",
];

/// Packages each crate, and builds it from its package alone.
pub fn crates() -> Result<(), String> {
    let packages: Vec<&str> = CRATES.iter().flat_map(|name| ["--package", name]).collect();
    let mut command = tool::cargo_command(&["package", "--locked", "--allow-dirty"]);
    tool::run(command.args(packages).arg("--target-dir").arg(tool::root().join("target/package")))
}

/// deny.toml names the licences and crates that are refused.
pub fn licences() -> Result<(), String> {
    tool::install("cargo-deny", "deny")?;
    tool::cargo(&["deny", "check", "licenses", "bans", "sources"])
}
