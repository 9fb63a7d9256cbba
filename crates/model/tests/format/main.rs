//! The readers of files and the systems they build. The tests are one program, so that it is linked once.

mod any_bytes;
mod check;
mod examples;
mod groups;
mod home;
mod imports;
mod long_files;
mod messages;
mod modes;
