//! The view that rules have of the module: a computation being rewritten, and the meaning of the
//! computations that it applies.

use hlo::{
    ComparisonDirection, ComparisonType, Computation, ComputationId, InstructionId, Module, Op, Opcode,
    Traits,
};
use shape::{ArrayShape, Literal, Scalar};
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

/// Meaning of a computation on two scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Region {
    /// One operation on its two parameters, in order.
    Binary(Opcode),
    /// `select(y > x, y, x)` of its parameters x and y: the larger one. If y is NaN, the result is
    /// x.
    LargestNumber,
}

/// The computations whose meaning is known.
pub(super) struct Regions(BTreeMap<ComputationId, Region>);

impl Regions {
    /// The operation of a computation that consists of one operation.
    pub(super) fn get(&self, id: &ComputationId) -> Option<&Opcode> {
        match self.0.get(id)? {
            Region::Binary(opcode) => Some(opcode),
            Region::LargestNumber => None,
        }
    }

    /// The meaning of a computation, if it is known.
    pub(super) fn region(&self, id: ComputationId) -> Option<Region> {
        self.0.get(&id).copied()
    }
}

/// A computation being rewritten.
pub(super) struct Graph<'a> {
    pub(super) computation: &'a mut Computation,
    pub(super) regions: &'a Regions,
}

impl Deref for Graph<'_> {
    type Target = Computation;

    fn deref(&self) -> &Computation {
        self.computation
    }
}

impl DerefMut for Graph<'_> {
    fn deref_mut(&mut self) -> &mut Computation {
        self.computation
    }
}

/// Classifies the computations of a module.
pub(super) fn regions(module: &Module) -> Regions {
    let known = |(id, computation): (ComputationId, &Computation)| Some((id, region(computation)?));
    Regions(module.computations().filter_map(known).collect())
}

fn region(computation: &Computation) -> Option<Region> {
    let root = &computation[computation.root_if_set()?];
    let parameters = computation.parameters();
    let is_scalar = root.shape().as_array().is_some_and(|shape| shape.rank() == 0);
    if parameters.len() != 2 || !is_scalar {
        return None;
    }
    if root.operands() == parameters {
        return Some(Region::Binary(root.opcode()));
    }
    let (x, y) = (parameters[0], parameters[1]);
    let (Op::Select {}, &[condition, first, second]) = (root.op(), root.operands()) else { return None };
    let condition = &computation[condition];
    let is_larger = match condition.op() {
        Op::Compare { direction: ComparisonDirection::Gt, comparison_type: ComparisonType::Default } => {
            condition.operands() == [y, x]
        }
        Op::Compare { direction: ComparisonDirection::Lt, comparison_type: ComparisonType::Default } => {
            condition.operands() == [x, y]
        }
        _ => false,
    };
    (is_larger && [first, second] == [y, x]).then_some(Region::LargestNumber)
}

