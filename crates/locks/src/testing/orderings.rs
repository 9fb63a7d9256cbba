//! Each ordering is needed: if it is weakened alone, a check fails.

#[cfg(lockwright_loom)]
use super::run::{Effort, NEVER_ENDS, OUT_OF_ORDER, TWO_INSIDE, caught, explore};
#[cfg(lockwright_loom)]
use crate::sync::fault::{self, Fault};
#[cfg(lockwright_loom)]
use std::string::String;

/// A weakened ordering, and its line.
#[cfg(lockwright_loom)]
pub(crate) type Mutation<'a> = (Fault, &'a str);

/// Weakens each ordering that `checks` execute, alone, except the `kept` ones.
///
/// # Panics
/// If all checks pass with one of them.
#[cfg(lockwright_loom)]
pub(crate) fn each_ordering_is_needed(kept: &[Mutation<'_>], checks: &[(Effort, fn())]) {
    let explore_all = || checks.iter().for_each(|&(effort, check)| explore(effort, check));
    let words = [TWO_INSIDE, NEVER_ENDS, OUT_OF_ORDER].concat();
    let mut kept = kept.to_vec();
    for (site, fault) in fault::sites(explore_all) {
        let line = line(site);
        if let Some(place) = kept.iter().position(|mutation| *mutation == (fault, &line)) {
            kept.remove(place);
            continue;
        }
        fault::set_at(site, fault);
        let caught = caught(&words, explore_all);
        fault::set(Fault::None);
        assert!(caught, "{fault:?} at {site} is not caught: {line}");
    }
    assert!(kept.is_empty(), "there is no {kept:?}");
}

#[cfg(lockwright_loom)]
fn line(site: fault::Site) -> String {
    // The compiler gives the path from the root of the workspace.
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(site.file());
    let text = std::fs::read_to_string(path).expect("the source text");
    String::from(text.lines().nth(site.line() as usize - 1).unwrap_or_default().trim())
}
