//! A computation under construction: its instructions, its captures, the variables' current values,
//! and the constants that its instructions fold to.

use crate::algebra::Polynomial;
use crate::arrays::Size;
use crate::builder::VariableId;
use hlo::analysis::Range;
use hlo::{Computation, InstructionId, Module, Op, OpMetadata, infer_shape};
use shape::{Literal, PrimitiveType, Shape};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use support::{Code, Error, Result};

/// Maximum size of an array. A larger one indicates a mistake in the graph, and its sizes could
/// overflow.
const MAX_ARRAY_BYTES: u64 = 1 << 42;

/// Maximum number of steps of all evaluations of an import. A graph may contain any number of
/// infinite loops on constants.
const MAX_FOLD_STEPS: u64 = 1 << 23;

/// The values that a branch or a loop captures from the enclosing computation: the elements of its
/// only parameter, a tuple.
#[derive(Clone, Debug)]
pub struct Captures {
    pub(super) parameter: InstructionId,
    /// The elements: instructions of the enclosing scope. Those of a loop are its initial values.
    pub(super) outer: Vec<InstructionId>,
    /// Their shapes. The parameter gets them when the computation is finished.
    shapes: Vec<Shape>,
    /// Element index of each captured instruction. Carried values of a loop are not included,
    /// because they change.
    index: BTreeMap<InstructionId, usize>,
    /// Element index of each variable. Only for loops, which may change it.
    variables: BTreeMap<VariableId, usize>,
    /// The `get-tuple-element` of each element requested so far.
    inner: BTreeMap<usize, InstructionId>,
    is_loop: bool,
}

/// Facts about the loop whose body or condition is being built.
#[derive(Clone, Debug)]
pub struct LoopFacts {
    /// Maximum number of iterations. `None` if there is no bound.
    pub bound: Option<u64>,
    /// The reason why there is no bound, and how to supply one.
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
    /// Index of the branch of a conditional.
    pub(super) branch: Option<usize>,
    /// The current value of each variable that was read or written here. In the entry, of all
    /// variables.
    pub(super) variables: BTreeMap<VariableId, InstructionId>,
    /// The variables written here, with the first node that wrote each.
    pub(super) written: BTreeMap<VariableId, String>,
    /// Ranges of integers, in addition to those that follow from their operands.
    pub(super) ranges: BTreeMap<InstructionId, Range>,
    /// The value of each instruction evaluated so far. `None` if it depends on run-time values.
    pub(super) folded: BTreeMap<InstructionId, Option<Literal>>,
    /// Elements of integers as polynomials, as far as they were needed.
    pub(super) polynomials: BTreeMap<(InstructionId, usize), Polynomial>,
    /// The instruction of each size.
    pub(super) sizes: BTreeMap<Polynomial, InstructionId>,
    /// The true sizes of the elements of tuples with bounded elements.
    pub(super) tuple_sizes: BTreeMap<InstructionId, Vec<Option<InstructionId>>>,
    /// For whole arrays whose elements a reshape moved, the array before it, and their true sizes.
    pub(crate) joined: BTreeMap<InstructionId, (InstructionId, Vec<Size>)>,
    /// Remaining evaluation steps, shared by all scopes of the import.
    pub(super) fold_steps_left: Rc<Cell<u64>>,
}

