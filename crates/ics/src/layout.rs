//! The bits of heads, locators and writes.
//!
//! ```text
//!   head       | version, 48 bits | writer and page + 1, 16 bits |
//!   locator    | version, 48 bits | place of the value, 16 bits  |
//!   write      | word, 16 bits    | place of the value, 16 bits  |
//! ```
//! Locators and writes hold a place combined with the home of the word, see `Ics::home`.

#[cfg(test)]
use crate::mutation::Mutation;

/// The width of a place, and of writer and page together.
const LOW_BITS: u32 = 16;
const LOW: u64 = (1 << LOW_BITS) - 1;
/// The maximum number of places of an object: those of its words and its spares.
pub const PLACES_MAX: usize = 1 << LOW_BITS;
/// The maximum number of writers of an object.
pub const WRITERS_MAX: usize = (1 << (LOW_BITS - 1)) - 1;

/// Returns the writer and the page that a head names, if it names one.
#[inline]
pub(crate) fn posted(head: u64) -> Option<(usize, usize)> {
    let named = (head & LOW).checked_sub(1)? as usize;
    Some((named / 2, named % 2))
}

/// Whether a head names this writer.
#[inline]
pub(crate) fn names(head: u64, writer: usize) -> bool {
    posted(head).is_some_and(|(named, _)| named == writer)
}

/// Returns the page that a pending head names. Unlike [`posted`], it takes for granted that the head names one.
#[inline]
pub(crate) const fn pending_page(pending: u64) -> usize {
    ((pending - 1) % 2) as usize
}

/// Returns the head that a writer posts after `seen`.
#[inline]
pub(crate) const fn next(seen: u64, writer: usize, page: usize) -> u64 {
    (seen & !LOW).wrapping_add(1 << LOW_BITS) | writer.wrapping_mul(2).wrapping_add(page).wrapping_add(1) as u64
}

/// Returns the page that a writer may write: the one that it did not post last.
#[inline]
pub(crate) fn free_page(last: u64) -> usize {
    match posted(last) {
        #[cfg(test)]
        Some((_, page)) if Mutation::OnePage.is_active() => page,
        Some((_, page)) => 1 - page,
        None => 0,
    }
}

/// Returns the locator with the version of the head `seen`, and the place of a write.
#[inline]
pub(crate) const fn locator(seen: u64, write: u32) -> u64 {
    seen & !LOW | place_of(write) as u64
}

/// Returns the place of a locator, combined with the home of the word.
#[inline]
pub(crate) const fn locator_place(locator: u64) -> usize {
    (locator & LOW) as usize
}

/// Packs a write.
#[inline]
pub(crate) const fn pack(word: usize, place: usize) -> u32 {
    (word as u32) << LOW_BITS | place as u32
}

/// Returns the word of a write.
#[inline]
pub(crate) const fn word_of(write: u32) -> usize {
    (write >> LOW_BITS) as usize
}

/// Returns the place of a write, combined with the home of the word.
#[inline]
pub(crate) const fn place_of(write: u32) -> usize {
    (write & LOW as u32) as usize
}
