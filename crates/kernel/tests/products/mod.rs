//! Products of numbers narrower than 32 bits.

mod byte_lookups;
mod group_products;
mod narrow_weights;
