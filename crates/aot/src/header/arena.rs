//! One block of memory for all that a computation needs, laid out when the header is written.

use crate::Artifact;
use hlo::Interface;
use support::{Error, Result};

/// What every buffer's offset is a multiple of.
pub(crate) const ALIGNMENT: u64 = 64;

/// Offsets in bytes.
///
/// What must be zero at first comes first: the head, the arguments, the counters, and the temps, which begin with their
/// persistent part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arena {
    /// Of each argument.
    pub(crate) arguments: Vec<u64>,
    /// Of each fetch. Other results are in their variable's argument.
    pub(crate) results: Vec<u64>,
    /// Of the profile counters.
    pub(crate) counters: u64,
    /// Of the temps.
    pub(crate) temps: u64,
    /// Of one worker's scratch memory.
    pub(crate) scratch: u64,
    /// How many bytes must be zero before the first run.
    pub(crate) zeroed: u64,
    /// Bytes of the whole, a multiple of the alignment and not 0.
    pub(crate) size: u64,
}

impl Arena {
    /// With `head` bytes at offset 0 for the caller's own use.
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
        let temps = take(artifact.memory.temps)?;
        let scratch = take(artifact.memory.scratch)?;
        let results =
            artifact.interface.fetches().iter().map(|r| take(r.shape.byte_size())).collect::<Result<_>>()?;
        let zeroed = temps + artifact.memory.persistent_temps;
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

/// Takes the next bytes of a block of which some are used. Returns their offset.
fn take(used: &mut u64, bytes: u64) -> Result<u64> {
    let place = *used;
    let end = bytes.checked_next_multiple_of(ALIGNMENT).and_then(|bytes| used.checked_add(bytes));
    *used = end
        .filter(|&end| end <= i64::MAX as u64)
        .ok_or_else(|| Error::invalid("arguments, results and temps together are larger than any memory"))?;
    Ok(place)
}

/// An unsigned literal of C and C++.
pub(crate) fn literal(number: u64) -> String {
    let suffix = if number > u64::from(u32::MAX) { "ull" } else { "u" };
    format!("{number}{suffix}")
}
