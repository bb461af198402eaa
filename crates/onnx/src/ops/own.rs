//! Ops whose results depend on sizes, or that TensorFlow does not have.
//!
//! Each becomes one op of this compiler, `Onnx` followed by the op's name (`OnnxMs` for the domain
//! `com.microsoft`, `OnnxMl` for `ai.onnx.ml`). It has the node's attributes, and these:
//!
//! | attribute | meaning |
//! |---|---|
//! | `Tin`, `Tout` | types of inputs and outputs |
//! | `operands` | for each input in the file, the input of this node, or -1 if it is left out |
//! | `opset` | version of the ops of the domain |
//!
//! Decision trees have other attributes ([`super::trees`]). `import` defines the results.

use crate::convert::{Array, Op, Value};
use crate::ops::trees;
use crate::tensor::Constant;
use support::{Error, Result};
use tf::DataType::{self, Float, Int32, Int64, Uint8};
use tf::foreign::{Attribute, int, ints, shape_of, types};
use tf::proto::attr_value::Value as AttributeValue;
use tf::proto::{ListValue, TensorProto};

/// The type of an output.
#[derive(Clone, Copy)]
enum Out {
    /// That of an input.
    Like(usize),
    /// That of an input, or of the first one if it is left out.
    LikeOr(usize, DataType),
    Is(DataType),
    /// The one that an attribute names, or else that of an input.
    Named(&'static str, usize),
    /// The one that an attribute names, or else this one.
    NamedOr(&'static str, DataType),
    /// That of the first of several attributes with values.
    OfValues,
}

use Out::{Is, Like, LikeOr, Named, NamedOr, OfValues};

/// An op with the types of its outputs.
type Row = (&'static str, &'static [Out]);

/// The outputs of ops of ONNX's own domain. The last type is that of further outputs, too.
const ONNX: &[Row] = &[
    ("AffineGrid", &[Like(0)]),
    ("ArgMax", &[Is(Int64)]),
    ("ArgMin", &[Is(Int64)]),
    ("Attention", &[Like(0)]),
    ("AveragePool", &[Like(0)]),
    ("BatchNormalization", &[Like(0), LikeOr(3, Float)]),
    ("BlackmanWindow", &[NamedOr("output_datatype", Float)]),
    ("CausalConvWithState", &[Like(0)]),
    ("CenterCropPad", &[Like(0)]),
    ("Col2Im", &[Like(0)]),
    ("Conv", &[Like(0)]),
    ("ConvInteger", &[Is(Int32)]),
    ("ConvTranspose", &[Like(0)]),
    ("DFT", &[Like(0)]),
    ("DeformConv", &[Like(0)]),
    ("DepthToSpace", &[Like(0)]),
    ("DequantizeLinear", &[Named("output_dtype", 1)]),
    ("DynamicQuantizeLinear", &[Is(Uint8), Is(Float), Is(Uint8)]),
    ("Expand", &[Like(0)]),
    ("EyeLike", &[Named("dtype", 0)]),
    ("Flatten", &[Like(0)]),
    ("GRU", &[Like(0)]),
    ("Gather", &[Like(0)]),
    ("GatherElements", &[Like(0)]),
    ("GatherND", &[Like(0)]),
    ("Gemm", &[Like(0)]),
    ("GlobalAveragePool", &[Like(0)]),
    ("GlobalLpPool", &[Like(0)]),
    ("GlobalMaxPool", &[Like(0)]),
    ("GridSample", &[Like(0)]),
    ("GroupNormalization", &[Like(0)]),
    ("HammingWindow", &[NamedOr("output_datatype", Float)]),
    ("HannWindow", &[NamedOr("output_datatype", Float)]),
    ("Hardmax", &[Like(0)]),
    ("InstanceNormalization", &[Like(0)]),
    ("LRN", &[Like(0)]),
    ("LSTM", &[Like(0)]),
    ("LayerNormalization", &[Like(0), NamedOr("stash_type", Float)]),
    ("LinearAttention", &[Like(0), LikeOr(3, Float)]),
    ("LogSoftmax", &[Like(0)]),
    ("LpNormalization", &[Like(0)]),
    ("LpPool", &[Like(0)]),
    ("MatMul", &[Like(0)]),
    ("MatMulInteger", &[Is(Int32)]),
    ("MaxPool", &[Like(0), Is(Int64)]),
    ("MaxRoiPool", &[Like(0)]),
    ("MaxUnpool", &[Like(0)]),
    ("MeanVarianceNormalization", &[Like(0)]),
    ("MelWeightMatrix", &[NamedOr("output_datatype", Float)]),
    ("NegativeLogLikelihoodLoss", &[Like(0)]),
    ("NonMaxSuppression", &[Is(Int64)]),
    ("OneHot", &[Like(2)]),
    ("Pad", &[Like(0)]),
    ("QLinearConv", &[Like(7)]),
    ("QLinearMatMul", &[Like(7)]),
    ("QuantizeLinear", &[LikeOr(2, Uint8)]),
    ("RMSNormalization", &[Like(0)]),
    ("RNN", &[Like(0)]),
    ("ReduceL1", &[Like(0)]),
    ("ReduceL2", &[Like(0)]),
    ("ReduceLogSum", &[Like(0)]),
    ("ReduceLogSumExp", &[Like(0)]),
    ("ReduceMax", &[Like(0)]),
    ("ReduceMean", &[Like(0)]),
    ("ReduceMin", &[Like(0)]),
    ("ReduceProd", &[Like(0)]),
    ("ReduceSum", &[Like(0)]),
    ("ReduceSumSquare", &[Like(0)]),
    ("Reshape", &[Like(0)]),
    ("Resize", &[Like(0)]),
    ("RoiAlign", &[Like(0)]),
    ("RotaryEmbedding", &[Like(0)]),
    ("STFT", &[Like(0)]),
    ("Scatter", &[Like(0)]),
    ("ScatterElements", &[Like(0)]),
    ("ScatterND", &[Like(0)]),
    ("SimplifiedLayerNormalization", &[Like(0), Is(Float)]),
    ("Slice", &[Like(0)]),
    ("Softmax", &[Like(0)]),
    ("SoftmaxCrossEntropyLoss", &[Like(0)]),
    ("SpaceToDepth", &[Like(0)]),
    ("Split", &[Like(0)]),
    ("Squeeze", &[Like(0)]),
    ("TensorScatter", &[Like(0)]),
    ("TfIdfVectorizer", &[Is(Float)]),
    ("Tile", &[Like(0)]),
    ("TopK", &[Like(0), Is(Int64)]),
    ("Transpose", &[Like(0)]),
    ("Trilu", &[Like(0)]),
    ("Unique", &[Like(0), Is(Int64)]),
    ("Unsqueeze", &[Like(0)]),
    ("Upsample", &[Like(0)]),
];

/// Those of the domain `ai.onnx.ml`.
const ML: &[Row] = &[
    ("ArrayFeatureExtractor", &[Like(0)]),
    ("Binarizer", &[Like(0)]),
    ("FeatureVectorizer", &[Is(Float)]),
    ("Imputer", &[Like(0)]),
    ("LabelEncoder", &[OfValues]),
    ("LinearClassifier", &[Is(Int64), Is(Float)]),
    ("LinearRegressor", &[Is(Float)]),
    ("Normalizer", &[Is(Float)]),
    ("OneHotEncoder", &[Is(Float)]),
    ("SVMClassifier", &[Is(Int64), Is(Float)]),
    ("SVMRegressor", &[Is(Float)]),
    ("Scaler", &[Is(Float)]),
    ("TreeEnsemble", &[Like(0)]),
    ("TreeEnsembleClassifier", &[Is(Int64), Is(Float)]),
    ("TreeEnsembleRegressor", &[Is(Float)]),
];

/// Those of the domain `com.microsoft`.
const MS: &[Row] = &[
    ("Attention", &[Like(0)]),
    ("BiasGelu", &[Like(0)]),
    ("BiasSoftmax", &[Like(0)]),
    ("BiasSplitGelu", &[Like(0)]),
    ("DequantizeLinear", &[Like(1)]),
    ("DynamicQuantizeLSTM", &[Is(Float)]),
    ("DynamicQuantizeMatMul", &[Is(Float)]),
    ("EmbedLayerNormalization", &[Like(2), Is(Int32), Like(2)]),
    ("FastGelu", &[Like(0)]),
    ("FusedConv", &[Like(0)]),
    ("FusedGemm", &[Like(0)]),
    ("FusedMatMul", &[Like(0)]),
    ("Gelu", &[Like(0)]),
    ("GroupQueryAttention", &[Like(0)]),
    ("MatMulInteger16", &[Is(Int32)]),
    ("MatMulIntegerToFloat", &[Is(Float)]),
    ("MatMulNBits", &[Like(0)]),
    ("MultiHeadAttention", &[Like(0)]),
    ("QLinearAdd", &[Like(0)]),
    ("QLinearAveragePool", &[Like(0)]),
    ("QLinearConcat", &[Like(1)]),
    ("QLinearGlobalAveragePool", &[Like(0)]),
    ("QLinearLeakyRelu", &[Like(0)]),
    ("QLinearMul", &[Like(0)]),
    ("QLinearSigmoid", &[Like(0)]),
    ("QLinearSoftmax", &[Like(0)]),
    ("QLinearWhere", &[Like(1)]),
    ("QuantizeLinear", &[LikeOr(2, Uint8)]),
    ("QuickGelu", &[Like(0)]),
    ("RotaryEmbedding", &[Like(0)]),
    ("SkipLayerNormalization", &[Like(0), Is(Float), Is(Float), Like(0)]),
    ("SkipSimplifiedLayerNormalization", &[Like(0), Is(Float), Is(Float), Like(0)]),
    ("Trilu", &[Like(0)]),
];

/// Those of the domain `ai.onnx.preview.training`.
const TRAINING: &[Row] = &[("Adagrad", &[Like(2)]), ("Adam", &[Like(2)]), ("Momentum", &[Like(2)])];

/// Names of all these ops.
pub(super) fn names() -> impl Iterator<Item = String> {
    let domains = ["", "ai.onnx.ml", "ai.onnx.preview.training", "com.microsoft"];
    let rows = domains.into_iter().filter_map(domain);
    rows.flat_map(|(rows, prefix)| rows.iter().map(move |(name, _)| format!("{prefix}{name}")))
}

/// The rows of a domain, and the beginning of the names of its ops.
fn domain(name: &str) -> Option<(&'static [Row], &'static str)> {
    Some(match name {
        "" => (ONNX, "Onnx"),
        "ai.onnx.ml" => (ML, "OnnxMl"),
        "ai.onnx.preview.training" => (TRAINING, "Onnx"),
        "com.microsoft" => (MS, "OnnxMs"),
        _ => return None,
    })
}

/// Converts a node to an op of this compiler. Returns false if there is none for it.
pub(super) fn convert(op: &mut Op<'_, '_, '_>) -> Result<bool> {
    let Some((rows, prefix)) = domain(op.domain()) else { return Ok(false) };
    let Some((name, outputs)) = rows.iter().find(|(name, _)| *name == op.op_type()) else { return Ok(false) };
    let (mut values, mut operands, mut input_types) = (Vec::new(), Vec::new(), Vec::new());
    for k in 0..op.input_count() {
        let Some(array) = op.optional(k)? else {
            operands.push(-1);
            continue;
        };
        operands.push(values.len() as i64);
        input_types.push(array.data_type);
        values.push(array.value);
    }
    let mut output_types = Vec::new();
    for k in 0..op.output_count() {
        let out =
            outputs.get(k).or(outputs.last()).ok_or_else(|| Error::internal("an op without outputs"))?;
        output_types.push(output_type(op, *out)?);
    }
    let opset = op.version();
    let attributes = [
        types("Tin", &input_types),
        types("Tout", &output_types),
        ints("operands", &operands),
        int("opset", opset),
    ];
    let results = op.add(&format!("{prefix}{name}"), &values, attributes)?;
    add_attributes(op)?;
    for (k, value) in results.into_iter().enumerate() {
        op.set(k, Value::Array(Array::new(value, output_types[k])));
    }
    Ok(true)
}

fn output_type(op: &Op<'_, '_, '_>, out: Out) -> Result<DataType> {
    let like = |k: usize| op.input(k).map(|array| array.data_type);
    Ok(match out {
        Like(k) => like(k)?,
        Is(data_type) => data_type,
        Named(name, k) => match op.type_attribute(name)? {
            Some(data_type) => data_type,
            None => like(k)?,
        },
        NamedOr(name, default) => op.type_attribute(name)?.unwrap_or(default),
        LikeOr(k, default) => match op.optional(k)? {
            Some(array) => array.data_type,
            None => op.type_attribute("output_dtype")?.unwrap_or(default),
        },
        OfValues => {
            if op.attribute("values_int64s").is_some() {
                Int64
            } else if op.attribute("values_floats").is_some() {
                Float
            } else if let Some(tensor) = op.attribute("values_tensor").and_then(|a| a.t.as_ref()) {
                crate::tensor::data_type(tensor.data_type)?
            } else {
                return Err(Error::unsupported("labels must be numbers: strings are not supported"));
            }
        }
    })
}

/// Adds the attributes of the node of the file to the last node.
fn add_attributes(op: &mut Op<'_, '_, '_>) -> Result<()> {
    let trees = trees::Form::of(op);
    let mut values: Vec<(&str, AttributeValue)> = Vec::new();
    for (name, constant) in trees.map_or(Ok(Vec::new()), |form| form.tensors(op))? {
        op.converter.copy(&constant.bytes)?;
        values.push((name, of_constant(constant)));
    }
    for (name, attribute) in op.attributes() {
        if trees.is_some_and(|form| form.contains(name)) {
            continue;
        }
        let list = |list: ListValue| AttributeValue::List(Box::new(list));
        let value = match attribute.r#type {
            1 => AttributeValue::F(attribute.f),
            2 => AttributeValue::I(attribute.i),
            3 => AttributeValue::S(attribute.s.clone()),
            4 => {
                let tensor = attribute.t.as_ref();
                let tensor = tensor.ok_or_else(|| Error::invalid(format!("{name} is not a tensor")))?;
                let constant = Constant::read(tensor, &mut *op.converter.external)
                    .map_err(|e| e.context(format!("attribute '{name}'")))?;
                of_constant(constant)
            }
            6 => {
                op.converter.copy(&attribute.floats)?;
                list(ListValue { f: attribute.floats.clone(), ..ListValue::default() })
            }
            7 => {
                op.converter.copy(&attribute.ints)?;
                list(ListValue { i: attribute.ints.clone(), ..ListValue::default() })
            }
            8 => {
                op.converter.copy(&attribute.strings)?;
                list(ListValue { s: attribute.strings.clone(), ..ListValue::default() })
            }
            _ => continue,
        };
        values.push((name, value));
    }
    let node = op.frame.last_node().expect("just added");
    for (name, value) in values {
        node.attr.entry(name.to_owned()).or_insert_with(|| value.into());
    }
    Ok(())
}

fn of_constant(constant: Constant) -> AttributeValue {
    AttributeValue::Tensor(Box::new(TensorProto {
        dtype: constant.data_type.number(),
        tensor_shape: Some(shape_of(&constant.sizes)),
        tensor_content: constant.bytes,
        ..TensorProto::default()
    }))
}

/// Moves the first axis of an array to another position.
pub(super) fn moved_axis(op: &mut Op<'_, '_, '_>, x: &Array, to: i64) -> Result<Array> {
    if to == 0 {
        return Ok(x.clone());
    }
    let attributes: [Attribute; 3] =
        [types("Tin", &[x.data_type]), types("Tout", &[x.data_type]), int("axis", to)];
    let value = op.node("OnnxMoveAxis", std::slice::from_ref(&x.value), attributes)?;
    Ok(Array::new(value, x.data_type))
}
