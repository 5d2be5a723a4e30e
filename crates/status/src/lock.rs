//! How the values that are published are locked.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, also after another thread panicked with the lock held: every value here is replaced whole, and a reader's
/// panic must not end a receiver.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
