//! The search in clusters of several processors.
//!
//! The equations are those of [`clustered`](crate::system::clustered). Let A_i = w_i - E_i be the time for which a job
//! of i waits for a processor, and G_i = A_i + J_i its lag. A window of i and the work of h in it are then
//! ```text
//!   w = E_i + A_i,   x = w + G_h,   min(W_h, A_i + 1)
//! ```
//! E_i rises with execution times, with sections, and with the response times R = E + G that its waits depend on.
//! For given lags, W_h never falls as E_h rises: `floor(x / T) E + min(E, x mod T)` with the same x. So every A_i and
//! every E_i is a function that never falls as all A, all E, all execution times and all sections rise. (With R_h in
//! place of G_h, this would be false: at the same R_h, a longer E_h is a shorter lag.) It follows that
//! - the least fixed point never falls as execution times grow, and the verdict never improves: bisection finds the
//!   greatest amount, and any other order of trials finds the same;
//! - the fixed point of a smaller system, by lags and delays, is not above that of a greater one, whose search can
//!   begin there;
//! - a deadline that one equation alone misses at values that are not above the fixed point is missed.
//!
//! Both this search and the analysis give up a fixed point that takes too many steps, and count it as missed. They take
//! different steps, so in systems that creep towards it, a factor can differ from that of bisection over the analysis.
//! It is safe: a fixed point that was reached proves all deadlines.
//!
//! `solve.rs` reaches the same least fixed point: none of its response times has a lag above that of the fixed point.
//! Its first response times have none, and each evaluation gives the least solution for lags and delays that are not
//! above.
//!
//! The charged interrupts of a cluster are more urgent than its tasks, have no requests, and lend no priority. Only
//! other interrupts delay them, so they are the same in every scaled system.

mod work;

use super::crew::Crew;
use super::greatest::{self, Delays, Requests, Trials};
use super::growth::{Progress, Sensitivity};
use super::scale::{Part, Scale, halve, users};
use crate::blocking::Delay;
use crate::blocking::spin::{Fifo, Waits};
use crate::rows::bound::Unbounded;
use crate::rows::divisor::Divisor;
use crate::rows::fixed_point::Budget;
use crate::rows::mutant::Omission;
use crate::rows::sharing::{Sharing, demands, sharing_of};
use crate::rows::tables::Tables;
use crate::system::clustered;
use crate::system::solve::ROUNDS_MAX;
use lockwright_model::{CpuId, STEPS_MAX, Step, System, TaskId};
use std::cell::RefCell;
use std::ops::Range;
use work::{Point, Waiting, Work};

/// The parameters of the equations that no search changes, by place. The places are those of the tasks by cluster, the
/// most urgent first.
struct Shape {
    ids: Vec<TaskId>,
    /// By task.
    places: Vec<usize>,
    /// The first place of the cluster.
    firsts: Vec<usize>,
    /// The first place of equal priority.
    equals: Vec<usize>,
    /// The end of the places of equal priority.
    ends: Vec<usize>,
    /// The end of the cluster.
    lasts: Vec<usize>,
    processors: Vec<u64>,
    work: Work,
    jitters: Vec<u64>,
    /// The longest windows: up to the deadline, or the period of an interrupt.
    limits: Vec<u64>,
    is_interrupt: Vec<bool>,
    /// Room for what one sum tells of each task; see [`Shape::work`] and [`Work::rising`].
    untils: RefCell<Vec<u64>>,
    rises: RefCell<Vec<(u64, u64)>>,
}

