//! Operators on quantized tensors.
//!
//! Each becomes one op of this compiler: `TFLite` followed by the operator's name. Its attributes
//! are the quantization of the operands and the operator's options:
//!
//! | attribute | meaning |
//! |---|---|
//! | `Tin`, `Tout` | types of inputs and outputs |
//! | `operands` | for each input of the operator, the input of the node, or -1 if it is left out |
//! | `scale_counts` | number of scales of each input, each output, then each intermediate tensor |
//! | `scales`, `zero_points` | those of all, one after the other |
//! | `quantized_dimensions` | as many numbers as `scale_counts` |
//! | `bits` | as many numbers: bits of an element, or 0 for those of its type |
//!
//! `import` defines the results, bit for bit those of the reference kernels of TensorFlow Lite.

use crate::convert::Op;
use crate::schema::Tensor;
use support::{Error, Result};
use tf::DataType;
use tf::foreign::{Attribute, flag, float, floats, int, ints, ty, types};

/// An option of an operator: its name here, and its field in the file.
#[derive(Clone, Copy)]
pub(super) enum Choice {
    Byte(&'static str, usize),
    Int(&'static str, usize, i32),
    Flag(&'static str, usize),
    Float(&'static str, usize),
    /// The sizes of an output instead of an option.
    Sizes(&'static str, usize),
}

use Choice::{Byte, Flag, Float, Int};

const POOL: &[Choice] = &[
    Byte("padding", 0),
    Int("stride_w", 1, 0),
    Int("stride_h", 2, 0),
    Int("filter_width", 3, 0),
    Int("filter_height", 4, 0),
    Byte("activation", 5),
];
const REDUCE: &[Choice] = &[Flag("keep_dims", 0)];
const ACTIVATED: &[Choice] = &[Byte("activation", 0)];
const RESIZE: &[Choice] = &[Flag("align_corners", 2), Flag("half_pixel_centers", 3)];

/// Operators whose results depend on scales, with their options.
const OPS: &[(&str, &[Choice])] = &[
    ("ABS", &[]),
    ("ADD", &[Byte("activation", 0), Flag("pot_scale_int16", 1)]),
    ("AVERAGE_POOL_2D", POOL),
    ("BATCH_MATMUL", &[Flag("adj_x", 0), Flag("adj_y", 1), Flag("asymmetric_quantize_inputs", 2)]),
    ("CONCATENATION", &[Int("axis", 0, 0), Byte("activation", 1)]),
    (
        "CONV_2D",
        &[
            Byte("padding", 0),
            Int("stride_w", 1, 0),
            Int("stride_h", 2, 0),
            Byte("activation", 3),
            Int("dilation_w_factor", 4, 1),
            Int("dilation_h_factor", 5, 1),
        ],
    ),
    (
        "DEPTHWISE_CONV_2D",
        &[
            Byte("padding", 0),
            Int("stride_w", 1, 0),
            Int("stride_h", 2, 0),
            Byte("activation", 4),
            Int("dilation_w_factor", 5, 1),
            Int("dilation_h_factor", 6, 1),
        ],
    ),
    ("DEQUANTIZE", &[]),
    ("DIV", ACTIVATED),
    ("ELU", &[]),
    ("EMBEDDING_LOOKUP", &[]),
    ("EQUAL", &[]),
    ("EXP", &[]),
    (
        "FULLY_CONNECTED",
        &[
            Byte("activation", 0),
            Byte("weights_format", 1),
            Flag("keep_num_dims", 2),
            Flag("asymmetric_quantize_inputs", 3),
        ],
    ),
    ("GELU", &[Flag("approximate", 0)]),
    ("GREATER", &[]),
    ("GREATER_EQUAL", &[]),
    ("HARD_SWISH", &[]),
    ("L2_NORMALIZATION", &[]),
    ("LEAKY_RELU", &[Float("alpha", 0)]),
    ("LESS", &[]),
    ("LESS_EQUAL", &[]),
    ("LOG", &[]),
    ("LOGISTIC", &[]),
    ("LOG_SOFTMAX", &[]),
    ("MAX_POOL_2D", POOL),
    ("MEAN", REDUCE),
    ("MUL", ACTIVATED),
    ("NOT_EQUAL", &[]),
    ("PRELU", &[]),
    ("QUANTIZE", &[]),
    ("REDUCE_PROD", REDUCE),
    ("RELU", &[]),
    ("RELU6", &[]),
    ("RELU_0_TO_1", &[]),
    ("RELU_N1_TO_1", &[]),
    ("RESIZE_BILINEAR", RESIZE),
    ("RSQRT", &[]),
    ("SOFTMAX", &[Float("beta", 0)]),
    ("SQRT", &[]),
    ("SQUARED_DIFFERENCE", &[]),
    ("SUB", &[Byte("activation", 0), Flag("pot_scale_int16", 1)]),
    ("SUM", REDUCE),
    ("TANH", &[]),
    (
        "TRANSPOSE_CONV",
        &[Byte("padding", 0), Int("stride_w", 1, 0), Int("stride_h", 2, 0), Byte("activation", 3)],
    ),
];

/// True if the operator has quantized operands that its result depends on.
pub(super) fn applies(op: &Op<'_, '_>) -> Result<bool> {
    if OPS.iter().all(|(name, _)| *name != op.operator().op) {
        return Ok(false);
    }
    let inputs = (0..op.input_count()).filter(|&k| op.has_input(k)).map(|k| op.tensor(k));
    let outputs = (0..op.output_count()).map(|k| op.result(k));
    for tensor in inputs.chain(outputs) {
        let tensor = tensor?;
        // Biases and indices are integers, too.
        if tensor.quantization.is_some() && !matches!(tensor.data_type, DataType::Int32 | DataType::Int64) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Converts an operator on quantized tensors.
pub(super) fn convert(op: &mut Op<'_, '_>) -> Result<()> {
    let name = op.operator().op;
    let (_, choices) = OPS.iter().find(|(known, _)| *known == name).expect("the operator is listed");
    convert_with_states(op, choices, &[])
}

/// Converts an operator to an op of this compiler. The inputs with these numbers are variables; the
/// op returns their new values after the other results.
pub(super) fn convert_with_states(op: &mut Op<'_, '_>, choices: &[Choice], states: &[usize]) -> Result<()> {
    let name = op.operator().op;
    let (mut inputs, mut operands, mut tensors): (_, _, Vec<&Tensor>) = (Vec::new(), Vec::new(), Vec::new());
    let mut handles = Vec::new();
    for k in 0..op.input_count() {
        operands.push(if op.has_input(k) { inputs.len() as i64 } else { -1 });
        if states.contains(&k) {
            let handle = op.state(k)?;
            let value =
                op.node("ReadVariableOp", std::slice::from_ref(&handle), [ty("dtype", op.data_type(k)?)])?;
            handles.push((handle, op.tensor(k)?));
            inputs.push(value);
            tensors.push(op.tensor(k)?);
        } else if op.has_input(k) {
            inputs.push(op.input(k)?);
            tensors.push(op.tensor(k)?);
        }
    }
    if handles.len() != states.len() {
        return Err(Error::invalid("an input that holds the operator's state is missing"));
    }
    let in_types: Vec<DataType> = tensors.iter().map(|tensor| tensor.data_type).collect();
    for k in 0..op.output_count() {
        tensors.push(op.result(k)?);
    }
    tensors.extend(handles.iter().map(|(_, tensor)| tensor));
    let out_types: Vec<DataType> = tensors[in_types.len()..].iter().map(|tensor| tensor.data_type).collect();
    tensors.extend((0..).map_while(|k| op.intermediate(k)));
    let mut attributes = quantization(&tensors);
    attributes.extend([types("Tin", &in_types), types("Tout", &out_types), ints("operands", &operands)]);
    for choice in choices {
        attributes.push(option(op, *choice)?);
    }
    let mut results = op.add(&own_name(name), &inputs, attributes)?;
    let after = results.split_off(op.output_count());
    for ((handle, tensor), value) in handles.into_iter().zip(after) {
        op.add("AssignVariableOp", &[handle, value], [ty("dtype", tensor.data_type)])?;
    }
    op.set_all(results)
}

/// The attributes that describe the quantization of tensors.
fn quantization(tensors: &[&Tensor]) -> Vec<Attribute> {
    let (mut scales, mut zero_points) = (Vec::new(), Vec::new());
    let (mut counts, mut dimensions) = (Vec::new(), Vec::new());
    let bits: Vec<i64> = tensors.iter().map(|tensor| tensor.bits.map_or(0, i64::from)).collect();
    for tensor in tensors {
        let Some(quantization) = &tensor.quantization else {
            counts.push(0);
            dimensions.push(0);
            continue;
        };
        counts.push(quantization.scales.len() as i64);
        dimensions.push(quantization.dimension as i64);
        scales.extend_from_slice(&quantization.scales);
        zero_points.extend_from_slice(&quantization.zero_points);
    }
    vec![
        ints("scale_counts", &counts),
        floats("scales", &scales),
        ints("zero_points", &zero_points),
        ints("quantized_dimensions", &dimensions),
        ints("bits", &bits),
    ]
}

fn option(op: &Op<'_, '_>, choice: Choice) -> Result<Attribute> {
    let options = op.options();
    Ok(match choice {
        Byte(name, field) => int(name, i64::from(options.byte(field)?)),
        Int(name, field, default) => {
            let value = options.int(field, default)?;
            let is_size =
                ["stride", "filter", "dilation", "rank"].iter().any(|start| name.starts_with(start));
            if is_size && value < 1 {
                return Err(Error::invalid(format!("{name} is {value}, but must be positive")));
            }
            int(name, value)
        }
        Flag(name, field) => {
            // Older bidirectional LSTMs have no option for the order of the dimensions.
            let default = name == "pot_scale_int16" || (name == "time_major" && field == 4);
            flag(name, options.bool(field, default)?)
        }
        Float(name, field) => float(name, options.float(field)?),
        Choice::Sizes(name, output) => ints(name, &op.result(output)?.sizes),
    })
}

/// The name of our op for an operator: `TFLiteConv2d` for `CONV_2D`.
fn own_name(operator: &str) -> String {
    let mut name = "TFLite".to_owned();
    for word in operator.split('_') {
        let mut letters = word.chars();
        name.extend(letters.next());
        name.extend(letters.map(|c| c.to_ascii_lowercase()));
    }
    name
}
