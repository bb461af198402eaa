//! Interval arithmetic over integer instructions.

use super::compared;
use super::interval::{Interval, Range};
use super::trip_count;
use crate::{ComparisonDirection, Computation, ComputationId, InstructionId, Module, Op, Opcode};
use shape::{ArrayShape, PrimitiveType};
use std::collections::BTreeMap;

/// Returns the range of an integer or a `pred`; for an array, a range that holds for all elements.
///
/// `of_leaf` is called first for every instruction; if it returns `None`, the range is computed.
/// Unknown instructions may have any value of their type. Arithmetic that may wrap has an unknown
/// result.
pub fn range(
    computation: &Computation,
    id: InstructionId,
    of_leaf: &dyn Fn(InstructionId) -> Option<Range>,
) -> Range {
    Ranges { module: None, computation, of_leaf, depth: 0 }.range(id)
}

/// Like [`range`], but also follows reductions, conditionals, and loops, since it has access to the
/// computations that they call.
pub fn range_in(
    module: &Module,
    computation: &Computation,
    id: InstructionId,
    of_leaf: &dyn Fn(InstructionId) -> Option<Range>,
) -> Range {
    Ranges { module: Some(module), computation, of_leaf, depth: 0 }.range(id)
}

/// Maximum number of instructions per query; the rest counts as unknown.
const MAX_INSTRUCTIONS: usize = 1 << 14;
/// Maximum number of elements that are read from a constant.
const MAX_ELEMENTS: i64 = 1 << 12;
/// Maximum depth of loops and branches, nested or in sequence, that are analyzed.
const MAX_DEPTH: usize = 6;

pub(super) struct Ranges<'a> {
    pub(super) module: Option<&'a Module>,
    pub(super) computation: &'a Computation,
    pub(super) of_leaf: &'a dyn Fn(InstructionId) -> Option<Range>,
    pub(super) depth: usize,
}

