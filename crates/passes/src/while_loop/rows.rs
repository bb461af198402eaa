//! What every iteration of a loop reads at its row of a buffer, computed for all rows at once.
//!
//! A value of the body is of *rows* if it is made of slices of size 1 that the body takes out of buffers which the loop
//! keeps, all at one index, and of what is the same in every iteration. Then the body may as well take the slice out of
//! the value that is made of the whole buffers. Which rows are taken, and how often, does not matter: the index is clamped
//! alike, since there are as many rows.

use super::Loop;
use super::outside::{Outside, invariant_instructions};
use hlo::analysis::{self, Affine, TripCount};
use hlo::{
    Computation, DotDimensionNumbers, InstructionId, Module, Op, OpMetadata, PaddingDimension,
    SliceDimension, Traits,
};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};
use std::collections::BTreeMap;

/// Which row an iteration reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Row {
    pub(super) index: Index,
    /// How many rows there are.
    pub(super) count: i64,
}

/// An index into rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Index {
    /// A linear function of a state element that neither wraps nor leaves the rows: it is the row's number.
    Affine(Affine),
    /// Whatever an instruction of the body computes.
    Instruction(InstructionId),
}

/// How a value of the body changes from iteration to iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Not at all.
    Same,
    /// It follows from the induction variable that is this element of the state.
    Counter(usize),
    /// It is of rows; the body computes their index as this instruction.
    Rows(Row, InstructionId),
}

/// The values of a loop's body that can be computed before the loop.
pub(super) struct Rows {
    found: Loop,
    kinds: BTreeMap<InstructionId, Kind>,
    outside: Outside,
    /// Of the values that follow from an induction variable there may be several, for rows of different numbers.
    batched: BTreeMap<(InstructionId, Row), InstructionId>,
}

impl Rows {
    pub(super) fn new(module: &Module, found: Loop) -> Self {
        let ranges = found.state_ranges(module);
        let body = &module[found.body];
        let same = invariant_instructions(body, &found.invariants(module));
        let mut kinds: BTreeMap<InstructionId, Kind> = BTreeMap::new();
        let of_leaf = |id: InstructionId| {
            let element = analysis::state_element(body, id)?;
            ranges.get(element).copied()
        };
        let of_state = |k: usize| ranges.get(k).copied().unwrap_or_default();
        let index = |id: InstructionId, count: i64| {
            let range = analysis::range_in(module, body, id, &of_leaf);
            let is_row = range.low.is_some_and(|low| low >= 0) && range.high.is_some_and(|high| high < count);
            let affine = analysis::affine(module, body, id, &of_state).filter(|_| is_row);
            affine.map_or(Index::Instruction(id), Index::Affine)
        };
        let steps = analysis::induction_variables(module, body);
        for id in body.post_order() {
            let counter = analysis::state_element(body, id).filter(|k| steps.contains_key(k));
            let kind = match counter {
                _ if same.contains(&id) => Some(Kind::Same),
                Some(element) => Some(Kind::Counter(element)),
                None => kind(body, id, &kinds, &index),
            };
            if let Some(kind) = kind {
                kinds.insert(id, kind);
            }
        }
        Self { found, kinds, outside: Outside::new(found, found.body), batched: BTreeMap::new() }
    }

    pub(super) fn kind(&self, id: InstructionId) -> Option<Kind> {
        self.kinds.get(&id).copied()
    }

    /// Which row a value is of.
    pub(super) fn row(&self, id: InstructionId) -> Option<Row> {
        match self.kind(id)? {
            Kind::Rows(row, _) => Some(row),
            Kind::Same | Kind::Counter(_) => None,
        }
    }

    /// Whether a value can be made for all of these rows.
    pub(super) fn is_of(&self, id: InstructionId, row: Row) -> bool {
        match self.kind(id) {
            Some(Kind::Rows(own, _)) => own == row,
            Some(Kind::Counter(element)) => counts(row, element).is_some(),
            Some(Kind::Same) => true,
            None => false,
        }
    }

    /// A value that is the same in every iteration, in the caller.
    pub(super) fn outside(&mut self, module: &mut Module, id: InstructionId) -> InstructionId {
        self.outside.copy(module, id)
    }

