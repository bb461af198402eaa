//! Ops that TensorFlow's optimizer creates from several: products with an epilogue, and chains of
//! elementwise ops.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, Translation, rule};
use crate::ops::linalg::products::matrices;
use crate::ops::math::{arithmetic, division, trigonometry};
use crate::ops::nn::activations;
use crate::ops::nn::activations::{leaky_relu_of, prelu_of};
use crate::ops::nn::convolution::{ConvAttributes, convolve, convolve_depthwise};
use crate::ops::nn::pooling::check_same;
use crate::ops::nn::windows::Format;
use crate::values::value::Value;
use hlo::{InstructionId, Op};
use shape::PrimitiveType;
use support::{Error, Result};

pub(crate) const RULES: &[Rule] = &[
    rule("_FusedConv2D", fused_conv).types("T", FUSED_CONV),
    rule("_FusedDepthwiseConv2dNative", fused_depthwise_conv).types("T", FLOATS),
    rule("_FusedMatMul", fused_mat_mul).types("T", FLOATS_TO_32_BITS),
    rule("_UnaryOpsComposition", unary_ops)
        .types("T", &[tf::DataType::Half, tf::DataType::Float, tf::DataType::Double]),
];

const FUSED_CONV: &[tf::DataType] =
    &[tf::DataType::Half, tf::DataType::Float, tf::DataType::Double, tf::DataType::Int8, tf::DataType::Qint8];

/// Ops that may follow a product. They have no further inputs, and one output of the same shape.
const ACTIVATIONS: &[&str] = &["Relu", "Relu6", "Elu", "Tanh", "Sigmoid"];

/// Ops that a chain of elementwise ops may contain.
const UNARY_OPS: &[&str] = &[
    "Abs",
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "Ceil",
    "Cos",
    "Cosh",
    "Elu",
    "Exp",
    "Expm1",
    "Floor",
    "Inv",
    "Log",
    "Log1p",
    "Neg",
    "Reciprocal",
    "Relu",
    "Relu6",
    "Rint",
    "Round",
    "Rsqrt",
    "Selu",
    "Sigmoid",
    "Sin",
    "Sinh",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Square",
    "Tan",
    "Tanh",
];

