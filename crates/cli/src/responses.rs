//! Histograms of response times.

use hdrhistogram::Histogram;
use lockwright_model::{Duration, Event, Instant, Observation, Record};
use lockwright_report::strip::Bin;
use std::collections::VecDeque;

/// Number of intervals of a drawn histogram.
const BINS: u64 = 48;
/// Decimal digits of a response time that a histogram keeps.
const DIGITS: u8 = 3;
/// Least number of jobs with a 99.9th percentile: of fewer jobs, it would be their maximum.
pub const P999_JOBS: u64 = 1_000;

/// The response time that 99.9 % of the jobs did not exceed; `None` of fewer than [`P999_JOBS`].
pub fn p999(observation: &Observation, responses: &Histogram<u64>) -> Option<Duration> {
    let longest = observation.response.filter(|_| observation.jobs >= P999_JOBS)?;
    // The histogram rounds up to its resolution; the maximum is exact.
    Some(Duration::from_ns(responses.value_at_quantile(0.999)).min(longest))
}

/// The histogram of these response times in nanoseconds.
pub fn histogram(responses: impl IntoIterator<Item = u64>) -> Histogram<u64> {
    let mut histogram = Histogram::new(DIGITS).unwrap_or_else(|_| unreachable!("a histogram may have three digits"));
    for response in responses {
        // The histogram grows as needed: every value of 64 bits fits.
        let _ = histogram.record(response);
    }
    histogram
}

/// The response times of the first tasks of a simulation, read from its records.
pub struct Responses {
    tasks: Vec<(VecDeque<Instant>, Histogram<u64>)>,
}

impl Responses {
    /// No response times yet, of this number of tasks.
    pub fn new(tasks: usize) -> Self {
        Self { tasks: (0..tasks).map(|_| (VecDeque::new(), histogram([]))).collect() }
    }

    /// Forgets the unfinished jobs, because another schedule begins.
    pub fn begin(&mut self) {
        self.tasks.iter_mut().for_each(|(jobs, _)| jobs.clear());
    }

    /// Notes the arrivals and the response times of jobs.
    pub fn note(&mut self, record: &Record) {
        let Some((jobs, responses)) = self.tasks.get_mut(record.task.index()) else { return };
        match record.event {
            Event::Arrive => jobs.push_back(record.at),
            Event::Finish => {
                if let Some(arrival) = jobs.pop_front() {
                    // The histogram grows as needed: every value of 64 bits fits.
                    let _ = responses.record(record.at.since(arrival).as_ns());
                }
            }
            _ => {}
        }
    }

    /// The histograms by task.
    pub fn histograms(self) -> Vec<Histogram<u64>> {
        self.tasks.into_iter().map(|(_, responses)| responses).collect()
    }
}

/// The histogram in equal intervals from 0 to `end`.
pub fn bins(responses: &Histogram<u64>, end: Duration) -> Vec<Bin> {
    let step = end.as_ns().div_ceil(BINS).max(1);
    let bin = |place: u64| Bin {
        from: Duration::from_ns(place * step),
        until: Duration::from_ns((place + 1).saturating_mul(step).min(end.as_ns())),
        jobs: 0,
    };
    let mut bins: Vec<Bin> = (0..end.as_ns().div_ceil(step)).map(bin).collect();
    for recorded in responses.iter_recorded() {
        // A value stands for all that the resolution does not distinguish from it.
        let value = responses.lowest_equivalent(recorded.value_iterated_to());
        let place = usize::try_from(value / step).unwrap_or(usize::MAX).min(bins.len() - 1);
        bins[place].jobs += recorded.count_at_value();
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockwright_model::TaskId;

    #[test]
    fn every_job_is_in_one_bin() {
        let mut responses = Responses::new(1);
        let record = |at, event| Record { at: Instant::from_ns(at), task: TaskId(0), event };
        for (arrival, finish) in [(0, 1), (100, 148), (200, 248), (300, 396)] {
            responses.note(&record(arrival, Event::Arrive));
            responses.note(&record(finish, Event::Finish));
        }
        // An unfinished job of one schedule is not the first job of the next one.
        responses.note(&record(500, Event::Arrive));
        responses.begin();
        responses.note(&record(0, Event::Arrive));
        responses.note(&record(10, Event::Finish));
        let histogram = responses.histograms().remove(0);
        let found = bins(&histogram, Duration::from_ns(96));
        let filled: Vec<(u64, u64)> =
            found.iter().filter(|bin| bin.jobs > 0).map(|bin| (bin.from.as_ns(), bin.jobs)).collect();
        assert_eq!(filled, [(0, 1), (10, 1), (48, 2), (94, 1)]);
        assert_eq!(found.last().map(|bin| bin.until), Some(Duration::from_ns(96)));
        assert_eq!(bins(&histogram, Duration::from_ns(1)).len(), 1);
    }

    #[test]
    fn long_response_times_are_not_cut() {
        let mut responses = Responses::new(1);
        let record = |at, event| Record { at: Instant::from_ns(at), task: TaskId(0), event };
        responses.note(&record(0, Event::Arrive));
        responses.note(&record(40_000_000_000, Event::Finish));
        let found = bins(&responses.histograms()[0], Duration::from_ns(48_000_000_000));
        let filled: Vec<u64> = found.iter().filter(|bin| bin.jobs > 0).map(|bin| bin.from.as_ns()).collect();
        assert_eq!(filled, [39_000_000_000], "the resolution is three digits");
    }
}
