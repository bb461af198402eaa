//! Chains of convolutions compiled as one kernel, compared with the evaluator.

use crate::harness::{Tolerance, Values, check, targets};
use plan::Strategy;
use std::fmt::Write as _;

/// Small nonnegative integers. No sum of them cancels, and most are exact.
const SMALL: Values = Values::Below(3);

/// A convolution in a chain. A depthwise one has as many groups as input features.
#[derive(Clone, Copy, Debug)]
struct Stage {
    size: (i64, i64),
    stride: i64,
    /// Low and high padding of both dimensions.
    padding: (i64, i64),
    /// Output features of all groups.
    outputs: i64,
    is_depthwise: bool,
    follow: Follow,
}

/// Epilogue of a convolution.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Follow {
    Nothing,
    Bias,
    /// A bias, and a clamp between two numbers.
    Clamp,
    /// A bias, and `x logistic(x)`.
    Swish,
    /// An operand of the result's size. Only allowed at the end.
    Residual,
}

impl Stage {
    fn pointwise(outputs: i64, follow: Follow) -> Self {
        Self { size: (1, 1), stride: 1, padding: (0, 0), outputs, is_depthwise: false, follow }
    }

    fn dense(size: i64, stride: i64, outputs: i64, follow: Follow) -> Self {
        Self {
            size: (size, size),
            stride,
            padding: ((size - 1) / 2, size / 2),
            ..Self::pointwise(outputs, follow)
        }
    }

    fn depthwise(size: i64, stride: i64, features: i64, follow: Follow) -> Self {
        Self { is_depthwise: true, ..Self::dense(size, stride, features, follow) }
    }
}

/// Returns a chain as one fusion, given the input sizes, the element type, and the stages.
fn chain(ty: &str, [batch, lines, columns, features]: [i64; 4], stages: &[Stage]) -> String {
    let (mut body, mut entry, mut shapes) = (String::new(), String::new(), Vec::new());
    let mut parameter = |body: &mut String, shape: String| {
        let number = shapes.len();
        let _ = writeln!(body, "  p{number} = {shape} parameter({number})");
        shapes.push(shape);
        format!("p{number}")
    };
    let mut value = parameter(&mut body, format!("{ty}[{batch},{lines},{columns},{features}]"));
    let mut sizes = (lines, columns, features);
    for (k, stage) in stages.iter().enumerate() {
        let out =
            |input: i64, size: i64| (input + stage.padding.0 + stage.padding.1 - size) / stage.stride + 1;
        let inputs = if stage.is_depthwise { 1 } else { sizes.2 };
        let groups = sizes.2 / inputs;
        let (height, width) = stage.size;
        let kernel = parameter(&mut body, format!("{ty}[{height},{width},{inputs},{}]", stage.outputs));
        sizes = (out(sizes.0, height), out(sizes.1, width), stage.outputs);
        let shape = format!("{ty}[{batch},{},{},{}]", sizes.0, sizes.1, sizes.2);
        let (low, high) = stage.padding;
        let _ = writeln!(
            body,
            "  c{k} = {shape} convolution({value}, {kernel}), window={{size={height}x{width} stride={s}x{s} \
             pad={low}_{high}x{low}_{high}}}, dim_labels=b01f_01io->b01f, feature_group_count={groups}",
            s = stage.stride,
        );
        value = format!("c{k}");
        if stage.follow == Follow::Residual {
            let residual = parameter(&mut body, shape.clone());
            let _ = writeln!(body, "  s{k} = {shape} add({value}, {residual})");
            value = format!("s{k}");
        } else if stage.follow != Follow::Nothing {
            let bias = parameter(&mut body, format!("{ty}[{}]", stage.outputs));
            let _ = writeln!(body, "  b{k} = {shape} broadcast({bias}), dimensions={{3}}");
            let _ = writeln!(body, "  s{k} = {shape} add({value}, b{k})");
            value = format!("s{k}");
        }
        if stage.follow == Follow::Clamp {
            let _ = writeln!(body, "  low{k} = {ty}[] constant(1)\n  high{k} = {ty}[] constant(60)");
            let _ = writeln!(body, "  a{k} = {shape} clamp(low{k}, {value}, high{k})");
            value = format!("a{k}");
        }
        if stage.follow == Follow::Swish {
            let _ = writeln!(
                body,
                "  l{k} = {shape} logistic({value})\n  a{k} = {shape} multiply({value}, l{k})"
            );
            value = format!("a{k}");
        }
    }
    let result = format!("{ty}[{batch},{},{},{}]", sizes.0, sizes.1, sizes.2);
    let body = match body.rfind(&format!("\n  {value} = ")) {
        Some(at) => format!("{}\n  ROOT {}", &body[..at], &body[at + 3..]),
        None => panic!("expected the root in the body"),
    };
    let mut names = Vec::new();
    for (number, shape) in shapes.iter().enumerate() {
        let _ = writeln!(entry, "  p{number} = {shape} parameter({number})");
        names.push(format!("p{number}"));
    }
    format!(
        "HloModule chains\n\nchain {{\n{body}}}\n\nENTRY main {{\n{entry}  ROOT r = {result} fusion({}), kind=kOutput, \
         calls=chain\n}}\n",
        names.join(", ")
    )
}

