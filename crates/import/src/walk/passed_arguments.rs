//! Which results of a function are its arguments, unchanged: what a loop passes through its body stays the same in every
//! iteration.

use std::collections::BTreeMap;
use tf::{Function, FunctionLibrary, Node, OutputId};

/// For each function that was asked for: which argument each result is.
pub(crate) type Known = BTreeMap<String, Vec<Option<usize>>>;

/// How deep functions are followed.
const MAX_DEPTH: usize = 50;

/// For each result of a function the argument that it is, if it is one.
pub(crate) fn passed_arguments(
    library: &FunctionLibrary,
    known: &mut Known,
    function: &Function,
) -> Vec<Option<usize>> {
    Tracer { library, known }.of_function(function, 0)
}

struct Tracer<'l, 'k> {
    library: &'l FunctionLibrary,
    known: &'k mut Known,
}

impl Tracer<'_, '_> {
    fn of_function(&mut self, function: &Function, depth: usize) -> Vec<Option<usize>> {
        if let Some(known) = self.known.get(&function.name) {
            return known.clone();
        }
        // What a function that calls itself passes on is not known.
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

    /// The argument that an output of a function's node is.
    fn trace(&mut self, function: &Function, mut output: OutputId, depth: usize) -> Option<usize> {
        // A node is seen at most once on the way, since there are no cycles.
        for _ in 0..=function.graph.nodes.len() {
            let node = &function.graph.nodes[output.node];
            if node.op == "_Arg" {
                return function.arguments.iter().position(|&argument| argument == output.node);
            }
            output = *node.inputs.get(self.input_of(node, output.index, depth)?)?;
        }
        None
    }

    /// The input of a node that one of its outputs is.
    fn input_of(&mut self, node: &Node, output: usize, depth: usize) -> Option<usize> {
        let mut of = |name: &str| {
            let function = self.library.get(name)?;
            self.of_function(function, depth + 1).get(output).copied().flatten()
        };
        let attributes = &node.attributes;
        match node.op.as_str() {
            // A reference that passes is read.
            "Identity" | "IdentityN" | "StopGradient" | "PreventGradient" | "Snapshot" => Some(output),
            "PartitionedCall" | "StatefulPartitionedCall" => of(attributes.func("f").ok()?.0),
            "While" | "StatelessWhile" | "XlaWhile" => {
                of(attributes.func("body").ok()?.0).filter(|&input| input == output)
            }
            "If" | "StatelessIf" | "XlaIf" => {
                let then_branch = of(attributes.func("then_branch").ok()?.0)?;
                let else_branch = of(attributes.func("else_branch").ok()?.0)?;
                (then_branch == else_branch).then_some(1 + then_branch)
            }
            "Case" | "StatelessCase" => {
                let branches = attributes.funcs("branches").ok()?;
                let mut passed = branches.iter().map(|branch| of(branch.0));
                let first = passed.next()??;
                passed.all(|other| other == Some(first)).then_some(1 + first)
            }
            op => of(op),
        }
    }
}
