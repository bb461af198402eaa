//! A computation under construction: its instructions, what it has captured, the variables' current values, and the
//! constants that its instructions fold to.

use crate::builder::VariableId;
use hlo::analysis::Range;
use hlo::{Computation, InstructionId, Module, Op, OpMetadata, infer_shape};
use shape::{Literal, PrimitiveType, Shape};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use support::{Code, Error, Result};

/// No array of a program is larger: more would be a mistake in the graph, and its sizes could overflow.
const MAX_ARRAY_BYTES: u64 = 1 << 42;

/// How many steps all evaluations of an import may take together: a graph may hold any number of loops of constants that
/// run for ever.
const MAX_FOLD_STEPS: u64 = 1 << 23;

/// What a branch or a loop takes from the computation around it: the elements of its one parameter, a tuple.
#[derive(Clone, Debug)]
pub struct Captures {
    pub(super) parameter: InstructionId,
    /// The elements: instructions of the enclosing scope. Those of a loop are what it begins with.
    pub(super) outer: Vec<InstructionId>,
    /// Their shapes; the parameter gets them when the computation is finished.
    shapes: Vec<Shape>,
    /// Which element a captured instruction is. What a loop carries is not here: it changes.
    index: BTreeMap<InstructionId, usize>,
    /// Which element a variable is. Only of loops, where it may change.
    variables: BTreeMap<VariableId, usize>,
    /// The `get-tuple-element` of each element that was asked for.
    inner: BTreeMap<usize, InstructionId>,
    is_loop: bool,
}

/// What is known of the loop whose body or condition is being built.
#[derive(Clone, Debug)]
pub struct LoopFacts {
    /// The most iterations; `None` if nothing bounds them.
    pub bound: Option<u64>,
    /// Why there is no bound, and how to give one.
    pub why_unbounded: String,
}

/// A computation under construction.
#[derive(Debug)]
pub struct Scope {
    pub(super) computation: Computation,
    pub(super) metadata: OpMetadata,
    /// `None` for the entry.
    pub(super) captures: Option<Captures>,
    /// `Some` in the body and in the condition of a loop.
    pub(super) loop_facts: Option<LoopFacts>,
    /// Which branch of a conditional this is.
    pub(super) branch: Option<usize>,
    /// The current value of each variable that was read or written here; of all of them in the entry.
    pub(super) variables: BTreeMap<VariableId, InstructionId>,
    /// The variables written here, with the node that did it first.
    pub(super) written: BTreeMap<VariableId, String>,
    /// What is known of integers beside what follows from their operands.
    pub(super) ranges: BTreeMap<InstructionId, Range>,
    /// The value of each instruction that was asked for; `None` if it depends on what is known at run time only.
    pub(super) folded: BTreeMap<InstructionId, Option<Literal>>,
    /// The true sizes that the elements of a tuple have, if some are bounded.
    pub(super) tuple_sizes: BTreeMap<InstructionId, Vec<Option<InstructionId>>>,
    /// How many steps the evaluation of instructions may still take, in all scopes of the import together.
    pub(super) fold_steps_left: Rc<Cell<u64>>,
}

impl Scope {
    /// The entry: parameters are added by the caller.
    pub(crate) fn entry(name: &str) -> Self {
        Self {
            computation: Computation::new(name),
            metadata: OpMetadata::default(),
            captures: None,
            loop_facts: None,
            branch: None,
            variables: BTreeMap::new(),
            written: BTreeMap::new(),
            ranges: BTreeMap::new(),
            folded: BTreeMap::new(),
            tuple_sizes: BTreeMap::new(),
            fold_steps_left: Rc::new(Cell::new(MAX_FOLD_STEPS)),
        }
    }

    /// A branch, with one parameter: a tuple of what it captures.
    pub(crate) fn branch(name: &str) -> Self {
        let mut scope = Self::entry(name);
        let parameter = scope.add_parameter();
        scope.captures = Some(Captures {
            parameter,
            outer: Vec::new(),
            shapes: Vec::new(),
            index: BTreeMap::new(),
            variables: BTreeMap::new(),
            inner: BTreeMap::new(),
            is_loop: false,
        });
        scope
    }

    /// A computation of a loop: its parameter's first elements are what the loop carries.
    pub(crate) fn of_loop(name: &str, carried: &[(InstructionId, Shape)], facts: LoopFacts) -> Self {
        let mut scope = Self::branch(name);
        scope.loop_facts = Some(facts);
        let captures = scope.captures.as_mut().expect("a branch captures");
        captures.is_loop = true;
        for (outer, shape) in carried {
            captures.outer.push(*outer);
            captures.shapes.push(shape.clone());
        }
        scope
    }

