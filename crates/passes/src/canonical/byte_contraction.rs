//! Contractions of integers that are bytes: a quantized layer without its conversions.

use crate::pass::{Changed, Pass};
use crate::query::is_static_array;
use hlo::{Computation, ConvolutionForm, DotDimensionNumbers, InstructionId, Module, Op, Window};
use shape::index::row_major_strides;
use shape::{ArrayShape, Literal, PrimitiveType, Scalar, Shape};
use support::Result;

/// `contraction(convert(x) - zero, w) => contraction(x, v) + sums`, where x has bytes, zero is one
/// number, w is a constant `s32` array of small numbers, and v is w as `s8`. The sums are those of
/// each output's weights times -zero; they join a bias that follows. A padded image becomes a slice
/// of an array of the zero point. The zero point of a dot may be computed at run time.
///
/// Exact for every input: the products and sums are the same modulo 2^32.
#[derive(Default)]
pub struct ByteContraction {
    /// Leaves convolutions, whose padded images must be distinct arrays.
    pub only_dots: bool,
}

impl Pass for ByteContraction {
    fn name(&self) -> &'static str {
        "byte-contraction"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for id in crate::query::executed_computations(module) {
            let computation = module.computation_mut(id);
            let mut has_replaced = false;
            for root in computation.post_order() {
                if !self.only_dots || matches!(computation[root].op(), Op::Dot { .. }) {
                    has_replaced |= replace(computation, root).is_some();
                }
            }
            if has_replaced {
                crate::simplify::dce::sweep(computation);
                changed = true;
            }
        }
        Ok(changed.into())
    }
}

/// Replaces a contraction of widened bytes.
fn replace(computation: &mut Computation, root: InstructionId) -> Option<()> {
    let contraction = Contraction::of(computation, root)?;
    let bytes = Bytes::of(computation, computation[root].operands()[0])?;
    let weights = weights(computation, computation[root].operands()[1])?;
    let x_type = computation[bytes.array].shape().as_array()?.element_type;
    let known = bytes.zero.known();
    let is_padded = contraction.window.as_ref().is_some_and(|window| {
        let is_faster = contraction.is_depthwise && can_pad(window) && has_columns(window);
        is_padded(window) && (known != Some(0) || is_faster)
    });
    let can_pad = || contraction.window.as_ref().is_some_and(can_pad);
    if is_padded && !(known.is_some_and(|zero| fits(x_type, zero)) && can_pad()) {
        return None;
    }
    if known != Some(0) && contraction.outputs.is_none() {
        return None;
    }
    let metadata = computation[root].metadata().clone();
    let mut op = computation[root].op().clone();
    let bytes = bytes.moved(computation);
    let x = match &mut op {
        Op::Convolution { window, .. } if is_padded => {
            padded(computation, bytes.array, known?, window, &metadata)
        }
        _ => bytes.array,
    };
    let literal = narrow(&weights)?;
    let shape = literal.array_shape().clone();
    let w = computation.add("", Op::Constant { literal }, shape.into(), &[], metadata.clone());
    let shape = computation[root].shape().clone();
    let sums = computation.add("", op, shape.clone(), &[x, w], metadata.clone());
    let Some(dimension) = contraction.outputs.filter(|_| known != Some(0)) else {
        computation.replace_all_uses(root, sums);
        return Some(());
    };
    let mut numbers = totals(&weights, dimension);
    // A bias that follows takes the sums of a known zero point.
    let bias = known.and_then(|_| bias(computation, root));
    if let Some(zero) = known {
        numbers.iter_mut().for_each(|sum| *sum = sum.wrapping_mul((zero as i32).wrapping_neg()));
    }
    if let Some((_, bias)) = &bias {
        numbers.iter_mut().zip(bias).for_each(|(sum, &bias)| *sum = sum.wrapping_add(bias));
    }
    let replaced = bias.map_or(root, |(sum, _)| sum);
    let mut add = |op: Op, shape: Shape, operands: &[InstructionId]| {
        computation.add("", op, shape, operands, metadata.clone())
    };
    let count = [numbers.len() as i64];
    let constant = Op::Constant { literal: Literal::from_elements(&count, &numbers) };
    let vector = add(constant, Shape::array(PrimitiveType::S32, &count), &[]);
    let dimensions = vec![shape.as_array()?.rank() - 1];
    let numbers = add(Op::Broadcast { dimensions }, shape.clone(), &[vector]);
    let all = match bytes.zero {
        ZeroPoint::Known(_) => add(Op::Add {}, shape, &[sums, numbers]),
        ZeroPoint::Scalar(zero) => {
            let zero = add(Op::Broadcast { dimensions: Vec::new() }, shape.clone(), &[zero]);
            let product = add(Op::Multiply {}, shape.clone(), &[zero, numbers]);
            add(Op::Subtract {}, shape, &[sums, product])
        }
    };
    computation.replace_all_uses(replaced, all);
    Some(())
}

