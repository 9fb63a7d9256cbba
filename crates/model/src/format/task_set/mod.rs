//! Lockwright's own form of a task set: TOML.
//!
//! ```text
//!   text --toml--> tables --fields, value--> drafts (a task and the places of its parts) --System::new--> system
//! ```
//! Faults are collected on the way, so that one pass over a file finds as many of them as possible. A stage that needs
//! the result of a faulty one is skipped.

mod body;
mod fields;
mod groups;
mod overheads;
mod places;
mod platform;
mod priorities;
mod surroundings;
mod syntax;
mod task;
mod value;

use super::diagnostic::{Diagnostic, Diagnostics, Faults, check_length, named, shown};
use crate::format::foreign::{TASK_SET, foreign_task_set, misplaced};
use crate::{
    CPUS_MAX, CpuId, ObjectKind, Protocol, RESOURCES_MAX, Resource, Scheduler, Subject, System, TASKS_MAX, Task,
};
use core::ops::Range;
use groups::{Groups, Member};
use places::{Places, refusal};
use platform::Platform;
use std::collections::HashMap;
use surroundings::Surroundings;
use task::Draft;
use toml::Spanned;
use toml::de::DeTable;

pub use fields::{Fields, Found};
pub use overheads::parse_overheads;
pub use surroundings::Placing;
pub(super) use syntax::parse as parse_toml;

/// A system as it was read from a file.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Placed {
    /// The system. Under a global scheduler, the CPUs of its tasks are those in the file, and mean nothing.
    pub system: System,
    /// The number of tasks with a `cpu` or `cpus` in the file.
    pub placed: usize,
}

/// Reads one system from a TOML task set.
///
/// # Errors
/// Returns at least one fault, in order of place.
///
/// # Examples
/// ```
/// use lockwright_model::format::parse_system;
/// let source = "[[task]]\nname = \"camera\"\nperiod = \"10 ms\"\nwcet = \"2 ms\"\n";
/// assert_eq!(parse_system(source)?.tasks().len(), 1);
///
/// let faults = parse_system(&source.replace("wcet", "wect")).expect_err("an unknown key");
/// assert_eq!(faults[0].help.as_deref(), Some("did you mean `wcet`?"));
/// # Ok::<(), lockwright_model::format::Diagnostics>(())
/// ```
pub fn parse_system(source: &str) -> Result<System, Diagnostics> {
    parse_placed(source, Placing::File).map(|placed| placed.system)
}

fn parse_placed(source: &str, placing: Placing) -> Result<Placed, Diagnostics> {
    check_length(source.len())?;
    if let Some(fault) = foreign_task_set(source) {
        return Err(fault.into());
    }
    let mut faults = Faults::default();
    match read(source, placing, &mut faults) {
        Some(placed) if faults.is_empty() => Ok(placed),
        _ => Err(match misplaced(source, TASK_SET) {
            Some(fault) => fault.into(),
            None => faults.into_refusal(source, "this is not a task set"),
        }),
    }
}

/// Reads one system like [`parse_system`], from bytes that should be UTF-8.
///
/// # Errors
/// Returns faults as [`parse_system`] does, or one fault at the first byte that is not UTF-8. The span of that fault
/// is an offset into `source`.
pub fn parse_system_bytes(source: &[u8]) -> Result<System, Diagnostics> {
    parse_placed_bytes(source, Placing::File).map(|placed| placed.system)
}

/// Reads one system like [`parse_system_bytes`], for callers that place
/// tasks themselves or need to know whether tasks have CPUs in the file.
///
/// # Errors
/// Returns faults as [`parse_system_bytes`] does.
pub fn parse_placed_bytes(source: &[u8], placing: Placing) -> Result<Placed, Diagnostics> {
    match core::str::from_utf8(source) {
        Ok(source) => parse_placed(source, placing),
        Err(error) => {
            let at = error.valid_up_to();
            let fault = Diagnostic::new("the file is not UTF-8 text").at(at..at).help("save it as UTF-8");
            Err(fault.into())
        }
    }
}

fn read(source: &str, placing: Placing, faults: &mut Faults) -> Option<Placed> {
    let parts = syntax::split(source, faults)?;
    let document = syntax::tree(&parts.frame, faults)?;
    if !parts.tasks.is_empty() && document.get_ref().contains_key("task") {
        // The file also has a `task` outside of the `[[task]]`s. TOML forbids
        // it or reports it in its own words, so the whole text is read.
        let parts = syntax::Parts { frame: source.into(), tasks: Vec::new() };
        return syntax::parse(source, faults, |document, faults| read_parts(source, &parts, document, placing, faults));
    }
    read_parts(source, &parts, &document, placing, faults)
}

