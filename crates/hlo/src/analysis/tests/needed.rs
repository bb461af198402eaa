//! Programs with a named size, and the elements of their arrays that are read.

mod control;
mod significant;

use crate::analysis::{Extent, NeededSizes};
use crate::{BoundedDimension, ComputationId, InstructionId, Module, SizeParameter, parse};

/// A module with the size `n`, parameter 0, from 1 to 8. Its entry has this body, whose last
/// instruction is a tuple of a result and of the size of its dimension `dimension`.
fn module(computations: &str, body: &str, dimension: usize) -> Module {
    let text = format!("HloModule m\n\n{computations}\nENTRY e {{\n  n = s32[] parameter(0)\n{body}\n}}\n");
    let mut module = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    module.set_size_parameters(vec![SizeParameter { parameter: 0, low: 1, high: 8 }]);
    module.set_bounded_dimensions(vec![BoundedDimension { result: 0, dimension }]);
    module
}

fn place(module: &Module, name: &str) -> (ComputationId, InstructionId) {
    let all = module.computations().flat_map(|(at, c)| c.instructions().map(move |(id, i)| (at, id, i)));
    let found = all.into_iter().find(|(_, _, instruction)| instruction.name() == name);
    let (at, id, _) = found.unwrap_or_else(|| panic!("no instruction {name}"));
    (at, id)
}

/// The extents of an array, as text: `n`, `2n+1`, or `all`.
fn extents(module: &Module, needed: &NeededSizes, name: &str) -> Vec<String> {
    let (at, id) = place(module, name);
    let rank = module[at][id].shape().expect_array().rank();
    let all = vec![None; rank];
    needed.array(at, id).unwrap_or(&all).iter().map(|&extent| to_text(extent)).collect()
}

fn to_text(extent: Option<Extent>) -> String {
    let Some(Extent { multiple, offset, divisor, .. }) = extent else { return "all".to_owned() };
    let factor = if multiple == 1 { String::new() } else { multiple.to_string() };
    let sum = if offset == 0 { format!("{factor}n") } else { format!("{factor}n{offset:+}") };
    if divisor == 1 { sum } else { format!("({sum})/{divisor}") }
}

const ADD: &str =
    "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}\n";

const MAX: &str =
    "max {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] maximum(a, b)\n}\n";

#[test]
fn rows_beyond_a_result_s_size_are_not_read() {
    let body = "  x = f32[8,6] parameter(1)\n  w = f32[6,4] parameter(2)\n  \
        d = f32[8,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  \
        t = f32[4,8] transpose(d), dimensions={1,0}\n  heads = f32[4,8,1] reshape(t)\n  \
        back = f32[8,4] transpose(t), dimensions={1,0}\n  y = f32[8,4] add(back, d)\n  \
        two = f32[16,2] reshape(y)\n  z = f32[32] reshape(two)\n  last = f32[8,4] reshape(z)\n  \
        ROOT r = (f32[8,4], s32[]) tuple(last, n)";
    let module = module("", body, 0);
    let needed = NeededSizes::of(&module, &|_, _| false);
    let table = [
        ("last", vec!["n", "all"]),
        ("z", vec!["4n"]),
        ("two", vec!["2n", "all"]),
        ("t", vec!["all", "n"]),
        ("d", vec!["n", "all"]),
        ("x", vec!["n", "all"]),
        ("w", vec!["all", "all"]),
    ];
    for (name, expected) in table {
        assert_eq!(extents(&module, &needed, name), expected, "{name}");
    }
}

#[test]
fn positions_are_followed_through_slices_pads_and_windows() {
    // Of y[i] = x[2i] for i < n, elements up to 2n - 2 are read.
    let body = "  x = f32[16] parameter(1)\n  zero = f32[] constant(0)\n  \
        wide = f32[17] pad(x, zero), padding=1_0\n  sums = f32[15] reduce-window(wide, zero), window={size=3}, to_apply=add\n  \
        y = f32[8] slice(sums), slice={[0:15:2]}\n  ROOT r = (f32[8], s32[]) tuple(y, n)";
    let module = module(ADD, body, 0);
    let needed = NeededSizes::of(&module, &|_, _| false);
    for (name, expected) in [("sums", "2n-1"), ("wide", "2n+1"), ("x", "2n")] {
        assert_eq!(extents(&module, &needed, name), [expected], "{name}");
    }
}

