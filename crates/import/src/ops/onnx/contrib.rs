//! Ops that ONNX Runtime's optimizers and exporters write for transformers (domain
//! `com.microsoft`).

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule, rule_many};
use crate::ops::linalg::products::dot;
use crate::ops::onnx::attention::{
    Attended, Offset, Parts, attend, distances, joined_heads, mask_of, split_heads, sum,
};
use crate::ops::onnx::normalization::layer;
use crate::ops::onnx::operands::{flag, float, number, optional, required};
use crate::ops::onnx::reductions::softmax_along;
use crate::ops::onnx::rotary::{angles_at, rotated};
use bounded::{Reducer, list};
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule_many("OnnxMsAttention", packed_attention),
    rule("OnnxMsBiasGelu", gelu),
    rule("OnnxMsBiasSoftmax", bias_softmax),
    rule("OnnxMsBiasSplitGelu", bias_split_gelu),
    rule_many("OnnxMsEmbedLayerNormalization", embed_layer_normalization),
    rule("OnnxMsFastGelu", fast_gelu),
    rule("OnnxMsGelu", gelu),
    rule_many("OnnxMsGroupQueryAttention", group_query_attention),
    rule_many("OnnxMsMultiHeadAttention", multi_head_attention),
    rule("OnnxMsQuickGelu", quick_gelu),
];

/// The input with the bias, if there is one, along the last dimension.
fn biased(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let Some(bias) = optional(cx, 1)? else { return Ok(x) };
    let sizes = cx.sizes(x);
    let bias = cx.broadcast_to(bias, &sizes)?;
    cx.add(x, bias)
}

/// `x / 2 * (1 + erf(x / sqrt(2)))`.
fn gelu_of(cx: &mut NodeContext<'_, '_>, x: InstructionId) -> Result<InstructionId> {
    let scaled = cx.mul_scalar(x, std::f64::consts::FRAC_1_SQRT_2)?;
    let erf = cx.op(Op::Erf {}, &[scaled])?;
    let weight = cx.add_scalar(erf, 1.0)?;
    let half = cx.mul_scalar(x, 0.5)?;
    cx.mul(half, weight)
}

fn gelu(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = biased(cx)?;
    gelu_of(cx, x)
}

/// `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))`.
fn fast_gelu(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = biased(cx)?;
    let square = cx.mul(x, x)?;
    let cube = cx.mul(square, x)?;
    let cube = cx.mul_scalar(cube, 0.044715)?;
    let sum = cx.add(x, cube)?;
    let scaled = cx.mul_scalar(sum, (2.0 / std::f64::consts::PI).sqrt())?;
    let tanh = cx.op(Op::Tanh {}, &[scaled])?;
    let weight = cx.add_scalar(tanh, 1.0)?;
    let half = cx.mul_scalar(x, 0.5)?;
    cx.mul(half, weight)
}

/// `x * sigmoid(alpha * x)`.
fn quick_gelu(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let alpha = float(cx, "alpha", 1.702)?;
    let scaled = cx.mul_scalar(x, alpha)?;
    let weight = cx.op(Op::Logistic {}, &[scaled])?;
    cx.mul(x, weight)
}

/// The first half of the features times the Gelu of the second half.
fn bias_split_gelu(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = biased(cx)?;
    let sizes = cx.sizes(x);
    let (last, size) = (sizes.len().saturating_sub(1), sizes.last().copied().unwrap_or(0));
    cx.check(size % 2 == 0 && !sizes.is_empty(), || format!("{} cannot be halved", list(&sizes)))?;
    let (left, right) = (cx.slice_in(x, last, 0, size / 2)?, cx.slice_in(x, last, size / 2, size)?);
    let right = gelu_of(cx, right)?;
    cx.mul(left, right)
}

/// Softmax of a sum, whose dimensions from an axis on are a row.
fn bias_softmax(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, bias) = (required(cx, 0)?, required(cx, 1)?);
    let sizes = cx.sizes(x);
    let axis = cx.attributes().int_or("axis", 1)?;
    let axis = cx.dimension(axis, sizes.len())?;
    let bias_sizes = cx.sizes(bias);
    let bias = if flag(cx, "is_inner_broadcast", true)? && bias_sizes.len() == sizes.len() {
        cx.broadcast_to(bias, &sizes)?
    } else {
        // Each bias serves several rows that follow each other.
        let count = cx.checked_product(&bias_sizes)?;
        let all = cx.checked_product(&sizes)?;
        let row = cx.checked_product(&sizes[axis..])?;
        cx.check(count > 0 && row > 0 && all % count == 0 && count % row == 0, || {
            format!("a bias {} does not fit {}", list(&bias_sizes), list(&sizes))
        })?;
        let grouped = cx.reshape(bias, &[count / row, row])?;
        let wide = cx.broadcast(grouped, &[count / row, all / count, row], &[0, 2])?;
        cx.reshape(wide, &sizes)?
    };
    let logits = cx.add(x, bias)?;
    let rows = [cx.checked_product(&sizes[..axis])?, cx.checked_product(&sizes[axis..])?];
    let logits = cx.reshape(logits, &rows)?;
    let y = softmax_along(cx, logits, 1, false)?;
    cx.reshape(y, &sizes)
}

