//! Pages of HTML.

use lockwright_model::Duration;
use lockwright_report::Place;
use lockwright_report::page::{Cell, Column, Page, Part, Picture, Section, Table, Tone, Verdict};
use lockwright_report::strip::{Bin, Strip, draw};

const NAME: &str = "</title></style><script>alert(\"&'\")</script>";

fn strip(name: &str) -> Strip {
    let bin = |ms, jobs| Bin { from: Duration::from_ms(ms), until: Duration::from_ms(ms + 1), jobs };
    Strip {
        task: name.into(),
        deadline: Duration::from_ms(10),
        bound: Some(Duration::from_ms(8)),
        seen: Some(Duration::from_ms(7)),
        bins: vec![bin(1, 40), bin(6, 1)],
    }
}

fn page(name: &str) -> String {
    let table = Table {
        caption: name.into(),
        columns: vec![Column::words("task", "name"), Column::numbers("R", "response_ns")],
        rows: vec![
            vec![Cell::text(name), Cell::number("7 ms", 7_000_000_u64).with(Tone::Bad)],
            vec![Cell::text("other"), Cell::absent()],
        ],
    };
    let picture = || Picture {
        caption: name.into(),
        task: Some(name.into()),
        draw: Box::new(|place: Place<'_>| draw(&strip(NAME), place)),
    };
    let parts = vec![
        Part::Heading(name.into()),
        Part::Text(name.into()),
        Part::List(vec![name.into()]),
        Part::Facts(vec![("name", name.into())]),
        Part::Table(table),
        Part::Picture(picture()),
        Part::Folded(name.into(), false, vec![Part::Picture(picture()), Part::Source(name.into())]),
    ];
    Page {
        title: name.into(),
        verdicts: vec![Verdict { holds: true, text: name.into() }],
        sections: vec![Section { title: "Tasks", parts }, Section { title: "Empty", parts: Vec::new() }],
    }
    .to_html()
}

/// The text between two others.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = text.split_once(before).expect(before);
    rest.split_once(after).expect(after).0
}

#[test]
fn names_stay_text() {
    let page = page(NAME);
    assert_eq!(page.matches("<script").count(), 1, "only the page's own script");
    assert!(!page.contains("alert(\"") && page.contains("&lt;script&gt;alert(&quot;"), "{page}");
    // Attributes end at the quotation marks that begin them.
    let attribute = between(&page, "<figure data-name=\"", ">");
    assert!(attribute.ends_with('"') && !attribute.contains('<'), "{attribute}");
}

/// The browser uses the style and the script only if their hashes are those of the policy.
#[test]
fn the_policy_allows_only_the_own_style_and_script() {
    use base64::Engine;
    use sha2::{Digest, Sha256};
    let page = page("name");
    let policy = between(&page, "Content-Security-Policy\" content=\"", "\"").replace("&#39;", "'");
    assert!(policy.starts_with("default-src 'none';"), "{policy}");
    for (kind, source) in
        [("style", between(&page, "<style>", "</style>")), ("script", between(&page, "<script>", "</script>"))]
    {
        let hash = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(source));
        assert!(policy.contains(&format!("{kind}-src 'sha256-{hash}'")), "{kind}: {policy}");
    }
    assert_eq!((page.matches("<style").count(), page.matches("<script").count()), (1, 1));
    // The policy refuses attributes with styles and handlers.
    for refused in [" style=", " onclick=", "http://", "https://", " src=", "@import", "url(h"] {
        let rest = page.replace("url(#h-", "");
        assert!(!rest.contains(refused), "{refused}");
    }
}

#[test]
fn ids_are_unique() {
    let page = page("name");
    let mut ids: Vec<&str> = page.split(" id=\"").skip(1).map(|rest| rest.split('"').next().expect("an end")).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert!(all >= 5 && ids.len() == all, "{ids:?}");
    for reference in page.split("labelledby=\"").skip(1).chain(page.split("href=\"#").skip(1)) {
        let id = reference.split('"').next().expect("an end");
        assert!(ids.contains(&id), "{id}");
    }
}

#[test]
fn sections_without_parts_are_omitted() {
    let page = page("name");
    assert!(page.contains(">Tasks<") && !page.contains(">Empty<"));
}

#[test]
fn cells_have_their_exact_values() {
    let page = page("name");
    assert!(page.contains("data-v=\"7000000\">7 ms</td>"), "{page}");
    assert!(page.contains("<td class=\"n\">–</td>"), "an absent value has none: {page}");
}

#[test]
fn strips_show_the_numbers() {
    let drawn = draw(&strip("a"), Place::File);
    let tree = roxmltree::Document::parse(&drawn).expect("valid XML");
    let number = |name: &str| tree.descendants().find_map(|node| node.attribute(name)?.parse::<u64>().ok());
    let found = ["data-seen-ns", "data-bound-ns", "data-deadline-ns"].map(number);
    assert_eq!(found, [Some(7_000_000), Some(8_000_000), Some(10_000_000)]);
    assert_eq!(tree.descendants().filter(|node| node.attribute("class") == Some("bin")).count(), 2);
    assert!(drawn.contains("40 jobs from 1 ms to 2 ms") && drawn.contains("1 job from 6 ms"), "{drawn}");
    let open = draw(&Strip { bound: None, seen: None, bins: Vec::new(), ..strip("a") }, Place::File);
    assert!(!open.contains("data-bound-ns") && open.contains("there is no bound"), "{open}");
    assert!(
        roxmltree::Document::parse(&draw(
            &Strip { deadline: Duration::ZERO, bound: None, seen: None, ..strip("a") },
            Place::File
        ))
        .is_ok()
    );
}
