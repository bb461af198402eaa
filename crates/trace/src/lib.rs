//! What a step of a session took: collected node by node, as TensorFlow's `StepStats`, and as a timeline that browsers show.
//!
//! [`html`] makes a page of a [`Report`]: where the time of a program or a step goes.
//!
//! A [`Collector`] is told of each execution of a node and answers with the step's `StepStats`; [`chrome_trace`] draws these as
//! TensorFlow's `timeline` module does. Nothing here reads the clock.

mod chrome_trace;
mod collector;
mod lanes;
mod report;
mod step_report;

pub use chrome_trace::{TimelineOptions, chrome_trace};
pub use collector::{Collector, Execution, Instruction, Output};
pub use report::{Bar, Kernel, Lane, Report, Roof, Series, html};
pub use step_report::step_report;
