//! Compares the packings with the programs that they solve, written constraint by constraint as published.

mod cases;
mod classic;

use super::program::Program;
use super::*;
use crate::{Demand, Failure, Sharer, Sharing};
use std::cell::RefCell;

/// Returns a few random tasks, so that every kind of constraint is sometimes binding. Responses are between execution
/// time and deadline.
fn random(rng: &mut fastrand::Rng) -> (Sharing, Vec<u16>) {
    let (clusters, resources) = (rng.u16(1..4), rng.u16(1..4));
    let mut priorities: Vec<u32> = (0..rng.u32(2..9)).collect();
    rng.shuffle(&mut priorities);
    let task = |&priority: &u32, rng: &mut fastrand::Rng| {
        let period = rng.u64(20..400);
        let mut requests = Vec::new();
        for resource in 0..resources {
            if rng.u8(0..3) > 0 {
                requests.push(Demand { resource, count: rng.u32(1..4), length: rng.u64(1..9) });
            }
        }
        let cost = rng.u64(1..20) + requests.iter().map(|r| u64::from(r.count) * r.length).sum::<u64>();
        let deadline = period.max(cost);
        let response = rng.u64(cost..=deadline);
        Sharer { cost, period: deadline, deadline, response, priority, cluster: rng.u16(0..clusters), requests }
    };
    let tasks = priorities.iter().map(|priority| task(priority, rng)).collect();
    (Sharing { tasks }, (0..resources).map(|_| rng.u16(0..clusters)).collect())
}

/// The requests of another task for one resource: x, q, L, n(x,q), and its variables for direct delay, indirect delay
/// and preemption.
#[derive(Clone, Copy)]
struct Kind {
    x: usize,
    q: u16,
    length: u64,
    count: u64,
    issued: u64,
    d: usize,
    i: usize,
    p: usize,
}

/// The program for task `i`, with the data for writing constraints.
struct Written<'a> {
    tasks: &'a [Sharer],
    i: usize,
    program: RefCell<Program>,
    kinds: Vec<Kind>,
}

impl<'a> Written<'a> {
    fn new(sharing: &'a Sharing, i: usize) -> Self {
        let tasks = &sharing.tasks;
        let mut program = Program::default();
        let mut kinds = Vec::new();
        for (x, task) in tasks.iter().enumerate().filter(|&(x, _)| x != i) {
            for request in &task.requests {
                let count = u64::from(request.count);
                let issued = count * (tasks[i].response + task.response).div_ceil(task.period);
                let mut variable = || program.variable(request.length, issued);
                let (d, i, p) = (variable(), variable(), variable());
                program.at_most(vec![(d, 1), (i, 1), (p, 1)], issued);
                kinds.push(Kind { x, q: request.resource, length: request.length, count, issued, d, i, p });
            }
        }
        Self { tasks, i, program: RefCell::new(program), kinds }
    }

    /// Limits the sum over all kinds of the variables that `which` returns to `most`.
    fn limit(&self, most: u64, which: impl Fn(&Kind) -> Vec<usize>) {
        let terms = self.kinds.iter().flat_map(which).map(|variable| (variable, 1)).collect();
        self.program.borrow_mut().at_most(terms, most);
    }

    fn own(&self, q: u16) -> u64 {
        self.tasks[self.i].requests.iter().filter(|r| r.resource == q).map(|r| u64::from(r.count)).sum()
    }

    fn local(&self, x: usize) -> bool {
        self.tasks[x].cluster == self.tasks[self.i].cluster
    }

    fn higher(&self, x: usize) -> bool {
        self.tasks[x].priority > self.tasks[self.i].priority
    }

    /// Returns the optimum as an integer, as times are integers.
    fn optimum(&self) -> u64 {
        let bound = self.program.borrow().bound().unwrap();
        u64::try_from(bound.numerator / bound.denominator).unwrap()
    }

    fn asked(&self, site: u16, sites: &[u16]) -> u64 {
        let there = self.tasks[self.i].requests.iter().filter(|r| sites[usize::from(r.resource)] == site);
        there.map(|r| u64::from(r.count)).sum()
    }

