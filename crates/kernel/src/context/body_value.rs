//! Evaluation of an instruction of the kernel's body at a position, with everything that it depends
//! on.
//!
//! Reindexing opcodes only change positions, elementwise ones emit arithmetic, and operands are
//! loaded from memory. A value is computed once per position. The walk keeps its own stack, because
//! bodies may be deep.

use crate::context::KernelContext;
use crate::context::parameters::Operand;
use crate::element::Element;
use crate::elemental;
use crate::index::Position;
use crate::math;
use hlo::{InstructionId, Op};
use plan::Position as Place;
use shape::{PrimitiveType, ShapeIndex};
use support::{Error, Result};

/// Result of one step of the evaluation.
pub(crate) enum Step {
    /// The element is available.
    Is(Element),
    /// The step needs values of other instructions first.
    Needs(Vec<(InstructionId, Position)>),
}

/// Values of operands, or the list of missing ones.
pub(crate) type Available = std::result::Result<Vec<Element>, Vec<(InstructionId, Position)>>;

impl KernelContext<'_> {
    /// Returns the element of an instruction at a position: one per lane, or a single one if all
    /// lanes have the same position.
    pub fn element(&mut self, id: InstructionId, position: &Position) -> Result<Element> {
        let mut stack = vec![(id, position.clone())];
        while let Some((id, position)) = stack.last().cloned() {
            if self.known_element(id, &position).is_some() {
                stack.pop();
                continue;
            }
            match self.step(id, &position)? {
                Step::Needs(more) => stack.extend(more),
                Step::Is(element) => {
                    self.remember_element(id, &position, element)?;
                    stack.pop();
                }
            }
        }
        self.known_element(id, position)
            .ok_or_else(|| Error::internal("missing element right after its computation"))
    }

    /// Returns the values at some positions if all are known, or else the missing ones.
    pub(crate) fn available(&self, needed: &[(InstructionId, Position)]) -> Available {
        let mut values = Vec::with_capacity(needed.len());
        let mut missing = Vec::new();
        for (id, position) in needed {
            match self.known_element(*id, position) {
                Some(element) => values.push(element),
                None => missing.push((*id, position.clone())),
            }
        }
        if missing.is_empty() { Ok(values) } else { Err(missing) }
    }

    /// Returns the operand leaf that an instruction of the body represents, if any.
    fn operand_leaf(&self, id: InstructionId) -> Option<(usize, ShapeIndex)> {
        let mut path = ShapeIndex::new();
        let mut id = id;
        loop {
            match self.fusion.position(id) {
                Place::Operand(number) => return Some((number, path)),
                Place::Inside => match self.fusion.body[id].op() {
                    Op::GetTupleElement { index } => {
                        path.insert(0, *index);
                        id = self.fusion.body[id].operands()[0];
                    }
                    _ => return None,
                },
            }
        }
    }

    fn step(&mut self, id: InstructionId, position: &Position) -> Result<Step> {
        if let Some(leaf) = self.operand_leaf(id) {
            return match self.parameters.operands.get(&leaf).cloned() {
                Some(Operand::Memory(memory)) => self.load_at(&memory, position).map(Step::Is),
                Some(Operand::Splat(literal)) => {
                    self.at(1, |b| elemental::constant(b, &literal, 0, 1)).map(Step::Is)
                }
                None => Err(Error::internal(format!("operand {} of the kernel is not in memory", leaf.0))),
            };
        }
        let body = self.fusion.body;
        let op = body[id].op();
        if op.is_elementwise() && !matches!(op, Op::Map { .. }) {
            return self.elementwise(id, position);
        }
        match op {
            Op::OptimizationBarrier {} | Op::AddDependency {} => {
                self.forward(&[(body[id].operands()[0], position.clone())])
            }
            Op::Constant { literal } => self.constant(literal, position),
            Op::GetTupleElement { index } => {
                let tuple = &body[body[id].operands()[0]];
                match tuple.op() {
                    Op::Tuple {} => self.forward(&[(tuple.operands()[*index], position.clone())]),
                    other => Err(Error::unsupported(format!(
                        "elements of {} inside a kernel",
                        other.opcode().name()
                    ))),
                }
            }
            Op::Map { to_apply, .. } => {
                let needed: Vec<_> = body[id].operands().iter().map(|&o| (o, position.clone())).collect();
                match self.available(&needed) {
                    Err(missing) => Ok(Step::Needs(missing)),
                    Ok(values) => {
                        let results = self.apply(*to_apply, &values)?;
                        results
                            .first()
                            .copied()
                            .map(Step::Is)
                            .ok_or_else(|| Error::internal("the computation of a map returned no value"))
                    }
                }
            }
            _ => self.reindex(id, position),
        }
    }

    /// Returns the value of another instruction at another position, or requests it first.
    pub(crate) fn forward(&self, needed: &[(InstructionId, Position)]) -> Result<Step> {
        Ok(match self.available(needed) {
            Ok(values) => Step::Is(values[0]),
            Err(missing) => Step::Needs(missing),
        })
    }

    /// Evaluates an elementwise instruction. Scalar operands of `select` and `clamp` apply to all
    /// elements.
    fn elementwise(&mut self, id: InstructionId, position: &Position) -> Result<Step> {
        let instruction = &self.fusion.body[id];
        let result = self.shape(id)?;
        if let Some(argument) = self.argument_of_one_plus_erf(id) {
            return match self.available(&[(argument, position.clone())]) {
                Err(missing) => Ok(Step::Needs(missing)),
                Ok(values) => {
                    let (x, target) = (values[0].real(), self.target);
                    let depth = self.depth_of_all([x]);
                    let value = self.at(depth, |b| math::one_plus_erf(b, target, x))?;
                    Ok(Step::Is(Element::Real(value)))
                }
            };
        }
        let mut needed = Vec::with_capacity(instruction.operands().len());
        let mut types = Vec::with_capacity(instruction.operands().len());
        for &operand in instruction.operands() {
            let shape = self.shape(operand)?;
            let is_scalar = shape.rank() == 0 && result.rank() > 0;
            needed.push((operand, if is_scalar { Position::scalar() } else { position.clone() }));
            types.push(shape.element_type);
        }
        let values = match self.available(&needed) {
            Ok(values) => values,
            Err(missing) => return Ok(Step::Needs(missing)),
        };
        self.compute(instruction.op(), &types, result.element_type, &values).map(Step::Is)
    }

    /// Returns `x` if an instruction of the body computes `1 + erf(x)` for `F32`.
    fn argument_of_one_plus_erf(&self, id: InstructionId) -> Option<InstructionId> {
        let body = self.fusion.body;
        let (Op::Add {}, &[x, y]) = (body[id].op(), body[id].operands()) else { return None };
        let is_single = body[id].shape().as_array()?.element_type == PrimitiveType::F32;
        let is_erf = |id: InstructionId| {
            self.fusion.position(id) == Place::Inside
                && !self.provided.contains_key(&id)
                && matches!(body[id].op(), Op::Erf {})
        };
        let erf = [(x, y), (y, x)].into_iter().find(|&(erf, one)| is_erf(erf) && self.is_one(one));
        erf.filter(|_| is_single).map(|(erf, _)| body[erf].operands()[0])
    }

    /// True if all elements of an instruction are 1.
    fn is_one(&self, mut id: InstructionId) -> bool {
        let is_one = |literal: &shape::Literal| {
            literal.array_shape().element_count() > 0
                && literal.is_splat()
                && literal.scalar_at(0) == shape::Scalar::Float(1.0)
        };
        loop {
            if let Some(leaf) = self.operand_leaf(id) {
                return matches!(self.parameters.operands.get(&leaf), Some(Operand::Splat(literal)) if is_one(literal));
            }
            match self.fusion.body[id].op() {
                Op::Constant { literal } => return is_one(literal),
                Op::Broadcast { .. } | Op::Reshape {} | Op::Bitcast {} => {
                    id = self.fusion.body[id].operands()[0];
                }
                _ => return false,
            }
        }
    }

    /// Emits an elementwise opcode on values, as far out as they allow. It has as many lanes as the
    /// widest value.
    pub(crate) fn compute(
        &mut self,
        op: &Op,
        types: &[PrimitiveType],
        result: PrimitiveType,
        values: &[Element],
    ) -> Result<Element> {
        let lanes = values.iter().map(|v| v.lanes(self)).max().unwrap_or(1);
        let mut widened = Vec::with_capacity(values.len());
        for &value in values {
            widened.push(self.widen(value, lanes)?);
        }
        let depth = self.depth_of_all(widened.iter().flat_map(|v| v.values()));
        let target = self.target;
        self.at(depth, |b| elemental::emit(b, target, op, types, result, &widened))
    }

    /// Evaluates a constant in the body: an immediate if all elements are equal, or else a
    /// selection by the index.
    fn constant(&mut self, literal: &shape::Literal, position: &Position) -> Result<Step> {
        let sizes = literal.array_shape().sizes();
        let count = literal.array_shape().element_count();
        if literal.is_splat() {
            return self.at(1, |b| elemental::constant(b, literal, 0, 1)).map(Step::Is);
        }
        let index = position.linear(&sizes);
        if let Some(linear) = index.as_constant() {
            return self.at(1, |b| elemental::constant(b, literal, linear as usize, 1)).map(Step::Is);
        }
        if count > 64 {
            return Err(Error::internal(format!(
                "found a constant of {count} elements inside a kernel; expected at most 64"
            )));
        }
        let lanes = if index.is_uniform() { 1 } else { self.lanes };
        let index = self.vector_value(&index, lanes)?;
        let depth = self.depth_of(index);
        self.at(depth, |b| {
            let mut chosen = elemental::constant(b, literal, 0, lanes)?;
            for linear in 1..count {
                let element = elemental::constant(b, literal, linear as usize, lanes)?;
                let number = b.integer(b.ty(index), linear);
                let is_this = b.compare(nest::Predicate::Equal, index, number);
                chosen = element.zip(chosen, |x, y| b.select(is_this, x, y));
            }
            Ok(Step::Is(chosen))
        })
    }
}
