//! Contractions: dots and convolutions, and what they share.

pub(crate) mod attention;
pub(crate) mod chain;
pub(crate) mod convolution;
pub(crate) mod dot;
pub(crate) mod epilogue;
pub(crate) mod packing;
pub(crate) mod tile;
