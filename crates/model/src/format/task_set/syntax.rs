//! From text to TOML tables, in memory that is bounded by the length of the text.
//!
//! A tree of TOML values takes up to 250 bytes for each byte of text, and so does a list of
//! all faults of a text that is not TOML. So a long text is read twice. The survey reads it
//! without building a tree: it finds the first faults, and the beginning and the end of
//! each `[[task]]`. Then the tree of one task after the other is built, read, and dropped.
//!
//! | what | bytes of memory per byte of text, at most |
//! |---|---|
//! | survey | 24 (a token of one byte) |
//! | frame: the text without its tasks | 1 |
//! | tree of a part | 250, of at most [`VALUES_MAX`] keys and values |
//!
//! The tree of a part is built from tokens and events of 24 bytes each. Its blank lines and comments become one token,
//! so their number follows from that of the keys and values.

use super::{Diagnostic, Faults, shown};
use crate::format::diagnostic::DIAGNOSTICS_MAX;
use core::fmt::Write as _;
use core::ops::Range;
use std::borrow::Cow;
use toml::Spanned;
use toml::de::DeTable;
use toml_parser::decoder::Encoding;
use toml_parser::lexer::TokenKind;
use toml_parser::parser::{EventReceiver, RecursionGuard, ValidateWhitespace, parse_document};
use toml_parser::{ErrorSink, Expected, ParseError, Raw, Source, Span};

/// The maximum length in bytes of a text whose tree is built at once.
/// All its faults are found then, including those of several kinds.
const WHOLE_MAX: usize = 1 << 16;

/// The maximum number of keys and values in one part of a file: in one `[[task]]`, or in everything outside of the
/// tasks. A body has three for each step.
const VALUES_MAX: usize = 1 << 17;

/// The maximum nesting depth of lists and tables, the same as in `toml`.
const DEPTH_MAX: u32 = 80;

/// A text in parts that are read one after the other.
pub(super) struct Parts<'i> {
    /// The text with its tasks replaced by blanks, so that the rest keeps its place.
    pub(super) frame: Cow<'i, str>,
    /// The places of the `[[task]]`s, each from its header to the next one. Empty if the tasks are still in the frame.
    pub(super) tasks: Vec<Range<usize>>,
}

/// Returns the parts of a text, or `None` if a fault was found.
pub(super) fn split<'i>(source: &'i str, faults: &mut Faults) -> Option<Parts<'i>> {
    if source.len() <= WHOLE_MAX {
        return Some(Parts { frame: Cow::Borrowed(source), tasks: Vec::new() });
    }
    split_long(source, faults)
}

fn split_long<'i>(source: &'i str, faults: &mut Faults) -> Option<Parts<'i>> {
    let survey = Survey::of(source, faults)?;
    let most = survey.tasks.iter().map(|part| part.values).fold(survey.frame_values, usize::max);
    if most > VALUES_MAX {
        let place = survey.tasks.iter().find(|part| part.values > VALUES_MAX).map(|part| part.place.clone());
        return refuse_values(most, place, faults);
    }
    let mut frame = String::with_capacity(source.len());
    let mut copied = 0;
    for part in &survey.tasks {
        frame.push_str(source.get(copied..part.place.start)?);
        frame.extend(core::iter::repeat_n(' ', part.place.len().checked_sub(1)?));
        frame.push('\n');
        copied = part.place.end;
    }
    frame.push_str(source.get(copied..)?);
    let frame = Cow::Owned(sparse(&frame).into_owned());
    Some(Parts { frame, tasks: survey.tasks.into_iter().map(|part| part.place).collect() })
}

/// Reads the tree of a whole text, however long. Returns `None` if a fault was found.
pub(crate) fn parse<T>(
    source: &str,
    faults: &mut Faults,
    then: impl FnOnce(&Spanned<DeTable<'_>>, &mut Faults) -> Option<T>,
) -> Option<T> {
    if source.len() > WHOLE_MAX {
        let survey = Survey::of(source, faults)?;
        let values = survey.tasks.iter().map(|part| part.values).sum::<usize>() + survey.frame_values;
        if values > VALUES_MAX {
            return refuse_values(values, None, faults);
        }
    }
    let text = sparse(source);
    let document = tree(&text, faults)?;
    then(&document, faults)
}

/// Returns a text that was surveyed with spaces in place of its comments and blank lines, so that everything else keeps
/// its place. A short text stays as it is.
pub(super) fn sparse(source: &str) -> Cow<'_, str> {
    if source.len() <= WHOLE_MAX {
        return Cow::Borrowed(source);
    }
    let mut text = String::with_capacity(source.len());
    let spaces = |text: &mut String, end: usize| text.extend(core::iter::repeat_n(' ', end.saturating_sub(text.len())));
    // The last line end since the last token that means something.
    let mut line_end: Option<Range<usize>> = None;
    for token in Source::new(source).lex() {
        let place = token.span().start()..token.span().end();
        match token.kind() {
            TokenKind::Newline => line_end = Some(place),
            TokenKind::Whitespace | TokenKind::Comment => {}
            _ => {
                if let Some(line_end) = line_end.take() {
                    spaces(&mut text, line_end.start);
                    text.push_str(&source[line_end]);
                }
                spaces(&mut text, place.start);
                text.push_str(&source[place]);
            }
        }
    }
    Cow::Owned(text)
}

