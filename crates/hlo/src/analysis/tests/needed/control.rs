//! Loops and branches of programs with a named size.

use super::{extents, module};
use crate::Module;
use crate::analysis::NeededSizes;

fn check(module: &Module, table: &[(&str, &[&str])]) {
    let needed = NeededSizes::of(module, &|_, _| false);
    for (name, expected) in table {
        assert_eq!(extents(module, &needed, name), *expected, "{name}");
    }
}

/// A recurrent layer over `n` steps of a sequence. Its condition and the place of its slice vary.
fn recurrent(condition: &str, place: &str, start: &str, step: &str) -> Module {
    let state = "(s32[], f32[4,8], f32[8,4,8], s32[], f32[8,4,8])";
    let functions = format!(
        "cond {{\n  cs = {state} parameter(0)\n  ci = s32[] get-tuple-element(cs), index=0\n  \
         cn = s32[] get-tuple-element(cs), index=3\n  cz = s32[] constant(0)\n  ROOT verdict = pred[] {condition}\n}}\n\n\
         count {{\n  p = s32[] parameter(0)\n  by = s32[] constant({step})\n  ROOT o = s32[] add(p, by)\n}}\n\n\
         body {{\n  s = {state} parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  \
         h = f32[4,8] get-tuple-element(s), index=1\n  list = f32[8,4,8] get-tuple-element(s), index=2\n  \
         m = s32[] get-tuple-element(s), index=3\n  xs = f32[8,4,8] get-tuple-element(s), index=4\n  \
         one = s32[] constant(1)\n  zero = s32[] constant(0)\n  last = s32[] subtract(m, one)\n  \
         from_end = s32[] subtract(last, i)\n  \
         part = f32[1,4,8] dynamic-slice(xs, {place}, zero, zero), dynamic_slice_sizes={{1,4,8}}\n  \
         x = f32[4,8] reshape(part)\n  sum = f32[4,8] add(x, h)\n  row = f32[1,4,8] reshape(sum)\n  \
         next_list = f32[8,4,8] dynamic-update-slice(list, row, i, zero, zero)\n  \
         next = s32[] fusion(i), kind=kLoop, calls=count\n  ROOT r = {state} tuple(next, sum, next_list, m, xs)\n}}\n"
    );
    let entry = format!(
        "  x0 = f32[8,4,8] parameter(1)\n  y0 = f32[8,4,8] negate(x0)\n  c = f32[] constant(0)\n  \
         h0 = f32[4,8] broadcast(c), dimensions={{}}\n  list0 = f32[8,4,8] broadcast(c), dimensions={{}}\n  \
         zero0 = s32[] constant(0)\n  one0 = s32[] constant(1)\n  last0 = s32[] subtract(n, one0)\n  \
         t = {state} tuple({start}, h0, list0, n, y0)\n  \
         w = {state} while(t), condition=cond, body=body\n  rows = f32[8,4,8] get-tuple-element(w), index=2\n  \
         out = f32[8,4,8] transpose(rows), dimensions={{0,1,2}}\n  \
         ROOT q = (f32[8,4,8], s32[]) tuple(out, n)"
    );
    module(&functions, &entry, 0)
}

