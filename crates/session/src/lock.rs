//! Locking in spite of panics.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A lock whose data is whole whoever panicked with it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
