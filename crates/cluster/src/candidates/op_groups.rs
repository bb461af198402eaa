//! The groups of ops that `--tf_xla_ops_to_cluster` can name.

use crate::kernels::Kernels;
use std::collections::BTreeSet;
use support::{Error, Result};

/// Ops of each group.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "PW",
        &[
            "ComplexAbs",
            "Angle",
            "Conj",
            "Abs",
            "Acos",
            "Acosh",
            "Asin",
            "Atan",
            "Atanh",
            "Ceil",
            "Cos",
            "Cosh",
            "Sin",
            "Exp",
            "Expm1",
            "Floor",
            "IsFinite",
            "IsInf",
            "IsNan",
            "Inv",
            "Reciprocal",
            "Log",
            "Log1p",
            "Invert",
            "LogicalNot",
            "Ndtri",
            "Neg",
            "Rint",
            "Round",
            "Rsqrt",
            "Sigmoid",
            "Sign",
            "Sinh",
            "Softplus",
            "Softsign",
            "Sqrt",
            "Square",
            "Tan",
            "Tanh",
            "Real",
            "Imag",
            "Erf",
            "Erfc",
            "Erfinv",
            "Lgamma",
            "Digamma",
            "Add",
            "AddV2",
            "Sub",
            "Mul",
            "Div",
            "Atan2",
            "Complex",
            "DivNoNan",
            "MulNoNan",
            "FloorDiv",
            "Xlogy",
            "Xlog1py",
            "Xdivy",
            "FloorMod",
            "BitwiseAnd",
            "BitwiseOr",
            "BitwiseXor",
            "LeftShift",
            "RightShift",
            "LogicalAnd",
            "LogicalOr",
            "Mod",
            "Maximum",
            "Minimum",
            "RealDiv",
            "ReciprocalGrad",
            "RsqrtGrad",
            "SqrtGrad",
            "TruncateDiv",
            "TruncateMod",
            "Equal",
            "NotEqual",
            "Greater",
            "GreaterEqual",
            "Less",
            "LessEqual",
            "SigmoidGrad",
            "SoftplusGrad",
            "SoftsignGrad",
            "TanhGrad",
            "Pow",
            "SquaredDifference",
            "ApproximateEqual",
            "AddN",
            "Bitcast",
            "Cast",
            "ClipByValue",
            "Const",
            "Empty",
            "Identity",
            "IdentityN",
            "Relu",
            "Relu6",
            "ReluGrad",
            "Relu6Grad",
            "LeakyReluGrad",
            "Elu",
            "EluGrad",
            "Selu",
            "SeluGrad",
            "Select",
            "SelectV2",
            "Transpose",
            "ConjugateTranspose",
            "_UnaryOpsComposition",
            "CollectiveReduceV2",
            "CollectiveAssignGroupV2",
            "PlaceholderWithDefault",
            "PreventGradient",
            "StopGradient",
            "Snapshot",
            "_EagerConst",
        ],
    ),
    ("RED", &["All", "Any", "Min", "Max", "Mean", "Prod", "Sum"]),
    (
        "PWRED",
        &["ArgMax", "ArgMin", "DiagPart", "Softmax", "SparseSoftmaxCrossEntropyWithLogits", "LogSoftmax"],
    ),
    (
        "REDUCEWINDOW",
        &["ArgMax", "ArgMin", "DiagPart", "Softmax", "SparseSoftmaxCrossEntropyWithLogits", "LogSoftmax"],
    ),
    ("REDUCEWINDOWPW", &["BiasAddGrad", "LRN", "LRNGrad"]),
    (
        "BN",
        &[
            "FusedBatchNorm",
            "FusedBatchNormV2",
            "FusedBatchNormV3",
            "_FusedBatchNormEx",
            "FusedBatchNormGrad",
            "FusedBatchNormGradV2",
            "FusedBatchNormGradV3",
        ],
    ),
    ("Conv", &["_FusedConv2D"]),
    ("SORT", &["TopKV2"]),
    (
        "MISC",
        &[
            "ApproxTopK",
            "BroadcastTo",
            "ExpandDims",
            "Fill",
            "NoOp",
            "Range",
            "Rank",
            "Reshape",
            "Shape",
            "ShapeN",
            "Size",
            "Squeeze",
            "Transpose",
            "ZerosLike",
            "OnesLike",
            "BiasAdd",
            "BroadcastArgs",
            "BroadcastGradientArgs",
            "OneHot",
            "Concat",
            "ConcatV2",
            "ConcatOffset",
            "Const",
            "MirrorPad",
            "MirrorPadGrad",
            "Pack",
            "Pad",
            "PadV2",
            "Reverse",
            "ReverseV2",
            "ReverseSequence",
            "Slice",
            "Split",
            "SplitV",
            "StridedSlice",
            "StridedSliceGrad",
            "ResourceStridedSliceAssign",
            "Tile",
            "InvertPermutation",
            "Unpack",
            "DeviceIndex",
            "TensorStridedSliceUpdate",
            "XlaConcatND",
            "XlaSplitND",
        ],
    ),
];

/// The ops selected by a list of groups and op names. `FUSIBLE` selects all groups. An op that is
/// in no group must be known to the compiler.
pub(crate) fn ops(list: &str, kernels: &dyn Kernels) -> Result<BTreeSet<String>> {
    let mut selected = BTreeSet::new();
    for word in list.split(',').filter(|word| !word.is_empty()) {
        let mut is_group = false;
        for (name, ops) in GROUPS {
            // Earlier versions named the MISC group SMALL.
            if word == "FUSIBLE" || word == *name || (word == "SMALL" && *name == "MISC") {
                is_group = true;
                selected.extend(ops.iter().map(|&op| op.to_owned()));
            }
        }
        if is_group {
            continue;
        }
        if !kernels.knows(word) {
            return Err(Error::invalid(format!(
                "The operation '{word}' passed to --tf_xla_ops_to_cluster is not supported by XLA."
            )));
        }
        selected.insert(word.to_owned());
    }
    Ok(selected)
}

/// The ops listed in `--tf_xla_cluster_exclude_ops`. The compiler must know each of them.
pub(crate) fn excluded(list: &str, kernels: &dyn Kernels) -> Result<BTreeSet<String>> {
    let mut ops = BTreeSet::new();
    for op in list.split(',').filter(|op| !op.is_empty()) {
        if !kernels.knows(op) {
            return Err(Error::invalid(format!(
                "The operation '{op}' passed to --tf_xla_cluster_exclude_ops is not supported by XLA."
            )));
        }
        ops.insert(op.to_owned());
    }
    Ok(ops)
}
