//! The settings of the walks: the tasks and processors, how requests are served, and the faults of mutants.

use lockwright_model::Priority;

/// Capacities; a setting may have fewer tasks.
pub(super) const TASKS: usize = 4;
pub(super) const RESOURCES: usize = 2;

/// The request that a release serves next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Served {
    /// The earliest request.
    Earliest,
    /// The earliest request among those that were admitted to the queue; these are boosted from then on.
    Admitted,
    /// The request of the most urgent waiter.
    MostUrgent,
    /// The same among the requests that were admitted to the queue; these are boosted from then on.
    MostUrgentAdmitted,
    /// The earliest request to write, or all requests to read after a section that wrote, or where no task waits to
    /// write.
    Phases,
    /// Any request.
    Any,
}

/// The priority to which a task rises before it requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rise {
    /// The task does not rise, and owners keep their base priorities, unless they inherit.
    Nothing,
    /// Above every base priority.
    Boosted,
    /// Above all tasks.
    NonPreemptive,
    /// Half a level above the most urgent user on its processor.
    Local,
    /// The priority of the most urgent user whose sections exclude others.
    Ceiling,
}

/// The tasks and resources of a walk. Task `t` has base priority `t + 1`.
pub(super) struct Setting {
    pub(super) served: Served,
    /// The processor of each task.
    pub(super) cpus: &'static [usize],
    /// The number of tasks that use resources; the others are more urgent.
    pub(super) users: usize,
    /// The number of tasks whose sections exclude each other; the others are more urgent.
    pub(super) excluding: usize,
    /// Whether tasks also request to read. Sections that read do not exclude each other.
    pub(super) reads: bool,
    /// The number of tasks that only request to read; the others are more urgent.
    pub(super) only_read: usize,
    /// Whether jobs arrive and end above all tasks.
    pub(super) has_jobs_above: bool,
    /// The number of resources in use.
    pub(super) resources: usize,
    /// The home of each resource, where its sections execute; `None` if they execute on the task's processor.
    pub(super) homes: Option<[usize; RESOURCES]>,
    /// Whether priorities express the order of requests.
    pub(super) is_ordered: bool,
    pub(super) rise: Rise,
    /// Whether owners inherit the priorities of the tasks that wait for them.
    pub(super) inherits: bool,
    /// Whether waiters may give up.
    pub(super) gives_up: bool,
}

impl Setting {
    /// The highest base priority of the users on a processor.
    fn ceiling(&self, cpu: usize) -> Priority {
        let highest = self.cpus[..self.users].iter().rposition(|&other| other == cpu);
        highest.map_or(Priority::MIN, |task| Priority::base(task as u32 + 1))
    }

    pub(super) fn risen(&self, task: usize) -> Priority {
        match self.rise {
            Rise::Nothing => Priority::MIN,
            Rise::Boosted => Priority::BASE_MAX.boosted(),
            Rise::NonPreemptive => Priority::NON_PREEMPTIVE,
            Rise::Local => self.ceiling(self.cpus[task]).raised(),
            Rise::Ceiling if task < self.excluding => self.highest(),
            Rise::Ceiling => Priority::MIN,
        }
    }

    /// The priority of the most urgent user whose sections exclude others.
    pub(super) fn highest(&self) -> Priority {
        Priority::base(self.users.min(self.excluding) as u32)
    }

    /// The least priority of an owner, on any processor.
    pub(super) fn floor(&self, task: usize) -> Priority {
        match self.rise {
            Rise::Ceiling => self.risen(task),
            Rise::Nothing => Priority::MIN,
            Rise::Boosted => Priority::MIN.boosted(),
            Rise::NonPreemptive => Priority::NON_PREEMPTIVE,
            Rise::Local => self.cpus[..self.users].iter().map(|&cpu| self.ceiling(cpu)).min().unwrap_or(Priority::MIN),
        }
    }
}

/// The fault of the threads of a mutant, which carry actions out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    None,
    /// The priorities of others are set in the order of their ids.
    ToldById,
    /// Another thread decides before the priorities of others are set.
    DecidesMeanwhile,
    /// The priorities of others are not set.
    NotTold,
    /// A stale priority takes effect.
    TakesStale,
    /// The last wake-up of each decision is lost.
    NoWake,
    /// The last wake-up is lost when a waiter gives up.
    NoWakeOnGivingUp,
    /// The machine sets only the priority of the caller.
    NotInherited,
    /// A task requests without rising.
    NotRaised,
    /// The machine moves only the caller.
    NotMoved,
    /// A waiter gives up although the resource was granted to it meanwhile.
    GivesUpBlindly,
    /// A task goes on although its section was invalidated.
    NoRestart,
}

