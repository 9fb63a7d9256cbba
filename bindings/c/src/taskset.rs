//! The functions `lw_taskset_*`.

use crate::argument::{CObject, Const, Mut};
use crate::fault::{Fault, told};
use libc::{c_char, c_int, size_t};
use lockwright::tasks::{TaskSet, TaskSetBuilder};
use lockwright_model::format::{SOURCE_BYTES_MAX, nearest, parse_system_bytes};
use lockwright_model::{
    CPUS_MAX, DURATION_MAX, Duration, EXECUTED_TASKS_MAX, Protocol, RESOURCES_MAX, ResourceId, TaskId,
};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Mixed into the check value of a task set.
const TASKSET_CHECK: u32 = 0x4c57_7473;

/// A set of tasks and of the resources that they share, under a real-time locking protocol: 32 bytes, aligned to 8.
///
/// Initialise it with `lw_taskset_init` or `lw_taskset_read`. Never move or copy it, nor share it between processes.
/// Its fields are private.
#[repr(C)]
pub struct lw_taskset_t {
    lw_set: usize,
    lw_check: u32,
    lw_spare: [u32; 5],
}

/// The contents of a `lw_taskset_t`.
#[repr(C)]
pub struct Handle {
    kept: AtomicPtr<Kept>,
    check: AtomicU32,
}

impl Handle {
    /// Returns the check value, which mixes in the address of the task set and that of its memory. A copied or
    /// overwritten task set does not match.
    fn proper_check(&self) -> u32 {
        let kept = self.kept.load(Ordering::Relaxed).addr();
        let mixed = (std::ptr::from_ref(self).addr() ^ kept.rotate_left(17)) as u64;
        TASKSET_CHECK ^ (mixed as u32) ^ ((mixed >> 32) as u32)
    }
}

// SAFETY: both fields are atomics.
unsafe impl CObject for lw_taskset_t {
    type Contents = Handle;

    fn is_made(handle: &Handle) -> bool {
        // ORDERING: Relaxed, here and below: the thread that made the task set published it.
        !handle.kept.load(Ordering::Relaxed).is_null() && handle.check.load(Ordering::Relaxed) == handle.proper_check()
    }
}

/// The memory that a `lw_taskset_t` owns.
struct Kept {
    /// The tasks and resources that were declared one by one.
    building: Mutex<Draft>,
    /// The task set, once it is complete.
    set: OnceLock<TaskSet>,
}

struct Draft {
    builder: TaskSetBuilder,
    resources: usize,
    tasks: usize,
}

const NO_SET: Fault = Fault::Plain(
    libc::EINVAL,
    "the pointer does not point to a task set; lw_taskset_init and lw_taskset_read make one",
);
const NO_PLACE: Fault =
    Fault::Plain(libc::EINVAL, "the pointer for the result is NULL or misaligned; give the address of a variable");
pub const NO_TASK: Fault = Fault::Plain(
    libc::EINVAL,
    "the task set has no task of this number; lw_taskset_task and lw_taskset_find_task give numbers",
);
const BUILT: Fault = Fault::Plain(libc::EBUSY, "the task set is built and can no longer change; make another one");

/// Returns the memory of the task set.
fn kept(handle: Option<&Handle>) -> Result<&Kept, Fault> {
    let kept = handle.ok_or(NO_SET)?.kept.load(Ordering::Relaxed);
    // SAFETY: the check value shows a task set, so `make` put the address of a box there. `lw_taskset_destroy` clears
    // the check value before it frees the box, and the header forbids other calls meanwhile.
    Ok(unsafe { &*kept })
}

/// Returns the task set, if it is built.
pub fn built(handle: Option<&Handle>) -> Result<&TaskSet, Fault> {
    let set = kept(handle)?.set.get();
    set.ok_or(Fault::Plain(libc::EINVAL, "the task set is not complete; call lw_taskset_build first"))
}

/// Makes a task set.
fn make(set: Mut<'_, lw_taskset_t>, building: Draft, built: OnceLock<TaskSet>) -> Result<(), Fault> {
    require_place(&set)?;
    let kept = Box::into_raw(Box::new(Kept { building: Mutex::new(building), set: built }));
    if let Some(handle) = set.make(Handle { kept: AtomicPtr::new(kept), check: AtomicU32::new(0) }) {
        handle.check.store(handle.proper_check(), Ordering::Relaxed);
    }
    Ok(())
}