/// Returns the names in a list attribute.
fn names(cx: &NodeContext<'_, '_>, attribute: &str) -> Result<Vec<String>> {
    let names = cx.attributes().strings_or(attribute, Vec::new())?;
    Ok(names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

/// The families of the ops that may follow a product or occur in a chain.
const FAMILIES: [&[Rule]; 4] = [activations::RULES, arithmetic::RULES, division::RULES, trigonometry::RULES];

/// Returns the rule of such an op.
fn rule_of(op: &str) -> Option<&'static Rule> {
    FAMILIES.iter().copied().flatten().find(|rule| rule.op == op)
}

/// Applies the rule of a unary op to an array.
fn apply(cx: &mut NodeContext<'_, '_>, op: &str, x: InstructionId) -> Result<InstructionId> {
    let Some(Translation::One(translate)) = rule_of(op).map(|rule| rule.translation) else {
        return Err(Error::internal(format!("no rule with one result for {op}")));
    };
    cx.with_inputs(vec![Value::Array(x)], translate)
}

/// Applies the ops that `op_names` lists, in order.
fn unary_ops(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let mut x = cx.input(0)?;
    for op in names(cx, "op_names")? {
        if !UNARY_OPS.contains(&op.as_str()) {
            return Err(Error::unsupported(format!(
                "op_names: '{op}' is not supported; expected unary elementwise ops: {}",
                UNARY_OPS.join(", ")
            )));
        }
        x = apply(cx, &op, x)?;
    }
    Ok(x)
}

/// Applies the ops of the attribute `fused_ops` to a product, with the inputs from the third on.
fn epilogue(cx: &mut NodeContext<'_, '_>, product: InstructionId, format: &Format) -> Result<InstructionId> {
    let sizes = cx.sizes(product);
    let features = [sizes[format.feature]];
    let (mut result, mut next) = (product, 2);
    for op in names(cx, "fused_ops")? {
        match op.as_str() {
            "BiasAdd" => {
                let bias = cx.input(next)?;
                check_same(cx, "the bias", &cx.sizes(bias), &features)?;
                let bias = cx.broadcast(bias, &sizes, &[format.feature])?;
                result = cx.add(result, bias)?;
                next += 1;
            }
            "Add" => {
                let side = cx.input(next)?;
                check_same(cx, "the side input", &cx.sizes(side), &sizes)?;
                result = cx.add(result, side)?;
                next += 1;
            }
            "FusedBatchNorm" => {
                let mut operands = vec![result];
                for (k, what) in ["scale", "offset", "mean", "variance"].iter().enumerate() {
                    let vector = cx.input(next + k)?;
                    check_same(cx, what, &cx.sizes(vector), &features)?;
                    operands.push(vector);
                }
                let epsilon = cx.attributes().float_or("epsilon", 1e-4)?;
                result =
                    cx.op(Op::BatchNormInference { epsilon, feature_index: format.feature }, &operands)?;
                next += 4;
            }
            "Prelu" => {
                let alpha = cx.input(next)?;
                result = prelu_of(cx, result, alpha)?;
                next += 1;
            }
            "LeakyRelu" => {
                let alpha = cx.attributes().float_or("leakyrelu_alpha", 0.2)?;
                result = leaky_relu_of(cx, result, alpha)?;
            }
            op if ACTIVATIONS.contains(&op) => result = apply(cx, op, result)?,
            other => {
                return Err(Error::unsupported(format!(
                    "fused_ops: '{other}' is not supported; expected BiasAdd, Add, FusedBatchNorm, LeakyRelu, Prelu, {}",
                    ACTIVATIONS.join(", ")
                )));
            }
        }
    }
    Ok(result)
}

/// `_FusedConv2D`: a convolution followed by the ops in `fused_ops`.
fn fused_conv(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    if !cx.output_type(0)?.is_floating_point() {
        return fused_conv_of_integers(cx);
    }
    let (input, filter) = (cx.input(0)?, cx.input(1)?);
    let attributes = ConvAttributes::of_node(cx, 4)?;
    cx.check(!attributes.format.vectorized, || {
        "data_format NCHW_VECT_C requires 8-bit integers; use NHWC or NCHW".to_owned()
    })?;
    let filter = filter_as_hwio(cx, filter)?;
    let product = convolve(cx, input, filter, &attributes)?;
    epilogue(cx, product, &attributes.format)
}

/// `_FusedDepthwiseConv2dNative`: like `_FusedConv2D`, with a depthwise convolution.
fn fused_depthwise_conv(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (input, filter) = (cx.input(0)?, cx.input(1)?);
    let product = convolve_depthwise(cx, input, filter)?;
    let format = Format::of_node(cx, 4)?;
    epilogue(cx, product, &format)
}

/// `_FusedMatMul`: like `_FusedConv2D`, with a product of matrices.
fn fused_mat_mul(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (a, b) = (cx.input(0)?, cx.input(1)?);
    let product = matrices(cx, a, b)?;
    epilogue(cx, product, &Format::channels_last(2))
}

/// `_FusedConv2D` of 8-bit integers: `activation(scale * conv(input, filter) + bias + side_scale *
/// side)`, rounded and clamped to 8 bits. Computed in float32, as in XLA.
fn fused_conv_of_integers(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let inputs = cx.inputs_from(0)?;
    let [input, filter, bias, side, scale, side_scale] = inputs[..] else {
        return Err(Error::unsupported(format!(
            "_FusedConv2D of 8-bit integers: expected input, filter, bias, side input, and two scales, got {} inputs",
            inputs.len()
        )));
    };
    let relu = match names(cx, "fused_ops")?.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["BiasAdd"] | ["BiasAdd", "None"] => false,
        ["BiasAdd", "Relu"] => true,
        ref other => {
            return Err(Error::unsupported(format!(
                "fused_ops {other:?} of 8-bit integers are not supported; expected BiasAdd, optionally followed by Relu"
            )));
        }
    };
    let element_type = cx.output_type(0)?;
    let attributes = ConvAttributes::of_node(cx, 4)?;
    let format = attributes.format.clone();
    let (input, block) = format.merge_blocks(cx, input)?;
    let filter = filter_as_hwio(cx, filter)?;
    let input = cx.convert(input, PrimitiveType::F32)?;
    let filter = cx.convert(filter, PrimitiveType::F32)?;
    let conv = convolve(cx, input, filter, &attributes)?;
    let sizes = cx.sizes(conv);

    let scale = scalar_factor(cx, "the input's scale", scale, &sizes)?;
    let mut result = cx.mul(conv, scale)?;
    check_same(cx, "the bias", &cx.sizes(bias), &[sizes[format.feature]])?;
    let bias = cx.convert(bias, PrimitiveType::F32)?;
    let bias = cx.broadcast(bias, &sizes, &[format.feature])?;
    result = cx.add(result, bias)?;
    if !cx.sizes(side).contains(&0) {
        let (side, _) = format.merge_blocks(cx, side)?;
        check_same(cx, "the side input", &cx.sizes(side), &sizes)?;
        let side = cx.convert(side, PrimitiveType::F32)?;
        let side_scale = scalar_factor(cx, "the side input's scale", side_scale, &sizes)?;
        let side = cx.mul(side, side_scale)?;
        result = cx.add(result, side)?;
    }
    if relu {
        let zero = cx.splat_like(result, 0.0)?;
        result = cx.op(Op::Maximum {}, &[result, zero])?;
    }
    let (low, high) = (cx.scalar(PrimitiveType::F32, -128.0), cx.scalar(PrimitiveType::F32, 127.0));
    let clamped = cx.op(Op::Clamp {}, &[low, result, high])?;
    let rounded = cx.op(Op::RoundNearestEven {}, &[clamped])?;
    let result = cx.convert(rounded, element_type)?;
    format.split_blocks(cx, result, block)
}

