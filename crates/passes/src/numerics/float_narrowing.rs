//! Contractions of `f32` with constant weights as products of narrow floats, with sums of `f32`.

use crate::pass::{Changed, Pass};
use crate::query::is_static;
use hlo::{Computation, ConvolutionForm, InstructionId, Module, Op};
use shape::{ArrayShape, Literal, PrimitiveType, Shape};
use std::collections::BTreeMap;
use support::Result;

/// `contraction(x, w) => contraction(narrow(x), narrow(w))`, where w is constant. The result
/// remains `f32`, and so does all other arithmetic. An array that contractions read exists only in
/// the narrow type: its other readers widen it. Arguments and results keep their type.
///
/// Rounds both operands of each product to the narrow type.
pub struct FloatNarrowing {
    /// The narrow type.
    pub to: PrimitiveType,
}

impl Pass for FloatNarrowing {
    fn name(&self) -> &'static str {
        "float-narrowing"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for id in crate::query::executed_computations(module) {
            let computation = module.computation_mut(id);
            let mut narrowing = Narrowing { computation, to: self.to, narrowed: BTreeMap::new() };
            for root in narrowing.computation.post_order() {
                if multiplies_weights(narrowing.computation, root) {
                    narrowing.replace_operands(root);
                    changed = true;
                }
            }
            // The arrays that were only moved have no readers any more.
            crate::simplify::dce::sweep(narrowing.computation);
            narrowing.widen_readers();
        }
        Ok(changed.into())
    }
}

/// True for a contraction of `f32` with constant weights whose summands are neighbors in the left
/// operand.
fn multiplies_weights(computation: &Computation, id: InstructionId) -> bool {
    let instruction = &computation[id];
    if !matches!(instruction.op(), Op::Dot { .. } | Op::Convolution { .. }) || !is_static(computation, id) {
        return false;
    }
    let &[x, w] = instruction.operands() else { return false };
    let is_f32 =
        |&id: &InstructionId| computation[id].shape().expect_array().element_type == PrimitiveType::F32;
    if ![x, w, id].iter().all(is_f32) || !matches!(computation[w].op(), Op::Constant { .. }) {
        return false;
    }
    match instruction.op() {
        Op::Dot { dot_dimension_numbers: numbers } => {
            let (x, w) = (computation[x].shape().expect_array(), computation[w].shape().expect_array());
            let [contracting] = numbers.lhs_contracting_dims[..] else { return false };
            let is_bound =
                |d: &usize| numbers.rhs_batch_dims.contains(d) || numbers.rhs_contracting_dims.contains(d);
            let columns: i64 = (0..w.rank()).filter(|d| !is_bound(d)).map(|d| w.size(d)).product();
            contracting + 1 == x.rank() && x.size(contracting) > 1 && columns >= hlo::MIN_TILE_COLUMNS
        }
        op @ Op::Convolution { feature_group_count: groups, .. } => {
            let kernel = computation[w].shape().expect_array();
            let (inputs, outputs) = (kernel.size(kernel.rank() - 2), kernel.size(kernel.rank() - 1));
            let has_tiles = inputs == 1 || outputs >= groups.saturating_mul(hlo::MIN_TILE_COLUMNS);
            ConvolutionForm::of(op) == Some(ConvolutionForm::Canonical) && has_tiles
        }
        _ => false,
    }
}

/// The rewriting of a computation.
struct Narrowing<'c> {
    computation: &'c mut Computation,
    to: PrimitiveType,
    /// Arrays in the narrow type.
    narrowed: BTreeMap<InstructionId, InstructionId>,
}

impl Narrowing<'_> {
    fn replace_operands(&mut self, id: InstructionId) {
        for position in 0..2 {
            let operand = self.computation[id].operands()[position];
            let narrow = self.narrow(operand);
            self.computation.replace_operand(id, position, narrow);
        }
    }

    /// Returns an array in the narrow type.
    fn narrow(&mut self, id: InstructionId) -> InstructionId {
        if let Some(&narrow) = self.narrowed.get(&id) {
            return narrow;
        }
        let instruction = &self.computation[id];
        let metadata = instruction.metadata().clone();
        let shape = instruction.shape().expect_array();
        let narrow_shape = ArrayShape::new(self.to, &shape.sizes());
        let (op, operands) = match instruction.op() {
            Op::Constant { literal } => {
                let literal = Literal::from_scalars(narrow_shape.clone(), literal.scalars());
                (Op::Constant { literal }, Vec::new())
            }
            Op::Convert {} if self.element_type(instruction.operands()[0]) == self.to => {
                return instruction.operands()[0];
            }
            // Moving elements and rounding them commute.
            op @ (Op::Reshape {}
            | Op::Transpose { .. }
            | Op::Slice { .. }
            | Op::Reverse { .. }
            | Op::Concatenate { .. }
            | Op::Pad { .. }) => {
                let (op, operands) = (op.clone(), instruction.operands().to_vec());
                (op, operands.into_iter().map(|operand| self.narrow(operand)).collect())
            }
            _ => (Op::Convert {}, vec![id]),
        };
        let narrow = self.computation.add("", op, Shape::Array(narrow_shape), &operands, metadata);
        self.narrowed.insert(id, narrow);
        narrow
    }

    /// Lets the other readers of narrowed arrays read the narrow ones, so that the wide ones need
    /// no memory.
    fn widen_readers(&mut self) {
        for (&wide, &narrow) in &self.narrowed {
            let Some(instruction) = self.computation.get(wide) else { continue };
            let users = instruction.users();
            let others: Vec<InstructionId> = users.iter().copied().filter(|&user| user != narrow).collect();
            let is_kept = self.computation.root() == wide
                || matches!(instruction.op(), Op::Constant { .. } | Op::Parameter { .. })
                || others.iter().any(|&user| !widens(self.computation[user].op()));
            if is_kept || others.is_empty() {
                continue;
            }
            let (shape, metadata) = (instruction.shape().clone(), instruction.metadata().clone());
            let again = self.computation.add("", Op::Convert {}, shape, &[narrow], metadata);
            for user in others {
                for position in 0..self.computation[user].operands().len() {
                    if self.computation[user].operands()[position] == wide {
                        self.computation.replace_operand(user, position, again);
                    }
                }
            }
        }
    }

    fn element_type(&self, id: InstructionId) -> PrimitiveType {
        self.computation[id].shape().expect_array().element_type
    }
}

/// True if an instruction can widen its operands when it reads them.
fn widens(op: &Op) -> bool {
    let moves = matches!(
        op,
        Op::Broadcast { .. }
            | Op::Concatenate { .. }
            | Op::Pad { .. }
            | Op::Reshape {}
            | Op::Slice { .. }
            | Op::Transpose { .. }
    );
    moves || op.is_elementwise() || matches!(op, Op::Reduce { .. } | Op::ReduceWindow { .. })
}
