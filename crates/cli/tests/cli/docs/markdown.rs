//! One Markdown file, taken apart.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use std::path::PathBuf;

/// A document and its claims, each with its line.
pub struct Document {
    /// From the root of the repository.
    pub path: PathBuf,
    /// Targets of links and images.
    pub links: Vec<(usize, String)>,
    /// Code within text.
    pub spans: Vec<(usize, String)>,
    /// Lines of code blocks that a shell may execute.
    pub shell: Vec<(usize, String)>,
    /// Those lines that begin with a prompt, with what follows.
    pub sessions: Vec<Session>,
    /// Paragraphs without markup.
    pub prose: Vec<(usize, String)>,
    headings: Vec<String>,
    html: String,
}

/// A command with its output.
pub struct Session {
    pub line: usize,
    pub command: String,
    /// The status that the next command, `echo $?`, printed.
    pub status: Option<i32>,
    output: Vec<String>,
}

impl Session {
    /// Whether what is shown is what was printed. A line with dots alone stands for any lines.
    pub fn shows(&self, out: &str) -> bool {
        if self.output.is_empty() {
            return true;
        }
        let printed: Vec<&str> = out.lines().map(str::trim_end).collect();
        let is_dots = |line: &&String| ["...", "…", "[...]", "[…]"].contains(&line.as_str());
        if !self.output.iter().any(|line| is_dots(&line)) {
            let end = printed.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
            return self.output.iter().eq(&printed[..end]);
        }
        let mut rest = &printed[..];
        self.output.split(|line| is_dots(&line)).filter(|part| !part.is_empty()).all(|part| {
            let place = rest.windows(part.len()).position(|window| part.iter().eq(window));
            rest = place.map_or(&[], |place| &rest[place + part.len()..]);
            place.is_some()
        })
    }
}

/// Languages of code blocks without commands.
const LANGUAGES: [&str; 6] = ["c", "cpp", "rust", "toml", "json", "cmake"];

impl Document {
    pub fn new(path: PathBuf, text: String) -> Self {
        let mut document = Self {
            path,
            links: Vec::new(),
            spans: Vec::new(),
            shell: Vec::new(),
            sessions: Vec::new(),
            prose: Vec::new(),
            headings: Vec::new(),
            html: String::new(),
        };
        let line_of = |offset: usize| text[..offset].matches('\n').count() + 1;
        let (mut heading, mut prose, mut code) = (None, String::new(), None);
        for (event, range) in Parser::new_ext(&text, Options::ENABLE_TABLES).into_offset_iter() {
            let line = line_of(range.start);
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    document.links.push((line, dest_url.into_string()));
                }
                Event::Start(Tag::CodeBlock(kind)) => {
                    let language = match kind {
                        CodeBlockKind::Fenced(language) => language.into_string(),
                        CodeBlockKind::Indented => String::new(),
                    };
                    let first = language.split([',', ' ']).next().unwrap_or_default();
                    code = (!LANGUAGES.contains(&first)).then(String::new);
                }
                Event::End(TagEnd::CodeBlock) => {
                    if let Some(block) = code.take() {
                        document.block(line + 1, &block);
                    }
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => document.headings.extend(heading.take()),
                Event::End(TagEnd::Paragraph | TagEnd::Item | TagEnd::TableCell) => {
                    document.prose.push((line, std::mem::take(&mut prose)));
                }
                Event::Code(span) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&span);
                    }
                    document.spans.push((line, span.into_string()));
                    prose.push('`');
                }
                Event::Text(part) => match (&mut code, &mut heading) {
                    (Some(code), _) => code.push_str(&part),
                    (None, Some(heading)) => heading.push_str(&part),
                    (None, None) => prose.push_str(&part),
                },
                Event::SoftBreak | Event::HardBreak => prose.push(' '),
                Event::Html(html) | Event::InlineHtml(html) => document.html.push_str(&html),
                _ => {}
            }
        }
        document
    }

    /// The lines of a code block, of which the first is on `line`.
    fn block(&mut self, line: usize, block: &str) {
        let mut lines = block.lines().enumerate().peekable();
        while let Some((below, text)) = lines.next() {
            let mut command = text.trim().to_owned();
            while command.ends_with('\\')
                && let Some((_, more)) = lines.next()
            {
                command.pop();
                command.push_str(more.trim());
            }
            let Some(typed) = command.strip_prefix("$ ") else {
                self.shell.push((line + below, command));
                continue;
            };
            let mut output = Vec::new();
            while let Some((_, shown)) = lines.next_if(|(_, shown)| !shown.starts_with("$ ")) {
                output.push(shown.trim_end().to_owned());
            }
            while output.last().is_some_and(String::is_empty) {
                output.pop();
            }
            match self.sessions.last_mut() {
                Some(last) if typed == "echo $?" => {
                    last.status = output.first().and_then(|status| status.parse().ok());
                }
                _ => {
                    self.shell.push((line + below, typed.to_owned()));
                    let command = typed.to_owned();
                    self.sessions.push(Session { line: line + below, command, status: None, output });
                }
            }
        }
    }

    /// Where a link within a document can lead: headings as GitHub names them, and ids in HTML.
    pub fn anchors(&self) -> Vec<String> {
        let mut anchors: Vec<String> = Vec::new();
        for heading in &self.headings {
            let kept = heading.to_lowercase().replace(' ', "-");
            let plain: String = kept.chars().filter(|&c| c.is_alphanumeric() || c == '-' || c == '_').collect();
            let same = anchors.iter().filter(|known| **known == plain).count();
            anchors.push(if same == 0 { plain } else { format!("{plain}-{same}") });
        }
        let ids = self.html.split("id=\"").skip(1).filter_map(|rest| rest.split('"').next());
        anchors.extend(ids.map(str::to_owned));
        anchors
    }

    /// A place, for messages.
    pub fn at(&self, line: usize) -> String {
        format!("{}:{line}", self.path.display())
    }
}
