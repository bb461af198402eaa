//! Brings reductions into one form: operands and results have the types of the reducer, and a
//! single array is not a tuple.

use crate::pass::{Changed, Pass};
use hlo::{Computation, ComputationId, InstructionId, Module, Op, OpMetadata};
use shape::{PrimitiveType, Shape};
use support::Result;

/// Gives each `reduce` and `reduce-window` operands and results of its reducer's types, with
/// conversions around it, and unwraps tuples of one array. Integers whose products are summed as
/// floating-point numbers are converted first. Exact: XLA assigns the other forms the same meaning.
pub struct ReductionNormalization;

impl Pass for ReductionNormalization {
    fn name(&self) -> &'static str {
        "reduction-normalization"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = Changed::No;
        let ids: Vec<ComputationId> = module.computations().map(|(id, _)| id).collect();
        for id in ids {
            let instructions: Vec<InstructionId> = module[id].instructions().map(|(id, _)| id).collect();
            for instruction in instructions {
                changed = changed.or(normalize(module, id, instruction).into());
                changed = changed.or(convert_products(module.computation_mut(id), instruction).into());
            }
        }
        Ok(changed)
    }
}

/// Normalizes a reduction. Returns true if it had another form.
fn normalize(module: &mut Module, id: ComputationId, instruction: InstructionId) -> bool {
    let (Op::Reduce { to_apply, .. } | Op::ReduceWindow { to_apply, .. }) = *module[id][instruction].op()
    else {
        return false;
    };
    let signature = module[to_apply].program_shape();
    let types: Option<Vec<PrimitiveType>> =
        signature.parameters.iter().map(|shape| shape.as_array().map(|array| array.element_type)).collect();
    let operands = module[id][instruction].operands().to_vec();
    let Some(types) = types.filter(|types| types.len() == operands.len()) else { return false };
    let shape = module[id][instruction].shape().clone();
    let element_type_of =
        |operand: InstructionId| module[id][operand].shape().as_array().map(|array| array.element_type);
    let fits =
        operands.iter().zip(&types).all(|(&operand, &expected)| element_type_of(operand) == Some(expected));
    let leaves = shape.leaves().into_iter().map(|(_, leaf)| leaf.element_type).collect::<Vec<_>>();
    let is_single_tuple = leaves.len() == 1 && shape.as_tuple().is_some();
    if fits && !is_single_tuple && leaves[..] == types[..leaves.len().min(types.len())] {
        return false;
    }
    let mut op = module[id][instruction].op().clone();
    if is_single_tuple {
        let single = untupled(module, to_apply);
        op.map_called_computations(|_| single);
    }
    let metadata = module[id][instruction].metadata().clone();
    let computation = module.computation_mut(id);
    let mut w = Writer { computation, metadata };
    let operands: Vec<InstructionId> =
        operands.iter().zip(&types).map(|(&operand, &expected)| w.converted(operand, expected)).collect();
    let retyped = |(k, leaf): (usize, &Shape)| match leaf.as_array() {
        Some(array) => array.with_element_type(types[k]).into(),
        None => leaf.clone(),
    };
    let replacement = match &shape {
        Shape::Tuple(elements) if !is_single_tuple => {
            let expected = Shape::Tuple(elements.iter().enumerate().map(retyped).collect());
            let reduced = w.add(op, expected, &operands);
            let parts = leaves.iter().enumerate().map(|(index, &leaf)| {
                let part = w.element(reduced, index);
                w.converted(part, leaf)
            });
            let parts: Vec<InstructionId> = parts.collect();
            w.add(Op::Tuple {}, shape.clone(), &parts)
        }
        Shape::Tuple(elements) => {
            let reduced = w.add(op, retyped((0, &elements[0])), &operands);
            let reduced = w.converted(reduced, leaves[0]);
            w.add(Op::Tuple {}, shape.clone(), &[reduced])
        }
        _ => {
            let reduced = w.add(op, retyped((0, &shape)), &operands);
            w.converted(reduced, leaves[0])
        }
    };
    let computation = module.computation_mut(id);
    computation.replace_all_uses(instruction, replacement);
    computation.remove(instruction);
    true
}

/// Converts the integer operands of a product that is summed in a floating-point type. Returns true
/// if there were any.
fn convert_products(computation: &mut Computation, instruction: InstructionId) -> bool {
    let Some(Op::Dot { .. } | Op::Convolution { .. }) =
        computation.get(instruction).map(|instruction| instruction.op())
    else {
        return false;
    };
    let element =
        |id: InstructionId, c: &Computation| c[id].shape().as_array().map(|array| array.element_type);
    let Some(expected) = element(instruction, computation).filter(|expected| expected.is_floating_point())
    else {
        return false;
    };
    let mut changed = false;
    for (position, operand) in computation[instruction].operands().to_vec().into_iter().enumerate() {
        if element(operand, computation).is_some_and(PrimitiveType::is_integer) {
            let metadata = computation[instruction].metadata().clone();
            let converted = Writer { computation: &mut *computation, metadata }.converted(operand, expected);
            computation.replace_operand(instruction, position, converted);
            changed = true;
        }
    }
    changed
}

/// A copy of the computation that returns the single element of its result tuple.
fn untupled(module: &mut Module, id: ComputationId) -> ComputationId {
    let mut computation = module[id].clone();
    let root = computation.root();
    let element = match computation[root].op() {
        Op::Tuple {} => computation[root].operands()[0],
        _ => {
            let metadata = computation[root].metadata().clone();
            Writer { computation: &mut computation, metadata }.element(root, 0)
        }
    };
    computation.set_root(element);
    crate::simplify::dce::sweep(&mut computation);
    module.add_computation(computation)
}

struct Writer<'c> {
    computation: &'c mut Computation,
    metadata: OpMetadata,
}

impl Writer<'_> {
    fn add(&mut self, op: Op, shape: Shape, operands: &[InstructionId]) -> InstructionId {
        self.computation.add("", op, shape, operands, self.metadata.clone())
    }

    fn element(&mut self, tuple: InstructionId, index: usize) -> InstructionId {
        let shape =
            self.computation[tuple].shape().as_tuple().map_or(Shape::Token, |parts| parts[index].clone());
        self.add(Op::GetTupleElement { index }, shape, &[tuple])
    }

    fn converted(&mut self, id: InstructionId, element_type: PrimitiveType) -> InstructionId {
        match self.computation[id].shape().as_array() {
            Some(array) if array.element_type != element_type => {
                let shape = array.with_element_type(element_type).into();
                self.add(Op::Convert {}, shape, &[id])
            }
            _ => id,
        }
    }
}
