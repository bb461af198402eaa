//! Kinds of nodes: run by the executor itself, by a host function, or as a kernel.

use super::at_node;
use crate::context::Context;
use crate::kernels::Site;
use crate::op_kind::{is_enter, is_exit, is_merge, is_next_iteration, must_compile};
use crate::ops::{self, HostOp, Prepared, Rewritten};
use crate::resources::Resources;
use crate::value::{Handle, Variable};
use crate::value::{Strings, Tensor, Value};
use std::sync::Arc;
use support::{Error, Result};
use tf::{DataType, FunctionLibrary, Graph};

/// Maximum number of nodes that a message names.
const NAMED: usize = 8;

/// Execution kind of a node.
#[derive(Debug)]
pub(crate) enum Kind {
    /// No work, only a place in the execution order.
    NoOp,
    /// Like `NoOp`, but runs even if its inputs are dead.
    ControlTrigger,
    /// A constant value.
    Constant(Value),
    /// An argument of the run.
    Argument(usize),
    /// A result of the run.
    Fetch(usize),
    /// Forwards its inputs.
    Identity,
    /// Forwards its input to one of two outputs.
    Switch,
    /// Forwards its input to one of any number of outputs.
    SwitchN,
    /// Forwards the first live input.
    Merge,
    /// Forwards its input into a loop; if `is_constant`, into every iteration.
    Enter { is_constant: bool },
    /// Forwards its input out of a loop.
    Exit,
    /// Forwards its input to the next iteration.
    NextIteration,
    /// A variable: its handle, or a reference to it.
    Variable { variable: Arc<Variable>, is_reference: bool },
    /// A host function.
    Host(HostOp),
    /// A kernel, compiled for the types and shapes that occur.
    Compiled(Arc<Site>),
    /// The kernel of another op. The host prepares its inputs.
    Rewritten(Box<RewrittenSites>),
}

/// Kernels that run a node in place of its own op's.
#[derive(Debug)]
pub(crate) struct RewrittenSites {
    /// One site for each variant of the node.
    pub(crate) sites: Vec<Arc<Site>>,
    pub(crate) prepare: fn(&mut Context<'_>) -> Result<Prepared>,
}

impl RewrittenSites {
    fn new(Rewritten { variants, prepare }: Rewritten) -> Result<Self> {
        let site = |variant: &ops::Variant| Site::new(&variant.node, &variant.input_types).map(Arc::new);
        Ok(Self { sites: variants.iter().map(site).collect::<Result<_>>()?, prepare })
    }
}

/// The kind of a node.
pub(super) fn of(node: &tf::Node, graph: &Graph, resources: &Resources) -> Result<Kind> {
    let kind = match node.op.as_str() {
        "NoOp" => Kind::NoOp,
        "ControlTrigger" => Kind::ControlTrigger,
        "Const" => Kind::Constant(constant(node)?),
        "_Arg" => Kind::Argument(node.attributes.int("index").and_then(|index| {
            usize::try_from(index).map_err(|_| Error::invalid("the index of the argument is negative"))
        })?),
        tf::RETVAL => Kind::Fetch(node.attributes.int("index").and_then(|index| {
            usize::try_from(index).map_err(|_| Error::invalid("the index of the result is negative"))
        })?),
        "Identity"
        | "RefIdentity"
        | "IdentityN"
        | "StopGradient"
        | "PreventGradient"
        | "Snapshot"
        | "LoopCond"
        | "PlaceholderWithDefault"
        | "_EagerConst"
        | "DebugGradientIdentity"
        | "DebugGradientRefIdentity" => Kind::Identity,
        "Switch" | "RefSwitch" => Kind::Switch,
        "_SwitchN" => Kind::SwitchN,
        _ if is_merge(node) => Kind::Merge,
        _ if is_enter(node) => Kind::Enter { is_constant: node.attributes.bool_or("is_constant", false)? },
        _ if is_exit(node) => Kind::Exit,
        _ if is_next_iteration(node) => Kind::NextIteration,
        "VarHandleOp" | "_XlaAotOnlyVarHandleOp" => variable(node, resources, false)?,
        "VariableV2" | "Variable" => variable(node, resources, true)?,
        _ => match (ops::find(node), ops::rewrite(node)?) {
            (Some(op), _) => Kind::Host(op),
            (None, Some(rewritten)) => Kind::Rewritten(Box::new(RewrittenSites::new(rewritten)?)),
            (None, None) => Kind::Compiled(Arc::new(Site::new(node, &input_types(node, graph))?)),
        },
    };
    Ok(kind)
}

/// The types of a node's inputs. Only inputs that expect a reference get a reference type.
fn input_types(node: &tf::Node, graph: &Graph) -> Vec<DataType> {
    let references = crate::signature::input_references(node);
    let types = node.inputs.iter().enumerate().map(|(k, input)| {
        let data_type = graph.nodes[input.node].output_types[input.index];
        if references.get(k).copied().unwrap_or(false) { data_type } else { data_type.base() }
    });
    types.collect()
}

fn variable(node: &tf::Node, resources: &Resources, is_reference: bool) -> Result<Kind> {
    let variable = resources.variable(node).map_err(|error| at_node(error, node))?;
    Ok(Kind::Variable { variable, is_reference })
}

/// The value of a constant.
fn constant(node: &tf::Node) -> Result<Value> {
    let attributes = &node.attributes;
    match attributes.ty("dtype")? {
        DataType::String => {
            let (_, sizes) = attributes.tensor_type("value")?;
            Ok(Strings { sizes, strings: attributes.tensor_strings("value")? }.into())
        }
        _ => Ok(Tensor::from_literal(&attributes.tensor("value")?)?.into()),
    }
}

impl Kind {
    /// The handle or reference of a variable.
    pub(crate) fn variable_value(variable: &Arc<Variable>, is_reference: bool) -> Value {
        if is_reference {
            Value::Reference(variable.clone())
        } else {
            Value::Resource(Handle::Variable(variable.clone()))
        }
    }
}

/// Rejects all unsupported nodes with one error.
pub(super) fn check(graph: &Graph, library: &FunctionLibrary) -> Result<()> {
    let reason = |node: &tf::Node| -> Option<String> {
        let own = [tf::RETVAL, "_Arg", "VariableV2", "Variable", "VarHandleOp", "ControlTrigger", "_SwitchN"];
        let is_own = own.contains(&node.op.as_str())
            || is_merge(node)
            || is_enter(node)
            || is_exit(node)
            || is_next_iteration(node)
            || matches!(
                node.op.as_str(),
                "Switch" | "RefSwitch" | "LoopCond" | "RefIdentity" | "NoOp" | "Const"
            )
            || matches!(node.op.as_str(), "Identity" | "IdentityN" | "DebugGradientRefIdentity" | "Snapshot");
        if is_own || must_compile(node) || ops::find(node).is_some() || library.get(&node.op).is_some() {
            return None;
        }
        ops::refusal(&node.op).or_else(|| import::unsupported_node(node))
    };
    let mut reasons: Vec<String> = Vec::new();
    let mut count = 0;
    for node in graph.nodes.values() {
        let Some(reason) = reason(node) else { continue };
        count += 1;
        if reasons.len() < NAMED {
            reasons.push(format!("node '{}': {reason}", node.name));
        }
    }
    match count {
        0 => Ok(()),
        1..=NAMED => Err(Error::unsupported(reasons.join("; "))),
        _ => Err(Error::unsupported(format!("{}; and {} more nodes", reasons.join("; "), count - NAMED))),
    }
}
