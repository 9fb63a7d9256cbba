//! The requests of a task set in order: by task, and by resource and cluster.

use crate::Sharer;

/// The requests of a task for one resource, in one of the tables.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entry {
    /// The length L.
    pub(crate) length: u64,
    pub(crate) task: u32,
    /// The number N; above 0.
    pub(crate) count: u32,
    /// The cluster of its group.
    pub(crate) cluster: u32,
    /// Whether it is the first of its group, and thus the longest.
    pub(crate) leads: bool,
}

/// The requests for one resource of the tasks of one cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    /// The place of the cluster among those with tasks.
    pub(crate) cluster: u32,
    pub(super) first: u32,
    pub(super) last: u32,
}

/// A task in the tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) priority: u32,
    /// The place of its cluster among those with tasks.
    pub(crate) cluster: u32,
    pub(super) first: u32,
    pub(super) last: u32,
}

/// The requests of a task for a resource, which is given by its place among those requested.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) length: u64,
    pub(crate) resource: u32,
    pub(crate) count: u32,
}

/// Returns the tasks by cluster, the most urgent first; the start of each cluster; its number; and the rows of the
/// tasks.
pub(super) fn by_cluster(tasks: &[Sharer]) -> (Vec<u32>, Vec<u32>, Vec<u16>, Vec<Row>) {
    let highest = tasks.iter().map(|task| usize::from(task.cluster) + 1).max().unwrap_or(0);
    let mut places = vec![0_u32; highest];
    for task in tasks {
        places[usize::from(task.cluster)] += 1;
    }
    let mut clusters = Vec::with_capacity(highest.min(tasks.len()) + 1);
    let mut ids = Vec::with_capacity(highest.min(tasks.len()));
    let mut next = 0;
    for (id, place) in places.iter_mut().enumerate() {
        let here = *place;
        if here > 0 {
            *place = ids.len() as u32;
            clusters.push(next);
            ids.push(id as u16);
            next += here;
        }
    }
    let mut free = clusters.clone();
    clusters.push(next);
    let mut order = vec![0; tasks.len()];
    let mut rows = Vec::with_capacity(tasks.len());
    for (index, task) in tasks.iter().enumerate() {
        let cluster = places[usize::from(task.cluster)];
        rows.push(Row { priority: task.priority, cluster, first: 0, last: 0 });
        order[free[cluster as usize] as usize] = index as u32;
        free[cluster as usize] += 1;
    }
    for ends in clusters.windows(2) {
        order[ends[0] as usize..ends[1] as usize].sort_by_key(|task| std::cmp::Reverse(rows[*task as usize].priority));
    }
    (order, clusters, ids, rows)
}

/// Returns the requests by resource, by cluster, and the longest first; their groups; and the start of each resource's
/// groups. `askers` contains the number of tasks with requests for each resource. Only the requests of the tasks in
/// `order`, which is by cluster, are included. With `together`, all requests for a resource form one group.
pub(super) fn by_resource(
    rows: &[Row],
    asked: &[Asked],
    mut askers: Vec<(u32, u32)>,
    order: &[u32],
    together: bool,
) -> (Vec<Entry>, Vec<Group>, Vec<u32>) {
    // Room for the entries of each resource, which are filled in the order of the tasks.
    let mut next = 0;
    for (count, _) in &mut askers {
        let here = *count;
        *count = next;
        next += here;
    }
    let mut entries = vec![Entry::default(); if order.is_empty() { 0 } else { asked.len() }];
    for &task in order {
        let row = rows[task as usize];
        for request in &asked[row.first as usize..row.last as usize] {
            let (free, _) = &mut askers[request.resource as usize];
            let Asked { length, count, .. } = *request;
            entries[*free as usize] = Entry { length, task, count, cluster: row.cluster, leads: false };
            *free += 1;
        }
    }
    let mut groups = Vec::with_capacity(entries.len());
    let mut resources = Vec::with_capacity(askers.len() + 1);
    let mut first = 0;
    for &(last, _) in &askers {
        resources.push(groups.len() as u32);
        if entries.is_empty() {
            continue;
        }
        let its = &mut entries[first as usize..last as usize];
        for group in its.chunk_by_mut(|a, b| together || a.cluster == b.cluster) {
            longest_first(group);
            group[0].leads = true;
            let last = first + group.len() as u32;
            groups.push(Group { cluster: group[0].cluster, first, last });
            first = last;
        }
    }
    resources.push(groups.len() as u32);
    (entries, groups, resources)
}

/// Puts the entries of a group in order.
pub(super) fn longest_first(entries: &mut [Entry]) {
    entries.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.length));
}
