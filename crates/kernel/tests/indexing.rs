//! Compiled opcodes that move elements, alone and inside fusions, compared with the evaluator.

use crate::harness::{Tolerance, Values, check};

/// Returns a module of one computation.
fn entry(lines: &str) -> String {
    format!("HloModule indexing\n\nENTRY main {{\n{lines}\n}}\n")
}

/// Returns a module with a loop fusion of the parameters.
fn fusion(body: &str, parameters: &[&str], result: &str) -> String {
    let mut text = "HloModule indexing\n\nfused {\n".to_owned();
    for (k, shape) in parameters.iter().enumerate() {
        text += &format!("  p{k} = {shape} parameter({k})\n");
    }
    text += body;
    text += "\n}\n\nENTRY main {\n";
    for (k, shape) in parameters.iter().enumerate() {
        text += &format!("  a{k} = {shape} parameter({k})\n");
    }
    let names: Vec<String> = (0..parameters.len()).map(|k| format!("a{k}")).collect();
    text + &format!("  ROOT f = {result} fusion({}), kind=kLoop, calls=fused\n}}\n", names.join(", "))
}

fn exact(text: &str) {
    check(text, &[Values::Hard], Tolerance::Exact);
}

#[test]
fn single_opcodes() {
    let cases = [
        ("f32[5,7]", "f32[7,5] transpose(p0), dimensions={1,0}"),
        ("f32[3,17]", "f32[17,3] transpose(p0), dimensions={1,0}"),
        ("s8[2,3,20]", "s8[20,2,3] transpose(p0), dimensions={2,0,1}"),
        ("c64[3,4]", "c64[4,3] transpose(p0), dimensions={1,0}"),
        ("f32[2,3,4,5]", "f32[3,2,4,5] transpose(p0), dimensions={1,0,2,3}"),
        ("f32[7]", "f32[7,5] broadcast(p0), dimensions={0}"),
        ("f32[7]", "f32[5,7] broadcast(p0), dimensions={1}"),
        ("f32[3,17]", "f32[3,2,17] broadcast(p0), dimensions={0,2}"),
        ("f16[]", "f16[4,9] broadcast(p0), dimensions={}"),
        ("pred[33]", "pred[2,33] broadcast(p0), dimensions={1}"),
        ("f32[10,40]", "f32[3,19] slice(p0), slice={[2:8:2], [1:39:2]}"),
        ("f32[10,40]", "f32[6,40] slice(p0), slice={[2:8], [0:40]}"),
        ("s64[40]", "s64[0] slice(p0), slice={[3:3]}"),
        ("f32[4,35]", "f32[4,35] reverse(p0), dimensions={1}"),
        ("f64[4,35]", "f64[4,35] reverse(p0), dimensions={0}"),
        ("c128[4,5]", "c128[4,5] reverse(p0), dimensions={0,1}"),
        ("bf16[3,20]", "bf16[3,20] reverse(p0), dimensions={0,1}"),
    ];
    for (parameter, call) in cases {
        exact(&entry(&format!("  p0 = {parameter} parameter(0)\n  ROOT r = {call}")));
    }
}

#[test]
fn iotas_of_every_type() {
    for element_type in ["s8", "u8", "s16", "s32", "s64", "u64", "f16", "bf16", "f32", "f64", "c64", "s4"] {
        for dimension in [0, 1] {
            exact(&entry(&format!("  ROOT r = {element_type}[7,19] iota(), iota_dimension={dimension}")));
        }
    }
}

