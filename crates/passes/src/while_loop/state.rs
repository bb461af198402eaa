//! A loop whose state is a tuple that is built, read, and returned element by element, and its
//! editing operations.

use hlo::analysis::{self, Range, TripCount};
use hlo::{Computation, ComputationId, InstructionId, Module, Op, OpMetadata};
use shape::{ArrayShape, Shape};
use std::collections::{BTreeMap, BTreeSet};

/// A `while` loop in the canonical form:
///
/// - Its operand is a `tuple`, and all its users take elements from it.
/// - The condition and the body only take elements from their parameter, and the body's root is a
///   `tuple`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loop {
    pub(super) caller: ComputationId,
    pub(super) id: InstructionId,
    pub(super) condition: ComputationId,
    pub(super) body: ComputationId,
}

/// The position of a `while` in a module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site {
    pub(super) caller: ComputationId,
    pub(super) id: InstructionId,
}

impl Loop {
    /// Every `while` that is executed, inner loops first.
    pub(super) fn sites(module: &Module) -> Vec<Site> {
        let mut sites = Vec::new();
        for caller in crate::query::executed_computations(module) {
            let computation = &module[caller];
            if computation.opcodes().all(|(_, opcode)| opcode != hlo::Opcode::While) {
                continue;
            }
            let is_loop = |id: &InstructionId| matches!(computation[*id].op(), Op::While { .. });
            sites.extend(computation.post_order().into_iter().filter(is_loop).map(|id| Site { caller, id }));
        }
        sites
    }

    /// The loop at a site, if it still exists and has the canonical form.
    pub(super) fn at(module: &Module, site: Site) -> Option<Self> {
        let Site { caller, id } = site;
        let computation = module.get(caller)?;
        let instruction = computation.get(id)?;
        let Op::While { condition, body } = *instruction.op() else { return None };
        let candidate = Self { caller, id, condition, body };
        let is_form = is_tuple(computation, instruction.operands()[0])
            && reads_elements_only(computation, id)
            && reads_elements_only(&module[condition], module[condition].parameters()[0])
            && reads_elements_only(&module[body], module[body].parameters()[0])
            && is_tuple(&module[body], module[body].root());
        is_form.then_some(candidate)
    }

    /// Brings a `while` over a tuple into the canonical form. Returns true if anything changed.
    /// Exact for every input.
    pub(super) fn canonicalize(module: &mut Module, site: Site) -> bool {
        let Site { caller, id } = site;
        let Op::While { condition, body } = *module[caller][id].op() else { return false };
        let is_over_tuple = matches!(module[caller][id].shape(), Shape::Tuple(_));
        if !is_over_tuple || Self::at(module, site).is_some() {
            return false;
        }
        let candidate = Self { caller, id, condition, body }.exclusive(module);
        let start = module[caller][id].operands()[0];
        if !is_tuple(&module[caller], start) {
            let start = rebuilt_tuple(module.computation_mut(caller), start);
            module.computation_mut(caller).replace_operand(id, 0, start);
        }
        for computation in [candidate.condition, candidate.body] {
            let parameter = module[computation].parameters()[0];
            read_by_elements(module.computation_mut(computation), parameter);
        }
        let computation = module.computation_mut(candidate.body);
        let root = computation.root();
        if !is_tuple(computation, root) {
            let root = rebuilt_tuple(computation, root);
            computation.set_root(root);
        }
        read_by_elements(module.computation_mut(caller), id);
        true
    }

    /// The same loop with a condition and a body of its own, because other callers may share the
    /// current ones.
    pub(super) fn exclusive(mut self, module: &mut Module) -> Self {
        for (which, id) in [(0, self.condition), (1, self.body)] {
            let calls = |computation: &Computation| -> usize {
                let called = computation.instructions().flat_map(|(_, i)| i.op().called_computations());
                called.filter(|&callee| callee == id).count()
            };
            if module.computations().map(|(_, computation)| calls(computation)).sum::<usize>() > 1 {
                let copy = module[id].clone();
                let copy = module.add_computation(copy);
                *[&mut self.condition, &mut self.body][which] = copy;
            }
        }
        let op = Op::While { condition: self.condition, body: self.body };
        module.computation_mut(self.caller).set_op(self.id, op);
        self
    }

    /// The current state of the loop, which may have received a condition and a body of its own.
    pub(super) fn current(self, module: &Module) -> Self {
        match *module[self.caller][self.id].op() {
            Op::While { condition, body } => Self { condition, body, ..self },
            _ => self,
        }
    }

    pub(super) fn element_count(&self, module: &Module) -> usize {
        module[self.caller][self.id].shape().as_tuple().map_or(0, <[_]>::len)
    }

