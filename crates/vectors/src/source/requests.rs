//! The numbers of requests, and the iterations, that the sources share.

use lockwright_analysis::{Sharer, Sharing};

/// Returns the number of requests of `x` for one resource while
/// one job of `i` is pending, if each job makes `count` of them.
pub(super) fn issued(set: &Sharing, x: usize, interval: u64, count: u32) -> u64 {
    let task = &set.tasks[x];
    u64::from(count) * (interval + task.response).div_ceil(task.period)
}

/// Returns the number of requests of one job for a resource.
pub(super) fn asked(task: &Sharer, resource: u16) -> u64 {
    task.requests.iter().filter(|request| request.resource == resource).map(|request| u64::from(request.count)).sum()
}

/// Returns the other tasks, by number.
pub(super) fn others(set: &Sharing, i: usize) -> impl Iterator<Item = usize> + Clone {
    let count = set.tasks.len();
    (0..count).filter(move |&x| x != i)
}

/// Returns the fixed point to which `start` leads, or `None` if it leads beyond `most`.
pub(super) fn fixed_point(start: u64, most: u64, next: impl Fn(u64) -> u64) -> Option<u64> {
    let mut value = start;
    while value <= most {
        let following = next(value);
        if following == value {
            return Some(value);
        }
        value = following;
    }
    None
}

/// Returns the value at which the sources of the MPCP and the DPCP stop: a fixed point, the last value before one
/// beyond `most`, or `first` if `start` is beyond `most` or equal to `first` by accident.
pub(super) fn left_early(first: u64, start: u64, most: u64, next: impl Fn(u64) -> u64) -> u64 {
    let (mut value, mut following) = (first, start);
    while following <= most && following != value {
        value = following;
        following = next(value);
    }
    value
}
