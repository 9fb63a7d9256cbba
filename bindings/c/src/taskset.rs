//! The functions `lw_taskset_*`.

use crate::argument;
use crate::fault::{Fault, told};
use libc::{c_char, c_int, size_t};
use lockwright::tasks::{TaskSet, TaskSetBuilder};
use lockwright_model::format::{MAX_SOURCE_BYTES, nearest, parse_system_bytes};
use lockwright_model::{MAX_CPUS, MAX_EXECUTED_TASKS, MAX_RESOURCES, Protocol, ResourceId, TaskId};
use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
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
const BUILT: Fault = Fault::Plain(libc::EBUSY, "the task set is built and can no longer change; make another one");

/// Returns the check value, which mixes in the address of the task set and that of its memory. A copied or overwritten
/// task set does not match.
fn check(at: *const lw_taskset_t, kept: usize) -> u32 {
    let mixed = (at.addr() ^ kept.rotate_left(17)) as u64;
    TASKSET_CHECK ^ (mixed as u32) ^ ((mixed >> 32) as u32)
}

/// Returns the memory of the task set at `set`.
///
/// # Safety
/// `set` is null, misaligned, or points to memory of a `lw_taskset_t` that stays for the call.
unsafe fn at<'a>(set: *const lw_taskset_t) -> Result<&'a Kept, Fault> {
    if set.is_null() || !set.is_aligned() {
        return Err(NO_SET);
    }
    // SAFETY: the caller promises memory of this size, and any bits are valid integers.
    let (kept, found) = unsafe { ((*set).lw_set, (*set).lw_check) };
    if kept == 0 || found != check(set, kept) {
        return Err(NO_SET);
    }
    // SAFETY: the check value says that `make` put the address there and that `lw_taskset_destroy` has not been called
    // since.
    Ok(unsafe { &*std::ptr::with_exposed_provenance::<Kept>(kept) })
}

/// Returns the task set at `set`, if it is built.
///
/// # Safety
/// As [`at`].
pub unsafe fn built<'a>(set: *const lw_taskset_t) -> Result<&'a TaskSet, Fault> {
    // SAFETY: the caller promises what `at` requires.
    let kept = unsafe { at(set) }?;
    kept.set.get().ok_or(Fault::Plain(libc::EINVAL, "the task set is not complete; call lw_taskset_build first"))
}

/// Makes a task set at `set`.
///
/// # Safety
/// `set` is not null, is aligned, and points to memory that nothing else uses.
unsafe fn make(set: *mut lw_taskset_t, kept: Kept) {
    let kept = Box::into_raw(Box::new(kept)).expose_provenance();
    // SAFETY: the caller promises aligned memory of this size that nothing else uses.
    unsafe { set.write(lw_taskset_t { lw_set: kept, lw_check: check(set, kept), lw_spare: [0; 5] }) };
}

fn require_place<T>(place: *mut T) -> Result<(), Fault> {
    if place.is_null() || !place.is_aligned() { Err(NO_PLACE) } else { Ok(()) }
}

