//! Values that depend on the number of rows of a batch, and not only on rows.
//!
//! A piece of a batch has fewer rows than the batch, so a value that depends on their number would
//! be that of the piece: an average over the batch by way of `Shape`, or a loop that counts rows.
//! Such numbers are constants in a program for one size. They are found by comparing it,
//! instruction by instruction, with the program for another size.

use evaluator::{Evaluator, Limits};
use hlo::{Computation, ComputationId, InstructionId, Module, Op, Traits};
use shape::{ArrayShape, Literal, Shape};
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};

/// Maximum number of elements of a constant expression that is evaluated.
const MAX_ELEMENTS: i64 = 1 << 14;

/// Maximum number of instructions of a constant expression that is evaluated.
const MAX_INSTRUCTIONS: usize = 256;

/// A value in the two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pair {
    /// It does not depend on the inputs, and is the same.
    Same,
    /// It does not depend on the inputs. There is an element for each row, and the first ones are
    /// the same.
    Stretched,
    /// It does not depend on the inputs, and differs.
    Differs,
    /// It depends on inputs without rows, and has elements for each row.
    Repeated,
    /// It depends on inputs, and is not `Repeated`.
    Input {
        /// True if these inputs may have rows.
        has_rows: bool,
    },
}

/// Programs for two numbers of rows.
pub(super) struct Programs<'a> {
    /// A program.
    pub(super) one: &'a Module,
    /// Its rows.
    pub(super) rows: i64,
    /// The same program for other rows.
    pub(super) other: &'a Module,
    /// Their number.
    pub(super) other_rows: i64,
    /// Parameters with rows.
    pub(super) batched: &'a BTreeSet<usize>,
}

/// A reason against computing a batch in pieces.
pub(super) enum Obstacle {
    /// The programs have different instructions.
    Structure(Error),
    /// A value depends on the number of rows.
    Number(Error),
}

impl Obstacle {
    pub(super) fn into_error(self) -> Error {
        match self {
            Self::Structure(error) | Self::Number(error) => error,
        }
    }
}

/// Finds an instruction whose value depends on the number of rows.
pub(super) fn check(programs: &Programs<'_>) -> Result<(), Obstacle> {
    let mut seen = BTreeSet::new();
    programs.computation(programs.one.entry(), programs.other.entry(), &mut seen)
}

/// An instruction and the one in its place in the other program.
#[derive(Clone, Copy)]
struct Twins<'a> {
    computation: &'a Computation,
    id: InstructionId,
    other: &'a Computation,
    twin: InstructionId,
}

impl Twins<'_> {
    fn text(&self, reason: &str) -> Error {
        let described = self.computation[self.id].described();
        Error::unsupported(format!("the number of rows matters at {described}: {reason}"))
    }

    fn structure(&self) -> Obstacle {
        Obstacle::Structure(self.text("with more rows, the program has another instruction here"))
    }

    fn number(&self, reason: &str) -> Obstacle {
        Obstacle::Number(self.text(reason))
    }

    fn shapes(&self) -> (&Shape, &Shape) {
        (self.computation[self.id].shape(), self.other[self.twin].shape())
    }
}

