//! Attributes of opcodes, with XLA's names (`xla/xla_data.proto`).

use crate::ids::{ComputationId, InstructionId};

/// The value of an attribute that this compiler only passes through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RawValue {
    /// The value as text.
    Text(String),
    /// A called computation: `to_apply=add`.
    Computation(ComputationId),
    /// Several called computations: `called_computations={f, g}`.
    Computations(Vec<ComputationId>),
}

/// Attributes of an opcode that this compiler reads and prints, but never compiles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawAttributes {
    entries: Vec<(String, RawValue)>,
}

impl RawAttributes {
    /// Appends an attribute.
    pub fn push(&mut self, name: impl Into<String>, value: RawValue) {
        self.entries.push((name.into(), value));
    }

    /// Iterates over names and values in textual order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.entries.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// True if there are no attributes.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the value of the attribute called `name`.
    pub fn get(&self, name: &str) -> Option<&RawValue> {
        self.iter().find_map(|(own, value)| (own == name).then_some(value))
    }

    /// Returns the text of the attribute called `name`; `None` if it is a computation.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            RawValue::Text(text) => Some(text),
            RawValue::Computation(_) | RawValue::Computations(_) => None,
        }
    }

    /// Returns the called computations.
    pub fn called_computations(&self) -> Vec<ComputationId> {
        let ids = self.entries.iter().flat_map(|(_, value)| match value {
            RawValue::Text(_) => &[][..],
            RawValue::Computation(id) => std::slice::from_ref(id),
            RawValue::Computations(ids) => ids,
        });
        ids.copied().collect()
    }

    /// Renames the called computations.
    pub fn map_called_computations(&mut self, map: &mut dyn FnMut(ComputationId) -> ComputationId) {
        for (_, value) in &mut self.entries {
            match value {
                RawValue::Text(_) => {}
                RawValue::Computation(id) => *id = map(*id),
                RawValue::Computations(ids) => ids.iter_mut().for_each(|id| *id = map(*id)),
            }
        }
    }
}

/// One dimension of a slice: `[start:limit:stride]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceDimension {
    /// The first index.
    pub start: i64,
    /// One past the last index.
    pub limit: i64,
    /// The step, at least 1.
    pub stride: i64,
}

/// The dimensions that a dot multiplies and sums.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as in XLA's proto")]
pub struct DotDimensionNumbers {
    pub lhs_batch_dims: Vec<usize>,
    pub lhs_contracting_dims: Vec<usize>,
    pub rhs_batch_dims: Vec<usize>,
    pub rhs_contracting_dims: Vec<usize>,
}

/// The positions of a gather's slices and of their start indices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as in XLA's proto")]
pub struct GatherDimensionNumbers {
    pub offset_dims: Vec<usize>,
    pub collapsed_slice_dims: Vec<usize>,
    pub start_index_map: Vec<usize>,
    pub operand_batching_dims: Vec<usize>,
    pub start_indices_batching_dims: Vec<usize>,
    pub index_vector_dim: usize,
}

/// The positions of a scatter's windows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as in XLA's proto")]
pub struct ScatterDimensionNumbers {
    pub update_window_dims: Vec<usize>,
    pub inserted_window_dims: Vec<usize>,
    pub scatter_dims_to_operand_dims: Vec<usize>,
    pub input_batching_dims: Vec<usize>,
    pub scatter_indices_batching_dims: Vec<usize>,
    pub index_vector_dim: usize,
}

impl ScatterDimensionNumbers {
    /// Numbers for indices that each select the vector element to which one update goes; the last
    /// dimension of the indices is the index vector.
    pub fn of_vector() -> Self {
        Self {
            inserted_window_dims: vec![0],
            scatter_dims_to_operand_dims: vec![0],
            index_vector_dim: 1,
            ..Self::default()
        }
    }
}

/// One dimension of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as in XLA's proto")]
pub struct WindowDimension {
    pub size: i64,
    pub stride: i64,
    pub padding_low: i64,
    pub padding_high: i64,
    pub window_dilation: i64,
    pub base_dilation: i64,
    pub window_reversal: bool,
}

impl WindowDimension {
    /// A window of the given size with stride 1, without padding or dilation.
    pub const fn of_size(size: i64) -> Self {
        Self {
            size,
            stride: 1,
            padding_low: 0,
            padding_high: 0,
            window_dilation: 1,
            base_dilation: 1,
            window_reversal: false,
        }
    }

    /// True if each of `count` windows over `size` elements contains the one before it: they have
    /// stride 1 and all start at or before the first element. With `backward`, each contains the
    /// one after it, and all end at or after the last element.
    pub fn runs(&self, size: i64, count: i64, backward: bool) -> bool {
        if self.stride != 1 || self.window_dilation != 1 || self.base_dilation != 1 || self.window_reversal {
            return false;
        }
        let (low, taps) = (i128::from(self.padding_low), i128::from(self.size));
        if backward { taps - low >= i128::from(size) } else { i128::from(count) - 1 <= low }
    }
}

/// The windows of a convolution or a windowed reduction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// One entry for each (spatial) dimension.
    pub dimensions: Vec<WindowDimension>,
}

impl Window {
    /// Returns the only dimension with nontrivial windows and whether they grow backward, if each
    /// window contains its neighbor, so that a running total computes all of them. `sizes` and
    /// `counts` are those of a windowed reduction's operand and result.
    pub fn running_dimension(&self, sizes: &[i64], counts: &[i64]) -> Option<(usize, bool)> {
        let mut wide =
            (0..self.dimensions.len()).filter(|&d| self.dimensions[d] != WindowDimension::of_size(1));
        let (Some(d), None) = (wide.next(), wide.next()) else { return None };
        let (&size, &count) = (sizes.get(d)?, counts.get(d)?);
        [false, true]
            .into_iter()
            .find(|&backward| self.dimensions[d].runs(size, count, backward))
            .map(|b| (d, b))
    }
}

