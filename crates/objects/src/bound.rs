//! Bounds in steps.

/// The greatest number of steps of an operation. A step is one access to shared memory.
///
/// # Examples
/// ```
/// use lockwright_objects::LockFreeQueue;
///
/// let push = LockFreeQueue::<u64, 100, 4>::PUSH;
/// assert_eq!(push.steps(0), push.once + push.attempt);
/// assert_eq!(push.steps(2), push.once + 3 * push.attempt);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Bound {
    /// The steps that an operation takes once.
    pub once: u64,
    /// The steps of one attempt.
    pub attempt: u64,
    /// The greatest number of attempts of a wait-free operation; `None` for a lock-free one, whose attempts only the
    /// commits of others limit.
    pub attempts: Option<u64>,
}

impl Bound {
    /// Returns the greatest number of steps if `interfering` operations of others overlap the operation.
    ///
    /// The documentation of the operation defines which operations interfere.
    /// The result saturates.
    #[must_use]
    pub const fn steps(self, interfering: u64) -> u64 {
        let attempts = match self.attempts {
            Some(attempts) if attempts <= interfering => attempts,
            _ => interfering.saturating_add(1),
        };
        self.once.saturating_add(self.attempt.saturating_mul(attempts))
    }
}
