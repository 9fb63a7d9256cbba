//! Recordings of one thread, made by hand.

use crate::event::{Event, EventKind, Policy, Stop, Wait};
use crate::recording::{MutexProtocol, Object, ObjectId, ObjectKind, Recording, Site, SiteId, Thread};
use lockwright_model::Mode;

pub(crate) fn ms(ms: u64) -> u64 {
    ms * 1_000_000
}

/// A thread that executes on CPU 0 while nothing else does, at priority 10.
pub(crate) struct Script {
    now_ns: u64,
    pub(crate) recording: Recording,
}

impl Script {
    pub(crate) fn new() -> Self {
        let thread = Thread { id: 7, name: "alone".into(), lost: 0 };
        let recording = Recording { threads: vec![thread], complete: true, switches: true, ..Recording::default() };
        let mut script = Self { now_ns: 0, recording };
        script.event(EventKind::SwitchIn { cpu: 0 });
        script.event(EventKind::Scheduling(Policy::Fifo(10)));
        script.event(EventKind::Affinity(1));
        script
    }

    pub(crate) fn site(&mut self, name: &str) -> SiteId {
        let address = self.recording.sites.len() as u64;
        self.recording.sites.push(Site { address: address + 1, name: Some(name.into()) });
        SiteId::try_from(address).expect("few sites")
    }

    pub(crate) fn semaphore(&mut self, symbol: &str) -> ObjectId {
        self.object(ObjectKind::Semaphore, symbol)
    }

    pub(crate) fn mutex(&mut self, symbol: &str) -> ObjectId {
        self.object(ObjectKind::Mutex { protocol: MutexProtocol::Inherit, recursive: false }, symbol)
    }

    pub(crate) fn barrier(&mut self, symbol: &str) -> ObjectId {
        self.object(ObjectKind::Barrier, symbol)
    }

    fn object(&mut self, kind: ObjectKind, symbol: &str) -> ObjectId {
        self.recording.objects.push(Object { address: 0, kind, site: None, symbol: Some(symbol.into()) });
        ObjectId::try_from(self.recording.objects.len() - 1).expect("few objects")
    }

    pub(crate) fn event(&mut self, kind: EventKind) {
        self.recording.events.push(Event { at_ns: self.now_ns, thread: 0, kind });
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// The time from now to an instant.
    pub(crate) fn until(&self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.now_ns)
    }

    pub(crate) fn run(&mut self, ns: u64) {
        self.now_ns += ns;
    }

    pub(crate) fn lock(&mut self, object: ObjectId) {
        self.event(EventKind::Locked { object, mode: Mode::Write, site: 0, tried: false });
    }

    pub(crate) fn read(&mut self, object: ObjectId) {
        self.event(EventKind::Locked { object, mode: Mode::Read, site: 0, tried: false });
    }

    pub(crate) fn unlock(&mut self, object: ObjectId) {
        self.event(EventKind::Unlock { object });
    }

    pub(crate) fn wait(&mut self, wait: Wait, site: SiteId, ns: u64) {
        self.event(EventKind::Wait { wait, site });
        self.event(EventKind::SwitchOut(Stop::Suspended));
        self.now_ns += ns;
        self.event(EventKind::SwitchIn { cpu: 0 });
        self.event(EventKind::Resumed);
    }

    /// A wait that ends at once, with an event before its end.
    pub(crate) fn pass(&mut self, wait: Wait, site: SiteId, before: Option<EventKind>) {
        self.event(EventKind::Wait { wait, site });
        before.into_iter().for_each(|kind| self.event(kind));
        self.event(EventKind::Resumed);
    }

    pub(crate) fn recording(self) -> Recording {
        Recording { length_ns: self.now_ns, ..self.recording }
    }
}
