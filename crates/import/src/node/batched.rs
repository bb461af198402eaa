//! Ops that treat each sample of a batch by itself. Their rules see whole arrays, and their results
//! get the true size of the batch: elements of samples beyond it never reach the others.

use crate::node::accepted::always_takes_bounded;
use crate::node::context::NodeContext;
use crate::values::value::Value;
use bounded::integer_vector;
use hlo::InstructionId;
use support::Result;

/// Ops, and where the samples are in their inputs and outputs.
struct Batched {
    ops: &'static str,
    /// The inputs with samples, each with the dimension of the samples. An input may also be the
    /// same for all samples.
    inputs: &'static [(usize, usize)],
    /// The dimension of the samples in each output. Further outputs, of a normalization of batches,
    /// have none.
    outputs: &'static [usize],
    holds: Condition,
}

/// A condition under which an op treats each sample by itself.
#[derive(Clone, Copy)]
enum Condition {
    Always,
    /// The attribute `data_format` is NCHW: the channels take the place of samples, as in Keras's
    /// normalization of layers.
    ChannelsFirst,
    /// The first input has at least this rank: the last dimensions are those of one sample.
    Rank(usize),
    /// The attribute `axis`, with this default, is not the first dimension.
    Axis(i64),
    /// This attribute is absent or 0.
    Not(&'static str),
    /// Inputs with samples have the same rank, so that broadcasting matches their samples.
    SameRanks,
    /// The input with this position pads nothing before and after the samples.
    Unpadded(usize),
    /// ONNX's resizing keeps the number of samples.
    Unresized,
}

use Condition::{Always, Axis, ChannelsFirst, Not, Rank, SameRanks, Unpadded, Unresized};

const FIRST: &[(usize, usize)] = &[(0, 0)];

const BATCHED: [Batched; 15] = [
    Batched {
        ops: "AvgPool AvgPool3D Conv Conv2D Conv3D DepthToSpace DepthwiseConv2dNative ExtractImagePatches \
              FakeQuantWithMinMaxArgs FakeQuantWithMinMaxVars FakeQuantWithMinMaxVarsPerChannel LRN MaxPool MaxPool3D \
              MaxPoolV2 ResizeBilinear ResizeNearestNeighbor SpaceToDepth \
              OnnxConvTranspose OnnxDepthToSpace OnnxGlobalAveragePool OnnxGlobalLpPool OnnxGlobalMaxPool \
              OnnxGroupNormalization OnnxInstanceNormalization OnnxLRN OnnxLpPool OnnxMsFusedConv OnnxQLinearConv \
              OnnxMsQLinearAveragePool OnnxMsQLinearGlobalAveragePool OnnxSpaceToDepth \
              TFLiteAveragePool2d TFLiteConv2d TFLiteDepthwiseConv2d TFLiteMaxPool2d \
              TFLiteResizeBilinear",
        inputs: FIRST,
        outputs: &[0, 0],
        holds: Always,
    },
    Batched {
        ops: "Conv2DBackpropInput Conv3DBackpropInputV2 DepthwiseConv2dNativeBackpropInput",
        inputs: &[(2, 0)],
        outputs: &[0],
        holds: Always,
    },
    Batched {
        ops: "FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3",
        inputs: &[(0, 1), (1, 0), (2, 0), (3, 0), (4, 0)],
        outputs: &[1, 0, 0, 0, 0],
        holds: ChannelsFirst,
    },
    Batched { ops: "CropAndResize OnnxRoiAlign", inputs: &[(1, 0), (2, 0)], outputs: &[0], holds: Always },
    Batched {
        ops: "OnnxGemm OnnxMsFusedGemm",
        inputs: &[(0, 0), (2, 0)],
        outputs: &[0],
        holds: Not("transA"),
    },
    Batched {
        ops: "TFLiteFullyConnected OnnxMlArrayFeatureExtractor OnnxMlImputer OnnxMlLinearClassifier OnnxMlLinearRegressor \
              OnnxMlNormalizer OnnxMlOneHotEncoder OnnxMlScaler OnnxMlSVMClassifier OnnxMlSVMRegressor \
              OnnxMlTreeEnsemble OnnxMlTreeEnsembleClassifier OnnxMlTreeEnsembleRegressor",
        inputs: FIRST,
        outputs: &[0, 0],
        holds: Rank(2),
    },
    Batched { ops: "AdjustContrastv2", inputs: FIRST, outputs: &[0], holds: Rank(4) },
    Batched { ops: "OnnxHardmax", inputs: FIRST, outputs: &[0], holds: Axis(0) },
    Batched {
        ops: "OnnxMsQLinearAdd OnnxMsQLinearMul",
        inputs: &[(0, 0), (3, 0)],
        outputs: &[0],
        holds: SameRanks,
    },
    Batched { ops: "OnnxResize OnnxUpsample", inputs: FIRST, outputs: &[0], holds: Unresized },
    Batched { ops: "MirrorPad", inputs: FIRST, outputs: &[0], holds: Unpadded(1) },
    Batched {
        ops: "OnnxMsSkipLayerNormalization OnnxMsSkipSimplifiedLayerNormalization",
        inputs: &[(0, 0), (1, 0)],
        outputs: &[0, 0, 0, 0],
        holds: SameRanks,
    },
    Batched {
        ops: "GRUBlockCell LSTMBlockCell",
        inputs: &[(0, 0), (1, 0), (2, 0)],
        outputs: &[0, 0, 0, 0, 0, 0, 0],
        holds: Always,
    },
    Batched {
        ops: "BlockLSTM BlockLSTMV2",
        inputs: &[(1, 1), (2, 0), (3, 0)],
        outputs: &[1, 1, 1, 1, 1, 1, 1],
        holds: Always,
    },
    Batched {
        ops: "OnnxGRU OnnxLSTM OnnxRNN",
        inputs: &[(0, 1), (4, 0), (5, 1), (6, 1)],
        outputs: &[2, 1, 1],
        holds: Not("layout"),
    },
];

/// The samples of a node's inputs.
pub(crate) struct Samples {
    /// True number of samples.
    size: InstructionId,
    /// Bound on it.
    bound: i64,
    outputs: &'static [usize],
}

impl NodeContext<'_, '_> {
    /// Replaces inputs with a bounded number of samples by whole arrays, if the node's op treats
    /// each sample by itself.
    pub(crate) fn take_samples(&mut self) -> Result<Option<Samples>> {
        let op = self.node().op.as_str();
        let is_bounded = |input: &Value| input.array().is_some_and(|id| self.is_bounded(id));
        if !self.inputs().iter().any(is_bounded) || always_takes_bounded(op) {
            return Ok(None);
        }
        let is_named = |batched: &&Batched| batched.ops.split_whitespace().any(|name| name == op);
        for batched in BATCHED.iter().filter(is_named) {
            if let Some(places) = self.places(batched)? {
                return self.take(batched, &places);
            }
        }
        Ok(None)
    }

