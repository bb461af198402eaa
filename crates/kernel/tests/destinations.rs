//! Contractions whose results are renumbered, transposed, or written into a slice of a larger
//! array, compared with the evaluator.

use crate::harness::{Tolerance, Values, check};

/// Returns a module of one fusion. `body` follows parameters of these shapes.
fn fusion(parameters: &[&str], body: &str, result: &str) -> String {
    let list = |call: &str| -> String {
        let one = |(k, shape): (usize, &&str)| format!("  p{k} = {shape} {call}({k})\n");
        parameters.iter().enumerate().map(one).collect()
    };
    let names: Vec<String> = (0..parameters.len()).map(|k| format!("p{k}")).collect();
    format!(
        "HloModule m\n\nfused {{\n{}{body}\n}}\n\nENTRY main {{\n{}  ROOT f = {result} fusion({}), kind=kOutput, \
         calls=fused\n}}\n",
        list("parameter"),
        list("parameter"),
        names.join(", ")
    )
}

const PLAIN: &str = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";

#[test]
fn a_bias_after_a_reshape() {
    for (batch, rows, columns) in
        [(1, 1, 1), (1, 7, 15), (2, 5, 16), (3, 4, 17), (2, 13, 64), (5, 9, 70), (1, 50, 129)]
    {
        for (ty, tolerance) in [("f32", 1e-4), ("f64", 1e-9), ("bf16", 0.1), ("s32", 0.0)] {
            let (flat, whole) =
                (format!("{ty}[{},{columns}]", batch * rows), format!("{ty}[{batch},{rows},{columns}]"));
            let (x, y) = (format!("{ty}[{},23]", batch * rows), format!("{ty}[23,{columns}]"));
            let body = format!(
                "  d = {flat} dot(p0, p1), {PLAIN}\n  w = {whole} reshape(d)\n  \
                 b = {whole} broadcast(p2), dimensions={{2}}\n  s = {whole} add(w, b)\n  \
                 c = {whole} broadcast(p3), dimensions={{0}}\n  t = {whole} multiply(s, c)\n  \
                 ROOT r = {whole} add(t, p4)"
            );
            let parameters = [&x, &y, &format!("{ty}[{columns}]"), &format!("{ty}[{batch}]"), &whole];
            let parameters: Vec<&str> = parameters.into_iter().map(String::as_str).collect();
            check(&fusion(&parameters, &body, &whole), &[Values::Tame], Tolerance::Relative(tolerance));
        }
    }
}

/// A long epilogue runs after several tiles are complete. Until then, their sums are in the
/// result's memory.
#[test]
fn long_work_is_deferred() {
    let tanh = |rows: i64, columns: i64, inner: i64, ty: &str| {
        let (flat, whole) = (format!("{ty}[{rows},{columns}]"), format!("{ty}[1,{rows},{columns}]"));
        let body = format!(
            "  d = {flat} dot(p0, p1), {PLAIN}\n  w = {whole} reshape(d)\n  b = {whole} broadcast(p2), dimensions={{2}}\n  \
             s = {whole} add(w, b)\n  t = {whole} tanh(s)\n  ROOT r = {whole} multiply(t, p3)"
        );
        let (x, y) = (format!("{ty}[{rows},{inner}]"), format!("{ty}[{inner},{columns}]"));
        fusion(&[&x, &y, &format!("{ty}[{columns}]"), &whole], &body, &whole)
    };
    for (rows, columns) in [(0, 5), (1, 1), (2, 15), (5, 16), (7, 17), (13, 64), (40, 71), (150, 200)] {
        for (ty, tolerance) in [("f32", 1e-4), ("f64", 1e-9), ("bf16", 0.1)] {
            check(&tanh(rows, columns, 9, ty), &[Values::Tame], Tolerance::Relative(tolerance));
        }
    }
    // With one summand, the order of summation does not decide which results are infinite.
    check(&tanh(6, 40, 1, "f32"), &[Values::Hard], Tolerance::Relative(1e-5));
    // Panels that are packed at run time, and heads that are split.
    let body = format!(
        "  d = f32[300,96] dot(p0, p1), {PLAIN}\n  t = f32[300,96] tanh(d)\n  w = f32[3,100,6,16] reshape(t)\n  \
         ROOT h = f32[3,6,100,16] transpose(w), dimensions={{0,2,1,3}}"
    );
    let text = fusion(&["f32[300,64]", "f32[64,96]"], &body, "f32[3,6,100,16]");
    check(&text, &[Values::Tame], Tolerance::Relative(1e-4));
    // The result reuses the residual's memory.
    let text = format!(
        "HloModule m\n\nfused {{\n  x = f32[30,9] parameter(0)\n  y = f32[9,70] parameter(1)\n  r = f32[30,70] parameter(2)\n  \
         d = f32[30,70] dot(x, y), {PLAIN}\n  t = f32[30,70] tanh(d)\n  ROOT s = f32[30,70] add(t, r)\n}}\n\nENTRY main {{\n  \
         x = f32[30,9] parameter(0)\n  y = f32[9,70] parameter(1)\n  z = f32[30,70] parameter(2)\n  n = f32[30,70] negate(z)\n  \
         ROOT f = f32[30,70] fusion(x, y, n), kind=kOutput, calls=fused\n}}\n"
    );
    check(&text, &[Values::Tame], Tolerance::Relative(1e-4));
}