#[test]
fn a_loop_reads_as_many_steps_as_it_has_iterations() {
    let less = "compare(ci, cn), direction=LT";
    let limited: &[(&str, &str, &str, &str)] = &[
        (less, "i", "zero0", "1"),
        ("compare(cn, ci), direction=GT", "i", "zero0", "2"),
        // The first one read is the last one of the sequence.
        (less, "from_end", "zero0", "1"),
        ("compare(ci, cz), direction=GE", "i", "last0", "-1"),
    ];
    for &(condition, place, start, step) in limited {
        let module = recurrent(condition, place, start, step);
        check(&module, &[("xs", &["n", "all", "all"]), ("y0", &["n", "all", "all"])]);
        check(&module, &[("list0", &["n", "all", "all"]), ("next_list", &["n", "all", "all"])]);
        check(&module, &[("sum", &["all", "all"]), ("h0", &["all", "all"])]);
    }
    let unlimited: &[(&str, &str, &str, &str)] = &[
        ("compare(ci, cn), direction=NE", "i", "zero0", "1"),
        ("compare(cn, cn), direction=LE", "i", "zero0", "1"),
        ("compare(cn, ci), direction=GT", "i", "zero0", "-1"),
        ("compare(ci, cz), direction=NE", "i", "last0", "-1"),
    ];
    for &(condition, place, start, step) in unlimited {
        let module = recurrent(condition, place, start, step);
        check(&module, &[("xs", &["all", "all", "all"]), ("list0", &["n", "all", "all"])]);
    }
}

#[test]
fn state_is_read_as_far_as_any_iteration_reads_it() {
    let state = "(s32[], f32[8,4], f32[8,4], f32[8], s32[])";
    let functions = |shift: &str| {
        format!(
            "add {{\n  p = f32[] parameter(0)\n  q = f32[] parameter(1)\n  ROOT o = f32[] add(p, q)\n}}\n\n\
             cond {{\n  cs = {state} parameter(0)\n  ci = s32[] get-tuple-element(cs), index=0\n  \
             c = s32[] constant(3)\n  ROOT verdict = pred[] compare(ci, c), direction=LT\n}}\n\n\
             body {{\n  s = {state} parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  \
             a = f32[8,4] get-tuple-element(s), index=1\n  b = f32[8,4] get-tuple-element(s), index=2\n  \
             e = f32[8] get-tuple-element(s), index=3\n  m = s32[] get-tuple-element(s), index=4\n  \
             one = s32[] constant(1)\n  none = f32[] constant(0)\n  next = s32[] add(i, one)\n  \
             next_a = f32[8,4] exponential(b)\n  next_b = f32[8,4] {shift}\n  ids = s32[8] iota(), iota_dimension=0\n  \
             ms = s32[8] broadcast(m), dimensions={{}}\n  is_row = pred[8] compare(ids, ms), direction=LT\n  \
             nones = f32[8] broadcast(none), dimensions={{}}\n  shown = f32[8] select(is_row, e, nones)\n  \
             total = f32[] reduce(shown, none), dimensions={{0}}, to_apply=add\n  \
             totals = f32[8] broadcast(total), dimensions={{}}\n  next_e = f32[8] add(totals, e)\n  \
             ROOT r = {state} tuple(next, next_a, next_b, next_e, m)\n}}\n"
        )
    };
    let entry = format!(
        "  x = f32[8,4] parameter(1)\n  e0 = f32[8] parameter(2)\n  y = f32[8,4] negate(x)\n  z = f32[8,4] cosine(x)\n  \
         u = f32[8] sine(e0)\n  zero = s32[] constant(0)\n  t = {state} tuple(zero, y, z, u, n)\n  \
         w = {state} while(t), condition=cond, body=body\n  aw = f32[8,4] get-tuple-element(w), index=1\n  \
         ew = f32[8] get-tuple-element(w), index=3\n  sums = f32[8,4] broadcast(ew), dimensions={{0}}\n  \
         out = f32[8,4] add(aw, sums)\n  ROOT q = (f32[8,4], s32[]) tuple(out, n)"
    );
    let kept = module(&functions("negate(a)"), &entry, 0);
    check(&kept, &[("y", &["n", "all"]), ("z", &["n", "all"]), ("u", &["n"]), ("next_e", &["n"])]);
    // Each iteration reads one row more.
    let moved = "  tail = f32[7,4] slice(a), slice={[1:8], [0:4]}\n  rest = f32[8,4] pad(tail, none), padding=0_1x0_0\n  ";
    let text = functions("negate(rest)").replace("  next_b =", &format!("{moved}next_b ="));
    check(&module(&text, &entry, 0), &[("y", &["all", "all"]), ("z", &["all", "all"]), ("next_e", &["n"])]);
}

