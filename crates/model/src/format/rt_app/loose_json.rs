//! The loose JSON of rt-app's workloads, with comments, trailing
//! commas, bare words, and repeated keys whose order matters.
//!
//! The tokens come from `jsonc-parser`. Its trees have no bare words, so this module builds its own.

use super::{Diagnostic, shown};
use core::ops::Range;
use jsonc_parser::tokens::Token;
use jsonc_parser::{Scanner, ScannerOptions};
use std::borrow::Cow;

/// The maximum nesting depth of objects and lists.
const DEPTH_MAX: usize = 32;

/// The maximum number of values of a file. Each value takes a
/// hundred bytes of memory, and may take only two bytes of the file.
const VALUES_MAX: usize = 1 << 20;

#[derive(Debug)]
pub(super) enum Value<'s> {
    Object(Vec<Member<'s>>),
    List(Vec<Node<'s>>),
    /// A quoted text or a bare word.
    Text(Cow<'s, str>),
    Number(&'s str),
    Boolean(bool),
    Null,
}

#[derive(Debug)]
pub(super) struct Node<'s> {
    pub(super) value: Value<'s>,
    pub(super) span: Range<usize>,
}

#[derive(Debug)]
pub(super) struct Member<'s> {
    pub(super) key: Cow<'s, str>,
    pub(super) key_span: Range<usize>,
    pub(super) node: Node<'s>,
}

struct Parser<'s> {
    source: &'s str,
    /// The scanner of the source from `base` on.
    scanner: Scanner<'s>,
    base: usize,
    /// The next token. `None` at the end.
    token: Option<Token<'s>>,
    span: Range<usize>,
    /// The number of values so far.
    values: usize,
}

pub(super) fn parse(source: &str) -> Result<Node<'_>, Diagnostic> {
    let mut parser = Parser { source, scanner: scanner(source), base: 0, token: None, span: 0..0, values: 0 };
    parser.advance()?;
    let root = parser.value(0)?;
    match parser.token {
        None => Ok(root),
        Some(_) => Err(parser.unexpected("the end of the file")),
    }
}

fn scanner(source: &str) -> Scanner<'_> {
    let options = ScannerOptions {
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: true,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    Scanner::new(source, &options)
}

/// Returns the bare word with which a text begins.
fn bare_word(text: &str) -> Option<&str> {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_').then_some(())?;
    let end = text.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '.')).unwrap_or(text.len());
    Some(&text[..end])
}

impl<'s> Parser<'s> {
    /// Advances to the next token that is not a comment.
    fn advance(&mut self) -> Result<(), Diagnostic> {
        // BOUND: every round consumes a comment.
        loop {
            let rest = &self.source[self.base + self.scanner.token_end()..];
            let rest = rest.trim_start();
            // The scanner accepts bare words as keys only. It refuses them before a comma or a brace.
            if let Some(word) = bare_word(rest) {
                let start = self.source.len() - rest.len();
                self.span = start..start + word.len();
                self.base = self.span.end;
                self.scanner = scanner(&self.source[self.base..]);
                self.token = Some(match word {
                    "true" => Token::Boolean(true),
                    "false" => Token::Boolean(false),
                    "null" => Token::Null,
                    word => Token::Word(word),
                });
                return Ok(());
            }
            let scanned = self.scanner.scan().map_err(|error| {
                let range = error.range();
                let reason = error.kind().to_string().to_lowercase();
                Diagnostic::new(format!("this is not JSON: {reason}"))
                    .at(self.base + range.start..self.base + range.end)
            })?;
            if !matches!(scanned, Some(Token::CommentLine(_) | Token::CommentBlock(_))) {
                self.span = self.base + self.scanner.token_start()..self.base + self.scanner.token_end();
                self.token = scanned;
                return Ok(());
            }
        }
    }

    fn unexpected(&self, wanted: &str) -> Diagnostic {
        let found = self.token.as_ref().map_or_else(|| "the end of the file".into(), |token| shown(token.as_str()));
        Diagnostic::new(format!("this is not JSON: found {found} instead of {wanted}")).at(self.span.clone())
    }

