use super::*;

/// The claims on a task that has a thread.
fn claims_of_thread(base: Priority, own_cpu: CpuId, level: u8, machines: usize) -> Claims {
    Claims { is_vacant: false, ..Claims::new(base, own_cpu, level, machines) }
}

#[test]
fn a_stale_priority_is_dropped() {
    let [low, high, top] = [1, 2, 3].map(Priority::base);
    let mut claims = claims_of_thread(low, CpuId(0), 1, 1);
    claims.set(0, top, 2);
    claims.set(0, high, 1);
    assert_eq!(claims.effective(), top, "epoch 1 arrived after epoch 2");
    claims.set(0, low, 3);
    assert_eq!(claims.effective(), low);
}

#[test]
fn epochs_are_compared_across_their_wrap() {
    let [low, high, top] = [1, 2, 3].map(Priority::base);
    let mut claims = claims_of_thread(low, CpuId(0), 1, 1);
    claims.machines[0].priority_epoch = u32::MAX;
    claims.set(0, top, 0);
    assert_eq!(claims.effective(), top);
    claims.set(0, high, u32::MAX);
    assert_eq!(claims.effective(), top);
}

/// The priority that a setter sets; the level and the call, once that has begun; its progress.
type Other = (Priority, Option<(u8, u32)>, u8);

/// The level of the thread before it joined, and after it left.
const OUTSIDE: u8 = 0;

/// The kernel's level, and three setters of it: the task itself, twice, and two others. At last the thread of the task
/// leaves. Without `repeats` and `waits`, which the implementation does, a late call stays in effect: of two others,
/// and after the thread has left.
#[derive(Clone)]
struct Tellers {
    claims: Claims,
    kernel: u8,
    own: Vec<Option<Priority>>,
    /// For each of the others: the priority that it sets; the level and the call, once that has begun; whether the
    /// kernel has it.
    others: [Other; 2],
    has_left: bool,
    repeats: bool,
    waits: bool,
}

impl Tellers {
    fn level(&self) -> u8 {
        self.claims.effective().level() as u8
    }

    /// Executes one step of a setter. Returns `false` if the setter is done.
    fn step(&mut self, teller: usize) -> bool {
        let Some(other) = teller.checked_sub(1) else {
            let Some(asking) = self.own.pop() else { return self.leave() };
            self.claims.asking = asking;
            let level = self.level();
            if self.claims.begin_call(level).is_some() {
                (self.kernel, self.claims.level) = (level, level);
            }
            return true;
        };
        match self.others[other] {
            (priority, None, 0) => {
                self.claims.set(other, priority, 1);
                let level = self.level();
                let call = self.claims.begin_call_unguarded(level);
                self.others[other] = (priority, call.map(|call| (level, call)), if call.is_some() { 1 } else { 3 });
            }
            (priority, Some((level, call)), 1) => {
                self.kernel = level;
                self.others[other] = (priority, Some((level, call)), 2);
            }
            (priority, Some((level, call)), 2) => {
                self.others[other] = (priority, None, 3);
                if self.claims.end_call(call) {
                    self.claims.level = level;
                } else if self.repeats {
                    self.claims.calls = self.claims.calls.wrapping_add(1);
                    (self.kernel, self.claims.level) = (self.level(), self.level());
                }
            }
            _ => return false,
        }
        true
    }

    /// Returns `false` if the thread has left, or must look again later.
    fn leave(&mut self) -> bool {
        if self.has_left || self.waits && !self.claims.vacate() {
            return false;
        }
        (self.has_left, self.kernel) = (true, OUTSIDE);
        true
    }

    /// Whether the kernel has the effective level whenever no call is in progress, and the level of outside once the
    /// thread has left, in every interleaving.
    fn ends_well(&self) -> bool {
        let due = if self.has_left { OUTSIDE } else { self.level() };
        let is_right = self.claims.calls_under_way > 0 || self.kernel == due;
        let goes_on = |teller| {
            let mut next = self.clone();
            !next.step(teller) || next.ends_well()
        };
        is_right && (0..3).all(goes_on)
    }
}

#[test]
fn a_thread_leaves_after_the_moves_in_progress() {
    let mut claims = claims_of_thread(Priority::base(1), CpuId(0), 1, 2);
    assert_eq!(claims.begin_move(1, 1, CpuId(1)), Some(1));
    assert_eq!(claims.begin_move(1, 2, CpuId(0)), Some(2));
    assert_eq!(claims.begin_move(1, 1, CpuId(1)), None, "a later move was recorded");
    for _ in 0..2 {
        assert!(!claims.vacate());
        claims.moves_under_way -= 1;
    }
    assert!(claims.vacate());
    assert_eq!(claims.begin_move(1, 3, CpuId(1)), None, "the thread has left");
}

