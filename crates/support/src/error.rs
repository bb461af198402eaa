//! The one error type, in absl's three words.

use crate::Code;
use std::fmt;

/// Who has to act on an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The user's input is wrong; the message names the culprit and the way to mend it.
    Invalid,
    /// The input is right, but this tool cannot do it yet; the message lists everything missing.
    Unsupported,
    /// A defect of this tool.
    Internal,
}

/// An error with a rendered message, ready for the reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    code: Option<Code>,
    message: String,
}

/// The result of everything that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// The user's input is wrong.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Invalid, code: None, message: message.into() }
    }

    /// The input is fine, but not supported.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Unsupported, code: None, message: message.into() }
    }

    /// A defect of this tool.
    pub fn internal(message: impl Into<String>) -> Self {
        // A defect is one at whatever border it is met.
        Self { kind: ErrorKind::Internal, code: Some(Code::Internal), message: message.into() }
    }

    /// Who has to act.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What the index of errors has to say about it.
    pub fn code(&self) -> Code {
        self.code.unwrap_or(match self.kind {
            ErrorKind::Invalid => Code::Invalid,
            ErrorKind::Unsupported => Code::Unsupported,
            ErrorKind::Internal => Code::Internal,
        })
    }

    /// The same error with a code, unless it has one already.
    #[must_use]
    pub fn coded(self, code: Code) -> Self {
        Self { code: self.code.or(Some(code)), ..self }
    }

    /// The rendered message, without the kind.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The same error with `context: ` before its message.
    #[must_use]
    pub fn context(self, context: impl fmt::Display) -> Self {
        let message = format!("{context}: {}", self.message);
        self.with_message(message)
    }

    /// The same error in other words.
    #[must_use]
    pub fn with_message(self, message: String) -> Self {
        Self { message, ..self }
    }
}

/// Results whose errors are given a code, as by [`Error::coded`].
pub trait Coded {
    /// The same result, its error with a code unless it has one.
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
