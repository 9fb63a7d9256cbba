//! Links the shared library, and compiles `cut.c`, which Rust cannot express: a call that a signal may end early.

fn main() {
    // Warnings are errors only where the project is checked: a newer compiler may have new warnings.
    println!("cargo::rerun-if-env-changed=LOCKWRIGHT_REQUIRE_CC");
    let is_checked = std::env::var_os("LOCKWRIGHT_REQUIRE_CC").is_some();
    println!("cargo::rerun-if-changed=build.rs");
    // Before 1.0 each minor version may change the layout of a type, so the name contains the minor version.
    let (major, minor) = (env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"));
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,liblockwright.so.{major}.{minor}");
    // Threads that wait, and threads with thread-local state, outlive a dlclose.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=src/cut.c");
    cc::Build::new().file("src/cut.c").std("gnu11").warnings_into_errors(is_checked).compile("lockwright_cut");
}
