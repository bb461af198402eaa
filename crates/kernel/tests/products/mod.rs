//! Products of numbers narrower than 32 bits.

pub(crate) mod byte_lookups;
pub(crate) mod group_products;
pub(crate) mod narrow_operands;
pub(crate) mod narrow_weights;
mod tile_registers;
