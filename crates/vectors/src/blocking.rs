//! Blocking under locking protocols, and response times with it.

use crate::{Analysis, Departure};

pub(crate) const ANALYSES: &[Analysis] = &[];

pub(crate) const DEPARTURES: &[Departure] = &[];