fn refuse_values<T>(values: usize, place: Option<Range<usize>>, faults: &mut Faults) -> Option<T> {
    let what = if place.is_some() { "a task" } else { "the file without its [[task]] tables" };
    let fault = Diagnostic { span: place, ..Diagnostic::new(format!("{what} has {values} keys and values")) };
    faults.push(fault.help(format!("at most {VALUES_MAX} are supported: write each task under a [[task]] of its own")));
    None
}

/// Returns the tree of a text. If the text is not TOML, reports the first fault of each line instead.
pub(super) fn tree<'i>(source: &'i str, faults: &mut Faults) -> Option<Spanned<DeTable<'i>>> {
    let (document, errors) = DeTable::parse_recoverable(source);
    if errors.is_empty() {
        return Some(document);
    }
    let mut errors: Vec<_> = errors.iter().map(|error| (error.span().unwrap_or(0..0), error.message())).collect();
    errors.sort_by_key(|(span, message)| (span.start, span.end, *message));
    // The parser reports some faults once for each table that they are in.
    errors.dedup();
    let mut lines = Lines::default();
    for (span, message) in errors {
        if faults.is_full() {
            break;
        }
        if lines.has_stumbled(&span, source) {
            continue;
        }
        let text = source.get(span.clone()).unwrap_or_default();
        let fault = match message {
            "duplicate key" => {
                Diagnostic::new(format!("the key {} is given twice", shown(text))).help("keep one of them")
            }
            _ => not_toml(message),
        };
        faults.push(fault.at(span));
    }
    None
}

fn not_toml(message: &str) -> Diagnostic {
    Diagnostic::new(format!("this is not TOML: {message}"))
}

/// Selects the faults to report. After a mistake the parser often
/// fails again further along the line, which is not another fault.
#[derive(Default)]
struct Lines {
    /// The end of the last reported fault, and the end of its line.
    last: Option<(usize, usize)>,
}

impl Lines {
    /// Returns whether the fault at `span` follows from the last one. Otherwise it becomes the last one.
    fn has_stumbled(&mut self, span: &Range<usize>, source: &str) -> bool {
        if self.last.is_some_and(|(end, line_end)| (end..=line_end).contains(&span.start)) {
            return true;
        }
        let rest = source.as_bytes().get(span.end..).unwrap_or_default();
        let line_end = rest.iter().position(|&byte| byte == b'\n').map_or(source.len(), |newline| span.end + newline);
        self.last = Some((span.end, line_end));
        false
    }
}

/// One `[[task]]`, with its number of keys and values.
struct Part {
    place: Range<usize>,
    values: usize,
}

/// The contents of a text, without a tree of it.
#[derive(Default)]
struct Survey {
    tasks: Vec<Part>,
    /// Whether the text that follows belongs to the last of the tasks.
    is_inside: bool,
    /// The number of keys and values outside of the tasks.
    frame_values: usize,
    /// The header being read.
    header: Option<Header>,
}

/// The header of a table.
struct Header {
    start: usize,
    is_list: bool,
    keys: usize,
    /// Whether the first key is `task`.
    is_task: bool,
}

impl Survey {
    /// Surveys a text. Reports the first faults and returns `None` if the text is not TOML.
    fn of(source: &str, faults: &mut Faults) -> Option<Self> {
        let toml = Source::new(source);
        let mut tokens = Vec::with_capacity(toml.lex().count());
        tokens.extend(toml.lex());
        let mut survey = Self::default();
        let mut sink = Sink { source, lines: Lines::default(), faults: Vec::new() };
        {
            let mut reader = Reader { source, survey: &mut survey };
            let mut spaces = ValidateWhitespace::new(&mut reader, toml);
            parse_document(&tokens, &mut RecursionGuard::new(&mut spaces, DEPTH_MAX), &mut sink);
        }
        drop(tokens);
        if let Some(last) = survey.tasks.last_mut().filter(|_| survey.is_inside) {
            last.place.end = source.len();
        }
        if sink.faults.is_empty() {
            return Some(survey);
        }
        sink.faults.into_iter().for_each(|fault| faults.push(fault));
        None
    }