/// The scale of products: that of the node, or that of the size of a head.
fn scale(cx: &NodeContext<'_, '_>, size: i64) -> Result<f64> {
    let stated = float(cx, "scale", 0.0)?;
    Ok(if stated == 0.0 { 1.0 / (size.max(1) as f64).sqrt() } else { stated })
}

/// A mask of keys as numbers to add: (batch, keys) or (batch, queries, keys) with 0 for excluded
/// ones, or the number of keys of each batch.
fn key_mask(
    cx: &mut NodeContext<'_, '_>,
    mask: InstructionId,
    [batch, queries, keys]: [i64; 3],
    element_type: PrimitiveType,
) -> Result<InstructionId> {
    let sizes = cx.sizes(mask);
    let filter = float(cx, "mask_filter_value", -10000.0)?;
    let allowed = if sizes == [batch] {
        let key = cx.iota(PrimitiveType::S32, &[batch, 1, 1, keys], 3)?;
        let count = cx.convert(mask, PrimitiveType::S32)?;
        let count = cx.broadcast(count, &[batch, 1, 1, keys], &[0])?;
        cx.compare(ComparisonDirection::Lt, key, count)?
    } else {
        let whole = match sizes[..] {
            [rows, columns] if rows == batch && columns == keys => [batch, 1, 1, keys],
            [b, rows, columns] if [b, rows, columns] == [batch, queries, keys] => [batch, 1, queries, keys],
            _ => return Err(cx.invalid(format!("a mask {} is not supported", list(&sizes)))),
        };
        let mask = cx.reshape(mask, &whole)?;
        cx.compare_scalar(ComparisonDirection::Ne, mask, 0.0)?
    };
    mask_of(cx, allowed, element_type, filter)
}

/// Inputs: x (batch, positions, features), weights of queries, keys, and values side by side, their
/// bias, a mask, past keys and values (2, batch, heads, positions, features), and a bias of the
/// products.
fn packed_attention(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let (x, weights) = (required(cx, 0)?, required(cx, 1)?);
    let (bias, mask, past) = (optional(cx, 2)?, optional(cx, 3)?, optional(cx, 4)?);
    let of_products = optional(cx, 5)?;
    let heads = cx.attributes().int("num_heads")?;
    let (sizes, weight_sizes) = (cx.sizes(x), cx.sizes(weights));
    let fits = sizes.len() == 3 && weight_sizes.len() == 2 && weight_sizes[0] == sizes[2] && heads > 0;
    cx.check(fits, || format!("weights {} do not fit {}", list(&weight_sizes), list(&sizes)))?;
    let widths = cx.attributes().ints_or("qkv_hidden_sizes", vec![weight_sizes[1] / 3; 3])?;
    cx.check(widths.len() == 3 && widths.iter().sum::<i64>() == weight_sizes[1], || {
        format!("qkv_hidden_sizes {} do not fit {}", list(&widths), list(&weight_sizes))
    })?;
    let mut all = dot(cx, x, weights, 0, 2, 0)?;
    if let Some(bias) = bias {
        let whole = cx.sizes(all);
        let bias = cx.broadcast_to(bias, &whole)?;
        all = cx.add(all, bias)?;
    }
    let mut parts = Vec::new();
    let mut start = 0;
    for width in widths {
        let part = cx.slice_in(all, 2, start, start + width)?;
        start += width;
        parts.push(split_heads(cx, part, heads)?);
    }
    let [q, mut k, mut v] = [parts[0], parts[1], parts[2]];
    let mut before = 0;
    if let Some(past) = past {
        let past_sizes = cx.sizes(past);
        cx.check(past_sizes.len() == 5 && past_sizes[0] == 2, || format!("a past of {}", list(&past_sizes)))?;
        before = past_sizes[3];
        for (n, own) in [&mut k, &mut v].into_iter().enumerate() {
            let part = cx.slice_in(past, 0, n as i64, n as i64 + 1)?;
            let part = cx.reshape(part, &past_sizes[1..])?;
            *own = cx.concatenate(&[part, *own], 2)?;
        }
    }
    let present_sizes = [&[1], &cx.sizes(k)[..]].concat();
    let bias = masks(cx, q, k, mask, of_products, before)?;
    let scale = scale(cx, cx.sizes(q)[3])?;
    let parts = Parts { q, k, v, bias, may_exclude_all: false, scale, softcap: 0.0, precision: None };
    let y = attend(cx, &parts)?.y;
    let mut results = vec![joined_heads(cx, y)?];
    if cx.node().output_types.len() > 1 {
        cx.check(cx.sizes(v) == present_sizes[1..], || "keys and values of one size are needed".to_owned())?;
        let (k, v) = (cx.reshape(k, &present_sizes)?, cx.reshape(v, &present_sizes)?);
        results.push(cx.concatenate(&[k, v], 0)?);
    }
    Ok(results)
}

