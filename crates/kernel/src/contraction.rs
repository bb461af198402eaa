//! Contractions: dots, convolutions, their shared parts (tiles and destinations), and kernels that
//! combine several of them.

pub(crate) mod attention;
pub(crate) mod chain;
pub(crate) mod convolution;
pub(crate) mod destination;
pub(crate) mod dot;
pub(crate) mod grouping;
pub(crate) mod tile;
pub(crate) mod tile_registers;
