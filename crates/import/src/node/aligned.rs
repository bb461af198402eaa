//! Ops whose results have the open sizes of an input in the same dimensions, such as layer
//! normalization of texts of any length. Their rules see whole arrays: an element of the result
//! depends on no elements at other indices of these dimensions.

use crate::node::accepted::takes_bounded;
use crate::node::context::NodeContext;
use crate::values::value::Value;
use hlo::InstructionId;
use support::Result;

/// Ops, and the dimensions of the first input that may be open.
struct Aligned {
    ops: &'static str,
    open: Open,
}

/// Dimensions that may be open.
#[derive(Clone, Copy)]
enum Open {
    /// All of them.
    All,
    /// All but this many at the end.
    AllButLast(usize),
    /// Those before the attribute `axis`, which is the last one by default.
    BeforeAxis,
    /// All but the attribute `axis`, which is the last one by default.
    AllButAxis,
    /// All but the features of a normalization that reads its statistics.
    AllButFeatures,
}

const ALIGNED: [Aligned; 6] = [
    Aligned {
        ops: "OnnxMsFastGelu OnnxMsGelu OnnxMsQLinearLeakyRelu OnnxMsQLinearSigmoid OnnxMsQuickGelu OnnxMsTrilu \
              OnnxTrilu",
        open: Open::All,
    },
    Aligned {
        ops: "AdjustHue AdjustSaturation HSVToRGB LRN OnnxMatMulInteger OnnxMsBiasGelu OnnxMsBiasSplitGelu \
              OnnxMsMatMulIntegerToFloat OnnxMsMatMulNBits OnnxQLinearMatMul RGBToHSV",
        open: Open::AllButLast(1),
    },
    Aligned { ops: "Cholesky MatrixDeterminant MatrixInverse", open: Open::AllButLast(2) },
    Aligned {
        ops: "OnnxLayerNormalization OnnxRMSNormalization OnnxSimplifiedLayerNormalization",
        open: Open::BeforeAxis,
    },
    Aligned { ops: "OnnxHardmax OnnxLpNormalization", open: Open::AllButAxis },
    Aligned {
        ops: "FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3 OnnxBatchNormalization OnnxLRN",
        open: Open::AllButFeatures,
    },
];

/// The true sizes of the first input, where they are open, with their bounds.
pub(crate) struct OpenSizes {
    sizes: Vec<Option<InstructionId>>,
    bounds: Vec<i64>,
}

impl NodeContext<'_, '_> {
    /// Replaces the first input by its whole array, if the op computes each index of its open
    /// dimensions by itself and no other input has any.
    pub(crate) fn take_aligned(&mut self) -> Result<Option<OpenSizes>> {
        if !self.inputs().iter().any(|input| input.array().is_some_and(|id| self.is_bounded(id))) {
            return Ok(None);
        }
        let op = self.node().op.clone();
        let is_named = |aligned: &&Aligned| aligned.ops.split_whitespace().any(|name| name == op);
        let Some(aligned) = ALIGNED.iter().find(is_named).filter(|_| !takes_bounded(&op)) else {
            return Ok(None);
        };
        let arrays: Vec<InstructionId> = self.inputs().iter().filter_map(|input| input.array()).collect();
        let Some((&x, others)) = arrays.split_first() else { return Ok(None) };
        let rank = self.rank(x);
        // The ranks of products follow the larger one.
        let is_alone = others.iter().all(|&id| !self.is_bounded(id) && self.rank(id) <= rank);
        let axis = || self.dimension(self.attributes().int_or("axis", -1)?, rank);
        let may_be_open = match aligned.open {
            Open::All => (0..rank, None),
            Open::AllButLast(count) => (0..rank.saturating_sub(count), None),
            Open::BeforeAxis => (0..axis()?, None),
            Open::AllButAxis => (0..rank, Some(axis()?)),
            Open::AllButFeatures => match self.features(rank)? {
                Some(features) => (0..rank, Some(features)),
                None => return Ok(None),
            },
        };
        let is_open = |id: InstructionId, d: usize| self.array(id).dimensions[d].is_dynamic;
        let fits =
            (0..rank).all(|d| !is_open(x, d) || may_be_open.0.contains(&d) && may_be_open.1 != Some(d));
        if !self.is_bounded(x) || self.inputs()[0].array() != Some(x) || !is_alone || !fits {
            return Ok(None);
        }
        let whole = self.split(x)?;
        self.replace_input(0, whole.data);
        Ok(Some(OpenSizes { sizes: whole.sizes, bounds: self.sizes(whole.data) }))
    }

    /// Returns the dimension of the features of a normalization; `None` if it computes statistics.
    fn features(&self, rank: usize) -> Result<Option<usize>> {
        if self.node().op.starts_with("Onnx") {
            return Ok((self.attributes().int_or("training_mode", 0)? == 0).then_some(1));
        }
        let is_training = self.attributes().bool_or("is_training", true)?;
        let is_first = self.text_or("data_format", "NHWC")?.starts_with("NC");
        Ok((!is_training).then(|| if is_first { 1 } else { rank.saturating_sub(1) }))
    }

    /// Gives the outputs the true sizes of the first input.
    pub(crate) fn with_aligned(&mut self, open: &OpenSizes, outputs: &mut [Value]) -> Result<()> {
        for (k, output) in outputs.iter_mut().enumerate() {
            let Value::Array(id) = output else { continue };
            let own = self.sizes(*id);
            let is_aligned = |(d, size): (usize, &Option<InstructionId>)| {
                size.is_none() || own.get(d) == Some(&open.bounds[d])
            };
            // A channel's statistics may have as many elements as a batch.
            let is_other = k > 0 && own.len() != open.sizes.len();
            if is_other || !open.sizes.iter().enumerate().all(is_aligned) {
                // The statistics of batches, and absent outputs.
                if k > 0 {
                    continue;
                }
                return Err(self.invalid(format!(
                    "output shape {own:?} does not keep the open sizes of the first input; set fixed sizes"
                )));
            }
            let sizes: Vec<_> = (0..own.len()).map(|d| open.sizes.get(d).copied().flatten()).collect();
            *id = self.bounded(*id, &sizes)?;
        }
        Ok(())
    }
}