#[test]
fn pads() {
    let cases = [
        ("f32[3,20]", "f32[5,20]", "1_1x0_0"),
        ("f32[3,20]", "f32[3,27]", "0_0x3_4"),
        ("f32[3,5]", "f32[8,17]", "1_2_1x0_0_3"),
        ("s32[30]", "s32[25]", "-3_-2"),
        ("s32[3]", "s32[20]", "19_-2"),
        ("f32[0,3]", "f32[2,5]", "1_1x1_1"),
        ("c64[4]", "c64[9]", "2_3"),
        ("u8[40]", "u8[101]", "11_11_1"),
        // Dimensions without padding are merged into one loop.
        ("u64[3,2,1,2]", "u64[3,2,1,3]", "0_0x0_0x0_0x0_1"),
        ("f32[2,3,4,5]", "f32[2,6,4,5]", "0_0x1_2x0_0x0_0"),
    ];
    for (from, to, padding) in cases {
        let element_type = &from[..from.find('[').expect("a shape")];
        exact(&entry(&format!(
            "  p0 = {from} parameter(0)\n  p1 = {element_type}[] parameter(1)\n  ROOT r = {to} pad(p0, p1), padding={padding}"
        )));
    }
}

#[test]
fn concatenations() {
    let cases = [
        (["f32[3,4]", "f32[3,1]", "f32[3,30]"], "f32[3,35]", 1),
        (["f32[3,4]", "f32[0,4]", "f32[2,4]"], "f32[5,4]", 0),
        (["s8[2,3,4]", "s8[2,5,4]", "s8[2,1,4]"], "s8[2,9,4]", 1),
        (["c64[2]", "c64[1]", "c64[3]"], "c64[6]", 0),
    ];
    for (parts, result, dimension) in cases {
        let alone = format!(
            "  p0 = {} parameter(0)\n  p1 = {} parameter(1)\n  p2 = {} parameter(2)\n  ROOT r = {result} concatenate(p0, p1, p2), dimensions={{{dimension}}}",
            parts[0], parts[1], parts[2]
        );
        exact(&entry(&alone));
        let body = format!(
            "  joined = {result} concatenate(p0, p1, p2), dimensions={{{dimension}}}\n  ROOT r = {result} add(joined, joined)"
        );
        check(&fusion(&body, &parts, result), &[Values::Tame], Tolerance::Exact);
    }
}

#[test]
fn dynamic_slices_and_updates_clamp_their_starts() {
    for index_type in ["s32", "s64", "u8", "u64"] {
        let starts = format!(
            "  p0 = f32[5,40] parameter(0)\n  p1 = {index_type}[] parameter(1)\n  p2 = {index_type}[] parameter(2)\n"
        );
        exact(&entry(&format!(
            "{starts}  ROOT r = f32[3,21] dynamic-slice(p0, p1, p2), dynamic_slice_sizes={{3,21}}"
        )));
        for update in ["f32[3,21]", "f32[2,40]", "f32[5,1]", "f32[1,1]", "f32[5,40]", "f32[0,3]"] {
            exact(&entry(&format!(
                "{starts}  p3 = {update} parameter(3)\n  ROOT r = f32[5,40] dynamic-update-slice(p0, p3, p1, p2)"
            )));
        }
    }
}

#[test]
fn gathers() {
    let cases = [
        // Rows of a table.
        (
            "f32[10,33]",
            "s32[7]",
            "f32[7,33]",
            "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,33}",
        ),
        // Single elements by pairs.
        (
            "f32[10,6]",
            "s64[20,2]",
            "f32[20]",
            "offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,1}",
        ),
        // Columns, with the index vector as the first dimension.
        (
            "s16[6,10]",
            "u8[1,5]",
            "s16[6,5]",
            "offset_dims={0}, collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=0, slice_sizes={6,1}",
        ),
        // Windows that are clamped to fit.
        (
            "f32[9,20]",
            "s32[3,2]",
            "f32[3,4,5]",
            "offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={1,0}, index_vector_dim=1, slice_sizes={4,5}",
        ),
        // A batch dimension in both operands.
        (
            "f32[4,9]",
            "s32[4,18]",
            "f32[4,18]",
            "offset_dims={}, collapsed_slice_dims={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, start_index_map={1}, index_vector_dim=2, slice_sizes={1,1}",
        ),
    ];
    for (operand, indices, result, attributes) in cases {
        let text = entry(&format!(
            "  p0 = {operand} parameter(0)\n  p1 = {indices} parameter(1)\n  ROOT r = {result} gather(p0, p1), {attributes}"
        ));
        check(&text, &[Values::Hard, Values::Hard], Tolerance::Exact);
        check(&text, &[Values::Hard, Values::Below(9)], Tolerance::Exact);
    }
}

