//! Reading other TOML files in the way task-set files are read: one pass finds as many faults as possible, and each
//! has its place and a remedy.
//!
//! # Examples
//! ```
//! use lockwright_model::format::reader::read;
//! let file = "samples = 0\nsede = 7\n";
//! let faults = read(file, "a study", &["samples", "seed"], |fields, faults| {
//!     fields.get("samples")?.integer("the number of samples", 1, 1_000, faults)
//! });
//! let faults = faults.expect_err("two faults");
//! assert_eq!(faults[0].to_string(), "the number of samples is `0`; it must be from 1 to 1000");
//! assert_eq!(faults[1].line_column(file), Some((2, 1)));
//! assert_eq!(faults[1].help.as_deref(), Some("did you mean `seed`?"));
//! ```

pub use super::diagnostic::{Diagnostic, Diagnostics, Faults};
pub use super::task_set::{Fields, Found};

use super::diagnostic::check_length;
use super::foreign::{foreign, misplaced};
use super::task_set::parse_toml;

/// Reads a text whose root table has these keys. `owner` names the text in messages. `then` reads the values; if it
/// returns `None`, it has reported a fault.
///
/// # Errors
/// Returns at least one fault, in order of place.
pub fn read<T>(
    source: &str,
    owner: &str,
    keys: &[&'static str],
    then: impl FnOnce(&Fields<'_, '_>, &mut Faults) -> Option<T>,
) -> Result<T, Diagnostics> {
    check_length(source.len())?;
    if let Some(fault) = foreign(source, owner) {
        return Err(fault.into());
    }
    let mut faults = Faults::default();
    let value = parse_toml(source, &mut faults, |document, faults| {
        let fields = Fields::of(document.get_ref(), owner, 0..0, keys, faults);
        then(&fields, faults)
    });
    match value {
        Some(value) if faults.is_empty() => Ok(value),
        _ => Err(match misplaced(source, owner) {
            Some(fault) => fault.into(),
            None => faults.into_refusal(source, format!("this is not {owner}")),
        }),
    }
}
