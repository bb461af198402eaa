//! Squares transposed in registers, in loop nests and in packed right operands of contractions,
//! compared with the evaluator.

use crate::harness::{Tolerance, Values, check};

#[test]
fn transposes_of_squares_and_their_remainders() {
    for element_type in ["f32", "f64", "s8", "bf16", "pred", "c64"] {
        for (rows, columns) in [(16, 16), (64, 64), (33, 50), (70, 17), (16, 5), (3, 40), (128, 2)] {
            let text = format!(
                "HloModule squares\n\nENTRY main {{\n  a = {element_type}[{rows},{columns}] parameter(0)\n  ROOT r = {element_type}[{columns},{rows}] transpose(a), dimensions={{1,0}}\n}}\n"
            );
            check(&text, &[Values::Hard], Tolerance::Exact);
        }
    }
}

#[test]
fn squares_between_other_dimensions_and_other_work() {
    let bodies = [
        (
            "f32[5,20,3,18]",
            "f32[5,18,3,20]",
            "t = f32[5,18,3,20] transpose(a), dimensions={0,3,2,1}\n  ROOT r = f32[5,18,3,20] add(t, b)",
        ),
        (
            "f32[20,3,18]",
            "f32[18,20,3]",
            "t = f32[18,20,3] transpose(a), dimensions={2,0,1}\n  ROOT r = f32[18,20,3] subtract(b, t)",
        ),
        (
            "f32[40,70]",
            "f32[33,20]",
            "s = f32[20,33] slice(a), slice={[1:40:2], [30:63]}\n  t = f32[33,20] transpose(s), dimensions={1,0}\n  ROOT r = f32[33,20] multiply(t, b)",
        ),
        (
            "f32[32,32]",
            "f32[32,32]",
            "t = f32[32,32] transpose(a), dimensions={1,0}\n  s = f32[32,32] add(a, t)\n  ROOT r = f32[32,32] add(s, b)",
        ),
        (
            "f32[40]",
            "f32[20,40]",
            "v = f32[40,20] broadcast(a), dimensions={0}\n  t = f32[20,40] transpose(v), dimensions={1,0}\n  ROOT r = f32[20,40] add(t, b)",
        ),
    ];
    for (a, b, body) in bodies {
        let text = format!(
            "HloModule squares\n\nfused {{\n  a = {a} parameter(0)\n  b = {b} parameter(1)\n  {body}\n}}\n\nENTRY main {{\n  a = {a} parameter(0)\n  b = {b} parameter(1)\n  ROOT f = {b} fusion(a, b), kind=kLoop, calls=fused\n}}\n"
        );
        check(&text, &[Values::Tame, Values::Tame], Tolerance::Exact);
    }
}

#[test]
fn parts_of_complex_numbers_in_squares() {
    for (rows, columns) in [(16, 16), (33, 50), (70, 17), (16, 5)] {
        let text = format!(
            "HloModule squares\n\nfused {{\n  a = f32[{rows},{columns}] parameter(0)\n  b = c64[{columns},{rows}] parameter(1)\n  t = f32[{columns},{rows}] transpose(a), dimensions={{1,0}}\n  i = f32[{columns},{rows}] imag(b)\n  c = c64[{columns},{rows}] complex(t, i)\n  ROOT r = c64[{columns},{rows}] multiply(b, c)\n}}\n\nENTRY main {{\n  a = f32[{rows},{columns}] parameter(0)\n  b = c64[{columns},{rows}] parameter(1)\n  ROOT f = c64[{columns},{rows}] fusion(a, b), kind=kLoop, calls=fused\n}}\n"
        );
        check(&text, &[Values::Tame, Values::Tame], Tolerance::Relative(1e-6));
    }
}

#[test]
fn right_operands_packed_panel_by_panel() {
    // Small integers, so that every sum is exact in any order.
    for element_type in ["f32", "f64", "s32", "bf16"] {
        for (m, n, k) in [(20, 70, 35), (17, 64, 16), (3, 9, 50), (30, 5, 7), (40, 1030, 66), (40, 1024, 130)]
        {
            for contracting in [0, 1] {
                let right = if contracting == 0 { [k, n] } else { [n, k] };
                let text = format!(
                    "HloModule panels\n\nENTRY main {{\n  a = {element_type}[2,{m},{k}] parameter(0)\n  b = {element_type}[2,{},{}] parameter(1)\n  ROOT r = {element_type}[2,{m},{n}] dot(a, b), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{{}}}\n}}\n",
                    right[0],
                    right[1],
                    contracting + 1
                );
                check(&text, &[Values::Below(3), Values::Below(3)], Tolerance::Exact);
            }
        }
    }
}
