//! Compiles what Rust cannot express: `suspend.c`, a call in which the thread may be cancelled, and `once.c`, a call
//! that may unwind. Sets the soname of the library.

fn main() {
    // Names that are used in this library mean its own functions.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
    // Warnings are errors only where the project is checked: a newer compiler may have new warnings.
    println!("cargo::rerun-if-env-changed=LOCKWRIGHT_REQUIRE_CC");
    let is_checked = std::env::var_os("LOCKWRIGHT_REQUIRE_CC").is_some();
    println!("cargo::rerun-if-changed=build.rs");
    // With a soname the library is the same whether it is preloaded by its name or by a path.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,liblockwright_pthread.so");
    println!("cargo::rerun-if-changed=src/suspend.c");
    // Unwinding may start at any instruction of this file.
    cc::Build::new()
        .file("src/suspend.c")
        .flag("-fasynchronous-unwind-tables")
        .warnings_into_errors(is_checked)
        .compile("suspend");
    println!("cargo::rerun-if-changed=src/once.c");
    cc::Build::new().file("src/once.c").flag("-fexceptions").warnings_into_errors(is_checked).compile("once");
}
