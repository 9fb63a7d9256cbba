//! A progress bar on standard error, if that is a terminal.

use crate::console::Console;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Progress of work of known size.
pub struct Progress(ProgressBar);

/// Resolution of the bar.
const STEPS: u64 = 1000;

impl Progress {
    /// A bar at 0.
    #[must_use]
    pub fn new(console: &Console, what: &str) -> Self {
        let target = if console.watched { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(STEPS), target).with_message(what.to_owned());
        let style = ProgressStyle::with_template("{msg} {wide_bar} {percent} % {eta}");
        Self(bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())))
    }

    /// Moves the bar to `done` of `whole`.
    pub fn set(&self, done: u64, whole: u64) {
        let steps = u128::from(done.min(whole)) * u128::from(STEPS) / u128::from(whole.max(1));
        self.0.set_position(u64::try_from(steps).unwrap_or(STEPS));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
