//! Owners, waiters and heirs that are killed at random points, in one process and across processes.

use crate::support::*;
use lockwright::mutex::{
    Builder, Condvar, Destroyed, Guard, Limit, LockError, Mutex, MutexProtocol, RawCondvar, RawMutex, Unlock,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The number of simultaneous workers.
const WORKERS: usize = 3;
/// The time without progress after which a worker counts as waiting for ever.
const STUCK: Duration = Duration::from_secs(5);

/// The robust kinds whose recovery differs. Without deadlock detection, because a thread killed inside the table
/// of waiters leaves it locked.
fn victims_kinds() -> Vec<Builder> {
    let kind =
        |protocol, unlock| Mutex::builder().robustly(true).check_deadlocks(false).protocol(protocol).unlock(unlock);
    vec![
        kind(MutexProtocol::None, Unlock::Serial),
        kind(MutexProtocol::None, Unlock::Parallel),
        kind(MutexProtocol::Inherit, Unlock::Auto),
        kind(MutexProtocol::Protect(60), Unlock::Serial),
        kind(MutexProtocol::None, Unlock::Auto),
        kind(MutexProtocol::Inherit, Unlock::Auto).kernel_owned(true),
    ]
}

/// The state that workers share.
struct Ground {
    mutex: Mutex<()>,
    /// The number of the worker inside, or 0. The number of a killed worker stays until its heir comes.
    inside: AtomicU32,
    /// Sections that ended normally.
    done: AtomicU64,
    /// How often a worker was told that the previous owner died.
    told: AtomicU64,
    /// How many heirs found a dead owner's number inside.
    found_inside: AtomicU64,
    /// The violation seen, if any: two workers inside at once, a death without a report, or an unexpected error.
    wrong: AtomicU32,
    over: AtomicBool,
}

const TWO_INSIDE: u32 = 1;
const NOT_TOLD: u32 = 2;
const REFUSED: u32 = 3;

impl Ground {
    fn new(kind: Builder) -> Self {
        Self {
            mutex: kind.build(()),
            inside: AtomicU32::new(0),
            done: AtomicU64::new(0),
            told: AtomicU64::new(0),
            found_inside: AtomicU64::new(0),
            wrong: AtomicU32::new(0),
            over: AtomicBool::new(false),
        }
    }

    /// Locks the mutex, stays inside for a moment, and unlocks it. `me` is unique among all workers ever started.
    ///
    /// ORDERING: Relaxed throughout: the mutex orders what matters.
    fn section(&self, me: u32, chance: &mut Chance) {
        let locked = match chance.below(4) {
            0 => self.mutex.lock_for(Duration::from_micros(chance.below(300))),
            1 => self.mutex.try_lock(),
            _ => self.mutex.lock(),
        };
        let guard = match locked {
            Ok(guard) => {
                if self.inside.load(Ordering::Relaxed) != 0 {
                    self.wrong.store(NOT_TOLD, Ordering::Relaxed);
                }
                guard
            }
            Err(LockError::OwnerDied(guard)) => {
                self.told.fetch_add(1, Ordering::Relaxed);
                if self.inside.swap(0, Ordering::Relaxed) != 0 {
                    self.found_inside.fetch_add(1, Ordering::Relaxed);
                }
                Guard::make_consistent(&guard);
                guard
            }
            Err(LockError::TimedOut | LockError::Busy) => return,
            Err(_) => return self.wrong.store(REFUSED, Ordering::Relaxed),
        };
        self.inside.store(me, Ordering::Relaxed);
        spin(Duration::from_nanos(chance.below(20_000)));
        if self.inside.swap(0, Ordering::Relaxed) != me {
            self.wrong.store(TWO_INSIDE, Ordering::Relaxed);
        }
        drop(guard);
        self.done.fetch_add(1, Ordering::Relaxed);
        if chance.below(3) == 0 {
            std::thread::yield_now();
        }
    }

    fn work(&self, me: u32) {
        let mut chance = Chance::new(u64::from(me));
        while !self.over.load(Ordering::Relaxed) {
            self.section(me, &mut chance);
        }
    }

    /// Checks the state after `kills` of the workers were killed.
    fn hold(&self, kills: u64) {
        assert_eq!(
            self.wrong.load(Ordering::Relaxed),
            0,
            "1: two inside, 2: a death not reported, 3: an unexpected error"
        );
        let (told, found) = (self.told.load(Ordering::Relaxed), self.found_inside.load(Ordering::Relaxed));
        // If an heir is killed before it has made the mutex consistent, the next owner is told again: at most once for
        // each kill.
        assert!(told <= kills, "{told} deaths reported after {kills} kills");
        println!(
            "{kills} killed, {told} deaths reported, {found} of them inside a section, {} sections",
            self.done.load(Ordering::Relaxed)
        );
        assert!(kills < 50 || found > 0, "no worker was killed inside a section");
    }

    /// Waits until some more sections are done, so that no worker waits for ever.
    fn goes_on(&self) {
        let (before, start) = (self.done.load(Ordering::Relaxed), Instant::now());
        while self.done.load(Ordering::Relaxed) <= before + 1 {
            assert!(start.elapsed() < STUCK, "no progress: {:?}", self.mutex.inside());
            std::thread::sleep(Duration::from_micros(20));
        }
    }
}

/// Raises the killer above its victims, because otherwise it would execute only when none of them is inside.
struct Above;

impl Above {
    fn all() -> Self {
        set_fifo_alone(90);
        Self
    }
}

impl Drop for Above {
    fn drop(&mut self) {
        set_other(tid());
    }
}

/// Workers are processes, killed by SIGKILL at any point.
fn processes(kind: Builder, kills: u64) {
    let ground = Shared::new(Ground::new(kind.shared(true)));
    let mut number = 0;
    let mut start = || {
        number += 1;
        let me = number;
        Child::start(|| {
            ground.0.work(me);
            true
        })
    };
    let mut workers: [Child; WORKERS] = std::array::from_fn(|_| start());
    let mut chance = Chance::new(kills + 3);
    let above = Above::all();
    for kill in 0..kills {
        if kill % 4 == 0 {
            ground.0.goes_on();
        }
        std::thread::sleep(Duration::from_micros(chance.below(150)));
        let victim = chance.below(WORKERS as u64) as usize;
        workers[victim].kill();
        workers[victim].end();
        workers[victim] = start();
    }
    ground.0.goes_on();
    ground.0.over.store(true, Ordering::Relaxed);
    assert!(workers.iter().all(Child::end), "the remaining workers end normally");
    ground.0.hold(kills);
    drop(above);
    assert!(ground.0.mutex.lock_for(ms(500)).is_ok());
}

extern "C" fn end_at_once(_signal: i32) {
    // SAFETY: the call ends only this thread, whose stack stays mapped until the thread is joined.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
}

fn set_end_at_once() {
    // SAFETY: all zeros is a valid action; the handler ends its thread.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = end_at_once as *const () as usize;
        libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut());
    }
}

