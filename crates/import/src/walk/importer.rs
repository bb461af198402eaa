//! The walk over a program: nodes in execution order, each by its rule, into the computation being built.

use crate::builder::reducer::Reducer;
use crate::builder::scope::Scope;
use crate::control::loop_bounds::name_within;
use crate::control::passed_arguments;
use crate::lists::list::List;
use crate::lists::stacks::Stack;
use crate::lists::tensor_arrays::TensorArray;
use crate::node::context::NodeContext;
use crate::node::rule::{Rule, Translation};
use crate::table::rules;
use crate::values::local_state::Local;
use crate::values::value::{ListId, StackId, TensorArrayId, Value, VariableId};
use crate::walk::problems::Collected;
use crate::walk::rounds::Lessons;
use hlo::{ComputationId, InstructionId, Module, Op, OpMetadata};
use shape::{ArrayShape, PrimitiveType};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use support::{Code, Coded as _, Error, ErrorKind, Id, IdVec, Result};
use tf::{Function, Graph, NodeId, VariableState};

/// How deep calls and conditionals may nest.
const MAX_DEPTH: usize = 50;

/// How many nodes may be translated in all, those of functions once for each call, those of loops once for each round in
/// which the types of what they carry are looked for: loops in loops multiply the rounds.
const MAX_NODES: usize = 500_000;

/// How many instructions may be built in all: some nodes make one for each of their outputs.
const MAX_INSTRUCTIONS: usize = 250_000;

/// How many branches all conditionals together may have: what generating code takes grows faster than their number.
const MAX_BRANCHES: usize = 10_000;

/// The state of an import.
pub(crate) struct Importer<'p> {
    pub(crate) program: &'p tf::Program,
    pub(crate) module: Module,
    /// The entry, and on it the branches that are being built, the innermost last.
    pub(crate) scopes: Vec<Scope>,
    reducers: BTreeMap<(Reducer, PrimitiveType), ComputationId>,
    pub(crate) depth: usize,
    nodes: usize,
    pub(crate) instructions: usize,
    pub(crate) branches: usize,
    /// `Some` if what is wrong is collected instead of returned at the first.
    pub(crate) collected: Option<Collected>,
    /// The tensor lists: their instructions are of the computation in which the value was made.
    pub(crate) lists: IdVec<ListId, List>,
    pub(crate) stacks: IdVec<StackId, Stack>,
    pub(crate) tensor_arrays: IdVec<TensorArrayId, TensorArray>,
    /// The state of stacks and tensor arrays: variables behind those of the config.
    pub(crate) locals: Vec<Local>,
    /// What was learned when the program was imported before.
    pub(crate) lessons: Lessons,
    pub(crate) passed: passed_arguments::Known,
    /// Whether a loop's state is being looked at before the loop is translated.
    pub(crate) is_trial: bool,
    /// How many random number generators there are so far: each gets a stream of its own.
    pub(crate) random_streams: u64,
    /// The inputs that a rule wanted the value of and did not get: node and position.
    pub(crate) wanted_constants: RefCell<BTreeSet<(String, usize)>>,
    /// What stands in the entry for variables without a value.
    pub(crate) unset: BTreeMap<VariableId, InstructionId>,
    /// The variable that was read first before it had a value.
    pub(crate) read_unset: Option<VariableId>,
    /// Computations of another's HLO, and what they are with arrays of bounded size settled.
    pub(crate) settled: BTreeMap<ComputationId, ComputationId>,
}

impl<'p> Importer<'p> {
    pub(crate) fn new(program: &'p tf::Program, name: &str) -> Self {
        Self {
            program,
            module: Module::new(name),
            scopes: vec![Scope::entry("main")],
            reducers: BTreeMap::new(),
            depth: 0,
            nodes: 0,
            instructions: 0,
            branches: 0,
            collected: None,
            lists: IdVec::new(),
            stacks: IdVec::new(),
            tensor_arrays: IdVec::new(),
            locals: Vec::new(),
            lessons: Lessons::default(),
            passed: passed_arguments::Known::new(),
            is_trial: false,
            random_streams: 0,
            wanted_constants: RefCell::default(),
            unset: BTreeMap::new(),
            read_unset: None,
            settled: BTreeMap::new(),
        }
    }

    /// The computation being built.
    pub(crate) fn scope(&mut self) -> &mut Scope {
        self.scopes.last_mut().expect("the entry is open until the end")
    }

    /// The computation being built, to look at.
    pub(crate) fn scope_ref(&self) -> &Scope {
        self.scopes.last().expect("the entry is open until the end")
    }

    /// The finished computations, and the one being built.
    pub(crate) fn module_and_scope(&mut self) -> (&Module, &mut Scope) {
        (&self.module, self.scopes.last_mut().expect("the entry is open until the end"))
    }

