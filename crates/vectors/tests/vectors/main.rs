//! The published examples, and those in which another program is
//! wrong. The tests are one program, so that it is linked once.

mod errata;
mod examples;
