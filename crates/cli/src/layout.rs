//! Tables and wrapped text that fit the width of the screen.

use crate::tame;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle, Width};
use std::os::fd::AsFd;
use terminal_size::terminal_size_of;
use textwrap::{Options, WordSplitter, wrap};

/// Width of the output if it is not a terminal.
const PIPE_WIDTH: usize = 100;
/// Least width; a narrower terminal breaks lines by itself.
const WIDTH_MIN: usize = 60;
/// Least width of a column of text while other columns can be left out.
const PROSE_MIN: usize = 24;
/// Greatest indentation of wrapped text; the rest of the narrowest line is left for the text.
const INDENT_MAX: usize = WIDTH_MIN * 2 / 3;
/// Blanks after a cell, except in the last column. The table adds one more blank between two columns.
const GAP: usize = 2;

/// No lines except one under the header.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// The width of the output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    width: usize,
    /// Show all columns and do not wrap lines.
    is_free: bool,
}

impl Layout {
    /// The layout of a stream: the width of the terminal, or else of the variable `COLUMNS`, or else 100. With
    /// `is_free`, all columns are shown and no line is wrapped.
    #[must_use]
    pub fn of(stream: impl AsFd, is_free: bool) -> Self {
        let of_terminal = terminal_size_of(stream).map(|(width, _)| usize::from(width.0));
        let of_variable = || std::env::var("COLUMNS").ok()?.trim().parse().ok();
        Self::new(of_terminal.or_else(of_variable).unwrap_or(PIPE_WIDTH), is_free)
    }

    /// The layout of a pipe.
    #[must_use]
    pub fn of_pipe(is_free: bool) -> Self {
        Self::new(PIPE_WIDTH, is_free)
    }

    /// The layout for a width in characters, at least 60.
    #[must_use]
    pub fn new(width: usize, is_free: bool) -> Self {
        Self { width: width.max(WIDTH_MIN), is_free }
    }

    /// The layout of a part of the lines, for text that something precedes.
    #[must_use]
    pub fn narrower(self, by: usize) -> Self {
        Self { width: self.width.saturating_sub(by).max(1), ..self }
    }

    /// The width in characters.
    #[must_use]
    pub fn width(self) -> usize {
        self.width
    }

    /// Wraps each line between words. Continuation lines are indented by two more characters than their line.
    #[must_use]
    pub fn prose(self, text: &str) -> String {
        let mut wrapped = String::with_capacity(text.len());
        for line in text.lines() {
            let indent = line.len() - line.trim_start_matches(' ').len();
            let rest = if indent == 0 { String::new() } else { " ".repeat(indent + 2) };
            self.wrap(&mut wrapped, line, &rest);
        }
        wrapped
    }

    /// As [`Layout::prose`], for one line; continuation lines are indented by `indent` characters.
    #[must_use]
    pub fn hanging(self, line: &str, indent: usize) -> String {
        let mut wrapped = String::new();
        self.wrap(&mut wrapped, line, &" ".repeat(indent.min(INDENT_MAX)));
        wrapped
    }

    fn wrap(self, to: &mut String, line: &str, rest: &str) {
        if self.is_free {
            to.push_str(line.trim_end());
            to.push('\n');
            return;
        }
        let options = Options::new(self.width).subsequent_indent(rest).word_splitter(WordSplitter::NoHyphenation);
        for part in wrap(&joined(line), options) {
            to.push_str(&part.trim_end().replace(JOINT, " "));
            to.push('\n');
        }
    }

    /// Splits a table into parts that fit the width, each with the first `fixed` columns and at least one other.
    #[must_use]
    pub fn parts(self, columns: &[Column], fixed: usize) -> Vec<Vec<Column>> {
        let (fixed, others) = columns.split_at(fixed.min(columns.len()));
        let mut parts = vec![fixed.to_vec()];
        for column in others {
            let is_full = |part: &Vec<Column>| {
                let whole: Vec<&Column> = part.iter().chain([column]).collect();
                !self.is_free && part.len() > fixed.len() && total(&whole, Column::width) > self.width
            };
            match parts.last_mut().filter(|part| !is_full(part)) {
                Some(part) => part.push(column.clone()),
                None => parts.push([fixed, std::slice::from_ref(column)].concat()),
            }
        }
        parts
    }

