//! Attention.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule_many};
use crate::ops::linalg::products::dot;
use crate::ops::nn::losses::softmax_of;
use crate::ops::onnx::operands::{flag, float, optional, required};
use bounded::{Reducer, list};
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] =
    &[rule_many("OnnxAttention", attention), rule_many("OnnxLinearAttention", linear_attention)];

/// Arrays (batch, heads, positions, features) and what is done with their products.
pub(crate) struct Parts {
    pub(crate) q: InstructionId,
    pub(crate) k: InstructionId,
    pub(crate) v: InstructionId,
    /// Numbers that are added to the products, broadcast to (batch, heads, queries, keys).
    pub(crate) bias: Option<InstructionId>,
    /// True if the bias may exclude all keys of a query, whose result is then 0.
    pub(crate) may_exclude_all: bool,
    pub(crate) scale: f64,
    pub(crate) softcap: f64,
    /// The type of the softmax.
    pub(crate) precision: Option<PrimitiveType>,
}

/// The result (batch, heads, queries, features), and the products at each stage: scaled, capped,
/// with the bias, and after the softmax.
pub(crate) struct Attended {
    pub(crate) y: InstructionId,
    pub(crate) stages: [InstructionId; 4],
}

/// Copies each head for as many heads of the queries as share it.
fn repeated(cx: &mut NodeContext<'_, '_>, x: InstructionId, heads: i64) -> Result<InstructionId> {
    let sizes = cx.sizes(x);
    let own = sizes[1];
    if own == heads {
        return Ok(x);
    }
    cx.check(own > 0 && heads % own == 0, || format!("{heads} heads cannot share {own} heads"))?;
    let wide = [sizes[0], own, heads / own, sizes[2], sizes[3]];
    let spread = cx.broadcast(x, &wide, &[0, 1, 3, 4])?;
    cx.reshape(spread, &[sizes[0], heads, sizes[2], sizes[3]])
}

/// Softmax of products of queries and keys, times values.
pub(crate) fn attend(cx: &mut NodeContext<'_, '_>, parts: &Parts) -> Result<Attended> {
    let heads = cx.sizes(parts.q)[1];
    let (k, v) = (repeated(cx, parts.k, heads)?, repeated(cx, parts.v, heads)?);
    let (q_sizes, k_sizes, v_sizes) = (cx.sizes(parts.q), cx.sizes(k), cx.sizes(v));
    let fits = q_sizes[0] == k_sizes[0]
        && q_sizes[3] == k_sizes[3]
        && k_sizes[..3] == v_sizes[..3]
        && !q_sizes.contains(&0);
    cx.check(fits, || {
        format!(
            "queries {}, keys {}, and values {} do not fit",
            list(&q_sizes),
            list(&k_sizes),
            list(&v_sizes)
        )
    })?;
    let element_type = cx.element_type(parts.q);
    let scaled_q = cx.mul_scalar(parts.q, parts.scale)?;
    let scaled = dot(cx, scaled_q, k, 2, 3, 3)?;
    let mut capped = scaled;
    if parts.softcap > 0.0 {
        let divided = cx.mul_scalar(scaled, 1.0 / parts.softcap)?;
        let tanh = cx.op(Op::Tanh {}, &[divided])?;
        capped = cx.mul_scalar(tanh, parts.softcap)?;
    }
    let sizes = cx.sizes(capped);
    let mut biased = capped;
    let mut is_excluded = None;
    if let Some(bias) = parts.bias {
        let bias = cx.convert(bias, element_type)?;
        let bias = cx.broadcast_to(bias, &sizes)?;
        biased = cx.add(capped, bias)?;
        if parts.may_exclude_all {
            let most = cx.reduce(bias, Reducer::Maximum, &[3])?;
            let excluded = cx.compare_scalar(ComparisonDirection::Eq, most, f64::NEG_INFINITY)?;
            is_excluded = Some(cx.broadcast(excluded, &sizes, &[0, 1, 2])?);
        }
    }
    let logits = match parts.precision {
        Some(precision) => cx.convert(biased, precision)?,
        None => biased,
    };
    let mut weights = softmax_of(cx, logits)?;
    if let Some(is_excluded) = is_excluded {
        let zero = cx.splat_like(weights, 0.0)?;
        weights = cx.select(is_excluded, zero, weights)?;
    }
    let weights = cx.convert(weights, element_type)?;
    let y = dot(cx, weights, v, 2, 3, 2)?;
    Ok(Attended { y, stages: [scaled, capped, biased, weights] })
}

