//! Random valid modules that depend only on the seed.

use hlo::{
    ComparisonDirection, ComparisonType, Computation, ComputationBuilder, ComputationId, DotDimensionNumbers,
    InstructionId, Module, Op, OpMetadata, PaddingConfig, PaddingDimension, SliceDimension,
};
use shape::{ArrayShape, Literal, PrimitiveType, Shape};

/// A random number generator: xorshift64*, by S. Vigna.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator from a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns the next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.bits() >> 16) as usize % limit.max(1)
    }

    /// Returns one of the choices.
    pub fn choose<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// A module under construction.
struct Generator {
    random: Random,
    module: Module,
    builder: ComputationBuilder,
    /// Arrays added so far.
    arrays: Vec<InstructionId>,
}

/// Generates a module of about `size` instructions that the verifier accepts.
pub fn module(seed: u64, size: usize) -> Module {
    let mut generator = Generator {
        random: Random::new(seed),
        module: Module::new(format!("random_{seed}")),
        builder: ComputationBuilder::new("main"),
        arrays: Vec::new(),
    };
    let parameters = 1 + generator.random.below(4);
    for number in 0..parameters {
        let shape = generator.shape();
        let id = generator.builder.parameter(&format!("p{number}"), shape);
        generator.arrays.push(id);
    }
    while generator.builder.computation().id_count() < size {
        generator.step();
    }
    generator.finish()
}

impl Generator {
    fn sizes(&mut self) -> Vec<i64> {
        let rank = self.random.below(4);
        (0..rank).map(|_| self.random.choose(&[0, 1, 2, 3, 5])).collect()
    }

    fn shape(&mut self) -> Shape {
        let element_type = self.random.choose(&PrimitiveType::ALL);
        Shape::array(element_type, &self.sizes())
    }

    fn any(&mut self) -> InstructionId {
        self.random.choose(&self.arrays)
    }

    fn array(&self, id: InstructionId) -> ArrayShape {
        self.builder.shape(id).expect_array().clone()
    }

    fn add(&mut self, op: Op, operands: &[InstructionId]) -> InstructionId {
        let id = self.builder.op(&self.module, op, operands).expect("operands that fit");
        self.keep(id)
    }

    fn add_shaped(&mut self, shape: Shape, op: Op, operands: &[InstructionId]) -> InstructionId {
        let id = self.builder.op_with_shape(&self.module, shape, op, operands).expect("operands that fit");
        self.keep(id)
    }

    fn keep(&mut self, id: InstructionId) -> InstructionId {
        if self.builder.shape(id).as_array().is_some() {
            self.arrays.push(id);
        }
        id
    }

    /// Adds a constant of random bytes, so that NaNs, infinities, and -0 occur.
    fn constant(&mut self, element_type: PrimitiveType, sizes: &[i64]) -> InstructionId {
        let shape = ArrayShape::new(element_type, sizes);
        let narrow = element_type.bit_width() < 8;
        let mut bytes: Vec<u8> = (0..shape.byte_size()).map(|_| self.random.bits() as u8).collect();
        if narrow {
            let shift = 8 - element_type.bit_width();
            let signed = element_type.is_signed_integer();
            let narrowed = |b: &u8| if signed { ((*b << shift) as i8 >> shift) as u8 } else { *b >> shift };
            bytes = bytes.iter().map(narrowed).collect();
        }
        let literal =
            Literal::from_bytes(shape, bytes.into()).expect("the number of bytes matches the shape");
        let id = self.builder.constant(literal);
        self.keep(id)
    }

    /// Adds a computation of two scalars.
    fn scalar_computation(&mut self, op: Op, element_type: PrimitiveType) -> ComputationId {
        let mut builder = ComputationBuilder::new("region");
        let x = builder.parameter("x", Shape::scalar(element_type));
        let y = builder.parameter("y", Shape::scalar(element_type));
        let root = builder.op(&self.module, op, &[x, y]).expect("scalars of one type");
        self.module.add_computation(builder.finish(root))
    }

