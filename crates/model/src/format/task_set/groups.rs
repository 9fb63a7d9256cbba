//! Resources of one group are one lock: the system has one resource in their place, named after the group, and a request for one while another is
//! held needs no lock (the group locks of the FMLP).
//!
//! ```text
//!   lock a, run, lock b, run, unlock b, run, unlock a     a and b of group g, in the file
//!   lock g, run,         run,           run, unlock g     in the system
//! ```

use super::fields::Found;
use super::{Diagnostic, Faults, Places, shown};
use crate::{Resource, ResourceId, Step};
use core::ops::Range;

/// A resource as the file has it.
pub(super) struct Member {
    pub(super) resource: Resource,
    pub(super) places: Places,
    /// The group it names, and where.
    pub(super) group: Option<(String, Range<usize>)>,
}

/// What becomes of the resources of a file.
#[derive(Default)]
pub(super) struct Groups {
    /// By resource of the file: the one of the system.
    of: Vec<ResourceId>,
    /// Of the system.
    pub(super) resources: Vec<Resource>,
    /// By resource of the system.
    pub(super) places: Vec<Places>,
}

/// The group that `found` names.
pub(super) fn name(found: &Found, owner: &str, faults: &mut Faults) -> Option<(String, Range<usize>)> {
    let name = found.text(&format!("the group of {owner}"), faults)?;
    if name.is_empty() {
        faults.push(Diagnostic::new(format!("the group of {owner} has no name")).at(found.span()).help("give it one"));
        return None;
    }
    Some((name, found.span()))
}

impl Groups {
    pub(super) fn new(members: Vec<Member>, faults: &mut Faults) -> Self {
        let names: Vec<String> = members.iter().map(|member| member.resource.name.clone()).collect();
        let mut groups = Self::default();
        // By resource of the system: its group.
        let mut known: Vec<Option<String>> = Vec::new();
        for Member { resource, places, group } in members {
            let Some((name, span)) = group else {
                groups.of.push(ResourceId::new(groups.resources.len()));
                groups.resources.push(resource);
                groups.places.push(places);
                known.push(None);
                continue;
            };
            match known.iter().position(|other| other.as_ref() == Some(&name)) {
                Some(place) => {
                    groups.of.push(ResourceId::new(place));
                    join(&mut groups.resources[place], &mut groups.places[place], resource, places, faults);
                }
                None => {
                    if names.contains(&name) {
                        let fault = Diagnostic::new(format!("the group {} is called like a resource", shown(&name)));
                        faults.push(fault.at(span).label("taken already").help("give the group another name"));
                    }
                    groups.of.push(ResourceId::new(groups.resources.len()));
                    groups.resources.push(Resource { name: name.clone(), ..resource });
                    groups.places.push(places);
                    known.push(Some(name));
                }
            }
        }
        groups
    }

    /// A body of the file as the system has it. `places` are those of its steps.
    pub(super) fn rewrite(&self, body: &mut Vec<Step>, places: &mut Vec<Range<usize>>) {
        // What is held, outermost first: the resources of the system, and of each how many of the file's.
        let mut held: Vec<(ResourceId, u32)> = Vec::new();
        let mut kept = Vec::with_capacity(body.len());
        for step in body.iter_mut() {
            let keep = match step {
                Step::Run(_) => true,
                Step::Lock(resource) => {
                    *resource = self.of[resource.index()];
                    match held.iter_mut().find(|(other, _)| other == resource) {
                        Some((_, count)) => {
                            *count += 1;
                            false
                        }
                        None => {
                            held.push((*resource, 1));
                            true
                        }
                    }
                }
                Step::Unlock(resource) => {
                    *resource = self.of[resource.index()];
                    match held.iter_mut().find(|(other, _)| other == resource) {
                        Some((_, count)) if *count > 1 => {
                            *count -= 1;
                            false
                        }
                        _ => {
                            held.retain(|(other, _)| other != resource);
                            true
                        }
                    }
                }
            };
            kept.push(keep);
        }
        let mut keep = kept.iter();
        body.retain(|_| *keep.next().unwrap_or(&true));
        let mut keep = kept.iter();
        places.retain(|_| *keep.next().unwrap_or(&true));
    }
}

/// Takes what `other` says of their common lock into `all`.
fn join(all: &mut Resource, places: &mut Places, other: Resource, its: Places, faults: &mut Faults) {
    let differ = [
        ("protocol", all.protocol.zip(other.protocol).is_some_and(|(a, b)| a != b)),
        ("ceiling", all.ceiling.zip(other.ceiling).is_some_and(|(a, b)| a != b)),
        ("cutoff", all.cutoff.zip(other.cutoff).is_some_and(|(a, b)| a != b)),
        ("home", all.home.zip(other.home).is_some_and(|(a, b)| a != b)),
    ];
    for (key, _) in differ.into_iter().filter(|(_, differ)| *differ) {
        let group = shown(&all.name);
        let fault = Diagnostic::new(format!("two resources of the group {group} have different {key}s"));
        faults.push(fault.at(its.of(Some(key))).help(format!("they are one lock: give its {key} once")));
    }
    all.protocol = all.protocol.or(other.protocol);
    all.ceiling = all.ceiling.or(other.ceiling);
    all.cutoff = all.cutoff.or(other.cutoff);
    all.home = all.home.or(other.home);
    // The first place of each key: where the value stands that counts.
    places.values.extend(its.values.into_iter().filter(|(key, _)| *key != "name"));
}
