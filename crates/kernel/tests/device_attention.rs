//! Attention of a device as one kernel, run by the simulator and compared with the evaluator, which
//! computes the module before the passes in double precision.

use crate::attention::{Bias, Form, Judge, PLAIN, Sizes, bias, fused, module, sizes};
use crate::device_contractions::{assembly, check_registers, has_assembler};
use crate::harness::{Loaded, Numbers, Values, random, targets};
use crate::simulator::{self, Blocks};
use hlo::Module;
use plan::{DevicePlan, Strategy};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};
use target::Target;

fn device(name: &str) -> Target {
    if name == "opencl" { Target::opencl() } else { Target::cuda(name) }.expect("a target")
}

/// The same numbers in another type.
fn converted(literal: &Literal, element_type: PrimitiveType) -> Literal {
    let shape = ArrayShape::new(element_type, &literal.array_shape().sizes());
    Literal::from_scalars(shape, literal.scalars().collect::<Vec<_>>())
}

/// The largest error of a list of numbers; infinite if NaNs differ.
fn largest_error(have: &Literal, want: &Literal) -> f64 {
    let error = |(have, want): (Scalar, Scalar)| match (have, want) {
        (Scalar::Float(x), Scalar::Float(y)) if x.is_nan() == y.is_nan() => {
            if x.is_nan() || x == y {
                0.0
            } else {
                (x - y).abs()
            }
        }
        _ => f64::INFINITY,
    };
    have.scalars().zip(want.scalars()).map(error).fold(0.0, f64::max)
}

/// Runs attention as one kernel on a device. Its error is at most twice that of a processor, or
/// `least` more. `exact` is the same computation in double precision. Returns the kernel's plan.
fn check(module: &Module, exact: &Module, name: &str, least: f64) -> String {
    check_with(module, exact, name, least, &plan::Options::default())
}

fn check_with(module: &Module, exact: &Module, name: &str, least: f64, options: &plan::Options) -> String {
    let target = device(name);
    let fused = fused(module, Box::new(|_, _, _| true));
    let entry = fused.entry_computation();
    let mut numbers = Numbers::new(module.to_text().len() as u64 + 7);
    let mut arguments = Vec::new();
    for (number, &id) in entry.parameters().iter().enumerate() {
        let shape = entry[id].shape().expect_array();
        let shape = ArrayShape::new(shape.element_type, &shape.sizes());
        arguments.push(if number == 3 { bias(&shape) } else { random(&shape, Values::Tame, &mut numbers) });
    }
    let doubles: Vec<Literal> = arguments.iter().map(|a| converted(a, PrimitiveType::F64)).collect();
    let want = evaluator::evaluate(exact, &doubles).unwrap_or_else(|e| panic!("{e}"));
    let plan =
        plan::plan_with(&fused, &target, options).unwrap_or_else(|e| panic!("{e}\n{}", fused.to_text()));
    let described = plan.to_text(&fused);
    let plans: Vec<_> = plan.computations.values().flat_map(|c| c.instructions.values()).collect();
    let kernels = plans.iter().filter(|plan| !plan.strategy.has_no_kernel()).count();
    let is_attention = |strategy: &Strategy| matches!(strategy, Strategy::Device(plan) if matches!(**plan, DevicePlan::Attention(_)));
    assert!(plans.iter().any(|plan| is_attention(&plan.strategy)), "{described}\n{}", fused.to_text());
    assert_eq!(kernels, 1, "{described}");
    let schedule = buffers::schedule(&fused, &plan);
    let mut pool = buffers::ConstantsPool::default();
    let assignment = buffers::assign(&fused, &plan, &schedule, &mut pool).expect("an assignment");
    let program = kernel::lower_device(&fused, &plan, &schedule, &assignment, &target).expect("a program");
    nest::verify(&program.kernels).unwrap_or_else(|e| panic!("{e}\n{}", program.kernels));
    let result = entry[entry.root()].shape().expect_array();
    let blocks = Blocks {
        arguments: arguments.iter().map(|argument| argument.bytes().to_vec()).collect(),
        results: vec![vec![0xA5; result.byte_size() as usize]],
        temps: vec![0xA5; assignment.temps_size as usize],
        constants: pool.finish().chunks.iter().flat_map(|(_, bytes)| bytes.to_vec()).collect(),
    };
    let have = simulator::run(&program, blocks).swap_remove(0);
    let shape = ArrayShape::new(result.element_type, &result.sizes());
    let have =
        converted(&Literal::from_bytes(shape, have.into()).expect("the result's size"), PrimitiveType::F64);
    // Errors grow with the scores, whose sums are rounded as well, so those of the processor's
    // separate kernels are the measure.
    let processor = Loaded::new(module, &targets()[0]).unwrap_or_else(|e| panic!("{e}"));
    let same = processor.run(&arguments, 2, None).unwrap_or_else(|e| panic!("{e}"));
    let same = converted(&same[0], PrimitiveType::F64);
    let (error, usual) = (largest_error(&have, &want), largest_error(&same, &want));
    let shown = || format!("{name}: error {error:e}, processor {usual:e}\n{described}\n{}", module.to_text());
    assert!(error <= 2.0 * usual + least, "{}", shown());
    described
}

