//! Curves over a linear axis, one inset or a grid of them, as SVG. The SVG uses no font metrics, so it is the same on
//! every machine.

use crate::figure::{BLUE, GREEN, ORANGE};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::error::Error;

/// Width and height of an inset in pixels.
const INSET: (u32, u32) = (380, 280);
/// Width and height of a figure with one inset.
const ALONE: (u32, u32) = (560, 400);
/// Width of a character of the legend in pixels, and the height of a line.
const LETTER: (u32, u32) = (8, 20);
/// Distance from the title to the middle of the first line of the legend.
const LEGEND: u32 = 24;
/// Height of the title.
const TITLE: u32 = 34;

/// Colours that colour-blind readers can tell apart (Okabe and Ito, darkened), in the order of the legend.
const COLORS: [RGBColor; 7] =
    [BLUE, ORANGE, GREEN, RGBColor(170, 70, 130), RGBColor(60, 60, 60), RGBColor(150, 110, 0), RGBColor(60, 150, 200)];

/// A figure of insets that share a legend.
pub struct Grid {
    /// Title.
    pub title: String,
    /// Number of insets in a row.
    pub columns: usize,
    /// Names of the curves: curve `i` of each inset has the `i`-th.
    pub legend: Vec<String>,
    /// The insets, row by row.
    pub insets: Vec<Inset>,
}

/// One coordinate system.
pub struct Inset {
    /// Title.
    pub title: String,
    /// Label of the horizontal axis.
    pub x: String,
    /// Label of the vertical axis.
    pub y: String,
    /// End of the vertical axis, which begins at 0; `None` for a little more than the greatest value.
    pub end: Option<f64>,
    /// The curves, in the order of the legend.
    pub curves: Vec<Vec<Point>>,
}

/// A point of a curve.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Horizontal position.
    pub x: f64,
    /// Vertical position.
    pub y: f64,
    /// Ends of the interval that contains the true value with some confidence, if it is known.
    pub interval: Option<(f64, f64)>,
}

type Outcome<'a> = Result<(), DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>>;

impl Grid {
    /// As SVG.
    ///
    /// # Errors
    /// The drawing library fails.
    pub fn to_svg(&self) -> Result<String, Box<dyn Error>> {
        let columns = self.columns.max(1) as u32;
        let rows = (self.insets.len() as u32).div_ceil(columns).max(1);
        let inset = if self.insets.len() > 1 { INSET } else { ALONE };
        let longest = self.legend.iter().map(|name| name.chars().count() as u32).max().unwrap_or(0);
        let width = inset.0 * columns;
        let legend = LEGEND + LETTER.1 * self.legend.len() as u32;
        let size = (width + 60 + LETTER.0 * longest, TITLE + (inset.1 * rows).max(legend));
        let mut svg = String::new();
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        self.draw(&area, width, (rows, columns)).map_err(|error| error.to_string())?;
        drop(area);
        Ok(svg)
    }

    fn draw<'a>(&self, area: &DrawingArea<SVGBackend<'a>, Shift>, width: u32, shape: (u32, u32)) -> Outcome<'a> {
        area.fill(&WHITE)?;
        let (title, rest) = area.split_vertically(TITLE);
        title.draw(&Text::new(self.title.clone(), (12, 10), ("sans-serif", 18)))?;
        let (drawing, legend) = rest.split_horizontally(width);
        for (index, name) in self.legend.iter().enumerate() {
            let y = (LEGEND + index as u32 * LETTER.1) as i32;
            let color = color(index);
            legend.draw(&PathElement::new([(8, y), (32, y)], color.stroke_width(2)))?;
            mark(&legend, index, (20, y))?;
            legend.draw(&Text::new(name.clone(), (40, y - 7), ("sans-serif", 14)))?;
        }
        let places = drawing.split_evenly((shape.0 as usize, shape.1 as usize));
        for (inset, place) in self.insets.iter().zip(&places) {
            inset.draw(place)?;
        }
        area.present()
    }
}

