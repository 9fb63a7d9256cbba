//! The set-up when the library is loaded.

use crate::{mutex, next, policy, shared};

/// Called by the loader, before the program's own constructors.
extern "C" fn load() {
    lockwright::mutex::warm_up();
    mutex::warm_up();
    next::warm_up();
    shared::find_flags();
    #[cfg(target_arch = "x86_64")]
    crate::dlopen::warm_up();
    policy::load();
}

// SAFETY: the loader calls the functions of this section, with arguments that `load` ignores.
#[used]
#[unsafe(link_section = ".init_array")]
static LOAD: extern "C" fn() = load;
