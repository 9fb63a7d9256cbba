//! Global scheduling: hard tests, response times, tardiness.

use crate::{Analysis, Departure};

pub(crate) const ANALYSES: &[Analysis] = &[];

pub(crate) const DEPARTURES: &[Departure] = &[];
