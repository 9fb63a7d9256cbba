//! The machines whose effects are walked.

extern crate std;

use super::setting::{RESOURCES, Setting, TASKS};
use super::state::Stepped;
use crate::reader_writer::Fault;
use crate::{
    Action, Dflp, Dpcp, Fairness, FmlpLong, FmlpPlus, FmlpShort, Icpp, Ics, IcsLock, Machine, Mpcp, MpcpVs, Mrsp, Omlp,
    Pcp, Pip, PlainMutex, ReaderWriter, Refusal, Srp,
};
use lockwright_model::{CpuId, MpcpCeiling, Priority, ResourceId, TaskId};
use std::vec::Vec;

macro_rules! stepped {
    ($($machine:ident: $zero:ident),*) => {$(
        impl Stepped for $machine<TASKS, RESOURCES> {
            fn zero_epochs(&mut self) {
                self.$zero();
            }
        }
    )*};
}

stepped!(
    Dflp: zero_epochs, Dpcp: zero_epochs, FmlpLong: zero_epochs, FmlpPlus: zero_epochs, FmlpShort: forget_epochs,
    Mpcp: forget_epochs, MpcpVs: forget_epochs, Mrsp: forget_epochs, Omlp: forget_epochs, PlainMutex: forget_epochs,
    Pip: forget_epochs, Icpp: forget_epochs, Pcp: forget_epochs, Srp: forget_epochs, Ics: forget_epochs,
    IcsLock: forget_epochs, ReaderWriter: forget_epochs
);

fn tasks(setting: &Setting) -> Vec<(Priority, CpuId)> {
    let task = |(task, &cpu): (usize, &usize)| (Priority::base(task as u32 + 1), CpuId::new(cpu));
    setting.cpus.iter().enumerate().map(task).collect()
}

pub(super) fn dflp(setting: &Setting) -> Dflp<TASKS, RESOURCES> {
    Dflp::new(&tasks(setting), &setting.homes.unwrap_or_default().map(CpuId::new))
}

pub(super) fn dpcp(setting: &Setting) -> Dpcp<TASKS, RESOURCES> {
    let highest = Priority::base(setting.cpus.len() as u32);
    Dpcp::new(&tasks(setting), &setting.homes.unwrap_or_default().map(|home| (CpuId::new(home), highest)))
}

pub(super) fn fmlp_long(setting: &Setting) -> FmlpLong<TASKS, RESOURCES> {
    FmlpLong::new(&tasks(setting), RESOURCES)
}

pub(super) fn fmlp_plus(setting: &Setting) -> FmlpPlus<TASKS, RESOURCES> {
    FmlpPlus::new(&tasks(setting), RESOURCES)
}

pub(super) fn fmlp_short(setting: &Setting) -> FmlpShort<TASKS, RESOURCES> {
    FmlpShort::new(&tasks(setting), RESOURCES)
}

fn ceilings(setting: &Setting) -> [MpcpCeiling; RESOURCES] {
    let ceiling = Priority::base(setting.cpus.len() as u32).boosted();
    [MpcpCeiling { home: CpuId(0), on_home: ceiling, elsewhere: ceiling }; RESOURCES]
}

pub(super) fn mpcp(setting: &Setting) -> Mpcp<TASKS, RESOURCES> {
    Mpcp::new(&tasks(setting), &ceilings(setting))
}

pub(super) fn mpcp_vs(setting: &Setting) -> MpcpVs<TASKS, RESOURCES> {
    MpcpVs::new(&tasks(setting), &ceilings(setting))
}

pub(super) fn mrsp(setting: &Setting) -> Mrsp<TASKS, RESOURCES> {
    let users: Vec<TaskId> = (0..setting.users).map(TaskId::new).collect();
    Mrsp::new(&tasks(setting), [users.as_slice(); RESOURCES].into_iter())
}

pub(super) fn omlp(setting: &Setting) -> Omlp<TASKS, RESOURCES> {
    Omlp::new(&tasks(setting), RESOURCES)
}

fn bases(setting: &Setting) -> Vec<Priority> {
    tasks(setting).into_iter().map(|task| task.0).collect()
}

pub(super) fn none(setting: &Setting) -> PlainMutex<TASKS, RESOURCES> {
    PlainMutex::new(&bases(setting))
}

pub(super) fn pip(setting: &Setting) -> Pip<TASKS, RESOURCES> {
    Pip::new(&bases(setting))
}

pub(super) fn icpp(setting: &Setting) -> Icpp<TASKS, RESOURCES> {
    Icpp::new(&bases(setting), &[setting.highest(); RESOURCES])
}

pub(super) fn pcp(setting: &Setting) -> Pcp<TASKS, RESOURCES> {
    Pcp::new(&tasks(setting), &[setting.highest(); RESOURCES])
}

pub(super) fn srp(setting: &Setting) -> Srp<TASKS, RESOURCES> {
    Srp::new(&tasks(setting), &[setting.highest(); RESOURCES])
}

pub(super) fn ics(setting: &Setting) -> Ics<TASKS, RESOURCES> {
    Ics::new(setting.cpus.len(), RESOURCES)
}

pub(super) fn ics_lock(setting: &Setting) -> IcsLock<TASKS, RESOURCES> {
    let cutoff = Priority::base(setting.excluding as u32 + 1);
    IcsLock::new(&bases(setting), &[(cutoff, setting.highest()); RESOURCES])
}

pub(super) fn phase_fair(setting: &Setting) -> ReaderWriter<TASKS, RESOURCES> {
    ReaderWriter::new(Fairness::Phases, &bases(setting), RESOURCES)
}

pub(super) fn one_reader_per_phase(setting: &Setting) -> ReaderWriter<TASKS, RESOURCES> {
    phase_fair(setting).with_fault(Fault::OneReader)
}

pub(super) fn readers_past_writers(setting: &Setting) -> ReaderWriter<TASKS, RESOURCES> {
    phase_fair(setting).with_fault(Fault::PastWriters)
}

pub(super) fn task_fair(setting: &Setting) -> ReaderWriter<TASKS, RESOURCES> {
    ReaderWriter::new(Fairness::Tasks, &bases(setting), RESOURCES)
}

/// In the order in which requests arrive at home, whatever the order in which they were decided: a request is taken
/// back on arrival, and made again.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct ByArrival(Dflp<TASKS, RESOURCES>, [Option<ResourceId>; TASKS]);

impl Machine for ByArrival {
    fn request(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.1[task.index()] = Some(resource);
        self.0.request(task, resource, act)
    }

    fn release(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.0.release(task, resource, act)
    }

    fn woken(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        let resource = self.1[task.index()].ok_or(Refusal::NotWaiting)?;
        let mut grants = |action| {
            if let Action::Grant { .. } | Action::Wake { .. } = action {
                act(action);
            }
        };
        self.0.cancel(task, &mut grants)?;
        self.0.request(task, resource, &mut |_| ())?;
        self.0.woken(task, act)
    }

    fn cancel(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.0.cancel(task, act)
    }

    fn set_base(&mut self, task: TaskId, base: Priority, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.0.set_base(task, base, act)
    }
}

impl Stepped for ByArrival {
    fn zero_epochs(&mut self) {
        self.0.zero_epochs();
    }
}

pub(super) fn by_arrival(setting: &Setting) -> ByArrival {
    ByArrival(dflp(setting), [None; TASKS])
}
