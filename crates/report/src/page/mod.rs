//! One page of HTML that needs no other file: text, tables and pictures.
//!
//! Everything is readable without the script, which sorts tables, searches for tasks, and shows the parts of a picture
//! in words. The page makes no request: its Content-Security-Policy allows only its own style and its own script, by
//! their hashes. All text is escaped by the types of `maud`; only the pictures of this crate are inserted as they are.

mod document;
mod live;
mod table;

pub use live::Live;
pub use table::{Cell, Column, Table, Tone};

use crate::canvas::{PATTERNS, Place};
use maud::{Markup, PreEscaped, html};
use std::cell::Cell as Counter;

/// A page.
pub struct Page<'a> {
    /// The title.
    pub title: String,
    /// The verdicts, one or two sentences each.
    pub verdicts: Vec<Verdict>,
    /// The sections in their order. Those without parts are omitted.
    pub sections: Vec<Section<'a>>,
}

/// A verdict.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// Whether everything holds.
    pub holds: bool,
    /// In words.
    pub text: String,
}

/// A section.
pub struct Section<'a> {
    /// The title.
    pub title: &'static str,
    /// The parts in their order.
    pub parts: Vec<Part<'a>>,
}

/// A part of a section.
pub enum Part<'a> {
    /// A heading below that of the section.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// A list of sentences.
    List(Vec<String>),
    /// Names and their values.
    Facts(Vec<(&'static str, String)>),
    /// A table.
    Table(Table),
    /// A picture.
    Picture(Picture<'a>),
    /// The text of a file or a command.
    Source(String),
    /// Parts that the reader opens: a title, and whether they are open at first.
    Folded(String, bool, Vec<Part<'a>>),
}

/// A picture. The page chooses its ids.
pub struct Picture<'a> {
    /// The caption.
    pub caption: String,
    /// The task that it is about, for the search.
    pub task: Option<String>,
    /// Draws it.
    pub draw: Box<dyn Fn(Place<'_>) -> String + 'a>,
}

impl Page<'_> {
    /// The page as HTML.
    #[must_use]
    pub fn to_html(&self) -> String {
        document::document(&self.title, &[], "", self.body())
    }

    /// Returns the part of it that a [`Live`] page shows: everything except the head and the script.
    #[must_use]
    pub fn to_result(&self) -> String {
        self.body().into_string()
    }

    fn body(&self) -> Markup {
        let sections = || self.sections.iter().filter(|section| !section.parts.is_empty()).enumerate();
        let pictures = Counter::new(0);
        html! {
            // Not hidden: patterns of elements that are not displayed are not drawn.
            svg.patterns width="0" height="0" aria-hidden="true" { (PreEscaped(PATTERNS)) }
            header {
                h1 { (self.title) }
                @for verdict in &self.verdicts {
                    p.verdict.good[verdict.holds].bad[!verdict.holds] {
                        span aria-hidden="true" { (if verdict.holds { "✓ " } else { "✗ " }) }
                        (verdict.text)
                    }
                }
                nav aria-label="Sections" {
                    ul {
                        @for (number, section) in sections() {
                            li { a href={ "#s" (number) } { (section.title) } }
                        }
                    }
                }
            }
            main {
                @for (number, section) in sections() {
                    section aria-labelledby={ "s" (number) } {
                        h2 id={ "s" (number) } { (section.title) }
                        (parts(&section.parts, &pictures))
                    }
                }
            }
        }
    }
}

fn parts(all: &[Part<'_>], pictures: &Counter<usize>) -> Markup {
    html! {
        @for part in all {
            @match part {
                Part::Heading(text) => { h3 { (text) } }
                Part::Text(text) => { p { (text) } }
                Part::List(lines) => { ul { @for line in lines { li { (line) } } } }
                Part::Facts(facts) => { dl { @for (name, value) in facts { dt { (name) } dd { (value) } } } }
                Part::Table(table) => { (table::table(table)) }
                Part::Picture(picture) => { (figure(picture, pictures)) }
                Part::Source(text) => { pre tabindex="0" { code { (text) } } }
                Part::Folded(title, is_open, inner) => {
                    details open[*is_open] { summary { (title) } (parts(inner, pictures)) }
                }
            }
        }
    }
}

fn figure(picture: &Picture<'_>, pictures: &Counter<usize>) -> Markup {
    pictures.set(pictures.get() + 1);
    let word = format!("p{}", pictures.get());
    let (svg, caption) = ((picture.draw)(Place::Page(&word)), format!("{word}-caption"));
    html! {
        figure data-name=[&picture.task] {
            figcaption id=(caption) { (picture.caption) }
            div.scroll tabindex="0" role="group" aria-labelledby=(caption) { (PreEscaped(svg)) }
        }
    }
}
