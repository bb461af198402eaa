//! Products of bytes and of narrow floats with constant weights, compared with the evaluator on
//! each way to compute them.

use crate::harness::{Loaded, Numbers, Tolerance, Values, difference, random, targets};
use shape::{ArrayShape, Literal, PrimitiveType};
use target::Target;

/// This machine, and x86 processors that it can stand in for.
fn machines() -> Vec<Target> {
    let mut machines = targets();
    let (host, features) = codegen::host_target();
    let own = Target::new(&codegen::host_triple(), &host, &features).expect("the host's triple");
    let mut older = Vec::new();
    if own.vector_bytes >= 32 && own.has_fma {
        older.push("x86-64-v3");
    }
    if own.vector_bytes == 64 {
        older.push("x86-64-v4");
    }
    if codegen::host_triple().starts_with("x86_64") {
        older.extend(own.has_popcnt.then_some("x86-64-v2"));
        let of = |cpu, features| Target::new(&codegen::host_triple(), cpu, features).expect("a target");
        machines.extend(older.iter().map(|cpu| of(cpu, "")));
        let has_vnni =
            own.features.split(',').any(|feature| feature == "+avxvnni") && older.contains(&"x86-64-v3");
        machines.extend(has_vnni.then(|| of("x86-64-v3", "+avxvnni")));
    }
    machines
}

/// Types of the left operand.
pub(crate) const TYPES: [PrimitiveType; 4] =
    [PrimitiveType::S8, PrimitiveType::U8, PrimitiveType::Bf16, PrimitiveType::F16];

/// The types of the weights and of the sums.
pub(crate) fn types(lhs: PrimitiveType) -> [PrimitiveType; 2] {
    if lhs.is_integer() { [PrimitiveType::S8, PrimitiveType::S32] } else { [lhs, PrimitiveType::F32] }
}

/// Random numbers: all for integers, and moderate ones for floats.
pub(crate) fn values(element_type: PrimitiveType) -> Values {
    if element_type.is_integer() { Values::Hard } else { Values::Tame }
}

/// The largest difference from the evaluator, which sums in `f64`.
pub(crate) fn tolerance(element_type: PrimitiveType) -> Tolerance {
    if element_type.is_integer() { Tolerance::Exact } else { Tolerance::Relative(5e-5) }
}

/// The text of a constant array of random numbers, without its type.
pub(crate) fn constant(element_type: PrimitiveType, sizes: &[i64], numbers: &mut Numbers) -> String {
    let values = random(&ArrayShape::new(element_type, sizes), values(element_type), numbers);
    let text = hlo::text::literal_to_text(&values);
    text.split_once(' ').expect("a type and values").1.to_owned()
}

/// Runs a module on all machines. Each kernel multiplies groups where the machine can. Bytes
/// without -128 are multiplied in another way on some.
pub(crate) fn check(text: &str) {
    check_with(text, values, tolerance);
    if text.contains("-128") {
        check_with(&text.replace("-128", "-127"), values, tolerance);
    }
}

/// The same for arguments with these values, and with a tolerance by the result's type.
pub(crate) fn check_with(
    text: &str,
    values: impl Fn(PrimitiveType) -> Values,
    tolerance: impl Fn(PrimitiveType) -> Tolerance,
) {
    let module = hlo::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let entry = module.entry_computation();
    let mut numbers = Numbers::new(text.len() as u64);
    let arguments: Vec<_> = entry
        .parameters()
        .iter()
        .map(|&p| entry[p].shape().expect_array())
        .map(|shape| random(shape, values(shape.element_type), &mut numbers))
        .collect();
    let want = evaluator::evaluate(&module, &arguments).unwrap_or_else(|e| panic!("{e}\n{text}"));
    for target in machines() {
        let loaded = Loaded::new(&module, &target).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let have = loaded.run(&arguments, 1, None).expect("it runs");
        let apart = difference(&have[0], &want, tolerance(want.array_shape().element_type));
        assert_eq!(apart, None, "for '{}': {text}", target.cpu);
    }
}

