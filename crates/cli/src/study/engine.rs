//! Judges the samples of an experiment in parallel, and keeps what is finished.
//!
//! The unit of work is a part: consecutive samples of one cell. The sums of each finished part are written into the
//! directory of the study. All sums are of integers, so the results depend neither on threads nor on interruptions.

use super::folder::{Folder, Identity, Part, sums, tally};
use crate::args::{Share, StudyRun};
use crate::console::Console;
use crate::exit::Exit;
use crate::interrupt::Watch;
use crate::progress::Progress;
use lockwright_study::experiment::{Experiment, Tally};
use lockwright_study::generators::Impossible;
use rayon::prelude::*;
use std::collections::HashSet;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The least and the greatest number of samples of a part.
const PART: (u64, u64) = (32, 4096);
/// The number of parts of a study whose parts have neither the least nor the greatest size.
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
    let all = parts(experiment);
    let methods = experiment.methods();
    let tallies = Mutex::new(vec![Tally::default(); experiment.cells() * methods]);
    let add = |part: &Part| {
        let mut tallies = tallies.lock().unwrap_or_else(PoisonError::into_inner);
        let cell = &mut tallies[part.cell * methods..][..methods];
        cell.iter_mut().zip(&part.sums).for_each(|(to, &from)| to.merge(&tally(from)));
    };
    let known = known_parts(&all, methods, folder);
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
            folder.complete(identity, &tallies, console)?;
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
fn parts(experiment: &dyn Experiment) -> Vec<Part> {
    let samples = experiment.samples();
    let whole = samples.saturating_mul(experiment.cells() as u64);
    let size = (whole / PARTS).clamp(PART.0, PART.1);
    let part = |cell, first| Part { cell, first, samples: size.min(samples - first), sums: Vec::new() };
    let of_cell = |cell| (0..samples).step_by(size as usize).map(move |first| part(cell, first));
    (0..experiment.cells()).flat_map(of_cell).collect()
}

/// The finished parts in the directory. A file with other contents than those of a part of this study is ignored, and
/// its samples are judged again.
fn known_parts(all: &[Part], methods: usize, folder: &Folder) -> Vec<Part> {
    let expected: HashSet<(usize, u64, u64)> = all.iter().map(|part| (part.cell, part.first, part.samples)).collect();
    let is_known = |part: &Part| {
        expected.contains(&(part.cell, part.first, part.samples))
            && part.sums.len() == methods
            // A method that does not apply to the cell has no samples.
            && part.sums.iter().all(|sums| sums[0] == part.samples || sums[0] == 0)
            && part.sums.iter().any(|sums| sums[0] == part.samples)
    };
    let mut seen = HashSet::new();
    folder.parts().into_iter().filter(is_known).filter(|part| seen.insert((part.cell, part.first))).collect()
}
