//! The layers of a module: contractions of `f32` arrays, one operand of which is a constant.

use hlo::{Computation, ComputationId, InstructionId, Module, Op};
use shape::index::row_major_strides;
use shape::{ArrayShape, Literal, PrimitiveType};

/// A dot or a convolution with constant weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// The computation of the contraction.
    pub computation: ComputationId,
    /// The contraction.
    pub instruction: InstructionId,
    /// Position of the weights among its operands.
    pub weights: usize,
    /// Dimension of the weights that has a scale for each index. It is not summed over.
    pub channel: Option<usize>,
}

/// A contraction that cannot be quantized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsuitable {
    /// The source node, or else the instruction.
    pub name: String,
    /// The reason.
    pub reason: String,
}

/// Contractions of a module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layers {
    /// Those that can be quantized, operands before users.
    pub layers: Vec<Layer>,
    /// The others.
    pub unsuitable: Vec<Unsuitable>,
}

impl Layers {
    /// Finds the contractions of a module.
    pub fn of(module: &Module) -> Self {
        let mut found = Self::default();
        for computation in module.post_order() {
            for instruction in module[computation].post_order() {
                match layer(&module[computation], computation, instruction) {
                    None => {}
                    Some(Ok(layer)) => found.layers.push(layer),
                    Some(Err(reason)) => {
                        let name = name_of(&module[computation], instruction);
                        found.unsuitable.push(Unsuitable { name, reason });
                    }
                }
            }
        }
        found
    }
}

impl Layer {
    /// The source node's name, or else the instruction's.
    pub fn name(&self, module: &Module) -> String {
        name_of(&module[self.computation], self.instruction)
    }

    /// The operand that is not constant.
    pub fn input(&self, module: &Module) -> InstructionId {
        module[self.computation][self.instruction].operands()[1 - self.weights]
    }

    /// The constant operand.
    pub fn weights_id(&self, module: &Module) -> InstructionId {
        module[self.computation][self.instruction].operands()[self.weights]
    }

    /// The constant operand's elements.
    pub fn literal<'m>(&self, module: &'m Module) -> Option<&'m Literal> {
        literal(&module[self.computation], self.weights_id(module))
    }

    /// Dimensions of the input that are summed over, in an order in which the features of
    /// convolutions and the summands of dots match those of the weights.
    pub fn features(&self, module: &Module) -> Vec<usize> {
        match module[self.computation][self.instruction].op() {
            Op::Dot { dot_dimension_numbers: numbers } if self.weights == 1 => {
                numbers.lhs_contracting_dims.clone()
            }
            Op::Dot { dot_dimension_numbers: numbers } => numbers.rhs_contracting_dims.clone(),
            Op::Convolution { dim_labels, .. } => vec![dim_labels.input_feature_dimension],
            _ => Vec::new(),
        }
    }
}

/// Maps the position of a weight to an index.
pub(crate) type IndexOf = Box<dyn Fn(usize) -> usize>;

impl Layer {
    /// The index of a weight's channel, if the channels are the last dimension of the result.
    pub(crate) fn channel_of(&self, module: &Module) -> Option<IndexOf> {
        let shape = self.literal(module)?.array_shape();
        let is_last = match module[self.computation][self.instruction].op() {
            Op::Dot { dot_dimension_numbers: numbers } => {
                let summed = numbers.rhs_contracting_dims.len();
                self.weights == 1 && numbers.rhs_batch_dims.is_empty() && shape.rank() == summed + 1
            }
            Op::Convolution { dim_labels, .. } => dim_labels.output_feature_dimension + 1 == shape.rank(),
            _ => false,
        };
        let (sizes, channel) = (shape.sizes(), self.channel.filter(|_| is_last)?);
        let (stride, count) = (row_major_strides(&sizes)[channel] as usize, sizes[channel] as usize);
        Some(Box::new(move |k| k / stride % count))
    }

