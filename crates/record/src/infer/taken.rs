//! The posts of semaphores and the expirations of timers, and the waits that took them.
//!
//! Both are counted: a wait that ends at once takes a post or an expiration that came while the job before it executed.
//! That job is released by the post or at the expiration, and not when the thread comes to wait.

use super::period::{Release, signed};
use crate::event::{Event, EventKind, Stop, Wait};
use crate::recording::{ObjectId, ObjectKind, Recording, ThreadIndex};
use std::collections::{BTreeMap, VecDeque};

/// The releases that are known from posts and expirations.
pub(super) struct Taken {
    /// For each thread, by the index of the wait in its history.
    of_thread: Vec<BTreeMap<usize, Release>>,
}

impl Taken {
    pub(super) fn of(recording: &Recording) -> Self {
        let threads = recording.threads.len();
        let mut pass = Pass {
            recording,
            threads: vec![Own::default(); threads],
            semaphores: BTreeMap::new(),
            timers: BTreeMap::new(),
            of_thread: vec![BTreeMap::new(); threads],
        };
        for event in &recording.events {
            pass.see(event);
        }
        Self { of_thread: pass.of_thread }
    }

    pub(super) fn get(&self, thread: ThreadIndex, wait: usize) -> Option<Release> {
        self.of_thread.get(thread as usize)?.get(&wait).copied()
    }
}

/// A wait that has not ended.
#[derive(Clone, Copy)]
struct Waiting {
    /// Its index in the history of the thread.
    entry: usize,
    begin_ns: u64,
    wait: Wait,
    has_suspended: bool,
    has_failed: bool,
    expired: Option<u64>,
}

/// One thread: how many events it has, and its wait.
#[derive(Clone, Copy, Default)]
struct Own {
    events: usize,
    waiting: Option<Waiting>,
}

struct Pass<'r> {
    recording: &'r Recording,
    threads: Vec<Own>,
    semaphores: BTreeMap<ObjectId, Semaphore>,
    /// By descriptor.
    timers: BTreeMap<i32, Timer>,
    of_thread: Vec<BTreeMap<usize, Release>>,
}

impl Pass<'_> {
    fn see(&mut self, event: &Event) {
        let &Event { at_ns, thread, kind } = event;
        let Some(own) = self.threads.get_mut(thread as usize) else { return };
        let entry = own.events;
        own.events += 1;
        match kind {
            EventKind::Wait { wait, .. } => {
                let (has_suspended, has_failed, expired) = (false, false, None);
                let waiting = Waiting { entry, begin_ns: at_ns, wait, has_suspended, has_failed, expired };
                let before = own.waiting.replace(waiting);
                if let Wait::Semaphore { object } = wait {
                    self.semaphores.entry(object).or_default().waiting += 1;
                }
                self.give_up(before);
            }
            EventKind::End => {
                let before = own.waiting.take();
                self.give_up(before);
            }
            EventKind::SwitchOut(Stop::Suspended) => {
                if let Some(waiting) = &mut own.waiting {
                    waiting.has_suspended = true;
                }
            }
            EventKind::Refused { object } => {
                if let Some(waiting) = &mut own.waiting {
                    waiting.has_failed |= waiting.wait == Wait::Semaphore { object };
                }
            }
            EventKind::Expired { count } => {
                if let Some(waiting) = &mut own.waiting {
                    waiting.expired = Some(count);
                }
            }
            EventKind::Resumed => {
                if let Some(waiting) = own.waiting.take()
                    && let Some(release) = self.taken_by(thread, &waiting, at_ns)
                {
                    self.of_thread[thread as usize].insert(waiting.entry, release);
                }
            }
            EventKind::Signal { object } if self.is_semaphore(object) => {
                self.semaphores.entry(object).or_default().post(at_ns, thread);
            }
            EventKind::Initialised { object, value } => {
                let posts = &mut self.semaphores.entry(object).or_default().posts;
                posts.clear();
                posts.extend((value > 0).then_some(Post { at_ns, by: None, count: value }));
            }
            EventKind::TimerSet { descriptor, first_ns, interval_ns } => {
                self.timers.insert(descriptor, Timer { first_ns, interval_ns, taken: 0 });
            }
            _ => {}
        }
    }

    /// A wait whose end is not in the recording, for example that of a thread that was cancelled, waits no more.
    fn give_up(&mut self, waiting: Option<Waiting>) {
        if let Some(Waiting { wait: Wait::Semaphore { object }, .. }) = waiting {
            let semaphore = self.semaphores.entry(object).or_default();
            semaphore.waiting = semaphore.waiting.saturating_sub(1);
        }
    }

    fn is_semaphore(&self, object: ObjectId) -> bool {
        self.recording.objects.get(object as usize).is_some_and(|object| object.kind == ObjectKind::Semaphore)
    }

    /// Returns what a wait of the thread took that ends now.
    fn taken_by(&mut self, thread: ThreadIndex, waiting: &Waiting, end_ns: u64) -> Option<Release> {
        match waiting.wait {
            Wait::Semaphore { object } => {
                let semaphore = self.semaphores.entry(object).or_default();
                semaphore.waiting = semaphore.waiting.saturating_sub(1);
                let post = if waiting.has_failed { None } else { semaphore.take(waiting, end_ns) }?;
                // A thread that posts what it awaits uses the semaphore as a lock.
                post.by.filter(|&by| by != thread)?;
                Some(Release { at_ns: Some(signed(post.at_ns)), count: 1, is_requested: false })
            }
            Wait::Timer { descriptor } => {
                let count = waiting.expired.filter(|&count| count > 0)?;
                self.timers.get_mut(&descriptor)?.take(count, waiting.begin_ns, end_ns)
            }
            _ => None,
        }
    }
}

