//! Products of numbers narrower than 32 bits.

mod group_products;
mod narrow_weights;
