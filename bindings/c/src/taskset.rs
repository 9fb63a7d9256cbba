//! `lw_taskset_*`.

use crate::argument;
use crate::fault::{Fault, told};
use libc::{c_char, c_int, size_t};
use lockwright::tasks::{Builder, TaskSet};
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

/// Tasks, and the resources they share, under a locking protocol: 32 bytes, aligned to 8. Make it by `lw_taskset_init` or `lw_taskset_read`, and never
/// move or copy it. Its fields are nobody's business.
#[repr(C)]
pub struct lw_taskset_t {
    lw_set: usize,
    lw_check: u32,
    lw_spare: [u32; 5],
}

/// What a `lw_taskset_t` keeps.
struct Kept {
    /// Tasks and resources are said one by one.
    building: Mutex<Draft>,
    /// They have all been said.
    set: OnceLock<TaskSet>,
}

struct Draft {
    builder: Builder,
    resources: usize,
    tasks: usize,
}

const NO_SET: Fault =
    Fault::Plain(libc::EINVAL, "the pointer is not to a task set: lw_taskset_init or lw_taskset_read makes one");
const NO_PLACE: Fault = Fault::Plain(libc::EINVAL, "there is no place for the result: give the address of a variable");
const BUILT: Fault = Fault::Plain(libc::EBUSY, "the task set is built, and changes no more; make another");

/// With its own place and what it keeps mixed in: a copy, or one that was overwritten, is none.
fn check(at: *const lw_taskset_t, kept: usize) -> u32 {
    let mixed = (at.addr() ^ kept.rotate_left(17)) as u64;
    TASKSET_CHECK ^ (mixed as u32) ^ ((mixed >> 32) as u32)
}

/// # Safety
/// Null, misaligned, or memory of a `lw_taskset_t` that stays for the call.
unsafe fn at<'a>(set: *const lw_taskset_t) -> Result<&'a Kept, Fault> {
    if set.is_null() || !set.is_aligned() {
        return Err(NO_SET);
    }
    // SAFETY: promised by the caller; integers only, so any bits are some.
    let (kept, found) = unsafe { ((*set).lw_set, (*set).lw_check) };
    if kept == 0 || found != check(set, kept) {
        return Err(NO_SET);
    }
    // SAFETY: the check value says that `make` put it there, and that `lw_taskset_destroy` has not come since.
    Ok(unsafe { &*std::ptr::with_exposed_provenance::<Kept>(kept) })
}

/// # Safety
/// As [`at`].
pub unsafe fn built<'a>(set: *const lw_taskset_t) -> Result<&'a TaskSet, Fault> {
    // SAFETY: promised by the caller.
    let kept = unsafe { at(set) }?;
    kept.set.get().ok_or(Fault::Plain(libc::EINVAL, "the task set is not complete: call lw_taskset_build first"))
}

/// # Safety
/// Not null, aligned, and nobody else's memory.
unsafe fn make(set: *mut lw_taskset_t, kept: Kept) {
    let kept = Box::into_raw(Box::new(kept)).expose_provenance();
    // SAFETY: promised by the caller.
    unsafe { set.write(lw_taskset_t { lw_set: kept, lw_check: check(set, kept), lw_spare: [0; 5] }) };
}

fn require_place<T>(place: *mut T) -> Result<(), Fault> {
    if place.is_null() || !place.is_aligned() { Err(NO_PLACE) } else { Ok(()) }
}

/// # Safety
/// Null, or a text with a 0 at its end that stays for the call.
unsafe fn text<'a>(text: *const c_char) -> Result<&'a str, Fault> {
    if text.is_null() {
        return Err(Fault::Plain(libc::EINVAL, "a text is missing: the pointer is NULL"));
    }
    // SAFETY: promised by the caller.
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

/// Of a CPU or a priority.
fn number(number: c_int, what: &str, most: u16) -> Result<u16, Fault> {
    let fits = u16::try_from(number).ok().filter(|number| *number <= most);
    fits.ok_or_else(|| Fault::Told(libc::EINVAL, format!("{what} is {number}, and not from 0 to {most}")))
}

fn too_many(what: &str, most: usize) -> Fault {
    Fault::Told(libc::ERANGE, format!("too many {what}s; at most {most} are supported"))
}

/// Makes a task set in `*set`, whatever was there, without tasks and resources yet: `lw_taskset_resource` and `lw_taskset_task` add them,
/// `lw_taskset_build` is the end of that. `protocol` is one of `none`, `pip`, `icpp`, `pcp`, `srp`, `mpcp`, `mpcp_vs`, `dpcp`, `dflp`, `fmlp_long`,
/// `fmlp_plus`, `fmlp_short`, `msrp`, `mrsp`, `omlp`. A resource of one CPU's tasks is under `icpp` where a protocol for several CPUs would rule it, but
/// for `fmlp_short` and resources with a home elsewhere. Sections under `ics` and `ics_lock` are no locks: `lw_taskset_build` refuses them, `lw_ics_update` has them.
///
/// EINVAL: an argument is not one; there is no such protocol.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_taskset_init(set: *mut lw_taskset_t, protocol: *const c_char) -> c_int {
    told(|| {
        require_place(set)?;
        // SAFETY: the header's head asks for it.
        let protocol = protocol_named(unsafe { text(protocol) }?)?;
        let building = Draft { builder: TaskSet::builder(protocol), resources: 0, tasks: 0 };
        // SAFETY: looked at just now; the header's head asks for the rest.
        unsafe { make(set, Kept { building: Mutex::new(building), set: OnceLock::new() }) };
        Ok(())
    })
}

