//! Finds the results of a function that are its arguments, unchanged. A value that a loop passes
//! through its body is the same in every iteration.

use std::collections::BTreeMap;
use tf::{Function, FunctionLibrary, Node, OutputId};

/// For each function seen so far, the argument that each result returns, if any.
pub(crate) type Known = BTreeMap<String, Vec<Option<usize>>>;

/// Maximum depth of calls to follow.
const MAX_DEPTH: usize = 50;

/// For each result of a function, the argument that it returns unchanged, if any.
pub(crate) fn passed_arguments(
    library: &FunctionLibrary,
    known: &mut Known,
    function: &Function,
) -> Vec<Option<usize>> {
    Tracer { library, known }.trace_function(function, 0)
}

struct Tracer<'l, 'k> {
    library: &'l FunctionLibrary,
    known: &'k mut Known,
}

impl Tracer<'_, '_> {
    fn trace_function(&mut self, function: &Function, depth: usize) -> Vec<Option<usize>> {
        if let Some(known) = self.known.get(&function.name) {
            return known.clone();
        }
        // The results of a recursive function are unknown.
        let unknown = vec![None; function.results.len()];
        self.known.insert(function.name.clone(), unknown.clone());
        if depth >= MAX_DEPTH {
            return unknown;
        }
        let passed: Vec<_> =
            function.results.iter().map(|&result| self.trace(function, result, depth)).collect();
        self.known.insert(function.name.clone(), passed.clone());
        passed
    }

    /// Returns the argument that an output of a function's node equals.
    fn trace(&mut self, function: &Function, mut output: OutputId, depth: usize) -> Option<usize> {
        // There are no cycles, so the path visits each node at most once.
        for _ in 0..=function.graph.nodes.len() {
            let node = &function.graph.nodes[output.node];
            if node.op == "_Arg" {
                return function.arguments.iter().position(|&argument| argument == output.node);
            }
            output = *node.inputs.get(self.input_of(node, output.index, depth)?)?;
        }
        None
    }

    /// Returns the position of the node's input that one of its outputs equals.
    fn input_of(&mut self, node: &Node, output: usize, depth: usize) -> Option<usize> {
        let mut traced = |name: &str| {
            let function = self.library.get(name)?;
            self.trace_function(function, depth + 1).get(output).copied().flatten()
        };
        let attributes = &node.attributes;
        match node.op.as_str() {
            // Passing a reference reads it.
            "Identity" | "IdentityN" | "StopGradient" | "PreventGradient" | "Snapshot" => Some(output),
            "PartitionedCall" | "StatefulPartitionedCall" => traced(attributes.func("f").ok()?.0),
            "While" | "StatelessWhile" | "XlaWhile" => {
                traced(attributes.func("body").ok()?.0).filter(|&input| input == output)
            }
            "If" | "StatelessIf" | "XlaIf" => {
                let then_branch = traced(attributes.func("then_branch").ok()?.0)?;
                let else_branch = traced(attributes.func("else_branch").ok()?.0)?;
                (then_branch == else_branch).then_some(1 + then_branch)
            }
            "Case" | "StatelessCase" => {
                let branches = attributes.funcs("branches").ok()?;
                let mut passed = branches.iter().map(|branch| traced(branch.0));
                let first = passed.next()??;
                passed.all(|other| other == Some(first)).then_some(1 + first)
            }
            op => traced(op),
        }
    }
}
