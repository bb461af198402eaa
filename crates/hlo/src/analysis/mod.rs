//! What is known of integers and of loops without running them: ranges, induction variables, trip counts.
//!
//! Nothing here changes a module, and every answer is a promise: a range holds for every input, a bound is never
//! exceeded. What cannot be promised is `None`.

mod condition;
mod induction;
mod interval;
mod range;
mod trip_count;

#[cfg(test)]
mod tests;

pub use induction::{Affine, affine, induction_variables, invariant_elements, state_element};
pub use interval::Range;
pub use range::{range, range_in};
pub use trip_count::{TripCount, state_ranges, state_ranges_within, trip_count};
