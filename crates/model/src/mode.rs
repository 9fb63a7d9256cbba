//! Reading and writing.

/// The access of a section to its resource.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Mode {
    /// No other section on the resource is executed at the same time.
    #[default]
    Write,
    /// Other sections that read the resource may be executed at the same time, under a reader-writer protocol. Under
    /// every other protocol, a section that reads is also exclusive.
    Read,
}
