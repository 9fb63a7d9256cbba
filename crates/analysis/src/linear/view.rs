//! Tasks and their requests, laid out for many passes: dense numbers, the longest sections first.

use crate::{Failure, Sharing};

/// A task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub cost: u64,
    pub period: u64,
    pub deadline: u64,
    pub response: u64,
    /// J: how long after its arrival a job may be released.
    pub jitter: u64,
    /// Greater is more urgent.
    pub priority: u32,
    pub cluster: usize,
    /// Where its own requests are in [`View::own`].
    first: usize,
    last: usize,
}

/// What one job of a task asks of one resource.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub task: usize,
    pub resource: usize,
    pub count: u64,
    pub length: u64,
}

/// Tasks and requests.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub rows: Vec<Row>,
    /// Longest section first.
    pub entries: Vec<Entry>,
    /// By task.
    own: Vec<Entry>,
    /// Resources are numbered from 0 to here.
    pub resources: usize,
    /// Clusters are numbered from 0 to here.
    pub clusters: usize,
    /// The numbers resources had.
    resource_ids: Vec<u16>,
    /// The numbers clusters had.
    cluster_ids: Vec<u16>,
}

/// `numbers`, each once, in order.
fn dense(numbers: impl Iterator<Item = u16>) -> Vec<u16> {
    let mut all: Vec<u16> = numbers.collect();
    all.sort_unstable();
    all.dedup();
    all
}