impl Inset {
    fn draw<'a>(&self, area: &DrawingArea<SVGBackend<'a>, Shift>) -> Outcome<'a> {
        let points = || self.curves.iter().flatten();
        let (least, most) = points().fold((f64::MAX, f64::MIN), |(a, b), point| (a.min(point.x), b.max(point.x)));
        // Without points the axis is that of one unit; one point needs some room.
        let (least, most) = if least > most { (0.0, 1.0) } else { (least, most) };
        let room = ((most - least) * 0.03).max(1e-9_f64.max(most.abs() * 0.01));
        let top = points().map(|point| point.y).fold(0.0, f64::max) * 1.08;
        let end = self.end.unwrap_or(if top > 0.0 { top } else { 1.0 });
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 15))
            .margin(8)
            .x_label_area_size(36)
            .y_label_area_size(58)
            .build_cartesian_2d(least - room..most + room, 0.0..end * 1.02)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(BLACK.mix(0.12))
            .label_style(("sans-serif", 12))
            .x_desc(&self.x)
            .y_desc(&self.y)
            .x_label_formatter(&|value| shown(*value))
            .y_label_formatter(&|value| shown(*value))
            .draw()?;
        for (index, curve) in self.curves.iter().enumerate() {
            let color = color(index);
            // The intervals are a band; that of a point alone is a line.
            let ends = || curve.iter().filter_map(|point| Some((point.x, point.interval?)));
            let low = ends().map(|(x, (low, _))| (x, low));
            let band: Vec<(f64, f64)> = low.chain(ends().rev().map(|(x, (_, high))| (x, high))).collect();
            if let [_, _] = band[..] {
                chart.draw_series(LineSeries::new(band, color.mix(0.35).stroke_width(1)))?;
            } else if !band.is_empty() {
                chart.draw_series([Polygon::new(band, color.mix(0.1).filled())])?;
            }
            let line = curve.iter().map(|point| (point.x, point.y));
            chart.draw_series(LineSeries::new(line, color.stroke_width(2)))?;
            for point in curve {
                let at = chart.backend_coord(&(point.x, point.y));
                let (left, top) = area.get_base_pixel();
                mark(area, index, (at.0 - left, at.1 - top))?;
            }
        }
        Ok(())
    }
}

/// Draws the mark of a curve at this pixel of an area.
fn mark<'a>(area: &DrawingArea<SVGBackend<'a>, Shift>, index: usize, at: (i32, i32)) -> Outcome<'a> {
    let color = color(index);
    match index % 4 {
        0 => area.draw(&Circle::new(at, 3, color.filled())),
        1 => area.draw(&TriangleMarker::new(at, 4, color.filled())),
        2 => area.draw(&Cross::new(at, 3, color.stroke_width(2))),
        _ => area.draw(&Circle::new(at, 4, color.stroke_width(2))),
    }
}

fn color(index: usize) -> RGBColor {
    COLORS[index % COLORS.len()]
}

/// A label of an axis, without rounding errors.
fn shown(value: f64) -> String {
    ((value * 1e6).round() / 1e6).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(curves: Vec<Vec<Point>>) -> String {
        let inset = |curves| Inset { title: "(a)".into(), x: "load".into(), y: "share".into(), end: Some(1.0), curves };
        let legend = vec!["mpcp".into(), "msrp".into()];
        let insets = vec![inset(curves), inset(Vec::new())];
        let svg = Grid { title: "two curves".into(), columns: 2, legend, insets }.to_svg().expect("is drawn");
        roxmltree::Document::parse(&svg).unwrap_or_else(|error| panic!("{error}: {svg}"));
        svg
    }

    #[test]
    fn curves_have_a_legend_and_marks() {
        let point = |x: f64, y: f64| Point { x, y, interval: Some((y - 0.1, y + 0.1)) };
        let svg = grid(vec![vec![point(0.1, 1.0), point(0.9, 0.5)], vec![point(0.1, 0.8)]]);
        for part in ["two curves", "mpcp", "msrp", "load", "(a)", "0.9"] {
            assert!(svg.contains(part), "{part} is missing in {svg}");
        }
        // Two marks of the first curve and one in the legend.
        assert_eq!(svg.matches("<circle").count(), 3, "{svg}");
    }

    /// The pictures of the curves keep their height, and each method has a line of the legend within the figure.
    #[test]
    fn a_long_legend_is_not_cut_off() {
        let heights = [2, 40].map(|methods: usize| {
            let legend: Vec<String> = (0..methods).map(|method| format!("method-{method}")).collect();
            let curves = vec![vec![Point { x: 0.0, y: 1.0, interval: None }]; methods];
            let inset = Inset { title: "".into(), x: "load".into(), y: "share".into(), end: Some(1.0), curves };
            let grid = Grid { title: "many curves".into(), columns: 1, legend, insets: vec![inset] };
            let svg = grid.to_svg().expect("is drawn");
            let picture = roxmltree::Document::parse(&svg).expect("is XML");
            let number = |node: roxmltree::Node<'_, '_>, name| node.attribute(name).and_then(|text| text.parse().ok());
            let height: f64 = number(picture.root_element(), "height").expect("a height");
            for method in 0..methods {
                let name = format!("method-{method}");
                let line = picture.descendants().find(|node| node.text().is_some_and(|text| text.trim() == name));
                let y: f64 = line.and_then(|line| number(line.parent()?, "y").or(number(line, "y"))).expect("a line");
                assert!(y + 14.0 <= height, "{name} is at {y} of {height}");
            }
            height
        });
        assert_eq!(heights[0], f64::from(TITLE + ALONE.1));
    }

    #[test]
    fn no_points_are_no_error() {
        assert!(grid(vec![Vec::new(), Vec::new()]).starts_with("<svg"));
        assert!(grid(vec![vec![Point { x: 0.0, y: 0.0, interval: None }]]).starts_with("<svg"));
    }
}
