//! The measured kernels: HLO text, and a lower bound of what a run computes or moves.

use hlo::{Module, Op};
use shape::{ArrayShape, Literal, Scalar};
use std::fmt::Write as _;

/// The resource that limits a kernel, and the amount of it that one call uses.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// Operations of the direct algorithm, two per multiply-add.
    Flops(f64),
    /// Operations of products of bytes, two per product.
    Products(f64),
    /// Operations of products of `bf16`, two per product.
    Pairs(f64),
    /// Minimum number of bytes read and written.
    Bytes(f64),
    /// Elements of a function, reported as nanoseconds per element.
    Elements(f64),
}

/// A kernel to be measured alone.
#[derive(Clone, Debug)]
pub struct Case {
    pub family: &'static str,
    pub name: String,
    pub work: Work,
    /// HLO text. A parameter named `weights`, if any, becomes a constant.
    pub text: String,
    /// Range of the first argument's elements. The other arguments are in (-1, 1).
    pub range: (f64, f64),
}

fn case(family: &'static str, name: String, work: Work, text: String) -> Case {
    Case { family, name, work, text, range: (-1.0, 1.0) }
}

/// A convolution of a square image with a square kernel.
#[derive(Clone, Copy)]
struct Layer {
    size: i64,
    kernel: i64,
    stride: i64,
    inputs: i64,
    outputs: i64,
}

const fn layer(size: i64, kernel: i64, stride: i64, inputs: i64, outputs: i64) -> Layer {
    Layer { size, kernel, stride, inputs, outputs }
}

/// Rows, columns, summands.
const DOTS: &[(i64, i64, i64)] = &[
    (64, 64, 64),
    (128, 128, 128),
    (256, 256, 256),
    (512, 512, 512),
    (1024, 1024, 1024),
    (8, 512, 512),
    (49, 512, 512),
    (196, 1024, 256),
    (128, 768, 768),
    (128, 3072, 768),
    (128, 768, 3072),
    (12544, 32, 27),
    (3136, 256, 64),
];

const PRODUCTS_OF_A_ROW: &[(i64, i64, i64)] =
    &[(1, 128, 640), (1, 512, 784), (1, 1000, 1024), (1, 3072, 768), (2, 1000, 1024)];

const CONVOLUTIONS: &[Layer] = &[
    layer(56, 3, 1, 64, 64),
    layer(28, 3, 1, 128, 128),
    layer(14, 3, 1, 256, 256),
    layer(7, 3, 1, 512, 512),
    layer(56, 1, 1, 64, 256),
    layer(14, 1, 1, 576, 96),
    layer(28, 1, 1, 192, 24),
    layer(224, 7, 2, 3, 64),
    layer(224, 3, 2, 3, 32),
    layer(56, 3, 2, 128, 128),
    layer(32, 3, 1, 16, 16),
];

const DEPTHWISE: &[Layer] = &[
    layer(112, 3, 1, 32, 32),
    layer(14, 3, 1, 576, 576),
    layer(112, 3, 2, 96, 96),
    layer(7, 3, 1, 960, 960),
    layer(28, 5, 1, 240, 240),
];

/// Elementary functions, their number of operands, and the range of the first one.
const FUNCTIONS: &[(&str, usize, (f64, f64))] = &[
    ("exponential", 1, (-5.0, 5.0)),
    ("exponential-minus-one", 1, (-5.0, 5.0)),
    ("log", 1, (0.01, 20.0)),
    ("log-plus-one", 1, (-0.9, 10.0)),
    ("logistic", 1, (-5.0, 5.0)),
    ("tanh", 1, (-4.0, 4.0)),
    ("erf", 1, (-3.0, 3.0)),
    ("sine", 1, (-10.0, 10.0)),
    ("cosine", 1, (-10.0, 10.0)),
    ("tan", 1, (-10.0, 10.0)),
    ("asin", 1, (-1.0, 1.0)),
    ("acos", 1, (-1.0, 1.0)),
    ("sinh", 1, (-5.0, 5.0)),
    ("cosh", 1, (-5.0, 5.0)),
    ("asinh", 1, (-5.0, 5.0)),
    ("acosh", 1, (1.0, 15.0)),
    ("atanh", 1, (-0.95, 0.95)),
    ("cbrt", 1, (-5.0, 5.0)),
    ("rsqrt", 1, (0.1, 5.0)),
    ("sqrt", 1, (0.1, 5.0)),
    ("divide", 2, (-5.0, 5.0)),
    ("power", 2, (0.1, 5.0)),
    ("atan2", 2, (-5.0, 5.0)),
];