/// A dot or convolution with sums of type `s32`.
struct Contraction {
    /// The window of a convolution.
    window: Option<Window>,
    /// The dimension of the right operand that is the last one of the result, if no other free
    /// dimension and no batch dimension comes before it there.
    outputs: Option<usize>,
    /// True if each output feature has one input feature. The taps of such windows are multiplied
    /// in groups if all of them exist.
    is_depthwise: bool,
}

impl Contraction {
    fn of(computation: &Computation, id: InstructionId) -> Option<Self> {
        let instruction = &computation[id];
        if instruction.shape().as_array()?.element_type != PrimitiveType::S32 {
            return None;
        }
        let mut all = instruction.operands().iter().chain([&id]);
        if !all.all(|&id| is_static_array(computation, id)) {
            return None;
        }
        let array = |k: usize| computation[instruction.operands()[k]].shape().expect_array();
        match instruction.op() {
            Op::Dot { dot_dimension_numbers: numbers } => {
                let (lhs, rhs) = (array(0), array(1));
                let free = free_dimensions(rhs.rank(), numbers);
                let columns: i64 = free.iter().map(|&d| rhs.size(d)).product();
                // Only neighbors in a row are multiplied together.
                let is_along = matches!(numbers.lhs_contracting_dims[..], [only] if only + 1 == lhs.rank());
                let outputs = match &free[..] {
                    &[only] if numbers.rhs_batch_dims.is_empty() => Some(only),
                    _ => None,
                };
                (is_along && columns >= hlo::MIN_TILE_COLUMNS).then_some(Self {
                    window: None,
                    outputs,
                    is_depthwise: false,
                })
            }
            op @ Op::Convolution { window, feature_group_count, .. } => {
                let is_canonical = ConvolutionForm::of(op) == Some(ConvolutionForm::Canonical);
                let outputs = Some(array(1).rank() - 1);
                let kernel = array(1);
                let is_depthwise = *feature_group_count >= hlo::MIN_TILE_COLUMNS
                    && kernel.rank() > 2
                    && kernel.size(kernel.rank() - 2) == 1;
                is_canonical.then(|| Self { window: Some(window.clone()), outputs, is_depthwise })
            }
            _ => None,
        }
    }
}

/// The right operand's dimensions that are neither batch nor contracting dimensions.
fn free_dimensions(rank: usize, numbers: &DotDimensionNumbers) -> Vec<usize> {
    let is_free =
        |d: &usize| !numbers.rhs_batch_dims.contains(d) && !numbers.rhs_contracting_dims.contains(d);
    (0..rank).filter(is_free).collect()
}

/// The number that is subtracted from all bytes of an array.
#[derive(Clone, Copy)]
enum ZeroPoint {
    Known(i64),
    /// A scalar of type `s32`.
    Scalar(InstructionId),
}

