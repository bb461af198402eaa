//! The ops of tensor arrays. Their three versions differ in what a handle is, which does not matter here.

use crate::lists::tensor_arrays::{
    concat, gather, gradient, pack, read, scatter, size, split, tensor_array, unpack, write,
};
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule, rule_many, rule_values};

pub(crate) const RULES: &[Rule] = &[
    rule_values("TensorArray", tensor_array).types("dtype", ALL),
    rule_values("TensorArrayV2", tensor_array).types("dtype", ALL),
    rule_values("TensorArrayV3", tensor_array).types("dtype", ALL),
    rule_values("TensorArrayGrad", |cx| gradient(cx, false)),
    rule_values("TensorArrayGradV2", |cx| gradient(cx, false)),
    rule_values("TensorArrayGradV3", |cx| gradient(cx, false)),
    rule_values("TensorArrayGradWithShape", |cx| gradient(cx, true)),
    rule_values("TensorArrayWrite", write).types("T", ALL).effect(),
    rule_values("TensorArrayWriteV2", write).types("T", ALL).effect(),
    rule_values("TensorArrayWriteV3", write).types("T", ALL).effect(),
    rule("TensorArrayRead", read).types("dtype", ALL),
    rule("TensorArrayReadV2", read).types("dtype", ALL),
    rule("TensorArrayReadV3", read).types("dtype", ALL),
    rule("TensorArrayGather", gather).types("dtype", ALL),
    rule("TensorArrayGatherV2", gather).types("dtype", ALL),
    rule("TensorArrayGatherV3", gather).types("dtype", ALL),
    rule_values("TensorArrayScatter", scatter).types("T", ALL).effect(),
    rule_values("TensorArrayScatterV2", scatter).types("T", ALL).effect(),
    rule_values("TensorArrayScatterV3", scatter).types("T", ALL).effect(),
    rule_many("TensorArrayConcat", concat).types("dtype", ALL),
    rule_many("TensorArrayConcatV2", concat).types("dtype", ALL),
    rule_many("TensorArrayConcatV3", concat).types("dtype", ALL),
    rule_values("TensorArraySplit", split).types("T", ALL).effect(),
    rule_values("TensorArraySplitV2", split).types("T", ALL).effect(),
    rule_values("TensorArraySplitV3", split).types("T", ALL).effect(),
    rule("TensorArrayPack", pack).types("dtype", ALL),
    rule_values("TensorArrayUnpack", unpack).types("T", ALL).effect(),
    rule("TensorArraySize", size),
    rule("TensorArraySizeV2", size),
    rule("TensorArraySizeV3", size),
    rule_values("TensorArrayClose", |_| Ok(Vec::new())),
    rule_values("TensorArrayCloseV2", |_| Ok(Vec::new())),
    rule_values("TensorArrayCloseV3", |_| Ok(Vec::new())),
];
