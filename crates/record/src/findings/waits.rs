//! Waits for locks: who held the lock, and who executed meanwhile.

use crate::event::{Event, EventKind, Stop};
use crate::history::rank;
use crate::recording::{Object, ObjectId, ObjectKind, Recording, SiteId, ThreadIndex};
use lockwright_model::Mode;
use std::collections::BTreeMap;

/// A wait is an inversion if threads of intermediate priority executed for at least this long. Shorter times are those
/// of the kernel between the request of a thread and the inheritance of its priority.
pub const INVERSION_MIN_NS: u64 = 10_000;

/// One wait for a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockWait {
    /// The waiting thread.
    pub waiter: ThreadIndex,
    /// The lock.
    pub object: ObjectId,
    /// The place of the request.
    pub site: SiteId,
    /// The time of the request.
    pub from_ns: u64,
    /// The time at which the waiter locked it, or gave up, or the recording ended.
    pub until_ns: u64,
    /// Whether the waiter locked it in the end.
    pub locked: bool,
    /// The thread that held it at the request, and the place where this thread locked it.
    pub holder: Option<(ThreadIndex, SiteId)>,
    /// The parts of the wait during which a thread of intermediate priority executed in place of a holder.
    pub inverted: Vec<Inverted>,
}

/// A part of a wait: a less urgent holder was ready and did not execute, and a thread less urgent than the waiter
/// executed on the holder's CPU.
///
/// A holder is ready if it was preempted, or if its wake-up was recorded. Where wake-ups are not recorded, a holder
/// that suspended counts as suspended until it executes again: an inversion can be missed, and sleep is never told as
/// one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inverted {
    /// The holder for which the waiter waits, directly or through other waiting holders.
    pub holder: ThreadIndex,
    /// The thread that executed instead.
    pub between: ThreadIndex,
    /// How long.
    pub ns: u64,
}

/// The priority inversions of one waiter behind one holder.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inversion {
    /// The waiting thread.
    pub waiter: ThreadIndex,
    /// The less urgent thread that held the lock, or a lock for which the owner of this one waited.
    pub holder: ThreadIndex,
    /// The threads that executed instead, in the worst case the first one longest.
    pub between: Vec<ThreadIndex>,
    /// The lock in the worst case.
    pub object: ObjectId,
    /// How often it happened.
    pub times: u64,
    /// The longest wait.
    pub worst_ns: u64,
    /// When the longest wait began.
    pub worst_at_ns: u64,
    /// The part of the longest wait that remains without the time of the threads between.
    pub inherited_ns: u64,
}

impl LockWait {
    /// The length of the wait.
    #[must_use]
    pub fn length_ns(&self) -> u64 {
        self.until_ns.saturating_sub(self.from_ns)
    }
}

/// One thread, as the walk over the events sees it.
#[derive(Clone, Default)]
struct Thread {
    rank: u8,
    is_executing: bool,
    /// Whether it executes, was preempted or woke up.
    is_ready: bool,
    /// Where it executes or executed last.
    cpu: Option<u32>,
    /// Its open wait, as an index into the waits.
    waits: Option<usize>,
}

struct Walk<'a> {
    objects: &'a [Object],
    now_ns: u64,
    threads: Vec<Thread>,
    /// By CPU: the thread of the program that executes there.
    cpus: BTreeMap<u32, ThreadIndex>,
    /// By object: the threads that hold it, with the places of their locks, and how often each locked it.
    holders: BTreeMap<ObjectId, Vec<(ThreadIndex, SiteId, u32)>>,
    waits: Vec<LockWait>,
    /// The waits that are open.
    open: Vec<usize>,
}

/// Returns all waits for locks, in the order of their requests.
pub(super) fn waits(recording: &Recording) -> Vec<LockWait> {
    let mut walk = Walk {
        objects: &recording.objects,
        now_ns: 0,
        threads: vec![Thread::default(); recording.threads.len()],
        cpus: BTreeMap::new(),
        holders: BTreeMap::new(),
        waits: Vec::new(),
        open: Vec::new(),
    };
    for event in recording.events.iter().filter(|event| (event.thread as usize) < recording.threads.len()) {
        walk.advance(event.at_ns);
        walk.event(event);
    }
    walk.advance(recording.length_ns);
    for &wait in &walk.open {
        walk.waits[wait].until_ns = walk.now_ns;
    }
    walk.waits
}