    /// Counts an instruction that is about to be built; an error when there are too many.
    pub(crate) fn count_instruction(&mut self) -> Result<()> {
        self.instructions += 1;
        if self.instructions <= MAX_INSTRUCTIONS {
            return Ok(());
        }
        Err(Error::unsupported(format!(
            "the graph needs more than {MAX_INSTRUCTIONS} instructions once its function calls are inlined; split it \
             into several programs"
        )).coded(Code::TooLarge))
    }

    /// Counts the branches of a conditional that is about to be built; an error when there are too many.
    pub(crate) fn count_branches(&mut self, branches: usize) -> Result<()> {
        self.branches = self.branches.saturating_add(branches);
        if self.branches <= MAX_BRANCHES {
            return Ok(());
        }
        Err(Error::unsupported(format!(
            "the graph's conditionals have more than {MAX_BRANCHES} branches; split it into several programs"
        ))
        .coded(Code::TooLarge))
    }

    /// The scalar computation of a reducer, made once for each type.
    pub(crate) fn reducer(&mut self, reducer: Reducer, element_type: PrimitiveType) -> Result<ComputationId> {
        if let Some(&id) = self.reducers.get(&(reducer, element_type)) {
            return Ok(id);
        }
        let id = reducer.build(&mut self.module, element_type)?;
        self.reducers.insert((reducer, element_type), id);
        Ok(id)
    }

    /// Translates a graph whose nodes of op `_Arg` are given; `needed` leaves out what has no use.
    pub(crate) fn translate_graph(
        &mut self,
        graph: &'p Graph,
        mut values: BTreeMap<NodeId, Vec<Value>>,
        needed: Option<&BTreeSet<NodeId>>,
        prefix: &str,
    ) -> Result<BTreeMap<NodeId, Vec<Value>>> {
        if self.depth >= MAX_DEPTH {
            return Err(Error::invalid(format!(
                "functions call each other more than {MAX_DEPTH} levels deep at '{}'; recursion cannot be compiled",
                prefix.trim_end_matches('/')
            )).coded(Code::FunctionLibrary));
        }
        self.depth += 1;
        for id in graph.topological_order().coded(Code::Graph)? {
            if values.contains_key(&id) || needed.is_some_and(|needed| !needed.contains(&id)) {
                continue;
            }
            self.nodes += 1;
            if self.nodes > MAX_NODES {
                return Err(Error::invalid(format!(
                    "the graph has more than {MAX_NODES} nodes once its function calls are inlined and its loops are tried; split \
                     it into several programs, or nest fewer loops that carry lists"
                )).coded(Code::TooLarge));
            }
            let made = match self.collected {
                None => Some(self.translate_node(graph, id, &values, prefix)?),
                Some(_) => self.try_node(graph, id, &values, prefix),
            };
            // A node that failed has no values, and so fail those that read it.
            if let Some(made) = made {
                values.insert(id, made);
            }
        }
        self.depth -= 1;
        Ok(values)
    }

    /// Translates a node if it can be. Else collects why, unless that is known or is the fault of another node.
    fn try_node(
        &mut self,
        graph: &'p Graph,
        id: NodeId,
        values: &BTreeMap<NodeId, Vec<Value>>,
        prefix: &str,
    ) -> Option<Vec<Value>> {
        let node = &graph.nodes[id];
        let (depth, scopes) = (self.depth, self.scopes.len());
        let collected = self.collected.as_ref()?;
        let (failures, is_full) = (collected.failures, collected.is_full());
        let is_ready = !is_full
            && node.inputs.iter().all(|input| values.contains_key(&input.node))
            && crate::walk::unsupported::reason(self.program, node).is_none();
        let result = match is_ready {
            true => self.translate_node(graph, id, values, prefix).map_err(Some),
            false => Err(None),
        };
        let error = match result {
            Ok(made) => return Some(made),
            Err(error) => error,
        };
        // Whatever was open inside of the node is given up.
        self.depth = depth;
        self.scopes.truncate(scopes);
        self.scope().metadata = OpMetadata::default();
        let collected = self.collected.as_mut()?;
        if let Some(error) = error
            && collected.failures == failures
        {
            collected.add(&name_within(prefix, &node.name), &node.op, error);
        }
        collected.failures += 1;
        None
    }