/// Size of the row patterns.
const ROWS: (i64, i64) = (128, 768);

/// Returns all cases in the order of the table.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    cases.extend(DOTS.iter().map(|&(m, n, k)| dot("dot", m, n, k)));
    cases.extend(DOTS[..5].iter().map(|&(m, n, k)| variable(dot("dot of two arguments", m, n, k))));
    cases.extend(PRODUCTS_OF_A_ROW.iter().map(|&(m, n, k)| dot("dot of few rows", m, n, k)));
    cases.extend(CONVOLUTIONS.iter().map(|&layer| convolution("convolution", layer, 1)));
    cases.extend(DEPTHWISE.iter().map(|&layer| convolution("depthwise convolution", layer, layer.inputs)));
    cases.extend(DOTS[1..].iter().map(|&(m, n, k)| of_bytes("dot of bytes", dot("", m, n, k))));
    cases.extend(DOTS[1..].iter().map(|&(m, n, k)| of_bf16("dot of bf16", dot("", m, n, k))));
    cases.extend(CONVOLUTIONS.iter().map(|&layer| of_bf16("convolution of bf16", convolution("", layer, 1))));
    cases.extend(CONVOLUTIONS.iter().map(|&layer| scaled(layer, 1)));
    cases.extend(DEPTHWISE.iter().map(|&layer| scaled(layer, layer.inputs)));
    cases.extend([softmax(), layer_norm()]);
    for (family, element_type) in [("functions, f32", "f32"), ("functions, f64", "f64")] {
        cases.extend(
            FUNCTIONS
                .iter()
                .map(|&(name, operands, range)| Case { range, ..map(family, element_type, name, operands) }),
        );
        cases.extend(activations(family, element_type));
    }
    cases
}

impl Case {
    /// Builds the module, replacing the parameter `weights` by a constant.
    pub fn module(&self) -> support::Result<Module> {
        let mut module = hlo::text::parse(&self.text)?;
        let id = module.entry();
        let entry = module.computation_mut(id);
        if let Some(weights) = entry.find("weights") {
            let shape = entry[weights].shape().expect_array().clone();
            let literal = numbers(&shape);
            let constant = entry.add("", Op::Constant { literal }, shape.into(), &[], Default::default());
            entry.replace_all_uses(weights, constant);
            entry.remove_parameter(1);
        }
        Ok(module)
    }
}

/// Returns numbers in (-1, 1), or integers in (-127, 127), that vary by position.
fn numbers(shape: &ArrayShape) -> Literal {
    let count = shape.element_count() as u32;
    let range = if shape.element_type.is_integer() { BYTES.1 } else { 1.0 };
    let number = |k: u32| (f64::from(k.wrapping_mul(2_654_435_761) >> 8) / f64::from(1 << 23) - 1.0) * range;
    literal(shape.clone(), (0..count).map(number))
}

/// Returns an array of floats, or of integers, which are rounded toward zero.
pub fn literal(shape: ArrayShape, numbers: impl Iterator<Item = f64>) -> Literal {
    if shape.element_type.is_integer() {
        let integers = numbers.map(|number| Scalar::Signed(number as i64)).collect::<Vec<_>>();
        return Literal::from_scalars(shape, integers);
    }
    Literal::from_floats(shape, numbers)
}

/// Makes the second operand an argument.
fn variable(case: Case) -> Case {
    Case { text: case.text.replace("weights", "right"), ..case }
}

