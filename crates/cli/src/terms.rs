//! The tables of `--explain` and `--sensitivity`, and the search for the latter.

use crate::console::Console;
use crate::interrupt;
use crate::layout::{Column, Layout};
use crate::progress::Progress;
use crate::units;
use lockwright_analysis::{Growth, Sensitivity, Term, sensitivity};
use lockwright_model::{Duration, Overheads, Protocol, System};

/// Sensitivity under a scheduler other than partitioned fixed priorities; `None` if interrupted.
pub(crate) fn grown_for(system: &System, overheads: &Overheads, console: &Console) -> Option<Sensitivity> {
    grow(system, overheads, system.protocol_or_default(), console)
}

/// Sensitivity under one protocol; `None` if interrupted.
pub(crate) fn grow(
    system: &System,
    overheads: &Overheads,
    protocol: Protocol,
    console: &Console,
) -> Option<Sensitivity> {
    let progress = Progress::new(console, &format!("sensitivity under {protocol}"));
    sensitivity(system, overheads, protocol, |done, whole| {
        progress.set(done as u64, whole as u64);
        !interrupt::requested()
    })
}

/// One row for each term, and a last row for the named sum, if there is one.
pub(crate) fn terms_table(system: &System, terms: &[Term], sum: Option<(&str, Duration)>, layout: Layout) -> String {
    let by = |term: &Term| term.by.map_or_else(String::new, |by| system.task(by).name.clone());
    let resource = |term: &Term| term.resource.map_or_else(String::new, |id| system.resource(id).name.clone());
    let times = |term: &Term| if term.count == 0 { "any".into() } else { term.count.to_string() };
    let total = |term: &Term| if term.count == 0 { "–".into() } else { units::text(term.total) };
    let mut columns = vec![
        Column::words("cause", terms.iter().map(|term| term.cause.to_string())),
        Column::words("by", terms.iter().map(by)),
        Column::words("resource", terms.iter().map(resource)),
        Column::numbers("times", terms.iter().map(times)).gives_way(1),
        Column::numbers("each", terms.iter().map(|term| units::text(term.each))).gives_way(2),
        Column::numbers("total", terms.iter().map(total)),
        Column::prose("why", terms.iter().map(|term| term.why.clone())),
    ];
    if let Some((name, sum)) = sum {
        for column in &mut columns {
            column.cells.push(match column.title.as_str() {
                "cause" => name.into(),
                "total" => units::text(sum),
                _ => String::new(),
            });
        }
    }
    columns.retain(|column| column.cells.iter().any(|cell| !cell.is_empty()));
    layout.draw(&columns)
}

pub(crate) fn grown(system: &System, sensitivity: &Sensitivity, layout: Layout) -> String {
    let rows = || {
        let tasks = sensitivity.tasks.iter().map(|(id, growth)| (system.task(*id).name.clone(), *growth));
        let resources = sensitivity.resources.iter();
        std::iter::once(("all execution times".to_owned(), sensitivity.all))
            .chain(resources.map(|(id, growth)| (format!("sections on {}", system.resource(*id).name), *growth)))
            .chain(tasks.map(|(name, growth)| (format!("execution times of {name}"), growth)))
    };
    if rows().all(|(_, growth)| growth == Growth::Broken) {
        return format!("  {}.\n", factor(Growth::Broken));
    }
    let columns = [
        Column::words("what grows", rows().map(|(what, _)| what)),
        Column::words("largest factor with all deadlines proved", rows().map(|(_, growth)| factor(growth))),
    ];
    let names = sensitivity.tolerated.iter().map(|(id, _)| system.task(*id).name.clone());
    let most = sensitivity.tolerated.iter().map(|(_, most)| most.map_or_else(|| "–".into(), units::text));
    let tolerated = [Column::words("task", names), Column::numbers("more blocking it tolerates", most)];
    format!("{}\n{}", layout.draw(&columns), layout.draw(&tolerated))
}

fn factor(growth: Growth) -> String {
    match growth {
        Growth::Permille(permille) => {
            let change = i128::from(permille) - 1000;
            let sign = if change < 0 { '-' } else { '+' };
            let size = change.unsigned_abs();
            format!("×{}.{:03} ({sign}{}.{} %)", permille / 1000, permille % 1000, size / 10, size % 10)
        }
        Growth::Unlimited => "without limit".into(),
        Growth::Broken => "no factor helps: not every deadline can be proved, however short they are".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_exact() {
        assert_eq!(factor(Growth::Permille(1385)), "×1.385 (+38.5 %)");
        assert_eq!(factor(Growth::Permille(1000)), "×1.000 (+0.0 %)");
        assert_eq!(factor(Growth::Permille(995)), "×0.995 (-0.5 %)");
        assert_eq!(factor(Growth::Permille(1)), "×0.001 (-99.9 %)");
    }
}
