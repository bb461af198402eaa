//! Moves dequantization toward the results.

use super::edit::Edit;
use crate::pass::{Changed, Pass};
use crate::query::{executed_computations, is_static};
use crate::simplify::dce;
use hlo::analysis::ChannelConstant;
use hlo::quantization::{Dequantize, Quantization, integer_range};
use hlo::{
    ComparisonDirection, Computation, ComputationBuilder, ComputationId, InstructionId, Module, Op, Window,
};
use shape::{ArrayShape, PrimitiveType, Shape};
use std::collections::BTreeMap;
use support::Result;

/// `op(dequantize(x)) => dequantize(op(x))` for instructions that move or choose elements:
/// reshapes, transposes, slices, padding, concatenations, gathers, and maxima. Padding with 0 and
/// `maximum(x, 0)` use the zero point.
///
/// Integers are smaller to move, and contractions that follow read them. Exact for every input.
pub struct DequantizationSinking;

impl Pass for DequantizationSinking {
    fn name(&self) -> &'static str {
        "dequantization-sinking"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        let mut maxima = Maxima::default();
        for id in executed_computations(module) {
            let mut has_replaced = false;
            for root in module[id].post_order() {
                let Some(sunk) = Sunk::of(module, id, root) else { continue };
                let op = match sunk.op {
                    Op::ReduceWindow { window, .. } => {
                        let to_apply = maxima.of_type(module, sunk.quantization.storage)?;
                        Op::ReduceWindow { window, to_apply }
                    }
                    op => op,
                };
                let computation = module.computation_mut(id);
                let shape = computation[root].shape().expect_array();
                let shape = shape.with_element_type(sunk.quantization.storage);
                let mut edit = Edit::at(computation, root);
                let mut operands = Vec::new();
                for operand in sunk.operands {
                    operands.push(match operand {
                        Operand::Existing(id) => id,
                        Operand::Number(number, shape) => {
                            edit.spread(&ChannelConstant::of_all(number as f64), &shape)
                        }
                    });
                }
                let integers = edit.add(op, &shape, &operands);
                let new = edit.dequantize(&sunk.quantization, integers);
                computation.replace_all_uses(root, new);
                has_replaced = true;
            }
            if has_replaced {
                dce::sweep(module.computation_mut(id));
                changed = true;
            }
        }
        Ok(changed.into())
    }
}

/// The computations of maxima, one for each type.
#[derive(Default)]
struct Maxima(BTreeMap<PrimitiveType, ComputationId>);

impl Maxima {
    fn of_type(&mut self, module: &mut Module, element_type: PrimitiveType) -> Result<ComputationId> {
        if let Some(&id) = self.0.get(&element_type) {
            return Ok(id);
        }
        let mut builder = ComputationBuilder::new("maximum");
        let [x, y] = ["x", "y"].map(|name| builder.parameter(name, Shape::scalar(element_type)));
        let root = builder.op(module, Op::Maximum {}, &[x, y])?;
        let id = module.add_computation(builder.finish(root));
        self.0.insert(element_type, id);
        Ok(id)
    }
}

/// An operand of the instruction on integers.
enum Operand {
    Existing(InstructionId),
    /// An integer in each element of a shape.
    Number(i64, ArrayShape),
}

/// An instruction on integers whose dequantized result is that of another instruction.
struct Sunk {
    op: Op,
    operands: Vec<Operand>,
    quantization: Quantization,
}

