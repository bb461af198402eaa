//! Compiled scatters, sorts, random bits, and control flow, compared with the evaluator.

use crate::harness::{Numbers, Tolerance, Values, check, check_with, random, run, targets};
use shape::{ArrayShape, Literal, PrimitiveType};

fn combiner(op: &str, element_type: &str) -> String {
    let call = if op == "assign" { "copy(y)".to_owned() } else { format!("{op}(x, y)") };
    format!(
        "combine {{\n  x = {element_type}[] parameter(0)\n  y = {element_type}[] parameter(1)\n  ROOT r = {element_type}[] {call}\n}}\n"
    )
}

#[test]
fn scatters() {
    let cases = [
        // Rows, in vectors. Indices beyond the end are skipped.
        (
            "f32[10,35]",
            "s32[8]",
            "f32[8,35]",
            "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1",
        ),
        // Single elements.
        (
            "s32[10,6]",
            "s32[30,2]",
            "s32[30]",
            "update_window_dims={}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=1",
        ),
        // Windows that may not fit.
        (
            "f32[6,9]",
            "s64[4,2]",
            "f32[4,2,5]",
            "update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={1,0}, index_vector_dim=1",
        ),
        // A batch dimension.
        (
            "f32[4,9]",
            "s32[4,7]",
            "f32[4,7]",
            "update_window_dims={}, inserted_window_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={0}, scatter_dims_to_operand_dims={1}, index_vector_dim=2",
        ),
        // The same place for all updates: indices without components.
        (
            "bf16[3]",
            "s32[20,0]",
            "bf16[20,3]",
            "update_window_dims={1}, inserted_window_dims={}, scatter_dims_to_operand_dims={}, index_vector_dim=1",
        ),
        (
            "c64[5]",
            "u8[9]",
            "c64[9]",
            "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1",
        ),
    ];
    for (operand, indices, updates, attributes) in cases {
        let element_type = &operand[..operand.find('[').expect("a shape")];
        for op in ["add", "assign"] {
            let text = format!(
                "HloModule scatters\n\n{}\nENTRY main {{\n  a = {operand} parameter(0)\n  i = {indices} parameter(1)\n  u = {updates} parameter(2)\n  ROOT r = {operand} scatter(a, i, u), {attributes}, to_apply=combine\n}}\n",
                combiner(op, element_type)
            );
            check(&text, &[Values::Tame, Values::Below(11), Values::Tame], Tolerance::Exact);
            check(&text, &[Values::Tame, Values::Hard, Values::Tame], Tolerance::Exact);
        }
    }
}

#[test]
fn sorts_are_stable_and_follow_the_comparison() {
    for size in [0, 1, 2, 3, 8, 37, 64, 129] {
        for (dimension, shape) in
            [(0, format!("[{size}]")), (1, format!("[3,{size}]")), (0, format!("[{size},3]"))]
        {
            let text = format!(
                "HloModule sorts\n\nbefore {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  c = s32[] parameter(2)\n  d = s32[] parameter(3)\n  ROOT r = pred[] compare(a, b), direction=GT\n}}\n\nENTRY main {{\n  k = f32{shape} parameter(0)\n  v = s32{shape} iota(), iota_dimension={dimension}\n  ROOT r = (f32{shape}, s32{shape}) sort(k, v), dimensions={{{dimension}}}, is_stable=true, to_apply=before\n}}\n"
            );
            check(&text, &[Values::Below(6)], Tolerance::Exact);
            check(&text, &[Values::Tame], Tolerance::Exact);
        }
    }
}

#[test]
fn the_first_k_by_total_order() {
    for (element_type, largest) in
        [("f32", true), ("f32", false), ("s16", true), ("u64", false), ("bf16", true)]
    {
        for k in [0, 1, 5, 29] {
            let text = format!(
                "HloModule top\n\nENTRY main {{\n  a = {element_type}[4,29] parameter(0)\n  ROOT r = ({element_type}[4,{k}], s32[4,{k}]) topk(a), k={k}, largest={largest}\n}}\n"
            );
            check(&text, &[Values::Hard], Tolerance::Exact);
            check(&text, &[Values::Below(5)], Tolerance::Exact);
        }
    }
}

