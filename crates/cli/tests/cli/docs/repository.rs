//! The items that documents mention: files, packages and chores.

use super::markdown::Document;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The repository.
pub struct Repository {
    pub root: PathBuf,
    /// As `cargo metadata` has them.
    packages: Vec<Value>,
    chores: String,
    deep: String,
}

impl Repository {
    /// The repository of this test.
    pub fn here() -> &'static Self {
        static HERE: OnceLock<Repository> = OnceLock::new();
        HERE.get_or_init(|| {
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("is there");
            let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
            cargo.args(["metadata", "--no-deps", "--format-version", "1", "--offline"]).current_dir(&root);
            let output = cargo.output().expect("cargo starts");
            let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo describes the packages");
            let packages = metadata["packages"].as_array().expect("has packages").clone();
            let source = |file: &str| std::fs::read_to_string(root.join("xtask/src").join(file)).expect("is there");
            let (chores, deep) = (source("main.rs"), source("deep.rs"));
            Self { root, packages, chores, deep }
        })
    }

    /// Every Markdown file, without those that are links to others.
    pub fn documents(&self) -> Vec<Document> {
        let mut folders = vec![PathBuf::new()];
        let mut documents = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(self.root.join(&folder)).expect("can be listed") {
                let entry = entry.expect("can be listed");
                let path = folder.join(entry.file_name());
                let kind = entry.file_type().expect("is known");
                if kind.is_dir()
                    && !["target", "corpus", ".git"].contains(&entry.file_name().to_string_lossy().as_ref())
                {
                    folders.push(path);
                } else if kind.is_file() && path.extension().is_some_and(|extension| extension == "md") {
                    documents.extend(self.document(&path));
                }
            }
        }
        documents
    }

    /// The Markdown file at a path.
    pub fn document(&self, path: &Path) -> Option<Document> {
        let text = std::fs::read_to_string(self.root.join(path)).ok()?;
        Some(Document::new(path.to_owned(), text))
    }

    /// Whether `cargo xtask` has this chore.
    pub fn has_chore(&self, name: &str) -> bool {
        self.chores.contains(&format!("(\"{name}\",")) || self.chores.contains(&format!("(\n        \"{name}\","))
    }

    /// Whether `cargo xtask test --deep` has this check.
    pub fn has_deep_check(&self, name: &str) -> bool {
        self.deep.contains(&format!("(\"{name}\",")) || self.deep.contains(&format!("(\n        \"{name}\","))
    }

    /// Packages of this name, or all.
    fn packages(&self, name: Option<&str>) -> impl Iterator<Item = &Value> {
        self.packages.iter().filter(move |package| name.is_none_or(|name| package["name"] == name))
    }

    pub fn has_package(&self, name: &str) -> bool {
        self.packages(Some(name)).next().is_some()
    }

    /// Whether a package, or any, has a target of a kind such as "test" under this name.
    pub fn has_target(&self, package: Option<&str>, kind: &str, name: &str) -> bool {
        let is_meant = |target: &Value| target["name"] == name && target["kind"][0] == kind;
        self.packages(package).filter_map(|package| package["targets"].as_array()).flatten().any(is_meant)
    }

    /// Whether a package, or any, has this feature.
    pub fn has_feature(&self, package: Option<&str>, name: &str) -> bool {
        self.packages(package).any(|package| package["features"].get(name).is_some())
    }
}
