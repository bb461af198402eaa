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

/// Bytes of packed panels that justify another thread.
const BYTES_PER_THREAD: usize = 2 << 20;

/// Calls `fill` with the index and the bytes of each panel of `size` bytes.
fn for_each_panel(packed: &mut [u8], size: usize, fill: impl Fn(usize, &mut [u8]) + Sync) {
    let threads = packed.len() / BYTES_PER_THREAD;
    for_each_chunk(packed, size, threads, fill);
}

/// The target of a contraction's plan, and the caller's decisions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planner<'a> {
    pub(crate) target: &'a Target,
    /// Winograd transforms that convolutions may use.
    pub(crate) winograd: Winograd,
    /// The candidate to plan instead of the cost model's choice.
    pub(crate) candidate: Option<Candidate>,
}
