//! Sums of two arrays of scaled bytes in `f32`, where it gives the same bytes as fixed-point
//! arithmetic.

use super::edit::Edit;
use super::float_rounding::{self, FEW_OPERATIONS, Functions, MOST};
use super::steps::{Chain, Line};
use hlo::analysis::ChannelConstant;
use hlo::{Computation, InstructionId, Op};
use shape::PrimitiveType;

/// `x * scales[0] + offset + y * scales[1]`, rounded to bytes.
pub(super) struct FloatSum {
    bytes: [InstructionId; 2],
    scales: [f32; 2],
    offset: f32,
    limits: [i64; 2],
}

/// Values of a byte.
const VALUES: usize = 256;

/// The bytes of all pairs of operands.
struct Results {
    /// The values of the operands.
    operands: [Vec<i64>; 2],
    /// The results, row by row of the first operand.
    all: Vec<i64>,
    limits: [i64; 2],
}

impl FloatSum {
    /// Finds the sum whose result is `root`. Its results are those of integer arithmetic for all
    /// pairs of bytes.
    pub(super) fn of(computation: &Computation, root: InstructionId) -> Option<Self> {
        let Op::Convert {} = computation[root].op() else { return None };
        let storage = float_rounding::of_bytes(computation[root].shape().as_array()?.element_type)?;
        let outer = Chain::of(computation, computation[root].operands()[0])?;
        let is_difference = match computation[outer.source].op() {
            Op::Add {} => false,
            Op::Subtract {} => true,
            _ => return None,
        };
        let &[a, b] = computation[outer.source].operands() else { return None };
        let chains = [Chain::of(computation, a)?, Chain::of(computation, b)?];
        let operations = outer.operations() + chains[0].operations() + chains[1].operations();
        let is_single = [&outer, &chains[0], &chains[1]].iter().all(|chain| chain.channels() == 1);
        if !is_single || operations < FEW_OPERATIONS {
            return None;
        }
        let bytes = [chains[0].source, chains[1].source];
        let mut operands = [Vec::new(), Vec::new()];
        for (values, id) in operands.iter_mut().zip(bytes) {
            let [least, most] = float_rounding::of_bytes(computation[id].shape().as_array()?.element_type)?;
            *values = (least..=most).collect();
        }
        let sign = if is_difference { -1 } else { 1 };
        let scaled = |k: usize| -> Option<Vec<i64>> {
            operands[k].iter().map(|&value| chains[k].result(0, value)).collect()
        };
        let (first, second) = (scaled(0)?, scaled(1)?);
        let mut all = Vec::with_capacity(VALUES * VALUES);
        for x in &first {
            for y in &second {
                all.push(outer.result(0, x.checked_add(sign * y)?)?);
            }
        }
        let limits = [*all.iter().min()?, *all.iter().max()?];
        if limits[0] < storage[0] || limits[1] > storage[1] || limits[0] == limits[1] {
            return None;
        }
        let Line { slope, .. } = outer.line(0, false);
        let slopes = [chains[0].line(0, false).slope * slope, chains[1].line(0, false).slope * slope];
        let slopes = [slopes[0], slopes[1] * sign as f64];
        if slopes.iter().any(|slope| slope.abs() * VALUES as f64 > MOST / 4.0 || *slope == 0.0) {
            return None;
        }
        let (scales, offset) = Results { operands, all, limits }.fit(slopes)?;
        Some(Self { bytes, scales, offset, limits })
    }

    /// Adds the instructions that take the place of `root`.
    pub(super) fn build(
        &self,
        computation: &mut Computation,
        root: InstructionId,
        functions: Functions,
    ) -> InstructionId {
        let shape = computation[root].shape().expect_array().clone();
        let f32 = shape.with_element_type(PrimitiveType::F32);
        let mut edit = Edit::at(computation, root);
        let [x, y] = [0, 1].map(|k| {
            let real = edit.convert(self.bytes[k], PrimitiveType::F32);
            let scale = edit.spread(&ChannelConstant::of_all(self.scales[k].into()), &f32);
            edit.add(Op::Multiply {}, &f32, &[real, scale])
        });
        let offset = edit.spread(&ChannelConstant::of_all(self.offset.into()), &f32);
        let x = edit.add(Op::Add {}, &f32, &[x, offset]);
        let sum = edit.add(Op::Add {}, &f32, &[x, y]);
        let integers = functions.rounded(&mut edit, sum, 0);
        float_rounding::limited(&mut edit, integers, self.limits, shape.element_type)
    }
}

impl Results {
    /// Finds scales and an offset that give all results.
    fn fit(&self, slopes: [f64; 2]) -> Option<([f32; 2], f32)> {
        const ULPS: [i32; 7] = [0, 1, -1, 2, -2, 3, -3];
        for number in 0..ULPS.len() * ULPS.len() {
            let ulps = [ULPS[number / ULPS.len()], ULPS[number % ULPS.len()]];
            let near =
                |k: usize| (slopes[k] as f32).to_bits().checked_add_signed(ulps[k]).map(f32::from_bits);
            let scales = [near(0)?, near(1)?];
            let [low, high] = self.offsets(scales);
            // Far beyond what rounding changes.
            if high - low < -1e-3 {
                return None;
            }
            for part in [0.5, 0.3, 0.7, 0.1, 0.9] {
                let offset = (low + (high - low) * part) as f32;
                if self.are_those_of(scales, offset) {
                    return Some((scales, offset));
                }
            }
        }
        None
    }

    /// The offsets that give all results in arithmetic of real numbers.
    fn offsets(&self, scales: [f32; 2]) -> [f64; 2] {
        let (mut low, mut high) = (-MOST / 4.0, MOST / 4.0);
        self.pairs().for_each(|(x, y, result)| {
            let sum = x as f64 * f64::from(scales[0]) + y as f64 * f64::from(scales[1]);
            let rest = result as f64 - sum;
            if result > self.limits[0] {
                low = low.max(rest - 0.5);
            }
            if result < self.limits[1] {
                high = high.min(rest + 0.5);
            }
        });
        [low, high]
    }

    /// True if the arithmetic of the generated code gives all results.
    fn are_those_of(&self, scales: [f32; 2], offset: f32) -> bool {
        self.pairs().all(|(x, y, result)| {
            let sum = (x as f32 * scales[0] + offset) + y as f32 * scales[1];
            float_rounding::integer(sum).clamp(self.limits[0], self.limits[1]) == result
        })
    }

    /// All pairs of operands, with their results.
    fn pairs(&self) -> impl Iterator<Item = (i64, i64, i64)> + '_ {
        let [first, second] = &self.operands;
        let pairs = first.iter().flat_map(|&x| second.iter().map(move |&y| (x, y)));
        pairs.zip(&self.all).map(|((x, y), &result)| (x, y, result))
    }
}
