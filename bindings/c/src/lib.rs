//! Lockwright for C and C++: what `include/lockwright.h` declares. The comments on public items are the header's.
//!
//! | file | what |
//! |---|---|
//! | `mutex` | `lw_mutex_*` |
//! | `cond` | `lw_cond_*` |
//! | `deadlock` | the last deadlock of each thread |
//! | `ics` | `lw_ics_*` |
//! | `cut` | `lw_ics_set_signal`, `lw_ics_update_cut`; the jump is in `cut.c` |
//! | `section` | `lw_section_*` |
//! | `taskset` | `lw_taskset_*`: tasks and resources |
//! | `task` | `lw_task_*`: the calling thread as one of the tasks |
//! | `fault` | what went wrong with task sets, as a number and in words |
//! | `argument` | whether what C gave is what it should be |
//! | `errno` | errors as numbers |
//!
//! Every function answers with an error number. Objects carry a check value, so that memory that was never initialised, or was destroyed, is
//! refused. A panic ends at the border, as EIO.

#![allow(non_camel_case_types)] // They are C's names.
#![allow(clippy::missing_safety_doc)] // The header's head says once what all of them ask for.

mod argument;
mod cond;
mod cut;
mod deadlock;
mod errno;
mod fault;
mod ics;
mod mutex;
mod section;
mod task;
mod taskset;

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!("the layout of lw_mutex_t is that of 64 bits Linux, whose kernel walks lists through it");
