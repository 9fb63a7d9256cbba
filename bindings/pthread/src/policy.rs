//! What the environment asks for.
//!
//! Read when the library is loaded; a mutex that somebody takes before (from another library's constructor) reads it then.

use crate::report;
use libc::c_char;
use lockwright::mutex::{self, OnCycle, kind};
use std::ffi::CStr;
use std::sync::atomic::{AtomicU32, Ordering};

/// The environment was read.
const READ: u32 = 1 << 31;
/// A deadlock is answered with an error, and not waited for.
const REFUSES: u32 = 1 << 30;
/// What every mutex gets in its kind, as far as it may.
const BITS: u32 = kind::INHERIT | kind::SERIAL | kind::AUTO | kind::CHECKED;

static POLICY: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" {
    /// As `getenv`, and nothing for programs that have more rights than who started them.
    fn secure_getenv(name: *const c_char) -> *const c_char;
}

/// What was asked for.
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

    /// What a mutex gets in its kind.
    pub(crate) fn bits(self) -> u32 {
        self.0 & BITS
    }

    /// Whether a deadlock is answered with an error.
    pub(crate) fn refuses(self) -> bool {
        self.0 & REFUSES != 0
    }
}

/// A variable, and what its values are.
type Variable = (&'static CStr, &'static [(&'static CStr, u32)]);

/// The first value of each is what holds where it is not set.
const VARIABLES: [Variable; 3] = [
    (c"LOCKWRIGHT_PROTOCOL", &[(c"none", 0), (c"inherit", kind::INHERIT)]),
    (c"LOCKWRIGHT_UNLOCK", &[(c"parallel", 0), (c"serial", kind::SERIAL), (c"auto", kind::AUTO)]),
    (c"LOCKWRIGHT_DEADLOCK", &[(c"off", 0), (c"report", kind::CHECKED), (c"error", kind::CHECKED | REFUSES)]),
];

/// `complain` is told of a variable, its value, and what it could be.
#[cold]
fn read(complain: impl Fn(&CStr, &CStr, &[(&CStr, u32)])) -> Policy {
    let mut policy = READ;
    for (name, values) in VARIABLES {
        // Nothing, where the program has more rights than who started it.
        // SAFETY: the name is a string. The environment is the C library's, and a program changes it only after it was loaded.
        let value: *const c_char = unsafe { secure_getenv(name.as_ptr()) };
        if value.is_null() {
            continue;
        }
        // SAFETY: the C library answers with a string.
        let value = unsafe { CStr::from_ptr(value) };
        match values.iter().find(|(known, _)| *known == value) {
            Some((_, bits)) => policy |= bits,
            None => complain(name, value, values),
        }
    }
    if policy & REFUSES != 0 {
        mutex::on_cycle(OnCycle::RefuseOnly);
    } else if policy & kind::CHECKED != 0 {
        mutex::on_cycle(OnCycle::Tell(report::cycle));
    }
    // ORDERING: Release pairs with the Acquire in `get`. Who reads at the same time reads the same.
    POLICY.store(policy, Ordering::Release);
    Policy(policy)
}

/// Called by the loader, before the program's own constructors.
extern "C" fn load() {
    mutex::warm_up();
    crate::mutex::warm_up();
    read(report::bad_value);
}

// SAFETY: the loader calls what this section points at once, with arguments that `load` does not look at.
#[used]
#[unsafe(link_section = ".init_array")]
static LOAD: extern "C" fn() = load;