    /// Adds constraints 2 and 3.
    fn agents(&self, sites: &[u16]) {
        let here = self.tasks[self.i].cluster;
        let others: u64 = self.tasks[self.i].requests.iter().map(|r| u64::from(r.count)).sum();
        let arrivals = 1 + others - self.asked(here, sites);
        self.limit(0, |k| if sites[usize::from(k.q)] == here { vec![] } else { vec![k.p] });
        for x in 0..self.tasks.len() {
            if x != self.i && self.local(x) && !self.higher(x) {
                self.limit(arrivals, |k| if k.x == x { vec![k.p] } else { vec![] });
            }
        }
    }

    /// Returns how often the tasks for which `which` holds make one job wait.
    fn waits(&self, which: impl Fn(usize) -> bool) -> u64 {
        let requests = self.tasks[self.i].requests.iter();
        let issued = |q| self.kinds.iter().filter(|k| k.q == q && which(k.x)).map(|k| k.issued).sum();
        requests.map(|r| u64::from(r.count).min(issued(r.resource))).sum()
    }

    /// Adds constraints 9 to 11.
    fn shared_memory(&self) {
        let arrivals = 1 + self.waits(|x| !self.local(x));
        for x in (0..self.tasks.len()).filter(|&x| x != self.i) {
            let (local, higher) = (self.local(x), self.higher(x));
            if !local {
                self.limit(0, |k| if k.x == x { vec![k.p] } else { vec![] });
            } else {
                let most = if higher { 0 } else { arrivals };
                self.limit(most, |k| if k.x == x { vec![k.d, k.i, k.p] } else { vec![] });
            }
        }
    }
}

fn compare(
    rounds: u32,
    name: &str,
    ours: impl Fn(&Sharing, &[u16]) -> Vec<u64>,
    write: impl Fn(&Written<'_>, &[u16]) -> u64,
) {
    let mut rng = fastrand::Rng::with_seed(6);
    for round in 0..rounds {
        let (sharing, sites) = random(&mut rng);
        let ours = ours(&sharing, &sites);
        for (i, &ours) in ours.iter().enumerate() {
            let optimum = write(&Written::new(&sharing, i), &sites);
            assert_eq!(ours, optimum, "{name}, round {round}, task {i} of {sharing:?} {sites:?}");
        }
    }
}

fn totals(bounds: Result<Vec<Blocked>, Failure>) -> Vec<u64> {
    bounds.unwrap().iter().map(|bound| bound.total().unwrap()).collect()
}

const ROUNDS: u32 = 150;

#[test]
fn dflp_equals_its_program() {
    compare(
        ROUNDS,
        "dflp",
        |sharing, sites| totals(dflp(sharing, sites)),
        |w, sites| {
            w.agents(sites);
            for x in 0..w.tasks.len() {
                for q in 0..4 {
                    w.limit(w.own(q), |k| if (k.x, k.q) == (x, q) { vec![k.d] } else { vec![] });
                }
                for site in 0..4 {
                    let asked = w.asked(site, sites);
                    w.limit(
                        asked,
                        |k| {
                            if k.x == x && sites[usize::from(k.q)] == site { vec![k.d, k.i] } else { vec![] }
                        },
                    );
                }
            }
            w.optimum()
        },
    );
}

#[test]
fn dpcp_equals_its_program() {
    compare(
        ROUNDS,
        "dpcp",
        |sharing, sites| totals(dpcp(sharing, sites)),
        |w, sites| {
            w.agents(sites);
            let me = &w.tasks[w.i];
            let at = |q: u16| sites[usize::from(q)];
            let conflicts = |w: &Written<'_>, q: u16| {
                w.tasks.iter().any(|t| t.priority >= me.priority && t.requests.iter().any(|r| r.resource == q))
            };
            for site in 0..4 {
                let asked = w.asked(site, sites);
                let allowed: Vec<u16> = (0..4).filter(|&q| conflicts(w, q)).collect();
                let lower: Vec<usize> = (0..w.tasks.len()).filter(|&x| !w.higher(x)).collect();
                w.limit(asked, |k| {
                    if lower.contains(&k.x) && at(k.q) == site && allowed.contains(&k.q) {
                        vec![k.d, k.i]
                    } else {
                        vec![]
                    }
                });
                w.limit(0, |k| {
                    if lower.contains(&k.x) && at(k.q) == site && !allowed.contains(&k.q) {
                        vec![k.d, k.i]
                    } else {
                        vec![]
                    }
                });
                let longest =
                    w.kinds.iter().filter(|k| lower.contains(&k.x) && at(k.q) == site && allowed.contains(&k.q));
                let own_longest =
                    me.requests.iter().filter(|r| at(r.resource) == site && allowed.contains(&r.resource));
                let longest = longest.map(|k| k.length).chain(own_longest.map(|r| r.length)).max().unwrap_or(0);
                for kind in w.kinds.clone().iter().filter(|k| !lower.contains(&k.x) && at(k.q) == site) {
                    let mut most = Some(0);
                    for request in me.requests.iter().filter(|r| at(r.resource) == site) {
                        let delay = |time: u64| {
                            let higher = w.kinds.iter().filter(|k| !lower.contains(&k.x) && at(k.q) == site);
                            let each = |k: &Kind| {
                                let other = &w.tasks[k.x];
                                (time + other.response).div_ceil(other.period) * k.count * k.length
                            };
                            request.length + longest + higher.map(each).sum::<u64>()
                        };
                        let mut time = request.length + longest;
                        while time <= me.deadline && delay(time) > time {
                            time = delay(time);
                        }
                        let other = &w.tasks[kind.x];
                        let jobs = (time + other.response).div_ceil(other.period);
                        most = if time <= me.deadline {
                            most.map(|most| most + u64::from(request.count) * kind.count * jobs)
                        } else {
                            None
                        };
                    }
                    if let Some(most) = most {
                        w.program.borrow_mut().at_most(vec![(kind.d, 1), (kind.i, 1)], most);
                    }
                }
            }
            w.optimum()
        },
    );
}

