//! One thread plays all parts: what the others do happens between two looks.

use crate::Relax;
use core::cell::RefCell;
use std::boxed::Box;
use std::vec::Vec;

type Part = Box<dyn FnOnce()>;

std::thread_local! {
    /// What is left to be done, the next one last.
    static PARTS: RefCell<Vec<Part>> = const { RefCell::new(Vec::new()) };
    /// The looks of each wait that found nothing.
    static LOOKS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// At each look that found nothing, the next part of [`meanwhile`] happens.
#[derive(Debug)]
pub(crate) struct Meanwhile {
    wait: usize,
}

impl Default for Meanwhile {
    fn default() -> Self {
        LOOKS.with_borrow_mut(|looks| {
            looks.push(0);
            Self { wait: looks.len() - 1 }
        })
    }
}

impl Relax for Meanwhile {
    fn relax(&mut self) {
        LOOKS.with_borrow_mut(|looks| looks[self.wait] += 1);
        let part = PARTS.with_borrow_mut(Vec::pop).expect("somebody who ends the wait");
        part();
    }
}

/// Does `work`, and `parts` at its looks: what came of it, and how many looks each of its waits made that found nothing.
pub(crate) fn meanwhile<T>(mut parts: Vec<Part>, work: impl FnOnce() -> T) -> (T, Vec<usize>) {
    parts.reverse();
    PARTS.set(parts);
    LOOKS.set(Vec::new());
    (work(), LOOKS.take())
}
