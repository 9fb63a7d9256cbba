//! Formats other than TOML, recognised by their first characters, and other files of Lockwright, recognised by a table.

use crate::format::Diagnostic;

/// Returns the diagnostic of a text in a format whose files never begin as TOML does. Faults of its TOML syntax, line
/// by line, would hide the one fault that matters. `owner` names what the text should be.
///
/// ```text
///   JSON   {   /
///   XML    <                                      after comments
///   YAML   ---   %YAML   - item   key: value      after comments
/// ```
pub(super) fn foreign(source: &str, owner: &str) -> Option<Diagnostic> {
    let format = match format(source)? {
        Format::Json => "JSON",
        Format::Xml => "XML",
        Format::Yaml => "YAML",
    };
    let fault = Diagnostic::new(format!("this looks like {format}, not like {owner}"));
    Some(fault.help(format!("write {owner} as TOML")))
}

/// Like [`foreign`], for task-set files; the help names the import of the format.
pub(super) fn foreign_task_set(source: &str) -> Option<Diagnostic> {
    let help = match format(source)? {
        Format::Json => "`lockwright import rt-app FILE > system.toml` converts rt-app's JSON to a task-set file",
        Format::Xml => {
            "`lockwright import schedcat FILE > system.toml` converts a task set of SchedCAT, and `import cheddar` an \
             architecture of Cheddar; write other systems as TOML, as docs/task-set.md describes"
        }
        Format::Yaml => {
            "write the system as TOML, as docs/task-set.md describes; of other formats, `lockwright import` reads \
             rt-app's JSON, and the XML of SchedCAT and Cheddar"
        }
    };
    Some(foreign(source, TASK_SET)?.help(help))
}

/// Returns the diagnostic of a refused text that is another file of Lockwright: a task-set file has `[[task]]`, and a
/// study `[[method]]`. The list of unknown keys would hide that. `owner` names what the text should be.
pub(super) fn misplaced(source: &str, owner: &str) -> Option<Diagnostic> {
    let has = |table: &str| source.lines().any(|line| line.trim().starts_with(table));
    let (kind, help) = match (has("[[task]]"), has("[[method]]")) {
        (true, false) => (TASK_SET, "use `lockwright check FILE`"),
        (false, true) => ("a study", "use `lockwright study FILE -o DIR`"),
        _ => return None,
    };
    (kind != owner).then(|| Diagnostic::new(format!("this is {kind}, not {owner}")).help(help))
}

/// What a task-set file is in messages.
pub(super) const TASK_SET: &str = "a task-set file";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    Json,
    Xml,
    Yaml,
}

fn format(source: &str) -> Option<Format> {
    let source = source.strip_prefix('\u{feff}').unwrap_or(source);
    if source.trim_start().starts_with(['{', '/']) {
        return Some(Format::Json);
    }
    let line = source.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'))?;
    if line.starts_with('<') {
        return Some(Format::Xml);
    }
    let is_of_key = |c: char| c.is_ascii_alphanumeric() || "_-. ".contains(c);
    let value = line.trim_start_matches(is_of_key).strip_prefix(':').filter(|_| line.starts_with(is_of_key));
    let is_pair = value.is_some_and(|value| value.is_empty() || value.starts_with([' ', '\t']));
    let is_item = line == "-" || line.starts_with("- ");
    (is_pair || is_item || line.starts_with("---") || line.starts_with("%YAML")).then_some(Format::Yaml)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_formats_are_recognised_by_their_first_line() {
        for (text, is) in [
            ("{ \"tasks\": {} }", Some(Format::Json)),
            ("\n/* rt-app */ {}", Some(Format::Json)),
            ("\u{feff}{}", Some(Format::Json)),
            ("<?xml version=\"1.0\"?>", Some(Format::Xml)),
            ("\u{feff}\n  <taskset>", Some(Format::Xml)),
            ("---\ntasks:", Some(Format::Yaml)),
            ("# tasks\n\ntasks:\n  - name: a", Some(Format::Yaml)),
            ("name: camera", Some(Format::Yaml)),
            ("- name: camera", Some(Format::Yaml)),
            ("%YAML 1.2", Some(Format::Yaml)),
            ("name = \"a: b\"", None),
            ("[[task]]", None),
            ("\"a:\" = 1", None),
            ("a:b", None),
            ("-1", None),
            ("# only a comment", None),
            ("", None),
        ] {
            assert_eq!(format(text), is, "{text}");
        }
    }
}