#[test]
fn fmlp_plus_equals_its_program() {
    compare(
        ROUNDS,
        "fmlp+",
        |sharing, _| totals(fmlp_plus(sharing)),
        |w, _| {
            w.shared_memory();
            fifo_of_clusters(w);
            w.optimum()
        },
    );
}

/// Adds constraints 12 to 14.
fn fifo_of_clusters(w: &Written<'_>) {
    for x in (0..w.tasks.len()).filter(|&x| x != w.i) {
        for q in 0..4 {
            w.limit(w.own(q), |k| if (k.x, k.q) == (x, q) { vec![k.d] } else { vec![] });
        }
        let there = |y: usize| w.tasks[y].cluster == w.tasks[x].cluster;
        let (all, without) = (w.waits(there), w.waits(|y| there(y) && y != x));
        let remote = !w.local(x);
        w.limit(all, |k| if k.x == x { vec![k.d, k.i] } else { vec![] });
        if remote {
            w.limit(without, |k| if k.x == x { vec![k.i] } else { vec![] });
        }
    }
}

#[test]
fn generalized_fmlp_plus_equals_its_program() {
    for (processors, policy) in [(1, Policy::Fixed), (2, Policy::Fixed), (1, Policy::Edf), (2, Policy::Edf)] {
        compare(
            ROUNDS / 2,
            "generalized fmlp+",
            |sharing, _| totals(generalized_fmlp_plus(sharing, processors, policy)),
            |w, _| {
                fifo_of_clusters(w);
                let me = &w.tasks[w.i];
                let segments = 1 + 2 * me.requests.iter().map(|r| u64::from(r.count)).sum::<u64>();
                let arrivals = 1 + w.waits(|x| !w.local(x));
                for x in (0..w.tasks.len()).filter(|&x| x != w.i) {
                    let other = &w.tasks[x];
                    let once = processors == 1 && w.local(x) && !w.higher(x);
                    let most = if once { segments.min(arrivals) } else { segments };
                    w.limit(most, |k| if k.x == x { vec![k.d, k.i, k.p] } else { vec![] });
                    let interval = match policy {
                        _ if !w.local(x) => None,
                        Policy::Fixed => (other.priority < me.priority).then_some(me.response),
                        Policy::Edf => {
                            (me.response + other.deadline).checked_sub(me.deadline).filter(|&interval| interval > 0)
                        }
                    };
                    let later = interval.map_or(0, |interval| (interval + other.response).div_ceil(other.period));
                    for kind in w.kinds.clone().iter().filter(|k| k.x == x) {
                        w.program.borrow_mut().at_most(vec![(kind.p, 1)], later * kind.count);
                    }
                }
                w.optimum()
            },
        );
    }
}

