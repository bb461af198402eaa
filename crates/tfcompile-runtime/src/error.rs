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
