//! Arithmetic of 64-bit integers whose values fit 32 bits.

use crate::pass::{Changed, Pass};
use crate::query::is_static;
use hlo::analysis::{Range, range};
use hlo::{Computation, InstructionId, Module, Op, OpMetadata};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar, Shape};
use std::collections::BTreeMap;
use support::Result;

/// `op(x, y) => convert(op(convert(x), convert(y)))` in `s32` for elementwise arrays of `s64` whose
/// values provably fit, such as the roundings of a quantized layer. A vector register then holds
/// twice as many. Factors of a wide product that fit are constants of 32 bits, which processors
/// multiply with one instruction.
///
/// The lower half of a sum is the sum of lower halves, so `convert(x + y)` to `s32` needs no such
/// proof.
///
/// Exact for every input.
pub struct IntegerNarrowing;

/// Elements below which an array is not worth the conversions.
const FEW_ELEMENTS: i64 = 16;

/// Maximum number of sums and broadcasts in sequence whose lower halves replace them.
const MAX_DEPTH: usize = 16;

impl Pass for IntegerNarrowing {
    fn name(&self) -> &'static str {
        "integer-narrowing"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for id in crate::query::executed_computations(module) {
            let computation = module.computation_mut(id);
            let is_wide = |id: &InstructionId| has_type(computation, *id, PrimitiveType::S64);
            if !computation.post_order().iter().any(is_wide) {
                continue;
            }
            let mut narrowing = Narrowing { computation, ranges: BTreeMap::new() };
            if narrowing.run() {
                crate::simplify::dce::sweep(computation);
                changed = true;
            }
        }
        Ok(changed.into())
    }
}

fn has_type(computation: &Computation, id: InstructionId, element_type: PrimitiveType) -> bool {
    computation[id].shape().as_array().is_some_and(|shape| shape.element_type == element_type)
}

/// True for integers of at most 16 bits.
fn is_narrow(element_type: PrimitiveType) -> bool {
    matches!(element_type, PrimitiveType::S8 | PrimitiveType::U8 | PrimitiveType::S16 | PrimitiveType::U16)
}

struct Narrowing<'c> {
    computation: &'c mut Computation,
    /// Ranges of the instructions so far, operands first.
    ranges: BTreeMap<InstructionId, Range>,
}