#[test]
fn mpcp_equals_its_program() {
    compare(
        ROUNDS,
        "mpcp",
        |sharing, _| totals(mpcp(sharing)),
        |w, _| {
            // What delays once per arrival (p) is apart from what the job waits for (d, i).
            let sharing = Sharing { tasks: w.tasks.to_vec() };
            let arriving = Written::new(&sharing, w.i);
            arriving.shared_memory();
            arriving.limit(0, |k| vec![k.d, k.i]);
            w.limit(0, |k| if w.local(k.x) { vec![k.d, k.p] } else { vec![k.p] });
            w.limit(0, |k| if w.local(k.x) && w.higher(k.x) { vec![k.i] } else { vec![] });
            let (tasks, me) = (w.tasks, &w.tasks[w.i]);
            let ceiling = |x: usize, q: u16| {
                let elsewhere = tasks.iter().filter(|t| t.cluster != tasks[x].cluster);
                elsewhere.filter(|t| t.requests.iter().any(|r| r.resource == q)).map(|t| t.priority).max()
            };
            let held = |x: usize, r: &Demand| {
                let others = (0..tasks.len()).filter(|&o| o != x && tasks[o].cluster == tasks[x].cluster);
                let longest = |o: usize| {
                    let boosted = tasks[o].requests.iter().filter(|s| ceiling(o, s.resource) >= ceiling(x, r.resource));
                    boosted.map(|s| s.length).max().unwrap_or(0)
                };
                r.length + others.map(longest).sum::<u64>()
            };
            let wait = |q: u16| {
                let users = || {
                    let of = |x: usize| tasks[x].requests.iter().filter(|r| r.resource == q).map(move |r| (x, r));
                    (0..tasks.len()).filter(|&x| x != w.i).flat_map(of)
                };
                let lower = users().filter(|&(x, _)| tasks[x].priority < me.priority);
                let start = lower.map(|(x, r)| held(x, r)).max().unwrap_or(0);
                let delay = |time: u64| {
                    let higher = users().filter(|&(x, _)| tasks[x].priority > me.priority);
                    let jobs = |x: usize| (time + tasks[x].response).div_ceil(tasks[x].period);
                    start + higher.map(|(x, r)| jobs(x) * u64::from(r.count) * held(x, r)).sum::<u64>()
                };
                let mut time = start;
                while time <= me.deadline && delay(time) > time {
                    time = delay(time);
                }
                (time <= me.deadline).then_some(time)
            };
            // 15, 16 and 19, with the most direct delays by each kind.
            let mut direct = Vec::new();
            for kind in &w.kinds {
                let own = w.own(kind.q);
                direct.push(match wait(kind.q) {
                    _ if own == 0 => 0,
                    // The owners of the own processor that can stand before the job in a queue.
                    _ if w.local(kind.x) && (!w.higher(kind.x) || ceiling(kind.x, kind.q).is_none()) => 0,
                    _ if !w.higher(kind.x) => kind.issued.min(own),
                    Some(time) => {
                        let other = &tasks[kind.x];
                        kind.issued.min(own * kind.count * (time + other.response).div_ceil(other.period))
                    }
                    None => kind.issued,
                });
            }
            for q in 0..4 {
                let lower: Vec<usize> = (0..tasks.len()).filter(|&x| !w.higher(x)).collect();
                w.limit(w.own(q), |k| if k.q == q && lower.contains(&k.x) { vec![k.d] } else { vec![] });
            }
            let kinds = w.kinds.clone();
            for (kind, &most) in kinds.iter().zip(&direct) {
                w.program.borrow_mut().at_most(vec![(kind.d, 1)], if w.local(kind.x) { 0 } else { most });
                // Constraint 18.
                let mut times = 0;
                for (other, &direct) in kinds.iter().zip(&direct) {
                    let beside = other.x != kind.x && tasks[other.x].cluster == tasks[kind.x].cluster;
                    if beside && other.q != kind.q && ceiling(other.x, other.q) <= ceiling(kind.x, kind.q) {
                        times += direct;
                    }
                }
                w.program.borrow_mut().at_most(vec![(kind.i, 1)], times);
            }
            // Constraint 17.
            for x in (0..tasks.len()).filter(|&x| x != w.i) {
                let mut times = 0;
                for (other, &direct) in kinds.iter().zip(&direct) {
                    let beside = other.x != x && tasks[other.x].cluster == tasks[x].cluster;
                    let preempts =
                        tasks[x].requests.iter().any(|r| ceiling(x, r.resource) >= ceiling(other.x, other.q));
                    times += if beside && preempts { direct } else { 0 };
                }
                w.limit(times, |k| if k.x == x { vec![k.i] } else { vec![] });
            }
            // Constraint 20.
            let most = me.requests.iter().map(|r| Some(wait(r.resource)? * u64::from(r.count))).sum::<Option<u64>>();
            if let Some(most) = most {
                let terms = kinds.iter().flat_map(|k| [(k.d, k.length as i64), (k.i, k.length as i64)]).collect();
                w.program.borrow_mut().at_most(terms, most);
            }
            w.optimum() + arriving.optimum()
        },
    );
}

