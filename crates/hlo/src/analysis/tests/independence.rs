//! Programs that do or do not compute each row of a batch by itself.

use crate::analysis::{Dependence, RowUse, independent_rows};
use crate::{Module, parse};
use std::collections::BTreeSet;

/// The uses of a batch of 4 rows in parameter 0 of an entry with this body, whose last instruction
/// is the root.
fn uses(computations: &str, body: &str) -> (Module, Result<Vec<RowUse>, Dependence>) {
    let text = format!("HloModule m\n\n{computations}\nENTRY e {{\n{body}\n}}\n");
    let module = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let uses = independent_rows(&module, &BTreeSet::from([0]), 4);
    (module, uses)
}

fn expect(computations: &str, body: &str, expected: &[RowUse]) {
    let (module, uses) = uses(computations, body);
    match uses {
        Ok(uses) => assert_eq!(uses, expected, "{body}"),
        Err(error) => {
            panic!("{}: {}\n{body}", module[error.computation][error.instruction].name(), error.reason)
        }
    }
}

/// Expects that the instruction of this name mixes rows.
fn expect_mixed(computations: &str, body: &str, name: &str) {
    let (module, uses) = uses(computations, body);
    let error = uses.expect_err(body);
    assert_eq!(module[error.computation][error.instruction].name(), name, "{}\n{body}", error.reason);
}

const ADD: &str =
    "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}\n";

#[test]
fn layers_keep_rows_apart() {
    let body = "  x = f32[4,6] parameter(0)\n  w = f32[6,5] parameter(1)\n  \
        d = f32[4,5] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  \
        zero = f32[] constant(0)\n  zeros = f32[4,5] broadcast(zero), dimensions={}\n  \
        relu = f32[4,5] maximum(d, zeros)\n  sum = f32[4] reduce(relu, zero), dimensions={1}, to_apply=add\n  \
        all = f32[4,5] broadcast(sum), dimensions={0}\n  scaled = f32[4,5] divide(relu, all)\n  \
        ROOT r = (f32[4,5], f32[], f32[4]) tuple(scaled, zero, sum)";
    expect(ADD, body, &[RowUse::Rows, RowUse::None, RowUse::Rows]);
}

#[test]
fn the_batch_is_followed_through_transposes_and_reshapes() {
    // Heads of attention: [4,6,8] => [4,6,2,4] => [4,2,6,4] => [8,6,4], and back.
    let body = "  x = f32[4,6,8] parameter(0)\n  a = f32[4,6,2,4] reshape(x)\n  \
        b = f32[4,2,6,4] transpose(a), dimensions={0,2,1,3}\n  c = f32[8,6,4] reshape(b)\n  \
        scores = f32[8,6,6] dot(c, c), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={2}\n  \
        v = f32[8,6,4] dot(scores, c), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}\n  \
        d = f32[4,2,6,4] reshape(v)\n  e = f32[4,6,2,4] transpose(d), dimensions={0,2,1,3}\n  \
        ROOT r = f32[24,8] reshape(e)";
    let (_, mixed) = uses("", body);
    assert_eq!(
        mixed.expect_err("24 rows are not the batch").reason,
        "the batch is not the leading dimension of a result"
    );
    expect("", &body.replace("f32[24,8]", "f32[4,48]"), &[RowUse::Rows]);
}

#[test]
fn images_and_lookups_keep_rows_apart() {
    let body = "  x = f32[4,8,8,3] parameter(0)\n  k = f32[3,3,3,5] parameter(1)\n  zero = f32[] constant(0)\n  \
        c = f32[4,6,6,5] convolution(x, k), window={size=3x3}, dim_labels=b01f_01io->b01f\n  \
        ROOT p = f32[4,3,3,5] reduce-window(c, zero), window={size=1x2x2x1 stride=1x2x2x1}, to_apply=add";
    expect(ADD, body, &[RowUse::Rows]);
    let body = "  i = s32[4,7] parameter(0)\n  table = f32[100,16] parameter(1)\n  \
        ROOT g = f32[4,7,16] gather(table, i), offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, slice_sizes={1,16}";
    expect("", body, &[RowUse::Rows]);
    let body = "  x = f32[4,7,5] parameter(0)\n  i = s32[2] parameter(1)\n  \
        ROOT g = f32[4,2,5] gather(x, i), offset_dims={0,2}, collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=1, slice_sizes={4,1,5}";
    expect("", body, &[RowUse::Rows]);
}

