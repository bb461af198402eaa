//! Epilogues: the instructions between a contraction and the result of its kernel, or of its part
//! of a kernel.
//!
//! A kernel stores many tiles of a contraction, each with the same epilogue. What the body says
//! about it is read once per contraction.

use crate::context::{Frame, KernelContext};
use crate::element::Element;
use crate::index::{Index, Position};
use hlo::{InstructionId, Module, Op};
use plan::{Fusion, Position as Place};
use std::collections::BTreeSet;
use std::rc::Rc;
use support::{Error, Result};

/// The epilogue of a contraction.
#[derive(Debug)]
pub(crate) struct Epilogue<'a> {
    /// Instructions that depend on the contraction, including itself.
    dependents: BTreeSet<InstructionId>,
    /// Instructions that move elements between the contraction and the result, in order.
    moves: Vec<Move<'a>>,
    /// True if an elementary function is computed.
    has_elementary_functions: bool,
    /// True if some steps compute with 64 bits, in two vectors for each vector of sums.
    has_wide_steps: bool,
    /// True if bytes are looked up in a table.
    looks_up_bytes: bool,
}

/// Number of steps, such as the scaling of a quantized layer, that are most of a tile's code if
/// they exist for each vector of sums.
const MANY_STEPS: usize = 8;

/// Number of summands up to which storing and loading the sums takes a notable part of the time if
/// some steps compute with 64 bits. They also take the registers that hold the sums.
const FEW_SUMMANDS: i64 = 8;

/// The same number if no step does.
const SOME_SUMMANDS: i64 = 32;

/// An instruction that moves elements, with the sizes of its operand.
#[derive(Debug)]
enum Move<'a> {
    /// The elements keep their order.
    Reshape { sizes: Vec<i64> },
    /// Their indices are permuted.
    Transpose { sizes: Vec<i64>, dimensions: &'a [usize] },
}

impl<'a> Epilogue<'a> {
    fn new(module: &Module, fusion: &Fusion<'a>, contraction: InstructionId) -> Result<Self> {
        let dependents = dependents(fusion, contraction);
        let is_wide = |&id: &InstructionId| {
            fusion.body[id].shape().as_array().is_some_and(|shape| shape.element_type.byte_size() == 8)
        };
        let is_lookup = |&id: &InstructionId| match fusion.body[id].op() {
            Op::Map { to_apply, .. } => hlo::byte_table(&module[*to_apply]).is_some(),
            _ => false,
        };
        Ok(Self {
            has_wide_steps: dependents.iter().any(is_wide),
            looks_up_bytes: dependents.iter().any(is_lookup),
            dependents,
            moves: moves(fusion, contraction)?,
            has_elementary_functions: has_elementary_functions(fusion, contraction),
        })
    }

    pub(crate) fn depends(&self, id: InstructionId) -> bool {
        self.dependents.contains(&id)
    }

    /// True if it should not keep the sums of a tile, integers of `summands` products, in
    /// registers.
    pub(crate) fn is_apart(&self, summands: i64) -> bool {
        let is_long = self.dependents.len() >= MANY_STEPS;
        let few = if self.has_wide_steps { FEW_SUMMANDS } else { SOME_SUMMANDS };
        self.has_elementary_functions || is_long && summands > few
    }

    pub(crate) fn looks_up_bytes(&self) -> bool {
        self.looks_up_bytes
    }

    /// Maps the position of a contraction's element to its position in what the kernel computes.
    pub(crate) fn position(&self, cx: &mut KernelContext<'_>, position: &Position) -> Result<Position> {
        let mut position = position.clone();
        for step in &self.moves {
            position = match step {
                Move::Reshape { sizes } => Position::Linear(position.linear(sizes)),
                Move::Transpose { sizes, dimensions } => {
                    let indices: Vec<Index> = cx.indices(&position, sizes)?;
                    Position::Multi(dimensions.iter().map(|&d| indices[d].clone()).collect())
                }
            };
        }
        Ok(position)
    }
}

impl<'a> KernelContext<'a> {
    /// Returns the epilogue of a contraction of the kernel.
    pub(crate) fn epilogue_of(&mut self, contraction: InstructionId) -> Result<Rc<Epilogue<'a>>> {
        if let Some(epilogue) = self.epilogues.get(&contraction) {
            return Ok(Rc::clone(epilogue));
        }
        let epilogue = Rc::new(Epilogue::new(self.module, &self.fusion, contraction)?);
        self.epilogues.insert(contraction, Rc::clone(&epilogue));
        Ok(epilogue)
    }

    /// Evaluates the body's result at a position, given the value of a contraction. Values that
    /// depend on the given one are discarded afterwards.
    pub fn epilogue(
        &mut self,
        contraction: InstructionId,
        value: Element,
        position: &Position,
    ) -> Result<Element> {
        self.epilogue_of(contraction)?;
        self.with_provided([(contraction, value)], |cx| {
            cx.frames.push(Frame::new(cx.depth(), Some(contraction)));
            let result = cx.element(cx.fusion.computed(), position);
            cx.frames.pop();
            result
        })
    }
}

/// Returns the instructions of the body that depend on another one.
fn dependents(fusion: &Fusion<'_>, provided: InstructionId) -> BTreeSet<InstructionId> {
    let mut dependents = BTreeSet::from([provided]);
    for id in fusion.instructions() {
        if fusion.body[id].operands().iter().any(|operand| dependents.contains(operand)) {
            dependents.insert(id);
        }
    }
    dependents
}

/// Returns the reshapes and transposes between a contraction and what the kernel computes. Other
/// instructions work element by element.
fn moves<'a>(fusion: &Fusion<'a>, contraction: InstructionId) -> Result<Vec<Move<'a>>> {
    let (body, computed) = (fusion.body, fusion.computed());
    let sizes = |id: InstructionId| body[id].shape().expect_array().sizes();
    let (mut id, mut moves) = (contraction, Vec::new());
    while id != computed {
        let user = body[id].users().first().copied();
        let user = user.ok_or_else(|| Error::internal("found no path from the contraction to the root"))?;
        match body[user].op() {
            Op::Reshape {} | Op::Bitcast {} if sizes(id) != sizes(user) => {
                moves.push(Move::Reshape { sizes: sizes(id) });
            }
            Op::Transpose { dimensions } => moves.push(Move::Transpose { sizes: sizes(id), dimensions }),
            _ => {}
        }
        id = user;
    }
    Ok(moves)
}

/// True if an elementary function is computed between a contraction and the root of the body.
fn has_elementary_functions(fusion: &Fusion<'_>, contraction: InstructionId) -> bool {
    let (mut pending, mut seen) = (vec![fusion.root], BTreeSet::from([contraction]));
    while let Some(id) = pending.pop() {
        if !seen.insert(id) || fusion.position(id) != Place::Inside {
            continue;
        }
        if plan::is_transcendental(fusion.body[id].op()) {
            return true;
        }
        pending.extend(fusion.body[id].operands());
    }
    false
}
