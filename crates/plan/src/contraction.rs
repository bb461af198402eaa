//! Contractions: dots and convolutions, and what they share.

pub(crate) mod attention;
pub(crate) mod chain;
pub(crate) mod convolution;
pub(crate) mod dot;
pub(crate) mod epilogue;
pub(crate) mod extents;
pub(crate) mod operands;
pub(crate) mod tile;

use crate::candidate::Candidate;
use convolution::Winograd;
use support::for_each_chunk;
use target::Target;

/// Bytes of packed panels that are worth a thread of their own.
const BYTES_OF_THREAD: usize = 2 << 20;

/// Calls `fill` with the index of each panel of `size` bytes, and the panel.
fn for_each_panel(packed: &mut [u8], size: usize, fill: impl Fn(usize, &mut [u8]) + Sync) {
    let threads = packed.len() / BYTES_OF_THREAD;
    for_each_chunk(packed, size, threads, fill);
}

/// The target of a contraction's plan, and the caller's decisions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planner<'a> {
    pub(crate) target: &'a Target,
    /// The transforms that convolutions may use.
    pub(crate) winograd: Winograd,
    /// The plan to make instead of the cost model's.
    pub(crate) candidate: Option<Candidate>,
}
