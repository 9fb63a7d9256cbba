//! Callbacks of executors of ROS 2: the functions by which its client libraries are traced (`tracetools`).

use crate::next;
use crate::thread::current;
use libc::{c_char, c_void};
use lockwright_record::file::format::{DETAIL_SHIFT, NAME_PART, NAME_PARTS_MAX, event};
use std::ffi::CStr;

/// As in `tracetools`: an executor is about to call a callback.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ros_trace_callback_start(callback: *const c_void, is_within_process: bool) {
    if let Some(ring) = current() {
        ring.put(event::CALLBACK_START, [callback.addr() as u64]);
    }
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    unsafe { next::ros_trace_callback_start(callback, is_within_process) }
}

/// As in `tracetools`: the callback has returned.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ros_trace_callback_end(callback: *const c_void) {
    if let Some(ring) = current() {
        ring.put(event::CALLBACK_END, [callback.addr() as u64]);
    }
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    unsafe { next::ros_trace_callback_end(callback) }
}

/// As in `tracetools`: a callback has this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ros_trace_rclcpp_callback_register(callback: *const c_void, name: *const c_char) {
    if let Some(ring) = current()
        && !name.is_null()
    {
        // SAFETY: it is not null, so the program passes a string that stays valid during the call.
        let bytes = unsafe { CStr::from_ptr(name) }.to_bytes();
        for (part, bytes) in bytes.chunks(NAME_PART).take(NAME_PARTS_MAX).enumerate() {
            let mut words = [0; 1 + NAME_PART / size_of::<u64>()];
            words[0] = callback.addr() as u64 | (part as u64) << DETAIL_SHIFT;
            for (word, bytes) in words[1..].iter_mut().zip(bytes.chunks(size_of::<u64>())) {
                let mut padded = [0; size_of::<u64>()];
                padded[..bytes.len()].copy_from_slice(bytes);
                *word = u64::from_le_bytes(padded);
            }
            ring.put(event::CALLBACK_NAME, words);
        }
    }
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    unsafe { next::ros_trace_rclcpp_callback_register(callback, name) }
}
