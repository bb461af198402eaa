//! Expands select-and-scatter: a windowed reduction finds the selected elements of the windows, and
//! a scatter adds to them.

use crate::pass::{Changed, Pass};
use hlo::{
    ComparisonDirection, ComparisonType, ComputationBuilder, ComputationId, InstructionId, Module, Op,
    OpMetadata, ScatterDimensionNumbers, Window,
};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar, Shape};
use support::Result;

/// `select-and-scatter(x, source, init) => scatter(broadcast(init), winners, source)`, where
/// `winners` are the positions that a `reduce-window` of `x` and an iota finds.
///
/// A window entirely in the padding has no winner. Its position is -1, which a scatter ignores.
pub struct SelectAndScatterExpander;

impl Pass for SelectAndScatterExpander {
    fn name(&self) -> &'static str {
        "select-and-scatter-expander"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for id in crate::query::executed_computations(module) {
            let mut changed_here = false;
            for instruction in module[id].post_order() {
                changed_here |= expand(module, id, instruction)?;
            }
            if changed_here {
                crate::simplify::dce::sweep(module.computation_mut(id));
                changed = true;
            }
        }
        Ok(changed.into())
    }
}

/// Expands one instruction. Returns true if it can be expanded.
fn expand(module: &mut Module, computation: ComputationId, id: InstructionId) -> Result<bool> {
    let instruction = &module[computation][id];
    let Op::SelectAndScatter { window, select, scatter } = instruction.op() else { return Ok(false) };
    let (window, select, to_apply) = (window.clone(), *select, *scatter);
    let &[x, source, init] = instruction.operands() else { return Ok(false) };
    let array = |id: InstructionId| module[computation][id].shape().as_array().cloned();
    let (Some(array), Some(updates)) = (array(x), array(source)) else { return Ok(false) };
    if !array.is_static() || !updates.is_static() {
        return Ok(false);
    }
    let metadata = instruction.metadata().clone();
    let count = array.element_count();
    let index_type = if count <= i64::from(i32::MAX) { PrimitiveType::S32 } else { PrimitiveType::S64 };
    let reducer = winner(module, select, array.element_type, index_type)?;

    let mut w = Writer { module, computation, metadata };
    let winners = w.winners([x, init], &array, window, reducer, &updates, index_type);
    let n = updates.element_count();
    let positions = w.add(Op::Reshape {}, ArrayShape::new(index_type, &[n, 1]), &[winners]);
    let source = w.add(Op::Reshape {}, ArrayShape::new(updates.element_type, &[n]), &[source]);
    let flat = ArrayShape::new(array.element_type, &[count]);
    let base = w.add(Op::Broadcast { dimensions: Vec::new() }, flat.clone(), &[init]);
    let scatter_dimension_numbers = ScatterDimensionNumbers::of_vector();
    let op =
        Op::Scatter { scatter_dimension_numbers, indices_are_sorted: false, unique_indices: false, to_apply };
    let scattered = w.add(op, flat, &[base, positions, source]);
    let result = w.add(Op::Reshape {}, array, &[scattered]);
    module.computation_mut(computation).replace_all_uses(id, result);
    Ok(true)
}

/// Writes the expansion of one instruction.
struct Writer<'m> {
    module: &'m mut Module,
    computation: ComputationId,
    metadata: OpMetadata,
}

impl Writer<'_> {
    /// The row-major position in `x` of each window's winner.
    fn winners(
        &mut self,
        [x, init]: [InstructionId; 2],
        array: &ArrayShape,
        window: Window,
        to_apply: ComputationId,
        updates: &ArrayShape,
        index_type: PrimitiveType,
    ) -> InstructionId {
        let count = array.element_count();
        let line = ArrayShape::new(index_type, &[count]);
        let positions = self.add(Op::Iota { iota_dimension: 0 }, line, &[]);
        let positions = self.add(Op::Reshape {}, array.with_element_type(index_type), &[positions]);
        // Any element replaces `init`, which has position -1.
        let none = self.constant(scalar(index_type, -1));
        let shapes = [array.element_type, index_type].map(|ty| updates.with_element_type(ty));
        let pairs = Shape::Tuple(shapes.iter().cloned().map(Shape::from).collect());
        let operands = [x, positions, init, none];
        let pairs = self.add_any(Op::ReduceWindow { window, to_apply }, pairs, &operands);
        let [_, winners] = shapes;
        self.add(Op::GetTupleElement { index: 1 }, winners, &[pairs])
    }

    fn constant(&mut self, literal: Literal) -> InstructionId {
        let shape = literal.array_shape().clone();
        self.add(Op::Constant { literal }, shape, &[])
    }

    fn add(&mut self, op: Op, shape: ArrayShape, operands: &[InstructionId]) -> InstructionId {
        self.add_any(op, shape.into(), operands)
    }

    fn add_any(&mut self, op: Op, shape: Shape, operands: &[InstructionId]) -> InstructionId {
        let metadata = self.metadata.clone();
        self.module.computation_mut(self.computation).add("", op, shape, operands, metadata)
    }
}

fn scalar(element_type: PrimitiveType, value: i64) -> Literal {
    Literal::from_scalars(ArrayShape::new(element_type, &[]), [Scalar::Signed(value)])
}

/// The computation `((x, i), (y, j)) -> i >= 0 and (j < 0 or select(x, y)) ? (x, i) : (y, j)`.
fn winner(
    module: &mut Module,
    select: ComputationId,
    element_type: PrimitiveType,
    index_type: PrimitiveType,
) -> Result<ComputationId> {
    let mut b = ComputationBuilder::new("winner");
    let x = b.parameter("x", Shape::scalar(element_type));
    let i = b.parameter("i", Shape::scalar(index_type));
    let y = b.parameter("y", Shape::scalar(element_type));
    let j = b.parameter("j", Shape::scalar(index_type));
    let zero = b.constant(scalar(index_type, 0));
    let is = |direction| Op::Compare { direction, comparison_type: ComparisonType::Default };
    let is_element = b.op(module, is(ComparisonDirection::Ge), &[i, zero])?;
    let alone = b.op(module, is(ComparisonDirection::Lt), &[j, zero])?;
    let preferred = b.op(module, Op::Call { to_apply: select }, &[x, y])?;
    let or_alone = b.op(module, Op::Or {}, &[alone, preferred])?;
    let keeps = b.op(module, Op::And {}, &[is_element, or_alone])?;
    let value = b.op(module, Op::Select {}, &[keeps, x, y])?;
    let position = b.op(module, Op::Select {}, &[keeps, i, j])?;
    let root = b.op(module, Op::Tuple {}, &[value, position])?;
    let id = module.add_computation(b.finish(root));
    let callee = module[select].clone();
    module.computation_mut(id).inline(preferred, &callee, &[x, y]);
    crate::simplify::dce::sweep(module.computation_mut(id));
    Ok(id)
}