/// The sum of the masks of attention: one of keys, one of the products, and one of later keys.
fn masks(
    cx: &mut NodeContext<'_, '_>,
    q: InstructionId,
    k: InstructionId,
    mask: Option<InstructionId>,
    of_products: Option<InstructionId>,
    before: i64,
) -> Result<Option<InstructionId>> {
    let (q_sizes, keys) = (cx.sizes(q), cx.sizes(k)[2]);
    let element_type = cx.element_type(q);
    let mut bias = of_products;
    if let Some(mask) = mask {
        let mask = key_mask(cx, mask, [q_sizes[0], q_sizes[2], keys], element_type)?;
        bias = sum(cx, bias, mask)?;
    }
    if flag(cx, "unidirectional", false)? {
        let distance = distances(cx, [q_sizes[2], keys], Offset::Known(before))?;
        let allowed = cx.compare_scalar(ComparisonDirection::Ge, distance, 0.0)?;
        let later = mask_of(cx, allowed, element_type, f64::NEG_INFINITY)?;
        bias = sum(cx, bias, later)?;
    }
    Ok(bias)
}

/// A part of an array along a dimension, without that dimension.
fn part_of(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    dimension: usize,
    k: i64,
) -> Result<InstructionId> {
    let part = cx.slice_in(x, dimension, k, k + 1)?;
    let mut sizes = cx.sizes(part);
    sizes.remove(dimension);
    cx.reshape(part, &sizes)
}

/// Inputs: queries, keys, values, their bias, a mask of keys, a bias of the products, and past keys
/// and values. Packed inputs (batch, positions, heads, 3 or 2, features) contain the others.
fn multi_head_attention(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let query = required(cx, 0)?;
    let (key, value, bias) = (optional(cx, 1)?, optional(cx, 2)?, optional(cx, 3)?);
    let (mask, of_products) = (optional(cx, 4)?, optional(cx, 5)?);
    let (past_k, past_v) = (optional(cx, 6)?, optional(cx, 7)?);
    let heads = cx.attributes().int("num_heads")?;
    cx.check(heads > 0, || format!("num_heads: expected a positive number, got {heads}"))?;
    let unpacked =
        |cx: &mut NodeContext<'_, '_>, x: InstructionId, count: i64| -> Result<Vec<InstructionId>> {
            let sizes = cx.sizes(x);
            cx.check(sizes.len() == 5 && sizes[3] == count && sizes[2] == heads, || {
                format!("a packed input of {} is not supported", list(&sizes))
            })?;
            (0..count)
                .map(|k| {
                    let part = part_of(cx, x, 3, k)?;
                    cx.transpose(part, &[0, 2, 1, 3])
                })
                .collect()
        };
    let mut parts = match (cx.rank(query), key, value) {
        (5, None, None) => unpacked(cx, query, 3)?,
        (_, Some(key), None) => {
            let mut parts = vec![split_heads(cx, query, heads)?];
            parts.extend(unpacked(cx, key, 2)?);
            parts
        }
        (_, Some(key), Some(value)) => {
            vec![split_heads(cx, query, heads)?, split_heads(cx, key, heads)?, split_heads(cx, value, heads)?]
        }
        _ => return Err(cx.invalid("expected queries, keys, and values")),
    };
    if let Some(bias) = bias {
        let mut start = 0;
        for part in &mut parts {
            let sizes = cx.sizes(*part);
            let width = sizes[1] * sizes[3];
            cx.check(cx.sizes(bias).first().is_some_and(|&size| size >= start + width), || {
                "the bias is too short".to_owned()
            })?;
            let own = cx.slice_in(bias, 0, start, start + width)?;
            start += width;
            let own = cx.reshape(own, &[sizes[1], sizes[3]])?;
            let own = cx.broadcast(own, &sizes, &[1, 3])?;
            *part = cx.add(*part, own)?;
        }
    }
    let [q, mut k, mut v] = [parts[0], parts[1], parts[2]];
    let mut before = 0;
    if let (Some(past_k), Some(past_v)) = (past_k, past_v) {
        before = cx.sizes(past_k).get(2).copied().unwrap_or(0);
        k = cx.concatenate(&[past_k, k], 2)?;
        v = cx.concatenate(&[past_v, v], 2)?;
    }
    let bias = masks(cx, q, k, mask, of_products, before)?;
    let scale = scale(cx, cx.sizes(q)[3])?;
    let parts = Parts { q, k, v, bias, may_exclude_all: false, scale, softcap: 0.0, precision: None };
    let Attended { y, stages } = attend(cx, &parts)?;
    let y = joined_heads(cx, y)?;
    let count = cx.node().output_types.len();
    Ok([y, k, v, stages[2]].into_iter().take(count).collect())
}