/// (batch, positions, heads * features) as (batch, heads, positions, features).
pub(crate) fn split_heads(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    heads: i64,
) -> Result<InstructionId> {
    let sizes = cx.sizes(x);
    if sizes.len() == 4 {
        return Ok(x);
    }
    cx.check(sizes.len() == 3 && heads > 0 && sizes[2] % heads == 0, || {
        format!("{} does not have {heads} heads", list(&sizes))
    })?;
    let x = cx.reshape(x, &[sizes[0], sizes[1], heads, sizes[2] / heads])?;
    cx.transpose(x, &[0, 2, 1, 3])
}

/// The inverse of [`split_heads`].
pub(crate) fn joined_heads(cx: &mut NodeContext<'_, '_>, x: InstructionId) -> Result<InstructionId> {
    let sizes = cx.sizes(x);
    let x = cx.transpose(x, &[0, 2, 1, 3])?;
    cx.reshape(x, &[sizes[0], sizes[2], sizes[1] * sizes[3]])
}

/// 0 where a condition holds, minus infinity elsewhere.
pub(crate) fn mask_of(
    cx: &mut NodeContext<'_, '_>,
    allowed: InstructionId,
    element_type: PrimitiveType,
    excluded: f64,
) -> Result<InstructionId> {
    let sizes = cx.sizes(allowed);
    let (zero, none) = (cx.splat(element_type, &sizes, 0.0)?, cx.splat(element_type, &sizes, excluded)?);
    cx.select(allowed, zero, none)
}

/// The places of queries among the keys less the places of keys, (batch or 1, 1, queries, keys).
/// `offset` is the number of keys before the first query: a number, or one for each batch.
pub(crate) fn distances(
    cx: &mut NodeContext<'_, '_>,
    [queries, keys]: [i64; 2],
    offset: Offset,
) -> Result<InstructionId> {
    let batch = match offset {
        Offset::Known(_) => 1,
        Offset::Each(offsets) => cx.sizes(offsets)[0],
    };
    let sizes = [batch, 1, queries, keys];
    let query = cx.iota(PrimitiveType::S32, &sizes, 2)?;
    let key = cx.iota(PrimitiveType::S32, &sizes, 3)?;
    let distance = cx.sub(query, key)?;
    let offset = match offset {
        Offset::Known(offset) => cx.splat(PrimitiveType::S32, &sizes, offset as f64)?,
        Offset::Each(offsets) => cx.broadcast(offsets, &sizes, &[0])?,
    };
    cx.add(distance, offset)
}

/// A number, or an `s32` number for each batch.
#[derive(Clone, Copy)]
pub(crate) enum Offset {
    Known(i64),
    Each(InstructionId),
}

/// The sum of two masks, which are broadcast.
pub(crate) fn sum(
    cx: &mut NodeContext<'_, '_>,
    a: Option<InstructionId>,
    b: InstructionId,
) -> Result<Option<InstructionId>> {
    let Some(a) = a else { return Ok(Some(b)) };
    let (a, b) = cx.broadcast_pair(a, b)?;
    cx.add(a, b).map(Some)
}

