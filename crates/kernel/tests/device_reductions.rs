//! Reductions, rows, and copies of a device, run by the simulator and compared with the evaluator.

use crate::harness::{Numbers, Tolerance, Values, difference, random};
use crate::simulator::{self, Blocks};
use hlo::Module;
use passes::{Pass, RowFusion};
use shape::{ArrayShape, Literal};
use target::Target;

const SUMS: Tolerance = Tolerance::Relative(1e-5);

/// Lowers a module for a device, runs it, and compares the results with the evaluator's for the
/// module before its fusion. Checks that the plan has these words.
fn check(before: &Module, module: &Module, values: Values, tolerance: Tolerance, words: &str) {
    let entry = module.entry_computation();
    let mut numbers = Numbers::new(words.len() as u64 + 7);
    let shapes = entry.parameters().iter().map(|&parameter| entry[parameter].shape().expect_array());
    let arguments: Vec<Literal> =
        shapes.map(|s| random(&ArrayShape::new(s.element_type, &s.sizes()), values, &mut numbers)).collect();
    check_arguments(before, module, &arguments, tolerance, words);
}

/// Like [`check`], with these arguments.
pub fn check_arguments(
    before: &Module,
    module: &Module,
    arguments: &[Literal],
    tolerance: Tolerance,
    words: &str,
) {
    let target = Target::cuda("sm_80").expect("a target");
    let want = match evaluator::evaluate(before, arguments).expect("values") {
        Literal::Tuple(results) => results,
        array @ Literal::Array { .. } => vec![array],
    };
    let plan = plan::plan(module, &target).unwrap_or_else(|e| panic!("{e}\n{}", module.to_text()));
    let described = plan.to_text(module);
    assert!(described.contains(words), "expected \"{words}\":\n{described}");
    let schedule = buffers::schedule(module, &plan);
    let mut pool = buffers::ConstantsPool::default();
    let assignment = buffers::assign(module, &plan, &schedule, &mut pool).expect("an assignment");
    let program = kernel::lower_device(module, &plan, &schedule, &assignment, &target).expect("a program");
    nest::verify(&program.kernels).unwrap_or_else(|e| panic!("{e}\n{}", program.kernels));
    let block = pool.finish();
    let mut constants = vec![0; block.size as usize];
    for (offset, bytes) in &block.chunks {
        constants[*offset as usize..*offset as usize + bytes.len()].copy_from_slice(bytes);
    }
    let blocks = Blocks {
        arguments: arguments.iter().map(|argument| argument.bytes().to_vec()).collect(),
        results: want.iter().map(|result| vec![0xA5; result.bytes().len()]).collect(),
        temps: vec![0xA5; assignment.temps_size as usize],
        constants,
    };
    let have = simulator::run(&program, blocks);
    for (have, want) in have.into_iter().zip(&want) {
        let shape = want.array_shape();
        let shape = ArrayShape::new(shape.element_type, &shape.sizes());
        let have = Literal::from_bytes(shape, have.into()).expect("the result's size");
        if let Some(difference) = difference(&have, want, tolerance) {
            panic!("{difference}\n{described}\n{}", module.to_text());
        }
    }
}

fn check_text(text: &str, values: Values, tolerance: Tolerance, words: &str) {
    let module = hlo::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    check(&module, &module, values, tolerance, words);
}

/// A computation of two numbers.
fn applied(element: &str, op: &str) -> String {
    format!(
        "f {{\n  a = {element}[] parameter(0)\n  b = {element}[] parameter(1)\n  ROOT c = {element}[] {op}(a, b)\n}}\n"
    )
}

