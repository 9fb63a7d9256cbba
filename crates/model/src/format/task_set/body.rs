//! The steps of a job: `body` lists them one by one, and `requests` are laid out by a rule.

use super::fields::{Fields, Found};
use super::places::Places;
use super::surroundings::{Surroundings, undeclared};
use super::{Diagnostic, Faults, shown};
use crate::{Duration, Mode, Request, ResourceId, STEPS_MAX, Step, place_requests};

/// Reads the steps of a job. `wcet` is `None` if it is wrong, and `Some(None)` if it is not given. The result is
/// `None` if a fault has been reported, here or for the wcet.
pub(super) fn read(
    fields: &Fields,
    owner: &str,
    wcet: Option<Option<Duration>>,
    surroundings: &Surroundings,
    places: &mut Places,
    faults: &mut Faults,
) -> Option<Vec<Step>> {
    match (fields.get("body"), fields.get("requests")) {
        (Some(_), Some(requests)) => {
            let fault = Diagnostic::new(format!("{owner} has both a body and requests")).at(requests.key_span());
            faults.push(fault.help("the body contains the critical sections: remove the requests"));
            None
        }
        (Some(body), None) => read_body(&body, owner, surroundings, places, faults),
        (None, requests) => {
            // A misspelt body would have made the wcet superfluous.
            if wcet == Some(None) && !fields.means("body") {
                fields.require("wcet", owner, "add a wcet, for example wcet = \"1 ms\", or a body", faults);
            }
            let requests = match requests {
                Some(found) => Some(Requests::read(&found, owner, surroundings, faults)?),
                None => None,
            };
            let wcet = wcet??;
            match requests {
                Some(requests) => requests.place(wcet, owner, places, faults),
                None => Some(vec![Step::Run(wcet)]),
            }
        }
    }
}

fn read_body(
    found: &Found,
    owner: &str,
    surroundings: &Surroundings,
    places: &mut Places,
    faults: &mut Faults,
) -> Option<Vec<Step>> {
    let steps = found.list(&format!("the body of {owner}"), "write [{ run = \"1 ms\" }]", faults)?;
    if steps.is_empty() {
        let fault = Diagnostic::new(format!("the body of {owner} is empty")).at(found.span());
        faults.push(fault.help("a job runs at least once: { run = \"1 ms\" }"));
        return None;
    }
    if let Some(beyond) = steps.get(STEPS_MAX) {
        let fault = Diagnostic::new(format!("the body of {owner} has {} steps", steps.len())).at(beyond.span());
        faults.push(fault.help(format!("at most {STEPS_MAX} are supported")));
        return None;
    }
    places.steps = steps.iter().map(Found::span).collect();
    let read: Vec<Option<Step>> = steps.iter().map(|step| read_step(step, owner, surroundings, faults)).collect();
    read.into_iter().collect()
}

fn read_step(found: &Found, owner: &str, surroundings: &Surroundings, faults: &mut Faults) -> Option<Step> {
    const HELP: &str = "a step is { run = \"1 ms\" }, { lock = \"name\" } or { unlock = \"name\" }";
    let table = found.table(&format!("a step of {owner}"), HELP, faults)?;
    let fields = Fields::of(table, "a step", found.span(), &["run", "lock", "unlock", "mode"], faults);
    let mode = read_mode(&fields, &format!("a step of {owner}"), faults);
    if let (Some(mode), None) = (fields.get("mode"), fields.get("lock")) {
        let fault = Diagnostic::new(format!("a step of {owner} has a mode and locks nothing")).at(mode.key_span());
        faults.push(fault.help("write the mode beside the lock: { lock = \"name\", mode = \"read\" }"));
        return None;
    }
    match (fields.get("run"), fields.get("lock"), fields.get("unlock")) {
        (Some(run), None, None) => run.duration(&format!("a run of {owner}"), faults).map(Step::Run),
        (None, Some(lock), None) => {
            let resource = resource(&lock, owner, "locks", surroundings, faults);
            Some(mode?.step(resource?))
        }
        (None, None, Some(unlock)) => resource(&unlock, owner, "unlocks", surroundings, faults).map(Step::Unlock),
        (None, None, None) => {
            if table.is_empty() {
                faults.push(Diagnostic::new(format!("a step of {owner} is empty")).at(found.span()).help(HELP));
            }
            None
        }
        _ => {
            let fault = Diagnostic::new(format!("a step of {owner} has several keys")).at(found.span());
            faults.push(fault.help("write one step for each key"));
            None
        }
    }
}

/// Reads the mode of a section. It is `write` if none is given.
fn read_mode(fields: &Fields, owner: &str, faults: &mut Faults) -> Option<Mode> {
    let Some(found) = fields.get("mode") else { return Some(Mode::Write) };
    let mode = found.text(&format!("the mode of {owner}"), faults)?;
    match mode.as_ref() {
        "read" => Some(Mode::Read),
        "write" => Some(Mode::Write),
        _ => {
            let fault = Diagnostic::new(format!("there is no mode {}", shown(mode.as_ref()))).at(found.span());
            faults.push(fault.help("a mode is \"read\" or \"write\""));
            None
        }
    }
}

