//! The two streams: data on standard output, everything else on standard error.
//!
//! A closed pipe (`| head`) is not an error: the rest of the output is dropped, and the exit status stays that of the
//! verb.

use crate::diagnose::Look;
use crate::exit::Exit;
use crate::fault::{self, Fault};
use crate::layout::Layout;
use crate::streams;
use crate::tame::line;
use std::fmt::Display;
use std::io;

/// When to use colours.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Also in files and pipes
    Always,
    /// Never
    Never,
}

impl Color {
    fn applies(self, is_terminal: bool) -> bool {
        let refused = || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => is_terminal && !refused(),
        }
    }
}

/// Standard output and standard error, and their form.
#[derive(Clone, Copy, Debug)]
pub struct Console {
    /// Whether standard output has colours.
    pub color_out: bool,
    /// Whether standard error has colours.
    pub color_err: bool,
    /// Whether standard error is a terminal.
    pub watched: bool,
    /// Layout of standard output.
    pub layout: Layout,
    /// Layout of standard error.
    layout_err: Layout,
}

impl Console {
    /// The console of this process. With `wide` lines may be of any length.
    #[must_use]
    pub fn new(color: Color, wide: bool) -> Self {
        let [is_terminal, watched] = streams::are_terminals();
        let [layout, layout_err] = streams::layouts(wide);
        Self { color_out: color.applies(is_terminal), color_err: color.applies(watched), watched, layout, layout_err }
    }

    /// How diagnostics are rendered on standard error. On a terminal they are wrapped.
    #[must_use]
    pub fn look(&self) -> Look {
        Look { color: self.color_err, layout: self.watched.then_some(self.layout_err) }
    }

    /// Writes data to standard output.
    ///
    /// # Errors
    /// The stream cannot be written, for example on a full disk; standard error has the message. A closed pipe is not
    /// an error.
    pub fn print(&self, data: &str) -> Result<(), Exit> {
        self.check_written(streams::write_out(data.as_bytes()))?;
        fault::printed();
        Ok(())
    }

    /// Reports that standard output cannot be written.
    ///
    /// # Errors
    /// As [`Console::print`].
    pub fn check_written(&self, written: io::Result<()>) -> Result<(), Exit> {
        match written {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                self.error(format!("cannot write the output: {error}"), "");
                Err(Exit::Machine)
            }
            _ => Ok(()),
        }
    }

    /// As [`Console::print`]; wraps lines that are too wide for the screen.
    ///
    /// # Errors
    /// As [`Console::print`].
    pub fn print_text(&self, text: &str) -> Result<(), Exit> {
        self.print(&self.layout.prose(text))
    }

    /// Prints a note on standard error.
    pub fn note(&self, note: impl Display) {
        self.say(Tone::Note, note);
    }

    /// Prints a warning on standard error.
    pub fn warn(&self, warning: impl Display) {
        self.say(Tone::Warning, warning);
    }

    /// Prints why the verb fails and what to do about it, and keeps both for `--json`.
    pub fn error(&self, message: impl Display, help: &str) {
        let message = message.to_string();
        self.say(Tone::Error, &message);
        let help_kept = (!help.is_empty()).then(|| line(help));
        fault::keep(Fault { message: line(&message), help: help_kept, place: None });
        if !help.is_empty() {
            self.say(Tone::Help, help);
        }
    }

    /// Writes to standard error as it is.
    pub fn say_raw(&self, text: &str) {
        streams::write_err(text.as_bytes());
    }

    fn say(&self, tone: Tone, text: impl Display) {
        let (word, text) = (tone.word(), line(&text.to_string()));
        let whole = format!("{word}: {text}\n");
        // Each message is one line in a pipe, which is easier to search.
        let whole = if self.watched { self.layout_err.hanging(whole.trim_end(), word.len() + 2) } else { whole };
        match whole.strip_prefix(word) {
            Some(rest) if self.color_err => self.say_raw(&format!("\x1b[1;{}m{word}\x1b[0m{rest}", tone.color())),
            _ => self.say_raw(&whole),
        }
    }
}

#[derive(Clone, Copy)]
enum Tone {
    Note,
    Warning,
    Error,
    Help,
}

impl Tone {
    fn word(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Help => "help",
        }
    }

    fn color(self) -> u8 {
        match self {
            Self::Note => 32,
            Self::Warning => 33,
            Self::Error => 31,
            Self::Help => 36,
        }
    }
}
