//! Judges the samples of an experiment in parallel, and keeps what is finished.
//!
//! The unit of work is a part: consecutive samples of one cell. The sums of each finished part are written into the
//! directory of the study. All sums are of integers, so the results depend neither on threads nor on interruptions.

use super::folder::{Folder, Identity, Part, are_possible, sums, tally};
use crate::args::{Share, StudyRun};
use crate::console::Console;
use crate::exit::Exit;
use crate::interrupt::Watch;
use crate::progress::Progress;
use crate::units;
use lockwright_study::experiment::{Experiment, Tally};
use lockwright_study::generators::Impossible;
use rayon::prelude::*;
use std::collections::HashSet;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The least number of samples of a part, unless the cell has fewer.
const PART: u64 = 32;
/// The greatest number of parts of a study with few cells. The memory of a study does not grow beyond that of its
/// parts.
const PARTS: u64 = 2_000;

/// The results of an experiment.
pub struct Outcome {
    /// One tally for each cell and method, the methods of a cell beside each other.
    pub tallies: Vec<Tally>,
    /// Whether all samples were judged.
    pub complete: bool,
    /// The share that was judged, if it was to be one.
    pub share: Option<Share>,
}

/// Why a part has no sums.
enum Stop {
    Interrupted,
    Impossible(Impossible),
    Unwritable(io::Error),
}

/// Judges the samples that `folder` does not have, or those of one share.
///
/// # Errors
/// A sample is impossible, or a file cannot be written; the console has the message.
pub fn run(
    experiment: &dyn Experiment,
    folder: &Folder,
    identity: &Identity,
    run: &StudyRun,
    console: &Console,
) -> Result<Outcome, Exit> {
    if let Some(whole) = &folder.whole {
        console.note(format!("{} already has all results of this study", folder.path().display()));
        return Ok(Outcome { tallies: whole.clone(), complete: true, share: None });
    }
    let threads = rayon::ThreadPoolBuilder::new().num_threads(run.jobs.map_or(0, usize::from)).build();
    let threads = threads.map_err(|error| {
        console.error(format!("cannot start threads: {error}"), "`--jobs 1` needs only one thread");
        Exit::Machine
    })?;
    let all = parts(experiment, &identity.number());
    let methods = experiment.methods();
    let tallies = Mutex::new(vec![Tally::default(); experiment.cells() * methods]);
    let add = |part: &Part| {
        let mut tallies = tallies.lock().unwrap_or_else(PoisonError::into_inner);
        let cell = &mut tallies[part.cell * methods..][..methods];
        cell.iter_mut().zip(&part.sums).for_each(|(to, &from)| to.merge(&tally(from)));
    };
    let known = known_parts(&all, methods, folder, identity, console);
    let finished: HashSet<(usize, u64)> = known.iter().map(|part| (part.cell, part.first)).collect();
    known.iter().for_each(add);
    let left = || all.iter().enumerate().filter(|(_, part)| !finished.contains(&(part.cell, part.first)));
    let is_shared = |place: usize| run.share.is_none_or(|share| place as u64 % share.of + 1 == share.number);
    let mine: Vec<&Part> = left().filter(|(place, _)| is_shared(*place)).map(|(_, part)| part).collect();
    // The parts of a share stay as they are, to be put together with others.
    let completes = mine.len() == left().count() && run.share.is_none_or(|share| share.number == 0);
    if !known.is_empty() {
        console.note(format!("{} of {} parts are finished", known.len(), all.len()));
    }
    let progress = Progress::new(console, "judging");
    let whole = experiment.samples().saturating_mul(experiment.cells() as u64);
    // ORDERING: a count alone, for a bar: relaxed.
    let done = AtomicU64::new(known.iter().map(|part| part.samples).sum());
    let watch = Watch::here();
    let one = |part: &&Part| {
        let mut part = Part::clone(part);
        let mut judge = experiment.judge(part.cell);
        let mut found = vec![Tally::default(); methods];
        for sample in part.first..part.first + part.samples {
            if watch.requested() {
                return Err(Stop::Interrupted);
            }
            judge(sample, &mut found).map_err(Stop::Impossible)?;
            progress.set(done.fetch_add(1, Ordering::Relaxed) + 1, whole);
        }
        part.sums = found.iter().map(sums).collect();
        folder.write_part(&part).map_err(Stop::Unwritable)?;
        add(&part);
        Ok(())
    };
    let ended = threads.install(|| mine.par_iter().with_max_len(1).try_for_each(one));
    drop(progress);
    let tallies = tallies.into_inner().unwrap_or_else(PoisonError::into_inner);
    match ended {
        Ok(()) if completes => {
            folder.complete(identity, &all, &tallies, console)?;
            Ok(Outcome { tallies, complete: true, share: None })
        }
        Ok(()) => Ok(Outcome { tallies, complete: false, share: run.share }),
        Err(Stop::Interrupted) => Ok(Outcome { tallies, complete: false, share: None }),
        Err(Stop::Impossible(why)) => {
            console.error(why, "choose other parameters of the generator, for example rand-fixed-sum");
            Err(Exit::BadInput)
        }
        Err(Stop::Unwritable(error)) => Err(folder.tell_unwritable(folder.path(), &error, console)),
    }
}