/// Returns the greatest optimum of spinning (d) and the arrival (i), over the resources that may delay at the arrival.
fn spinning(w: &Written<'_>, preemptable: bool, order: impl Fn(&Written<'_>, Option<u16>)) -> u64 {
    let (tasks, me) = (w.tasks, &w.tasks[w.i]);
    let uses = |x: usize, q: u16| tasks[x].requests.iter().any(|r| r.resource == q);
    let mut most = 0;
    for chosen in (0..4).map(Some).chain([None]) {
        if let Some(q) = chosen {
            let users: Vec<usize> = (0..tasks.len()).filter(|&x| uses(x, q)).collect();
            let lower = users.iter().any(|&x| w.local(x) && tasks[x].priority < me.priority);
            let ceiling = users.iter().any(|&x| tasks[x].priority >= me.priority);
            let shared = users.iter().any(|&x| tasks[x].cluster != tasks[users[0]].cluster);
            if !lower || !(shared || ceiling) {
                continue;
            }
        }
        let w = Written { tasks, i: w.i, program: RefCell::new(w.program.borrow().clone()), kinds: w.kinds.clone() };
        let local: Vec<usize> = (0..tasks.len()).filter(|&x| w.local(x)).collect();
        let higher: Vec<usize> = local.iter().copied().filter(|&x| w.higher(x)).collect();
        w.limit(0, |k| vec![k.p]);
        w.limit(0, |k| if local.contains(&k.x) { vec![k.d] } else { vec![] });
        w.limit(0, |k| {
            let never = higher.contains(&k.x) || chosen != Some(k.q) || (preemptable && !local.contains(&k.x));
            if never { vec![k.i] } else { vec![] }
        });
        w.limit(1, |k| if local.contains(&k.x) { vec![k.i] } else { vec![] });
        for kind in w.kinds.clone().iter().filter(|k| !uses(w.i, k.q)) {
            let other = &tasks[kind.x];
            let overlaps = higher.iter().filter(|&&h| uses(h, kind.q)).map(|&h| {
                me.response.div_ceil(tasks[h].period) * (tasks[h].response + other.response).div_ceil(other.period)
            });
            w.program.borrow_mut().at_most(vec![(kind.d, 1)], overlaps.sum::<u64>() * kind.count);
        }
        order(&w, chosen);
        most = most.max(w.optimum());
    }
    most
}

/// own(q).
fn spun_for(w: &Written<'_>, q: u16) -> u64 {
    let higher = (0..w.tasks.len()).filter(|&h| w.local(h) && w.higher(h));
    let of = |h: usize| {
        let its = w.tasks[h].requests.iter().filter(|r| r.resource == q).map(|r| u64::from(r.count));
        w.tasks[w.i].response.div_ceil(w.tasks[h].period) * its.sum::<u64>()
    };
    w.own(q) + higher.map(of).sum::<u64>()
}

#[test]
fn spinning_equals_its_program() {
    compare(
        ROUNDS,
        "spin",
        |sharing, _| spin_fifo(sharing).unwrap(),
        |w, _| {
            spinning(w, false, |w, chosen| {
                for (q, cluster) in (0..4).flat_map(|q| (0..4).map(move |cluster| (q, cluster))) {
                    let tasks = w.tasks;
                    let here = tasks[w.i].cluster;
                    let there = |k: &Kind| k.q == q && tasks[k.x].cluster == cluster && cluster != here;
                    w.limit(spun_for(w, q), |k| if there(k) { vec![k.d] } else { vec![] });
                    w.limit(u64::from(chosen == Some(q)), |k| if there(k) { vec![k.i] } else { vec![] });
                }
            })
        },
    );
}

