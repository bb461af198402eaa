//! A computation under construction: its instructions, what it has captured, the variables' current values, and the
//! constants that its instructions fold to.

use crate::value::VariableId;
use hlo::{Computation, InstructionId, Module, Op, OpMetadata, infer_shape};
use shape::{Literal, Shape};
use std::collections::BTreeMap;
use support::{Error, Result};

/// No array of a program is larger: more would be a mistake in the graph, and its sizes could overflow.
const MAX_ARRAY_BYTES: u64 = 1 << 42;

/// What a branch takes from the computation around it: the elements of its one parameter, a tuple.
#[derive(Debug)]
pub(crate) struct Captures {
    pub(crate) parameter: InstructionId,
    /// The elements: instructions of the enclosing scope.
    pub(crate) outer: Vec<InstructionId>,
    /// Their shapes; the parameter gets them when the branch is finished.
    shapes: Vec<Shape>,
    /// The `get-tuple-element` of each captured instruction.
    inner: BTreeMap<InstructionId, InstructionId>,
}

/// A computation under construction.
#[derive(Debug)]
pub(crate) struct Scope {
    pub(crate) computation: Computation,
    pub(crate) metadata: OpMetadata,
    /// `None` for the entry.
    pub(crate) captures: Option<Captures>,
    /// The current value of each variable that was read or written here; of all of them in the entry.
    pub(crate) variables: BTreeMap<VariableId, InstructionId>,
    /// The variables written here, with the node that did it first.
    pub(crate) written: BTreeMap<VariableId, String>,
    /// The value of each instruction that was asked for; `None` if it depends on what is known at run time only.
    pub(crate) folded: BTreeMap<InstructionId, Option<Literal>>,
    /// How many steps the evaluation of instructions may still take.
    pub(crate) fold_steps_left: u64,
}

impl Scope {
    /// The entry: parameters are added by the caller.
    pub(crate) fn entry(name: &str) -> Self {
        Self {
            computation: Computation::new(name),
            metadata: OpMetadata::default(),
            captures: None,
            variables: BTreeMap::new(),
            written: BTreeMap::new(),
            folded: BTreeMap::new(),
            fold_steps_left: crate::fold::MAX_STEPS,
        }
    }

    /// A branch, with one parameter: a tuple of what it captures.
    pub(crate) fn branch(name: &str) -> Self {
        let mut scope = Self::entry(name);
        let parameter = scope.computation.add(
            "arguments",
            Op::Parameter { number: 0 },
            Shape::Tuple(Vec::new()),
            &[],
            OpMetadata::default(),
        );
        scope.captures =
            Some(Captures { parameter, outer: Vec::new(), shapes: Vec::new(), inner: BTreeMap::new() });
        scope
    }

    /// The instruction that stands for `outer`, an instruction of this shape in the enclosing scope.
    pub(crate) fn capture(&mut self, outer: InstructionId, shape: &Shape) -> InstructionId {
        let captures = self.captures.as_mut().expect("only branches capture");
        if let Some(&inner) = captures.inner.get(&outer) {
            return inner;
        }
        let index = captures.outer.len();
        captures.outer.push(outer);
        let parameter = captures.parameter;
        captures.shapes.push(shape.clone());
        let operands = [parameter];
        let op = Op::GetTupleElement { index };
        let inner = self.computation.add("", op, shape.clone(), &operands, self.metadata.clone());
        self.captures.as_mut().expect("only branches capture").inner.insert(outer, inner);
        inner
    }

    /// The shape of an instruction.
    pub(crate) fn shape(&self, id: InstructionId) -> &Shape {
        self.computation[id].shape()
    }

    /// Adds an instruction; an error if the operands do not fit. `wanted` is for the opcodes whose shape does not
    /// follow from their operands.
    pub(crate) fn add(
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
    pub(crate) fn add_constant(&mut self, literal: Literal) -> InstructionId {
        let shape = literal.shape();
        self.computation.add("", Op::Constant { literal }, shape, &[], self.metadata.clone())
    }

    /// Makes a tuple the root, drops what it does not need, and gives the computation away.
    pub(crate) fn finish(mut self, elements: &[InstructionId]) -> (Computation, Vec<InstructionId>) {
        let shapes = elements.iter().map(|&id| self.computation[id].shape().clone()).collect();
        let root =
            self.computation.add("", Op::Tuple {}, Shape::Tuple(shapes), elements, OpMetadata::default());
        self.computation.set_root(root);
        if let Some(captures) = &mut self.captures {
            let shapes = std::mem::take(&mut captures.shapes);
            self.computation.set_shape(captures.parameter, Shape::Tuple(shapes));
        }
        remove_dead_instructions(&mut self.computation);
        (self.computation, self.captures.map(|c| c.outer).unwrap_or_default())
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
pub(crate) fn check_size(shape: &Shape) -> Result<()> {
    if shape.byte_size() > MAX_ARRAY_BYTES {
        return Err(Error::invalid(format!(
            "the result would have the shape {shape}, which is more than {MAX_ARRAY_BYTES} bytes"
        )));
    }
    Ok(())
}
