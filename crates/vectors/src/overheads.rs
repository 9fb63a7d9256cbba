//! Overhead accounting.

use crate::{Analysis, Departure};

pub(crate) const ANALYSES: &[Analysis] = &[];

pub(crate) const DEPARTURES: &[Departure] = &[];
