//! A document of HTML around the body of a page.

use crate::canvas::STYLE;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

/// The style of everything except the pictures.
const PAGE_STYLE: &str = include_str!("page.css");
/// The script.
const SCRIPT: &str = include_str!("page.js");

/// A whole document. Its policy allows exactly the own style, the script of all pages, these scripts, and the sources
/// in `more`.
pub fn document(title: &str, scripts: &[&str], more: &str, body: Markup) -> String {
    let style = format!("{PAGE_STYLE}{STYLE}");
    let scripts: Vec<&str> = std::iter::once(SCRIPT).chain(scripts.iter().copied()).collect();
    let hashes = scripts.iter().map(|script| format!("'{}'", hash(script))).collect::<Vec<_>>().join(" ");
    let policy = format!(
        "default-src 'none'; style-src '{}'; script-src {hashes};{more} base-uri 'none'; form-action 'none'",
        hash(&style)
    );
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(style)) }
            }
            body {
                (body)
                @for script in &scripts { script { (PreEscaped(script)) } }
            }
        }
    };
    page.into_string()
}

/// The source of a Content-Security-Policy that allows exactly this text.
fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text.as_bytes())))
}
