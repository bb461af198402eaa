//! Random programs to be rewritten, compiled, and run. They are valid, small, rich in patterns that
//! passes transform, and depend only on the seed.
//!
//! Unlike the modules of [`generate`](crate::generate), which cover every syntax, these use few
//! types and sizes, so that values can be combined, and constants that are neutral elements of some
//! operation.

use crate::generate::Random;
use crate::oracle;
use PrimitiveType::*;
use hlo::{
    ComparisonDirection, ComparisonType, ComputationBuilder, ComputationId, ConvolutionDimensionNumbers,
    DotDimensionNumbers, GatherDimensionNumbers, InstructionId, Module, Op, PaddingConfig, PaddingDimension,
    SliceDimension, Window, WindowDimension,
};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar, Shape};

const TYPES: &[PrimitiveType] = &[F32, F32, F32, S32, S32, Pred, F64, Bf16, U8, S64, F16];
const SIZES: &[i64] = &[1, 2, 3, 3, 4, 0];

/// Generates a program of about `size` instructions that the verifier accepts.
pub fn program(seed: u64, size: usize) -> Module {
    let mut random = Random::new(seed);
    // The first numbers of adjacent seeds are similar.
    for _ in 0..4 {
        random.bits();
    }
    let mut module = Module::new(format!("program_{seed}"));
    let parameters: Vec<Shape> = (0..1 + random.below(4)).map(|_| random_shape(&mut random)).collect();
    let writer =
        Writer { random, module: &mut module, builder: ComputationBuilder::new("main"), arrays: Vec::new() };
    let computation = writer.write(&parameters, size, 2, None);
    let entry = module.add_computation(computation);
    module.set_entry(entry);
    module
}

fn random_shape(random: &mut Random) -> Shape {
    let element_type = random.choose(TYPES);
    let rank = random.below(4);
    let sizes: Vec<i64> = (0..rank).map(|_| random.choose(SIZES)).collect();
    Shape::array(element_type, &sizes)
}

/// A computation under construction.
struct Writer<'m> {
    random: Random,
    module: &'m mut Module,
    builder: ComputationBuilder,
    arrays: Vec<InstructionId>,
}

