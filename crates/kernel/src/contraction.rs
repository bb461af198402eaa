//! Contractions: what dots and convolutions share (tiles, destinations), their loops, and kernels of several of them.

pub(crate) mod attention;
pub(crate) mod chain;
pub(crate) mod convolution;
pub(crate) mod destination;
pub(crate) mod dot;
mod tile;
