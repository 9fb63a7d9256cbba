//! Compiles what Rust cannot say: a call out of which the thread may be cancelled. And the name the loader knows the library by.

fn main() {
    // Where the project is checked, and not where a newer compiler warns of something else.
    println!("cargo::rerun-if-env-changed=LOCKWRIGHT_REQUIRE_CC");
    let is_checked = std::env::var_os("LOCKWRIGHT_REQUIRE_CC").is_some();
    println!("cargo::rerun-if-changed=build.rs");
    // Preloaded by its name or by a path, it is the same library.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,liblockwright_pthread.so");
    println!("cargo::rerun-if-changed=src/suspend.c");
    // Unwinding starts inside it, at any instruction.
    cc::Build::new()
        .file("src/suspend.c")
        .flag("-fasynchronous-unwind-tables")
        .warnings_into_errors(is_checked)
        .compile("suspend");
}
