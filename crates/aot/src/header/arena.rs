//! Layout of the single block of memory that a computation needs, determined when the header is
//! written.

use crate::Artifact;
use hlo::Interface;
use support::{Error, Result};

/// Alignment of every buffer in the block, in bytes.
pub(crate) const ALIGNMENT: u64 = 64;

/// Offsets in bytes.
///
/// Everything that must be zero initially comes first: the head, the arguments, the counters, and
/// the temps, which begin with their persistent part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arena {
    /// Offset of each argument.
    pub(crate) arguments: Vec<u64>,
    /// Offset of each fetch. Other results share the memory of their variable's argument.
    pub(crate) results: Vec<u64>,
    /// Offset of the profile counters.
    pub(crate) counters: u64,
    /// Offset of the temps.
    pub(crate) temps: u64,
    /// Offset of the scratch memory of one worker.
    pub(crate) scratch: u64,
    /// Number of leading bytes that must be zero before the first run.
    pub(crate) zeroed: u64,
    /// Size of the whole block, a positive multiple of the alignment.
    pub(crate) size: u64,
}

impl Arena {
    /// Lays out the block with `head` bytes at offset 0 for the caller's use.
    pub(crate) fn new(artifact: &Artifact, head: u64) -> Result<Self> {
        let mut used = 0;
        let mut take = |bytes| take(&mut used, bytes);
        take(head)?;
        let arguments = artifact
            .interface
            .arguments()
            .iter()
            .map(|a| take(a.shape.byte_size()))
            .collect::<Result<_>>()?;
        let counters = take(8 * artifact.profile_counters.len() as u64)?;
        let memory = artifact.host_memory();
        let temps = take(memory.temps)?;
        let scratch = take(memory.scratch)?;
        let results =
            artifact.interface.fetches().iter().map(|r| take(r.shape.byte_size())).collect::<Result<_>>()?;
        let zeroed = temps + memory.persistent_temps;
        Ok(Self { arguments, results, counters, temps, scratch, zeroed, size: used.max(ALIGNMENT) })
    }

    /// Fails as [`Arena::new`] does if head, arguments, and results alone are too large.
    pub(crate) fn check(interface: &Interface, head: u64) -> Result<()> {
        let arguments = interface.arguments().iter().map(|argument| argument.shape.byte_size());
        let results = interface.fetches().iter().map(|result| result.shape.byte_size());
        let mut used = 0;
        let mut sizes = std::iter::once(head).chain(arguments).chain(results);
        sizes.try_for_each(|bytes| take(&mut used, bytes).map(drop))
    }
}

/// Allocates the next `bytes` of the block and returns their offset. `used` is the current size.
fn take(used: &mut u64, bytes: u64) -> Result<u64> {
    let place = *used;
    let end = bytes.checked_next_multiple_of(ALIGNMENT).and_then(|bytes| used.checked_add(bytes));
    *used = end
        .filter(|&end| end <= i64::MAX as u64)
        .ok_or_else(|| Error::invalid("arguments, results, and temps together exceed 2^63 - 1 bytes"))?;
    Ok(place)
}

/// Formats an unsigned literal of C and C++.
pub(crate) fn literal(number: u64) -> String {
    let suffix = if number > u64::from(u32::MAX) { "ull" } else { "u" };
    format!("{number}{suffix}")
}