#[test]
fn branches_read_as_much_as_their_result_needs() {
    let branches = "first {\n  a = f32[8] parameter(0)\n  ROOT b = f32[8] negate(a)\n}\n\n\
        second {\n  c = f32[8] parameter(0)\n  ROOT d = f32[8] reverse(c), dimensions={0}\n}\n";
    let entry = "  x = f32[8] parameter(1)\n  k = s32[] parameter(2)\n  y = f32[8] exponential(x)\n  z = f32[8] cosine(x)\n  \
        w = f32[8] conditional(k, y, z), branch_computations={first, second}\n  out = f32[8] sine(w)\n  \
        ROOT q = (f32[8], s32[]) tuple(out, n)";
    let module = module(branches, entry, 0);
    check(&module, &[("w", &["n"]), ("b", &["n"]), ("y", &["n"]), ("d", &["n"]), ("z", &["all"])]);
}

#[test]
fn a_loop_that_only_has_to_end_reads_what_ends_it() {
    let state = "(s32[], f32[8], f32[8])";
    let functions = format!(
        "add {{\n  p = f32[] parameter(0)\n  q = f32[] parameter(1)\n  ROOT o = f32[] add(p, q)\n}}\n\n\
         cond {{\n  cs = {state} parameter(0)\n  a = f32[8] get-tuple-element(cs), index=1\n  c = f32[] constant(3)\n  \
         sum = f32[] reduce(a, c), dimensions={{0}}, to_apply=add\n  \
         ROOT verdict = pred[] compare(sum, c), direction=LT\n}}\n\n\
         body {{\n  s = {state} parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  \
         aa = f32[8] get-tuple-element(s), index=1\n  bb = f32[8] get-tuple-element(s), index=2\n  \
         next_a = f32[8] exponential(aa)\n  next_b = f32[8] cosine(bb)\n  ROOT r = {state} tuple(i, next_a, next_b)\n}}\n"
    );
    let entry = format!(
        "  x = f32[8] parameter(1)\n  y = f32[8] negate(x)\n  z = f32[8] sine(x)\n  zero = s32[] constant(0)\n  \
         t = {state} tuple(zero, y, z)\n  w = {state} while(t), condition=cond, body=body\n  \
         out = f32[8] get-tuple-element(w), index=2\n  ROOT q = (f32[8], s32[]) tuple(out, n)"
    );
    check(
        &module(&functions, &entry, 0),
        &[("y", &["all"]), ("z", &["n"]), ("next_a", &["all"]), ("next_b", &["n"])],
    );
}

#[test]
fn the_last_elements_of_a_reverse_are_the_first_ones() {
    let entry = |end: &str, low: &str| {
        format!(
            "  x = f32[8,4] parameter(1)\n  y = f32[8,4] exponential(x)\n  back = f32[8,4] reverse(y), dimensions={{0}}\n  \
             c = f32[] constant(0)\n  more = f32[16,4] pad(back, c), padding={low}_8x0_0\n  eight = s32[] constant({end})\n  \
             zero = s32[] constant(0)\n  start = s32[] subtract(eight, n)\n  \
             part = f32[8,4] dynamic-slice(more, start, zero), dynamic_slice_sizes={{8,4}}\n  \
             ROOT q = (f32[8,4], s32[]) tuple(part, n)"
        )
        .replace("f32[16,4]", if low == "1" { "f32[17,4]" } else { "f32[16,4]" })
    };
    for (end, low, expected) in [("8", "0", "n"), ("9", "0", "n-1"), ("7", "0", "all"), ("8", "1", "all")] {
        check(&module("", &entry(end, low), 0), &[("part", &["n", "all"]), ("y", &[expected, "all"])]);
    }
}
