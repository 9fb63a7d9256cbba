//! Lockwright for C and C++: the functions and types that `include/lockwright.h` declares. The doc comments of public
//! items become the comments of that header.
//!
//! | file | contents |
//! |---|---|
//! | `mutex` | `lw_mutex_*` |
//! | `counted` | what threads did with mutexes: `lw_mutex_statistics`, `lw_mutex_histogram` |
//! | `cond` | `lw_cond_*` |
//! | `fifo` | `lw_fifo_mutex_*` |
//! | `rwlock` | `lw_rwlock_*` |
//! | `sem` | `lw_sem_*` |
//! | `barrier` | `lw_barrier_*` |
//! | `once` | `lw_once_call` |
//! | `deadlock` | the last deadlock of each thread |
//! | `ics` | `lw_ics_*` |
//! | `ics_types` | the types of `lw_ics_*` |
//! | `cut` | `lw_ics_set_signal`, `lw_ics_update_cut`; `cut.c` does the jump |
//! | `section` | `lw_section_*` |
//! | `buffer`, `queue`, `pqueue` | `lw_buffer_*`, `lw_queue_*`, `lw_pqueue_*`; `object` is what they share |
//! | `taskset` | `lw_taskset_*`: tasks and resources |
//! | `statistics` | what jobs did: `lw_taskset_measure`, `lw_taskset_report` |
//! | `trace` | what jobs did, as a trace: `lw_taskset_trace`, `lw_taskset_write_trace` |
//! | `task` | `lw_task_*`: the calling thread as one of the tasks |
//! | `fault` | errors of task sets, as a number and as a text |
//! | `argument` | the pointers that C passes, with the contract of the header, and checks of what they point to |
//! | `errno` | errors as numbers |
//! | `panic` | the border that no panic crosses |
//!
//! Every function returns an error number. Objects carry a check value, so that memory that was never initialised, or
//! that was destroyed, is refused. A panic ends in the function that C called, and becomes EIO.

#![allow(non_camel_case_types)] // The names of C.
#![allow(clippy::missing_safety_doc)] // The top of the header states the contract of all functions once.

mod argument;
mod barrier;
mod buffer;
mod cond;
mod counted;
mod cut;
mod deadlock;
mod errno;
mod fault;
mod fifo;
mod ics;
mod ics_types;
mod mutex;
mod object;
mod once;
mod panic;
mod pqueue;
mod queue;
mod rwlock;
mod section;
mod sem;
mod statistics;
mod task;
mod taskset;
mod trace;

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!("lw_mutex_t has the layout of 64-bit Linux, whose kernel follows lists through it");
