//! Computes the values that the iterations of a loop derive from their rows of buffers, for all
//! rows at once.
//!
//! A *row value* of the body derives only from slices of size 1, which the body takes from
//! loop-invariant buffers at one common index, and from loop-invariant values. The body may then as
//! well take the slice from the corresponding value of the whole buffers. It does not matter which
//! rows are taken, or how often: the index is clamped in the same way, because the number of rows
//! is the same.

use super::Loop;
use super::outside::{Outside, invariant_instructions};
use hlo::analysis::{self, Affine, TripCount};
use hlo::{
    Computation, DotDimensionNumbers, InstructionId, Module, Op, OpMetadata, PaddingDimension,
    SliceDimension, Traits,
};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};
use std::collections::BTreeMap;

/// The row that an iteration reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Row {
    pub(super) index: Index,
    /// Number of rows.
    pub(super) count: i64,
}

/// An index of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Index {
    /// A linear function of a state element that neither wraps nor leaves the rows, and therefore
    /// equals the row number.
    Affine(Affine),
    /// The result of an instruction of the body.
    Instruction(InstructionId),
}

/// Dependence of a value of the body on the iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The value is the same in every iteration.
    Same,
    /// The value follows from the induction variable in this element of the state.
    Counter(usize),
    /// The value is a row value; the body computes its index with this instruction.
    Rows(Row, InstructionId),
}

/// The values of a loop's body that can be computed before the loop.
pub(super) struct Rows {
    while_loop: Loop,
    kinds: BTreeMap<InstructionId, Kind>,
    outside: Outside,
    /// A value that follows from an induction variable may have several batched versions, for
    /// different numbers of rows.
    batched: BTreeMap<(InstructionId, Row), InstructionId>,
}

impl Rows {
    pub(super) fn new(module: &Module, while_loop: Loop) -> Self {
        let ranges = while_loop.state_ranges(module);
        let body = &module[while_loop.body];
        let same = invariant_instructions(body, &while_loop.invariants(module));
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
        Self {
            while_loop,
            kinds,
            outside: Outside::new(while_loop, while_loop.body),
            batched: BTreeMap::new(),
        }
    }

    pub(super) fn kind(&self, id: InstructionId) -> Option<Kind> {
        self.kinds.get(&id).copied()
    }

    /// The row of a row value.
    pub(super) fn row(&self, id: InstructionId) -> Option<Row> {
        match self.kind(id)? {
            Kind::Rows(row, _) => Some(row),
            Kind::Same | Kind::Counter(_) => None,
        }
    }

    /// True if a value can be computed for all of these rows.
    pub(super) fn is_of(&self, id: InstructionId, row: Row) -> bool {
        match self.kind(id) {
            Some(Kind::Rows(own, _)) => own == row,
            Some(Kind::Counter(element)) => counts(row, element).is_some(),
            Some(Kind::Same) => true,
            None => false,
        }
    }

    /// The loop-invariant value in the caller.
    pub(super) fn outside(&mut self, module: &mut Module, id: InstructionId) -> InstructionId {
        self.outside.copy(module, id)
    }

    /// All rows of a value for which [`Self::is_of`] holds, along a new first dimension, in the
    /// caller.
    pub(super) fn batched(&mut self, module: &mut Module, id: InstructionId, row: Row) -> InstructionId {
        let mut pending = vec![id];
        while let Some(&current) = pending.last() {
            if self.batched.contains_key(&(current, row)) {
                pending.pop();
                continue;
            }
            let is_missing = |o: &&InstructionId| {
                self.kind(**o) != Some(Kind::Same) && !self.batched.contains_key(&(**o, row))
            };
            let instruction = &module[self.while_loop.body][current];
            // A slice takes its row from an invariant buffer, and a counter is computed directly,
            // so neither needs operands.
            let needed = match instruction.op() {
                Op::DynamicSlice { .. } | Op::GetTupleElement { .. } => &[],
                _ if self.kind(current) == Some(Kind::Same) => &[],
                _ => instruction.operands(),
            };
            let missing: Vec<InstructionId> = needed.iter().filter(is_missing).copied().collect();
            if !missing.is_empty() {
                pending.extend(missing);
                continue;
            }
            let value = self.batch(module, current, row);
            self.batched.insert((current, row), value);
        }
        self.batched[&(id, row)]
    }