impl ZeroPoint {
    fn known(self) -> Option<i64> {
        match self {
            Self::Known(zero) => Some(zero),
            Self::Scalar(_) => None,
        }
    }
}

/// An array of bytes from whose elements a number is subtracted.
struct Bytes {
    array: InstructionId,
    zero: ZeroPoint,
    /// Reshapes and transposes that follow, last one first.
    moves: Vec<InstructionId>,
}

impl Bytes {
    /// Reads `convert(x)`, `convert(x) - zero`, or `convert(x) + number`, possibly moved. Only the
    /// zero point may be no constant.
    fn of(computation: &Computation, mut id: InstructionId) -> Option<Self> {
        let mut moves = Vec::new();
        while let Op::Reshape {} | Op::Transpose { .. } = computation[id].op() {
            moves.push(id);
            id = computation[id].operands()[0];
        }
        let instruction = &computation[id];
        let number = |k: usize| splat(computation, instruction.operands()[k]);
        // Differences of fewer bits may wrap.
        let is_exact = instruction.shape().as_array()?.element_type == PrimitiveType::S32;
        let bytes = |k: usize| widened(computation, instruction.operands()[k]).filter(|_| is_exact);
        let (array, zero) = match instruction.op() {
            Op::Convert {} => (widened(computation, id), Some(ZeroPoint::Known(0))),
            Op::Subtract {} => {
                let known = number(1).map(ZeroPoint::Known);
                (bytes(0), known.or_else(|| scalar(computation, instruction.operands()[1])))
            }
            Op::Add {} if number(0).is_some() => (bytes(1), number(0).map(|n| ZeroPoint::Known(-n))),
            Op::Add {} => (bytes(0), number(1).map(|n| ZeroPoint::Known(-n))),
            _ => return None,
        };
        Some(Self { array: array?, zero: zero?, moves })
    }

    /// Moves the bytes in place of the numbers.
    fn moved(mut self, computation: &mut Computation) -> Self {
        let element_type = computation[self.array].shape().expect_array().element_type;
        for id in std::mem::take(&mut self.moves).into_iter().rev() {
            let shape = computation[id].shape().expect_array().with_element_type(element_type);
            let (op, metadata) = (computation[id].op().clone(), computation[id].metadata().clone());
            self.array = computation.add("", op, shape.into(), &[self.array], metadata);
        }
        self
    }
}

/// The bytes that a conversion reads, if it keeps their values.
fn widened(computation: &Computation, id: InstructionId) -> Option<InstructionId> {
    let Op::Convert {} = computation[id].op() else { return None };
    if !is_wide_integer(computation[id].shape().as_array()?.element_type) {
        return None;
    }
    let from = computation[id].operands()[0];
    let is_byte = |id| {
        matches!(computation[id].shape().as_array()?.element_type, PrimitiveType::S8 | PrimitiveType::U8)
            .then_some(())
    };
    is_byte(from).map(|()| from)
}

/// The scalar in all elements of a broadcast.
fn scalar(computation: &Computation, id: InstructionId) -> Option<ZeroPoint> {
    let Op::Broadcast { .. } = computation[id].op() else { return None };
    let source = computation[id].operands()[0];
    let is_scalar = computation[source].shape().as_array()?.rank() == 0;
    is_scalar.then_some(ZeroPoint::Scalar(source))
}

/// The number in all elements of a constant or of a broadcast scalar.
fn splat(computation: &Computation, id: InstructionId) -> Option<i64> {
    let source = match computation[id].op() {
        Op::Broadcast { .. } => computation[id].operands()[0],
        _ => id,
    };
    let Op::Constant { literal } = computation[source].op() else { return None };
    let is_one = literal.array_shape().element_count() > 0 && literal.is_splat();
    is_one.then(|| literal.scalar_at(0).as_i64())?
}

