//! Classical models and features (domain `ai.onnx.ml`), of numbers.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule, rule_many};
use crate::ops::linalg::products::dot;
use crate::ops::math::reductions::arg_extremum_along;
use crate::ops::nn::losses::softmax_of;
use crate::ops::onnx::operands::{flag, float, required};
use bounded::{Reducer, list};
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};
use support::{Error, Result};

pub(crate) const RULES: &[Rule] = &[
    rule("OnnxMlArrayFeatureExtractor", array_feature_extractor),
    rule("OnnxMlBinarizer", binarizer),
    rule("OnnxMlFeatureVectorizer", feature_vectorizer),
    rule("OnnxMlImputer", imputer),
    rule("OnnxMlLabelEncoder", label_encoder),
    rule_many("OnnxMlLinearClassifier", linear_classifier),
    rule("OnnxMlLinearRegressor", linear_regressor),
    rule("OnnxMlNormalizer", normalizer),
    rule("OnnxMlOneHotEncoder", one_hot_encoder),
    rule("OnnxMlScaler", scaler),
];

fn array_feature_extractor(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, indices) = (required(cx, 0)?, required(cx, 1)?);
    let rank = cx.rank(x);
    cx.check(rank > 0, || "the input is a scalar".to_owned())?;
    let count = cx.checked_product(&cx.sizes(indices))?;
    let indices = cx.reshape(indices, &[count])?;
    let y = cx.gather_along(x, indices, rank as i64 - 1, 0)?;
    if rank == 1 { cx.reshape(y, &[1, count]) } else { Ok(y) }
}

fn binarizer(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let threshold = float(cx, "threshold", 0.0)?;
    let is_above = cx.compare_scalar(ComparisonDirection::Gt, x, threshold)?;
    let element_type = cx.element_type(x);
    cx.convert(is_above, element_type)
}

/// Rows of floats: (rows, features).
pub(crate) fn rows(cx: &mut NodeContext<'_, '_>, x: InstructionId) -> Result<InstructionId> {
    let sizes = cx.sizes(x);
    let x = cx.convert(x, PrimitiveType::F32)?;
    match sizes[..] {
        [features] => cx.reshape(x, &[1, features]),
        [_, _] => Ok(x),
        _ => Err(cx.invalid(format!("expected one or two dimensions, got {}", list(&sizes)))),
    }
}

fn feature_vectorizer(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let mut parts = Vec::new();
    for x in cx.inputs_from(0)? {
        parts.push(rows(cx, x)?);
    }
    cx.check(!parts.is_empty(), || "the op has no inputs".to_owned())?;
    cx.concatenate(&parts, 1)
}

/// Numbers along the last dimension: one for all, or one for each feature.
fn along_last(
    cx: &mut NodeContext<'_, '_>,
    values: impl ExactSizeIterator<Item = Scalar>,
    element_type: PrimitiveType,
    sizes: &[i64],
) -> Result<InstructionId> {
    let count = values.len() as i64;
    let literal = Literal::from_scalars(ArrayShape::new(element_type, &[count]), values);
    let vector = cx.literal(literal);
    if count == 1 {
        let scalar = cx.reshape(vector, &[])?;
        return cx.broadcast(scalar, sizes, &[]);
    }
    cx.check(sizes.last() == Some(&count), || format!("{count} numbers do not fit {}", list(sizes)))?;
    cx.broadcast(vector, sizes, &[sizes.len() - 1])
}

fn imputer(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let (sizes, element_type) = (cx.sizes(x), cx.element_type(x));
    let (is_missing, values) = if element_type.is_floating_point() {
        let replaced = float(cx, "replaced_value_float", 0.0)?;
        let is_missing = if replaced.is_nan() {
            cx.compare(ComparisonDirection::Ne, x, x)?
        } else {
            cx.compare_scalar(ComparisonDirection::Eq, x, replaced)?
        };
        let values = cx.attributes().floats("imputed_value_floats")?;
        (
            is_missing,
            along_last(cx, values.into_iter().map(|v| Scalar::Float(v.into())), element_type, &sizes)?,
        )
    } else {
        let replaced = cx.attributes().int_or("replaced_value_int64", 0)?;
        let replaced = along_last(cx, [Scalar::Signed(replaced)].into_iter(), element_type, &sizes)?;
        let is_missing = cx.compare(ComparisonDirection::Eq, x, replaced)?;
        let values = cx.attributes().ints("imputed_value_int64s")?;
        (is_missing, along_last(cx, values.into_iter().map(Scalar::Signed), element_type, &sizes)?)
    };
    cx.select(is_missing, values, x)
}

/// Constants of a list attribute: integers, floats, or a tensor.
fn numbers(cx: &NodeContext<'_, '_>, name: &str) -> Result<Literal> {
    let attributes = cx.attributes();
    let name_of = |end: &str| format!("{name}_{end}");
    if attributes.has(&name_of("int64s")) {
        let values = attributes.ints(&name_of("int64s"))?;
        return Ok(Literal::from_elements(&[values.len() as i64], &values));
    }
    if attributes.has(&name_of("floats")) {
        let values = attributes.floats(&name_of("floats"))?;
        return Ok(Literal::from_elements(&[values.len() as i64], &values));
    }
    if attributes.has(&name_of("tensor")) {
        return attributes.tensor(&name_of("tensor"));
    }
    Err(Error::unsupported("labels must be numbers: strings are not supported"))
}

