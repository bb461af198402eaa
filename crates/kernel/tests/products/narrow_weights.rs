//! Dots with constant weights in few bits, compared with the evaluator for each register size.

use crate::harness::{Loaded, Numbers, Tolerance, Values, difference, random, targets};
use shape::{ArrayShape, Literal, PrimitiveType};
use target::{Level, Target};

/// The targets of other tests, and those x86 levels that this machine runs.
fn machines() -> Vec<Target> {
    let mut machines = targets();
    let triple = codegen::host_triple();
    let (cpu, features) = codegen::host_target();
    let host = Target::new(&triple, &cpu, &features).expect("the host's triple");
    if triple.starts_with("x86_64") {
        let runs = |level: &Level| {
            let own = features.split(',');
            let bytes = if *level >= Level::V4 { 64 } else { 32 };
            level
                .features()
                .split(',')
                .all(|feature| feature.is_empty() || own.clone().any(|own| own == feature))
                && *level >= Level::V3
                && host.vector_bytes >= bytes
        };
        let levels = Level::ALL.into_iter().filter(runs);
        machines.extend(
            levels.map(|level| Target::new(&triple, level.cpu(), level.features()).expect("a level")),
        );
    }
    machines
}

fn text(literal: &Literal) -> String {
    hlo::text::literal_to_text(literal).split_once(' ').expect("a type and values").1.to_owned()
}

/// A form of weights: the type of the numbers, that of the scales, and the summands of a block.
pub(crate) struct Form {
    pub(crate) numbers: PrimitiveType,
    pub(crate) scales: Option<(PrimitiveType, i64)>,
    /// True if the summands follow the columns.
    pub(crate) is_transposed: bool,
}

/// The text of a kernel that multiplies `[m,k]` by weights with `n` columns.
pub(crate) fn kernel(form: &Form, [m, n, k]: [i64; 3], numbers: &mut Numbers) -> String {
    let block = form.scales.map_or(k, |(_, block)| block);
    let (sizes, of_scales, dimensions) = if form.is_transposed {
        (vec![n, k / block, block], vec![n, k / block], "0,1")
    } else {
        (vec![k / block, block, n], vec![k / block, n], "0,2")
    };
    let weights = ArrayShape::new(form.numbers, &sizes);
    let tame = if form.numbers.is_floating_point() { Values::Tame } else { Values::Hard };
    let w = text(&random(&weights, tame, numbers));
    let wide = ArrayShape::new(PrimitiveType::F32, &sizes);
    let whole = if form.is_transposed { [n, k] } else { [k, n] };
    let whole = ArrayShape::new(PrimitiveType::F32, &whole);
    let summed = if form.is_transposed { 1 } else { 0 };
    let (mut caller, mut body, mut operands) = (String::new(), String::new(), "x, w".to_owned());
    let mut last = "wide";
    if let Some((scale_type, _)) = form.scales {
        let scales = ArrayShape::new(scale_type, &of_scales);
        let values = text(&random(&scales, Values::Tame, numbers));
        caller = format!("  s = {scales} constant({values})\n");
        let floats = ArrayShape::new(PrimitiveType::F32, &of_scales);
        let convert = if scale_type == PrimitiveType::F32 { "copied" } else { "factors" };
        body = format!("  copied = {scales} parameter(2)\n");
        if convert == "factors" {
            body += &format!("  factors = {floats} convert(copied)\n");
        }
        body += &format!(
            "  spread = {wide} broadcast({convert}), dimensions={{{dimensions}}}\n  scaled = {wide} multiply(wide, spread)\n"
        );
        operands += ", s";
        last = "scaled";
    }
    format!(
        "HloModule weights\n\nbody {{\n  a = f32[{m},{k}] parameter(0)\n  b = {weights} parameter(1)\n  \
         wide = {wide} convert(b)\n{body}  flat = {whole} reshape({last})\n  ROOT d = f32[{m},{n}] dot(a, flat), \
         lhs_contracting_dims={{1}}, rhs_contracting_dims={{{summed}}}\n}}\n\nENTRY main {{\n  \
         x = f32[{m},{k}] parameter(0)\n  w = {weights} constant({w})\n{caller}  \
         ROOT f = f32[{m},{n}] fusion({operands}), kind=kOutput, calls=body\n}}\n"
    )
}

/// Runs a kernel on all machines. Rounding depends on the order of the sums.
fn check(form: &Form, extents: [i64; 3]) {
    let mut numbers = Numbers::new((extents[0] * 1000 + extents[1] + extents[2]) as u64);
    let text = kernel(form, extents, &mut numbers);
    let module = hlo::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let x = ArrayShape::new(PrimitiveType::F32, &[extents[0], extents[2]]);
    // Integers below 8, so that sums of unscaled integers are exact.
    let arguments = [random(&x, Values::Below(8), &mut numbers)];
    let want = evaluator::evaluate(&module, &arguments).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let is_exact = form.scales.is_none() && !form.numbers.is_floating_point();
    let largest = want.floats().expect("floats").into_iter().fold(1.0, |most: f64, x| most.max(x.abs()));
    for target in machines() {
        let loaded = Loaded::new(&module, &target).unwrap_or_else(|e| panic!("{e}\n{text}"));
        for order in [None, Some(2)] {
            let have = loaded.run(&arguments, order.unwrap_or(1), None).expect("it runs");
            let tolerance = if is_exact { Tolerance::Exact } else { Tolerance::Absolute(2e-6 * largest) };
            let apart = difference(&have[0], &want, tolerance);
            assert_eq!(apart, None, "for '{}', {extents:?}: {text}", target.cpu);
        }
    }
}