/// Returns the text at `text`, if it is UTF-8.
///
/// # Safety
/// `text` is null, or points to a text with a final 0 that stays for the call.
unsafe fn text<'a>(text: *const c_char) -> Result<&'a str, Fault> {
    if text.is_null() {
        return Err(Fault::Plain(libc::EINVAL, "a text is missing; the pointer is NULL"));
    }
    // SAFETY: not null, and the caller promises a text with a final 0.
    let text = unsafe { CStr::from_ptr(text) };
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
/// `fmlp_long`, `fmlp_plus`, `fmlp_short`, `msrp`, `mrsp` or `omlp`. Under a protocol for several CPUs, a resource that
/// only tasks of one CPU share is under `icpp`, except under `fmlp_short` and except for a resource with a home on
/// another CPU. Under `ics` and `ics_lock` there are no locks, so `lw_taskset_build` refuses these protocols; use
/// `lw_ics_update`.
///
/// Returns:
/// - 0: success.
/// - EINVAL: `set` is NULL or misaligned, or `protocol` is NULL or names no protocol.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_taskset_init(set: *mut lw_taskset_t, protocol: *const c_char) -> c_int {
    told(|| {
        require_place(set)?;
        // SAFETY: the header requires pointers that are valid for the call.
        let protocol = protocol_named(unsafe { text(protocol) }?)?;
        let building = Draft { builder: TaskSet::builder(protocol), resources: 0, tasks: 0 };
        // SAFETY: not null and aligned, as checked above; the header requires memory of this type.
        unsafe { make(set, Kept { building: Mutex::new(building), set: OnceLock::new() }) };
        Ok(())
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
/// - ERANGE: the machine has too few CPUs or priority levels, or the file has too many tasks.
/// - ENOTSUP: a task requests a resource while it holds another, under a protocol without nested requests; the file's
///   scheduler is neither `p-fp` nor `c-fp`; a resource of a cluster of CPUs is not under `omlp`; or a resource is
///   under `ics` or `ics_lock` (see `lw_ics_update`).
/// - Any other number says why the file cannot be read, such as ENOENT, or is an error of the kernel. After an error
///   `*set` is unchanged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_taskset_read(
    set: *mut lw_taskset_t,
    path: *const c_char,
    protocol: *const c_char,
) -> c_int {
    told(|| {
        require_place(set)?;
        if path.is_null() {
            return Err(Fault::Plain(libc::EINVAL, "the path of the file is missing; the pointer is NULL"));
        }
        // SAFETY: the header requires pointers that are valid for the call.
        let path = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes()));
        // SAFETY: as above.
        let named = if protocol.is_null() { None } else { Some(protocol_named(unsafe { text(protocol) }?)?) };
        let read = uncancelled(|| read(path, named))?;
        let building = Draft { builder: TaskSet::builder(Protocol::None), resources: 0, tasks: 0 };
        // SAFETY: not null and aligned, as checked above; the header requires memory of this type.
        unsafe { make(set, Kept { building: Mutex::new(building), set: OnceLock::from(read) }) };
        Ok(())
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
        // SAFETY: as above.
        unsafe { pthread_setcancelstate(before, &raw mut ours) };
    }
    done
}

fn read(path: &Path, protocol: Option<Protocol>) -> Result<TaskSet, Fault> {
    let shown = path.display();
    let mut bytes = Vec::new();
    // One byte more than the largest file allowed, so that the parser can report a file that is too long.
    let all = File::open(path).and_then(|file| file.take(MAX_SOURCE_BYTES as u64 + 1).read_to_end(&mut bytes));
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
pub unsafe extern "C" fn lw_taskset_destroy(set: *mut lw_taskset_t) -> c_int {
    told(|| {
        // SAFETY: the header requires pointers that are valid for the call.
        unsafe { at(set) }?;
        // SAFETY: it is a task set, and the header requires that no other thread uses it. `make` leaked the memory that
        // is freed here, and only the set pointed to it.
        unsafe {
            let kept = std::ptr::with_exposed_provenance_mut::<Kept>((*set).lw_set);
            set.write_bytes(0, 1);
            drop(Box::from_raw(kept));
        }
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
    set: *mut lw_taskset_t,
    name: *const c_char,
    home: c_int,
    resource: *mut u32,
) -> c_int {
    told(|| {
        // SAFETY: the header requires pointers that are valid for the call.
        let (kept, name) = unsafe { (at(set)?, text(name)?) };
        require_place(resource)?;
        let home = if home == -1 { None } else { Some(number(home, "the home", u16::MAX)?) };
        let id = draft(kept, |draft| {
            if draft.resources >= MAX_RESOURCES {
                return Err(too_many("resource", MAX_RESOURCES));
            }
            draft.resources += 1;
            Ok(match home {
                Some(cpu) => draft.builder.resource_at(name, cpu),
                None => draft.builder.resource(name),
            })
        })?;
        // SAFETY: not null and aligned, as checked above; the header requires memory of this type.
        unsafe { argument::write(resource, u32::from(id.0)) };
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
    set: *mut lw_taskset_t,
    name: *const c_char,
    cpu: c_int,
    priority: c_int,
    resources: *const u32,
    count: size_t,
    task: *mut u32,
) -> c_int {
    told(|| {
        let cpu = number(cpu, "the CPU", u16::MAX)?;
        let priority = number(priority, "the priority", u16::MAX)?;
        // SAFETY: the header requires pointers that are valid for the call.
        unsafe { add_task(set, name, resources, count, task, |to, name, uses| to.task(name, cpu, priority, uses)) }
    })
}

/// Adds a task of a cluster, whose jobs execute on any of the `cpu_count` CPUs at `cpus`. The other parameters are
/// those of `lw_taskset_task`.
///
/// Two tasks must have all of these CPUs in common, or none; `lw_taskset_build` checks this. The resources of such a
/// task must be under `omlp`.
///
/// Returns the values of `lw_taskset_task`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_taskset_task_in_cluster(
    set: *mut lw_taskset_t,
    name: *const c_char,
    cpus: *const c_int,
    cpu_count: size_t,
    priority: c_int,
    resources: *const u32,
    count: size_t,
    task: *mut u32,
) -> c_int {
    told(|| {
        // SAFETY: the header requires pointers that are valid for the call.
        let cpus =
            unsafe { list(cpus, cpu_count, MAX_CPUS, "the list of the task's CPUs is NULL, misaligned or too long")? };
        let cpus = cpus.iter().map(|&cpu| number(cpu, "the CPU", u16::MAX)).collect::<Result<Vec<_>, _>>()?;
        let priority = number(priority, "the priority", u16::MAX)?;
        let add =
            |to: &mut TaskSetBuilder, name: &str, uses: &[ResourceId]| to.task_in_cluster(name, &cpus, priority, uses);
        // SAFETY: the header requires pointers that are valid for the call.
        unsafe { add_task(set, name, resources, count, task, add) }
    })
}

/// Adds a task by `add`.
///
/// # Safety
/// The pointers are as the header requires for `lw_taskset_task`.
unsafe fn add_task(
    set: *mut lw_taskset_t,
    name: *const c_char,
    resources: *const u32,
    count: size_t,
    task: *mut u32,
    add: impl FnOnce(&mut TaskSetBuilder, &str, &[ResourceId]) -> TaskId,
) -> Result<(), Fault> {
    // SAFETY: the caller promises what the header requires of these pointers.
    let (kept, name) = unsafe { (at(set)?, text(name)?) };
    require_place(task)?;
    // SAFETY: as above.
    let numbers = unsafe {
        list(resources, count, MAX_RESOURCES, "the list of the task's resources is NULL, misaligned or too long")?
    };
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
        if draft.tasks >= MAX_EXECUTED_TASKS {
            return Err(too_many("task", MAX_EXECUTED_TASKS));
        }
        draft.tasks += 1;
        Ok(add(&mut draft.builder, name, &uses))
    })?;
    // SAFETY: not null and aligned, as checked above; the header requires memory of this type.
    unsafe { argument::write(task, u32::from(id.0)) };
    Ok(())
}

/// Returns the `count` values at `at`, or the fault `otherwise` if there can be none.
///
/// # Safety
/// `at` is null, misaligned, or points to `count` values that stay for the call. More than `most` need not exist.
unsafe fn list<'a, T>(at: *const T, count: size_t, most: usize, otherwise: &'static str) -> Result<&'a [T], Fault> {
    if count > most || (count > 0 && (at.is_null() || !at.is_aligned())) {
        return Err(Fault::Plain(libc::EINVAL, otherwise));
    }
    // SAFETY: not null and aligned, and the caller promises `count` values there.
    Ok(if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(at, count) } })
}

