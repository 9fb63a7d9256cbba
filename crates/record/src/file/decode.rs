//! From the contents of a file to a recording.

use super::clock::{Clock, MONOTONIC, REALTIME};
use super::format::{DETAIL_SHIFT, NAME_PART, NAME_PARTS_MAX, TRIED, class, event, mutex, switch, words};
use super::locks;
use super::read::{Contents, Problem};
use super::threads::Lives;
use crate::event::{self as nouns, Event, EventKind, Policy, Stop, Wait};
use crate::recording::{
    Callback, CallbackId, MutexProtocol, Object, ObjectId, ObjectKind, Recording, Site, SiteId, Thread,
};
use lockwright_model::Mode;
use std::collections::HashMap;

/// An event of the file: when, of which thread, and where its words are.
#[derive(Clone, Copy)]
struct Entry {
    at_ns: u64,
    thread: u32,
    place: Place,
}

#[derive(Clone, Copy)]
enum Place {
    /// A word of a chunk.
    Event {
        chunk: u32,
        word: u32,
    },
    Switch(u32),
}

pub(super) fn recording(contents: &Contents) -> Result<Recording, Problem> {
    let clock = Clock::new(contents)?;
    let mut lives = Lives::new(contents);
    let entries = entries(contents, &clock, &mut lives);

    let mut builder = Builder::new(&clock);
    builder.recording.events.reserve(entries.len());
    for entry in &entries {
        let (thread, kind) = match entry.place {
            Place::Switch(index) => {
                let kind = match switched(contents, index) {
                    Switched::Kind(kind) => kind,
                    Switched::Wakeup(0) => EventKind::Wakeup { by: None },
                    Switched::Wakeup(by) => {
                        let by = lives.of_id(by, entry.at_ns);
                        EventKind::Wakeup { by: Some(builder.thread(by)) }
                    }
                };
                (entry.thread as usize, kind)
            }
            Place::Event { chunk, word } => {
                let words = &contents.events[chunk as usize].words[word as usize..];
                let Some(kind) = builder.kind(entry.at_ns, words) else { continue };
                let is_of_other = matches!(kind, EventKind::Scheduling(_) | EventKind::Affinity(_));
                let number =
                    if is_of_other { lives.of_id(words[1] as u32, entry.at_ns) } else { entry.thread as usize };
                (number, kind)
            }
        };
        let thread = builder.thread(thread);
        builder.recording.events.push(Event { at_ns: entry.at_ns, thread, kind });
    }

    let mut recording = builder.finish(&lives);
    locks::settle(&mut recording.events);
    recording.program.clone_from(&contents.program);
    let last_ns = recording.events.last().map_or(0, |event| event.at_ns);
    recording.length_ns = contents.end_ns.map_or(last_ns, |end_ns| clock.since_start(end_ns).max(last_ns));
    recording.lost =
        recording.threads.iter().fold(contents.switches_lost, |sum, thread| sum.saturating_add(thread.lost));
    recording.unrecorded_threads = contents.unrecorded_threads;
    recording.complete = contents.end_ns.is_some();
    recording.switches = contents.switches.is_some();
    Ok(recording)
}

/// All events and switches by time.
fn entries(contents: &Contents, clock: &Clock, lives: &mut Lives) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (chunk, events) in contents.events.iter().enumerate() {
        let thread = lives.of_number(events.thread);
        let mut next = 0;
        // BOUND: `read` has found a kind in each event.
        while let Some(first) = events.words.get(next) {
            let at_ns = clock.at_ns(first >> 8);
            let life = &mut lives.all[thread];
            life.first_ns = life.first_ns.min(at_ns);
            match (first & 0xFF) as u8 {
                event::START => life.id = events.words[next + 1] as u32,
                event::END => life.end_ns = Some(at_ns),
                _ => {}
            }
            let place = Place::Event { chunk: chunk as u32, word: next as u32 };
            entries.push(Entry { at_ns, thread: thread as u32, place });
            next += words((first & 0xFF) as u8).unwrap_or(1);
        }
    }
    lives.index();
    for (index, [monotonic_ns, rest]) in contents.switches.iter().flatten().enumerate() {
        let at_ns = clock.since_start(*monotonic_ns);
        let thread = lives.of_id(*rest as u32, at_ns) as u32;
        entries.push(Entry { at_ns, thread, place: Place::Switch(index as u32) });
    }
    entries.sort_by_key(|entry| entry.at_ns);
    entries
}

