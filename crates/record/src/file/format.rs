//! The numbers of the format, for the library that writes recordings and the reader.

/// The name of the file in the folder of a recording.
pub const FILE_NAME: &str = "events.lwr";
/// The first bytes of the file.
pub const MAGIC: [u8; 8] = *b"LWRECORD";
/// The version of the format. A reader refuses other versions.
pub const VERSION: u32 = 2;
/// The bytes of the header of the file.
pub const HEADER: usize = 40;
/// The flag of a header: stamps count cycles of the processor, and not nanoseconds of the monotonic clock.
pub const STAMPS_ARE_CYCLES: u32 = 1;

/// The first four bytes of each chunk.
pub const CHUNK_MAGIC: u32 = u32::from_le_bytes(*b"LWCH");
/// The bytes of the header of a chunk.
pub const CHUNK_HEADER: usize = 16;
/// Contents of chunks are padded with zeros to a multiple of this many bytes.
pub const CHUNK_ALIGN: usize = 8;

/// The kinds of chunks.
pub mod chunk {
    /// The arguments of the program, each followed by a zero byte.
    pub const PROGRAM: u32 = 1;
    /// A stamp (u64), and the monotonic and the real-time clock at that moment, in nanoseconds (u64 each).
    pub const CLOCK: u32 = 2;
    /// The text of `/proc/self/maps`.
    pub const MAPS: u32 = 3;
    /// The argument is the number of the thread in this file; then its number in the kernel (u32), a zero (u32), how
    /// many of its events were lost so far (u64), and its name (16 bytes, padded with zeros). A later chunk replaces an
    /// earlier one.
    pub const THREAD: u32 = 4;
    /// The argument is the number of the thread in this file; then events (see [`event`](super::event)).
    pub const EVENTS: u32 = 5;
    /// The argument is how many were lost since the chunk before; then switches (see [`switch`](super::switch)). The
    /// first such chunk says that switches are recorded.
    pub const SWITCHES: u32 = 6;
    /// The recording is complete. The argument is how many threads found no ring, and are not recorded. The monotonic
    /// clock at its end (u64).
    pub const END: u32 = 7;
}

/// The kinds of events: the lowest byte of the first word of an event. The other bytes of that word are the stamp,
/// since the stamp of the header. [`words`] gives the number of words of an event.
///
/// A *place* is the return address of the call, with a detail in its highest 16 bits: for objects, the
/// [class](mod@class) in the lower byte, and in the higher byte [`TRIED`] and the kind of a mutex, as glibc has it.
pub mod event {
    /// The thread begins. Its number in the kernel.
    pub const START: u8 = 1;
    /// The thread ends.
    pub const END: u8 = 2;
    /// The number of a thread in the kernel; above it, the policy (8 bits) and the priority or nice value (8 bits).
    pub const SCHEDULING: u8 = 3;
    /// The number of a thread in the kernel, and its runtime, deadline and period in nanoseconds.
    pub const DEADLINE: u8 = 4;
    /// The number of a thread in the kernel, and its CPUs as bits.
    pub const AFFINITY: u8 = 5;
    /// The object and the place.
    pub const REQUEST_WRITE: u8 = 6;
    /// The object and the place.
    pub const REQUEST_READ: u8 = 7;
    /// The object and the place.
    pub const LOCKED_WRITE: u8 = 8;
    /// The object and the place.
    pub const LOCKED_READ: u8 = 9;
    /// The object: a lock, or a semaphore whose wait ends without a post.
    pub const REFUSED: u8 = 10;
    /// The object.
    pub const UNLOCK: u8 = 11;
    /// The object and the place.
    pub const SIGNAL: u8 = 12;
    /// The object, the place, and the ceiling of a mutex or the value of a semaphore.
    pub const INIT: u8 = 13;
    /// The wait ended.
    pub const RESUMED: u8 = 14;
    /// The mutex and its new ceiling.
    pub const CEILING: u8 = 15;
    /// The instant in nanoseconds of its clock, and the place with the number of the clock as its detail.
    pub const SLEEP_UNTIL: u8 = 16;
    /// The nanoseconds and the place.
    pub const SLEEP_FOR: u8 = 17;
    /// The descriptor and the place.
    pub const TIMER: u8 = 18;
    /// The descriptor and the place.
    pub const INPUT: u8 = 19;
    /// The object and the place.
    pub const CONDITION: u8 = 20;
    /// The object and the place.
    pub const SEMAPHORE: u8 = 21;
    /// The object and the place.
    pub const BARRIER: u8 = 22;
    /// Zero and the place.
    pub const JOIN: u8 = 23;
    /// Zero and the place.
    pub const YIELD: u8 = 24;
    /// The object and the place.
    pub const FUTEX: u8 = 25;
    /// A callback of an executor of ROS 2 begins: its address.
    pub const CALLBACK_START: u8 = 26;
    /// It ends: its address.
    pub const CALLBACK_END: u8 = 27;
    /// A part of the name of a callback: its address, with the number of the part as its detail; 40 bytes, padded with
    /// zeros.
    pub const CALLBACK_NAME: u8 = 28;
    /// Before [`RESUMED`]: how many times the timer expired.
    pub const EXPIRED: u8 = 29;
    /// The descriptor of a timer and above it, in the upper half, the number of its clock; its first expiration in
    /// nanoseconds of this clock, or 0 if it is stopped; and the distance of its expirations in nanoseconds.
    pub const TIMER_SET: u8 = 30;
    /// The descriptor and the place.
    pub const POLL: u8 = 31;
}

