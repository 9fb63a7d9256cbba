//! What the paper prints, where it cannot be meant so (docs/errata.md).

/// Nodes by number, as a commit of section 3.3 has them.
struct Published {
    pool: Option<usize>,
    next: [Option<usize>; 4],
}

impl Published {
    /// Nodes 1, 2 and 3 in the pool.
    fn new() -> Self {
        Self { pool: Some(1), next: [None, Some(2), Some(3), None] }
    }

    /// The first two writes of the commit record: `g_tail->next = current`, `pool = g_head`.
    fn commit(&mut self, current: Option<usize>, g_head: Option<usize>, g_tail: Option<usize>) {
        if let Some(tail) = g_tail {
            self.next[tail] = current;
        }
        self.pool = g_head;
    }
}

/// Replacing node 0 by one of the pool is right; an insertion, which makes no garbage, leaves no pool.
#[test]
fn a_published_insertion_loses_the_pool() {
    let mut replaces = Published::new();
    let current = replaces.next[1];
    replaces.commit(current, Some(0), Some(0));
    assert_eq!((replaces.pool, replaces.next[0]), (Some(0), Some(2)));
    let mut inserts = Published::new();
    let current = inserts.next[1];
    inserts.commit(current, None, None);
    assert_eq!(inserts.pool, None, "nodes 2 and 3 are nobody's");
}

/// `process_count = cs_count` is before the place where a section begins again: so it is begun again at each switch from then on, conflict or not.
#[test]
fn a_published_section_that_began_again_does_so_at_each_switch() {
    let begins_again = |reads_count_again: bool| {
        let mut cs_count = 0;
        let mut process_count = cs_count;
        let mut restarts = 0;
        for switch in 0..10 {
            if switch == 0 {
                cs_count += 1;
            }
            if process_count != cs_count {
                restarts += 1;
                if reads_count_again {
                    process_count = cs_count;
                }
            }
        }
        restarts
    };
    assert_eq!((begins_again(false), begins_again(true)), (10, 1));
}
