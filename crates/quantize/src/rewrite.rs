//! Puts integers in the place of weights and of values between layers.

use crate::form::{channels, dequantize_blocks, dequantize_channels, meaning};
use crate::layer::Layer;
use crate::point::{Points, origins};
use crate::weights::QuantizedWeights;
use hlo::{ComputationId, InstructionId, Module, Op};
use passes::{Edit, Pass as _};
use shape::{Literal, PrimitiveType, Quantization, Shape};
use std::collections::BTreeMap;
use support::{Error, Result};

/// New weights of a layer.
#[derive(Clone, Debug, PartialEq)]
pub enum Weights {
    /// The weights stay.
    Float,
    /// Integers with scales.
    Integers(QuantizedWeights),
    /// Integers `[K / 32, 32, N]` of weights that become `[K, N]`.
    Blocks(QuantizedWeights),
    /// Shorter floats.
    Half(Literal),
}

/// New form of a layer.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerForm {
    /// Its weights.
    pub weights: Weights,
    /// True if its input becomes integers.
    pub has_integer_input: bool,
    /// Numbers to add to its outputs, one for each index of the last dimension of the result.
    pub correction: Option<Vec<f32>>,
}

impl LayerForm {
    /// The layer as it is.
    pub const UNCHANGED: Self = Self { weights: Weights::Float, has_integer_input: false, correction: None };
}

/// New form of a module.
#[derive(Clone, Debug)]
pub struct Form<'a> {
    /// Layers of the module.
    pub layers: &'a [Layer],
    /// The form of each.
    pub forms: &'a [LayerForm],
    /// Values that can become integers.
    pub points: &'a Points,
    /// The quantization of each group of points.
    pub quantizations: &'a [Quantization],
    /// Parameters of the entry that the caller passes as integers.
    pub parameters: &'a [InstructionId],
    /// Elements of the result that the caller receives as integers.
    pub results: &'a [usize],
}

/// Returns the module in the new form.
pub fn rewrite(module: &Module, form: &Form<'_>) -> Result<Module> {
    let mut rewritten = module.clone();
    let mut integers = Integers { module, form, stored: BTreeMap::new() };
    for (layer, layer_form) in form.layers.iter().zip(form.forms) {
        if layer_form.has_integer_input {
            integers.stored(&mut rewritten, layer.input(module))?;
        }
        replace_weights(&mut rewritten, layer, &layer_form.weights)?;
    }
    for &parameter in form.parameters {
        integers.stored(&mut rewritten, parameter)?;
    }
    let root = module.entry_computation().root();
    for &result in form.results {
        let value = module.entry_computation()[root].operands()[result];
        let stored = integers.stored(&mut rewritten, value)?;
        let id = rewritten.entry();
        rewritten.computation_mut(id).replace_operand(root, result, stored);
    }
    // Corrections precede the conversion to integers, which reads what they replace.
    for (layer, layer_form) in form.layers.iter().zip(form.forms) {
        if let Some(correction) = &layer_form.correction {
            correct(&mut rewritten, layer, correction);
        }
    }
    let id = rewritten.entry();
    let computation = rewritten.computation_mut(id);
    let elements = computation[root].operands().iter().map(|&element| computation[element].shape().clone());
    let shape = Shape::Tuple(elements.collect());
    computation.set_shape(root, shape);
    let _ = passes::DeadCodeElimination.run(&mut rewritten)?;
    hlo::verify(&rewritten)?;
    Ok(rewritten)
}

/// Values that are stored as integers.
struct Integers<'a> {
    /// The module before the rewrite. Its ids are also valid in the rewritten one.
    module: &'a Module,
    form: &'a Form<'a>,
    stored: BTreeMap<InstructionId, InstructionId>,
}

impl Integers<'_> {
    /// Stores a value of the entry as integers, and lets its users read these. Returns them.
    fn stored(&mut self, rewritten: &mut Module, value: InstructionId) -> Result<InstructionId> {
        if let Some(&stored) = self.stored.get(&value) {
            return Ok(stored);
        }
        let group = self.form.points.group(value);
        let quantization = group.and_then(|group| self.form.quantizations.get(group)).copied();
        let quantization =
            quantization.ok_or_else(|| Error::internal("a value without a scale becomes integers"))?;
        let moved = match origins(self.module, value) {
            None => Vec::new(),
            Some(origins) => {
                let stored = origins.iter().map(|&origin| self.stored(rewritten, origin));
                stored.collect::<Result<Vec<_>>>()?
            }
        };
        let extreme = match self.module.entry_computation()[value].op() {
            Op::ReduceWindow { .. } if !moved.is_empty() => Some(rewritten.add_computation(largest())),
            _ => None,
        };
        let id = rewritten.entry();
        let computation = rewritten.computation_mut(id);
        let users = computation[value].users().to_vec();
        let root = computation.root();
        let is_parameter = self.form.parameters.contains(&value);
        let mut edit = Edit::at(computation, value);
        let stored = if !moved.is_empty() {
            move_integers(&mut edit, value, &moved, quantization, extreme)
        } else if is_parameter {
            let shape = edit.computation[value].shape().expect_array().with_element_type(PrimitiveType::S8);
            edit.computation.set_shape(value, shape.into());
            value
        } else {
            edit.quantize(&meaning(quantization), value)
        };
        let dequantized = edit.dequantize(&meaning(quantization), stored);
        for user in users {
            // A result of the program remains a float.
            if user == root && !is_parameter {
                continue;
            }
            let operands = computation[user].operands().to_vec();
            for position in (0..operands.len()).filter(|&position| operands[position] == value) {
                computation.replace_operand(user, position, dequantized);
            }
        }
        self.stored.insert(value, stored);
        Ok(stored)
    }
}

