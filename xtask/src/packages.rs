//! The published crates: their packages, and the licences of their dependencies.

use crate::tool;

/// The crates that are published; all others have `publish = false`.
const CRATES: [&str; 10] = [
    "lockwright",
    "lockwright-analysis",
    "lockwright-ics",
    "lockwright-locks",
    "lockwright-model",
    "lockwright-objects",
    "lockwright-protocol",
    "lockwright-sim",
    "lockwright-study",
    "lockwright-sys",
];

/// Packages each crate, and builds it from its package and the packages of the others, in the order of their
/// dependencies.
pub fn crates() -> Result<(), String> {
    let packages: Vec<&str> = CRATES.iter().flat_map(|name| ["--package", name]).collect();
    // Cargo keeps the sources of a package by version and by this path: with a path that was used before, a crate would
    // be built with the others as they were then.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_millis();
    let folder = tool::root().join(format!("target/package-{now}"));
    let mut command = tool::cargo_command(&["package", "--locked", "--allow-dirty"]);
    let packaged = tool::run(command.args(packages).arg("--target-dir").arg(&folder));
    // What is left over takes space and does no harm.
    let _ = std::fs::remove_dir_all(&folder);
    packaged
}

/// Refuses the licences and crates that deny.toml excludes.
pub fn licences() -> Result<(), String> {
    if let Err(why) = tool::install("cargo-deny", "deny") {
        eprintln!("xtask: skipped: {why}");
        return Ok(());
    }
    tool::cargo(&["deny", "--workspace", "check", "licenses", "bans", "sources"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// The packages of the workspace, as cargo reports them.
    fn packages() -> Vec<Value> {
        let mut command = tool::cargo_command(&["metadata", "--no-deps", "--offline", "--format-version", "1"]);
        let output = command.output().expect("cargo starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        serde_json::from_value(metadata["packages"].take()).expect("packages")
    }

    fn is_published(package: &Value) -> bool {
        package["publish"].is_null()
    }

    /// The fields that a published package lacks or has wrong. `has` returns whether its directory contains a file.
    fn faults(package: &Value, has: &dyn Fn(&str) -> bool) -> Vec<String> {
        let text = |key: &str| package[key].as_str().unwrap_or_default();
        let list = |key: &str| package[key].as_array().map_or(0, Vec::len);
        let (major, minor) = tool::RUST_OLDEST;
        let address = text("repository");
        let mut faults: Vec<String> = [
            ("description", (20..=200).contains(&text("description").len())),
            ("keywords", (1..=5).contains(&list("keywords"))),
            ("categories", (1..=5).contains(&list("categories"))),
            ("license", text("license") == "MIT OR Apache-2.0"),
            ("rust-version", text("rust_version") == format!("{major}.{minor}")),
            ("documentation", text("documentation") == format!("https://docs.rs/{}", text("name"))),
            ("repository", address.is_empty() || (address.starts_with("https://") && !address.contains("example"))),
            ("readme", text("readme") == "README.md" && has("README.md")),
            (
                "docs.rs",
                package["metadata"]["docs"]["rs"]["targets"] == serde_json::json!(["x86_64-unknown-linux-gnu"]),
            ),
        ]
        .into_iter()
        .filter(|(_, is_right)| !is_right)
        .map(|(key, _)| key.to_owned())
        .collect();
        let files = ["LICENSE-MIT", "LICENSE-APACHE", "CHANGELOG.md"];
        faults.extend(files.into_iter().filter(|file| !has(file)).map(str::to_owned));
        faults
    }

    #[test]
    fn published_crates_are_described_completely() {
        let packages = packages();
        let published: Vec<&Value> = packages.iter().filter(|package| is_published(package)).collect();
        let mut names: Vec<&str> = published.iter().filter_map(|package| package["name"].as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, CRATES);
        for package in &published {
            let manifest = std::path::Path::new(package["manifest_path"].as_str().expect("a path"));
            let has = |file: &str| manifest.with_file_name(file).is_file();
            assert_eq!(faults(package, &has), [""; 0], "{}", package["name"]);
            assert_eq!(package["repository"], published[0]["repository"], "{}: repository", package["name"]);
        }
    }

    #[test]
    fn published_crates_depend_on_published_crates() {
        let packages = packages();
        for package in packages.iter().filter(|package| is_published(package)) {
            for dependency in package["dependencies"].as_array().expect("dependencies") {
                if dependency["path"].is_string() && dependency["kind"] != "dev" {
                    let name = dependency["name"].as_str().expect("a name");
                    assert!(CRATES.contains(&name), "{} depends on {name}", package["name"]);
                    assert_ne!(dependency["req"], "*", "{}: no version of {name}", package["name"]);
                }
            }
        }
    }

    /// Each field is removed or made invalid alone.
    #[test]
    fn incomplete_metadata_is_noticed() {
        let whole = packages().into_iter().find(|package| package["name"] == CRATES[0]).expect("the first crate");
        assert_eq!(faults(&whole, &|_| true), [""; 0]);
        for key in ["description", "keywords", "categories", "license", "rust_version", "documentation", "readme"] {
            let mut mutant = whole.clone();
            mutant[key] = Value::Null;
            assert_eq!(faults(&mutant, &|_| true), [key.replace('_', "-")]);
        }
        let mut mutant = whole.clone();
        mutant["repository"] = "https://example.com/lockwright".into();
        mutant["metadata"] = Value::Null;
        assert_eq!(faults(&mutant, &|_| true), ["repository", "docs.rs"]);
        assert_eq!(faults(&whole, &|_| false), ["readme", "LICENSE-MIT", "LICENSE-APACHE", "CHANGELOG.md"]);
    }
}