    /// Adds one or several instructions.
    fn step(&mut self) {
        let x = self.any();
        let array = self.array(x);
        let rank = array.rank();
        if self.random.below(3) == 0 {
            let op_name = self.random.choose(&["dense/MatMul", "a\"b\\c", "é\n", ""]);
            let metadata =
                OpMetadata { op_type: "Op".into(), op_name: op_name.into(), ..OpMetadata::default() };
            self.builder.set_metadata(metadata);
        }
        match self.random.below(14) {
            0 => {
                let element_type = self.random.choose(&PrimitiveType::ALL);
                let sizes = self.sizes();
                self.constant(element_type, &sizes);
            }
            1 => self.elementwise(x, &array),
            2 => {
                let element_type = self.random.choose(&PrimitiveType::ALL);
                if !array.element_type.is_complex() || element_type.is_complex() {
                    self.add_shaped(array.with_element_type(element_type).into(), Op::Convert {}, &[x]);
                }
            }
            3 => {
                let mut dimensions: Vec<usize> = (0..rank).collect();
                if rank > 1 {
                    dimensions.rotate_left(self.random.below(rank));
                }
                self.add(Op::Transpose { dimensions }, &[x]);
            }
            4 => {
                let mut sizes = array.sizes();
                sizes.insert(self.random.below(rank + 1), 1);
                self.add_shaped(Shape::array(array.element_type, &sizes), Op::Reshape {}, &[x]);
            }
            5 => {
                let mut sizes = array.sizes();
                let at = self.random.below(rank + 1);
                sizes.insert(at, self.random.choose(&[1, 2, 4]));
                let dimensions = (0..=rank).filter(|&d| d != at).collect();
                self.add_shaped(Shape::array(array.element_type, &sizes), Op::Broadcast { dimensions }, &[x]);
            }
            6 => self.slice(x, &array),
            // XLA's text format cannot express the padding of a scalar.
            7 if rank > 0 => self.pad(x, &array),
            8 if rank > 0 => {
                let dimension = self.random.below(rank);
                self.add(Op::Concatenate { dimension }, &[x, x]);
            }
            9 if array.element_type != PrimitiveType::Pred => self.reduce(x, &array),
            10 if rank > 0 && !array.element_type.is_complex() => self.sort(x, &array),
            11 if rank > 0 => self.dot(x, &array),
            12 => {
                let y = self.any();
                let tuple = self.add(Op::Tuple {}, &[x, y]);
                let index = self.random.below(2);
                self.add(Op::GetTupleElement { index }, &[tuple]);
            }
            _ => {
                let sizes = [vec![3], array.sizes()].concat();
                self.add_shaped(
                    Shape::array(PrimitiveType::S32, &sizes),
                    Op::Iota { iota_dimension: 0 },
                    &[],
                );
            }
        }
    }

    fn slice(&mut self, x: InstructionId, array: &ArrayShape) {
        let slice = array.sizes().into_iter().map(|limit| {
            let start = self.random.below(limit as usize + 1) as i64;
            SliceDimension { start, limit, stride: self.random.choose(&[1, 2]) }
        });
        let slice = slice.collect();
        self.add(Op::Slice { slice }, &[x]);
    }

    fn pad(&mut self, x: InstructionId, array: &ArrayShape) {
        let rank = array.rank();
        let value = self.constant(array.element_type, &[]);
        let dimensions = (0..rank).map(|_| PaddingDimension {
            edge_padding_low: self.random.below(3) as i64,
            edge_padding_high: self.random.below(2) as i64,
            interior_padding: self.random.below(2) as i64,
        });
        let padding = PaddingConfig { dimensions: dimensions.collect() };
        self.add(Op::Pad { padding }, &[x, value]);
    }

    fn reduce(&mut self, x: InstructionId, array: &ArrayShape) {
        let rank = array.rank();
        let to_apply = self.scalar_computation(Op::Add {}, array.element_type);
        let initial = self.constant(array.element_type, &[]);
        let dimensions = (0..rank).filter(|_| self.random.below(2) == 0).collect();
        self.add(Op::Reduce { dimensions, to_apply }, &[x, initial]);
    }

    fn sort(&mut self, x: InstructionId, array: &ArrayShape) {
        let rank = array.rank();
        let direction = self.random.choose(&[ComparisonDirection::Lt, ComparisonDirection::Gt]);
        let compare = Op::Compare { direction, comparison_type: ComparisonType::Default };
        let to_apply = self.scalar_computation(compare, array.element_type);
        let dimension = self.random.below(rank);
        self.add(Op::Sort { dimension, is_stable: true, to_apply }, &[x]);
    }

    fn dot(&mut self, x: InstructionId, array: &ArrayShape) {
        let rank = array.rank();
        let numbers = DotDimensionNumbers {
            lhs_contracting_dims: vec![rank - 1],
            rhs_contracting_dims: vec![rank - 1],
            ..DotDimensionNumbers::default()
        };
        self.add(Op::Dot { dot_dimension_numbers: numbers }, &[x, x]);
    }

    fn elementwise(&mut self, x: InstructionId, array: &ArrayShape) {
        if array.element_type.is_floating_point() {
            let op = self.random.choose(&[0, 1, 2]);
            let op = [Op::Exp {}, Op::Floor {}, Op::ReducePrecision { exponent_bits: 5, mantissa_bits: 2 }]
                [op]
                .clone();
            self.add(op, &[x]);
        }
        let direction = self.random.choose(&[ComparisonDirection::Eq, ComparisonDirection::Ne]);
        let pred = self.add(Op::Compare { direction, comparison_type: ComparisonType::Default }, &[x, x]);
        let sum = self.add(Op::Add {}, &[x, x]);
        self.add(Op::Select {}, &[pred, x, sum]);
    }

    /// Makes the newest arrays the result.
    fn finish(mut self) -> Module {
        let count = self.arrays.len().min(3);
        let results = self.arrays.split_off(self.arrays.len() - count);
        let root = self.add(Op::Tuple {}, &results);
        let computation: Computation = self.builder.finish(root);
        let entry = self.module.add_computation(computation);
        self.module.set_entry(entry);
        self.module
    }
}