    /// All rows of a value that [`Self::is_of`] them, along a new first dimension, in the caller.
    pub(super) fn batched(&mut self, module: &mut Module, id: InstructionId, row: Row) -> InstructionId {
        let mut pending = vec![id];
        while let Some(&at) = pending.last() {
            if self.batched.contains_key(&(at, row)) {
                pending.pop();
                continue;
            }
            let is_missing = |o: &&InstructionId| {
                self.kind(**o) != Some(Kind::Same) && !self.batched.contains_key(&(**o, row))
            };
            let instruction = &module[self.found.body][at];
            // A slice takes its row out of what is kept, and an element of the state is counted: no operand is needed.
            let needed = match instruction.op() {
                Op::DynamicSlice { .. } | Op::GetTupleElement { .. } => &[],
                _ if self.kind(at) == Some(Kind::Same) => &[],
                _ => instruction.operands(),
            };
            let missing: Vec<InstructionId> = needed.iter().filter(is_missing).copied().collect();
            if !missing.is_empty() {
                pending.extend(missing);
                continue;
            }
            let value = self.batch(module, at, row);
            self.batched.insert((at, row), value);
        }
        self.batched[&(id, row)]
    }

    fn batch(&mut self, module: &mut Module, id: InstructionId, row: Row) -> InstructionId {
        let instruction = &module[self.found.body][id];
        let (op, operands) = (instruction.op().clone(), instruction.operands().to_vec());
        let shape = instruction.shape().expect_array().clone();
        let shape = with_rows(&shape, row.count);
        let metadata = instruction.metadata().clone();
        if self.kind(id) == Some(Kind::Same) {
            return self.spread(module, id, row, &metadata);
        }
        match op {
            Op::GetTupleElement { index } => self.counted(module, index, row, shape, &metadata),
            Op::DynamicSlice { dynamic_slice_sizes } => {
                let buffer = self.outside(module, operands[0]);
                self.rows_first(module, buffer, &dynamic_slice_sizes, shape, metadata)
            }
            Op::Dot { dot_dimension_numbers: numbers } => {
                self.batch_dot(module, &operands, &numbers, shape.element_type, row, metadata)
            }
            Op::Convolution { .. } => {
                let kernel = self.outside(module, operands[1]);
                let input = self.batched[&(operands[0], row)];
                let flat = self.merged(module, input, &metadata);
                let made = without_rows(&shape);
                let made = with_first(&made, made.size(0) * row.count);
                let made = self.add(module, op, made, &[flat, kernel], metadata.clone());
                self.add(module, Op::Reshape {}, shape, &[made], metadata)
            }
            op => {
                let operands: Vec<InstructionId> = match op {
                    // The initial value and the padding are scalars that stay.
                    Op::Reduce { .. } | Op::Pad { .. } => {
                        vec![self.batched[&(operands[0], row)], self.outside(module, operands[1])]
                    }
                    _ => operands.iter().map(|&o| self.spread(module, o, row, &metadata)).collect(),
                };
                self.add(module, shifted(op, row.count), shape, &operands, metadata)
            }
        }
    }

    /// An induction variable in each row: the inverse of the row's number.
    fn counted(
        &self,
        module: &mut Module,
        element: usize,
        row: Row,
        shape: ArrayShape,
        metadata: &OpMetadata,
    ) -> InstructionId {
        let (sign, offset) = counts(row, element).expect("the row is counted by this element");
        let caller = module.computation_mut(self.found.caller);
        let mut add = |op, operands: &[InstructionId]| {
            caller.add("", op, shape.clone().into(), operands, metadata.clone())
        };
        let number = add(Op::Iota { iota_dimension: 0 }, &[]);
        if (sign, offset) == (1, 0) {
            return number;
        }
        let offset = index_constant(caller, shape.element_type, offset);
        let op = Op::Broadcast { dimensions: Vec::new() };
        let offset = caller.add("", op, shape.clone().into(), &[offset], metadata.clone());
        let operands = if sign == 1 { [number, offset] } else { [offset, number] };
        caller.add("", Op::Subtract {}, shape.into(), &operands, metadata.clone())
    }

    /// A value with a dimension for the rows, in which it is the same if it is the same in every iteration.
    fn spread(
        &mut self,
        module: &mut Module,
        id: InstructionId,
        row: Row,
        metadata: &OpMetadata,
    ) -> InstructionId {
        if let Some(&batched) = self.batched.get(&(id, row)) {
            return batched;
        }
        let value = self.outside(module, id);
        let shape = module[self.found.caller][value].shape().expect_array().clone();
        let op = Op::Broadcast { dimensions: (1..=shape.rank()).collect() };
        self.add(module, op, with_rows(&shape, row.count), &[value], metadata.clone())
    }

