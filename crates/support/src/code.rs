//! Error codes, each explained in the error index.

use std::fmt;

/// Defines the codes and the list of all codes.
macro_rules! codes {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($(#[$doc:meta])* $code:ident = $number:literal,)* }) => {
        $(#[$meta])*
        $vis enum $name {
            $($(#[$doc])* $code = $number,)*
        }

        impl $name {
            /// All codes, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$code),*];
        }
    };
}

codes! {
    /// A category of errors, with a section on cause and fix in `docs/errors`, which `tfcompile
    /// explain` prints.
    ///
    /// A code is coarser than a message: it says where to read on, not what is wrong. Stage
    /// boundaries assign it by [`Error::coded`](crate::Error::coded). A code assigned closer to the
    /// cause takes precedence.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Code {
        /// Wrong input without a more specific code.
        Invalid = 1,
        /// A limitation of the tool without a more specific code.
        Unsupported = 2,
        /// A bug in the tool.
        Internal = 3,

        /// Flags, environment variables, and their values.
        CommandLine = 101,
        /// File that cannot be read.
        ReadFile = 102,
        /// File whose content does not match its expected format.
        ParseFile = 103,
        /// File that cannot be written, or program that cannot be started.
        WriteFile = 104,
        /// Unknown machine, processor, or feature.
        Target = 105,
        /// Class, symbol, or accessor name that is invalid in C++, C, or Rust.
        OutputName = 106,
        /// Memory or threads that the system does not provide.
        Resources = 107,

        /// Nodes that do not form a valid graph.
        Graph = 201,
        /// Op that TensorFlow does not define.
        UnknownOp = 202,
        /// Inputs or attributes that do not match the signature of a node's op.
        NodeSignature = 203,
        /// Functions of the graph's library.
        FunctionLibrary = 204,
        /// Switch, Merge, Enter, and other control flow ops.
        ControlFlow = 205,
        /// Graph that exceeds the compiler's size limits.
        TooLarge = 206,

        /// Contradictory config.
        Config = 301,
        /// Feeds of a program.
        Feed = 302,
        /// Fetches of a program.
        Fetch = 303,
        /// Variables and their settings.
        Variable = 304,
        /// Feeds and fetches that cannot be inferred from the graph.
        NotInferred = 305,

        /// Unknown size where a known size is required.
        OpenSize = 401,
        /// Input that must be a compile-time constant and is not.
        NotConstant = 402,
        /// Size known only at run time, where an op does not support it.
        BoundedSize = 403,
        /// Value that grows in a loop without an upper bound.
        LoopBound = 404,

        /// Unsupported op, or unsupported type of an op.
        UnsupportedOp = 501,
        /// Shapes or attributes that are invalid for an op.
        OpMeaning = 502,
        /// Unsupported case of an op.
        OpCase = 503,
        /// User-defined op.
        CustomCall = 504,

        /// Tags, signatures, assets, and tables of a SavedModel.
        SavedModel = 601,
        /// Checkpoints and other files of variables.
        Checkpoint = 602,
        /// Freezing a graph.
        Freeze = 603,

        /// Invalid HLO or StableHLO.
        Hlo = 701,
        /// HLO or StableHLO that needs a feature that compiled programs do not support.
        UnsupportedHlo = 702,
        /// Failed check of a StableHLO test.
        CheckFailed = 703,

        /// Arrays passed to a run.
        GivenArray = 801,
        /// A run that ends with an error.
        FailedRun = 802,
        /// A GPU or its driver: none, too old, out of memory, or a kernel that failed.
        Device = 803,
        /// Figure over its limit in a budget.
        Budget = 804,

        /// Graph, placement, or option that a session does not accept.
        Session = 901,
        /// Node that failed while a session ran it.
        SessionStep = 902,
        /// Variable that is read before it has a value.
        Uninitialized = 903,
    }
}

impl fmt::Display for Code {
    /// Formats a code, such as `E0401`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "E{:04}", *self as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::Code;

    #[test]
    fn numbers_rise_and_are_printed_with_four_digits() {
        assert!(Code::ALL.is_sorted_by_key(|&code| code as u16));
        assert_eq!(Code::ALL.first().map(Code::to_string).as_deref(), Some("E0001"));
        assert_eq!(Code::OpenSize.to_string(), "E0401");
    }
}