struct Worker(libc::pthread_t);

struct Task {
    ground: Arc<Ground>,
    number: u32,
    begun: AtomicBool,
}

extern "C" fn begin(task: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: the task is leaked, so it outlives the thread, which may end anywhere.
    let task = unsafe { &*task.cast::<Task>() };
    // ORDERING: Release pairs with the Acquire of `start`.
    task.begun.store(true, Ordering::Release);
    task.ground.work(task.number);
    std::ptr::null_mut()
}

/// Starts a thread that may end anywhere. `argument` must live for ever.
fn start_thread(
    body: extern "C" fn(*mut libc::c_void) -> *mut libc::c_void,
    argument: *mut libc::c_void,
) -> libc::pthread_t {
    // SAFETY: all zeros is an id to be overwritten, and the argument is leaked.
    unsafe {
        let mut id = std::mem::zeroed();
        assert_eq!(libc::pthread_create(&raw mut id, std::ptr::null(), body, argument), 0);
        id
    }
}

impl Worker {
    fn start(ground: &Arc<Ground>, number: u32) -> Self {
        let task: &'static Task =
            Box::leak(Box::new(Task { ground: Arc::clone(ground), number, begun: AtomicBool::new(false) }));
        let id = start_thread(begin, std::ptr::from_ref(task).cast_mut().cast());
        until("the thread begins", || task.begun.load(Ordering::Acquire));
        Self(id)
    }

    fn kill(&self) {
        // SAFETY: the thread is not joined yet.
        unsafe { libc::pthread_kill(self.0, libc::SIGUSR1) };
    }