/// The text of a dot of `m` rows and a constant with `n` columns.
pub(crate) fn dot(lhs: PrimitiveType, [m, n, k]: [i64; 3]) -> String {
    let mut numbers = Numbers::new((m * n + k) as u64);
    let [rhs, sum] = types(lhs);
    let weights = constant(rhs, &[k, n], &mut numbers);
    format!(
        "HloModule dots\n\nENTRY main {{\n  x = {lhs}[{m},{k}] parameter(0)\n  \
         w = {rhs}[{k},{n}] constant({weights})\n  ROOT d = {sum}[{m},{n}] dot(x, w), \
         lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n}}\n"
    )
}

#[test]
fn dots_of_groups() {
    let shapes = [
        // Rows, columns, summands: whole tiles, then tails of each kind.
        (12, 64, 64),
        (7, 48, 33),
        (1, 40, 18),
        (1, 10, 3),
        (5, 21, 7),
        (13, 4, 20),
        (3, 17, 4),
        (100, 100, 130),
        (2, 1, 9),
        (9, 16, 1),
    ];
    for (m, n, k) in shapes {
        for lhs in TYPES {
            check(&dot(lhs, [m, n, k]));
        }
    }
}

/// The last group of a row is loaded with numbers of the group before, which must not count twice.
#[test]
fn infinite_numbers_count_once() {
    let (m, n) = (5, 16);
    for lhs in [PrimitiveType::Bf16, PrimitiveType::F16] {
        for k in [3, 5, 7, 9, 33] {
            let weights = vec![format!("{{{}}}", vec!["1"; n as usize].join(",")); k as usize].join(",");
            let text = format!(
                "HloModule dots\n\nENTRY main {{\n  x = {lhs}[{m},{k}] parameter(0)\n  \
                 w = {lhs}[{k},{n}] constant({{{weights}}})\n  ROOT d = f32[{m},{n}] dot(x, w), \
                 lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n}}\n"
            );
            let module = hlo::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
            for target in machines() {
                let loaded = Loaded::new(&module, &target).unwrap_or_else(|e| panic!("{e}\n{text}"));
                for place in 0..k {
                    let x = (0..m * k).map(|at| if at % k == place { f64::INFINITY } else { 1.0 });
                    let x = Literal::from_floats(ArrayShape::new(lhs, &[m, k]), x);
                    let have = loaded.run(std::slice::from_ref(&x), 1, None).expect("it runs");
                    let sums = have[0].to_vec::<f32>().expect("sums in f32");
                    assert!(sums.iter().all(|&sum| sum == f32::INFINITY), "{sums:?} for {text}");
                }
            }
        }
    }
}

#[test]
fn dots_of_groups_in_any_layout() {
    let mut numbers = Numbers::new(3);
    for lhs in TYPES {
        let [rhs, sum] = types(lhs);
        let weights = constant(rhs, &[19, 26], &mut numbers);
        check(&format!(
            "HloModule transposed\n\nENTRY main {{\n  x = {lhs}[6,26] parameter(0)\n  \
             w = {rhs}[19,26] constant({weights})\n  ROOT d = {sum}[6,19] dot(x, w), \
             lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}\n}}\n"
        ));
        // The summands of a row are not neighbors, so the rows are copied.
        let weights = constant(rhs, &[26, 19], &mut numbers);
        check(&format!(
            "HloModule apart\n\nENTRY main {{\n  x = {lhs}[26,6] parameter(0)\n  \
             w = {rhs}[26,19] constant({weights})\n  ROOT d = {sum}[6,19] dot(x, w), \
             lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}\n}}\n"
        ));
        let weights = constant(rhs, &[3, 26, 20], &mut numbers);
        check(&format!(
            "HloModule batches\n\nENTRY main {{\n  x = {lhs}[3,6,26] parameter(0)\n  \
             w = {rhs}[3,26,20] constant({weights})\n  ROOT d = {sum}[3,6,20] dot(x, w), \
             lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, \
             rhs_contracting_dims={{1}}\n}}\n"
        ));
    }
}

