//! Quantization of small programs. Expected numbers are computed in NumPy with `float32` arrays.

use hlo::{Interface, Program, Role};
use runner::{
    Given, Inputs, Method, QuantizationOptions, QuantizationReport, Random, Scheme, Signature, Source,
    assign_steps, quantize,
};
use shape::{Literal, Quantization};
use support::{Error, Result};
use terminal::Screen;

/// Two dense layers with a limit at zero between them.
const DENSE: &str = "HloModule m

ENTRY main {
  x = f32[1,3] parameter(0)
  w = f32[3,2] constant({{0.5, -0.25}, {0.125, 1}, {-0.75, 0.3}})
  first = f32[1,2] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[2] constant({0.1, -0.2})
  bias = f32[1,2] broadcast(b), dimensions={1}
  sum = f32[1,2] add(first, bias)
  zero = f32[] constant(0)
  zeros = f32[1,2] broadcast(zero), dimensions={}
  hidden = f32[1,2] maximum(sum, zeros)
  v = f32[2,2] constant({{1, -2}, {0.4, 0.7}})
  second = f32[1,2] dot(hidden, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (f32[1,2]) tuple(second)
}
";

/// Samples of `x`.
const SAMPLES: [f32; 9] = [0.5, -1.0, 2.0, 1.5, 0.25, -0.75, -2.0, 1.0, 0.0];

fn options(scheme: Scheme) -> QuantizationOptions {
    QuantizationOptions {
        scheme,
        method: Method::MinMax,
        max_error: None,
        equalizes: false,
        corrects_bias: false,
        integer_interface: false,
        measures_layers: true,
    }
}

fn program(text: &str) -> Program {
    let module = hlo::parse(text).expect("a module");
    let interface = Interface::of_module(&module).expect("arrays");
    Program::new(module, interface)
}

fn inputs(program: &Program, samples: &Literal) -> Inputs {
    let x = Given {
        role: Role::Feed,
        name: "x".to_owned(),
        source: Source::Array(samples.clone()),
        origin: "test".to_owned(),
        required: true,
    };
    assign_steps(&Signature::of(program), &[x], None, &Random::new(0)).expect("they fit")
}

fn run(
    text: &str,
    samples: Option<&Literal>,
    options: &QuantizationOptions,
) -> Result<(Program, QuantizationReport)> {
    let program = program(text);
    let inputs = samples.map(|samples| inputs(&program, samples));
    quantize_here(program, inputs.as_ref(), options)
}

/// Quantizes a program for this machine.
fn quantize_here(
    program: Program,
    inputs: Option<&Inputs>,
    options: &QuantizationOptions,
) -> Result<(Program, QuantizationReport)> {
    let target = compiler::host("native")?;
    let mut compile = |module: hlo::Module| {
        let options = compiler::in_process_options(target.clone());
        let compiled = compiler::compile_module(module, &options, &mut compiler::NoObserver)?;
        compiler::Executable::load(&compiled)
    };
    quantize(program, inputs, options, &mut compile, &mut |_, _, _| ())
}

fn dense(options: &QuantizationOptions) -> (Program, QuantizationReport) {
    run(DENSE, Some(&Literal::from_elements(&[3, 1, 3], &SAMPLES)), options).expect("quantized")
}

/// Results of a program for each sample, by the evaluator.
fn results(program: &Program, samples: impl Iterator<Item = Literal>) -> Vec<f64> {
    let result = |x: Literal| {
        let Literal::Tuple(results) = evaluator::evaluate(&program.module, &[x]).expect("results") else {
            panic!("expected a tuple")
        };
        let numbers = results[0].scalars().map(|scalar| match scalar {
            shape::Scalar::Float(number) => number,
            other => other.as_i64().expect("an integer") as f64,
        });
        numbers.collect::<Vec<f64>>()
    };
    samples.flat_map(result).collect()
}

fn floats() -> impl Iterator<Item = Literal> {
    SAMPLES.chunks(3).map(|sample| Literal::from_elements(&[1, 3], sample))
}

#[track_caller]
fn assert_near(actual: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(actual.len(), expected.len());
    let is_near = actual.iter().zip(expected).all(|(a, b)| (a - b).abs() <= tolerance);
    assert!(is_near, "{actual:?} differs from {expected:?}");
}

#[test]
fn two_dense_layers_compute_with_integers() {
    let (program, report) = dense(&options(Scheme::Int8));
    let [first, second] = &report.layers[..] else { panic!("{report:?}") };
    assert_eq!((first.form, second.form), ("int8", "int8"));
    assert_eq!(first.input, Some(Quantization { scale: 0.015686275, zero_point: -1 }));
    let hidden = second.input.expect("integers");
    assert!((hidden.scale - 0.0056617646).abs() < 1e-9 && hidden.zero_point == -128, "{hidden:?}");
    assert_near(&[first.weights_error, second.weights_error], &[0.0021714192876, 0.0030540700266], 1e-9);
    let alone = [first.error, second.error].map(|error| error.expect("measured"));
    assert_near(&alone, &[0.0054441456, 0.0024231840], 1e-6);
    let expected = [0.0, 0.0, 1.44375002, -2.88750005, 0.52520669, 0.90623903];
    assert_near(&results(&program, floats()), &expected, 1e-6);
    assert_near(&[report.results[0].relative_error], &[0.0018923352], 1e-6);
    let text = program.module.to_text();
    assert!(text.contains("{85, -32}, {21, 127}, {-127, 38}"), "{text}");
}

#[test]
fn the_mean_error_of_the_outputs_is_removed() {
    let (program, report) = dense(&QuantizationOptions { corrects_bias: true, ..options(Scheme::Int8) });
    let expected = [-0.00068241, 0.00307085, 1.44306767, -2.88442922, 0.52452427, 0.90930986];
    assert_near(&results(&program, floats()), &expected, 1e-6);
    assert_near(&[report.results[0].relative_error], &[0.0018804279], 1e-6);
}

/// The error is 0.0019 with both layers, 0.0024 with the second one, 0.0054 with the first one.
#[test]
fn layers_stay_in_float_until_the_error_is_small_enough() {
    let with = |max_error| {
        let (_, report) = dense(&QuantizationOptions { max_error: Some(max_error), ..options(Scheme::Int8) });
        let error = report.results[0].relative_error;
        (report.layers.iter().map(|layer| layer.form).collect::<Vec<_>>(), error)
    };
    assert_eq!(with(0.002).0, ["int8", "int8"]);
    // The first layer has the largest error alone, but the second one alone is not better than
    // both, so both stay.
    assert_eq!(with(0.0018), (vec!["float32", "float32"], 0.0));
}

/// Integers of the argument and of the result err by half a step of 255, whatever the layers do.
#[test]
fn an_error_that_no_layer_causes_is_refused() {
    let samples = Literal::from_elements(&[3, 1, 3], &SAMPLES);
    let options =
        QuantizationOptions { max_error: Some(1e-4), integer_interface: true, ..options(Scheme::Int8) };
    let error = run(DENSE, Some(&samples), &options).map(|_| ()).expect_err("an error");
    assert!(
        error.message().contains("with all layers in float32, the relative error"),
        "{}",
        error.message()
    );
}

/// Two layers of the input, with errors of 0.0062 and 0.0043 alone.
#[test]
fn only_the_layer_with_the_largest_error_stays_in_float() {
    let text = "HloModule m

ENTRY main {
  x = f32[1,3] parameter(0)
  w = f32[3,2] constant({{0.5, -0.25}, {0.125, 1}, {-0.75, 0.3}})
  first = f32[1,2] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  v = f32[3,2] constant({{1, -2}, {0.4, 0.7}, {0.013, 0.0171}})
  second = f32[1,2] dot(x, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (f32[1,2], f32[1,2]) tuple(first, second)
}
";
    let samples = Literal::from_elements(&[3, 1, 3], &SAMPLES);
    let options = QuantizationOptions { max_error: Some(0.005), ..options(Scheme::Int8) };
    let (_, report) = run(text, Some(&samples), &options).expect("quantized");
    let forms: Vec<&str> = report.layers.iter().map(|layer| layer.form).collect();
    assert_eq!(forms, ["float32", "int8"], "{report:?}");
}

/// The logarithm of zero is minus infinity, with and without integers.
#[test]
fn equal_infinities_are_no_error() {
    let text = DENSE.replace(
        "  ROOT r = (f32[1,2]) tuple(second)",
        "  p = f32[1,2] maximum(second, zeros)
  l = f32[1,2] log(p)
  ROOT r = (f32[1,2]) tuple(l)",
    );
    let samples = Literal::from_elements(&[3, 1, 3], &SAMPLES);
    let (_, report) = run(&text, Some(&samples), &options(Scheme::Int8)).expect("quantized");
    let error = report.results[0].relative_error;
    assert!(error > 0.0 && error < 0.05, "{error}");
    let options = QuantizationOptions { max_error: Some(0.0), ..options(Scheme::Int8) };
    let (_, report) = run(&text, Some(&samples), &options).expect("a report");
    assert_eq!(report.layers.iter().filter(|layer| layer.form == "int8").count(), 0, "{report:?}");
}

#[test]
fn arguments_and_results_become_integers() {
    let (program, report) = dense(&QuantizationOptions { integer_interface: true, ..options(Scheme::Int8) });
    let argument = &program.interface.arguments()[0];
    assert_eq!(argument.shape.to_string(), "s8[1,3]");
    assert_eq!(argument.quantization, Some(Quantization { scale: 0.015686275, zero_point: -1 }));
    // From -2.8875 to 1.44375.
    let result = program.interface.results()[0].quantization.expect("integers");
    assert!((result.scale - 0.016985294).abs() < 1e-7 && result.zero_point == 42, "{result:?}");
    // 0.5 / 0.015686275 = 31.87 becomes 32 - 1, -2 becomes -127.5 - 1, rounded to even.
    let integers = [31i8, -65, 126, 95, 15, -49, -128, 63, -1];
    let integers = integers.chunks(3).map(|sample| Literal::from_elements(&[1, 3], sample));
    // The floats of the first test over the scale, plus the zero point.
    assert_near(&results(&program, integers), &[42.0, 42.0, 127.0, -128.0, 73.0, 95.0], 0.0);
    assert!(report.results[0].relative_error < 0.01, "{report:?}");
}

/// The argument is only subtracted from the outputs of the layer, which reads it as a whole
/// elsewhere: here, as the square of the argument.
#[test]
fn arguments_that_no_layer_reads_become_integers() {
    let text = "HloModule m

ENTRY main {
  x = f32[1,2] parameter(0)
  square = f32[1,2] multiply(x, x)
  w = f32[2,2] constant({{1, 0.5}, {0.5, 1}})
  y = f32[1,2] dot(square, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  z = f32[1,2] subtract(y, x)
  ROOT r = (f32[1,2]) tuple(z)
}
";
    let samples = Literal::from_elements(&[2, 1, 2], &[1f32, -0.5, 0.25, 2.0]);
    let options = QuantizationOptions { integer_interface: true, ..options(Scheme::Int8) };
    let (program, report) = run(text, Some(&samples), &options).expect("quantized");
    let entry = program.module.entry_computation();
    assert_eq!(entry[entry.parameters()[0]].shape().to_string(), "s8[1,2]");
    assert!(report.results[0].relative_error < 0.02, "{report:?}");
}

/// Weights of 64 summands by 16 outputs: in `s8` they err by at most half a step.
#[test]
fn only_weights_change_their_form() {
    let weights: Vec<f32> = (0..1024u32).map(|k| (k * 619 % 1024) as f32 / 500.0 - 1.0).collect();
    let text = format!(
        "HloModule m\n\nENTRY main {{\n  x = f32[1,64] parameter(0)\n  w = f32[64,16] constant({})\n  \
         y = f32[1,16] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n  ROOT r = (f32[1,16]) tuple(y)\n}}\n",
        rows(&weights, 16)
    );
    let x: Vec<f32> = (0..64u8).map(|k| f32::from(k % 7) - 3.0).collect();
    let exact: Vec<f64> = (0..16)
        .map(|n| (0..64).map(|k| f64::from(x[k]) * f64::from(weights[16 * k + n])).sum::<f64>())
        .collect();
    let norm = x.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    let x = Literal::from_elements(&[1, 64], &x);
    for (scheme, form, shape, bytes, step) in [
        (Scheme::Int8Weights, "int8", "s8[64,16]", 1024 + 64, 1.0 / 127.0),
        (Scheme::Int4Weights, "int4", "s4[2,32,16]", 512 + 128, 1.0 / 7.0),
        (Scheme::Bf16Weights, "bf16", "bf16[64,16]", 2048, 1.0 / 128.0),
        (Scheme::F16Weights, "f16", "f16[64,16]", 2048, 1.0 / 1024.0),
    ] {
        let (program, report) = run(&text, None, &options(scheme)).expect("quantized");
        assert_eq!((report.layers[0].form, report.weight_bytes), (form, (4096, bytes)));
        assert!(program.module.to_text().contains(&format!("= {shape}")), "{form}");
        // Four standard deviations of errors that are uniform within a step. The largest weight is
        // 1.046.
        let tolerance = 4.0 * 1.1 * step / 12f64.sqrt() * norm;
        let actual = results(&program, std::iter::once(x.clone()));
        assert_near(&actual, &exact, tolerance);
        assert_ne!(actual, exact, "{form} rounds");
    }
}

fn rows(values: &[f32], columns: usize) -> String {
    let row = |row: &[f32]| format!("{{{}}}", row.iter().map(f32::to_string).collect::<Vec<_>>().join(", "));
    format!("{{{}}}", values.chunks(columns).map(row).collect::<Vec<_>>().join(", "))
}

/// Pooled, turned, and cut values are moved as integers: the only values that are rounded are those
/// of the parameter.
#[test]
fn values_on_the_way_to_a_layer_are_moved_as_integers() {
    let text = "HloModule m

larger {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b)
}

ENTRY main {
  x = f32[1,4,3] parameter(0)
  low = f32[] constant(-inf)
  pooled = f32[1,2,3] reduce-window(x, low), window={size=1x2x1 stride=1x2x1}, to_apply=larger
  zero = f32[] constant(0)
  wide = f32[1,4,3] pad(pooled, zero), padding=0_0x1_1x0_0
  flat = f32[1,12] reshape(wide)
  w = f32[12,1] constant({{1}, {1}, {1}, {0.5}, {1}, {-1}, {-0.25}, {2}, {1}, {1}, {1}, {1}})
  y = f32[1,1] dot(flat, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (f32[1,1]) tuple(y)
}
";
    let x: Vec<f32> = vec![1.27, -0.3, 0.5, -1.28, 0.2, 0.4, 0.6, -1.0, 0.7, 0.8, -0.9, 0.1];
    let samples = Literal::from_elements(&[1, 4, 3], &x);
    let (program, report) = run(text, Some(&samples), &options(Scheme::Int8)).expect("quantized");
    let entry = program.module.entry_computation();
    let moved = entry.instructions().filter(|(_, i)| {
        let is_moved = matches!(i.op().opcode().name(), "reduce-window" | "pad" | "reshape");
        is_moved && i.shape().to_string().starts_with("s8[")
    });
    assert_eq!(moved.count(), 3, "{}", program.module.to_text());
    let rounded = entry.instructions().filter(|(_, i)| i.op().opcode().name() == "round-nearest-even");
    assert_eq!(rounded.count(), 1);
    // The scale is 0.01 and the zero point 0, so x is exact. Weights in steps of 2 / 127:
    // 0.5 becomes 32, 1 becomes 64, -0.25 becomes -16. Pooled: 1.27, 0.2, 0.5, 0.8, -0.9, 0.7.
    let expected =
        (1.27 * 32.0 + 0.2 * 64.0 - 0.5 * 64.0 - 0.8 * 16.0 - 0.9 * 127.0 + 0.7 * 64.0) * 2.0 / 127.0;
    assert_near(&results(&program, std::iter::once(samples)), &[expected], 1e-5);
    assert_eq!(report.layers[0].input, Some(Quantization { scale: 0.01, zero_point: 0 }));
}

#[test]
fn layers_in_loops_are_listed_or_keep_only_short_weights() {
    let weights = rows(&[0.03; 1024], 32);
    let text = format!(
        "HloModule m

condition {{
  state = (s32[], f32[1,32]) parameter(0)
  k = s32[] get-tuple-element(state), index=0
  n = s32[] constant(5)
  ROOT more = pred[] compare(k, n), direction=LT
}}

body {{
  state = (s32[], f32[1,32]) parameter(0)
  k = s32[] get-tuple-element(state), index=0
  one = s32[] constant(1)
  next = s32[] add(k, one)
  x = f32[1,32] get-tuple-element(state), index=1
  w = f32[32,32] constant({weights})
  y = f32[1,32] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  z = f32[1,32] tanh(y)
  ROOT r = (s32[], f32[1,32]) tuple(next, z)
}}

ENTRY main {{
  x = f32[1,32] parameter(0)
  zero = s32[] constant(0)
  state = (s32[], f32[1,32]) tuple(zero, x)
  loop = (s32[], f32[1,32]) while(state), condition=condition, body=body
  z = f32[1,32] get-tuple-element(loop), index=1
  ROOT r = (f32[1,32]) tuple(z)
}}
"
    );
    let (_, report) = run(&text, None, &options(Scheme::Bf16Weights)).expect("quantized");
    assert_eq!(report.layers[0].form, "bf16");
    let samples = Literal::from_elements(&[1, 32], &[0.5f32; 32]);
    let (_, report) = run(&text, Some(&samples), &options(Scheme::Int8)).expect("a report");
    assert_eq!(report.layers[0].form, "float32");
    assert!(
        report.to_text(&Screen::PLAIN).contains("stays in float32: it is inside a loop or a branch"),
        "{}",
        report.to_text(&Screen::PLAIN)
    );
}

#[test]
fn errors_name_the_cause() {
    let message = |result: Result<_>| result.map(|_| ()).expect_err("an error").message().to_owned();
    let nan = Literal::from_elements(&[2, 1, 3], &[0.0, 1.0, 2.0, 0.0, f32::MAX, f32::MAX]);
    let error = message(run(DENSE, Some(&nan), &options(Scheme::Int8)));
    assert!(error.contains("sample 1") && error.contains("NaN or infinite"), "{error}");
    let nothing = "HloModule m\n\nENTRY main {\n  x = f32[2] parameter(0)\n  y = f32[2] tanh(x)\n  ROOT r = (f32[2]) tuple(y)\n}\n";
    let samples = Literal::from_elements(&[1, 2], &[0f32, 1.0]);
    let error: Error =
        run(nothing, Some(&samples), &options(Scheme::Int8)).map(|_| ()).expect_err("an error");
    assert!(error.message().contains("no layer can be quantized"), "{}", error.message());
}

/// Layers without anything between them: with or without a correction of the first one's outputs,
/// the second one reads integers, and so does the caller.
#[test]
fn corrected_outputs_become_integers() {
    let text = "HloModule m

ENTRY main {
  x = f32[1,3] parameter(0)
  w = f32[3,2] constant({{0.5, -0.25}, {0.125, 1}, {-0.75, 0.3}})
  first = f32[1,2] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  v = f32[2,2] constant({{1, -2}, {0.4, 0.7}})
  second = f32[1,2] dot(first, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[2] constant({0.1, -0.2})
  bias = f32[1,2] broadcast(b), dimensions={1}
  sum = f32[1,2] add(second, bias)
  ROOT r = (f32[1,2]) tuple(sum)
}
";
    let samples = Literal::from_elements(&[3, 1, 3], &SAMPLES);
    for corrects_bias in [false, true] {
        let options = QuantizationOptions { corrects_bias, integer_interface: true, ..options(Scheme::Int8) };
        let (program, _) = run(text, Some(&samples), &options).expect("quantized");
        let entry = program.module.entry_computation();
        let opcode = |id: hlo::InstructionId| entry[id].op().opcode().name();
        let dots = entry.instructions().filter(|(_, dot)| dot.op().opcode().name() == "dot");
        // Integers are converted, their zero point is subtracted, and the scale multiplied.
        let inputs: Vec<&str> = dots.map(|(_, dot)| opcode(dot.operands()[0])).collect();
        assert_eq!(inputs, ["multiply", "multiply"], "{}", program.module.to_text());
        // The first step to integers divides: by then, a correction is added to the products.
        let divisions = entry.instructions().filter(|(_, i)| i.op().opcode().name() == "divide");
        let mut divided: Vec<&str> = divisions.map(|(_, i)| opcode(i.operands()[0])).collect();
        divided.sort_unstable();
        assert_eq!(divided, if corrects_bias { ["add", "add"] } else { ["add", "dot"] });
    }
}

/// Inputs are steps of 0.005, and so are the weights of 1. That of 0.503 becomes 64 / 127, which
/// adds 0.0012 to both results: 1.5 of their steps, from -0.1 to 0.1.
#[test]
fn integers_of_results_are_corrected() {
    let text = "HloModule m

ENTRY main {
  x = f32[1,2] parameter(0)
  w = f32[2,2] constant({{1, 1}, {0.503, 0.503}})
  y = f32[1,2] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[2] constant({-1.741325, -1.741325})
  bias = f32[1,2] broadcast(b), dimensions={1}
  sum = f32[1,2] add(y, bias)
  ROOT r = (f32[1,2]) tuple(sum)
}
";
    let samples = Literal::from_elements(&[2, 1, 2], &[1.2f32, 1.275, 1.0, 1.275]);
    let options =
        QuantizationOptions { corrects_bias: true, integer_interface: true, ..options(Scheme::Int8) };
    let (program, report) = run(text, Some(&samples), &options).expect("quantized");
    let scale = program.interface.results()[0].quantization.expect("integers").scale;
    assert!((scale - 0.2 / 255.0).abs() < 1e-6, "{scale}");
    assert!(report.results[0].max_absolute_error < 0.6 * f64::from(scale), "{report:?}");
}

/// The network of [`DENSE`] as a graph, for 1 to 20 rows. `more` are further nodes.
fn open_batch(fetch: &str, more: &str) -> Program {
    let constant = |name: &str, sizes: &[i64], values: &[f32]| {
        let dims: String = sizes.iter().map(|size| format!("dim {{ size: {size} }} ")).collect();
        let values: String = values.iter().map(|value| format!("float_val: {value} ")).collect();
        format!(
            "node {{ name: \"{name}\" op: \"Const\" attr {{ key: \"dtype\" value {{ type: DT_FLOAT }} }} \
             attr {{ key: \"value\" value {{ tensor {{ dtype: DT_FLOAT tensor_shape {{ {dims} }} {values} }} }} }} }}\n"
        )
    };
    let node = |name: &str, op: &str, inputs: &[&str]| {
        let inputs: String = inputs.iter().map(|input| format!("input: \"{input}\" ")).collect();
        format!(
            "node {{ name: \"{name}\" op: \"{op}\" {inputs} attr {{ key: \"T\" value {{ type: DT_FLOAT }} }} }}\n"
        )
    };
    let placeholder =
        "node { name: \"x\" op: \"Placeholder\" attr { key: \"dtype\" value { type: DT_FLOAT } } }\n";
    let graph = [
        placeholder.to_owned(),
        constant("w", &[3, 2], &[0.5, -0.25, 0.125, 1.0, -0.75, 0.3]),
        constant("b", &[2], &[0.1, -0.2]),
        constant("v", &[2, 2], &[1.0, -2.0, 0.4, 0.7]),
        node("first", "MatMul", &["x", "w"]),
        node("sum", "BiasAdd", &["first", "b"]),
        node("hidden", "Relu", &["sum"]),
        node("second", "MatMul", &["hidden", "v"]),
        more.to_owned(),
    ];
    let config = format!(
        "feed {{ id {{ node_name: \"x\" }} name: \"x\" shape {{ dim {{ size: -1 name: \"rows\" }} dim {{ size: 3 }} }} }}\n\
         fetch {{ id {{ node_name: \"{fetch}\" }} }}\ndimension {{ name: \"rows\" min: 1 max: 20 size: 2 }}\n"
    );
    let file = |name, content: String| compiler::File { name, content: content.into() };
    let input = compiler::Input::parse(file("graph.pbtxt", graph.concat()), file("config.pbtxt", config));
    input.and_then(|input| input.source.import(&mut compiler::NoObserver)).expect("imports")
}

/// Results of compiled code for a batch of samples.
fn compiled_results(program: &Program, arguments: &[Literal]) -> Vec<f64> {
    let options = compiler::in_process_options(compiler::host("native").expect("this machine"));
    let compiled = compiler::compile_program(program.clone(), &options, &mut compiler::NoObserver);
    let executable = compiler::Executable::load(&compiled.expect("compiles")).expect("loads");
    let mut session = executable.session(arguments).expect("arguments fit");
    session.run().expect("it runs");
    session.results().expect("results")[0].scalars().map(|scalar| scalar.as_f64().expect("a float")).collect()
}

/// The scales are those of one row, and each size has the numbers of the first test.
#[test]
fn a_batch_of_any_size_has_the_integers_of_its_rows() {
    let program = open_batch("second", "");
    let row = runner::example_program(&program).expect("independent rows");
    assert_eq!(row.interface.arguments()[0].shape.to_string(), "f32[1,3]");
    let samples = Literal::from_elements(&[3, 1, 3], &SAMPLES);
    let examples = inputs(&row, &samples);
    let quantized = |integer_interface| {
        let options = QuantizationOptions { integer_interface, ..options(Scheme::Int8) };
        quantize_here(program.clone(), Some(&examples), &options).expect("quantized").0
    };
    let floats = quantized(false);
    let sizes = |program: &Program| program.sized.iter().map(|sized| sized.size).collect::<Vec<i64>>();
    assert_eq!(sizes(&floats), sizes(&program));
    assert!(
        sizes(&floats).len() > 3
            && floats
                .sized
                .iter()
                .all(|sized| { sized.module.to_text().contains("{85, -32}, {21, 127}, {-127, 38}") })
    );
    let expected = [0.0, 0.0, 1.44375002, -2.88750005, 0.52520669, 0.90623903];
    // 20 rows are the three samples again and again.
    let samples: Vec<f32> = SAMPLES.iter().copied().cycle().take(60).collect();
    let x = Literal::from_elements(&[20, 3], &samples);
    for rows in [1, 2, 3, 7, 20] {
        let actual = compiled_results(&floats, &[x.clone(), Literal::scalar(rows)]);
        let expected: Vec<f64> = expected.iter().copied().cycle().take(2 * rows as usize).collect();
        assert_near(&actual, &expected, 1e-6);
        let Literal::Tuple(results) =
            evaluator::evaluate(&floats.module, &[x.clone(), Literal::scalar(rows)]).expect("results")
        else {
            panic!("expected a tuple")
        };
        assert_near(&results[0].floats().expect("floats")[..2 * rows as usize], &expected, 1e-6);
    }
    let integers = quantized(true);
    let [x, _] = integers.interface.arguments() else { panic!("{:?}", integers.interface) };
    assert_eq!((x.shape.to_string().as_str(), x.named_dimensions.len()), ("s8[20,3]", 1));
    assert_eq!(x.quantization, Some(Quantization { scale: 0.015686275, zero_point: -1 }));
    assert_eq!(integers.interface.results()[0].shape.to_string(), "s8[<=20,2]");
}

/// The mean over all rows: examples of one row say nothing about it.
#[test]
fn rows_that_depend_on_each_other_are_quantized_without_examples_only() {
    let mean = "node { name: \"axis\" op: \"Const\" attr { key: \"dtype\" value { type: DT_INT32 } } \
                attr { key: \"value\" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 0 } } } }\n\
                node { name: \"mean\" op: \"Mean\" input: \"second\" input: \"axis\" \
                attr { key: \"T\" value { type: DT_FLOAT } } attr { key: \"Tidx\" value { type: DT_INT32 } } \
                attr { key: \"keep_dims\" value { b: true } } }\n\
                node { name: \"left\" op: \"Sub\" input: \"second\" input: \"mean\" attr { key: \"T\" value { type: DT_FLOAT } } }\n";
    let program = open_batch("left", mean);
    let error = runner::example_program(&program).expect_err("rows depend on each other");
    assert!(error.message().starts_with("'rows' has a range, and the rows of 'rows' depend"), "{error}");
    let error = quantize_here(program.clone(), None, &options(Scheme::Int8)).expect_err("the same");
    assert!(error.message().contains("--dim rows=16"), "{error}");
    let (quantized, report) = quantize_here(program, None, &options(Scheme::Int8Weights)).expect("weights");
    assert_eq!(report.layers[0].reason.as_deref(), Some("it has fewer than 1024 weights"));
    let x: Vec<f32> = SAMPLES.iter().copied().cycle().take(60).collect();
    let arguments = [Literal::from_elements(&[20, 3], &x), Literal::scalar(2i32)];
    // Two rows have code of their own.
    assert_eq!(quantized.exact.len(), 1);
    // In float32, the first row is 0 and 0, the second 1.34375 + 0.1 and -2 times that.
    assert_near(&compiled_results(&quantized, &arguments), &[-0.721875, 1.44375, 0.721875, -1.44375], 1e-6);
}