fn scalar_factor(
    cx: &mut NodeContext<'_, '_>,
    what: &str,
    factor: InstructionId,
    sizes: &[i64],
) -> Result<InstructionId> {
    cx.check(cx.rank(factor) == 0, || format!("{what}: expected a scalar"))?;
    let factor = cx.convert(factor, PrimitiveType::F32)?;
    cx.broadcast(factor, sizes, &[])
}

/// Converts a filter from the attribute `filter_format` to `[h, w, in, out]`.
fn filter_as_hwio(cx: &mut NodeContext<'_, '_>, filter: InstructionId) -> Result<InstructionId> {
    let name = cx.text_or("filter_format", "HWIO")?;
    let (permutation, merged): (&[usize], bool) = match name {
        "HWIO" => (&[0, 1, 2, 3], false),
        "OHWI" => (&[1, 2, 3, 0], false),
        "OIHW" => (&[2, 3, 1, 0], false),
        "OIHW_VECT_I" => (&[2, 3, 1, 4, 0], true),
        other => {
            return Err(cx.invalid(format!(
                "filter_format: expected HWIO, OHWI, OIHW, or OIHW_VECT_I, got '{other}'"
            )));
        }
    };
    let sizes = cx.sizes(filter);
    cx.check_rank("the filter", &sizes, permutation.len())?;
    let filter = cx.transpose(filter, permutation)?;
    if !merged {
        return Ok(filter);
    }
    let sizes = cx.sizes(filter);
    let features = cx.checked_product(&sizes[2..4])?;
    cx.reshape(filter, &[sizes[0], sizes[1], features, sizes[4]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_op_that_can_be_fused_has_a_rule_with_one_result() {
        for op in ACTIVATIONS.iter().chain(UNARY_OPS) {
            let translation = rule_of(op).map(|rule| rule.translation);
            assert!(matches!(translation, Some(Translation::One(_))), "{op}");
        }
    }
}
