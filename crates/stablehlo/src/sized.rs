//! Programs with open dimensions: their sizes are fixed, or the caller of the program chooses them
//! within ranges.
//!
//! Instructions go to [`bounded::Builder`], which handles arrays of bounded size. The sizes of
//! results follow from operands and from the integers that the program itself computes; declared
//! types only say which sizes are known. Called functions are inlined.

mod arguments;
mod custom_call;
mod dimensions;
mod factors;
mod gather;
mod regions;
mod shaping;
mod slices;
mod symbolic;
mod windows;

pub(crate) use arguments::import_function;
pub use dimensions::{GivenSize, OpenDimensions, SizeRequest};
pub(crate) use dimensions::{SIZES, has_open_sizes, open_dimensions};

use crate::walk::{Context, Convert};
use crate::{ops, quantized};
use hlo::InstructionId;
use support::Result;

/// Adds the instructions of an operation and returns its results.
pub(crate) fn convert(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    match find(&context.operation.name).filter(|_| !quantized::computes(context)) {
        Some(convert) => convert(context),
        None => ops::convert(context),
    }
}

/// Finds the operation with the given name if open dimensions change how it is converted.
fn find(name: &str) -> Option<Convert> {
    if name == "stablehlo.custom_call" {
        return Some(custom_call::convert);
    }
    let families: [fn(&str) -> Option<Convert>; 4] =
        [regions::find, shaping::find, slices::find, gather::find];
    families.iter().find_map(|family| family(name))
}
