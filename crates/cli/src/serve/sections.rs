//! The critical sections of a task-set file, and where their lengths are in its text.

use lockwright_model::Duration;
use serde::Serialize;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The greatest number of sections: a page with more sliders helps nobody.
const SECTIONS_MAX: usize = 100;

/// A time in the text. Its place has the quotation marks, and counts as a browser does, in units of UTF-16.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Time {
    /// The length.
    pub ns: u64,
    /// Its beginning and its end.
    pub place: [usize; 2],
}

/// The time for which a job holds resources without a change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Section {
    /// The task.
    pub task: String,
    /// The resources, in the order in which it requests them.
    pub resources: String,
    /// The length.
    #[serde(flatten)]
    pub length: Time,
    /// How often a job executes it.
    pub count: u64,
    /// The execution time of the job, where the text gives it: it contains the section.
    pub wcet: Option<Time>,
}

/// The sections of a valid text, in its order. Of a text that is not TOML, there are none.
#[must_use]
pub fn sections(text: &str) -> Vec<Section> {
    let Ok(tree) = DeTable::parse(text) else { return Vec::new() };
    let tasks = entries(tree.get_ref(), "task");
    tasks.flat_map(|task| of_task(text, task)).take(SECTIONS_MAX).collect()
}

fn of_task(text: &str, task: &DeTable<'_>) -> Vec<Section> {
    let Some(name) = string(task, "name") else { return Vec::new() };
    let wcet = task.get("wcet").and_then(|found| time(text, found));
    let section = |resources: String, length: Time, count: u64| Section {
        task: name.to_owned(),
        resources,
        length,
        count,
        wcet: wcet.clone(),
    };
    let mut found = Vec::new();
    for request in entries(task, "requests") {
        let count = request.get("count").and_then(|count| count.get_ref().as_integer()?.as_str().parse().ok());
        if let (Some(resource), Some(length)) = (string(request, "resource"), request.get("length"))
            && let Some(length) = time(text, length)
        {
            found.push(section(resource.to_owned(), length, count.unwrap_or(1)));
        }
    }
    let mut held: Vec<&str> = Vec::new();
    for step in entries(task, "body") {
        if let Some(resource) = string(step, "lock") {
            held.push(resource);
        } else if string(step, "unlock").is_some() {
            held.pop();
        } else if let Some(length) = step.get("run").and_then(|run| time(text, run)).filter(|_| !held.is_empty()) {
            found.push(section(held.join(", "), length, 1));
        }
    }
    found
}

/// The tables of a list.
fn entries<'a, 'i>(table: &'a DeTable<'i>, key: &str) -> impl Iterator<Item = &'a DeTable<'i>> {
    let list = table.get(key).and_then(|list| list.get_ref().as_array());
    list.into_iter().flat_map(|list| list.iter()).filter_map(|entry| entry.get_ref().as_table())
}

fn string<'a>(table: &'a DeTable<'_>, key: &str) -> Option<&'a str> {
    table.get(key)?.get_ref().as_str()
}

fn time(text: &str, found: &Spanned<DeValue<'_>>) -> Option<Time> {
    let length = Duration::parse(found.get_ref().as_str()?).ok()?;
    Some(Time { ns: length.as_ns(), place: place(text, found.span())? })
}

fn place(text: &str, span: Range<usize>) -> Option<[usize; 2]> {
    let units = |text: &str| if text.is_ascii() { text.len() } else { text.encode_utf16().count() };
    let from = units(text.get(..span.start)?);
    Some([from, from + units(text.get(span)?)])
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
# größer als ein Zeichen: 🚀
[[task]]
name = "requests"
wcet = "2 ms"
requests = [{ resource = "a", count = 2, length = "15 us" }, { length = 'x', resource = "b" }]
[[task]]
name = "body"
body = [{ run = "1 ms" }, { lock = "a" }, { run = "2 us" }, { lock = "b" }, { run = '3 us' }, { unlock = "b" }, { unlock = "a" }]
"#;

    #[test]
    fn lengths_are_found_where_the_browser_counts_them() {
        let units: Vec<u16> = TEXT.encode_utf16().collect();
        let at = |time: &Time| String::from_utf16(&units[time.place[0]..time.place[1]]).expect("whole characters");
        let found = sections(TEXT);
        let told: Vec<_> = found.iter().map(|one| (one.resources.as_str(), one.count, at(&one.length))).collect();
        assert_eq!(told, [("a", 2, "\"15 us\"".into()), ("a", 1, "\"2 us\"".into()), ("a, b", 1, "'3 us'".to_owned())]);
        assert_eq!(found[0].wcet.as_ref().map(|wcet| (wcet.ns, at(wcet))), Some((2_000_000, "\"2 ms\"".into())));
        assert_eq!((found[0].length.ns, &found[1].wcet), (15_000, &None));
    }

    #[test]
    fn texts_without_sections_have_none() {
        for text in ["", "[[task]]", "not toml", "task = 1", "[[task]]\nname = \"a\"\nrequests = 7"] {
            assert_eq!(sections(text), [], "{text}");
        }
    }
}