/// The bytes of a part of the name of a callback.
pub const NAME_PART: usize = 40;
/// The most parts of a name.
pub const NAME_PARTS_MAX: usize = 8;

/// Returns the number of 64-bit words of an event, or `None` if there is no such kind.
pub const fn words(kind: u8) -> Option<usize> {
    Some(match kind {
        event::END | event::RESUMED => 1,
        event::START
        | event::SCHEDULING
        | event::REFUSED
        | event::UNLOCK
        | event::EXPIRED
        | event::CALLBACK_START
        | event::CALLBACK_END => 2,
        event::AFFINITY
        | event::CEILING
        | event::REQUEST_WRITE..=event::LOCKED_READ
        | event::SIGNAL
        | event::SLEEP_UNTIL..=event::FUTEX
        | event::POLL => 3,
        event::INIT | event::TIMER_SET => 4,
        event::DEADLINE => 5,
        event::CALLBACK_NAME => 2 + NAME_PART / size_of::<u64>(),
        _ => return None,
    })
}

/// The classes of objects.
pub mod class {
    /// A mutex.
    pub const MUTEX: u8 = 1;
    /// A reader-writer lock.
    pub const RWLOCK: u8 = 2;
    /// A spinlock.
    pub const SPINLOCK: u8 = 3;
    /// A condition variable.
    pub const CONDITION: u8 = 4;
    /// A semaphore.
    pub const SEMAPHORE: u8 = 5;
    /// A barrier.
    pub const BARRIER: u8 = 6;
    /// A word of futex calls.
    pub const FUTEX: u8 = 7;
}

/// The bits of the kind of a mutex.
pub mod mutex {
    /// The type: 1 is recursive.
    pub const TYPE: u8 = 3;
    /// The type that the same thread may lock again.
    pub const RECURSIVE: u8 = 1;
    /// `PTHREAD_PRIO_INHERIT`.
    pub const INHERIT: u8 = 0x20;
    /// `PTHREAD_PRIO_PROTECT`.
    pub const PROTECT: u8 = 0x40;
    /// All bits that are recorded.
    pub const ALL: u8 = 0x73;
}

/// The highest bit of a place: the lock was an attempt, and a busy lock would have refused it at once.
pub const TRIED: u64 = 1 << 63;

/// The lowest bit of the detail in a place.
pub const DETAIL_SHIFT: u32 = 48;

/// A switch is two words: the monotonic clock in nanoseconds; and the number of the thread in the kernel, the CPU and,
/// in the highest byte, one of these kinds.
pub mod switch {
    /// The thread is dispatched.
    pub const IN: u8 = 0;
    /// The thread suspends.
    pub const SUSPENDED: u8 = 1;
    /// The thread is preempted.
    pub const PREEMPTED: u8 = 2;
    /// The thread is made ready. In place of the CPU stands the number of the thread that did it, or 0 if it is none of
    /// the program.
    pub const WAKEUP: u8 = 3;
    /// The thread has another priority because of inheritance: in place of the CPU, that of SCHED_FIFO, or 0.
    pub const BOOST: u8 = 4;
    /// The lowest bit of the CPU, which has 24 bits.
    pub const CPU_SHIFT: u32 = 32;
    /// The lowest bit of the kind.
    pub const KIND_SHIFT: u32 = 56;
}
