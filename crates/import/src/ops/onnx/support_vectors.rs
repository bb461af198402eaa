//! Support vector machines (domain `ai.onnx.ml`): regression, and classification by pairs of
//! classes.
//!
//! Sources: ONNX Runtime's kernels, and for probabilities Wu, Lin, and Weng, "Probability Estimates
//! for Multi-class Classification by Pairwise Coupling" (2004), algorithm 2.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule, rule_many};
use crate::ops::linalg::products::dot;
use crate::ops::onnx::ml::{best_label, coefficients, linear, post_transform, rows};
use crate::ops::onnx::operands::{flag, required};
use bounded::Reducer;
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::{Literal, PrimitiveType};
use support::{Error, Result};

pub(crate) const RULES: &[Rule] =
    &[rule_many("OnnxMlSVMClassifier", svm_classifier), rule("OnnxMlSVMRegressor", svm_regressor)];

/// Most classes: there are about half as many pairs as the square.
const MOST_CLASSES: i64 = 1024;

/// Most iterations of the estimate of probabilities.
const MOST_ITERATIONS: i32 = 100;

/// Sums of kernels of rows and support vectors, or of products with coefficients if there are none.
fn svm_regressor(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let x = rows(cx, x)?;
    let count = cx.attributes().int_or("n_supports", 0)?;
    let mut sums = if count == 0 {
        linear(cx, x, 1)?
    } else {
        let kernels = kernels(cx, x, count)?;
        let weights = coefficients(cx, 1, count)?;
        dot(cx, kernels, weights, 0, 1, 1)?
    };
    let rho = cx.attributes().floats_or("rho", vec![0.0])?;
    sums = cx.add_scalar(sums, f64::from(rho.first().copied().unwrap_or(0.0)))?;
    if flag(cx, "one_class", false)? {
        let is_above = cx.compare_scalar(ComparisonDirection::Gt, sums, 0.0)?;
        let (one, minus) = (cx.splat_like(sums, 1.0)?, cx.splat_like(sums, -1.0)?);
        return cx.select(is_above, one, minus);
    }
    let transform = cx.text_or("post_transform", "NONE")?;
    post_transform(cx, sums, transform)
}

/// The kernel function of each row and each support vector: (rows, vectors).
fn kernels(cx: &mut NodeContext<'_, '_>, x: InstructionId, count: i64) -> Result<InstructionId> {
    let features = cx.sizes(x)[1];
    let vectors = cx.attributes().floats_or("support_vectors", Vec::new())?;
    cx.check(Some(vectors.len() as i64) == count.checked_mul(features), || {
        format!("{} numbers of support vectors do not fit {count} rows of {features}", vectors.len())
    })?;
    let vectors = cx.literal(Literal::from_elements(&[count, features], &vectors));
    let parameters = cx.attributes().floats_or("kernel_params", vec![0.0; 3])?;
    cx.check(parameters.len() == 3, || format!("kernel_params: expected three, got {}", parameters.len()))?;
    let [gamma, offset, degree] = [0, 1, 2].map(|k| f64::from(parameters[k]));
    let products = dot(cx, x, vectors, 0, 1, 1)?;
    let affine = |cx: &mut NodeContext<'_, '_>| {
        let scaled = cx.mul_scalar(products, gamma)?;
        cx.add_scalar(scaled, offset)
    };
    match cx.text_or("kernel_type", "LINEAR")? {
        "LINEAR" => Ok(products),
        "POLY" => {
            let base = affine(cx)?;
            let degree = cx.splat_like(base, degree)?;
            cx.op(Op::Power {}, &[base, degree])
        }
        "SIGMOID" => {
            let sum = affine(cx)?;
            cx.op(Op::Tanh {}, &[sum])
        }
        "RBF" => {
            let sizes = cx.sizes(products);
            let wide = [sizes[0], sizes[1], features];
            let (a, b) = (cx.broadcast(x, &wide, &[0, 2])?, cx.broadcast(vectors, &wide, &[1, 2])?);
            let difference = cx.sub(a, b)?;
            let square = cx.mul(difference, difference)?;
            let distance = cx.reduce(square, Reducer::Add, &[2])?;
            let scaled = cx.mul_scalar(distance, -gamma)?;
            cx.op(Op::Exp {}, &[scaled])
        }
        other => Err(cx.invalid(format!("kernel_type: '{other}' does not exist"))),
    }
}

