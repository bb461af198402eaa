//! Turns sums of products over the iterations of a loop into one large product after it.

mod finish;
mod terms;

use super::Loop;
use super::rows::{Kind, Row, Rows, covers_all, index_constant, with_rows};
use crate::pass::{Changed, Pass};
use hlo::analysis::TripCount;
use hlo::{Computation, InstructionId, Module, Op, OpMetadata};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};
use std::collections::BTreeMap;
use support::Result;
use terms::{Accumulator, Term, TermKind};

/// Sinks sums out of loops. If the body adds a product to a state element without other users, `sum
/// = sum + dot(a, b)`, the loop stores each iteration's a and b in a row of a buffer, and one
/// product over all rows follows the loop. Operands that are already rows of buffers are not stored
/// twice. Sums over dimensions of stored values or of existing rows are sunk in the same way. Other
/// terms stay in the loop.
///
/// Changes the rounding: sums are added in another order. Rows that no iteration writes are zero in
/// all operands, so they add nothing. Existing buffers are used only if the trip count is known and
/// every row belongs to one iteration. The memory of the buffers is limited.
pub struct WhileLoopAccumulationSinking;

impl Pass for WhileLoopAccumulationSinking {
    fn name(&self) -> &'static str {
        "while-loop-accumulation-sinking"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for site in Loop::sites(module) {
            let Some(while_loop) = Loop::at(module, site) else { continue };
            changed |= sink(module, while_loop);
        }
        Ok(changed.into())
    }
}

/// Maximum bytes of the buffers of one loop.
const MAX_BYTES: u64 = 128 << 20;

/// Maximum bytes that each iteration may store per byte of a sum.
const MAX_BYTES_PER_BYTE: u64 = 32;

fn sink(module: &mut Module, while_loop: Loop) -> bool {
    let accumulators = terms::accumulators(module, while_loop);
    if accumulators.is_empty() {
        return false;
    }
    let trip_count = while_loop.trip_count(module);
    let Some(count) = trip_count.bound.and_then(|bound| i64::try_from(bound).ok()) else { return false };
    if count < 2 {
        return false;
    }
    let rows = Rows::new(module, while_loop);
    let plan = Plan::new(module, while_loop, &rows, accumulators, trip_count, count);
    if plan.accumulators.is_empty() {
        return false;
    }
    let while_loop = while_loop.exclusive(module);
    plan.apply(module, while_loop, rows);
    true
}

/// The accumulators to sink, and the values to store for them.
struct Plan {
    accumulators: Vec<Accumulator>,
    /// Existing rows, one per iteration, with their index; `None` if a new counter indexes the
    /// rows.
    existing: Option<(Row, InstructionId)>,
    count: i64,
    /// Values of the body that are stored in new buffers.
    stored: Vec<InstructionId>,
}

impl Plan {
    fn new(
        module: &Module,
        while_loop: Loop,
        rows: &Rows,
        accumulators: Vec<Accumulator>,
        trip_count: TripCount,
        count: i64,
    ) -> Self {
        let body = &module[while_loop.body];
        let operands = accumulators.iter().flat_map(|a| &a.terms).flat_map(Term::operands);
        let existing = operands.flat_map(|operand| parts(body, operand)).find_map(|part| {
            let Kind::Rows(row, at) = rows.kind(part)? else { return None };
            (row.count == count && covers_all(module, while_loop, row, trip_count)).then_some((row, at))
        });
        let mut plan = Self { accumulators, existing, count, stored: Vec::new() };
        plan.choose(&module[while_loop.body], rows);
        plan
    }

    /// True if an operand is already rows of a buffer.
    fn has_rows(&self, rows: &Rows, operand: InstructionId) -> bool {
        let is_same = rows.kind(operand) == Some(Kind::Same);
        self.existing.is_some_and(|(row, _)| !is_same && rows.is_of(operand, row))
    }

