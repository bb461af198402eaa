//! Dimensions and sizes in one data format, wanted in another.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule};
use bounded::list;
use hlo::{ComparisonDirection, InstructionId, Op};
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("DataFormatDimMap", dimension_map).types("T", POSITIONS),
    rule("DataFormatVecPermute", permute).types("T", POSITIONS),
];

const POSITIONS: &[tf::DataType] = &[tf::DataType::Int32, tf::DataType::Int64];

/// The letters of both formats: 4 or 5, each once, the same in both.
fn formats<'p>(cx: &NodeContext<'_, 'p>) -> Result<(&'p [u8], &'p [u8])> {
    let (source, target) = (cx.text_or("src_format", "NHWC")?, cx.text_or("dst_format", "NCHW")?);
    let sorted = |format: &str| {
        let mut letters = format.as_bytes().to_vec();
        letters.sort_unstable();
        letters
    };
    let letters = sorted(source);
    let are_letters = matches!(letters.len(), 4 | 5) && letters.windows(2).all(|pair| pair[0] != pair[1]);
    cx.check(are_letters && letters == sorted(target), || {
        format!("src_format '{source}' and dst_format '{target}' must be the same 4 or 5 different letters")
    })?;
    Ok((source.as_bytes(), target.as_bytes()))
}

/// Where a letter is.
fn position(format: &[u8], letter: u8) -> Option<usize> {
    format.iter().position(|&other| other == letter)
}

/// Each dimension number of the source format, negative ones counted from the end, as that of the target format.
fn dimension_map(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let (source, target) = formats(cx)?;
    let rank = cx.splat_like(x, source.len() as f64)?;
    let above = cx.add(x, rank)?;
    let dimension = cx.op(Op::Remainder {}, &[above, rank])?;
    let mut result = cx.splat_like(x, 0.0)?;
    for (from, &letter) in source.iter().enumerate() {
        let is_this = cx.compare_scalar(ComparisonDirection::Eq, dimension, from as f64)?;
        let to = cx.splat_like(x, position(target, letter).unwrap_or_default() as f64)?;
        result = cx.select(is_this, to, result)?;
    }
    Ok(result)
}

/// The rows of a vector or of a matrix of pairs, one for each letter of the source format (or for each but batch and
/// features), in the order of the target format.
fn permute(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let sizes = cx.sizes(x);
    let (source, target) = formats(cx)?;
    let rank = source.len();
    let rows = sizes.first().copied().unwrap_or_default() as usize;
    let fits = matches!(sizes[..], [_] | [_, 2]) && (rows == rank || rows == rank - 2);
    cx.check(fits, || {
        format!(
            "the input must have {rank} or {} elements, or as many pairs, but has shape {}",
            rank - 2,
            list(&sizes)
        )
    })?;
    let kept = |format: &[u8]| -> Vec<u8> {
        format.iter().copied().filter(|letter| rows == rank || matches!(letter, b'D' | b'H' | b'W')).collect()
    };
    let (source, target) = (kept(source), kept(target));
    cx.check(target.len() == rows, || "the formats have other letters than N, C, D, H and W".to_owned())?;
    let mut parts = Vec::new();
    for letter in target {
        let row = position(&source, letter).unwrap_or_default() as i64;
        parts.push(cx.slice_in(x, 0, row, row + 1)?);
    }
    cx.concatenate(&parts, 0)
}
