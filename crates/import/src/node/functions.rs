//! The bodies of functions, as rules see them.

use crate::values::state::State;
use crate::values::value::Value;
use std::collections::BTreeSet;
use support::Result;
use tf::{Function, NodeId, OutputId};

/// The services that the walk offers to rules.
pub(crate) trait Functions<'p> {
    /// Translates a function's body in place and returns the values of its results. `prefix` is
    /// prepended to the names of its nodes.
    fn translate(
        &mut self,
        state: &mut State<'p>,
        function: &'p Function,
        arguments: &[Value],
        prefix: &str,
    ) -> Result<Vec<Value>>;

    /// Translates the nodes that one output of a function's body needs. Returns the output's value,
    /// or `None` if the output does not exist.
    fn translate_output(
        &mut self,
        state: &mut State<'p>,
        part: &FunctionPart<'p, '_>,
        arguments: &[Value],
        prefix: &str,
    ) -> Result<Option<Value>>;

    /// Returns the nodes of a function that a call must run: those that results and control results
    /// need, and those with effects.
    fn needed_nodes(&self, function: &'p Function) -> BTreeSet<NodeId>;

    /// For each result of a function, the argument that it returns unchanged, if any.
    fn passed_arguments(&mut self, function: &'p Function) -> Vec<Option<usize>>;
}

/// One output of a function's body, and the nodes that it needs.
pub(crate) struct FunctionPart<'p, 'n> {
    pub(crate) function: &'p Function,
    pub(crate) output: OutputId,
    pub(crate) needed: &'n BTreeSet<NodeId>,
}
