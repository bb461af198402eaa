//! Tests of the evaluator, op by op, against recorded or hand-computed values.
//!
//! One binary links and compiles the shared code once.

mod complex;
mod contraction;
mod control_flow;
mod elementwise;
mod indexing;
mod linear_algebra;
mod random;
mod reduction;
mod support;