impl Scope {
    /// Creates the entry. The caller adds its parameters.
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
            polynomials: BTreeMap::new(),
            sizes: BTreeMap::new(),
            tuple_sizes: BTreeMap::new(),
            joined: BTreeMap::new(),
            fold_steps_left: Rc::new(Cell::new(MAX_FOLD_STEPS)),
        }
    }

    /// Creates a branch with one parameter, a tuple of its captures.
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

    /// Creates a computation of a loop. Its parameter begins with the carried values.
    pub(crate) fn of_loop(name: &str, carried: &[(InstructionId, Shape)], facts: LoopFacts) -> Self {
        let mut scope = Self::branch(name);
        scope.loop_facts = Some(facts);
        let captures = scope.captures.as_mut().expect("the scope of a branch has no captures");
        captures.is_loop = true;
        for (outer, shape) in carried {
            captures.outer.push(*outer);
            captures.shapes.push(shape.clone());
        }
        scope
    }

    /// Creates another computation of the same loop. Its parameter begins like that of the first.
    pub fn of_same_loop(&self, name: &str) -> Self {
        let mut scope = Self::entry(name);
        scope.metadata = self.metadata.clone();
        scope.loop_facts = self.loop_facts.clone();
        let parameter = scope.add_parameter();
        let captures = self.captures.clone().expect("the scope of a loop has no captures");
        scope.captures = Some(Captures { parameter, inner: BTreeMap::new(), ..captures });
        scope
    }

    /// Creates a computation of elements, with a parameter for each of these types, at least one.
    /// It must not capture anything, which [`Self::finish_elements`] checks.
    pub fn of_elements(name: &str, types: &[PrimitiveType]) -> (Self, Vec<InstructionId>) {
        let mut scope = Self::entry(name);
        let mut parameters = Vec::with_capacity(types.len());
        for (number, &element_type) in types.iter().enumerate() {
            let (op, shape) = (Op::Parameter { number }, Shape::scalar(element_type));
            parameters.push(scope.computation.add("element", op, shape, &[], OpMetadata::default()));
        }
        scope.captures = Some(Captures {
            parameter: *parameters.first().expect("a computation of elements without a parameter"),
            outer: Vec::new(),
            shapes: Vec::new(),
            index: BTreeMap::new(),
            variables: BTreeMap::new(),
            inner: BTreeMap::new(),
            is_loop: false,
        });
        (scope, parameters)
    }

    /// Makes an instruction the root of a computation of elements. Returns `None` if it captures
    /// something.
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
        self.captures.as_mut().expect("the entry has no captures")
    }

    /// Returns the instruction that represents `outer`, an instruction of this shape in the
    /// enclosing scope.
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

    /// Returns the instruction that represents a variable, whose value in the enclosing scope is
    /// `outer`.
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

    /// Adds an element to a loop's parameter, even if another has the same initial value.
    pub fn capture_apart(&mut self, outer: InstructionId, shape: &Shape) -> usize {
        self.captures_mut().push(outer, shape)
    }

    /// Copies the elements that another computation of the same loop has added to the parameter.
    pub fn match_elements(&mut self, other: &Self) {
        let other = other.captures.as_ref().expect("the scope of a loop has no captures");
        let captures = self.captures_mut();
        captures.outer.clone_from(&other.outer);
        captures.shapes.clone_from(&other.shapes);
    }

    /// Returns the `get-tuple-element` of an element of the parameter.
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

    /// Returns the instructions built so far.
    pub fn computation(&self) -> &Computation {
        &self.computation
    }

    /// Adds a parameter of the entry.
    pub fn add_entry_parameter(&mut self, name: &str, shape: Shape, metadata: OpMetadata) -> InstructionId {
        let number = self.computation.parameters().len();
        self.computation.add(name, Op::Parameter { number }, shape, &[], metadata)
    }

    /// Returns the values captured from the enclosing scope, or `None` for the entry.
    pub fn captures(&self) -> Option<&Captures> {
        self.captures.as_ref()
    }

    /// Returns the true sizes of the elements of a tuple, if some are bounded.
    pub(crate) fn tuple_sizes(&self, tuple: InstructionId) -> Option<&[Option<InstructionId>]> {
        self.tuple_sizes.get(&tuple).map(Vec::as_slice)
    }

    /// Records these sizes.
    pub(crate) fn set_tuple_sizes(&mut self, tuple: InstructionId, sizes: Vec<Option<InstructionId>>) {
        self.tuple_sizes.insert(tuple, sizes);
    }

    /// Returns the variables written here, with the first node that wrote each.
    pub fn written(&self) -> &BTreeMap<VariableId, String> {
        &self.written
    }

    /// Returns the value of a variable that was read or written here.
    pub fn variable(&self, variable: VariableId) -> Option<InstructionId> {
        self.variables.get(&variable).copied()
    }

    /// Returns the shape of an instruction.
    pub fn shape(&self, id: InstructionId) -> &Shape {
        self.computation[id].shape()
    }

    /// Adds an instruction. Returns an error if the operands do not match. `requested` is the shape
    /// for opcodes whose shape does not follow from their operands.
    pub fn add(
        &mut self,
        module: &Module,
        op: Op,
        operands: &[InstructionId],
        requested: Option<&Shape>,
    ) -> Result<InstructionId> {
        let shapes: Vec<&Shape> = operands.iter().map(|&id| self.computation[id].shape()).collect();
        let shape = infer_shape(module, &op, &shapes, requested)?;
        check_size(&shape)?;
        Ok(self.computation.add("", op, shape, operands, self.metadata.clone()))
    }

    /// Adds a constant.
    pub fn add_constant(&mut self, literal: Literal) -> InstructionId {
        let shape = literal.shape();
        self.computation.add("", Op::Constant { literal }, shape, &[], self.metadata.clone())
    }

    /// Makes a tuple the root, removes unused instructions, and returns the computation and its
    /// captures.
    pub fn finish(mut self, elements: &[InstructionId]) -> (Computation, Vec<InstructionId>) {
        let shapes = elements.iter().map(|&id| self.computation[id].shape().clone()).collect();
        let root =
            self.computation.add("", Op::Tuple {}, Shape::Tuple(shapes), elements, OpMetadata::default());
        self.finish_at(root)
    }

    /// Makes an instruction the root, removes unused instructions, and returns the computation and
    /// its captures.
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

    /// Returns the parameter.
    pub fn parameter(&self) -> InstructionId {
        self.parameter
    }

    /// Returns the elements: instructions of the enclosing scope.
    pub fn outer(&self) -> &[InstructionId] {
        &self.outer
    }

    /// Returns the shapes of the elements.
    pub fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    /// Returns the element index of each variable.
    pub fn variables(&self) -> &BTreeMap<VariableId, usize> {
        &self.variables
    }

    /// True if an element is the same in every iteration: a captured instruction that is not a
    /// variable.
    pub fn is_captured(&self, index: usize) -> bool {
        self.outer.get(index).is_some_and(|outer| self.index.get(outer) == Some(&index))
    }
}

/// Removes instructions without uses or effects. Parameters remain.
fn remove_dead_instructions(computation: &mut Computation) {
    let needed: std::collections::BTreeSet<InstructionId> = computation.post_order().into_iter().collect();
    let dead: Vec<InstructionId> =
        computation.instructions().map(|(id, _)| id).filter(|id| !needed.contains(id)).collect();
    // Users follow their operands, so the reverse order removes users first.
    for &id in dead.iter().rev() {
        computation.remove(id);
    }
}

/// Rejects shapes that exceed `MAX_ARRAY_BYTES`.
pub fn check_size(shape: &Shape) -> Result<()> {
    if shape.byte_size() > MAX_ARRAY_BYTES {
        return Err(Error::invalid(format!("the result {shape} is larger than {MAX_ARRAY_BYTES} bytes"))
            .coded(Code::TooLarge));
    }
    Ok(())
}
