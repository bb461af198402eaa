//! Conversion of dimensions and sizes from one data format to another.

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

/// Returns the letters of both formats: 4 or 5 distinct letters, the same in both.
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
        format!("expected src_format and dst_format with the same 4 or 5 distinct letters, got '{source}' and '{target}'")
    })?;
    Ok((source.as_bytes(), target.as_bytes()))
}

/// Returns the position of a letter.
fn position(format: &[u8], letter: u8) -> Option<usize> {
    format.iter().position(|&other| other == letter)
}

/// Maps each dimension number of the source format to the target format. Negative numbers count
/// from the end.
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

/// Permutes the rows of a vector or of a matrix of pairs to the order of the target format. There
/// is one row for each letter of the source format, or one for each spatial letter.
fn permute(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let sizes = cx.sizes(x);
    let (source, target) = formats(cx)?;
    let rank = source.len();
    let rows = sizes.first().copied().unwrap_or_default() as usize;
    let fits = matches!(sizes[..], [_] | [_, 2]) && (rows == rank || rows == rank - 2);
    cx.check(fits, || {
        format!("expected {rank} or {} elements or pairs, got shape {}", rank - 2, list(&sizes))
    })?;
    let row_letters = |format: &[u8]| -> Vec<u8> {
        format.iter().copied().filter(|letter| rows == rank || matches!(letter, b'D' | b'H' | b'W')).collect()
    };
    let (source, target) = (row_letters(source), row_letters(target));
    cx.check(target.len() == rows, || "the formats have letters other than N, C, D, H, and W".to_owned())?;
    let mut parts = Vec::new();
    for letter in target {
        let row = position(&source, letter).unwrap_or_default() as i64;
        parts.push(cx.slice_in(x, 0, row, row + 1)?);
    }
    cx.concatenate(&parts, 0)
}
