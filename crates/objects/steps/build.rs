//! Compiles the sources of `lockwright-objects` with counted steps.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cfg=lockwright_steps");
}
