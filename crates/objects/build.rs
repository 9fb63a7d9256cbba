//! Rejects targets without the compare-and-swap that the crate needs, with one message.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let widths = std::env::var("CARGO_CFG_TARGET_HAS_ATOMIC").unwrap_or_default();
    if !widths.split(',').any(|width| width == "64") {
        println!("cargo::error=the target has no 64-bit compare-and-swap, which lock-free objects need");
    }
}
