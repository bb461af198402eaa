//! File tests: an HLO text, an operation on it, and the expected output, in one file.
//!
//! ```text
//! // test: pass=algebraic-simplifier
//! // The claim of this test, in one sentence.
//!
//! HloModule m
//! ...
//! // ==>
//! HloModule m
//! ...
//! ```
//!
//! The first line names a directive ([`directive`]), which turns the text into another text or into
//! errors. The output must equal the text below the arrow; `BLESS=1` updates it. Without an arrow,
//! the directive determines the expected output. A comment must announce each error:
//! `// error: MESSAGE` on its line, or `// error: LINE: MESSAGE` anywhere, where MESSAGE is a part
//! of the actual message.

pub mod case;
pub mod directive;
pub mod generate;
pub mod oracle;
pub mod programs;
pub mod runner;
