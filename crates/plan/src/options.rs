//! Decisions of the caller.

use crate::choices::Choices;
use crate::contraction::convolution::Winograd;
use std::sync::Arc;

/// What the caller decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Which transforms convolutions may use that change how results are rounded.
    pub winograd: Winograd,
    /// What measuring has chosen; where it says nothing, the cost models choose.
    pub choices: Arc<Choices>,
}
