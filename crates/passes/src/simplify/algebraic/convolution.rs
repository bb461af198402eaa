//! Rules rooted at `convolution`.

use super::graph::Graph;
use super::{Root::Is, Rule};
use hlo::{
    ConvolutionForm, DotDimensionNumbers, InstructionId, Op, Opcode, PaddingDimension, SliceDimension,
    Window, WindowDimension,
};
use shape::{ArrayShape, Literal, Scalar};

pub(super) const RULES: &[Rule] = &[
    Rule { name: "convolution-of-pad", root: Is(Opcode::Convolution), apply: convolution_of_pad },
    Rule { name: "convolution-of-one-pixel", root: Is(Opcode::Convolution), apply: convolution_of_one_pixel },
    Rule {
        name: "convolution-of-apart-pixels",
        root: Is(Opcode::Convolution),
        apply: convolution_of_apart_pixels,
    },
];

/// `convolution(pad(x, 0), k) => convolution(x, k)` with a padded window, if only spatial
/// dimensions are padded; padding between elements becomes base dilation. Only for kernels of
/// integers and for kernels of constants without infinities and NaN, because products of those
/// with zeros are NaN. Exact for every x.
fn convolution_of_pad(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let Op::Convolution { window, dim_labels, feature_group_count, batch_group_count } = graph[id].op()
    else {
        return None;
    };
    let &[input, kernel] = graph[id].operands() else { return None };
    let zeros = PaddingOfZeros::of(graph, input)?;
    let pad = zeros.pad;
    let Op::Pad { padding } = graph[pad].op() else { return None };
    let x = graph.operand(pad);
    if graph.array(x).element_count() == 0 {
        return None;
    }
    let mut window = window.clone();
    for (w, &d) in window.dimensions.iter_mut().zip(&dim_labels.input_spatial_dimensions) {
        *w = padded(*w, padding.dimensions[d])?;
    }
    let plain = PaddingDimension::default();
    let is_spatial = |d: usize| dim_labels.input_spatial_dimensions.contains(&d);
    if padding.dimensions.iter().enumerate().any(|(d, p)| !is_spatial(d) && *p != plain) {
        return None;
    }
    let (dim_labels, feature_group_count, batch_group_count) =
        (dim_labels.clone(), *feature_group_count, *batch_group_count);
    if !graph.array(kernel).element_type.is_integer() && !is_of_finite_constant(graph, kernel) {
        return None;
    }
    let x = zeros.without_pad(graph, x);
    let op = Op::Convolution { window, dim_labels, feature_group_count, batch_group_count };
    Some(graph.replacement(id, op, &[x, kernel]))
}

/// A `pad` whose padding is zero, possibly after the conversion and the shift by a zero point of a
/// quantized array.
struct PaddingOfZeros {
    pad: InstructionId,
    /// The instructions after the pad.
    after: Vec<InstructionId>,
}

impl PaddingOfZeros {
    /// Reads `pad(x, 0)`, `convert(pad(x, z)) - z`, or `convert(pad(x, z)) + -z` of integers.
    fn of(graph: &Graph<'_>, input: InstructionId) -> Option<Self> {
        let is_pad = |id: InstructionId| matches!(graph[id].op(), Op::Pad { .. });
        let number = |id: InstructionId| match graph.splat(id)? {
            Scalar::Signed(value) => Some(i128::from(value)),
            Scalar::Unsigned(value) => Some(i128::from(value)),
            Scalar::Float(0.0) | Scalar::Complex(0.0, 0.0) => Some(0),
            _ => None,
        };
        if is_pad(input) {
            let is_zero = number(graph[input].operands()[1]) == Some(0);
            return is_zero.then(|| Self { pad: input, after: Vec::new() });
        }
        let sign = match graph[input].op() {
            Op::Subtract {} => 1,
            Op::Add {} => -1,
            _ => return None,
        };
        let &[wide, shift] = graph[input].operands() else { return None };
        let Op::Convert {} = graph[wide].op() else { return None };
        let pad = graph.operand(wide);
        let types = [pad, wide].map(|id| graph.array(id).element_type);
        let widens = types.iter().all(|t| t.is_integer()) && types[0].byte_size() < types[1].byte_size();
        let is_zero = is_pad(pad) && number(graph[pad].operands()[1])? == sign * number(shift)?;
        let is_scalar = graph.broadcast_of_scalar(shift).is_some();
        (widens && is_zero && is_scalar).then(|| Self { pad, after: vec![wide, input] })
    }

