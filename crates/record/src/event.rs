use lockwright_model::Mode;

/// An index into [`Recording::threads`](crate::Recording::threads).
pub type ThreadIndex = u32;
/// An index into [`Recording::objects`](crate::Recording::objects).
pub type ObjectId = u32;
/// An index into [`Recording::sites`](crate::Recording::sites).
pub type SiteId = u32;
/// An index into [`Recording::callbacks`](crate::Recording::callbacks).
pub type CallbackId = u32;

/// One thing that a thread of the recorded program did, or that the kernel did to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time since the start of the recording, in nanoseconds of the monotonic clock.
    pub at_ns: u64,
    /// The thread, as an index into [`Recording::threads`](crate::Recording::threads).
    pub thread: ThreadIndex,
    /// The event itself.
    pub kind: EventKind,
}

/// The kinds of events.
///
/// A thread is between `Request` and `Locked` (or `Refused`) while it waits for an object, and an object belongs to it
/// between `Locked` and `Unlock`. `Request` is recorded only where the thread had to wait: an uncontended lock is a
/// `Locked` alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// The thread begins.
    Start,
    /// The thread ends.
    End,
    /// The thread has another policy or priority from now on.
    Scheduling(Policy),
    /// The thread may execute on these CPUs from now on: bit k stands for CPU k, for the first 64 CPUs.
    Affinity(u64),
    /// The thread requested the object at this place of the code, and has to wait.
    Request {
        /// The object.
        object: ObjectId,
        /// How the thread locks it.
        mode: Mode,
        /// The place of the call.
        site: SiteId,
    },
    /// The thread locked the object.
    Locked {
        /// The object.
        object: ObjectId,
        /// How the thread locked it.
        mode: Mode,
        /// The place of the call.
        site: SiteId,
        /// Whether the call was an attempt (`pthread_mutex_trylock`), which would not have waited.
        tried: bool,
    },
    /// The wait ended without the object: a time-out, a deadlock found, an error. Before `Resumed`: the wait for a
    /// semaphore ended without a post.
    Refused {
        /// The object.
        object: ObjectId,
    },
    /// The thread is about to unlock the object.
    Unlock {
        /// The object.
        object: ObjectId,
    },
    /// The thread is about to wait for something that is not a lock: its next activation, or an event of another
    /// thread. Objects that it holds stay locked, except the mutex of a condition variable, which has an `Unlock`
    /// before this event and a `Locked` after `Resumed`.
    Wait {
        /// The cause of the wait.
        wait: Wait,
        /// The place of the call.
        site: SiteId,
    },
    /// The wait ended.
    Resumed,
    /// Before `Resumed`: the timer expired this many times since the read before. A wait for a timer without this event
    /// failed.
    Expired {
        /// The number of expirations, at least 1.
        count: u64,
    },
    /// The thread sets the timer.
    TimerSet {
        /// The file descriptor of the timer.
        descriptor: i32,
        /// Its first expiration, in nanoseconds since the start of the recording. `None` if the timer has no more
        /// expirations, or expires by a clock other than the monotonic and the real-time one.
        first_ns: Option<i64>,
        /// The distance of its expirations in nanoseconds; 0 if there is only one.
        interval_ns: u64,
    },
    /// The thread initialises the semaphore.
    Initialised {
        /// The semaphore.
        object: ObjectId,
        /// The initial value.
        value: u32,
    },
    /// The thread made a wait of another thread end, or can have: a signal to a condition variable, a post to a
    /// semaphore.
    Signal {
        /// The condition variable or the semaphore.
        object: ObjectId,
    },
    /// An executor of ROS 2 calls a callback.
    CallbackStart {
        /// The callback.
        callback: CallbackId,
    },
    /// The callback returns.
    CallbackEnd {
        /// The callback.
        callback: CallbackId,
    },
    /// The kernel dispatches the thread on this CPU.
    SwitchIn {
        /// The number of the CPU.
        cpu: u32,
    },
    /// The kernel takes the CPU from the thread.
    SwitchOut(Stop),
    /// The kernel makes the thread ready; only recorded with the rights to trace the scheduler.
    Wakeup {
        /// The thread that made it ready, if it belongs to the program.
        by: Option<ThreadIndex>,
    },
    /// The kernel executes the thread at this SCHED_FIFO priority: inheritance began or ended (0: its own priority).
    Boost {
        /// The priority, 1 to 99, or 0 for the thread's own.
        priority: u8,
    },
}

/// Why a thread left its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It was preempted, and stays ready.
    Preempted,
    /// It suspends.
    Suspended,
}

/// The scheduling of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// `SCHED_OTHER`, `SCHED_BATCH` or `SCHED_IDLE`, with the nice value.
    Fair {
        /// The nice value, -20 to 19.
        nice: i8,
    },
    /// `SCHED_FIFO` with its priority, 1 to 99.
    Fifo(u8),
    /// `SCHED_RR` with its priority, 1 to 99.
    RoundRobin(u8),
    /// `SCHED_DEADLINE`, in nanoseconds.
    Deadline {
        /// The CPU time of each period.
        runtime_ns: u64,
        /// The relative deadline.
        deadline_ns: u64,
        /// The period.
        period_ns: u64,
    },
}

/// The cause of a wait that is not for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wait {
    /// Until an instant, in nanoseconds since the start of the recording, as the program asked: `clock_nanosleep` with
    /// `TIMER_ABSTIME`. The instant is the release of the next job.
    SleepUntil {
        /// The instant; negative if it lies before the start of the recording.
        at_ns: i64,
        /// The clock that the program named.
        clock: Clock,
    },
    /// For a duration.
    SleepFor {
        /// The duration in nanoseconds.
        ns: u64,
    },
    /// For an expiration of a timer (`read` of a timerfd).
    Timer {
        /// The file descriptor of the timer.
        descriptor: i32,
    },
    /// For a signal to a condition variable.
    Condition {
        /// The condition variable.
        object: ObjectId,
    },
    /// For a post to a semaphore.
    Semaphore {
        /// The semaphore.
        object: ObjectId,
    },
    /// For the other threads of a barrier.
    Barrier {
        /// The barrier.
        object: ObjectId,
    },
    /// For the end of a thread.
    Join,
    /// For data: `read`, `recv`, `accept`, `sigwait`, `mq_receive`.
    Input {
        /// The file descriptor, or -1 where the call names none.
        descriptor: i32,
    },
    /// For a descriptor to be ready: `poll`, `epoll_wait`, `select`.
    Poll {
        /// The file descriptor, or -1 where the call names several.
        descriptor: i32,
    },
    /// `sched_yield`: under `SCHED_DEADLINE`, until the next period.
    Yield,
    /// For the next call by an executor of ROS 2: so do the threads that stand for callbacks.
    Call,
    /// A contended wait by a raw futex call: a lock of Rust's standard library or parking_lot, for example.
    Futex {
        /// The word.
        object: ObjectId,
    },
}

/// The clock of an absolute sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// `CLOCK_MONOTONIC`.
    Monotonic,
    /// `CLOCK_REALTIME`.
    Realtime,
    /// Another clock.
    Other(i32),
}
