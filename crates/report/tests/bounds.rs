//! Pictures of bounds.

use lockwright_model::Duration;
use lockwright_report::Place;
use lockwright_report::bounds::{Bar, Cause, Row, Term, draw};

fn term(cause: Cause, by: Option<&str>, ms: u64) -> Term {
    Term { cause, by: by.map(Into::into), resource: by.map(|_| "bus".into()), total: Duration::from_ms(ms) }
}

fn bar(protocol: &str, response_ms: Option<u64>, deadline_ms: u64) -> Bar {
    Bar {
        protocol: protocol.into(),
        response: response_ms.map(Duration::from_ms),
        proved: response_ms.is_some_and(|response| response <= deadline_ms),
        terms: vec![
            term(Cause::Execution, None, 2),
            term(Cause::Local, Some("low"), 3),
            term(Cause::Interference, Some("high"), response_ms.unwrap_or(5) - 5),
        ],
    }
}

fn row(task: &str, deadline_ms: u64, bars: Vec<Bar>) -> Row {
    Row { task: task.into(), deadline: Duration::from_ms(deadline_ms), bars }
}

/// Attribute of an element as a number.
fn number(node: roxmltree::Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name).and_then(|text| text.parse().ok()).expect(name)
}

#[test]
fn bars_are_as_long_as_their_terms() {
    let drawn = draw(&[row("a", 10, vec![bar("pip", Some(8), 10)])], "title", Place::File);
    let tree = roxmltree::Document::parse(&drawn).expect("well-formed");
    let terms: Vec<_> = tree.descendants().filter(|node| node.has_attribute("data-ns")).collect();
    let ns: Vec<f64> = terms.iter().map(|&node| number(node, "data-ns")).collect();
    assert_eq!(ns, [2e6, 3e6, 3e6]);
    let line = tree
        .descendants()
        .find(|node| node.has_tag_name("line") && node.attribute("class") == Some("deadline"))
        .expect("a deadline");
    let start = number(terms[0], "x");
    let millisecond = (number(line, "x1") - start) / 10.0;
    let mut end = start;
    for (node, ns) in terms.into_iter().zip(ns) {
        assert!((number(node, "x") - end).abs() < 0.2, "a term begins where the one before it ends");
        end = number(node, "x") + number(node, "width");
        assert!((number(node, "width") - ns / 1e6 * millisecond).abs() < 0.2, "{ns}");
    }
}

#[test]
fn misses_and_missing_bounds_are_marked() {
    let holds = draw(&[row("a", 10, vec![bar("pip", Some(8), 10)])], "title", Place::File);
    assert!(!holds.contains('✗') && !holds.contains("no bound"), "{holds}");
    let late = draw(&[row("a", 10, vec![bar("pip", Some(12), 10)])], "title", Place::File);
    assert!(late.contains("✗ 12 ms") && late.contains("deadline not proved") && !late.contains("no bound"), "{late}");
    let open = draw(&[row("a", 10, vec![bar("none", None, 10)])], "title", Place::File);
    assert!(open.contains("✗ no bound"), "{open}");
}

#[test]
fn protocols_without_any_bound_are_only_named() {
    let bars = |response| vec![bar("pip", Some(8), 10), bar("none", None, 10), bar("mpcp", response, 10)];
    let drawn = draw(&[row("a", 10, bars(None)), row("b", 10, bars(Some(9)))], "title", Place::File);
    let tree = roxmltree::Document::parse(&drawn).expect("well-formed");
    let named: Vec<_> = tree.descendants().filter_map(|node| node.attribute("data-protocol")).collect();
    assert_eq!(named, ["pip", "mpcp", "pip", "mpcp"]);
    assert!(drawn.contains(">no task has a bound under none</text>"), "{drawn}");
    assert!(drawn.contains(" No task has a bound under none."), "{drawn}");
}

#[test]
fn long_bars_stay_inside() {
    let rows = [row("a", 10, vec![bar("pip", Some(8), 10), bar("none", Some(10_000), 10), bar("x", None, 10)])];
    let drawn = draw(&rows, "title", Place::File);
    let tree = roxmltree::Document::parse(&drawn).expect("well-formed");
    for node in tree.descendants().filter(|node| node.has_tag_name("rect") && node.has_attribute("x")) {
        assert!(number(node, "x") + number(node, "width") <= 440.0, "{node:?}");
    }
    assert!(drawn.contains("class=\"cut\""), "the cut bar is marked");
}

#[test]
fn names_stay_text() {
    let name = "</svg><script>\"&<>'";
    let drawn = draw(&[row(name, 10, vec![bar("<b>", Some(8), 10)])], name, Place::File);
    let tree = roxmltree::Document::parse(&drawn).expect("well-formed");
    assert!(!tree.descendants().any(|node| node.has_tag_name("script") || node.has_tag_name("b")));
    assert!(tree.descendants().any(|node| node.attribute("data-task") == Some(name)));
    assert!(tree.descendants().any(|node| node.has_tag_name("title") && node.text() == Some(name)));
}

/// Terms that are narrower than a pixel, such as those of many releases, are one bar, if they have one cause.
#[test]
fn narrow_terms_are_merged() {
    let mut bar = bar("pip", Some(8_000), 10_000);
    let narrow = |cause, by| Term { total: Duration::from_ns(1_000_000), ..term(cause, Some(by), 0) };
    bar.terms = vec![term(Cause::Execution, None, 2_000)];
    bar.terms.extend(["a", "b", "c"].map(|by| narrow(Cause::Interference, by)));
    bar.terms.extend([term(Cause::Interference, Some("d"), 5_000), narrow(Cause::Interference, "e")]);
    bar.terms.push(narrow(Cause::Local, "f"));
    let drawn = draw(&[row("task", 10_000, vec![bar])], "title", Place::File);
    let tree = roxmltree::Document::parse(&drawn).expect("well-formed");
    let terms: Vec<_> = tree.descendants().filter(|node| node.has_attribute("data-ns")).collect();
    let ms: Vec<f64> = terms.iter().map(|&node| number(node, "data-ns") / 1e6).collect();
    assert_eq!(ms, [2_000.0, 3.0, 5_000.0, 1.0, 1.0]);
    assert!(drawn.contains("<title>interference, 3 terms of together 3 ms</title>"), "{drawn}");
}
