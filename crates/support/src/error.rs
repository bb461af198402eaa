//! The common error type, with three kinds named after absl status codes.

use crate::Code;
use std::fmt;

/// Party that has to act on an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The user's input is wrong. The message names the cause and the fix.
    Invalid,
    /// The input is valid, but this tool does not support it. The message lists everything
    /// unsupported.
    Unsupported,
    /// A bug in this tool.
    Internal,
}

/// An error with a rendered message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    code: Option<Code>,
    message: String,
}

/// Result type of all fallible functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Creates an error for wrong user input.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Invalid, code: None, message: message.into() }
    }

    /// Creates an error for valid input that is not supported.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Unsupported, code: None, message: message.into() }
    }

    /// Creates an error for a bug in this tool.
    pub fn internal(message: impl Into<String>) -> Self {
        // Internal errors keep this code at every stage boundary.
        Self { kind: ErrorKind::Internal, code: Some(Code::Internal), message: message.into() }
    }

    /// Party that has to act.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Error code, under which the error index explains the error.
    pub fn code(&self) -> Code {
        self.code.unwrap_or(match self.kind {
            ErrorKind::Invalid => Code::Invalid,
            ErrorKind::Unsupported => Code::Unsupported,
            ErrorKind::Internal => Code::Internal,
        })
    }

    /// Adds a code, unless the error has one already.
    #[must_use]
    pub fn coded(self, code: Code) -> Self {
        Self { code: self.code.or(Some(code)), ..self }
    }

    /// The rendered message, without the kind.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Prepends `context: ` to the message.
    #[must_use]
    pub fn context(self, context: impl fmt::Display) -> Self {
        let message = format!("{context}: {}", self.message);
        self.with_message(message)
    }

    /// Replaces the message.
    #[must_use]
    pub fn with_message(self, message: String) -> Self {
        Self { message, ..self }
    }
}

/// Adds error codes to results, like [`Error::coded`].
pub trait Coded {
    /// Adds a code to the error, unless it has one already.
    #[must_use]
    fn coded(self, code: Code) -> Self;
}

impl<T> Coded for Result<T> {
    fn coded(self, code: Code) -> Self {
        self.map_err(|error| error.coded(code))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::{Coded, Error, Result};
    use crate::Code;

    #[test]
    fn the_code_given_first_stays() {
        let error = Error::invalid("a size is open").coded(Code::OpenSize).context("feed 'x'");
        assert_eq!(error.code(), Code::OpenSize);
        let outer: Result<()> = Err(error).coded(Code::Graph);
        assert_eq!(outer.unwrap_err().code(), Code::OpenSize);
    }

    #[test]
    fn an_error_without_a_code_has_that_of_its_kind() {
        assert_eq!(Error::invalid("").code(), Code::Invalid);
        assert_eq!(Error::unsupported("").code(), Code::Unsupported);
        assert_eq!(Error::internal("").coded(Code::Graph).code(), Code::Internal);
    }
}