#[test]
fn reductions_of_rows_and_columns() {
    let sums =
        |element: &str, sizes: &str, reduced: &str, result: &str, op: &str, initial: &str, words: &str| {
            let text = format!(
                "HloModule m\n{}ENTRY main {{\n  x = {element}[{sizes}] parameter(0)\n  z = {element}[] \
             constant({initial})\n  ROOT r = {element}[{result}] reduce(x, z), dimensions={{{reduced}}}, \
             to_apply=f\n}}\n",
                applied(element, op)
            );
            let tolerance = if element == "bf16" { Tolerance::Relative(0.01) } else { SUMS };
            check_text(&text, Values::Tame, tolerance, words);
        };
    sums("f32", "5,7", "1", "5", "add", "1", "4 threads for each of 8 rows");
    sums("f32", "70,64", "1", "70", "add", "0", "4 lanes");
    sums("f32", "3,1003", "1", "3", "add", "2", "256 threads for each of 1 rows");
    sums("bf16", "9,160", "1", "9", "add", "0", "8 lanes");
    sums("f64", "40,33", "0", "33", "multiply", "1", "8 threads for each of 32 columns in 2 groups");
    sums("s32", "50,3", "0", "3", "maximum", "-5", "8 threads for each of 4 columns");
    sums("pred", "200", "0", "", "and", "true", "rows in 1 groups");
    sums("c64", "90,4", "0", "4", "add", "(1, 0)", "16 threads for each of 4 columns");
    sums("f32", "6,5,8", "0,2", "5", "minimum", "inf", "by teams");
    sums("f32", "40000", "0", "", "add", "0", "parts");
    sums("f32", "20001,2", "0", "2", "add", "3", "parts");
}

#[test]
fn reductions_of_several_arrays_keep_the_order() {
    // The computation keeps the first of two equal numbers.
    for (sizes, reduced, result) in [("3,333", 1, "3"), ("333,3", 0, "3"), ("2,20000", 1, "2")] {
        let text = format!(
            "HloModule m\nf {{\n  a = s32[] parameter(0)\n  i = s32[] parameter(1)\n  b = s32[] parameter(2)\n  \
             j = s32[] parameter(3)\n  is = pred[] compare(a, b), direction=GE\n  v = s32[] select(is, a, b)\n  \
             k = s32[] select(is, i, j)\n  ROOT r = (s32[], s32[]) tuple(v, k)\n}}\nENTRY main {{\n  \
             x = s32[{sizes}] parameter(0)\n  n = s32[{sizes}] iota(), iota_dimension={reduced}\n  \
             z = s32[] constant(-9)\n  ROOT r = (s32[{result}], s32[{result}]) reduce(x, n, z, z), \
             dimensions={{{reduced}}}, to_apply=f\n}}\n"
        );
        check_text(&text, Values::Tame, Tolerance::Exact, "by teams");
    }
}

#[test]
fn softmax_in_registers_and_in_loops() {
    for (rows, length, words) in [
        (5, 7, "in registers"),
        (64, 64, "in registers, may overwrite"),
        (3, 1003, "256 threads"),
        (1, 40000, "rows by teams: 512 threads"),
    ] {
        let (whole, row) = (format!("f32[{rows},{length}]"), format!("f32[{rows}]"));
        let sum = applied("f32", "add");
        let most = applied("f32", "maximum").replacen('f', "g", 1);
        let text = format!(
            "HloModule m\n{sum}{most}ENTRY main {{\n  x = {whole} parameter(0)\n  low = f32[] constant(-inf)\n  \
             zero = f32[] constant(0)\n  m = {row} reduce(x, low), dimensions={{1}}, to_apply=g\n  \
             mb = {whole} broadcast(m), dimensions={{0}}\n  d = {whole} subtract(x, mb)\n  \
             e = {whole} exponential(d)\n  s = {row} reduce(e, zero), dimensions={{1}}, to_apply=f\n  \
             sb = {whole} broadcast(s), dimensions={{0}}\n  ROOT r = {whole} divide(e, sb)\n}}\n"
        );
        let before = hlo::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let mut module = before.clone();
        let _changed = RowFusion::default().run(&mut module).expect("a pass");
        check(&before, &module, Values::Tame, SUMS, words);
    }
}