    /// A buffer with the dimension of its rows first and, behind it, the dimensions of a slice.
    fn rows_first(
        &self,
        module: &mut Module,
        buffer: InstructionId,
        slice: &[i64],
        shape: ArrayShape,
        metadata: OpMetadata,
    ) -> InstructionId {
        let whole = module[self.found.caller][buffer].shape().expect_array().clone();
        let dimension = sliced_dimension(&whole, slice).expect("a slice of rows");
        let mut value = buffer;
        if dimension != 0 {
            let order: Vec<usize> =
                std::iter::once(dimension).chain((0..slice.len()).filter(|&d| d != dimension)).collect();
            let sizes: Vec<i64> = order.iter().map(|&d| whole.size(d)).collect();
            let moved = ArrayShape::new(whole.element_type, &sizes);
            value = self.add(module, Op::Transpose { dimensions: order }, moved, &[value], metadata.clone());
        }
        self.add(module, Op::Reshape {}, shape, &[value], metadata)
    }

    /// One large matrix multiplication where the iterations make small ones.
    fn batch_dot(
        &mut self,
        module: &mut Module,
        operands: &[InstructionId],
        numbers: &DotDimensionNumbers,
        element_type: PrimitiveType,
        row: Row,
        metadata: OpMetadata,
    ) -> InstructionId {
        let is_lhs = self.kind(operands[0]) != Some(Kind::Same);
        let (rows, other) = if is_lhs { (operands[0], operands[1]) } else { (operands[1], operands[0]) };
        let (contracting, other_contracting) = if is_lhs {
            (&numbers.lhs_contracting_dims, &numbers.rhs_contracting_dims)
        } else {
            (&numbers.rhs_contracting_dims, &numbers.lhs_contracting_dims)
        };
        let (x, kernel) = (self.batched[&(rows, row)], self.outside(module, other));
        let x_shape = module[self.found.caller][x].shape().expect_array().clone();
        let kernel_shape = module[self.found.caller][kernel].shape().expect_array().clone();
        // What is summed last and everything else before it: then rows and the rest are one dimension.
        let free: Vec<usize> =
            (0..x_shape.rank()).filter(|&d| d == 0 || !contracting.contains(&(d - 1))).collect();
        let order: Vec<usize> = free.iter().copied().chain(contracting.iter().map(|d| d + 1)).collect();
        let x = self.transposed(module, x, &order, &metadata);
        let free_sizes: Vec<i64> = free.iter().map(|&d| x_shape.size(d)).collect();
        let summed: Vec<i64> = contracting.iter().map(|&d| x_shape.size(d + 1)).collect();
        let flat: Vec<i64> = std::iter::once(free_sizes.iter().product()).chain(summed).collect();
        let flat_shape = ArrayShape::new(x_shape.element_type, &flat);
        let x = self.add(module, Op::Reshape {}, flat_shape, &[x], metadata.clone());
        let columns: Vec<i64> = (0..kernel_shape.rank())
            .filter(|d| !other_contracting.contains(d))
            .map(|d| kernel_shape.size(d))
            .collect();
        let made: Vec<i64> = std::iter::once(flat[0]).chain(columns.iter().copied()).collect();
        let numbers = DotDimensionNumbers {
            lhs_contracting_dims: (1..flat.len()).collect(),
            rhs_contracting_dims: other_contracting.clone(),
            ..DotDimensionNumbers::default()
        };
        let made = ArrayShape::new(element_type, &made);
        let op = Op::Dot { dot_dimension_numbers: numbers };
        let product = self.add(module, op, made, &[x, kernel], metadata.clone());
        let sizes: Vec<i64> = free_sizes.iter().chain(&columns).copied().collect();
        let split = ArrayShape::new(element_type, &sizes);
        let product = self.add(module, Op::Reshape {}, split, &[product], metadata.clone());
        if is_lhs {
            return product;
        }
        // The kernel's columns come first in the body.
        let (rank, own) = (sizes.len(), free_sizes.len());
        let order: Vec<usize> = std::iter::once(0).chain(own..rank).chain(1..own).collect();
        self.transposed(module, product, &order, &metadata)
    }

