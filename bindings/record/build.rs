//! Sets the soname of the library.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Names that are used in this library mean its own functions.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,liblockwright_recorder.so");
}
