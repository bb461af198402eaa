//! Resizing of images.

use super::Row;
use crate::convert::Op;
use support::Result;
use tf::DataType;
use tf::foreign::{flag, ty};

pub(super) const ROWS: &[Row] = &[
    ("RESIZE_BILINEAR", |op| resize(op, "ResizeBilinear", 2)),
    ("RESIZE_NEAREST_NEIGHBOR", |op| resize(op, "ResizeNearestNeighbor", 0)),
];

/// `field` is the first of two options: whether corners are aligned, and whether pixels have their
/// centers at halves.
fn resize(op: &mut Op<'_, '_>, name: &str, field: usize) -> Result<()> {
    let aligns = op.options().bool(field, false)?;
    let is_centered = op.options().bool(field + 1, false)?;
    if name == "ResizeNearestNeighbor" && aligns && is_centered {
        return resize_by_both(op);
    }
    let inputs = op.inputs()?;
    let attributes =
        [ty("T", op.data_type(0)?), flag("align_corners", aligns), flag("half_pixel_centers", is_centered)];
    let y = op.node(name, &inputs, attributes)?;
    op.set(0, y)
}

/// Copies the nearest pixels with both options, which TensorFlow refuses.
fn resize_by_both(op: &mut Op<'_, '_>) -> Result<()> {
    let size = op.required_ints(1, "the size of images with aligned corners")?;
    let (mut image, t) = (op.input(0)?, op.data_type(0)?);
    let sizes = op.sizes(0)?;
    for (dimension, to) in (1..3).zip(size) {
        let from = sizes[dimension];
        let scale = if to > 1 { (from - 1) as f32 / (to - 1) as f32 } else { from as f32 / to as f32 };
        let source = |pixel: i64| (((pixel as f32 + 0.5) * scale).round() as i64).clamp(0, from - 1);
        let sources = op.int_vector(&(0..to).map(source).collect::<Vec<_>>())?;
        let axis = op.int(dimension as i64)?;
        let attributes = [ty("Tparams", t), ty("Tindices", DataType::Int32), ty("Taxis", DataType::Int32)];
        image = op.node("GatherV2", &[image, sources, axis], attributes)?;
    }
    op.set(0, image)
}