#[test]
fn maps() {
    let text = "HloModule maps\n\nfma {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  two = f32[] constant(2)\n  d = f32[] multiply(x, two)\n  ROOT s = f32[] subtract(d, y)\n}\n\nENTRY main {\n  a = f32[3,19] parameter(0)\n  b = f32[3,19] parameter(1)\n  ROOT r = f32[3,19] map(a, b), dimensions={0,1}, to_apply=fma\n}\n";
    check(text, &[Values::Tame], Tolerance::Exact);
}

#[test]
fn fusions_reindex_in_every_combination() {
    let cases: [(&str, &[&str], &str); 18] = [
        (
            "  b = f32[6,20] broadcast(p1), dimensions={1}\n  s = f32[6,20] add(p0, b)\n  z = f32[] constant(0)\n  zs = f32[6,20] broadcast(z), dimensions={}\n  ROOT r = f32[6,20] maximum(s, zs)",
            &["f32[6,20]", "f32[20]"],
            "f32[6,20]",
        ),
        (
            "  b = f32[6,20] broadcast(p1), dimensions={0}\n  ROOT r = f32[6,20] multiply(p0, b)",
            &["f32[6,20]", "f32[6]"],
            "f32[6,20]",
        ),
        (
            "  t = f32[20,6] transpose(p0), dimensions={1,0}\n  ROOT r = f32[20,6] subtract(t, p1)",
            &["f32[6,20]", "f32[20,6]"],
            "f32[20,6]",
        ),
        // A reshape of a computed value that changes the dimensions.
        (
            "  t = f32[5,4,3] transpose(p0), dimensions={1,0,2}\n  n = f32[5,4,3] negate(t)\n  ROOT r = f32[6,10] reshape(n)",
            &["f32[4,5,3]"],
            "f32[6,10]",
        ),
        (
            "  n = f32[48] negate(p0)\n  m = f32[6,8] reshape(n)\n  t = f32[8,6] transpose(m), dimensions={1,0}\n  ROOT r = f32[8,6] add(t, p1)",
            &["f32[48]", "f32[8,6]"],
            "f32[8,6]",
        ),
        (
            "  n = f32[4,16] negate(p0)\n  m = f32[64] reshape(n)\n  i = f32[64] iota(), iota_dimension=0\n  ROOT r = f32[64] add(m, i)",
            &["f32[4,16]"],
            "f32[64]",
        ),
        (
            "  m = f32[7,3] reshape(p0)\n  b = f32[7,3] broadcast(p1), dimensions={0}\n  a = f32[7,3] add(m, b)\n  ROOT r = f32[21] reshape(a)",
            &["f32[21]", "f32[7]"],
            "f32[21]",
        ),
        (
            "  s = f32[4,15] slice(p0), slice={[1:5], [2:32:2]}\n  v = f32[4,15] reverse(s), dimensions={1}\n  n = f32[4,15] negate(v)\n  ROOT r = f32[15,4] transpose(n), dimensions={1,0}",
            &["f32[6,40]"],
            "f32[15,4]",
        ),
        (
            "  z = f32[] constant(-1.5)\n  d = f32[6,38] pad(p0, z), padding=1_1x2_3\n  ROOT r = f32[6,38] add(d, p1)",
            &["f32[4,33]", "f32[6,38]"],
            "f32[6,38]",
        ),
        (
            "  g = f32[9,17] gather(p0, p1), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,17}\n  ROOT r = f32[9,17] multiply(g, g)",
            &["f32[5,17]", "s32[9]"],
            "f32[9,17]",
        ),
        (
            "  d = f32[2,17] dynamic-slice(p0, p1, p2), dynamic_slice_sizes={2,17}\n  e = f32[34] reshape(d)\n  ROOT r = f32[34] add(e, p3)",
            &["f32[5,17]", "s32[]", "s32[]", "f32[34]"],
            "f32[34]",
        ),
        (
            "  c = f32[2,2] constant({{1, 2}, {3, 4}})\n  b = f32[2,19,2] broadcast(c), dimensions={0,2}\n  ROOT r = f32[2,19,2] add(b, p0)",
            &["f32[2,19,2]"],
            "f32[2,19,2]",
        ),
        (
            "  c = f32[8] constant({1, 2, 3, 4, 5, 6, 7, 8})\n  b = f32[3,8] broadcast(c), dimensions={1}\n  ROOT r = f32[3,8] add(b, p0)",
            &["f32[3,8]"],
            "f32[3,8]",
        ),
        (
            "  b = c64[3,8] broadcast(p1), dimensions={1}\n  ROOT r = c64[3,8] add(b, p0)",
            &["c64[3,8]", "c64[8]"],
            "c64[3,8]",
        ),
        (
            "  b = c128[3,37] broadcast(p1), dimensions={0}\n  s = c128[3,37] slice(p0), slice={[1:4], [2:39]}\n  ROOT r = c128[3,37] subtract(s, b)",
            &["c128[5,40]", "c128[3]"],
            "c128[3,37]",
        ),
        (
            "  x = c64[35] convert(p1)\n  c = pred[35] compare(p1, p2), direction=LT\n  s = c64[35] slice(p0), slice={[1:36]}\n  ROOT r = c64[35] select(c, x, s)",
            &["c64[40]", "f32[35]", "f32[35]"],
            "c64[35]",
        ),
        ("  v = c64[21] reverse(p0), dimensions={0}\n  ROOT r = c64[21] add(v, p0)", &["c64[21]"], "c64[21]"),
        (
            "  re = f32[50] real(p0)\n  v = f32[50] reverse(re), dimensions={0}\n  im = f32[50] imag(p0)\n  ROOT r = c64[50] complex(v, im)",
            &["c64[50]"],
            "c64[50]",
        ),
    ];
    for (body, parameters, result) in cases {
        check(&fusion(body, parameters, result), &[Values::Tame], Tolerance::Exact);
    }
}

