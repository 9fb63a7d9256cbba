//! The functions `lw_taskset_*` that write what jobs did as a trace.

use crate::argument::{Const, Mut};
use crate::fault::{Fault, told};
use crate::taskset::{self, lw_taskset_t};
use libc::{c_char, c_int, size_t};
use lockwright::tasks::{TRACE_EVENTS_MAX, TaskSet};
use lockwright_report::perfetto::{self, Scene};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter};
use std::os::unix::ffi::OsStrExt;

/// The greatest number of events of one task in a trace.
pub const LW_TRACE_EVENTS_MAX: u32 = 1 << 24;
const _: () = assert!(LW_TRACE_EVENTS_MAX as usize == TRACE_EVENTS_MAX);

/// Begins to trace what the jobs of a complete task set do, from the next job of each task on. Allocates room for
/// `events` events of each task, 16 bytes each, so call it before the threads begin. Later calls do nothing.
///
/// A job has three events (its release, its start and its end), and each of its sections three more (the request, the
/// lock and the unlock). Once the room of a task is full, its further events are counted and dropped; no job waits for
/// room. The trace then ends with the last complete job of the task. A traced job reads the clock as after
/// `lw_taskset_measure`, and a job that is both traced and counted reads it once for both. It makes no system call and
/// allocates nothing for the trace. Without this call nothing is traced.
///
/// Returns:
/// - 0: success, also if it was called before.
/// - EINVAL: `set` is not a task set that is built, or `events` is not from 1 to `LW_TRACE_EVENTS_MAX`.
/// - ENOMEM: there is no memory for so many events. All of it is written at once, 256 MB for each task at the most.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_taskset_trace(set: Mut<'_, lw_taskset_t>, events: size_t) -> c_int {
    told(|| {
        let set = taskset::built(set.object())?;
        if events == 0 || events > TRACE_EVENTS_MAX {
            return Err(Fault::Plain(libc::EINVAL, "the number of events is not from 1 to LW_TRACE_EVENTS_MAX"));
        }
        set.trace(events).map_err(|_| Fault::Plain(libc::ENOMEM, "there is no memory for so many events of each task"))
    })
}

/// Writes what the jobs did since `lw_taskset_trace` to a file, as a Perfetto trace, which https://ui.perfetto.dev
/// shows. Times are those of CLOCK_MONOTONIC in nanoseconds. Overwrites a file that is there, also if the new contents
/// cannot be written whole. Writes the number of events that did not fit, with those of the job that was under way
/// then, to `*dropped`, unless `dropped` is NULL.
///
/// Tasks may execute meanwhile. The call allocates memory and makes system calls, so an ordinary thread makes it, for
/// example at the end of the program.
///
/// For each task there is a track with its jobs, on which a job that waits for a resource does not execute, and a track
/// with its waits and sections. A task is shown as executing from the start of a job to its end, also while a more
/// urgent task preempts it, and on its own CPU, also while a protocol moves it to another one.
///
/// Returns:
/// - 0: success.
/// - EINVAL: `set` is not a task set that is built, nothing is traced, `path` is NULL or not UTF-8, or `dropped` is
///   misaligned.
/// - Any other number: the file cannot be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_taskset_write_trace(
    set: Const<'_, lw_taskset_t>,
    path: Const<'_, c_char>,
    dropped: Mut<'_, u64>,
) -> c_int {
    told(|| {
        if !dropped.is_null() {
            taskset::require_place(&dropped)?;
        }
        let (set, path) = (taskset::built(set.object())?, taskset::text(path)?);
        let none = Fault::Plain(libc::EINVAL, "nothing is traced; call lw_taskset_trace before the threads begin");
        let trace = set.traced().ok_or(none)?;
        let written = File::create(OsStr::from_bytes(path.as_bytes()))
            .and_then(|file| perfetto::write(&scene(set), &trace.records, BufWriter::new(file)));
        written.map_err(|error| not_written(path, &error))?;
        dropped.write(trace.dropped);
        Ok(())
    })
}

/// The tracks of a task set. A task without a deadline misses none.
fn scene(set: &TaskSet) -> Scene {
    let mut scene = Scene::of(set.system(), set.system().name());
    for (actor, task) in scene.actors.iter_mut().zip(set.system().task_ids()) {
        actor.deadline = set.deadline(task);
    }
    scene
}

fn not_written(path: &str, error: &io::Error) -> Fault {
    Fault::Told(error.raw_os_error().unwrap_or(libc::EIO), format!("cannot write the trace to {path}: {error}"))
}