/// The value of each key, and a default for others.
fn label_encoder(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let (keys, values) = (numbers(cx, "keys")?, numbers(cx, "values")?);
    let count = keys.array_shape().element_count();
    cx.check(count == values.array_shape().element_count() && count > 0, || {
        "there must be as many keys as values".to_owned()
    })?;
    let element_type = cx.output_type(0)?;
    let default = if cx.attributes().has("default_tensor") {
        cx.attributes().tensor("default_tensor")?.scalar_at(0)
    } else if element_type.is_floating_point() {
        Scalar::Float(float(cx, "default_float", -0.0)?)
    } else {
        Scalar::Signed(cx.attributes().int_or("default_int64", -1)?)
    };
    let default = cx.literal(Literal::from_scalars(ArrayShape::new(element_type, &[]), [default]));
    let sizes = cx.sizes(x);
    let wide = [&sizes[..], &[count]].concat();
    let dimensions: Vec<usize> = (0..sizes.len()).collect();
    let own = cx.element_type(x);
    let keys = cx.literal(keys);
    let (keys, values) = (cx.reshape(keys, &[count])?, cx.literal(values));
    let keys = cx.convert(keys, own)?;
    let keys = cx.broadcast(keys, &wide, &[sizes.len()])?;
    let spread = cx.broadcast(x, &wide, &dimensions)?;
    let mut is_key = cx.compare(ComparisonDirection::Eq, spread, keys)?;
    if own.is_floating_point() {
        let nan = cx.compare(ComparisonDirection::Ne, spread, spread)?;
        let nan_key = cx.compare(ComparisonDirection::Ne, keys, keys)?;
        let both = cx.op(Op::And {}, &[nan, nan_key])?;
        is_key = cx.op(Op::Or {}, &[is_key, both])?;
    }
    let positions = cx.iota(PrimitiveType::S32, &wide, sizes.len())?;
    let none = cx.splat_like(positions, -1.0)?;
    let positions = cx.select(is_key, positions, none)?;
    let position = cx.reduce(positions, Reducer::Maximum, &[sizes.len()])?;
    let values = cx.reshape(values, &[count])?;
    let values = cx.convert(values, element_type)?;
    let found = cx.gather_along(values, position, 0, 0)?;
    let exists = cx.compare_scalar(ComparisonDirection::Ge, position, 0.0)?;
    let default = cx.broadcast(default, &sizes, &[])?;
    cx.select(exists, found, default)
}

/// Scores (rows, targets) after the transform that the node names.
pub(crate) fn post_transform(
    cx: &mut NodeContext<'_, '_>,
    scores: InstructionId,
    name: &str,
) -> Result<InstructionId> {
    match name {
        "NONE" => Ok(scores),
        "LOGISTIC" => cx.op(Op::Logistic {}, &[scores]),
        "SOFTMAX" => softmax_of(cx, scores),
        "SOFTMAX_ZERO" => {
            // Scores of 0 stay 0.
            let is_zero = cx.compare_scalar(ComparisonDirection::Eq, scores, 0.0)?;
            let none = cx.splat_like(scores, f64::NEG_INFINITY)?;
            let others = cx.select(is_zero, none, scores)?;
            let weights = softmax_of(cx, others)?;
            let zero = cx.splat_like(scores, 0.0)?;
            cx.select(is_zero, zero, weights)
        }
        "PROBIT" => {
            // sqrt(2) * erfinv(2 * x - 1).
            cx.composite_one(&[scores], |_, arguments| ::composite::special::ndtri_by_erf_inv(arguments[0]))
        }
        other => Err(cx.invalid(format!("post_transform: '{other}' does not exist"))),
    }
}

/// A matrix from a list attribute: (rows, features).
pub(crate) fn coefficients(cx: &mut NodeContext<'_, '_>, rows: i64, features: i64) -> Result<InstructionId> {
    let values = cx.attributes().floats("coefficients")?;
    cx.check(Some(values.len() as i64) == rows.checked_mul(features), || {
        format!("{} coefficients do not fit {rows} rows of {features} features", values.len())
    })?;
    Ok(cx.literal(Literal::from_elements(&[rows, features], &values)))
}

/// The products of rows and coefficients, with intercepts.
pub(crate) fn linear(cx: &mut NodeContext<'_, '_>, x: InstructionId, targets: i64) -> Result<InstructionId> {
    let sizes = cx.sizes(x);
    let weights = coefficients(cx, targets, sizes[1])?;
    let y = dot(cx, x, weights, 0, 1, 1)?;
    let intercepts = cx.attributes().floats_or("intercepts", Vec::new())?;
    if intercepts.is_empty() {
        return Ok(y);
    }
    let result = cx.sizes(y);
    let values = intercepts.into_iter().map(|value| Scalar::Float(value.into()));
    let intercepts = along_last(cx, values, PrimitiveType::F32, &result)?;
    cx.add(y, intercepts)
}

