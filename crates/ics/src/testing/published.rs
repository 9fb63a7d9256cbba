//! Statements of the paper that cannot be meant as printed (`docs/errata.md`).

/// The nodes of a commit of section 3.3, by number.
struct Published {
    pool: Option<usize>,
    next: [Option<usize>; 4],
}

impl Published {
    /// Puts nodes 1, 2 and 3 into the pool.
    fn new() -> Self {
        Self { pool: Some(1), next: [None, Some(2), Some(3), None] }
    }

    /// Executes the first two writes of the commit record: `g_tail->next = current`, `pool = g_head`.
    fn commit(&mut self, current: Option<usize>, g_head: Option<usize>, g_tail: Option<usize>) {
        if let Some(tail) = g_tail {
            self.next[tail] = current;
        }
        self.pool = g_head;
    }
}

/// The commit replaces node 0 correctly. An insertion, which frees no node, loses the pool.
#[test]
fn a_published_insertion_loses_the_pool() {
    let mut replaces = Published::new();
    let current = replaces.next[1];
    replaces.commit(current, Some(0), Some(0));
    assert_eq!((replaces.pool, replaces.next[0]), (Some(0), Some(2)));
    let mut inserts = Published::new();
    let current = inserts.next[1];
    inserts.commit(current, None, None);
    assert_eq!(inserts.pool, None, "nodes 2 and 3 are lost");
}

/// The assignment `process_count = cs_count` precedes the point of restart.
///
/// A section that restarted once therefore restarts at each later switch, with or without a conflict.
#[test]
fn a_published_section_restarts_at_each_switch() {
    let restarts_of = |rereads_count: bool| {
        let mut cs_count = 0;
        let mut process_count = cs_count;
        let mut restarts = 0;
        for switch in 0..10 {
            if switch == 0 {
                cs_count += 1;
            }
            if process_count != cs_count {
                restarts += 1;
                if rereads_count {
                    process_count = cs_count;
                }
            }
        }
        restarts
    };
    assert_eq!((restarts_of(false), restarts_of(true)), (10, 1));
}