/// The exit status of a study in a directory. An interrupted one tells how to continue.
pub fn ended(outcome: &Outcome, folder: &Folder, console: &Console) -> Result<Exit, Exit> {
    let shown = folder.path().display();
    if outcome.complete {
        return Ok(Exit::Holds);
    }
    if let Some(share) = outcome.share {
        console.note(format!("share {} of {} is in {shown}/parts", share.number, share.of));
        return Ok(Exit::Holds);
    }
    console.warn(format!("interrupted; the finished parts are in {shown}, and --resume continues the study"));
    Ok(Exit::Interrupted)
}

/// All parts of an experiment, without sums. They depend only on the experiment.
fn parts(experiment: &dyn Experiment, study: &str) -> Vec<Part> {
    let samples = experiment.samples();
    let whole = samples.saturating_mul(experiment.cells() as u64);
    let size = (whole / PARTS).max(PART);
    let part = |cell, first| {
        let samples = size.min(samples - first);
        Part { study: study.to_owned(), cell, first, samples, sums: Vec::new() }
    };
    let of_cell = |cell| (0..samples).step_by(size as usize).map(move |first| part(cell, first));
    (0..experiment.cells()).flat_map(of_cell).collect()
}

/// The finished parts in the directory. A file with other contents than those of a part of this study is ignored, and
/// its samples are judged again.
fn known_parts(all: &[Part], methods: usize, folder: &Folder, identity: &Identity, console: &Console) -> Vec<Part> {
    let study = identity.number();
    let (mine, others): (Vec<Part>, Vec<Part>) = folder.parts().into_iter().partition(|part| part.study == study);
    if !others.is_empty() {
        console.note(format!(
            "{} in {}/parts {} of another study, seed or version: ignored, and replaced by parts of the same name",
            units::count(others.len() as u64, "file"),
            folder.path().display(),
            if others.len() == 1 { "is" } else { "are" }
        ));
    }
    let expected: HashSet<(usize, u64, u64)> = all.iter().map(|part| (part.cell, part.first, part.samples)).collect();
    let is_known = |part: &Part| {
        expected.contains(&(part.cell, part.first, part.samples))
            && part.sums.len() == methods
            && part.sums.iter().all(|sums| are_possible(sums, part.samples))
            && part.sums.iter().any(|sums| sums[0] == part.samples)
    };
    let mut seen = HashSet::new();
    mine.into_iter().filter(is_known).filter(|part| seen.insert((part.cell, part.first))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockwright_study::experiment::Judge;

    /// An experiment of which nothing is judged.
    struct Sized {
        cells: usize,
        samples: u64,
    }

    impl Experiment for Sized {
        fn cells(&self) -> usize {
            self.cells
        }

        fn methods(&self) -> usize {
            1
        }

        fn samples(&self) -> u64 {
            self.samples
        }

        fn judge(&self, _: usize) -> Judge<'_> {
            Box::new(|_, _| Ok(()))
        }
    }

    #[test]
    fn parts_do_not_grow_in_number_with_the_samples() {
        for (cells, samples, most) in [(1, 1, 1), (3, 100, 12), (1, 1_000_000_000, 2_000), (9, 1_000_000_000, 2_007)] {
            let all = parts(&Sized { cells, samples }, "");
            assert!(all.len() <= most, "{}", all.len());
            for cell in 0..cells {
                let mut next = 0;
                for part in all.iter().filter(|part| part.cell == cell) {
                    assert!(part.first == next && part.samples > 0);
                    next += part.samples;
                }
                assert_eq!(next, samples, "each sample is in one part");
            }
        }
    }
}
