//! Checks that the public structs of the published crates can get further fields, or say that they do not.

use std::fs;
use std::path::{Path, PathBuf};

/// The sentence in the documentation of a struct that users write as a literal.
const PLAIN: &str = "This is a plain value: users write it as a literal, and it gets no further fields.";

/// Collects the Rust sources below a directory, except those of tests.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
            found.push(path);
        }
    }
}

/// The directories of the crates that are published: their manifests do not take over `publish = false`.
fn published(crates: &Path) -> Vec<PathBuf> {
    let folders = fs::read_dir(crates).expect("a folder").map(|entry| entry.expect("an entry").path());
    let is_published = |folder: &PathBuf| {
        let manifest = fs::read_to_string(folder.join("Cargo.toml"));
        manifest.is_ok_and(|manifest| !manifest.contains("publish.workspace"))
    };
    folders.filter(is_published).collect()
}

/// The fields of a struct: the lines of a formatted declaration, or the parts of one that is in parentheses.
fn fields(declaration: &[&str]) -> Vec<String> {
    let first = declaration[0];
    if let (Some(start), Some(end)) = (first.find('('), first.rfind(");")) {
        return first[start + 1..end].split(", ").map(str::to_owned).collect();
    }
    let start = declaration.iter().position(|line| line.ends_with('{')).unwrap_or(0) + 1;
    let lines = declaration[start..].iter().map(|line| line.trim());
    lines.filter(|line| !line.starts_with(['/', '#', '}']) && line.contains(": ")).map(str::to_owned).collect()
}

/// The names of the public structs that users can write as a literal although nothing says that they are complete.
fn open_structs(source: &str) -> Vec<String> {
    let lines: Vec<&str> = source.lines().collect();
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some(name) = line.trim_start().strip_prefix("pub struct ") else { continue };
        let indent = line.len() - line.trim_start().len();
        let is_end = |line: &&str| line.ends_with(';') || (line.trim() == "}" && line.len() == indent + 1);
        let length = if line.ends_with([';', '}']) { 0 } else { lines[index..].iter().position(is_end).unwrap_or(0) };
        let fields = fields(&lines[index..=index + length]);
        let above = lines[..index].iter().rev().map(|line| line.trim());
        let above: Vec<&str> = above.take_while(|line| line.starts_with("///") || line.starts_with('#')).collect();
        let is_open = !fields.is_empty() && fields.iter().all(|field| field.starts_with("pub "));
        if is_open && !above.contains(&"#[non_exhaustive]") && !above.iter().any(|line| line.ends_with(PLAIN)) {
            found
                .push(name.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '$').next().unwrap_or(name).into());
        }
    }
    found
}

#[test]
fn public_structs_can_get_fields() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let published = published(&crates);
    assert_eq!(published.len(), 10, "the crates of `xtask/src/packages.rs`");
    let (mut files, mut open, mut plain) = (Vec::new(), Vec::new(), 0);
    published.iter().for_each(|folder| sources(&folder.join("src"), &mut files));
    for file in &files {
        let source = fs::read_to_string(file).expect("a source");
        plain += source.matches(PLAIN).count();
        open.extend(open_structs(&source).into_iter().map(|name| format!("{name} in {}", file.display())));
    }
    assert!(plain > 10, "the sentence has changed");
    assert!(
        open.is_empty(),
        "a new field would break users of these structs; make them `#[non_exhaustive]`, or write \"{PLAIN}\" into their \
         documentation:\n{}",
        open.join("\n")
    );
}

#[test]
fn an_open_struct_is_noticed() {
    let open = "/// A job.\n#[derive(Debug)]\npub struct Job {\n    /// Its cost.\n    pub cost: u64,\n}\n";
    assert_eq!(open_structs(open), ["Job"]);
    assert_eq!(open_structs("pub struct Id(pub u16);\n    pub struct $name(pub A, pub B<C>);"), ["Id", "$name"]);
    assert_eq!(open_structs("pub struct Job<T>\nwhere\n    T: Copy,\n{\n    pub cost: T,\n}\n"), ["Job"]);
    for change in [
        ("#[derive(Debug)]", "#[non_exhaustive]"),
        ("/// A job.", &format!("/// A job.\n///\n/// {PLAIN}")),
        ("    pub cost", "    cost"),
        ("    pub cost", "    pub(crate) cost"),
        ("pub struct", "pub(crate) struct"),
        ("    pub cost: u64,\n", ""),
    ] {
        let closed = open.replace(change.0, change.1);
        assert_ne!(closed, open);
        assert_eq!(open_structs(&closed), [""; 0], "{closed}");
    }
    let private = ["pub struct Id(u16);", "pub struct Id(pub u16, u8);", "pub struct Unit;", "pub struct Empty {}"];
    private.iter().for_each(|source| assert_eq!(open_structs(source), [""; 0], "{source}"));
}
