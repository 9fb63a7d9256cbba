//! One processor: fixed priority, EDF, FIFO, job sets.

use crate::{Analysis, Departure};

pub(crate) const ANALYSES: &[Analysis] = &[];

pub(crate) const DEPARTURES: &[Departure] = &[];
