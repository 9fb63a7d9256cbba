//! The figures of `study bpl`: inversions and delays over the rate, one pair for each number of cores and mean burst.

use crate::console::Console;
use crate::exit::Exit;
use crate::export::ResultFolder;
use crate::figure::{BLUE, Figure, GREEN, Mark, ORANGE, Series, Vertical};
use crate::json::{BplLock, BplResult};
use crate::units;

/// Greater ratios to the delay under FIFO are drawn at this value: under starvation they have no limit.
const DELAY_MAX: f64 = 1.25;

/// Both figures of all cores and bursts, with the names of their files.
pub fn figures(results: &[BplResult]) -> Vec<(String, Figure)> {
    let mut pairs: Vec<(u32, u32)> = results.iter().map(|result| (result.cores, result.burst)).collect();
    pairs.dedup();
    let both = |(cores, burst)| {
        let of = format!("({cores} cores, mean burst {burst})");
        let here = || results.iter().filter(move |result| (result.cores, result.burst) == (cores, burst));
        let figure = |title: String, end: f64, quantity: fn(&BplResult) -> Option<f64>| Figure {
            title: format!("{title} {of}"),
            x: "bursts per mean critical section (λ/μ)",
            y: Vertical::UpTo(end),
            series: LOCKS
                .map(|(lock, name, mark, color)| {
                    let of_lock = here().filter(|result| result.lock == lock);
                    let mut points: Vec<(f64, f64)> =
                        of_lock.filter_map(|result| Some((result.rate, quantity(result)?))).collect();
                    points.sort_by(|one, other| one.0.total_cmp(&other.0));
                    Series { name: name.to_owned(), mark, color, points }
                })
                .into(),
        };
        let inversions = figure("requests with an inversion, %".into(), 100.0, |result| Some(result.inversions_pct));
        let delay = figure(format!("weighted mean delay over that of fifo, cut at {DELAY_MAX}"), DELAY_MAX, |result| {
            Some(result.weighted_delay_over_fifo?.min(DELAY_MAX))
        });
        names(cores, burst).into_iter().zip([inversions, delay])
    };
    pairs.into_iter().flat_map(both).collect()
}

/// Writes all figures into `folder`.
///
/// # Errors
/// A figure cannot be written; the console has the message.
pub fn write(results: &[BplResult], folder: &ResultFolder, console: &Console) -> Result<(), Exit> {
    let figures = figures(results);
    for (name, figure) in &figures {
        folder.write(name, figure.to_svg(), console)?;
    }
    console.note(format!("{} in {}", units::count(figures.len() as u64, "figure"), folder.path().display()));
    Ok(())
}

/// The files of one number of cores and mean burst: inversions, delays.
pub fn names(cores: u32, burst: u32) -> [String; 2] {
    ["inversions", "delay"].map(|quantity| format!("{quantity}-{cores}-{burst}.svg"))
}

/// The locks, in the order of the legend.
pub const LOCKS: [(BplLock, &str, Mark, plotters::style::RGBColor); 3] = [
    (BplLock::Fifo, "fifo (circles)", Mark::Circle, BLUE),
    (BplLock::Priority, "priority (triangles)", Mark::Triangle, ORANGE),
    (BplLock::Batched, "batched (crosses)", Mark::Cross, GREEN),
];