    /// Decides which terms are sunk.
    fn choose(&mut self, body: &Computation, rows: &Rows) {
        let mut bytes = 0u64;
        let mut accumulators = std::mem::take(&mut self.accumulators);
        for term in accumulators.iter_mut().flat_map(|a| &mut a.terms) {
            let TermKind::Dot { operands, .. } = &term.kind else { continue };
            let mut missing: Vec<InstructionId> = operands
                .iter()
                .flat_map(|&operand| self.missing(body, rows, operand))
                .filter(|operand| !self.stored.contains(operand))
                .collect();
            missing.sort_unstable();
            missing.dedup();
            let size =
                |id: &InstructionId| body[*id].shape().byte_size().saturating_mul(self.count.unsigned_abs());
            let more = missing.iter().map(size).fold(0, u64::saturating_add);
            let each = missing.iter().map(|id| body[*id].shape().byte_size()).fold(0, u64::saturating_add);
            let is_same = operands.iter().any(|&operand| rows.kind(operand) == Some(Kind::Same));
            let is_costly = each / MAX_BYTES_PER_BYTE > body[term.id].shape().byte_size();
            if is_same || is_costly || bytes.saturating_add(more) > MAX_BYTES {
                term.kind = TermKind::Stays;
                continue;
            }
            bytes += more;
            self.stored.extend(missing);
        }
        // Sums are free if their operand is stored anyway.
        for term in accumulators.iter_mut().flat_map(|a| &mut a.terms) {
            if let TermKind::Sum { operand, .. } = term.kind {
                let is_free = self.missing(body, rows, operand).iter().all(|id| self.stored.contains(id));
                if !is_free {
                    term.kind = TermKind::Stays;
                }
            }
        }
        accumulators.retain(|a| a.terms.iter().any(|term| !matches!(term.kind, TermKind::Stays)));
        self.accumulators = accumulators;
    }

    /// The values to store so that an operand can be computed after the loop: none if it is already
    /// rows; for a concatenation with some parts that are rows, the other parts; otherwise the
    /// operand, before it was reordered.
    fn missing(&self, body: &Computation, rows: &Rows, operand: InstructionId) -> Vec<InstructionId> {
        if self.has_rows(rows, operand) {
            return Vec::new();
        }
        match self.recomputed_from(body, rows, operand) {
            Some(parts) => parts.iter().flat_map(|&part| self.missing(body, rows, part)).collect(),
            None => vec![operand],
        }
    }

    /// The operands of an instruction that is recomputed after the loop rather than stored.
    fn recomputed_from<'a>(
        &self,
        body: &'a Computation,
        rows: &Rows,
        id: InstructionId,
    ) -> Option<&'a [InstructionId]> {
        let operands = body[id].operands();
        match body[id].op() {
            Op::Transpose { .. } | Op::Reshape {} => Some(operands),
            Op::Concatenate { .. } if body[id].users().len() == 1 => {
                operands.iter().any(|&part| self.has_rows(rows, part)).then_some(operands)
            }
            _ => None,
        }
    }

    fn apply(self, module: &mut Module, while_loop: Loop, mut rows: Rows) {
        let index = match self.existing {
            Some((_, index)) => index,
            None => counter(module, while_loop),
        };
        let mut values: BTreeMap<InstructionId, InstructionId> = BTreeMap::new();
        let mut elements = Vec::new();
        for &value in &self.stored {
            elements.push((value, store(module, while_loop, value, index, self.count)));
        }
        for (value, element) in elements {
            values.insert(value, while_loop.after(module, element));
        }
        // Operands that are already rows are computed from the body before it changes.
        for accumulator in &self.accumulators {
            for operand in accumulator.terms.iter().flat_map(Term::operands) {
                self.make(module, while_loop, &mut rows, operand, &mut values);
            }
        }
        for accumulator in &self.accumulators {
            finish::accumulator(module, while_loop, accumulator, &values, &rows, self.count);
        }
        crate::simplify::dce::sweep(module.computation_mut(while_loop.body));
    }

    /// All rows of an operand, in the caller.
    fn make(
        &self,
        module: &mut Module,
        while_loop: Loop,
        rows: &mut Rows,
        operand: InstructionId,
        values: &mut BTreeMap<InstructionId, InstructionId>,
    ) -> InstructionId {
        if let Some(&value) = values.get(&operand) {
            return value;
        }
        if self.has_rows(rows, operand) {
            let (row, _) = self.existing.expect("existing rows without an index");
            let value = rows.batched(module, operand, row);
            values.insert(operand, value);
            return value;
        }
        let parts = self
            .recomputed_from(&module[while_loop.body], rows, operand)
            .map(<[_]>::to_vec)
            .unwrap_or_default();
        let parts: Vec<InstructionId> =
            parts.into_iter().map(|part| self.make(module, while_loop, rows, part, values)).collect();
        let instruction = &module[while_loop.body][operand];
        let shape = with_rows(instruction.shape().expect_array(), self.count);
        let (op, metadata) = (instruction.op().clone(), instruction.metadata().clone());
        let value = rows.add(module, super::rows::shifted(op, self.count), shape, &parts, metadata);
        values.insert(operand, value);
        value
    }
}