impl Graph<'_> {
    /// Adds a replacement for `root`, with its shape and metadata.
    pub(super) fn replacement(
        &mut self,
        root: InstructionId,
        op: Op,
        operands: &[InstructionId],
    ) -> InstructionId {
        let shape = self[root].shape().clone();
        self.helper(root, op, shape.expect_array().clone(), operands)
    }

    /// Adds an intermediate instruction for the replacement of `root`, with another shape and the
    /// metadata of `root`.
    pub(super) fn helper(
        &mut self,
        root: InstructionId,
        op: Op,
        shape: ArrayShape,
        operands: &[InstructionId],
    ) -> InstructionId {
        let metadata = self[root].metadata().clone();
        self.add("", op, shape.into(), operands, metadata)
    }

    /// One value of `root`'s element type, broadcast to its shape.
    pub(super) fn filled(&mut self, root: InstructionId, value: Scalar) -> InstructionId {
        let scalar = ArrayShape::new(self.array(root).element_type, &[]);
        let literal = Literal::from_scalars(scalar.clone(), [value]);
        let constant = self.helper(root, Op::Constant { literal }, scalar, &[]);
        self.broadcast_scalar(root, constant)
    }

    /// A scalar broadcast to `root`'s dimensions.
    pub(super) fn broadcast_scalar(&mut self, root: InstructionId, scalar: InstructionId) -> InstructionId {
        if self.array(root).rank() == 0 {
            return scalar;
        }
        self.replacement(root, Op::Broadcast { dimensions: Vec::new() }, &[scalar])
    }

    /// An instruction reshaped to `root`'s dimensions, which have the same number of elements.
    pub(super) fn reshaped(&mut self, root: InstructionId, operand: InstructionId) -> InstructionId {
        if self[operand].shape() == self[root].shape() {
            return operand;
        }
        self.replacement(root, Op::Reshape {}, &[operand])
    }

    /// The shape of an array. Rules see arrays of static shapes only.
    pub(super) fn array(&self, id: InstructionId) -> &ArrayShape {
        self[id].shape().expect_array()
    }

    /// The first operand.
    pub(super) fn operand(&self, id: InstructionId) -> InstructionId {
        self[id].operands()[0]
    }

    /// True if exactly one instruction reads it and it is not the root of the computation.
    pub(super) fn has_one_user(&self, id: InstructionId) -> bool {
        self[id].users().len() == 1 && self.root() != id
    }

    /// The value of all elements of an instruction, if they are known to be equal.
    pub(super) fn splat(&self, id: InstructionId) -> Option<Scalar> {
        let id = if matches!(self[id].op(), Op::Broadcast { .. }) { self.operand(id) } else { id };
        match self[id].op() {
            Op::Constant { literal } if literal.array_shape().element_count() > 0 && literal.is_splat() => {
                Some(literal.scalar_at(0))
            }
            _ => None,
        }
    }

    /// The other operand of a binary instruction if one operand is a splat that `is_neutral`.
    pub(super) fn beside_splat(
        &self,
        id: InstructionId,
        is_neutral: impl Fn(Scalar) -> bool,
    ) -> Option<InstructionId> {
        let &[lhs, rhs] = self[id].operands() else { return None };
        let is_neutral = |id: InstructionId| self.splat(id).is_some_and(&is_neutral);
        if is_neutral(rhs) {
            return Some(lhs);
        }
        is_neutral(lhs).then_some(rhs)
    }

    /// The scalar that an instruction broadcasts to all of its elements.
    pub(super) fn broadcast_of_scalar(&self, id: InstructionId) -> Option<InstructionId> {
        let is_broadcast = matches!(self[id].op(), Op::Broadcast { .. });
        (is_broadcast && self.array(self.operand(id)).rank() == 0).then(|| self.operand(id))
    }

    /// The permutation of a transpose that should move toward the end of the graph, where it may
    /// meet its inverse: one that reorders the result of a convolution.
    pub(super) fn sinking_permutation(&self, id: InstructionId) -> Option<Vec<usize>> {
        let Op::Transpose { dimensions } = self[id].op() else { return None };
        self.derives_from_convolution(self.operand(id)).then(|| dimensions.clone())
    }

    /// True if an instruction is a convolution, or derives from one by steps that keep its
    /// dimensions.
    fn derives_from_convolution(&self, id: InstructionId) -> bool {
        let mut pending = vec![id];
        for _ in 0..MAX_STEPS {
            let Some(id) = pending.pop() else { return false };
            match self[id].op() {
                Op::Convolution { .. } => return true,
                Op::Pad { .. } | Op::ReduceWindow { .. } => pending.push(self.operand(id)),
                Op::Clamp {} => pending.push(self[id].operands()[1]),
                Op::Concatenate { .. } => pending.extend(self[id].operands().iter().rev()),
                op if op.opcode().traits().contains(Traits::ELEMENTWISE) => {
                    pending.extend(self[id].operands().iter().rev());
                }
                _ => {}
            }
        }
        false
    }

    /// An instruction on operands that are not transposed, followed by the transpose to `root`'s
    /// dimensions.
    pub(super) fn transposed_after(
        &mut self,
        root: InstructionId,
        op: Op,
        operands: &[InstructionId],
        permutation: &[usize],
    ) -> InstructionId {
        let shape = self.untransposed(self.array(root), permutation);
        let computed = self.helper(root, op, shape, operands);
        self.replacement(root, Op::Transpose { dimensions: permutation.to_vec() }, &[computed])
    }

    /// The shape that a permutation converts to this one.
    pub(super) fn untransposed(&self, shape: &ArrayShape, permutation: &[usize]) -> ArrayShape {
        let mut sizes = vec![0; permutation.len()];
        permutation.iter().enumerate().for_each(|(d, &p)| sizes[p] = shape.size(d));
        ArrayShape::new(shape.element_type, &sizes)
    }
}

/// Upper bound of the instructions that the search for a convolution visits.
const MAX_STEPS: usize = 32;

/// True if a scalar of any type equals this integer; always false for complex numbers and -0.
pub(super) fn is_number(scalar: Scalar, number: i64) -> bool {
    match scalar {
        Scalar::Pred(_) | Scalar::Complex(..) => false,
        Scalar::Float(value) => value.to_bits() == (number as f64).to_bits(),
        Scalar::Signed(_) | Scalar::Unsigned(_) => scalar.as_i64() == Some(number),
    }
}

/// True if a scalar is the integer 0; always false for other types.
pub(super) fn is_integer_zero(scalar: Scalar) -> bool {
    matches!(scalar, Scalar::Signed(0) | Scalar::Unsigned(0))
}