#[test]
fn dots_of_bytes_scale_their_sums_on_the_tile() {
    let mut numbers = Numbers::new(5);
    let weights = constant(PrimitiveType::S8, &[30, 40], &mut numbers);
    check(&format!(
        "HloModule scaled\n\nbody {{\n  x = s8[9,30] parameter(0)\n  w = s8[30,40] parameter(1)\n  \
         f = s64[] parameter(2)\n  d = s32[9,40] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n  \
         wide = s64[9,40] convert(d)\n  fs = s64[9,40] broadcast(f), dimensions={{}}\n  p = s64[9,40] multiply(wide, fs)\n  \
         c = s64[] constant(31)\n  cs = s64[9,40] broadcast(c), dimensions={{}}\n  \
         q = s64[9,40] shift-right-arithmetic(p, cs)\n  low = s64[] constant(-128)\n  high = s64[] constant(127)\n  \
         r = s64[9,40] clamp(low, q, high)\n  ROOT y = s8[9,40] convert(r)\n}}\n\n\
         ENTRY main {{\n  x = s8[9,30] parameter(0)\n  w = s8[30,40] constant({weights})\n  \
         f = s64[] constant(1503238553)\n  ROOT y = s8[9,40] fusion(x, w, f), kind=kOutput, calls=body\n}}\n"
    ));
}

/// The text of a convolution with a constant kernel, whose last dimensions are features of
/// a group and all outputs.
pub(crate) fn convolution(
    lhs: PrimitiveType,
    image: [i64; 4],
    kernel: [i64; 4],
    window: &str,
    result: [i64; 4],
    groups: i64,
) -> String {
    let list = |sizes: &[i64]| sizes.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    let [rhs, sum] = types(lhs);
    let weights = constant(rhs, &kernel, &mut Numbers::new(kernel.iter().sum::<i64>() as u64));
    let (image, kernel, result) = (list(&image), list(&kernel), list(&result));
    format!(
        "HloModule convolutions\n\nENTRY main {{\n  x = {lhs}[{image}] parameter(0)\n  \
         w = {rhs}[{kernel}] constant({weights})\n  ROOT c = {sum}[{result}] convolution(x, w), window={{{window}}}, \
         dim_labels=b01f_01io->b01f, feature_group_count={groups}\n}}\n"
    )
}

#[test]
fn convolutions_of_groups() {
    let cases = [
        // Products of pixels, with and without a whole last group.
        ([2, 5, 7, 8], [1, 1, 8, 48], "size=1x1", [2, 5, 7, 48], 1),
        ([1, 6, 6, 13], [1, 1, 13, 21], "size=1x1", [1, 6, 6, 21], 1),
        ([1, 1, 1, 70], [1, 1, 70, 5], "size=1x1", [1, 1, 1, 5], 1),
        // Padding, whose taps are absent in the corners.
        ([1, 9, 8, 16], [3, 3, 16, 64], "size=3x3 pad=1_1x1_1", [1, 9, 8, 64], 1),
        ([2, 6, 5, 3], [3, 3, 3, 19], "size=3x3 pad=1_1x1_1", [2, 6, 5, 19], 1),
        ([1, 7, 7, 6], [5, 2, 6, 33], "size=5x2 pad=2_2x0_1", [1, 7, 7, 33], 1),
        // Strides, dilations, and groups.
        ([1, 11, 9, 3], [3, 3, 3, 24], "size=3x3 stride=2x2 pad=0_1x1_1", [1, 5, 5, 24], 1),
        ([1, 9, 9, 12], [3, 3, 12, 17], "size=3x3 pad=2_2x2_2 rhs_dilate=2x2", [1, 9, 9, 17], 1),
        ([1, 4, 5, 8], [3, 3, 8, 20], "size=3x3 pad=1_2x1_2 lhs_dilate=2x2", [1, 8, 10, 20], 1),
        ([2, 5, 5, 15], [3, 3, 5, 36], "size=3x3 pad=1_1x1_1", [2, 5, 5, 36], 3),
        ([1, 5, 5, 24], [3, 3, 1, 24], "size=3x3 pad=1_1x1_1", [1, 5, 5, 24], 24),
        // One input feature for one or for several output features.
        ([1, 6, 9, 40], [3, 3, 1, 40], "size=3x3 stride=2x2 pad=1_1x1_1", [1, 3, 5, 40], 40),
        ([1, 7, 5, 8], [2, 3, 1, 32], "size=2x3 pad=1_0x1_1", [1, 7, 5, 32], 8),
        ([1, 6, 20, 18], [1, 9, 1, 18], "size=1x9 pad=0_0x4_4", [1, 6, 20, 18], 18),
        // Windows without padding, whose columns of taps are in groups.
        ([1, 9, 10, 40], [3, 3, 1, 40], "size=3x3", [1, 7, 8, 40], 40),
        ([2, 11, 9, 5], [5, 5, 1, 5], "size=5x5 stride=2x2", [2, 4, 3, 5], 5),
        ([1, 10, 6, 33], [7, 2, 1, 33], "size=7x2 stride=1x2", [1, 4, 3, 33], 33),
        ([1, 9, 9, 8], [3, 3, 1, 32], "size=3x3 rhs_dilate=2x2", [1, 5, 5, 32], 8),
        ([9, 4, 3, 18], [4, 3, 1, 18], "size=4x3", [9, 1, 1, 18], 18),
        ([1, 13, 1, 16], [9, 1, 1, 16], "size=9x1", [1, 5, 1, 16], 16),
        // Lines of taps that are one run, and a last line that is not whole.
        ([2, 8, 9, 3], [3, 3, 3, 16], "size=3x3", [2, 6, 7, 16], 1),
        ([1, 9, 11, 3], [5, 3, 3, 20], "size=5x3 stride=2x2 pad=2_2x0_0", [1, 5, 5, 20], 1),
        ([1, 6, 12, 1], [1, 9, 1, 8], "size=1x9", [1, 6, 4, 8], 1),
        ([1, 5, 4, 3], [2, 1, 3, 8], "size=2x1 pad=1_0x0_0", [1, 5, 4, 8], 1),
        // Too few features for groups of bytes.
        ([1, 6, 6, 2], [3, 3, 2, 16], "size=3x3 pad=1_1x1_1", [1, 6, 6, 16], 1),
    ];
    for (image, kernel, window, result, groups) in cases {
        for lhs in TYPES {
            check(&convolution(lhs, image, kernel, window, result, groups));
        }
    }
}

