//! Static facts about a program: ranges of integers, induction variables, trip counts, independent
//! rows, elements that are read, and costs.
//!
//! The analyses never change a module. Facts about integers and loops are guarantees: a range holds
//! for every input, and a bound is never exceeded. Anything that cannot be guaranteed is `None`.
//! Costs are estimates.

mod channel_constant;
mod compared;
mod condition;
mod cost;
mod executions;
mod independence;
mod induction;
mod interval;
mod needed;
mod range;
mod trip_count;

#[cfg(test)]
mod tests;

pub use channel_constant::ChannelConstant;
pub use compared::largest_exact_integer;
pub use cost::Cost;
pub use executions::{executions, loop_iterations};
pub use independence::{Dependence, RowUse, independent_rows};
pub use induction::{Affine, affine, induction_variables, invariant_elements, state_element};
pub use interval::Range;
pub use needed::{Extent, NeededSizes, linear_extent, needed_for};
pub use range::{range, range_in};
pub use trip_count::{TripCount, state_ranges, state_ranges_within, trip_count};
