//! Words that name a place and carry a tag: | tag 48 | index 16 |.

/// The number of places that a word can name, of which zero has a special meaning in some words.
pub(crate) const PLACES_MAX: usize = 1 << INDEX_BITS;
const INDEX_BITS: u32 = 16;

#[inline]
pub(crate) const fn tagged(tag: u64, index: usize) -> u64 {
    tag << INDEX_BITS | index as u64
}

#[inline]
pub(crate) const fn tag(word: u64) -> u64 {
    word >> INDEX_BITS
}

#[inline]
pub(crate) const fn index(word: u64) -> usize {
    word as usize & (PLACES_MAX - 1)
}

/// Returns the place that a field names: zero stands for `own`, so that an object of zeros is valid.
#[inline]
pub(crate) const fn place(field: usize, own: usize) -> usize {
    if field == 0 { own } else { field - 1 }
}

/// Returns the field that names a place.
#[inline]
pub(crate) const fn field(place: usize) -> usize {
    place + 1
}