    /// Returns the inputs with samples and their dimensions, or `None` if other dimensions are
    /// bounded, or if samples are not treated by themselves.
    fn places(&mut self, batched: &Batched) -> Result<Option<Vec<(usize, usize)>>> {
        let mut places = Vec::new();
        for &(input, dimension) in batched.inputs {
            if let Some(place) = self.place_of(input)? {
                places.push((place, dimension));
            }
        }
        for (place, input) in self.inputs().iter().enumerate() {
            let Some(array) = input.array().map(|id| self.array(id)) else { continue };
            let own = places.iter().find(|(other, _)| *other == place).map(|(_, dimension)| *dimension);
            if (0..array.rank()).any(|d| array.dimensions[d].is_dynamic && own != Some(d)) {
                return Ok(None);
            }
        }
        let op = &self.node().op;
        let has_all = self.node().output_types.len() <= batched.outputs.len() || op.contains("BatchNorm");
        Ok((has_all && self.holds(batched, &places)?).then_some(places))
    }

    /// Replaces the inputs with samples.
    fn take(&mut self, batched: &Batched, places: &[(usize, usize)]) -> Result<Option<Samples>> {
        let mut samples: Option<(InstructionId, i64)> = None;
        for &(place, dimension) in places {
            let Some(id) =
                self.inputs().get(place).and_then(|input| input.array()).filter(|&id| self.is_bounded(id))
            else {
                continue;
            };
            let part = self.split(id)?;
            let bound = self.sizes(part.data)[dimension];
            samples = match (samples, part.sizes[dimension]) {
                (Some((_, other)), Some(_)) if other != bound => {
                    return Err(self.invalid(format!(
                        "the inputs have at most {other} and at most {bound} samples; expected the same number"
                    )));
                }
                (Some((size, _)), Some(own)) if size != own => {
                    Some((self.op(hlo::Op::Minimum {}, &[size, own])?, bound))
                }
                (known, own) => known.or(own.map(|own| (own, bound))),
            };
            self.replace_input(place, part.data);
        }
        let Some((size, bound)) = samples else { return Ok(None) };
        self.replace_output_sizes(bound)?;
        Ok(Some(Samples { size, bound, outputs: batched.outputs }))
    }

    /// Gives the outputs their true number of samples.
    pub(crate) fn with_samples(&mut self, samples: &Samples, outputs: &mut [Value]) -> Result<()> {
        for (k, (output, &dimension)) in outputs.iter_mut().zip(samples.outputs).enumerate() {
            let Value::Array(id) = output else { continue };
            let sizes = self.sizes(*id);
            if sizes.get(dimension) != Some(&samples.bound) {
                // Further outputs may be empty.
                if k > 0 {
                    continue;
                }
                return Err(self.invalid(format!(
                    "an output of the shape {sizes:?} does not have the {} samples of the inputs",
                    samples.bound
                )));
            }
            let true_sizes: Vec<_> =
                (0..sizes.len()).map(|d| (d == dimension).then_some(samples.size)).collect();
            *id = self.bounded(*id, &true_sizes)?;
        }
        Ok(())
    }

