//! What rules see: a computation under rewriting, and what the computations that it applies do.

use hlo::{Computation, ComputationId, InstructionId, Module, Op, Opcode};
use shape::{ArrayShape, Literal, Scalar};
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

/// The opcode of each computation that is one binary operation on its two scalar parameters, in their order.
pub(super) type Regions = BTreeMap<ComputationId, Opcode>;

/// A computation under rewriting.
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

/// The regions of a module.
pub(super) fn regions(module: &Module) -> Regions {
    let simple = |(id, computation): (ComputationId, &Computation)| {
        let root = &computation[computation.root_if_set()?];
        let is_binary = computation.parameters().len() == 2 && root.operands() == computation.parameters();
        let is_scalar = root.shape().as_array().is_some_and(|shape| shape.rank() == 0);
        (is_binary && is_scalar).then(|| (id, root.opcode()))
    };
    module.computations().filter_map(simple).collect()
}

impl Graph<'_> {
    /// Adds an instruction in the place of `root`, with its shape and metadata.
    pub(super) fn replacement(
        &mut self,
        root: InstructionId,
        op: Op,
        operands: &[InstructionId],
    ) -> InstructionId {
        let shape = self[root].shape().clone();
        self.helper(root, op, shape.expect_array().clone(), operands)
    }

    /// Adds an instruction of another shape on the way to the replacement of `root`, with its metadata.
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

    /// `root`'s shape filled with one value of its element type.
    pub(super) fn filled(&mut self, root: InstructionId, value: Scalar) -> InstructionId {
        let scalar = ArrayShape::new(self.array(root).element_type, &[]);
        let literal = Literal::from_scalars(scalar.clone(), [value]);
        let constant = self.helper(root, Op::Constant { literal }, scalar, &[]);
        self.broadcast_scalar(root, constant)
    }

    /// A scalar in `root`'s dimensions.
    pub(super) fn broadcast_scalar(&mut self, root: InstructionId, scalar: InstructionId) -> InstructionId {
        if self.array(root).rank() == 0 {
            return scalar;
        }
        self.replacement(root, Op::Broadcast { dimensions: Vec::new() }, &[scalar])
    }

    /// An instruction in `root`'s dimensions, which hold as many elements.
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

    /// Whether only one instruction reads it, the root of the computation counting as one more.
    pub(super) fn has_one_user(&self, id: InstructionId) -> bool {
        self[id].users().len() == 1 && self.root() != id
    }

    /// The value that all elements of an instruction are known to have.
    pub(super) fn splat(&self, id: InstructionId) -> Option<Scalar> {
        let id = if matches!(self[id].op(), Op::Broadcast { .. }) { self.operand(id) } else { id };
        match self[id].op() {
            Op::Constant { literal } if literal.array_shape().element_count() > 0 && literal.is_splat() => {
                Some(literal.scalar_at(0))
            }
            _ => None,
        }
    }

    /// The other operand of a binary instruction if one is a splat that `is_neutral`.
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

    /// The scalar that is broadcast to all elements of an instruction.
    pub(super) fn broadcast_of_scalar(&self, id: InstructionId) -> Option<InstructionId> {
        let is_broadcast = matches!(self[id].op(), Op::Broadcast { .. });
        (is_broadcast && self.array(self.operand(id)).rank() == 0).then(|| self.operand(id))
    }
}

/// Whether a number is this integer, whatever its type; never for complex numbers and -0.
pub(super) fn is_number(scalar: Scalar, number: i64) -> bool {
    match scalar {
        Scalar::Pred(_) | Scalar::Complex(..) => false,
        Scalar::Float(value) => value.to_bits() == (number as f64).to_bits(),
        Scalar::Signed(_) | Scalar::Unsigned(_) => scalar.as_i64() == Some(number),
    }
}

/// Whether an integer is 0; never for other types.
pub(super) fn is_integer_zero(scalar: Scalar) -> bool {
    matches!(scalar, Scalar::Signed(0) | Scalar::Unsigned(0))
}
