//! The policy that the environment variables request.
//!
//! It is read when the library is loaded. A mutex that is used earlier, by the constructor of another library, reads it
//! then.

use crate::{report, stats};
use libc::c_char;
use lockwright::mutex::{self, OnCycle, attributes};
use lockwright::statistics::count_all_mutexes;
use std::ffi::CStr;
use std::sync::atomic::{AtomicU32, Ordering};

/// The environment has been read.
const READ: u32 = 1 << 31;
/// A deadlock returns an error instead of waiting.
const REFUSES: u32 = 1 << 30;
/// The bits that every mutex gets in its attributes, if they apply to it.
const BITS: u32 =
    attributes::INHERIT | attributes::SERIAL | attributes::AUTO | attributes::CHECKED | attributes::COUNTED;

static POLICY: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" {
    /// As `getenv`, but returns null in a program that has more rights than its caller.
    fn secure_getenv(name: *const c_char) -> *const c_char;
}

/// The requested policy.
#[derive(Clone, Copy)]
pub(crate) struct Policy(u32);

impl Policy {
    pub(crate) fn get() -> Self {
        // ORDERING: Acquire pairs with the Release in `read`.
        match POLICY.load(Ordering::Acquire) {
            0 => read(|_, _, _| {}),
            policy => Self(policy),
        }
    }

    /// Returns the bits that a mutex gets in its attributes.
    pub(crate) fn bits(self) -> u32 {
        self.0 & BITS
    }

    /// Returns whether a deadlock returns an error.
    pub(crate) fn refuses(self) -> bool {
        self.0 & REFUSES != 0
    }
}

/// A variable, and its values.
type Variable = (&'static CStr, &'static [(&'static CStr, u32)]);

/// The variables. The first value of each applies if it is not set.
const VARIABLES: [Variable; 3] = [
    (c"LOCKWRIGHT_PROTOCOL", &[(c"none", 0), (c"inherit", attributes::INHERIT)]),
    (c"LOCKWRIGHT_UNLOCK", &[(c"parallel", 0), (c"serial", attributes::SERIAL), (c"auto", attributes::AUTO)]),
    (
        c"LOCKWRIGHT_DEADLOCK",
        &[(c"off", 0), (c"report", attributes::CHECKED), (c"error", attributes::CHECKED | REFUSES)],
    ),
];

/// How the names of our variables begin.
const PREFIX: &[u8] = b"LOCKWRIGHT_";
/// The beginnings, after that, of names that mean something to other programs of this project.
const OTHERS: [&[u8]; 5] = [b"REQUIRE_", b"WRITE_", b"DEEP", b"TEST_", b"RECORD"];

/// Reads the environment, and reports variables with unknown names or values.
pub(crate) fn load() {
    read(report::bad_value);
    let names = || VARIABLES.iter().map(|(name, _)| *name).chain([stats::NAME]);
    unknown_names(|variable| report::unknown_name(variable, names()));
    if let Some(value) = value(stats::NAME).filter(|value| stats::is_on(value)) {
        stats::begin(value);
    }
}

/// The value of a variable, if it is set.
fn value(name: &CStr) -> Option<&'static CStr> {
    // Null in a program that has more rights than its caller.
    // SAFETY: the name is a string, and programs change their environment only after this library was loaded.
    let value: *const c_char = unsafe { secure_getenv(name.as_ptr()) };
    // SAFETY: it is not null, so the C library returned a string of the environment.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) })
}

/// Reads the environment. Calls `complain` with each variable that has an unknown value, this value, and the known
/// ones.
#[cold]
fn read(complain: impl Fn(&CStr, &CStr, &[(&CStr, u32)])) -> Policy {
    let mut policy = READ;
    for (name, values) in VARIABLES {
        let Some(value) = value(name) else { continue };
        match values.iter().find(|(known, _)| *known == value) {
            Some((_, bits)) => policy |= bits,
            None => complain(name, value, values),
        }
    }
    if value(stats::NAME).is_some_and(stats::is_on) {
        policy |= attributes::COUNTED;
        count_all_mutexes();
    }
    if policy & REFUSES != 0 {
        mutex::on_cycle(OnCycle::RefuseOnly);
    } else if policy & attributes::CHECKED != 0 {
        mutex::on_cycle(OnCycle::Tell(report::cycle));
    }
    // ORDERING: Release pairs with the Acquire in `get`. A thread that reads at the same time reads the same values.
    POLICY.store(policy, Ordering::Release);
    Policy(policy)
}

/// Calls `complain` with each variable whose name begins as ours do and is not one of them.
fn unknown_names(complain: impl Fn(&CStr)) {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    // SAFETY: the C library sets the pointer before it calls constructors, and programs change it only after this
    // library was loaded.
    let mut next = unsafe { environ };
    // BOUND: the environment, which ends with a null pointer. It is null itself if the program has cleared it.
    while !next.is_null() {
        // SAFETY: no null pointer came before this element, so it is inside the array.
        let variable = unsafe { *next };
        if variable.is_null() {
            return;
        }
        // SAFETY: it is not null, so it points to a string of the environment.
        let variable = unsafe { CStr::from_ptr(variable) };
        let name = variable.to_bytes().split(|&byte| byte == b'=').next().unwrap_or_default();
        let is_known =
            VARIABLES.iter().map(|(known, _)| *known).chain([stats::NAME]).any(|known| known.to_bytes() == name);
        if name.starts_with(PREFIX) && !is_known && !OTHERS.iter().any(|other| name[PREFIX.len()..].starts_with(other))
        {
            complain(variable);
        }
        // SAFETY: this was not the last entry.
        next = unsafe { next.add(1) };
    }
}
