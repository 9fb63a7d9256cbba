//! Bounds through the public interface of the library. All tests are one program, which is linked once.

mod known;
mod scheduled;
mod uniprocessor;
