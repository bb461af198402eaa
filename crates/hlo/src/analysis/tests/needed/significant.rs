//! Sorts, top-k, running totals, scatters, and slices of arrays with a named size.

use super::{ADD, extents, module, place, to_text};
use crate::analysis::NeededSizes;

/// The mask of the first `n` of 8 elements, and an array `y` of which it hides the others.
fn masked(ty: &str, hidden: &str) -> String {
    format!(
        "  x = {ty}[8] parameter(1)\n  y = {ty}[8] negate(x)\n  i = s32[8] iota(), iota_dimension=0\n  \
         nn = s32[8] broadcast(n), dimensions={{}}\n  mask = pred[8] compare(i, nn), direction=LT\n  \
         hidden = {ty}[] constant({hidden})\n  hiddens = {ty}[8] broadcast(hidden), dimensions={{}}\n  \
         shown = {ty}[8] select(mask, y, hiddens)\n"
    )
}

/// The extents that are significant for an instruction, or nothing.
fn significant(text: &crate::Module, name: &str) -> Vec<String> {
    let needed = NeededSizes::of(text, &|_, _| false);
    let (at, id) = place(text, name);
    needed.significant(at, id).unwrap_or_default().iter().map(|&extent| to_text(extent)).collect()
}

#[test]
fn a_sort_orders_what_its_mask_shows() {
    let comparator = |root: &str| {
        format!(
            "before {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  c = pred[] parameter(2)\n  d = pred[] parameter(3)\n  \
             less = pred[] compare(a, b), direction=LT\n  no = pred[] not(d)\n  or = pred[] or(no, less)\n  \
             ROOT r = pred[] {root}\n}}\n"
        )
    };
    let body = |result: &str| {
        masked("f32", "0")
            + "  s = (f32[8], pred[8]) sort(y, mask), dimensions={0}, to_apply=before\n  \
               sorted = f32[8] get-tuple-element(s), index=0\n  back = f32[8] reverse(sorted), dimensions={0}\n  "
            + &format!("ROOT r = (f32[8], s32[]) tuple({result}, n)")
    };
    let table = [
        ("and(c, or)", "sorted", true),
        // The comparator does not exclude that hidden elements come first.
        ("or(no, less)", "sorted", false),
        // The comparator ignores the mask.
        ("and(less, less)", "sorted", false),
        // All elements of the result are read.
        ("and(c, or)", "back", false),
    ];
    for (root, result, expected) in table {
        let module = module(&comparator(root), &body(result), 0);
        let found = significant(&module, "s");
        assert_eq!(found, if expected { vec!["n"] } else { vec![] }, "{root} {result}");
        let needed = NeededSizes::of(&module, &|_, _| false);
        assert_eq!(extents(&module, &needed, "y"), [if expected { "n" } else { "all" }], "{root} {result}");
    }
}

#[test]
fn top_k_may_reach_beyond_the_size() {
    let body = |largest: bool, hidden: &str, k: i64| {
        masked("s32", hidden)
            + &format!(
                "  t = (s32[{k}], s32[{k}]) topk(shown), k={k}, largest={largest}\n  \
                 top = s32[{k}] get-tuple-element(t), index=0\n  ROOT r = (s32[{k}], s32[]) tuple(top, n)"
            )
    };
    let (low, high) = ("-2147483648", "2147483647");
    for (largest, hidden, k, expected) in [
        (true, low, 8, vec!["n"]),
        (false, high, 8, vec!["n"]),
        (true, high, 8, vec![]),
        (true, "-5", 8, vec![]),
    ] {
        let module = module("", &body(largest, hidden, k), 0);
        assert_eq!(significant(&module, "t"), expected, "{largest} {hidden}");
    }
    // All of the results are read: with two elements, the third one is hidden.
    let text = masked("s32", low)
        + "  t = (s32[3], s32[3]) topk(shown), k=3, largest=true\n  top = s32[3] get-tuple-element(t), index=0\n  \
           z = s32[8] negate(x)\n  ROOT r = (s32[8], s32[3], s32[]) tuple(z, top, n)";
    assert_eq!(significant(&module("", &text, 0), "t"), ["n+3"]);
}

#[test]
fn a_running_total_ends_at_the_size() {
    for (window, zero, expected) in [("0_7", "0", vec!["n"]), ("7_0", "0", vec!["n"]), ("0_7", "1", vec![])] {
        let body = masked("f32", zero)
            + &format!(
                "  zero = f32[] constant(0)\n  \
                 w = f32[8] reduce-window(shown, zero), window={{size=8 pad={window}}}, to_apply=add\n  \
                 ROOT r = (f32[8], s32[]) tuple(w, n)"
            );
        let module = module(ADD, &body, 0);
        assert_eq!(significant(&module, "w"), expected, "{window} {zero}");
    }
}

#[test]
fn a_scatter_reads_updates_that_are_in_range() {
    for (nowhere, expected) in [("-1", "n"), ("4", "n"), ("3", "all")] {
        let body = masked("s32", nowhere)
            + "  u = f32[8,2] parameter(2)\n  v = f32[8,2] exponential(u)\n  zero = f32[] constant(0)\n  \
               buffer = f32[4,2] broadcast(zero), dimensions={}\n  \
               s = f32[4,2] scatter(buffer, shown, v), update_window_dims={1}, inserted_window_dims={0}, \
               scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add\n  z = s32[8] negate(x)\n  \
               ROOT r = (s32[8], f32[4,2], s32[]) tuple(z, s, n)";
        let module = module(ADD, &body, 0);
        let needed = NeededSizes::of(&module, &|_, _| false);
        assert_eq!(extents(&module, &needed, "v"), [expected, "all"], "{nowhere}");
        let found = significant(&module, "s");
        assert_eq!(found, if expected == "n" { vec!["n", "all"] } else { vec![] }, "{nowhere}");
    }
}

#[test]
fn a_slice_at_an_unknown_place_reads_a_bit_more() {
    let body = "  x = f32[10,4] parameter(1)\n  k = s32[] parameter(2)\n  none = s32[] constant(0)\n  \
        y = f32[10,4] negate(x)\n  cut = f32[8,4] dynamic-slice(y, k, none), dynamic_slice_sizes={8,4}\n  \
        ROOT r = (f32[8,4], s32[]) tuple(cut, n)";
    let module = module("", body, 0);
    let needed = NeededSizes::of(&module, &|_, _| false);
    assert_eq!(extents(&module, &needed, "y"), ["n+2", "all"]);
}
