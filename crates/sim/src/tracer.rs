//! Receivers of the records of a simulation.

use lockwright_model::Record;

/// Receives every record of a simulation.
///
/// Records come in order of time, except for arrivals of tasks with release jitter. Such a record comes with the
/// release, and has the time of the arrival.
pub trait Tracer {
    /// Whether the simulation makes records for this tracer.
    const WANTS: bool = true;

    /// Receives one record.
    fn record(&mut self, record: Record);
}

/// A tracer that receives no records.
impl Tracer for () {
    const WANTS: bool = false;

    fn record(&mut self, _: Record) {}
}

impl Tracer for Vec<Record> {
    fn record(&mut self, record: Record) {
        self.push(record);
    }
}
