//! Custom operators that the user supplies. Those of MediaPipe are in `mediapipe`.

use super::mediapipe;
use crate::convert::Op;
use support::Result;
use tf::foreign::{shape_of, text_bytes, ty};
use tf::proto::ListValue;
use tf::proto::attr_value::Value;

/// Converts a custom operator: one of MediaPipe's to the nodes that compute it, and any other to a
/// node of that op, for which `--custom-call` names a function.
pub(super) fn convert(op: &mut Op<'_, '_>) -> Result<()> {
    let operator = op.operator();
    if let Some(convert) = mediapipe::conversion(&operator.custom, operator.version) {
        return convert(op);
    }
    let mut inputs = Vec::new();
    for k in (0..op.input_count()).filter(|&k| op.has_input(k)).collect::<Vec<_>>() {
        inputs.push(op.input(k)?);
    }
    let mut shapes = ListValue::default();
    for k in 0..op.output_count() {
        shapes.shape.push(shape_of(&op.result(k)?.sizes));
    }
    let attributes = [
        ty("T", op.result(0)?.data_type),
        ("_output_shapes", Value::List(Box::new(shapes))),
        text_bytes("custom_options", operator.custom_options),
    ];
    let results = op.add_custom(&operator.custom, &inputs, attributes);
    op.set_all(results)
}
