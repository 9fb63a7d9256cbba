//! The functions `lw_taskset_*` that report what jobs did.

use crate::argument::{Const, Mut};
use crate::fault::{Buffer, Fault, told};
use crate::taskset::{self, NO_TASK, lw_taskset_t};
use libc::{c_char, c_int, size_t};
use lockwright::tasks::{ResourceStatistics, Statistics, TaskSet, TaskStatistics};
use lockwright_model::{Duration, TaskId};
use std::fmt::Write;

/// No task, in `holder`.
pub const LW_NO_TASK: u32 = 0xffff_ffff;

/// Measurements of the jobs of one task since `lw_taskset_measure`. Times are in nanoseconds, and 0 if no job has
/// ended.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct lw_task_statistics_t {
    /// The number of jobs that have ended.
    pub jobs: u64,
    /// The number of jobs that ended after their deadlines.
    pub misses: u64,
    /// The number of jobs whose response time exceeded the bound of `lw_taskset_bound`.
    pub above_bound: u64,
    /// The mean response time.
    pub mean_ns: u64,
    /// A response time that 99.9 % of the jobs do not exceed, too long by a sixteenth at most.
    pub p999_ns: u64,
    /// The longest response time.
    pub worst_ns: u64,
    /// The number of the first job with that response time, from 1.
    pub worst_job: u64,
    /// The bound of `lw_taskset_bound`, or 0.
    pub bound_ns: u64,
    /// The relative deadline, or 0.
    pub deadline_ns: u64,
}

/// A part of the distribution of response times.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct lw_histogram_bin_t {
    /// The longest response time of this part, at most a sixteenth above the shortest.
    pub up_to_ns: u64,
    /// The number of jobs.
    pub jobs: u64,
}

/// Measurements of the jobs of one task at one resource since `lw_taskset_measure`. Times are in nanoseconds.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct lw_wait_statistics_t {
    /// The number of locks.
    pub sections: u64,
    /// The number of locks that found the resource locked.
    pub waits: u64,
    /// The sum of the waits.
    pub total_wait_ns: u64,
    /// The longest wait.
    pub longest_wait_ns: u64,
    /// The longest time from a lock to its unlock, preemption included.
    pub longest_section_ns: u64,
    /// The task that held the resource at the request of the longest wait; LW_NO_TASK if none was seen.
    pub holder: u32,
    /// 0.
    pub reserved: u32,
}

const NOT_MEASURED: Fault = Fault::Plain(libc::EINVAL, "nothing is counted yet; call lw_taskset_measure first");

fn read(set: &TaskSet) -> Result<Statistics, Fault> {
    set.statistics().ok_or(NOT_MEASURED)
}

fn of_task(statistics: &Statistics, task: u32) -> Result<&TaskStatistics, Fault> {
    usize::try_from(task).ok().and_then(|task| statistics.tasks.get(task)).ok_or(NO_TASK)
}

/// Begins to count what the jobs of a complete task set do, from the next job of each task on: response times, deadline
/// misses, waits for resources, lengths of sections. Call it before the threads begin, because it allocates memory.
///
/// A job then reads the clock when it begins and when it ends, before and after each lock, and before each unlock.
/// Without this call nothing is counted.
///
/// The response time of a job counts from its release if the job began with `lw_task_begin_due` and its task has a
/// deadline: that deadline minus the relative one. Otherwise it counts from `lw_task_begin`.
///
/// Returns:
/// - 0: success, also if it was called before.
/// - EINVAL: `set` is not a task set that is built.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_taskset_measure(set: Mut<'_, lw_taskset_t>) -> c_int {
    told(|| {
        taskset::built(set.object())?.measure();
        Ok(())
    })
}

/// Sets a bound on the response times of a task, such as `lockwright check` computes, in nanoseconds. Begins to count,
/// as `lw_taskset_measure` does. Jobs that exceed the bound are counted from then on.
///
/// Returns:
/// - 0: success.
/// - EINVAL: `set` is not a task set that is built, it has no such task, or the bound is not from 1 to 10^15.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_taskset_bound(set: Mut<'_, lw_taskset_t>, task: u32, bound_ns: u64) -> c_int {
    told(|| {
        let set = taskset::built(set.object())?;
        let id = usize::try_from(task).ok().filter(|task| *task < set.system().tasks().len()).ok_or(NO_TASK)?;
        Ok(set.set_bound(TaskId::new(id), taskset::duration(bound_ns)?)?)
    })
}

