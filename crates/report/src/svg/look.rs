//! The common parts of the picture of a schedule and of its legend: its layout, its classes and its marks.

use super::parts::Level;
use crate::canvas::Place;
use crate::label::Px;
use crate::{By, Mark, State};
use lockwright_model::{ResourceId, System};
use std::ops::RangeInclusive;

/// The usual width of the picture in its own units, which suits an A4 page and a phone in landscape orientation.
pub const WIDTH: u32 = 1000;
/// The possible widths. The least is that of a phone.
pub const WIDTHS: RangeInclusive<u32> = 320..=4000;
/// Below this width, the name of a row stands above it, so that the time axis has the whole width.
const NARROW: u32 = 600;
/// The height of a bar.
pub const BAR: f64 = 18.0;
/// The most characters of a task's name in the picture. Longer names are cut; the description has the whole name.
const NAME_MAX: usize = 22;
/// The number of colours of resources, the classes `r0` and so on of the style. They are those of Okabe and Ito,
/// without black and yellow. Letters are white on the first one.
const COLOURS: usize = 6;

/// The form of a picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Form<'a> {
    /// The title.
    pub title: &'a str,
    /// The subject of a row.
    pub by: By,
    /// Where the picture stands.
    pub place: Place<'a>,
    /// The width in its own units, one of [`WIDTHS`]. Text has 12 to 17 of them.
    pub width: u32,
    /// How much of what is short is merged. The legend says so where anything is.
    pub level: Level,
}

/// The positions of a picture.
#[derive(Clone, Copy)]
pub struct Layout {
    pub width: f64,
    /// The begin and the end of the time axis.
    pub left: f64,
    pub right: f64,
    /// The top of the rows, and the height of each.
    pub top: f64,
    pub row: f64,
    /// The height of the unit of time, and of the name of a row beside its line.
    pub unit: f64,
    pub name: f64,
    is_narrow: bool,
}

impl Layout {
    pub fn new(system: &System, by: By, pixels: u32) -> Self {
        let width = f64::from(pixels);
        if pixels < NARROW {
            let (left, right) = (20.0, width - 20.0);
            return Self { width, left, right, top: 82.0, row: 58.0, unit: 48.0, name: -38.0, is_narrow: true };
        }
        let labels = match by {
            By::Task => system.tasks().iter().map(|task| task.name.chars().count().min(NAME_MAX)).max().unwrap_or(0),
            By::Cpu => 0,
        };
        // The unit of time stands above the labels.
        let left = 24.0 + 8.0 * labels.max("time in ms".len()) as f64;
        Self { width, left, right: width - 20.0, top: 64.0, row: 40.0, unit: 50.0, name: -4.0, is_narrow: false }
    }

    /// The most ticks of the axis.
    pub fn ticks(self) -> u64 {
        ((self.right - self.left) / 60.0).clamp(3.0, 11.0) as u64
    }

    /// The most characters of the name of a row.
    pub fn name_max(self) -> usize {
        if self.is_narrow { ((self.width - 24.0) / 8.0) as usize } else { NAME_MAX }
    }

    /// The most characters of the title.
    pub fn title_max(self) -> usize {
        ((self.width - 24.0) / 9.0) as usize
    }
}

/// The place of a resource among those of the picture.
fn place(resource: ResourceId, resources: &[ResourceId]) -> usize {
    resources.iter().position(|&other| other == resource).unwrap_or(0)
}

/// The class of a bar.
pub fn class(state: &State, resources: &[ResourceId]) -> String {
    match state {
        State::Executes(held) | State::Undone(held) => match held.last() {
            Some(&resource) => format!("r{}", place(resource, resources) % COLOURS),
            None => "run".into(),
        },
        State::Spins(..) => "spins".into(),
        State::Waits(..) => "waits".into(),
        State::Blocked(_) => "blocked".into(),
        State::Ready(_) => "ready".into(),
    }
}

/// Whether only white letters are readable on the colour of a resource.
pub fn is_dark(resource: ResourceId, resources: &[ResourceId]) -> bool {
    place(resource, resources).is_multiple_of(COLOURS)
}

/// The outline of marks on a bar with this base.
pub fn marks_path(marks: impl Iterator<Item = Mark>, x: f64, base: f64) -> String {
    marks.map(|mark| mark_path(mark, x, base)).collect()
}

fn mark_path(mark: Mark, x: f64, base: f64) -> String {
    let (at, top, foot) = (Px(x), Px(base - BAR - 8.0), Px(base));
    match mark {
        Mark::Arrival => format!("M{at} {foot}V{top}m-3.5 5l3.5-5l3.5 5"),
        Mark::Deadline => format!("M{at} {top}V{foot}m-3.5-5l3.5 5l3.5-5"),
        Mark::Missed => {
            let (left, above) = (Px(x - 4.5), Px(base - BAR - 16.0));
            format!("M{at} {top}V{foot}m-3.5-5l3.5 5l3.5-5M{left} {above}l9 9m0-9l-9 9")
        }
        Mark::Restart => format!("M{} {}l-5-5l5-5m-5 5h9", Px(x - 1.0), Px(base - BAR - 1.0)),
        Mark::Finish => String::new(),
    }
}
