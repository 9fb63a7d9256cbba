//! One `[[task]]`.

use super::fields::{Fields, Found};
use super::places::{Places, refusal};
use super::surroundings::{Placing, Surroundings};
use super::{Diagnostic, Faults, body, named};
use crate::format::runs::sum_of_runs;
use crate::{CPUS_MAX, CpuId, Duration, Priority, Scheduler, Subject, Task, TaskId, validate};

/// A task as read, with the places of its parts. If the file is
/// wrong, a fault has been reported and the task must not be used.
pub(super) struct Draft {
    pub(super) task: Task,
    pub(super) places: Places,
    pub(super) gives_priority: bool,
    /// The CPUs on which its jobs execute, a bit each.
    pub(super) cluster: u64,
    /// Whether the file gives these CPUs.
    pub(super) is_placed: bool,
    /// The working set in KiB.
    pub(super) working_set: Option<u32>,
}

const KEYS: [&str; 12] = [
    "name",
    "period",
    "deadline",
    "jitter",
    "offset",
    "wcet",
    "priority",
    "cpu",
    "cpus",
    "working_set_kib",
    "requests",
    "body",
];

/// The maximum working set in KiB: a tebibyte.
const WORKING_SET_MAX: u64 = 1 << 30;

impl Draft {
    pub(super) fn read(found: &Found, surroundings: &Surroundings, faults: &mut Faults) -> Self {
        let mut draft = Self {
            task: blank(),
            places: Places::at(found.span()),
            gives_priority: false,
            cluster: 1,
            is_placed: false,
            working_set: None,
        };
        let Some(table) = found.table("a task", "write [[task]]", faults) else { return draft };
        let owner = table.get("name").and_then(|name| name.get_ref().as_str());
        let owner = named("task", owner.unwrap_or_default());
        let fields = Fields::of(table, &owner, found.span(), &KEYS, faults);
        for key in KEYS {
            draft.places.note(key, fields.get(key).as_ref());
        }
        draft.task.name = fields.name("task", faults);
        draft.gives_priority = fields.means("priority");
        draft.is_placed = fields.get("cpu").is_some() || fields.get("cpus").is_some();
        if draft.fill(&fields, &owner, surroundings, faults).is_some() {
            check_task(&draft.task, &draft.places, surroundings, faults);
        }
        draft
    }

    /// Reads the keys of the task. Returns `None` if one that the checks need is missing or wrong.
    fn fill(&mut self, fields: &Fields, owner: &str, surroundings: &Surroundings, faults: &mut Faults) -> Option<()> {
        let mut duration = |key: &str| match fields.get(key) {
            Some(found) => found.duration(&format!("the {key} of {owner}"), faults).map(Some),
            None => Some(None),
        };
        let [period, deadline, jitter, offset, wcet] =
            ["period", "deadline", "jitter", "offset", "wcet"].map(&mut duration);
        if period == Some(None) {
            fields.require("period", owner, "add a period, for example period = \"10 ms\"", faults);
        }
        let priority = match fields.get("priority") {
            Some(found) => found.priority(&format!("the priority of {owner}"), faults),
            None => Some(Priority::MIN),
        };
        let cluster = read_cluster(fields, owner, surroundings, faults);
        let working_set = match fields.get("working_set_kib") {
            Some(found) => {
                found.integer(&format!("the working set of {owner}, in KiB,"), 0, WORKING_SET_MAX, faults).map(Some)
            }
            None => Some(None),
        };
        let body = body::read(fields, owner, wcet, surroundings, &mut self.places, faults);

        let task = &mut self.task;
        task.period = period??;
        task.deadline = deadline?.unwrap_or(task.period);
        task.jitter = jitter?.unwrap_or(Duration::ZERO);
        task.offset = offset?.unwrap_or(Duration::ZERO);
        task.priority = priority?;
        self.cluster = cluster?;
        task.cpu = CpuId::new(self.cluster.trailing_zeros() as usize);
        self.working_set = working_set?.and_then(|kib| u32::try_from(kib).ok());
        task.body = body?;
        task.wcet = match wcet? {
            Some(wcet) => wcet,
            None => sum_of_runs(&task.body),
        };
        Some(())
    }
}