pub fn require_place<T>(place: &Mut<'_, T>) -> Result<(), Fault> {
    if place.is_there() { Ok(()) } else { Err(NO_PLACE) }
}

/// Returns the text, if there is one and it is UTF-8.
pub fn text(text: Const<'_, c_char>) -> Result<&str, Fault> {
    let text = text.text().ok_or(Fault::Plain(libc::EINVAL, "a text is missing; the pointer is NULL"))?;
    text.to_str().map_err(|_| Fault::Plain(libc::EINVAL, "a text is not UTF-8"))
}

fn protocol_named(name: &str) -> Result<Protocol, Fault> {
    Protocol::from_name(name).ok_or_else(|| {
        let names = Protocol::ALL.map(Protocol::name);
        let help = match nearest(name, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("use one of {}", names.join(", ")),
        };
        Fault::Told(libc::EINVAL, format!("there is no protocol `{name}`; {help}"))
    })
}

/// Checks the number of a CPU or a priority.
fn number(number: c_int, what: &str, most: u16) -> Result<u16, Fault> {
    let fits = u16::try_from(number).ok().filter(|number| *number <= most);
    fits.ok_or_else(|| Fault::Told(libc::EINVAL, format!("{what} is {number}; it must be from 0 to {most}")))
}

fn too_many(what: &str, most: usize) -> Fault {
    Fault::Told(libc::ERANGE, format!("too many {what}s; at most {most} are supported"))
}

/// Initialises `*set` as a task set without tasks and resources, whatever the memory contained before. Add them with
/// `lw_taskset_resource` and `lw_taskset_task`, then call `lw_taskset_build`. The call allocates memory.
///
/// `protocol` names the locking protocol: `none`, `pip`, `icpp`, `pcp`, `srp`, `mpcp`, `mpcp_vs`, `dpcp`, `dflp`,
/// `fmlp_long`, `fmlp_plus`, `fmlp_short`, `msrp`, `mrsp`, `omlp`, `phase_fair` or `task_fair`. Under a protocol for
/// several CPUs, a resource that only tasks of one CPU share is under `icpp`, except under `fmlp_short`, `phase_fair`
/// and `task_fair`, and except for a resource with a home on another CPU. Under `ics` and `ics_lock` there are no
/// locks, so `lw_taskset_build` refuses these protocols; use `lw_ics_update`.
///
/// Returns:
/// - 0: success.
/// - EINVAL: `set` is NULL or misaligned, or `protocol` is NULL or names no protocol.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_taskset_init(set: Mut<'_, lw_taskset_t>, protocol: Const<'_, c_char>) -> c_int {
    told(|| {
        require_place(&set)?;
        let protocol = protocol_named(text(protocol)?)?;
        make(set, Draft { builder: TaskSet::builder(protocol), resources: 0, tasks: 0 }, OnceLock::new())
    })
}

/// Initialises `*set` from a task-set file, the format that `lockwright check` reads, whatever the memory contained
/// before. The set is already built. The call allocates memory.
///
/// `path` is the path of the file. `protocol` applies to the resources for which the file names no protocol; NULL
/// stands for the protocol of the file. The CPUs of the file count from 0 among those that the calling thread may use.
///
/// Returns:
/// - 0: success.
/// - EINVAL: `set` is NULL or misaligned, `path` is NULL, `protocol` names no protocol, or the file has faults.
///   `lw_task_error` lists the faults with their places and remedies.
/// - ERANGE: the machine has too few CPUs or priority levels, tasks share CPUs of which only some are isolated, or the
///   file has too many tasks.
/// - ENOTSUP: a task requests a resource while it holds another, under a protocol without nested requests; the file's
///   scheduler is `g-fp` or `g-edf`; a resource of a cluster of CPUs is not under `omlp`; or a resource is
///   under `ics`, `ics_lock`, `lock_free` or `wait_free`, which are not locks (see `lw_ics_update` and `lw_queue_t`).
/// - Any other number is the reason why the file cannot be read, such as ENOENT, or an error of the kernel. After an
///   error `*set` is unchanged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_taskset_read(
    set: Mut<'_, lw_taskset_t>,
    path: Const<'_, c_char>,
    protocol: Const<'_, c_char>,
) -> c_int {
    told(|| {
        require_place(&set)?;
        let path = path.text();
        let path =
            path.ok_or(Fault::Plain(libc::EINVAL, "the path of the file is missing; the pointer is NULL"))?.to_bytes();
        let named = if protocol.is_null() { None } else { Some(protocol_named(text(protocol)?)?) };
        let read = uncancelled(|| read(Path::new(OsStr::from_bytes(path)), named))?;
        let building = Draft { builder: TaskSet::builder(Protocol::None), resources: 0, tasks: 0 };
        make(set, building, OnceLock::from(read))
    })
}