impl Shape {
    /// Returns `None` if sums of work may not fit.
    fn new(tables: &Tables<'_>, judged: usize) -> Option<Self> {
        let system = tables.system;
        let ids: Vec<TaskId> = tables.cpus.iter().flatten().copied().collect();
        let mut places = vec![0; ids.len()];
        ids.iter().enumerate().for_each(|(place, id)| places[id.index()] = place);
        let size = |id: TaskId| clustered::size(system, system.task(id).cpu);
        let limit = |id: TaskId| {
            let task = system.task(id);
            let end = if id.index() < judged { task.deadline.min(task.period) } else { task.period };
            end.as_ns().saturating_sub(task.jitter.as_ns())
        };
        let first = |&id: &TaskId| places[id.index()] - tables.places[id.index()];
        let equal = |&id: &TaskId| {
            let is_above = |&h: &TaskId| system.task(h).priority > system.task(id).priority;
            first(&id) + tables.neighbours(id).partition_point(is_above)
        };
        let of = |value: &dyn Fn(TaskId) -> u64| ids.iter().map(|&id| value(id)).collect::<Vec<u64>>();
        let (limits, jitters) = (of(&limit), of(&|id| system.task(id).jitter.as_ns()));
        let times = of(&|id| if system.is_interrupt(id) { size(id) } else { 1 });
        let periods = ids.iter().map(|&id| Divisor::new(system.task(id).period.as_ns())).collect::<Option<_>>()?;
        let (limit, jitter) = (limits.iter().max()?, jitters.iter().max()?);
        // No window and no lag is longer, and no term of a sum is greater than the longest window and one.
        let longest = limit.checked_mul(2)?.checked_add(*jitter)?;
        let all = times.iter().try_fold(0_u64, |sum, &times| sum.checked_add(times))?;
        (longest.checked_add(2)?.checked_mul(all)? < u64::MAX / 4).then_some(())?;
        Some(Self {
            firsts: ids.iter().map(first).collect(),
            equals: ids.iter().map(equal).collect(),
            ends: ids.iter().map(|id| first(id) + tables.urgent_end(*id)).collect(),
            lasts: ids.iter().map(|id| first(id) + tables.neighbours(*id).len()).collect(),
            processors: of(&size),
            work: Work::new(periods, times, longest),
            jitters,
            limits,
            is_interrupt: ids.iter().map(|&id| system.is_interrupt(id)).collect(),
            untils: RefCell::default(),
            rises: RefCell::default(),
            places,
            ids,
        })
    }

    fn count(&self) -> usize {
        self.ids.len()
    }

    /// Returns a lower limit on the least time, not below `lag`, for which the job at `place` can wait. The result is
    /// `lag` if it can wait for that time.
    ///
    /// The work of a task rises as fast as the window until its job in progress is complete, and so does the limit
    /// A + 1 if that is less than the work. Up to these ends, the sum is known; whatever else begins to rise makes it
    /// greater. If nothing else does before the result, that is the least time itself.
    fn next(&self, at: &Point, place: usize, lag: u64, (untils, rises): (&mut Vec<u64>, &mut Vec<(u64, u64)>)) -> Next {
        let processors = self.processors[place];
        let (mut sum, known) = self.work(at, place, lag, untils);
        if sum / processors <= lag {
            return Next { lag, is_least: true };
        }
        self.work.rising(untils, self.firsts[place], lag, rises);
        rises.sort_unstable();
        let (mut lag, mut slope) = (lag, rises.iter().map(|(_, times)| times).sum::<u64>());
        for &(until, times) in &*rises {
            if let Some(least) = solution((lag, sum), slope, processors).filter(|&least| least <= until) {
                return Next { lag: least, is_least: least <= known };
            }
            sum += slope * (until - lag);
            (lag, slope) = (until, slope - times);
        }
        let lag = sum / processors;
        Next { lag, is_least: lag <= known }
    }

    /// Returns the sum of the work that keeps the job at `place` waiting for `lag`, and the lag up to which no work
    /// begins to rise. `untils` receives for each task that is at least as urgent the lag up to which its work rises.
    fn work(&self, at: &Point, place: usize, lag: u64, untils: &mut Vec<u64>) -> (u64, u64) {
        let (first, end, waiting) = (self.firsts[place], self.ends[place], Waiting { place, lag });
        untils.resize(end - first, 0);
        let (before, after) = untils.split_at_mut(place - first);
        after[0] = 0;
        let (sum, known) = self.work.sum(at, first..place, waiting, before);
        let (others, until) = self.work.sum(at, place + 1..end, waiting, &mut after[1..]);
        (sum + others, known.min(until))
    }

    /// Returns the least time for which the job at `place` waits, at least `start`.
    fn least(&self, at: &Point, place: usize, start: u64, budget: &Budget) -> Result<u64, Missed> {
        let limit = self.limits[place].checked_sub(at.executed[place]).ok_or(Missed::Deadline)?;
        let terms = 1 + (self.ends[place] - self.firsts[place]) as u64;
        let (mut untils, mut rises) = (self.untils.borrow_mut(), self.rises.borrow_mut());
        let mut least = None;
        let next = |lag| {
            // The least time needs no sum to confirm it.
            if least == Some(lag) {
                return least;
            }
            let next = self.next(at, place, lag, (&mut untils, &mut rises));
            least = next.is_least.then_some(next.lag);
            debug_assert!(
                !next.is_least
                    || next.lag > limit
                    || self.next(at, place, next.lag, (&mut untils, &mut rises)).lag == next.lag,
                "a time that is said to be the least is a solution"
            );
            Some(next.lag)
        };
        budget.least(start, limit, terms, next).map_err(|reason| match reason {
            Unbounded::Unsettled => Missed::Limit,
            _ => Missed::Deadline,
        })
    }
}

