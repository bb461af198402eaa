//! Rows: the last dimensions of an array, and the shapes of the arrays that belong to them.

use super::RowFusion;
use hlo::{Computation, InstructionId, Module, Op, is_associative};
use shape::ArrayShape;

/// The dimensions of arrays whose rows are walked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rows {
    /// Sizes of the whole arrays.
    sizes: Vec<i64>,
    /// Dimensions of size other than 1 outside of rows.
    row_dimensions: Vec<usize>,
    /// Elements per row.
    pub(super) columns: i64,
}

/// Work of at least this many bytes is shared among workers, by rows.
const SHARED_BYTES: u64 = 1 << 20;
/// Fewer rows would leave workers idle.
const MIN_SHARED_ROWS: i64 = 16;

impl Rows {
    /// The rows of a reduction, if a row walk can compute it.
    pub(super) fn of(
        options: &RowFusion,
        module: &Module,
        computation: &Computation,
        id: InstructionId,
    ) -> Option<Self> {
        let Op::Reduce { dimensions, to_apply } = computation[id].op() else { return None };
        let &[input, initial] = computation[id].operands() else { return None };
        let array = real(computation, input)?;
        real(computation, id)?;
        let Op::Constant { literal } = computation[initial].op() else { return None };
        if literal.array_shape().rank() != 0 || !is_associative(&module[*to_apply]) {
            return None;
        }
        let sizes = array.sizes();
        let is_wide = |&d: &usize| sizes[d] != 1;
        let wide: Vec<usize> = (0..sizes.len()).filter(is_wide).collect();
        let row_dimensions: Vec<usize> = wide.iter().copied().filter(|d| !dimensions.contains(d)).collect();
        let is_row = row_dimensions.len() < wide.len() && wide[..row_dimensions.len()] == row_dimensions[..];
        let columns = wide[row_dimensions.len()..].iter().fold(1i64, |n, &d| n.saturating_mul(sizes[d]));
        let rows = row_dimensions.iter().fold(1i64, |n, &d| n.saturating_mul(sizes[d]));
        let bytes = (columns as u64).saturating_mul(array.element_type.byte_size() as u64);
        let is_shared = rows >= MIN_SHARED_ROWS || array.byte_size() < SHARED_BYTES;
        let fits = is_row && is_shared && bytes <= options.max_row_bytes && array.element_count() > 0;
        fits.then_some(Self { sizes, row_dimensions, columns })
    }

    /// True if an instruction has an element for each element of the rows.
    pub(super) fn is_whole(&self, computation: &Computation, id: InstructionId) -> bool {
        computation[id].shape().as_array().is_some_and(|shape| shape.sizes() == self.sizes)
    }

    /// True if an array has one element per row.
    fn is_of_rows(&self, shape: &ArrayShape) -> bool {
        let sizes = shape.sizes();
        let wide = sizes.iter().filter(|&&size| size != 1);
        wide.eq(self.row_dimensions.iter().map(|&d| &self.sizes[d]))
    }

    /// True if an instruction can be computed in a walk, given that the operands for which
    /// `is_member` is true are.
    pub(super) fn admits(
        &self,
        computation: &Computation,
        id: InstructionId,
        is_member: impl Fn(InstructionId) -> bool,
    ) -> bool {
        let Some(shape) = real(computation, id) else { return false };
        let operands = computation[id].operands();
        let (is_whole, is_of_rows) = (self.is_whole(computation, id), self.is_of_rows(shape));
        if !(is_whole || is_of_rows) || operands.iter().any(|&o| real(computation, o).is_none()) {
            return false;
        }
        match computation[id].op() {
            op if op.is_elementwise() => true,
            Op::Reshape {} | Op::Bitcast {} => {
                is_of_rows && real(computation, operands[0]).is_some_and(|s| self.is_of_rows(s))
            }
            Op::Broadcast { dimensions } => {
                // A value of a row is broadcast to that row; other values come from memory.
                let from = computation[operands[0]].shape().expect_array().sizes();
                let wide = dimensions.iter().zip(&from).filter(|(_, size)| **size != 1).map(|(&d, _)| d);
                let sizes = shape.sizes();
                let of_rows: Vec<usize> = if is_whole {
                    self.row_dimensions.clone()
                } else {
                    (0..sizes.len()).filter(|&d| sizes[d] != 1).collect()
                };
                !is_member(operands[0]) || wide.eq(of_rows)
            }
            _ => false,
        }
    }
}

/// The shape of a static array of real numbers.
fn real(computation: &Computation, id: InstructionId) -> Option<&ArrayShape> {
    computation[id].shape().as_array().filter(|shape| shape.is_static() && !shape.element_type.is_complex())
}
