//! Planted defects that `verify` finds.

use compiler::{Executable, NoObserver, compile_optimized, in_process_options};
use hlo::Module;
use runner::{Subject, VerifyOptions, VerifyReport};
use support::Result;

const MODULE: &str = r#"
HloModule layers

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

layer {
  x = f32[2,8] parameter(0)
  w = f32[8,16] parameter(1)
  b = f32[16] parameter(2)
  product = f32[2,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="layer/MatMul"}
  bias = f32[2,16] broadcast(b), dimensions={1}
  added = f32[2,16] add(product, bias), metadata={op_name="layer/BiasAdd"}
  zero = f32[] constant(0)
  zeros = f32[2,16] broadcast(zero), dimensions={}
  ROOT relu = f32[2,16] maximum(added, zeros), metadata={op_name="layer/Relu"}
}

ENTRY main {
  x = f32[2,8] parameter(0)
  w = f32[8,16] parameter(1)
  b = f32[16] parameter(2)
  h = f32[2,16] fusion(x, w, b), kind=kOutput, calls=layer, metadata={op_name="layer/Relu"}
  t = f32[2,16] tanh(h), metadata={op_name="Tanh"}
  zero = f32[] constant(0)
  y = f32[2] reduce(t, zero), dimensions={1}, to_apply=sum, metadata={op_name="Sum"}
  ROOT r = (f32[2]) tuple(y)
}
"#;

fn compile(module: Module) -> Result<Executable> {
    let options = in_process_options(compiler::host("native")?);
    Executable::load(&compile_optimized(module, &options, &mut NoObserver)?)
}

/// Verifies the module with code generated from the module modified by `plant`, as a whole and
/// kernel by kernel.
fn verify(text: &str, plant: impl Fn(&str) -> String + Sync) -> VerifyReport {
    let module = hlo::parse(text).expect("a module");
    let planted = |module: &Module| {
        let text = plant(&module.to_text());
        hlo::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
    };
    let program = compile(planted(&module)).expect("it compiles");
    let subject = Subject {
        imported: &module,
        optimized: &module,
        results: &["y".to_owned()],
        feeds: module.entry_computation().parameters().len(),
        program: &program,
        compile: &|alone| compile(planted(&alone)),
    };
    runner::verify(&subject, &VerifyOptions::default(), &mut |_, _, _| {}).expect("it runs")
}

#[test]
fn right_code_passes_on_every_kind_of_input() {
    let report = verify(MODULE, str::to_owned);
    assert!(report.passed(), "{report}");
    assert_eq!(report.kernels.len(), 3);
    for kernel in &report.kernels {
        assert_eq!(kernel.inputs, ["random", "zeros", "ones", "negative", "large", "tiny", "special"]);
        let (_, worst) = kernel.worst.as_ref().unwrap();
        assert!(worst.share_of_limit <= 1.0, "{worst:?}");
    }
    assert_eq!(report.programs.len(), 7);
    assert!(report.to_string().contains("the code agrees with the evaluator"));
    assert_eq!(report.to_json()["passed"], true);
}

#[test]
fn a_wrong_value_is_found_and_its_node_named() {
    // The second of three kernels. All later ones are correct for their operands.
    let report = verify(MODULE, |text| text.replace(" tanh(", " logistic("));
    let first = report.first_failed_kernel().expect("a kernel fails");
    assert_eq!((first.name.as_str(), first.nodes.as_slice()), ("t", &["Tanh".to_owned()][..]));
    assert_eq!(report.kernels.iter().filter(|k| !k.passed()).count(), 1);
    assert!(!report.programs[0].passed());
    let text = report.to_string();
    assert!(text.contains("first to diverge: tanh t on random inputs: 32 of 32 elements"), "{text}");
    assert_eq!(report.to_json()["first_failed_node"], "Tanh");
}

