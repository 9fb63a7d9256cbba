//! Rejects targets without the compare-and-swap that the crate needs, with one message.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let widths = std::env::var("CARGO_CFG_TARGET_HAS_ATOMIC").unwrap_or_default();
    if !["32", "ptr"].iter().all(|needed| widths.split(',').any(|width| width == *needed)) {
        println!(
            "cargo::error=the target has no compare-and-swap of 32 bits and of a pointer's width, which spinlocks need"
        );
    }
}
