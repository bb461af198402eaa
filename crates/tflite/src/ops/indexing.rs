//! Gather, scatter, selection, and search.

use super::{Row, cast};
use crate::convert::Op;
use support::Result;
use tf::DataType;
use tf::foreign::{Outputs, Ref, flag, int, ty};

pub(super) const ROWS: &[Row] = &[
    ("BUCKETIZE", bucketize),
    ("DYNAMIC_UPDATE_SLICE", dynamic_update_slice),
    ("GATHER", gather),
    ("GATHER_ND", gather_nd),
    ("NON_MAX_SUPPRESSION_V4", |op| non_max_suppression(op, "NonMaxSuppressionV4")),
    ("NON_MAX_SUPPRESSION_V5", |op| non_max_suppression(op, "NonMaxSuppressionV5")),
    ("ONE_HOT", one_hot),
    ("SCATTER_ND", scatter_nd),
    ("SPARSE_TO_DENSE", sparse_to_dense),
    ("TOPK_V2", top_k),
    ("UNIQUE", unique),
    ("WHERE", where_true),
];

fn bucketize(op: &mut Op<'_, '_>) -> Result<()> {
    let boundaries = op.options().floats(0)?;
    let x = op.input(0)?;
    let attributes = [ty("T", op.data_type(0)?), tf::foreign::floats("boundaries", &boundaries)];
    let y = op.node("Bucketize", &[x], attributes)?;
    op.set(0, y)
}

fn dynamic_update_slice(op: &mut Op<'_, '_>) -> Result<()> {
    let inputs = op.inputs()?;
    let attributes = [ty("T", op.data_type(0)?), ty("Tindices", op.data_type(2)?)];
    let y = op.node("XlaDynamicUpdateSlice", &inputs, attributes)?;
    op.set(0, y)
}

fn gather(op: &mut Op<'_, '_>) -> Result<()> {
    let (axis, batch) = (op.options().int(0, 0)?, op.options().int(1, 0)?);
    let (table, indices, axis) = (op.input(0)?, op.input(1)?, op.int(axis)?);
    let attributes = [
        ty("Tparams", op.data_type(0)?),
        ty("Tindices", op.data_type(1)?),
        ty("Taxis", DataType::Int32),
        int("batch_dims", batch),
    ];
    let y = op.node("GatherV2", &[table, indices, axis], attributes)?;
    op.set(0, y)
}

fn gather_nd(op: &mut Op<'_, '_>) -> Result<()> {
    let inputs = op.inputs()?;
    let y =
        op.node("GatherNd", &inputs, [ty("Tparams", op.data_type(0)?), ty("Tindices", op.data_type(1)?)])?;
    op.set(0, y)
}

/// The results have the largest size; the number of valid ones is another result.
fn non_max_suppression(op: &mut Op<'_, '_>, name: &str) -> Result<()> {
    let inputs = op.inputs()?;
    let t = op.data_type(0)?;
    let mut attributes = vec![ty("T", t), flag("pad_to_max_output_size", true), flag("_lite", true)];
    if name == "NonMaxSuppressionV4" {
        attributes.push(ty("T_threshold", op.data_type(3)?));
    }
    let results = op.add(name, &inputs, attributes)?;
    op.set_all(results)
}

fn one_hot(op: &mut Op<'_, '_>) -> Result<()> {
    let axis = op.options().int(0, 0)?;
    let inputs = op.inputs()?;
    let attributes = [ty("TI", op.data_type(0)?), ty("T", op.data_type(2)?), int("axis", axis)];
    let y = op.node("OneHot", &inputs, attributes)?;
    op.set(0, y)
}

fn scatter_nd(op: &mut Op<'_, '_>) -> Result<()> {
    let inputs = op.inputs()?;
    let y = op.node("ScatterNd", &inputs, [ty("Tindices", op.data_type(0)?), ty("T", op.data_type(1)?)])?;
    op.set(0, y)
}

fn sparse_to_dense(op: &mut Op<'_, '_>) -> Result<()> {
    let inputs = op.inputs()?;
    // TensorFlow Lite does not validate the indices, either.
    let attributes =
        [ty("Tindices", op.data_type(0)?), ty("T", op.data_type(2)?), flag("validate_indices", false)];
    let y = op.node("SparseToDense", &inputs, attributes)?;
    op.set(0, y)
}

/// A fed count is at most the size of the last dimension.
fn top_k(op: &mut Op<'_, '_>) -> Result<()> {
    let mut inputs = op.inputs()?;
    let (t, index, count) = (op.data_type(0)?, op.result(1)?.data_type, op.data_type(1)?);
    let (is_fed, sizes) = (op.is_fed(1)?, op.sizes(0)?);
    let (Some((&last, others)), true) = (sizes.split_last(), is_fed) else {
        let results = sorted(op, &inputs, index)?;
        return op.set_all(results);
    };
    let fed = std::mem::replace(&mut inputs[1], op.integers(count, &[], &[last])?);
    let results = sorted(op, &inputs, index)?;
    let (one, axis) = (op.int_vector(&[1])?, op.int(0)?);
    let mut shape = op.node("Reshape", &[fed, one], [ty("T", count), ty("Tshape", DataType::Int32)])?;
    if !others.is_empty() {
        let others = op.integers(count, &[others.len() as i64], others)?;
        let attributes = [ty("T", count), int("N", 2), ty("Tidx", DataType::Int32)];
        shape = op.node("ConcatV2", &[others, shape, axis], attributes)?;
    }
    let start = op.integers(count, &[sizes.len() as i64], &vec![0; sizes.len()])?;
    for (k, (whole, element)) in results.into_iter().zip([t, index]).enumerate() {
        let attributes = [ty("T", element), ty("Index", count)];
        let part = op.node("Slice", &[whole, start.clone(), shape.clone()], attributes)?;
        op.set(k, part)?;
    }
    Ok(())
}

fn sorted(op: &mut Op<'_, '_>, inputs: &[Ref], index: DataType) -> Result<Outputs> {
    let attributes = [
        ty("T", op.data_type(0)?),
        ty("Tk", op.data_type(1)?),
        ty("index_type", index),
        flag("sorted", true),
    ];
    op.add("TopKV2", inputs, attributes)
}

fn unique(op: &mut Op<'_, '_>) -> Result<()> {
    let x = op.input(0)?;
    let results =
        op.add("Unique", &[x], [ty("T", op.data_type(0)?), ty("out_idx", op.result(1)?.data_type)])?;
    op.set_all(results)
}

fn where_true(op: &mut Op<'_, '_>) -> Result<()> {
    let x = op.input(0)?;
    let y = op.node("Where", &[x], [ty("T", op.data_type(0)?)])?;
    let y = cast(op, y, DataType::Int64, op.result(0)?.data_type)?;
    op.set(0, y)
}