#[test]
fn the_kernel_ends_with_the_last_change() {
    let base = Priority::base(1);
    for (low, high) in [(2, 3), (3, 2), (5, 6), (6, 5), (2, 6)] {
        let tellers = |repeats, waits| Tellers {
            claims: claims_of_thread(base, CpuId(0), 1, 2),
            kernel: 1,
            // The task rises to 4 and falls again, twice.
            own: vec![None, Some(Priority::base(4)), None, Some(Priority::base(4))],
            others: [(Priority::base(low), None, 0), (Priority::base(high), None, 0)],
            has_left: false,
            repeats,
            waits,
        };
        assert!(tellers(true, true).ends_well());
        assert!(!tellers(false, true).ends_well(), "without the repetition a late call stays in effect");
        assert!(!tellers(true, false).ends_well(), "without the wait it stays after the thread has left");
    }
}

#[test]
fn a_base_priority_falls_where_no_machine_holds_it_up() {
    let mut claims = claims_of_thread(Priority::base(5), CpuId(0), 1, 1);
    claims.base = Priority::base(0);
    assert_eq!(claims.effective(), Priority::base(0));
}

#[test]
fn the_highest_claim_counts() {
    let mut claims = claims_of_thread(Priority::base(1), CpuId(0), 1, 2);
    claims.set(0, Priority::base(5), 1);
    claims.set(1, Priority::base(2).boosted(), 1);
    assert_eq!(claims.effective(), Priority::base(2).boosted());
    claims.set(1, Priority::base(1), 2);
    assert_eq!(claims.effective(), Priority::base(5));
    claims.asking = Some(Priority::base(9));
    assert_eq!(claims.effective(), Priority::base(9));
}

#[test]
fn a_decision_about_others_is_noticed() {
    let [me, one, other] = [0, 1, 2].map(TaskId);
    let wake = |task| Action::Wake { task };
    let rise = |task| Action::SetPriority { task, priority: Priority::MIN, epoch: 1 };
    let about = |list: &[Action]| {
        Decision { list: list.to_vec(), is_granted: false, restarts: false, told: Ok(()), turn: 0 }.is_about_others(me)
    };
    assert!(!about(&[]) && !about(&[rise(me)]) && !about(&[wake(one), rise(me)]));
    assert!(about(&[wake(one), wake(other)]) && about(&[rise(one), wake(one), rise(me)]));
    assert!(about(&[rise(one), Action::Migrate { task: one, cpu: CpuId(1), epoch: 2 }]));
}

#[test]
fn exclusions_nest() {
    let mut claims = claims_of_thread(Priority::base(1), CpuId(0), 1, 0);
    claims.exclusive = 2;
    assert_eq!(claims.effective(), Priority::NON_PREEMPTIVE);
    claims.exclusive -= 1;
    assert_eq!(claims.effective(), Priority::NON_PREEMPTIVE);
    claims.exclusive -= 1;
    assert_eq!(claims.effective(), Priority::base(1));
}

#[test]
fn a_base_priority_counts_at_home_only() {
    let mut claims = claims_of_thread(Priority::base(9), CpuId(0), 1, 2);
    claims.set(0, Priority::base(5), 1);
    claims.set(1, Priority::base(9), 1);
    assert_eq!(claims.effective(), Priority::base(9));
    claims.sent_by = Some(0);
    assert_eq!(claims.effective(), Priority::base(5));
}

#[test]
fn a_value_unchanged_for_long_is_not_taken_for_stale() {
    let mut claims = claims_of_thread(Priority::base(1), CpuId(0), 1, 1);
    for epoch in (0..u32::MAX).step_by(1 << 29).skip(1) {
        claims.set(0, Priority::base(5), epoch);
    }
    assert!(claims.moves(0, u32::MAX), "the first move after four billion changes of priority");
    assert!(!claims.moves(0, u32::MAX - 1));
}

#[test]
fn a_grant_that_comes_after_a_wake_is_not_lost() {
    let flag = AtomicU32::new(WOKEN);
    assert_eq!(Executor::told(&flag), Some(WOKEN));
    assert_eq!(Executor::told(&flag), None);
    flag.store(GRANTED, Ordering::Relaxed);
    assert_eq!(Executor::told(&flag), Some(GRANTED));
    assert_eq!(flag.load(Ordering::Relaxed), NOTHING);
}