/// Inputs: queries, keys, values, a mask, past keys and values, and the number of keys of each
/// batch.
fn attention(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let (q, k, v) = (required(cx, 0)?, required(cx, 1)?, required(cx, 2)?);
    let (mask, past_k, past_v) = (optional(cx, 3)?, optional(cx, 4)?, optional(cx, 5)?);
    let lengths = optional(cx, 6)?;
    let is_flat = cx.rank(q) == 3;
    cx.check(matches!(cx.rank(q), 3 | 4) && cx.rank(k) == cx.rank(q) && cx.rank(v) == cx.rank(q), || {
        "expected three or four dimensions".to_owned()
    })?;
    let heads = cx.attributes().int_or("q_num_heads", 0)?;
    let kv_heads = cx.attributes().int_or("kv_num_heads", 0)?;
    let q = split_heads(cx, q, heads)?;
    let (mut k, mut v) = (split_heads(cx, k, kv_heads)?, split_heads(cx, v, kv_heads)?);
    let mut past = 0;
    if let (Some(past_k), Some(past_v)) = (past_k, past_v) {
        past = cx.sizes(past_k).get(2).copied().unwrap_or(0);
        k = cx.concatenate(&[past_k, k], 2)?;
        v = cx.concatenate(&[past_v, v], 2)?;
    }
    let (q_sizes, keys) = (cx.sizes(q), cx.sizes(k)[2]);
    let queries = q_sizes[2];
    let element_type = cx.element_type(q);
    let mut bias = match mask {
        None => None,
        Some(mask) => {
            let mask = if cx.element_type(mask) == PrimitiveType::Pred {
                mask_of(cx, mask, element_type, f64::NEG_INFINITY)?
            } else {
                mask
            };
            let mask = cx.convert(mask, element_type)?;
            let sizes = cx.sizes(mask);
            let missing = keys - sizes.last().copied().unwrap_or(keys);
            let mut padding = vec![(0, 0, 0); sizes.len()];
            if let Some(last) = padding.last_mut() {
                last.1 = missing.max(0);
            }
            let none = cx.scalar(element_type, f64::NEG_INFINITY);
            Some(cx.pad(mask, none, &padding)?)
        }
    };
    let lengths = match lengths {
        Some(lengths) => {
            cx.check(cx.sizes(lengths) == q_sizes[..1], || "expected one length for each batch".to_owned())?;
            Some(cx.convert(lengths, PrimitiveType::S32)?)
        }
        None => None,
    };
    let offset = match lengths {
        Some(lengths) if past == 0 => Offset::Each(cx.add_scalar(lengths, -queries as f64)?),
        _ => Offset::Known(past),
    };
    let left = cx.attributes().int_or("left_window_size", -1)?;
    let mut right = cx.attributes().int_or("right_window_size", -1)?;
    if flag(cx, "is_causal", false)? {
        right = if right < 0 { 0 } else { right.min(0) };
    }
    let is_causal = right >= 0;
    if left >= 0 || right >= 0 {
        let distance = distances(cx, [queries, keys], offset)?;
        let mut allowed = None;
        for (limit, direction, sign) in
            [(left, ComparisonDirection::Le, 1.0), (right, ComparisonDirection::Ge, -1.0)]
        {
            if limit < 0 {
                continue;
            }
            let is_near = cx.compare_scalar(direction, distance, sign * limit as f64)?;
            allowed = Some(match allowed {
                Some(allowed) => cx.op(Op::And {}, &[allowed, is_near])?,
                None => is_near,
            });
        }
        if let Some(allowed) = allowed {
            let window = mask_of(cx, allowed, element_type, f64::NEG_INFINITY)?;
            bias = sum(cx, bias, window)?;
        }
    }
    if let Some(lengths) = lengths {
        let sizes = [q_sizes[0], 1, 1, keys];
        let key = cx.iota(PrimitiveType::S32, &sizes, 3)?;
        let lengths = cx.broadcast(lengths, &sizes, &[0])?;
        let exists = cx.compare(ComparisonDirection::Lt, key, lengths)?;
        let padding = mask_of(cx, exists, element_type, f64::NEG_INFINITY)?;
        bias = sum(cx, bias, padding)?;
    }
    let default = 1.0 / (q_sizes[3].max(1) as f64).sqrt();
    let has_scale = cx.attributes().has("scale");
    let scale = if has_scale { float(cx, "scale", 0.0)? } else { default };
    let precision = match cx.attributes().int_or("softmax_precision", 0)? {
        1 => Some(PrimitiveType::F32),
        11 => Some(PrimitiveType::F64),
        10 => Some(PrimitiveType::F16),
        16 => Some(PrimitiveType::Bf16),
        _ => None,
    };
    let may_exclude_all = mask.is_some() || lengths.is_some() || left >= 0 && !is_causal;
    let softcap = float(cx, "softcap", 0.0)?;
    let parts = Parts { q, k, v, bias, may_exclude_all, scale, softcap, precision };
    let Attended { y, stages } = attend(cx, &parts)?;
    let y = if is_flat { joined_heads(cx, y)? } else { y };
    let stage = cx.attributes().int_or("qk_matmul_output_mode", 0)?;
    let stage = usize::try_from(stage).ok().and_then(|stage| stages.get(stage).copied());
    let stage = stage.ok_or_else(|| cx.invalid("qk_matmul_output_mode: expected 0 to 3"))?;
    let count = cx.node().output_types.len();
    Ok([y, k, v, stage].into_iter().take(count).collect())
}

