//! Errors of sums do not grow with the number of their terms: each is far from what adding one after another would leave.

use compiler::{Executable, NoObserver};
use shape::Literal;

/// Numbers within [0, 1), of which sums of many in a row lose the small ones.
fn numbers(sizes: &[i64], seed: u64) -> Literal {
    let count: i64 = sizes.iter().product();
    let mut random = runner::Random::new(seed);
    let values: Vec<f32> = (0..count).map(|_| random.uniform() as f32).collect();
    Literal::from_elements(sizes, &values)
}

fn floats(literal: &Literal) -> Vec<f64> {
    literal.floats().expect("floats")
}

/// The results of a module of `ROOT r = (...) tuple(...)` with one array.
fn run(text: &str, arguments: &[Literal], cpu: &str) -> Vec<f64> {
    let module = hlo::parse(text).expect("a module");
    let target = compiler::host(cpu).expect("this machine");
    let options = compiler::in_process_options(target);
    let compiled = compiler::compile_module(module, &options, &mut NoObserver).expect("code");
    let executable = Executable::load(&compiled).expect("code that loads");
    floats(&executable.run(arguments).expect("a run")[0])
}

/// The most units of `f32`'s rounding that a sum may be off: one after another would leave hundreds.
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
    let text = |shape: &str, kept: &str, d: usize| {
        format!(
            "HloModule sums\n\n{ADD}ENTRY main {{\n  x = f32[{shape}] parameter(0)\n  i = f32[] constant(0)\n  s = f32[{kept}] \
             reduce(x, i), dimensions={{{d}}}, to_apply=add\n  ROOT r = (f32[{kept}]) tuple(s)\n}}\n"
        )
    };
    check("rows", &text(&format!("2,{n}"), "2", 1), &[x], &rows);
    let x = numbers(&[n, 3], 2);
    let values = floats(&x);
    let columns: Vec<f64> = (0..3).map(|c| values.iter().skip(c).step_by(3).sum()).collect();
    check("columns", &text(&format!("{n},3"), "3", 0), &[x], &columns);
}

#[test]
fn of_products() {
    let n = 1 << 18;
    let (x, y) = (numbers(&[3, n], 3), numbers(&[n, 5], 4));
    let (a, b) = (floats(&x), floats(&y));
    let n = n as usize;
    let product = |i: usize, j: usize| (0..n).map(|k| a[i * n + k] * b[k * 5 + j]).sum::<f64>();
    let want: Vec<f64> = (0..15).map(|k| product(k / 5, k % 5)).collect();
    let text = format!(
        "HloModule products\n\nENTRY main {{\n  x = f32[3,{n}] parameter(0)\n  y = f32[{n},5] parameter(1)\n  d = f32[3,5] dot(x, y), \
         lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n  ROOT r = (f32[3,5]) tuple(d)\n}}\n"
    );
    check("dot", &text, &[x, y], &want);
    let (x, w) = (numbers(&[1, 96, 96, 16], 5), numbers(&[96, 96, 16, 2], 6));
    let (a, b) = (floats(&x), floats(&w));
    let want: Vec<f64> = (0..2).map(|c| a.iter().enumerate().map(|(k, a)| a * b[2 * k + c]).sum()).collect();
    let text = "HloModule window\n\nENTRY main {\n  x = f32[1,96,96,16] parameter(0)\n  w = f32[96,96,16,2] parameter(1)\n  \
                c = f32[1,1,1,2] convolution(x, w), window={size=96x96}, dim_labels=b01f_01io->b01f\n  \
                ROOT r = (f32[1,1,1,2]) tuple(c)\n}\n";
    check("convolution", text, &[x, w], &want);
}

#[test]
fn of_what_is_scattered_to_one_place() {
    let n = 1 << 18;
    let updates = numbers(&[n], 7);
    let want = [floats(&updates).iter().sum::<f64>()];
    let text = format!(
        "HloModule scattered\n\n{ADD}ENTRY main {{\n  x = f32[1] parameter(0)\n  i = s32[{n}] parameter(1)\n  u = f32[{n}] parameter(2)\n  \
         s = f32[1] scatter(x, i, u), update_window_dims={{}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, \
         index_vector_dim=1, to_apply=add\n  ROOT r = (f32[1]) tuple(s)\n}}\n"
    );
    let zero = Literal::from_elements(&[1], &[0f32]);
    let indices = Literal::from_elements(&[n], &vec![0i32; n as usize]);
    check("scatter", &text, &[zero, indices, updates], &want);
}

#[test]
fn of_running_totals() {
    let n = 1 << 16;
    let x = numbers(&[n], 8);
    let mut total = 0.0;
    let mut running = Vec::new();
    for value in floats(&x) {
        total += value;
        running.push(total);
    }
    let text = format!(
        "HloModule running\n\n{ADD}ENTRY main {{\n  x = f32[{n}] parameter(0)\n  i = f32[] constant(0)\n  s = f32[{n}] reduce-window(x, i), \
         window={{size={n} pad={}_0}}, to_apply=add\n  ROOT r = (f32[{n}]) tuple(s)\n}}\n",
        n - 1
    );
    check("running total", &text, &[x], &running);
}