/// What the kernel did to a thread.
enum Switched {
    Kind(EventKind),
    /// The thread of this number in the kernel woke it.
    Wakeup(u32),
}

fn switched(contents: &Contents, index: u32) -> Switched {
    let rest = contents.switches.as_ref().map_or(0, |all| all[index as usize][1]);
    let value = ((rest >> switch::CPU_SHIFT) & 0xFF_FFFF) as u32;
    Switched::Kind(match (rest >> switch::KIND_SHIFT) as u8 {
        switch::IN => EventKind::SwitchIn { cpu: value },
        switch::PREEMPTED => EventKind::SwitchOut(Stop::Preempted),
        switch::WAKEUP => return Switched::Wakeup(value),
        switch::BOOST => EventKind::Boost { priority: value.min(99) as u8 },
        _ => EventKind::SwitchOut(Stop::Suspended),
    })
}

struct Builder<'a> {
    clock: &'a Clock,
    recording: Recording,
    /// The index in the recording of each thread that has events, and the reverse.
    threads: HashMap<usize, u32>,
    order: Vec<usize>,
    sites: HashMap<u64, SiteId>,
    /// The object that is at an address now, and its class.
    objects: HashMap<u64, (ObjectId, u8)>,
    callbacks: HashMap<u64, CallbackId>,
}

impl<'a> Builder<'a> {
    fn new(clock: &'a Clock) -> Self {
        Self {
            clock,
            recording: Recording::default(),
            threads: HashMap::new(),
            order: Vec::new(),
            sites: HashMap::new(),
            objects: HashMap::new(),
            callbacks: HashMap::new(),
        }
    }

    fn thread(&mut self, life: usize) -> u32 {
        *self.threads.entry(life).or_insert_with(|| {
            self.order.push(life);
            (self.order.len() - 1) as u32
        })
    }

    fn callback(&mut self, address: u64) -> CallbackId {
        let callbacks = &mut self.recording.callbacks;
        *self.callbacks.entry(address).or_insert_with(|| {
            callbacks.push(Callback { address, name: String::new() });
            (callbacks.len() - 1) as u32
        })
    }

    /// Appends a part of the name of a callback. The first part begins a name: memory may serve another callback later.
    fn name(&mut self, place: u64, words: &[u64]) {
        let (address, part) = (place & ((1 << DETAIL_SHIFT) - 1), (place >> DETAIL_SHIFT) as usize);
        if part == 0 {
            self.callbacks.remove(&address);
        }
        let callback = self.callback(address);
        let name = &mut self.recording.callbacks[callback as usize].name;
        if name.len() < NAME_PART * NAME_PARTS_MAX {
            let bytes: Vec<u8> =
                words.iter().flat_map(|word| word.to_le_bytes()).take_while(|&byte| byte != 0).collect();
            name.push_str(&String::from_utf8_lossy(&bytes));
        }
    }

    fn site(&mut self, place: u64) -> SiteId {
        let address = place & ((1 << DETAIL_SHIFT) - 1);
        let sites = &mut self.recording.sites;
        *self.sites.entry(address).or_insert_with(|| {
            sites.push(Site { address, name: None });
            (sites.len() - 1) as SiteId
        })
    }

    /// Returns the object that a place with its detail describes.
    fn object(&mut self, address: u64, place: u64) -> ObjectId {
        let site = self.site(place);
        let [class, mutex_kind] = ((place >> DETAIL_SHIFT) as u16).to_le_bytes();
        if let Some(&(known, known_class)) = self.objects.get(&address)
            && known_class == class
        {
            let known_kind = &mut self.recording.objects[known as usize].kind;
            // A policy may have given the mutex another protocol at its first use.
            if let ObjectKind::Mutex { protocol, .. } = *known_kind {
                let ceiling = if let MutexProtocol::Protect(ceiling) = protocol { ceiling } else { 0 };
                *known_kind = kind_of(class, mutex_kind, ceiling);
            }
            return known;
        }
        self.new_object(address, class, kind_of(class, mutex_kind, 0), site)
    }

