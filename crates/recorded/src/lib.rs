//! Recorded cases: graphs with inputs and the answers of TensorFlow and XLA, and the comparison of
//! results with them. It does not know the compiler, so that a program on another machine can judge
//! results.

pub mod case;
pub mod compare;
pub mod tolerance;
