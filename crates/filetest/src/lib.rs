//! File tests: an HLO text, what is done to it, and what must come out, in one file.
//!
//! ```text
//! // test: pass=algebraic-simplifier
//! // What the file claims, in a sentence.
//!
//! HloModule m
//! ...
//! // ==>
//! HloModule m
//! ...
//! ```
//!
//! The first line names a directive ([`directive`]), which turns the text into another text or into errors. The text
//! must be what stands below the arrow; `BLESS=1` rewrites it. Without an arrow the directive says what is expected.
//! Each error must be announced by a comment, `// error: MESSAGE` on its line or `// error: LINE: MESSAGE` anywhere,
//! where MESSAGE is a part of what is reported.

pub mod case;
pub mod directive;
pub mod generate;
pub mod oracle;
pub mod programs;
pub mod runner;