/// Rows, columns, summands: one row with neighboring panels and with panels from all parts, whole
/// tiles, and tails of each kind.
const EXTENTS: [[i64; 3]; 6] =
    [[1, 48, 64], [1, 256, 96], [1, 40, 320], [2, 64, 64], [13, 72, 96], [30, 130, 32]];

#[test]
fn numbers_without_scales() {
    use PrimitiveType::{Bf16, F16, S4, S8, U4, U8};
    for numbers in [S4, U4, S8, U8, Bf16, F16] {
        for extents in EXTENTS {
            check(&Form { numbers, scales: None, is_transposed: false }, extents);
        }
        // Summands that do not fill a group.
        for extents in [[1, 64, 67], [5, 24, 13]] {
            check(&Form { numbers, scales: None, is_transposed: true }, extents);
        }
    }
}

#[test]
fn blocks_with_scales() {
    use PrimitiveType::{Bf16, F16, F32, S4, S8, U4};
    for (numbers, scale) in [(S4, F16), (U4, F32), (S8, F16), (S8, Bf16)] {
        for is_transposed in [false, true] {
            for extents in EXTENTS {
                check(&Form { numbers, scales: Some((scale, 32)), is_transposed }, extents);
            }
        }
    }
    check(&Form { numbers: S4, scales: Some((F16, 16)), is_transposed: false }, [3, 33, 48]);
}

/// Elements of all magnitudes, each block with its own: the integers of a block must keep what
/// matters of them. The tolerance is relative to the largest result for the elements' magnitudes.
#[test]
fn blocks_of_a_row_have_their_own_magnitude() {
    const BLOCK: usize = 32;
    let [m, n, k] = [1, 64, 512];
    let mut numbers = Numbers::new(27);
    for scale in [PrimitiveType::F16, PrimitiveType::F32] {
        let form =
            Form { numbers: PrimitiveType::S4, scales: Some((scale, BLOCK as i64)), is_transposed: false };
        let text = kernel(&form, [m, n, k], &mut numbers);
        let module = hlo::parse(&text).unwrap_or_else(|e| panic!("{e}"));
        let loaded: Vec<(String, Loaded)> = machines()
            .into_iter()
            .map(|target| (target.cpu.clone(), Loaded::new(&module, &target).expect("it compiles")))
            .collect();
        let magnitudes = [1.0, 1e-3, 1e4, 3e-39, 1e-30, 0.0, 3e29, 1e-20f32];
        for (number, magnitude) in magnitudes.into_iter().enumerate() {
            let mut row: Vec<f32> = (0..k).map(|_| (numbers.unit() as f32 - 0.5) * magnitude).collect();
            // Blocks are 0 or have another magnitude; others have one element that is much larger.
            row[BLOCK..2 * BLOCK].fill(0.0);
            row[2 * BLOCK..3 * BLOCK].iter_mut().for_each(|x| *x *= 1e-4);
            row[4 * BLOCK] *= 1e3;
            let magnitudes: Vec<f32> = row.iter().map(|x| x.abs()).collect();
            let evaluate = |row: &[f32]| {
                let arguments = [Literal::from_elements(&[m, k], row)];
                evaluator::evaluate(&module, &arguments).unwrap_or_else(|e| panic!("{e}"))
            };
            let want = evaluate(&row);
            let most = evaluate(&magnitudes).floats().expect("floats").into_iter().map(f64::abs);
            let most = most.fold(0.0, f64::max) * 8.0;
            for (cpu, loaded) in &loaded {
                let have = loaded.run(&[Literal::from_elements(&[m, k], &row)], 1, None).expect("it runs");
                let apart = difference(&have[0], &want, Tolerance::Absolute(1e-6 * most + 1e-44));
                assert_eq!(apart, None, "for '{}', magnitude {number}", cpu);
            }
        }
        // One special number in a block, next to a large finite one; and one in each of two.
        let infinities = [(f32::INFINITY, 0.0), (f32::NEG_INFINITY, 0.0), (f32::INFINITY, f32::INFINITY)];
        for (first, second) in infinities.into_iter().chain([(f32::NAN, 0.0)]) {
            let mut row = vec![1.0f32; k as usize];
            (row[300], row[301], row[100]) = (first, 1e30, second);
            let arguments = [Literal::from_elements(&[m, k], &row)];
            let want = evaluator::evaluate(&module, &arguments).unwrap_or_else(|e| panic!("{e}"));
            for (cpu, loaded) in &loaded {
                let have = loaded.run(&arguments, 1, None).expect("it runs");
                let apart = difference(&have[0], &want, Tolerance::Absolute(0.0));
                assert_eq!(apart, None, "for '{cpu}', {first} and {second}");
            }
        }
    }
}
