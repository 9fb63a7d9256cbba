//! The tables behind all bounds: tasks by processor and requests by resource, created once for a task set.

mod order;

use crate::rows::divisor::{Divisor, SHORT};
use crate::rows::simd::{Asker, ISSUED_MAX, JOBS_MAX, SMALL, Short, Step, Turn};
use crate::rows::tally::{Arithmetic, Arrivals, Saturates, TIME_MAX, Tally};
use crate::{Demand, Failure, Sharer, Sharing};
use lockwright_model::TaskId;
pub(crate) use order::{Asked, Entry, Group, Row};
use order::{by_cluster, by_resource, longest_first};
use std::hint::select_unpredictable;
use std::ops::Range;

/// An interval at any place, with the arrivals of the jobs that can execute in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window<'a> {
    arrivals: &'a [Arrivals],
    t: u64,
}

impl Window<'_> {
    /// Returns the number of jobs of a task in the interval.
    #[inline]
    pub(crate) fn jobs<A: Arithmetic>(self, task: u32) -> u64 {
        A::jobs(self.arrivals[task as usize], self.t)
    }
}

/// The tasks whose bounds are computed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Chosen<'a> {
    All,
    /// Those of the caller's cluster.
    Cluster(u16),
    /// Those that are marked, by index.
    Marked(&'a [bool]),
}

/// Which requests for a resource form a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Grouping {
    /// Those of one cluster.
    Clusters,
    /// All requests.
    Together,
    /// None: the requests of each task are sufficient.
    Apart,
}

/// Tasks and requests in order.
#[derive(Debug)]
pub(crate) struct RequestTables {
    pub(crate) rows: Vec<Row>,
    pub(crate) arrivals: Vec<Arrivals>,
    /// The response times R.
    pub(crate) responses: Vec<u64>,
    asked: Vec<Asked>,
    /// By resource, then by cluster, then the longest first.
    entries: Vec<Entry>,
    /// By resource.
    groups: Vec<Group>,
    /// The start of each resource's groups, with one more entry than there are resources.
    resources: Vec<u32>,
    /// The tasks by cluster, the most urgent first.
    pub(crate) order: Vec<u32>,
    /// The start of each cluster in `order`, with one more entry than there are clusters.
    clusters: Vec<u32>,
    /// The caller's number of each cluster.
    pub(crate) cluster_ids: Vec<u16>,
    /// The place of each of the caller's resources.
    resource_places: Vec<u32>,
    /// The sums of N L and of N over all requests.
    demand: Tally,
    /// The greatest sum of N of one task.
    issued_most: u64,
    /// Whether no sum over all requests of all jobs that meet the longest response time comes near the greatest number,
    /// and divisions are short.
    fits: bool,
    /// See [`RequestTables::is_small`].
    is_small: bool,
    /// The most jobs of one task in an interval as long as any response time.
    jobs_most: u64,
}

const NOWHERE: u32 = u32::MAX;

/// Tasks are few if they are at most this part of all tasks.
const FEW: usize = 16;