impl Sunk {
    fn of(module: &Module, computation_id: ComputationId, id: InstructionId) -> Option<Self> {
        let computation = &module[computation_id];
        let instruction = &computation[id];
        let op = instruction.op();
        if !is_moving(op) || !is_static(computation, id) {
            return None;
        }
        let operands = instruction.operands();
        let first = operands.iter().find_map(|&operand| Dequantize::of(computation, operand))?;
        let (from, to) =
            (computation[*operands.first()?].shape().as_array()?, instruction.shape().as_array()?);
        let mut quantization = first.quantization;
        let storage = quantization.storage;
        // Integers that are only converted are not quantized.
        let is_plain = quantization.scale.only() == Some(1.0) && quantization.zero_point.only() == Some(0.0);
        if is_plain || to.element_type != quantization.expressed || storage.bit_width() > 16 {
            return None;
        }
        let zero = || {
            let zero = quantization.zero_point.only()? as i64;
            let [least, most] = integer_range(storage);
            (least..=most).contains(&zero).then_some(zero)
        };
        let number = |id: InstructionId| ChannelConstant::of(computation, id)?.only();
        let integers = |id: InstructionId| {
            let other = Dequantize::of(computation, id)?;
            (other.quantization == quantization).then_some(Operand::Existing(other.integers))
        };
        let narrow = |id: InstructionId| Some(computation[id].shape().as_array()?.with_element_type(storage));
        let mut new = Vec::new();
        match op {
            Op::Concatenate { dimension } if quantization.dimension() != Some(*dimension) => {
                new = operands.iter().map(|&operand| integers(operand)).collect::<Option<_>>()?;
            }
            Op::Concatenate { .. } => return None,
            Op::Maximum {} => {
                let &[a, b] = operands else { return None };
                for operand in [a, b] {
                    new.push(match integers(operand) {
                        Some(integers) => integers,
                        None if number(operand)?.to_bits() == 0 => Operand::Number(zero()?, narrow(operand)?),
                        None => return None,
                    });
                }
            }
            Op::Pad { .. } => {
                new.push(integers(operands[0])?);
                let is_zero = number(operands[1])?.to_bits() == 0;
                new.push(Operand::Number(is_zero.then(zero)??, narrow(operands[1])?));
            }
            Op::ReduceWindow { window, to_apply } => {
                let &[array, init] = operands else { return None };
                let sizes = computation[array].shape().as_array()?.sizes();
                let least = integer_range(storage)[0];
                let steps = least as f64 - quantization.zero_point.only()?;
                let is_below = number(init)? <= steps * quantization.scale.only()?;
                if !is_maximum(&module[*to_apply]) || !is_below || !is_filled(window, &sizes) {
                    return None;
                }
                new.push(integers(array)?);
                new.push(Operand::Number(least, narrow(init)?));
            }
            _ => {
                new.push(integers(operands[0])?);
                new.extend(operands[1..].iter().map(|&operand| Operand::Existing(operand)));
            }
        }
        if let Some(dimension) = quantization.dimension() {
            let dimension = moved_dimension(op, from, to, dimension)?;
            for constant in [&mut quantization.scale, &mut quantization.zero_point] {
                constant.dimension = constant.dimension.map(|_| dimension);
            }
        }
        // A chain of constants is folded elsewhere.
        let is_constant = |operand: &Operand| match operand {
            Operand::Existing(id) => matches!(computation[*id].op(), Op::Constant { .. }),
            Operand::Number(..) => true,
        };
        let op = match op {
            Op::Reshape {} | Op::Transpose { .. } => op.clone(),
            _ if new.iter().all(is_constant) => return None,
            op => op.clone(),
        };
        Some(Self { op, operands: new, quantization })
    }
}

/// True for instructions that move or choose elements.
fn is_moving(op: &Op) -> bool {
    matches!(
        op,
        Op::Reshape {}
            | Op::Transpose { .. }
            | Op::Slice { .. }
            | Op::DynamicSlice { .. }
            | Op::Reverse { .. }
            | Op::Gather { .. }
            | Op::Pad { .. }
            | Op::Concatenate { .. }
            | Op::Maximum {}
            | Op::ReduceWindow { .. }
    )
}

/// True for `maximum(x, y)` and `select(y > x, y, x)`, which differ for NaN only.
fn is_maximum(region: &Computation) -> bool {
    let (root, parameters) = (&region[region.root()], region.parameters());
    let is_greater = |id: InstructionId| {
        let is_ordered = matches!(region[id].op(), Op::Compare { direction: ComparisonDirection::Gt, .. });
        is_ordered && region[id].operands().iter().eq(parameters.iter().rev())
    };
    match root.op() {
        Op::Maximum {} => hlo::is_associative(region),
        Op::Select {} => {
            let operands = root.operands();
            is_greater(operands[0]) && operands[1..].iter().eq(parameters.iter().rev())
        }
        _ => false,
    }
}

/// True if every window holds an element.
fn is_filled(window: &Window, sizes: &[i64]) -> bool {
    let is_filled = |(d, &size): (&hlo::WindowDimension, &i64)| {
        let edge = (d.size - 1).saturating_mul(d.window_dilation);
        size > 0
            && d.base_dilation == 1
            && d.window_dilation == 1
            && d.padding_low <= edge
            && d.padding_high <= edge
    };
    window.dimensions.iter().zip(sizes).all(is_filled)
}

/// Returns the dimension of a result whose indices are those of a dimension of the operand.
fn moved_dimension(op: &Op, from: &ArrayShape, to: &ArrayShape, dimension: usize) -> Option<usize> {
    match op {
        Op::Transpose { dimensions } => dimensions.iter().position(|&d| d == dimension),
        Op::Reshape {} => {
            let inner = |shape: &ArrayShape, d: usize| -> i64 { shape.sizes()[d + 1..].iter().product() };
            let size = from.size(dimension);
            (0..to.rank()).find(|&d| to.size(d) == size && inner(to, d) == inner(from, dimension))
        }
        Op::Slice { slice } => {
            let part = slice[dimension];
            let is_whole = part.start == 0 && part.limit == from.size(dimension) && part.stride == 1;
            is_whole.then_some(dimension)
        }
        Op::Reverse { dimensions } => (!dimensions.contains(&dimension)).then_some(dimension),
        Op::DynamicSlice { .. } => (to.size(dimension) == from.size(dimension)).then_some(dimension),
        Op::Concatenate { .. } => Some(dimension),
        Op::ReduceWindow { window, .. } => {
            let w = window.dimensions[dimension];
            let is_one = w.size == 1 && w.stride == 1 && w.padding_low == 0 && w.padding_high == 0;
            is_one.then_some(dimension)
        }
        _ => None,
    }
}