fn read_parts(
    source: &str,
    parts: &syntax::Parts<'_>,
    document: &Spanned<DeTable<'_>>,
    placing: Placing,
    faults: &mut Faults,
) -> Option<Placed> {
    let keys = ["name", "protocol", "cutoff", "platform", "resource", "task"];
    let fields = Fields::of(document.get_ref(), "a task set", 0..0, &keys, faults);
    let name = fields.get("name").map_or(Some(String::new()), |name| name.text("the name of the system", faults));
    let protocol = read_protocol(fields.get("protocol"), "the protocol of the system", faults);

    let cutoff = fields.get("cutoff").and_then(|cutoff| cutoff.priority("the cutoff of the system", faults));

    let platform = Platform::read(fields.get("platform"), faults);

    let resource_tables = tables(fields.get("resource"), "resource", RESOURCES_MAX, faults);
    let members: Vec<Member> = resource_tables.iter().flatten().map(|found| read_resource(found, faults)).collect();
    let namesakes = members.iter().map(|member| (&*member.resource.name, &member.places));
    refuse_namesakes("resource", namesakes, faults);
    // The resources of the file. The system has one for each group.
    let resources: Vec<Resource> = members.iter().map(|member| member.resource.clone()).collect();
    let groups = Groups::new(members, faults);

    let (cpus, scheduler) = (platform.cpus, platform.scheduler);
    let surroundings = Surroundings { cpus, scheduler, placing, resources: &resources };
    let mut drafts = read_tasks(source, parts, &fields, &surroundings, faults)?;
    refuse_namesakes("task", drafts.iter().map(|draft| (&*draft.task.name, &draft.places)), faults);
    priorities::assign(&mut drafts, platform.priorities, faults);

    if !faults.is_empty() {
        return None;
    }
    let working_sets = drafts.iter().map(|draft| draft.working_set).collect();
    let placed = drafts.iter().filter(|draft| draft.is_placed).count();
    let clusters: Vec<u64> = drafts.iter().map(|draft| draft.cluster).collect();
    for draft in &mut drafts {
        groups.rewrite(&mut draft.task.body, &mut draft.places.steps);
    }
    let (tasks, places): (Vec<Task>, Vec<Places>) = drafts.into_iter().map(|draft| (draft.task, draft.places)).unzip();
    let Groups { mut resources, places: resource_places, .. } = groups;
    for resource in &mut resources {
        resource.cutoff = resource.cutoff.or(cutoff);
    }
    let scheduler = platform.scheduler?;
    let system = System::new(name?, platform.cpus?, protocol?, resources, tasks);
    let system = system.and_then(|system| match scheduler {
        Scheduler::CFp => system.in_clusters(&clusters),
        _ => Ok(system.under(scheduler)),
    });
    match system {
        Ok(system) => Some(Placed { system: system.with_working_sets(working_sets), placed }),
        Err(invalid) => {
            let span = match invalid.subject {
                Subject::Task(task) => places.get(task.index()).map(|places| places.of(invalid.key)),
                Subject::Step(task, step) => places.get(task.index()).map(|places| places.of_step(step)),
                Subject::Resource(id) => resource_places.get(id.index()).map(|places| places.of(invalid.key)),
                Subject::System => invalid.key.and_then(|key| fields.get(key)).map(|found| found.span()),
            };
            faults.push(refusal(invalid, span));
            None
        }
    }
}

/// Reads the tasks. Returns `None` if the list of faults is full.
fn read_tasks(
    source: &str,
    parts: &syntax::Parts<'_>,
    fields: &Fields<'_, '_>,
    surroundings: &Surroundings<'_>,
    faults: &mut Faults,
) -> Option<Vec<Draft>> {
    let mut drafts: Vec<Draft> = Vec::new();
    if let Some(beyond) = parts.tasks.get(TASKS_MAX) {
        let header = beyond.start..beyond.start + "[[task]]".len();
        let fault = Diagnostic::new(format!("{} tasks", parts.tasks.len())).at(header);
        faults.push(fault.help(format!("at most {TASKS_MAX} are supported")));
    } else if !parts.tasks.is_empty() {
        for place in &parts.tasks {
            drafts.extend(read_part(source, place, surroundings, faults));
            if faults.is_full() {
                return None;
            }
        }
    } else {
        let task_tables = tables(fields.get("task"), "task", TASKS_MAX, faults);
        if !fields.means("task") {
            faults.push(Diagnostic::new("the system has no tasks").help("add at least one [[task]]"));
        }
        for found in task_tables.iter().flatten() {
            drafts.push(Draft::read(found, surroundings, faults));
            if faults.is_full() {
                return None;
            }
        }
    }
    Some(drafts)
}