    fn value(&mut self, depth: usize) -> Result<Node<'s>, Diagnostic> {
        let start = self.span.start;
        if depth > DEPTH_MAX {
            let fault = Diagnostic::new("objects and lists are nested too deeply").at(self.span.clone());
            return Err(fault.help(format!("at most {DEPTH_MAX} levels are supported")));
        }
        self.values += 1;
        if self.values > VALUES_MAX {
            let fault = Diagnostic::new("there are too many values").at(self.span.clone());
            return Err(fault.help(format!("at most {VALUES_MAX} are supported")));
        }
        let value = match self.token.take() {
            Some(Token::OpenBrace) => Value::Object(self.members(depth)?),
            Some(Token::OpenBracket) => Value::List(self.elements(depth)?),
            Some(Token::String(text)) => Value::Text(text),
            Some(Token::Word(word)) => Value::Text(Cow::Borrowed(word)),
            Some(Token::Number(number)) => Value::Number(number),
            Some(Token::Boolean(boolean)) => Value::Boolean(boolean),
            Some(Token::Null) => Value::Null,
            other => {
                self.token = other;
                return Err(self.unexpected("a value"));
            }
        };
        let span = start..self.span.end;
        self.advance()?;
        Ok(Node { value, span })
    }

    /// Reads the members of an object, from behind the opening brace up to the closing one.
    fn members(&mut self, depth: usize) -> Result<Vec<Member<'s>>, Diagnostic> {
        let mut members = Vec::new();
        self.advance()?;
        // BOUND: every round consumes a member.
        loop {
            let key = match self.token.take() {
                Some(Token::CloseBrace) => return Ok(members),
                Some(Token::String(key)) => key,
                Some(Token::Word(key)) => Cow::Borrowed(key),
                other => {
                    self.token = other;
                    return Err(self.unexpected("a key or `}`"));
                }
            };
            let key_span = self.span.clone();
            self.advance()?;
            if self.token != Some(Token::Colon) {
                return Err(self.unexpected("`:`"));
            }
            self.advance()?;
            members.push(Member { key, key_span, node: self.value(depth + 1)? });
            self.separator(&Token::CloseBrace, "`,` or `}`")?;
        }
    }

    /// Reads the elements of a list, from behind the opening bracket up to the closing one.
    fn elements(&mut self, depth: usize) -> Result<Vec<Node<'s>>, Diagnostic> {
        let mut elements = Vec::new();
        self.advance()?;
        // BOUND: every round consumes an element.
        while self.token != Some(Token::CloseBracket) {
            elements.push(self.value(depth + 1)?);
            self.separator(&Token::CloseBracket, "`,` or `]`")?;
        }
        Ok(elements)
    }

    fn separator(&mut self, close: &Token, wanted: &str) -> Result<(), Diagnostic> {
        match &self.token {
            Some(Token::Comma) => self.advance(),
            Some(token) if token == close => Ok(()),
            _ => Err(self.unexpected(wanted)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_duplicates_and_bare_words_are_kept() {
        let source = "/* c */ { \"run\": 1, lock: m.1, \"run\": 2, // d\n \"cpus\": [0,], }";
        let Value::Object(members) = parse(source).expect("loose JSON").value else { panic!("an object") };
        let keys: Vec<&str> = members.iter().map(|member| &*member.key).collect();
        assert_eq!(keys, ["run", "lock", "run", "cpus"]);
        assert!(matches!(&members[1].node.value, Value::Text(word) if word == "m.1"));
        assert_eq!(&source[members[3].node.span.clone()], "[0,]");
    }

    #[test]
    fn malformed_json_is_refused_with_its_place() {
        for (source, part, place) in [
            ("", "the end of the file", 0..0),
            ("{ \"a\" 1 }", "instead of `:`", 6..7),
            ("{ \"a\": 1 \"b\": 2 }", "instead of `,` or `}`", 9..12),
            ("{ \"a\": ", "the end of the file", 7..7),
            ("{} {}", "instead of the end", 3..4),
            ("[1, /* x", "comment", 4..8),
        ] {
            let fault = parse(source).expect_err(source);
            assert!(fault.message.contains(part), "{source}: {}", fault.message);
            assert_eq!(fault.span, Some(place), "{source}");
        }
        let deep = "[".repeat(100_000);
        assert!(parse(&deep).expect_err("too deep").message.contains("too deeply"));
    }
}
