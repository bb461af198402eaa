//! `chlo.ragged_dot`: a product in which groups along one dimension (rows, contracted, or batch)
//! have separate matrices.

use crate::walk::Context;
use composite::Expression;
use hlo::{DotDimensionNumbers, InstructionId, Op};
use shape::{ArrayShape, PrimitiveType};
use support::{Error, Result};

/// Parsed attributes.
struct Ragged {
    numbers: DotDimensionNumbers,
    /// The dimension of the left operand that is divided into groups.
    ragged: usize,
    /// The dimension of the right operand that indexes the groups.
    group: Option<usize>,
}

/// The ragged dimension is a row dimension (the right operand has a matrix for each group), a
/// contracting dimension (the result has one for each group), or a batch dimension (the groups have
/// no effect). Rows and summands of other groups are replaced by zeros, so that a single product
/// covers all groups.
pub(super) fn ragged_dot(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let ragged = Ragged::from_context(context)?;
    let operands = [context.operand(0)?, context.operand(1)?, context.operand(2)?];
    let result = context.result_array(0)?;
    let shapes = operands.map(|id| context.array(id));
    let [Ok(lhs), Ok(rhs), Ok(sizes)] = shapes else { return Err(Error::invalid("expected three arrays")) };
    ragged.check(&lhs, &rhs, &sizes)?;
    context.composite(&operands, |_, operands| {
        let [lhs, rhs, sizes] = [operands[0], operands[1], operands[2]];
        vec![ragged.expand(lhs, rhs, sizes, &result)]
    })
}

impl Ragged {
    fn from_context(context: &Context<'_, '_>) -> Result<Self> {
        let view = context.view();
        let numbers = DotDimensionNumbers {
            lhs_batch_dims: view.dimensions_or_none("lhs_batching_dimensions")?,
            lhs_contracting_dims: view.dimensions_or_none("lhs_contracting_dimensions")?,
            rhs_batch_dims: view.dimensions_or_none("rhs_batching_dimensions")?,
            rhs_contracting_dims: view.dimensions_or_none("rhs_contracting_dimensions")?,
        };
        let [ragged] = view.dimensions_or_none("lhs_ragged_dimensions")?[..] else {
            return Err(Error::invalid("expected one ragged dimension"));
        };
        let group = view.dimensions_or_none("rhs_group_dimensions")?.first().copied();
        Ok(Self { numbers, ragged, group })
    }

    fn check(&self, lhs: &ArrayShape, rhs: &ArrayShape, sizes: &ArrayShape) -> Result<()> {
        let is_row = !self.is_batch() && !self.is_contracting();
        let fits = self.ragged < lhs.rank() && self.group.is_none_or(|group| group < rhs.rank());
        if !fits || is_row != self.group.is_some() {
            return Err(Error::invalid(
                "expected a group dimension exactly if the ragged dimension is neither a batch nor a contracting one",
            ));
        }
        if sizes.rank() != 1 || !sizes.element_type.is_integer() {
            return Err(Error::unsupported(format!(
                "expected a vector of integers as group sizes, got {sizes}"
            )));
        }
        match self.group {
            Some(group) if rhs.size(group) != sizes.size(0) => {
                Err(Error::invalid(format!("{} groups, but {} group sizes", rhs.size(group), sizes.size(0))))
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
        let lhs = self.split_groups(lhs, sizes);
        for dimension in numbers.lhs_batch_dims.iter_mut().chain(&mut numbers.lhs_contracting_dims) {
            *dimension += 1;
        }
        if let Some(group) = self.group {
            numbers.lhs_contracting_dims.push(0);
            numbers.rhs_contracting_dims.push(group);
            return dot(lhs, numbers, result.clone());
        }
        // A product has its batch dimensions first; the result has the groups first.
        let batch = numbers.lhs_batch_dims.len();
        let mut product_shape = result.clone();
        product_shape.dimensions[..=batch].rotate_left(1);
        let product = dot(lhs, numbers, product_shape);
        let mut permutation: Vec<usize> = (0..result.rank()).collect();
        permutation[..=batch].rotate_right(1);
        product.transpose(&permutation)
    }

    /// `[groups, ...]`: a copy of the left operand for each group, with zeros outside the group.
    fn split_groups<'f>(&self, lhs: Expression<'f>, sizes: Expression<'f>) -> Expression<'f> {
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