#[test]
fn running_totals_and_windows() {
    let window = |element: &str, sizes: &str, result: &str, window: &str, op: &str, words: &str| {
        let text = format!(
            "HloModule m\n{}ENTRY main {{\n  x = {element}[{sizes}] parameter(0)\n  z = {element}[] \
             constant(1)\n  ROOT r = {element}[{result}] reduce-window(x, z), window={{{window}}}, \
             to_apply=f\n}}\n",
            applied(element, op)
        );
        check_text(&text, Values::Tame, SUMS, words);
    };
    window("f32", "3,100", "3,100", "size=1x100 pad=0_0x99_0", "add", "running totals by teams");
    window("s32", "3,101", "3,101", "size=1x101 pad=0_0x0_100", "add", "running totals by teams");
    window("s32", "3,50", "3,50", "size=1x50 pad=0_0x50_-1", "add", "running totals by teams");
    window("f64", "70,5", "70,5", "size=70x1 pad=69_0x0_0", "maximum", "threads for each of 8 columns");
    window(
        "f32",
        "2,9,9,3",
        "2,5,5,3",
        "size=1x3x3x1 stride=1x2x2x1 pad=0_0x1_1x1_1x0_0",
        "maximum",
        "by threads",
    );
    window("f32", "8", "4", "size=2 stride=2", "add", "by threads");
}

#[test]
fn arrays_are_moved_in_parallel() {
    let check = |body: &str, words: &str| {
        let text = format!("HloModule m\nENTRY main {{\n{body}}}\n");
        check_text(&text, Values::Below(3), Tolerance::Exact, words);
    };
    check(
        "  x = f32[70,50] parameter(0)\n  ROOT r = f32[50,70] transpose(x), dimensions={1,0}\n",
        "1 transposed in tiles of 50 x 70",
    );
    check(
        "  x = c64[3,40,2,20] parameter(0)\n  ROOT r = c64[3,20,40,2] transpose(x), dimensions={0,3,1,2}\n",
        "1 transposed in tiles",
    );
    check(
        "  x = s16[5,4] parameter(0)\n  y = s16[5,3] parameter(1)\n  \
         ROOT r = s16[5,7] concatenate(x, y), dimensions={1}\n",
        "units of 2 bytes",
    );
    check(
        "  x = f32[9,4] parameter(0)\n  y = f32[5,4] parameter(1)\n  \
         ROOT r = f32[14,4] concatenate(x, y), dimensions={0}\n",
        "units of 16 bytes",
    );
    check(
        "  x = f32[9,7] parameter(0)\n  y = f32[5,4] parameter(1)\n  i = s32[] parameter(2)\n  \
         j = s32[] parameter(3)\n  ROOT r = f32[9,7] dynamic-update-slice(x, y, i, j)\n",
        "slice update, copy in units of 4 bytes",
    );
}

#[test]
fn columns_of_several_results() {
    for (rows, columns) in [(64, 32), (77, 5), (9000, 4)] {
        let (whole, row) = (format!("f32[{rows},{columns}]"), format!("f32[{columns}]"));
        let text = format!(
            "HloModule m\n{}body {{\n  x = {whole} parameter(0)\n  y = {whole} parameter(1)\n  \
             z = f32[] constant(0)\n  p = {whole} multiply(x, y)\n  s = {row} reduce(p, z), dimensions={{0}}, \
             to_apply=f\n  t = {row} reduce(x, z), dimensions={{0}}, to_apply=f\n  \
             ROOT r = ({row}, {row}, {whole}) tuple(s, t, p)\n}}\nENTRY main {{\n  x = {whole} parameter(0)\n  \
             y = {whole} parameter(1)\n  ROOT r = ({row}, {row}, {whole}) fusion(x, y), kind=kLoop, \
             calls=body\n}}\n",
            applied("f32", "add")
        );
        check_text(&text, Values::Tame, SUMS, "by teams");
    }
}
