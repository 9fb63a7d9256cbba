//! A page that a server shows instead of a file.

use std::cell::RefCell;
use std::rc::Rc;

/// A page without its head.
#[derive(Clone, Debug, Default)]
pub struct Kept(Rc<RefCell<Option<String>>>);

impl Kept {
    /// Keeps a page.
    pub fn put(&self, page: String) {
        *self.0.borrow_mut() = Some(page);
    }

    /// The page, if there is one.
    #[cfg(feature = "serve")]
    pub fn take(&self) -> Option<String> {
        self.0.take()
    }
}
