//! The largest elements.

use crate::context::{NodeContext, list};
use crate::data_types::*;
use crate::rule::{Rule, rule_many};
use hlo::{InstructionId, Op};
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule_many("TopK", top_k_v1).types("T", REAL),
    rule_many("TopKV2", top_k_v2).types("T", REAL).types("Tk", INDICES).types("index_type", INDICES),
];

fn top_k_v1(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let k = cx.node.attributes.int("k")?;
    top_k(cx, k)
}

fn top_k_v2(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let k = cx.constant_i64(1)?;
    top_k(cx, k)
}

/// The `k` largest elements of the last dimension, falling, and their positions; of equal ones the first comes first.
fn top_k(cx: &mut NodeContext<'_, '_>, k: i64) -> Result<Vec<InstructionId>> {
    let x = cx.input(0)?;
    let sizes = cx.sizes(x);
    let columns = sizes.last().copied().unwrap_or(0);
    cx.check(!sizes.is_empty() && (0..=columns).contains(&k), || {
        format!("k = {k} must be between 0 and the last dimension of {}", list(&sizes))
    })?;
    let pair = cx.op(Op::TopK { k, largest: true }, &[x])?;
    let (values, indices) = (cx.tuple_element(pair, 0)?, cx.tuple_element(pair, 1)?);
    let index_type = cx.output_type(1)?;
    Ok(vec![values, cx.convert(indices, index_type)?])
}
