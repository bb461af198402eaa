//! Tests of reading and preparing graphs, against recorded graphs and answers.
//!
//! One binary links and compiles the shared code once.

mod checkpoint;
mod conditionals;
mod freeze;
mod gradients;
mod hostile;
mod infer;
mod loops;
mod model;
mod oracle;
mod prepare;
mod shared;
mod tensors;
mod text;