/// A lower limit on the least time for which a job waits.
struct Next {
    lag: u64,
    /// Whether the limit is the least time itself.
    is_least: bool,
}

/// Why execution times do not settle.
enum Missed {
    Deadline,
    /// The fixed point takes too many steps. This counts as a missed deadline, as in the analysis.
    Limit,
}

/// Returns the least time, not below `lag`, that is at least the sum divided by `processors` and rounded down. The sum
/// is `sum` at `lag` and rises `slope` times as fast. Returns `None` if there is none.
fn solution((lag, sum): (u64, u64), slope: u64, processors: u64) -> Option<u64> {
    let rest = (sum + 1).saturating_sub(processors + slope * lag);
    (slope < processors).then(|| rest.div_ceil(processors - slope).max(lag))
}

/// Execution times at their fixed point, or below it.
struct Settled {
    costs: Vec<u64>,
    point: Point,
    waits: Waits,
    /// The response times of these waits, by task.
    responses: Option<Vec<u64>>,
}

type Outcome = greatest::Outcome<Settled>;

/// The search of one thread.
struct Search<'a> {
    shape: Shape,
    scale: &'a Scale<'a>,
    crew: &'a Crew,
    go_on: &'a dyn Fn() -> bool,
    /// The system with overheads.
    system: &'a System,
    costs: Vec<u64>,
    sharing: Sharing,
    /// The system and its requests, which change while a form is built.
    scratch: RefCell<(System, Sharing)>,
    /// The waits, for the sections of `scratch`.
    bounds: RefCell<Fifo>,
    /// The places of deadlines that were missed, or are expected to be missed next: one to [`CRITICAL_MAX`]. The latest
    /// comes first.
    critical: RefCell<Vec<usize>>,
}

/// The most deadlines that are tried before all others.
const CRITICAL_MAX: usize = 8;

/// Like [`sensitivity`](super::sensitivity()), for clusters of several processors. The inner `None` means that this
/// search does not cover the system.
pub(super) fn find<F: FnMut(usize, usize) -> bool>(
    scale: &Scale<'_>,
    progress: &Progress<F>,
) -> Option<Option<Sensitivity>> {
    let crew = Crew::default();
    let go_on = || crew.report(progress);
    // A body that cannot be lengthened has no room, but its times can grow.
    let is_full = |system: &System| system.tasks().iter().any(|task| task.body.len() >= STEPS_MAX);
    if is_full(scale.system) || is_full(&scale.charged) {
        return Some(None);
    }
    let tables = Tables::new(&scale.charged, scale.protocol, Omission::NOTHING);
    match Search::new(&tables, scale, (&crew, &go_on)).filter(Search::bounds_interrupts) {
        Some(search) => search.all().map(Some),
        None => Some(None),
    }
}

