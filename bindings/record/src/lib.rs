//! Records the lock operations of an unmodified program, and when its threads execute. `lockwright record` preloads it.
//!
//! Each function of the C library that locks, waits or changes the scheduling has a function of the same name here. It
//! records the call and calls the next function of this name: the C library's, or that of another preloaded library.
//! So the program keeps its locks.
//!
//! | file | contents |
//! |---|---|
//! | `entry` | how a function here determines from where it was called |
//! | `next` | the next functions of the names that this library defines |
//! | `ring` | the ring of a thread, which holds its events until they are written |
//! | `thread` | the ring of the calling thread; its first and last event |
//! | `create` | threads that the program creates and joins |
//! | `mutex`, `rwlock`, `spin` | locks |
//! | `wait` | condition variables, semaphores, barriers |
//! | `sleep`, `input` | sleeps; waits for timers and data |
//! | `scheduling` | changes of policies, priorities and CPUs; `sched_yield` |
//! | `ros` | callbacks of executors of ROS 2 |
//! | `kernel` | the scheduling of a thread, as the kernel reports it |
//! | `syscall` | futex waits that do not use the C library's locks |
//! | `threads_h` | the names of C11 |
//! | `clock` | stamps |
//! | `switches` | the kernel's records of context switches |
//! | `traced` | wake-ups and inherited priorities, for root |
//! | `file` | the file that is written |
//! | `spill` | the thread that writes rings and switches to the file |
//! | `stage` | whether threads are recorded now |
//! | `load` | what happens when the program begins, forks and ends |
//! | `code` | recordings that the program itself begins and ends |
//!
//! A program that is linked with this library begins and ends its recording itself: [`start`] and [`stop`], and
//! `lw_record_start` and `lw_record_stop` of `lockwright_record.h`.
//!
//! The path of a recorded call does not allocate, lock or wait: an event that does not fit into the ring is lost and
//! counted. The first event of a thread maps its ring.
//!
//! # Safety
//! Every function is the POSIX function of that name, and requires the same of its caller: pointers are valid and point
//! to objects of their types. A pointer may be null only if the description of the function says so.
#![allow(clippy::missing_safety_doc)]
#![cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]

mod clock;
mod code;
mod create;
mod entry;
mod file;
mod input;
mod kernel;
mod load;
mod mutex;
mod next;
mod ring;
mod ros;
mod rwlock;
mod scheduling;
mod sleep;
mod spill;
mod spin;
mod stage;
mod switches;
mod syscall;
mod thread;
mod threads_h;
mod traced;
mod wait;

pub use code::{start, stop};
