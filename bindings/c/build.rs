//! Linking of the shared library, and what Rust cannot say: a call out of which a signal comes back early.

fn main() {
    // Where the project is checked, and not where a newer compiler warns of something else.
    println!("cargo::rerun-if-env-changed=LOCKWRIGHT_REQUIRE_CC");
    let is_checked = std::env::var_os("LOCKWRIGHT_REQUIRE_CC").is_some();
    println!("cargo::rerun-if-changed=build.rs");
    // Before 1.0 each minor version may change the layout of a type: the name says which one a program was built with.
    let (major, minor) = (env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"));
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,liblockwright.so.{major}.{minor}");
    // Threads that wait, and threads with thread-local state, outlive a dlclose.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=src/cut.c");
    cc::Build::new().file("src/cut.c").std("gnu11").warnings_into_errors(is_checked).compile("lockwright_cut");
}
