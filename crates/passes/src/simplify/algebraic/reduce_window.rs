//! Rules rooted at `reduce-window` of one array with a known region.

use super::graph::{Graph, Region};
use super::{Root::Is, Rule, convolution};
use hlo::{
    InstructionId, Op, Opcode, PaddingConfig, PaddingDimension, SliceDimension, Window, WindowDimension,
};
use shape::{ArrayShape, Scalar};

pub(super) const RULES: &[Rule] = &[
    Rule { name: "reduce-window-of-pad", root: Is(Opcode::ReduceWindow), apply: reduce_window_of_pad },
    Rule { name: "reduce-window-of-one", root: Is(Opcode::ReduceWindow), apply: reduce_window_of_one },
    Rule { name: "reduce-window-of-spread", root: Is(Opcode::ReduceWindow), apply: reduce_window_of_spread },
    Rule {
        name: "reduce-window-of-everything",
        root: Is(Opcode::ReduceWindow),
        apply: reduce_window_of_everything,
    },
    Rule {
        name: "reduce-window-of-transpose",
        root: Is(Opcode::ReduceWindow),
        apply: reduce_window_of_transpose,
    },
];

/// The operand, the initial value, and the region of a windowed reduction of one array.
fn parts(graph: &Graph<'_>, id: InstructionId) -> Option<(InstructionId, InstructionId, Region)> {
    let Op::ReduceWindow { to_apply, .. } = graph[id].op() else { return None };
    let &[operand, init] = graph[id].operands() else { return None };
    Some((operand, init, graph.regions.region(*to_apply)?))
}

/// `reduce-window(pad(x, value), init) => reduce-window(x, init)` with a padded window, if the
/// padding has no effect. That is the case if it is the initial value; or, for a maximum, if it is
/// no larger than any element (as 0 with `maximum(y, 0)`) and every window holds an element. Exact
/// for every input, except that a window of only NaN yields `init` if the region ignores NaN.
fn reduce_window_of_pad(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let Op::ReduceWindow { window, to_apply } = graph[id].op() else { return None };
    let (pad, init, region) = parts(graph, id)?;
    let Op::Pad { padding } = graph[pad].op() else { return None };
    let &[x, value] = graph[pad].operands() else { return None };
    // A dilated base without elements has no size relative to which padding could be counted.
    if graph.array(x).element_count() == 0 {
        return None;
    }
    let window = padded(window, padding)?;
    let padding_is_neutral = match (graph.splat(value)?, graph.splat(init)?) {
        (value, init) if same(value, init) => is_idempotent(region, value),
        (value, _) if is_maximum(region) => {
            is_at_least(graph, x, value, 0) && every_window_meets(&window, graph.array(x))
        }
        _ => false,
    };
    if !padding_is_neutral {
        return None;
    }
    let op = Op::ReduceWindow { window, to_apply: *to_apply };
    Some(graph.replacement(id, op, &[x, init]))
}

/// Converts a window over a padded base to a window over the base. `None` if there is padding
/// between elements.
fn padded(window: &Window, padding: &PaddingConfig) -> Option<Window> {
    let dimension = |(w, p): (&WindowDimension, &PaddingDimension)| {
        (p.interior_padding == 0).then(|| convolution::padded(*w, *p)).flatten()
    };
    let dimensions =
        window.dimensions.iter().zip(&padding.dimensions).map(dimension).collect::<Option<_>>()?;
    Some(Window { dimensions })
}

fn same(a: Scalar, b: Scalar) -> bool {
    match (a, b) {
        (Scalar::Float(a), Scalar::Float(b)) => a.to_bits() == b.to_bits(),
        _ => a == b,
    }
}