fn resource(
    found: &Found,
    owner: &str,
    verb: &str,
    surroundings: &Surroundings,
    faults: &mut Faults,
) -> Option<ResourceId> {
    let name = found.text(&format!("what {owner} {verb}"), faults)?;
    let index = surroundings.resources.iter().position(|resource| resource.name == name);
    if index.is_none() {
        faults.push(undeclared(owner, verb, &name, surroundings).at(found.span()));
    }
    index.map(ResourceId::new)
}

/// The `requests` of one task, with their places.
struct Requests {
    rows: Vec<(Request, core::ops::Range<usize>)>,
    place: core::ops::Range<usize>,
}

impl Requests {
    fn read(found: &Found, owner: &str, surroundings: &Surroundings, faults: &mut Faults) -> Option<Self> {
        let help = "write [{ resource = \"name\", length = \"15 us\" }]";
        let list = found.list(&format!("`requests` of {owner}"), help, faults)?;
        if let Some(beyond) = list.get(STEPS_MAX) {
            let fault = Diagnostic::new(format!("{owner} has {} requests", list.len())).at(beyond.span());
            faults.push(fault.help(format!("at most {STEPS_MAX} are supported")));
            return None;
        }
        let rows: Vec<_> = list
            .iter()
            .map(|row| read_request(row, owner, surroundings, faults).map(|request| (request, row.span())))
            .collect();
        Some(Self { rows: rows.into_iter().collect::<Option<_>>()?, place: found.span() })
    }

    /// Lays the requests out into a body.
    fn place(self, wcet: Duration, owner: &str, places: &mut Places, faults: &mut Faults) -> Option<Vec<Step>> {
        let requests: Vec<Request> = self.rows.iter().map(|(request, _)| *request).collect();
        let Some(body) = place_requests(wcet, &requests) else {
            faults.push(self.misfit(wcet, owner));
            return None;
        };
        // Each step gets the place of its request. A run between two sections gets the place of the second one.
        let mut rows = self.rows.iter().flat_map(|(request, span)| (0..request.count).map(move |_| span));
        let mut current = rows.next();
        for step in &body {
            places.steps.push(current.unwrap_or(&self.place).clone());
            if let Step::Unlock(_) = step {
                current = rows.next();
            }
        }
        Some(body)
    }

    /// Returns the reason why the requests do not fit their task.
    fn misfit(&self, wcet: Duration, owner: &str) -> Diagnostic {
        let mut total = Some(Duration::ZERO);
        for (request, place) in &self.rows {
            if request.length > wcet {
                let message =
                    format!("a section of {owner} takes {}, longer than the whole job, {wcet}", request.length);
                return Diagnostic::new(message).at(place.clone()).help("sections are part of the wcet");
            }
            let length = request.length.checked_mul(u64::from(request.count));
            total = total.and_then(|total| total.checked_add(length?));
        }
        match total {
            Some(total) if total <= wcet => Diagnostic::new(format!("{owner} has too many sections"))
                .help(format!("a body has at most {STEPS_MAX} steps, and a section takes four")),
            Some(total) => Diagnostic::new(format!(
                "the sections of {owner} take {total} together, longer than the whole job, {wcet}"
            ))
            .help("sections are part of the wcet"),
            None => Diagnostic::new(format!("the sections of {owner} are longer than the whole job, {wcet}"))
                .help("sections are part of the wcet"),
        }
        .at(self.place.clone())
    }
}

fn read_request(found: &Found, owner: &str, surroundings: &Surroundings, faults: &mut Faults) -> Option<Request> {
    const HELP: &str = "a request is { resource = \"name\", count = 1, length = \"15 us\" }";
    let table = found.table(&format!("a request of {owner}"), HELP, faults)?;
    let fields = Fields::of(table, "a request", found.span(), &["resource", "count", "length", "mode"], faults);
    let subject = format!("a request of {owner}");
    let mode = read_mode(&fields, &subject, faults);
    let resource = fields
        .require("resource", &subject, HELP, faults)
        .and_then(|name| resource(&name, owner, "requests", surroundings, faults));
    let count = match fields.get("count") {
        Some(count) => count.integer(&format!("the count of {subject}"), 1, STEPS_MAX as u64, faults),
        None => Some(1),
    };
    let length = fields.require("length", &subject, HELP, faults).and_then(|found| {
        let length = found.duration(&format!("the length of {subject}"), faults)?;
        if length == Duration::ZERO {
            let name =
                fields.get("resource").and_then(|name| name.value.get_ref().as_str()).map_or_else(String::new, shown);
            let fault = Diagnostic::new(format!("the section of {owner} on {name} is empty")).at(found.span());
            faults.push(fault.help("its length must be positive"));
            return None;
        }
        Some(length)
    });
    Some(Request { resource: resource?, count: count? as u32, length: length?, mode: mode? })
}
