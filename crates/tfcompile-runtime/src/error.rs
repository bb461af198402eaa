//! Why something did not work.

use core::fmt;

/// Why a run failed, or could not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    message: &'static str,
}

impl Error {
    /// With a message for the reader.
    pub const fn new(message: &'static str) -> Self {
        Self { message }
    }

    /// The message.
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
