//! Who wants to know what happened.

use lockwright_model::Record;

/// Receives every record of a simulation.
///
/// Records come in order of time, but for arrivals of tasks with release jitter: those come with the
/// release, and carry the time of the arrival.
pub trait Tracer {
    /// Whether records are wanted at all.
    const WANTS: bool = true;

    /// One thing that happened.
    fn record(&mut self, record: Record);
}

/// Nobody wants to know.
impl Tracer for () {
    const WANTS: bool = false;

    fn record(&mut self, _: Record) {}
}

impl Tracer for Vec<Record> {
    fn record(&mut self, record: Record) {
        self.push(record);
    }
}
