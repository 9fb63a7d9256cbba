//! Structures of nodes, in the shadow-page form: a section prepares a node that no other thread sees, and links it in.
//!
//! ```text
//!   root ──> node ──> node ──> node          the structure: links are words, changed by commits
//!   pool ──> node ──> node                   free nodes
//!   spares   one node for each writer        the writer may write all of it at once, without its record
//!
//!   insert    spare: fields, link := next     then  link before := spare   pool := behind the top   spare := the top
//!   remove    spare: link := top of the pool  then  link before := next    pool := spare            spare := the node
//!   replace   spare: fields, link := next     then  link before := spare                            spare := the node
//! ```
//! In the paper (section 3.3), a section prepares nodes that are still in the pool, where other sections find them too.
//! That is right if the kernel restarts a preempted section before it executes one more instruction.
//! Here a preempted section may continue for a while, and its late stores would hit nodes that are in use by then.
//! Each writer therefore owns a node before its section begins, and a commit exchanges it; that also takes at most
//! three writes.

mod map;
mod nodes;
mod queue;

pub use map::{MapWriter, OrderedMap};
pub use queue::{PriorityQueue, QueueWriter, Still};
