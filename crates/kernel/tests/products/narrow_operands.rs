//! Dots of few rows whose kernels widen the right operand when they read it, compared with the
//! evaluator.

use super::group_products::{check_with, tolerance};
use crate::harness::{Tolerance, Values};
use shape::PrimitiveType::{self, Bf16, F16, F32, S8, U8};

/// The types that kernels widen to `f32`.
pub(crate) const NARROW: [PrimitiveType; 4] = [Bf16, F16, S8, U8];

/// The text of two products of `m` rows and a narrow array, whose last dimension is that of the
/// summands or of the columns, in one kernel.
pub(crate) fn widened(stored: PrimitiveType, [m, n, k]: [i64; 3], is_along_k: bool) -> String {
    let (sizes, contracting) = if is_along_k { ([n, k], 2) } else { ([k, n], 1) };
    let [outer, inner] = sizes;
    format!(
        "HloModule widened\n\nbody {{\n  x = f32[2,{m},{k}] parameter(0)\n  y = {stored}[2,{outer},{inner}] parameter(1)\n  \
         wide = f32[2,{outer},{inner}] convert(y)\n  ROOT d = f32[2,{m},{n}] dot(x, wide), lhs_batch_dims={{0}}, \
         rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{{contracting}}}\n}}\n\n\
         ENTRY main {{\n  x = f32[2,{m},{k}] parameter(0)\n  y = {stored}[2,{outer},{inner}] parameter(1)\n  \
         ROOT d = f32[2,{m},{n}] fusion(x, y), kind=kOutput, calls=body\n}}\n"
    )
}

/// Integers have exact sums: rows are small ones, and bytes are all of them.
fn check(stored: PrimitiveType, text: &str) {
    let values = |of: PrimitiveType| match of {
        F32 if stored.is_integer() => Values::Below(8),
        of if of.is_integer() => Values::Hard,
        _ => Values::Tame,
    };
    check_with(text, values, |of| if stored.is_integer() { Tolerance::Exact } else { tolerance(of) });
}

#[test]
fn few_rows_widen_what_they_read() {
    // Rows, columns, summands.
    let shapes = [[1, 40, 64], [1, 7, 33], [1, 1, 200], [2, 19, 16], [3, 21, 130], [4, 64, 128], [4, 3, 300]];
    for stored in NARROW {
        for shape in shapes {
            check(stored, &widened(stored, shape, true));
            check(stored, &widened(stored, shape, false));
        }
    }
}

/// The plan packs what it cannot read in place.
#[test]
fn other_layouts_are_packed() {
    for stored in NARROW {
        check(stored, &widened(stored, [2, 24, 40], true));
        let text = format!(
            "HloModule apart\n\nbody {{\n  x = f32[2,5,16] parameter(0)\n  y = {stored}[5,16,9] parameter(1)\n  \
             wide = f32[5,16,9] convert(y)\n  ROOT d = f32[2,9] dot(x, wide), lhs_contracting_dims={{2,1}}, \
             rhs_contracting_dims={{1,0}}\n}}\n\nENTRY main {{\n  x = f32[2,5,16] parameter(0)\n  \
             y = {stored}[5,16,9] parameter(1)\n  ROOT d = f32[2,9] fusion(x, y), kind=kOutput, calls=body\n}}\n"
        );
        check(stored, &text);
    }
}