    /// Another computation of the same loop: its parameter begins like that of the first.
    pub fn of_same_loop(&self, name: &str) -> Self {
        let mut scope = Self::entry(name);
        scope.metadata = self.metadata.clone();
        scope.loop_facts = self.loop_facts.clone();
        let parameter = scope.add_parameter();
        let captures = self.captures.clone().expect("a loop captures");
        scope.captures = Some(Captures { parameter, inner: BTreeMap::new(), ..captures });
        scope
    }

    /// A computation of elements, a parameter for each of these types, of which there is at least one. It may take
    /// nothing else from outside: [`Self::finish_elements`] asks.
    pub fn of_elements(name: &str, types: &[PrimitiveType]) -> (Self, Vec<InstructionId>) {
        let mut scope = Self::entry(name);
        let mut parameters = Vec::with_capacity(types.len());
        for (number, &element_type) in types.iter().enumerate() {
            let (op, shape) = (Op::Parameter { number }, Shape::scalar(element_type));
            parameters.push(scope.computation.add("element", op, shape, &[], OpMetadata::default()));
        }
        scope.captures = Some(Captures {
            parameter: *parameters.first().expect("a computation of elements has a parameter"),
            outer: Vec::new(),
            shapes: Vec::new(),
            index: BTreeMap::new(),
            variables: BTreeMap::new(),
            inner: BTreeMap::new(),
            is_loop: false,
        });
        (scope, parameters)
    }

    /// Makes an instruction the root of a computation of elements; nothing if it captures something.
    pub fn finish_elements(mut self, root: InstructionId) -> Option<Computation> {
        let captures = self.captures.take().is_some_and(|captures| !captures.outer.is_empty());
        if captures || !self.written.is_empty() {
            return None;
        }
        Some(self.finish_at(root).0)
    }

    fn add_parameter(&mut self) -> InstructionId {
        let shape = Shape::Tuple(Vec::new());
        self.computation.add("arguments", Op::Parameter { number: 0 }, shape, &[], OpMetadata::default())
    }

    fn captures_mut(&mut self) -> &mut Captures {
        self.captures.as_mut().expect("only branches and loops capture")
    }

    /// The instruction that stands for `outer`, an instruction of this shape in the enclosing scope.
    pub fn capture(&mut self, outer: InstructionId, shape: &Shape) -> InstructionId {
        let captures = self.captures_mut();
        let index = match captures.index.get(&outer) {
            Some(&index) => index,
            None => {
                let index = captures.push(outer, shape);
                captures.index.insert(outer, index);
                index
            }
        };
        self.element(index)
    }

    /// The instruction that stands for a variable, whose value in the enclosing scope is `outer`.
    pub fn capture_variable(
        &mut self,
        variable: VariableId,
        outer: InstructionId,
        shape: &Shape,
    ) -> InstructionId {
        let captures = self.captures_mut();
        if !captures.is_loop {
            return self.capture(outer, shape);
        }
        let index = match captures.variables.get(&variable) {
            Some(&index) => index,
            None => {
                let index = captures.push(outer, shape);
                captures.variables.insert(variable, index);
                index
            }
        };
        self.element(index)
    }

    /// An element of the parameter that a loop keeps, although another may begin with the same value.
    pub fn capture_apart(&mut self, outer: InstructionId, shape: &Shape) -> usize {
        self.captures_mut().push(outer, shape)
    }

    /// Takes over the elements that another computation of the same loop has added to the parameter.
    pub fn match_elements(&mut self, other: &Self) {
        let other = other.captures.as_ref().expect("a loop captures");
        let captures = self.captures_mut();
        captures.outer.clone_from(&other.outer);
        captures.shapes.clone_from(&other.shapes);
    }

    /// The `get-tuple-element` of an element of the parameter.
    pub fn element(&mut self, index: usize) -> InstructionId {
        let metadata = self.metadata.clone();
        let captures = self.captures_mut();
        if let Some(&inner) = captures.inner.get(&index) {
            return inner;
        }
        let (shape, operands) = (captures.shapes[index].clone(), [captures.parameter]);
        let op = Op::GetTupleElement { index };
        let inner = self.computation.add("", op, shape, &operands, metadata);
        self.captures_mut().inner.insert(index, inner);
        inner
    }

    /// The instructions built so far.
    pub fn computation(&self) -> &Computation {
        &self.computation
    }

    /// Adds a parameter of the entry.
    pub fn add_entry_parameter(&mut self, name: &str, shape: Shape, metadata: OpMetadata) -> InstructionId {
        let number = self.computation.parameters().len();
        self.computation.add(name, Op::Parameter { number }, shape, &[], metadata)
    }