fn dot(family: &'static str, m: i64, n: i64, k: i64) -> Case {
    let text = entry(
        "",
        &format!(
            "x = f32[{m},{k}] parameter(0)\n weights = f32[{k},{n}] parameter(1)\n \
             y = f32[{m},{n}] dot(x, weights), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
        ),
        &format!("f32[{m},{n}]"),
    );
    let work = match m {
        1..=2 => Work::Bytes((4 * (m * k + k * n + m * n)) as f64),
        _ => Work::Flops((2 * m * n * k) as f64),
    };
    case(family, format!("{m} x {n} x {k}"), work, text)
}

/// Padding `SAME`, followed by ReLU. The operation count covers only taps inside the image.
fn convolution(family: &'static str, layer: Layer, groups: i64) -> Case {
    let Layer { size, kernel, stride, inputs, outputs } = layer;
    let result = (size + stride - 1) / stride;
    let padding = ((result - 1) * stride + kernel - size).max(0);
    let (low, high) = (padding / 2, padding - padding / 2);
    let inputs_per_group = inputs / groups;
    let shape = format!("f32[1,{result},{result},{outputs}]");
    let text = entry(
        "",
        &format!(
            "x = f32[1,{size},{size},{inputs}] parameter(0)\n \
             weights = f32[{kernel},{kernel},{inputs_per_group},{outputs}] parameter(1)\n \
             c = {shape} convolution(x, weights), window={{size={kernel}x{kernel} stride={stride}x{stride} \
             pad={low}_{high}x{low}_{high}}}, dim_labels=b01f_01io->b01f, feature_group_count={groups}\n \
             zero = f32[] constant(0)\n zeros = {shape} broadcast(zero), dimensions={{}}\n \
             y = {shape} maximum(c, zeros)"
        ),
        &shape,
    );
    let taps: i64 = (0..result)
        .map(|o| (0..kernel).filter(|k| (0..size).contains(&(o * stride - low + k))).count() as i64)
        .sum();
    let work = Work::Flops((2 * taps * taps * inputs_per_group * outputs) as f64);
    let name = format!("{kernel}x{kernel}/{stride} {size}x{size}x{inputs} to {outputs}");
    case(family, name, work, text)
}

/// The range of bytes.
const BYTES: (f64, f64) = (-127.0, 127.0);

/// The same contraction of bytes, with sums of 32 bits.
fn of_bytes(family: &'static str, case: Case) -> Case {
    let is_operand = |line: &str| line.contains(" parameter(");
    let line = |line: &str| line.replace("f32", if is_operand(line) { "s8" } else { "s32" });
    let text = case.text.lines().map(line).collect::<Vec<_>>().join("\n");
    let Work::Flops(operations) = case.work else { panic!("{}: expected a product", case.name) };
    Case { family, work: Work::Products(operations), text, range: BYTES, ..case }
}

/// The same contraction of `bf16`, with sums of `f32`.
fn of_bf16(family: &'static str, case: Case) -> Case {
    let is_operand = |line: &str| line.contains(" parameter(");
    let line = |line: &str| if is_operand(line) { line.replace("f32", "bf16") } else { line.to_owned() };
    let text = case.text.lines().map(line).collect::<Vec<_>>().join("\n");
    let Work::Flops(operations) = case.work else { panic!("{}: expected a product", case.name) };
    Case { family, work: Work::Pairs(operations), text, ..case }
}