    fn end(&self) {
        // SAFETY: the thread is joined once.
        unsafe { libc::pthread_join(self.0, std::ptr::null_mut()) };
    }
}

/// Workers are threads, which a signal handler ends at any point.
fn threads(kind: Builder, kills: u64) {
    set_end_at_once();
    let ground = Arc::new(Ground::new(kind));
    let mut number = 0;
    let mut start = || {
        number += 1;
        Worker::start(&ground, number)
    };
    let mut workers: [Worker; WORKERS] = std::array::from_fn(|_| start());
    let mut chance = Chance::new(kills + 5);
    let above = Above::all();
    for kill in 0..kills {
        if kill % 4 == 0 {
            ground.goes_on();
        }
        std::thread::sleep(Duration::from_micros(chance.below(150)));
        let victim = chance.below(WORKERS as u64) as usize;
        workers[victim].kill();
        workers[victim].end();
        workers[victim] = start();
    }
    ground.goes_on();
    ground.over.store(true, Ordering::Relaxed);
    workers.iter().for_each(Worker::end);
    ground.hold(kills);
    drop(above);
    assert!(ground.mutex.lock_for(ms(500)).is_ok());
}

/// How many owners of each kind are killed: 5,000 if LOCKWRIGHT_DEEP is set, as in CI.
fn kills(short: u64) -> u64 {
    if std::env::var_os("LOCKWRIGHT_DEEP").is_some() { 5_000 } else { short }
}

#[test]
fn processes_killed_at_random_points() {
    let Some(_stage) = Stage::set_for(Duration::from_secs(600)) else { return };
    victims_kinds().into_iter().for_each(|kind| processes(kind, kills(120)));
}

#[test]
fn threads_ended_at_random_points() {
    let Some(_stage) = Stage::set_for(Duration::from_secs(600)) else { return };
    victims_kinds().into_iter().for_each(|kind| threads(kind, kills(200)));
}

/// A waiter of a condition variable is given the mutex by the kernel, and ends before it executes again. Its heir is
/// told of the death.
#[test]
fn a_waiter_that_ends_with_a_given_mutex_is_a_dead_owner() {
    let Some(stage) = Stage::set() else { return };
    set_end_at_once();
    for kind in [Mutex::builder(), Mutex::builder().kernel_owned(true)] {
        let table = Arc::new((kind.robustly(true).check_deadlocks(false).build(()), Condvar::new()));
        let waiter = Waiter::start(&table, stage.cpu, |table| {
            drop(table.1.wait(table.0.lock().expect("the mutex is free")));
        });
        until_waiting_at(waiter.tid(), &table.1);
        let ours = Arc::clone(&table);
        let tid = waiter.tid();
        stage
            .thread(50, move || {
                // The waiter is less urgent and on the same processor, so it does not execute.
                ours.1.signal();
                assert_eq!(ours.0.inside().owner(), tid, "the kernel gave it the mutex");
                // SAFETY: the thread is not joined yet.
                unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, libc::SIGUSR1) };
            })
            .end();
        waiter.end();
        assert!(matches!(table.0.lock_for(ms(500)), Err(LockError::OwnerDied(_))), "{kind:?}");
    }
}

/// The first waiter is handed the mutex, and ends before it executes again. The second one gets the mutex, although no
/// other thread comes.
#[test]
fn a_mutex_handed_to_an_ending_waiter_goes_to_the_next() {
    let Some(stage) = Stage::set() else { return };
    set_end_at_once();
    for unlock in UNLOCKS {
        for protocol in [MutexProtocol::None, MutexProtocol::Inherit] {
            let kind = Mutex::builder().protocol(protocol).unlock(unlock).robustly(true).check_deadlocks(false);
            let table = Arc::new((kind.build(()), Condvar::new()));
            let (go, ours) = (Gate::default(), Arc::clone(&table));
            let (send, receive) = std::sync::mpsc::channel();
            let owner = stage.thread(59, {
                let go = go.clone();
                move || {
                    let guard = ours.0.lock().expect("the mutex is free");
                    go.open();
                    let first: u32 = receive.recv().expect("the first waiter");
                    // The first waiter does not execute before this thread ends.
                    drop(guard);
                    // SAFETY: the thread is not joined yet.
                    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), first, libc::SIGUSR1) };
                }
            });
            go.pass();
            let first = Waiter::start(&table, stage.cpu, |table| drop(table.0.lock()));
            until_waiting(first.tid(), table.0.inside());
            let ours = Arc::clone(&table);
            let second = stage.thread(9, move || match ours.0.lock_for(ms(3_000)) {
                Ok(_) => true,
                // With inheritance the first waiter already was the owner.
                Err(LockError::OwnerDied(guard)) => {
                    Guard::make_consistent(&guard);
                    true
                }
                Err(_) => false,
            });
            until_waiting(second.tid, table.0.inside());
            send.send(first.tid()).expect("the owner waits");
            owner.end();
            first.end();
            assert!(second.end(), "{kind:?}: the second waiter does not get the mutex");
            assert!(table.0.try_lock().is_ok(), "{kind:?}");
        }
    }
}