    fn batch(&mut self, module: &mut Module, id: InstructionId, row: Row) -> InstructionId {
        let instruction = &module[self.while_loop.body][id];
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
                let flat_result = without_rows(&shape);
                let flat_result = with_first(&flat_result, flat_result.size(0) * row.count);
                let flat_result = self.add(module, op, flat_result, &[flat, kernel], metadata.clone());
                self.add(module, Op::Reshape {}, shape, &[flat_result], metadata)
            }
            op => {
                let operands: Vec<InstructionId> = match op {
                    // The initial value and the padding are scalars that remain the same.
                    Op::Reduce { .. } | Op::Pad { .. } => {
                        vec![self.batched[&(operands[0], row)], self.outside(module, operands[1])]
                    }
                    _ => operands.iter().map(|&o| self.spread(module, o, row, &metadata)).collect(),
                };
                self.add(module, shifted(op, row.count), shape, &operands, metadata)
            }
        }
    }

    /// An induction variable for each row: the inverse of the function that gives the row number.
    fn counted(
        &self,
        module: &mut Module,
        element: usize,
        row: Row,
        shape: ArrayShape,
        metadata: &OpMetadata,
    ) -> InstructionId {
        let (sign, offset) = counts(row, element).expect("row index does not derive from this element");
        let caller = module.computation_mut(self.while_loop.caller);
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

    /// A value with a dimension for the rows, broadcast along it if the value is loop-invariant.
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
        let shape = module[self.while_loop.caller][value].shape().expect_array().clone();
        let op = Op::Broadcast { dimensions: (1..=shape.rank()).collect() };
        self.add(module, op, with_rows(&shape, row.count), &[value], metadata.clone())
    }

    /// A buffer with the dimension of its rows first, followed by the dimensions of a slice.
    fn rows_first(
        &self,
        module: &mut Module,
        buffer: InstructionId,
        slice: &[i64],
        shape: ArrayShape,
        metadata: OpMetadata,
    ) -> InstructionId {
        let whole = module[self.while_loop.caller][buffer].shape().expect_array().clone();
        let dimension = sliced_dimension(&whole, slice).expect("slice does not select one row");
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

    /// One large matrix multiplication in place of a small one per iteration.
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
        let x_shape = module[self.while_loop.caller][x].shape().expect_array().clone();
        let kernel_shape = module[self.while_loop.caller][kernel].shape().expect_array().clone();
        // Summed dimensions are moved to the end, so that rows and the remaining dimensions can be
        // merged.
        let free: Vec<usize> =
            (0..x_shape.rank()).filter(|&d| d == 0 || !contracting.contains(&(d - 1))).collect();
        let order: Vec<usize> = free.iter().copied().chain(contracting.iter().map(|d| d + 1)).collect();
        let x = self.transposed(module, x, &order, &metadata);
        let free_sizes: Vec<i64> = free.iter().map(|&d| x_shape.size(d)).collect();
        let summed: Vec<i64> = contracting.iter().map(|&d| x_shape.size(d + 1)).collect();
        // Rows of dimensions with names stay apart, so that those beyond sizes can be left out.
        let merged = if module.size_parameters().is_empty() {
            vec![free_sizes.iter().product()]
        } else {
            free_sizes.clone()
        };
        let flat: Vec<i64> = merged.iter().copied().chain(summed).collect();
        let flat_shape = ArrayShape::new(x_shape.element_type, &flat);
        let x = self.add(module, Op::Reshape {}, flat_shape, &[x], metadata.clone());
        let columns: Vec<i64> = (0..kernel_shape.rank())
            .filter(|d| !other_contracting.contains(d))
            .map(|d| kernel_shape.size(d))
            .collect();
        let flat_result: Vec<i64> = merged.iter().chain(&columns).copied().collect();
        let numbers = DotDimensionNumbers {
            lhs_contracting_dims: (merged.len()..flat.len()).collect(),
            rhs_contracting_dims: other_contracting.clone(),
            ..DotDimensionNumbers::default()
        };
        let flat_result = ArrayShape::new(element_type, &flat_result);
        let op = Op::Dot { dot_dimension_numbers: numbers };
        let product = self.add(module, op, flat_result, &[x, kernel], metadata.clone());
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

    /// Merges the rows and the next dimension.
    fn merged(&self, module: &mut Module, value: InstructionId, metadata: &OpMetadata) -> InstructionId {
        let shape = module[self.while_loop.caller][value].shape().expect_array().clone();
        let flat_result = without_rows(&shape);
        let flat_result = with_first(&flat_result, flat_result.size(0) * shape.size(0));
        self.add(module, Op::Reshape {}, flat_result, &[value], metadata.clone())
    }

    /// A value of the caller with reordered dimensions.
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
        let shape = module[self.while_loop.caller][value].shape().expect_array().clone();
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
        module.computation_mut(self.while_loop.caller).add("", op, shape.into(), operands, metadata)
    }
}

