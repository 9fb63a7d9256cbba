//! Names of threads, objects and places, for texts and task sets.

use crate::recording::{MutexProtocol, ObjectId, ObjectKind, Recording, SiteId, ThreadIndex};

impl Recording {
    /// The name of a thread for texts.
    #[must_use]
    pub fn thread_name(&self, thread: ThreadIndex) -> String {
        match self.threads.get(thread as usize) {
            Some(thread) if !thread.name.is_empty() => thread.name.clone(),
            Some(thread) => format!("thread {}", thread.id),
            None => format!("thread #{thread}"),
        }
    }

    /// The name of an object for texts: its symbol, or its kind and the place of its initialisation.
    #[must_use]
    pub fn object_name(&self, object: ObjectId) -> String {
        let Some(object) = self.objects.get(object as usize) else { return format!("object #{object}") };
        if let Some(symbol) = &object.symbol {
            return symbol.clone();
        }
        let kind = kind_name(object.kind);
        match object.site {
            Some(site) => format!("{kind} of {}", self.site_name(site)),
            None => format!("{kind} {:#x}", object.address),
        }
    }

    /// The name of a place in the code for texts: its function, or its address.
    #[must_use]
    pub fn site_name(&self, site: SiteId) -> String {
        match self.sites.get(site as usize) {
            Some(site) => site.name.clone().unwrap_or_else(|| format!("{:#x}", site.address)),
            None => format!("place #{site}"),
        }
    }
}

/// The kind of an object, with the protocol of a mutex.
#[must_use]
pub(crate) fn kind_name(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Mutex { protocol: MutexProtocol::None, .. } => "mutex",
        ObjectKind::Mutex { protocol: MutexProtocol::Inherit, .. } => "inheriting mutex",
        ObjectKind::Mutex { protocol: MutexProtocol::Protect(_), .. } => "mutex with a ceiling",
        ObjectKind::RwLock => "reader-writer lock",
        ObjectKind::Spinlock => "spinlock",
        ObjectKind::Condition => "condition variable",
        ObjectKind::Semaphore => "semaphore",
        ObjectKind::Barrier => "barrier",
        ObjectKind::Futex => "futex",
    }
}

/// "once", or "3 times".
pub(crate) fn times(count: u64) -> String {
    if count == 1 { "once".into() } else { format!("{count} times") }
}

/// "1 job", or "3 jobs".
pub(crate) fn jobs(count: u64) -> String {
    if count == 1 { "1 job".into() } else { format!("{count} jobs") }
}