/// The text of a product of bytes, as [`dot`] and [`convolution`] write it, with a bias for each of
/// its columns, in one kernel.
pub(crate) fn biased(text: &str) -> String {
    let line = |start: &str| text.lines().find(|line| line.trim_start().starts_with(start)).expect("a line");
    let of = |line: &str| line.trim_start().split_once(" = ").expect("an instruction").1.to_owned();
    let (x, w, product) = (of(line("x = ")), of(line("w = ")), of(line("ROOT")));
    let shape = product.split_once(' ').expect("a shape").0;
    let sizes = shape.split_once('[').expect("sizes").1.trim_end_matches(']');
    let (last, n) = sizes.rsplit_once(',').map_or((0, sizes), |(outer, n)| (outer.split(',').count(), n));
    let bias = constant(PrimitiveType::S32, &[n.parse().expect("a size")], &mut Numbers::new(7));
    let kernel = w.split_once(' ').expect("a shape").0;
    format!(
        "HloModule biased\n\nbody {{\n  x = {x}\n  w = {kernel} parameter(1)\n  b = s32[{n}] parameter(2)\n  \
         d = {product}\n  bs = {shape} broadcast(b), dimensions={{{last}}}\n  ROOT y = {shape} add(bs, d)\n}}\n\n\
         ENTRY main {{\n  x = {x}\n  w = {w}\n  b = s32[{n}] constant({bias})\n  \
         ROOT y = {shape} fusion(x, w, b), kind=kOutput, calls=body\n}}\n"
    )
}

/// Sums begin with the bias if all outputs have the same taps and no other kernel reads it.
#[test]
fn layers_of_bytes_with_a_bias() {
    for lhs in [PrimitiveType::S8, PrimitiveType::U8] {
        for [m, n, k] in [[12, 64, 64], [7, 48, 33], [1, 40, 18], [1, 10, 3], [5, 21, 7], [100, 100, 130]] {
            check(&biased(&dot(lhs, [m, n, k])));
        }
        let cases = [
            ([2, 5, 7, 8], [1, 1, 8, 48], "size=1x1", [2, 5, 7, 48], 1),
            ([1, 6, 6, 13], [1, 1, 13, 21], "size=1x1", [1, 6, 6, 21], 1),
            ([2, 8, 9, 16], [3, 3, 16, 33], "size=3x3", [2, 6, 7, 33], 1),
            ([2, 8, 9, 3], [3, 3, 3, 16], "size=3x3", [2, 6, 7, 16], 1),
            ([1, 9, 8, 16], [3, 3, 16, 64], "size=3x3 pad=1_1x1_1", [1, 9, 8, 64], 1),
            ([2, 5, 5, 15], [1, 1, 5, 36], "size=1x1", [2, 5, 5, 36], 3),
            ([1, 9, 10, 40], [3, 3, 1, 40], "size=3x3", [1, 7, 8, 40], 40),
        ];
        for (image, kernel, window, result, groups) in cases {
            check(&biased(&convolution(lhs, image, kernel, window, result, groups)));
        }
    }
}