    /// The index of a weight's feature of the input, among all indices of [`Self::features`].
    pub(crate) fn feature_of(&self, module: &Module) -> Option<IndexOf> {
        let sizes = self.literal(module)?.array_shape().sizes();
        let strides = row_major_strides(&sizes);
        let index = move |k: usize, d: usize| (k as i64 / strides[d] % sizes[d]) as usize;
        let sizes = self.literal(module)?.array_shape().sizes();
        match module[self.computation][self.instruction].op() {
            Op::Dot { dot_dimension_numbers: numbers }
                if self.weights == 1 && numbers.rhs_batch_dims.is_empty() =>
            {
                let summed = numbers.rhs_contracting_dims.clone();
                Some(Box::new(move |k| summed.iter().fold(0, |at, &d| at * sizes[d] as usize + index(k, d))))
            }
            Op::Convolution { dim_labels, feature_group_count, .. } => {
                let channel = self.channel?;
                let outputs = (sizes[channel] / feature_group_count) as usize;
                let dimension = dim_labels.kernel_input_feature_dimension;
                let features = sizes[dimension] as usize;
                Some(Box::new(move |k| index(k, channel) / outputs * features + index(k, dimension)))
            }
            _ => None,
        }
    }
}

/// The elements of a constant.
pub(crate) fn literal(computation: &Computation, id: InstructionId) -> Option<&Literal> {
    match computation[id].op() {
        Op::Constant { literal } => Some(literal),
        _ => None,
    }
}

fn name_of(computation: &Computation, id: InstructionId) -> String {
    let instruction = &computation[id];
    let node = &instruction.metadata().op_name;
    if node.is_empty() { instruction.name().to_owned() } else { node.clone() }
}

/// The layer of an instruction; the reason if it is a contraction but no layer; `None` if it is not
/// a contraction.
fn layer(
    computation: &Computation,
    id: ComputationId,
    instruction: InstructionId,
) -> Option<Result<Layer, String>> {
    let op = computation[instruction].op();
    if !matches!(op, Op::Dot { .. } | Op::Convolution { .. }) {
        return None;
    }
    let array = |id: InstructionId| computation[id].shape().as_array();
    let &[lhs, rhs] = computation[instruction].operands() else { return None };
    let result = array(instruction)?;
    let all = [Some(result), array(lhs), array(rhs)];
    let foreign = all.iter().flatten().find(|shape| shape.element_type != PrimitiveType::F32);
    if let Some(shape) = foreign {
        return Some(Err(format!("its elements are {}", shape.element_type)));
    }
    let positions: Vec<usize> = [lhs, rhs]
        .iter()
        .enumerate()
        .filter(|(_, operand)| literal(computation, **operand).is_some())
        .map(|(position, _)| position)
        .collect();
    let &[weights] = &positions[..] else {
        return Some(Err("neither operand is a constant".to_owned()));
    };
    if matches!(op, Op::Convolution { .. }) && weights == 0 {
        return Some(Err("its input is the constant operand".to_owned()));
    }
    let shape = array(computation[instruction].operands()[weights])?;
    let is_finite = literal(computation, computation[instruction].operands()[weights])
        .is_some_and(|weights| elements(weights).iter().all(|w| w.is_finite()));
    if !is_finite {
        return Some(Err("its weights are not finite".to_owned()));
    }
    if shape.element_count() == 0 || result.element_count() == 0 {
        return Some(Err("it is empty".to_owned()));
    }
    Some(Ok(Layer { computation: id, instruction, weights, channel: channel(op, weights, shape) }))
}

/// The largest dimension of the weights of a contraction that is not summed over.
fn channel(op: &Op, weights: usize, shape: &ArrayShape) -> Option<usize> {
    match op {
        Op::Dot { dot_dimension_numbers: numbers } => {
            let summed = match weights {
                0 => &numbers.lhs_contracting_dims,
                _ => &numbers.rhs_contracting_dims,
            };
            (0..shape.rank()).filter(|d| !summed.contains(d)).max_by_key(|&d| shape.size(d))
        }
        Op::Convolution { dim_labels, .. } => Some(dim_labels.kernel_output_feature_dimension),
        _ => None,
    }
}

/// The elements of an `f32` array; none for other arrays.
pub(crate) fn elements(literal: &Literal) -> Vec<f32> {
    literal.to_vec().unwrap_or_default()
}
