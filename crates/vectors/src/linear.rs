//! Bounds by linear programs.

use crate::{Analysis, Departure};

pub(crate) const ANALYSES: &[Analysis] = &[];

pub(crate) const DEPARTURES: &[Departure] = &[];
