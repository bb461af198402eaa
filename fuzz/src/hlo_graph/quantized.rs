//! Random quantized models: layers of bytes with sums in `s32`, scaled back to bytes by the
//! fixed-point arithmetic of TensorFlow Lite or by a factor in `f32`.
//!
//! The first arithmetic is exact. The second is rounded once for each operation, so its bytes are
//! exact, too, unless a pass may change the rounding; they count as inexact.

use super::elementwise::with_type;
use super::{Writer, alias};
use crate::draw::Draw;
use PrimitiveType::*;
use hlo::{
    ConvolutionDimensionNumbers, DotDimensionNumbers, InstructionId, Module, Op, Window, WindowDimension,
};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};

/// Numbers of features: parts of a group of four bytes, parts of a vector, and several vectors.
const FEATURES: &[i64] = &[1, 3, 4, 6, 8, 16, 17, 24, 32, 40, 64];

/// Maximum number of elements of a value.
const MOST: i64 = 60_000;

/// Generates a module of at most `layers` quantized layers.
pub fn quantized_module(seed: u64, layers: usize) -> Module {
    let mut draw = Draw::new(seed);
    let mut module = Module::new(format!("quantized_{seed}"));
    let image = image(&mut draw);
    let mut writer = Writer::new(&mut module, draw, "main", MOST);
    for number in 0..2 {
        let x = writer.builder.parameter(&format!("p{number}"), image.clone().into());
        writer.keep(x, true);
    }
    for _ in 0..layers {
        let x = writer.any();
        let array = writer.array(x);
        if matches!(array.element_type, S8 | U8) && array.rank() > 1 {
            writer.layer(x, &array);
        }
    }
    let (results, mut draw) = (writer.results(), writer.draw.fork());
    let root = writer.builder.op(writer.module, Op::Tuple {}, &results).expect("a tuple accepts any operand");
    let computation = writer.builder.finish(root);
    let entry = module.add_computation(computation);
    module.set_entry(entry);
    alias(&mut module, &mut draw);
    module
}

/// The type and sizes of an argument: rows of features, or images of rows of pixels of features.
fn image(draw: &mut Draw) -> ArrayShape {
    let element_type = draw.choose(&[S8, S8, S8, U8]);
    let features = draw.choose(FEATURES);
    if draw.once_in(3) {
        return ArrayShape::new(element_type, &[draw.choose(&[1, 2, 3, 5, 8, 13, 40]), features]);
    }
    let [height, width] = [(); 2].map(|()| draw.choose(&[1, 2, 5, 7, 8, 14, 17]));
    ArrayShape::new(element_type, &[draw.choose(&[1, 1, 1, 2]), height, width, features])
}

