//! Tasks and their requests, prepared for many passes: with dense numbers, and the longest sections first.

use crate::{Failure, Sharing};

/// A task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub cost: u64,
    pub period: u64,
    pub deadline: u64,
    pub response: u64,
    /// The longest time from the arrival of a job to its release, J.
    pub jitter: u64,
    /// The priority. A greater number is more urgent.
    pub priority: u32,
    pub cluster: usize,
    /// The range of its own requests in [`View::own`].
    first: usize,
    last: usize,
}

/// The requests of one job of a task for one resource.
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
    /// The longest section first.
    pub entries: Vec<Entry>,
    /// By task.
    own: Vec<Entry>,
    /// The number of resources, which are numbered from 0.
    pub resources: usize,
    /// The number of clusters, which are numbered from 0.
    pub clusters: usize,
    /// The caller's numbers of the resources.
    resource_ids: Vec<u16>,
    /// The caller's numbers of the clusters.
    cluster_ids: Vec<u16>,
}

/// Returns the distinct `numbers` in increasing order.
fn dense(numbers: impl Iterator<Item = u16>) -> Vec<u16> {
    let mut all: Vec<u16> = numbers.collect();
    all.sort_unstable();
    all.dedup();
    all
}

impl View {
    /// Creates the view of the tasks and clusters of `sharing`, and of the clusters `sites`.
    ///
    /// # Errors
    /// Returns [`Failure::Unsupported`] if a period is 0.
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

    /// Returns the requests of one job of `task`.
    pub fn requests(&self, task: usize) -> &[Entry] {
        &self.own[self.rows[task].first..self.rows[task].last]
    }

    /// Returns the number of tasks.
    pub fn tasks(&self) -> usize {
        self.rows.len()
    }

    /// Returns the most jobs of `task` that execute in an interval: ceil((t + R) / T).
    pub fn jobs(&self, task: usize, interval: u64) -> Result<u64, Failure> {
        let row = &self.rows[task];
        Ok(interval.checked_add(row.response).ok_or(Failure::Overflow)?.div_ceil(row.period))
    }

    /// Computes [`jobs`](Self::jobs) of every task while one job of task `i` is pending.
    pub fn jobs_of_all(&self, i: usize, into: &mut Vec<u64>) -> Result<(), Failure> {
        into.clear();
        let interval = self.rows[i].response;
        for task in 0..self.tasks() {
            into.push(self.jobs(task, interval)?);
        }
        Ok(())
    }

    /// Returns the most jobs of `task` that execute within a level-i busy interval that starts with none pending:
    /// ceil((t + J) / T).
    pub fn jobs_fresh(&self, task: usize, interval: u64) -> u64 {
        let row = &self.rows[task];
        interval.saturating_add(row.jitter).div_ceil(row.period)
    }

    /// Returns the caller's number of a resource.
    pub fn resource_id(&self, resource: usize) -> u16 {
        self.resource_ids[resource]
    }

    /// Returns the limit up to which bounds on single waits of `i` are searched. A wait beyond R limits nothing, but
    /// while R is not final the limit must not fall as R grows.
    pub fn wait_most(&self, i: usize) -> u64 {
        self.rows[i].response.max(self.rows[i].deadline)
    }

    /// Returns whether both tasks are on one cluster.
    pub fn is_local(&self, i: usize, x: usize) -> bool {
        self.rows[i].cluster == self.rows[x].cluster
    }

    /// Returns whether `x` is less urgent than `i`. Requests of equal priority are served in their order: each such
    /// task can precede one request of `i`, whereas of all less urgent tasks only one can.
    pub fn is_lower(&self, i: usize, x: usize) -> bool {
        self.rows[x].priority < self.rows[i].priority
    }

    /// Returns whether `x` is more urgent than `i`.
    pub fn is_higher(&self, i: usize, x: usize) -> bool {
        self.rows[x].priority > self.rows[i].priority
    }

    /// Computes the number of requests of one job of `i` for each resource.
    pub fn own_counts(&self, i: usize, into: &mut Vec<u64>) -> Result<(), Failure> {
        into.clear();
        into.resize(self.resources, 0);
        for request in self.requests(i) {
            add(&mut into[request.resource], request.count)?;
        }
        Ok(())
    }

    /// Returns the priority of the most urgent user of each resource.
    pub fn ceilings(&self) -> Vec<u32> {
        let mut ceilings = vec![0; self.resources];
        for entry in &self.entries {
            ceilings[entry.resource] = ceilings[entry.resource].max(self.rows[entry.task].priority);
        }
        ceilings
    }

    /// Returns for each resource whether only tasks of one cluster use it.
    pub fn local_only(&self) -> Vec<bool> {
        let mut user = vec![None; self.resources];
        let mut local = vec![true; self.resources];
        for entry in &self.entries {
            let cluster = self.rows[entry.task].cluster;
            local[entry.resource] &= *user[entry.resource].get_or_insert(cluster) == cluster;
        }
        local
    }

    /// Returns the cluster with the caller's number `id`.
    pub fn cluster(&self, id: u16) -> usize {
        self.cluster_ids.partition_point(|&cluster| cluster < id)
    }

    /// Returns the cluster on which `sites`, by the caller's numbers, places each resource.
    ///
    /// # Errors
    /// Returns [`Failure::Unsupported`] if a resource has no processor.
    pub fn placed(&self, sites: &[u16]) -> Result<Vec<usize>, Failure> {
        let place = |(resource, &id): (usize, &u16)| match sites.get(usize::from(id)) {
            Some(site) => Ok(self.cluster_ids.partition_point(|cluster| cluster < site)),
            None => {
                let task = self.own.iter().find(|entry| entry.resource == resource).map_or(0, |entry| entry.task);
                Err(Failure::Unsupported { task, what: "it has a request for a resource without a processor" })
            }
        };
        self.resource_ids.iter().enumerate().map(place).collect()
    }
}

/// Performs `sum += more`.
pub(super) fn add(sum: &mut u64, more: u64) -> Result<(), Failure> {
    *sum = sum.checked_add(more).ok_or(Failure::Overflow)?;
    Ok(())
}

/// Performs `sum += a * b`.
pub(super) fn add_product(sum: &mut u64, a: u64, b: u64) -> Result<(), Failure> {
    add(sum, product(a, b)?)
}

/// Returns `a * b`.
pub(super) fn product(a: u64, b: u64) -> Result<u64, Failure> {
    a.checked_mul(b).ok_or(Failure::Overflow)
}
