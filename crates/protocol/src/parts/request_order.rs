//! The order of requests on each processor, as priorities of the boosted band: the earlier, the more urgent.

use lockwright_model::{CpuId, Priority, TaskId};

/// The requests, and the level of each.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct RequestOrder<const TASKS: usize> {
    /// The first `count` entries are requests, in order of arrival.
    order: [Request; TASKS],
    count: usize,
    /// By task: the level of its request.
    levels: [Option<u16>; TASKS],
    bottom: u16,
}

/// A request: its task, and its processor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Request {
    task: TaskId,
    cpu: CpuId,
}

const TOP: u16 = u16::MAX;

/// Returns the priorities that a machine gives to requests, most urgent first, for at most `tasks` tasks on one
/// processor.
///
/// There are twice as many levels as tasks, so that levels seldom have to be renumbered.
pub fn request_priorities(tasks: usize) -> impl Iterator<Item = Priority> + Clone {
    (bottom(tasks)..=TOP).rev().map(|level| Priority::base(u32::from(level)).boosted())
}

fn bottom(tasks: usize) -> u16 {
    let levels = u16::try_from(tasks.saturating_mul(2)).unwrap_or(TOP).max(1);
    TOP - (levels - 1)
}

impl<const TASKS: usize> RequestOrder<TASKS> {
    /// An order for at most `tasks` requests on one processor.
    pub(crate) fn new(tasks: usize) -> Self {
        let none = Request { task: TaskId(0), cpu: CpuId(0) };
        Self { order: [none; TASKS], count: 0, levels: [None; TASKS], bottom: bottom(tasks) }
    }

    /// Returns the priority of the task's request, or `None` if it has none.
    pub(crate) fn priority(&self, task: TaskId) -> Option<Priority> {
        let level = self.levels[task.index()]?;
        Some(Priority::base(u32::from(level)).boosted())
    }

    /// Appends a request of `task` on `cpu`, after all others there. Returns whether the others got new levels, which
    /// happens when levels run out.
    ///
    /// BOUND: one step for each request.
    pub(crate) fn push(&mut self, task: TaskId, cpu: CpuId) -> bool {
        debug_assert!(self.levels[task.index()].is_none(), "a task has one request");
        let last = self.on(cpu).next_back().and_then(|task| self.levels[task.index()]);
        let renumbered = last == Some(self.bottom);
        let last = if renumbered { self.compact(cpu) } else { last };
        self.levels[task.index()] = Some(last.map_or(TOP, |last| last - 1));
        self.order[self.count] = Request { task, cpu };
        self.count += 1;
        renumbered
    }

    /// Removes the request of a task, if it has one.
    ///
    /// BOUND: as [`RequestOrder::push`].
    pub(crate) fn remove(&mut self, task: TaskId) {
        if self.levels[task.index()].take().is_none() {
            return;
        }
        if let Some(place) = self.order[..self.count].iter().position(|request| request.task == task) {
            self.order.copy_within(place + 1..self.count, place);
            self.count -= 1;
        }
        // Places beyond the last one have one form, so that equal states are equal.
        self.order[self.count] = Request { task: TaskId(0), cpu: CpuId(0) };
    }

    /// Returns the request at this place in the order of arrival: its task, and its processor.
    pub(crate) fn get(&self, place: usize) -> Option<(TaskId, CpuId)> {
        self.order[..self.count].get(place).map(|request| (request.task, request.cpu))
    }

    /// The tasks with requests on a processor, in order of arrival.
    fn on(&self, cpu: CpuId) -> impl DoubleEndedIterator<Item = TaskId> {
        self.order[..self.count].iter().filter(move |request| request.cpu == cpu).map(|request| request.task)
    }