    fn count(&mut self) {
        match self.tasks.last_mut().filter(|_| self.is_inside) {
            Some(part) => part.values += 1,
            None => self.frame_values += 1,
        }
    }

    /// Ends the header. The header of a table inside the current task belongs to that task.
    fn begin(&mut self) {
        let Some(header) = self.header.take() else { return };
        let is_new = header.is_task && header.is_list && header.keys == 1;
        if header.is_task && header.keys > 1 && self.is_inside {
            return;
        }
        if let Some(last) = self.tasks.last_mut().filter(|_| self.is_inside) {
            last.place.end = header.start;
        }
        self.is_inside = is_new;
        if is_new {
            self.tasks.push(Part { place: header.start..header.start, values: 1 });
        }
    }
}

/// Fills a survey.
struct Reader<'s> {
    source: &'s str,
    survey: &'s mut Survey,
}

impl<'s> Reader<'s> {
    fn raw(&self, span: Span, encoding: Option<Encoding>) -> Option<Raw<'s>> {
        let text = self.source.get(span.start()..span.end())?;
        Some(Raw::new_unchecked(text, encoding, span))
    }
}

impl EventReceiver for Reader<'_> {
    fn std_table_open(&mut self, span: Span, _: &mut dyn ErrorSink) {
        self.survey.header = Some(Header { start: span.start(), is_list: false, keys: 0, is_task: false });
    }

    fn std_table_close(&mut self, _: Span, _: &mut dyn ErrorSink) {
        self.survey.begin();
    }

    fn array_table_open(&mut self, span: Span, _: &mut dyn ErrorSink) {
        self.survey.header = Some(Header { start: span.start(), is_list: true, keys: 0, is_task: false });
    }

    fn array_table_close(&mut self, _: Span, _: &mut dyn ErrorSink) {
        self.survey.begin();
    }

    fn simple_key(&mut self, span: Span, encoding: Option<Encoding>, errors: &mut dyn ErrorSink) {
        if let Some(key) = self.raw(span, encoding) {
            key.decode_key(&mut (), errors);
        }
        if let Some(header) = &mut self.survey.header {
            header.is_task |= header.keys == 0 && self.source.get(span.start()..span.end()) == Some("task");
            header.keys += 1;
        }
        self.survey.count();
    }

    fn scalar(&mut self, span: Span, encoding: Option<Encoding>, errors: &mut dyn ErrorSink) {
        if let Some(value) = self.raw(span, encoding) {
            let _ = value.decode_scalar(&mut (), errors);
        }
        self.survey.count();
    }

    fn inline_table_open(&mut self, _: Span, _: &mut dyn ErrorSink) -> bool {
        self.survey.count();
        true
    }

    fn array_open(&mut self, _: Span, _: &mut dyn ErrorSink) -> bool {
        self.survey.count();
        true
    }
}

/// The first fault of each line, up to twice as many as are shown, because they come almost in order of place.
struct Sink<'s> {
    source: &'s str,
    lines: Lines,
    faults: Vec<Diagnostic>,
}

impl ErrorSink for Sink<'_> {
    fn report_error(&mut self, error: ParseError) {
        if self.faults.len() >= 2 * DIAGNOSTICS_MAX {
            return;
        }
        let span = error.unexpected().map_or(0..0, |span| span.start()..span.end());
        if !self.lines.has_stumbled(&span, self.source) {
            self.faults.push(not_toml(&message(&error)).at(span));
        }
    }
}

/// Returns the message in the words of `toml`.
fn message(error: &ParseError) -> String {
    let mut message = error.description().to_owned();
    let Some(expected) = error.expected() else { return message };
    message.push_str(", expected ");
    if expected.is_empty() {
        message.push_str("nothing");
    }
    for (place, one) in expected.iter().enumerate() {
        if place > 0 {
            message.push_str(", ");
        }
        // Writing to a string does not fail.
        let _ = match one {
            Expected::Literal("\n") => write!(message, "newline"),
            Expected::Literal("`") => write!(message, "'`'"),
            Expected::Literal(text) if text.chars().all(|c| c.is_ascii_control()) => {
                write!(message, "`{}`", text.escape_debug())
            }
            Expected::Literal(text) => write!(message, "`{text}`"),
            Expected::Description(text) => write!(message, "{text}"),
            _ => write!(message, "etc"),
        };
    }
    message
}
