//! The codes of errors: what an index of them explains.

use std::fmt;

/// Defines the codes, and the list of all of them.
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
    /// A kind of mistake, with a section in `docs/errors`, cause and fix, which `tfcompile explain` prints.
    ///
    /// A code is coarser than a message: it says where to read on, not what is wrong. It is given at the border of a stage, by
    /// [`Error::coded`](crate::Error::coded); one that is given closer to the cause stays.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Code {
        /// Wrong input without a code of its own.
        Invalid = 1,
        /// A limit of the tool without a code of its own.
        Unsupported = 2,
        /// A defect of the tool.
        Internal = 3,

        /// Flags, environment variables and their values.
        CommandLine = 101,
        /// A file that cannot be read.
        ReadFile = 102,
        /// A file that is not what it is given as.
        ParseFile = 103,
        /// A file that cannot be written, a program that cannot be started.
        WriteFile = 104,
        /// A machine, processor or feature that is not known.
        Target = 105,
        /// A class, a symbol or an accessor that C++, C or Rust cannot have.
        OutputName = 106,

        /// Nodes that make no graph.
        Graph = 201,
        /// An op that is not TensorFlow's.
        UnknownOp = 202,
        /// Inputs or attributes that are not those of a node's op.
        NodeSignature = 203,
        /// Functions of the graph's library.
        FunctionLibrary = 204,
        /// Switch, Merge, Enter and their kin.
        ControlFlow = 205,
        /// A graph beyond what is compiled.
        TooLarge = 206,

        /// A config that contradicts itself.
        Config = 301,
        /// What is fed.
        Feed = 302,
        /// What is fetched.
        Fetch = 303,
        /// A variable and what is said of it.
        Variable = 304,
        /// Feeds and fetches that do not follow from the graph.
        NotInferred = 305,

        /// A size that has to be known and is not.
        OpenSize = 401,
        /// An input that has to be known at compile time and is not.
        NotConstant = 402,
        /// A size that only a run knows, where an op cannot have it.
        BoundedSize = 403,
        /// What grows in a loop without a bound.
        LoopBound = 404,

        /// An op, or a type of it, that no rule takes.
        UnsupportedOp = 501,
        /// Shapes or attributes with which an op has no meaning.
        OpMeaning = 502,
        /// A case of an op that is not compiled.
        OpCase = 503,
        /// An op of the user's own.
        CustomCall = 504,

        /// Tags, signatures, assets and tables of a SavedModel.
        SavedModel = 601,
        /// Checkpoints and other files of variables.
        Checkpoint = 602,
        /// Freezing a graph.
        Freeze = 603,

        /// HLO or StableHLO that is not valid.
        Hlo = 701,
        /// HLO or StableHLO that needs what a compiled program does not have.
        UnsupportedHlo = 702,
        /// A check of StableHLO's tests that does not hold.
        CheckFailed = 703,

        /// Arrays that are given to a run.
        GivenArray = 801,
        /// A run that ends with an error.
        FailedRun = 802,

        /// A graph, a placement or an option that a session does not take.
        Session = 901,
        /// A node that fails while a session runs it.
        SessionStep = 902,
        /// A variable that is read before it has a value.
        Uninitialized = 903,
    }
}

impl fmt::Display for Code {
    /// Such as `E0401`.
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