/// Reads the CPUs of a task, as a set with one bit for each CPU.
fn read_cluster(fields: &Fields, owner: &str, surroundings: &Surroundings, faults: &mut Faults) -> Option<u64> {
    let Some(found) = fields.get("cpus") else {
        return read_cpu(fields, owner, surroundings, faults).map(|cpu| 1 << cpu.index());
    };
    let scheduler = surroundings.scheduler?;
    let fault = if scheduler != Scheduler::CFp {
        let fault = Diagnostic::new(format!("{owner} has a cluster of CPUs, but the scheduler is `{scheduler}`"));
        Some(fault.help("set scheduler = \"c-fp\" in [platform], or give the task one CPU: cpu = 0"))
    } else if fields.get("cpu").is_some() {
        Some(Diagnostic::new(format!("{owner} has both `cpu` and `cpus`")).help("remove one of them"))
    } else {
        None
    };
    if let Some(fault) = fault {
        faults.push(fault.at(found.span()));
        return None;
    }
    let most = surroundings.cpus.unwrap_or(CPUS_MAX) as u64 - 1;
    let mut cluster = 0;
    for element in found.list(&format!("`cpus` of {owner}"), "write it as cpus = [0, 1]", faults)? {
        let cpu = element.integer(&format!("a CPU of {owner}"), 0, most, faults)?;
        if cluster >> cpu & 1 == 1 {
            let fault = Diagnostic::new(format!("{owner} has CPU {cpu} twice")).at(element.span());
            faults.push(fault.help("name each CPU once"));
            return None;
        }
        cluster |= 1 << cpu;
    }
    if cluster == 0 {
        faults.push(Diagnostic::new(format!("{owner} has no CPU")).at(found.span()).help("write it as cpus = [0, 1]"));
        return None;
    }
    Some(cluster)
}

fn read_cpu(fields: &Fields, owner: &str, surroundings: &Surroundings, faults: &mut Faults) -> Option<CpuId> {
    let cpus = surroundings.cpus;
    if let Some(found) = fields.get("cpu") {
        let most = cpus.unwrap_or(CPUS_MAX) as u64 - 1;
        return found.integer(&format!("the CPU of {owner}"), 0, most, faults).map(|cpu| CpuId(cpu as u16));
    }
    let is_needed = surroundings.placing == Placing::File
        && cpus != Some(1)
        && surroundings.scheduler.is_some_and(|scheduler| !scheduler.is_global());
    if !is_needed {
        return Some(CpuId(0));
    }
    let cpus = cpus?;
    fields.require("cpu", owner, &format!("the platform has {cpus} CPUs: add cpu = 0 to {}", cpus - 1), faults);
    None
}

fn blank() -> Task {
    Task {
        name: String::new(),
        cpu: CpuId(0),
        priority: Priority::MIN,
        period: Duration::ZERO,
        deadline: Duration::ZERO,
        jitter: Duration::ZERO,
        offset: Duration::ZERO,
        wcet: Duration::ZERO,
        body: Vec::new(),
    }
}

impl Draft {
    /// Takes the task, and leaves an empty one in its place.
    pub(super) fn take(&mut self) -> Task {
        std::mem::replace(&mut self.task, blank())
    }
}

/// Checks the rules of [`System::new`](crate::System::new) that concern one task alone, so that the faults of every
/// task are found.
fn check_task(task: &Task, places: &Places, surroundings: &Surroundings, faults: &mut Faults) {
    let id = TaskId(0);
    let cpus = surroundings.cpus.unwrap_or(CPUS_MAX);
    let checked = validate::check_times(cpus, task, Subject::Task(id))
        .and_then(|()| validate::check_body(surroundings.resources, task, id));
    if let Err(invalid) = checked {
        let span = match invalid.subject {
            Subject::Step(_, step) => places.of_step(step),
            _ => places.of(invalid.key),
        };
        faults.push(refusal(invalid, Some(span)));
    }
}
