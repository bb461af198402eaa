//! Tests of plans, by table.

use super::*;
use crate::planner::plan as plan_module;
use crate::strategy::{InstructionPlan, Strategy};

/// A softmax of `rows` rows.
fn softmax(rows: i64, columns: i64) -> hlo::Module {
    let whole = format!("f32[{rows},{columns}]");
    let text = format!(
        "HloModule rows

most {{
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] maximum(x, y)
}}

sum {{
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y)
}}

fused {{
  x = {whole} parameter(0)
  low = f32[] constant(-inf)
  zero = f32[] constant(0)
  m = f32[{rows}] reduce(x, low), dimensions={{1}}, to_apply=most
  mb = {whole} broadcast(m), dimensions={{0}}
  d = {whole} subtract(x, mb)
  e = {whole} exponential(d)
  s = f32[{rows}] reduce(e, zero), dimensions={{1}}, to_apply=sum
  sb = {whole} broadcast(s), dimensions={{0}}
  ROOT r = {whole} divide(e, sb)
}}

ENTRY main {{
  x = {whole} parameter(0)
  ROOT a = {whole} fusion(x), kind=kInput, calls=fused
}}
"
    );
    hlo::parse(&text).unwrap_or_else(|e| panic!("{e}"))
}

fn plan_of(module: &hlo::Module, target: &Target) -> (InstructionPlan, RowsPlan) {
    let plans = plan_module(module, target).expect("a plan");
    let root = module.entry_computation().root();
    let plan = plans.computations[&module.entry()].instructions[&root].clone();
    match plan.strategy.clone() {
        Strategy::Rows(rows) => (plan, rows),
        other => panic!("{other:?}"),
    }
}

#[test]
fn short_rows_stay_in_registers_and_long_rows_keep_expensive_values() {
    let avx512 = Target::new("x86_64-pc-linux", "x86-64-v4", "").expect("a valid triple");
    let avx2 = Target::new("x86_64-pc-linux", "x86-64-v3", "").expect("a valid triple");
    let neon = Target::new("aarch64-linux-gnu", "", "").expect("a valid triple");
    let table = [
        // (rows, columns), (lanes, in registers, scratch bytes per worker)
        ((&avx512, 4, 10), (8, true, 0)),
        ((&avx512, 4, 16), (16, true, 0)),
        ((&avx512, 4, 128), (16, true, 0)),
        ((&avx512, 4, 129), (16, false, 576)),
        ((&avx512, 4, 1000), (16, false, 4032)),
        ((&avx2, 4, 32), (8, true, 0)),
        ((&avx2, 4, 33), (8, false, 192)),
        ((&neon, 4, 3), (2, true, 0)),
        ((&neon, 4, 200), (4, false, 832)),
    ];
    for ((target, rows, columns), expected) in table {
        let (plan, walk) = plan_of(&softmax(rows, columns), target);
        let actual = (walk.lanes, walk.in_registers, plan.worker_scratch_bytes);
        assert_eq!(actual, expected, "{rows}x{columns} on '{}'", target.cpu);
        assert_eq!(walk.sweeps.len(), 3, "{rows}x{columns}");
        let kept = usize::from(!walk.in_registers);
        assert_eq!((walk.sweeps[1].stored.len(), walk.sweeps[2].loaded.len()), (kept, kept));
        assert_eq!(plan.may_overwrite, [0]);
    }
}

#[test]
fn rows_are_cut_into_tasks() {
    let target = Target::new("x86_64-pc-linux", "x86-64-v3", "").expect("a valid triple");
    let (plan, walk) = plan_of(&softmax(1, 5000), &target);
    assert_eq!((plan.tasks, &walk.cuts[..]), (1, &[][..]));
    let (plan, walk) = plan_of(&softmax(4000, 1000), &target);
    assert_eq!((plan.tasks, &walk.cuts[..]), (64, &[64][..]));
}