/// Writes what the jobs of a task did to `*statistics`. Tasks may execute meanwhile; a job that ends during the call
/// may be counted in some values and not in others. The call allocates memory.
///
/// Returns:
/// - 0: success.
/// - EINVAL: `set` is not a task set that is built, nothing is counted, there is no such task, or `statistics` is NULL
///   or misaligned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_taskset_statistics(
    set: Const<'_, lw_taskset_t>,
    task: u32,
    statistics: Mut<'_, lw_task_statistics_t>,
) -> c_int {
    told(|| {
        taskset::require_place(&statistics)?;
        let all = read(taskset::built(set.object())?)?;
        let of = of_task(&all, task)?;
        statistics.write(lw_task_statistics_t {
            jobs: of.jobs,
            misses: of.misses,
            above_bound: of.above_bound,
            mean_ns: of.mean.as_ns(),
            p999_ns: of.percentile(99.9).map_or(0, Duration::as_ns),
            worst_ns: of.worst.as_ns(),
            worst_job: of.worst_job,
            bound_ns: of.bound.map_or(0, Duration::as_ns),
            deadline_ns: of.deadline.map_or(0, Duration::as_ns),
        });
        Ok(())
    })
}

/// Writes the distribution of the response times of a task: the first `capacity` parts with jobs to `bins`, the
/// shortest times first, and the number of all such parts to `*length`. `bins` may be NULL if `capacity` is 0. There
/// are at most 976 parts. The call allocates memory.
///
/// Returns the values of `lw_taskset_statistics`, and:
/// - EINVAL, also: `length` is NULL or misaligned, or `capacity` is not 0 and `bins` is NULL or misaligned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_taskset_histogram(
    set: Const<'_, lw_taskset_t>,
    task: u32,
    bins: Mut<'_, lw_histogram_bin_t>,
    capacity: size_t,
    length: Mut<'_, size_t>,
) -> c_int {
    told(|| {
        taskset::require_place(&length)?;
        if capacity > 0 {
            taskset::require_place(&bins)?;
        }
        let all = read(taskset::built(set.object())?)?;
        let parts: Vec<(Duration, u64)> = of_task(&all, task)?.histogram().collect();
        length.write(parts.len());
        // SAFETY: the header requires room for `capacity` parts, and at most as many are asked for.
        let room = unsafe { bins.room(capacity.min(parts.len())) }.unwrap_or_default();
        for (place, (up_to, jobs)) in room.iter_mut().zip(parts) {
            place.write(lw_histogram_bin_t { up_to_ns: up_to.as_ns(), jobs });
        }
        Ok(())
    })
}

/// Writes what the jobs of a task did with a resource to `*waits`, as `lw_taskset_statistics` does. All values are 0,
/// and `holder` is LW_NO_TASK, if the task has not locked it.
///
/// Returns the values of `lw_taskset_statistics`, and:
/// - EINVAL, also: there is no such resource.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_taskset_waits(
    set: Const<'_, lw_taskset_t>,
    task: u32,
    resource: u32,
    waits: Mut<'_, lw_wait_statistics_t>,
) -> c_int {
    told(|| {
        taskset::require_place(&waits)?;
        let set = taskset::built(set.object())?;
        let resources = set.system().resources().len();
        if usize::try_from(resource).map_or(true, |resource| resource >= resources) {
            return Err(Fault::Plain(libc::EINVAL, "the task set has no resource of this number"));
        }
        let all = read(set)?;
        let of = of_task(&all, task)?.resources.iter().find(|of| u32::from(of.resource.0) == resource);
        let time = |time: fn(&ResourceStatistics) -> Duration| of.map_or(0, |of| time(of).as_ns());
        waits.write(lw_wait_statistics_t {
            sections: of.map_or(0, |of| of.sections),
            waits: of.map_or(0, |of| of.waits),
            total_wait_ns: time(|of| of.total_wait),
            longest_wait_ns: time(|of| of.longest_wait),
            longest_section_ns: time(|of| of.longest_section),
            holder: of.and_then(|of| of.holder).map_or(LW_NO_TASK, |holder| holder.0.into()),
            reserved: 0,
        });
        Ok(())
    })
}

/// Describes what the jobs of all tasks did, as tables for people: response times beside bounds and deadlines, and
/// waits with their holders. The call allocates memory.
///
/// Writes a UTF-8 text and a final 0 to the `capacity` bytes at `text`.
///
/// Returns:
/// - 0: success.
/// - ERANGE: the text did not fit, and was cut.
/// - EINVAL: `set` is not a task set that is built, nothing is counted, `capacity` is 0, or `text` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_taskset_report(
    set: Const<'_, lw_taskset_t>,
    text: Mut<'_, c_char>,
    capacity: size_t,
) -> c_int {
    told(|| {
        let none =
            Fault::Plain(libc::EINVAL, "there is no room for the text; give the address and the size of an array");
        // SAFETY: the header requires room for `capacity` bytes, which no other thread uses during the call.
        let mut buffer = unsafe { Buffer::at(text, capacity) }.ok_or(none)?;
        let _ = write!(buffer, "{}", read(taskset::built(set.object())?)?);
        if buffer.is_cut {
            Err(Fault::Plain(libc::ERANGE, "the report did not fit; give a larger array"))
        } else {
            Ok(())
        }
    })
}
