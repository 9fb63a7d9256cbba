//! The ring, whose own tests are executed here: a test executable of the library would record itself.
#![cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
#![allow(dead_code, unused_imports)]

#[path = "../src/clock.rs"]
mod clock;
#[path = "../src/ring.rs"]
mod ring;