impl RequestTables {
    /// Creates the tables of `tasks` with the requests that `requests` returns, and with the response times of the
    /// tasks.
    pub(crate) fn new<'a>(
        tasks: &'a [Sharer],
        requests: impl Fn(usize) -> &'a [Demand],
        grouping: Grouping,
    ) -> Result<Self, Failure> {
        if tasks.len() > i32::MAX as usize {
            return Err(Failure::Overflow);
        }
        let (order, clusters, cluster_ids, mut rows) = by_cluster(tasks);
        let mut arrivals = Vec::with_capacity(tasks.len());
        let mut responses = Vec::with_capacity(tasks.len());
        for (index, task) in tasks.iter().enumerate() {
            let none = Failure::Unsupported { task: index, what: "its period is 0" };
            let period = Divisor::new(task.period).ok_or(none)?;
            if task.period > TIME_MAX || task.response > TIME_MAX {
                return Err(Failure::Overflow);
            }
            arrivals.push(Arrivals { period, carry: task.response + (task.period - 1) });
            responses.push(task.response);
        }

        // The requests by task, with the places of the resources, and the number of tasks with requests for each.
        let (mut highest, mut all) = (0, 0);
        for index in 0..tasks.len() {
            let demands = requests(index);
            all += demands.len();
            for demand in demands {
                highest = highest.max(usize::from(demand.resource) + 1);
            }
        }
        if all > i32::MAX as usize {
            return Err(Failure::Overflow);
        }
        let mut resource_places = vec![NOWHERE; highest];
        let mut asked = Vec::with_capacity(all);
        let (mut demand_of_all, mut issued_most) = (Tally::default(), 0_u64);
        // For each place, the number of tasks with requests, and the last of them.
        let mut askers: Vec<(u32, u32)> = Vec::with_capacity(highest.min(all));
        for (index, row) in rows.iter_mut().enumerate() {
            row.first = asked.len() as u32;
            let before = demand_of_all.requests;
            for demand in requests(index) {
                if demand.count == 0 {
                    continue;
                }
                let place = &mut resource_places[usize::from(demand.resource)];
                if *place == NOWHERE {
                    *place = askers.len() as u32;
                    askers.push((0, NOWHERE));
                }
                let (count, last) = &mut askers[*place as usize];
                if *last == index as u32 {
                    return Err(Failure::Unsupported { task: index, what: "it names one resource twice" });
                }
                (*count, *last) = (*count + 1, index as u32);
                demand_of_all.count::<Saturates>(u64::from(demand.count), demand.length);
                asked.push(Asked { length: demand.length, resource: *place, count: demand.count });
            }
            row.last = asked.len() as u32;
            issued_most = issued_most.max(demand_of_all.requests - before);
        }

        let of_resources = if grouping == Grouping::Apart { &[] } else { order.as_slice() };
        let (entries, groups, resources) =
            by_resource(&rows, &asked, askers, of_resources, grouping == Grouping::Together);
        let mut tables = Self {
            rows,
            arrivals,
            responses,
            asked,
            entries,
            groups,
            resources,
            order,
            clusters,
            cluster_ids,
            resource_places,
            demand: demand_of_all,
            issued_most,
            fits: false,
            is_small: false,
            jobs_most: 0,
        };
        tables.look();
        Ok(tables)
    }

    /// Determines whether sums over all requests, in an interval as long as any response time, can be added without
    /// checks.
    fn look(&mut self) {
        let longest = self.responses.iter().copied().fold(0, u64::max);
        let (shortest_period, longest_period) = (self.arrivals.iter().map(|arrivals| arrivals.period.get()))
            .fold((u64::MAX, 1), |(shortest, longest), period| (shortest.min(period), longest.max(period)));
        // Every dividend is below this value.
        let dividend = 2 * longest + longest_period;
        let jobs = 2 * longest / shortest_period + 2;
        // A bound counts no request more often than this, nor one for each request of the task itself.
        const TIMES: u64 = 16;
        let product = |sum: u64| jobs.checked_mul(sum);
        let most = |sum: u64| product(sum).is_some_and(|product| product < i64::MAX as u64 / TIMES);
        self.jobs_most = jobs;
        self.is_small = product(self.demand.length).is_some_and(|length| length <= u64::from(u32::MAX))
            && dividend < SMALL
            && jobs < 1 << 15
            && self.issued_most <= ISSUED_MAX
            && self.issued_most * (self.rows.len() as u64) < 1 << 14;
        self.fits = most(self.demand.length) && most(self.demand.requests) && shortest_period > 1 && dividend < SHORT;
    }

    /// See [`Fits`].
    pub(crate) fn fits(&self) -> bool {
        self.fits
    }

    /// Returns whether sums of requests in an interval as long as any response time, each counted once, are small.
    /// Lengths must be below 2^32. The sum, over the tasks, of at most as many requests as one job issues must be below
    /// 2^14. Times and the requests of one job must be within the limits of [`simd`](super::simd).
    pub(crate) fn is_small(&self) -> bool {
        self.is_small
    }

    /// Returns whether all numbers are small, and all jobs of a task can be counted as well.
    pub(crate) fn counts_all(&self) -> bool {
        self.is_small && self.jobs_most <= JOBS_MAX as u64
    }

    /// Replaces the response times of the tasks.
    pub(crate) fn set_responses(&mut self, responses: &[u64]) -> Result<(), Failure> {
        if responses.len() != self.rows.len() || responses.iter().any(|response| *response > TIME_MAX) {
            return Err(Failure::Overflow);
        }
        self.responses.copy_from_slice(responses);
        for (arrivals, response) in self.arrivals.iter_mut().zip(responses) {
            arrivals.carry = response + (arrivals.period.get() - 1);
        }
        self.look();
        Ok(())
    }

    /// Replaces the lengths of the requests of these tasks. `sharing` differs from the former one in lengths alone.
    pub(crate) fn set_lengths(&mut self, sharing: &Sharing, tasks: &[TaskId]) {
        for task in tasks.iter().map(|task| task.index()) {
            let demands = sharing.tasks[task].requests.iter().filter(|demand| demand.count > 0);
            for (place, demand) in self.asked_range(task).zip(demands) {
                let asked = &mut self.asked[place];
                if asked.length != demand.length {
                    asked.length = demand.length;
                    let resource = asked.resource;
                    self.set_entry(task, resource, demand.length);
                }
            }
        }
        self.demand = Tally::default();
        for asked in &self.asked {
            self.demand.count::<Saturates>(u64::from(asked.count), asked.length);
        }
        self.look();
    }

    /// Replaces the length of the requests of a task for a resource in the order of the resource's requests.
    fn set_entry(&mut self, task: usize, resource: u32, length: u64) {
        let resource = resource as usize;
        for group in &self.groups[self.resources[resource] as usize..self.resources[resource + 1] as usize] {
            let entries = &mut self.entries[group.first as usize..group.last as usize];
            if let Some(place) = entries.iter().position(|entry| entry.task as usize == task) {
                entries[0].leads = false;
                entries[place].length = length;
                longest_first(entries);
                entries[0].leads = true;
            }
        }
    }

    /// Returns the requests of `task`, in its own order.
    #[inline]
    pub(crate) fn asked(&self, task: usize) -> &[Asked] {
        let row = &self.rows[task];
        &self.asked[row.first as usize..row.last as usize]
    }

    /// Returns the range of these requests in [`RequestTables::all_asked`].
    #[inline]
    pub(crate) fn asked_range(&self, task: usize) -> Range<usize> {
        self.rows[task].first as usize..self.rows[task].last as usize
    }

    pub(crate) fn all_asked(&self) -> &[Asked] {
        &self.asked
    }

    /// Returns the groups of requests for a resource.
    #[inline]
    pub(crate) fn groups(&self, resource: u32) -> &[Group] {
        let resource = resource as usize;
        &self.groups[self.resources[resource] as usize..self.resources[resource + 1] as usize]
    }

    #[inline]
    pub(crate) fn entries(&self, group: Group) -> &[Entry] {
        &self.entries[group.first as usize..group.last as usize]
    }

    /// Returns all entries of a resource. They are sorted only if they form one group.
    #[inline]
    pub(crate) fn entries_of(&self, resource: u32) -> &[Entry] {
        match self.groups(resource) {
            [] => &[],
            [first, rest @ ..] => {
                &self.entries[first.first as usize..rest.last().map_or(first.last, |group| group.last) as usize]
            }
        }
    }

    pub(crate) fn resource_count(&self) -> usize {
        self.resources.len() - 1
    }

    pub(crate) fn cluster_count(&self) -> usize {
        self.cluster_ids.len()
    }

    /// Returns the tasks of a cluster, the most urgent first.
    #[inline]
    pub(crate) fn cluster(&self, cluster: usize) -> &[u32] {
        &self.order[self.cluster_range(cluster)]
    }

    /// Returns the range of these tasks in `order`.
    #[inline]
    pub(crate) fn cluster_range(&self, cluster: usize) -> Range<usize> {
        self.clusters[cluster] as usize..self.clusters[cluster + 1] as usize
    }

    /// Returns the place of the caller's resource, if there are requests for it.
    #[inline]
    pub(crate) fn resource(&self, id: u16) -> Option<u32> {
        self.resource_places.get(usize::from(id)).copied().filter(|place| *place != NOWHERE)
    }

    /// Returns the resources with requests, with the caller's number of each.
    pub(crate) fn resource_ids(&self) -> impl Iterator<Item = (u32, u16)> {
        (self.resource_places.iter().zip(0..)).filter(|(place, _)| **place != NOWHERE).map(|(place, id)| (*place, id))
    }

    /// Returns the tasks of the caller's cluster, the most urgent first.
    pub(crate) fn cluster_of(&self, id: u16) -> &[u32] {
        &self.order[self.range_of(id)]
    }

    /// Returns the range of these tasks in `order`.
    pub(crate) fn range_of(&self, id: u16) -> Range<usize> {
        self.cluster_ids.binary_search(&id).map_or(0..0, |cluster| self.cluster_range(cluster))
    }

    #[inline]
    pub(crate) fn is_chosen(&self, task: u32, chosen: Chosen<'_>) -> bool {
        match chosen {
            Chosen::All => true,
            Chosen::Cluster(id) => self.cluster_ids[self.rows[task as usize].cluster as usize] == id,
            Chosen::Marked(marked) => marked[task as usize],
        }
    }

    /// Marks the tasks whose response times differ from those of `before`. Returns whether these are few. If not, all
    /// tasks are marked: to look for those that are concerned takes longer than to compute all bounds.
    pub(crate) fn mark_changed(&self, before: &[u64], marked: &mut [bool]) -> bool {
        let mut changed = 0;
        for ((marked, now), before) in marked.iter_mut().zip(&self.responses).zip(before) {
            *marked |= now != before;
            changed += usize::from(now != before);
        }
        let are_few = changed <= self.rows.len() / FEW;
        if !are_few {
            marked.fill(true);
        }
        are_few
    }

    /// Returns whether the number of jobs of `other` that a job of `task` meets differs from that for the former
    /// response time `before` of `other`.
    #[inline]
    pub(crate) fn meets_other_jobs(&self, task: u32, other: u32, before: u64) -> bool {
        let (Arrivals { period, carry }, t) = (self.arrivals[other as usize], self.responses[task as usize]);
        let then = before + (period.get() - 1);
        let (least, most) = (then.min(carry), then.max(carry));
        // The time until the next job counts.
        let rest = t + least - period.floor(t + least) * period.get();
        rest + (most - least) >= period.get()
    }

    /// Returns the interval in which a job of `task` is pending.
    #[inline]
    pub(crate) fn window(&self, task: usize) -> Window<'_> {
        Window { arrivals: &self.arrivals, t: self.responses[task] }
    }

    /// Returns `task` as an asker, if all numbers are small.
    #[inline]
    pub(crate) fn asker<R>(&self, task: u32, rule: R) -> Asker<R> {
        Asker { time: self.responses[task as usize] as u32, rule }
    }

    /// Returns the requests of a task that delay others, if all numbers are small.
    #[inline]
    pub(crate) fn step<R>(&self, task: u32, length: u64, count: u32, rule: R) -> Step<R> {
        let arrivals = Short::new(self.arrivals[task as usize]);
        Step { arrivals, length: length as u32, count: count as i16, rule }
    }

    /// Returns the requests of `entry`, for the order of keys.
    #[inline]
    pub(crate) fn turn(&self, entry: &Entry, key: u32) -> Step<Turn> {
        self.step(entry.task, entry.length, entry.count, Turn { key: key as i16, leads: entry.leads })
    }

    /// Returns all tasks, the most urgent first.
    pub(crate) fn by_priority(&self) -> Vec<u32> {
        let mut keys: Vec<u64> = Vec::with_capacity(self.rows.len());
        keys.extend(self.rows.iter().zip(0..).map(|(row, task)| u64::from(!row.priority) << 32 | task));
        keys.sort_unstable();
        keys.into_iter().map(|key| key as u32).collect()
    }
}