    /// The rows and the first dimension behind them as one.
    fn merged(&self, module: &mut Module, value: InstructionId, metadata: &OpMetadata) -> InstructionId {
        let shape = module[self.found.caller][value].shape().expect_array().clone();
        let made = without_rows(&shape);
        let made = with_first(&made, made.size(0) * shape.size(0));
        self.add(module, Op::Reshape {}, made, &[value], metadata.clone())
    }

    /// A value of the caller in another order.
    pub(super) fn transposed(
        &self,
        module: &mut Module,
        value: InstructionId,
        order: &[usize],
        metadata: &OpMetadata,
    ) -> InstructionId {
        if order.is_sorted() {
            return value;
        }
        let shape = module[self.found.caller][value].shape().expect_array().clone();
        let sizes: Vec<i64> = order.iter().map(|&d| shape.size(d)).collect();
        let moved = ArrayShape::new(shape.element_type, &sizes);
        self.add(module, Op::Transpose { dimensions: order.to_vec() }, moved, &[value], metadata.clone())
    }

    /// Adds an instruction to the caller.
    pub(super) fn add(
        &self,
        module: &mut Module,
        op: Op,
        shape: ArrayShape,
        operands: &[InstructionId],
        metadata: OpMetadata,
    ) -> InstructionId {
        module.computation_mut(self.found.caller).add("", op, shape.into(), operands, metadata)
    }
}

/// The dimensions behind a first one for the rows.
pub(super) fn with_rows(shape: &ArrayShape, count: i64) -> ArrayShape {
    let sizes: Vec<i64> = std::iter::once(count).chain(shape.sizes()).collect();
    ArrayShape::new(shape.element_type, &sizes)
}

fn without_rows(shape: &ArrayShape) -> ArrayShape {
    ArrayShape::new(shape.element_type, &shape.sizes()[1..])
}

fn with_first(shape: &ArrayShape, size: i64) -> ArrayShape {
    let mut sizes = shape.sizes();
    sizes[0] = size;
    ArrayShape::new(shape.element_type, &sizes)
}

/// The only dimension of which a slice does not take all, if it takes one there.
fn sliced_dimension(whole: &ArrayShape, slice: &[i64]) -> Option<usize> {
    let mut parts = (0..slice.len()).filter(|&d| slice[d] != whole.size(d));
    let dimension = parts.next()?;
    (parts.next().is_none() && slice[dimension] == 1).then_some(dimension)
}

/// How an instruction changes that is not the same in every iteration.
fn kind(
    body: &Computation,
    id: InstructionId,
    kinds: &BTreeMap<InstructionId, Kind>,
    index: &dyn Fn(InstructionId, i64) -> Index,
) -> Option<Kind> {
    let instruction = &body[id];
    let shape = instruction.shape().as_array().filter(|shape| shape.is_static())?;
    let operands = instruction.operands();
    if let Op::DynamicSlice { dynamic_slice_sizes: slice } = instruction.op() {
        let whole = body[operands[0]].shape().as_array()?;
        let dimension = sliced_dimension(whole, slice)?;
        let at = *operands.get(dimension + 1)?;
        let is_kept = kinds.get(&operands[0]) == Some(&Kind::Same);
        let count = whole.size(dimension);
        let row = Row { index: index(at, count), count };
        return is_kept.then_some(Kind::Rows(row, at));
    }
    let operand_kinds: Vec<Kind> = operands.iter().map(|o| kinds.get(o).copied()).collect::<Option<_>>()?;
    let changing: Vec<Kind> = operand_kinds.iter().copied().filter(|&kind| kind != Kind::Same).collect();
    let (&first, others) = changing.split_first()?;
    let kind = others.iter().try_fold(first, |kind, &other| joined(kind, other))?;
    let first_only = changing.len() == 1 && operand_kinds.first() != Some(&Kind::Same);
    let can = match instruction.op() {
        Op::Dot { dot_dimension_numbers: numbers } => {
            numbers.lhs_batch_dims.is_empty() && changing.len() == 1
        }
        Op::Convolution { dim_labels: numbers, batch_group_count, .. } => {
            let is_first = numbers.input_batch_dimension == 0 && numbers.output_batch_dimension == 0;
            is_first && first_only && *batch_group_count == 1
        }
        Op::Reshape {}
        | Op::Transpose { .. }
        | Op::Broadcast { .. }
        | Op::Slice { .. }
        | Op::Reverse { .. }
        | Op::Concatenate { .. } => true,
        Op::Reduce { .. } => operands.len() == 2 && first_only,
        Op::Pad { .. } => first_only,
        op => {
            let is_elementwise = op.opcode().traits().contains(Traits::ELEMENTWISE);
            let is_alike = |o: &InstructionId| {
                body[*o].shape().as_array().is_some_and(|operand| operand.same_dimensions(shape))
            };
            is_elementwise && op.called_computations().is_empty() && operands.iter().all(is_alike)
        }
    };
    can.then_some(kind)
}

