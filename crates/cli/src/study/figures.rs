//! The figures of `study bpl`: inversions and delays over the rate, one pair for each number of cores and mean burst.

use crate::console::Console;
use crate::exit::Exit;
use crate::json::{BplLock, BplResult};
use crate::units;
use plotters::coord::Shift;
use plotters::prelude::*;
use std::error::Error;
use std::path::Path;

/// In pixels; a viewer scales them.
const SIZE: (u32, u32) = (640, 420);
/// Above this, delays over FIFO's are drawn at it: a priority lock that starves has no limit.
const DELAY_MAX: f64 = 1.25;

/// What is drawn over the rate.
#[derive(Clone, Copy)]
enum Quantity {
    Inversions,
    Delay,
}

/// Writes both figures of all cores and bursts into `folder`.
///
/// # Errors
/// Says why one cannot be written.
pub fn write(results: &[BplResult], folder: &Path, console: &Console) -> Result<(), Exit> {
    let mut pairs: Vec<(u32, u32)> = results.iter().map(|result| (result.cores, result.burst)).collect();
    pairs.dedup();
    for &(cores, burst) in &pairs {
        let here: Vec<&BplResult> =
            results.iter().filter(|result| (result.cores, result.burst) == (cores, burst)).collect();
        for (name, quantity) in [("inversions", Quantity::Inversions), ("delay", Quantity::Delay)] {
            let path = folder.join(format!("{name}-{cores}-{burst}.svg"));
            let written = drawn(&here, cores, burst, quantity).and_then(|svg| Ok(std::fs::write(&path, svg)?));
            written.map_err(|error| {
                console.error(format!("cannot write {}: {error}", path.display()), "make room, or draw elsewhere");
                Exit::Machine
            })?;
        }
    }
    console.note(format!("{} in {}", units::count(2 * pairs.len() as u64, "figure"), folder.display()));
    Ok(())
}

impl Quantity {
    fn title(self) -> String {
        match self {
            Self::Inversions => "requests with an inversion, %".into(),
            Self::Delay => format!("weighted mean delay over that of fifo, cut at {DELAY_MAX}"),
        }
    }

    fn end(self) -> f64 {
        match self {
            Self::Inversions => 100.0,
            Self::Delay => DELAY_MAX,
        }
    }

    fn of(self, result: &BplResult) -> Option<f64> {
        match self {
            Self::Inversions => Some(result.inversions_pct),
            Self::Delay => Some(result.weighted_delay_over_fifo?.min(DELAY_MAX)),
        }
    }
}

/// One figure. It names a family of fonts and measures none: the text is the same on every machine.
fn drawn(results: &[&BplResult], cores: u32, burst: u32, quantity: Quantity) -> Result<String, Box<dyn Error>> {
    let mut svg = String::new();
    draw(&SVGBackend::with_string(&mut svg, SIZE).into_drawing_area(), results, cores, burst, quantity)
        .map_err(|error| error.to_string())?;
    Ok(svg)
}

fn draw<'a>(
    area: &DrawingArea<SVGBackend<'a>, Shift>,
    results: &[&BplResult],
    cores: u32,
    burst: u32,
    quantity: Quantity,
) -> Result<(), DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>> {
    let rates = results.iter().map(|result| result.rate);
    // A logarithmic axis needs two ends, and the outermost marks some room.
    let ends = rates.fold((f64::MAX, 0.0), |(least, most): (f64, f64), rate| (least.min(rate), most.max(rate)));
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(area)
        .caption(format!("{} ({cores} cores, mean burst {burst})", quantity.title()), ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(48)
        .build_cartesian_2d((ends.0 / 1.25..ends.1 * 1.25).log_scale(), 0.0..quantity.end())?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.12))
        .label_style(("sans-serif", 15))
        .x_desc("bursts per mean critical section (λ/μ)")
        .x_label_formatter(&|rate| shown(*rate))
        .y_label_formatter(&|value| shown(*value))
        .draw()?;
    for (lock, name, color) in LOCKS {
        let of_lock = results.iter().filter(|result| result.lock == lock);
        let mut points: Vec<(f64, f64)> =
            of_lock.filter_map(|result| Some((result.rate, quantity.of(result)?))).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        chart
            .draw_series(LineSeries::new(points.iter().copied(), color.stroke_width(2)))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 22, y)], color.stroke_width(2)));
        // Marks of different shapes: colours alone tell nothing in print.
        match lock {
            BplLock::Fifo => chart.draw_series(points.iter().map(|&at| Circle::new(at, 4, color.filled())))?,
            BplLock::Priority => {
                chart.draw_series(points.iter().map(|&at| TriangleMarker::new(at, 5, color.filled())))?
            }
            BplLock::Batched => chart.draw_series(points.iter().map(|&at| Cross::new(at, 4, color.stroke_width(2))))?,
        };
    }
    chart
        .configure_series_labels()
        .label_font(("sans-serif", 15))
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    area.present()
}

/// In the order of the legend, with colours that the colour-blind tell apart (Okabe and Ito).
const LOCKS: [(BplLock, &str, RGBColor); 3] = [
    (BplLock::Fifo, "fifo (circles)", RGBColor(0, 114, 178)),
    (BplLock::Priority, "priority (triangles)", RGBColor(213, 94, 0)),
    (BplLock::Batched, "batched (crosses)", RGBColor(0, 128, 96)),
];

/// A label of an axis, without the dust of floats.
fn shown(value: f64) -> String {
    ((value * 1e9).round() / 1e9).to_string()
}