    /// The shape of an element that is an array.
    pub(super) fn array<'m>(&self, module: &'m Module, element: usize) -> Option<&'m ArrayShape> {
        module[self.caller][self.id].shape().get(&[element])?.as_array()
    }

    /// The initial value of an element, in the caller.
    pub(super) fn start(&self, module: &Module, element: usize) -> InstructionId {
        let tuple = module[self.caller][self.id].operands()[0];
        module[self.caller][tuple].operands()[element]
    }

    /// Replaces the initial value of an element.
    pub(super) fn set_start(&self, module: &mut Module, element: usize, start: InstructionId) {
        let caller = module.computation_mut(self.caller);
        let tuple = caller[self.id].operands()[0];
        let mut elements = caller[tuple].operands().to_vec();
        elements[element] = start;
        let (shape, metadata) = (caller[tuple].shape().clone(), caller[tuple].metadata().clone());
        let tuple = caller.add("tuple", Op::Tuple {}, shape, &elements, metadata);
        caller.replace_operand(self.id, 0, tuple);
    }

    /// The value of an element after an iteration, in the body.
    pub(super) fn next(&self, module: &Module, element: usize) -> InstructionId {
        let body = &module[self.body];
        body[body.root()].operands()[element]
    }

    /// Reads an element in the condition or the body.
    pub(super) fn read(
        &self,
        module: &mut Module,
        computation: ComputationId,
        element: usize,
    ) -> InstructionId {
        let parameter = module[computation].parameters()[0];
        take(module.computation_mut(computation), parameter, element)
    }

    /// Reads an element after the loop, in the caller.
    pub(super) fn after(&self, module: &mut Module, element: usize) -> InstructionId {
        take(module.computation_mut(self.caller), self.id, element)
    }

    /// The instructions that read an element of `tuple`.
    pub(super) fn reads(
        computation: &Computation,
        tuple: InstructionId,
        element: usize,
    ) -> Vec<InstructionId> {
        let is_read = |id: &&InstructionId| matches!(*computation[**id].op(), Op::GetTupleElement { index } if index == element);
        computation[tuple].users().iter().filter(is_read).copied().collect()
    }

    /// The elements that the body passes through.
    pub(super) fn invariants(&self, module: &Module) -> BTreeSet<usize> {
        analysis::invariant_elements(module, &module[self.body])
    }

    /// Known range of an integer element before the loop.
    pub(super) fn initial_range(&self, module: &Module, element: usize) -> Range {
        let start = self.start(module, element);
        analysis::range_in(module, &module[self.caller], start, &|_| None)
    }

    pub(super) fn trip_count(&self, module: &Module) -> TripCount {
        let initial = |k: usize| self.initial_range(module, k);
        analysis::trip_count(module, &module[self.condition], &module[self.body], &initial)
    }

    /// Known range of each element at the start of every iteration.
    pub(super) fn state_ranges(&self, module: &Module) -> Vec<Range> {
        let initial = |k: usize| self.initial_range(module, k);
        analysis::state_ranges(module, &module[self.condition], &module[self.body], &initial)
    }

    /// True if the condition, the body, or their callees have an effect besides their result.
    pub(super) fn has_effects(&self, module: &Module) -> bool {
        let mut pending = vec![self.condition, self.body];
        let mut seen = BTreeSet::new();
        while let Some(id) = pending.pop() {
            if !seen.insert(id) {
                continue;
            }
            for (_, instruction) in module[id].instructions() {
                if instruction.has_effect() {
                    return true;
                }
                pending.extend(instruction.op().called_computations());
            }
        }
        false
    }

    /// Makes `next` the value of an element after an iteration.
    pub(super) fn set_next(&self, module: &mut Module, element: usize, next: InstructionId) {
        let body = module.computation_mut(self.body);
        let root = body.root();
        body.replace_operand(root, element, next);
    }

    /// Adds an element to the state, which the body passes through, and returns its index. The loop
    /// must have a condition and a body of its own ([`Self::exclusive`]).
    pub(super) fn add_element(&self, module: &mut Module, start: InstructionId) -> usize {
        let element = self.element_count(module);
        let mut starts: Vec<InstructionId> = (0..element).map(|k| self.start(module, k)).collect();
        let mut nexts: Vec<InstructionId> = (0..element).map(|k| self.next(module, k)).collect();
        starts.push(start);
        let shape = tuple_shape(&module[self.caller], &starts);
        self.set_shapes(module, &shape);
        nexts.push(self.read(module, self.body, element));
        self.set_tuples(module, &shape, &starts, &nexts);
        element
    }

    /// Removes elements that only the body's result tuple reads. The loop must have a condition and
    /// a body of its own.
    pub(super) fn remove_elements(&self, module: &mut Module, removed: &BTreeSet<usize>) {
        let remaining: Vec<usize> =
            (0..self.element_count(module)).filter(|k| !removed.contains(k)).collect();
        let starts: Vec<InstructionId> = remaining.iter().map(|&k| self.start(module, k)).collect();
        let nexts: Vec<InstructionId> = remaining.iter().map(|&k| self.next(module, k)).collect();
        let shape = tuple_shape(&module[self.caller], &starts);
        self.set_tuples(module, &shape, &starts, &nexts);
        let places: BTreeMap<usize, usize> =
            remaining.iter().enumerate().map(|(new, &old)| (old, new)).collect();
        let sites = [
            (self.condition, module[self.condition].parameters()[0]),
            (self.body, module[self.body].parameters()[0]),
            (self.caller, self.id),
        ];
        for (id, tuple) in sites {
            let computation = module.computation_mut(id);
            crate::simplify::dce::sweep(computation);
            for user in computation[tuple].users().to_vec() {
                let Op::GetTupleElement { index } = *computation[user].op() else { continue };
                let index = places.get(&index).copied().expect("removed element is still read");
                computation.set_op(user, Op::GetTupleElement { index });
            }
        }
        self.set_shapes(module, &shape);
    }

    fn set_shapes(&self, module: &mut Module, shape: &Shape) {
        for id in [self.condition, self.body] {
            let parameter = module[id].parameters()[0];
            module.computation_mut(id).set_shape(parameter, shape.clone());
        }
        module.computation_mut(self.caller).set_shape(self.id, shape.clone());
    }

    fn set_tuples(
        &self,
        module: &mut Module,
        shape: &Shape,
        starts: &[InstructionId],
        nexts: &[InstructionId],
    ) {
        let caller = module.computation_mut(self.caller);
        let old = caller[self.id].operands()[0];
        let new = caller.add("", Op::Tuple {}, shape.clone(), starts, caller[old].metadata().clone());
        caller.replace_operand(self.id, 0, new);
        if caller[old].users().is_empty() && caller.root() != old {
            caller.remove(old);
        }
        let body = module.computation_mut(self.body);
        let old = body.root();
        let (name, metadata) = (body[old].name().to_owned(), body[old].metadata().clone());
        let new = body.add("", Op::Tuple {}, shape.clone(), nexts, metadata);
        body.set_root(new);
        if body[old].users().is_empty() {
            body.remove(old);
        }
        body.rename(new, &name);
    }
}

