//! One thread plays all parts: the other parts are executed at its unsuccessful checks.

use crate::Relax;
use core::cell::RefCell;
use std::boxed::Box;
use std::vec::Vec;

type Part = Box<dyn FnOnce()>;

std::thread_local! {
    /// The parts that are left, the next one last.
    static PARTS: RefCell<Vec<Part>> = const { RefCell::new(Vec::new()) };
    /// The unsuccessful checks of each wait.
    static CHECKS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// A [`Relax`] that executes the next part of [`meanwhile`].
#[derive(Debug)]
pub(crate) struct Meanwhile {
    wait: usize,
}

impl Default for Meanwhile {
    fn default() -> Self {
        CHECKS.with_borrow_mut(|checks| {
            checks.push(0);
            Self { wait: checks.len() - 1 }
        })
    }
}

impl Relax for Meanwhile {
    fn relax(&mut self) {
        CHECKS.with_borrow_mut(|checks| checks[self.wait] += 1);
        let part = PARTS.with_borrow_mut(Vec::pop).expect("a part that ends the wait");
        part();
    }
}

/// Executes `work`, and `parts` at its unsuccessful checks.
///
/// Returns the result, and the number of unsuccessful checks of each wait.
pub(crate) fn meanwhile<T>(mut parts: Vec<Part>, work: impl FnOnce() -> T) -> (T, Vec<usize>) {
    parts.reverse();
    PARTS.set(parts);
    CHECKS.set(Vec::new());
    (work(), CHECKS.take())
}