/// The label and the scores of each row. Without support vectors, classes have linear scores.
/// Otherwise each pair of classes has a score, whose sign is a vote for one of the two.
fn svm_classifier(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let x = required(cx, 0)?;
    let x = rows(cx, x)?;
    if !cx.attributes().has("classlabels_ints") {
        return Err(Error::unsupported("labels must be numbers: strings are not supported"));
    }
    let labels = cx.attributes().ints("classlabels_ints")?;
    let classes = labels.len() as i64;
    cx.check((1..=MOST_CLASSES).contains(&classes), || {
        format!("classlabels_ints: expected 1 to {MOST_CLASSES} labels, got {classes}")
    })?;
    let counts = cx.attributes().ints_or("vectors_per_class", Vec::new())?;
    let (label, scores) = if counts.iter().all(|&count| count == 0) {
        linear_scores(cx, x, &labels)?
    } else {
        cx.check(counts.len() as i64 == classes && classes > 1, || {
            format!("vectors_per_class: {} numbers for {classes} classes", counts.len())
        })?;
        pair_scores(cx, x, &labels, &counts)?
    };
    Ok(vec![label, scores].into_iter().take(cx.node().output_types.len()).collect())
}

/// The offsets of the scores of all pairs, or one of all classes.
fn offsets(cx: &NodeContext<'_, '_>, name: &str, count: i64) -> Result<Vec<f32>> {
    let mut values = cx.attributes().floats(name)?;
    cx.check(values.len() as i64 >= count, || {
        format!("{name}: expected {count} numbers, got {}", values.len())
    })?;
    values.truncate(count as usize);
    Ok(values)
}

/// Labels and scores from one row of coefficients for each class.
fn linear_scores(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    labels: &[i64],
) -> Result<(InstructionId, InstructionId)> {
    let classes = labels.len() as i64;
    let scores = linear(cx, x, classes)?;
    let offset = offsets(cx, "rho", 1)?[0];
    let scores = cx.add_scalar(scores, f64::from(offset))?;
    let mut label = best_label(cx, scores, labels)?;
    let transform = cx.text_or("post_transform", "NONE")?;
    if classes == 2 && cx.attributes().floats_or("prob_a", Vec::new())?.is_empty() {
        // A high score of either class means the second one.
        let is_probability = cx.attributes().floats("coefficients")?.iter().all(|&value| value >= 0.0);
        let best = cx.reduce(scores, Reducer::Maximum, &[1])?;
        let (direction, threshold) =
            if is_probability { (ComparisonDirection::Ge, 0.5) } else { (ComparisonDirection::Gt, 0.0) };
        let is_high = cx.compare_scalar(direction, best, threshold)?;
        let sizes = cx.sizes(label);
        let second = cx.literal(Literal::scalar(labels[1]));
        let second = cx.broadcast(second, &sizes, &[])?;
        label = cx.select(is_high, second, label)?;
    }
    // One score stays as it is.
    let scores =
        if classes > 1 || transform == "PROBIT" { post_transform(cx, scores, transform)? } else { scores };
    Ok((label, scores))
}

/// Labels and scores from support vectors, which are sorted by class.
fn pair_scores(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    labels: &[i64],
    counts: &[i64],
) -> Result<(InstructionId, InstructionId)> {
    let classes = labels.len() as i64;
    let total = counts.iter().try_fold(0i64, |sum, &count| sum.checked_add(count).filter(|_| count >= 0));
    let total = total.filter(|total| *total < 1 << 31);
    let total = total.ok_or_else(|| cx.invalid("vectors_per_class: expected numbers of vectors"))?;
    let kernels = kernels(cx, x, total)?;
    let weights = coefficients(cx, classes - 1, total)?;
    // Sums over the vectors of each class, with each row of coefficients:
    // (rows, classes * (classes - 1)).
    let (mut sums, mut start) = (Vec::new(), 0);
    for count in counts {
        let own = cx.slice_in(kernels, 1, start, start + count)?;
        let weights = cx.slice_in(weights, 1, start, start + count)?;
        sums.push(dot(cx, own, weights, 0, 1, 1)?);
        start += count;
    }
    let sums = cx.concatenate(&sums, 1)?;
    let pairs: Vec<(i64, i64)> = (0..classes).flat_map(|i| (i + 1..classes).map(move |j| (i, j))).collect();
    let columns = |cx: &mut NodeContext<'_, '_>, column: &dyn Fn(&(i64, i64)) -> i64| {
        let indices: Vec<i64> = pairs.iter().map(column).collect();
        let indices = cx.integers(PrimitiveType::S32, &indices)?;
        cx.gather_along(sums, indices, 1, 0)
    };
    let first = columns(cx, &|(i, j)| i * (classes - 1) + j - 1)?;
    let second = columns(cx, &|(i, j)| j * (classes - 1) + i)?;
    let scores = cx.add(first, second)?;
    let scores = with_numbers(cx, scores, "rho", pairs.len(), false)?;
    let square = Square::new(cx, &pairs, classes)?;
    let is_first = cx.compare_scalar(ComparisonDirection::Gt, scores, 0.0)?;
    let ones = cx.convert(is_first, PrimitiveType::F32)?;
    let votes = square.of(cx, ones)?;
    let votes = cx.reduce(votes, Reducer::Add, &[2])?;
    let label = best_label(cx, votes, labels)?;
    let transform = cx.text_or("post_transform", "NONE")?;
    if !cx.attributes().floats_or("prob_a", Vec::new())?.is_empty() {
        let probabilities = probabilities(cx, scores, pairs.len(), &square)?;
        return Ok((label, post_transform(cx, probabilities, transform)?));
    }
    if pairs.len() > 1 {
        return Ok((label, post_transform(cx, scores, transform)?));
    }
    let other = match transform {
        "NONE" | "LOGISTIC" => cx.neg(scores)?,
        "PROBIT" => {
            return Err(Error::unsupported("post_transform PROBIT of a single score is not supported"));
        }
        _ => {
            let one = cx.splat_like(scores, 1.0)?;
            cx.sub(one, scores)?
        }
    };
    let both = cx.concatenate(&[other, scores], 1)?;
    Ok((label, if transform == "LOGISTIC" { post_transform(cx, both, transform)? } else { both }))
}

