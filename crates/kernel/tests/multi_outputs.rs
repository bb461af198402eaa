//! Compiled kernels with several results, compared with the evaluator.

use crate::harness::{Loaded, Tolerance, Values, check, targets};

/// Sizes around the vector widths of all targets.
const SIZES: [usize; 8] = [1, 3, 4, 7, 15, 16, 17, 50];

const APPLIED: &str = "sum {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT z = f32[] add(x, y)\n}\n\n\
    most {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT z = f32[] maximum(x, y)\n}\n\n";

/// Returns a module whose entry is one fusion with these parameters, body, and results.
fn fusion(parameters: &[String], body: &str, results: &[String]) -> String {
    let mut inside = String::new();
    let mut outside = String::new();
    for (k, shape) in parameters.iter().enumerate() {
        inside += &format!("  p{k} = {shape} parameter({k})\n");
        outside += &format!("  a{k} = {shape} parameter({k})\n");
    }
    let arguments: Vec<String> = (0..parameters.len()).map(|k| format!("a{k}")).collect();
    let shape = format!("({})", results.join(", "));
    format!(
        "HloModule m\n\n{APPLIED}body {{\n{inside}{body}}}\n\nENTRY main {{\n{outside}  \
         ROOT r = {shape} fusion({}), kind=kLoop, calls=body\n}}\n",
        arguments.join(", ")
    )
}

fn check_one_kernel(text: &str, values: Values, tolerance: Tolerance) {
    check(text, &[values], tolerance);
    let module = hlo::parse(text).expect("a module");
    for target in targets() {
        assert_eq!(Loaded::new(&module, &target).expect("it compiles").kernels, 1, "{text}");
    }
}

#[test]
fn elements_of_one_space_in_several_forms() {
    for n in SIZES {
        for element in ["f32", "f64", "bf16", "s32"] {
            let (matrix, flat) = (format!("{element}[3,{n}]"), format!("{element}[3,1,{n}]"));
            let body = format!(
                "  sum = {matrix} add(p0, p1)\n  flat = {flat} reshape(sum)\n  row = {matrix} broadcast(p2), \
                 dimensions={{1}}\n  low = {matrix} minimum(sum, row)\n  \
                 ROOT t = ({flat}, {matrix}, {matrix}) tuple(flat, low, sum)\n"
            );
            let text = fusion(
                &[matrix.clone(), matrix.clone(), format!("{element}[{n}]")],
                &body,
                &[flat, matrix.clone(), matrix],
            );
            check_one_kernel(&text, Values::Hard, Tolerance::Exact);
        }
    }
}

#[test]
fn gates_of_a_cell() {
    for n in SIZES {
        let (gates, state) = (format!("f32[2,{}]", 2 * n), format!("f32[2,{n}]"));
        let body = format!(
            "  f = {state} slice(p0), slice={{[0:2], [0:{n}]}}\n  g = {state} slice(p0), slice={{[0:2], [{n}:{}]}}\n  \
             s = {state} logistic(f)\n  t = {state} tanh(g)\n  c = {state} multiply(s, p1)\n  d = {state} add(c, t)\n  \
             all = {gates} concatenate(t, d), dimensions={{1}}\n  \
             ROOT r = ({state}, {gates}) tuple(d, all)\n",
            2 * n
        );
        let text = fusion(&[gates.clone(), state.clone()], &body, &[state, gates]);
        check_one_kernel(&text, Values::Hard, Tolerance::Relative(1e-5));
    }
}

#[test]
fn slices_are_updated_where_they_belong() {
    for n in SIZES {
        let (state, buffer, wide) =
            (format!("f32[2,{n}]"), format!("f32[4,2,{n}]"), format!("f32[4,2,{}]", 2 * n));
        let body = format!(
            "  s = {state} add(p0, p1)\n  m = {state} multiply(p0, p1)\n  row = f32[1,2,{n}] reshape(s)\n  \
             zero = s32[] constant(0)\n  kept = {buffer} dynamic-update-slice(p2, row, p4, zero, zero)\n  \
             both = f32[2,{0}] concatenate(s, m), dimensions={{1}}\n  line = f32[1,2,{0}] reshape(both)\n  \
             all = {wide} dynamic-update-slice(p3, line, p4, zero, zero)\n  \
             ROOT r = ({state}, {buffer}, {wide}) tuple(m, kept, all)\n",
            2 * n
        );
        let parameters = [state.clone(), state.clone(), buffer.clone(), wide.clone(), "s32[]".to_owned()];
        let text = fusion(&parameters, &body, &[state, buffer, wide]);
        check(
            &text,
            &[Values::Hard, Values::Hard, Values::Hard, Values::Hard, Values::Below(6)],
            Tolerance::Exact,
        );
    }
}

#[test]
fn columns_are_reduced_while_elements_are_stored() {
    for (rows, columns) in [(2, 2), (5, 3), (9, 16), (33, 17), (7, 50), (6, 100), (4, 300)] {
        let (matrix, column) = (format!("f32[{rows},{columns}]"), format!("f32[{columns}]"));
        let body = format!(
            "  zero = f32[] constant(0)\n  low = f32[] constant(-inf)\n  m = {matrix} multiply(p0, p1)\n  \
             a = {column} reduce(p0, zero), dimensions={{0}}, to_apply=sum\n  \
             b = {column} reduce(m, zero), dimensions={{0}}, to_apply=sum\n  \
             c = {column} reduce(m, low), dimensions={{0}}, to_apply=most\n  \
             ROOT r = ({column}, {matrix}, {column}, {column}) tuple(a, m, b, c)\n"
        );
        let text = fusion(
            &[matrix.clone(), matrix.clone()],
            &body,
            &[column.clone(), matrix, column.clone(), column],
        );
        check_one_kernel(&text, Values::Tame, Tolerance::Relative(1e-5));
        check_one_kernel(&text, Values::Hard, Tolerance::Relative(1e-5));
    }
}

#[test]
fn kept_and_reduced_dimensions_alternate() {
    let body = "  zero = f32[] constant(0)\n  s = f32[3,7,1,4,20] subtract(p0, p1)\n  \
                a = f32[7,1,20] reduce(p0, zero), dimensions={0,3}, to_apply=sum\n  \
                b = f32[7,1,20] reduce(s, zero), dimensions={0,3}, to_apply=sum\n  \
                ROOT r = (f32[7,1,20], f32[7,1,20]) tuple(a, b)\n";
    let array = "f32[3,7,1,4,20]".to_owned();
    let text = fusion(&[array.clone(), array], body, &["f32[7,1,20]".to_owned(), "f32[7,1,20]".to_owned()]);
    check_one_kernel(&text, Values::Tame, Tolerance::Relative(1e-5));
}

#[test]
fn variables_are_updated_in_their_places() {
    for n in SIZES {
        let v = format!("f32[{n}]");
        let body = format!(
            "  m = {v} add(p0, p2)\n  s = {v} multiply(p2, p2)\n  q = {v} add(p1, s)\n  d = {v} divide(m, q)\n  \
             w = {v} subtract(p3, d)\n  ROOT r = ({v}, {v}, {v}) tuple(m, q, w)\n"
        );
        let parameters = vec![v.clone(); 4];
        let text = fusion(&parameters, &body, &vec![v; 3]);
        let alias = "HloModule m, input_output_alias={ {0}: (0, {}, must-alias), {1}: (1, {}, must-alias), \
                     {2}: (3, {}, must-alias) }";
        check_one_kernel(&text.replacen("HloModule m", alias, 1), Values::Tame, Tolerance::Relative(1e-6));
    }
}
