//! Checks that no source files of a crate import each other in a circle.
//!
//! A file imports another one if a path in its code leads to an item of that file. Re-exports are followed to the file
//! that defines the item. Code under `#[cfg(test)]` does not count. Method calls do not count either, because they name
//! no file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A module path from the root of the crate.
type Module = Vec<String>;

/// The source files of one crate.
#[derive(Default)]
struct Crate {
    /// The tokens of each module, without comments, strings and tests.
    modules: BTreeMap<Module, Vec<String>>,
    /// The names that a module imports or exports, and the paths behind them. Globs have the name `*`.
    imports: BTreeMap<Module, Vec<(String, Module)>>,
    /// The file of each module. A module inside a file has that file.
    files: BTreeMap<Module, String>,
}

/// Splits source text into words and signs, without comments, strings, characters and lifetimes. `::` is one sign.
fn tokens(source: &str) -> Vec<String> {
    let (text, mut at, mut found): (Vec<char>, _, _) = (source.chars().collect(), 0, Vec::new());
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    // BOUND: `at` grows in each round.
    while at < text.len() {
        let rest = &text[at..];
        let length = match rest {
            ['/', '/', ..] => rest.iter().position(|&c| c == '\n').unwrap_or(rest.len()),
            ['/', '*', ..] => rest.windows(2).position(|pair| pair == ['*', '/']).map_or(rest.len(), |end| end + 2),
            ['r', '"' | '#', ..] if rest[1..].iter().find(|&&c| c != '#') == Some(&'"') => {
                let hashes = rest[1..].iter().take_while(|&&c| c == '#').count();
                let end = [&['"'][..], &vec!['#'; hashes]].concat();
                let body = 2 + hashes;
                rest[body..]
                    .windows(end.len())
                    .position(|part| part == end)
                    .map_or(rest.len(), |e| body + e + end.len())
            }
            ['"', ..] => {
                let mut end = 1;
                // BOUND: `end` grows in each round.
                while end < rest.len() && rest[end] != '"' {
                    end += if rest[end] == '\\' { 2 } else { 1 };
                }
                end + 1
            }
            ['\'', '\\', ..] => rest[3..].iter().position(|&c| c == '\'').map_or(rest.len(), |end| end + 4),
            ['\'', _, '\'', ..] => 3,
            ['\'', ..] => 1 + rest[1..].iter().position(|&c| !is_word(c)).unwrap_or(rest.len() - 1),
            [':', ':', ..] => 2,
            [c, ..] if is_word(*c) => rest.iter().position(|&c| !is_word(c)).unwrap_or(rest.len()),
            _ => 1,
        };
        let is_sign = "{}()[],;#!$*=<>".contains(rest[0]) || length == 2 && rest[0] == ':';
        if is_sign || rest[..length].iter().all(|&c| is_word(c)) {
            found.push(rest[..length].iter().collect());
        }
        at += length.max(1);
    }
    found
}

