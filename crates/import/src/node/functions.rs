//! Bodies of functions, as rules reach them.

use crate::values::state::State;
use crate::values::value::Value;
use std::collections::BTreeSet;
use support::Result;
use tf::{Function, NodeId, OutputId};

/// What rules ask of the walk that calls them.
pub(crate) trait Functions<'p> {
    /// Translates a function's body in place; the values of its results. Names get the prefix.
    fn translate(
        &mut self,
        state: &mut State<'p>,
        function: &'p Function,
        arguments: &[Value],
        prefix: &str,
    ) -> Result<Vec<Value>>;

    /// Translates the nodes that one output of a function's body needs; its value, if there is such an output.
    fn translate_output(
        &mut self,
        state: &mut State<'p>,
        part: &FunctionPart<'p, '_>,
        arguments: &[Value],
        prefix: &str,
    ) -> Result<Option<Value>>;

    /// The nodes of a function that a call must run: what results and control results need, and effects.
    fn needed_nodes(&self, function: &'p Function) -> BTreeSet<NodeId>;

    /// For each result of a function the argument that it is, if it is one.
    fn passed_arguments(&mut self, function: &'p Function) -> Vec<Option<usize>>;
}

/// One output of a function's body, and the nodes that it needs.
pub(crate) struct FunctionPart<'p, 'n> {
    pub(crate) function: &'p Function,
    pub(crate) output: OutputId,
    pub(crate) needed: &'n BTreeSet<NodeId>,
}