    fn new_object(&mut self, address: u64, class: u8, kind: ObjectKind, site: SiteId) -> ObjectId {
        let id = self.recording.objects.len() as ObjectId;
        self.recording.objects.push(Object { address, kind, site: Some(site), symbol: None });
        self.objects.insert(address, (id, class));
        id
    }

    /// Memory of an object may serve another one later. Objects of one place of initialisation that follow each other
    /// at an address are one object.
    fn initialised(&mut self, address: u64, place: u64, ceiling: u64) -> ObjectId {
        let site = self.site(place);
        let [class, mutex_kind] = ((place >> DETAIL_SHIFT) as u16).to_le_bytes();
        let kind = kind_of(class, mutex_kind, ceiling as u8);
        let known = self.objects.get(&address).filter(|known| known.1 == class).map(|known| known.0);
        match known.map(|id| (id, &mut self.recording.objects[id as usize])) {
            Some((id, known)) if known.site == Some(site) => {
                known.kind = kind;
                id
            }
            _ => self.new_object(address, class, kind, site),
        }
    }

    /// Returns the object at an address whose class the event does not tell.
    fn known_object(&mut self, address: u64) -> ObjectId {
        match self.objects.get(&address) {
            Some(&(known, _)) => known,
            None => {
                let place = u64::from(class::MUTEX) << DETAIL_SHIFT;
                self.object(address, place)
            }
        }
    }

    /// Whether the word at the address belongs to an object of another class.
    fn is_other(&self, address: u64) -> bool {
        /// The size of the largest object, a reader-writer lock.
        const BYTES_MAX: u64 = 56;
        let mut starts = (0..BYTES_MAX).step_by(size_of::<u32>()).filter_map(|offset| address.checked_sub(offset));
        starts.any(|start| self.objects.get(&start).is_some_and(|&(_, known)| known != class::FUTEX))
    }

    /// Returns `None` for what is no event of a recording.
    fn kind(&mut self, at_ns: u64, words: &[u64]) -> Option<EventKind> {
        let kind = (words[0] & 0xFF) as u8;
        let word = |index: usize| words.get(index).copied().unwrap_or_default();
        Some(match kind {
            event::START => EventKind::Start,
            event::END => EventKind::End,
            event::SCHEDULING => EventKind::Scheduling(policy(word(1))),
            event::DEADLINE => EventKind::Scheduling(Policy::Deadline {
                runtime_ns: word(2),
                deadline_ns: word(3),
                period_ns: word(4),
            }),
            event::AFFINITY => EventKind::Affinity(word(2)),
            event::REQUEST_WRITE | event::REQUEST_READ => {
                let (object, site) = (self.object(word(1), word(2)), self.site(word(2)));
                EventKind::Request { object, mode: mode(kind), site }
            }
            event::LOCKED_WRITE | event::LOCKED_READ => {
                let (object, site) = (self.object(word(1), word(2)), self.site(word(2)));
                EventKind::Locked { object, mode: mode(kind), site, tried: is_tried(word(2)) }
            }
            event::REFUSED => EventKind::Refused { object: self.known_object(word(1)) },
            event::UNLOCK => EventKind::Unlock { object: self.known_object(word(1)) },
            // Another library's lock, which wakes its waiters.
            event::SIGNAL if is_futex(word(2)) && self.is_other(word(1)) => return None,
            event::SIGNAL => EventKind::Signal { object: self.object(word(1), word(2)) },
            event::INIT => {
                let object = self.initialised(word(1), word(2), word(3));
                let is_semaphore = self.recording.objects[object as usize].kind == ObjectKind::Semaphore;
                return is_semaphore.then_some(EventKind::Initialised { object, value: word(3) as u32 });
            }
            event::CEILING => {
                let object = self.known_object(word(1));
                if let ObjectKind::Mutex { protocol, .. } = &mut self.recording.objects[object as usize].kind {
                    *protocol = MutexProtocol::Protect(word(2) as u8);
                }
                return None;
            }
            event::RESUMED => EventKind::Resumed,
            event::EXPIRED => EventKind::Expired { count: word(1) },
            event::TIMER_SET => {
                let clock = (word(1) >> 32) as i32;
                let is_known = word(2) > 0 && matches!(clock, MONOTONIC | REALTIME);
                EventKind::TimerSet {
                    descriptor: word(1) as i32,
                    first_ns: is_known.then(|| self.clock.instant(clock, word(2), at_ns)),
                    interval_ns: word(3),
                }
            }
            event::CALLBACK_START => EventKind::CallbackStart { callback: self.callback(word(1)) },
            event::CALLBACK_END => EventKind::CallbackEnd { callback: self.callback(word(1)) },
            event::CALLBACK_NAME => {
                self.name(word(1), words.get(2..2 + NAME_PART / size_of::<u64>()).unwrap_or_default());
                return None;
            }
            _ => EventKind::Wait { wait: self.wait(kind, at_ns, word(1), word(2)), site: self.site(word(2)) },
        })
    }