    /// Draws a table without trailing blanks. If it is too wide, columns are left out in the order of
    /// [`Column::gives_way`]; then columns of text are wrapped, and if that is not enough, all words. A line below the
    /// table names the columns that are left out.
    #[must_use]
    pub fn draw(self, columns: &[Column]) -> String {
        let mut shown: Vec<&Column> = columns.iter().collect();
        let mut left_out = Vec::new();
        while !self.is_free && total(&shown, Column::least_width) > self.width {
            let ranked = shown.iter().enumerate().filter_map(|(place, column)| Some((column.rank?, place)));
            let Some((_, place)) = ranked.max() else { break };
            left_out.push(shown.remove(place).title.as_str());
        }
        let mut table = Table::new();
        table.load_style(STYLE).set_header(shown.iter().map(|column| column.title.as_str()));
        let rows = shown.iter().map(|column| column.cells.len()).max().unwrap_or(0);
        for row in 0..rows {
            table.add_row(
                shown.iter().map(|column| column.cells.get(row).map_or_else(String::new, |cell| tame::line(cell))),
            );
        }
        if !self.is_free && total(&shown, Column::width) > self.width {
            let width = u16::try_from(self.width).unwrap_or(u16::MAX);
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        let is_tight = !self.is_free && total(&shown, Column::least_width) > self.width;
        for (index, column) in shown.iter().enumerate() {
            let wraps = column.wraps || is_tight && column.lean == Lean::Left;
            if let Some(drawn) = table.column_mut(index) {
                let gap = if index + 1 < shown.len() { GAP as u16 } else { 0 };
                drawn.set_padding((0, gap));
                drawn.set_cell_alignment(match column.lean {
                    Lean::Left => CellAlignment::Left,
                    Lean::Right => CellAlignment::Right,
                });
                if let Some(width) = u16::try_from(column.width()).ok().filter(|_| !wraps) {
                    drawn.set_constraint(ColumnConstraint::Absolute(Width::Fixed(width.saturating_add(gap))));
                }
            }
        }
        let mut text = String::new();
        for line in table.lines() {
            text.push_str(line.trim_end());
            text.push('\n');
        }
        if !left_out.is_empty() {
            text.push_str(&self.prose(&format!("columns left out: {}; --wide shows them", left_out.join(", "))));
        }
        text
    }
}

fn total(columns: &[&Column], of: impl Fn(&Column) -> usize) -> usize {
    columns.iter().map(|column| of(column)).sum::<usize>() + (GAP + 1) * columns.len().saturating_sub(1)
}

/// Alignment of the cells of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lean {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// One column, ready to print.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// Title in the first row.
    pub title: String,
    /// Alignment.
    pub lean: Lean,
    /// One for each row.
    pub cells: Vec<String>,
    /// Whether its cells may be wrapped.
    wraps: bool,
    /// The order in which it is left out, greatest first; `None` keeps it.
    rank: Option<u8>,
}

impl Column {
    /// A column of words.
    pub fn words(title: &str, cells: impl IntoIterator<Item = String>) -> Self {
        let cells = cells.into_iter().collect();
        Self { title: title.into(), lean: Lean::Left, cells, wraps: false, rank: None }
    }

    /// A column of numbers.
    pub fn numbers(title: &str, cells: impl IntoIterator<Item = String>) -> Self {
        Self { lean: Lean::Right, ..Self::words(title, cells) }
    }

    /// A column of text, which is wrapped if the table is too wide.
    pub fn prose(title: &str, cells: impl IntoIterator<Item = String>) -> Self {
        Self { wraps: true, ..Self::words(title, cells) }
    }

    /// Leaves the column out if the table is too wide: before columns of lower rank, and before columns of the same
    /// rank further left.
    #[must_use]
    pub fn gives_way(self, rank: u8) -> Self {
        Self { rank: Some(rank), ..self }
    }

    /// The order in which it is left out, greatest first.
    #[must_use]
    pub fn rank(&self) -> Option<u8> {
        self.rank
    }

