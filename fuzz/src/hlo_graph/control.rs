//! Calls, conditionals, and loops.

use super::Writer;
use PrimitiveType::*;
use hlo::{ComparisonDirection, ComparisonType, ComputationBuilder, ComputationId, InstructionId, Op};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar, Shape};

fn whole(value: i64) -> Literal {
    Literal::from_scalars(ArrayShape::new(S32, &[]), [Scalar::Signed(value)])
}

impl Writer<'_> {
    pub(super) fn control_flow(
        &mut self,
        x: InstructionId,
        array: &ArrayShape,
        depth: usize,
    ) -> Option<InstructionId> {
        if depth == 0 {
            return None;
        }
        match self.draw.below(4) {
            0 => {
                let to_apply = self.branch(array, depth);
                self.add(Op::Call { to_apply }, &[x])
            }
            1 => self.conditional(x, array, depth),
            _ => self.while_loop(x, array, depth),
        }
    }

    /// Adds a computation from one array to another of the same shape. Its result counts as
    /// inexact.
    fn branch(&mut self, array: &ArrayShape, depth: usize) -> ComputationId {
        let (draw, most) = (self.draw.fork(), self.most);
        let mut inner = Writer::new(&mut *self.module, draw, "branch", most);
        let x = inner.builder.parameter("x", array.clone().into());
        inner.keep(x, false);
        inner.write(6, depth - 1);
        let root = inner.like(array);
        let computation = inner.builder.finish(root);
        self.module.add_computation(computation)
    }

    /// Adds a conditional on an exact predicate, or on an exact index that may be out of range.
    fn conditional(&mut self, x: InstructionId, array: &ArrayShape, depth: usize) -> Option<InstructionId> {
        let by_index = self.draw.once_in(2);
        let count = if by_index { 1 + self.draw.below(3) } else { 2 };
        let selector = self.exact_like(&ArrayShape::new(if by_index { S32 } else { Pred }, &[]));
        let branch_computations: Vec<ComputationId> = (0..count).map(|_| self.branch(array, depth)).collect();
        let mut operands = vec![selector, x];
        for _ in 1..count {
            operands.push(if self.draw.once_in(2) { x } else { self.like(array) });
        }
        self.add(Op::Conditional { branch_computations }, &operands)
    }

    /// Adds a loop that counts, modifies one array, reads another, and fills a third one row by
    /// row.
    fn while_loop(&mut self, x: InstructionId, array: &ArrayShape, depth: usize) -> Option<InstructionId> {
        let trips = self.draw.choose(&[0, 1, 2, 3, 4, 7]);
        let rows = [&[self.draw.choose(&[1, 2, 4, 5])][..], &array.sizes()].concat();
        let rows = ArrayShape::new(array.element_type, &rows);
        if rows.element_count() > self.most {
            return None;
        }
        let [carried_array, carried_rows] = [self.like(array), self.like(&rows)];
        let counter = self.constant(whole(0));
        let shapes: Vec<Shape> = [ArrayShape::new(S32, &[]), array.clone(), array.clone(), rows.clone()]
            .into_iter()
            .map(Shape::from)
            .collect();
        let state = Shape::Tuple(shapes);
        let condition = self.condition(&state, trips);
        let body = self.body(&state, array, &rows, depth);
        let operands = [counter, x, carried_array, carried_rows];
        let initial = self.builder.op(self.module, Op::Tuple {}, &operands).ok()?;
        self.add(Op::While { condition, body }, &[initial])
    }

    fn condition(&mut self, state: &Shape, trips: i64) -> ComputationId {
        let mut b = ComputationBuilder::new("condition");
        let s = b.parameter("s", state.clone());
        let i = b.op(self.module, Op::GetTupleElement { index: 0 }, &[s]).expect("a tuple");
        let limit = b.constant(whole(trips));
        let op = Op::Compare { direction: ComparisonDirection::Lt, comparison_type: ComparisonType::Default };
        let root = b.op(self.module, op, &[i, limit]).expect("scalars");
        self.module.add_computation(b.finish(root))
    }

    fn body(&mut self, state: &Shape, array: &ArrayShape, rows: &ArrayShape, depth: usize) -> ComputationId {
        let (draw, most) = (self.draw.fork(), self.most);
        let mut inner = Writer::new(&mut *self.module, draw, "body", most);
        let s = inner.builder.parameter("s", state.clone());
        let part = |inner: &mut Writer<'_>, index: usize| {
            inner.builder.op(inner.module, Op::GetTupleElement { index }, &[s]).expect("a tuple")
        };
        let i = part(&mut inner, 0);
        let [x, carried_array, filled] = [1, 2, 3].map(|index| part(&mut inner, index));
        inner.keep(i, true);
        [filled, carried_array, x].into_iter().for_each(|id| {
            inner.keep(id, false);
        });
        let zero = inner.constant(whole(0));
        let mut place = vec![i];
        place.resize(rows.rank(), zero);
        let read = inner.draw.once_in(2);
        if read {
            let sizes = [&[1][..], &array.sizes()].concat();
            let op = Op::DynamicSlice { dynamic_slice_sizes: sizes };
            let operands = [&[filled][..], &place].concat();
            if let Some(row) = inner.add(op, &operands) {
                inner.add_shaped(array.clone(), Op::Reshape {}, &[row]);
            }
        }
        inner.write(14, depth - 1);
        let next = inner.like(array);
        let one = inner.constant(whole(1));
        let count = inner.builder.op(inner.module, Op::Add {}, &[i, one]).expect("scalars");
        let filled = if inner.draw.once_in(4) {
            filled
        } else {
            let sizes = [&[1][..], &array.sizes()].concat();
            let shape = ArrayShape::new(array.element_type, &sizes).into();
            let source = if inner.draw.once_in(2) { next } else { x };
            let row = inner.builder.op_with_shape(inner.module, shape, Op::Reshape {}, &[source]);
            let row = row.expect("the same number of elements");
            let operands = [&[filled, row][..], &place].concat();
            inner.builder.op(inner.module, Op::DynamicUpdateSlice {}, &operands).expect("a row")
        };
        let carried_array = if inner.draw.once_in(3) { x } else { carried_array };
        let root = [count, next, carried_array, filled];
        let root = inner.builder.op(inner.module, Op::Tuple {}, &root).expect("a tuple accepts any operand");
        let computation = inner.builder.finish(root);
        self.module.add_computation(computation)
    }
}