    fn wait(&mut self, kind: u8, at_ns: u64, value: u64, place: u64) -> Wait {
        match kind {
            event::SLEEP_UNTIL => {
                let number = i32::from((place >> DETAIL_SHIFT) as u16 as i16);
                let clock = match number {
                    MONOTONIC => nouns::Clock::Monotonic,
                    REALTIME => nouns::Clock::Realtime,
                    other => nouns::Clock::Other(other),
                };
                Wait::SleepUntil { at_ns: self.clock.instant(number, value, at_ns), clock }
            }
            event::SLEEP_FOR => Wait::SleepFor { ns: value },
            event::TIMER => Wait::Timer { descriptor: value as i32 },
            event::CONDITION => Wait::Condition { object: self.object(value, place) },
            event::SEMAPHORE => Wait::Semaphore { object: self.object(value, place) },
            event::BARRIER => Wait::Barrier { object: self.object(value, place) },
            event::JOIN => Wait::Join,
            event::YIELD => Wait::Yield,
            event::FUTEX => Wait::Futex { object: self.object(value, place) },
            event::POLL => Wait::Poll { descriptor: value as i32 },
            _ => Wait::Input { descriptor: value as i32 },
        }
    }

    fn finish(mut self, lives: &Lives) -> Recording {
        self.recording.threads = self
            .order
            .iter()
            .map(|&index| &lives.all[index])
            .map(|life| Thread { id: life.id, name: life.name.clone(), lost: life.lost })
            .collect();
        self.recording
    }
}

fn is_tried(place: u64) -> bool {
    place & TRIED != 0
}

fn is_futex(place: u64) -> bool {
    (place >> DETAIL_SHIFT) as u8 == class::FUTEX
}

fn mode(kind: u8) -> Mode {
    if matches!(kind, event::REQUEST_READ | event::LOCKED_READ) { Mode::Read } else { Mode::Write }
}

/// The policies' numbers are those of the kernel.
fn policy(word: u64) -> Policy {
    let value = (word >> 40) as u8;
    match (word >> 32) as u8 {
        1 => Policy::Fifo(value),
        2 => Policy::RoundRobin(value),
        _ => Policy::Fair { nice: value as i8 },
    }
}

fn kind_of(number: u8, mutex_kind: u8, ceiling: u8) -> ObjectKind {
    match number {
        class::MUTEX => {
            let protocol = match mutex_kind {
                kind if kind & mutex::INHERIT != 0 => MutexProtocol::Inherit,
                kind if kind & mutex::PROTECT != 0 => MutexProtocol::Protect(ceiling),
                _ => MutexProtocol::None,
            };
            ObjectKind::Mutex { protocol, recursive: mutex_kind & mutex::TYPE == mutex::RECURSIVE }
        }
        class::RWLOCK => ObjectKind::RwLock,
        class::SPINLOCK => ObjectKind::Spinlock,
        class::CONDITION => ObjectKind::Condition,
        class::SEMAPHORE => ObjectKind::Semaphore,
        class::BARRIER => ObjectKind::Barrier,
        _ => ObjectKind::Futex,
    }
}
