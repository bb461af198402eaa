//! Large allocations, which may fail: checks that memory is available, and a mark for allocators.

use crate::{Code, Error, Result};
use std::cell::Cell;

/// Allocations smaller than this many bytes are not checked.
const MIN_CHECKED: u64 = 16 << 20;

/// Returns an error if `bytes` of memory cannot be allocated at this moment. `purpose` is a noun
/// that completes the message "cannot allocate N bytes for ...". The check allocates the memory and
/// frees it again without touching it. Without this check, a failed allocation would abort the
/// process, for example for an array of a terabyte.
pub fn check_memory(bytes: u64, purpose: impl std::fmt::Display) -> Result<()> {
    if bytes < MIN_CHECKED {
        return Ok(());
    }
    let mut probe: Vec<u8> = Vec::new();
    let length = usize::try_from(bytes).ok();
    if length.is_some_and(|length| attempt(|| probe.try_reserve_exact(length)).is_ok()) {
        return Ok(());
    }
    let message = format!("cannot allocate {bytes} bytes for {purpose}; provide more memory");
    Err(Error::unsupported(message).coded(Code::Resources))
}

thread_local! {
    /// True while this thread handles failed allocations.
    static ATTEMPTS: Cell<bool> = const { Cell::new(false) };
}

/// Allocates memory and handles a failure itself. An allocator that ends the process if memory is
/// exhausted ([`is_attempt`]) must let this allocation fail.
pub fn attempt<T>(allocate: impl FnOnce() -> T) -> T {
    let before = ATTEMPTS.replace(true);
    let result = allocate();
    ATTEMPTS.set(before);
    result
}

/// True if this thread is in [`attempt`].
pub fn is_attempt() -> bool {
    ATTEMPTS.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_marked_and_may_be_nested() {
        assert!(!is_attempt());
        let inside = attempt(|| (is_attempt(), attempt(is_attempt), is_attempt()));
        assert_eq!(inside, (true, true, true));
        assert!(!is_attempt());
    }

    #[test]
    fn allocations_larger_than_the_address_space_are_refused_and_small_ones_are_not() {
        for bytes in [0, 1, MIN_CHECKED] {
            assert!(check_memory(bytes, "an array").is_ok());
        }
        for bytes in [1 << 62, u64::MAX] {
            let message = check_memory(bytes, "an array").unwrap_err().message().to_owned();
            assert_eq!(message, format!("cannot allocate {bytes} bytes for an array; provide more memory"));
        }
    }
}