/// Calls `body` with cancellation disabled: to open and to read a file are cancellation points of the C library.
fn uncancelled<T>(body: impl FnOnce() -> T) -> T {
    unsafe extern "C" {
        fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
    }
    const DISABLE: c_int = 1;
    let mut before = 0;
    // SAFETY: `before` is valid for writing.
    let is_changed = unsafe { pthread_setcancelstate(DISABLE, &raw mut before) } == 0;
    let done = body();
    if is_changed {
        let mut ours = 0;
        // SAFETY: `ours` is valid for writing, and `before` is the state that the first call returned.
        unsafe { pthread_setcancelstate(before, &raw mut ours) };
    }
    done
}

fn read(path: &Path, protocol: Option<Protocol>) -> Result<TaskSet, Fault> {
    let shown = path.display();
    let mut bytes = Vec::new();
    // One byte more than the largest file allowed, so that the parser can report a file that is too long.
    let all = File::open(path).and_then(|file| file.take(SOURCE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes));
    all.map_err(|error| {
        let errno = error.raw_os_error().filter(|errno| *errno > 0).unwrap_or(libc::EIO);
        Fault::Told(errno, format!("cannot read {shown}: {error}; give the path of a task-set file"))
    })?;
    let system = parse_system_bytes(&bytes).map_err(|faults| {
        // Up to the first byte that is not UTF-8, this is the original text.
        let source = String::from_utf8_lossy(&bytes);
        let line = |fault: &lockwright_model::format::Diagnostic| match fault.line_column(&source) {
            Some((line, column)) => format!("{shown}:{line}:{column}: {fault}"),
            None => format!("{shown}: {fault}"),
        };
        Fault::Told(libc::EINVAL, faults.iter().map(line).collect::<Vec<_>>().join("\n"))
    })?;
    Ok(TaskSet::new(&system, protocol.unwrap_or_else(|| system.protocol_or_default()))?)
}

/// Destroys a task set: every later use except `lw_taskset_init` and `lw_taskset_read` returns EINVAL. Threads that
/// have joined continue undisturbed.
///
/// No other thread may use the set during the call.
///
/// Returns:
/// - 0: success.
/// - EINVAL: `set` is not a task set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_taskset_destroy(set: Mut<'_, lw_taskset_t>) -> c_int {
    told(|| {
        let handle = set.object().ok_or(NO_SET)?;
        // ORDERING: Relaxed: the thread that destroys the task set has made sure that no other thread uses it.
        handle.check.store(0, Ordering::Relaxed);
        let kept = handle.kept.swap(std::ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: the check value showed a task set, so `make` leaked this box, and only the handle pointed to it. The
        // header requires that no other thread uses the set.
        drop(unsafe { Box::from_raw(kept) });
        Ok(())
    })
}

fn draft<T>(kept: &Kept, body: impl FnOnce(&mut Draft) -> Result<T, Fault>) -> Result<T, Fault> {
    let mut draft = kept.building.lock().unwrap_or_else(PoisonError::into_inner);
    // Checked under the lock, so that no other thread builds the set meanwhile.
    if kept.set.get().is_some() { Err(BUILT) } else { body(&mut draft) }
}

/// Adds a resource. Writes its number to `*resource`, for `lw_taskset_task` and `lw_task_lock`.
///
/// `name` is unique among the resources. Under `dpcp` and `dflp` its sections execute on the CPU `home`, counted as for
/// `lw_taskset_task`; -1 lets the library choose the CPU.
///
/// Returns:
/// - 0: success.
/// - EINVAL: an argument is invalid. `lw_taskset_build`, not this function, detects a name that is used twice and a CPU
///   that does not exist.
/// - EBUSY: the set is already built.
/// - ERANGE: the set already has 256 resources. After an error nothing has been added.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_taskset_resource(
    set: Mut<'_, lw_taskset_t>,
    name: Const<'_, c_char>,
    home: c_int,
    resource: Mut<'_, u32>,
) -> c_int {
    told(|| {
        let (kept, name) = (kept(set.object())?, text(name)?);
        require_place(&resource)?;
        let home = if home == -1 { None } else { Some(number(home, "the home", u16::MAX)?) };
        let id = draft(kept, |draft| {
            if draft.resources >= RESOURCES_MAX {
                return Err(too_many("resource", RESOURCES_MAX));
            }
            draft.resources += 1;
            Ok(match home {
                Some(cpu) => draft.builder.resource_at(name, cpu),
                None => draft.builder.resource(name),
            })
        })?;
        resource.write(u32::from(id.0));
        Ok(())
    })
}