/// A quantized layer with zero points, followed by ReLU: its sums are multiplied by a 32-bit
/// fixed-point number for each feature and rounded as TensorFlow Lite does, in the form in which
/// layers of `.tflite` files are imported.
fn scaled(layer: Layer, groups: i64) -> Case {
    let family = if groups == 1 { "convolution of bytes, scaled" } else { "depthwise of bytes, scaled" };
    let plain = of_bytes(family, convolution("", layer, groups));
    let Layer { size, kernel, stride, inputs, outputs } = layer;
    let result = (size + stride - 1) / stride;
    let image = format!("[1,{size},{size},{inputs}]");
    let shape = format!("[1,{result},{result},{outputs}]");
    let each = inputs / groups;
    let factors =
        (0..outputs).map(|k| (1_100_000_000 + 1_000_000 * (k % 900)).to_string()).collect::<Vec<_>>();
    let shifts = (0..outputs).map(|k| (7 + k % 3).to_string()).collect::<Vec<_>>();
    let (factors, shifts) = (factors.join(","), shifts.join(","));
    let window = plain.text.split_once("convolution(x, weights)").expect("a convolution").1;
    let window = window.split_once("\n").expect("a line").0;
    let constant = |name: &str, value: i64| {
        format!(
            " {name}0 = s64[] constant({value})\n {name} = s64{shape} broadcast({name}0), dimensions={{}}\n"
        )
    };
    let mut body = format!(
        "x = s8{image} parameter(0)\n weights = s8[{kernel},{kernel},{each},{outputs}] parameter(1)\n \
         xw = s32{image} convert(x)\n zero = s32[] constant(-9)\n zeros = s32{image} broadcast(zero), dimensions={{}}\n \
         xc = s32{image} subtract(xw, zeros)\n ww = s32[{kernel},{kernel},{each},{outputs}] convert(weights)\n \
         c = s32{shape} convolution(xc, ww){window}\n f0 = s64[{outputs}] constant({{{factors}}})\n \
         f = s64{shape} broadcast(f0), dimensions={{3}}\n s0 = s64[{outputs}] constant({{{shifts}}})\n \
         s = s64{shape} broadcast(s0), dimensions={{3}}\n w = s64{shape} convert(c)\n p = s64{shape} multiply(w, f)\n"
    );
    for (name, value) in
        [("none", 0), ("nudge", 1 << 30), ("bits", 31), ("most", i64::from(i32::MAX)), ("one", 1)]
    {
        body += &constant(name, value);
    }
    body += &format!(
        " n = s64{shape} add(p, nudge)\n q = s64{shape} shift-right-arithmetic(n, bits)\n high = s64{shape} minimum(q, most)\n \
         power = s64{shape} shift-left(one, s)\n half = s64{shape} shift-right-arithmetic(power, one)\n \
         below = pred{shape} compare(high, none), direction=LT\n lower = s64{shape} minimum(s, one)\n \
         extra = s64{shape} select(below, lower, none)\n raised = s64{shape} add(high, half)\n \
         rest = s64{shape} subtract(raised, extra)\n t = s64{shape} shift-right-arithmetic(rest, s)\n \
         narrow = s32{shape} convert(t)\n to0 = s32[] constant(-128)\n to = s32{shape} broadcast(to0), dimensions={{}}\n \
         moved = s32{shape} add(narrow, to)\n least = s32[] constant(-128)\n largest = s32[] constant(127)\n \
         z = s32{shape} clamp(least, moved, largest)\n \
         y = s8{shape} convert(z)"
    );
    Case { text: entry("", &body, &format!("s8{shape}")), ..plain }
}

const REDUCERS: &str = "sum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n\n\
     most { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] maximum(a, b) }\n\n";

fn softmax() -> Case {
    let (rows, columns) = ROWS;
    let shape = format!("f32[{rows},{columns}]");
    let text = entry(
        REDUCERS,
        &format!(
            "x = {shape} parameter(0)\n lowest = f32[] constant(-inf)\n zero = f32[] constant(0)\n \
             m = f32[{rows}] reduce(x, lowest), dimensions={{1}}, to_apply=most\n \
             mb = {shape} broadcast(m), dimensions={{0}}\n d = {shape} subtract(x, mb)\n \
             e = {shape} exponential(d)\n s = f32[{rows}] reduce(e, zero), dimensions={{1}}, to_apply=sum\n \
             sb = {shape} broadcast(s), dimensions={{0}}\n y = {shape} divide(e, sb)"
        ),
        &shape,
    );
    case("rows", format!("softmax {rows} x {columns}"), elements(rows * columns), text)
}