fn tuple_shape(computation: &Computation, elements: &[InstructionId]) -> Shape {
    Shape::Tuple(elements.iter().map(|&id| computation[id].shape().clone()).collect())
}

fn is_tuple(computation: &Computation, id: InstructionId) -> bool {
    matches!(computation[id].op(), Op::Tuple {})
}

fn reads_elements_only(computation: &Computation, tuple: InstructionId) -> bool {
    let is_read = |user: &InstructionId| matches!(computation[*user].op(), Op::GetTupleElement { .. });
    computation.root() != tuple && computation[tuple].users().iter().all(is_read)
}

/// An element of a tuple: an existing read or a new one.
pub(super) fn take(computation: &mut Computation, tuple: InstructionId, element: usize) -> InstructionId {
    if let Some(&read) = Loop::reads(computation, tuple, element).first() {
        return read;
    }
    let shape = computation[tuple].shape().get(&[element]).expect("tuple has no such element").clone();
    let metadata = computation[tuple].metadata().clone();
    computation.add("", Op::GetTupleElement { index: element }, shape, &[tuple], metadata)
}

/// A tuple of all elements of a tuple.
fn rebuilt_tuple(computation: &mut Computation, tuple: InstructionId) -> InstructionId {
    let shape = computation[tuple].shape().clone();
    let count = shape.as_tuple().map_or(0, <[_]>::len);
    let elements: Vec<InstructionId> = (0..count).map(|k| take(computation, tuple, k)).collect();
    computation.add("", Op::Tuple {}, shape, &elements, OpMetadata::default())
}

/// Makes users of a whole tuple read it through its elements.
fn read_by_elements(computation: &mut Computation, tuple: InstructionId) {
    if reads_elements_only(computation, tuple) {
        return;
    }
    let users = computation[tuple].users().to_vec();
    let whole = rebuilt_tuple(computation, tuple);
    for user in users {
        if matches!(computation[user].op(), Op::GetTupleElement { .. }) {
            continue;
        }
        for position in 0..computation[user].operands().len() {
            if computation[user].operands()[position] == tuple {
                computation.replace_operand(user, position, whole);
            }
        }
    }
    if computation.root() == tuple {
        computation.set_root(whole);
    }
}
