//! The rules of ops, by subject, as TensorFlow groups its kernels.

pub(crate) mod array;
pub(crate) mod image;
pub(crate) mod linalg;
pub(crate) mod lite;
pub(crate) mod math;
pub(crate) mod nn;
pub(crate) mod onnx;
pub(crate) mod quantized;
pub(crate) mod random;
pub(crate) mod training;
pub(crate) mod xla;
