//! Sparse sums of embeddings, tables of integers, and hashes.

use super::contraction::reshaped;
use super::quantized::{Choice, convert_with_states};
use super::{Row, cast};
use crate::convert::Op;
use support::{Error, Result};
use tf::DataType;
use tf::foreign::{Ref, flag, int, ty};

pub(super) const ROWS: &[Row] = &[
    ("EMBEDDING_LOOKUP_SPARSE", embedding_lookup_sparse),
    ("HASHTABLE_LOOKUP", table_lookup),
    ("LSH_PROJECTION", |op| convert_with_states(op, &[Choice::Byte("type", 0)], &[])),
];

/// Rows of `table`, by their numbers.
fn rows(op: &mut Op<'_, '_>, table: Ref, t: DataType, numbers: Ref) -> Result<Ref> {
    let axis = op.int(0)?;
    let attributes = [
        ty("Tparams", t),
        ty("Tindices", DataType::Int32),
        ty("Taxis", DataType::Int32),
        int("batch_dims", 0),
    ];
    op.node("GatherV2", &[table, numbers, axis], attributes)
}

/// Operands: numbers of rows, `[n]`; their places in a sparse array, `[n, rank]`, in order; its
/// sizes; weights, `[n]`; and the table. The last dimension of the array becomes one row: the sum
/// of the rows with their weights, or that divided by the norm of the weights.
fn embedding_lookup_sparse(op: &mut Op<'_, '_>) -> Result<()> {
    const SUM: i8 = 0;
    const MEAN: i8 = 1;
    const ROOT: i8 = 2;
    let t = op.data_type(4)?;
    let of_row = op.sizes(4)?.get(1..).unwrap_or_default().to_vec();
    // Sizes that the caller supplies must be those for which the model was written.
    let outer = match op.constant_ints(2)? {
        Some(mut sizes) => {
            sizes.pop();
            sizes
        }
        None => {
            let sizes = &op.result(0)?.sizes;
            sizes[..sizes.len().saturating_sub(of_row.len())].to_vec()
        }
    };
    if op.sizes(1)?.len() != 2 || op.sizes(1)?[1] != outer.len() as i64 + 1 {
        return Err(Error::invalid("the places do not fit the sizes of the sparse array"));
    }
    let count =
        outer.iter().try_fold(1i64, |count, &size| count.checked_mul(size).filter(|count| *count >= 0));
    let count = count.filter(|count| i32::try_from(*count).is_ok());
    let count = count.ok_or_else(|| Error::invalid(format!("the sparse array has sizes {outer:?}")))?;
    // The number of a place counts in the order of the dimensions; the last one does not count.
    let mut strides = vec![0; outer.len() + 1];
    let mut stride = 1;
    for k in (0..outer.len()).rev() {
        strides[k] = stride;
        stride *= outer[k].max(1);
    }
    let int32 = DataType::Int32;
    let (places, strides) = (op.input(1)?, op.int_vector(&strides)?);
    let scaled = op.node("Mul", &[places, strides], [ty("T", int32)])?;
    let last = op.int(1)?;
    let sum = [ty("T", int32), ty("Tidx", int32), flag("keep_dims", false)];
    let buckets = op.node("Sum", &[scaled, last], sum)?;
    let (numbers, table, weights) = (op.input(0)?, op.input(4)?, op.input(3)?);
    let lookups = op.sizes(0)?.first().copied().unwrap_or(0);
    let found = rows(op, table, t, numbers)?;
    let ones = vec![1; of_row.len()];
    let spread = reshaped(op, weights.clone(), t, &[&[lookups], ones.as_slice()].concat())?;
    let weighted = op.node("Mul", &[found, spread], [ty("T", t)])?;
    let segments = |op: &mut Op<'_, '_>, x: Ref| {
        let count = op.int(count)?;
        let attributes = [ty("T", t), ty("Tindices", int32), ty("Tnumsegments", int32)];
        op.node("UnsortedSegmentSum", &[x, buckets.clone(), count], attributes)
    };
    let mut sums = segments(op, weighted)?;
    let combiner = op.options().byte(0)?;
    if combiner != SUM {
        let totals = match combiner {
            MEAN => segments(op, weights.clone())?,
            ROOT => {
                let squares = op.node("Square", std::slice::from_ref(&weights), [ty("T", t)])?;
                let sums = segments(op, squares)?;
                op.node("Sqrt", &[sums], [ty("T", t)])?
            }
            other => return Err(Error::unsupported(format!("combination {other} is not supported"))),
        };
        // A row without lookups remains zero.
        let one_each = op.node("OnesLike", &[weights], [ty("T", t)])?;
        let counts = segments(op, one_each)?;
        let (zero, one) = (op.scalar(t, 0.0)?, op.scalar(t, 1.0)?);
        let is_used = op.node("Greater", &[counts, zero], [ty("T", t)])?;
        let divisors = op.node("SelectV2", &[is_used, totals, one], [ty("T", t)])?;
        let divisors = reshaped(op, divisors, t, &[&[count], ones.as_slice()].concat())?;
        sums = op.node("RealDiv", &[sums, divisors], [ty("T", t)])?;
    }
    let y = reshaped(op, sums, t, &[outer, of_row].concat())?;
    op.set(0, y)
}

/// Operands: keys to look up, the keys of a table, and its rows. Results: the rows, or zeros for
/// unknown keys, and which keys are known.
fn table_lookup(op: &mut Op<'_, '_>) -> Result<()> {
    let t = op.data_type(2)?;
    let int32 = DataType::Int32;
    if t.primitive_type().is_none() {
        return Err(Error::unsupported("tables of strings are looked up on the host"));
    }
    let (wanted, keys, table) = (op.input(0)?, op.input(1)?, op.input(2)?);
    let count = op.sizes(0)?.first().copied().unwrap_or(0);
    let column = reshaped(op, wanted, int32, &[count, 1])?;
    let agrees = op.node("Equal", &[column, keys], [ty("T", int32)])?;
    let axis = op.int(1)?;
    let is_known =
        op.node("Any", &[agrees.clone(), axis.clone()], [ty("Tidx", int32), flag("keep_dims", false)])?;
    let agrees = cast(op, agrees, DataType::Bool, int32)?;
    let numbers =
        op.node("ArgMax", &[agrees, axis], [ty("T", int32), ty("Tidx", int32), ty("output_type", int32)])?;
    let found = rows(op, table, t, numbers)?;
    let of_row = op.sizes(2)?.get(1..).unwrap_or_default().len();
    let spread =
        reshaped(op, is_known.clone(), DataType::Bool, &[&[count], vec![1; of_row].as_slice()].concat())?;
    let zero = op.scalar(t, 0.0)?;
    let y = op.node("SelectV2", &[spread, found, zero], [ty("T", t)])?;
    op.set(0, y)?;
    if op.output_count() > 1 {
        let hits = cast(op, is_known, DataType::Bool, op.result(1)?.data_type)?;
        op.set(1, hits)?;
    }
    Ok(())
}