/// The values of constant weights that fit `s8`, possibly converted or moved, or bytes less a zero
/// point.
fn weights(computation: &Computation, id: InstructionId) -> Option<Literal> {
    let source = || weights(computation, computation[id].operands()[0]);
    match computation[id].op() {
        Op::Convert {} if is_wide_integer(computation[id].shape().as_array()?.element_type) => source(),
        Op::Reshape {} => source()?.reshape(&computation[id].shape().as_array()?.sizes()),
        Op::Transpose { dimensions } => Some(source()?.transpose(dimensions)),
        Op::Reverse { dimensions } => Some(reversed(&source()?, dimensions)),
        Op::Subtract {} => {
            let bytes = widened(computation, computation[id].operands()[0])?;
            let Op::Constant { literal } = computation[bytes].op() else { return None };
            let zero = splat(computation, computation[id].operands()[1])?;
            let shape = ArrayShape::new(PrimitiveType::S32, &literal.array_shape().sizes());
            let value = |scalar: Scalar| Some(scalar.as_i64()? - zero);
            let values: Vec<i64> = literal.scalars().map(value).collect::<Option<_>>()?;
            let fit = values.iter().all(|&value| fits(PrimitiveType::S8, value));
            fit.then(|| Literal::from_scalars(shape, values.into_iter().map(Scalar::Signed)))
        }
        Op::Constant { literal } => {
            let is_integer = literal.array_shape().element_type.is_integer();
            let is_small =
                |scalar: Scalar| scalar.as_i64().is_some_and(|value| fits(PrimitiveType::S8, value));
            (is_integer && literal.scalars().all(is_small)).then(|| literal.clone())
        }
        _ => None,
    }
}

/// The elements in reverse order along some dimensions.
fn reversed(literal: &Literal, dimensions: &[usize]) -> Literal {
    let shape = literal.array_shape().clone();
    let (sizes, strides) = (shape.sizes(), row_major_strides(&shape.sizes()));
    let source = |number: i64| {
        let flipped = dimensions.iter().map(|&d| {
            let index = number / strides[d] % sizes[d];
            (sizes[d] - 1 - 2 * index) * strides[d]
        });
        number + flipped.sum::<i64>()
    };
    let elements = (0..shape.element_count()).map(|number| literal.scalar_at(source(number) as usize));
    Literal::from_scalars(shape, elements.collect::<Vec<_>>())
}

/// True for types into which bytes convert without a change.
fn is_wide_integer(element_type: PrimitiveType) -> bool {
    matches!(element_type, PrimitiveType::S16 | PrimitiveType::S32 | PrimitiveType::S64)
}

fn fits(element_type: PrimitiveType, value: i64) -> bool {
    match element_type {
        PrimitiveType::S8 => i8::try_from(value).is_ok(),
        _ => u8::try_from(value).is_ok(),
    }
}

/// The same numbers as `s8`.
fn narrow(weights: &Literal) -> Option<Literal> {
    let shape = weights.array_shape();
    let bytes: Vec<u8> =
        weights.scalars().map(|scalar| scalar.as_i64().map(|v| v as u8)).collect::<Option<_>>()?;
    Literal::from_bytes(ArrayShape::new(PrimitiveType::S8, &shape.sizes()), bytes.into())
}

/// The sums of the weights at each index of a dimension.
fn totals(weights: &Literal, dimension: usize) -> Vec<i32> {
    let sizes = weights.array_shape().sizes();
    let (stride, count) = (row_major_strides(&sizes)[dimension] as usize, sizes[dimension] as usize);
    let mut totals = vec![0i32; count];
    for (k, weight) in weights.scalars().enumerate() {
        let total = &mut totals[k / stride % count];
        *total = total.wrapping_add(weight.as_i64().unwrap_or(0) as i32);
    }
    totals
}

fn is_padded(window: &Window) -> bool {
    window.dimensions.iter().any(|d| d.padding_low != 0 || d.padding_high != 0 || d.base_dilation != 1)
}

