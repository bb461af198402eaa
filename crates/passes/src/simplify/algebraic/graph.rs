//! What rules see: a computation under rewriting, and what the computations that it applies do.

use hlo::{
    ComparisonDirection, ComparisonType, Computation, ComputationId, InstructionId, Module, Op, Opcode,
    Traits,
};
use shape::{ArrayShape, Literal, Scalar};
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

/// What a computation of two scalars does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Region {
    /// One operation on its two parameters, in their order.
    Binary(Opcode),
    /// `select(y > x, y, x)` of its parameters x and y: the larger one, where NaN is passed over as y.
    LargestNumber,
}

/// The computations that are known.
pub(super) struct Regions(BTreeMap<ComputationId, Region>);

impl Regions {
    /// The operation of a computation that is one.
    pub(super) fn get(&self, id: &ComputationId) -> Option<&Opcode> {
        match self.0.get(id)? {
            Region::Binary(opcode) => Some(opcode),
            Region::LargestNumber => None,
        }
    }

    /// What a computation does, if it is known.
    pub(super) fn region(&self, id: ComputationId) -> Option<Region> {
        self.0.get(&id).copied()
    }
}

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

    /// The permutation of a transpose that should move towards the end of the graph, where it may meet its inverse: one
    /// that brings the result of a convolution into another order.
    pub(super) fn sinking_permutation(&self, id: InstructionId) -> Option<Vec<usize>> {
        let Op::Transpose { dimensions } = self[id].op() else { return None };
        self.is_of_convolution(self.operand(id)).then(|| dimensions.clone())
    }

    /// Whether an instruction is a convolution, or made of one by steps that keep its dimensions.
    fn is_of_convolution(&self, id: InstructionId) -> bool {
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

    /// An instruction on operands that are not transposed, then the transpose to `root`'s dimensions.
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

    /// The shape that a permutation brings into this one.
    pub(super) fn untransposed(&self, shape: &ArrayShape, permutation: &[usize]) -> ArrayShape {
        let mut sizes = vec![0; permutation.len()];
        permutation.iter().enumerate().for_each(|(d, &p)| sizes[p] = shape.size(d));
        ArrayShape::new(shape.element_type, &sizes)
    }
}

/// How many instructions the search for a convolution looks at.
const MAX_STEPS: usize = 32;

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