#[test]
fn sizes_may_be_rounded_quotients() {
    let body = "  x = f32[8] parameter(1)\n  y = f32[8] negate(x)\n  one = s32[] constant(1)\n  two = s32[] constant(2)\n  \
        more = s32[] add(n, one)\n  half = s32[] divide(more, two)\n  next = s32[] add(half, one)\n  \
        quarter = s32[] divide(next, two)\n  twice = s32[] multiply(half, two)\n  i = s32[4] iota(), iota_dimension=0\n  \
        limit = s32[4] broadcast(twice), dimensions={}\n  mask = pred[4] compare(i, limit), direction=LT\n  \
        z = f32[4] slice(y), slice={[0:8:2]}\n  c = f32[] constant(0)\n  none = f32[4] broadcast(c), dimensions={}\n  \
        u = f32[4] cosine(z)\n  shown = f32[4] select(mask, u, none)\n  back = f32[4] reverse(shown), dimensions={0}\n  \
        v = f32[4] negate(z)\n  w = f32[2] slice(v), slice={[0:4:2]}\n  r = f32[2] sine(w)\n  \
        ROOT q = (f32[2], f32[4], s32[]) tuple(r, back, quarter)";
    let module = module("", body, 0);
    let needed = NeededSizes::of(&module, &|_, _| false);
    // At most `2 * floor((n + 1) / 2)` is `n + 1`.
    let table =
        [("r", "(n+3)/4"), ("w", "(n+3)/4"), ("v", "(n+1)/2"), ("u", "n+1"), ("z", "n+1"), ("y", "2n+1")];
    for (name, expected) in table {
        assert_eq!(extents(&module, &needed, name), [expected], "{name}");
    }
}

#[test]
fn transforms_read_their_own_numbers() {
    let body = "  x = f32[8,4,6] parameter(1)\n  y = f32[8,4,6] negate(x)\n  \
        f = c64[8,4,4] fft(y), fft_type=RFFT, fft_length={6}\n  g = c64[8,4,4] fft(f), fft_type=FFT, fft_length={4,4}\n  \
        ROOT r = (c64[8,4,4], s32[]) tuple(g, n)";
    let module = module("", body, 0);
    let needed = NeededSizes::of(&module, &|_, _| false);
    for name in ["g", "f", "y", "x"] {
        assert_eq!(extents(&module, &needed, name), ["n", "all", "all"], "{name}");
    }
}

#[test]
fn users_that_read_more_count() {
    let body = "  x = f32[8] parameter(1)\n  y = f32[8] negate(x)\n  z = f32[8] reverse(y), dimensions={0}\n  \
        ROOT r = (f32[8], f32[8], s32[]) tuple(y, z, n)";
    let module = module("", body, 0);
    let needed = NeededSizes::of(&module, &|_, _| false);
    assert_eq!(extents(&module, &needed, "y"), ["all"]);
    assert_eq!(extents(&module, &needed, "x"), ["all"]);
}

/// Softmax of scores over keys, times values, with masks beyond the size.
const ATTENTION: &str = "  q = f32[8,4] parameter(1)\n  k = f32[8,4] parameter(2)\n  v = f32[8,4] parameter(3)\n  \
    scores = f32[8,8] dot(q, k), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n  \
    i = s32[8,8] iota(), iota_dimension=1\n  nn = s32[8,8] broadcast(n), dimensions={}\n  \
    mask = pred[8,8] compare(i, nn), direction=LT\n  low = f32[] constant(-inf)\n  \
    lows = f32[8,8] broadcast(low), dimensions={}\n  shown = f32[8,8] select(mask, scores, lows)\n  \
    top = f32[8] reduce(shown, low), dimensions={1}, to_apply=max\n  tops = f32[8,8] broadcast(top), dimensions={0}\n  \
    less = f32[8,8] subtract(scores, tops)\n  e = f32[8,8] exponential(less)\n  zero = f32[] constant(0)\n  \
    zeros = f32[8,8] broadcast(zero), dimensions={}\n  weights = f32[8,8] select(mask, e, zeros)\n  \
    j = s32[8,4] iota(), iota_dimension=0\n  nj = s32[8,4] broadcast(n), dimensions={}\n  \
    other = pred[8,4] compare(nj, j), direction=GT\n  none = f32[8,4] broadcast(zero), dimensions={}\n  \
    values = f32[8,4] select(other, v, none)\n  \
    y = f32[8,4] dot(weights, values), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  \
    ROOT r = (f32[8,4], s32[]) tuple(y, n)";

#[test]
fn masks_hide_what_is_beyond_a_size() {
    let module = module(MAX, ATTENTION, 0);
    for limits in [false, true] {
        let needed = NeededSizes::of(&module, &|_, _| limits);
        let (at, y) = place(&module, "y");
        assert_eq!(
            needed.summands(at, y).map(|extent| to_text(Some(extent))).as_deref(),
            limits.then_some("n")
        );
        let columns = if limits { "n" } else { "all" };
        assert_eq!(extents(&module, &needed, "weights"), ["n", columns]);
        assert_eq!(extents(&module, &needed, "values"), [columns, "all"]);
        assert_eq!(extents(&module, &needed, "scores"), ["n", "n"]);
        for name in ["q", "k", "v"] {
            assert_eq!(extents(&module, &needed, name), ["n", "all"], "{name}");
        }
        let (at, top) = place(&module, "top");
        let reduced = needed.significant(at, top).expect("a limited reduction").to_vec();
        assert_eq!(reduced.into_iter().map(to_text).collect::<Vec<_>>(), ["all", "n"]);
    }
}

