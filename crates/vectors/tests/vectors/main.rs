//! The published examples, and those of other programs that are wrong. One program, so that it is linked once.

mod errata;
mod examples;