#[test]
fn many_dimensions_collapse_where_they_may() {
    let cases: [(&str, &[&str], &str); 6] = [
        ("  ROOT r = f32[2,3,4,5] add(p0, p1)", &["f32[2,3,4,5]", "f32[2,3,4,5]"], "f32[2,3,4,5]"),
        (
            "  b = f32[2,3,4,5] broadcast(p1), dimensions={2,3}\n  ROOT r = f32[2,3,4,5] add(p0, b)",
            &["f32[2,3,4,5]", "f32[4,5]"],
            "f32[2,3,4,5]",
        ),
        (
            "  b = f32[2,3,4,5] broadcast(p1), dimensions={1,3}\n  ROOT r = f32[2,3,4,5] add(p0, b)",
            &["f32[2,3,4,5]", "f32[3,5]"],
            "f32[2,3,4,5]",
        ),
        (
            "  b = f32[2,1,4,5] broadcast(p1), dimensions={0,3}\n  ROOT r = f32[2,1,4,5] add(p0, b)",
            &["f32[2,1,4,5]", "f32[2,5]"],
            "f32[2,1,4,5]",
        ),
        (
            "  t = f32[3,2,4,5] transpose(p0), dimensions={1,0,2,3}\n  ROOT r = f32[3,2,4,5] add(t, p1)",
            &["f32[2,3,4,5]", "f32[3,2,4,5]"],
            "f32[3,2,4,5]",
        ),
        (
            "  s = f32[2,3,4,5] slice(p0), slice={[1:3], [0:3], [0:4], [0:5]}\n  ROOT r = f32[2,3,4,5] add(s, p1)",
            &["f32[4,3,4,5]", "f32[2,3,4,5]"],
            "f32[2,3,4,5]",
        ),
    ];
    for (body, parameters, result) in cases {
        check(&fusion(body, parameters, result), &[Values::Tame], Tolerance::Exact);
    }
}