#[test]
fn a_sum_needs_zeros_beyond_the_size() {
    let body = |value: &str| {
        format!(
            "  x = f32[8] parameter(1)\n  i = s32[8] iota(), iota_dimension=0\n  nn = s32[8] broadcast(n), dimensions={{}}\n  \
             mask = pred[8] compare(i, nn), direction=LT\n  c = f32[] constant({value})\n  cs = f32[8] broadcast(c), dimensions={{}}\n  \
             shown = f32[8] select(mask, x, cs)\n  zero = f32[] constant(0)\n  \
             sum = f32[] reduce(shown, zero), dimensions={{0}}, to_apply=add\n  sums = f32[8] broadcast(sum), dimensions={{}}\n  \
             ROOT r = (f32[8], s32[]) tuple(sums, n)"
        )
    };
    for (value, expected) in [("0", true), ("1", false)] {
        let module = module(ADD, &body(value), 0);
        let needed = NeededSizes::of(&module, &|_, _| false);
        let (at, sum) = place(&module, "sum");
        assert_eq!(needed.significant(at, sum).is_some(), expected, "{value}");
        assert_eq!(extents(&module, &needed, "shown"), ["all"]);
        assert_eq!(extents(&module, &needed, "x"), ["n"]);
    }
}

#[test]
fn fusions_are_followed_and_shared_branches_read_everything() {
    let computations = "fused {\n  p = f32[8] parameter(0)\n  q = f32[8] parameter(1)\n  inner = f32[8] negate(p)\n  \
        ROOT o = f32[8] add(inner, q)\n}\n\nbranch {\n  b = f32[8] parameter(0)\n  ROOT m = f32[8] negate(b)\n}\n";
    let body = "  x = f32[8] parameter(1)\n  k = s32[] parameter(2)\n  y = f32[8] exponential(x)\n  \
        w = f32[8] conditional(k, x, x), branch_computations={branch, branch}\n  \
        f = f32[8] fusion(y, w), kind=kLoop, calls=fused\n  ROOT r = (f32[8], s32[]) tuple(f, n)";
    let module = module(computations, body, 0);
    let needed = NeededSizes::of(&module, &|_, _| false);
    for (name, expected) in [("f", "n"), ("inner", "n"), ("y", "n"), ("w", "n"), ("x", "all"), ("m", "all")] {
        assert_eq!(extents(&module, &needed, name), [expected], "{name}");
    }
}

#[test]
fn the_last_row_is_at_the_size() {
    let body = "  x = f32[8,4] parameter(1)\n  one = s32[] constant(1)\n  before = s32[] subtract(n, one)\n  \
        none = s32[] constant(0)\n  low = s32[] maximum(before, none)\n  most = s32[] constant(7)\n  \
        at = s32[] minimum(low, most)\n  y = f32[8,4] negate(x)\n  \
        row = f32[1,4] dynamic-slice(y, at, none), dynamic_slice_sizes={1,4}\n  z = f32[8,4] exponential(x)\n  \
        two = s32[] constant(2)\n  early = s32[] subtract(n, two)\n  \
        other = f32[1,4] dynamic-slice(z, early, none), dynamic_slice_sizes={1,4}\n  \
        w = f32[8] broadcast(one), dimensions={}\n  ROOT r = (f32[8], f32[1,4], f32[1,4], s32[]) tuple(w, row, other, n)";
    let body =
        body.replace("  w = f32[8] broadcast(one)", "  c = f32[] constant(1)\n  w = f32[8] broadcast(c)");
    let module = module("", &body, 0);
    let needed = NeededSizes::of(&module, &|_, _| false);
    assert_eq!(extents(&module, &needed, "y"), ["n", "all"]);
    // With one row, `n - 2` is clamped to row 0.
    assert_eq!(extents(&module, &needed, "z"), ["all", "all"]);
}

#[test]
fn a_size_that_wraps_around_limits_nothing() {
    let body = |ty: &str| {
        format!(
            "  x = f32[8] parameter(1)\n  c = {ty}[] convert(n)\n  two = {ty}[] constant(2)\n  k = {ty}[] subtract(c, two)\n  \
             i = {ty}[8] iota(), iota_dimension=0\n  ks = {ty}[8] broadcast(k), dimensions={{}}\n  \
             mask = pred[8] compare(i, ks), direction=LT\n  zero = f32[] constant(0)\n  \
             zeros = f32[8] broadcast(zero), dimensions={{}}\n  y = f32[8] negate(x)\n  \
             shown = f32[8] select(mask, y, zeros)\n  back = f32[8] reverse(shown), dimensions={{0}}\n  \
             ROOT r = (f32[8], s32[]) tuple(back, n)"
        )
    };
    for (ty, expected) in [("s32", "n-2"), ("u32", "all")] {
        let module = module("", &body(ty), 0);
        let needed = NeededSizes::of(&module, &|_, _| false);
        assert_eq!(extents(&module, &needed, "y"), [expected], "{ty}");
    }
}
