//! Batch normalization as elementwise instructions and reductions.
//!
//! Elements narrower than 32 bits are widened to `f32` first and rounded at the end, as the
//! evaluator does.

use crate::pass::{Changed, Pass};
use hlo::{Computation, ComputationId, InstructionId, Module, Op, OpMetadata};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};
use std::collections::BTreeMap;
use support::Result;

/// Expands batch normalizations of static arrays.
///
/// `batch-norm-inference(x, scale, offset, mean, variance) => x * s + (offset - mean * s)`, where
/// `s = scale * rsqrt(variance + epsilon)`: a scale and an offset per feature, which fold into the
/// preceding contraction. `batch-norm-training(x, scale, offset) => (x - mean) * s + offset`, with
/// the mean and then the variance computed in separate passes, so that a large mean causes no
/// cancellation. `batch-norm-grad` is its derivative. Exact except for rounding: each step rounds
/// separately.
pub struct BatchNormExpander;

impl Pass for BatchNormExpander {
    fn name(&self) -> &'static str {
        "batch-norm-expander"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        let mut sums = BTreeMap::new();
        for id in crate::query::executed_computations(module) {
            for instruction in module[id].post_order() {
                if let Some(expanded) = expand(module, id, instruction, &mut sums) {
                    module.computation_mut(id).replace_all_uses(instruction, expanded);
                    changed = true;
                }
            }
            if changed {
                crate::simplify::dce::sweep(module.computation_mut(id));
            }
        }
        Ok(changed.into())
    }
}

/// Computations that add two scalars, by the name of their type.
type Sums = BTreeMap<String, ComputationId>;

fn expand(
    module: &mut Module,
    computation: ComputationId,
    id: InstructionId,
    sums: &mut Sums,
) -> Option<InstructionId> {
    let instruction = &module[computation][id];
    let (epsilon, feature) = match *instruction.op() {
        Op::BatchNormInference { epsilon, feature_index }
        | Op::BatchNormTraining { epsilon, feature_index }
        | Op::BatchNormGrad { epsilon, feature_index } => (epsilon, feature_index),
        _ => return None,
    };
    let operands = instruction.operands().to_vec();
    let array = module[computation][operands[0]].shape().as_array()?;
    if !array.is_static() {
        return None;
    }
    let original_type = array.element_type;
    let is_narrow = original_type.byte_size() < 4;
    let array = array.with_element_type(if is_narrow { PrimitiveType::F32 } else { original_type });
    let metadata = instruction.metadata().clone();
    let op = instruction.op().clone();
    let vector = ArrayShape::new(array.element_type, &[array.size(feature)]);
    let count = array.element_count() as f64 / array.size(feature) as f64;
    let mut w = Writer { module, computation, metadata, sums, array, vector, feature, epsilon, count };
    let operands: Vec<InstructionId> = operands.into_iter().map(|operand| w.widened(operand)).collect();
    let results = match (op, operands.as_slice()) {
        (Op::BatchNormInference { .. }, &[x, scale, offset, mean, variance]) => {
            let result = w.inference(x, scale, offset, mean, variance);
            return Some(w.rounded(result, original_type));
        }
        (Op::BatchNormTraining { .. }, &[x, scale, offset]) => w.training(x, scale, offset),
        (Op::BatchNormGrad { .. }, &[x, scale, mean, variance, gradient]) => {
            w.grad(x, scale, mean, variance, gradient)
        }
        _ => return None,
    };
    let results = results.map(|result| w.rounded(result, original_type));
    let shape = w.caller()[id].shape().clone();
    let metadata = w.metadata.clone();
    Some(w.module.computation_mut(computation).add("", Op::Tuple {}, shape, &results, metadata))
}

/// Writes the expansion of one instruction.
struct Writer<'m> {
    module: &'m mut Module,
    computation: ComputationId,
    metadata: OpMetadata,
    sums: &'m mut Sums,
    /// Shape of the operand in the type of the computation.
    array: ArrayShape,
    /// Shape of an array with one number per feature.
    vector: ArrayShape,
    /// The feature dimension.
    feature: usize,
    epsilon: f32,
    /// Number of elements per feature.
    count: f64,
}

