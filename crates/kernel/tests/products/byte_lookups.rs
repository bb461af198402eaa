//! Lookups in tables of bytes, compared with the evaluator on each way to compute them.

use super::group_products::check;

/// A function that looks up a byte. The table has all bytes, out of order.
pub(crate) fn lookup(from: &str, to: &str) -> String {
    let low = if to == "s8" { -128 } else { 0 };
    let table = (0..256).map(|k| (low + k * 77 % 256).to_string()).collect::<Vec<_>>().join(",");
    let (number, n) = if from == "u8" { ("", "x") } else { ("n = u8[] bitcast-convert(x)\n", "n") };
    format!(
        "lookup {{\n  x = {from}[] parameter(0)\n  t = {to}[256] constant({{{table}}})\n  {number}  \
         d = {to}[1] dynamic-slice(t, {n}), dynamic_slice_sizes={{1}}\n  ROOT r = {to}[] reshape(d)\n}}\n"
    )
}

#[test]
fn bytes_are_looked_up() {
    for (from, to) in [("s8", "s8"), ("u8", "s8"), ("s8", "u8")] {
        for sizes in ["1000", "7,33", "3,5", "64", "1"] {
            let dimensions =
                (0..sizes.split(',').count()).map(|d| d.to_string()).collect::<Vec<_>>().join(",");
            check(&format!(
                "HloModule lookups\n\n{}\nENTRY main {{\n  x = {from}[{sizes}] parameter(0)\n  \
                 ROOT y = {to}[{sizes}] map(x), dimensions={{{dimensions}}}, to_apply=lookup\n}}\n",
                lookup(from, to)
            ));
        }
    }
}

#[test]
fn bytes_are_looked_up_on_tiles_and_between_elements() {
    check(&format!(
        "HloModule lookups\n\n{}\nbody {{\n  x = s8[9,30] parameter(0)\n  w = s8[30,40] parameter(1)\n  \
         d = s32[9,40] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n  n = s32[] constant(8)\n  \
         ns = s32[9,40] broadcast(n), dimensions={{}}\n  q = s32[9,40] shift-right-arithmetic(d, ns)\n  \
         b = s8[9,40] convert(q)\n  m = s8[9,40] map(b), dimensions={{0,1}}, to_apply=lookup\n  \
         mw = s32[9,40] convert(m)\n  ROOT s = s32[9,40] add(mw, q)\n}}\n\nENTRY main {{\n  x = s8[9,30] parameter(0)\n  \
         w = s8[30,40] parameter(1)\n  ROOT r = s32[9,40] fusion(x, w), kind=kOutput, calls=body\n}}\n",
        lookup("s8", "s8")
    ));
}
