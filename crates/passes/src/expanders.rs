//! Expanders: passes that rewrite instructions into simpler ones.

mod batch_norm;
mod cholesky;
mod decomposition;
mod expand;
mod fft;
mod map;
mod power;
mod pred_contraction;
mod rng;
mod select_and_scatter;
mod triangular_solve;

pub use batch_norm::BatchNormExpander;
pub use cholesky::CholeskyExpander;
pub use decomposition::DecompositionExpander;
pub use fft::FftExpander;
pub use map::MapExpander;
pub use power::PowerExpander;
pub use pred_contraction::PredContractionExpander;
pub use rng::RngExpander;
pub use select_and_scatter::SelectAndScatterExpander;
pub use triangular_solve::TriangularSolveExpander;
