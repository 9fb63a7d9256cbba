//! The fence of loom, which a test can remove at one place of the source text.

use core::cell::{Cell, RefCell};
use core::panic::Location;
use core::sync::atomic::Ordering;
use std::collections::BTreeSet;

/// The place of a fence in the source text.
pub(crate) type Site = &'static Location<'static>;

// A model runs all its threads on one thread of the system.
std::thread_local! {
    static REMOVED: Cell<Option<Site>> = const { Cell::new(None) };
    static SITES: RefCell<BTreeSet<Site>> = const { RefCell::new(BTreeSet::new()) };
}

#[track_caller]
pub fn fence(order: Ordering) {
    let site = Location::caller();
    SITES.with_borrow_mut(|sites| sites.insert(site));
    if REMOVED.get() != Some(site) {
        loom::sync::atomic::fence(order);
    }
}

/// Returns the places of the fences that `work` executes.
pub(crate) fn sites(work: impl FnOnce()) -> BTreeSet<Site> {
    SITES.take();
    work();
    SITES.take()
}

/// Executes `work` without the fence of one place.
pub(crate) fn without<R>(site: Site, work: impl FnOnce() -> R) -> R {
    REMOVED.set(Some(site));
    let result = work();
    REMOVED.set(None);
    result
}