/// Completes the task set: nothing can be added any more, and threads may join. The call allocates memory.
///
/// Returns:
/// - 0: success.
/// - EINVAL: `set` is not a task set, or its tasks and resources are invalid. `lw_task_error` says why.
/// - EBUSY: the set is already built.
/// - ERANGE: the machine has too few CPUs or priority levels.
/// - ENOTSUP: the protocol is `ics` or `ics_lock`, or a resource of a cluster of CPUs is not under `omlp`.
/// - Any other number is an error of the kernel. After an error the set is unchanged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_taskset_build(set: *mut lw_taskset_t) -> c_int {
    told(|| {
        // SAFETY: the header requires pointers that are valid for the call.
        let kept = unsafe { at(set) }?;
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
pub unsafe extern "C" fn lw_taskset_find_task(set: *const lw_taskset_t, name: *const c_char, task: *mut u32) -> c_int {
    // SAFETY: the header requires pointers that are valid for the call.
    unsafe { find(set, name, task, "task", |set, name| Some(set.task(name)?.0)) }
}

/// Writes the number of the resource named `name` to `*resource`.
///
/// Returns:
/// - 0: success.
/// - ENOENT: no resource has that name.
/// - EINVAL: an argument is invalid, or the set is not built.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_taskset_find_resource(
    set: *const lw_taskset_t,
    name: *const c_char,
    resource: *mut u32,
) -> c_int {
    // SAFETY: the header requires pointers that are valid for the call.
    unsafe { find(set, name, resource, "resource", |set, name| Some(set.resource(name)?.0)) }
}

unsafe fn find(
    set: *const lw_taskset_t,
    name: *const c_char,
    place: *mut u32,
    what: &str,
    find: impl FnOnce(&TaskSet, &str) -> Option<u16>,
) -> c_int {
    told(|| {
        // SAFETY: the caller passes pointers of its own caller, which the header requires to be valid for the call.
        let (set, name) = unsafe { (built(set)?, text(name)?) };
        require_place(place)?;
        let none = || Fault::Told(libc::ENOENT, format!("there is no {what} `{name}` in the task set"));
        let id = find(set, name).ok_or_else(none)?;
        // SAFETY: not null and aligned, as checked above; the header requires memory of this type.
        unsafe { argument::write(place, u32::from(id)) };
        Ok(())
    })
}
