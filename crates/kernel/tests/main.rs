//! Tests of the lowering: programs are compiled, run in this process, and compared with the
//! evaluator.
//!
//! All tests form one binary, so that the shared code is compiled and linked once.

mod attention;
mod candidates;
mod convolution_chains;
mod convolutions;
mod destinations;
mod device_attention;
mod device_contractions;
mod device_random;
mod device_reductions;
mod device_scatters;
mod device_sorts;
mod elementwise;
mod emulators;
mod ffts;
mod functions;
mod harness;
mod indexing;
mod loop_groups;
mod loops;
mod math;
mod multi_outputs;
mod products;
mod reduce_windows;
mod reductions;
mod rows;
mod simulator;
mod sorts;
mod squares;
mod strategies;
mod tasks;
mod winograd;
mod winograd_gradients;
