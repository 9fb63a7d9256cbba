//! Whatever goes wrong, everything is as it was before.

use super::fake::{Fault, Machine, OTHER, ROOT, Shared, stat};
use super::hierarchy::Version;
use super::{CpusetError, Partitions, sweep};
use lockwright_sys::sched;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

/// Both versions, with the switch of the root as it must be and as it usually is.
fn machines() -> impl Iterator<Item = Shared> {
    [Version::One, Version::Two].into_iter().flat_map(|version| [false, true].map(|on| Machine::new(version, on)))
}

/// CPU 3 of the imitation belongs to others.
const CPUS: [usize; 3] = [0, 1, 2];

/// The longest deadline that a kernel admits by default.
const LONGEST: Duration = Duration::from_micros(1 << 22);

#[test]
fn partitions_are_made_and_removed() {
    for machine in machines() {
        let before = machine.all();
        let partitions = Partitions::make_in(Rc::clone(&machine), &CPUS).expect("made");
        assert_ne!(machine.all(), before);
        assert!(CPUS.iter().all(|&cpu| partitions.entry(cpu).is_some()), "{partitions:?}");
        let again = Partitions::make_in(Rc::clone(&machine), &CPUS).expect_err("in use");
        assert_eq!(again, CpusetError::InUse { process: std::process::id() });
        // The kernel takes the reservations of ended threads back before the domains are rebuilt.
        assert_eq!(machine.waited.take(), LONGEST);
        drop(partitions);
        assert_eq!(machine.all(), before);
        assert_eq!(machine.waited.get(), LONGEST);
    }
}

/// The kernel's account, with these sums of the domains of CPUs 0, 1, and so on.
fn account(sums: &[i64]) -> String {
    let one = |(cpu, sum)| format!("dl_rq[{cpu}]:\n  .dl_nr_running   : 0\n  .dl_bw->total_bw   : {sum}\n");
    (0..).zip(sums).map(one).collect()
}

/// The server for ordinary threads reserves 5 % of each CPU.
const SERVER: i64 = 52_428;

/// Others have CPUs 4 and 5 in a domain, and CPUs 6 and 7.
#[test]
fn each_domain_of_others_counts_by_itself() {
    // Almost nothing, and 20 % of a CPU in one of the domains.
    const MUCH: i64 = 209_715;
    let together = [4 * SERVER; 4];
    for (more, waited) in [([200, 300], Duration::ZERO), ([MUCH, 0], LONGEST), ([0, MUCH], LONGEST)] {
        let others = more.map(|more| [2 * SERVER + more; 2]).concat();
        let machine = Machine::new(Version::One, true);
        machine.set(sched::ACCOUNT, &account(&[&together[..], &others].concat()));
        drop(Partitions::make_in(Rc::clone(&machine), &[]).expect("made"));
        assert_eq!(machine.waited.take(), 2 * waited, "{more:?}");
    }
}

/// The server of one CPU reserves half of it. Then as much of that domain is nothing, and it is not so elsewhere.
#[test]
fn the_server_of_each_cpu_counts() {
    let machine = Machine::new(Version::One, true);
    machine.set("/sys/kernel/debug/sched/fair_server/cpu3/runtime", "500000000\n");
    let sum = 3 * SERVER + (1 << 19);
    for (sums, waited) in [([sum; 4], Duration::ZERO), ([sum + SERVER; 4], 2 * LONGEST)] {
        machine.set(sched::ACCOUNT, &account(&sums));
        drop(Partitions::make_in(Rc::clone(&machine), &[]).expect("made"));
        assert_eq!(machine.waited.take(), waited, "{sums:?}");
    }
}

