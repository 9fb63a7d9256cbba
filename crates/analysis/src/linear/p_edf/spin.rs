//! Spinning under partitioned EDF.
//!
//! Symbols: own(q) is the number of requests of the local jobs for q, and n(x,q) that of remote task x within t. A
//! remote request delays once. At the start, only one resource causes delay.
//! - MSRP: `msrp.rs`.
//! - Preemptable spinning: spinning for at most own(q) + sum over i of c(i,q) requests, where c(i,q) counts requests
//!   issued again after preemptions. For task i these are at most jobs(i) * sum over local h with D_h < D_i of
//!   ceil((D_i - D_h) / T_h). For all tasks with deadlines up to D_i they are at most the sum over local h with D_h <
//!   D_i of ceil(t / T_h). At the start, only the local section counts.

use super::super::sum;
use super::super::view::{Entry, add, add_product, product};
use super::processor::{Mode, Processor, Spun};
use crate::Failure;
use crate::rows::mutant::Mutant;

impl Processor<'_> {
    /// Returns the longest local section on each resource that can delay at the start, or `None` if there is none.
    pub(super) fn at_start(&self, t: u64, mode: Mode) -> Vec<Option<Entry>> {
        let mut start: Vec<Option<Entry>> = vec![None; self.view.resources];
        for &i in self.local.iter().filter(|&&i| self.delays_at_start(i, t, mode)) {
            for &request in self.view.requests(i) {
                let q = request.resource;
                let omitted = if self.local_only[q] { Mutant::LocalIcpp } else { Mutant::Boosted };
                // A local resource delays if one of its users is due.
                let conflicts = mode == Mode::DueAny || self.ceilings[q] <= t;
                let is_longer = start[q].is_none_or(|longest| longest.length < request.length);
                if is_longer && (!self.local_only[q] || conflicts) && !self.is_mutant(omitted) {
                    start[q] = Some(request);
                }
            }
        }
        start
    }

    pub(super) fn fifo_preemptable(&self, t: u64, mode: Mode) -> Result<u64, Failure> {
        let own = self.own(t, mode)?;
        let mut seen = vec![0_u64; self.view.clusters * self.view.resources];
        // By resource, the numbers of reissued requests from which on one more adds more, or less.
        let mut steps: Vec<Vec<(u64, u64, u64)>> = vec![Vec::new(); self.view.resources];
        let mut spinning = 0;
        for Spun { entry, pool, .. } in &self.spun {
            let (x, q) = (entry.task, entry.resource);
            let seen = &mut seen[*pool];
            let until = sum(*seen, self.issued(x, entry.count, t)?)?;
            if !self.is_mutant(Mutant::Waiting) {
                add_product(&mut spinning, until.min(own[q]).saturating_sub(*seen), entry.length)?;
            }
            if until > own[q].max(*seen) {
                steps[q].push((seen.saturating_sub(own[q]), entry.length, 0));
                steps[q].push((until - own[q], 0, entry.length));
            }
            *seen = until;
        }
        let mut stretches = Vec::new();
        for (q, steps) in steps.iter_mut().enumerate() {
            steps.sort_unstable();
            let (mut adds, mut from) = (0_u64, 0);
            for &(at, more, less) in steps.iter() {
                if at > from && adds > 0 {
                    stretches.push((adds, at - from, q));
                }
                from = at;
                adds = sum(adds, more)?.checked_sub(less).ok_or(Failure::Overflow)?;
            }
        }
        // The amount that one more request adds falls with their number. Those that add most come first, each as often
        // as the tasks allow.
        stretches.sort_unstable_by(|a, b| b.cmp(a));
        let mut anew = self.anew(t, mode)?;
        if self.is_mutant(Mutant::Again) {
            stretches.clear();
        }
        for (adds, times, q) in stretches {
            add_product(&mut spinning, anew.push(q, times), adds)?;
        }
        sum(spinning, self.at_start(t, mode).into_iter().flatten().map(|entry| entry.length).max().unwrap_or(0))
    }

    /// Returns the requests that tasks may issue again, as a flow from resources to their users to deadlines, shortest
    /// first.
    fn anew(&self, t: u64, mode: Mode) -> Result<Flow, Failure> {
        let mut deadlines: Vec<u64> = self.local.iter().map(|&i| self.view.rows[i].deadline).collect();
        deadlines.sort_unstable();
        deadlines.dedup();
        let (users, levels) = (self.view.resources, self.view.resources + self.local.len());
        let mut flow = Flow::new(levels + deadlines.len() + 1);
        for (user, &i) in self.local.iter().enumerate() {
            let deadline = self.view.rows[i].deadline;
            let mut each = 0;
            for &h in &self.local {
                let row = &self.view.rows[h];
                if row.deadline < deadline {
                    add(&mut each, (deadline - row.deadline).div_ceil(row.period))?;
                }
            }
            let level = levels + deadlines.partition_point(|&other| other < deadline);
            flow.room(users + user, level, product(each, self.jobs(i, t, mode)?)?);
            for request in self.view.requests(i) {
                flow.room(request.resource, users + user, u64::MAX / 2);
            }
        }
        for (place, &deadline) in deadlines.iter().enumerate() {
            let mut all = 0;
            for &h in self.local.iter().filter(|&&h| self.view.rows[h].deadline < deadline) {
                add(&mut all, self.view.jobs_fresh(h, t))?;
            }
            flow.room(levels + place, levels + place + 1, all);
        }
        Ok(flow)
    }
}

/// A flow network. The last node is the sink.
struct Flow {
    nodes: usize,
    /// The capacity that is left from one node to another, by both.
    room: Vec<u64>,
}

impl Flow {
    fn new(nodes: usize) -> Self {
        Self { nodes, room: vec![0; nodes * nodes] }
    }

    fn room(&mut self, from: usize, to: usize, most: u64) {
        self.room[from * self.nodes + to] = most;
    }

    /// Sends at most `wanted` from a node to the last, rerouting earlier flow. Returns the amount.
    fn push(&mut self, from: usize, wanted: u64) -> u64 {
        let (nodes, end) = (self.nodes, self.nodes - 1);
        let mut missing = wanted;
        // BOUND: paths are shortest ones, and there are at most nodes * edges (Edmonds and Karp 1972).
        while missing > 0 {
            let mut came = vec![usize::MAX; nodes];
            came[from] = from;
            let mut queue = vec![from];
            let mut next = 0;
            while let Some(&node) = queue.get(next) {
                next += 1;
                let room = &self.room[node * nodes..][..nodes];
                for (to, (came, _)) in came.iter_mut().zip(room).enumerate().filter(|(_, (_, room))| **room > 0) {
                    if *came == usize::MAX {
                        *came = node;
                        queue.push(to);
                    }
                }
            }
            if came[end] == usize::MAX {
                break;
            }
            let mut amount = missing;
            let mut node = end;
            while node != from {
                amount = amount.min(self.room[came[node] * nodes + node]);
                node = came[node];
            }
            let mut node = end;
            while node != from {
                self.room[came[node] * nodes + node] -= amount;
                let back = &mut self.room[node * nodes + came[node]];
                *back = back.saturating_add(amount);
                node = came[node];
            }
            missing -= amount;
        }
        wanted - missing
    }
}
