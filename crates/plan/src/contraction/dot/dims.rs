//! The dimensions of a contraction in each operand.

use super::DotPlan;
use crate::contraction::extents::DotShape;
use hlo::DotDimensionNumbers;
use shape::ArrayShape;
use shape::index::row_major_strides;

/// A dimension of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Its size.
    pub size: i64,
    /// Distance of neighbors, in elements.
    pub stride: i64,
}

/// The dimensions of a contraction, the slowest first. Neighbors that are one stride apart are
/// merged, and dimensions of size 1 are dropped. Batch and contracting dimensions have the same
/// order for both operands, but are merged for each operand separately.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DotDims {
    /// Batch dimensions of the left operand.
    pub lhs_batch: Vec<Extent>,
    /// Batch dimensions of the right operand.
    pub rhs_batch: Vec<Extent>,
    /// Rows.
    pub rows: Vec<Extent>,
    /// Columns.
    pub columns: Vec<Extent>,
    /// Contracting dimensions of the left operand.
    pub lhs_k: Vec<Extent>,
    /// Contracting dimensions of the right operand.
    pub rhs_k: Vec<Extent>,
}

impl DotDims {
    /// Reads the dimensions of two row-major operands.
    pub fn new(lhs: &ArrayShape, rhs: &ArrayShape, numbers: &DotDimensionNumbers) -> Self {
        let (lhs_all, rhs_all) = (extents(lhs), extents(rhs));
        let free = |rank: usize, batch: &[usize], contracting: &[usize]| -> Vec<usize> {
            (0..rank).filter(|d| !batch.contains(d) && !contracting.contains(d)).collect()
        };
        let rows = free(lhs.rank(), &numbers.lhs_batch_dims, &numbers.lhs_contracting_dims);
        let columns = free(rhs.rank(), &numbers.rhs_batch_dims, &numbers.rhs_contracting_dims);
        let pick = |all: &[Extent], dims: &[usize]| merged(dims.iter().map(|&d| all[d]));
        Self {
            lhs_batch: pick(&lhs_all, &numbers.lhs_batch_dims),
            rhs_batch: pick(&rhs_all, &numbers.rhs_batch_dims),
            rows: pick(&lhs_all, &rows),
            columns: pick(&rhs_all, &columns),
            lhs_k: pick(&lhs_all, &numbers.lhs_contracting_dims),
            rhs_k: pick(&rhs_all, &numbers.rhs_contracting_dims),
        }
    }

    /// The extents as one batched product of matrices.
    pub fn shape(&self) -> DotShape {
        let count = |extents: &[Extent]| extents.iter().fold(1i64, |n, e| n.saturating_mul(e.size));
        DotShape {
            batch: count(&self.lhs_batch),
            m: count(&self.rows),
            n: count(&self.columns),
            k: count(&self.lhs_k),
        }
    }

    /// True if element `(row, k)` of a product is at `row * a + k * b` of the left operand.
    pub fn lhs_is_strided(&self) -> bool {
        self.rows.len() <= 1 && self.lhs_k.len() <= 1
    }

    /// True if element `(k, column)` of a product is at `k * a + column * b` of the right operand.
    pub fn rhs_is_strided(&self) -> bool {
        self.columns.len() <= 1 && self.rhs_k.len() <= 1
    }

    /// Distance of neighboring left rows; irrelevant if there is one row.
    pub fn lhs_m_stride(&self) -> i64 {
        stride(&self.rows)
    }

    /// Distance of neighboring elements in a left row.
    pub fn lhs_k_stride(&self) -> i64 {
        stride(&self.lhs_k)
    }

    /// Distance of neighboring elements in a right column.
    pub fn rhs_k_stride(&self) -> i64 {
        stride(&self.rhs_k)
    }

    /// Distance of neighboring right columns.
    pub fn rhs_n_stride(&self) -> i64 {
        stride(&self.columns)
    }
}

/// The stride of a merged dimension. A dimension of one element has no stride; any value works, and
/// this returns 1.
fn stride(extents: &[Extent]) -> i64 {
    extents.last().map_or(1, |e| e.stride)
}

fn extents(shape: &ArrayShape) -> Vec<Extent> {
    let sizes = shape.sizes();
    let strides = row_major_strides(&sizes);
    sizes.into_iter().zip(strides).map(|(size, stride)| Extent { size, stride }).collect()
}

fn merged(extents: impl Iterator<Item = Extent>) -> Vec<Extent> {
    let mut out: Vec<Extent> = Vec::new();
    for extent in extents.filter(|e| e.size != 1) {
        match out.last_mut() {
            Some(last) if last.stride == extent.stride * extent.size => {
                *last = Extent { size: last.size * extent.size, stride: extent.stride };
            }
            _ => out.push(extent),
        }
    }
    out
}

impl DotPlan {
    /// True if the kernel can leave out the summands beyond a number that is known at run time.
    pub fn limits_summands(&self) -> bool {
        let in_one_pass = self.tiled().is_some_and(|tiled| tiled.k_block >= self.shape.k);
        in_one_pass && self.weights.is_none() && self.grouping.is_none() && self.block_float.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shape::PrimitiveType::F32;

    #[test]
    fn neighboring_dimensions_merge() {
        // [2,3,4] contracts its last dimension with [4,5]. Rows are the first two dimensions, one
        // stride apart.
        let (lhs, rhs) = (ArrayShape::new(F32, &[2, 3, 4]), ArrayShape::new(F32, &[4, 5]));
        let numbers = DotDimensionNumbers {
            lhs_contracting_dims: vec![2],
            rhs_contracting_dims: vec![0],
            ..Default::default()
        };
        let dims = DotDims::new(&lhs, &rhs, &numbers);
        assert_eq!(dims.rows, [Extent { size: 6, stride: 4 }]);
        assert_eq!(dims.columns, [Extent { size: 5, stride: 1 }]);
        assert_eq!(dims.shape(), DotShape { batch: 1, m: 6, n: 5, k: 4 });
    }

    #[test]
    fn rows_around_a_contracting_dimension_do_not_merge() {
        let (lhs, rhs) = (ArrayShape::new(F32, &[2, 3, 4]), ArrayShape::new(F32, &[3, 5]));
        let numbers = DotDimensionNumbers {
            lhs_contracting_dims: vec![1],
            rhs_contracting_dims: vec![0],
            ..Default::default()
        };
        let dims = DotDims::new(&lhs, &rhs, &numbers);
        assert_eq!(dims.rows, [Extent { size: 2, stride: 12 }, Extent { size: 4, stride: 1 }]);
        assert!(!dims.lhs_is_strided());
        assert!(dims.rhs_is_strided());
    }

    #[test]
    fn contracting_dimensions_merge_in_memory_order() {
        let (lhs, rhs) = (ArrayShape::new(F32, &[7, 2, 3]), ArrayShape::new(F32, &[3, 2, 5]));
        let numbers = DotDimensionNumbers {
            lhs_contracting_dims: vec![1, 2],
            rhs_contracting_dims: vec![1, 0],
            ..Default::default()
        };
        let dims = DotDims::new(&lhs, &rhs, &numbers);
        assert_eq!(dims.lhs_k, [Extent { size: 6, stride: 1 }]);
        assert_eq!(dims.rhs_k, [Extent { size: 2, stride: 5 }, Extent { size: 3, stride: 10 }]);
    }
}
