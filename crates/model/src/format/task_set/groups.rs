//! Group locks, as in the FMLP: the resources of one group are one lock.
//!
//! The system has one resource in their place, named after the group.
//! A request for one of them while another is held needs no lock.
//!
//! ```text
//!   lock a, run, lock b, run, unlock b, run, unlock a     in the file, with a and b in group g
//!   lock g, run,         run,           run, unlock g     in the system
//! ```

use super::fields::Found;
use super::places::Places;
use super::{Diagnostic, Faults, shown};
use crate::{Resource, ResourceId, Step};
use core::ops::Range;

/// A resource as the file gives it.
pub(super) struct Member {
    pub(super) resource: Resource,
    pub(super) places: Places,
    /// The group it names, and the place of that name.
    pub(super) group: Option<(String, Range<usize>)>,
}

/// The resources of the system, made from those of a file.
#[derive(Default)]
pub(super) struct Groups {
    /// The resource of the system for each resource of the file.
    of: Vec<ResourceId>,
    /// The resources of the system.
    pub(super) resources: Vec<Resource>,
    /// The places of the resources of the system.
    pub(super) places: Vec<Places>,
}

/// Reads the name of a group.
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
        // The group of each resource of the system.
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
                        let fault = Diagnostic::new(format!("the group {} has the name of a resource", shown(&name)));
                        faults.push(fault.at(span).label("already in use").help("give the group another name"));
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

    /// Rewrites a body of the file for the system. `places` are the places of its steps.
    pub(super) fn rewrite(&self, body: &mut Vec<Step>, places: &mut Vec<Range<usize>>) {
        // The resources of the system that are held, outermost first,
        // each with the number of resources of the file held for it and the step that locked it.
        let mut held: Vec<(ResourceId, u32, usize)> = Vec::new();
        let mut kept = Vec::with_capacity(body.len());
        for place in 0..body.len() {
            let step = &mut body[place];
            let is_write = matches!(step, Step::Lock(_));
            let keep = match step {
                Step::Run(_) => true,
                Step::Lock(resource) | Step::Read(resource) => {
                    *resource = self.of[resource.index()];
                    match held.iter_mut().find(|(other, ..)| other == resource) {
                        Some((resource, count, begin)) => {
                            *count += 1;
                            // A section that writes somewhere inside is one that writes.
                            if is_write {
                                body[*begin] = Step::Lock(*resource);
                            }
                            false
                        }
                        None => {
                            held.push((*resource, 1, place));
                            true
                        }
                    }
                }
                Step::Unlock(resource) => {
                    *resource = self.of[resource.index()];
                    match held.iter_mut().find(|(other, ..)| other == resource) {
                        Some((_, count, _)) if *count > 1 => {
                            *count -= 1;
                            false
                        }
                        _ => {
                            held.retain(|(other, ..)| other != resource);
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

/// Merges the keys of `other`, a resource of the same group, into `all`. Reports keys that differ.
fn join(all: &mut Resource, places: &mut Places, other: Resource, its: Places, faults: &mut Faults) {
    let differ = [
        ("protocol", all.protocol.zip(other.protocol).is_some_and(|(a, b)| a != b)),
        ("ceiling", all.ceiling.zip(other.ceiling).is_some_and(|(a, b)| a != b)),
        ("cutoff", all.cutoff.zip(other.cutoff).is_some_and(|(a, b)| a != b)),
        ("home", all.home.zip(other.home).is_some_and(|(a, b)| a != b)),
        ("object", all.object.zip(other.object).is_some_and(|(a, b)| a != b)),
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
    all.object = all.object.or(other.object);
    // Lookups find the first place of each key, which is that of the value that counts.
    places.values.extend(its.values.into_iter().filter(|(key, _)| *key != "name"));
}
