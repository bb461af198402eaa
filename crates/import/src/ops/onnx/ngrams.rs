//! Counts of sequences of numbers.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule};
use crate::ops::onnx::operands::required;
use bounded::{Indices, Reducer, list};
use hlo::{ComparisonDirection, InstructionId, Op, SliceDimension};
use shape::{Literal, PrimitiveType};
use support::{Error, Result};

pub(crate) const RULES: &[Rule] = &[rule("OnnxTfIdfVectorizer", tf_idf)];

/// Most comparisons of a node.
const MOST: i64 = 1 << 32;

/// The number of times that each sequence of a pool occurs in a row, with elements left out between
/// its own.
fn tf_idf(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let attributes = cx.attributes();
    if !attributes.has("pool_int64s") {
        return Err(Error::unsupported("it works on strings: only a pool of integers is supported"));
    }
    let pool = attributes.ints("pool_int64s")?;
    let begins = attributes.ints("ngram_counts")?;
    let columns = attributes.ints("ngram_indexes")?;
    let (least, most) = (attributes.int("min_gram_length")?, attributes.int("max_gram_length")?);
    let most_skips = attributes.int("max_skip_count")?;
    let width = columns.iter().copied().max().unwrap_or(-1).saturating_add(1);
    let own = cx.sizes(x);
    let sizes = match own[..] {
        [length] => [1, length],
        [rows, length] => [rows, length],
        _ => return Err(cx.invalid(format!("expected one or two dimensions, got {}", list(&own)))),
    };
    let valid = columns.iter().all(|column| (0..1 << 24).contains(column))
        && begins.iter().all(|begin| (0..=pool.len() as i64).contains(begin))
        && begins.is_sorted()
        && (1..=most).contains(&least)
        && (0..1 << 20).contains(&most_skips);
    cx.check(valid, || "the attributes do not describe a pool".to_owned())?;
    let x = cx.reshape(x, &sizes)?;
    let x = cx.convert(x, PrimitiveType::S64)?;
    let mut counts = cx.splat(PrimitiveType::F32, &[width, sizes[0]], 0.0)?;
    let mut first = 0usize;
    for (k, &begin) in begins.iter().enumerate() {
        let n = k as i64 + 1;
        let end = begins.get(k + 1).copied().unwrap_or(pool.len() as i64);
        let grams = (end - begin) / n;
        let of_grams = columns.get(first..first + grams as usize);
        let of_grams = of_grams.ok_or_else(|| cx.invalid("there are fewer ngram_indexes than sequences"))?;
        first += grams as usize;
        if grams == 0 || !(least..=most).contains(&n) {
            continue;
        }
        let part = &pool[begin as usize..(begin + grams * n) as usize];
        let part = cx.literal(Literal::from_elements(&[grams, n], part));
        let of_grams = cx.integers(PrimitiveType::S64, of_grams)?;
        // Without a second element, nothing is left out.
        for skips in 0..=if n == 1 { 0 } else { most_skips } {
            let step = skips + 1;
            let places = sizes[1] - (n - 1) * step;
            if places <= 0 {
                break;
            }
            let grid = [sizes[0], grams, places];
            let work = cx.checked_product(&[sizes[0], grams, places, n])?;
            cx.check(work <= MOST, || format!("{work} comparisons are too many"))?;
            let mut matches: Option<InstructionId> = None;
            for element in 0..n {
                let start = element * step;
                let rows = SliceDimension { start: 0, limit: sizes[0], stride: 1 };
                let row = SliceDimension { start, limit: start + places, stride: 1 };
                let values = cx.slice(x, vec![rows, row])?;
                let values = cx.broadcast(values, &grid, &[0, 2])?;
                let wanted = cx.slice_in(part, 1, element, element + 1)?;
                let wanted = cx.reshape(wanted, &[grams])?;
                let wanted = cx.broadcast(wanted, &grid, &[1])?;
                let is_same = cx.compare(ComparisonDirection::Eq, values, wanted)?;
                matches = Some(match matches {
                    Some(matches) => cx.op(Op::And {}, &[matches, is_same])?,
                    None => is_same,
                });
            }
            let matches = matches.ok_or_else(|| cx.invalid("a sequence has no elements"))?;
            let ones = cx.convert(matches, PrimitiveType::F32)?;
            let sums = cx.reduce(ones, Reducer::Add, &[2])?;
            let sums = cx.transpose(sums, &[1, 0])?;
            counts = cx.scatter(counts, of_grams, sums, Indices::Scalars, Reducer::Add)?;
        }
    }
    let mut y = cx.transpose(counts, &[1, 0])?;
    let mode = cx.text_or("mode", "TF")?;
    if mode == "IDF" {
        let occurs = cx.compare_scalar(ComparisonDirection::Gt, y, 0.0)?;
        y = cx.convert(occurs, PrimitiveType::F32)?;
    }
    let weights = cx.attributes().floats_or("weights", Vec::new())?;
    if mode != "TF" && !weights.is_empty() {
        cx.check(weights.len() as i64 == width, || {
            format!("{} weights for {width} sequences", weights.len())
        })?;
        let weights = cx.literal(Literal::from_elements(&[width], &weights));
        let sizes = cx.sizes(y);
        let weights = cx.broadcast(weights, &sizes, &[1])?;
        y = cx.mul(y, weights)?;
    }
    if own.len() == 1 { cx.reshape(y, &[width]) } else { Ok(y) }
}
