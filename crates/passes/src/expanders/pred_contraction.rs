//! Products of truth values.

use super::expand::expand;
use crate::pass::{Changed, Pass};
use hlo::{Module, Op};
use shape::PrimitiveType;
use support::Result;

/// `dot` and `convolution` of `pred` `=>` whether the number of true products is not 0, counted in `s32`.
///
/// Exact below 2^31 summands.
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
                let counted = operands.iter().map(|x| x.convert(PrimitiveType::S32)).collect::<Vec<_>>();
                let wanted = shape.with_element_type(PrimitiveType::S32);
                let count = operands[0].function().op(op.clone(), &counted, Some(wanted.into()));
                if shape.element_type == PrimitiveType::Pred { count.not_equal(0.0) } else { count }
            },
        )
    }
}
