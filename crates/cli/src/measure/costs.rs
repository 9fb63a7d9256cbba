//! Costs of locks without contention, as numbers and as a table.

use crate::json::LockCost;
use crate::layout::{Column, Layout};
use lockwright_measure::{Batches, Cost, Costs};

/// The least number of readings whose 99.9th percentile is not the greatest of them.
const P999: usize = 1_000;

pub(super) fn cost_result(cost: &Cost, cycles_per_ns: f64) -> LockCost {
    // A cost of less than a cycle is one cycle.
    let cycles = |share| cost.cycles.each(share).round().max(1.0) as u64;
    LockCost {
        lock: cost.lock.to_owned(),
        cold: cost.cold,
        min_cycles: cycles(0.0),
        median_cycles: cycles(0.5),
        p999_cycles: cycles(0.999),
        max_cycles: cycles(1.0),
        pairs: cost.cycles.count,
        median_ns: cost.cycles.each(0.5) / cycles_per_ns,
        half_width_ns: cost.cycles.half_width() / cycles_per_ns,
    }
}

/// Three digits of a number, or more if it has more before the point. A number above 0 is not printed as 0.
pub(super) fn three_digits(number: f64) -> String {
    let decimals = 2_i32.saturating_sub(number.log10().floor() as i32).clamp(0, 9) as usize;
    format!("{number:.decimals$}")
}

/// A number with three digits, if there are at least so many batches.
fn of_enough(batches: &Batches, least: usize, number: fn(&Batches) -> f64) -> String {
    if batches.total.count() < least { "–".into() } else { three_digits(number(batches)) }
}

/// Name of the state of the caches.
pub(super) fn caches(cold: bool) -> &'static str {
    if cold { "cold" } else { "warm" }
}

/// A table of costs without contention.
pub(super) fn costs_as_text(measured: &Costs, layout: Layout) -> String {
    let costs = || measured.costs.iter();
    let cycles = |share| costs().map(move |cost| three_digits(cost.cycles.each(share)));
    let mut text = format!(
        "uncontended lock and unlock: {} readings each, in cycles of the time-stamp counter ({:.2} per ns)\n\n",
        measured.readings(),
        measured.cycles_per_ns
    );
    text.push_str(&layout.draw(&[
        Column::words("lock", costs().map(|cost| cost.lock.to_owned())),
        Column::words("caches", costs().map(|cost| caches(cost.cold).to_owned())),
        Column::numbers("min", cycles(0.0)),
        Column::numbers("median", cycles(0.5)),
        Column::numbers("±", costs().map(|cost| of_enough(&cost.cycles, Batches::INTERVAL, Batches::half_width))),
        Column::numbers("p99.9", costs().map(|cost| of_enough(&cost.cycles, P999, |all| all.each(0.999)))),
        Column::numbers("max", cycles(1.0)),
    ]));
    text.push_str(&format!(
        "each reading is the mean of a batch of locks and unlocks; ±: half the width of the median's 95 % confidence \
         interval, with the step of the counter (–: fewer than 6 readings have none); p99.9: –: fewer than 1000 \
         readings; the cycles of an empty reading are subtracted: {:.1} from each batch \
         (warm), {:.1} from each lock and unlock (cold)\n",
        measured.harness_cycles, measured.cold_harness_cycles
    ));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockwright_measure::Readings;

    #[test]
    fn few_readings_have_no_interval_and_no_p999() {
        let batches = |count: u64| {
            let total = Readings::new((1..=count).collect()).expect("not empty");
            Batches { count: 1, total, step: 1 }
        };
        let interval = |count| of_enough(&batches(count), Batches::INTERVAL, Batches::half_width);
        let p999 = |count| of_enough(&batches(count), P999, |all| all.each(0.999));
        assert_eq!([1, 5, 6].map(interval), ["–", "–", "3.00"]);
        assert_eq!([1, 999, 1_000].map(p999), ["–", "–", "999"]);
    }

    #[test]
    fn numbers_have_three_digits_and_are_not_zero() {
        let printed = [0.000_123_4, 0.5, 1.0, 18.26, 342.4, 12_345.6, 0.0].map(three_digits);
        assert_eq!(printed, ["0.000123", "0.500", "1.00", "18.3", "342", "12346", "0.000000000"]);
    }
}
