//! Reductions, windows, sorting, and row patterns: softmax, normalization.

use super::Writer;
use super::elementwise::with_type;
use PrimitiveType::*;
use hlo::{
    ComparisonDirection, ComparisonType, ComputationBuilder, ComputationId, InstructionId, Op, Window,
    WindowDimension,
};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar, Shape};

fn compare(direction: ComparisonDirection) -> Op {
    Op::Compare { direction, comparison_type: ComparisonType::Default }
}

impl Writer<'_> {
    pub(super) fn reduce(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        let to_apply = self.combination(array.element_type);
        let initial = self.like(&ArrayShape::new(array.element_type, &[]));
        let dimensions = match self.draw.below(4) {
            0 if array.rank() > 0 => vec![array.rank() - 1],
            1 => (0..array.rank()).collect(),
            _ => self.draw.subset(array.rank()),
        };
        let first = self.add(Op::Reduce { dimensions, to_apply }, &[x, initial])?;
        if !self.draw.once_in(4) {
            return Some(first);
        }
        let dimensions = self.draw.subset(self.array(first).rank());
        self.add(Op::Reduce { dimensions, to_apply }, &[first, initial])
    }

    /// Adds a reduction to the largest or smallest element and its index. Takes only exact
    /// integers.
    pub(super) fn variadic_reduce(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        let whole = array.element_type.is_integer();
        if array.rank() == 0 || !self.is_exact(x) || !whole {
            return None;
        }
        let dimension = self.draw.below(array.rank());
        let indices = Op::Iota { iota_dimension: dimension };
        let indices = self.add_shaped(with_type(array, S32), indices, &[])?;
        let direction = self.draw.choose(&[ComparisonDirection::Gt, ComparisonDirection::Lt]);
        let to_apply = self.arg_region(array.element_type, direction);
        let worst = self.number(array.element_type);
        let none = self.constant(Literal::from_scalars(ArrayShape::new(S32, &[]), [Scalar::Signed(0)]));
        let dimensions = vec![dimension];
        self.add(Op::Reduce { dimensions, to_apply }, &[x, indices, worst, none])
    }

    /// Adds a region that returns the better of two values and its index, or the smaller index for
    /// equal values.
    fn arg_region(&mut self, element_type: PrimitiveType, direction: ComparisonDirection) -> ComputationId {
        let mut b = ComputationBuilder::new("better");
        let value = Shape::scalar(element_type);
        let index = Shape::scalar(S32);
        let (v, i) = (b.parameter("v", value.clone()), b.parameter("i", index.clone()));
        let (w, j) = (b.parameter("w", value), b.parameter("j", index));
        let module = &*self.module;
        let mut op = |op: Op, operands: &[InstructionId]| b.op(module, op, operands).expect("scalars");
        let better = op(compare(direction), &[v, w]);
        let equal = op(compare(ComparisonDirection::Eq), &[v, w]);
        let earlier = op(compare(ComparisonDirection::Lt), &[i, j]);
        let tie = op(Op::And {}, &[equal, earlier]);
        let first = op(Op::Or {}, &[better, tie]);
        let value = op(Op::Select {}, &[first, v, w]);
        let index = op(Op::Select {}, &[first, i, j]);
        let root = op(Op::Tuple {}, &[value, index]);
        self.module.add_computation(b.finish(root))
    }

    pub(super) fn window_dimension(&mut self, size: i64) -> WindowDimension {
        WindowDimension {
            size,
            stride: self.draw.choose(&[1, 1, 2, 3]),
            padding_low: self.draw.choose(&[0, 0, 1, 2, -1]),
            padding_high: self.draw.choose(&[0, 0, 1, 3, -1]),
            window_dilation: self.draw.choose(&[1, 1, 1, 2, 3]),
            base_dilation: self.draw.choose(&[1, 1, 1, 2]),
            window_reversal: false,
        }
    }

    fn window(&mut self, array: &ArrayShape) -> Window {
        let dimensions = array.sizes().into_iter().map(|size| match self.draw.below(4) {
            0 => WindowDimension::of_size(1),
            // A running total.
            1 if self.draw.once_in(3) => {
                let size = size.max(1);
                let padding_low = if self.draw.once_in(2) { size - 1 } else { 0 };
                WindowDimension { padding_low, ..WindowDimension::of_size(size) }
            }
            _ => {
                let size = self.draw.choose(&[1, 2, 2, 3, 3, 5]);
                if self.draw.once_in(2) {
                    WindowDimension { stride: self.draw.between(1, size), ..WindowDimension::of_size(size) }
                } else {
                    self.window_dimension(size)
                }
            }
        });
        Window { dimensions: dimensions.collect() }
    }

    pub(super) fn reduce_window(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        let to_apply = self.combination(array.element_type);
        let initial = self.like(&ArrayShape::new(array.element_type, &[]));
        let window = self.window(array);
        self.add(Op::ReduceWindow { window, to_apply }, &[x, initial])
    }

    /// Adds the gradient of a windowed maximum.
    pub(super) fn select_and_scatter(
        &mut self,
        x: InstructionId,
        array: &ArrayShape,
    ) -> Option<InstructionId> {
        let is_number = array.element_type.is_integer() || array.element_type.is_floating_point();
        if !self.is_exact(x) || !is_number || array.rank() == 0 {
            return None;
        }
        let dimensions = array.sizes().into_iter().map(|_| {
            let size = self.draw.choose(&[1, 1, 2, 3]);
            let stride = self.draw.choose(&[1, 2, size]);
            let padding = if size > 1 { self.draw.choose(&[0, 0, 1]) } else { 0 };
            WindowDimension {
                stride,
                padding_low: padding,
                padding_high: padding,
                ..WindowDimension::of_size(size)
            }
        });
        let window = Window { dimensions: dimensions.collect() };
        let mut source = array.sizes();
        for (size, w) in source.iter_mut().zip(&window.dimensions) {
            let padded = *size + w.padding_low + w.padding_high;
            *size = if padded < w.size { 0 } else { (padded - w.size) / w.stride + 1 };
        }
        let source = self.like(&ArrayShape::new(array.element_type, &source));
        let initial = self.like(&ArrayShape::new(array.element_type, &[]));
        let direction = self.draw.choose(&[ComparisonDirection::Ge, ComparisonDirection::Le]);
        let select = self.region(array.element_type, compare(direction));
        let scatter = self.region(array.element_type, Op::Add {});
        self.add(Op::SelectAndScatter { window, select, scatter }, &[x, source, initial])
    }

    /// Adds a sort of one or several arrays by the first, or the top elements of each row. Takes
    /// only exact values: the sign of a computed NaN is unspecified, and nearly equal elements may
    /// be in either order.
    pub(super) fn sort(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        if array.rank() == 0 || array.element_type.is_complex() || !self.is_exact(x) {
            return None;
        }
        let is_number = array.element_type.is_integer() || array.element_type.is_floating_point();
        if self.draw.once_in(3) && is_number {
            let k = self.draw.between(0, array.size(array.rank() - 1));
            let largest = !self.draw.once_in(3);
            return self.add(Op::TopK { k, largest }, &[x]);
        }
        let mut operands = vec![x];
        for _ in 0..self.draw.below(3) {
            let element_type = self.draw.element_type();
            operands.push(self.exact_like(&with_type(array, element_type)));
        }
        let mut builder = ComputationBuilder::new("order");
        let mut keys = Vec::new();
        for &operand in &operands {
            let shape = Shape::scalar(self.array(operand).element_type);
            keys.push(builder.parameter("a", shape.clone()));
            keys.push(builder.parameter("b", shape));
        }
        let direction = self.draw.choose(&[ComparisonDirection::Lt, ComparisonDirection::Gt]);
        let comparison_type = if array.element_type.is_floating_point() {
            ComparisonType::TotalOrder
        } else {
            ComparisonType::Default
        };
        let op = Op::Compare { direction, comparison_type };
        let root = builder.op(self.module, op, &keys[..2]).ok()?;
        let to_apply = self.module.add_computation(builder.finish(root));
        let dimension = self.draw.below(array.rank());
        self.add(Op::Sort { dimension, is_stable: true, to_apply }, &operands)
    }

    /// Adds an operation that models apply to rows: a softmax or a normalization, sometimes scaled.
    pub(super) fn rows(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        if array.rank() == 0 || !array.element_type.is_floating_point() {
            return None;
        }
        let last = array.rank() - 1;
        let to_rows: Vec<usize> = (0..last).collect();
        let zero = self.constant(float(array.element_type, 0.0));
        let low = self.constant(float(array.element_type, f64::NEG_INFINITY));
        let sum = self.region(array.element_type, Op::Add {});
        let max = self.region(array.element_type, Op::Maximum {});
        let reduce = |to_apply| Op::Reduce { dimensions: vec![last], to_apply };
        let back = || Op::Broadcast { dimensions: to_rows.clone() };
        if self.draw.once_in(2) {
            let most = self.add(reduce(max), &[x, low])?;
            let most = self.add_shaped(array.clone(), back(), &[most])?;
            let shifted = self.add(Op::Subtract {}, &[x, most])?;
            let powers = self.add(Op::Exp {}, &[shifted])?;
            let total = self.add(reduce(sum), &[powers, zero])?;
            let total = self.add_shaped(array.clone(), back(), &[total])?;
            return self.add(Op::Divide {}, &[powers, total]);
        }
        let count = self.constant(float(array.element_type, array.size(last).max(1) as f64));
        let total = self.add(reduce(sum), &[x, zero])?;
        let of_rows = self.array(total);
        let count = self.spread(count, &of_rows, Vec::new());
        let mean = self.add(Op::Divide {}, &[total, count])?;
        let mean = self.add_shaped(array.clone(), back(), &[mean])?;
        let centered = self.add(Op::Subtract {}, &[x, mean])?;
        let squares = self.add(Op::Multiply {}, &[centered, centered])?;
        let variance = self.add(reduce(sum), &[squares, zero])?;
        let one = self.constant(float(array.element_type, 1.0));
        let one = self.spread(one, &of_rows, Vec::new());
        let variance = self.add(Op::Add {}, &[variance, one])?;
        let scale = self.add(Op::Rsqrt {}, &[variance])?;
        let scale = self.add_shaped(array.clone(), back(), &[scale])?;
        self.add(Op::Multiply {}, &[centered, scale])
    }
}

pub(super) fn float(element_type: PrimitiveType, value: f64) -> Literal {
    Literal::from_scalars(ArrayShape::new(element_type, &[]), [Scalar::Float(value)])
}