/// Compares a chain with the evaluator, and checks that it is planned as one kernel.
fn check_chain(ty: &str, input: [i64; 4], stages: &[Stage], values: Values, tolerance: Tolerance) {
    let text = chain(ty, input, stages);
    let module = hlo::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    for target in targets() {
        let plan = plan::plan(&module, &target).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let plans = &plan.computations[&module.entry()].instructions;
        let chains = plans.values().filter(|p| matches!(p.strategy, Strategy::ConvolutionChain(_)));
        let tasks: Vec<i64> = chains.map(|p| p.tasks).collect();
        assert!(matches!(tasks[..], [tasks] if tasks > 1), "{tasks:?}\n{text}");
    }
    check(&text, &[values], tolerance);
}

/// Expand, depthwise, and project, with the input added if the sizes match.
fn bottleneck(narrow: i64, wide: i64, size: i64, stride: i64, follow: Follow) -> Vec<Stage> {
    let last = if stride == 1 { Follow::Residual } else { Follow::Bias };
    vec![
        Stage::pointwise(wide, follow),
        Stage::depthwise(size, stride, wide, follow),
        Stage::pointwise(narrow, last),
    ]
}

#[test]
fn inverted_bottlenecks() {
    for (pixels, narrow, wide, size, stride) in [
        ([1, 12, 12], 8, 48, 3, 1),
        ([1, 13, 11], 5, 17, 3, 2),
        ([2, 9, 14], 3, 16, 5, 1),
        ([3, 7, 5], 16, 15, 5, 2),
        ([1, 30, 20], 24, 33, 7, 1),
        ([1, 2, 40], 4, 96, 3, 1),
    ] {
        let [batch, lines, columns] = pixels;
        for follow in [Follow::Clamp, Follow::Swish] {
            let stages = bottleneck(narrow, wide, size, stride, follow);
            check_chain("f32", [batch, lines, columns, narrow], &stages, SMALL, Tolerance::Relative(2e-5));
        }
    }
}

#[test]
fn stages_of_every_shape() {
    let (none, bias) = (Follow::Nothing, Follow::Bias);
    let first =
        vec![Stage::dense(3, 2, 16, bias), Stage::depthwise(3, 1, 16, bias), Stage::pointwise(10, bias)];
    let table: [([i64; 4], Vec<Stage>); 6] = [
        ([1, 33, 31, 3], first),
        ([1, 16, 17, 20], vec![Stage::depthwise(3, 1, 20, bias), Stage::pointwise(7, none)]),
        ([1, 16, 15, 6], vec![Stage::dense(3, 1, 18, none), Stage::dense(5, 2, 9, bias)]),
        (
            [2, 10, 9, 4],
            vec![Stage::dense(3, 1, 8, bias), Stage::dense(3, 1, 8, bias), Stage::dense(3, 1, 4, none)],
        ),
        (
            [1, 14, 8, 4],
            vec![
                Stage::pointwise(8, bias),
                Stage::depthwise(3, 1, 16, bias),
                Stage::depthwise(3, 1, 16, none),
                Stage::pointwise(3, bias),
            ],
        ),
        // Only padding at the ends.
        (
            [1, 5, 5, 4],
            vec![Stage::pointwise(6, none), Stage { padding: (5, 4), ..Stage::dense(3, 1, 7, bias) }],
        ),
    ];
    for (input, stages) in table {
        check_chain("f32", input, &stages, SMALL, Tolerance::Relative(2e-5));
    }
}

#[test]
fn every_type_and_every_number() {
    let stages = bottleneck(6, 18, 3, 1, Follow::Clamp);
    for (ty, tolerance) in [("f64", 1e-11), ("bf16", 1e-1)] {
        check_chain(ty, [1, 9, 10, 6], &stages, SMALL, Tolerance::Relative(tolerance));
    }
    // None of these sums cancels: each output has one summand.
    let single = [Stage::pointwise(1, Follow::Nothing), Stage::depthwise(1, 2, 1, Follow::Clamp)];
    check_chain("f32", [1, 40, 5, 1], &single, Values::Hard, Tolerance::Relative(1e-6));
    let integers = [Stage::pointwise(5, Follow::Bias), Stage::dense(3, 1, 3, Follow::Residual)];
    check_chain("s32", [1, 8, 9, 2], &integers, Values::Tame, Tolerance::Exact);
}

#[test]
fn other_convolutions_are_not_chains() {
    let two =
        chain("f32", [1, 8, 8, 4], &[Stage::pointwise(8, Follow::Bias), Stage::pointwise(4, Follow::Bias)]);
    // The second convolution reads the input of the first one.
    let wrong = two.replace("convolution(s0, ", "convolution(p0, ");
    let wrong = wrong.replace("f32[1,1,8,4]", "f32[1,1,4,4]").replace("f32[1,1,4,8]", "f32[1,1,4,4]");
    let wrong = wrong.replace("f32[1,8,8,8]", "f32[1,8,8,4]").replace("f32[8]", "f32[4]");
    // Both convolutions are used.
    let wrong = wrong.replace("add(c1, b1)", "add(c1, s0)");
    let module = hlo::parse(&wrong).expect("it is valid");
    let error = plan::plan(&module, &targets()[0]).expect_err("two convolutions side by side");
    assert!(error.to_string().contains("convolution"), "{error}");
}
