//! A contraction as a batch of products of matrices, whose elements are read from arrays of any
//! rank: dots, convolutions, and gradients of kernels.

use crate::contraction::convolution::ConvolutionDims;
use hlo::{ConvolutionForm, DotDimensionNumbers};
use shape::ArrayShape;
use shape::index::row_major_strides;

/// One of the four extents of `C[batch, row, column] = sum over summands of A[batch, row, summand]
/// * B[batch, summand, column]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The products.
    Batch,
    /// The rows of the left operand.
    Row,
    /// The columns of the right operand.
    Column,
    /// The summands.
    Summand,
}

/// All roles, in the order of their numbers.
const ROLES: [Role; 4] = [Role::Batch, Role::Row, Role::Column, Role::Summand];

/// How the elements of a contraction's matrices lie in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractionView {
    /// Sizes of the axes of each role, slowest first. A number in a role is row-major over them.
    pub axes: [Vec<i64>; 4],
    /// The left operand.
    pub lhs: OperandView,
    /// The right operand.
    pub rhs: OperandView,
    /// Distance in the result, in elements, of neighboring products, rows, and columns.
    pub result: [i64; 3],
}

/// The place of an operand's elements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperandView {
    /// Number of the element with all indices 0.
    pub offset: i64,
    /// Elements per step of each axis, by role.
    pub strides: [Vec<i64>; 4],
    /// Positions that may be outside the array or between its elements, where the operand is zero.
    pub checks: Vec<Check>,
}

/// A position along one dimension of an operand: a sum of indices with factors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Role and number of each axis, and its factor.
    pub terms: Vec<(Role, usize, i64)>,
    /// The position for indices 0.
    pub offset: i64,
    /// Distance of neighboring elements in positions. Positions in between are zero.
    pub dilation: i64,
    /// Number of elements.
    pub size: i64,
    /// Elements of the array per element of the dimension, if the dilation is not 1. Otherwise the
    /// strides of the axes contain the position, and this is 0.
    pub stride: i64,
}

impl ContractionView {
    /// Reads the dimensions of a dot of two row-major arrays.
    pub fn of_dot(lhs: &ArrayShape, rhs: &ArrayShape, numbers: &DotDimensionNumbers) -> Self {
        let strides = |shape: &ArrayShape| row_major_strides(&shape.sizes());
        let (lhs_strides, rhs_strides) = (strides(lhs), strides(rhs));
        let mut draft = Draft::default();
        for (&l, &r) in numbers.lhs_batch_dims.iter().zip(&numbers.rhs_batch_dims) {
            draft.axis(Role::Batch, lhs.size(l), lhs_strides[l], rhs_strides[r]);
        }
        for d in 0..lhs.rank() {
            if !numbers.lhs_batch_dims.contains(&d) && !numbers.lhs_contracting_dims.contains(&d) {
                draft.axis(Role::Row, lhs.size(d), lhs_strides[d], 0);
            }
        }
        for d in 0..rhs.rank() {
            if !numbers.rhs_batch_dims.contains(&d) && !numbers.rhs_contracting_dims.contains(&d) {
                draft.axis(Role::Column, rhs.size(d), 0, rhs_strides[d]);
            }
        }
        for (&l, &r) in numbers.lhs_contracting_dims.iter().zip(&numbers.rhs_contracting_dims) {
            draft.axis(Role::Summand, lhs.size(l), lhs_strides[l], rhs_strides[r]);
        }
        let (rows, columns) = (draft.extent(Role::Row), draft.extent(Role::Column));
        draft.finish([rows.saturating_mul(columns), columns, 1])
    }

    /// Reads the dimensions of a convolution in one of its two forms. Its rows are the output
    /// pixels, its columns the output features of a group, and its summands the taps with the input
    /// features of the group. In a gradient, the rows are the taps with the input features, and the
    /// summands are the pixels of all images.
    pub fn of_convolution(
        form: ConvolutionForm,
        dims: &ConvolutionDims,
        input: &ArrayShape,
        kernel: &ArrayShape,
    ) -> Self {
        let input_strides = row_major_strides(&input.sizes());
        let kernel_strides = row_major_strides(&kernel.sizes());
        let last = input.rank() - 1;
        let is_gradient = form == ConvolutionForm::KernelGradient;
        let mut draft = Draft::default();
        if !is_gradient {
            draft.axis(Role::Batch, dims.groups, dims.inputs, dims.outputs);
            draft.axis(Role::Row, dims.batch, input_strides[0], 0);
        } else {
            draft.axis(Role::Summand, dims.inputs, input_strides[0], kernel_strides[0]);
        }
        for (d, spatial) in dims.spatial.iter().enumerate() {
            let w = spatial.window;
            let stride = input_strides[d + 1];
            let kernel_stride = kernel_strides[if is_gradient { d + 1 } else { d }];
            let end = (spatial.output - 1) * w.stride + (w.size - 1) * w.window_dilation - w.padding_low;
            let is_inside = w.base_dilation == 1 && w.padding_low <= 0 && end < spatial.input;
            let linear = if w.base_dilation == 1 { stride } else { 0 };
            let output = draft.axis(Role::Row, spatial.output, w.stride * linear, 0);
            let tap = draft.axis(Role::Summand, w.size, w.window_dilation * linear, kernel_stride);
            draft.lhs_offset -= w.padding_low * linear;
            if !is_inside {
                draft.check(
                    vec![(output, w.stride), (tap, w.window_dilation)],
                    Check {
                        terms: Vec::new(),
                        offset: -w.padding_low,
                        dilation: w.base_dilation,
                        size: spatial.input,
                        stride: if w.base_dilation == 1 { 0 } else { stride },
                    },
                );
            }
        }
        if is_gradient {
            draft.axis(Role::Row, dims.batch, input_strides[last], 0);
            draft.axis(Role::Column, dims.outputs, 0, kernel_strides[last]);
            return draft.finish([0, dims.outputs, 1]);
        }
        draft.axis(Role::Summand, dims.inputs, 1, kernel_strides[last - 1]);
        draft.axis(Role::Column, dims.outputs, 0, 1);
        draft.finish([dims.outputs, dims.groups * dims.outputs, 1])
    }

