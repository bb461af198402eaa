//! The error type.

use core::fmt;

/// Reason why a call failed or could not start. It is a static message, so it needs no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    message: &'static str,
}

impl Error {
    /// Creates an error with this message.
    pub const fn new(message: &'static str) -> Self {
        Self { message }
    }

    /// Creates an error with a message that is not static. Equal messages share memory, which is
    /// never freed, so that errors stay small and copyable.
    #[cfg(feature = "device")]
    pub(crate) fn interned(message: &str) -> Self {
        use std::collections::BTreeSet;
        use std::sync::{Mutex, PoisonError};
        static MESSAGES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
        let mut messages = MESSAGES.lock().unwrap_or_else(PoisonError::into_inner);
        let known = messages.get(message).copied();
        let message = known.unwrap_or_else(|| Box::leak(message.to_owned().into_boxed_str()));
        messages.insert(message);
        Self { message }
    }

    /// Returns the message.
    pub const fn message(&self) -> &'static str {
        self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message)
    }
}

impl core::error::Error for Error {}