/// How a value changes that is made of two.
fn joined(a: Kind, b: Kind) -> Option<Kind> {
    match (a, b) {
        (Kind::Rows(row, _), Kind::Rows(other, _)) => (row == other).then_some(a),
        (Kind::Rows(row, _), Kind::Counter(element)) => counts(row, element).map(|_| a),
        (Kind::Counter(element), Kind::Rows(row, _)) => counts(row, element).map(|_| b),
        (Kind::Counter(element), Kind::Counter(other)) => (element == other).then_some(a),
        (Kind::Same, kind) | (kind, Kind::Same) => Some(kind),
    }
}

/// Sign and offset with which a row's number follows from an element of the state: `sign * element + offset`. The element is
/// `row - offset` then, or `offset - row`.
fn counts(row: Row, element: usize) -> Option<(i64, i64)> {
    let Index::Affine(affine) = row.index else { return None };
    if affine.element != element {
        return None;
    }
    match affine.multiplier {
        1 => Some((1, affine.offset)),
        -1 => Some((-1, affine.offset)),
        _ => None,
    }
}

/// An op with its dimensions one further, behind the rows.
pub(super) fn shifted(op: Op, count: i64) -> Op {
    let shift = |dimensions: Vec<usize>| dimensions.into_iter().map(|d| d + 1).collect::<Vec<usize>>();
    let behind_rows = |dimensions: Vec<usize>| std::iter::once(0).chain(shift(dimensions)).collect();
    match op {
        Op::Transpose { dimensions } => Op::Transpose { dimensions: behind_rows(dimensions) },
        Op::Broadcast { dimensions } => Op::Broadcast { dimensions: behind_rows(dimensions) },
        Op::Reverse { dimensions } => Op::Reverse { dimensions: shift(dimensions) },
        Op::Concatenate { dimension } => Op::Concatenate { dimension: dimension + 1 },
        Op::Reduce { dimensions, to_apply } => Op::Reduce { dimensions: shift(dimensions), to_apply },
        Op::Slice { mut slice } => {
            slice.insert(0, SliceDimension { start: 0, limit: count, stride: 1 });
            Op::Slice { slice }
        }
        Op::Pad { mut padding } => {
            padding.dimensions.insert(0, PaddingDimension::default());
            Op::Pad { padding }
        }
        other => other,
    }
}

/// An integer constant of a type in a computation; it wraps like the type.
pub(super) fn index_constant(
    computation: &mut Computation,
    element_type: PrimitiveType,
    value: i64,
) -> InstructionId {
    let mask = u64::MAX >> (64 - element_type.bit_width());
    let scalar = if element_type.is_signed_integer() {
        Scalar::Signed(value)
    } else {
        Scalar::Unsigned(value as u64 & mask)
    };
    let shape = ArrayShape::new(element_type, &[]);
    let literal = Literal::from_scalars(shape.clone(), [scalar]);
    computation.add("", Op::Constant { literal }, shape.into(), &[], OpMetadata::default())
}

/// Whether each of the rows belongs to one iteration of a loop whose trip count is known, and none to two.
pub(super) fn covers_all(module: &Module, found: Loop, row: Row, trip_count: TripCount) -> bool {
    let Index::Affine(affine) = row.index else { return false };
    let steps = analysis::induction_variables(module, &module[found.body]);
    let start = found.initial_range(module, affine.element).value();
    let (Some(&step), Some(start)) = (steps.get(&affine.element), start) else { return false };
    let at = |iteration: i64| {
        let moved = i128::from(start) + i128::from(step) * i128::from(iteration);
        moved * i128::from(affine.multiplier) + i128::from(affine.offset)
    };
    let (first, last) = (at(0), at(row.count - 1));
    let is_exact = row.count > 0 && trip_count.exact == Some(row.count.unsigned_abs());
    is_exact && first.min(last) == 0 && first.max(last) == i128::from(row.count) - 1
}