    /// Returns the input of the node for an input of the op, which may be absent in ONNX.
    pub(crate) fn place_of(&self, input: usize) -> Result<Option<usize>> {
        if self.attributes().has("operands") {
            let places = self.attributes().ints("operands")?;
            return Ok(places.get(input).and_then(|&place| usize::try_from(place).ok()));
        }
        Ok((input < self.inputs().len()).then_some(input))
    }

    /// True if the node treats each sample by itself.
    fn holds(&mut self, batched: &Batched, places: &[(usize, usize)]) -> Result<bool> {
        let ranks: Vec<Option<usize>> =
            self.inputs().iter().map(|input| input.array().map(|id| self.rank(id))).collect();
        let rank = |place: usize| ranks.get(place).copied().flatten();
        Ok(match batched.holds {
            Always => true,
            ChannelsFirst => self.attributes().text("data_format").unwrap_or_default() == "NCHW",
            Rank(least) => rank(0).is_some_and(|rank| rank >= least),
            Axis(default) => {
                let axis = self.attributes().int_or("axis", default)?;
                let rank = rank(0).unwrap_or(0) as i64;
                axis != 0 && axis != -rank
            }
            Not(attribute) => self.attributes().int_or(attribute, 0)? == 0,
            SameRanks => places.iter().all(|&(place, _)| rank(place) == rank(places[0].0)),
            Unresized => self.keeps_samples(rank(0).unwrap_or(0))?,
            Unpadded(paddings) => match self.place_of(paddings)? {
                Some(place) => self.is_unpadded(place, rank(0).unwrap_or(0))?,
                None => {
                    let paddings = self.attributes().ints("pads").unwrap_or_default();
                    let rank = rank(0).unwrap_or(0);
                    paddings.len() == 2 * rank && rank > 0 && paddings[0] == 0 && paddings[rank] == 0
                }
            },
        })
    }

    /// True if an input pads nothing before and after the first dimension: pairs of TensorFlow, or
    /// ONNX's two halves.
    fn is_unpadded(&mut self, place: usize, rank: usize) -> Result<bool> {
        let paddings = self.input(place)?;
        let after = if self.rank(paddings) == 2 { 1 } else { rank };
        Ok(self.fold_element(paddings, 0) == Some(0) && self.fold_element(paddings, after) == Some(0))
    }

    /// True if ONNX's resizing leaves the first dimension alone: by its axes, by a scale of 1, or
    /// by a size that is that of the input.
    fn keeps_samples(&mut self, rank: usize) -> Result<bool> {
        let attributes = self.attributes();
        if attributes.has("axes") {
            return Ok(attributes.ints("axes")?.iter().all(|&axis| axis != 0 && axis != -(rank as i64)));
        }
        let text = |name: &str| attributes.text(name).unwrap_or_default();
        // A part of the samples, or one scale for all dimensions.
        if text("coordinate_transformation_mode") == "tf_crop_and_resize"
            || matches!(text("keep_aspect_ratio_policy"), "not_larger" | "not_smaller")
        {
            return Ok(false);
        }
        if attributes.has("scales") {
            return Ok(attributes.floats("scales")?.first() == Some(&1.0));
        }
        let is_old = self.node().op == "OnnxUpsample" || attributes.int("opset")? < 11;
        if let Some(scales) = self.place_of(if is_old { 1 } else { 2 })? {
            let scales = self.input(scales)?;
            if !self.array(scales).sizes().contains(&0) {
                let first = self.fold(scales).and_then(|scales| scales.scalar_at(0).as_f64());
                return Ok(first == Some(1.0));
            }
        }
        let Some(wanted) = self.place_of(3)? else { return Ok(false) };
        let (x, wanted) = (self.input(0)?, self.input(wanted)?);
        let own = self.all_sizes(x)?[0];
        let wanted = self.size_element(wanted, 0)?;
        Ok(wanted.is_some_and(|wanted| self.known_difference(own, wanted) == Some(0)))
    }

    /// Gives the gradient of a convolution, which is also its transpose, and ONNX's resizing the
    /// bound in the sizes of their results.
    fn replace_output_sizes(&mut self, bound: i64) -> Result<()> {
        let place = match self.node().op.as_str() {
            "OnnxResize" => self.place_of(3)?,
            op => op.contains("BackpropInput").then_some(0),
        };
        let Some(place) = place else { return Ok(()) };
        let sizes = self.input(place)?;
        let element_type = self.element_type(sizes);
        let count = self.array(sizes).element_count() as usize;
        let mut known = vec![bound];
        for position in 1..count {
            let Some(size) = self.fold_element(sizes, position) else { return Ok(()) };
            known.push(size);
        }
        if let Some(known) = integer_vector(element_type, &known) {
            let known = self.literal(known);
            self.replace_input(place, known);
        }
        Ok(())
    }
}