#[test]
fn one_product_too_few_of_many_is_found() {
    // The last of 600 products is omitted.
    let text = "HloModule m
ENTRY main {
  x = f32[1,600] parameter(0)
  w = f32[600,8] parameter(1)
  y = f32[1,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name=\"MatMul\"}
  ROOT r = (f32[1,8]) tuple(y)
}";
    assert!(verify(text, str::to_owned).passed());
    let report = verify(text, |text| {
        let dot = text.lines().find(|line| line.contains(" dot(")).unwrap();
        let operands = dot.split(" dot(").nth(1).unwrap().split(')').next().unwrap();
        let (x, w) = operands.split_once(", ").unwrap();
        let shortened = dot.replace(operands, "short_x, short_w");
        let slices = format!(
            "short_x = f32[1,599] slice({x}), slice={{[0:1], [0:599]}}
  short_w = f32[599,8] slice({w}), slice={{[0:599], [0:8]}}
{shortened}"
        );
        text.replace(dot, &slices)
    });
    assert_eq!(report.first_failed_kernel().expect("it fails").nodes, ["MatMul"]);
}

#[test]
fn nan_that_is_lost_is_found_on_special_inputs_only() {
    // `x > 0 ? x : 0` equals `max(x, 0)` except for NaN.
    let text = "HloModule m
ENTRY main {
  x = f32[64] parameter(0)
  z = f32[64] parameter(1)
  y = f32[64] maximum(x, z), metadata={op_name=\"Relu\"}
  ROOT r = (f32[64]) tuple(y)
}";
    let report = verify(text, |text| {
        let line = text.lines().find(|line| line.contains(" maximum(")).unwrap();
        let operands = line.split(" maximum(").nth(1).unwrap().split(')').next().unwrap();
        let compare = format!("above = pred[64] compare({operands}), direction=GT\n");
        let select = line.replace(&format!(" maximum({operands})"), &format!(" select(above, {operands})"));
        text.replace(line, &format!("{compare}{select}"))
    });
    let first = report.first_failed_kernel().expect("it fails");
    let (inputs, comparison) = first.worst.as_ref().unwrap();
    assert_eq!(*inputs, "special");
    let mismatch = comparison.first.as_ref().unwrap();
    assert!(mismatch.want == "NaN" && mismatch.got != "NaN", "{mismatch:?}");
    assert!(report.programs.iter().filter(|p| !p.passed()).all(|p| p.fill.name() == "special"));
}

#[test]
fn an_ulp_too_many_is_found_where_nothing_rounds() {
    let text = "HloModule m
ENTRY main {
  x = f32[16] parameter(0)
  y = f32[16] negate(x), metadata={op_name=\"Neg\"}
  ROOT r = (f32[16]) tuple(y)
}";
    // 1 + 2^-23, as a constant.
    let report = verify(text, |text| {
        let line = text.lines().find(|line| line.contains(" negate(")).unwrap();
        let name = line.trim().split(' ').next().unwrap();
        let first = line.replace(&format!("{name} ="), "negated =");
        let factor = "ulp = f32[] constant(-1.00000012)\nulps = f32[16] broadcast(ulp), dimensions={}\n";
        let operand = line.split(" negate(").nth(1).unwrap().split(')').next().unwrap();
        let product = line.replace(&format!(" negate({operand})"), &format!(" multiply({operand}, ulps)"));
        text.replace(line, &format!("{first}\n{factor}{product}"))
    });
    let first = report.first_failed_kernel().expect("it fails");
    assert_eq!(first.nodes, ["Neg"]);
    assert!(first.worst.as_ref().unwrap().1.max_ulp >= 1);
}

#[test]
fn bodies_of_loops_and_branches_not_taken_are_checked_too() {
    let text = "HloModule m
body {
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[4] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one), metadata={op_name=\"loop/AddV2\"}
  e = f32[4] exponential(v), metadata={op_name=\"loop/Exp\"}
  ROOT t = (s32[], f32[4]) tuple(next, e)
}
condition {
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(2)
  ROOT less = pred[] compare(i, n), direction=LT
}
yes {
  x = f32[4] parameter(0)
  ROOT y = f32[4] cosine(x), metadata={op_name=\"yes/Cos\"}
}
no {
  x = f32[4] parameter(0)
  ROOT y = f32[4] sine(x), metadata={op_name=\"no/Sin\"}
}
ENTRY main {
  x = f32[4] parameter(0)
  p = pred[] parameter(1)
  zero = s32[] constant(0)
  init = (s32[], f32[4]) tuple(zero, x)
  w = (s32[], f32[4]) while(init), condition=condition, body=body
  v = f32[4] get-tuple-element(w), index=1
  c = f32[4] conditional(p, v, v), true_computation=yes, false_computation=no
  ROOT r = (f32[4]) tuple(c)
}";
    let report = verify(text, str::to_owned);
    assert!(report.passed(), "{report}");
    let nodes: Vec<&str> =
        report.kernels.iter().filter_map(|k| k.nodes.first()).map(String::as_str).collect();
    for node in ["loop/AddV2", "loop/Exp", "yes/Cos", "no/Sin"] {
        assert!(nodes.contains(&node), "{nodes:?}");
    }
    for (right, wrong, node) in [
        (" cosine(", " sine(", "yes/Cos"),
        (" sine(", " cosine(", "no/Sin"),
        (" exponential(", " tanh(", "loop/Exp"),
    ] {
        let report = verify(text, |text| text.replace(right, wrong));
        assert_eq!(report.first_failed_kernel().expect("it fails").nodes, [node]);
    }
}

/// A growing recurrence: products that overflow in one order of their sums but not in another, and
/// their sine.
const RECURRENCE: &str = "HloModule m
body {
  s = (s32[], f32[4,8], f32[4,8], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[4,8] get-tuple-element(s), index=1
  sum = f32[4,8] get-tuple-element(s), index=2
  w = f32[8,8] get-tuple-element(s), index=3
  one = s32[] constant(1)
  next = s32[] add(i, one)
  product = f32[4,8] dot(v, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  gate = f32[4,8] tanh(product)
  gated = f32[4,8] multiply(gate, v)
  tenth = f32[] constant(0.1)
  tenths = f32[4,8] broadcast(tenth), dimensions={}
  part = f32[4,8] multiply(gated, tenths)
  moved = f32[4,8] add(v, part)
  wave = f32[4,8] sine(v)
  term = f32[4,8] multiply(gated, wave)
  total = f32[4,8] add(sum, term)
  ROOT t = (s32[], f32[4,8], f32[4,8], f32[8,8]) tuple(next, moved, total, w)
}
condition {
  s = (s32[], f32[4,8], f32[4,8], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(30)
  ROOT less = pred[] compare(i, n), direction=LT
}
ENTRY main {
  x = f32[4,8] parameter(0)
  w = f32[8,8] parameter(1)
  start = s32[] constant(0)
  zero = f32[] constant(0)
  zeros = f32[4,8] broadcast(zero), dimensions={}
  init = (s32[], f32[4,8], f32[4,8], f32[8,8]) tuple(start, x, zeros, w)
  l = (s32[], f32[4,8], f32[4,8], f32[8,8]) while(init), condition=condition, body=body
  y = f32[4,8] get-tuple-element(l), index=2
  ROOT r = (f32[4,8]) tuple(y)
}";

/// Verifies only the whole program, with the code of another module after the usual passes.
fn verify_program(text: &str, of_code: &str) -> VerifyReport {
    let imported = hlo::parse(text).expect("a module");
    let mut optimized = hlo::parse(of_code).expect("a module");
    compiler::pipeline().run(&mut optimized, &[], |_, _| {}).expect("the passes succeed");
    let program = compile(optimized.clone()).expect("it compiles");
    let subject = Subject {
        imported: &imported,
        optimized: &optimized,
        results: &["y".to_owned()],
        feeds: 2,
        program: &program,
        compile: &compile,
    };
    runner::verify(&subject, &VerifyOptions::default(), &mut |_, _, _| {}).expect("it runs")
}

#[test]
fn errors_that_add_up_in_a_loop_are_right_or_undecided() {
    let report = verify_program(RECURRENCE, RECURRENCE);
    assert!(report.passed(), "{report}");
    assert_eq!(report.programs.len(), 7);
    let random = &report.programs[0].results[0];
    assert_eq!(random.undecided, 0, "random inputs are decided: {report}");
}

#[test]
fn a_defect_in_a_loop_is_found_in_the_whole_program() {
    for (right, wrong) in
        [("constant(30)", "constant(29)"), ("0.1", "0.1001"), ("add(sum, term)", "add(v, term)")]
    {
        let report = verify_program(RECURRENCE, &RECURRENCE.replace(right, wrong));
        assert!(report.first_failed_kernel().is_none(), "each kernel is right for what it is");
        assert!(!report.programs[0].passed(), "{wrong}: {report}");
    }
}

#[test]
fn where_correct_code_may_leave_a_loop_sooner_nothing_is_decided() {
    // The sum of eight thirds is compared with the sum computed sequentially.
    let text = "HloModule m
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
body {
  s = (f32[], f32[], f32[8]) parameter(0)
  v = f32[] get-tuple-element(s), index=0
  k = f32[] get-tuple-element(s), index=1
  x = f32[8] get-tuple-element(s), index=2
  zero = f32[] constant(0)
  total = f32[] reduce(x, zero), dimensions={0}, to_apply=sum
  next = f32[] add(v, total)
  one = f32[] constant(1)
  more = f32[] add(k, one)
  ROOT t = (f32[], f32[], f32[8]) tuple(next, more, x)
}
condition {
  s = (f32[], f32[], f32[8]) parameter(0)
  v = f32[] get-tuple-element(s), index=0
  limit = f32[] constant(24)
  ROOT less = pred[] compare(v, limit), direction=LT
}
ENTRY main {
  x = f32[8] parameter(0)
  tenth = f32[] constant(0.3)
  tenths = f32[8] broadcast(tenth), dimensions={}
  filled = f32[8] add(tenths, tenths)
  zero = f32[] constant(0)
  init = (f32[], f32[], f32[8]) tuple(zero, zero, filled)
  l = (f32[], f32[], f32[8]) while(init), condition=condition, body=body
  k = f32[] get-tuple-element(l), index=1
  zeros = f32[8] multiply(x, x)
  count = f32[8] broadcast(k), dimensions={}
  y = f32[8] add(zeros, count)
  ROOT r = (f32[8]) tuple(y)
}";
    let report = verify_program(text, text);
    assert!(report.programs.iter().all(|p| p.results[0].undecided == 8), "{report}");
}

#[test]
fn a_pass_that_changes_the_meaning_is_not_blamed_on_a_kernel() {
    // The code is correct for the optimized module, which differs from the imported one.
    let imported = hlo::parse(MODULE).unwrap();
    let optimized = hlo::parse(&MODULE.replace(" tanh(", " logistic(")).unwrap();
    let program = compile(optimized.clone()).unwrap();
    let subject = Subject {
        imported: &imported,
        optimized: &optimized,
        results: &["y".to_owned()],
        feeds: 3,
        program: &program,
        compile: &compile,
    };
    let report = runner::verify(&subject, &VerifyOptions::default(), &mut |_, _, _| {}).unwrap();
    assert!(!report.passed());
    assert!(report.first_failed_kernel().is_none());
    // The actual passes do not change results.
    assert_eq!(report.guilty_pass, None);
    assert!(report.to_string().contains("every kernel alone is correct"), "{report}");
}
