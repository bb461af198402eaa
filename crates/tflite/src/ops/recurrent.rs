//! Recurrent operators. Each becomes one op of this compiler, as in [`super::quantized`], which
//! takes the values of the operator's variables as inputs and returns their new values after the
//! other results.

use super::Row;
use super::quantized::Choice::{self, Byte, Flag, Float, Int};
use super::quantized::convert_with_states;
use crate::convert::Op;
use support::Result;

pub(super) const ROWS: &[Row] = &[
    ("BIDIRECTIONAL_SEQUENCE_LSTM", |op| convert_with_states(op, BIDIRECTIONAL_LSTM, &[35, 36, 37, 38])),
    ("BIDIRECTIONAL_SEQUENCE_RNN", |op| convert_with_states(op, BIDIRECTIONAL_RNN, &[4, 8])),
    ("LSTM", lstm),
    ("RNN", |op| convert_with_states(op, RNN, &[4])),
    ("SVDF", |op| convert_with_states(op, SVDF, &[4])),
    ("UNIDIRECTIONAL_SEQUENCE_LSTM", |op| convert_with_states(op, SEQUENCE_LSTM, &[18, 19])),
    ("UNIDIRECTIONAL_SEQUENCE_RNN", |op| convert_with_states(op, SEQUENCE_RNN, &[4])),
];

const RNN: &[Choice] = &[Byte("activation", 0), Flag("asymmetric_quantize_inputs", 1)];
const SEQUENCE_RNN: &[Choice] =
    &[Flag("time_major", 0), Byte("activation", 1), Flag("asymmetric_quantize_inputs", 2)];
const BIDIRECTIONAL_RNN: &[Choice] = &[
    Flag("time_major", 0),
    Byte("activation", 1),
    Flag("merge_outputs", 2),
    Flag("asymmetric_quantize_inputs", 3),
];
const SVDF: &[Choice] = &[Int("rank", 0, 0), Byte("activation", 1), Flag("asymmetric_quantize_inputs", 2)];
const LSTM: &[Choice] = &[
    Byte("activation", 0),
    Float("cell_clip", 1),
    Float("proj_clip", 2),
    Flag("asymmetric_quantize_inputs", 4),
];
const SEQUENCE_LSTM: &[Choice] = &[
    Byte("activation", 0),
    Float("cell_clip", 1),
    Float("proj_clip", 2),
    Flag("time_major", 3),
    Flag("asymmetric_quantize_inputs", 4),
];
const BIDIRECTIONAL_LSTM: &[Choice] = &[
    Byte("activation", 0),
    Float("cell_clip", 1),
    Float("proj_clip", 2),
    Flag("merge_outputs", 3),
    Flag("time_major", 4),
    Flag("asymmetric_quantize_inputs", 5),
];

/// One step. The basic kernel has its state in inputs and outputs instead of variables.
fn lstm(op: &mut Op<'_, '_>) -> Result<()> {
    const BASIC: i8 = 1;
    if op.options().byte(3)? == BASIC {
        return convert_with_states(op, &[Byte("activation", 0)], &[]);
    }
    convert_with_states(op, LSTM, &[18, 19])
}
