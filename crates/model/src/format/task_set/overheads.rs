//! Overheads files: TOML with one table, one more for each protocol whose locks differ from the others, and one for
//! each kind of non-blocking object.

use super::fields::{Fields, Found};
use super::{Diagnostic, Diagnostics, Faults};
use crate::format::reader;
use crate::{Cost, Duration, ObjectKind, Overhead, Overheads, Progress, Protocol, TASKS_MAX};

/// Reads the overheads of a machine from an overheads file. An overhead that is not in the file takes no time.
///
/// # Errors
/// Returns at least one fault, in order of place.
///
/// # Examples
/// ```
/// use lockwright_model::{Duration, Overhead, format::parse_overheads};
/// let overheads = parse_overheads("release = \"3 us\"\ncontext_switch = [[10, \"1 us\"], [20, \"2 us\"]]\n")?;
/// assert_eq!(overheads.cost(Overhead::ContextSwitch).with(15), Duration::from_ns(1500));
/// # Ok::<(), lockwright_model::format::Diagnostics>(())
/// ```
/// The locks of one protocol may have their own costs:
/// ```
/// use lockwright_model::{Duration, Overhead, Protocol, format::parse_overheads};
/// let overheads = parse_overheads("unlock = \"1 us\"\n[lock.srp]\nlock = \"2 us\"\n")?;
/// assert_eq!(overheads.cost_under(Overhead::Lock, Protocol::Srp).with(1), Duration::from_ns(2_000));
/// assert_eq!(overheads.cost_under(Overhead::Unlock, Protocol::Srp).with(1), Duration::from_ns(1_000));
/// # Ok::<(), lockwright_model::format::Diagnostics>(())
/// ```
/// Non-blocking objects have costs by the number of tasks that share them:
/// ```
/// use lockwright_model::{Duration, ObjectKind, Progress, format::parse_overheads};
/// let overheads = parse_overheads("[object.heap]\nlock_free = [[2, \"1 us\"], [4, \"2 us\"]]\n")?;
/// let cost = overheads.object(ObjectKind::Heap, Progress::LockFree).expect("a cost of heaps");
/// assert_eq!(cost.with(3), Duration::from_ns(1_500));
/// # Ok::<(), lockwright_model::format::Diagnostics>(())
/// ```
pub fn parse_overheads(source: &str) -> Result<Overheads, Diagnostics> {
    let mut keys = vec!["tick_period", "dedicated_interrupts", "cache_delay", "lock", "object"];
    keys.extend(Overhead::ALL.into_iter().filter(|&of| of != Overhead::Lock).map(Overhead::name));
    reader::read(source, "an overheads file", &keys, read_costs)
}

fn read_costs(fields: &Fields<'_, '_>, faults: &mut Faults) -> Option<Overheads> {
    let mut overheads = Overheads::default();
    if let Some(found) = fields.get("tick_period") {
        overheads.tick_period = found.duration("the tick period", faults).unwrap_or_default();
    }
    if let Some(found) = fields.get("dedicated_interrupts") {
        overheads.dedicated_interrupts = found.yes_or_no("`dedicated_interrupts`", faults).unwrap_or_default();
    }
    for of in Overhead::ALL {
        // A table in place of a cost gives the costs of each protocol.
        if let Some(found) = fields.get(of.name()).filter(|found| of == Overhead::Lock && found.is_table()) {
            read_locks(&found, &mut overheads, faults);
            continue;
        }
        let cost = fields.get(of.name()).and_then(|found| read_cost(&found, of.name(), &TASKS, faults));
        overheads.set(of, cost.unwrap_or_default());
    }
    if let Some(found) = fields.get("cache_delay") {
        overheads.cache_delay = read_cost(&found, "cache_delay", &KIB, faults).unwrap_or_default();
    }
    if let Some(found) = fields.get("object") {
        read_objects(&found, &mut overheads, faults);
    }
    let (tick, period) = (overheads.cost(Overhead::Tick), overheads.tick_period);
    let place = || fields.get("tick").map_or(0..0, |found| found.span());
    let (least, most) = (tick.with(0), tick.with(TASKS_MAX));
    // A tick that grows with the number of tasks may be shorter for few.
    if period != Duration::ZERO && least >= period {
        let message = format!("`tick` takes {least}, and `tick_period` is only {period}");
        faults.push(Diagnostic::new(message).at(place()).help("a tick is shorter than its period; check the units"));
    }
    if most != Duration::ZERO && period == Duration::ZERO {
        faults.push(
            Diagnostic::new("tick has a cost and no period")
                .at(place())
                .help("add tick_period, for example tick_period = \"1 ms\""),
        );
    }
    Some(overheads)
}