/// True if another occurrence of a value that equals the initial one has no effect.
fn is_idempotent(region: Region, value: Scalar) -> bool {
    match region {
        Region::LargestNumber => !matches!(value, Scalar::Float(value) if value.is_nan()),
        Region::Binary(Opcode::Maximum | Opcode::Minimum | Opcode::And | Opcode::Or) => true,
        Region::Binary(Opcode::Add) => {
            matches!(value, Scalar::Float(0.0) | Scalar::Signed(0) | Scalar::Unsigned(0))
        }
        Region::Binary(Opcode::Multiply) => {
            matches!(value, Scalar::Float(1.0) | Scalar::Signed(1) | Scalar::Unsigned(1))
        }
        Region::Binary(_) => false,
    }
}

fn is_maximum(region: Region) -> bool {
    matches!(region, Region::LargestNumber | Region::Binary(Opcode::Maximum))
}

/// Maximum depth of the search for a bound.
const MAX_DEPTH: usize = 4;

/// True if all elements of a float array are known to be NaN or at least `bound`, and none is -0 if
/// the bound is +0.
fn is_at_least(graph: &Graph<'_>, id: InstructionId, bound: Scalar, depth: usize) -> bool {
    let Scalar::Float(bound_value) = bound else { return false };
    if depth > MAX_DEPTH {
        return false;
    }
    let is_bound = |id: InstructionId| matches!(graph.splat(id), Some(Scalar::Float(v)) if v > bound_value || v.to_bits() == bound_value.to_bits());
    let either = |id: InstructionId| is_bound(id) || is_at_least(graph, id, bound, depth + 1);
    let operands = graph[id].operands();
    match graph[id].op() {
        Op::Maximum {} => operands.iter().any(|&operand| either(operand)),
        Op::Minimum {} => operands.iter().all(|&operand| either(operand)),
        Op::Clamp {} => is_bound(operands[0]) && is_bound(operands[2]),
        Op::Transpose { .. } | Op::Reshape {} => is_at_least(graph, operands[0], bound, depth + 1),
        _ => false,
    }
}

/// True if no window lies entirely in the padding.
fn every_window_meets(window: &Window, base: &ArrayShape) -> bool {
    let meets = |w: &WindowDimension| {
        w.window_dilation == 1 && w.base_dilation == 1 && w.padding_low < w.size && w.padding_high < w.size
    };
    window.dimensions.iter().all(meets) && base.element_count() > 0
}

/// `reduce-window(x, init) => f(broadcast(init), slice(x))` if every window has one element, within
/// x. Exact for every input.
fn reduce_window_of_one(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let Op::ReduceWindow { window, .. } = graph[id].op() else { return None };
    let (operand, init, Region::Binary(opcode)) = parts(graph, id)? else { return None };
    let op = super::reduce::operation(opcode)?;
    let counts = graph.array(id).sizes();
    let mut slice = Vec::with_capacity(counts.len());
    for (w, &count) in window.dimensions.iter().zip(&counts) {
        if w.size != 1 || w.padding_low > 0 || w.padding_high > 0 || w.base_dilation != 1 || count == 0 {
            return None;
        }
        let start = -w.padding_low;
        let stride = if count == 1 { 1 } else { w.stride };
        slice.push(SliceDimension { start, limit: start + (count - 1) * stride + 1, stride });
    }
    let init = graph.broadcast_scalar(id, init);
    let sliced = graph.replacement(id, Op::Slice { slice }, &[operand]);
    Some(graph.replacement(id, op, &[init, sliced]))
}

