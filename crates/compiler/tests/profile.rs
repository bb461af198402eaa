//! Counters of profiled programs.

use compiler::{
    BackOptions, Executable, NoObserver, compile_module, compile_with_counters, host, in_process_options,
};
use shape::Literal;

fn executable(text: &str, is_profiled: bool) -> Executable {
    let module = hlo::text::parse(text).expect("valid HLO");
    let target = host("").expect("this machine");
    let options = BackOptions { is_profiled, ..in_process_options(target) };
    Executable::load(&compile_module(module, &options, &mut NoObserver).expect("compiles")).expect("loads")
}

/// A loop of four iterations, followed by a large instruction.
const LOOP: &str = r#"
HloModule counted

body {
  p = (s32[], f32[64,64]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  x = f32[64,64] get-tuple-element(p), index=1
  one = s32[] constant(1)
  next = s32[] add(n, one)
  dot = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  y = f32[64,64] tanh(dot), metadata={op_type="Tanh" op_name="loop/Tanh"}
  ROOT t = (s32[], f32[64,64]) tuple(next, y)
}

condition {
  p = (s32[], f32[64,64]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  four = s32[] constant(4)
  ROOT less = pred[] compare(n, four), direction=LT
}

ENTRY main {
  x = f32[64,64] parameter(0)
  zero = s32[] constant(0)
  start = (s32[], f32[64,64]) tuple(zero, x)
  end = (s32[], f32[64,64]) while(start), condition=condition, body=body
  y = f32[64,64] get-tuple-element(end), index=1
  reversed = f32[64,64] reverse(y), dimensions={0}
  ROOT r = (f32[64,64]) tuple(reversed)
}
"#;

#[test]
fn instructions_count_in_loops_and_add_up_over_runs() {
    let program = executable(LOOP, true);
    let counters = program.counters();
    assert_eq!(counters[0].name, "[total]");
    let dot = counters.iter().position(|c| c.name.contains("loop/Tanh")).expect("the product of the loop");
    let product = 2 * 64 * 64 * 64;
    assert!(
        (4 * product..5 * product).contains(&counters[dot].flops),
        "four iterations: {:?}",
        counters[dot]
    );
    assert!(counters[dot].short_name.starts_with('%') && !counters[dot].category.is_empty());
    let argument = Literal::from_elements(&[64, 64], &[0.25f32; 64 * 64]);
    let mut session = program.session(&[argument]).expect("one argument");
    session.run().expect("runs");
    let first = session.profile_counters().to_vec();
    assert!(first[dot] > 0, "{first:?}");
    assert!(first.iter().all(|&ticks| ticks >= 0) && first[1..].iter().sum::<i64>() <= first[0], "{first:?}");
    session.run().expect("runs");
    assert!(session.profile_counters().iter().zip(&first).all(|(now, then)| now >= then));
    assert!(session.profile_counters()[dot] > first[dot]);
}

#[test]
fn code_counts_only_if_it_is_asked_to_and_computes_the_same() {
    let argument = Literal::from_elements(&[64, 64], &[0.25f32; 64 * 64]);
    let (plain, profiled) = (executable(LOOP, false), executable(LOOP, true));
    assert!(plain.counters().is_empty());
    let run = |program: &Executable| program.run(std::slice::from_ref(&argument)).expect("runs");
    assert_eq!(run(&plain)[0].bytes(), run(&profiled)[0].bytes());
}

#[test]
fn code_with_counters_beside_that_without_is_the_same_as_alone() {
    let module = || hlo::text::parse(LOOP).expect("valid HLO");
    let options = in_process_options(host("").expect("this machine"));
    let (compiled, counted) = compile_with_counters(module(), &options, &mut NoObserver).expect("compiles");
    let plain = compile_module(module(), &options, &mut NoObserver).expect("compiles");
    assert!(compiled.code.output.object == plain.code.output.object);
    assert_eq!((compiled.code.counters.len(), compiled.code.counted.len()), (0, 0));
    assert_eq!(compiled.code.output.functions, plain.code.output.functions);
    let profiled = BackOptions { is_profiled: true, ..options };
    let profiled = compile_module(module(), &profiled, &mut NoObserver).expect("compiles");
    assert!(counted.object == profiled.code.output.object);
    assert_eq!(counted.counters, profiled.code.counters);
    assert_eq!(counted.counted, profiled.code.counted);

    let executable = Executable::load_counted(&compiled, &counted).expect("loads");
    let argument = Literal::from_elements(&[64, 64], &[0.25f32; 64 * 64]);
    let mut session = executable.session(&[argument]).expect("one argument");
    session.run().expect("runs");
    assert!(session.profile_counters()[0] > 0, "the total");
}