/// The first waiter is woken, and ends before it executes again, while another thread tries to steal the mutex. The
/// second waiter still gets it.
#[test]
fn the_death_of_a_woken_waiter_does_not_block_the_next() {
    let Some(stage) = Stage::set() else { return };
    set_end_at_once();
    for unlock in UNLOCKS {
        let kind = Mutex::builder().protocol(MutexProtocol::None).unlock(unlock).robustly(true).check_deadlocks(false);
        let table = Arc::new((kind.build(()), Condvar::new()));
        let (go, ours) = (Gate::default(), Arc::clone(&table));
        let (send, receive) = std::sync::mpsc::channel::<Waiter>();
        let owner = stage.thread(59, {
            let go = go.clone();
            move || {
                let guard = ours.0.lock().expect("the mutex is free");
                go.open();
                let first = receive.recv().expect("the first waiter");
                drop(guard);
                let between = ours.0.try_lock();
                // SAFETY: the thread is not joined yet.
                unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), first.tid(), libc::SIGUSR1) };
                first.end();
                drop(between);
            }
        });
        go.pass();
        let first = Waiter::start(&table, stage.cpu, |table| drop(table.0.lock()));
        until_waiting(first.tid(), table.0.inside());
        let ours = Arc::clone(&table);
        let second = stage.thread(9, move || ours.0.lock_for(ms(3_000)).is_ok());
        until_waiting(second.tid, table.0.inside());
        send.send(first).expect("the owner waits");
        owner.end();
        assert!(second.end(), "{kind:?}: the second waiter waits for a free mutex");
        assert!(table.0.try_lock().is_ok(), "{kind:?}");
    }
}

/// A process that waits for a condition is killed. A thread that destroys the condition variable finally succeeds.
#[test]
fn a_condition_variable_of_killed_waiters_can_be_destroyed() {
    let _watchdog = watch(Duration::from_secs(30));
    let kind = Mutex::builder().protocol(MutexProtocol::None).shared(true);
    let ground = Shared::new((kind.build_raw(), RawCondvar::new(true)));
    let (mutex, condvar) = ground.0;
    let waiter = Child::start(|| {
        mutex.lock(Limit::Never).expect("the mutex is free");
        condvar.wait(mutex, None).is_ok()
    });
    until("the child waits", || futex_call_at(waiter.0, std::ptr::from_ref(condvar).addr()));
    assert_eq!(condvar.destroy(), Destroyed::InUse, "the child waits there");
    waiter.kill();
    assert!(!waiter.end(), "the child was killed");
    let start = Instant::now();
    assert_eq!(condvar.destroy(), Destroyed::Done);
    assert!(start.elapsed() >= Duration::from_secs(1), "the waiters did not get their time to leave");
}

/// Whether a process is suspended in a futex call on this mutex.
fn process_waits(process: i32, mutex: &RawMutex) -> bool {
    futex_call_at(process, std::ptr::from_ref(mutex).addr())
}

fn futex_call_at(process: i32, address: usize) -> bool {
    let call = std::fs::read_to_string(format!("/proc/{process}/syscall")).unwrap_or_default();
    call.starts_with(&format!("{} {:#x} ", libc::SYS_futex, address))
}