/// Posts at one instant, by a thread; the initial value of a semaphore is posted by none.
#[derive(Clone, Copy)]
struct Post {
    at_ns: u64,
    by: Option<ThreadIndex>,
    count: u32,
}

/// The posts of a semaphore that no wait took, by time.
#[derive(Default)]
struct Semaphore {
    posts: VecDeque<Post>,
    /// How many threads wait.
    waiting: usize,
    /// When a wait ended last whose post was not there.
    missed_ns: Option<u64>,
}

/// The stamp of a post can be this much later than that of the end of the wait that took it, on another processor.
const LATE_MAX_NS: u64 = 2_000;

impl Semaphore {
    fn post(&mut self, at_ns: u64, by: ThreadIndex) {
        let missed_ns = self.missed_ns.take();
        if missed_ns.is_none_or(|missed_ns| at_ns.saturating_sub(missed_ns) > LATE_MAX_NS) {
            self.posts.push_back(Post { at_ns, by: Some(by), count: 1 });
        }
    }

    /// Returns the post that a wait took: the oldest one; if the thread suspended, the first one during the wait.
    fn take(&mut self, waiting: &Waiting, end_ns: u64) -> Option<Post> {
        let mut place = 0;
        if waiting.has_suspended {
            let during = self.posts.partition_point(|post| post.at_ns < waiting.begin_ns);
            // The semaphore was at 0 when the thread suspended. What is left over was taken unseen, unless another
            // thread still waits for it.
            if self.waiting == 0 {
                self.posts.drain(..during);
            } else if during < self.posts.len() {
                place = during;
            }
        }
        if self.posts.is_empty() {
            self.missed_ns = Some(end_ns);
        }
        let post = self.posts.get_mut(place)?;
        let taken = *post;
        post.count = post.count.saturating_sub(1);
        if post.count == 0 {
            self.posts.remove(place);
        }
        Some(taken)
    }
}

/// A timer as the program set it last.
struct Timer {
    /// Its first expiration, if that is known.
    first_ns: Option<i64>,
    /// The distance of its expirations; 0 if there is only one.
    interval_ns: u64,
    /// How many of them were read.
    taken: u64,
}

impl Timer {
    /// Returns the first of the `count` expirations that a read from `begin_ns` to `end_ns` returned.
    fn take(&mut self, count: u64, begin_ns: u64, end_ns: u64) -> Option<Release> {
        let first = i128::from(self.first_ns?);
        let at = |number: i128| first.saturating_add(number.saturating_mul(i128::from(self.interval_ns)));
        let (begin, end) = (i128::from(begin_ns), i128::from(end_ns));
        let (interval, half) = (i128::from(self.interval_ns), i128::from(self.interval_ns / 2));
        let mut last = i128::from(self.taken) + i128::from(count) - 1;
        // A read takes all expirations until then. Where the count disagrees by more than half an interval, some were
        // read unseen, or before the timer was set again.
        if interval == 0 {
            last = 0;
        } else if at(last) > end + half {
            last = (end - first).div_euclid(interval);
        } else if at(last) + interval + half <= begin {
            last = (begin - first).div_euclid(interval);
        }
        let last = last.max(0);
        self.taken = u64::try_from(last + 1).unwrap_or(u64::MAX);
        let at_ns = at((last + 1 - i128::from(count)).max(0));
        let at_ns = i64::try_from(at_ns).unwrap_or(i64::MAX);
        Some(Release { at_ns: Some(at_ns), count, is_requested: true })
    }
}
