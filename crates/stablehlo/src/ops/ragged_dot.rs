//! `chlo.ragged_dot`: products of groups of rows, of summands or of products, each group with a matrix of its own.

use crate::walk::Context;
use composite::Expression;
use hlo::{DotDimensionNumbers, InstructionId, Op};
use shape::{ArrayShape, PrimitiveType};
use support::{Error, Result};

/// What an operation says.
struct Ragged {
    numbers: DotDimensionNumbers,
    /// The dimension of the left operand that the groups cut.
    ragged: usize,
    /// The dimension of the right operand that numbers the groups.
    group: Option<usize>,
}

/// The dimension that the groups cut is one of rows (then the right operand has a matrix for each group), of summands (then
/// the result has one), or of products (then groups change nothing). Rows and summands of other groups count as zeros:
/// one product over all groups.
pub(super) fn ragged_dot(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let ragged = Ragged::of(context)?;
    let operands = [context.operand(0)?, context.operand(1)?, context.operand(2)?];
    let result = context.result_array(0)?;
    let shapes = operands.map(|id| context.array(id));
    let [Ok(lhs), Ok(rhs), Ok(sizes)] = shapes else { return Err(Error::invalid("three arrays are needed")) };
    ragged.check(&lhs, &rhs, &sizes)?;
    context.composite(&operands, |_, operands| {
        let [lhs, rhs, sizes] = [operands[0], operands[1], operands[2]];
        vec![ragged.expand(lhs, rhs, sizes, &result)]
    })
}

impl Ragged {
    fn of(context: &Context<'_, '_>) -> Result<Self> {
        let view = context.view();
        let numbers = DotDimensionNumbers {
            lhs_batch_dims: view.dimensions_or_none("lhs_batching_dimensions")?,
            lhs_contracting_dims: view.dimensions_or_none("lhs_contracting_dimensions")?,
            rhs_batch_dims: view.dimensions_or_none("rhs_batching_dimensions")?,
            rhs_contracting_dims: view.dimensions_or_none("rhs_contracting_dimensions")?,
        };
        let [ragged] = view.dimensions_or_none("lhs_ragged_dimensions")?[..] else {
            return Err(Error::invalid("a ragged dot has one ragged dimension"));
        };
        let group = view.dimensions_or_none("rhs_group_dimensions")?.first().copied();
        Ok(Self { numbers, ragged, group })
    }

    fn check(&self, lhs: &ArrayShape, rhs: &ArrayShape, sizes: &ArrayShape) -> Result<()> {
        let is_row = !self.is_batch() && !self.is_contracting();
        let fits = self.ragged < lhs.rank() && self.group.is_none_or(|group| group < rhs.rank());
        if !fits || is_row != self.group.is_some() {
            return Err(Error::invalid(
                "the groups of rows, and only those, number matrices of the right operand",
            ));
        }
        if sizes.rank() != 1 || !sizes.element_type.is_integer() {
            return Err(Error::unsupported(format!(
                "sizes of groups as {sizes}; a vector of integers is known"
            )));
        }
        match self.group {
            Some(group) if rhs.size(group) != sizes.size(0) => {
                Err(Error::invalid(format!("{} groups, but sizes of {}", rhs.size(group), sizes.size(0))))
            }
            _ => Ok(()),
        }
    }

    fn is_batch(&self) -> bool {
        self.numbers.lhs_batch_dims.contains(&self.ragged)
    }

    fn is_contracting(&self) -> bool {
        self.numbers.lhs_contracting_dims.contains(&self.ragged)
    }

    fn expand<'f>(
        &self,
        lhs: Expression<'f>,
        rhs: Expression<'f>,
        sizes: Expression<'f>,
        result: &ArrayShape,
    ) -> Expression<'f> {
        let mut numbers = self.numbers.clone();
        let dot = |lhs: Expression<'f>, numbers: DotDimensionNumbers, shape: ArrayShape| {
            let op = Op::Dot { dot_dimension_numbers: numbers };
            lhs.function().op(op, &[lhs, rhs], Some(shape.into()))
        };
        if self.is_batch() {
            return dot(lhs, numbers, result.clone());
        }
        // The groups become the first dimension of the left operand.
        let lhs = self.of_groups(lhs, sizes);
        for dimension in numbers.lhs_batch_dims.iter_mut().chain(&mut numbers.lhs_contracting_dims) {
            *dimension += 1;
        }
        if let Some(group) = self.group {
            numbers.lhs_contracting_dims.push(0);
            numbers.rhs_contracting_dims.push(group);
            return dot(lhs, numbers, result.clone());
        }
        // Batch dimensions come first in a product, groups in the result.
        let batch = numbers.lhs_batch_dims.len();
        let mut made = result.clone();
        made.dimensions[..=batch].rotate_left(1);
        let product = dot(lhs, numbers, made);
        let mut permutation: Vec<usize> = (0..result.rank()).collect();
        permutation[..=batch].rotate_right(1);
        product.transpose(&permutation)
    }

    /// `[groups, ...]`: the left operand once for each group, zeros where the ragged dimension is in another.
    fn of_groups<'f>(&self, lhs: Expression<'f>, sizes: Expression<'f>) -> Expression<'f> {
        let function = lhs.function();
        let groups = sizes.sizes()[0];
        let sizes = sizes.convert(PrimitiveType::S64);
        let square = [groups, groups];
        let row = function.iota(PrimitiveType::S64, &square, 0);
        let column = function.iota(PrimitiveType::S64, &square, 1);
        let each = sizes.broadcast(&square, &[1]);
        let ends = column.le(row).select(each, each.splat(0.0)).sum(&[1]);
        let begins = ends - sizes;
        let whole: Vec<i64> = std::iter::once(groups).chain(lhs.sizes()).collect();
        let position = function.iota(PrimitiveType::S64, &whole, self.ragged + 1);
        let is_inside =
            position.ge(begins.broadcast(&whole, &[0])) & position.lt(ends.broadcast(&whole, &[0]));
        let dimensions: Vec<usize> = (1..whole.len()).collect();
        let copies = lhs.broadcast(&whole, &dimensions);
        is_inside.select(copies, copies.splat(0.0))
    }
}
