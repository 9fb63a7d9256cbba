//! Texts of `--help` that several commands share.

/// The heading of options that only change the form of the output.
pub(super) const OUTPUT: &str = "Output options";

/// Exit statuses of commands that judge no deadlines.
pub(super) const STATUSES_UNJUDGED: &str = "Exit status:
  0    success
  2    the arguments are invalid
  3    the machine refuses, for example permission for real-time priorities
  130  interrupted (Ctrl-C); complete results are printed";

/// The end of the help of a command that judges no deadlines.
pub(super) fn with_statuses(examples: &str) -> String {
    format!("{examples}\n\n{STATUSES_UNJUDGED}")
}
