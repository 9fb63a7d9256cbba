//! Tables of a page.

use maud::{Markup, html};

/// A table. The script sorts it by any column.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Table {
    /// The caption.
    pub caption: String,
    /// The columns. The first one names the rows.
    pub columns: Vec<Column>,
    /// The rows, each with a cell for each column.
    pub rows: Vec<Vec<Cell>>,
}

/// A column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// The title.
    pub title: String,
    /// The key of its values in JSON, for readers of both.
    pub key: &'static str,
    /// Whether it has numbers.
    pub is_number: bool,
    /// Whether it has sentences, which may take several lines.
    pub is_wide: bool,
}

/// The meaning of a cell for the verdict.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Tone {
    /// None.
    #[default]
    Plain,
    /// Good.
    Good,
    /// Bad.
    Bad,
    /// Different from the result that it is compared with.
    Changed,
}

/// A cell.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Cell {
    /// The text.
    pub text: String,
    /// The exact value, by which rows are sorted.
    pub value: Option<i128>,
    /// Its meaning.
    pub tone: Tone,
}

impl Column {
    /// A column of words.
    #[must_use]
    pub fn words(title: impl Into<String>, key: &'static str) -> Self {
        Self { title: title.into(), key, is_number: false, is_wide: false }
    }

    /// A column of sentences.
    #[must_use]
    pub fn prose(title: impl Into<String>, key: &'static str) -> Self {
        Self { is_wide: true, ..Self::words(title, key) }
    }

    /// A column of numbers.
    #[must_use]
    pub fn numbers(title: impl Into<String>, key: &'static str) -> Self {
        Self { is_number: true, ..Self::words(title, key) }
    }
}

impl Cell {
    /// A text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// A text with the value that it stands for.
    #[must_use]
    pub fn number(text: impl Into<String>, value: impl Into<i128>) -> Self {
        Self { text: text.into(), value: Some(value.into()), ..Self::default() }
    }

    /// An absent value.
    #[must_use]
    pub fn absent() -> Self {
        Self::text("–")
    }

    /// The same cell with another meaning.
    #[must_use]
    pub fn with(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }
}

impl Tone {
    fn class(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Good => Some("good"),
            Self::Bad => Some("bad"),
            Self::Changed => Some("changed"),
        }
    }
}

/// The table as HTML.
pub fn table(table: &Table) -> Markup {
    html! {
        div.scroll tabindex="0" role="group" aria-label=(table.caption) {
            table {
                caption { (table.caption) }
                thead {
                    tr {
                        @for column in &table.columns {
                            th scope="col" class=[column.is_number.then_some("n")] data-key=(column.key) { (column.title) }
                        }
                    }
                }
                tbody {
                    @for row in &table.rows {
                        tr {
                            @for (place, (cell, column)) in row.iter().zip(&table.columns).enumerate() {
                                (self::cell(cell, column, place == 0))
                            }
                        }
                    }
                }
            }
        }
    }
}

fn cell(cell: &Cell, column: &Column, is_first: bool) -> Markup {
    let class = [column.is_number.then_some("n"), column.is_wide.then_some("wide"), cell.tone.class()];
    let class = class.into_iter().flatten().collect::<Vec<_>>().join(" ");
    let class = (!class.is_empty()).then_some(class);
    html! {
        @if is_first {
            th class=[&class] data-v=[cell.value] { (cell.text) }
        } @else {
            td class=[&class] data-v=[cell.value] { (cell.text) }
        }
    }
}