impl Trials for Search<'_> {
    type Settled = Settled;

    fn asked(&self) -> Option<()> {
        (self.go_on)().then_some(())
    }

    fn is_steep(&self) -> bool {
        true
    }

    fn between(&self, (start, from): (u64, &Settled), (end, to): (u64, &Settled)) -> Option<u64> {
        let (shape, from, to) = (&self.shape, &from.point, &to.point);
        let mut mixed = from.clone();
        let mix = |from: u64, to: u64, share: f64| from + (to.saturating_sub(from) as f64 * share) as u64;
        // An estimate: if all trials together take too many steps, it is a smaller amount.
        let (mut most, budget) = (end, Budget::new());
        for &critical in &*self.critical.borrow() {
            let least = from.lags[critical] - shape.jitters[critical];
            let mut holds = |amount| {
                let share = (amount - start) as f64 / (end - start) as f64;
                for place in shape.firsts[critical]..shape.ends[critical] {
                    let executed = mix(from.executed[place], to.executed[place], share);
                    mixed.executed[place] = executed.min(shape.limits[place]);
                    mixed.lags[place] = mix(from.lags[place], to.lags[place], share);
                }
                Some(shape.least(&mixed, critical, least, &budget).is_ok())
            };
            if holds(most) == Some(false) {
                most = halve((start, most), holds)?;
            }
        }
        Some(most)
    }

    fn left(&self, settled: &Settled) -> Option<(u64, u64)> {
        let place = self.critical();
        let window = settled.point.executed[place] + settled.point.lags[place] - self.shape.jitters[place];
        Some((self.shape.limits[place].checked_sub(window)?, window))
    }

    fn scale(&self) -> &Scale<'_> {
        self.scale
    }

    fn crew(&self) -> &Crew {
        self.crew
    }

    fn room_at(&self, _: &Settled, _: TaskId, room: u64) -> u64 {
        room
    }

    fn settle_scaled(&self, part: Part, permille: u64, from: Option<&Settled>, delays: Delays) -> Outcome {
        let users = users(self.scale.system, part);
        let body = |task| self.scale.body(task, part, permille);
        self.with_bodies(&users, body, |costs| self.settle(costs, from.map(|from| (from, Requests::Other)), delays))
            .ok_or(None)?
    }

    fn settle_shrunk(&self, tasks: &Range<usize>, from: Option<&Settled>) -> Option<Settled> {
        let ids: Vec<TaskId> = tasks.clone().map(TaskId::new).collect();
        let body = |task| self.scale.body(task, Part::Task(task), 1);
        let from = from.map(|from| (from, Requests::Other));
        self.with_bodies(&ids, body, |costs| self.settle(costs, from, Delays::Own))?.ok()
    }
}

impl<'a> Search<'a> {
    /// The place of the deadline that was missed last.
    fn critical(&self) -> usize {
        self.critical.borrow()[0]
    }

    /// Records that the deadline at `place` was missed, or that it is expected to be the next one.
    fn missed(&self, place: usize) {
        let mut critical = self.critical.borrow_mut();
        critical.retain(|&other| other != place);
        critical.insert(0, place);
        critical.truncate(CRITICAL_MAX);
    }

    /// Returns `None` if a number does not fit.
    fn new(tables: &Tables<'_>, scale: &'a Scale<'a>, (crew, go_on): (&'a Crew, &'a dyn Fn() -> bool)) -> Option<Self> {
        let system = &scale.charged;
        let shape = Shape::new(tables, scale.system.tasks().len())?;
        let sharing = sharing_of(system, |_| true);
        let sizes = |cluster: u16| clustered::size(system, CpuId(cluster));
        let bounds = RefCell::new(Fifo::in_clusters(&sharing, sizes, true).ok()?);
        let costs = shape.ids.iter().map(|&id| system.task(id).wcet.as_ns()).collect();
        let (scratch, critical) =
            (RefCell::new((system.clone(), sharing.clone())), RefCell::new(vec![shape.count() - 1]));
        Some(Self { shape, scale, crew, go_on, system, costs, sharing, scratch, bounds, critical })
    }