#[test]
fn candidates_of_products_of_groups() {
    let mut numbers = Numbers::new(9);
    let texts = [PrimitiveType::S8, PrimitiveType::Bf16].map(|lhs| {
        let [rhs, sum] = types(lhs);
        let weights = constant(rhs, &[45, 75], &mut numbers);
        let dot = format!(
            "HloModule dots\n\nENTRY main {{\n  x = {lhs}[37,45] parameter(0)\n  w = {rhs}[45,75] constant({weights})\n  \
             ROOT d = {sum}[37,75] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n}}\n"
        );
        let window = "size=3x3 pad=1_1x1_1";
        [dot, convolution(lhs, [1, 9, 7, 10], [3, 3, 10, 37], window, [1, 9, 7, 37], 1)]
    });
    for text in texts.into_iter().flatten() {
        let module = hlo::parse(&text).expect("a module");
        let entry = module.entry_computation();
        let shape = entry[entry.parameters()[0]].shape().expect_array();
        let argument = random(shape, values(shape.element_type), &mut numbers);
        let want = evaluator::evaluate(&module, std::slice::from_ref(&argument)).expect("a value");
        let fusion = plan::Fusion::of(&module, entry, entry.root()).expect("a fusion");
        let kernel = plan::tuning::kernel(&fusion).expect("a contraction");
        for target in machines() {
            let options = plan::Options::default();
            let candidates = plan::candidates(&module, entry, entry.root(), &target, &options);
            assert!(candidates.len() >= 2, "for '{}'", target.cpu);
            for candidate in candidates {
                let mut choices = plan::Choices::default();
                choices.set(&plan::tuning::machine(&target), &kernel, candidate);
                let options = plan::Options { choices: std::sync::Arc::new(choices), ..options.clone() };
                let loaded = Loaded::with_options(&module, &target, &options).expect("code");
                let have = loaded.run(std::slice::from_ref(&argument), 1, None).expect("it runs");
                let apart = difference(&have[0], &want, tolerance(want.array_shape().element_type));
                assert_eq!(apart, None, "{candidate} for '{}'", target.cpu);
            }
        }
    }
}

#[test]
fn chains_of_convolutions_of_bytes() {
    let mut numbers = Numbers::new(17);
    let [expand, project] =
        [[1, 1, 10, 24], [3, 3, 24, 12]].map(|sizes| constant(PrimitiveType::S8, &sizes, &mut numbers));
    let shape = "[1,12,9,24]";
    check(&format!(
        "HloModule chains\n\nbody {{\n  x = s8[1,12,9,10] parameter(0)\n  w = s8[1,1,10,24] parameter(1)\n  \
         v = s8[3,3,24,12] parameter(2)\n  c = s32{shape} convolution(x, w), window={{size=1x1}}, \
         dim_labels=b01f_01io->b01f\n  bits = s32[] constant(8)\n  all = s32{shape} broadcast(bits), dimensions={{}}\n  \
         s = s32{shape} shift-right-arithmetic(c, all)\n  low = s32[] constant(-128)\n  high = s32[] constant(127)\n  \
         y = s32{shape} clamp(low, s, high)\n  z = s8{shape} convert(y)\n  \
         ROOT d = s32[1,12,9,12] convolution(z, v), window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_01io->b01f\n}}\n\n\
         ENTRY main {{\n  x = s8[1,12,9,10] parameter(0)\n  w = s8[1,1,10,24] constant({expand})\n  \
         v = s8[3,3,24,12] constant({project})\n  \
         ROOT r = s32[1,12,9,12] fusion(x, w, v), kind=kOutput, calls=body\n}}\n"
    ));
}