    /// The array without padding.
    fn without_pad(self, graph: &mut Graph<'_>, x: InstructionId) -> InstructionId {
        let mut x = x;
        for id in self.after {
            let shape = graph.array(x).with_element_type(graph.array(id).element_type);
            let mut operands = vec![x];
            if let Some(&shift) = graph[id].operands().get(1) {
                let scalar = graph.operand(shift);
                operands.push(graph.helper(
                    id,
                    Op::Broadcast { dimensions: Vec::new() },
                    shape.clone(),
                    &[scalar],
                ));
            }
            x = graph.helper(id, graph[id].op().clone(), shape, &operands);
        }
        x
    }
}

/// Converts a window over a padded base to a window over the base. `None` if cropped elements would
/// reappear, or if a number is too large.
pub(super) fn padded(w: WindowDimension, padding: PaddingDimension) -> Option<WindowDimension> {
    let edge = |edge: i64, own: i64| {
        let reappears = edge < 0 && own > 0;
        if reappears { None } else { edge.checked_mul(w.base_dilation)?.checked_add(own) }
    };
    Some(WindowDimension {
        padding_low: edge(padding.edge_padding_low, w.padding_low)?,
        padding_high: edge(padding.edge_padding_high, w.padding_high)?,
        base_dilation: padding.interior_padding.checked_add(1)?.checked_mul(w.base_dilation)?,
        ..w
    })
}

/// True if an array has elements of a constant without infinities and NaN, possibly of a narrower
/// type: weights in half precision stay narrow in the program.
fn is_of_finite_constant(graph: &Graph<'_>, mut id: InstructionId) -> bool {
    loop {
        match graph[id].op() {
            Op::Constant { literal } => return is_finite(literal),
            Op::Reshape {} | Op::Transpose { .. } | Op::Reverse { .. } | Op::Slice { .. } => {}
            Op::Convert {} => {
                let [from, to] = [graph.operand(id), id].map(|id| graph.array(id).element_type);
                let holds_all = to.is_floating_point() && to.byte_size() >= 4;
                if !holds_all
                    || !(from.is_integer() || from.is_floating_point() && from.byte_size() < to.byte_size())
                {
                    return false;
                }
            }
            _ => return false,
        }
        id = graph.operand(id);
    }
}

fn is_finite(literal: &Literal) -> bool {
    literal.scalars().all(|scalar| match scalar {
        Scalar::Float(value) => value.is_finite(),
        Scalar::Complex(re, im) => re.is_finite() && im.is_finite(),
        Scalar::Pred(_) | Scalar::Signed(_) | Scalar::Unsigned(_) => true,
    })
}

/// `convolution(x, k) => dot(x, k's tap)` for one-pixel images in canonical form, if one tap meets
/// the pixel. Exact for every input: the same products in the same order.
fn convolution_of_one_pixel(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let Op::Convolution { window, dim_labels: labels, feature_group_count: 1, batch_group_count: 1 } =
        graph[id].op()
    else {
        return None;
    };
    let &[x, kernel] = graph[id].operands() else { return None };
    let spatial = window.dimensions.len();
    let rank = spatial + 2;
    // The order of spatial dimensions does not matter: images have one pixel.
    let is_canonical = labels.input_batch_dimension == 0
        && labels.input_feature_dimension + 1 == rank
        && labels.output_batch_dimension == 0
        && labels.output_feature_dimension + 1 == rank
        && labels.kernel_input_feature_dimension == spatial
        && labels.kernel_output_feature_dimension == spatial + 1
        && labels.kernel_spatial_dimensions.iter().copied().eq(0..spatial);
    let is_pixel = |id: InstructionId| graph.array(id).sizes()[1..rank - 1].iter().all(|&size| size == 1);
    if !is_canonical || !is_pixel(x) || !is_pixel(id) {
        return None;
    }
    let taps = meeting_taps(window)?;
    let (kernel_shape, element_type) = (graph.array(kernel).clone(), graph.array(kernel).element_type);
    let matrix = &kernel_shape.sizes()[spatial..];
    let mut tap = kernel;
    if window.dimensions.iter().any(|w| w.size > 1) {
        let whole = matrix.iter().map(|&limit| SliceDimension { start: 0, limit, stride: 1 });
        let slice = taps.iter().map(|&t| SliceDimension { start: t, limit: t + 1, stride: 1 }).chain(whole);
        let sizes: Vec<i64> = std::iter::repeat_n(1, spatial).chain(matrix.iter().copied()).collect();
        let op = Op::Slice { slice: slice.collect() };
        tap = graph.helper(id, op, ArrayShape::new(element_type, &sizes), &[kernel]);
    }
    if spatial > 0 {
        tap = graph.helper(id, Op::Reshape {}, ArrayShape::new(element_type, matrix), &[tap]);
    }
    let numbers = DotDimensionNumbers {
        lhs_contracting_dims: vec![rank - 1],
        rhs_contracting_dims: vec![0],
        ..DotDimensionNumbers::default()
    };
    Some(graph.replacement(id, Op::Dot { dot_dimension_numbers: numbers }, &[x, tap]))
}