/// Inputs: queries (or all three packed), keys, values, past keys and values, the number of keys of
/// each batch less 1, the number of keys of all, and tables of cosines and sines.
fn group_query_attention(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let query = required(cx, 0)?;
    let (key, value) = (optional(cx, 1)?, optional(cx, 2)?);
    let (past_k, past_v) = (optional(cx, 3)?, optional(cx, 4)?);
    let lengths = required(cx, 5)?;
    let (cos, sin) = (optional(cx, 7)?, optional(cx, 8)?);
    let (heads, kv_heads) = (cx.attributes().int("num_heads")?, cx.attributes().int("kv_num_heads")?);
    cx.check(cx.rank(query) == 3 && heads > 0 && kv_heads > 0, || {
        "expected queries of three dimensions, and positive numbers of heads".to_owned()
    })?;
    let (q, k, v) = match (key, value) {
        (Some(key), Some(value)) => (query, key, value),
        _ => {
            let width = cx.sizes(query)[2];
            let size = width / (heads + 2 * kv_heads);
            cx.check(size * (heads + 2 * kv_heads) == width, || format!("{width} features do not fit"))?;
            let (first, second) = (heads * size, (heads + kv_heads) * size);
            (
                cx.slice_in(query, 2, 0, first)?,
                cx.slice_in(query, 2, first, second)?,
                cx.slice_in(query, 2, second, width)?,
            )
        }
    };
    let (mut q, mut k, v) =
        (split_heads(cx, q, heads)?, split_heads(cx, k, kv_heads)?, split_heads(cx, v, kv_heads)?);
    let (q_sizes, k_sizes) = (cx.sizes(q), cx.sizes(k));
    let [batch, queries, size] = [q_sizes[0], q_sizes[2], q_sizes[3]];
    cx.check(k_sizes == [batch, kv_heads, queries, size] && cx.sizes(v) == k_sizes, || {
        format!("keys {} do not fit queries {}", list(&k_sizes), list(&q_sizes))
    })?;
    let count = cx.checked_product(&cx.sizes(lengths))?;
    cx.check(count == batch, || "expected a number of keys for each batch".to_owned())?;
    let lengths = cx.reshape(lengths, &[batch])?;
    let lengths = cx.convert(lengths, PrimitiveType::S32)?;
    let room = past_k.map_or(0, |past| cx.sizes(past).get(2).copied().unwrap_or(0));
    // The keys before the first query.
    let before = cx.add_scalar(lengths, 1.0 - queries as f64)?;
    let zero = cx.splat_like(before, 0.0)?;
    let before = cx.op(Op::Maximum {}, &[before, zero])?;
    if flag(cx, "do_rotary", false)? {
        let (Some(cos), Some(sin)) = (cos, sin) else {
            return Err(cx.invalid("the tables of angles are missing"));
        };
        let grid = [batch, queries];
        let first = cx.broadcast(before, &grid, &[0])?;
        let steps = cx.iota(PrimitiveType::S32, &grid, 1)?;
        let positions = cx.add(first, steps)?;
        let factors = angles_at(cx, [cos, sin], positions)?;
        let interleaved = flag(cx, "rotary_interleaved", false)?;
        q = rotated(cx, q, factors, interleaved)?;
        k = rotated(cx, k, factors, interleaved)?;
    }
    let total = number(cx, 6)?.map_or(room + queries, |total| total as i64);
    let present = total.max(room);
    cx.check((queries..1 << 31).contains(&present), || format!("{present} keys for {queries} queries"))?;
    let mut caches = Vec::new();
    for (own, past) in [(k, past_k), (v, past_v)] {
        let cache = match past {
            Some(past) => cx.pad_end(past, 2, present - room)?,
            None => {
                let element_type = cx.element_type(own);
                cx.splat(element_type, &[batch, kv_heads, present, size], 0.0)?
            }
        };
        caches.push(written(cx, cache, own, before)?);
    }
    let element_type = cx.element_type(q);
    let distance = distances(cx, [queries, present], Offset::Each(before))?;
    let mut allowed = cx.compare_scalar(ComparisonDirection::Ge, distance, 0.0)?;
    let window = cx.attributes().int_or("local_window_size", -1)?;
    if window > 0 {
        let is_near = cx.compare_scalar(ComparisonDirection::Lt, distance, window as f64)?;
        allowed = cx.op(Op::And {}, &[allowed, is_near])?;
    }
    let bias = mask_of(cx, allowed, element_type, f64::NEG_INFINITY)?;
    let softcap = float(cx, "softcap", 0.0)?;
    let scale = scale(cx, size)?;
    let [k, v] = [caches[0], caches[1]];
    let parts = Parts { q, k, v, bias: Some(bias), may_exclude_all: false, scale, softcap, precision: None };
    let y = attend(cx, &parts)?.y;
    let results = [joined_heads(cx, y)?, k, v];
    let count = cx.node().output_types.len();
    Ok(results.into_iter().take(count).collect())
}