/// Adds numbers of an attribute to the columns of a matrix, or multiplies by them.
fn with_numbers(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    name: &str,
    count: usize,
    multiply: bool,
) -> Result<InstructionId> {
    let values = offsets(cx, name, count as i64)?;
    let sizes = cx.sizes(x);
    let values = cx.literal(Literal::from_elements(&[count as i64], &values));
    let values = cx.broadcast(values, &sizes, &[1])?;
    if multiply { cx.mul(x, values) } else { cx.add(x, values) }
}

/// Arranges numbers of pairs of classes as square matrices.
struct Square {
    classes: i64,
    /// The pair of each element.
    pairs: InstructionId,
    /// True below the diagonal, and on it.
    below: Vec<bool>,
    diagonal: Vec<bool>,
}

impl Square {
    fn new(cx: &mut NodeContext<'_, '_>, pairs: &[(i64, i64)], classes: i64) -> Result<Self> {
        let mut places = vec![0i64; (classes * classes) as usize];
        for (k, (i, j)) in pairs.iter().enumerate() {
            places[(i * classes + j) as usize] = k as i64;
            places[(j * classes + i) as usize] = k as i64;
        }
        let elements = || (0..classes * classes).map(|k| (k / classes, k % classes));
        Ok(Self {
            classes,
            pairs: cx.integers(PrimitiveType::S32, &places)?,
            below: elements().map(|(i, j)| i > j).collect(),
            diagonal: elements().map(|(i, j)| i == j).collect(),
        })
    }

    /// A constant of the matrices' shape.
    fn mask(&self, cx: &mut NodeContext<'_, '_>, values: &[bool], sizes: &[i64]) -> Result<InstructionId> {
        let mask = Literal::from_elements(&[self.classes, self.classes], values);
        let mask = cx.literal(mask);
        cx.broadcast(mask, sizes, &[1, 2])
    }

    /// Numbers (rows, pairs) as (rows, classes, classes): `x` above the diagonal, `1 - x` below it,
    /// and 0 on it.
    fn of(&self, cx: &mut NodeContext<'_, '_>, x: InstructionId) -> Result<InstructionId> {
        let sizes = [cx.sizes(x)[0], self.classes, self.classes];
        let wide = cx.gather_along(x, self.pairs, 1, 0)?;
        let wide = cx.reshape(wide, &sizes)?;
        let one = cx.splat_like(wide, 1.0)?;
        let opposite = cx.sub(one, wide)?;
        let below = self.mask(cx, &self.below, &sizes)?;
        let wide = cx.select(below, opposite, wide)?;
        let diagonal = self.mask(cx, &self.diagonal, &sizes)?;
        let zero = cx.splat_like(wide, 0.0)?;
        cx.select(diagonal, zero, wide)
    }
}

