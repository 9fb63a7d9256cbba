//! Unmodified programs, recorded: each kind of event comes out with the right order, object and owner.
//!
//! Without a compiler they are skipped with a message; LOCKWRIGHT_REQUIRE_CC=1 makes that a failure.
#![cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]

mod programs {
    mod ends;
    mod holder;
    mod input;
    mod itself;
    mod kinds;
    mod load;
    mod overload;
    mod ros;
    mod support;
}
