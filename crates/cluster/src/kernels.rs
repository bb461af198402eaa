//! Questions that clustering asks the compiler.

mod constant_inputs;

pub use constant_inputs::compile_time_constant_inputs;

use tf::DataType;
use tf::proto::NodeDef;

/// A node that the compiler is asked about.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// Definition of the node, without its inputs.
    pub node: &'a NodeDef,
    /// Types of its inputs.
    pub input_types: &'a [DataType],
    /// Types of its outputs.
    pub output_types: &'a [DataType],
}

/// Abilities of a just-in-time compiler.
///
/// The compiler is not asked about function calls or about the bodies of conditionals and loops:
/// clustering follows functions itself.
pub trait Kernels {
    /// Checks that the op can be compiled for these types and attributes on a kind of device, such
    /// as `CPU`. The error is the reason, for reports.
    fn compiles(&self, candidate: Candidate<'_>, device: &str) -> Result<(), String>;

    /// True if the compiler supports the op for at least some types.
    fn knows(&self, op: &str) -> bool;

    /// Names of the input arguments whose values must be known at compile time. By default, these
    /// are XLA's.
    fn compile_time_constant_inputs(&self, op: &str) -> &[&str] {
        compile_time_constant_inputs(op)
    }

    /// True if a `StridedSlice` of known length, or its gradient, can be compiled without knowing
    /// where it begins. In XLA it cannot.
    fn slices_from_run_time(&self) -> bool {
        false
    }
}

/// A compiler with XLA's rules about compile-time constants.
pub(crate) struct LikeXla<'a>(pub(crate) &'a dyn Kernels);

impl Kernels for LikeXla<'_> {
    fn compiles(&self, candidate: Candidate<'_>, device: &str) -> Result<(), String> {
        self.0.compiles(candidate, device)
    }

    fn knows(&self, op: &str) -> bool {
        self.0.knows(op)
    }
}

/// True if an op only reads the shapes of its inputs, which therefore need not be constant.
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

/// True if no compiler handles the op: it controls the executor, represents something outside the
/// graph, or creates state that outlives a run.
pub(crate) fn is_executor_op(op: &str) -> bool {
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
