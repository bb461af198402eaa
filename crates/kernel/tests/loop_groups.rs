//! Independent loops run at the same time, and dependent ones one after the other.

use crate::harness::{Tolerance, Values, targets};
use crate::tasks::check;
use kernel::EntryOptions;

/// A module with two recurrences of 12 steps over rows of 64 elements. `second` is the initial
/// value of the second one's row.
fn recurrences(second: &str, kernels: [&str; 2]) -> String {
    let computations = |name: &str| {
        format!(
            "more_{name} {{
  s = (s32[], f32[1,64], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(12)
  ROOT c = pred[] compare(i, n), direction=LT
}}

step_{name} {{
  s = (s32[], f32[1,64], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  h = f32[1,64] get-tuple-element(s), index=1
  w = f32[64,64] get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  dot = f32[1,64] dot(h, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  scale = f32[] constant(0.015625)
  scales = f32[1,64] broadcast(scale), dimensions={{}}
  scaled = f32[1,64] multiply(dot, scales)
  new = f32[1,64] tanh(scaled)
  ROOT t = (s32[], f32[1,64], f32[64,64]) tuple(next, new, w)
}}

"
        )
    };
    let [first_kernel, second_kernel] = kernels;
    let state = "(s32[], f32[1,64], f32[64,64])";
    format!(
        "HloModule m\n\n{}{}ENTRY main {{
  x = f32[1,64] parameter(0)
  u = f32[64,64] parameter(1)
  v = f32[64,64] parameter(2)
  zero = s32[] constant(0)
  s = {state} tuple(zero, x, {first_kernel})
  a = {state} while(s), condition=more_a, body=step_a
  p = f32[1,64] get-tuple-element(a), index=1
  y = f32[1,64] negate({second})
  t = {state} tuple(zero, y, {second_kernel})
  b = {state} while(t), condition=more_b, body=step_b
  q = f32[1,64] get-tuple-element(b), index=1
  ROOT r = (f32[1,64], f32[1,64]) tuple(p, q)
}}
",
        computations("a"),
        computations("b")
    )
}

/// Returns the kernels of each region that runs several at the same time.
fn regions(text: &str) -> Vec<Vec<String>> {
    let module = hlo::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let target = &targets()[0];
    let plan = plan::plan(&module, target).expect("a plan");
    let schedule = buffers::schedule(&module, &plan);
    let mut pool = buffers::ConstantsPool::default();
    let assignment = buffers::assign(&module, &plan, &schedule, &mut pool).expect("an assignment");
    let entry = EntryOptions { name: "entry", is_profiled: false };
    let lowered =
        kernel::lower_with(&module, &plan, &schedule, &assignment, target, &entry).expect("a program");
    let several = lowered.regions.iter().filter(|region| region.members.len() > 1);
    several.map(|region| region.members.iter().map(|member| member.name.clone()).collect()).collect()
}

#[test]
fn independent_loops_run_at_the_same_time() {
    for kernels in [["u", "v"], ["u", "u"]] {
        let text = recurrences("x", kernels);
        assert_eq!(regions(&text), [["a", "b"]], "{text}");
        check(&text, 0, Values::Tame, Tolerance::Absolute(1e-4));
    }
}

#[test]
fn a_loop_that_reads_the_result_of_another_one_runs_after_it() {
    let text = recurrences("p", ["u", "v"]);
    assert_eq!(regions(&text), [[""; 0]; 0], "{text}");
    check(&text, 0, Values::Tame, Tolerance::Absolute(1e-4));
}