#[test]
fn preemptable_spinning_equals_its_program() {
    compare(
        ROUNDS,
        "preemptable spin",
        |sharing, _| spin_fifo_preemptable(sharing).unwrap(),
        |w, _| {
            spinning(w, true, |w, _| {
                let higher = (0..w.tasks.len()).filter(|&h| w.local(h) && w.higher(h));
                let releases = higher.map(|h| w.tasks[w.i].response.div_ceil(w.tasks[h].period)).sum();
                let mut anew = Vec::new();
                for q in 0..4 {
                    let own = spun_for(w, q);
                    let variable = w.program.borrow_mut().variable(0, if own == 0 { 0 } else { releases });
                    anew.push((variable, 1));
                    for cluster in (0..4).filter(|&cluster| cluster != w.tasks[w.i].cluster) {
                        let its = w.kinds.iter().filter(|k| k.q == q && w.tasks[k.x].cluster == cluster);
                        let terms = its.map(|k| (k.d, 1)).chain([(variable, -1)]).collect();
                        w.program.borrow_mut().at_most(terms, own);
                    }
                }
                w.program.borrow_mut().at_most(anew, releases);
            })
        },
    );
}

#[test]
fn unordered_spinning_equals_its_program() {
    compare(
        ROUNDS,
        "unordered spin",
        |sharing, _| spin_unordered(sharing).unwrap(),
        |w, _| {
            spinning(w, false, |w, chosen| {
                let me = &w.tasks[w.i];
                for kind in w.kinds.clone().iter().filter(|k| !w.local(k.x)) {
                    let delay = |time: u64| {
                        let each = |k: &Kind| {
                            let other = &w.tasks[k.x];
                            (time + other.response).div_ceil(other.period) * k.count * k.length
                        };
                        1 + w.kinds.iter().filter(|k| k.q == kind.q && !w.local(k.x)).map(each).sum::<u64>()
                    };
                    let mut time = 1;
                    while time <= me.period && delay(time) > time {
                        time = delay(time);
                    }
                    let time = if time <= me.period { time } else { me.response };
                    let other = &w.tasks[kind.x];
                    let passes = (time + other.response).div_ceil(other.period) * kind.count;
                    w.program.borrow_mut().at_most(vec![(kind.d, 1)], passes * spun_for(w, kind.q));
                    w.program.borrow_mut().at_most(vec![(kind.i, 1)], if chosen == Some(kind.q) { passes } else { 0 });
                }
            })
        },
    );
}

#[test]
fn a_program_without_a_constraint_differs_from_the_packing() {
    // The mutant of the comparisons: without constraint 14, the program is another one.
    let mut rng = fastrand::Rng::with_seed(6);
    let mut differs = 0;
    for _ in 0..ROUNDS {
        let (sharing, _) = random(&mut rng);
        for (i, &ours) in totals(fmlp_plus(&sharing)).iter().enumerate() {
            let w = Written::new(&sharing, i);
            w.shared_memory();
            let before = w.optimum();
            assert!(before >= ours);
            differs += u32::from(before > ours);
        }
    }
    assert!(differs > 0);
}

#[test]
fn shorter_execution_times_stay_accepted() {
    let mut rng = fastrand::Rng::with_seed(8);
    let mut met = 0;
    for _ in 0..300 {
        let (mut sharing, sites) = random(&mut rng);
        for task in &mut sharing.tasks {
            task.period *= 6;
            task.deadline = task.period;
        }
        for protocol in
            [Locking::Mpcp, Locking::Dpcp(&sites), Locking::Dflp(&sites), Locking::FmlpPlus, Locking::SpinFifo]
        {
            let Ok(before) = responses(&sharing, protocol) else { continue };
            met += 1;
            let mut shorter = sharing.clone();
            let one = rng.usize(0..shorter.tasks.len());
            shorter.tasks[one].cost -= 1;
            shorter.tasks[one].deadline = shorter.tasks[one].period;
            if let Some(request) = shorter.tasks[one].requests.first_mut() {
                request.length -= 1;
            }
            let after = responses(&shorter, protocol).unwrap();
            assert!(before.responses.iter().zip(&after.responses).all(|(before, after)| after <= before));
        }
    }
    assert!(met > 500, "{met}");
}
