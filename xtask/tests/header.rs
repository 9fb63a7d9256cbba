//! Tests that bindings/c/include/lockwright.h is what cbindgen generates from the sources.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The sources of the header, in its order.
const SOURCES: [&str; 21] = [
    "mutex.rs",
    "counted.rs",
    "cond.rs",
    "fifo.rs",
    "rwlock.rs",
    "sem.rs",
    "barrier.rs",
    "once.rs",
    "deadlock.rs",
    "section.rs",
    "ics_types.rs",
    "ics.rs",
    "object.rs",
    "buffer.rs",
    "queue.rs",
    "pqueue.rs",
    "taskset.rs",
    "statistics.rs",
    "trace.rs",
    "task.rs",
    "fault.rs",
];

/// The package of the C library.
fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../bindings/c")
}

fn path() -> PathBuf {
    package().join("include/lockwright.h")
}

/// Writes the pointers of `argument.rs` as C sees them: cbindgen does not see through types with parameters.
fn with_plain_pointers(source: &str) -> String {
    let mut text = source.to_owned();
    for (ours, plain) in [("Const<'_, ", "*const "), ("Mut<'_, ", "*mut ")] {
        while let Some((before, rest)) = text.split_once(ours) {
            let (pointee, after) = rest.split_once('>').expect("the end of a type");
            text = format!("{before}{plain}{pointee}{after}");
        }
    }
    text
}

fn generated() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(generate);
    &TEXT
}

fn generate() -> String {
    let config = cbindgen::Config::from_file(package().join("cbindgen.toml")).expect("a configuration");
    let builder = cbindgen::Builder::new().with_config(config);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("header-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let builder = SOURCES.iter().fold(builder, |builder, file| {
        let source = std::fs::read_to_string(package().join("src").join(file)).expect("a source");
        std::fs::write(folder.join(file), with_plain_pointers(&source)).expect("can be written");
        builder.with_src(folder.join(file))
    });
    let mut text = Vec::new();
    builder.generate().expect("sources that cbindgen can read").write(&mut text);
    std::fs::remove_dir_all(&folder).expect("can be removed");
    String::from_utf8(text).expect("text")
}

#[test]
fn the_committed_header_is_up_to_date() {
    let generated = generated();
    if std::env::var_os("LOCKWRIGHT_WRITE_HEADER").is_some() {
        std::fs::write(path(), generated).expect("can be written");
    }
    let committed = std::fs::read_to_string(path()).unwrap_or_default();
    assert!(
        committed == generated,
        "bindings/c/include/lockwright.h is out of date; regenerate it with `cargo xtask header`"
    );
}

/// Programs use the names of earlier versions. A name may get another meaning only under another name.
#[test]
fn no_name_of_an_earlier_version_has_disappeared() {
    let header = std::fs::read_to_string(path()).expect("the header");
    let names: std::collections::HashSet<&str> =
        header.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    let known = include_str!("../../bindings/c/tests/compat/0.1.0/names.txt");
    let missing: Vec<&str> = known.lines().filter(|name| !names.contains(name)).collect();
    assert!(known.lines().count() > 100 && missing.is_empty(), "{missing:?} are in no line of the header");
}

/// Every function that C can call is in the header, so no source is missing in the list above.
#[test]
fn every_exported_function_is_in_the_header() {
    let header = generated();
    let mut count = 0;
    for file in std::fs::read_dir(package().join("src")).expect("a folder") {
        let text = std::fs::read_to_string(file.expect("a file").path()).expect("text");
        for line in text.lines() {
            let exported = ["C", "C-unwind"].map(|abi| line.strip_prefix(&format!("pub unsafe extern \"{abi}\" fn ")));
            let Some(rest) = exported.into_iter().flatten().next() else { continue };
            let name = rest.split('(').next().expect("a name");
            assert!(header.contains(&format!("{name}(")), "{name}");
            count += 1;
        }
    }
    assert!(count >= 25, "only {count} functions were found");
}