impl Writer<'_> {
    /// Adds a layer that reads and returns bytes.
    fn layer(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        let is_image = array.rank() == 4;
        match self.draw.below(8) {
            0..=2 if is_image => self.byte_convolution(x, array, false),
            3 | 4 if is_image => self.byte_convolution(x, array, true),
            5 if is_image => self.byte_window(x, array),
            0..=4 => self.byte_dot(x, array),
            _ => self.byte_sum(x, array),
        }
    }

    fn byte_dot(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        let depth = array.size(array.rank() - 1);
        let outputs = self.draw.choose(FEATURES);
        let is_turned = self.draw.once_in(2);
        let sizes = if is_turned { [outputs, depth] } else { [depth, outputs] };
        let numbers = DotDimensionNumbers {
            lhs_contracting_dims: vec![array.rank() - 1],
            rhs_contracting_dims: vec![usize::from(is_turned)],
            ..DotDimensionNumbers::default()
        };
        self.contraction(Op::Dot { dot_dimension_numbers: numbers }, x, array, &sizes)
    }

    fn byte_convolution(
        &mut self,
        x: InstructionId,
        array: &ArrayShape,
        is_depthwise: bool,
    ) -> Option<InstructionId> {
        let features = array.size(3);
        let mut taps = [0; 2];
        let mut dimensions = Vec::new();
        for (d, tap) in taps.iter_mut().enumerate() {
            *tap = self.draw.choose(&[1, 1, 2, 3, 3, 3, 5, 7]).min(array.size(d + 1));
            let padding = if self.draw.once_in(3) { 0 } else { *tap / 2 };
            dimensions.push(WindowDimension {
                padding_low: padding,
                padding_high: if self.draw.once_in(4) { 0 } else { padding },
                stride: self.draw.choose(&[1, 1, 2]),
                window_dilation: self.draw.choose(&[1, 1, 1, 2]).min(if *tap > 1 { 2 } else { 1 }),
                ..WindowDimension::of_size(*tap)
            });
        }
        let outputs =
            if is_depthwise { features * self.draw.choose(&[1, 1, 2]) } else { self.draw.choose(FEATURES) };
        let groups = if is_depthwise { features } else { 1 };
        let op = Op::Convolution {
            window: Window { dimensions },
            dim_labels: ConvolutionDimensionNumbers {
                input_batch_dimension: 0,
                input_feature_dimension: 3,
                input_spatial_dimensions: vec![1, 2],
                kernel_input_feature_dimension: 2,
                kernel_output_feature_dimension: 3,
                kernel_spatial_dimensions: vec![0, 1],
                output_batch_dimension: 0,
                output_feature_dimension: 3,
                output_spatial_dimensions: vec![1, 2],
            },
            feature_group_count: groups,
            batch_group_count: 1,
        };
        self.contraction(op, x, array, &[taps[0], taps[1], features / groups, outputs])
    }

    /// Adds a contraction of widened bytes and constant weights, a bias, and the scaling.
    fn contraction(
        &mut self,
        op: Op,
        x: InstructionId,
        array: &ArrayShape,
        weights: &[i64],
    ) -> Option<InstructionId> {
        let x = if self.draw.once_in(5) { x } else { self.widened(x, array)? };
        let element_type = self.array(x).element_type;
        let weights = ArrayShape::new(if element_type == U8 { U8 } else { S8 }, weights);
        let literal = self.bytes(&weights);
        let w = self.constant(literal);
        let w = if element_type == S32 {
            self.add_shaped(with_type(&weights, S32), Op::Convert {}, &[w])?
        } else {
            w
        };
        let sum = self.builder.op(self.module, op.clone(), &[x, w]).ok()?;
        let shape = with_type(&self.array(sum), S32);
        let sum = self.add_shaped(shape.clone(), op, &[x, w])?;
        let features = shape.rank() - 1;
        let bias = self.numbers(S32, shape.size(features), |draw| Scalar::Signed(draw.between(-3000, 3000)));
        let bias = self.spread(bias, &shape, vec![features]);
        let sum = if self.draw.once_in(4) { sum } else { self.add(Op::Add {}, &[sum, bias])? };
        self.scaled(sum, array.element_type, 9)
    }

    /// Adds the sum of two arrays of bytes, or their product, each less its zero point.
    fn byte_sum(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        let y = self.exact_like(array);
        let [x, y] = [self.widened(x, array)?, self.widened(y, array)?];
        let op = if self.draw.once_in(3) { Op::Multiply {} } else { Op::Add {} };
        let bits = if matches!(op, Op::Add {}) { 0 } else { 6 };
        let sum = self.add(op, &[x, y])?;
        self.scaled(sum, array.element_type, bits)
    }

    /// Adds the largest number of each window, or the average.
    fn byte_window(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        let element_type = array.element_type;
        let [height, width] = [1, 2].map(|d| self.draw.choose(&[2, 3]).min(array.size(d)));
        let stride = self.draw.choose(&[1, 2]);
        let dimension = |size| WindowDimension { stride, ..WindowDimension::of_size(size) };
        let one = WindowDimension::of_size(1);
        let window = Window { dimensions: vec![one, dimension(height), dimension(width), one] };
        if self.draw.once_in(2) {
            let to_apply = self.region(element_type, Op::Maximum {});
            let least = if element_type == S8 { Scalar::Signed(-128) } else { Scalar::Unsigned(0) };
            let least = self.constant(Literal::from_scalars(ArrayShape::new(element_type, &[]), [least]));
            return self.add(Op::ReduceWindow { window, to_apply }, &[x, least]);
        }
        let wide = self.add_shaped(with_type(array, S32), Op::Convert {}, &[x])?;
        let to_apply = self.region(S32, Op::Add {});
        let zero = self.whole(S32, 0);
        let sum = self.add(Op::ReduceWindow { window, to_apply }, &[wide, zero])?;
        let shape = self.array(sum);
        let count = self.whole(S32, height * width);
        let count = self.spread(count, &shape, Vec::new());
        let average = self.add(Op::Divide {}, &[sum, count])?;
        self.narrowed(average, element_type)
    }

    /// Adds the conversion of bytes to `s32` and the subtraction of a zero point.
    fn widened(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        let wide = with_type(array, S32);
        let x = self.add_shaped(wide.clone(), Op::Convert {}, &[x])?;
        if self.draw.once_in(3) {
            return Some(x);
        }
        let zero = self.zero_point(array.element_type);
        let zero = self.spread(zero, &wide, Vec::new());
        self.add(Op::Subtract {}, &[x, zero])
    }

    fn zero_point(&mut self, element_type: PrimitiveType) -> InstructionId {
        let (low, high) = range(element_type);
        let zero = if self.draw.once_in(4) {
            self.draw.choose(&[low, high, 0])
        } else {
            self.draw.between(low, high)
        };
        self.whole(S32, zero)
    }

    /// Adds the scaling of `s32` numbers by about 2^-bits, a zero point, and the conversion to
    /// bytes.
    fn scaled(&mut self, sum: InstructionId, to: PrimitiveType, bits: i64) -> Option<InstructionId> {
        let is_float = self.draw.once_in(3);
        let scaled =
            if is_float { self.scaled_in_float(sum, bits)? } else { self.scaled_in_fixed_point(sum, bits)? };
        let zero = self.zero_point(to);
        let shape = self.array(scaled);
        let zero = self.spread(zero, &shape, Vec::new());
        let sum = self.add(Op::Add {}, &[scaled, zero])?;
        self.narrowed(sum, to)
    }

    /// Rounds (sum x factor) / 2^31 and then the quotient by 2^shift, as TensorFlow Lite's
    /// `MultiplyByQuantizedMultiplier`.
    fn scaled_in_fixed_point(&mut self, sum: InstructionId, bits: i64) -> Option<InstructionId> {
        let shape = self.array(sum);
        let wide = with_type(&shape, S64);
        let factor = self.for_features(&wide, |draw| draw.between(1 << 30, (1 << 31) - 1));
        let right = self.for_features(&wide, |draw| draw.between((bits - 2).max(0), bits + 2));
        let sum = self.add_shaped(wide.clone(), Op::Convert {}, &[sum])?;
        let product = self.add(Op::Multiply {}, &[sum, factor])?;
        let half = self.all(&wide, 1 << 30);
        let product = self.add(Op::Add {}, &[product, half])?;
        let distance = self.all(&wide, 31);
        let high = self.add(Op::ShiftRightArithmetic {}, &[product, distance])?;
        let most = self.all(&wide, i64::from(i32::MAX));
        let high = self.add(Op::Minimum {}, &[high, most])?;
        let [zero, one] = [0, 1].map(|number| self.all(&wide, number));
        let power = self.add(Op::ShiftLeft {}, &[one, right])?;
        let mask = self.add(Op::Subtract {}, &[power, one])?;
        let remainder = self.add(Op::And {}, &[high, mask])?;
        let threshold = self.add(Op::ShiftRightArithmetic {}, &[mask, one])?;
        let less = hlo::ComparisonDirection::Lt;
        let is_negative = self.add(compare(less), &[high, zero])?;
        let more = self.add(Op::Select {}, &[is_negative, one, zero])?;
        let threshold = self.add(Op::Add {}, &[threshold, more])?;
        let quotient = self.add(Op::ShiftRightArithmetic {}, &[high, right])?;
        let next = self.add(Op::Add {}, &[quotient, one])?;
        let rounds_up = self.add(compare(hlo::ComparisonDirection::Gt), &[remainder, threshold])?;
        let rounded = self.add(Op::Select {}, &[rounds_up, next, quotient])?;
        self.add_shaped(shape, Op::Convert {}, &[rounded])
    }

    /// Rounds sum x factor in `f32`.
    fn scaled_in_float(&mut self, sum: InstructionId, bits: i64) -> Option<InstructionId> {
        let shape = self.array(sum);
        let float = with_type(&shape, F32);
        let count = if shape.rank() == 0 { 1 } else { shape.size(shape.rank() - 1) };
        let scale = |draw: &mut Draw| {
            let fraction = draw.between(1 << 20, 1 << 21) as f64 / f64::from(1 << 20);
            Scalar::Float(fraction * 0.5f64.powi(bits as i32))
        };
        let scale = self.numbers(F32, count, scale);
        let scale = self.spread(scale, &float, vec![shape.rank() - 1]);
        let sum = self.add_shaped(float.clone(), Op::Convert {}, &[sum])?;
        let product = self.add(Op::Multiply {}, &[sum, scale])?;
        let op = if self.draw.once_in(4) { Op::RoundNearestAfz {} } else { Op::RoundNearestEven {} };
        let rounded = self.add(op, &[product])?;
        self.add_shaped(shape, Op::Convert {}, &[rounded])
    }

    /// Adds a clamp to the range of a type, or to a part of it, and the conversion.
    fn narrowed(&mut self, x: InstructionId, to: PrimitiveType) -> Option<InstructionId> {
        let (low, high) = range(to);
        let low = if self.draw.once_in(3) { self.draw.between(low, high - 1) } else { low };
        let [low, high] = [low, high].map(|bound| self.whole(S32, bound));
        let clamped = self.add(Op::Clamp {}, &[low, x, high])?;
        let shape = with_type(&self.array(clamped), to);
        self.add_shaped(shape, Op::Convert {}, &[clamped])
    }

    /// One number for each feature, or one for all.
    fn for_features(&mut self, shape: &ArrayShape, number: impl Fn(&mut Draw) -> i64) -> InstructionId {
        if self.draw.once_in(3) {
            let number = number(&mut self.draw);
            return self.all(shape, number);
        }
        let features = shape.rank() - 1;
        let vector =
            self.numbers(shape.element_type, shape.size(features), |draw| Scalar::Signed(number(draw)));
        self.spread(vector, shape, vec![features])
    }

    fn all(&mut self, shape: &ArrayShape, number: i64) -> InstructionId {
        let scalar = self.whole(shape.element_type, number);
        self.spread(scalar, shape, Vec::new())
    }

    fn whole(&mut self, element_type: PrimitiveType, number: i64) -> InstructionId {
        self.constant(Literal::from_scalars(ArrayShape::new(element_type, &[]), [Scalar::Signed(number)]))
    }

    fn numbers(
        &mut self,
        element_type: PrimitiveType,
        count: i64,
        number: impl Fn(&mut Draw) -> Scalar,
    ) -> InstructionId {
        let scalars: Vec<Scalar> = (0..count).map(|_| number(&mut self.draw)).collect();
        self.constant(Literal::from_scalars(ArrayShape::new(element_type, &[count]), scalars))
    }

    /// Random bytes, or only the least and largest.
    fn bytes(&mut self, shape: &ArrayShape) -> Literal {
        let (low, high) = range(shape.element_type);
        let are_ends = self.draw.once_in(4);
        let scalars: Vec<Scalar> = (0..shape.element_count())
            .map(|_| {
                let byte =
                    if are_ends { self.draw.choose(&[low, high]) } else { self.draw.between(low, high) };
                if shape.element_type == U8 { Scalar::Unsigned(byte as u64) } else { Scalar::Signed(byte) }
            })
            .collect();
        Literal::from_scalars(shape.clone(), scalars)
    }
}

fn compare(direction: hlo::ComparisonDirection) -> Op {
    Op::Compare { direction, comparison_type: hlo::ComparisonType::Default }
}

/// The least and the largest number of a type of one byte.
fn range(element_type: PrimitiveType) -> (i64, i64) {
    if element_type == U8 { (0, 255) } else { (-128, 127) }
}