/// Adds a task. Writes its number to `*task`, for `lw_task_join`.
///
/// `name` is unique among the tasks. `cpu` is the task's CPU, counted from 0 among those that the thread that builds
/// the set may use. `priority` is from 0 to 65535, and a greater one is more urgent. `resources` points to the numbers
/// of the `count` resources that the task ever locks, and may be NULL if `count` is 0. Ceilings follow from them.
///
/// Returns:
/// - 0: success.
/// - EINVAL: an argument is invalid, or a resource does not exist. `lw_taskset_build`, not this function, detects a
///   name that is used twice and a CPU that does not exist.
/// - EBUSY: the set is already built.
/// - ERANGE: the set already has 1024 tasks. After an error nothing has been added.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_taskset_task(
    set: Mut<'_, lw_taskset_t>,
    name: Const<'_, c_char>,
    cpu: c_int,
    priority: c_int,
    resources: Const<'_, u32>,
    count: size_t,
    task: Mut<'_, u32>,
) -> c_int {
    told(|| {
        let cpu = number(cpu, "the CPU", u16::MAX)?;
        let priority = number(priority, "the priority", u16::MAX)?;
        // SAFETY: the header requires `count` resources at `resources`, which no thread writes during the call.
        let resources = unsafe { resources.list(count, RESOURCES_MAX) };
        add_task(set, name, resources, task, |to, name, uses| to.task(name, cpu, priority, uses))
    })
}

/// Adds a task of a cluster, whose jobs execute on any of the `cpu_count` CPUs at `cpus`. The other parameters are
/// those of `lw_taskset_task`.
///
/// Two tasks must have either all of these CPUs in common or none; `lw_taskset_build` checks this. The resources of
/// such a task must be under `omlp`.
///
/// Returns the values of `lw_taskset_task`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_taskset_task_in_cluster(
    set: Mut<'_, lw_taskset_t>,
    name: Const<'_, c_char>,
    cpus: Const<'_, c_int>,
    cpu_count: size_t,
    priority: c_int,
    resources: Const<'_, u32>,
    count: size_t,
    task: Mut<'_, u32>,
) -> c_int {
    told(|| {
        // SAFETY: the header requires `cpu_count` CPUs at `cpus`, which no thread writes during the call.
        let cpus = unsafe { cpus.list(cpu_count, CPUS_MAX) };
        let cpus = listed(cpus, "the list of the task's CPUs is NULL, misaligned or too long")?;
        let cpus = cpus.iter().map(|&cpu| number(cpu, "the CPU", u16::MAX)).collect::<Result<Vec<_>, _>>()?;
        let priority = number(priority, "the priority", u16::MAX)?;
        let add =
            |to: &mut TaskSetBuilder, name: &str, uses: &[ResourceId]| to.task_in_cluster(name, &cpus, priority, uses);
        // SAFETY: the header requires `count` resources at `resources`, which no thread writes during the call.
        let resources = unsafe { resources.list(count, RESOURCES_MAX) };
        add_task(set, name, resources, task, add)
    })
}

fn listed<'a, T>(list: Option<&'a [T]>, otherwise: &'static str) -> Result<&'a [T], Fault> {
    list.ok_or(Fault::Plain(libc::EINVAL, otherwise))
}