/// Reads `[lock]`, which has a table for each protocol whose locks differ from the others. The key `lock` inside it
/// gives the cost for the other protocols.
fn read_locks(found: &Found, overheads: &mut Overheads, faults: &mut Faults) {
    let Some(table) = found.table("`lock`", "", faults) else { return };
    let mut keys = vec![Overhead::Lock.name()];
    keys.extend(Protocol::ALL.map(Protocol::name));
    let fields = Fields::of(table, "`lock`", found.span(), &keys, faults);
    if let Some(found) = fields.get(Overhead::Lock.name()) {
        let cost = read_cost(&found, "lock", &TASKS, faults);
        overheads.set(Overhead::Lock, cost.unwrap_or_default());
    }
    for protocol in Protocol::ALL {
        let Some(found) = fields.get(protocol.name()) else { continue };
        let owner = format!("`lock.{protocol}`");
        let help = format!("write [lock.{protocol}], and below it lock = \"1 us\"");
        let Some(table) = found.table(&owner, &help, faults) else { continue };
        let own = Fields::of(table, &owner, found.span(), &Overhead::OF_SECTIONS.map(Overhead::name), faults);
        for of in Overhead::OF_SECTIONS {
            let Some(found) = own.get(of.name()) else { continue };
            if let Some(cost) = read_cost(&found, of.name(), &TASKS, faults) {
                overheads.set_under(of, protocol, cost);
            }
        }
    }
}

/// Reads `[object]`, which has a table for each kind of object.
fn read_objects(found: &Found, overheads: &mut Overheads, faults: &mut Faults) {
    let help = |kind: &str| format!("write [object.{kind}], and below it lock_free = [[2, \"1 us\"]]");
    let Some(table) = found.table("`object`", &help("heap"), faults) else { return };
    let fields = Fields::of(table, "`object`", found.span(), &ObjectKind::ALL.map(ObjectKind::name), faults);
    for kind in ObjectKind::ALL {
        let Some(found) = fields.get(kind.name()) else { continue };
        let owner = format!("`object.{kind}`");
        let Some(table) = found.table(&owner, &help(kind.name()), faults) else { continue };
        let own = Fields::of(table, &owner, found.span(), &Progress::ALL.map(Progress::name), faults);
        for progress in Progress::ALL {
            let Some(found) = own.get(progress.name()) else { continue };
            if let Some(cost) = read_cost(&found, progress.name(), &SHARERS, faults) {
                overheads.set_object(kind, progress, cost);
            }
        }
    }
}

/// The meaning of the first part of a point, as messages name it.
struct Number {
    what: &'static str,
    help: &'static str,
    order: &'static str,
}

const TASKS: Number = Number {
    what: "the number of tasks",
    help: "write [10, \"1 us\"]: the number of tasks and the duration",
    order: "give at least one point, in increasing order of the number of tasks",
};

const SHARERS: Number = Number {
    what: "the number of sharing tasks",
    help: "write [8, \"1 us\"]: the number of tasks that share the object and the duration",
    order: "give at least one point, in increasing order of the number of tasks",
};

const KIB: Number = Number {
    what: "the working set",
    help: "write [256, \"10 us\"]: the size in KiB and the duration",
    order: "give at least one point, in increasing order of the size",
};

/// Reads a cost: a duration, or a list of pairs of a number and a duration.
fn read_cost(found: &Found, key: &str, number: &Number, faults: &mut Faults) -> Option<Cost> {
    let what = format!("`{key}`");
    if !found.is_list() {
        return found.duration(&what, faults).map(Cost::constant);
    }
    let pairs = found.list(&what, "", faults)?;
    let mut points = Vec::with_capacity(pairs.len());
    for pair in &pairs {
        let help = number.help;
        let parts = pair.list(&format!("a point of {what}"), help, faults)?;
        let [count, time] = parts.as_slice() else {
            faults.push(
                Diagnostic::new(format!("a point of {what} has {} parts", parts.len())).at(pair.span()).help(help),
            );
            return None;
        };
        let count = count.integer(number.what, 0, u64::from(u32::MAX), faults)?;
        points.push((u32::try_from(count).ok()?, time.duration(&what, faults)?));
    }
    let cost = Cost::through(points);
    if cost.is_none() {
        let fault = Diagnostic::new(format!("the points of {what} are not in order")).at(found.span());
        faults.push(fault.help(number.order));
    }
    cost
}
