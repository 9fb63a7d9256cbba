//! Threads that the program creates and joins. Each is recorded from before its function.

use crate::entry::entries;
use crate::next::{self, Body, Body11};
use crate::thread::current;
use crate::wait::waits;
use libc::{c_int, c_void, pthread_attr_t, pthread_t, timespec};
use lockwright_record::file::format::event;

/// The start function of a new thread and its argument.
struct Start<F> {
    body: F,
    argument: *mut c_void,
}

impl<F: Copy> Start<F> {
    fn boxed(body: F, argument: *mut c_void) -> *mut c_void {
        Box::into_raw(Box::new(Self { body, argument })).cast()
    }

    /// Begins the thread. Returns its function and argument.
    unsafe fn begin(start: *mut c_void) -> (F, *mut c_void) {
        // SAFETY: `boxed` made it, and the one thread that received it calls this once.
        let start = unsafe { Box::from_raw(start.cast::<Self>()) };
        current();
        (start.body, start.argument)
    }
}

extern "C-unwind" fn run(start: *mut c_void) -> *mut c_void {
    // SAFETY: `pthread_create` below passes what `Start::boxed` made of a `Body`, and the new thread calls this
    // function once.
    let (body, argument) = unsafe { Start::<Body>::begin(start) };
    body(argument)
}

extern "C-unwind" fn run11(start: *mut c_void) -> c_int {
    // SAFETY: `thrd_create` below passes what `Start::boxed` made of a `Body11`, and the new thread calls this function
    // once.
    let (body, argument) = unsafe { Start::<Body11>::begin(start) };
    body(argument)
}

/// As in the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    body: Body,
    argument: *mut c_void,
) -> c_int {
    if current().is_none() {
        // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
        return unsafe { next::pthread_create(thread, attributes, body, argument) };
    }
    let start = Start::boxed(body, argument);
    // SAFETY: the program's place and attributes are valid until the call returns, and `run` takes the box that it
    // gets.
    let answer = unsafe { next::pthread_create(thread, attributes, run, start) };
    if answer != 0 {
        // SAFETY: the call failed, so no thread got the box, and this frame still owns it.
        drop(unsafe { Box::from_raw(start.cast::<Start<Body>>()) });
    }
    answer
}

/// As in the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thrd_create(thread: *mut pthread_t, body: Body11, argument: *mut c_void) -> c_int {
    if current().is_none() {
        // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
        return unsafe { next::thrd_create(thread, body, argument) };
    }
    let start = Start::boxed(body, argument);
    // SAFETY: the program's place is valid until the call returns, and `run11` takes the box that it gets.
    let answer = unsafe { next::thrd_create(thread, run11, start) };
    if answer != 0 {
        // SAFETY: the call failed, so no thread got the box, and this frame still owns it.
        drop(unsafe { Box::from_raw(start.cast::<Start<Body11>>()) });
    }
    answer
}

unsafe extern "C-unwind" fn join(thread: pthread_t, result: *mut *mut c_void, site: usize) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    waits(event::JOIN, 0, site as u64, || unsafe { next::pthread_join(thread, result) })
}

unsafe extern "C-unwind" fn timedjoin(
    thread: pthread_t,
    result: *mut *mut c_void,
    time: *const timespec,
    site: usize,
) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    waits(event::JOIN, 0, site as u64, || unsafe { next::pthread_timedjoin_np(thread, result, time) })
}

unsafe extern "C-unwind" fn join11(thread: pthread_t, result: *mut c_int, site: usize) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    waits(event::JOIN, 0, site as u64, || unsafe { next::thrd_join(thread, result) })
}

entries! {
    "rdx" pthread_join = join;
    "rcx" pthread_timedjoin_np = timedjoin;
    "rdx" thrd_join = join11;
}