fn check_form(sizes: Sizes, form: Form, name: &str) -> String {
    let exact = module(sizes, Form { element_type: "f64", ..form });
    let least = match form.element_type {
        "f64" => 1e-14,
        "f32" => 1e-6,
        "f16" => 1e-3,
        _ => 1e-2,
    };
    check(&module(sizes, form), &exact, name, least)
}

#[test]
fn sizes_around_tiles() {
    let all = [
        sizes(1, 1, 8, 16, 16, 16),
        sizes(2, 1, 9, 33, 8, 16),
        sizes(1, 2, 64, 64, 16, 64),
        sizes(1, 1, 65, 129, 5, 70),
        sizes(1, 3, 33, 7, 40, 3),
        sizes(2, 2, 12, 200, 12, 100),
    ];
    for (k, sizes) in all.into_iter().enumerate() {
        check_form(sizes, PLAIN, ["sm_80", "opencl"][k % 2]);
    }
}

#[test]
fn queries_that_do_not_fit_are_loaded_again() {
    let bf16 = Form { element_type: "bf16", ..PLAIN };
    for (sizes, form, name) in
        [(sizes(1, 1, 9, 70, 200, 16), PLAIN, "opencl"), (sizes(1, 1, 9, 70, 560, 16), bf16, "sm_80")]
    {
        let plan = check_form(sizes, form, name);
        assert!(plan.contains("loaded again"), "{plan}");
        let plan = check_form(Sizes { depth: 16, ..sizes }, form, name);
        assert!(plan.contains("kept"), "{plan}");
    }
}

#[test]
fn masks_and_layouts() {
    for bias in [Bias::Keys, Bias::Pairs] {
        for (heads_within, reshapes) in [(false, false), (true, true)] {
            let form = Form { element_type: "f32", heads_within, bias: Some(bias), reshapes };
            check_form(sizes(2, 2, 37, 70, 8, 32), form, "sm_80");
        }
    }
}

#[test]
fn double_precision() {
    let form = Form { element_type: "f64", heads_within: true, bias: Some(Bias::Pairs), reshapes: false };
    check_form(sizes(1, 2, 37, 41, 20, 24), form, "opencl");
}

