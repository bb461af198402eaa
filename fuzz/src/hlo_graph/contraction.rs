//! Dots and convolutions, and the instructions that often follow them.

use super::Writer;
use super::elementwise::with_type;
use hlo::{ConvolutionDimensionNumbers, DotDimensionNumbers, InstructionId, Op, Window, WindowDimension};
use shape::{ArrayShape, PrimitiveType};

/// Sizes of the other operand's free dimensions.
const FREE: &[i64] = &[1, 2, 3, 4, 7, 8, 15, 16, 17, 33, 64];

impl Writer<'_> {
    /// Adds a dot with arbitrary contracting and batch dimensions, and the other operand's
    /// dimensions in any order.
    pub(super) fn dot(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        if array.rank() == 0 || array.element_type == PrimitiveType::Pred {
            return None;
        }
        let mut numbers = DotDimensionNumbers::default();
        let mut sizes = Vec::new();
        for d in self.draw.permutation(array.rank()) {
            match self.draw.below(4) {
                0 | 1 if numbers.lhs_contracting_dims.is_empty() || self.draw.once_in(3) => {
                    numbers.lhs_contracting_dims.push(d);
                }
                2 if self.draw.once_in(2) => numbers.lhs_batch_dims.push(d),
                _ => {}
            }
        }
        sizes.extend(
            numbers.lhs_contracting_dims.iter().chain(&numbers.lhs_batch_dims).map(|&d| array.size(d)),
        );
        for _ in 0..self.draw.choose(&[0, 1, 1, 1, 2]) {
            sizes.push(self.draw.choose(FREE));
        }
        let order = self.draw.permutation(sizes.len());
        let place = |k: usize| order.iter().position(|&o| o == k).expect("a permutation");
        let contracting = numbers.lhs_contracting_dims.len();
        numbers.rhs_contracting_dims = (0..contracting).map(place).collect();
        let batches = numbers.lhs_batch_dims.len();
        numbers.rhs_batch_dims = (contracting..contracting + batches).map(place).collect();
        let sizes: Vec<i64> = order.iter().map(|&o| sizes[o]).collect();
        let rhs = ArrayShape::new(array.element_type, &sizes);
        if rhs.element_count() > self.most {
            return None;
        }
        let y = self.like(&rhs);
        if self.draw.once_in(3) {
            std::mem::swap(&mut numbers.lhs_contracting_dims, &mut numbers.rhs_contracting_dims);
            std::mem::swap(&mut numbers.lhs_batch_dims, &mut numbers.rhs_batch_dims);
            let dot = self.sum(Op::Dot { dot_dimension_numbers: numbers }, &[y, x])?;
            return self.follow(dot);
        }
        let dot = self.sum(Op::Dot { dot_dimension_numbers: numbers }, &[x, y])?;
        self.follow(dot)
    }

    /// Adds a matrix product with as many terms per sum as possible, and with either operand
    /// transposed.
    pub(super) fn long_dot(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        let count = array.element_count();
        if count < 64 || array.element_type == PrimitiveType::Pred {
            return None;
        }
        let rows: Vec<i64> = [1, 1, 2, 3, 4, 5, 6, 8].into_iter().filter(|rows| count % rows == 0).collect();
        let rows = self.draw.choose(&rows);
        let depth = count / rows;
        let fits: Vec<i64> =
            [1, 2, 3, 4, 8, 16, 17].into_iter().filter(|columns| depth * columns <= self.most).collect();
        let columns = if fits.is_empty() { return None } else { self.draw.choose(&fits) };
        let [mut lhs, mut rhs] = [[rows, depth], [depth, columns]];
        let [lhs_turns, rhs_turns] = [(); 2].map(|()| self.draw.once_in(3));
        lhs_turns.then(|| lhs.reverse());
        rhs_turns.then(|| rhs.reverse());
        let lhs = self.add_shaped(ArrayShape::new(array.element_type, &lhs), Op::Reshape {}, &[x])?;
        let rhs = self.like(&ArrayShape::new(array.element_type, &rhs));
        let dot_dimension_numbers = DotDimensionNumbers {
            lhs_contracting_dims: vec![usize::from(!lhs_turns)],
            rhs_contracting_dims: vec![usize::from(rhs_turns)],
            ..DotDimensionNumbers::default()
        };
        let dot = self.sum(Op::Dot { dot_dimension_numbers }, &[lhs, rhs])?;
        self.follow(dot)
    }

    /// Adds a contraction, sometimes with sums of a wider type than the operands'.
    fn sum(&mut self, op: Op, operands: &[InstructionId]) -> Option<InstructionId> {
        use PrimitiveType::*;
        let sum = self.add(op.clone(), operands)?;
        let array = self.array(sum);
        let wider = match array.element_type {
            Bf16 | F16 | F8e5m2 | F8e4m3fn => F32,
            F32 => F64,
            S4 | S8 | S16 => S32,
            U4 | U8 | U16 => U32,
            _ => return Some(sum),
        };
        if self.draw.once_in(3) { self.add_shaped(with_type(&array, wider), op, operands) } else { Some(sum) }
    }

    /// Adds a bias, an activation, a transpose, or nothing.
    fn follow(&mut self, x: InstructionId) -> Option<InstructionId> {
        let array = self.array(x);
        match self.draw.below(5) {
            0 => self.transpose(x),
            1 if array.rank() > 0 => {
                let last = array.rank() - 1;
                let bias = self.like(&ArrayShape::new(array.element_type, &[array.size(last)]));
                let bias = self.spread(bias, &array, vec![last]);
                let sum = self.add(Op::Add {}, &[x, bias])?;
                self.unary(sum, &array)
            }
            2 => self.binary(x, &array),
            3 => self.reduce(x, &array),
            _ => Some(x),
        }
    }

    /// Adds a convolution with dimensions in any order, strides, dilations, possibly negative
    /// padding, reversal, and groups.
    pub(super) fn convolution(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        let rank = array.rank();
        if !(2..=5).contains(&rank) || array.element_type == PrimitiveType::Pred {
            return None;
        }
        let plain = self.draw.once_in(2);
        let [of_input, of_kernel, of_output] =
            [0; 3].map(|_| if plain { (0..rank).collect() } else { self.draw.permutation(rank) });
        let features = array.size(of_input[rank - 1]);
        let batch = array.size(of_input[0]);
        let divides = |size: i64| move |g: &&i64| size > 0 && size % **g == 0;
        let of_features = self.draw.once_in(2);
        let choices: Vec<i64> = if of_features {
            [1, 1, 2, 3, features].iter().filter(divides(features)).copied().collect()
        } else {
            [1, 1, 1, 2, 3].iter().filter(divides(batch)).copied().collect()
        };
        let groups = if choices.is_empty() { 1 } else { self.draw.choose(&choices) };
        let mut sizes = vec![0; rank];
        let mut dimensions = Vec::new();
        let three = self.draw.once_in(3);
        for &d in &of_kernel[..rank - 2] {
            sizes[d] = if three { 3 } else { self.draw.choose(&[1, 1, 2, 3, 3, 5]) };
            dimensions.push(self.tap(sizes[d], three));
        }
        sizes[of_kernel[rank - 2]] = if of_features { features / groups } else { features };
        let outputs =
            if groups > 4 { self.draw.choose(&[1, 2]) } else { self.draw.choose(&[1, 2, 3, 8, 16, 17]) };
        sizes[of_kernel[rank - 1]] = groups * outputs;
        let kernel = ArrayShape::new(array.element_type, &sizes);
        if kernel.element_count() > self.most {
            return None;
        }
        let kernel = self.like(&kernel);
        let dim_labels = ConvolutionDimensionNumbers {
            input_batch_dimension: of_input[0],
            input_feature_dimension: of_input[rank - 1],
            input_spatial_dimensions: of_input[1..rank - 1].to_vec(),
            kernel_input_feature_dimension: of_kernel[rank - 2],
            kernel_output_feature_dimension: of_kernel[rank - 1],
            kernel_spatial_dimensions: of_kernel[..rank - 2].to_vec(),
            output_batch_dimension: of_output[0],
            output_feature_dimension: of_output[rank - 1],
            output_spatial_dimensions: of_output[1..rank - 1].to_vec(),
        };
        let [feature_group_count, batch_group_count] = if of_features { [groups, 1] } else { [1, groups] };
        let window = Window { dimensions };
        let op = Op::Convolution { window, dim_labels, feature_group_count, batch_group_count };
        let convolution = self.sum(op, &[x, kernel])?;
        self.follow(convolution)
    }

    fn tap(&mut self, size: i64, plain: bool) -> WindowDimension {
        if plain || self.draw.once_in(3) {
            let padding = if self.draw.once_in(2) { size / 2 } else { 0 };
            return WindowDimension {
                padding_low: padding,
                padding_high: padding,
                ..WindowDimension::of_size(size)
            };
        }
        let window_reversal = self.draw.once_in(4);
        WindowDimension { window_reversal, ..self.window_dimension(size) }
    }
}
