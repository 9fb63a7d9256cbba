//! The shape of a system: what does not depend on execution times.

use crate::rows::divisor::Divisor;
use crate::rows::simd::{SHORT_MAX, halves};
use crate::rows::tables::Tables;
use crate::system::across;
use fearless_simd::Level;
use lockwright_model::{Priority, Protocol, ResourceId, TaskId};
use std::cell::Cell;
use std::ops::Range;

/// The part of a system that does not depend on execution times. Each task has a place: tasks are ordered by processor,
/// and on each processor the most urgent comes first.
pub(super) struct Shape<'t> {
    pub(super) tables: &'t Tables<'t>,
    /// The task at each place.
    pub(super) ids: Vec<TaskId>,
    /// The place of each task.
    pub(super) places: Vec<usize>,
    pub(super) periods: Vec<Divisor>,
    /// The first place of the processor, and the end of the places of tasks at least as urgent, by place.
    pub(super) urgent: Vec<(usize, usize)>,
    /// The first place with the same priority on the processor, by place.
    pub(super) equals: Vec<usize>,
    /// The end of the places of the processor, by place.
    pub(super) ends: Vec<usize>,
    pub(super) jitters: Vec<u64>,
    pub(super) deadlines: Vec<u64>,
    pub(super) suspends: Vec<bool>,
    /// Whether the response time of the task is not judged and counts for no other task: that of an interrupt.
    pub(super) is_free: Vec<bool>,
    /// How often sections under `icpp` can delay a job of the task, and every job that it keeps waiting.
    pub(super) occasions: Vec<u64>,
    /// The requests under `mpcp`, with the slots of their waits in a point, by place.
    pub(super) requests: Vec<Vec<Request>>,
    /// The waits that grow with the response time of the task, as pairs of place and slot.
    pub(super) delays: Vec<Vec<(usize, usize)>>,
    /// Whether all periods, deadlines and jitters are short.
    pub(super) is_short: bool,
    /// 2^64 divided by each period, rounded up: the high 32 bits and the low ones.
    pub(super) halves: Vec<[u32; 2]>,
    pub(super) level: Level,
    /// The place of the task whose deadline refuted the last form.
    pub(super) critical: Cell<usize>,
}

/// The requests of a job for one resource under `mpcp`.
#[derive(Clone, Copy)]
pub(super) struct Request {
    pub(super) resource: ResourceId,
    pub(super) count: u64,
    /// The place of the wait among those of all tasks.
    pub(super) slot: usize,
}

impl<'t> Shape<'t> {
    /// Creates the shape of tables whose resources are under the protocols of `response.rs`, without interruptible
    /// sections.
    pub(super) fn new(tables: &'t Tables<'t>) -> Self {
        let system = tables.system;
        let ids: Vec<TaskId> = tables.cpus.iter().flatten().copied().collect();
        let mut places = vec![0; ids.len()];
        for (place, id) in ids.iter().enumerate() {
            places[id.index()] = place;
        }
        let (mut urgent, mut equals, mut ends, mut first) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for tasks in &tables.cpus {
            for &id in tasks {
                let at_least = |&other: &TaskId| system.task(other).priority >= system.task(id).priority;
                let above = |&other: &TaskId| system.task(other).priority > system.task(id).priority;
                urgent.push((first, first + tasks.partition_point(at_least)));
                equals.push(first + tasks.partition_point(above));
                ends.push(first + tasks.len());
            }
            first += tasks.len();
        }
        let mpcp = |id: TaskId| {
            let requests = system.requests(id).iter();
            requests.filter(|request| tables.protocol(request.resource) == Protocol::Mpcp)
        };
        let priority = |id: TaskId| -> Priority { system.task(id).priority };
        let mut slot = 0;
        let mut next = |request: &lockwright_model::Request| {
            slot += 1;
            Request { resource: request.resource, count: u64::from(request.count), slot: slot - 1 }
        };
        let requests: Vec<Vec<Request>> = ids.iter().map(|&id| mpcp(id).map(&mut next).collect()).collect();
        let delays = |&id: &TaskId| -> Vec<(usize, usize)> {
            let users = mpcp(id).flat_map(|r| system.users(r.resource).iter().map(move |user| (r.resource, user)));
            let delayed = users.filter(|&(_, &user)| priority(user) < priority(id)).filter_map(|(resource, user)| {
                let place = places[user.index()];
                let request = requests[place].iter().find(|request| request.resource == resource)?;
                Some((place, request.slot))
            });
            delayed.collect()
        };
        let of = |get: &dyn Fn(TaskId) -> u64| ids.iter().map(|&id| get(id)).collect::<Vec<u64>>();
        let periods: Vec<Divisor> = ids.iter().filter_map(|&id| Divisor::new(system.task(id).period.as_ns())).collect();
        let is_short = system.tasks().iter().all(|task| {
            let others = task.deadline.max(task.jitter).as_ns();
            (2..SHORT_MAX).contains(&task.period.as_ns()) && others < SHORT_MAX
        });
        let ruling = across::ruling(tables);
        // Waits under `fmlp_long` count all jobs on a processor by their response times.
        let is_free = |id| system.is_interrupt(id) && ruling != Some(Protocol::FmlpLong);
        let suspends = |id| ruling.map_or_else(|| tables.suspends(id), |ruling| across::defers(tables, ruling, id));
        Self {
            tables,
            is_short,
            halves: periods.iter().map(|&period| halves(period)).collect(),
            level: Level::new(),
            periods,
            urgent,
            equals,
            ends,
            jitters: of(&|id| system.task(id).jitter.as_ns()),
            deadlines: of(&|id| system.task(id).deadline.as_ns()),
            suspends: ids.iter().map(|&id| suspends(id)).collect(),
            is_free: ids.iter().map(|&id| is_free(id)).collect(),
            occasions: of(&|id| 1 + ruling.map_or(0, |ruling| across::requests(tables, ruling, id))),
            delays: ids.iter().map(delays).collect(),
            requests,
            critical: Cell::new(0),
            places,
            ids,
        }
    }

    pub(super) fn place(&self, task: TaskId) -> usize {
        self.places[task.index()]
    }

    /// Returns whether response times depend on each other.
    pub(super) fn is_coupled(&self) -> bool {
        self.suspends.contains(&true)
    }

    pub(super) fn id(&self, place: usize) -> TaskId {
        self.ids[place]
    }

    /// Returns the first place of the processor, and the end of the places of tasks at least as urgent.
    pub(super) fn urgent(&self, place: usize) -> (usize, usize) {
        self.urgent[place]
    }

    /// Returns the places of the processor.
    pub(super) fn neighbours(&self, place: usize) -> Range<usize> {
        self.urgent[place].0..self.ends[place]
    }

    /// Returns the release jitter.
    pub(super) fn jitter(&self, place: usize) -> u64 {
        self.jitters[place]
    }

    /// Returns whether the work of these execution times may be computed as that of short ones.
    pub(super) fn are_short(&self, costs: &[u64]) -> bool {
        self.is_short && costs.iter().zip(&self.periods).all(|(&cost, period)| cost <= period.get())
    }

    /// Returns the places of the more urgent tasks of the processor.
    pub(super) fn more_urgent(&self, place: usize) -> Range<usize> {
        self.urgent[place].0..self.equals[place]
    }
}