impl Programs<'_> {
    fn computation(
        &self,
        a: ComputationId,
        b: ComputationId,
        seen: &mut BTreeSet<(ComputationId, ComputationId)>,
    ) -> Result<(), Obstacle> {
        if !seen.insert((a, b)) {
            return Ok(());
        }
        let (computation, other) = (&self.one[a], &self.other[b]);
        let (order, others) = (computation.post_order(), other.post_order());
        let is_entry = a == self.one.entry();
        let (mut values, mut twin_of) = (BTreeMap::new(), BTreeMap::new());
        for (k, &id) in order.iter().enumerate() {
            let twins =
                Twins { computation, id, other, twin: others.get(k).copied().unwrap_or(other.root()) };
            let (one, twin) = (&computation[id], &other[twins.twin]);
            let is_alike = one.opcode() == twin.opcode()
                && one.operands().len() == twin.operands().len()
                && one.operands().iter().zip(twin.operands()).all(|(a, b)| twin_of.get(a) == Some(b));
            twin_of.insert(id, twins.twin);
            if k >= others.len() || !is_alike {
                return Err(twins.structure());
            }
            let called = one.op().called_computations().into_iter().zip(twin.op().called_computations());
            for (computation, twin) in called {
                self.computation(computation, twin, seen)?;
            }
            let value = self.value(&twins, is_entry, &values)?;
            values.insert(id, value);
        }
        let root = Twins { computation, id: computation.root(), other, twin: other.root() };
        if order.len() != others.len() {
            return Err(root.structure());
        }
        if values[&root.id] == Pair::Differs {
            return Err(root.number("a result is computed from it"));
        }
        Ok(())
    }

    fn value(
        &self,
        twins: &Twins<'_>,
        is_entry: bool,
        values: &BTreeMap<InstructionId, Pair>,
    ) -> Result<Pair, Obstacle> {
        let (one, twin) = (&twins.computation[twins.id], &twins.other[twins.twin]);
        let operands: Vec<Pair> = one.operands().iter().map(|operand| values[operand]).collect();
        let (a, b) = twins.shapes();
        let has_other_shape = a != b;
        if has_other_shape && !self.are_rows(a, b) {
            return Err(twins.number("its sizes depend on it"));
        }
        if let (Op::Constant { literal: x }, Op::Constant { literal: y }) = (one.op(), twin.op()) {
            return Ok(self.pair(x, y));
        }
        if let Op::Parameter { number } = one.op() {
            return Ok(Pair::Input { has_rows: !is_entry || self.batched.contains(number) });
        }
        let has_rows = operands.contains(&Pair::Input { has_rows: true });
        let is_input = has_rows
            || operands.contains(&Pair::Input { has_rows: false })
            || operands.contains(&Pair::Repeated)
            || one.opcode().traits().contains(Traits::SIDE_EFFECT);
        let is_same_op = self.is_same_op(twins);
        if is_input {
            if operands.contains(&Pair::Differs) {
                return Err(twins.number("an operand is computed from it"));
            }
            if !is_same_op {
                return Err(twins.number("an attribute is computed from it"));
            }
            let has_more = operands.iter().any(|pair| matches!(pair, Pair::Stretched | Pair::Repeated));
            return match (has_other_shape, has_rows) {
                (false, _) if has_more => Err(twins.number("it combines as many elements")),
                (true, false) => Ok(Pair::Repeated),
                _ => Ok(Pair::Input { has_rows }),
            };
        }
        if is_same_op && !has_other_shape && operands.iter().all(|pair| *pair == Pair::Same) {
            return Ok(Pair::Same);
        }
        let mut steps = MAX_INSTRUCTIONS;
        let x = evaluated(self.one, twins.computation, twins.id, &mut steps);
        let y = evaluated(self.other, twins.other, twins.twin, &mut steps);
        Ok(match (x, y) {
            (Some(x), Some(y)) => self.pair(&x, &y),
            _ => {
                let keeps_rows = match one.op() {
                    Op::Broadcast { .. } | Op::Reshape {} | Op::Transpose { .. } | Op::Tuple {} => true,
                    op => op.opcode().traits().contains(Traits::ELEMENTWISE),
                };
                let are_known = operands.iter().all(|pair| matches!(pair, Pair::Same | Pair::Stretched));
                if keeps_rows && is_same_op && are_known && has_other_shape {
                    Pair::Stretched
                } else {
                    Pair::Differs
                }
            }
        })
    }

    /// Compares two constants.
    fn pair(&self, x: &Literal, y: &Literal) -> Pair {
        if let (Literal::Tuple(x), Literal::Tuple(y)) = (x, y) {
            let pairs: Vec<Pair> = x.iter().zip(y).map(|(x, y)| self.pair(x, y)).collect();
            let has = |pair| pairs.contains(&pair);
            return match (has(Pair::Differs), has(Pair::Stretched)) {
                (true, _) => Pair::Differs,
                (_, true) => Pair::Stretched,
                _ => Pair::Same,
            };
        }
        if x == y {
            return Pair::Same;
        }
        let (a, b) = (x.array_shape().sizes(), y.array_shape().sizes());
        let Some(d) = self.row_dimension(&a, &b) else { return Pair::Differs };
        // The elements of one row.
        let part = |literal: &Literal, sizes: &[i64], rows: i64| {
            let mut sizes = sizes.to_vec();
            sizes[d] /= rows;
            literal.corner(&sizes)
        };
        let rows = (part(x, &a, self.rows), part(y, &b, self.other_rows));
        if rows.0.is_some() && rows.0 == rows.1 { Pair::Stretched } else { Pair::Differs }
    }

    /// Returns the only dimension in which arrays differ, if it has as many elements for each row.
    fn row_dimension(&self, a: &[i64], b: &[i64]) -> Option<usize> {
        let mut others = (0..a.len()).filter(|&d| b.get(d) != Some(&a[d]));
        let d = others.next().filter(|_| a.len() == b.len())?;
        let is_proportional = a[d] % self.rows == 0 && a[d] / self.rows * self.other_rows == b[d];
        (others.next().is_none() && is_proportional).then_some(d)
    }

    /// True if different shapes differ only in the number of rows.
    fn are_rows(&self, a: &Shape, b: &Shape) -> bool {
        let are_rows = |a: &ArrayShape, b: &ArrayShape| self.row_dimension(&a.sizes(), &b.sizes()).is_some();
        match (a, b) {
            (Shape::Array(a), Shape::Array(b)) => are_rows(a, b),
            (Shape::Tuple(a), Shape::Tuple(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b || self.are_rows(a, b))
            }
            _ => false,
        }
    }

    /// True if two instructions have the same attributes, other than sizes of all rows.
    fn is_same_op(&self, twins: &Twins<'_>) -> bool {
        let (one, twin) = (&twins.computation[twins.id], &twins.other[twins.twin]);
        let sizes = |computation: &Computation, id: Option<&InstructionId>| {
            id.and_then(|&id| computation[id].shape().as_array()).map(ArrayShape::sizes).unwrap_or_default()
        };
        let wholes =
            (sizes(twins.computation, one.operands().first()), sizes(twins.other, twin.operands().first()));
        let are_alike = |a: &[i64], b: &[i64]| {
            let mut dimensions = a.iter().zip(b).enumerate();
            dimensions.all(|(d, (a, b))| a == b || (*a == wholes.0[d] && *b == wholes.1[d]))
        };
        match (one.op(), twin.op()) {
            (Op::Slice { slice: a }, Op::Slice { slice: b }) => {
                let begins = a.iter().zip(b).all(|(a, b)| a.start == b.start && a.stride == b.stride);
                let [a, b] = [a, b].map(|slice| slice.iter().map(|part| part.limit).collect::<Vec<_>>());
                begins && are_alike(&a, &b)
            }
            (Op::DynamicSlice { dynamic_slice_sizes: a }, Op::DynamicSlice { dynamic_slice_sizes: b }) => {
                are_alike(a, b)
            }
            (
                Op::Gather { gather_dimension_numbers, slice_sizes: a, .. },
                Op::Gather { gather_dimension_numbers: other, slice_sizes: b, .. },
            ) => gather_dimension_numbers == other && are_alike(a, b),
            (a, b) => a == b,
        }
    }
}

/// Returns the value of a constant expression, if it is small.
fn evaluated(
    module: &Module,
    computation: &Computation,
    id: InstructionId,
    steps: &mut usize,
) -> Option<Literal> {
    let instruction = &computation[id];
    *steps = steps.checked_sub(1)?;
    if let Op::Constant { literal } = instruction.op() {
        return Some(literal.clone());
    }
    let is_small =
        |shape: &Shape| shape.as_array().is_some_and(|array| array.element_count() <= MAX_ELEMENTS);
    if !is_small(instruction.shape()) {
        return None;
    }
    let operands: Option<Vec<Literal>> = instruction
        .operands()
        .iter()
        .map(|&operand| evaluated(module, computation, operand, steps))
        .collect();
    let operands = operands?;
    let limits = Limits { max_steps: 1 << 22, max_live_bytes: 1 << 26, max_depth: 16 };
    let mut evaluator = Evaluator::with_limits(module, limits);
    let operands: Vec<&Literal> = operands.iter().collect();
    evaluator.evaluate_instruction(instruction.op(), instruction.shape(), &operands).ok()
}
