//! What is known of a program without running it: ranges of integers, induction variables, trip counts, costs.
//!
//! Nothing here changes a module. What is said of integers and loops is a promise: a range holds for every input, a bound is
//! never exceeded; what cannot be promised is `None`. Costs are estimates.

mod condition;
mod cost;
mod executions;
mod induction;
mod interval;
mod range;
mod trip_count;

#[cfg(test)]
mod tests;

pub use cost::Cost;
pub use executions::executions;
pub use induction::{Affine, affine, induction_variables, invariant_elements, state_element};
pub use interval::Range;
pub use range::{range, range_in};
pub use trip_count::{TripCount, state_ranges, state_ranges_within, trip_count};