/// A process is handed the mutex, and killed before it executes again. A thread that only tries gets the mutex in the
/// end, and so does one that waits only briefly each time, but not before the heir had its time.
#[test]
fn a_mutex_handed_to_a_killed_process_goes_to_a_trying_thread() {
    let Some(stage) = Stage::set() else { return };
    for (robust, waits) in [(false, false), (false, true), (true, false), (true, true)] {
        let kind = Mutex::builder().protocol(MutexProtocol::None).unlock(Unlock::Serial).shared(true).robustly(robust);
        let ground = Shared::new(kind.build(()));
        let mutex: &'static Mutex<()> = ground.0;
        let (go, cpu) = (Gate::default(), stage.cpu);
        let (send, receive) = std::sync::mpsc::channel();
        let owner = stage.thread(59, {
            let go = go.clone();
            move || {
                let guard = mutex.lock().expect("the mutex is free");
                go.open();
                let heir: Child = receive.recv().expect("the heir");
                drop(guard);
                heir.kill();
                heir
            }
        });
        go.pass();
        let heir = Child::start(move || {
            set_fifo(tid(), 10);
            pin(cpu);
            drop(mutex.lock());
            true
        });
        until("the heir waits", || process_waits(heir.0, mutex.inside()));
        send.send(heir).expect("the owner waits");
        assert!(!owner.end().end(), "the child was killed");
        let start = Instant::now();
        let guard = loop {
            match if waits { mutex.lock_for(ms(3)) } else { mutex.try_lock() } {
                Ok(guard) => break guard,
                Err(LockError::Busy | LockError::TimedOut) => std::thread::sleep(ms(1)),
                Err(error) => panic!("{error}"),
            }
            assert!(start.elapsed() < Duration::from_secs(5), "{kind:?}, waits: {waits}: no thread gets the mutex");
        };
        assert!(start.elapsed() >= ms(50), "{kind:?}: the heir had {:?}", start.elapsed());
        drop(guard);
        // The next heir has its own time.
        let heir = stage.thread(10, {
            let go = go.clone();
            move || {
                until("the mutex is locked", || mutex.owner().is_some());
                assert!(go.is_open());
                drop(mutex.lock().expect("the lock succeeds"));
            }
        });
        let heir_id = heir.tid;
        let owner = stage.thread(59, move || {
            let guard = mutex.lock().expect("the mutex is free");
            until_waiting(heir_id, mutex.inside());
            drop(guard);
            mutex.try_lock().is_ok()
        });
        assert!(!owner.end(), "{kind:?}: a mutex handed to the next heir is stolen");
        heir.end();
    }
}

type Table = (Mutex<()>, Condvar);

/// A thread that waits and may end anywhere.
struct Waiter(libc::pthread_t, &'static WaiterTask);

struct WaiterTask {
    table: Arc<Table>,
    cpu: usize,
    body: fn(&Table),
    tid: AtomicU32,
}

extern "C" fn wait(task: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: the task is leaked, so it outlives the thread, which may end anywhere.
    let task = unsafe { &*task.cast::<WaiterTask>() };
    set_fifo(tid(), 10);
    pin(task.cpu);
    // ORDERING: Release pairs with the Acquire of `tid`.
    task.tid.store(tid(), Ordering::Release);
    (task.body)(&task.table);
    std::ptr::null_mut()
}

impl Waiter {
    fn start(table: &Arc<Table>, cpu: usize, body: fn(&Table)) -> Self {
        let task: &'static WaiterTask =
            Box::leak(Box::new(WaiterTask { table: Arc::clone(table), cpu, body, tid: AtomicU32::new(0) }));
        Self(start_thread(wait, std::ptr::from_ref(task).cast_mut().cast()), task)
    }

    fn tid(&self) -> u32 {
        until("the thread begins", || self.1.tid.load(Ordering::Acquire) != 0);
        self.1.tid.load(Ordering::Acquire)
    }

    fn end(&self) {
        // SAFETY: the thread is joined once.
        unsafe { libc::pthread_join(self.0, std::ptr::null_mut()) };
    }
}

/// The mutant: without robustness the first worker that dies inside blocks all others.
#[test]
fn without_robustness_a_dead_owner_blocks_all_others() {
    let Some(_stage) = Stage::set() else { return };
    let ground = Shared::new(Ground::new(Mutex::builder().protocol(MutexProtocol::None).shared(true)));
    let victim = Child::start(|| {
        std::mem::forget(ground.0.mutex.lock());
        true
    });
    assert!(victim.end());
    let worker = Child::start(|| {
        ground.0.work(2);
        true
    });
    std::thread::sleep(ms(50));
    worker.kill();
    worker.end();
    assert_eq!(ground.0.done.load(Ordering::Relaxed), 0);
}