/// Reads the task of one `[[task]]` of a long text. Returns `None` if it is not TOML or not a table.
fn read_part(source: &str, place: &Range<usize>, surroundings: &Surroundings, faults: &mut Faults) -> Option<Draft> {
    let mut own = Faults::default();
    let read = || {
        let text = syntax::sparse(source.get(place.clone())?);
        let document = syntax::tree(&text, &mut own)?;
        let fields = Fields::of(document.get_ref(), "a task set", 0..0, &["task"], &mut own);
        let found = tables(fields.get("task"), "task", 1, &mut own)?;
        let mut draft = Draft::read(found.first()?, surroundings, &mut own);
        draft.places.move_by(place.start);
        Some(draft)
    };
    let draft = { read }();
    own.move_by(place.start);
    faults.append(own);
    draft
}

/// Returns the tables of `[[kind]]`, or of a list of inline tables.
fn tables<'a, 'i>(
    found: Option<Found<'a, 'i>>,
    kind: &str,
    most: usize,
    faults: &mut Faults,
) -> Option<Vec<Found<'a, 'i>>> {
    let found = found?;
    if found.is_table() {
        let fault = Diagnostic::new(format!("`{kind}` is one table, but there may be many")).at(found.key_span());
        faults.push(fault.help(format!("write [[{kind}]], with two brackets")));
        return None;
    }
    let tables = found.list(&format!("`{kind}`"), &format!("write each as [[{kind}]]"), faults)?;
    if let Some(beyond) = tables.get(most) {
        let fault = Diagnostic::new(format!("{} {kind}s", tables.len())).at(beyond.span());
        faults.push(fault.help(format!("at most {most} are supported")));
        return None;
    }
    if tables.is_empty() && kind == "task" {
        let fault = Diagnostic::new("the system has no tasks").at(found.span());
        faults.push(fault.help("add at least one [[task]]"));
    }
    Some(tables)
}

/// Reads a protocol. Returns `None` if it is wrong, and `Some(None)` if it is not given.
fn read_protocol(found: Option<Found>, what: &str, faults: &mut Faults) -> Option<Option<Protocol>> {
    let Some(found) = found else { return Some(None) };
    let names = Protocol::ALL.map(|protocol| (protocol.name(), protocol));
    found.one_of("protocol", what, &names, faults).map(Some)
}

fn read_resource(found: &Found, faults: &mut Faults) -> Member {
    let mut places = Places::at(found.span());
    let mut resource = Resource::default();
    let Some(table) = found.table("a resource", "write [[resource]]", faults) else {
        return Member { resource, places, group: None };
    };
    let keys = ["name", "protocol", "ceiling", "cutoff", "home", "object", "group"];
    let fields = Fields::of(table, "a resource", found.span(), &keys, faults);
    for key in keys {
        places.note(key, fields.get(key).as_ref());
    }
    resource.name = fields.name("resource", faults);
    let owner = named("resource", &resource.name);
    resource.protocol = read_protocol(fields.get("protocol"), &format!("the protocol of {owner}"), faults).flatten();
    resource.ceiling =
        fields.get("ceiling").and_then(|ceiling| ceiling.priority(&format!("the ceiling of {owner}"), faults));
    resource.cutoff =
        fields.get("cutoff").and_then(|cutoff| cutoff.priority(&format!("the cutoff of {owner}"), faults));
    resource.home = fields.get("home").and_then(|home| {
        let cpu = home.integer(&format!("the home of {owner}"), 0, CPUS_MAX as u64 - 1, faults);
        cpu.map(|cpu| CpuId::new(cpu as usize))
    });
    resource.object = fields.get("object").and_then(|object| {
        let names = ObjectKind::ALL.map(|kind| (kind.name(), kind));
        object.one_of("object", &format!("the object of {owner}"), &names, faults)
    });
    let group = fields.get("group").and_then(|group| groups::name(&group, &owner, faults));
    Member { resource, places, group }
}

fn refuse_namesakes<'a>(kind: &str, named: impl Iterator<Item = (&'a str, &'a Places)>, faults: &mut Faults) {
    let mut seen = HashMap::new();
    for (name, places) in named.filter(|(name, _)| !name.is_empty()) {
        if seen.insert(name, ()).is_some() {
            let fault =
                Diagnostic::new(format!("two {kind}s have the name {}", shown(name))).at(places.of(Some("name")));
            faults.push(fault.label("already in use").help("names are unique"));
        }
    }
}
