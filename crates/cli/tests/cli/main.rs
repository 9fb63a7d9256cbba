//! The binary as a user meets it: small files in, streams and exit statuses out.

mod check;
mod compat;
mod completions;
mod docs;
mod edf;
mod export;
mod files;
mod global;
mod input;
mod machine;
mod measure;
mod overheads;
mod pages;
mod pictures;
/// Turns on the real-time machine, shared with the runtime's own tests.
#[path = "../../../sys/tests/support/machine.rs"]
mod realtime;
mod record;
mod schema;
#[cfg(feature = "serve")]
mod serve;
mod simulate;
mod streams;
mod studies;
mod study;
mod support;
mod tutorial;
mod watch;
mod widths;