impl Writer<'_> {
    /// Writes `size` instructions. The result is a tuple of the newest values, or a value of the
    /// given shape.
    fn write(
        mut self,
        parameters: &[Shape],
        size: usize,
        depth: usize,
        result_shape: Option<&Shape>,
    ) -> hlo::Computation {
        for (number, shape) in parameters.iter().enumerate() {
            let id = self.builder.parameter(&format!("p{number}"), shape.clone());
            self.arrays.push(id);
        }
        while self.builder.computation().id_count() < size {
            let x = self.any();
            self.step(x, depth);
        }
        let root = match result_shape.and_then(Shape::as_array) {
            Some(array) => self.like(array),
            None => {
                let count = self.arrays.len().min(4);
                let results = self.arrays.split_off(self.arrays.len() - count);
                self.builder.op(self.module, Op::Tuple {}, &results).expect("a tuple accepts any operand")
            }
        };
        self.builder.finish(root)
    }

    /// Returns a value, usually one of the newest.
    fn any(&mut self) -> InstructionId {
        let count = self.arrays.len();
        let back = if self.random.below(3) == 0 {
            self.random.below(count)
        } else {
            self.random.below(count.min(5))
        };
        self.arrays[count - 1 - back]
    }

    fn array(&self, id: InstructionId) -> ArrayShape {
        self.builder.shape(id).expect_array().clone()
    }

    /// Adds an instruction unless the builder rejects it.
    fn add(&mut self, op: Op, operands: &[InstructionId]) -> Option<InstructionId> {
        let id = self.builder.op(self.module, op, operands).ok()?;
        self.keep(id)
    }

    fn add_shaped(&mut self, shape: ArrayShape, op: Op, operands: &[InstructionId]) -> Option<InstructionId> {
        let id = self.builder.op_with_shape(self.module, shape.into(), op, operands).ok()?;
        self.keep(id)
    }

    /// Registers arrays of moderate size.
    fn keep(&mut self, id: InstructionId) -> Option<InstructionId> {
        let is_small = self.builder.shape(id).as_array().is_some_and(|array| array.element_count() <= 400);
        is_small.then(|| self.arrays.push(id));
        is_small.then_some(id)
    }

    fn constant(&mut self, element_type: PrimitiveType) -> InstructionId {
        let neutral = match (self.random.below(6), element_type) {
            (0, t) if t.is_floating_point() => Scalar::Float(self.random.choose(&[0.0, -0.0])),
            (1, t) if t.is_floating_point() => Scalar::Float(self.random.choose(&[1.0, 2.0, 4.0, 0.125])),
            (2, t) if t.is_floating_point() => {
                Scalar::Float(self.random.choose(&[f64::NEG_INFINITY, f64::INFINITY]))
            }
            (0 | 1, t) if t.is_signed_integer() => Scalar::Signed(self.random.choose(&[0, 1, 2])),
            (0 | 1, t) if t.is_unsigned_integer() => Scalar::Unsigned(self.random.choose(&[0, 1, 2, 255])),
            _ => oracle::scalar(&mut self.random, element_type),
        };
        let literal = Literal::from_scalars(ArrayShape::new(element_type, &[]), [neutral]);
        self.builder.constant(literal)
    }

    /// Returns a value of this shape: an existing one, a constant, or the broadcast of a scalar.
    fn like(&mut self, shape: &ArrayShape) -> InstructionId {
        let fits: Vec<InstructionId> = self
            .arrays
            .iter()
            .copied()
            .filter(|&id| self.builder.shape(id).as_array() == Some(shape))
            .collect();
        if !fits.is_empty() && self.random.below(3) > 0 {
            return self.random.choose(&fits);
        }
        if self.random.below(4) == 0 {
            let literal = oracle::argument(&mut self.random, &shape.clone().into());
            return self.builder.constant(literal);
        }
        let scalars: Vec<InstructionId> = self
            .arrays
            .iter()
            .copied()
            .filter(|&id| {
                self.builder.shape(id).as_array() == Some(&ArrayShape::new(shape.element_type, &[]))
            })
            .collect();
        let scalar = match self.random.below(3) {
            0 if !scalars.is_empty() => self.random.choose(&scalars),
            _ => self.constant(shape.element_type),
        };
        if shape.rank() == 0 {
            return scalar;
        }
        let op = Op::Broadcast { dimensions: Vec::new() };
        self.builder
            .op_with_shape(self.module, shape.clone().into(), op, &[scalar])
            .expect("a scalar fits everywhere")
    }

    /// Adds a constant with equal elements.
    fn splat(&mut self, shape: &ArrayShape) -> InstructionId {
        let scalar = oracle::scalar(&mut self.random, shape.element_type);
        let scalars = (0..shape.element_count()).map(|_| scalar);
        self.builder.constant(Literal::from_scalars(shape.clone(), scalars))
    }

    fn region(&mut self, element_type: PrimitiveType) -> ComputationId {
        let pred = [Op::And {}, Op::Or {}];
        let others =
            [Op::Add {}, Op::Add {}, Op::Maximum {}, Op::Minimum {}, Op::Multiply {}, Op::Subtract {}];
        let ops: &[Op] = if element_type == Pred { &pred } else { &others };
        let op = ops[self.random.below(ops.len())].clone();
        let mut builder = ComputationBuilder::new("region");
        let x = builder.parameter("x", Shape::scalar(element_type));
        let y = builder.parameter("y", Shape::scalar(element_type));
        let root = builder.op(self.module, op, &[x, y]).expect("scalars of one type");
        self.module.add_computation(builder.finish(root))
    }

    /// Adds one or several instructions that read `x`.
    fn step(&mut self, x: InstructionId, depth: usize) -> Option<InstructionId> {
        let array = self.array(x);
        let rank = array.rank();
        match self.random.below(26) {
            0..=5 => self.binary(x, &array),
            6 | 7 => self.unary(x, &array),
            8 => self.reshape(x, &array),
            9 => self.broadcast(x, &array),
            10 => self.transpose(x, rank),
            11 => self.slice(x, &array),
            12 => self.pad(x, &array),
            13 => self.concatenate(x, &array),
            14 => self.reduce(x, &array),
            15 => self.dot(x, &array),
            16 => self.select(x, &array),
            17 => {
                let element_type = self.random.choose(TYPES);
                self.add_shaped(array.with_element_type(element_type), Op::Convert {}, &[x])
            }
            18 => {
                let dimensions = (0..rank).filter(|_| self.random.below(2) == 0).collect();
                self.add(Op::Reverse { dimensions }, &[x])
            }
            19 => self.dynamic_slice(x, &array),
            20 => self.gather(x, &array),
            21 => self.control_flow(x, &array, depth),
            23 => self.reduce_window(x, &array),
            24 => self.convolution(x, &array),
            22 => {
                let y = self.any();
                let tuple = self.builder.op(self.module, Op::Tuple {}, &[x, y]).ok()?;
                let index = self.random.below(2);
                self.add(Op::GetTupleElement { index }, &[tuple])
            }
            _ if rank > 0 && array.element_type != Pred => {
                let iota_dimension = self.random.below(rank);
                self.add_shaped(array, Op::Iota { iota_dimension }, &[])
            }
            _ => None,
        }
    }

    fn binary(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        use ComparisonDirection::*;
        let y = self.like(array);
        let operands = if self.random.below(2) == 0 { [x, y] } else { [y, x] };
        let direction = self.random.choose(&[Eq, Ne, Ge, Gt, Le, Lt]);
        let ops = [
            Op::Add {},
            Op::Subtract {},
            Op::Multiply {},
            Op::Divide {},
            Op::Maximum {},
            Op::Minimum {},
            Op::And {},
            Op::Or {},
            Op::Power {},
            Op::Compare { direction, comparison_type: ComparisonType::Default },
        ];
        let op = ops[self.random.below(ops.len())].clone();
        let is_logical = matches!(op, Op::And {} | Op::Or {});
        // The power of doubles is only accurate to a unit in the last place, whereas the product
        // that replaces it is exact.
        let is_inexact = matches!(op, Op::Power {}) && array.element_type == F64;
        if is_inexact || (is_logical && array.element_type.is_floating_point()) {
            return None;
        }
        self.add(op, &operands)
    }

    fn unary(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        if matches!(array.element_type, Pred) || array.element_type.is_integer() {
            let op = if self.random.below(2) == 0 || array.element_type == Pred {
                Op::Not {}
            } else {
                Op::Negate {}
            };
            return self.add(op, &[x]);
        }
        let ops = [
            Op::Negate {},
            Op::Negate {},
            Op::Abs {},
            Op::Floor {},
            Op::Exp {},
            Op::Copy {},
            Op::IsFinite {},
        ];
        let op = ops[self.random.below(ops.len())].clone();
        self.add(op, &[x])
    }

    /// Adds, drops, or merges dimensions.
    fn reshape(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        let mut sizes = array.sizes();
        match self.random.below(4) {
            0 => sizes.insert(self.random.below(sizes.len() + 1), 1),
            1 => sizes.retain(|&size| size != 1),
            2 if sizes.len() > 1 => {
                let last = sizes.pop()?;
                *sizes.last_mut()? *= last;
            }
            _ => sizes.reverse(),
        }
        self.add_shaped(ArrayShape::new(array.element_type, &sizes), Op::Reshape {}, &[x])
    }

    fn broadcast(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        let x = match self.random.below(8) {
            0 if array.element_count() > 0 => self.splat(array),
            _ => x,
        };
        let mut sizes = array.sizes();
        let mut dimensions: Vec<usize> = (0..sizes.len()).collect();
        for _ in 0..1 + self.random.below(2) {
            let at = self.random.below(sizes.len() + 1);
            sizes.insert(at, self.random.choose(SIZES));
            dimensions.iter_mut().filter(|d| **d >= at).for_each(|d| *d += 1);
        }
        self.add_shaped(ArrayShape::new(array.element_type, &sizes), Op::Broadcast { dimensions }, &[x])
    }

    fn transpose(&mut self, x: InstructionId, rank: usize) -> Option<InstructionId> {
        let mut dimensions: Vec<usize> = (0..rank).collect();
        (0..rank).for_each(|d| dimensions.swap(d, self.random.below(rank)));
        self.add(Op::Transpose { dimensions }, &[x])
    }

    fn slice(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        let slice = array.sizes().into_iter().map(|size| {
            let start = self.random.below(size as usize + 1) as i64;
            let limit = start + self.random.below((size - start) as usize + 1) as i64;
            match self.random.below(3) {
                0 => SliceDimension { start: 0, limit: size, stride: 1 },
                _ => SliceDimension { start, limit, stride: self.random.choose(&[1, 1, 2, 3]) },
            }
        });
        let slice = slice.collect();
        self.add(Op::Slice { slice }, &[x])
    }

    fn pad(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        let value = self.like(&ArrayShape::new(array.element_type, &[]));
        let dimensions = (0..array.rank()).map(|_| PaddingDimension {
            edge_padding_low: self.random.choose(&[0, 0, 1, -1, 2]),
            edge_padding_high: self.random.choose(&[0, 0, 1, -1]),
            interior_padding: self.random.choose(&[0, 0, 0, 1]),
        });
        let padding = PaddingConfig { dimensions: dimensions.collect() };
        self.add(Op::Pad { padding }, &[x, value])
    }

    /// Concatenates two values of the same shape, or two slices that may be adjacent.
    fn concatenate(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        if array.rank() == 0 {
            return None;
        }
        let dimension = self.random.below(array.rank());
        if self.random.below(2) == 0 {
            let y = self.like(array);
            return self.add(Op::Concatenate { dimension }, &[x, y]);
        }
        let cut = self.random.below(array.size(dimension) as usize + 1) as i64;
        let part = |from: i64, to: i64| {
            let mut slice: Vec<SliceDimension> =
                array.sizes().iter().map(|&limit| SliceDimension { start: 0, limit, stride: 1 }).collect();
            slice[dimension] = SliceDimension { start: from, limit: to, stride: 1 };
            Op::Slice { slice }
        };
        let low = self.add(part(0, cut), &[x])?;
        let high = self.add(part(cut, array.size(dimension)), &[x])?;
        let operands = if self.random.below(3) == 0 { [high, low] } else { [low, high] };
        self.add(Op::Concatenate { dimension }, &operands)
    }

    fn reduce(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        let to_apply = self.region(array.element_type);
        let initial = self.like(&ArrayShape::new(array.element_type, &[]));
        let dimensions = (0..array.rank()).filter(|_| self.random.below(2) == 0).collect();
        let first = self.add(Op::Reduce { dimensions, to_apply }, &[x, initial])?;
        if self.random.below(2) == 0 {
            return Some(first);
        }
        let dimensions = (0..self.array(first).rank()).filter(|_| self.random.below(2) == 0).collect();
        self.add(Op::Reduce { dimensions, to_apply }, &[first, initial])
    }

    fn window_dimension(&mut self, size: i64) -> WindowDimension {
        WindowDimension {
            size,
            stride: self.random.choose(&[1, 1, 2]),
            padding_low: self.random.choose(&[0, 0, 1, 2, -1]),
            padding_high: self.random.choose(&[0, 0, 1, -1]),
            window_dilation: self.random.choose(&[1, 1, 1, 2]),
            base_dilation: self.random.choose(&[1, 1, 1, 2]),
            window_reversal: false,
        }
    }

    /// Adds a window reduction, sometimes of a padded array.
    fn reduce_window(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        let padded = if self.random.below(3) == 0 { self.pad(x, array) } else { None };
        let operand = padded.unwrap_or(x);
        let shape = self.array(operand);
        let to_apply = self.region(shape.element_type);
        let initial = self.like(&ArrayShape::new(shape.element_type, &[]));
        let dimensions = shape.sizes().into_iter().map(|input| match self.random.below(3) {
            0 => WindowDimension::of_size(1),
            1 => WindowDimension::of_size(input.max(1)),
            _ => {
                let size = self.random.choose(&[1, 2, 3]);
                self.window_dimension(size)
            }
        });
        let window = Window { dimensions: dimensions.collect() };
        self.add(Op::ReduceWindow { window, to_apply }, &[operand, initial])
    }

    /// Adds a convolution with dimensions in any order, sometimes of a padded array, sometimes
    /// transposed and followed by other instructions.
    fn convolution(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        if array.rank() < 2 || array.element_type == Pred {
            return None;
        }
        let padded = if self.random.below(3) == 0 { self.pad(x, array) } else { None };
        let x = padded.unwrap_or(x);
        let input = self.array(x);
        let rank = input.rank();
        let [input_order, kernel_order, output_order] = [0; 3].map(|_| {
            let mut order: Vec<usize> = (0..rank).collect();
            if self.random.below(2) == 0 {
                (0..rank).for_each(|d| order.swap(d, self.random.below(rank)));
            }
            order
        });
        // Canonical order: batch, spatial dimensions, features. The kernel's features are last.
        let (groups, features) = (self.random.choose(&[1, 1, 2]), input.size(input_order[rank - 1]));
        let groups_features = self.random.below(2) == 0;
        let mut sizes = vec![0; rank];
        let mut dimensions = Vec::new();
        for &d in &kernel_order[..rank - 2] {
            sizes[d] = self.random.choose(&[1, 1, 2, 3]);
            let reversal = self.random.below(4) == 0;
            dimensions.push(WindowDimension { window_reversal: reversal, ..self.window_dimension(sizes[d]) });
        }
        sizes[kernel_order[rank - 2]] = if groups_features { features / groups } else { features };
        sizes[kernel_order[rank - 1]] = groups * self.random.choose(&[1, 2, 3]);
        let kernel = ArrayShape::new(input.element_type, &sizes);
        let kernel = match self.random.below(2) {
            0 if input.element_type.is_floating_point() => {
                let numbers =
                    (0..kernel.element_count()).map(|_| Scalar::Float(self.random.below(9) as f64 - 4.0));
                let literal = Literal::from_scalars(kernel, numbers.collect::<Vec<_>>());
                self.builder.constant(literal)
            }
            _ => self.like(&kernel),
        };
        let dim_labels = ConvolutionDimensionNumbers {
            input_batch_dimension: input_order[0],
            input_feature_dimension: input_order[rank - 1],
            input_spatial_dimensions: input_order[1..rank - 1].to_vec(),
            kernel_input_feature_dimension: kernel_order[rank - 2],
            kernel_output_feature_dimension: kernel_order[rank - 1],
            kernel_spatial_dimensions: kernel_order[..rank - 2].to_vec(),
            output_batch_dimension: output_order[0],
            output_feature_dimension: output_order[rank - 1],
            output_spatial_dimensions: output_order[1..rank - 1].to_vec(),
        };
        let [feature_group_count, batch_group_count] =
            if groups_features { [groups, 1] } else { [1, groups] };
        let window = Window { dimensions };
        let op = Op::Convolution { window, dim_labels, feature_group_count, batch_group_count };
        let convolution = self.add(op, &[x, kernel])?;
        let shape = self.array(convolution);
        let result = if self.random.below(2) == 0 { self.transpose(convolution, rank) } else { None };
        let result = result.unwrap_or(convolution);
        match self.random.below(4) {
            0 => self.pad(result, &self.array(result)),
            1 => self.reduce(result, &self.array(result)),
            2 if shape.element_type.is_floating_point() => self.unary(result, &self.array(result)),
            _ => self.binary(result, &self.array(result)),
        }
    }

    fn dot(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        if array.rank() == 0 || array.element_type == Pred {
            return None;
        }
        let contracting = self.random.below(array.rank());
        let y = self.any();
        let other = self.array(y);
        let fits =
            |d: &usize| other.element_type == array.element_type && other.size(*d) == array.size(contracting);
        let (y, rhs) = match (0..other.rank()).find(fits) {
            Some(d) => (y, d),
            None => (x, contracting),
        };
        let numbers = DotDimensionNumbers {
            lhs_contracting_dims: vec![contracting],
            rhs_contracting_dims: vec![rhs],
            ..DotDimensionNumbers::default()
        };
        let dot = self.add(Op::Dot { dot_dimension_numbers: numbers }, &[x, y])?;
        match self.random.below(3) {
            0 => self.transpose(dot, self.array(dot).rank()),
            _ => Some(dot),
        }
    }

    fn select(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        let predicate = self.like(&array.with_element_type(Pred));
        let y = self.like(array);
        let operands = if self.random.below(2) == 0 { [predicate, x, y] } else { [predicate, y, x] };
        self.add(Op::Select {}, &operands)
    }

    fn dynamic_slice(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        let sizes: Vec<i64> =
            array.sizes().iter().map(|&s| self.random.below(s as usize + 1) as i64).collect();
        let mut operands = vec![x];
        operands.extend((0..array.rank()).map(|_| self.like(&ArrayShape::new(S32, &[]))));
        let slice = self.add(Op::DynamicSlice { dynamic_slice_sizes: sizes }, &operands)?;
        if self.random.below(2) == 0 {
            return Some(slice);
        }
        operands.insert(1, slice);
        self.add(Op::DynamicUpdateSlice {}, &operands)
    }

    /// Gathers rows of `x`.
    fn gather(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        if array.rank() == 0 || array.size(0) == 0 {
            return None;
        }
        let rows = self.random.choose(&[1, 1, 2]);
        let indices = self.like(&ArrayShape::new(S32, &[rows]));
        let mut slice_sizes = array.sizes();
        slice_sizes[0] = 1;
        let numbers = GatherDimensionNumbers {
            offset_dims: (1..array.rank()).collect(),
            collapsed_slice_dims: vec![0],
            start_index_map: vec![0],
            index_vector_dim: 1,
            ..GatherDimensionNumbers::default()
        };
        let op = Op::Gather { gather_dimension_numbers: numbers, slice_sizes, indices_are_sorted: false };
        self.add(op, &[x, indices])
    }

    /// Adds a call, or a conditional with two branches, on `x`.
    fn control_flow(&mut self, x: InstructionId, array: &ArrayShape, depth: usize) -> Option<InstructionId> {
        if depth == 0 {
            return None;
        }
        let shape = Shape::from(array.clone());
        if self.random.below(2) == 0 {
            let to_apply = self.branch(&shape, depth);
            return self.add(Op::Call { to_apply }, &[x]);
        }
        let predicate = self.like(&ArrayShape::new(Pred, &[]));
        let branch_computations = vec![self.branch(&shape, depth), self.branch(&shape, depth)];
        let y = self.like(array);
        self.add(Op::Conditional { branch_computations }, &[predicate, x, y])
    }

    /// Adds a computation from one value to another of the same shape.
    fn branch(&mut self, shape: &Shape, depth: usize) -> ComputationId {
        let random = Random::new(self.random.bits());
        let builder = ComputationBuilder::new("branch");
        let writer = Writer { random, module: &mut *self.module, builder, arrays: Vec::new() };
        let computation = writer.write(std::slice::from_ref(shape), 8, depth - 1, Some(shape));
        self.module.add_computation(computation)
    }
}