    /// What has been taken from the enclosing scope; `None` for the entry.
    pub fn captures(&self) -> Option<&Captures> {
        self.captures.as_ref()
    }

    /// The true sizes that the elements of a tuple have, if some are bounded.
    pub(crate) fn tuple_sizes(&self, tuple: InstructionId) -> Option<&[Option<InstructionId>]> {
        self.tuple_sizes.get(&tuple).map(Vec::as_slice)
    }

    /// Notes these sizes.
    pub(crate) fn set_tuple_sizes(&mut self, tuple: InstructionId, sizes: Vec<Option<InstructionId>>) {
        self.tuple_sizes.insert(tuple, sizes);
    }

    /// The variables written here, with who did it first.
    pub fn written(&self) -> &BTreeMap<VariableId, String> {
        &self.written
    }

    /// The value of a variable that was read or written here.
    pub fn variable(&self, variable: VariableId) -> Option<InstructionId> {
        self.variables.get(&variable).copied()
    }

    /// The shape of an instruction.
    pub fn shape(&self, id: InstructionId) -> &Shape {
        self.computation[id].shape()
    }

    /// Adds an instruction; an error if the operands do not fit. `wanted` is for the opcodes whose shape does not
    /// follow from their operands.
    pub fn add(
        &mut self,
        module: &Module,
        op: Op,
        operands: &[InstructionId],
        wanted: Option<&Shape>,
    ) -> Result<InstructionId> {
        let shapes: Vec<&Shape> = operands.iter().map(|&id| self.computation[id].shape()).collect();
        let shape = infer_shape(module, &op, &shapes, wanted)?;
        check_size(&shape)?;
        Ok(self.computation.add("", op, shape, operands, self.metadata.clone()))
    }

    /// Adds a constant.
    pub fn add_constant(&mut self, literal: Literal) -> InstructionId {
        let shape = literal.shape();
        self.computation.add("", Op::Constant { literal }, shape, &[], self.metadata.clone())
    }

    /// Makes a tuple the root, drops what it does not need, and gives the computation away.
    pub fn finish(mut self, elements: &[InstructionId]) -> (Computation, Vec<InstructionId>) {
        let shapes = elements.iter().map(|&id| self.computation[id].shape().clone()).collect();
        let root =
            self.computation.add("", Op::Tuple {}, Shape::Tuple(shapes), elements, OpMetadata::default());
        self.finish_at(root)
    }

    /// Makes an instruction the root, drops what it does not need, and gives the computation away.
    pub fn finish_at(mut self, root: InstructionId) -> (Computation, Vec<InstructionId>) {
        self.computation.set_root(root);
        if let Some(captures) = &mut self.captures {
            let shapes = std::mem::take(&mut captures.shapes);
            self.computation.set_shape(captures.parameter, Shape::Tuple(shapes));
        }
        remove_dead_instructions(&mut self.computation);
        (self.computation, self.captures.map(|c| c.outer).unwrap_or_default())
    }
}

impl Captures {
    fn push(&mut self, outer: InstructionId, shape: &Shape) -> usize {
        self.outer.push(outer);
        self.shapes.push(shape.clone());
        self.outer.len() - 1
    }

    /// The parameter.
    pub fn parameter(&self) -> InstructionId {
        self.parameter
    }

    /// The elements: instructions of the enclosing scope.
    pub fn outer(&self) -> &[InstructionId] {
        &self.outer
    }

    /// The shapes of the elements.
    pub fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    /// The elements that variables are.
    pub fn variables(&self) -> &BTreeMap<VariableId, usize> {
        &self.variables
    }

    /// Whether an element is the same in every iteration: something captured that is no variable.
    pub fn is_captured(&self, index: usize) -> bool {
        self.outer.get(index).is_some_and(|outer| self.index.get(outer) == Some(&index))
    }
}

/// Removes what neither the root nor an effect needs. Parameters stay.
fn remove_dead_instructions(computation: &mut Computation) {
    let needed: std::collections::BTreeSet<InstructionId> = computation.post_order().into_iter().collect();
    let dead: Vec<InstructionId> =
        computation.instructions().map(|(id, _)| id).filter(|id| !needed.contains(id)).collect();
    // Users come after what they use, so going backwards removes users first.
    for &id in dead.iter().rev() {
        computation.remove(id);
    }
}

/// Refuses shapes that no machine holds.
pub fn check_size(shape: &Shape) -> Result<()> {
    if shape.byte_size() > MAX_ARRAY_BYTES {
        return Err(Error::invalid(format!(
            "the result would have the shape {shape}, which is more than {MAX_ARRAY_BYTES} bytes"
        ))
        .coded(Code::TooLarge));
    }
    Ok(())
}