/// Prepends a dimension for the rows.
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

/// The only dimension that a slice does not cover completely, if it takes one element along it.
pub(super) fn sliced_dimension(whole: &ArrayShape, slice: &[i64]) -> Option<usize> {
    let mut parts = (0..slice.len()).filter(|&d| slice[d] != whole.size(d));
    let dimension = parts.next()?;
    (parts.next().is_none() && slice[dimension] == 1).then_some(dimension)
}

/// Dependence on the iteration of an instruction that is not loop-invariant.
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
        let index_operand = *operands.get(dimension + 1)?;
        let is_invariant = kinds.get(&operands[0]) == Some(&Kind::Same);
        let count = whole.size(dimension);
        let row = Row { index: index(index_operand, count), count };
        return is_invariant.then_some(Kind::Rows(row, index_operand));
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

/// Dependence on the iteration of a value with two operands.
fn joined(a: Kind, b: Kind) -> Option<Kind> {
    match (a, b) {
        (Kind::Rows(row, _), Kind::Rows(other, _)) => (row == other).then_some(a),
        (Kind::Rows(row, _), Kind::Counter(element)) => counts(row, element).map(|_| a),
        (Kind::Counter(element), Kind::Rows(row, _)) => counts(row, element).map(|_| b),
        (Kind::Counter(element), Kind::Counter(other)) => (element == other).then_some(a),
        (Kind::Same, kind) | (kind, Kind::Same) => Some(kind),
    }
}

/// Sign and offset with which a row's number follows from a state element: `sign * element +
/// offset`. Conversely, the element is `row - offset` or `offset - row`.
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

/// The op with its dimensions shifted by one, to make room for the rows.
pub(super) fn shifted(op: Op, count: i64) -> Op {
    let shift = |dimensions: Vec<usize>| dimensions.into_iter().map(|d| d + 1).collect::<Vec<usize>>();
    let after_rows = |dimensions: Vec<usize>| std::iter::once(0).chain(shift(dimensions)).collect();
    match op {
        Op::Transpose { dimensions } => Op::Transpose { dimensions: after_rows(dimensions) },
        Op::Broadcast { dimensions } => Op::Broadcast { dimensions: after_rows(dimensions) },
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

/// Adds an integer constant of a type to a computation. The value wraps like the type.
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

/// A slice that starts at `at` along one dimension and covers all others.
pub(super) fn sliced(
    computation: &mut Computation,
    buffer: InstructionId,
    at: InstructionId,
    dimension: usize,
    sizes: &[i64],
    metadata: &OpMetadata,
) -> InstructionId {
    let element_type = computation[buffer].shape().expect_array().element_type;
    let zero = index_constant(computation, computation[at].shape().expect_array().element_type, 0);
    let mut operands = vec![buffer];
    operands.resize(sizes.len() + 1, zero);
    operands[dimension + 1] = at;
    let op = Op::DynamicSlice { dynamic_slice_sizes: sizes.to_vec() };
    let shape = ArrayShape::new(element_type, sizes);
    computation.add("", op, shape.into(), &operands, metadata.clone())
}

/// True if each row belongs to exactly one iteration of a loop whose trip count is known.
pub(super) fn covers_all(module: &Module, while_loop: Loop, row: Row, trip_count: TripCount) -> bool {
    let Index::Affine(affine) = row.index else { return false };
    let steps = analysis::induction_variables(module, &module[while_loop.body]);
    let start = while_loop.initial_range(module, affine.element).value();
    let (Some(&step), Some(start)) = (steps.get(&affine.element), start) else { return false };
    let row_of = |iteration: i64| {
        let moved = i128::from(start) + i128::from(step) * i128::from(iteration);
        moved * i128::from(affine.multiplier) + i128::from(affine.offset)
    };
    let (first, last) = (row_of(0), row_of(row.count - 1));
    let is_exact = row.count > 0 && trip_count.exact == Some(row.count.unsigned_abs());
    is_exact && first.min(last) == 0 && first.max(last) == i128::from(row.count) - 1
}