    /// Returns what `share` finds for each index below `count`, on all CPUs; see `wide.rs`.
    fn shared<R: Send>(
        &self,
        count: usize,
        share: impl Fn(&Search<'_>, &mut dyn Iterator<Item = usize>) -> Option<Vec<(usize, R)>> + Sync,
    ) -> Option<Vec<R>> {
        let (scale, crew) = (self.scale, self.crew);
        crew.each(
            (count, count),
            self.go_on,
            |indices| share(self, indices),
            |indices| {
                let (tables, go_on) =
                    (Tables::new(&scale.charged, scale.protocol, Omission::NOTHING), || crew.goes_on());
                let search = Search::new(&tables, scale, (crew, &go_on));
                search.map_or_else(|| Some(Vec::new()), |search| share(&search, indices))
            },
        )
    }

    fn all(&self) -> Option<Sensitivity> {
        let unchanged = self.settle(self.costs.clone(), None, Delays::Own).ok();
        self.whole(
            unchanged,
            |count, settled| self.shared(count, |search, indices| search.rooms(settled, indices)),
            |parts, unchanged, rooms| {
                self.shared(parts.len(), |search, indices| search.growths(parts, unchanged, rooms, indices))
            },
        )
    }

    /// Returns the least fixed point of these execution times if all deadlines are met there. `from` is the fixed point
    /// of execution times that are not above. The requests are those of `bounds`. If they differ from those for which
    /// the waits of `from` were computed, so does the response time of their task, and its waits are computed anew.
    fn settle(&self, costs: Vec<u64>, from: Option<(&Settled, Requests)>, delays: Delays) -> Outcome {
        let (from, mut requests) = from.map_or((None, Requests::Same), |(from, requests)| (Some(from), requests));
        let (shape, count) = (&self.shape, costs.len());
        let by_task = |point: &Point| -> Vec<u64> {
            shape.places.iter().map(|&place| point.executed[place] + point.lags[place]).collect()
        };
        let mut settled = match from {
            Some(from) => {
                let executed = (0..count).map(|place| costs[place] + (from.point.executed[place] - from.costs[place]));
                let point = Point { executed: executed.collect(), lags: from.point.lags.clone() };
                Settled { costs, point, waits: from.waits.clone(), responses: from.responses.clone() }
            }
            None => {
                let point = Point { executed: costs.clone(), lags: shape.jitters.clone() };
                Settled { costs, point, waits: Waits::none(count), responses: None }
            }
        };
        let is_risen =
            |place: usize| from.is_none_or(|from| from.point.executed[place] < settled.point.executed[place]);
        let mut risen: Vec<bool> = (0..count).map(is_risen).collect();
        let mut found = vec![Delay::default(); count];
        let budget = Budget::new();
        for _ in 0..ROUNDS_MAX {
            // Longer sections delay others at once.
            if requests == Requests::Same || delays == Delays::Known {
                match self.raise(&mut settled.point, &risen, &budget) {
                    Ok(()) => {}
                    Err(Missed::Deadline) => return Err(Some(Box::new(settled))),
                    Err(Missed::Limit) => return Err(None),
                }
                if delays == Delays::Known {
                    return Ok(settled);
                }
                risen.fill(false);
            }
            let responses = by_task(&settled.point);
            let mut bounds = self.bounds.borrow_mut();
            let before = settled.responses.as_deref();
            let known = bounds.delays_again(&responses, before, &mut settled.waits, &mut found);
            known.map_err(|_| None)?;
            let mut is_settled = requests == Requests::Same;
            (settled.responses, requests) = (Some(responses), Requests::Same);
            for place in (0..count).filter(|&place| !shape.is_interrupt[place]) {
                let delay = &found[shape.ids[place].index()];
                let executed = delay.remote.and_then(|waits| waits.checked_add(delay.arrival));
                let executed = executed.and_then(|delayed| delayed.checked_add(settled.costs[place])).ok_or(None)?;
                let is_risen = executed > settled.point.executed[place];
                risen[place] |= is_risen;
                is_settled &= !is_risen;
                settled.point.executed[place] = executed;
            }
            if is_settled {
                return Ok(settled);
            }
        }
        Err(None)
    }

    /// Raises the lags to their least fixed point for the present execution times with waits. Those that are `risen`
    /// differ from the values for which the lags are a fixed point.
    fn raise(&self, point: &mut Point, risen: &[bool], budget: &Budget) -> Result<(), Missed> {
        let shape = &self.shape;
        if let Some(late) = (0..shape.count()).find(|&place| point.executed[place] > shape.limits[place]) {
            self.missed(late);
            return Err(Missed::Deadline);
        }
        // Deadlines that were missed before are the first to be missed again.
        let is_concerned = |&place: &usize| risen[shape.firsts[place]..shape.ends[place]].contains(&true);
        let first = self.critical.borrow().clone();
        for place in first.into_iter().filter(is_concerned) {
            let lag = shape.least(point, place, point.lags[place] - shape.jitters[place], budget);
            point.lags[place] = lag.inspect_err(|_| self.missed(place))? + shape.jitters[place];
        }
        let first = shape.firsts[self.critical()]..shape.lasts[self.critical()];
        for places in [first.clone(), 0..first.start, first.end..shape.count()] {
            self.raise_in(places, point, risen, budget)?;
        }
        Ok(())
    }

    /// Like [`raise`](Self::raise), for the clusters at these places.
    fn raise_in(&self, places: Range<usize>, point: &mut Point, risen: &[bool], budget: &Budget) -> Result<(), Missed> {
        let shape = &self.shape;
        let (mut place, mut is_risen) = (places.start, false);
        while place < places.end {
            let end = shape.ends[place];
            is_risen &= place > shape.firsts[place];
            is_risen |= risen[place..end].contains(&true);
            let mut again = is_risen;
            let mut rounds = 0;
            // BOUND: ROUNDS_MAX. Equal priorities can raise each other's lags by a nanosecond in each round.
            while again {
                if rounds == ROUNDS_MAX {
                    return Err(Missed::Limit);
                }
                rounds += 1;
                again = false;
                for own in place..end {
                    let lag = shape.least(point, own, point.lags[own] - shape.jitters[own], budget);
                    let lag = lag.inspect_err(|_| self.missed(own))?;
                    let lag = lag + shape.jitters[own];
                    again |= end - place > 1 && lag > point.lags[own];
                    point.lags[own] = lag;
                }
            }
            place = end;
        }
        Ok(())
    }

    /// Returns whether all interrupts have bounds. Without one, the tasks of other clusters may have bounds still.
    fn bounds_interrupts(&self) -> bool {
        let shape = &self.shape;
        let mut point = Point { executed: self.costs.clone(), lags: shape.jitters.clone() };
        let risen = vec![true; shape.count()];
        let is_interrupt = |&place: &usize| shape.is_interrupt[place];
        let mut groups = (0..shape.count()).filter(is_interrupt).filter(|&place| shape.equals[place] == place);
        let budget = Budget::new();
        groups.all(|place| self.raise_in(place..shape.ends[place], &mut point, &risen, &budget).is_ok())
    }

    /// Returns the rooms of these tasks, or `None` if the search was interrupted.
    fn rooms(&self, settled: &Settled, tasks: &mut dyn Iterator<Item = usize>) -> Option<Vec<(usize, u64)>> {
        let slacks = self.slacks(settled);
        let room = |index| {
            let room = self.room(settled, &slacks, self.shape.places[index])?;
            self.crew.add(1);
            Some((index, room))
        };
        tasks.map(room).collect()
    }

    /// Returns how much more work fits into the longest window of each task, by place.
    fn slacks(&self, settled: &Settled) -> Vec<u64> {
        let (shape, point) = (&self.shape, &settled.point);
        let slack = |place: usize| {
            let lag = shape.limits[place] - point.executed[place];
            let (work, _) = shape.work(point, place, lag, &mut Vec::new());
            ((lag + 1) * shape.processors[place]).saturating_sub(work + 1)
        };
        (0..shape.count()).map(slack).collect()
    }

    /// Returns how much longer the task at `place` can execute outside of its sections, or `None` if the search was
    /// interrupted.
    fn room(&self, settled: &Settled, slacks: &[u64], place: usize) -> Option<u64> {
        self.asked()?;
        let shape = &self.shape;
        let most =
            shape.limits[place] - (settled.point.executed[place] + settled.point.lags[place] - shape.jitters[place]);
        // The task with the least slack, for each job of this one, is tried first.
        let jobs = |other: usize| shape.work.period(place).ceil(shape.limits[other] + settled.point.lags[place]).max(1);
        let tightest = (shape.equals[place]..shape.lasts[place]).min_by_key(|&other| match other == place {
            true => most,
            false => slacks[other] / jobs(other),
        });
        self.missed(tightest.unwrap_or(place));
        self.greatest(
            (0, most),
            settled,
            |most| most,
            |extra, from, delays| {
                let mut costs = self.costs.clone();
                costs[place] += extra;
                self.settle(costs, Some((from, Requests::Same)), delays)
            },
        )
    }

    /// Returns the result of `of` for the system with other bodies of these tasks, or `None` if a body is not valid.
    fn with_bodies<R>(
        &self,
        tasks: &[TaskId],
        body: impl Fn(TaskId) -> Option<Vec<Step>>,
        of: impl FnOnce(Vec<u64>) -> R,
    ) -> Option<R> {
        let (system, sharing) = &mut *self.scratch.borrow_mut();
        let is_valid = tasks.iter().all(|&task| body(task).is_some_and(|body| system.set_body(task, body).is_ok()));
        let found = is_valid.then(|| {
            let mut costs = self.costs.clone();
            for &task in tasks {
                costs[self.shape.places[task.index()]] = system.task(task).wcet.as_ns();
                sharing.tasks[task.index()].requests = demands(system, task);
            }
            self.bounds.borrow_mut().set_lengths(sharing, tasks);
            let found = of(costs);
            self.bounds.borrow_mut().set_lengths(&self.sharing, tasks);
            found
        });
        for &task in tasks {
            sharing.tasks[task.index()].clone_from(&self.sharing.tasks[task.index()]);
            // The original body is valid.
            system.set_body(task, self.system.task(task).body.clone()).ok()?;
        }
        found
    }
}
