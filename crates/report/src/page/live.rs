//! The page of a server: an editor beside a result that follows it.

use super::document::document;
use maud::html;

/// The script of the editor.
const LIVE_SCRIPT: &str = include_str!("live.js");

/// A page with an editor. Its script asks the server below its own address:
///
/// | request | answer |
/// |---|---|
/// | `GET file?seen=VERSION` | `{version, text}`, or nothing if the file still has this version |
/// | `POST result` with `{text, protocol}` | `{html, ms, notes, faults, sections}`; `html` is that of [`super::Page::to_result`] |
/// | `POST save` with `{text, seen}` | `{version}` |
///
/// Instead of its answer, each of them may return `{faults}`.
#[derive(Clone, Copy, Debug)]
pub struct Live<'a> {
    /// The name of the file.
    pub file: &'a str,
    /// The protocols: the value that is sent, and whether it is chosen at first.
    pub protocols: &'a [(&'a str, bool)],
    /// Whether the file may be saved.
    pub saves: bool,
}

impl Live<'_> {
    /// The page as HTML. Its policy lets it ask only the server that it comes from.
    #[must_use]
    pub fn to_html(&self) -> String {
        let body = html! {
            div.live {
                form #editor aria-label="The task set" {
                    p.tools {
                        label for="protocol" { "Protocol: " }
                        select #protocol {
                            @for (name, is_chosen) in self.protocols {
                                option value=(name) selected[*is_chosen] { (name) }
                            }
                        }
                        " "
                        @if self.saves { button #save type="button" disabled { "Save" } }
                        button #load type="button" hidden { "Load the changed file, and lose what was typed" }
                    }
                    p #state role="status" { "…" }
                    ul #faults hidden {}
                    label for="text" { (self.file) }
                    textarea #text rows="24" spellcheck="false" autocapitalize="off" autocomplete="off" wrap="off" {}
                    fieldset #sections hidden { legend { "Lengths of sections" } }
                    pre #notes tabindex="0" hidden {}
                    noscript { "This page needs its script; `lockwright simulate FILE --html` writes one that does not." }
                }
                div #result {}
            }
        };
        document(&format!("{}, live", self.file), &[LIVE_SCRIPT], " connect-src 'self';", body)
    }
}