/// Makes a task set in `*set`, whatever was there, out of a task-set file, the one that `lockwright check` bounds. `protocol` rules what names none in
/// the file; NULL stands for the file's own. CPUs count from 0 among those the calling thread may use. Nothing is to be built any more.
///
/// EINVAL: an argument is not one, there is no such protocol, or the file has faults (`lw_task_error` says which, where, and what would be right).
/// ERANGE: the machine has too few CPUs, or too few levels. ENOTSUP: tasks hold two resources at a time, and their protocol has no nested requests; the
/// file's scheduler is not `p-fp`; or a resource is under `ics` or `ics_lock` (see `lw_ics_update`). Otherwise why the file cannot be read (ENOENT,
/// say). `*set` is as it was then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_taskset_read(
    set: *mut lw_taskset_t,
    path: *const c_char,
    protocol: *const c_char,
) -> c_int {
    told(|| {
        require_place(set)?;
        if path.is_null() {
            return Err(Fault::Plain(libc::EINVAL, "the path of the file is missing: the pointer is NULL"));
        }
        // SAFETY: the header's head asks for it.
        let path = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes()));
        // SAFETY: as above.
        let named = if protocol.is_null() { None } else { Some(protocol_named(unsafe { text(protocol) }?)?) };
        let read = uncancelled(|| read(path, named))?;
        let building = Draft { builder: TaskSet::builder(Protocol::None), resources: 0, tasks: 0 };
        // SAFETY: looked at just now; the header's head asks for the rest.
        unsafe { make(set, Kept { building: Mutex::new(building), set: OnceLock::from(read) }) };
        Ok(())
    })
}

/// To open and to read a file are points of cancellation of the C library.
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
    // A byte more than what is read of a file at all, so that the reader can say that it is too long.
    let all = File::open(path).and_then(|file| file.take(MAX_SOURCE_BYTES as u64 + 1).read_to_end(&mut bytes));
    all.map_err(|error| {
        let errno = error.raw_os_error().filter(|errno| *errno > 0).unwrap_or(libc::EIO);
        Fault::Told(errno, format!("cannot read {shown}: {error}; give the path of a task-set file"))
    })?;
    let system = parse_system_bytes(&bytes).map_err(|faults| {
        // Up to the first byte that is not UTF-8 it is as it was.
        let source = String::from_utf8_lossy(&bytes);
        let line = |fault: &lockwright_model::format::Diagnostic| match fault.line_column(&source) {
            Some((line, column)) => format!("{shown}:{line}:{column}: {fault}"),
            None => format!("{shown}: {fault}"),
        };
        Fault::Told(libc::EINVAL, faults.iter().map(line).collect::<Vec<_>>().join("\n"))
    })?;
    Ok(TaskSet::new(&system, protocol.unwrap_or_else(|| system.protocol_or_default()))?)
}

/// Ends a task set: every use of it but `lw_taskset_init` and `lw_taskset_read` is refused (EINVAL) from then on. Threads that have joined go on undisturbed.
///
/// EINVAL: it is not a task set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_taskset_destroy(set: *mut lw_taskset_t) -> c_int {
    told(|| {
        // SAFETY: the header's head asks for it.
        unsafe { at(set) }?;
        // SAFETY: it is a task set; the header's head asks that nobody else uses it. `make` leaked what is freed here, and the set was the way to it.
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
    // Under the lock: nobody builds meanwhile.
    if kept.set.get().is_some() { Err(BUILT) } else { body(&mut draft) }
}

/// Adds a resource, by a name of its own; its number into `*resource`, which `lw_taskset_task` and `lw_task_lock` want. Under `dpcp` and `dflp` its
/// sections execute on the CPU `home`; -1 leaves that to the library.
///
/// EINVAL: an argument is not one. EBUSY: the set is built. ERANGE: there are 256 already. Nothing is added then. (That a name is taken, or a CPU does
/// not exist, `lw_taskset_build` says.)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_taskset_resource(
    set: *mut lw_taskset_t,
    name: *const c_char,
    home: c_int,
    resource: *mut u32,
) -> c_int {
    told(|| {
        // SAFETY: the header's head asks for it.
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
        // SAFETY: looked at above; the header's head asks for the rest.
        unsafe { argument::write(resource, u32::from(id.0)) };
        Ok(())
    })
}