#[test]
fn special_numbers_pass_a_reshape() {
    let body = format!(
        "  d = f32[6,40] dot(p0, p1), {PLAIN}\n  w = f32[2,3,40] reshape(d)\n  ROOT r = f32[2,3,40] maximum(w, p2)"
    );
    let text = fusion(&["f32[6,1]", "f32[1,40]", "f32[2,3,40]"], &body, "f32[2,3,40]");
    check(&text, &[Values::Hard], Tolerance::Exact);
}

#[test]
fn heads_are_split_and_merged_where_they_are_stored() {
    for (batch, rows, heads, depth) in [(1, 1, 2, 16), (2, 7, 3, 16), (1, 30, 4, 64), (3, 5, 2, 48)] {
        let (all, columns) = (batch * rows, heads * depth);
        let body = format!(
            "  d = f32[{all},{columns}] dot(p0, p1), {PLAIN}\n  \
             w = f32[{batch},{rows},{heads},{depth}] reshape(d)\n  \
             b = f32[{batch},{rows},{heads},{depth}] broadcast(p2), dimensions={{2,3}}\n  \
             s = f32[{batch},{rows},{heads},{depth}] add(w, b)\n  \
             ROOT t = f32[{batch},{heads},{rows},{depth}] transpose(s), dimensions={{0,2,1,3}}"
        );
        let (x, y) = (format!("f32[{all},19]"), format!("f32[19,{columns}]"));
        let (bias, result) =
            (format!("f32[{heads},{depth}]"), format!("f32[{batch},{heads},{rows},{depth}]"));
        check(&fusion(&[&x, &y, &bias], &body, &result), &[Values::Tame], Tolerance::Relative(1e-4));

        let body = format!(
            "  d = f32[{batch},{heads},{rows},{depth}] dot(p0, p1), lhs_batch_dims={{0,1}}, rhs_batch_dims={{0,1}}, \
             lhs_contracting_dims={{3}}, rhs_contracting_dims={{2}}\n  \
             t = f32[{batch},{rows},{heads},{depth}] transpose(d), dimensions={{0,2,1,3}}\n  \
             w = f32[{all},{columns}] reshape(t)\n  b = f32[{all},{columns}] broadcast(p2), dimensions={{1}}\n  \
             ROOT r = f32[{all},{columns}] add(w, b)"
        );
        let x = format!("f32[{batch},{heads},{rows},11]");
        let y = format!("f32[{batch},{heads},11,{depth}]");
        let text = fusion(&[&x, &y, &format!("f32[{columns}]")], &body, &format!("f32[{all},{columns}]"));
        check(&text, &[Values::Tame], Tolerance::Relative(1e-4));
    }
}