/// Moves integers as an instruction moves the values for which they stand.
fn move_integers(
    edit: &mut Edit<'_>,
    value: InstructionId,
    moved: &[InstructionId],
    quantization: Quantization,
    extreme: Option<ComputationId>,
) -> InstructionId {
    let instruction = &edit.computation[value];
    let mut op = instruction.op().clone();
    let shape = instruction.shape().expect_array().with_element_type(PrimitiveType::S8);
    let rest = instruction.operands()[moved.len()..].to_vec();
    let mut operands = moved.to_vec();
    match &mut op {
        Op::Pad { .. } => operands.push(edit.literal(Literal::scalar(quantization.zero_point as i8))),
        Op::ReduceWindow { to_apply, .. } => {
            if let Some(extreme) = extreme {
                *to_apply = extreme;
            }
            operands.push(edit.literal(Literal::scalar(i8::MIN)));
        }
        _ => operands.extend(rest),
    }
    edit.add(op, &shape, &operands)
}

/// The larger one of two integers.
fn largest() -> hlo::Computation {
    let mut builder = hlo::ComputationBuilder::new("largest");
    let scalar = Shape::scalar(PrimitiveType::S8);
    let (a, b) = (builder.parameter("a", scalar.clone()), builder.parameter("b", scalar.clone()));
    let mut computation = builder.finish(a);
    let root = computation.add("", Op::Maximum {}, scalar, &[a, b], hlo::OpMetadata::default());
    computation.set_root(root);
    computation
}

/// Puts the new weights of a layer in the place of its weights.
fn replace_weights(module: &mut Module, layer: &Layer, weights: &Weights) -> Result<()> {
    let computation = module.computation_mut(layer.computation);
    let mut edit = Edit::at(computation, layer.instruction);
    let new = match weights {
        Weights::Float => return Ok(()),
        Weights::Blocks(weights) => return replace_with_blocks(&mut edit, layer, weights),
        weights => values(&mut edit, weights)?,
    };
    computation.replace_operand(layer.instruction, layer.weights, new);
    Ok(())
}

/// Adds the values of new weights.
pub(crate) fn values(edit: &mut Edit<'_>, weights: &Weights) -> Result<InstructionId> {
    match weights {
        Weights::Integers(weights) => Ok(dequantize_channels(edit, weights)),
        Weights::Blocks(weights) => dequantize_blocks(edit, weights),
        Weights::Half(literal) => {
            let half = edit.literal(literal.clone());
            Ok(edit.convert(half, PrimitiveType::F32))
        }
        Weights::Float => Err(Error::internal("a layer without new weights")),
    }
}

/// Gives a dot weights `[K, N]`, whatever their order was.
fn replace_with_blocks(edit: &mut Edit<'_>, layer: &Layer, weights: &QuantizedWeights) -> Result<()> {
    let new = dequantize_blocks(edit, weights)?;
    let instruction = &edit.computation[layer.instruction];
    let Op::Dot { dot_dimension_numbers } = instruction.op() else {
        return Err(Error::internal("expected a dot with blocks of weights"));
    };
    let mut numbers = dot_dimension_numbers.clone();
    match layer.weights {
        0 => numbers.lhs_contracting_dims = vec![0],
        _ => numbers.rhs_contracting_dims = vec![0],
    }
    edit.computation.set_op(layer.instruction, Op::Dot { dot_dimension_numbers: numbers });
    edit.computation.replace_operand(layer.instruction, layer.weights, new);
    Ok(())
}

/// Adds numbers to the outputs of a layer. They join a constant that is added next.
fn correct(module: &mut Module, layer: &Layer, correction: &[f32]) {
    let computation = module.computation_mut(layer.computation);
    let id = layer.instruction;
    let shape = computation[id].shape().expect_array().clone();
    let mut numbers = correction.to_vec();
    let mut replaced = id;
    if let &[user] = computation[id].users()
        && let Some(bias) = crate::bias::bias(computation, user, id)
    {
        numbers.iter_mut().zip(&bias).for_each(|(number, bias)| *number += bias);
        replaced = user;
    }
    let users = computation[replaced].users().to_vec();
    let mut edit = Edit::at(computation, replaced);
    let spread = channels(&mut edit, &numbers, &shape);
    let sum = edit.add(Op::Add {}, &shape, &[id, spread]);
    for user in users {
        let operands = computation[user].operands().to_vec();
        for position in (0..operands.len()).filter(|&position| operands[position] == replaced) {
            computation.replace_operand(user, position, sum);
        }
    }
}