/// Adds a task, by a name of its own; its number into `*task`, which `lw_task_join` wants. Its CPU counts from 0 among those the thread that builds may
/// use; a greater `priority` (0 to 65535) is more urgent. `resources` are the `count` resources that it ever locks (NULL where that is 0): ceilings
/// follow from them.
///
/// EINVAL: an argument is not one, or there is no such resource. EBUSY: the set is built. ERANGE: there are 1024 already. Nothing is added then.
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
        // SAFETY: the header's head asks for it.
        unsafe { add_task(set, name, resources, count, task, |to, name, uses| to.task(name, cpu, priority, uses)) }
    })
}

/// As `lw_taskset_task`, a task of a cluster: its jobs execute on any of the `cpu_count` CPUs at `cpus`. Two tasks have all of these in common, or none
/// (`lw_taskset_build` says); under `omlp` alone.
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
        // SAFETY: the header's head asks for it.
        let cpus = unsafe { list(cpus, cpu_count, MAX_CPUS, "the CPUs of the task are not a list of that many")? };
        let cpus = cpus.iter().map(|&cpu| number(cpu, "the CPU", u16::MAX)).collect::<Result<Vec<_>, _>>()?;
        let priority = number(priority, "the priority", u16::MAX)?;
        let add = |to: &mut Builder, name: &str, uses: &[ResourceId]| to.task_in_cluster(name, &cpus, priority, uses);
        // SAFETY: the header's head asks for it.
        unsafe { add_task(set, name, resources, count, task, add) }
    })
}

/// # Safety
/// As the header's head asks of `lw_taskset_task`.
unsafe fn add_task(
    set: *mut lw_taskset_t,
    name: *const c_char,
    resources: *const u32,
    count: size_t,
    task: *mut u32,
    add: impl FnOnce(&mut Builder, &str, &[ResourceId]) -> TaskId,
) -> Result<(), Fault> {
    // SAFETY: the caller's.
    let (kept, name) = unsafe { (at(set)?, text(name)?) };
    require_place(task)?;
    // SAFETY: the caller's.
    let numbers =
        unsafe { list(resources, count, MAX_RESOURCES, "the resources of the task are not a list of that many")? };
    let id = draft(kept, |draft| {
        let id = |&number: &u32| {
            let known = usize::try_from(number).ok().filter(|number| *number < draft.resources);
            let none =
                || Fault::Told(libc::EINVAL, format!("there is no resource {number}; lw_taskset_resource makes them"));
            known.map(ResourceId::new).ok_or_else(none)
        };
        let uses = numbers.iter().map(id).collect::<Result<Vec<_>, _>>()?;
        if draft.tasks >= MAX_EXECUTED_TASKS {
            return Err(too_many("task", MAX_EXECUTED_TASKS));
        }
        draft.tasks += 1;
        Ok(add(&mut draft.builder, name, &uses))
    })?;
    // SAFETY: looked at above; the caller's for the rest.
    unsafe { argument::write(task, u32::from(id.0)) };
    Ok(())
}

/// # Safety
/// Null, misaligned, or `count` values that stay for the call, where these are at most `most`.
unsafe fn list<'a, T>(at: *const T, count: size_t, most: usize, otherwise: &'static str) -> Result<&'a [T], Fault> {
    if count > most || (count > 0 && (at.is_null() || !at.is_aligned())) {
        return Err(Fault::Plain(libc::EINVAL, otherwise));
    }
    // SAFETY: looked at just now; the caller's for the rest.
    Ok(if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(at, count) } })
}

/// All has been said: from now on threads may join.
///
/// EINVAL: it is not a task set, or its tasks and resources break a rule. EBUSY: it is built. ERANGE: the machine has too few CPUs, or too few levels.
/// ENOTSUP: the protocol is `ics` or `ics_lock`. The set is as it was then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_taskset_build(set: *mut lw_taskset_t) -> c_int {
    told(|| {
        // SAFETY: the header's head asks for it.
        let kept = unsafe { at(set) }?;
        draft(kept, |draft| {
            let built = draft.builder.clone().build()?;
            kept.set.set(built).map_err(|_| BUILT)
        })
    })
}

/// The number of the task of that name, into `*task`.
///
/// ENOENT: there is none. EINVAL: an argument is not one, or the set is not built.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_taskset_find_task(set: *const lw_taskset_t, name: *const c_char, task: *mut u32) -> c_int {
    // SAFETY: the header's head asks for it.
    unsafe { find(set, name, task, "task", |set, name| Some(set.task(name)?.0)) }
}

/// The number of the resource of that name, into `*resource`.
///
/// ENOENT: there is none. EINVAL: an argument is not one, or the set is not built.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_taskset_find_resource(
    set: *const lw_taskset_t,
    name: *const c_char,
    resource: *mut u32,
) -> c_int {
    // SAFETY: the header's head asks for it.
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
        // SAFETY: promised by the caller.
        let (set, name) = unsafe { (built(set)?, text(name)?) };
        require_place(place)?;
        let none = || Fault::Told(libc::ENOENT, format!("there is no {what} `{name}` in the task set"));
        let id = find(set, name).ok_or_else(none)?;
        // SAFETY: looked at just now; promised by the caller.
        unsafe { argument::write(place, u32::from(id)) };
        Ok(())
    })
}