#[test]
fn reservations_are_waited_for_only_if_the_account_shows_some() {
    // Almost nothing, as of threads that have shrunk theirs, and 5 % of a CPU.
    for (more, waited) in [(200, Duration::ZERO), (SERVER, LONGEST)] {
        for machine in machines() {
            let before = machine.all();
            machine.set(sched::ACCOUNT, &account(&[4 * SERVER + more; 4]));
            let partitions = Partitions::make_in(Rc::clone(&machine), &CPUS).expect("made");
            assert_eq!(machine.waited.take(), waited, "together, {more}");
            // In the second partition.
            machine.set(sched::ACCOUNT, &account(&[SERVER, SERVER + more, SERVER, SERVER]));
            drop(partitions);
            assert_eq!(machine.waited.take(), waited, "apart, {more}");
            assert_eq!(machine.all(), before);
        }
    }
}

/// Version 2 leaves a CPU to the root. The last one is then alone there.
#[test]
fn the_last_cpu_stays_with_the_root_if_there_is_no_other() {
    for (version, kept) in [(Version::One, false), (Version::Two, true)] {
        let machine = Machine::new(version, false);
        let cpus = if version == Version::One { "cpuset.cpus" } else { "cpuset.cpus.effective" };
        machine.set(format!("{ROOT}/{cpus}"), "0-1\n");
        let partitions = Partitions::make_in(machine, &[0, 1]).expect("made");
        assert!(partitions.entry(0).is_some());
        assert_eq!(partitions.entry(1).is_none(), kept, "{version:?}");
    }
}

/// The watchdog of a run has its place there, where the process may use exactly the CPUs of the system.
#[test]
fn the_root_keeps_a_cpu() {
    for (version, cpus, left) in [
        (Version::One, &[2, 1][..], &[0, 1, 2, 3][..]),
        (Version::Two, &[1, 2], &[0, 3]),
        (Version::Two, &[0, 1, 2], &[3]),
    ] {
        let machine = Machine::new(version, false);
        let partitions = Partitions::make_in(machine, cpus).expect("made");
        assert_eq!(partitions.root_cpus(), left, "{version:?}");
    }
    let machine = Machine::new(Version::Two, false);
    machine.set(format!("{ROOT}/cpuset.cpus.effective"), "0-1\n");
    assert_eq!(Partitions::make_in(machine, &[0, 1]).expect("made").root_cpus(), [1]);
}

/// Both have seen no partitions, and then make theirs.
#[test]
fn of_two_processes_only_one_makes_partitions() {
    for machine in machines() {
        machine.is_joined.set(true);
        let refused = Partitions::make_in(Rc::clone(&machine), &CPUS).expect_err("another one has come");
        assert_eq!(refused, CpusetError::InUse { process: OTHER });
        let left = machine.all();
        machine.other("root");
        assert_eq!(machine.all(), left, "only what the other one has is left");
    }
}

#[test]
fn the_switch_is_set_if_another_process_ends_before_the_first_group() {
    let machine = Machine::new(Version::Two, true);
    machine.is_left.set(true);
    let hierarchy = super::Hierarchy::find(&machine).expect("mounted");
    let partitions = Partitions::make_in(Rc::clone(&machine), &CPUS).expect("made");
    assert_eq!(hierarchy.is_switched(&machine), Ok(true));
    drop(partitions);
    assert_eq!(hierarchy.is_switched(&machine), Ok(false));
}

#[test]
fn the_switch_stays_while_another_process_needs_it() {
    // A process that finds the switch set and then removes its first group again does not set the switch back.
    for (version, part, needs) in
        [Version::One, Version::Two].into_iter().flat_map(|v| [(v, "root", true), (v, "cpu0", false)])
    {
        let machine = Machine::new(version, false);
        let before = machine.all();
        let hierarchy = super::Hierarchy::find(&machine).expect("mounted");
        let partitions = Partitions::make_in(Rc::clone(&machine), &CPUS).expect("made");
        machine.other(part);
        drop(partitions);
        assert_eq!(hierarchy.is_switched(&machine), Ok(needs), "{version:?}");
        machine.forget(&super::stat(OTHER));
        sweep(&machine).expect("swept");
        assert_eq!(machine.all(), before, "{version:?}");
    }
}

