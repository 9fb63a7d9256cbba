//! Mutual exclusion of tests that claim slots of spinlocks.

/// Reserves all slots until the guard is dropped.
pub fn all_slots() -> std::sync::MutexGuard<'static, ()> {
    static SLOTS: std::sync::Mutex<()> = std::sync::Mutex::new(());
    SLOTS.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