/// Returns the greatest delay of `but` by requests of `entries`, sorted with the longest first, in `window`: at most
/// `total` requests, and at most `each` of one entry.
#[inline]
pub(crate) fn longest<A: Arithmetic>(entries: &[Entry], but: usize, window: Window, total: u64, each: u64) -> Tally {
    let mut tally = Tally::default();
    let mut left = total;
    for entry in entries {
        if entry.task as usize != but {
            let requests = A::least(A::mul(window.jobs::<A>(entry.task), u64::from(entry.count)), A::least(each, left));
            tally.count::<A>(requests, entry.length);
            left = left.wrapping_sub(requests);
            if left == 0 {
                break;
            }
        }
    }
    debug_assert!(entries.is_sorted_by(|a, b| a.length >= b.length));
    tally
}

/// Returns the `issued` longest requests of each key except `but`. `entries` are in the order of keys, and the first of
/// each key leads.
#[inline]
pub(crate) fn longest_of_each<A: Arithmetic>(
    entries: &[Entry],
    key: impl Fn(&Entry) -> u32,
    window: Window,
    but: u32,
    issued: u64,
) -> Tally {
    let mut tally = Tally::default();
    let mut left = 0;
    for entry in entries {
        let most = issued & u64::from(key(entry) != but).wrapping_neg();
        left = select_unpredictable(entry.leads, most, left);
        let taken = A::least(A::mul(window.jobs::<A>(entry.task), u64::from(entry.count)), left);
        left = left.wrapping_sub(taken);
        tally.count::<A>(taken, entry.length);
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::random;
    use crate::rows::simd::{Crowd, Fair, Turns};
    use crate::rows::tally::Fits;

    /// The definition of the bound: every single request, the longest first.
    fn longest_of_all(tables: &RequestTables, entries: &[Entry], but: usize, t: u64, total: u64, each: u64) -> Tally {
        let mut all = Vec::new();
        for entry in entries.iter().filter(|entry| entry.task as usize != but) {
            let jobs =
                (t + tables.responses[entry.task as usize]).div_ceil(tables.arrivals[entry.task as usize].period.get());
            all.extend(vec![entry.length; (jobs * u64::from(entry.count)).min(each) as usize]);
        }
        all.sort_unstable_by_key(|length| std::cmp::Reverse(*length));
        all.truncate(total as usize);
        Tally { length: all.iter().sum(), requests: all.len() as u64 }
    }

    #[test]
    fn the_longest_requests_equal_those_of_the_definition() {
        let mut random = fastrand::Rng::with_seed(2);
        for _ in 0..2_000 {
            let sharing = random::sharing(&mut random, 3, 9, 3);
            for grouping in [Grouping::Clusters, Grouping::Together] {
                let tables =
                    RequestTables::new(&sharing.tasks, |task| &sharing.tasks[task].requests, grouping).unwrap();
                let mut seen = 0;
                for group in (0..tables.resource_count() as u32).flat_map(|resource| tables.groups(resource)) {
                    let entries = tables.entries(*group);
                    seen += entries.len();
                    let (t, total, each) = (random.u64(..400), random.u64(..9), random.u64(..5));
                    let but = random.usize(..sharing.tasks.len());
                    let window = Window { arrivals: &tables.arrivals, t };
                    let expected = longest_of_all(&tables, entries, but, t, total, each);
                    assert_eq!(longest::<Saturates>(entries, but, window, total, each), expected);
                    assert_eq!(longest::<Fits>(entries, but, window, total, each), expected);
                }
                assert_eq!(seen, sharing.tasks.iter().map(|task| task.requests.len()).sum::<usize>());
            }
        }
    }

    #[test]
    fn invalid_input_is_refused() {
        let task = Sharer { period: 5, ..Sharer::default() };
        let of =
            |task: Sharer| RequestTables::new(std::slice::from_ref(&task), |_| &[], Grouping::Clusters).map(|_| ());
        assert_eq!(of(task.clone()), Ok(()));
        assert!(matches!(of(Sharer { period: 0, ..task.clone() }), Err(Failure::Unsupported { task: 0, .. })));
        assert_eq!(of(Sharer { response: u64::MAX, ..task.clone() }), Err(Failure::Overflow));
        let twice = [Demand { resource: 1, count: 1, length: 1 }; 2];
        let tables = RequestTables::new(std::slice::from_ref(&task), |_| &twice, Grouping::Clusters);
        assert!(matches!(tables, Err(Failure::Unsupported { task: 0, .. })));
        assert_eq!(RequestTables::new(&[], |_| &[], Grouping::Clusters).unwrap().resource_count(), 0);
    }

    #[test]
    fn the_vector_delays_equal_the_scalar_ones() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut crowd = Crowd::<Fair>::new(0);
        for round in 0..400 {
            let count = if round % 20 == 0 { 200 } else { 20 };
            let mut sharing = random::sharing(&mut random, 4, count, 5);
            for task in &mut sharing.tasks {
                task.response *= random.u64(..2);
            }
            let requests = |task: usize| sharing.tasks[task].requests.as_slice();
            let together = RequestTables::new(&sharing.tasks, requests, Grouping::Together).unwrap();
            let clusters = RequestTables::new(&sharing.tasks, requests, Grouping::Clusters).unwrap();
            assert!(together.is_small() && clusters.is_small());
            let (total, each) = (random.i16(1..30), random.i16(1..7));
            let mut at = 0;
            for resource in 0..together.resource_count() as u32 {
                let entries = together.entries_of(resource);
                let askers = entries.iter().map(|entry| {
                    let key = entry.task as i16;
                    together.asker(entry.task, Turns { key, each, total })
                });
                let steps = entries.iter().map(|entry| together.turn(entry, entry.task));
                crowd.delays(steps, askers, |place, tally| {
                    let task = entries[place].task as usize;
                    let window = together.window(task);
                    assert_eq!(tally, longest::<Saturates>(entries, task, window, total as u64, each as u64));
                    at += 1;
                });
                let entries = clusters.entries_of(resource);
                let askers = entries.iter().map(|entry| {
                    let key = entry.cluster as i16;
                    clusters.asker(entry.task, Turns { key, each, total: each })
                });
                let steps = entries.iter().map(|entry| clusters.turn(entry, entry.cluster));
                crowd.delays(steps, askers, |place, tally| {
                    let task = entries[place].task as usize;
                    let (window, own) = (clusters.window(task), clusters.rows[task].cluster);
                    let cluster = |entry: &Entry| entry.cluster;
                    assert_eq!(tally, longest_of_each::<Saturates>(entries, cluster, window, own, each as u64));
                    at += 1;
                });
            }
            assert_eq!(at, 2 * together.all_asked().len());
        }
    }
}