/// The meaning of the dimensions of a convolution's operands and result; text `b01f_01io->b01f`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as in XLA's proto")]
pub struct ConvolutionDimensionNumbers {
    pub input_batch_dimension: usize,
    pub input_feature_dimension: usize,
    pub input_spatial_dimensions: Vec<usize>,
    pub kernel_input_feature_dimension: usize,
    pub kernel_output_feature_dimension: usize,
    pub kernel_spatial_dimensions: Vec<usize>,
    pub output_batch_dimension: usize,
    pub output_feature_dimension: usize,
    pub output_spatial_dimensions: Vec<usize>,
}

/// Padding of one dimension: `low_high` or `low_high_interior`; negative edges crop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as in XLA's proto")]
pub struct PaddingDimension {
    pub edge_padding_low: i64,
    pub edge_padding_high: i64,
    pub interior_padding: i64,
}

/// Padding of every dimension.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PaddingConfig {
    /// One entry for each dimension.
    pub dimensions: Vec<PaddingDimension>,
}

/// The relation that a comparison tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as in XLA's text")]
pub enum ComparisonDirection {
    Eq,
    Ne,
    Ge,
    Gt,
    Le,
    Lt,
}

/// The order of floating-point values in a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ComparisonType {
    /// The default order of the operand type; for floats, the partial order of IEEE 754. Not
    /// printed.
    #[default]
    Default,
    /// The total order of IEEE 754-2019: -NaN < -inf < ... < -0 < 0 < ... < NaN.
    TotalOrder,
}

/// The kind of a fusion in XLA's text. Other compilers may use it with another meaning; see
/// [`FusionKind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XlaFusionKind {
    /// `kLoop`: one loop nest over the result, with producers computed at their uses.
    Loop,
    /// `kInput`: the root is a reduction, with its producers computed in its loop.
    Input,
    /// `kOutput`: the epilogue of a contraction is computed on its tiles.
    Output,
    /// `kCustom`: any other kind.
    Custom,
}

/// The computation that one fusion performs. The plan has one strategy for each kind; ids refer to
/// instructions of the body. HLO text does not contain the kind, because it follows from the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FusionKind {
    /// One loop nest over the elements of the root.
    Loop,
    /// The root updates a slice of an array in place.
    Update,
    /// The root is a reduction.
    Reduce,
    /// The root is a windowed reduction.
    ReduceWindow,
    /// Reductions along rows, and instructions that depend on their results: each row is traversed
    /// several times.
    Rows,
    /// One loop nest with several results: the root is a tuple.
    MultiOutput,
    /// A dot with elementwise work on its tiles.
    Dot {
        /// The dot.
        dot: InstructionId,
    },
    /// A convolution with elementwise work on its tiles.
    Convolution {
        /// The convolution.
        convolution: InstructionId,
    },
    /// Several convolutions, each of which reads the result of the previous one.
    Chain {
        /// The last convolution.
        last: InstructionId,
    },
    /// Two dots with row-wise work between them.
    Attention {
        /// The first dot: queries times keys.
        scores: InstructionId,
        /// The second dot: weights times values.
        values: InstructionId,
    },
}

/// Distributions of `rng`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as in XLA's text")]
pub enum RandomDistribution {
    Uniform,
    Normal,
}

/// Algorithms of `rng-bit-generator`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as in XLA's text")]
pub enum RandomAlgorithm {
    Default,
    ThreeFry,
    Philox,
}

/// Kinds of Fourier transforms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as in XLA's text")]
pub enum FftType {
    Fft,
    Ifft,
    Rfft,
    Irfft,
}

/// The transposition of a triangular solve's matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as in XLA's text")]
pub enum TriangularTranspose {
    NoTranspose,
    Transpose,
    Adjoint,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn padded(size: i64, padding_low: i64, padding_high: i64) -> WindowDimension {
        WindowDimension { padding_low, padding_high, ..WindowDimension::of_size(size) }
    }

    #[test]
    fn windows_that_reach_an_end_run() {
        let cumulative = padded(100, 99, 0);
        assert!(cumulative.runs(100, 100, false) && !cumulative.runs(100, 100, true));
        let reversed = padded(100, 0, 99);
        assert!(reversed.runs(100, 100, true) && !reversed.runs(100, 100, false));
        let exclusive = padded(100, 100, -1);
        assert!(exclusive.runs(100, 100, false));
        assert!(!padded(99, 98, 0).runs(100, 100, false));
        assert!(!WindowDimension { stride: 2, ..cumulative }.runs(100, 50, false));
        assert!(!WindowDimension { base_dilation: 2, ..padded(4, 6, 0) }.runs(4, 4, false));
        assert!(!WindowDimension { window_reversal: true, ..cumulative }.runs(100, 100, false));
    }

    #[test]
    fn one_dimension_alone_runs() {
        let one = WindowDimension::of_size(1);
        let window = |dimensions: &[WindowDimension]| Window { dimensions: dimensions.to_vec() };
        let run = |dimensions: &[WindowDimension]| window(dimensions).running_dimension(&[3, 8], &[3, 8]);
        assert_eq!(run(&[one, padded(8, 7, 0)]), Some((1, false)));
        assert_eq!(run(&[padded(3, 0, 2), one]), Some((0, true)));
        assert_eq!(run(&[padded(3, 0, 2), padded(8, 7, 0)]), None);
        assert_eq!(run(&[one, padded(3, 1, 1)]), None);
        assert_eq!(run(&[one, one]), None);
    }
}