/// The index after the bracket that closes the one at `open`.
fn closed(tokens: &[String], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// The index after the item that begins at `at`.
fn item_end(tokens: &[String], at: usize) -> usize {
    let ends = |token: &String| token == ";" || token == "{";
    let is_use = tokens[at..].iter().take(6).take_while(|token| !ends(token)).any(|token| token == "use");
    match tokens[at..].iter().position(|token| token == ";" || token == "{" && !is_use) {
        Some(offset) if tokens[at + offset] == "{" => closed(tokens, at + offset),
        Some(offset) => at + offset + 1,
        None => tokens.len(),
    }
}

/// Reads the tree after `use` as pairs of a name and a path. Returns the index after it.
fn use_tree(tokens: &[String], mut at: usize, mut path: Module, found: &mut Vec<(String, Module)>) -> usize {
    // BOUND: `at` grows in each round.
    while at < tokens.len() {
        match tokens[at].as_str() {
            "::" | "$" => at += 1,
            "{" => {
                let end = closed(tokens, at);
                at += 1;
                // BOUND: `at` grows in each round.
                while at + 1 < end {
                    at = use_tree(tokens, at, path.clone(), found) + 1;
                }
                return end;
            }
            "as" => {
                found.push((tokens[at + 1].clone(), path));
                return at + 2;
            }
            "," | ";" | "}" => {
                let name = path.last().cloned().unwrap_or_default();
                found.push((name, path));
                return at;
            }
            "self" if !path.is_empty() => at += 1,
            word => {
                path.push(word.to_owned());
                at += 1;
            }
        }
    }
    at
}

impl Crate {
    /// Reads a crate from its root. `read` returns the text of a file.
    fn read(root: &Path, read: &dyn Fn(&Path) -> Option<String>) -> Self {
        let mut found = Self::default();
        found.add_file(Module::new(), root, root.parent().expect("a folder"), root.parent().expect("a folder"), read);
        found
    }

    fn add_file(
        &mut self,
        module: Module,
        file: &Path,
        folder: &Path,
        top: &Path,
        read: &dyn Fn(&Path) -> Option<String>,
    ) {
        let Some(source) = read(file) else { return };
        let name = file.strip_prefix(top).unwrap_or(file).display().to_string();
        self.add(module, &tokens(&source), &name, folder, top, read);
    }

    /// Adds a module and the modules inside it. `folder` is the directory of their files.
    fn add(
        &mut self,
        module: Module,
        tokens: &[String],
        file: &str,
        folder: &Path,
        top: &Path,
        read: &dyn Fn(&Path) -> Option<String>,
    ) {
        self.files.insert(module.clone(), file.to_owned());
        let (mut own, mut imports, mut at, mut is_test) = (Vec::new(), Vec::new(), 0, false);
        // BOUND: `at` grows in each round.
        while at < tokens.len() {
            let next = |offset: usize| tokens.get(at + offset).map_or("", String::as_str);
            match tokens[at].as_str() {
                "#" if next(1) == "[" => {
                    let end = closed(tokens, at + 1);
                    let words = &tokens[at..end];
                    is_test |= words.iter().any(|word| word == "cfg")
                        && words.windows(3).any(|words| words[2] == "test" && words[0] != "not");
                    at = end;
                }
                "mod" if next(2) == ";" => {
                    let child = [&module[..], &[next(1).to_owned()]].concat();
                    let (flat, deep) = (format!("{}.rs", next(1)), format!("{}/mod.rs", next(1)));
                    let inner = folder.join(next(1));
                    for path in [flat, deep] {
                        self.add_file(child.clone(), &folder.join(path), &inner, top, read);
                    }
                    (at, is_test) = (at + 3, false);
                }
                "mod" if next(2) == "{" => {
                    let end = closed(tokens, at + 2);
                    if !is_test {
                        let child = [&module[..], &[next(1).to_owned()]].concat();
                        self.add(child, &tokens[at + 3..end - 1], file, &folder.join(next(1)), top, read);
                    }
                    (at, is_test) = (end, false);
                }
                // A visibility is not an import.
                "pub" if next(1) == "(" => at = closed(tokens, at + 1),
                _ if is_test => (at, is_test) = (item_end(tokens, at), false),
                "use" if next(1) != "<" => at = use_tree(tokens, at + 1, Module::new(), &mut imports),
                word => {
                    own.push(word.to_owned());
                    at += 1;
                }
            }
        }
        self.modules.insert(module.clone(), own);
        self.imports.insert(module, imports);
    }

    /// Whether a module defines an item with this name.
    fn defines(&self, module: &Module, name: &str) -> bool {
        let kinds = ["struct", "enum", "union", "fn", "trait", "type", "const", "static", "macro_rules", "mod"];
        let Some(tokens) = self.modules.get(module) else { return false };
        tokens.iter().enumerate().any(|(at, word)| {
            word == name
                && at > 0
                && (kinds.contains(&tokens[at - 1].as_str()) || at > 1 && tokens[at - 2] == "macro_rules")
        })
    }

    /// The module of the item to which a path in `from` leads. Returns `None` for an item of another crate or a local
    /// name.
    fn resolve(&self, from: &Module, path: &[String], depth: usize) -> Option<Module> {
        let (mut module, mut at) = match path.first()?.as_str() {
            "crate" => (Module::new(), 1),
            "self" => (from.clone(), 1),
            "super" => (from.clone(), 0),
            first if self.files.contains_key(&[&from[..], &[first.to_owned()]].concat()) => (from.clone(), 0),
            _ => return None,
        };
        // BOUND: each step consumes a part of the path.
        while path.get(at).is_some_and(|part| part == "super") {
            module.pop()?;
            at += 1;
        }
        while let Some(part) = path.get(at) {
            let child = [&module[..], std::slice::from_ref(part)].concat();
            if self.files.contains_key(&child) {
                module = child;
                at += 1;
                continue;
            }
            if part == "*" || self.defines(&module, part) || depth == 0 {
                break;
            }
            let imports = self.imports.get(&module)?;
            let behind = imports.iter().find(|(name, _)| name == part).map(|(_, path)| path.clone());
            let globs = imports.iter().filter(|(name, _)| name == "*").map(|(_, path)| path[..path.len() - 1].to_vec());
            let target = behind.and_then(|path| self.resolve(&module, &path, depth - 1)).or_else(|| {
                globs.filter_map(|path| self.resolve(&module, &path, depth - 1)).find(|seen| self.defines(seen, part))
            });
            return target.or_else(|| (!module.is_empty()).then_some(module));
        }
        Some(module)
    }

    /// The imports between files: for each file, the files that it imports.
    fn arrows(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut arrows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (module, tokens) in &self.modules {
            let mut paths: Vec<Module> = self.imports[module].iter().map(|(_, path)| path.clone()).collect();
            let mut at = 0;
            // BOUND: `at` grows in each round.
            while at < tokens.len() {
                let mut path = vec![tokens[at].clone()];
                at += 1;
                while tokens.get(at).is_some_and(|sign| sign == "::") && at + 1 < tokens.len() {
                    path.push(tokens[at + 1].clone());
                    at += 2;
                }
                if path.len() > 1 {
                    paths.push(path);
                }
            }
            let file = &self.files[module];
            for target in paths.iter().filter_map(|path| self.resolve(module, path, 8)) {
                if self.files[&target] != *file {
                    arrows.entry(file.clone()).or_default().insert(self.files[&target].clone());
                }
            }
        }
        arrows
    }
}

/// The sets of files that reach each other.
fn circles(arrows: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<Vec<String>> {
    let reached = |from: &String| {
        let (mut seen, mut todo) = (BTreeSet::new(), vec![from]);
        // BOUND: each file enters `seen` once.
        while let Some(file) = todo.pop() {
            todo.extend(arrows.get(file).into_iter().flatten().filter(|next| seen.insert((*next).clone())));
        }
        seen
    };
    let all: BTreeMap<&String, BTreeSet<String>> = arrows.keys().map(|file| (file, reached(file))).collect();
    let circle = |file: &String| {
        let back = |other: &&String| all.get(other).is_some_and(|seen| seen.contains(file));
        all[file].iter().filter(back).cloned().collect::<Vec<_>>()
    };
    arrows.keys().map(circle).filter(|circle| !circle.is_empty()).collect()
}

/// The root files of all crates, with the names of their directories.
fn roots() -> Vec<(String, PathBuf)> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut crates: Vec<PathBuf> = vec![top.join("scenarios"), top.join("xtask")];
    for folder in ["crates", "bindings"] {
        crates.extend(fs::read_dir(top.join(folder)).expect("a folder").map(|entry| entry.expect("an entry").path()));
    }
    crates.sort();
    let name = |path: &Path| path.strip_prefix(&top).expect("below").display().to_string();
    let sources = |path: &PathBuf| {
        ["src/lib.rs", "src/main.rs"]
            .map(|root| (name(path), path.join(root)))
            .into_iter()
            .filter(|(_, root)| root.is_file())
    };
    crates.iter().flat_map(sources).collect()
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let mut found = Vec::new();
    for (name, root) in roots() {
        let read = Crate::read(&root, &|path| fs::read_to_string(path).ok());
        assert!(!read.files.is_empty(), "no file of {name} was read");
        let arrows = read.arrows();
        for circle in circles(&arrows) {
            for file in &circle {
                let to: Vec<&str> = arrows[file].iter().filter(|to| circle.contains(to)).map(String::as_str).collect();
                found.push(format!("{name}: {file} imports {}", to.join(", ")));
            }
        }
    }
    assert!(found.is_empty(), "files in circles:\n{}", found.join("\n"));
}

/// The circles in a crate of these files.
fn circles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let read = |path: &Path| files.iter().find(|(name, _)| Path::new(name) == path).map(|(_, text)| (*text).to_owned());
    circles(&Crate::read(Path::new("lib.rs"), &read).arrows()).into_iter().collect()
}