impl Walk<'_> {
    /// Adds the time up to this to the open waits.
    fn advance(&mut self, at_ns: u64) {
        let passed = at_ns.saturating_sub(self.now_ns);
        self.now_ns = self.now_ns.max(at_ns);
        if passed == 0 {
            return;
        }
        for index in 0..self.open.len() {
            let wait = self.open[index];
            let Some((holder, between)) = self.inverted(wait) else { continue };
            let parts = &mut self.waits[wait].inverted;
            match parts.iter_mut().find(|part| (part.holder, part.between) == (holder, between)) {
                Some(part) => part.ns += passed,
                None => parts.push(Inverted { holder, between, ns: passed }),
            }
        }
    }

    /// The holder behind a wait and the thread that executes in its place, if the wait is inverted now.
    fn inverted(&self, wait: usize) -> Option<(ThreadIndex, ThreadIndex)> {
        let waiter = self.waits[wait].waiter;
        let mut holder = self.holder(self.waits[wait].object, waiter)?.0;
        // BOUND: one step for each thread; a deadlock is a longer chain.
        for _ in 0..self.threads.len() {
            let Some(next) = self.threads[holder as usize].waits else { break };
            holder = self.holder(self.waits[next].object, holder)?.0;
        }
        let thread = &self.threads[holder as usize];
        if !thread.is_ready || thread.is_executing || thread.waits.is_some() {
            return None;
        }
        let &between = self.cpus.get(&thread.cpu?)?;
        let of = |thread: ThreadIndex| self.threads[thread as usize].rank;
        let is_between = (of(holder)..of(waiter)).contains(&of(between)) && between != holder;
        is_between.then_some((holder, between))
    }

    /// The least urgent thread that holds the object, except this one.
    fn holder(&self, object: ObjectId, except: ThreadIndex) -> Option<(ThreadIndex, SiteId)> {
        let others = self.holders.get(&object)?.iter().filter(|(thread, ..)| *thread != except);
        let least = others.min_by_key(|(thread, ..)| self.threads[*thread as usize].rank);
        least.map(|&(thread, site, _)| (thread, site))
    }

    fn event(&mut self, event: &Event) {
        let (index, thread) = (event.thread, &mut self.threads[event.thread as usize]);
        match event.kind {
            EventKind::Scheduling(policy) => thread.rank = rank(policy),
            EventKind::SwitchIn { cpu } => {
                (thread.is_executing, thread.is_ready, thread.cpu) = (true, true, Some(cpu));
                self.cpus.retain(|_, occupant| *occupant != index);
                self.cpus.insert(cpu, index);
            }
            EventKind::SwitchOut(_) | EventKind::End => {
                thread.is_executing = false;
                thread.is_ready = event.kind == EventKind::SwitchOut(Stop::Preempted);
                self.cpus.retain(|_, occupant| *occupant != index);
                if event.kind == EventKind::End {
                    self.end_wait(index, false);
                }
            }
            EventKind::Wakeup { .. } => thread.is_ready = true,
            EventKind::Request { object, site, .. } => {
                let holder = self.holder(object, index);
                self.end_wait(index, false);
                self.threads[index as usize].waits = Some(self.waits.len());
                self.open.push(self.waits.len());
                self.waits.push(LockWait {
                    waiter: index,
                    object,
                    site,
                    from_ns: event.at_ns,
                    until_ns: event.at_ns,
                    locked: false,
                    holder,
                    inverted: Vec::new(),
                });
            }
            EventKind::Locked { object, mode, site, .. } => {
                self.end_wait(index, true);
                let holders = self.holders.entry(object).or_default();
                if mode == Mode::Write {
                    // Nobody else can hold it now: the unlock of an earlier holder was not recorded.
                    let kind = self.objects.get(object as usize).map(|object| object.kind);
                    let is_recursive = matches!(kind, Some(ObjectKind::Mutex { recursive: true, .. }));
                    holders.retain(|(holder, ..)| is_recursive && *holder == index);
                }
                match holders.iter_mut().find(|(holder, ..)| *holder == index) {
                    Some((.., count)) => *count += 1,
                    None => holders.push((index, site, 1)),
                }
            }
            EventKind::Refused { .. } => self.end_wait(index, false),
            EventKind::Unlock { object } => {
                let holders = self.holders.entry(object).or_default();
                if let Some((.., count)) = holders.iter_mut().find(|(holder, ..)| *holder == index) {
                    *count -= 1;
                }
                holders.retain(|(.., count)| *count > 0);
            }
            _ => {}
        }
    }

    fn end_wait(&mut self, thread: ThreadIndex, locked: bool) {
        let Some(wait) = self.threads[thread as usize].waits.take() else { return };
        self.open.retain(|&open| open != wait);
        (self.waits[wait].until_ns, self.waits[wait].locked) = (self.now_ns, locked);
    }
}

/// Returns the inversions among waits that are sorted by length, the longest first.
pub(super) fn inversions(waits: &[LockWait]) -> Vec<Inversion> {
    let mut found: Vec<Inversion> = Vec::new();
    for wait in waits {
        let inverted: u64 = wait.inverted.iter().map(|part| part.ns).sum();
        let Some(longest) = wait.inverted.iter().max_by_key(|part| part.ns).filter(|_| inverted >= INVERSION_MIN_NS)
        else {
            continue;
        };
        let is_same = |known: &&mut Inversion| (known.waiter, known.holder) == (wait.waiter, longest.holder);
        if let Some(known) = found.iter_mut().find(is_same) {
            known.times += 1;
            continue;
        }
        let mut parts = wait.inverted.clone();
        parts.sort_by_key(|part| std::cmp::Reverse(part.ns));
        let mut between: Vec<ThreadIndex> = Vec::new();
        for part in parts {
            if !between.contains(&part.between) {
                between.push(part.between);
            }
        }
        found.push(Inversion {
            waiter: wait.waiter,
            holder: longest.holder,
            between,
            object: wait.object,
            times: 1,
            worst_ns: wait.length_ns(),
            worst_at_ns: wait.from_ns,
            inherited_ns: wait.length_ns().saturating_sub(inverted),
        });
    }
    found
}
