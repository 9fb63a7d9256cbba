//! Task sets of other tools, as XML.
//!
//! ```text
//!   text --roxmltree--> elements --schedcat or cheddar--> tasks --System::new--> system
//! ```
//! An item that a task set cannot express is refused with its name and place. An item that the import leaves out or
//! decides is reported as a note. The files do not name their unit of time, so the caller gives it.

mod cheddar;
mod import;
mod schedcat;

pub use cheddar::import_cheddar;
pub use schedcat::import_schedcat;
