//! The kernel refuses the system call by which an object leaves its processor: a thread that cannot continue prints a
//! message and ends the process, and no thread waits for ever.

use crate::support::{Child, cpus, pin};
use lockwright::ics::{Ics, Kind, Strategy, Var, Word};
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::AsRawFd;

/// The commands of `membarrier` for restartable sequences: abort all that are in progress; register the intent to do
/// so.
const ABORT: u32 = 1 << 7;
const ANNOUNCE: u32 = 1 << 8;

/// Makes the kernel refuse this process `membarrier` with these commands. Returns whether that worked.
fn refuse(commands: &[u32]) -> bool {
    const NUMBER_AT: u32 = 0;
    const FIRST_ARGUMENT_AT: u32 = 16;
    let step = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
    let load = |at| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, at);
    let equal = |value, jt, jf| step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, jt, jf, value);
    let answer = |what| step(libc::BPF_RET | libc::BPF_K, 0, 0, what);
    let mut filter = vec![
        load(NUMBER_AT),
        equal(libc::SYS_membarrier as u32, 1, 0),
        answer(libc::SECCOMP_RET_ALLOW),
        load(FIRST_ARGUMENT_AT),
    ];
    for &command in commands {
        filter.extend([equal(command, 0, 1), answer(libc::SECCOMP_RET_ERRNO | libc::EPERM as u32)]);
    }
    filter.push(answer(libc::SECCOMP_RET_ALLOW));
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the filter is valid for the call, and applies only to this process, a child.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    }
}

type Object = Ics<[Word; 1], 1, 1, Strategy>;

/// Creates an object of a processor on which this thread is not, if there are restartable sequences.
fn object_from_elsewhere() -> Option<Object> {
    let here = *cpus().first()?;
    pin(here);
    // The other processor need not exist.
    let ics = Object::with([Word::new(0)], Strategy::for_cpu(here as u32 + 1));
    (ics.commit().kind() == Kind::Rseq).then_some(ics)
}

fn update(ics: &Object) -> bool {
    let Some(mut slot) = ics.writer() else { return false };
    slot.update(|section| section.write(Var::<u64>::new(0), 1)).is_ok()
}

/// Returns the messages and the status of a child that updates from elsewhere.
fn update_refused(commands: &'static [u32]) -> (String, i32) {
    let mut said = tempfile();
    let child = Child::start(|| {
        let Some(ics) = object_from_elsewhere() else { return false };
        // SAFETY: valid descriptors of a child.
        unsafe { libc::dup2(said.as_raw_fd(), libc::STDERR_FILENO) };
        refuse(commands) && update(&ics)
    });
    let status = child.status();
    let mut text = String::new();
    said.rewind().and_then(|()| said.read_to_string(&mut text)).expect("the file is readable");
    (text, status)
}

/// A file without a name.
fn tempfile() -> File {
    use std::os::fd::FromRawFd;
    // SAFETY: the name is a constant; the descriptor is new, and the file owns it.
    unsafe {
        let descriptor = libc::memfd_create(c"said".as_ptr(), libc::MFD_CLOEXEC);
        assert!(descriptor >= 0, "a file in memory");
        File::from_raw_fd(descriptor)
    }
}

#[test]
fn a_thread_that_cannot_leave_prints_a_message_and_ends_the_process() {
    if object_from_elsewhere().is_none() {
        return;
    }
    let (said, status) = update_refused(&[ABORT]);
    assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGABRT, "status {status:#x}: {said}");
    assert!(said.contains("the kernel refuses membarrier"), "{said}");
    // The control: without a refusal the update succeeds.
    let (said, status) = update_refused(&[]);
    assert_eq!((said.as_str(), status), ("", 0));
}

#[test]
fn without_registration_there_are_no_sequences() {
    let child = Child::start(|| {
        refuse(&[ANNOUNCE]) && Strategy::for_cpu(0).kind() == Kind::Locked && {
            let ics = Object::with([Word::new(0)], Strategy::for_cpu(0));
            update(&ics)
        }
    });
    assert!(child.end(), "the update uses compare-and-swap");
}