fn layer_norm() -> Case {
    let (rows, columns) = ROWS;
    let (shape, row) = (format!("f32[{rows},{columns}]"), format!("f32[{rows}]"));
    let mut body = format!(
        "x = {shape} parameter(0)\n gamma = f32[{columns}] parameter(1)\n beta = f32[{columns}] parameter(2)\n \
         zero = f32[] constant(0)\n n = f32[] constant({columns})\n epsilon = f32[] constant(1e-6)\n \
         nb = {row} broadcast(n), dimensions={{}}\n eb = {row} broadcast(epsilon), dimensions={{}}\n"
    );
    let _ = write!(
        body,
        " s = {row} reduce(x, zero), dimensions={{1}}, to_apply=sum\n mean = {row} divide(s, nb)\n \
         mb = {shape} broadcast(mean), dimensions={{0}}\n d = {shape} subtract(x, mb)\n \
         q = {shape} multiply(d, d)\n v = {row} reduce(q, zero), dimensions={{1}}, to_apply=sum\n \
         variance = {row} divide(v, nb)\n ve = {row} add(variance, eb)\n r = {row} rsqrt(ve)\n \
         rb = {shape} broadcast(r), dimensions={{0}}\n z = {shape} multiply(d, rb)\n \
         gb = {shape} broadcast(gamma), dimensions={{1}}\n bb = {shape} broadcast(beta), dimensions={{1}}\n \
         g = {shape} multiply(z, gb)\n y = {shape} add(g, bb)"
    );
    let name = format!("layer norm {rows} x {columns}");
    case("rows", name, elements(rows * columns), entry(REDUCERS, &body, &shape))
}

/// Number of elements of the arrays for functions. Together with the result, they fit the
/// second-level cache.
const MAPPED: i64 = 1 << 14;

fn map(family: &'static str, element_type: &str, function: &str, operands: usize) -> Case {
    let shape = format!("{element_type}[{MAPPED}]");
    let parameters: Vec<String> = (0..operands).map(|k| format!("x{k} = {shape} parameter({k})")).collect();
    let names: Vec<String> = (0..operands).map(|k| format!("x{k}")).collect();
    let body = format!("{}\n y = {shape} {function}({})", parameters.join("\n "), names.join(", "));
    let text = entry("", &body, &shape);
    case(family, function.to_owned(), elements(MAPPED), text)
}

/// Activations composed of several operations.
fn activations(family: &'static str, element_type: &str) -> Vec<Case> {
    let shape = format!("{element_type}[{MAPPED}]");
    let numbers: String = [("half", "0.5"), ("one", "1"), ("root", "0.70710678118654757"), ("cubic", "0.044715"), ("scale", "0.79788456080286541")]
        .iter()
        .map(|(name, value)| {
            format!(" {name}0 = {element_type}[] constant({value})\n {name} = {shape} broadcast({name}0), dimensions={{}}\n")
        })
        .collect();
    let activation = |name: &str, body: &str| {
        let body = body.replace("T ", &format!("{shape} "));
        let text = entry("", &format!("x = {shape} parameter(0)\n{numbers} {body}"), &shape);
        Case { range: (-5.0, 5.0), ..case(family, name.to_owned(), elements(MAPPED), text) }
    };
    vec![
        activation("x logistic(x)", "s = T logistic(x)\n y = T multiply(x, s)"),
        activation(
            "gelu by erf",
            "h = T multiply(x, half)\n r = T multiply(x, root)\n e = T erf(r)\n s = T add(e, one)\n y = T multiply(h, s)",
        ),
        activation(
            "gelu by tanh",
            "h = T multiply(x, half)\n q = T multiply(x, x)\n c = T multiply(q, x)\n d = T multiply(c, cubic)\n \
             a = T add(x, d)\n r = T multiply(a, scale)\n t = T tanh(r)\n s = T add(t, one)\n y = T multiply(h, s)",
        ),
    ]
}

fn elements(count: i64) -> Work {
    Work::Elements(count as f64)
}

/// Builds a module whose entry computes `y`.
fn entry(before: &str, body: &str, result: &str) -> String {
    format!("HloModule kernel\n\n{before}ENTRY main {{\n {body}\n ROOT out = ({result}) tuple(y)\n}}\n")
}