impl Narrowing<'_> {
    fn run(&mut self) -> bool {
        let mut changed = false;
        for id in self.computation.post_order() {
            let known = self.range(id);
            self.ranges.insert(id, known);
            let Some(new) = self.narrowed(id) else { continue };
            self.ranges.insert(new, known);
            self.computation.replace_all_uses(id, new);
            changed = true;
        }
        changed
    }

    /// Returns the range of an instruction whose operands are known. Bits of numbers that fit are
    /// numbers that fit.
    fn range(&self, id: InstructionId) -> Range {
        let known = range(self.computation, id, &|id| self.ranges.get(&id).copied());
        let instruction = &self.computation[id];
        let is_of_bits = matches!(instruction.op(), Op::And {} | Op::Or {} | Op::Xor {});
        if is_of_bits && instruction.operands().iter().all(|&operand| self.fits(operand)) {
            return Range { low: Some(i32::MIN.into()), high: Some(i32::MAX.into()) };
        }
        known
    }

    /// Returns a replacement of an instruction.
    fn narrowed(&mut self, id: InstructionId) -> Option<InstructionId> {
        let shape = self.computation[id].shape().as_array()?.clone();
        if shape.element_count() < FEW_ELEMENTS || !is_static(self.computation, id) {
            return None;
        }
        let op = self.computation[id].op().clone();
        let operands = self.computation[id].operands().to_vec();
        if matches!(op, Op::ShiftRightArithmetic {}) && shape.element_type == PrimitiveType::S64 {
            let narrow = self.without_factor(id, &shape);
            if narrow.is_some() {
                return narrow;
            }
        }
        match op {
            Op::Convert {} if shape.element_type == PrimitiveType::S32 => {
                let is_cheap = self.extended(operands[0]).is_some() || self.wraps(operands[0]);
                return is_cheap.then(|| self.narrow(operands[0]));
            }
            // The lowest bits of a number are those of its lower half.
            Op::Convert {} if is_narrow(shape.element_type) => {
                let lower = self.extended(operands[0]).map(|_| self.narrow(operands[0]))?;
                return Some(self.converted(lower, shape.element_type));
            }
            Op::Compare { .. } if has_type(self.computation, operands[0], PrimitiveType::S64) => {
                let fits = operands.iter().all(|&operand| self.fits(operand));
                return fits.then(|| self.in_32_bits(id, op, &operands, PrimitiveType::Pred))?;
            }
            _ if shape.element_type != PrimitiveType::S64 => return None,
            Op::Minimum {} if self.is_at_most(operands[0], operands[1]) => return Some(operands[0]),
            Op::Minimum {} if self.is_at_most(operands[1], operands[0]) => return Some(operands[1]),
            Op::Multiply {} if !self.fits(id) => return self.with_narrow_factor(id, &operands),
            Op::Add {}
            | Op::Subtract {}
            | Op::Multiply {}
            | Op::And {}
            | Op::Or {}
            | Op::Xor {}
            | Op::Minimum {}
            | Op::Maximum {}
            | Op::Select {}
            | Op::Clamp {} => {}
            Op::ShiftLeft {} | Op::ShiftRightArithmetic {} if self.is_within(operands[1], 0, 31) => {}
            // Only the sign is left, as of a shift by 31 bits.
            Op::ShiftRightArithmetic {} if self.fits(operands[0]) && self.is_within(operands[1], 32, 63) => {
                let count = self.splat(31, &shape);
                let x = self.narrow(operands[0]);
                let narrow = self.in_32_bits(id, op, &[x, count], PrimitiveType::S32)?;
                self.ranges.insert(narrow, self.ranges[&id]);
                return Some(self.converted(narrow, PrimitiveType::S64));
            }
            _ => return None,
        }
        let is_wide = |&id: &InstructionId| has_type(self.computation, id, PrimitiveType::S64);
        let all_fit = operands.iter().filter(|id| is_wide(id)).all(|&id| self.fits(id));
        if !all_fit || !self.fits(id) {
            return None;
        }
        let narrow = self.in_32_bits(id, op, &operands, PrimitiveType::S32)?;
        self.ranges.insert(narrow, self.ranges[&id]);
        Some(self.converted(narrow, PrimitiveType::S64))
    }

    /// Emits an instruction with operands of 32 bits.
    fn in_32_bits(
        &mut self,
        id: InstructionId,
        op: Op,
        operands: &[InstructionId],
        result: PrimitiveType,
    ) -> Option<InstructionId> {
        let operands: Vec<InstructionId> = operands.iter().map(|&operand| self.narrow(operand)).collect();
        let shape = self.computation[id].shape().as_array()?.with_element_type(result);
        let metadata = self.computation[id].metadata().clone();
        Some(self.computation.add("", op, shape.into(), &operands, metadata))
    }

    /// Returns `(x + 2^(b - a)) >> (c - a)` for `(x * 2^a + 2^b) >> c`, if its steps fit 32 bits.
    /// One of two numbers that are added is halved like this.
    fn without_factor(&mut self, id: InstructionId, shape: &ArrayShape) -> Option<InstructionId> {
        let operands = |id: InstructionId| match self.computation[id].operands() {
            &[a, b] => Some((a, b)),
            _ => None,
        };
        let (sum, count) = operands(id)?;
        let (Op::Add {}, (product, rounding)) = (self.computation[sum].op(), operands(sum)?) else {
            return None;
        };
        let Op::Multiply {} = self.computation[product].op() else { return None };
        let (x, factor) = operands(product)?;
        let exponent =
            |number: i64| (number > 0 && number & (number - 1) == 0).then(|| number.trailing_zeros());
        let (a, b) = (exponent(self.number(factor)?)?, exponent(self.number(rounding)?)?);
        let c = u32::try_from(self.number(count)?).ok()?;
        let (half, count) = (b.checked_sub(a)?, c.checked_sub(a)?);
        let most = i64::from(i32::MAX).checked_sub(1i64.checked_shl(half)?)?;
        // With a larger factor, the product may not fit 64 bits.
        if half > 30 || count > 31 || a > 32 || !self.is_within(x, i32::MIN.into(), most) {
            return None;
        }
        let x = self.narrow(x);
        let half = self.splat(1 << half, shape);
        let sum = self.in_32_bits(id, Op::Add {}, &[x, half], PrimitiveType::S32)?;
        let count = self.splat(count as i32, shape);
        let narrow = self.in_32_bits(id, Op::ShiftRightArithmetic {}, &[sum, count], PrimitiveType::S32)?;
        self.ranges.insert(narrow, self.ranges[&id]);
        Some(self.converted(narrow, PrimitiveType::S64))
    }

    /// The number in all elements of a constant or of a broadcast constant.
    fn number(&self, id: InstructionId) -> Option<i64> {
        let Op::Constant { literal } = self.computation[self.source(id)].op() else { return None };
        let is_one = literal.array_shape().element_count() == 1;
        is_one.then(|| literal.scalar_at(0).as_i64())?
    }

    /// Returns an `s32` array of one number.
    fn splat(&mut self, number: i32, shape: &ArrayShape) -> InstructionId {
        let literal = Literal::scalar(number);
        let scalar = Shape::array(PrimitiveType::S32, &[]);
        let constant = self.computation.add("", Op::Constant { literal }, scalar, &[], OpMetadata::default());
        let shape = shape.with_element_type(PrimitiveType::S32).into();
        let op = Op::Broadcast { dimensions: Vec::new() };
        self.computation.add("", op, shape, &[constant], OpMetadata::default())
    }

    /// Returns the product with a constant factor of 32 bits that is extended, if the other factor
    /// is extended, too. The code of a scalar factor shows that it fits.
    fn with_narrow_factor(&mut self, id: InstructionId, operands: &[InstructionId]) -> Option<InstructionId> {
        let &[a, b] = operands else { return None };
        let (x, factor) = if self.is_constant(a) { (b, a) } else { (a, b) };
        if !self.is_constant(factor) || !self.fits(factor) || self.unwrapped(x).is_none() {
            return None;
        }
        if self.computation[self.source(factor)].shape().as_array()?.element_count() == 1 {
            return None;
        }
        let factor = self.narrow(factor);
        let factor = self.converted(factor, PrimitiveType::S64);
        let shape = self.computation[id].shape().clone();
        let metadata = self.computation[id].metadata().clone();
        Some(self.computation.add("", Op::Multiply {}, shape, &[x, factor], metadata))
    }

    /// True for a constant and a broadcast constant.
    fn is_constant(&self, id: InstructionId) -> bool {
        matches!(self.computation[self.source(id)].op(), Op::Constant { .. })
    }

    /// The operand of a broadcast, or another instruction itself.
    fn source(&self, id: InstructionId) -> InstructionId {
        match self.computation[id].op() {
            Op::Broadcast { .. } => self.computation[id].operands()[0],
            _ => id,
        }
    }

    /// Returns the `s32` values that an instruction extends to `s64`.
    fn unwrapped(&self, id: InstructionId) -> Option<InstructionId> {
        let Op::Convert {} = self.computation[id].op() else { return None };
        let from = self.computation[id].operands()[0];
        let is_extension = has_type(self.computation, id, PrimitiveType::S64)
            && has_type(self.computation, from, PrimitiveType::S32);
        is_extension.then_some(from)
    }

    /// Returns the values of at most 32 bits that an instruction extends to `s64`.
    fn extended(&self, id: InstructionId) -> Option<InstructionId> {
        let Op::Convert {} = self.computation[id].op() else { return None };
        let from = self.computation[id].operands()[0];
        let element_type = self.computation[from].shape().as_array()?.element_type;
        let is_extension = has_type(self.computation, id, PrimitiveType::S64)
            && (is_narrow(element_type) || element_type == PrimitiveType::S32);
        is_extension.then_some(from)
    }

    /// True for an `s64` instruction with one reader whose lower halves depend on those of its
    /// operands only.
    fn wraps(&self, id: InstructionId) -> bool {
        let instruction = &self.computation[id];
        let op = instruction.op();
        has_type(self.computation, id, PrimitiveType::S64)
            && instruction.users().len() == 1
            && matches!(
                op,
                Op::Add {} | Op::Subtract {} | Op::And {} | Op::Or {} | Op::Xor {} | Op::Select {}
            )
    }

    /// Returns the lower halves of an `s64` instruction as `s32`; others as they are.
    fn narrow(&mut self, id: InstructionId) -> InstructionId {
        self.lower_half(id, MAX_DEPTH)
    }

    fn lower_half(&mut self, id: InstructionId, depth: usize) -> InstructionId {
        if !has_type(self.computation, id, PrimitiveType::S64) {
            return id;
        }
        if let Some(narrow) = self.extended(id) {
            let is_whole = has_type(self.computation, narrow, PrimitiveType::S32);
            return if is_whole { narrow } else { self.converted(narrow, PrimitiveType::S32) };
        }
        let metadata = self.computation[id].metadata().clone();
        let shape = self.computation[id].shape().expect_array().with_element_type(PrimitiveType::S32);
        match self.computation[id].op().clone() {
            Op::Constant { literal } => {
                let values = literal
                    .scalars()
                    .map(|value| Scalar::Signed((value.as_i64().unwrap_or(0) as i32).into()));
                let literal = Literal::from_scalars(shape.clone(), values.collect::<Vec<_>>());
                self.computation.add("", Op::Constant { literal }, shape.into(), &[], metadata)
            }
            op @ Op::Broadcast { .. } if depth > 0 => {
                let source = self.computation[id].operands()[0];
                let source = self.lower_half(source, depth - 1);
                self.computation.add("", op, Shape::from(shape), &[source], metadata)
            }
            op if depth > 0 && self.wraps(id) => {
                let operands = self.computation[id].operands().to_vec();
                let operands: Vec<InstructionId> =
                    operands.into_iter().map(|operand| self.lower_half(operand, depth - 1)).collect();
                self.computation.add("", op, shape.into(), &operands, metadata)
            }
            _ => self.converted(id, PrimitiveType::S32),
        }
    }

    fn converted(&mut self, id: InstructionId, element_type: PrimitiveType) -> InstructionId {
        let metadata = self.computation[id].metadata().clone();
        let shape = self.computation[id].shape().expect_array().with_element_type(element_type);
        self.computation.add("", Op::Convert {}, shape.into(), &[id], metadata)
    }

    fn is_within(&self, id: InstructionId, low: i64, high: i64) -> bool {
        let Some(Range { low: Some(least), high: Some(most) }) = self.ranges.get(&id) else { return false };
        low <= *least && *most <= high
    }

    fn fits(&self, id: InstructionId) -> bool {
        self.is_within(id, i32::MIN.into(), i32::MAX.into())
    }

    /// True if no value of `a` is larger than any of `b`.
    fn is_at_most(&self, a: InstructionId, b: InstructionId) -> bool {
        let end = |id: &InstructionId| self.ranges.get(id).copied().unwrap_or(Range::UNKNOWN);
        matches!((end(&a).high, end(&b).low), (Some(high), Some(low)) if high <= low)
    }
}