/// The array is an argument, which must not be overwritten. The elements outside the slice are
/// copied.
#[test]
fn a_slice_of_a_copied_array() {
    for (rows, columns, before, behind) in
        [(1, 1, 0, 1), (6, 15, 3, 0), (9, 16, 0, 16), (40, 33, 7, 5), (300, 64, 64, 1)]
    {
        let whole = before + columns + behind;
        let body = format!(
            "  d = f32[{rows},{columns}] dot(p0, p1), {PLAIN}\n  b = f32[{rows},{columns}] broadcast(p2), \
             dimensions={{1}}\n  s = f32[{rows},{columns}] add(d, b)\n  z = s32[] constant(0)\n  \
             o = s32[] constant({before})\n  \
             ROOT u = f32[{rows},{whole}] dynamic-update-slice(p3, s, z, o)"
        );
        let (x, y) = (format!("f32[{rows},65]"), format!("f32[65,{columns}]"));
        let (bias, array) = (format!("f32[{columns}]"), format!("f32[{rows},{whole}]"));
        let text = fusion(&[&x, &y, &bias, &array], &body, &array);
        check(&text, &[Values::Tame], Tolerance::Relative(1e-3));

        let body = format!(
            "  c = f32[{columns},{rows}] dot(p0, p1), {PLAIN}\n  d = f32[{columns},{rows}] exponential(c)\n  \
             z = s32[] constant(0)\n  o = s32[] constant({before})\n  ROOT u = f32[{whole},{rows}] dynamic-update-slice(p2, d, o, z)"
        );
        let (x, y) = (format!("f32[{columns},65]"), format!("f32[65,{rows}]"));
        let array = format!("f32[{whole},{rows}]");
        check(&fusion(&[&x, &y, &array], &body, &array), &[Values::Tame], Tolerance::Relative(1e-3));
    }
}

/// Starts beyond the last valid one are clamped.
#[test]
fn a_slice_that_would_not_fit() {
    let body = format!(
        "  d = f32[5,20] dot(p0, p1), {PLAIN}\n  z = s32[] constant(-3)\n  o = s32[] constant(90)\n  \
         ROOT u = f32[5,33] dynamic-update-slice(p2, d, z, o)"
    );
    let text = fusion(&["f32[5,4]", "f32[4,20]", "f32[5,33]"], &body, "f32[5,33]");
    check(&text, &[Values::Tame], Tolerance::Relative(1e-4));
}

/// Three convolutions write disjoint parts of one array, which has no other producer.
#[test]
fn a_chain_of_slices_in_place() {
    let window = "dim_labels=b01f_01io->b01f, window={size=3x3 pad=1_1x1_1}";
    for (batch, features) in [(1, [16, 5, 24]), (2, [1, 33, 16])] {
        let whole: i64 = features.iter().sum();
        let mut bodies = String::new();
        let mut entry = format!(
            "  x = f32[{batch},6,7,12] parameter(0)\n  zero = f32[] constant(0)\n  o0 = s64[] constant(0)\n  \
             u0 = f32[{batch},6,7,{whole}] broadcast(zero), dimensions={{}}\n"
        );
        let mut offset = 0;
        for (k, features) in features.into_iter().enumerate() {
            let result = format!("f32[{batch},6,7,{features}]");
            bodies += &format!(
                "fused{k} {{\n  b = f32[{batch},6,7,{whole}] parameter(0)\n  x = f32[{batch},6,7,12] parameter(1)\n  \
                 k = f32[3,3,12,{features}] parameter(2)\n  c = {result} convolution(x, k), {window}\n  \
                 t = {result} tanh(c)\n  z = s64[] constant(0)\n  o = s64[] constant({offset})\n  \
                 ROOT u = f32[{batch},6,7,{whole}] dynamic-update-slice(b, t, z, z, z, o)\n}}\n\n"
            );
            entry += &format!(
                "  k{k} = f32[3,3,12,{features}] parameter({})\n  u{} = f32[{batch},6,7,{whole}] fusion(u{k}, x, k{k}), \
                 kind=kOutput, calls=fused{k}\n",
                k + 1,
                k + 1
            );
            offset += features;
        }
        let text = format!(
            "HloModule m\n\n{bodies}ENTRY main {{\n{entry}  ROOT r = f32[{batch},6,7,{whole}] negate(u3)\n}}\n"
        );
        check(&text, &[Values::Tame], Tolerance::Relative(1e-3));
        let module = hlo::parse(&text).expect("HLO");
        for target in crate::harness::targets() {
            let plan = plan::plan(&module, &target).expect("a plan");
            let schedule = buffers::schedule(&module, &plan);
            let assignment =
                buffers::assign(&module, &plan, &schedule, &mut buffers::ConstantsPool::default())
                    .expect("an assignment");
            assert_eq!(assignment.temps_size, 0, "all three write the result");
            let memory_only = plan.to_text(&module).matches("memory only").count();
            assert_eq!(memory_only, 1, "nothing fills the array");
        }
    }
}