/// Probabilities of classes (rows, classes) from the scores of pairs.
fn probabilities(
    cx: &mut NodeContext<'_, '_>,
    scores: InstructionId,
    pairs: usize,
    square: &Square,
) -> Result<InstructionId> {
    let scaled = with_numbers(cx, scores, "prob_a", pairs, true)?;
    let values = with_numbers(cx, scaled, "prob_b", pairs, false)?;
    let opposite = cx.op(Op::Logistic {}, &[values])?;
    let one = cx.splat_like(opposite, 1.0)?;
    let own = cx.sub(one, opposite)?;
    let (low, high) = (cx.splat_like(own, 1e-7)?, cx.splat_like(own, f64::from(1.0f32 - 1e-7f32))?);
    let own = cx.op(Op::Clamp {}, &[low, own, high])?;
    // r[i][j] is the probability of class i if it is i or j.
    let r = square.of(cx, own)?;
    let (sizes, classes) = (cx.sizes(r), square.classes);
    let transposed = cx.transpose(r, &[0, 2, 1])?;
    let products = cx.mul(r, transposed)?;
    let negative = cx.neg(products)?;
    let squares = cx.mul(r, r)?;
    let diagonal = cx.reduce(squares, Reducer::Add, &[1])?;
    let spread = cx.broadcast(diagonal, &sizes, &[0, 2])?;
    let is_diagonal = square.mask(cx, &square.diagonal, &sizes)?;
    let q = cx.select(is_diagonal, spread, negative)?;
    // Rows come last, so that a step slices the first dimension.
    let q = cx.transpose(q, &[1, 2, 0])?;
    let diagonal = cx.transpose(diagonal, &[1, 0])?;
    let first = cx.splat_like(diagonal, f64::from(1.0 / classes as f32))?;
    let state = [vec![first], open(cx, first, q)?, vec![q, diagonal]].concat();
    let more = |cx: &mut NodeContext<'_, '_>, index: InstructionId, state: &[InstructionId]| {
        let is_below = cx.compare_scalar(ComparisonDirection::Lt, index, f64::from(MOST_ITERATIONS))?;
        let any = cx.reduce(state[3], Reducer::Or, &[0])?;
        cx.op(Op::And {}, &[is_below, any])
    };
    let results = cx.bounded_loop(MOST_ITERATIONS as u64, &state, more, |cx, _, state| {
        let (p, q) = (state[0], state[4]);
        let next = cx.counted_loop(classes as i32, &[&state[..3], &state[4..]].concat(), sweep)?[0];
        let sizes = cx.sizes(p);
        let is_open = cx.broadcast(state[3], &sizes, &[1])?;
        let p = cx.select(is_open, next, p)?;
        Ok([vec![p], open(cx, p, q)?, state[4..].to_vec()].concat())
    })?;
    cx.transpose(results[0], &[1, 0])
}

/// For probabilities `p` (classes, rows): `q p`, `p q p`, and whether each row needs another
/// iteration.
fn open(cx: &mut NodeContext<'_, '_>, p: InstructionId, q: InstructionId) -> Result<Vec<InstructionId>> {
    let (sizes, wide) = (cx.sizes(p), cx.sizes(q));
    let spread = cx.broadcast(p, &wide, &[1, 2])?;
    let products = cx.mul(q, spread)?;
    let qp = cx.reduce(products, Reducer::Add, &[1])?;
    let products = cx.mul(p, qp)?;
    let pqp = cx.reduce(products, Reducer::Add, &[0])?;
    let spread = cx.broadcast(pqp, &sizes, &[1])?;
    let error = cx.sub(qp, spread)?;
    let error = cx.op(Op::Abs {}, &[error])?;
    let error = cx.reduce(error, Reducer::Maximum, &[0])?;
    let limit = f64::from(0.005f32 / sizes[0] as f32);
    let is_open = cx.compare_scalar(ComparisonDirection::Ge, error, limit)?;
    Ok(vec![qp, pqp, is_open])
}

/// One step of an iteration, for class `t`: `p`, `q p`, and `p q p` after the best change of
/// `p[t]`.
fn sweep(
    cx: &mut NodeContext<'_, '_>,
    t: InstructionId,
    state: &[InstructionId],
) -> Result<Vec<InstructionId>> {
    let &[p, qp, pqp, q, diagonal] = state else {
        return Err(Error::internal("expected five arrays in the loop of a step"));
    };
    let sizes = cx.sizes(p);
    let (own_q, own_qp) = (cx.dynamic_row(diagonal, t)?, cx.dynamic_row(qp, t)?);
    let numerator = cx.sub(pqp, own_qp)?;
    let change = cx.div(numerator, own_q)?;
    let own_p = cx.dynamic_row(p, t)?;
    let own_p = cx.add(own_p, change)?;
    let p = cx.with_dynamic_row(p, own_p, t)?;
    let scale = cx.add_scalar(change, 1.0)?;
    let twice = cx.mul_scalar(own_qp, 2.0)?;
    let quadratic = cx.mul(change, own_q)?;
    let slope = cx.add(quadratic, twice)?;
    let gain = cx.mul(change, slope)?;
    let pqp = cx.add(pqp, gain)?;
    let pqp = cx.div(pqp, scale)?;
    let pqp = cx.div(pqp, scale)?;
    let wide_scale = cx.broadcast(scale, &sizes, &[1])?;
    let wide_change = cx.broadcast(change, &sizes, &[1])?;
    let row = cx.dynamic_row(q, t)?;
    let moved = cx.mul(wide_change, row)?;
    let qp = cx.add(qp, moved)?;
    let qp = cx.div(qp, wide_scale)?;
    let p = cx.div(p, wide_scale)?;
    Ok(vec![p, qp, pqp, q, diagonal])
}