    fn translate_node(
        &mut self,
        graph: &'p Graph,
        id: NodeId,
        values: &BTreeMap<NodeId, Vec<Value>>,
        prefix: &str,
    ) -> Result<Vec<Value>> {
        let node = &graph.nodes[id];
        let name = name_within(prefix, &node.name);
        let mut inputs = Vec::with_capacity(node.inputs.len());
        for input in &node.inputs {
            let value = values.get(&input.node).and_then(|outputs| outputs.get(input.index));
            inputs.push(*value.ok_or_else(|| {
                let producer = &graph.nodes[input.node];
                Error::invalid(format!(
                    "node '{name}' (op '{}') reads output {} of node '{}' (op '{}'), which makes no such value",
                    node.op, input.index, producer.name, producer.op
                ))
            })?);
        }
        let outer = std::mem::replace(
            &mut self.scope().metadata,
            OpMetadata { op_type: node.op.clone(), op_name: name.clone(), ..OpMetadata::default() },
        );
        let mut cx = NodeContext { importer: self, node, graph, name, inputs };
        let result = translate(&mut cx);
        let result = result.map_err(|error| {
            let code = match error.kind() {
                ErrorKind::Unsupported => Code::OpCase,
                _ => Code::OpMeaning,
            };
            cx.at_node(error.coded(code))
        });
        self.scope().metadata = outer;
        result
    }

    /// Translates a function's body in place; the values of its results.
    pub(crate) fn translate_function(
        &mut self,
        function: &'p Function,
        arguments: &[Value],
        prefix: &str,
    ) -> Result<Vec<Value>> {
        if arguments.len() != function.arguments.len() {
            return Err(Error::invalid(format!(
                "function '{}' takes {} arguments, but is given {}",
                function.name,
                function.arguments.len(),
                arguments.len()
            ))
            .coded(Code::FunctionLibrary));
        }
        let given = function.arguments.iter().zip(arguments).map(|(&id, &value)| (id, vec![value])).collect();
        let needed = needed_nodes(self.program, function);
        let values = self.translate_graph(&function.graph, given, Some(&needed), prefix)?;
        let result = |output: &tf::OutputId| {
            values.get(&output.node).and_then(|outputs| outputs.get(output.index)).copied().ok_or_else(|| {
                Error::invalid(format!(
                    "function '{}' returns output {} of node '{}', which makes no such value",
                    function.name, output.index, function.graph.nodes[output.node].name
                ))
            })
        };
        function.results.iter().map(result).collect()
    }

    /// The current value of a variable: as the code before this point left it.
    pub(crate) fn read_variable(&mut self, variable: VariableId) -> InstructionId {
        if self.is_unset(variable) {
            self.read_unset.get_or_insert(variable);
        }
        self.read_variable_in(self.scopes.len() - 1, variable)
    }

    fn read_variable_in(&mut self, level: usize, variable: VariableId) -> InstructionId {
        if let Some(&id) = self.scopes[level].variables.get(&variable) {
            return id;
        }
        // The entry knows all variables, so there is a level below.
        let outer = self.read_variable_in(level - 1, variable);
        let shape = self.scopes[level - 1].shape(outer).clone();
        let id = self.scopes[level].capture_variable(variable, outer, &shape);
        self.scopes[level].variables.insert(variable, id);
        id
    }

    /// Whether a variable has no value at this point.
    pub(crate) fn is_unset(&self, variable: VariableId) -> bool {
        let Some(nothing) = self.unset.get(&variable) else { return false };
        let known = self.scopes.iter().rposition(|scope| scope.variables.contains_key(&variable));
        known == Some(0) && self.scopes[0].variables.get(&variable) == Some(nothing)
    }

    /// Whether a variable has the same shape from first to last.
    pub(crate) fn keeps_shape(&self, variable: VariableId) -> bool {
        let variable = self.program.variables.get(variable.index());
        variable.is_none_or(|variable| variable.state == VariableState::Kept)
    }

    /// Gives a variable a new value.
    pub(crate) fn write_variable(&mut self, variable: VariableId, value: InstructionId, writer: &str) {
        let is_local =
            variable.index() >= self.program.variables.len() && self.variable_level(variable) == self.level();
        let scope = self.scope();
        scope.variables.insert(variable, value);
        if is_local {
            return;
        }
        scope.written.entry(variable).or_insert_with(|| writer.to_owned());
    }

    /// An instruction of the computation being built and all that it depends on, each with the number of its scope: what
    /// a branch or a body takes from outside is followed there.
    pub(crate) fn dependencies(&self, id: InstructionId) -> BTreeSet<(usize, InstructionId)> {
        let mut seen = BTreeSet::new();
        let mut stack = vec![(self.scopes.len() - 1, id)];
        while let Some((level, id)) = stack.pop() {
            if !seen.insert((level, id)) {
                continue;
            }
            let scope = &self.scopes[level];
            let instruction = &scope.computation[id];
            match (instruction.op(), &scope.captures) {
                (Op::GetTupleElement { index }, Some(captures))
                    if instruction.operands()[0] == captures.parameter =>
                {
                    stack.extend(captures.outer.get(*index).map(|&outer| (level - 1, outer)));
                }
                _ => stack.extend(instruction.operands().iter().map(|&operand| (level, operand))),
            }
        }
        seen
    }

