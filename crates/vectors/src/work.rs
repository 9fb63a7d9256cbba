//! A computation that is ready, so that it can be timed without the reading of its input.

use serde_json::Value;
use std::rc::Rc;

/// A computation, and how its result is told.
pub struct Work {
    run: Box<dyn Fn()>,
    answer: Box<dyn Fn() -> Value>,
}

impl Work {
    /// `compute` is what is timed; `tell` writes its result in the shape examples expect.
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

    /// Computes, and throws the result away.
    pub fn run(&self) {
        (self.run)();
    }

    /// Computes, and tells the result.
    #[must_use]
    pub fn answer(&self) -> Value {
        (self.answer)()
    }
}