/// Adds a task by `add`.
fn add_task(
    set: Mut<'_, lw_taskset_t>,
    name: Const<'_, c_char>,
    resources: Option<&[u32]>,
    task: Mut<'_, u32>,
    add: impl FnOnce(&mut TaskSetBuilder, &str, &[ResourceId]) -> TaskId,
) -> Result<(), Fault> {
    let (kept, name) = (kept(set.object())?, text(name)?);
    require_place(&task)?;
    let numbers = listed(resources, "the list of the task's resources is NULL, misaligned or too long")?;
    let id = draft(kept, |draft| {
        let id = |&number: &u32| {
            let known = usize::try_from(number).ok().filter(|number| *number < draft.resources);
            let none = || {
                Fault::Told(
                    libc::EINVAL,
                    format!("there is no resource {number}; add resources with lw_taskset_resource"),
                )
            };
            known.map(ResourceId::new).ok_or_else(none)
        };
        let uses = numbers.iter().map(id).collect::<Result<Vec<_>, _>>()?;
        if draft.tasks >= EXECUTED_TASKS_MAX {
            return Err(too_many("task", EXECUTED_TASKS_MAX));
        }
        draft.tasks += 1;
        Ok(add(&mut draft.builder, name, &uses))
    })?;
    task.write(u32::from(id.0));
    Ok(())
}

/// Gives a task the relative deadline `deadline_ns`, in nanoseconds. The locks do not use it; `lw_taskset_report` and
/// `lw_taskset_statistics` count the jobs that miss it. The tasks of a file have the deadlines of the file.
///
/// Returns:
/// - 0: success.
/// - EINVAL: `set` is not a task set, it has no such task, or the deadline is not from 1 to 10^15.
/// - EBUSY: the set is already built.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_taskset_deadline(set: Mut<'_, lw_taskset_t>, task: u32, deadline_ns: u64) -> c_int {
    told(|| {
        let deadline = duration(deadline_ns)?;
        draft(kept(set.object())?, |draft| {
            let known = usize::try_from(task).ok().filter(|task| *task < draft.tasks);
            let id = TaskId::new(known.ok_or(NO_TASK)?);
            draft.builder.deadline(id, deadline);
            Ok(())
        })
    })
}

/// Returns a time, unless it is 0 or too long.
pub fn duration(ns: u64) -> Result<Duration, Fault> {
    let time = Duration::from_ns(ns);
    let is_valid = ns > 0 && time <= DURATION_MAX;
    is_valid.then_some(time).ok_or(Fault::Plain(libc::EINVAL, "a time is not from 1 to 10^15 nanoseconds"))
}

/// Completes the task set: nothing can be added any more, and threads may join. The call allocates memory.
///
/// Returns:
/// - 0: success.
/// - EINVAL: `set` is not a task set, or its tasks and resources are invalid. `lw_task_error` returns the reason.
/// - EBUSY: the set is already built.
/// - ERANGE: the machine has too few CPUs or priority levels, or tasks share CPUs of which only some are isolated.
/// - ENOTSUP: the protocol is `ics`, `ics_lock`, `lock_free` or `wait_free`, or a resource of a cluster of CPUs is not
///   under `omlp`.
/// - Any other number is an error of the kernel. After an error the set is unchanged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_taskset_build(set: Mut<'_, lw_taskset_t>) -> c_int {
    told(|| {
        let kept = kept(set.object())?;
        draft(kept, |draft| {
            let built = draft.builder.clone().build()?;
            kept.set.set(built).map_err(|_| BUILT)
        })
    })
}

/// Writes the number of the task named `name` to `*task`.
///
/// Returns:
/// - 0: success.
/// - ENOENT: no task has that name.
/// - EINVAL: an argument is invalid, or the set is not built.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_taskset_find_task(
    set: Const<'_, lw_taskset_t>,
    name: Const<'_, c_char>,
    task: Mut<'_, u32>,
) -> c_int {
    find(set, name, task, "task", |set, name| Some(set.task(name)?.0))
}

/// Writes the number of the resource named `name` to `*resource`.
///
/// Returns:
/// - 0: success.
/// - ENOENT: no resource has that name.
/// - EINVAL: an argument is invalid, or the set is not built.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_taskset_find_resource(
    set: Const<'_, lw_taskset_t>,
    name: Const<'_, c_char>,
    resource: Mut<'_, u32>,
) -> c_int {
    find(set, name, resource, "resource", |set, name| Some(set.resource(name)?.0))
}

fn find(
    set: Const<'_, lw_taskset_t>,
    name: Const<'_, c_char>,
    place: Mut<'_, u32>,
    what: &str,
    find: impl FnOnce(&TaskSet, &str) -> Option<u16>,
) -> c_int {
    told(|| {
        let (set, name) = (built(set.object())?, text(name)?);
        require_place(&place)?;
        let none = || Fault::Told(libc::ENOENT, format!("there is no {what} `{name}` in the task set"));
        place.write(u32::from(find(set, name).ok_or_else(none)?));
        Ok(())
    })
}