    /// The number of products, rows, columns, or summands.
    pub fn extent(&self, role: Role) -> i64 {
        self.axes[role as usize].iter().fold(1, |n, &size| n.saturating_mul(size))
    }

    /// The same contraction with the operands, and rows and columns, exchanged.
    pub fn swapped(&self) -> Self {
        let swap = |operand: &OperandView| {
            let mut operand = operand.clone();
            operand.strides.swap(Role::Row as usize, Role::Column as usize);
            for (role, ..) in operand.checks.iter_mut().flat_map(|check| &mut check.terms) {
                *role = match *role {
                    Role::Row => Role::Column,
                    Role::Column => Role::Row,
                    other => other,
                };
            }
            operand
        };
        let mut axes = self.axes.clone();
        axes.swap(Role::Row as usize, Role::Column as usize);
        let [batch, row, column] = self.result;
        Self { axes, lhs: swap(&self.rhs), rhs: swap(&self.lhs), result: [batch, column, row] }
    }
}

impl OperandView {
    /// Upper bound of the elements that are neighbors in memory along the fastest axis of a role,
    /// start at a multiple of their number, and are inside or outside the array together: a power
    /// of two, at most `most`. The address of the array has to be a multiple of as many elements.
    pub fn run(&self, view: &ContractionView, role: Role, most: i64) -> i64 {
        let axes = &view.axes[role as usize];
        let Some(fastest) = axes.len().checked_sub(1) else { return 1 };
        let is_checked =
            |check: &Check| check.terms.iter().any(|&(of, number, _)| of == role && number == fastest);
        if self.strides[role as usize][fastest] != 1 || self.checks.iter().any(is_checked) {
            return 1;
        }
        let others = ROLES.iter().flat_map(|&of| {
            let strides = &self.strides[of as usize];
            let skips = usize::from(of == role);
            strides[..strides.len() - skips.min(strides.len())].iter().copied()
        });
        let steps = self.checks.iter().map(|check| check.stride);
        let common = others.chain(steps).chain([self.offset, axes[fastest], most]).fold(0, gcd);
        1 << common.trailing_zeros().min(6)
    }

    /// The stride of a role's fastest axis; 0 if the role has none.
    pub fn fastest(&self, role: Role) -> i64 {
        self.strides[role as usize].last().copied().unwrap_or(0)
    }
}

/// Axes that are not yet merged.
#[derive(Default)]
struct Draft {
    axes: Vec<Axis>,
    checks: Vec<(Vec<(usize, i64)>, Check)>,
    lhs_offset: i64,
}

struct Axis {
    role: Role,
    size: i64,
    lhs: i64,
    rhs: i64,
}

impl Draft {
    fn axis(&mut self, role: Role, size: i64, lhs: i64, rhs: i64) -> usize {
        self.axes.push(Axis { role, size, lhs, rhs });
        self.axes.len() - 1
    }

    /// Adds a check of the left operand.
    fn check(&mut self, terms: Vec<(usize, i64)>, check: Check) {
        self.checks.push((terms, check));
    }

    fn extent(&self, role: Role) -> i64 {
        let sizes = self.axes.iter().filter(|axis| axis.role == role).map(|axis| axis.size);
        sizes.fold(1, i64::saturating_mul)
    }

    /// Drops axes of size 1 and merges neighboring axes that are one stride apart in both operands.
    fn finish(self, result: [i64; 3]) -> ContractionView {
        let is_checked = |number: usize| {
            self.checks.iter().any(|(terms, _)| terms.iter().any(|&(axis, _)| axis == number))
        };
        let mut places: Vec<Option<(Role, usize)>> = vec![None; self.axes.len()];
        let mut view = ContractionView {
            axes: Default::default(),
            lhs: OperandView { offset: self.lhs_offset, ..OperandView::default() },
            rhs: OperandView::default(),
            result,
        };
        for role in ROLES {
            let r = role as usize;
            let mut merges = false;
            for (number, axis) in self.axes.iter().enumerate() {
                if axis.role != role || axis.size == 1 {
                    continue;
                }
                let is_apart = is_checked(number);
                let (lhs, rhs) = (view.lhs.strides[r].last(), view.rhs.strides[r].last());
                let follows = lhs == Some(&(axis.lhs * axis.size)) && rhs == Some(&(axis.rhs * axis.size));
                if merges && !is_apart && follows {
                    let last = view.axes[r].len() - 1;
                    view.axes[r][last] *= axis.size;
                    view.lhs.strides[r][last] = axis.lhs;
                    view.rhs.strides[r][last] = axis.rhs;
                } else {
                    places[number] = Some((role, view.axes[r].len()));
                    view.axes[r].push(axis.size);
                    view.lhs.strides[r].push(axis.lhs);
                    view.rhs.strides[r].push(axis.rhs);
                }
                merges = !is_apart;
            }
        }
        for (terms, check) in self.checks {
            let place = |(axis, factor): (usize, i64)| {
                places[axis].map(|(role, number): (Role, usize)| (role, number, factor))
            };
            view.lhs.checks.push(Check { terms: terms.into_iter().filter_map(place).collect(), ..check });
        }
        view
    }
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a.abs() } else { gcd(b, a % b) }
}