/// `reduce-window(x, init) => f(broadcast(init), reshape(broadcast(x)))` if elements are so far
/// apart that every window holds exactly one, and if repeating `init` has no effect. Such
/// reductions are gradients of means over disjoint areas. Exact for every input.
fn reduce_window_of_spread(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let Op::ReduceWindow { window, .. } = graph[id].op() else { return None };
    let (operand, init, region) = parts(graph, id)?;
    let Region::Binary(opcode) = region else { return None };
    let op = super::reduce::operation(opcode)?;
    let is_neutral = graph.splat(init).is_some_and(|init| is_idempotent(region, init));
    let (sizes, counts) = (graph.array(operand).sizes(), graph.array(id).sizes());
    // The copies of an element are in a dimension after its own, or replace a dimension of size 1.
    let (mut own, mut spread, mut dimensions) = (Vec::new(), Vec::new(), Vec::new());
    for (d, w) in window.dimensions.iter().enumerate() {
        let is_whole = w.padding_low == w.size - 1 && sizes[d].checked_mul(w.size) == Some(counts[d]);
        let is_spread = w.base_dilation == w.size && w.window_dilation == 1 && w.stride == 1;
        if !is_whole || !is_spread {
            return None;
        }
        if w.size == 1 || sizes[d] != 1 {
            own.push(sizes[d]);
            dimensions.push(spread.len());
            spread.push(sizes[d]);
        }
        if w.size != 1 {
            spread.push(w.size);
        }
    }
    if !is_neutral || window.dimensions.iter().all(|w| w.size == 1) {
        return None;
    }
    let element_type = graph.array(id).element_type;
    let own = graph.helper(id, Op::Reshape {}, ArrayShape::new(element_type, &own), &[operand]);
    let spread = ArrayShape::new(element_type, &spread);
    let copies = graph.helper(id, Op::Broadcast { dimensions }, spread, &[own]);
    let copies = graph.reshaped(id, copies);
    let init = graph.broadcast_scalar(id, init);
    Some(graph.replacement(id, op, &[init, copies]))
}

/// `reduce-window(x, init) => reshape(reduce(x, init))` if, along every dimension with windows of
/// more than one element, there is one window and it holds all of x. Exact for every input: the
/// same elements in the same order.
fn reduce_window_of_everything(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let Op::ReduceWindow { window, to_apply } = graph[id].op() else { return None };
    let &[operand, init] = graph[id].operands() else { return None };
    let (sizes, counts) = (graph.array(operand).sizes(), graph.array(id).sizes());
    let mut dimensions = Vec::new();
    for (d, w) in window.dimensions.iter().enumerate() {
        let is_plain = w.window_dilation == 1 && w.base_dilation == 1 && !w.window_reversal;
        if *w == WindowDimension::of_size(1) {
            continue;
        }
        let holds_all = counts[d] == 1 && w.padding_low >= 0 && w.size - w.padding_low >= sizes[d];
        if !is_plain || !holds_all {
            return None;
        }
        dimensions.push(d);
    }
    if dimensions.is_empty() {
        return None;
    }
    let remaining: Vec<i64> =
        (0..sizes.len()).filter(|d| !dimensions.contains(d)).map(|d| sizes[d]).collect();
    let shape = ArrayShape::new(graph.array(id).element_type, &remaining);
    let op = Op::Reduce { dimensions, to_apply: *to_apply };
    let reduced = graph.helper(id, op, shape, &[operand, init]);
    Some(graph.reshaped(id, reduced))
}

/// `reduce-window(transpose(x)) => transpose(reduce-window(x))` if the dimensions with windows of
/// more than one element keep their order. Exact for every input: the same elements in the same
/// order.
fn reduce_window_of_transpose(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let Op::ReduceWindow { window, to_apply } = graph[id].op() else { return None };
    let &[transpose, init] = graph[id].operands() else { return None };
    let permutation = graph.sinking_permutation(transpose)?;
    let x = graph.operand(transpose);
    let wide = (0..permutation.len()).filter(|&d| window.dimensions[d].size != 1);
    if !wide.map(|d| permutation[d]).is_sorted() {
        return None;
    }
    let op = {
        let place = |d: usize| permutation.iter().position(|&p| p == d);
        let dimensions: Option<Vec<WindowDimension>> =
            (0..permutation.len()).map(|d| Some(window.dimensions[place(d)?])).collect();
        Op::ReduceWindow { window: Window { dimensions: dimensions? }, to_apply: *to_apply }
    };
    Some(graph.transposed_after(id, op, &[x, init], &permutation))
}