/// An operand, and the parts from which concatenation and reordering derive it.
fn parts(body: &Computation, operand: InstructionId) -> Vec<InstructionId> {
    let mut parts = vec![operand];
    let mut next = 0;
    while let Some(&part) = parts.get(next) {
        next += 1;
        let is_moved =
            matches!(body[part].op(), Op::Transpose { .. } | Op::Reshape {} | Op::Concatenate { .. });
        if is_moved && parts.len() < MAX_PARTS {
            parts.extend(body[part].operands());
        }
    }
    parts
}

/// Maximum number of parts of an operand to examine.
const MAX_PARTS: usize = 64;

/// Adds a state element that counts iterations. Returns its value in the body.
fn counter(module: &mut Module, while_loop: Loop) -> InstructionId {
    let zero = index_constant(module.computation_mut(while_loop.caller), PrimitiveType::S32, 0);
    let element = while_loop.add_element(module, zero);
    let count = while_loop.read(module, while_loop.body, element);
    let body = module.computation_mut(while_loop.body);
    let one = index_constant(body, PrimitiveType::S32, 1);
    let shape = body[count].shape().clone();
    let next = body.add("", Op::Add {}, shape, &[count, one], OpMetadata::default());
    while_loop.set_next(module, element, next);
    count
}

/// Stores a value of the body in its row of a new buffer of zeros. Returns the state element of the
/// buffer.
fn store(
    module: &mut Module,
    while_loop: Loop,
    value: InstructionId,
    index: InstructionId,
    count: i64,
) -> usize {
    let shape = module[while_loop.body][value].shape().expect_array().clone();
    let metadata = module[while_loop.body][value].metadata().clone();
    let whole = with_rows(&shape, count);
    let caller = module.computation_mut(while_loop.caller);
    let zero = zero(caller, shape.element_type);
    let op = Op::Broadcast { dimensions: Vec::new() };
    let start = caller.add("", op, whole.clone().into(), &[zero], metadata.clone());
    let element = while_loop.add_element(module, start);
    let buffer = while_loop.read(module, while_loop.body, element);
    let body = module.computation_mut(while_loop.body);
    let slot = body.add("", Op::Reshape {}, with_rows(&shape, 1).into(), &[value], metadata.clone());
    let origin = index_constant(body, body[index].shape().expect_array().element_type, 0);
    let mut operands = vec![buffer, slot, index];
    operands.resize(2 + whole.rank(), origin);
    let next = body.add("", Op::DynamicUpdateSlice {}, whole.into(), &operands, metadata);
    while_loop.set_next(module, element, next);
    element
}

fn zero(computation: &mut Computation, element_type: PrimitiveType) -> InstructionId {
    let shape = ArrayShape::new(element_type, &[]);
    let scalar = match element_type {
        _ if element_type.is_floating_point() => Scalar::Float(0.0),
        _ if element_type.is_complex() => Scalar::Complex(0.0, 0.0),
        PrimitiveType::Pred => Scalar::Pred(false),
        _ => return index_constant(computation, element_type, 0),
    };
    let literal = Literal::from_scalars(shape.clone(), [scalar]);
    computation.add("", Op::Constant { literal }, shape.into(), &[], OpMetadata::default())
}

/// True if all elements of an instruction of the caller are +0.
fn is_zero(computation: &Computation, id: InstructionId) -> bool {
    let id = match computation[id].op() {
        Op::Broadcast { .. } => computation[id].operands()[0],
        _ => id,
    };
    let Op::Constant { literal } = computation[id].op() else { return false };
    literal.bytes().iter().all(|&byte| byte == 0)
}
