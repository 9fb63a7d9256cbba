//! Figures of results, as SVG.

use plotters::coord::Shift;
use plotters::prelude::*;
use std::error::Error;

/// In pixels; a viewer scales them.
const SIZE: (u32, u32) = (640, 420);

/// Height of a line of the legend in lines of names, for each name: both share one height.
const LEGEND_SHARE: f64 = 0.11;

/// Colours that colour-blind readers can tell apart (Okabe and Ito).
pub const BLUE: RGBColor = RGBColor(0, 114, 178);
/// See [`BLUE`].
pub const ORANGE: RGBColor = RGBColor(213, 94, 0);
/// See [`BLUE`].
pub const GREEN: RGBColor = RGBColor(0, 128, 96);

/// Points over a logarithmic axis. The SVG names a family of fonts and uses no font metrics, so it is the same on every
/// machine.
pub struct Figure {
    /// Title.
    pub title: String,
    /// Label of the horizontal axis.
    pub x: &'static str,
    /// The vertical axis.
    pub y: Vertical,
    /// The series, in the order of the legend.
    pub series: Vec<Series>,
}

/// The vertical axis.
pub enum Vertical {
    /// Numbers from 0 to this.
    UpTo(f64),
    /// One line for each name, the first at the top: a point at `i` belongs to the `i`-th.
    Names(Vec<String>),
}

/// Points that belong together.
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// The shape of a point: colours alone are lost in print.
    pub mark: Mark,
    /// Colour of the points and the line.
    pub color: RGBColor,
    /// Horizontal and vertical positions. With names on the vertical axis, no line connects the points.
    pub points: Vec<(f64, f64)>,
}

/// The shape of a point.
#[derive(Clone, Copy)]
pub enum Mark {
    /// A filled circle.
    Circle,
    /// A filled triangle.
    Triangle,
    /// A cross.
    Cross,
    /// A bar from the axis up to the point.
    Bar {
        /// Left edge, relative to the point; negative is to the left.
        from: f64,
        /// Right edge, relative to the point.
        to: f64,
    },
}

impl Mark {
    /// Edges relative to the point; marks with a size in pixels have none.
    fn ends(self) -> [f64; 2] {
        match self {
            Self::Bar { from, to } => [from, to],
            Self::Circle | Self::Triangle | Self::Cross => [0.0; 2],
        }
    }
}

impl Figure {
    /// As SVG.
    ///
    /// # Errors
    /// The drawing library fails.
    pub fn to_svg(&self) -> Result<String, Box<dyn Error>> {
        let mut svg = String::new();
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        self.draw(&area).map_err(|error| error.to_string())?;
        drop(area);
        Ok(svg)
    }

    fn draw<'a>(
        &self,
        area: &DrawingArea<SVGBackend<'a>, Shift>,
    ) -> Result<(), DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>> {
        let places = self
            .series
            .iter()
            .flat_map(|series| series.points.iter().flat_map(|&(x, _)| series.mark.ends().map(|end| x + end)));
        // A logarithmic axis needs two ends, and the outermost marks need some room.
        let (least, most) = places.fold((f64::MAX, 0.0), |(least, most): (f64, f64), x| (least.min(x), most.max(x)));
        let (from, to, lines, room) = match &self.y {
            Vertical::UpTo(end) => (0.0, *end, 11, 48),
            // The legend is below the last name.
            Vertical::Names(names) => {
                let legend = (self.series.len() as f64).max(LEGEND_SHARE * (names.len() * self.series.len()) as f64);
                let legend = legend.ceil() as usize;
                let longest = names.iter().map(|name| name.chars().count() as u32).max().unwrap_or(0);
                (-0.5 - legend as f64, names.len() as f64 - 0.5, names.len() + legend, (longest * 8).max(120))
            }
        };
        // Bars far to the right are low.
        let has_bars = self.series.iter().any(|series| matches!(series.mark, Mark::Bar { .. }));
        let legend = if has_bars { SeriesLabelPosition::UpperRight } else { SeriesLabelPosition::LowerRight };
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(room)
            .build_cartesian_2d((least / 1.25..most * 1.25).log_scale(), from..to)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(BLACK.mix(0.12))
            .label_style(("sans-serif", 15))
            .x_desc(self.x)
            .x_label_formatter(&|value| shown(*value))
            .y_labels(lines)
            .y_label_formatter(&|value| self.y.label(*value))
            .draw()?;
        for series in &self.series {
            let color = series.color;
            let points = || series.points.iter().map(|&(x, y)| (x, self.y.place(y)));
            let is_line = matches!(self.y, Vertical::UpTo(_)) && !matches!(series.mark, Mark::Bar { .. });
            let line = points().filter(|_| is_line);
            chart
                .draw_series(LineSeries::new(line, color.stroke_width(2)))?
                .label(&series.name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 22, y)], color.stroke_width(2)));
            match series.mark {
                Mark::Circle => chart.draw_series(points().map(|at| Circle::new(at, 4, color.filled())))?,
                Mark::Triangle => chart.draw_series(points().map(|at| TriangleMarker::new(at, 5, color.filled())))?,
                Mark::Cross => chart.draw_series(points().map(|at| Cross::new(at, 4, color.stroke_width(2))))?,
                Mark::Bar { from, to } => chart.draw_series(
                    points().map(|(x, y)| Rectangle::new([(x + from, 0.0), (x + to, y)], color.filled())),
                )?,
            };
        }
        chart
            .configure_series_labels()
            .label_font(("sans-serif", 15))
            .position(legend)
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.3))
            .draw()?;
        area.present()
    }
}

impl Vertical {
    fn label(&self, value: f64) -> String {
        match self {
            Self::UpTo(_) => shown(value),
            Self::Names(names) => {
                let below = self.place(value).round() as usize;
                names.get(below).cloned().unwrap_or_default()
            }
        }
    }

    /// Position of a point on the axis, which rises.
    fn place(&self, y: f64) -> f64 {
        match self {
            Self::UpTo(_) => y,
            Self::Names(names) => names.len() as f64 - 1.0 - y,
        }
    }
}

/// A label of an axis, without rounding errors.
fn shown(value: f64) -> String {
    ((value * 1e9).round() / 1e9).to_string()
}