    fn width(&self) -> usize {
        let cells = self.cells.iter().map(|cell| textwrap::core::display_width(&tame::line(cell)));
        cells.max().unwrap_or(0).max(textwrap::core::display_width(&self.title))
    }

    /// Least width while other columns can be left out.
    fn least_width(&self) -> usize {
        if self.wraps { self.width().min(PROSE_MIN) } else { self.width() }
    }
}

/// Replaces the blank between a number and its unit while a line is wrapped.
const JOINT: char = '\u{a0}';
/// Units that follow numbers.
const UNITS: [&str; 7] = ["%", "ns", "us", "ms", "s", "min", "h"];

/// Joins numbers to their units, so that both stay on one line.
fn joined(line: &str) -> String {
    let mut joined = String::with_capacity(line.len());
    for (index, word) in line.split(' ').enumerate() {
        if index > 0 {
            let unit = word.trim_end_matches(|c: char| c.is_ascii_punctuation() && c != '%');
            let is_number = joined.ends_with(|c: char| c.is_ascii_digit());
            joined.push(if is_number && UNITS.contains(&unit) { JOINT } else { ' ' });
        }
        joined.push_str(word);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings<const N: usize>(cells: [&str; N]) -> impl IntoIterator<Item = String> {
        cells.map(str::to_owned)
    }

    fn widest(text: &str) -> usize {
        text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
    }

    #[test]
    fn numbers_are_aligned_right() {
        let text = Layout::new(100, false).draw(&[
            Column::words("task", strings(["a", "longer"])),
            Column::numbers("C", strings(["10", "7"])),
            Column::words("verdict", strings(["ok", "no bound"])),
        ]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert_eq!(lines[2].find("10"), lines[3].find(" 7"), "{text}");
        assert!(lines.iter().all(|line| line.trim_end() == *line), "{text}");
    }

    #[test]
    fn numbers_stay_with_their_units() {
        let text = Layout::new(60, false).prose(&format!("  {} 88.3 %, 5 ms; and 7 sons", "x".repeat(52)));
        assert_eq!(text, format!("  {}\n    88.3 %, 5 ms; and 7 sons\n", "x".repeat(52)));
        for line in ["", " ", "a", "  a  b ", "5 % 6 s", " 5 ms"] {
            assert_eq!(joined(line).replace(JOINT, " "), line);
        }
    }

    #[test]
    fn columns_are_left_out_in_order() {
        let number = |title: &str| Column::numbers(title, strings(["1234567890123456789"]));
        let columns = [
            number("stays"),
            number("second").gives_way(2),
            number("third").gives_way(1),
            number("first").gives_way(3),
        ];
        let left_out = |width| {
            let text = Layout::new(width, false).draw(&columns);
            assert!(widest(&text) <= width, "{text}");
            text.lines().nth(3).unwrap_or_default().to_owned()
        };
        assert_eq!(left_out(85), "");
        assert_eq!(left_out(84), "columns left out: first; --wide shows them");
        assert_eq!(left_out(60), "columns left out: first, second; --wide shows them");
        let wide = Layout::new(60, true).draw(&columns);
        assert!(wide.contains("first") && widest(&wide) == 85, "{wide}");
    }

    #[test]
    fn text_columns_are_wrapped() {
        let long = "one word after the other until the line is much too long for any screen of eighty characters";
        let text = Layout::new(80, false).draw(&[
            Column::words("task", strings(["a"])),
            Column::numbers("total", strings(["12.345 ms"])),
            Column::prose("why", strings([long])),
        ]);
        assert!(widest(&text) <= 80, "{text}");
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!(long.split(' ').all(|word| words.contains(&word)) && text.contains("12.345 ms"), "{text}");
    }

    #[test]
    fn wrapped_text_keeps_words_and_indentation() {
        let text = format!("  a: {}\nshort\n", "word ".repeat(40));
        let wrapped = Layout::new(80, false).prose(&text);
        assert!(widest(&wrapped) <= 80, "{wrapped}");
        assert_eq!(wrapped.split_whitespace().count(), text.split_whitespace().count());
        let lines: Vec<&str> = wrapped.lines().collect();
        assert!(lines[1].starts_with("    word") && lines.last() == Some(&"short"), "{wrapped}");
    }
}
