//! Checks that memory is available before a large allocation.

use crate::{Error, Result};

/// Allocations smaller than this are not checked.
const WORTH_ASKING: u64 = 16 << 20;

/// Returns an error that begins with `what` if `bytes` of memory cannot be allocated at this
/// moment. The check allocates the memory and frees it again without touching it. Without this
/// check, a failed allocation would abort the process, for example for an array of a terabyte.
pub fn check_memory(bytes: u64, what: impl std::fmt::Display) -> Result<()> {
    if bytes < WORTH_ASKING {
        return Ok(());
    }
    let mut probe: Vec<u8> = Vec::new();
    let length = usize::try_from(bytes).ok();
    if length.is_some_and(|length| probe.try_reserve_exact(length).is_ok()) {
        return Ok(());
    }
    Err(Error::unsupported(format!("{what} of {bytes} bytes, which cannot be had here: give more memory")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_address_space_holds_is_refused_and_what_is_small_is_not() {
        for bytes in [0, 1, WORTH_ASKING] {
            assert!(check_memory(bytes, "the array wants memory").is_ok());
        }
        for bytes in [1 << 62, u64::MAX] {
            let message = check_memory(bytes, "the array wants memory").unwrap_err().message().to_owned();
            assert!(message.starts_with("the array wants memory of") && message.contains(&bytes.to_string()));
        }
    }
}