#[test]
fn random_bits() {
    for algorithm in ["rng_philox", "rng_default", "rng_three_fry"] {
        for length in [2, 3] {
            if algorithm == "rng_three_fry" && length == 3 {
                continue;
            }
            for data in [
                "u32[]", "u32[7]", "s32[4,6]", "u32[5,3]", "u64[9]", "s64[2,2]", "u8[11]", "u16[3,7]",
                "u32[0]",
            ] {
                let text = format!(
                    "HloModule bits\n\nENTRY main {{\n  s = u64[{length}] parameter(0)\n  ROOT r = (u64[{length}], {data}) rng-bit-generator(s), algorithm={algorithm}\n}}\n"
                );
                check(&text, &[Values::Hard], Tolerance::Exact);
            }
        }
    }
}

/// The published test vectors of Random123: Philox 4x32-10 of zeros, and of the digits of pi.
#[test]
fn philox_as_published() {
    let text = "HloModule bits\n\nENTRY main {\n  s = u64[3] parameter(0)\n  ROOT r = (u64[3], u32[4]) rng-bit-generator(s), algorithm=rng_philox\n}\n";
    let module = hlo::parse(text).expect("a module");
    let cases = [
        ([0u64, 0, 0], [0x6627_e8d5u32, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
        (
            [0x299f_31d0_a409_3822, 0x85a3_08d3_243f_6a88, 0x0370_7344_1319_8a2e],
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
        ),
    ];
    for target in targets() {
        for (state, words) in cases {
            let have = run(&module, &target, &[Literal::from_elements(&[3], &state)], 1).expect("it runs");
            assert_eq!(have[1], Literal::from_elements(&[4], &words), "{state:x?}");
        }
    }
}

/// The state starts at zero and increases by the delta in each run.
#[test]
fn random_state_persists_between_runs() {
    let text = "HloModule state\n\nENTRY main {\n  ROOT r = u64[2] rng-get-and-update-state(), delta=5\n}\n";
    let module = hlo::parse(text).expect("a module");
    for target in targets() {
        for (runs, low) in [(1, 0u64), (2, 5), (4, 15)] {
            let have = run(&module, &target, &[], runs).expect("it runs");
            assert_eq!(have[0], Literal::from_elements(&[2], &[low, 0]));
        }
    }
}

#[test]
fn conditionals_choose_a_branch() {
    let branches: String = (0..5)
        .map(|k| format!("branch{k} {{\n  x = f32[6] parameter(0)\n  c = f32[] constant({k})\n  b = f32[6] broadcast(c), dimensions={{}}\n  ROOT r = f32[6] add(x, b)\n}}\n\n"))
        .collect();
    let text = format!(
        "HloModule choice\n\n{branches}ENTRY main {{\n  i = s32[] parameter(0)\n  x = f32[6] parameter(1)\n  y = f32[6] negate(x)\n  ROOT r = f32[6] conditional(i, x, y, x, y, x), branch_computations={{branch0, branch1, branch2, branch3, branch4}}\n}}\n"
    );
    let module = hlo::parse(&text).expect("a module");
    let mut numbers = Numbers::new(3);
    for index in [-7, 0, 1, 2, 3, 4, 5, i32::MIN, i32::MAX] {
        let x = random(&ArrayShape::new(PrimitiveType::F32, &[6]), Values::Tame, &mut numbers);
        check_with(&module, &[Literal::scalar(index), x], Tolerance::Exact);
    }
    let text = format!(
        "HloModule choice\n\n{branches}ENTRY main {{\n  p = pred[] parameter(0)\n  x = f32[6] parameter(1)\n  ROOT r = f32[6] conditional(p, x, x), true_computation=branch1, false_computation=branch2\n}}\n"
    );
    let module = hlo::parse(&text).expect("a module");
    for choice in [true, false] {
        let x = random(&ArrayShape::new(PrimitiveType::F32, &[6]), Values::Tame, &mut numbers);
        check_with(&module, &[Literal::scalar(choice), x], Tolerance::Exact);
    }
}

#[test]
fn loops_run_while_their_condition_holds() {
    let text = "HloModule loops

condition {
  s = (s32[], f32[5], f32[5], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=3
  ROOT c = pred[] compare(i, n), direction=LT
}

body {
  s = (s32[], f32[5], f32[5], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[5] get-tuple-element(s), index=1
  b = f32[5] get-tuple-element(s), index=2
  n = s32[] get-tuple-element(s), index=3
  one = s32[] constant(1)
  next = s32[] add(i, one)
  sum = f32[5] add(a, b)
  ROOT r = (s32[], f32[5], f32[5], s32[]) tuple(next, b, sum, n)
}

ENTRY main {
  n = s32[] parameter(0)
  a = f32[5] parameter(1)
  zero = s32[] constant(0)
  s = (s32[], f32[5], f32[5], s32[]) tuple(zero, a, a, n)
  w = (s32[], f32[5], f32[5], s32[]) while(s), condition=condition, body=body
  f = f32[5] get-tuple-element(w), index=2
  i = s32[] get-tuple-element(w), index=0
  ROOT r = (f32[5], s32[]) tuple(f, i)
}
";
    let module = hlo::parse(text).expect("a module");
    let mut numbers = Numbers::new(9);
    for n in [-1, 0, 1, 2, 9] {
        let a = random(&ArrayShape::new(PrimitiveType::F32, &[5]), Values::Below(5), &mut numbers);
        check_with(&module, &[Literal::scalar(n), a], Tolerance::Exact);
    }
}

/// New values of in-out parameters overwrite the old ones, even if other results still need those.
#[test]
fn variables_are_updated_in_place() {
    for size in [1, 7, 16, 33, 50] {
        let text = format!(
            "HloModule step, input_output_alias={{ {{0}}: (0, {{}}, must-alias), {{1}}: (1, {{}}, must-alias) }}

ENTRY main {{
  v = f32[{size}] parameter(0)
  w = f32[{size}] parameter(1)
  g = f32[{size}] parameter(2)
  n = f32[{size}] subtract(v, g)
  m = f32[{size}] multiply(w, v)
  z = f32[{size}] add(v, w)
  ROOT r = (f32[{size}], f32[{size}], f32[{size}]) tuple(n, m, z)
}}
"
        );
        check(&text, &[Values::Tame], Tolerance::Exact);
        let swap = format!(
            "HloModule swap, input_output_alias={{ {{0}}: (0, {{}}, must-alias), {{1}}: (1, {{}}, must-alias) }}

ENTRY main {{
  v = f32[{size}] parameter(0)
  w = f32[{size}] parameter(1)
  ROOT r = (f32[{size}], f32[{size}]) tuple(w, v)
}}
"
        );
        check(&swap, &[Values::Tame], Tolerance::Exact);
        let update = format!(
            "HloModule update, input_output_alias={{ {{0}}: (0, {{}}, must-alias) }}

ENTRY main {{
  v = f32[{size},3] parameter(0)
  i = s32[] parameter(1)
  u = f32[1,3] parameter(2)
  zero = s32[] constant(0)
  d = f32[{size},3] dynamic-update-slice(v, u, i, zero)
  ROOT r = (f32[{size},3]) tuple(d)
}}
"
        );
        check(&update, &[Values::Tame, Values::Below(60), Values::Tame], Tolerance::Exact);
        let scatter = format!(
            "HloModule scatter, input_output_alias={{ {{0}}: (0, {{}}, must-alias) }}

{}
ENTRY main {{
  v = f32[{size},18] parameter(0)
  i = s32[9] parameter(1)
  u = f32[9,18] parameter(2)
  s = f32[{size},18] scatter(v, i, u), update_window_dims={{1}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=combine
  ROOT r = (f32[{size},18]) tuple(s)
}}
",
            combiner("add", "f32")
        );
        check(&scatter, &[Values::Tame, Values::Below(20), Values::Tame], Tolerance::Exact);
    }
}

/// New values that read neighbors of the old value, and the old value once more after the sum.
/// Nothing may be overwritten early.
#[test]
fn variables_that_read_their_neighbors() {
    let kinds = [
        // Dense, overlapping tiles of a depthwise convolution; a product; a window.
        (
            "w = f32[3,3,20,20] parameter(1)",
            "convolution(v, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
        ),
        (
            "w = f32[3,3,1,20] parameter(1)",
            "convolution(v, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=20",
        ),
        ("w = f32[20,20] parameter(1)", "dot(v, w), lhs_contracting_dims={3}, rhs_contracting_dims={0}"),
        (
            "w = f32[] parameter(1)",
            "reduce-window(v, w), window={size=1x3x3x1 pad=0_0x1_1x1_1x0_0}, to_apply=combine",
        ),
    ];
    for (operand, op) in kinds {
        let parameters = format!("  v = f32[2,7,13,20] parameter(0)\n  {operand}\n");
        let lines = format!(
            "  c = f32[2,7,13,20] {op}\n  s = f32[2,7,13,20] add(c, v)\n  zero = f32[] constant(0)\n  \
             zeros = f32[2,7,13,20] broadcast(zero), dimensions={{}}\n"
        );
        let fused =
            format!("fused {{\n{parameters}{lines}  ROOT m = f32[2,7,13,20] maximum(s, zeros)\n}}\n\n");
        let module = |before: &str, lines: &str| {
            format!(
                "HloModule neighbors, input_output_alias={{ {{0}}: (0, {{}}, must-alias) }}\n\n{}{before}\
                 ENTRY main {{\n{parameters}{lines}  ROOT r = (f32[2,7,13,20]) tuple(n)\n}}\n",
                combiner("add", "f32")
            )
        };
        let apart = module("", &format!("{lines}  n = f32[2,7,13,20] maximum(s, zeros)\n"));
        check(&apart, &[Values::Tame], Tolerance::Relative(1e-4));
        if !op.starts_with("reduce-window") {
            let call = "  n = f32[2,7,13,20] fusion(v, w), kind=kOutput, calls=fused\n";
            check(&module(&fused, call), &[Values::Tame], Tolerance::Relative(1e-4));
        }
    }
}

#[test]
fn dots_of_nothing_are_zero() {
    for element_type in ["f32", "bf16", "s32", "c64"] {
        for (lhs, rhs, contracting) in
            [("[3,0]", "[0,4]", (1, 0)), ("[0,3]", "[4,0]", (0, 1)), ("[0]", "[0]", (0, 0))]
        {
            let result = if lhs == "[0]" { "[]" } else { "[3,4]" };
            let text = format!(
                "HloModule dots\n\nENTRY main {{\n  a = {element_type}{lhs} parameter(0)\n  b = {element_type}{rhs} parameter(1)\n  ROOT r = {element_type}{result} dot(a, b), lhs_contracting_dims={{{}}}, rhs_contracting_dims={{{}}}\n}}\n",
                contracting.0, contracting.1
            );
            check(&text, &[Values::Tame], Tolerance::Exact);
        }
    }
}

/// `w - rate * dot(x, y)` for a variable, in the variable's memory.
fn update_of(m: i64, n: i64, k: i64, element_type: &str, in_place: bool) -> String {
    let t = element_type;
    let alias = if in_place { ", input_output_alias={ {0}: (0, {}, must-alias) }" } else { "" };
    format!(
        "HloModule update{alias}
        step {{
          w = {t}[{m},{n}] parameter(0)
          x = {t}[{m},{k}] parameter(1)
          y = {t}[{k},{n}] parameter(2)
          d = {t}[{m},{n}] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
          rate = {t}[] constant(3)
          rates = {t}[{m},{n}] broadcast(rate), dimensions={{}}
          moved = {t}[{m},{n}] multiply(d, rates)
          ROOT new = {t}[{m},{n}] subtract(w, moved)
        }}
        ENTRY main {{
          w = {t}[{m},{n}] parameter(0)
          x = {t}[{m},{k}] parameter(1)
          y = {t}[{k},{n}] parameter(2)
          new = {t}[{m},{n}] fusion(w, x, y), kind=kOutput, calls=step
          ROOT r = ({t}[{m},{n}]) tuple(new)
        }}"
    )
}

#[test]
fn products_update_variables_in_place() {
    for (m, n, k) in [(1, 1, 1), (3, 70, 5), (13, 33, 17), (7, 5, 0), (40, 20, 3)] {
        check(&update_of(m, n, k, "s32", true), &[Values::Hard], Tolerance::Exact);
        check(&update_of(m, n, k, "f32", true), &[Values::Tame], Tolerance::Relative(1e-4));
    }
}

#[test]
fn large_results_of_few_summands_are_written_by_rows() {
    for ((m, n, k), in_place) in [((701, 770, 3), true), ((65, 8209, 2), false)] {
        check(&update_of(m, n, k, "s32", in_place), &[Values::Hard], Tolerance::Exact);
    }
}

#[test]
fn a_few_rows_are_multiplied_along_the_summands() {
    for (m, n, k) in
        [(1, 9, 33), (2, 3, 16), (3, 70, 130), (4, 5, 1000), (4, 1, 300), (5, 6, 40), (3, 601, 700)]
    {
        for (t, tolerance) in [
            ("s32", Tolerance::Exact),
            ("f32", Tolerance::Relative(1e-4)),
            ("bf16", Tolerance::Relative(1e-2)),
        ] {
            let text = format!(
                "HloModule rows

                 ENTRY main {{
                   a = {t}[2,{m},{k}] parameter(0)
                   b = {t}[2,{n},{k}] parameter(1)
                   ROOT r = {t}[2,{m},{n}] dot(a, b), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, \
                   lhs_contracting_dims={{2}}, rhs_contracting_dims={{2}}
                 }}"
            );
            check(&text, &[Values::Tame], tolerance);
        }
    }
}

#[test]
fn products_of_many_summands_take_several_passes() {
    for (m, n, k) in [(10, 75, 3001), (13, 64, 4096), (9, 130, 6000)] {
        for in_place in [false, true] {
            check(&update_of(m, n, k, "s64", in_place), &[Values::Hard], Tolerance::Exact);
        }
    }
    check(&update_of(14, 67, 5001, "f32", false), &[Values::Tame], Tolerance::Relative(1e-3));
}

/// Right operands that do not fit into the second-level cache, plain and transposed. They are
/// packed on each call, or read in passes if their rows lie on many pages. The next panel is
/// prefetched, even before the last, narrower one.
#[test]
fn products_whose_right_operand_streams() {
    for (m, n, k) in [(20, 512, 300), (20, 600, 700), (9, 1030, 130), (150, 530, 260)] {
        for (rhs, contracting) in [(format!("s64[{k},{n}]"), 0), (format!("s64[{n},{k}]"), 1)] {
            let text = format!(
                "HloModule streams\n\nENTRY main {{\n  x = s64[{m},{k}] parameter(0)\n  y = {rhs} parameter(1)\n  \
                 ROOT d = s64[{m},{n}] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{{contracting}}}\n}}\n"
            );
            check(&text, &[Values::Hard, Values::Hard], Tolerance::Exact);
        }
    }
}