/// A recurrence over positions whose state is a matrix for each head. Inputs: queries, keys, values
/// (batch, positions, heads * features), the state before, decays, and strengths.
fn linear_attention(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let (q, k, v) = (required(cx, 0)?, required(cx, 1)?, required(cx, 2)?);
    let (past, decay, beta) = (optional(cx, 3)?, optional(cx, 4)?, optional(cx, 5)?);
    let heads = cx.attributes().int("q_num_heads")?;
    let kv_heads = cx.attributes().int("kv_num_heads")?;
    let (has_decay, has_delta) = match cx.text_or("update_rule", "gated_delta")? {
        "linear" => (false, false),
        "gated" => (true, false),
        "delta" => (false, true),
        "gated_delta" => (true, true),
        other => return Err(cx.invalid(format!("update_rule: '{other}' does not exist"))),
    };
    cx.check(has_decay == decay.is_some() && has_delta == beta.is_some(), || {
        "the inputs do not fit the update_rule".to_owned()
    })?;
    let element_type = cx.element_type(q);
    let wide = PrimitiveType::F32;
    let (q, k, v) = (cx.convert(q, wide)?, cx.convert(k, wide)?, cx.convert(v, wide)?);
    cx.check(cx.rank(q) == 3 && cx.rank(k) == 3 && cx.rank(v) == 3, || {
        "expected three dimensions".to_owned()
    })?;
    let (q, k, v) =
        (split_heads(cx, q, heads)?, split_heads(cx, k, kv_heads)?, split_heads(cx, v, kv_heads)?);
    let (q_sizes, v_sizes) = (cx.sizes(q), cx.sizes(v));
    let [batch, _, steps, depth] = [q_sizes[0], q_sizes[1], q_sizes[2], q_sizes[3]];
    let width = v_sizes[3];
    let fits = cx.sizes(k) == [batch, kv_heads, steps, depth]
        && v_sizes == [batch, kv_heads, steps, width]
        && heads % kv_heads == 0
        && depth > 0;
    cx.check(fits, || format!("{heads} heads and {kv_heads} heads do not fit"))?;
    let state_sizes = [batch, kv_heads, depth, width];
    let state_type = past.map_or(element_type, |past| cx.element_type(past));
    let state = match past {
        Some(past) => {
            cx.check(cx.sizes(past) == state_sizes, || format!("the state must be {}", list(&state_sizes)))?;
            cx.convert(past, wide)?
        }
        None => cx.splat(wide, &state_sizes, 0.0)?,
    };
    // Positions first, so that a step takes a row.
    let first = |cx: &mut NodeContext<'_, '_>, x: InstructionId| cx.transpose(x, &[2, 0, 1, 3]);
    let mut carried = vec![cx.splat(wide, &[steps, batch, heads, width], 0.0)?, state];
    for x in [q, k, v] {
        let x = first(cx, x)?;
        carried.push(x);
    }
    for (x, name) in [(decay, "decay"), (beta, "beta")] {
        let Some(x) = x else { continue };
        let x = cx.convert(x, wide)?;
        let sizes = cx.sizes(x);
        cx.check(sizes.len() == 3 && sizes[..2] == [batch, steps], || format!("{name} does not fit"))?;
        let per_head = sizes[2] / kv_heads.max(1);
        let x = if sizes[2] == 1 {
            cx.broadcast(x, &[batch, steps, 1, kv_heads, 1], &[0, 1, 2])?
        } else {
            cx.check(
                sizes[2] == kv_heads * per_head && matches!(per_head, d if d == 1 || d == depth),
                || format!("{name} does not fit {kv_heads} heads"),
            )?;
            x
        };
        let per_head = if sizes[2] == 1 { 1 } else { per_head };
        let x = cx.reshape(x, &[batch, steps, kv_heads, per_head])?;
        carried.push(cx.transpose(x, &[1, 0, 2, 3])?);
    }
    let given = float(cx, "scale", 0.0)?;
    let scale = if given == 0.0 { 1.0 / (depth as f64).sqrt() } else { given };
    let count = i32::try_from(steps).map_err(|_| cx.invalid("too many steps"))?;
    let results = cx.counted_loop(count, &carried, |cx, index, carried| {
        let mut rows = Vec::new();
        for &array in &carried[2..] {
            rows.push(cx.dynamic_row(array, index)?);
        }
        let mut state = carried[1];
        let (q, k, mut v) = (rows[0], rows[1], rows[2]);
        let mut others = rows[3..].iter().copied();
        if has_decay && let Some(decay) = others.next() {
            let factor = cx.op(Op::Exp {}, &[decay])?;
            let sizes = cx.sizes(factor);
            let factor = if sizes[2] == 1 {
                let factor = cx.reshape(factor, &sizes[..2])?;
                cx.broadcast(factor, &state_sizes, &[0, 1])?
            } else {
                cx.broadcast(factor, &state_sizes, &[0, 1, 2])?
            };
            state = cx.mul(state, factor)?;
        }
        if has_delta && let Some(beta) = others.next() {
            let known = dot(cx, state, k, 2, 2, 2)?;
            let rest = cx.sub(v, known)?;
            let sizes = cx.sizes(v);
            let strength = cx.reshape(beta, &sizes[..2])?;
            let strength = cx.broadcast(strength, &sizes, &[0, 1])?;
            v = cx.mul(strength, rest)?;
        }
        let (column, row) =
            (cx.broadcast(k, &state_sizes, &[0, 1, 2])?, cx.broadcast(v, &state_sizes, &[0, 1, 3])?);
        let added = cx.mul(column, row)?;
        state = cx.add(state, added)?;
        let read = repeated(cx, state, heads)?;
        let y = dot(cx, q, read, 2, 2, 2)?;
        let y = cx.mul_scalar(y, scale)?;
        let outputs = cx.with_dynamic_row(carried[0], y, index)?;
        Ok([vec![outputs, state], carried[2..].to_vec()].concat())
    })?;
    let y = cx.transpose(results[0], &[1, 0, 2, 3])?;
    let y = cx.reshape(y, &[batch, steps, heads * width])?;
    let results = [cx.convert(y, element_type)?, cx.convert(results[1], state_type)?];
    let count = cx.node().output_types.len();
    Ok(results.into_iter().take(count).collect())
}
