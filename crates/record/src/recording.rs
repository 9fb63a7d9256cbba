use crate::event::Event;
pub use crate::event::{CallbackId, ObjectId, SiteId, ThreadIndex};

/// All that was recorded of one run of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recording {
    /// The program and its arguments.
    pub program: Vec<String>,
    /// Time from the start of the recording to its end, in nanoseconds.
    pub length_ns: u64,
    /// The threads, in the order of their first events.
    pub threads: Vec<Thread>,
    /// The mutexes, reader-writer locks, condition variables, semaphores and barriers.
    pub objects: Vec<Object>,
    /// The places in the code from which functions were called.
    pub sites: Vec<Site>,
    /// The callbacks of executors of ROS 2.
    pub callbacks: Vec<Callback>,
    /// The events, by time; events of one thread at one instant stand in the order in which they happened.
    pub events: Vec<Event>,
    /// How many events were lost because a ring was full.
    pub lost: u64,
    /// Of how many threads the locks and waits are missing, because there was no memory for their events or there were
    /// too many threads. 0 in a recording that is not complete.
    pub unrecorded_threads: u32,
    /// Whether the program ended and everything was written; otherwise the recording is read up to its end.
    pub complete: bool,
    /// Whether switches of threads were recorded: without them, execution times are unknown.
    pub switches: bool,
}

/// A thread of the recorded program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Thread {
    /// The number that the kernel gave it.
    pub id: u32,
    /// Its name at its end, or the last one seen.
    pub name: String,
    /// How many of its events were lost.
    pub lost: u64,
}

/// A callback of an executor of ROS 2.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Callback {
    /// Its address in the program.
    pub address: u64,
    /// The name under which the program registered it; empty if that was not recorded.
    pub name: String,
}

/// Something that threads wait for or lock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Object {
    /// Its address in the program.
    pub address: u64,
    /// The kind of object.
    pub kind: ObjectKind,
    /// The place of its initialisation, or of its first use where it was initialised statically.
    pub site: Option<SiteId>,
    /// The symbol that contains it, where it is a variable with a name.
    pub symbol: Option<String>,
}

/// The kinds of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ObjectKind {
    /// A mutex.
    Mutex {
        /// The protocol that the program chose.
        protocol: MutexProtocol,
        /// Whether its owner may lock it again.
        recursive: bool,
    },
    /// A reader-writer lock.
    RwLock,
    /// A spinlock.
    Spinlock,
    /// A condition variable.
    Condition,
    /// A semaphore.
    Semaphore,
    /// A barrier.
    Barrier,
    /// A word that threads wait on by raw futex calls.
    Futex,
}

/// The protocol of a recorded mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MutexProtocol {
    /// `PTHREAD_PRIO_NONE`.
    None,
    /// `PTHREAD_PRIO_INHERIT`.
    Inherit,
    /// `PTHREAD_PRIO_PROTECT` with its ceiling.
    Protect(u8),
}

/// A place in the code.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Site {
    /// The address behind the call.
    pub address: u64,
    /// The function that contains it, and the file and line where debug information has them: `fetch (sensor.c:41)`.
    pub name: Option<String>,
}