fn linear_regressor(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let x = rows(cx, x)?;
    let targets = cx.attributes().int_or("targets", 1)?;
    cx.check((1..1 << 24).contains(&targets), || {
        format!("targets: expected a positive number, got {targets}")
    })?;
    let y = linear(cx, x, targets)?;
    let transform = cx.text_or("post_transform", "NONE")?;
    post_transform(cx, y, transform)
}

/// The label of the highest score of each row.
pub(crate) fn best_label(
    cx: &mut NodeContext<'_, '_>,
    scores: InstructionId,
    labels: &[i64],
) -> Result<InstructionId> {
    let position = arg_extremum_along(cx, scores, 1, Reducer::Maximum)?;
    let labels = cx.integers(PrimitiveType::S64, labels)?;
    cx.gather_along(labels, position, 0, 0)
}

fn linear_classifier(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let x = required(cx, 0)?;
    let x = rows(cx, x)?;
    cx.check(cx.attributes().has("classlabels_ints"), || "the labels must be integers".to_owned())?;
    let labels = cx.attributes().ints("classlabels_ints")?;
    let features = cx.sizes(x)[1].max(1);
    let targets = cx.attributes().floats("coefficients")?.len() as i64 / features;
    let mut scores = linear(cx, x, targets)?;
    let transform = cx.text_or("post_transform", "NONE")?;
    if targets == 1 && labels.len() == 2 {
        // One score for two classes: that of the first is the opposite.
        let other = if transform == "LOGISTIC" {
            let own = cx.op(Op::Logistic {}, &[scores])?;
            let one = cx.splat_like(own, 1.0)?;
            let other = cx.sub(one, own)?;
            scores = own;
            other
        } else {
            cx.neg(scores)?
        };
        let both = cx.concatenate(&[other, scores], 1)?;
        let label = best_label(cx, both, &labels)?;
        return Ok(vec![label, both].into_iter().take(cx.node().output_types.len()).collect());
    }
    cx.check(labels.len() as i64 == targets, || format!("{} labels for {targets} scores", labels.len()))?;
    let label = best_label(cx, scores, &labels)?;
    let scores = post_transform(cx, scores, transform)?;
    Ok(vec![label, scores].into_iter().take(cx.node().output_types.len()).collect())
}

fn normalizer(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let x = cx.convert(x, PrimitiveType::F32)?;
    let sizes = cx.sizes(x);
    let last = sizes.len().checked_sub(1).ok_or_else(|| cx.invalid("the input is a scalar"))?;
    let size = cx.op(Op::Abs {}, &[x])?;
    let norm = match cx.text_or("norm", "MAX")? {
        // The largest number, not the largest magnitude.
        "MAX" => cx.reduce(x, Reducer::Maximum, &[last])?,
        "L1" => cx.reduce(size, Reducer::Add, &[last])?,
        "L2" => {
            let square = cx.mul(x, x)?;
            let sum = cx.reduce(square, Reducer::Add, &[last])?;
            cx.op(Op::Sqrt {}, &[sum])?
        }
        other => return Err(cx.invalid(format!("norm: '{other}' does not exist"))),
    };
    let is_zero = cx.compare_scalar(ComparisonDirection::Eq, norm, 0.0)?;
    let one = cx.splat_like(norm, 1.0)?;
    let norm = cx.select(is_zero, one, norm)?;
    let others: Vec<usize> = (0..last).collect();
    let norm = cx.broadcast(norm, &sizes, &others)?;
    cx.div(x, norm)
}

fn one_hot_encoder(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    cx.check(cx.attributes().has("cats_int64s"), || "the categories must be integers".to_owned())?;
    let categories = cx.attributes().ints("cats_int64s")?;
    let _ = flag(cx, "zeros", true)?;
    let sizes = cx.sizes(x);
    let wide = [&sizes[..], &[categories.len() as i64]].concat();
    let dimensions: Vec<usize> = (0..sizes.len()).collect();
    let x = cx.convert(x, PrimitiveType::S64)?;
    let spread = cx.broadcast(x, &wide, &dimensions)?;
    let categories = cx.integers(PrimitiveType::S64, &categories)?;
    let categories = cx.broadcast(categories, &wide, &[sizes.len()])?;
    let is_category = cx.compare(ComparisonDirection::Eq, spread, categories)?;
    cx.convert(is_category, PrimitiveType::F32)
}

fn scaler(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let x = cx.convert(x, PrimitiveType::F32)?;
    let sizes = cx.sizes(x);
    let mut y = x;
    for (name, op) in [("offset", Op::Subtract {}), ("scale", Op::Multiply {})] {
        let values = cx.attributes().floats_or(name, Vec::new())?;
        if values.is_empty() {
            continue;
        }
        let values = values.into_iter().map(|value| Scalar::Float(value.into()));
        let values = along_last(cx, values, PrimitiveType::F32, &sizes)?;
        y = cx.op(op, &[y, values])?;
    }
    Ok(y)
}
