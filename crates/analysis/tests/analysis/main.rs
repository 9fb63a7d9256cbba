//! Bounds by the library's interface. One program, so that it is linked once.

mod known;
mod scheduled;
mod uniprocessor;
