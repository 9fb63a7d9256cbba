//! The settings of the walks: the tasks and processors, how requests are served, and the faults of mutants.

use lockwright_model::Priority;

/// Capacities; a setting may have fewer tasks.
pub(super) const TASKS: usize = 4;
pub(super) const RESOURCES: usize = 2;

/// Who is served next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Served {
    /// The earliest request.
    Earliest,
    /// The earliest of those that were let into the queue, which are boosted from then on.
    Admitted,
    /// The most urgent waiter.
    MostUrgent,
}

/// What a task rises to before it asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rise {
    /// Owners have no priority of their own.
    Nothing,
    /// Above every base priority.
    Boosted,
    /// Above all tasks.
    NonPreemptive,
    /// Just above the highest user on its processor.
    Local,
}

/// Who there is. Task `t` has base priority `t + 1`.
pub(super) struct Setting {
    pub(super) served: Served,
    /// By task.
    pub(super) cpus: &'static [usize],
    /// How many of the tasks use resources; the others are more urgent.
    pub(super) users: usize,
    /// How many of the resources are used.
    pub(super) resources: usize,
    /// By resource: where its sections execute, if not where the task is.
    pub(super) homes: Option<[usize; RESOURCES]>,
    /// Whether priorities tell the order of requests.
    pub(super) is_ordered: bool,
    pub(super) rise: Rise,
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
        }
    }

    /// What owners have at least, wherever they are.
    pub(super) fn floor(&self) -> Priority {
        match self.rise {
            Rise::Nothing => Priority::MIN,
            Rise::Boosted => Priority::MIN.boosted(),
            Rise::NonPreemptive => Priority::NON_PREEMPTIVE,
            Rise::Local => self.cpus[..self.users].iter().map(|&cpu| self.ceiling(cpu)).min().unwrap_or(Priority::MIN),
        }
    }
}

/// What is wrong with those that carry out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    None,
    /// Others are told in the order of their ids.
    ToldById,
    /// Others decide before all are told.
    DecidesMeanwhile,
    /// Nobody is told of the new order.
    NotTold,
    /// A priority is taken, however old it is.
    TakesStale,
    /// The last wake-up of each decision is lost.
    NoWake,
    /// The same, only of a waiter's that gives up.
    NoWakeOnGivingUp,
    /// A task asks without rising.
    NotRaised,
    /// The machine moves nobody but the caller.
    NotMoved,
    /// Who gives up does not look whether it was granted meanwhile.
    GivesUpBlindly,
}

const fn served(served: Served) -> Setting {
    let rise = Rise::Boosted;
    let cpus = &[0, 0, 0];
    Setting { served, cpus, users: 3, resources: 1, homes: None, is_ordered: false, rise, gives_up: false }
}

/// All tasks on one processor, the home on the other.
pub(super) const DFLP: Setting = Setting { homes: Some([1, 1]), is_ordered: true, ..served(Served::Earliest) };
/// One task is at home.
pub(super) const AT_HOME: Setting = Setting { cpus: &[0, 1, 0], ..DFLP };
/// Each on a processor of its own; on none of them is the home.
pub(super) const APART: Setting = Setting { cpus: &[0, 1, 2], homes: Some([3, 3]), ..DFLP };
pub(super) const DPCP: Setting = Setting { is_ordered: false, served: Served::MostUrgent, ..AT_HOME };
pub(super) const PLUS: Setting = Setting { cpus: &[0, 0, 1], is_ordered: true, ..served(Served::Earliest) };
/// Three of them on one processor, so that new levels are told to two other tasks.
pub(super) const PLUS_TOGETHER: Setting = Setting { cpus: &[0, 0, 0, 1], users: 4, ..PLUS };
pub(super) const LONG: Setting = Setting { is_ordered: false, rise: Rise::Nothing, ..PLUS };
pub(super) const SHORT: Setting =
    Setting { cpus: &[0, 0, 1, 2], users: 4, rise: Rise::NonPreemptive, is_ordered: false, ..PLUS };
pub(super) const MPCP: Setting = Setting { is_ordered: false, served: Served::MostUrgent, ..PLUS };
pub(super) const MPCP_OF_TWO: Setting = Setting { resources: 2, ..MPCP };
pub(super) const MRSP: Setting = Setting { rise: Rise::Local, is_ordered: false, ..PLUS };
/// One that does not ask preempts owners, whom one of another processor helps.
pub(super) const HELPED: Setting = Setting { cpus: &[0, 1, 0], users: 2, ..MRSP };
/// Two can help.
pub(super) const HELPED_BY_TWO: Setting = Setting { cpus: &[0, 1, 2, 0], users: 3, ..MRSP };
pub(super) const OMLP: Setting = Setting { served: Served::Admitted, is_ordered: false, ..PLUS };
pub(super) const OMLP_OF_TWO: Setting = Setting { resources: 2, ..OMLP };

pub(super) const fn giving_up(setting: Setting) -> Setting {
    Setting { gives_up: true, ..setting }
}
