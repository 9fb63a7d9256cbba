//! A computation with its input already read, so that it can be timed alone.

use serde_json::Value;
use std::rc::Rc;

/// A computation, with a function that formats its result.
pub struct Work {
    run: Box<dyn Fn()>,
    answer: Box<dyn Fn() -> Value>,
}

impl Work {
    /// Returns a computation. `compute` is the part that is timed, and
    /// `tell` writes its result in the shape that examples expect.
    pub fn new<T: 'static>(compute: impl Fn() -> T + 'static, tell: impl Fn(&T) -> Value + 'static) -> Self {
        let compute = Rc::new(compute);
        let once = Rc::clone(&compute);
        Self {
            run: Box::new(move || {
                std::hint::black_box(once());
            }),
            answer: Box::new(move || tell(&compute())),
        }
    }

    /// Computes, and discards the result.
    pub fn run(&self) {
        (self.run)();
    }

    /// Computes, and returns the result in the shape of an example.
    #[must_use]
    pub fn answer(&self) -> Value {
        (self.answer)()
    }
}
