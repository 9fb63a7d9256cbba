//! One real-time thread on each CPU, with a watchdog.

use super::pace::LEVEL;
use lockwright::raw::WATCHDOG_LEVEL;
use lockwright_engine::raw::{Ends, Gate, Muster, Place, become_realtime, spawn, wait_for_ends};
use lockwright_engine::{Control, RunError};
use lockwright_locks::Slot;
use lockwright_model::TaskId;
use lockwright_sys::{clock, sched, signal};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// The work of a squad.
pub(super) trait Duty: Send + Sync + 'static {
    /// The result of a member.
    type Seen: Send + 'static;
    /// Executes the work of one member on its CPU. It must check `orders` wherever it waits for anything except a lock.
    fn serve(&self, member: usize, slot: &Slot, orders: &Orders) -> Self::Seen;
}

/// The communication between the watchdog and the members.
#[derive(Debug, Default)]
pub(super) struct Orders {
    stop: AtomicBool,
    /// Grows while the members make progress.
    progress: AtomicU64,
}

impl Orders {
    fn stop(&self) {
        // ORDERING: Relaxed: it publishes nothing.
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether the members are to end.
    #[inline]
    pub(super) fn is_stopped(&self) -> bool {
        // ORDERING: Relaxed: it publishes nothing.
        self.stop.load(Ordering::Relaxed)
    }

    /// Reports the progress of a member.
    #[inline]
    pub(super) fn report_progress(&self) {
        // ORDERING: Relaxed: only watched.
        self.progress.fetch_add(1, Ordering::Relaxed);
    }
}

/// The time for members to end after the order to stop, and once more under the ordinary policy.
const GRACE_NS: u64 = 1_000_000_000;
/// The period of the watchdog.
const LOOK_NS: u64 = 50_000_000;

struct Squad<D: Duty> {
    duty: D,
    orders: Orders,
    control: Control,
    muster: Arc<Muster>,
    /// Opens for the watchdog, which then opens `start`.
    ready: Gate,
    start: Gate,
    /// Opens when the watchdog has ended. Until then, the members' thread ids stay valid.
    exit: Gate,
    tids: Box<[AtomicU32]>,
    /// The members' results; `None` for a member that panicked.
    ends: Ends<Option<D::Seen>>,
    patience_ns: u64,
}

/// Executes `duty` on each of `cpus` at once. Returns `None` if `control` was stopped before the end.
///
/// If the members make no progress for `patience_ns`, they are ordered to stop. Members that do not stop are put under
/// the ordinary policy and left behind.
///
/// # Errors
/// Fails without permission for real-time priorities, and if threads cannot be started or do not return.
///
/// BOUND: the bound of [`Muster::wait`], `patience_ns` after the last progress, twice GRACE_NS, and the bound of
/// [`wait_for_ends`].
pub(super) fn squad<D: Duty>(
    duty: D,
    cpus: &[usize],
    patience_ns: u64,
    control: &Control,
) -> Result<Option<Vec<D::Seen>>, RunError> {
    let squad = Arc::new(Squad {
        duty,
        orders: Orders::default(),
        control: control.clone(),
        muster: Arc::default(),
        ready: Gate::default(),
        start: Gate::default(),
        exit: Gate::default(),
        tids: cpus.iter().map(|_| AtomicU32::new(0)).collect(),
        ends: Ends::new(cpus.len()),
        patience_ns,
    });
    let mut threads = Vec::new();
    let assembled = signal::with_all_blocked(|| assemble(&squad, cpus, &mut threads));
    // The caller handles signals while it waits: one of them may stop the measurement.
    if let Err(error) = assembled.and_then(|()| squad.muster.wait(control)) {
        squad.ready.abandon();
        squad.start.abandon();
        // Of threads that were not ready, some do not execute, and end when they do.
        if error != RunError::NotReady {
            wait_for_ends(&threads);
        }
        return Err(error);
    }
    squad.ready.open();
    let watched = threads.pop().map(JoinHandle::join);
    if !matches!(watched, Some(Ok(()))) {
        // Without a watchdog, the members are ordered to stop, and those that do not are left behind.
        squad.orders.stop();
        squad.start.abandon();
    }
    squad.exit.open();
    let stuck: Vec<TaskId> = squad.ends.unfinished().collect();
    if !stuck.is_empty() {
        return Err(RunError::Stuck { tasks: stuck });
    }
    let stuck = wait_for_ends(&threads);
    if !stuck.is_empty() {
        return Err(RunError::Stuck { tasks: stuck.into_iter().map(TaskId::new).collect() });
    }
    if control.is_stopped() {
        return Ok(None);
    }
    let seen = |member| squad.ends.take(member).flatten().ok_or(RunError::Panicked(member));
    (0..cpus.len()).map(TaskId::new).map(seen).collect::<Result<_, _>>().map(Some)
}

/// Starts the members and then the watchdog. Each answers the muster when it is ready at its gate.
fn assemble<D: Duty>(squad: &Arc<Squad<D>>, cpus: &[usize], threads: &mut Vec<JoinHandle<()>>) -> Result<(), RunError> {
    for (member, &cpu) in cpus.iter().enumerate() {
        let (squad, place) = (Arc::clone(squad), Place::new(&squad.muster));
        threads.push(spawn(&format!("measure {member}"), move || {
            // ORDERING: Relaxed: the muster orders this store before all loads.
            squad.tids[member].store(sched::gettid().0, Ordering::Relaxed);
            let slot = Slot::claim();
            // A busy thread of another program may keep a thread of the level of measurements from executing, and the
            // set-up has no watchdog yet.
            let set_up = become_realtime(WATCHDOG_LEVEL, &[cpu]).map_err(RunError::from);
            place.answer(set_up.and(slot.as_ref().map(|_| ()).ok_or(RunError::NoSlot)));
            let _ = sched::set_level(sched::ME, LEVEL);
            if let (true, Some(slot)) = (squad.start.pass(), slot) {
                let seen = catch_unwind(AssertUnwindSafe(|| squad.duty.serve(member, &slot, &squad.orders))).ok();
                squad.ends.leave(TaskId::new(member), seen, &squad.control);
                // The rest needs no real-time priority. If this is refused, the thread waits all the same.
                let _ = sched::set_other(sched::gettid());
                squad.exit.pass();
            }
        })?);
    }
    let (watched, place) = (Arc::clone(squad), Place::new(&squad.muster));
    let all = cpus.to_vec();
    threads.push(spawn("measure watchdog", move || {
        place.answer(become_realtime(WATCHDOG_LEVEL, &all).map_err(RunError::from));
        if watched.ready.pass() {
            watched.start.open();
            watch(&watched);
        }
    })?);
    Ok(())
}

fn watch<D: Duty>(squad: &Squad<D>) {
    let mut seen = 0;
    let mut last_ns = clock::now_ns();
    // BOUND: `patience_ns` after the last progress.
    loop {
        if squad.ends.wait(&squad.control, clock::now_ns() + LOOK_NS, || false) {
            return;
        }
        // ORDERING: Relaxed: only watched.
        let now = squad.orders.progress.load(Ordering::Relaxed);
        if now != seen {
            (seen, last_ns) = (now, clock::now_ns());
        }
        if squad.control.is_stopped() || clock::now_ns() >= last_ns.saturating_add(squad.patience_ns) {
            break;
        }
    }
    squad.orders.stop();
    if squad.ends.wait(&squad.control, clock::now_ns() + GRACE_NS, || false) {
        return;
    }
    for member in squad.ends.unfinished() {
        // ORDERING: Relaxed: the store happened before the gate opened.
        let tid = squad.tids[member.index()].load(Ordering::Relaxed);
        // A thread that cannot be demoted is reported as stuck.
        let _ = sched::set_other(sched::Tid(tid));
    }
    squad.ends.wait(&squad.control, clock::now_ns() + GRACE_NS, || false);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::require_realtime;
    use crate::slots::all_slots;
    use std::time::{Duration, Instant};

    const PATIENCE_NS: u64 = 300_000_000;

    /// Executes a function on each member. The result has the member's number and its slot.
    struct Told(fn(usize, &Orders));

    impl Duty for Told {
        type Seen = (usize, usize);

        fn serve(&self, member: usize, slot: &Slot, orders: &Orders) -> (usize, usize) {
            self.0(member, orders);
            (member, slot.index())
        }
    }

    fn cpus() -> Vec<usize> {
        sched::affinity().expect("is known")
    }

    /// Whether no thread of a squad is left. A joined thread may be listed for a moment.
    fn no_thread_is_left() -> bool {
        let is_member = |entry: std::fs::DirEntry| {
            std::fs::read_to_string(entry.path().join("comm")).is_ok_and(|name| name.starts_with("measure "))
        };
        let is_left = || std::fs::read_dir("/proc/self/task").expect("proc").flatten().any(is_member);
        (0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(1));
            !is_left()
        })
    }

    #[test]
    fn each_member_serves_once_with_a_slot_of_its_own() {
        let Some(_machine) = require_realtime() else { return };
        let seen = squad(Told(|_, _| {}), &cpus(), PATIENCE_NS, &Control::new()).expect("can").expect("not stopped");
        assert_eq!(seen.iter().map(|seen| seen.0).collect::<Vec<_>>(), (0..cpus().len()).collect::<Vec<_>>());
        let slots: std::collections::BTreeSet<usize> = seen.iter().map(|seen| seen.1).collect();
        assert_eq!(slots.len(), seen.len());
    }

    #[test]
    fn stopped_members_end() {
        let Some(_machine) = require_realtime() else { return };
        let control = Control::new();
        let stop = control.clone();
        let duty = Told(|_, orders| {
            while !orders.is_stopped() {
                orders.report_progress();
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let began = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                std::thread::sleep(Duration::from_millis(2 * PATIENCE_NS / 1_000_000));
                stop.stop();
            });
            assert_eq!(squad(duty, &cpus(), PATIENCE_NS, &control), Ok(None));
        });
        assert!(began.elapsed() >= Duration::from_nanos(2 * PATIENCE_NS), "members with progress are not stopped");
        assert!(no_thread_is_left());
    }

    #[test]
    fn members_without_progress_are_stopped() {
        let Some(_machine) = require_realtime() else { return };
        let duty = Told(|_, orders| {
            while !orders.is_stopped() {
                std::hint::spin_loop();
            }
        });
        let seen = squad(duty, &cpus(), PATIENCE_NS, &Control::new()).expect("all came back");
        assert_eq!(seen.map(|seen| seen.len()), Some(cpus().len()));
        assert!(no_thread_is_left());
    }

    #[test]
    fn members_that_do_not_end_are_demoted_and_left() {
        let Some(_machine) = require_realtime() else { return };
        let duty = Told(|member, _| {
            let until = Instant::now() + Duration::from_secs(4);
            while member == 0 && Instant::now() < until {
                std::hint::spin_loop();
            }
            if member == 0 {
                assert!(!sched::scheduling(sched::ME).expect("is known").has_level(), "it was demoted");
            }
        });
        let stuck = RunError::Stuck { tasks: vec![TaskId::new(0)] };
        assert_eq!(squad(duty, &cpus(), PATIENCE_NS, &Control::new()), Err(stuck));
        assert!((0..100).any(|_| no_thread_is_left()), "the member ends by itself");
    }

    /// A thread of another program keeps the CPU of a member, above its level.
    #[test]
    fn a_stop_ends_the_set_up() {
        let Some(_machine) = require_realtime() else { return };
        let (begins, begun) = std::sync::mpsc::channel();
        let busy = cpus()[0];
        if cpus().len() < 2 {
            return;
        }
        let burner = std::thread::spawn(move || {
            sched::set_fifo(sched::gettid(), WATCHDOG_LEVEL).expect("permission was checked");
            sched::set_affinity(sched::gettid(), &[busy]).expect("the CPU exists");
            begins.send(()).expect("the test waits");
            let until = Instant::now() + Duration::from_secs(4);
            // BOUND: `until`.
            while Instant::now() < until {}
        });
        begun.recv().expect("the thread begins");
        let control = Control::new();
        control.stop();
        let result = squad(Told(|_, _| {}), &cpus(), PATIENCE_NS, &control);
        let burns = !burner.is_finished();
        burner.join().expect("it does not panic");
        assert_eq!((result, burns), (Err(RunError::NotReady), true));
        assert!((0..10).any(|_| no_thread_is_left()), "the members end when they execute");
    }

    #[test]
    fn a_member_that_panics_is_named() {
        let Some(_machine) = require_realtime() else { return };
        let duty = Told(|member, _| assert_ne!(member, 0, "told to"));
        let panicked = RunError::Panicked(TaskId::new(0));
        assert_eq!(squad(duty, &cpus(), PATIENCE_NS, &Control::new()), Err(panicked));
        assert!(no_thread_is_left());
    }

    #[test]
    fn a_failed_setup_leaves_no_thread() {
        let Some(_machine) = require_realtime() else { return };
        let _slots = all_slots();
        let all: Vec<Slot> = std::iter::from_fn(Slot::claim).collect();
        let refused = squad(Told(|_, _| {}), &cpus(), PATIENCE_NS, &Control::new());
        drop(all);
        assert_eq!(refused, Err(RunError::NoSlot));
        assert!(no_thread_is_left());
        assert!(squad(Told(|_, _| {}), &[usize::MAX], PATIENCE_NS, &Control::new()).is_err());
        assert!(no_thread_is_left());
    }
}