    /// The feeds, variables and random numbers that an instruction depends on, in words.
    pub(crate) fn origins(&self, id: InstructionId) -> Vec<String> {
        let mut found = BTreeSet::new();
        for (level, id) in self.dependencies(id) {
            let scope = &self.scopes[level];
            let instruction = &scope.computation[id];
            match (instruction.op(), &scope.captures) {
                (Op::Parameter { number }, None) => found.insert(self.parameter_origin(*number)),
                (Op::RngGetAndUpdateState { .. }, _) => {
                    found.insert(format!("random numbers (node '{}')", instruction.metadata().op_name))
                }
                _ => false,
            };
        }
        found.into_iter().collect()
    }

    fn parameter_origin(&self, number: usize) -> String {
        match self.program.feeds.get(number) {
            Some(feed) => format!("the feed '{}:{}'", feed.id.0, feed.id.1),
            None => {
                let variables = self.program.variables.iter();
                let mut given = variables.filter(|variable| variable.state != VariableState::Unset);
                let variable = given.nth(number - self.program.feeds.len());
                format!("the variable '{}'", variable.map_or("", |variable| &variable.node_name))
            }
        }
    }
}

impl NodeContext<'_, '_> {
    /// Adds the node to an error that does not name it.
    fn at_node(&self, error: Error) -> Error {
        let named = [format!("'{}'", self.name), format!("`{}`", self.name)];
        if named.iter().any(|name| error.message().contains(name)) || error.message().contains("node '") {
            return error;
        }
        let shape = |value: &Value| match value {
            Value::Array(id) => self.importer.scope_ref().shape(*id).to_string(),
            Value::Resource(v) | Value::Reference(v) => {
                format!("variable '{}'", self.importer.variable_name(*v))
            }
            other => other.kind().to_owned(),
        };
        let inputs: Vec<String> = self.inputs.iter().take(8).map(shape).collect();
        let inputs =
            if inputs.is_empty() { String::new() } else { format!(", inputs {}", inputs.join(", ")) };
        let message = format!("{} (node '{}', op '{}'{inputs})", error.message(), self.name, self.node.op);
        error.with_message(message)
    }
}

/// Applies the node's rule, or calls the function that its op names.
fn translate(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let arrays = |ids: Vec<InstructionId>| ids.into_iter().map(Value::Array).collect();
    match rules::find(&cx.node.op) {
        Some(Rule { translation: Translation::One(translate), .. }) => {
            let made = translate(cx)?;
            Ok(arrays(vec![cx.with_input_sizes(made)?]))
        }
        Some(Rule { translation: Translation::Many(translate), .. }) => Ok(arrays(translate(cx)?)),
        Some(Rule { translation: Translation::Values(translate), .. }) => {
            let mut made = translate(cx)?;
            for value in &mut made {
                if let Value::Array(id) = value {
                    *id = cx.with_input_sizes(*id)?;
                }
            }
            Ok(made)
        }
        None => crate::control::calls::call_of_op(cx),
    }
}

/// The nodes of a function that a call must run: what results and control results need, and effects.
pub(crate) fn needed_nodes(program: &tf::Program, function: &Function) -> BTreeSet<NodeId> {
    let graph = &function.graph;
    let effects = graph.nodes.iter().filter(|(_, node)| match rules::find(&node.op) {
        Some(rule) => rule.has_effect,
        // A call may write variables inside.
        None => program.library.get(&node.op).is_some(),
    });
    let mut stack: Vec<NodeId> = effects.map(|(id, _)| id).collect();
    stack.extend(function.results.iter().map(|output| output.node));
    stack.extend(&function.control_results);
    let mut needed = BTreeSet::new();
    while let Some(id) = stack.pop() {
        if needed.insert(id) {
            let node = &graph.nodes[id];
            stack.extend(node.inputs.iter().map(|input| input.node));
            stack.extend(&node.control_inputs);
        }
    }
    needed
}

/// The entry parameter of a feed or a variable.
pub(crate) fn parameter_shape(
    what: &str,
    name: &str,
    data_type: tf::DataType,
    sizes: &[i64],
) -> Result<ArrayShape> {
    let Some(element_type) = data_type.base().primitive_type() else {
        return Err(Error::unsupported(format!(
            "{what} '{name}' has type {data_type}; only numbers and bool can be compiled"
        ))
        .coded(Code::Feed));
    };
    if sizes.iter().any(|&size| size < 0) || shape::index::element_count(sizes).is_none() {
        return Err(
            Error::invalid(format!("{what} '{name}' has no valid shape: {sizes:?}")).coded(Code::Feed)
        );
    }
    let shape = ArrayShape::new(element_type, sizes);
    crate::builder::scope::check_size(&shape.clone().into())
        .map_err(|e| e.context(format!("{what} '{name}'")))?;
    Ok(shape)
}
