//! Tests that include/lockwright.h is what cbindgen generates from the sources.

use std::path::{Path, PathBuf};

/// The sources of the header, in its order.
const SOURCES: [&str; 8] =
    ["mutex.rs", "cond.rs", "deadlock.rs", "section.rs", "ics.rs", "taskset.rs", "task.rs", "fault.rs"];

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn path() -> PathBuf {
    here().join("include/lockwright.h")
}

fn generated() -> String {
    let config = cbindgen::Config::from_file(here().join("cbindgen.toml")).expect("a configuration");
    let builder = cbindgen::Builder::new().with_config(config);
    let builder = SOURCES.iter().fold(builder, |builder, file| builder.with_src(here().join("src").join(file)));
    let mut text = Vec::new();
    builder.generate().expect("sources that cbindgen can read").write(&mut text);
    String::from_utf8(text).expect("text")
}

#[test]
fn the_committed_header_is_up_to_date() {
    let generated = generated();
    if std::env::var_os("LOCKWRIGHT_WRITE_HEADER").is_some() {
        std::fs::write(path(), &generated).expect("can be written");
    }
    let committed = std::fs::read_to_string(path()).unwrap_or_default();
    assert!(committed == generated, "include/lockwright.h is out of date; regenerate it with `cargo xtask header`");
}

/// Every function that C can call is in the header, so no source is missing in the list above.
#[test]
fn every_exported_function_is_in_the_header() {
    let header = generated();
    let mut count = 0;
    for file in std::fs::read_dir(here().join("src")).expect("a folder") {
        let text = std::fs::read_to_string(file.expect("a file").path()).expect("text");
        for line in text.lines() {
            let Some(rest) = line.strip_prefix("pub unsafe extern \"C\" fn ") else { continue };
            let name = rest.split('(').next().expect("a name");
            assert!(header.contains(&format!("{name}(")), "{name}");
            count += 1;
        }
    }
    assert!(count >= 25, "only {count} functions were found");
}
