//! The report of a compiled program: its figures as data, a page that shows them, the comparison
//! of two reports, and budgets.
//!
//! - [`Report`]: the figures. [`Report::to_json`] and [`Report::parse`] write and read them.
//! - [`of_metadata`]: what the metadata of an object says about its program.
//! - [`html`]: a self-contained page of one report, or of two and their difference.
//! - [`Diff`]: what became slower, larger, less accurate, or changed its strategy.
//! - [`Budget`]: limits for the figures, and the lines of them that are broken.
//!
//! This crate measures nothing and touches no files. Names come from untrusted models, and saved
//! reports are untrusted files: every format escapes them.

mod budget;
mod correspondence;
mod data;
mod diff;
mod formats;
mod metadata;
mod page;
mod text;

pub use budget::{Budget, Finding, Limit};
pub use data::{
    Accuracy, Buffer, Constant, Cost, Layer, Moment, Peak, Report, ResultError, SCHEMA, Sizes, Source, Time,
    VERSION,
};
pub use diff::{Change, Diff, Figure, LayerChange};
pub use formats::{github, junit};
pub use metadata::of_metadata;
pub use page::html;
