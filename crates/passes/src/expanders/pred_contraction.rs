//! Dots and convolutions of truth values.

use super::expand::expand;
use crate::pass::{Changed, Pass};
use hlo::{Module, Op};
use shape::PrimitiveType;
use support::Result;

/// `dot` and `convolution` of `pred` `=>` true if the number of true products, counted in `s32`, is
/// not 0.
///
/// Exact for fewer than 2^31 summands.
pub struct PredContractionExpander;

impl Pass for PredContractionExpander {
    fn name(&self) -> &'static str {
        "pred-contraction-expander"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        expand(
            module,
            "any_product",
            |op, operands| {
                matches!(op, Op::Dot { .. } | Op::Convolution { .. })
                    && operands.iter().all(|operand| operand.element_type == PrimitiveType::Pred)
            },
            |op, shape, operands| {
                let integers = operands.iter().map(|x| x.convert(PrimitiveType::S32)).collect::<Vec<_>>();
                let result = shape.with_element_type(PrimitiveType::S32);
                let count = operands[0].function().op(op.clone(), &integers, Some(result.into()));
                if shape.element_type == PrimitiveType::Pred { count.not_equal(0.0) } else { count }
            },
        )
    }
}