/// Each operation in turn is refused, or is the first that a kill prevents.
#[test]
fn nothing_is_left_wherever_it_fails_or_is_killed() {
    for machine in machines() {
        let before = machine.all();
        drop(Partitions::make_in(Rc::clone(&machine), &CPUS).expect("made"));
        let all = machine.operations();
        assert!(all > 20, "{all}");
        let mut failures = 0;
        for at in 0..all {
            machine.fault.set(Some((at, Fault::Refusal(libc::EACCES))));
            let made = Partitions::make_in(Rc::clone(&machine), &CPUS);
            let is_failed = made.is_err();
            drop(made);
            machine.fault.set(None);
            if is_failed {
                // Only one operation was refused, so all others were undone.
                failures += 1;
                assert_eq!(machine.all(), before, "refused at {at}");
            }
            // If the undoing itself is refused, the sweep after the end of the process does it.
            machine.forget(&stat());
            sweep(&machine).expect("swept");
            assert_eq!(without_members(&machine), without(&before), "refused at {at}");
            restore(&machine);
        }
        assert!(failures > 10, "{failures}");
        for at in 0..all {
            machine.fault.set(Some((at, Fault::Kill)));
            drop(Partitions::make_in(Rc::clone(&machine), &CPUS));
            machine.fault.set(None);
            machine.forget(&stat());
            sweep(&machine).expect("swept");
            assert_eq!(without_members(&machine), without(&before), "killed at {at}");
            restore(&machine);
        }
    }
}

/// A kill in the middle is seen: the sweep has something to do, and leaves what a living process has.
#[test]
fn a_sweep_removes_only_what_the_dead_left() {
    for machine in machines() {
        let before = machine.all();
        std::mem::forget(Partitions::make_in(Rc::clone(&machine), &CPUS).expect("made"));
        machine.waited.take();
        let living = sweep(&machine).expect("nothing fails");
        assert_eq!((living.removed, living.used_by), (0, Some(std::process::id())));
        assert_ne!(without_members(&machine), without(&before));
        // Another process has the id now.
        machine.set(stat(), &format!("1 (other) S {} 78", "0 ".repeat(18).trim()));
        let swept = sweep(&machine).expect("nothing fails");
        assert!(swept.removed >= CPUS.len() && swept.used_by.is_none(), "{swept:?}");
        assert_eq!(machine.waited.get(), Duration::from_micros(4_194_304));
        assert_eq!(without_members(&machine), without(&before));
    }
}

#[test]
fn a_cpu_of_another_partition_is_refused() {
    let machine = Machine::new(Version::Two, true);
    let before = machine.all();
    let refusal = Partitions::make_in(Rc::clone(&machine), &[2, 3]).expect_err("refused");
    assert!(refusal.to_string().contains("root invalid"), "{refusal}");
    assert_eq!(machine.all(), before);
}

#[test]
fn without_a_hierarchy_the_message_says_what_to_mount() {
    let machine = Machine::new(Version::Two, false);
    machine.set(format!("{ROOT}/cgroup.controllers"), "cpu io\n");
    let refusal = Partitions::make_in(Rc::clone(&machine), &CPUS).expect_err("no cpusets");
    assert_eq!(refusal, CpusetError::NotMounted);
    assert!(refusal.to_string().contains("mount -t cgroup2"), "{refusal}");
    machine.set("/proc/self/mountinfo", "");
    assert_eq!(sweep(&machine), Err(CpusetError::NotMounted));
}

type All = std::collections::BTreeMap<std::path::PathBuf, Option<String>>;

/// Without the places of the process, which has ended.
fn without(all: &All) -> All {
    all.iter()
        .filter(|(path, _)| !path.ends_with("cgroup.procs"))
        .map(|(path, text)| (path.clone(), text.clone()))
        .collect()
}

fn without_members(machine: &Shared) -> All {
    without(&machine.all())
}

fn restore(machine: &Shared) {
    machine.set(stat(), &format!("1 (a) S {} 77", "0 ".repeat(18).trim()));
    machine.set(Path::new(ROOT).join("cgroup.procs"), "");
    machine.set(Path::new(ROOT).join("home/cgroup.procs"), &std::process::id().to_string());
    machine.operations();
}