/// `convolution(x, k) => transpose(dot(x, k))` if the pixels of integers are apart by as much as
/// the window is wide, so that each output has one tap: a transposed convolution without overlap. A
/// pixel's outputs for all taps are one row of the product. Exact for every input.
fn convolution_of_apart_pixels(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let op = graph[id].op();
    let Op::Convolution { window, feature_group_count: 1, .. } = op else { return None };
    let &[x, kernel] = graph[id].operands() else { return None };
    let spatial = window.dimensions.len();
    let is_canonical = ConvolutionForm::of(op) == Some(ConvolutionForm::Canonical);
    let is_apart = |w: &WindowDimension| {
        w.base_dilation == w.size
            && [w.padding_low, w.padding_high] == [w.size - 1; 2]
            && (w.stride, w.window_dilation, w.window_reversal) == (1, 1, false)
    };
    let element_type = graph.array(id).element_type;
    let is_wide = window.dimensions.iter().any(|w| w.size > 1);
    if !element_type.is_integer() || !is_wide || !window.dimensions.iter().all(is_apart) {
        return None;
    }
    if !is_canonical || graph.array(id).element_count() == 0 {
        return None;
    }
    let (image, taps) = (graph.array(x).sizes(), graph.array(kernel).sizes());
    let (inputs, outputs) = (taps[spatial], taps[spatial + 1]);
    // The last tap meets a pixel at its own position, the first one at the largest distance.
    let shape = graph.array(kernel).clone();
    let reversed =
        graph.helper(id, Op::Reverse { dimensions: (0..spatial).collect() }, shape.clone(), &[kernel]);
    let dimensions: Vec<usize> = [spatial].into_iter().chain(0..spatial).chain([spatial + 1]).collect();
    let sizes: Vec<i64> = dimensions.iter().map(|&d| taps[d]).collect();
    let shape = ArrayShape::new(shape.element_type, &sizes);
    let columns = graph.helper(id, Op::Transpose { dimensions }, shape.clone(), &[reversed]);
    let count: i64 = taps[..spatial].iter().product::<i64>() * outputs;
    let shape = ArrayShape::new(shape.element_type, &[inputs, count]);
    let columns = graph.helper(id, Op::Reshape {}, shape, &[columns]);
    let numbers = DotDimensionNumbers {
        lhs_contracting_dims: vec![spatial + 1],
        rhs_contracting_dims: vec![0],
        ..DotDimensionNumbers::default()
    };
    let pixels = &image[..=spatial];
    let array = |sizes: Vec<i64>| ArrayShape::new(element_type, &sizes);
    let shape = array(pixels.iter().copied().chain([count]).collect());
    let product = graph.helper(id, Op::Dot { dot_dimension_numbers: numbers }, shape, &[x, columns]);
    let parts: Vec<i64> = pixels.iter().chain(&taps[..spatial]).copied().chain([outputs]).collect();
    let divided = graph.helper(id, Op::Reshape {}, array(parts.clone()), &[product]);
    // Each tap follows the dimension of its pixel.
    let together = (1..=spatial).flat_map(|d| [d, d + spatial]);
    let dimensions: Vec<usize> = [0].into_iter().chain(together).chain([2 * spatial + 1]).collect();
    let sizes = dimensions.iter().map(|&d| parts[d]).collect();
    let moved = graph.helper(id, Op::Transpose { dimensions }, array(sizes), &[divided]);
    Some(graph.replacement(id, Op::Reshape {}, &[moved]))
}

/// For each dimension, the tap of the first window that meets the base's only element; `None` if
/// none does.
fn meeting_taps(window: &Window) -> Option<Vec<i64>> {
    let tap = |w: &WindowDimension| {
        let is_met = w.padding_low >= 0 && w.padding_low % w.window_dilation == 0;
        let tap = w.padding_low / w.window_dilation;
        (is_met && tap < w.size).then_some(if w.window_reversal { w.size - 1 - tap } else { tap })
    };
    window.dimensions.iter().map(tap).collect()
}