/// Attention in `ty` with a softmax in `f32`, causal, over groups of query heads that share keys
/// and values: `[batch, key heads, queries, group, depth]` and `[batch, keys, key heads, depth]`.
fn grouped(ty: &str, [batch, heads, group, queries, keys, depth]: [i64; 6]) -> Module {
    let single = if ty == "f64" { "f64" } else { "f32" };
    let scores = format!("[{batch},{heads},{queries},{group},{keys}]");
    let rows = format!("[{batch},{heads},{queries},{group}]");
    let text = format!(
        "HloModule grouped

sum {{
  x = {single}[] parameter(0)
  y = {single}[] parameter(1)
  ROOT r = {single}[] add(x, y)
}}

most {{
  x = {single}[] parameter(0)
  y = {single}[] parameter(1)
  ROOT r = {single}[] maximum(x, y)
}}

ENTRY main {{
  q = {ty}[{batch},{heads},{queries},{group},{depth}] parameter(0)
  k = {ty}[{batch},{keys},{heads},{depth}] parameter(1)
  v = {ty}[{batch},{keys},{heads},{depth}] parameter(2)
  d = {ty}{scores} dot(q, k), lhs_batch_dims={{0,1}}, lhs_contracting_dims={{4}}, rhs_batch_dims={{0,2}}, rhs_contracting_dims={{3}}
  wide = {single}{scores} convert(d)
  scale = {single}[] constant(0.25)
  scales = {single}{scores} broadcast(scale), dimensions={{}}
  scaled = {single}{scores} multiply(wide, scales)
  row = s32{scores} iota(), iota_dimension=2
  key = s32{scores} iota(), iota_dimension=4
  seen = pred{scores} compare(row, key), direction=GE
  low = {single}[] constant(-inf)
  lows = {single}{scores} broadcast(low), dimensions={{}}
  x = {single}{scores} select(seen, scaled, lows)
  m = {single}{rows} reduce(x, low), dimensions={{4}}, to_apply=most
  lowest = {single}{rows} broadcast(low), dimensions={{}}
  shift = {single}{rows} maximum(lowest, m)
  mb = {single}{scores} broadcast(shift), dimensions={{0,1,2,3}}
  c = {single}{scores} subtract(x, mb)
  e = {single}{scores} exponential(c)
  zero = {single}[] constant(0)
  s = {single}{rows} reduce(e, zero), dimensions={{4}}, to_apply=sum
  sb = {single}{scores} broadcast(s), dimensions={{0,1,2,3}}
  w = {single}{scores} divide(e, sb)
  n = {ty}{scores} convert(w)
  ROOT o = {ty}[{batch},{heads},{queries},{group},{depth}] dot(n, v), lhs_batch_dims={{0,1}}, lhs_contracting_dims={{4}}, rhs_batch_dims={{0,2}}, rhs_contracting_dims={{1}}
}}
"
    );
    hlo::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

#[test]
fn groups_of_heads_and_matrix_units() {
    let all = [[2, 2, 3, 11, 40, 16], [1, 1, 1, 70, 70, 64], [1, 2, 4, 8, 130, 24]];
    for extents in all {
        for (ty, least) in [("f32", 1e-6), ("f16", 1e-3), ("bf16", 1e-2)] {
            for name in ["opencl", "sm_80"] {
                if name == "opencl" && ty == "bf16" {
                    continue;
                }
                let plan = check(&grouped(ty, extents), &grouped("f64", extents), name, least);
                assert_eq!(plan.contains("matrix units"), name == "sm_80" && ty != "f32", "{plan}");
            }
        }
    }
}

#[test]
fn single_precision_may_be_rounded_to_tf32() {
    let options = plan::Options { allow_tf32: true, ..plan::Options::default() };
    for extents in [[1, 2, 1, 37, 70, 24], [1, 1, 3, 24, 130, 64]] {
        let exact = grouped("f64", extents);
        // Rounding errors of 2^-11 of each factor.
        let plan = check_with(&grouped("f32", extents), &exact, "sm_80", 2e-2, &options);
        assert!(plan.contains("matrix units"), "{plan}");
    }
}

#[test]
fn narrow_softmax() {
    for ty in ["f16", "bf16"] {
        for bias in [None, Some(Bias::Pairs)] {
            let form = Form { element_type: ty, heads_within: true, bias, reshapes: false };
            check_form(sizes(1, 2, 37, 69, 16, 32), form, "sm_80");
            check_form(sizes(1, 2, 9, 69, 16, 32), form, "opencl");
        }
    }
}

#[test]
fn sums_stay_in_registers() {
    if !has_assembler() {
        return;
    }
    for architecture in ["sm_80", "sm_90a"] {
        let target = device(architecture);
        for (ty, depth) in [("f32", 64), ("f32", 80), ("f32", 128), ("f16", 64), ("bf16", 128)] {
            for length in [1024, 1000] {
                let module = fused(&grouped(ty, [2, 8, 1, length, length, depth]), Box::new(|_, _, _| true));
                let code = assembly(&module, &target, &plan::Options::default());
                let text = module.to_text();
                check_registers("attention", &code, &[architecture], &text);
            }
        }
    }
}

#[test]
fn other_functions_of_rows_are_separate_kernels() {
    let text = grouped("f32", [1, 2, 1, 16, 40, 8]).to_text();
    let cases = [
        ("maximum(lowest, m)", "maximum(m, lowest)", true),
        // Shifts that are smaller than the largest score would overflow when sums are scaled.
        ("maximum(lowest, m)", "minimum(lowest, m)", false),
        ("divide(e, sb)", "subtract(e, sb)", false),
        ("exponential(c)", "tanh(c)", false),
    ];
    for (from, to, is_attention) in cases {
        assert!(text.contains(from), "{text}");
        let module = hlo::parse(&text.replace(from, to)).expect("a module");
        let judge: Judge = Box::new(|module, computation, id| {
            plan::attention_pays(module, computation, id, &[device("sm_80")], &plan::Options::default())
        });
        let fused = fused(&module, judge);
        let plan = plan::plan(&fused, &device("sm_80")).unwrap_or_else(|e| panic!("{e}"));
        let described = plan.to_text(&fused);
        assert_eq!(described.contains(": attention"), is_attention, "{to}: {described}");
    }
}