#[test]
fn a_circle_is_noticed() {
    let root = ("lib.rs", "mod a;\nmod b;\npub use a::A;");
    let plain = ("b.rs", "pub struct B;");
    assert!(circles_of(&[root, ("a.rs", "use crate::b::B;\npub struct A(B);"), plain]).is_empty());
    // Through the root's re-export, through `super` in an expression, in a tree of imports, and through a glob.
    for back in ["use crate::A;", "fn f() { super::a::g() }", "use crate::{a::{A as C}};", "use super::a::*;"] {
        let circle = circles_of(&[root, ("a.rs", "use crate::b::B;\npub struct A(B);"), ("b.rs", back)]);
        assert_eq!(circle, [["a.rs", "b.rs"]], "{back}");
    }
    // Comments, strings, visibilities and tests import nothing.
    for none in [
        "// crate::a::A",
        "pub(in crate::a) struct B;",
        "const S: &str = \"crate::a::A\";",
        "#[cfg(test)]\nmod tests { use crate::a::A; }",
    ] {
        assert!(
            circles_of(&[root, ("a.rs", "use crate::b::B;\npub struct A(B);"), ("b.rs", none)]).is_empty(),
            "{none}"
        );
    }
    // A module and the folder below it.
    let files = [("lib.rs", "mod a;"), ("a/mod.rs", "mod c;\nuse c::C;\npub fn f() {}"), ("a/c.rs", "use super::f;")];
    assert_eq!(circles_of(&files), [["a/c.rs", "a/mod.rs"]]);
}