#[test]
fn instructions_that_mix_rows_are_named() {
    let x = "  x = f32[4,6] parameter(0)\n  zero = f32[] constant(0)\n";
    let cases = [
        ("mean", "  ROOT mean = f32[6] reduce(x, zero), dimensions={0}, to_apply=add"),
        ("gram", "  ROOT gram = f32[6,6] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
        ("pairs", "  ROOT pairs = f32[4,4] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}"),
        ("flipped", "  ROOT flipped = f32[4,6] reverse(x), dimensions={0}"),
        ("first", "  ROOT first = f32[1,6] slice(x), slice={[0:1], [0:6]}"),
        ("longer", "  ROOT longer = f32[8,6] concatenate(x, x), dimensions={0}"),
        ("padded", "  ROOT padded = f32[5,6] pad(x, zero), padding=0_1x0_0"),
        ("turned", "  ROOT turned = f32[6,4] transpose(x), dimensions={1,0}"),
        ("sum", "  i = f32[4,6] iota(), iota_dimension=0\n  ROOT sum = f32[4,6] add(x, i)"),
        (
            "sum",
            "  c = f32[4,1] constant({{1}, {2}, {1}, {1}})\n  v = f32[4] reshape(c)\n  b = f32[4,6] broadcast(v), dimensions={0}\n  ROOT sum = f32[4,6] add(x, b)",
        ),
    ];
    for (name, body) in cases {
        expect_mixed(ADD, &format!("{x}{body}"), name);
    }
}

#[test]
fn values_of_equal_rows_may_meet_the_batch() {
    let x = "  x = f32[4,6] parameter(0)\n";
    let cases = [
        "  c = f32[4,2] constant({{1, 2}, {1, 2}, {1, 2}, {1, 2}})\n  z = f32[] constant(0)\n  p = f32[4,6] pad(c, z), padding=0_0x0_4\n  ROOT sum = f32[4,6] add(x, p)",
        "  i = f32[4,6] iota(), iota_dimension=1\n  ROOT sum = f32[4,6] add(x, i)",
        "  b = f32[6] parameter(1)\n  bias = f32[4,6] broadcast(b), dimensions={1}\n  ROOT sum = f32[4,6] add(x, bias)",
    ];
    for body in cases {
        expect("", &format!("{x}{body}"), &[RowUse::Rows]);
    }
}

/// A loop over 3 steps with this new state. The state begins with zeros.
fn recurrence(next: &str) -> (String, String) {
    let state = "(s32[], f32[4,6], f32[4,6])";
    let computations = format!(
        "{ADD}body {{\n  s = {state} parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  \
         h = f32[4,6] get-tuple-element(s), index=1\n  x = f32[4,6] get-tuple-element(s), index=2\n  \
         one = s32[] constant(1)\n  j = s32[] add(i, one)\n{next}\n  ROOT r = {state} tuple(j, n, x)\n}}\n\n\
         condition {{\n  s = {state} parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  \
         three = s32[] constant(3)\n  ROOT r = pred[] compare(i, three), direction=LT\n}}\n"
    );
    let entry = format!(
        "  x = f32[4,6] parameter(0)\n  i = s32[] constant(0)\n  zero = f32[] constant(0)\n  \
         h = f32[4,6] broadcast(zero), dimensions={{}}\n  s = {state} tuple(i, h, x)\n  \
         w = {state} while(s), condition=condition, body=body\n  ROOT r = f32[4,6] get-tuple-element(w), index=1"
    );
    (computations, entry)
}

#[test]
fn the_state_of_a_loop_follows_the_batch() {
    let (computations, entry) = recurrence("  n = f32[4,6] add(h, x)");
    expect(&computations, &entry, &[RowUse::Rows]);
    let (computations, entry) =
        recurrence("  flipped = f32[4,6] reverse(h), dimensions={0}\n  n = f32[4,6] add(flipped, x)");
    expect_mixed(&computations, &entry, "flipped");
    let (computations, entry) =
        recurrence("  k = f32[4,6] iota(), iota_dimension=0\n  n = f32[4,6] add(h, k)");
    // The state does not depend on the batch at all.
    expect(&computations, &entry, &[RowUse::None]);
}

#[test]
fn a_condition_on_rows_is_named() {
    let computations = format!(
        "{ADD}yes {{\n  ROOT p = f32[4,6] parameter(0)\n}}\n\nno {{\n  p = f32[4,6] parameter(0)\n  ROOT n = f32[4,6] negate(p)\n}}\n"
    );
    let body = "  x = f32[4,6] parameter(0)\n  p = pred[] parameter(1)\n  \
        ROOT c = f32[4,6] conditional(p, x, x), true_computation=yes, false_computation=no";
    expect(&computations, body, &[RowUse::Rows]);
}