const fn served(served: Served) -> Setting {
    let rise = Rise::Boosted;
    Setting {
        served,
        cpus: &[0, 0, 0],
        users: 3,
        excluding: TASKS,
        reads: false,
        only_read: 0,
        has_jobs_above: true,
        resources: 1,
        homes: None,
        is_ordered: false,
        rise,
        inherits: false,
        gives_up: false,
    }
}

/// All tasks on one processor, the home on the other.
pub(super) const DFLP: Setting = Setting { homes: Some([1, 1]), is_ordered: true, ..served(Served::Earliest) };
/// One task is on the home processor.
pub(super) const AT_HOME: Setting = Setting { cpus: &[0, 1, 0], ..DFLP };
/// Each task has a processor of its own, and the home is another one.
pub(super) const APART: Setting = Setting { cpus: &[0, 1, 2], homes: Some([3, 3]), ..DFLP };
pub(super) const DPCP: Setting = Setting { is_ordered: false, served: Served::MostUrgent, ..AT_HOME };
pub(super) const PLUS: Setting = Setting { cpus: &[0, 0, 1], is_ordered: true, ..served(Served::Earliest) };
/// Three tasks on one processor: a decision sets the priorities of two other tasks.
pub(super) const PLUS_TOGETHER: Setting = Setting { cpus: &[0, 0, 0, 1], users: 4, ..PLUS };
pub(super) const LONG: Setting = Setting { is_ordered: false, rise: Rise::Nothing, ..PLUS };
pub(super) const SHORT: Setting =
    Setting { cpus: &[0, 0, 1, 2], users: 4, rise: Rise::NonPreemptive, is_ordered: false, ..PLUS };
pub(super) const MPCP: Setting = Setting { is_ordered: false, served: Served::MostUrgent, ..PLUS };
pub(super) const MPCP_OF_TWO: Setting = Setting { resources: 2, ..MPCP };
pub(super) const MPCP_VS: Setting = Setting { served: Served::MostUrgentAdmitted, ..MPCP };
pub(super) const MPCP_VS_OF_TWO: Setting = Setting { resources: 2, ..MPCP_VS };
/// Two requests are held back at a time.
pub(super) const MPCP_VS_TOGETHER: Setting = Setting { cpus: &[0, 0, 0, 1], users: 4, ..MPCP_VS };
pub(super) const MRSP: Setting = Setting { rise: Rise::Local, is_ordered: false, ..PLUS };
/// A task that uses no resource preempts owners, and a waiter on another processor helps them.
pub(super) const HELPED: Setting = Setting { cpus: &[0, 1, 0], users: 2, ..MRSP };
/// Two waiters can help.
pub(super) const HELPED_BY_TWO: Setting = Setting { cpus: &[0, 1, 2, 0], users: 3, ..MRSP };
pub(super) const OMLP: Setting = Setting { served: Served::Admitted, is_ordered: false, ..PLUS };
pub(super) const OMLP_OF_TWO: Setting = Setting { resources: 2, ..OMLP };

pub(super) const NONE: Setting = Setting { served: Served::Any, ..LONG };
pub(super) const PIP: Setting = Setting { served: Served::MostUrgent, inherits: true, ..LONG };
/// On one processor.
pub(super) const PIP_OF_TWO: Setting = Setting { cpus: &[0, 0, 0], resources: 2, ..PIP };
pub(super) const ICPP: Setting = Setting { served: Served::MostUrgent, rise: Rise::Ceiling, ..LONG };
pub(super) const ICPP_OF_TWO: Setting = Setting { resources: 2, ..ICPP };
/// On one processor; the most urgent task uses no resource.
pub(super) const PCP: Setting = Setting { cpus: &[0, 0, 0, 0], users: 3, resources: 2, ..PIP };
pub(super) const SRP: Setting = Setting { has_jobs_above: false, inherits: false, ..PCP };
/// Sections exclude no others.
pub(super) const ICS: Setting = Setting { served: Served::Any, excluding: 0, resources: 2, ..LONG };
/// The most urgent task enters without the lock.
pub(super) const ICS_LOCK: Setting = Setting { cpus: &[0, 1, 0], excluding: 2, ..ICPP };
pub(super) const PHASES: Setting = Setting { served: Served::Phases, reads: true, ..SHORT };
/// Four requests at a time: one gives up while a task reads, and a writer and a reader wait.
pub(super) const PHASES_APART: Setting = Setting { cpus: &[0, 1, 2, 3], only_read: 2, ..PHASES };
pub(super) const TASK_FAIR: Setting = Setting { reads: true, ..SHORT };

pub(super) const fn giving_up(setting: Setting) -> Setting {
    Setting { gives_up: true, ..setting }
}