/// A cache (batch, heads, positions, features) with rows written from a position of each batch on.
fn written(
    cx: &mut NodeContext<'_, '_>,
    cache: InstructionId,
    rows: InstructionId,
    from: InstructionId,
) -> Result<InstructionId> {
    let (sizes, row_sizes) = (cx.sizes(cache), cx.sizes(rows));
    let grid = [sizes[0], sizes[2]];
    // The row of each position, which may be before the first or beyond the last one.
    let position = cx.iota(PrimitiveType::S32, &grid, 1)?;
    let from = cx.broadcast(from, &grid, &[0])?;
    let row = cx.sub(position, from)?;
    let low = cx.compare_scalar(ComparisonDirection::Ge, row, 0.0)?;
    let high = cx.compare_scalar(ComparisonDirection::Lt, row, row_sizes[2] as f64)?;
    let is_new = cx.op(Op::And {}, &[low, high])?;
    let rows = cx.transpose(rows, &[0, 2, 1, 3])?;
    let gathered = cx.gather_along(rows, row, 1, 1)?;
    let gathered = cx.transpose(gathered, &[0, 2, 1, 3])?;
    let is_new = cx.broadcast(is_new, &sizes, &[0, 2])?;
    cx.select(is_new, gathered, cache)
}

/// Inputs: words, segments, the tables of words, positions, and segments, scale and bias of the
/// normalization, a mask, and positions.
fn embed_layer_normalization(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let (words, segments) = (required(cx, 0)?, optional(cx, 1)?);
    let (word_table, position_table, segment_table) = (required(cx, 2)?, required(cx, 3)?, optional(cx, 4)?);
    let (scale, bias) = (optional(cx, 5)?, optional(cx, 6)?);
    let (mask, positions) = (optional(cx, 7)?, optional(cx, 8)?);
    let sizes = cx.sizes(words);
    cx.check_rank("the words", &sizes, 2)?;
    let positions = match positions {
        Some(positions) => {
            let own = cx.sizes(positions);
            cx.check(own.len() == 2 && own[1] == sizes[1], || format!("positions {}", list(&own)))?;
            cx.broadcast_to(positions, &sizes)?
        }
        None => cx.iota(PrimitiveType::S32, &sizes, 1)?,
    };
    let mut total = cx.gather_along(word_table, words, 0, 0)?;
    let of_positions = cx.gather_along(position_table, positions, 0, 0)?;
    total = cx.add(total, of_positions)?;
    if let (Some(segments), Some(table)) = (segments, segment_table) {
        let of_segments = cx.gather_along(table, segments, 0, 0)?;
        total = cx.add(total, of_segments)?;
    }
    let element_type = cx.element_type(total);
    let wide = cx.convert(total, PrimitiveType::F32)?;
    let [y, _, _] = layer(cx, wide, [scale, bias], &[2], true)?;
    let y = cx.convert(y, element_type)?;
    let counts = match mask {
        Some(mask) => {
            let mask = cx.convert(mask, PrimitiveType::S32)?;
            cx.reduce(mask, Reducer::Add, &[1])?
        }
        None => cx.splat(PrimitiveType::S32, &sizes[..1], 0.0)?,
    };
    let count = cx.node().output_types.len();
    Ok([y, counts, total].into_iter().take(count).collect())
}
