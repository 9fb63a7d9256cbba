//! Compiles what Rust cannot say: a call out of which the thread may be cancelled.

fn main() {
    println!("cargo::rerun-if-changed=src/suspend.c");
    // Unwinding starts inside it, at any instruction.
    cc::Build::new()
        .file("src/suspend.c")
        .flag("-fasynchronous-unwind-tables")
        .warnings_into_errors(true)
        .compile("suspend");
}
