//! Errors of reductions do not grow with the number of terms: they are far below those of adding
//! one term after another.

use compiler::{Executable, NoObserver};
use shape::Literal;

/// Returns numbers in [0, 1). Sums of many in sequence lose the small ones.
fn numbers(sizes: &[i64], seed: u64) -> Literal {
    let count: i64 = sizes.iter().product();
    let mut random = runner::Random::new(seed);
    let values: Vec<f32> = (0..count).map(|_| random.uniform() as f32).collect();
    Literal::from_elements(sizes, &values)
}

fn floats(literal: &Literal) -> Vec<f64> {
    literal.floats().expect("floats")
}

/// Returns the results of a module with the root `ROOT r = (...) tuple(...)` of one array.
fn run(text: &str, arguments: &[Literal], cpu: &str) -> Vec<f64> {
    let module = hlo::parse(text).expect("a module");
    let target = compiler::host(cpu).expect("this machine");
    let options = compiler::in_process_options(target);
    let compiled = compiler::compile_module(module, &options, &mut NoObserver).expect("code");
    let executable = Executable::load(&compiled).expect("code that loads");
    floats(&executable.run(arguments).expect("a run")[0])
}

/// Largest allowed error of a sum, in units of `f32` rounding. Adding one term after another would
/// be off by hundreds.
const MOST: f64 = 24.0;

#[track_caller]
fn check(name: &str, text: &str, arguments: &[Literal], want: &[f64]) {
    for cpu in ["", "native"] {
        let got = run(text, arguments, cpu);
        assert_eq!(got.len(), want.len(), "{name}");
        let errors = got.iter().zip(want).map(|(got, want)| (got - want).abs() / want.abs());
        let worst = errors.fold(0.0, f64::max) / f64::from(f32::EPSILON);
        println!("{name} on '{cpu}': {worst:.1} units");
        assert!(worst < MOST, "{name} on '{cpu}': {worst} units");
    }
}

const ADD: &str =
    "add {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT z = f32[] add(x, y)\n}\n\n";

#[test]
fn of_rows_and_columns() {
    let n = 1 << 20;
    let x = numbers(&[2, n], 1);
    let values = floats(&x);
    let rows: Vec<f64> = values.chunks(n as usize).map(|row| row.iter().sum()).collect();
    let text = |shape: &str, result: &str, d: usize| {
        format!(
            "HloModule sums\n\n{ADD}ENTRY main {{\n  x = f32[{shape}] parameter(0)\n  i = f32[] constant(0)\n  s = f32[{result}] \
             reduce(x, i), dimensions={{{d}}}, to_apply=add\n  ROOT r = (f32[{result}]) tuple(s)\n}}\n"
        )
    };
    check("rows", &text(&format!("2,{n}"), "2", 1), &[x], &rows);
    let x = numbers(&[n, 3], 2);
    let values = floats(&x);
    let columns: Vec<f64> = (0..3).map(|c| values.iter().skip(c).step_by(3).sum()).collect();
    check("columns", &text(&format!("{n},3"), "3", 0), &[x], &columns);
}
