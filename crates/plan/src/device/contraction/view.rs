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

/// Places of the elements of a contraction's matrices in memory.
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
        for (d, &stride) in lhs_strides.iter().enumerate() {
            if !numbers.lhs_batch_dims.contains(&d) && !numbers.lhs_contracting_dims.contains(&d) {
                draft.axis(Role::Row, lhs.size(d), stride, 0);
            }
        }
        for (d, &stride) in rhs_strides.iter().enumerate() {
            if !numbers.rhs_batch_dims.contains(&d) && !numbers.rhs_contracting_dims.contains(&d) {
                draft.axis(Role::Column, rhs.size(d), 0, stride);
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

#[cfg(test)]
mod tests {
    use super::*;
    use hlo::Op;
    use shape::PrimitiveType::F32;

    fn view(shapes: [&[i64]; 3], attributes: &str) -> ContractionView {
        let text = |sizes: &[i64]| {
            let sizes: Vec<String> = sizes.iter().map(ToString::to_string).collect();
            format!("f32[{}]", sizes.join(","))
        };
        let [lhs, rhs, result] = shapes.map(text);
        let name = if attributes.contains("window") { "convolution" } else { "dot" };
        let module = hlo::parse(&format!(
            "HloModule m\nENTRY main {{\n  x = {lhs} parameter(0)\n  k = {rhs} parameter(1)\n  \
             ROOT y = {result} {name}(x, k), {attributes}\n}}\n"
        ));
        let module = module.expect("a module");
        let entry = module.entry_computation();
        let op = entry[entry.root()].op();
        let [lhs, rhs, result] = shapes.map(|sizes| ArrayShape::new(F32, sizes));
        match op {
            Op::Dot { dot_dimension_numbers: numbers } => ContractionView::of_dot(&lhs, &rhs, numbers),
            _ => {
                let (form, dims) = ConvolutionDims::of(op, &lhs, &rhs, &result).expect("a form");
                ContractionView::of_convolution(form, &dims, &lhs, &rhs)
            }
        }
    }

    #[test]
    fn axes_of_dots_merge_where_both_operands_allow() {
        let v = view(
            [&[8, 16, 32, 4], &[32, 4, 10], &[8, 16, 10]],
            "lhs_contracting_dims={2,3}, rhs_contracting_dims={0,1}",
        );
        assert_eq!(v.axes, [vec![], vec![128], vec![10], vec![128]]);
        assert_eq!(v.lhs.strides, [vec![], vec![128], vec![0], vec![1]]);
        assert_eq!(v.rhs.strides, [vec![], vec![0], vec![1], vec![10]]);
        assert_eq!(v.result, [1280, 10, 1]);
        assert_eq!(v.lhs.run(&v, Role::Summand, 4), 4);
        assert_eq!(v.rhs.run(&v, Role::Column, 4), 2);
        assert_eq!(v.rhs.run(&v, Role::Summand, 4), 1);
    }

    #[test]
    fn windows_without_padding_need_no_checks() {
        let labels = "dim_labels=b01f_01io->b01f";
        let v =
            view([&[2, 8, 8, 4], &[3, 3, 4, 6], &[2, 6, 6, 6]], &format!("window={{size=3x3}}, {labels}"));
        assert_eq!(v.axes, [vec![], vec![2, 6, 6], vec![6], vec![3, 12]]);
        assert_eq!(v.lhs.strides[1], [256, 32, 4]);
        assert!(v.lhs.checks.is_empty());
        let v = view(
            [&[2, 8, 8, 4], &[3, 3, 4, 6], &[2, 8, 8, 6]],
            &format!("window={{size=3x3 pad=1_1x1_1}}, {labels}"),
        );
        assert_eq!(v.axes[3], [3, 3, 4]);
        assert_eq!((v.lhs.offset, v.lhs.checks.len()), (-36, 2));
        let terms = vec![(Role::Row, 1, 1), (Role::Summand, 0, 1)];
        assert_eq!(v.lhs.checks[0], Check { terms, offset: -1, dilation: 1, size: 8, stride: 0 });
        assert_eq!(v.lhs.run(&v, Role::Summand, 8), 4);
    }

    #[test]
    fn summands_of_a_gradient_are_pixels() {
        let v = view(
            [&[2, 8, 8, 4], &[2, 6, 6, 5], &[3, 3, 4, 5]],
            "window={size=6x6}, dim_labels=f01b_i01o->01bf",
        );
        assert_eq!(v.axes, [vec![], vec![3, 12], vec![5], vec![2, 6, 6]]);
        assert_eq!(v.lhs.strides[3], [256, 32, 4]);
        assert_eq!(v.rhs.strides[3], [180, 30, 5]);
    }
}
