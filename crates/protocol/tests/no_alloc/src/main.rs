//! A program for a processor without an operating system that uses every protocol machine. It is only linked:
//! without a global allocator, that fails if `model` or `protocol` needs one.
#![no_std]
#![no_main]

use core::hint::black_box;
use core::panic::PanicInfo;
use lockwright_model::{CpuId, CPUS_MAX, MpcpCeiling, Priority, ResourceId, TaskId};
use lockwright_protocol::fulock::{Class, Protection, Unlock};
use lockwright_protocol::{
    Action, Dflp, Dpcp, Fairness, FmlpLong, FmlpPlus, FmlpShort, Fulock, Icpp, Ics, IcsLock, Machine, Mpcp, MpcpVs,
    Mrsp, Omlp, Pcp, Pip, PlainMutex, ReaderWriter, Srp, WaitFree,
};

const TASKS: usize = 2;
const RESOURCES: usize = 1;
const CPU: CpuId = CpuId(0);
const R: ResourceId = ResourceId(0);

fn drive(machine: &mut dyn Machine) {
    let mut actions = 0_u32;
    let act = &mut |_: Action| actions += 1;
    for task in [TaskId(0), TaskId(1)] {
        let _ = machine.arrive(task, act);
        let _ = machine.request(task, R, act);
        let _ = machine.request_read(task, R, act);
        let _ = machine.woken(task, act);
        let _ = machine.set_base(task, Priority::base(3), act);
        let _ = machine.cancel(task, act);
        let _ = machine.release(task, R, act);
        let _ = machine.finish(task, act);
    }
    black_box(actions);
}

/// The linker's entry point.
#[unsafe(no_mangle)]
pub extern "C" fn _start() -> ! {
    let priorities = black_box([Priority::base(1), Priority::base(2)]);
    let tasks = priorities.map(|priority| (priority, CPU));
    let ceilings = [Priority::base(2)];
    let ceiling = MpcpCeiling { home: CPU, on_home: ceilings[0].boosted(), elsewhere: ceilings[0].boosted() };
    drive(&mut PlainMutex::<TASKS, RESOURCES>::new(&priorities));
    drive(&mut Pip::<TASKS, RESOURCES>::new(&priorities));
    drive(&mut Icpp::<TASKS, RESOURCES>::new(&priorities, &ceilings));
    drive(&mut Pcp::<TASKS, RESOURCES>::new(&tasks, &ceilings));
    drive(&mut Srp::<TASKS, RESOURCES>::new(&tasks, &ceilings));
    drive(&mut Ics::<TASKS, RESOURCES>::new(TASKS, RESOURCES));
    drive(&mut IcsLock::<TASKS, RESOURCES>::new(&priorities, &[(ceilings[0], ceilings[0])]));
    drive(&mut Mpcp::<TASKS, RESOURCES>::new(&tasks, &[ceiling]));
    drive(&mut MpcpVs::<TASKS, RESOURCES>::new(&tasks, &[ceiling]));
    drive(&mut Dpcp::<TASKS, RESOURCES>::new(&tasks, &[(CPU, ceilings[0])]));
    drive(&mut Dflp::<TASKS, RESOURCES>::new(&tasks, &[CPU]));
    drive(&mut FmlpLong::<TASKS, RESOURCES>::new(&tasks, RESOURCES));
    drive(&mut FmlpPlus::<TASKS, RESOURCES>::new(&tasks, RESOURCES));
    drive(&mut FmlpShort::<TASKS, RESOURCES>::new(&tasks, RESOURCES));
    drive(&mut Mrsp::<TASKS, RESOURCES>::new(&tasks, [[TaskId(0), TaskId(1)].as_slice()].into_iter()));
    drive(&mut Omlp::<TASKS, RESOURCES>::new(&tasks, RESOURCES).with_clusters([1; CPUS_MAX]));
    drive(&mut ReaderWriter::<TASKS, RESOURCES>::new(Fairness::Phases, &priorities, RESOURCES));
    drive(&mut WaitFree::<TASKS, RESOURCES>::new(TASKS, RESOURCES));
    let mut fulock = Fulock::<TASKS, RESOURCES>::new(
        &priorities.map(|priority| (priority, Class::RealTime)),
        &[Protection::Inherit],
    );
    let act = &mut |action: Action| {
        black_box(action);
    };
    let _ = fulock.request(TaskId(0), R, act);
    let _ = fulock.release(TaskId(0), R, Unlock::Auto, act);
    loop {
        core::hint::spin_loop();
    }
}

#[panic_handler]
fn panic(_: &PanicInfo) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
