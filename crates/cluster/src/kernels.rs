//! Questions that clustering asks the compiler.

mod constant_inputs;

pub use constant_inputs::compile_time_constant_inputs;

use tf::DataType;
use tf::proto::NodeDef;

/// A node about which the compiler is asked.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// The node; its inputs are left out.
    pub node: &'a NodeDef,
    /// The types of its inputs.
    pub input_types: &'a [DataType],
    /// The types of its outputs.
    pub output_types: &'a [DataType],
}

/// What a just-in-time compiler can compile.
///
/// Calls of functions and what conditionals and loops do inside is not asked: clustering follows functions itself.
pub trait Kernels {
    /// Whether the op is compiled on a kind of device (`CPU`) for these types and attributes. The error is the reason why
    /// not, for reports.
    fn compiles(&self, candidate: Candidate<'_>, device: &str) -> Result<(), String>;

    /// Whether the compiler knows the op at all, for whatever types.
    fn knows(&self, op: &str) -> bool;

    /// The names of the input arguments whose values a program of this op is compiled for. XLA's answer, unless told
    /// otherwise.
    fn compile_time_constant_inputs(&self, op: &str) -> &[&str] {
        compile_time_constant_inputs(op)
    }

    /// Whether a `StridedSlice`, or its gradient, of known length is compiled without knowing where it begins. XLA's answer is
    /// no.
    fn slices_from_run_time(&self) -> bool {
        false
    }
}

/// A compiler as XLA's passes know theirs: what it wants constant is what XLA wants.
pub(crate) struct LikeXla<'a>(pub(crate) &'a dyn Kernels);

impl Kernels for LikeXla<'_> {
    fn compiles(&self, candidate: Candidate<'_>, device: &str) -> Result<(), String> {
        self.0.compiles(candidate, device)
    }

    fn knows(&self, op: &str) -> bool {
        self.0.knows(op)
    }
}

/// Whether an op looks at its inputs' shapes only: then it does not matter to it whether they are constant.
pub(crate) fn is_metadata_op(op: &str) -> bool {
    matches!(
        op,
        "Rank"
            | "Shape"
            | "ShapeN"
            | "Size"
            | "TensorListElementShape"
            | "TensorListLength"
            | "VariableShape"
    )
}

/// Ops that no program holds, whoever compiles: they steer the executor, stand for something outside of the graph, or
/// make what lives longer than a run.
pub(crate) fn is_of_the_executor(op: &str) -> bool {
    matches!(
        op,
        "Switch"
            | "RefSwitch"
            | "_SwitchN"
            | "Merge"
            | "RefMerge"
            | "_XlaMerge"
            | "Enter"
            | "RefEnter"
            | "Exit"
            | "RefExit"
            | "NextIteration"
            | "RefNextIteration"
            | "LoopCond"
            | "Placeholder"
            | "PlaceholderV2"
            | "VarHandleOp"
            | "_VarHandlesOp"
            | "Variable"
            | "VariableV2"
            | "TemporaryVariable"
            | "DestroyTemporaryVariable"
            | "DestroyResourceOp"
            | "Assign"
            | "AssignAdd"
            | "AssignSub"
            | "_Send"
            | "_Recv"
            | "_HostSend"
            | "_HostRecv"
            | "_XlaLaunch"
            | "XlaLaunch"
            | "_XlaCompile"
            | "_XlaRun"
    )
}