impl View {
    /// The tasks and clusters of `sharing`, and the clusters `sites`.
    ///
    /// # Errors
    /// Where a period is 0.
    pub fn new(sharing: &Sharing, sites: &[u16]) -> Result<Self, Failure> {
        let tasks = &sharing.tasks;
        if let Some(task) = tasks.iter().position(|task| task.period == 0) {
            return Err(Failure::Unsupported { task, what: "its period is 0" });
        }
        let asked = || tasks.iter().enumerate().flat_map(|(x, t)| t.requests.iter().map(move |r| (x, r)));
        let resource_ids = dense(asked().filter(|(_, r)| r.count > 0).map(|(_, r)| r.resource));
        let cluster_ids = dense(tasks.iter().map(|t| t.cluster).chain(sites.iter().copied()));
        let mut own = Vec::new();
        let mut rows = Vec::with_capacity(tasks.len());
        for (x, task) in tasks.iter().enumerate() {
            let first = own.len();
            own.extend(task.requests.iter().filter(|r| r.count > 0).map(|r| Entry {
                task: x,
                resource: resource_ids.partition_point(|&id| id < r.resource),
                count: r.count.into(),
                length: r.length,
            }));
            rows.push(Row {
                cost: task.cost,
                period: task.period,
                deadline: task.deadline,
                response: task.response,
                jitter: 0,
                priority: task.priority,
                cluster: cluster_ids.partition_point(|&id| id < task.cluster),
                first,
                last: own.len(),
            });
        }
        let mut entries = own.clone();
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.length));
        Ok(Self {
            rows,
            entries,
            own,
            resources: resource_ids.len(),
            clusters: cluster_ids.len(),
            resource_ids,
            cluster_ids,
        })
    }

    /// What one job of `task` asks for.
    pub fn requests(&self, task: usize) -> &[Entry] {
        &self.own[self.rows[task].first..self.rows[task].last]
    }

    /// How many tasks there are.
    pub fn tasks(&self) -> usize {
        self.rows.len()
    }

    /// Most jobs of `task` that execute in an interval: ceil((t + R) / T).
    pub fn jobs(&self, task: usize, interval: u64) -> Result<u64, Failure> {
        let row = &self.rows[task];
        Ok(interval.checked_add(row.response).ok_or(Failure::Overflow)?.div_ceil(row.period))
    }

    /// [`jobs`](Self::jobs) of every task while one job of task `i` is pending.
    pub fn jobs_of_all(&self, i: usize, into: &mut Vec<u64>) -> Result<(), Failure> {
        into.clear();
        let interval = self.rows[i].response;
        for task in 0..self.tasks() {
            into.push(self.jobs(task, interval)?);
        }
        Ok(())
    }

    /// Most jobs of `task` that execute within a level-i busy interval that starts with none pending:
    /// ceil((t + J) / T).
    pub fn jobs_fresh(&self, task: usize, interval: u64) -> u64 {
        let row = &self.rows[task];
        interval.saturating_add(row.jitter).div_ceil(row.period)
    }

    /// The number that a resource had.
    pub fn resource_id(&self, resource: usize) -> u16 {
        self.resource_ids[resource]
    }

    /// Up to where bounds on single waits of `i` are sought: what is beyond R limits nothing, but with R not final it
    /// must not fall as R grows.
    pub fn wait_most(&self, i: usize) -> u64 {
        self.rows[i].response.max(self.rows[i].deadline)
    }

    /// Are they on one cluster?
    pub fn is_local(&self, i: usize, x: usize) -> bool {
        self.rows[i].cluster == self.rows[x].cluster
    }

    /// Is `x` less urgent than `i`? Requests of equal urgency are served as they come: each such task can be before one of `i`, where of the less
    /// urgent one is.
    pub fn is_lower(&self, i: usize, x: usize) -> bool {
        self.rows[x].priority < self.rows[i].priority
    }

    /// Is `x` more urgent than `i`?
    pub fn is_higher(&self, i: usize, x: usize) -> bool {
        self.rows[x].priority > self.rows[i].priority
    }

    /// Of each resource, its number of requests by one job of `i`.
    pub fn own_counts(&self, i: usize, into: &mut Vec<u64>) -> Result<(), Failure> {
        into.clear();
        into.resize(self.resources, 0);
        for request in self.requests(i) {
            add(&mut into[request.resource], request.count)?;
        }
        Ok(())
    }

    /// Of each resource, the priority of its most urgent user.
    pub fn ceilings(&self) -> Vec<u32> {
        let mut ceilings = vec![0; self.resources];
        for entry in &self.entries {
            ceilings[entry.resource] = ceilings[entry.resource].max(self.rows[entry.task].priority);
        }
        ceilings
    }

    /// Of each resource, whether tasks of one cluster alone use it.
    pub fn local_only(&self) -> Vec<bool> {
        let mut user = vec![None; self.resources];
        let mut local = vec![true; self.resources];
        for entry in &self.entries {
            let cluster = self.rows[entry.task].cluster;
            local[entry.resource] &= *user[entry.resource].get_or_insert(cluster) == cluster;
        }
        local
    }

    /// Of each resource, the cluster that `sites`, by the resources' own numbers, places it on.
    ///
    /// # Errors
    /// Where one is nowhere.
    pub fn placed(&self, sites: &[u16]) -> Result<Vec<usize>, Failure> {
        let place = |(resource, &id): (usize, &u16)| match sites.get(usize::from(id)) {
            Some(site) => Ok(self.cluster_ids.partition_point(|cluster| cluster < site)),
            None => {
                let task = self.own.iter().find(|entry| entry.resource == resource).map_or(0, |entry| entry.task);
                Err(Failure::Unsupported { task, what: "it asks for a resource that has no place" })
            }
        };
        self.resource_ids.iter().enumerate().map(place).collect()
    }
}

/// `sum += more`.
pub(super) fn add(sum: &mut u64, more: u64) -> Result<(), Failure> {
    *sum = sum.checked_add(more).ok_or(Failure::Overflow)?;
    Ok(())
}

/// `sum += a * b`.
pub(super) fn add_product(sum: &mut u64, a: u64, b: u64) -> Result<(), Failure> {
    add(sum, product(a, b)?)
}

/// `a * b`.
pub(super) fn product(a: u64, b: u64) -> Result<u64, Failure> {
    a.checked_mul(b).ok_or(Failure::Overflow)
}