/// True if an array with larger edges can take the place of the padding.
fn can_pad(window: &Window) -> bool {
    let fits = |d: &hlo::WindowDimension| {
        d.base_dilation == 1 && [d.padding_low, d.padding_high].iter().all(|p| (0..1 << 24).contains(p))
    };
    window.dimensions.iter().all(fits)
}

/// True if columns of the window have several taps.
fn has_columns(window: &Window) -> bool {
    const FEWEST: i64 = 3;
    window.dimensions.iter().rev().nth(1).is_some_and(|d| d.size >= FEWEST)
}

/// Features below which lines of pixels are moved as a whole.
const FEW_FEATURES: i64 = 16;

/// Surrounds an image by its zero point, and removes the window's padding. The image becomes a
/// slice of a filled array, into which the kernel before can write.
fn padded(
    computation: &mut Computation,
    bytes: InstructionId,
    zero: i64,
    window: &mut Window,
    metadata: &hlo::OpMetadata,
) -> InstructionId {
    let shape = computation[bytes].shape().expect_array().clone();
    let element_type = shape.element_type;
    let (mut part, mut starts) = (shape.sizes(), vec![0; shape.rank()]);
    let mut whole = part.clone();
    for (d, window) in window.dimensions.iter_mut().enumerate() {
        starts[d + 1] = window.padding_low;
        whole[d + 1] += window.padding_low + window.padding_high;
        (window.padding_low, window.padding_high) = (0, 0);
    }
    let result = Shape::array(element_type, &whole);
    let mut add = |op: Op, shape: Shape, operands: &[InstructionId]| {
        computation.add("", op, shape, operands, metadata.clone())
    };
    let mut x = bytes;
    let is_merged = part.last().is_some_and(|&features| features < FEW_FEATURES) && part.len() > 2;
    if is_merged {
        for sizes in [&mut part, &mut whole, &mut starts] {
            let features = sizes.pop().unwrap_or(1).max(shape.size(shape.rank() - 1));
            if let Some(last) = sizes.last_mut() {
                *last *= features;
            }
        }
        x = add(Op::Reshape {}, Shape::array(element_type, &part), &[x]);
    }
    let zero = match element_type {
        PrimitiveType::S8 => Literal::scalar(zero as i8),
        _ => Literal::scalar(zero as u8),
    };
    let zero = add(Op::Constant { literal: zero }, Shape::array(element_type, &[]), &[]);
    let whole = Shape::array(element_type, &whole);
    let filled = add(Op::Broadcast { dimensions: Vec::new() }, whole.clone(), &[zero]);
    let mut operands = vec![filled, x];
    for start in starts {
        let literal = Literal::scalar(start as i32);
        operands.push(add(Op::Constant { literal }, Shape::array(PrimitiveType::S32, &[]), &[]));
    }
    let image = add(Op::DynamicUpdateSlice {}, whole, &operands);
    if is_merged { add(Op::Reshape {}, result, &[image]) } else { image }
}

/// The only reader of a contraction and the numbers that it adds to the last dimension, if it does
/// that.
fn bias(computation: &Computation, id: InstructionId) -> Option<(InstructionId, Vec<i32>)> {
    let &[user] = computation[id].users() else { return None };
    let Op::Add {} = computation[user].op() else { return None };
    let &[a, b] = computation[user].operands() else { return None };
    if a == b || computation.root() == id {
        return None;
    }
    let other = if a == id { b } else { a };
    let sizes = computation[id].shape().as_array()?.sizes();
    let last = sizes.len().checked_sub(1)?;
    let bias = match computation[other].op() {
        Op::Broadcast { dimensions } if dimensions.as_slice() == [last] => computation[other].operands()[0],
        // The result is a single row.
        _ if sizes[..last].iter().all(|&size| size == 1) => other,
        _ => return None,
    };
    let Op::Constant { literal } = computation[bias].op() else { return None };
    Some((user, literal.to_vec::<i32>()?))
}
