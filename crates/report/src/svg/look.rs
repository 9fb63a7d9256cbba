//! The common parts of the picture of a schedule and of its legend.

use crate::canvas::Place;
use crate::{By, Mark};
use lockwright_model::ResourceId;

/// The width of the picture in its own units, which suits an A4 page and a phone in landscape orientation.
pub const WIDTH: f64 = 1000.0;
/// The height of a bar.
pub const BAR: f64 = 18.0;

/// Colours of resources, by their order in the picture: Okabe and Ito, without black and yellow.
const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00"];

/// The form of a picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Form<'a> {
    /// The title.
    pub title: &'a str,
    /// The subject of a row.
    pub by: By,
    /// Where the picture stands.
    pub place: Place<'a>,
}

/// The colour of a resource among those of the picture.
pub fn colour(resource: ResourceId, resources: &[ResourceId]) -> &'static str {
    let place = resources.iter().position(|&other| other == resource).unwrap_or(0);
    COLOURS[place % COLOURS.len()]
}

/// Whether only white letters are readable on a colour of a resource.
pub fn is_dark(colour: &str) -> bool {
    colour == COLOURS[0]
}

/// The outline of a mark on a bar with this base.
pub fn mark_path(mark: Mark, x: f64, base: f64) -> String {
    let top = base - BAR - 8.0;
    match mark {
        Mark::Arrival => format!("M{x:.1} {base:.1}V{top:.1}m-3.5 5l3.5 -5l3.5 5"),
        Mark::Deadline => format!("M{x:.1} {top:.1}V{base:.1}m-3.5 -5l3.5 5l3.5 -5"),
        Mark::Missed => {
            let (left, above) = (x - 4.5, top - 8.0);
            format!("M{x:.1} {top:.1}V{base:.1}m-3.5 -5l3.5 5l3.5 -5M{left:.1} {above:.1}l9 9m0 -9l-9 9")
        }
        Mark::Restart => format!("M{:.1} {:.1}l-5 -5l5 -5m-5 5h9", x - 1.0, base - BAR - 1.0),
        Mark::Finish => String::new(),
    }
}
