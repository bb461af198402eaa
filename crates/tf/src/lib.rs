//! TensorFlow graphs.