impl Ranges<'_> {
    pub(super) fn range(&self, id: InstructionId) -> Range {
        let Some(all) = self.type_of(id) else { return Range::UNKNOWN };
        self.interval(id).map_or(Range::UNKNOWN, |interval| interval.to_range(all))
    }

    /// Returns the interval of all values of an instruction's element type.
    fn type_of(&self, id: InstructionId) -> Option<Interval> {
        Interval::of_type(self.array(id)?.element_type)
    }

    fn array(&self, id: InstructionId) -> Option<&ArrayShape> {
        self.computation[id].shape().as_array()
    }

    /// Returns the interval of an array of integers; `None` for everything else.
    pub(super) fn interval(&self, id: InstructionId) -> Option<Interval> {
        let mut intervals: BTreeMap<InstructionId, Interval> = BTreeMap::new();
        let mut pending = vec![(id, false)];
        while let Some((at, are_inputs_known)) = pending.pop() {
            if intervals.contains_key(&at) {
                continue;
            }
            let Some(all) = self.type_of(at) else { continue };
            if intervals.len() + pending.len() > MAX_INSTRUCTIONS {
                intervals.insert(at, all);
                continue;
            }
            if let Some(range) = (self.of_leaf)(at) {
                intervals.insert(at, Interval::from_range(range, all));
                continue;
            }
            if !are_inputs_known {
                pending.push((at, true));
                pending.extend(self.inputs(at).into_iter().map(|input| (input, false)));
                continue;
            }
            let interval = self.compute(at, all, &|input| intervals.get(&input).copied());
            intervals.insert(at, interval.map_or(all, |interval| interval.within(all)));
        }
        intervals.get(&id).copied()
    }

    /// Returns the instructions whose intervals [`Self::compute`] needs.
    fn inputs(&self, id: InstructionId) -> Vec<InstructionId> {
        let instruction = &self.computation[id];
        let operands = instruction.operands();
        match instruction.op() {
            Op::GetTupleElement { index } => {
                let tuple = &self.computation[operands[0]];
                let element =
                    matches!(tuple.op(), Op::Tuple {}).then(|| tuple.operands().get(*index).copied());
                element.flatten().into_iter().collect()
            }
            Op::CustomCall { .. } | Op::Fusion { .. } => Vec::new(),
            Op::DynamicSlice { .. } | Op::Gather { .. } => operands.iter().take(1).copied().collect(),
            Op::DynamicUpdateSlice {} => operands.iter().take(2).copied().collect(),
            Op::Compare { .. } => compared::instructions(self.computation, operands),
            _ => operands.to_vec(),
        }
    }

    fn compute(
        &self,
        id: InstructionId,
        all: Interval,
        interval_of: &dyn Fn(InstructionId) -> Option<Interval>,
    ) -> Option<Interval> {
        let instruction = &self.computation[id];
        let operand = |k: usize| interval_of(*instruction.operands().get(k)?);
        match instruction.op() {
            Op::Constant { literal } => {
                let count = literal.array_shape().element_count();
                if count == 0 || (count > MAX_ELEMENTS && !literal.is_splat()) {
                    return None;
                }
                let intervals = literal.scalars().take(MAX_ELEMENTS as usize).map(|scalar| match scalar {
                    shape::Scalar::Unsigned(value) => Some(Interval::exactly(value.into())),
                    other => Some(Interval::exactly(other.as_i64()?.into())),
                });
                intervals.reduce(|a, b| Some(a?.hull(b?)))?
            }
            Op::Parameter { number } => self.size(*number),
            Op::Iota { iota_dimension } => {
                let size = self.array(id)?.size(*iota_dimension);
                Some(Interval::new(0, i128::from(size.max(1)) - 1))
            }
            Op::Add {} => Some(operand(0)?.plus(operand(1)?)),
            Op::Subtract {} => Some(operand(0)?.minus(operand(1)?)),
            Op::Multiply {} => operand(0)?.times(operand(1)?),
            Op::Divide {} => operand(0)?.divided_by(operand(1)?),
            Op::Remainder {} => operand(0)?.remainder_by(operand(1)?),
            Op::Negate {} => Some(operand(0)?.negated()),
            Op::Abs {} => Some(operand(0)?.absolute()),
            Op::Sign {} => Some(Interval::new(-1, 1)),
            Op::Maximum {} => Some(operand(0)?.maximum(operand(1)?)),
            Op::Minimum {} => Some(operand(0)?.minimum(operand(1)?)),
            Op::Clamp {} => Some(operand(1)?.maximum(operand(0)?).minimum(operand(2)?)),
            Op::Select {} => match operand(0).and_then(Interval::value) {
                Some(0) => operand(2),
                Some(_) => operand(1),
                None => Some(operand(1)?.hull(operand(2)?)),
            },
            Op::Compare { direction, .. } => {
                let &[a, b] = instruction.operands() else { return None };
                let [a, b] = compared::integers(self.computation, [a, b], interval_of)?;
                compare(*direction, a.interval(interval_of)?, b.interval(interval_of)?)
            }
            Op::ShiftLeft {} => operand(0)?.shifted_left(operand(1)?),
            Op::ShiftRightArithmetic {} if all.low < 0 => {
                let bits = self.array(id)?.element_type.bit_width();
                operand(0)?.shifted_right(operand(1)?, bits.into())
            }
            // Only for `pred`; the bits of other types are not tracked.
            Op::And {} if all.high == 1 => Some(operand(0)?.minimum(operand(1)?)),
            Op::Or {} if all.high == 1 => Some(operand(0)?.maximum(operand(1)?)),
            Op::Not {} if all.high == 1 => Some(Interval::exactly(1).minus(operand(0)?)),
            Op::Convert {} => self.convert(id, operand(0)?),
            Op::Reshape {}
            | Op::Copy {}
            | Op::Broadcast { .. }
            | Op::Transpose { .. }
            | Op::Reverse { .. }
            | Op::Slice { .. }
            | Op::DynamicSlice { .. } => operand(0),
            Op::DynamicUpdateSlice {} | Op::Pad { .. } => Some(operand(0)?.hull(operand(1)?)),
            Op::Concatenate { .. } => {
                let mut operands = instruction.operands().iter().map(|&o| interval_of(o));
                let first = operands.next()??;
                operands.try_fold(first, |hull, operand| Some(hull.hull(operand?)))
            }
            Op::Dot { .. } | Op::Convolution { .. } => {
                let count = Interval::new(0, self.summands(id)?);
                operand(0)?.times(operand(1)?)?.times(count)
            }
            Op::GetDimensionSize { dimension } => {
                let dimension = self.array(instruction.operands()[0])?.dimensions.get(*dimension)?;
                let low = if dimension.is_dynamic { 0 } else { dimension.size };
                Some(Interval::new(low.into(), dimension.size.into()))
            }
            Op::Reduce { to_apply, .. } | Op::ReduceWindow { to_apply, .. }
                if instruction.operands().len() == 2 =>
            {
                self.reduce(id, *to_apply, operand(0)?, operand(1)?)
            }
            Op::GetTupleElement { index } => {
                let tuple = instruction.operands()[0];
                match self.computation[tuple].op() {
                    Op::Tuple {} => interval_of(*self.computation[tuple].operands().get(*index)?),
                    _ => self.element(tuple, *index, all),
                }
            }
            Op::Conditional { .. } => self.branches(id, None, all),
            _ => None,
        }
    }

    /// The range of a size that the caller of the program chooses.
    fn size(&self, parameter: usize) -> Option<Interval> {
        let module = self.module?;
        let size = module.size_parameters().iter().find(|size| size.parameter == parameter)?;
        let is_entry = std::ptr::eq(module.entry_computation(), self.computation);
        is_entry.then(|| Interval::new(size.low.into(), size.high.into()))
    }

    /// A conversion to `pred` compares with 0; one to an integer keeps values that fit.
    fn convert(&self, id: InstructionId, operand: Interval) -> Option<Interval> {
        if self.array(id)?.element_type != PrimitiveType::Pred {
            return Some(operand);
        }
        match operand {
            Interval { low: 0, high: 0 } => Some(operand),
            Interval { low, high } if low > 0 || high < 0 => Some(Interval::exactly(1)),
            _ => None,
        }
    }

    /// Returns the number of products in each sum of a contraction. Padding may take some away.
    fn summands(&self, id: InstructionId) -> Option<i128> {
        let operand = |k: usize| self.array(self.computation[id].operands()[k]);
        let sizes: Vec<i64> = match self.computation[id].op() {
            Op::Dot { dot_dimension_numbers: numbers } => {
                let lhs = operand(0)?;
                numbers.lhs_contracting_dims.iter().map(|&d| lhs.size(d)).collect()
            }
            Op::Convolution { dim_labels: numbers, .. } => {
                let (kernel, outputs) = (operand(1)?, numbers.kernel_output_feature_dimension);
                (0..kernel.rank()).filter(|&d| d != outputs).map(|d| kernel.size(d)).collect()
            }
            _ => return None,
        };
        Some(sizes.into_iter().map(i128::from).fold(1, i128::saturating_mul))
    }

    /// A reduction with a known function: each result combines the initial value with `count`
    /// elements.
    fn reduce(
        &self,
        id: InstructionId,
        to_apply: ComputationId,
        x: Interval,
        initial: Interval,
    ) -> Option<Interval> {
        let callee = self.module?.get(to_apply)?;
        let root = &callee[callee.root_if_set()?];
        let operand = self.array(self.computation[id].operands()[0])?;
        let count = match self.computation[id].op() {
            Op::Reduce { dimensions, .. } => {
                let counts = dimensions.iter().map(|&d| i128::from(operand.size(d)));
                counts.fold(1i128, i128::saturating_mul)
            }
            Op::ReduceWindow { window, .. } => {
                let sizes = window.dimensions.iter().enumerate().map(|(d, w)| w.size.min(operand.size(d)));
                sizes.map(i128::from).fold(1i128, i128::saturating_mul)
            }
            _ => return None,
        };
        let is_of_parameters = callee.parameters().len() == 2
            && root.operands().len() == 2
            && callee.parameters().iter().all(|parameter| root.operands().contains(parameter));
        if !is_of_parameters {
            return None;
        }
        // A dynamic dimension, or a window at an edge, may have fewer elements.
        let is_whole = matches!(self.computation[id].op(), Op::Reduce { .. });
        let is_full = is_whole && count > 0 && operand.is_static();
        let counts = Interval::new(if is_full { count } else { 0 }, count);
        let result = match root.opcode() {
            Opcode::Maximum | Opcode::Or => initial.maximum(x),
            Opcode::Minimum | Opcode::And => initial.minimum(x),
            Opcode::Add => initial.plus(x.times(counts)?),
            _ => return None,
        };
        let is_pred = operand.element_type == PrimitiveType::Pred;
        let needs_pred = matches!(root.opcode(), Opcode::Or | Opcode::And);
        if needs_pred && !is_pred {
            return None;
        }
        Some(if is_full { result } else { result.hull(initial) })
    }

    /// Returns the interval of an element in the result of a loop or a conditional.
    fn element(&self, tuple: InstructionId, index: usize, all: Interval) -> Option<Interval> {
        let module = self.module?;
        match self.computation[tuple].op() {
            Op::While { condition, body } if self.depth < MAX_DEPTH => {
                let start = self.computation[tuple].operands()[0];
                let initial = |k: usize| self.initial(start, k);
                let (condition, body) = (module.get(*condition)?, module.get(*body)?);
                let after = trip_count::after_loop(module, condition, body, &initial, index, self.depth + 1)?;
                Some(Interval::from_range(after, all))
            }
            Op::Conditional { .. } => self.branches(tuple, Some(index), all),
            _ => None,
        }
    }

    /// Returns the range of an element of a tuple.
    fn initial(&self, tuple: InstructionId, index: usize) -> Range {
        let inner = Ranges { depth: self.depth + 1, ..*self };
        match self.computation[tuple].op() {
            Op::Tuple {} => match self.computation[tuple].operands().get(index) {
                Some(&element) => inner.range(element),
                None => Range::UNKNOWN,
            },
            _ => Range::UNKNOWN,
        }
    }

    /// Returns the hull of the results of all branches; their parameters are unknown.
    fn branches(&self, id: InstructionId, index: Option<usize>, all: Interval) -> Option<Interval> {
        let module = self.module?;
        let Op::Conditional { branch_computations } = self.computation[id].op() else { return None };
        if self.depth >= MAX_DEPTH {
            return None;
        }
        let mut result: Option<Interval> = None;
        for &branch in branch_computations {
            let computation = module.get(branch)?;
            let root = computation.root_if_set()?;
            let value = match (index, computation[root].op()) {
                (None, _) => root,
                (Some(index), Op::Tuple {}) => *computation[root].operands().get(index)?,
                _ => return None,
            };
            let ranges =
                Ranges { module: Some(module), computation, of_leaf: &|_| None, depth: self.depth + 1 };
            let interval = ranges.interval(value)?.within(all);
            result = Some(result.map_or(interval, |r| r.hull(interval)));
        }
        result
    }
}

/// Returns 1 if a comparison holds for all values of two intervals, and 0 if it holds for none.
pub(super) fn compare(direction: ComparisonDirection, a: Interval, b: Interval) -> Option<Interval> {
    let (yes, no) = match direction {
        ComparisonDirection::Lt => (a.high < b.low, a.low >= b.high),
        ComparisonDirection::Le => (a.high <= b.low, a.low > b.high),
        ComparisonDirection::Gt => (a.low > b.high, a.high <= b.low),
        ComparisonDirection::Ge => (a.low >= b.high, a.high < b.low),
        ComparisonDirection::Eq => (a.value().is_some() && a == b, a.intersection(b).is_none()),
        ComparisonDirection::Ne => (a.intersection(b).is_none(), a.value().is_some() && a == b),
    };
    (yes || no).then(|| Interval::exactly(yes.into()))
}