    /// The levels of one processor, in the same order, from the top without gaps. Returns the lowest.
    ///
    /// No level falls: above the request at place k there are k others, so its level was at most the one it gets.
    /// So giving the levels to the tasks in the order of their requests keeps that order at each step: the requests
    /// that already have new levels are above the next one, and that one is above all that follow.
    fn compact(&mut self, cpu: CpuId) -> Option<u16> {
        let mut lowest = None;
        for place in 0..self.count {
            let request = self.order[place];
            if request.cpu == cpu {
                let level = lowest.map_or(TOP, |lowest: u16| lowest - 1);
                (self.levels[request.task.index()], lowest) = (Some(level), Some(level));
            }
        }
        lowest
    }

    /// For the exhaustive walk: only the order on each processor counts.
    #[cfg(test)]
    pub(crate) fn forget_gaps(&mut self) {
        for cpu in 0..TASKS {
            self.compact(CpuId::new(cpu));
        }
        let levels = &self.levels;
        let key = |request: &Request| (request.cpu, core::cmp::Reverse(levels[request.task.index()]));
        self.order[..self.count].sort_unstable_by_key(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests with these levels, in the order of their arrival on each processor.
    fn requests(tasks: usize, requests: &[(usize, u16, u16)]) -> RequestOrder<4> {
        let mut order = RequestOrder::new(tasks);
        for &(task, cpu, level) in requests {
            order.push(TaskId::new(task), CpuId(cpu));
            order.levels[task] = Some(level);
        }
        order
    }

    #[test]
    fn levels_begin_anew_where_they_run_out_and_keep_their_order() {
        let [first, second, third, other] = [0, 1, 2, 3].map(TaskId::new);
        let mut order = requests(3, &[(0, 0, 65_532), (3, 1, 65_530), (1, 0, 65_530)]);
        assert!(order.push(third, CpuId(0)));
        let level = |order: &RequestOrder<4>, task| order.priority(task).unwrap().level();
        assert_eq!([first, second, third, other].map(|task| level(&order, task)), [65_535, 65_534, 65_533, 65_530]);
        order.remove(first);
        assert!(!order.push(first, CpuId(0)), "behind the last, not in the gap");
        assert_eq!(level(&order, first), 65_532);
        assert_eq!(order.priority(first).map(Priority::is_boosted), Some(true));
    }

    /// As [`lockwright_protocol::Machine`]s tell them: one by one.
    #[test]
    fn levels_told_in_order_of_arrival_keep_it_at_each_step() {
        let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        // Each three of the lower levels that three tasks have.
        let levels =
            (bottom(4)..TOP - 1).flat_map(|a| (a + 1..TOP).flat_map(move |b| (b + 1..=TOP).map(move |c| [c, b, a])));
        for old in levels.filter(|old| old[2] == bottom(4)) {
            for arrival in orders {
                let mut order = requests(4, &[0, 1, 2].map(|place| (arrival[place], 0, old[place])));
                assert!(order.push(TaskId::new(3), CpuId(0)));
                let mut told = old;
                for place in 0..3 {
                    let task = order.get(place).unwrap().0;
                    assert_eq!(task.index(), arrival[place], "the earliest first");
                    told[place] = order.levels[task.index()].unwrap();
                    assert!(told.is_sorted_by(|earlier, later| earlier > later), "{old:?}, then {told:?}");
                }
                assert_eq!(told, [TOP, TOP - 1, TOP - 2]);
            }
        }
    }

    #[test]
    fn the_order_of_arrival_is_kept_where_requests_end() {
        let mut order = requests(4, &[(2, 0, 9), (0, 1, 9), (3, 0, 8), (1, 0, 7)]);
        order.remove(TaskId(3));
        order.remove(TaskId(3));
        let requests = [0, 1, 2, 3].map(|place| order.get(place));
        let request = |task, cpu| Some((TaskId(task), CpuId(cpu)));
        assert_eq!(requests, [request(2, 0), request(0, 1), request(1, 0), None]);
        assert_eq!(order.priority(TaskId(3)), None);
    }
}
