//! Subgraphs as functions. What they use of the graph around them becomes arguments, except
//! constants, which they repeat.

use super::{Array, Converter, Frame, Scope, Value};
use crate::proto::GraphProto;
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};
use tf::DataType;
use tf::foreign::{Body, Ref, identifier, of_node, ty};
use tf::proto::{ArgDef, FunctionDef, OpDef};

/// A function under construction.
pub(crate) struct Interface<'a> {
    pub(crate) frame: Frame<'a>,
    arguments: Vec<ArgDef>,
}

impl Interface<'_> {
    /// The nodes of the function.
    pub(crate) fn body(&mut self) -> &mut Body {
        &mut self.frame.body
    }

    /// The names of the arguments.
    pub(crate) fn argument_names(&self) -> Vec<String> {
        self.arguments.iter().map(|argument| argument.name.clone()).collect()
    }

    /// Adds an argument.
    pub(crate) fn argument(&mut self, base: &str, data_type: DataType) -> Array {
        let name = self.frame.body.names.unique(base);
        let value = Ref::argument(&name);
        self.arguments.push(ArgDef { name, r#type: data_type.number(), ..ArgDef::default() });
        Array::new(value, data_type)
    }
}

/// The names that a graph uses and does not define.
fn free_names<'a>(graph: &'a GraphProto, free: &mut BTreeSet<&'a str>, depth: usize) -> Result<()> {
    if depth > super::DEEPEST {
        return Err(Error::unsupported(format!("subgraphs are nested more than {} deep", super::DEEPEST)));
    }
    let mut used = BTreeSet::new();
    for node in &graph.node {
        used.extend(node.input.iter().map(String::as_str));
        for inner in node.attribute.iter().filter_map(|attribute| attribute.g.as_deref()) {
            free_names(inner, &mut used, depth + 1)?;
        }
    }
    used.extend(graph.output.iter().map(|output| output.name.as_str()));
    let inputs = graph.input.iter().map(|input| input.name.as_str());
    let constants = graph.initializer.iter().map(|tensor| tensor.name.as_str());
    let sparse =
        graph.sparse_initializer.iter().filter_map(|sparse| Some(sparse.values.as_ref()?.name.as_str()));
    let outputs = graph.node.iter().flat_map(|node| &node.output).map(String::as_str);
    let defined: BTreeSet<&str> = inputs.chain(constants).chain(sparse).chain(outputs).collect();
    free.extend(used.into_iter().filter(|name| !name.is_empty() && !defined.contains(name)));
    Ok(())
}

impl<'a> Converter<'a, '_> {
    /// The values around subgraphs that they use, by name.
    pub(crate) fn captured(
        &mut self,
        frame: &mut Frame<'a>,
        graphs: &[&'a GraphProto],
    ) -> Result<Vec<(String, Value)>> {
        let mut free = BTreeSet::new();
        for graph in graphs {
            free_names(graph, &mut free, 0)?;
        }
        free.into_iter().map(|name| Ok((name.to_owned(), self.value(frame, name)?))).collect()
    }

    /// Begins a function.
    pub(crate) fn begin(&mut self) -> Interface<'a> {
        let frame = Frame { body: Body::new(true), scopes: vec![Scope::default()] };
        Interface { frame, arguments: Vec::new() }
    }

    /// Adds an argument for each captured array, and makes the values visible. Constants are
    /// repeated instead.
    pub(crate) fn bind(&mut self, function: &mut Interface<'a>, captured: &[(String, Value)]) -> Result<()> {
        for (name, value) in captured {
            let mut value = value.clone();
            let mut result = Ok(());
            value.each_mut(&mut |array| {
                let inner = match &array.constant {
                    Some(constant) => {
                        self.constant(&mut function.frame.body, &of_node(name), (**constant).clone())
                    }
                    None => {
                        let mut inner = function.argument(&of_node(name), array.data_type);
                        inner.sizes.clone_from(&array.sizes);
                        Ok(inner)
                    }
                };
                match inner {
                    Ok(inner) => *array = inner,
                    Err(error) => result = Err(error),
                }
            });
            result?;
            function.frame.scopes[0].values.insert(name.clone(), value);
        }
        Ok(())
    }

    /// Converts the nodes of a subgraph with these values for its inputs, and returns its outputs.
    pub(crate) fn subgraph(
        &mut self,
        frame: &mut Frame<'a>,
        graph: &'a GraphProto,
        inputs: Vec<Value>,
    ) -> Result<Vec<Value>> {
        if inputs.len() != graph.input.len() {
            return Err(Error::invalid(format!(
                "the subgraph '{}' has {} inputs, but the node passes {}",
                graph.name,
                graph.input.len(),
                inputs.len()
            )));
        }
        self.enter()?;
        frame.scopes.push(Scope::default());
        self.declare(frame, graph);
        let scope = frame.scopes.last_mut().expect("just pushed");
        for (input, value) in graph.input.iter().zip(inputs) {
            scope.values.insert(input.name.clone(), value);
        }
        let converted = self
            .nodes(frame, &graph.node)
            .and_then(|()| graph.output.iter().map(|output| self.value(frame, &output.name)).collect());
        frame.scopes.pop();
        self.depth -= 1;
        converted
    }

    /// Adds the function to the library and returns its name.
    pub(crate) fn finish(
        &mut self,
        mut function: Interface<'a>,
        base: &str,
        results: &[Array],
    ) -> Result<String> {
        let name = self.function_names.unique(&match identifier(base).as_str() {
            "" => "subgraph".to_owned(),
            name => name.to_owned(),
        });
        let mut signature =
            OpDef { name: name.clone(), input_arg: function.arguments.clone(), ..OpDef::default() };
        let mut ret = BTreeMap::new();
        let body = function.body();
        for (k, array) in results.iter().enumerate() {
            let result = format!("result{k}");
            let attributes = [ty("T", array.data_type)];
            let value =
                body.add(&result, "Identity", std::slice::from_ref(&array.value), attributes)?.remove(0);
            ret.insert(result.clone(), value.text().to_owned());
            let r#type = array.data_type.number();
            signature.output_arg.push(ArgDef { name: result, r#type, ..ArgDef::default() });
        }
        let mut control_ret = BTreeMap::new();
        if let Some(last) = body.last_effect() {
            signature.is_stateful = true;
            signature.control_output.push("effects".to_owned());
            control_ret.insert("effects".to_owned(), last.to_owned());
        }
        let node_def = std::mem::take(&mut body.nodes);
        self.library.push(FunctionDef {
            signature: Some(signature),
            node_def,
            ret,
            control_ret,
            ..FunctionDef::default()
        });
        Ok(name)
    }
}