impl Writer<'_> {
    fn inference(
        &mut self,
        x: InstructionId,
        scale: InstructionId,
        offset: InstructionId,
        mean: InstructionId,
        variance: InstructionId,
    ) -> InstructionId {
        let scale = self.scale(scale, variance);
        let moved = self.combine(Op::Multiply {}, mean, scale);
        let offset = self.combine(Op::Subtract {}, offset, moved);
        let scaled = self.with_vector(Op::Multiply {}, x, scale);
        self.with_vector(Op::Add {}, scaled, offset)
    }

    fn training(
        &mut self,
        x: InstructionId,
        scale: InstructionId,
        offset: InstructionId,
    ) -> [InstructionId; 3] {
        let mean = self.mean(x);
        let centered = self.with_vector(Op::Subtract {}, x, mean);
        let squares = self.combine(Op::Multiply {}, centered, centered);
        let variance = self.mean(squares);
        let scale = self.scale(scale, variance);
        let scaled = self.with_vector(Op::Multiply {}, centered, scale);
        [self.with_vector(Op::Add {}, scaled, offset), mean, variance]
    }

    fn grad(
        &mut self,
        x: InstructionId,
        scale: InstructionId,
        mean: InstructionId,
        variance: InstructionId,
        gradient: InstructionId,
    ) -> [InstructionId; 3] {
        let inverse = self.inverse_deviation(variance);
        let centered = self.with_vector(Op::Subtract {}, x, mean);
        let products = self.combine(Op::Multiply {}, gradient, centered);
        let product = self.sum(products);
        let grad_scale = self.combine(Op::Multiply {}, product, inverse);
        let grad_offset = self.sum(gradient);
        // x' = scale / deviation * (y' - mean(y') - centered * mean(y' centered) / variance)
        let mean_gradient = self.divided_by_count(grad_offset);
        let slope = self.combine(Op::Multiply {}, grad_scale, inverse);
        let slope = self.divided_by_count(slope);
        let tilt = self.with_vector(Op::Multiply {}, centered, slope);
        let level = self.with_vector(Op::Subtract {}, gradient, mean_gradient);
        let difference = self.combine(Op::Subtract {}, level, tilt);
        let scale = self.combine(Op::Multiply {}, scale, inverse);
        [self.with_vector(Op::Multiply {}, difference, scale), grad_scale, grad_offset]
    }

    /// `scale * rsqrt(variance + epsilon)`.
    fn scale(&mut self, scale: InstructionId, variance: InstructionId) -> InstructionId {
        let inverse = self.inverse_deviation(variance);
        self.combine(Op::Multiply {}, scale, inverse)
    }

    fn inverse_deviation(&mut self, variance: InstructionId) -> InstructionId {
        let epsilon = self.filled(f64::from(self.epsilon));
        let spread = self.combine(Op::Add {}, variance, epsilon);
        self.combine_one(Op::Rsqrt {}, spread)
    }

    /// Mean per feature.
    fn mean(&mut self, x: InstructionId) -> InstructionId {
        let sum = self.sum(x);
        self.divided_by_count(sum)
    }

    fn divided_by_count(&mut self, vector: InstructionId) -> InstructionId {
        let count = self.filled(self.count);
        self.combine(Op::Divide {}, vector, count)
    }

    /// Sum over the elements of each feature.
    fn sum(&mut self, x: InstructionId) -> InstructionId {
        let scalar = ArrayShape::new(self.array.element_type, &[]);
        let to_apply = self.addition();
        let literal = Literal::from_scalars(scalar.clone(), [Scalar::Float(0.0)]);
        let zero = self.add(Op::Constant { literal }, scalar, &[]);
        let dimensions = (0..self.array.rank()).filter(|&d| d != self.feature).collect();
        self.add(Op::Reduce { dimensions, to_apply }, self.vector.clone(), &[x, zero])
    }

    fn addition(&mut self) -> ComputationId {
        let element_type = self.array.element_type;
        if let Some(&existing) = self.sums.get(&element_type.to_string()) {
            return existing;
        }
        let scalar = ArrayShape::new(element_type, &[]);
        let mut sum = Computation::new("add");
        let operands = [0, 1].map(|number| {
            let op = Op::Parameter { number };
            sum.add("", op, scalar.clone().into(), &[], OpMetadata::default())
        });
        let root = sum.add("", Op::Add {}, scalar.into(), &operands, OpMetadata::default());
        sum.set_root(root);
        let id = self.module.add_computation(sum);
        self.sums.insert(element_type.to_string(), id);
        id
    }

    /// An array with the same number for each feature.
    fn filled(&mut self, value: f64) -> InstructionId {
        let scalar = ArrayShape::new(self.array.element_type, &[]);
        let literal = Literal::from_scalars(scalar.clone(), [Scalar::Float(value)]);
        let scalar = self.add(Op::Constant { literal }, scalar, &[]);
        self.add(Op::Broadcast { dimensions: Vec::new() }, self.vector.clone(), &[scalar])
    }

    /// An elementwise instruction on the array and a per-feature array.
    fn with_vector(&mut self, op: Op, x: InstructionId, vector: InstructionId) -> InstructionId {
        let dimensions = vec![self.feature];
        let spread = self.add(Op::Broadcast { dimensions }, self.array.clone(), &[vector]);
        self.add(op, self.array.clone(), &[x, spread])
    }

    /// An elementwise instruction on two operands of the same shape.
    fn combine(&mut self, op: Op, x: InstructionId, y: InstructionId) -> InstructionId {
        let shape = self.caller()[x].shape().expect_array().clone();
        self.add(op, shape, &[x, y])
    }

    fn combine_one(&mut self, op: Op, x: InstructionId) -> InstructionId {
        let shape = self.caller()[x].shape().expect_array().clone();
        self.add(op, shape, &[x])
    }

    /// An operand in the type of the computation.
    fn widened(&mut self, operand: InstructionId) -> InstructionId {
        self.rounded(operand, self.array.element_type)
    }

    fn rounded(&mut self, id: InstructionId, element_type: PrimitiveType) -> InstructionId {
        let shape = self.caller()[id].shape().expect_array().clone();
        if shape.element_type == element_type {
            return id;
        }
        self.add(Op::Convert {}, shape.with_element_type(element_type), &[id])
    }

    fn caller(&self) -> &Computation {
        &self.module[self.computation]
    }

    fn add(&mut self, op: Op, shape: ArrayShape, operands: &[InstructionId]) -> InstructionId {
        let metadata = self.metadata.clone();
        self.module.computation_mut(self.computation).add("", op, shape.into(), operands, metadata)
    }
}
