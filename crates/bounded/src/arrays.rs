//! Arrays of bounded size: dimensions whose size is data-dependent, with a compile-time upper
//! bound.
//!
//! Such a value is a chain of `set-dimension-size` on an array of the bounds' size. The shapes tell
//! which dimensions are bounded, and the sizes are `s32` scalars. Elements beyond a true size are
//! undefined padding. An instruction on bounded operands becomes instructions on the whole arrays.
//! Padding is masked if it would affect the result, and the result's sizes are set again
//! (`instructions`). Everything except the ends of such chains is thus HLO of static shapes. This
//! module provides the true sizes to rules that need them.

pub mod crossing;
mod factors;
mod fourier;
mod gather;
mod instructions;
mod joined;
mod masks;
mod pieces;
mod reshape;
mod scatter_windows;
mod shapes;
mod sizes;
mod sort;

pub use factors::PaddedMatrices;
pub use sizes::{Size, bounds, run_time};

use crate::builder::Builder;
use hlo::analysis::Range;
use hlo::{InstructionId, Op};
use shape::PrimitiveType;
use support::{Error, Result};

/// An array of the bounds' size, and the true sizes of its bounded dimensions as `s32` scalars.
#[derive(Clone, Debug)]
pub struct Bounded {
    /// The array.
    pub data: InstructionId,
    /// The size of each dimension, or `None` if it is not bounded.
    pub sizes: Vec<Option<InstructionId>>,
}

/// The true sizes of bounded dimensions, `None` for others.
type Sizes = Vec<Option<InstructionId>>;

impl Bounded {
    fn is_static(&self) -> bool {
        self.sizes.iter().all(Option::is_none)
    }
}

impl Builder {
    /// True if an array has a bounded dimension.
    pub fn is_bounded(&self, id: InstructionId) -> bool {
        self.scope_ref().shape(id).as_array().is_some_and(|array| !array.is_static())
    }

    /// Splits a value into the whole array and its true sizes.
    pub fn split(&mut self, id: InstructionId) -> Result<Bounded> {
        let mut sizes = match self.scope_ref().shape(id).as_array() {
            Some(array) => vec![None; array.rank()],
            None => Vec::new(),
        };
        let mut data = id;
        while self.is_bounded(data) {
            let instruction = &self.scope_ref().computation()[data];
            let Op::SetDimensionSize { dimension } = *instruction.op() else {
                return Err(Error::internal(format!(
                    "{} is bounded, but is not a set-dimension-size",
                    instruction.name()
                )));
            };
            let size = instruction.operands()[1];
            data = instruction.operands()[0];
            if sizes[dimension].is_none() {
                sizes[dimension] = Some(size);
            }
        }
        Ok(Bounded { data, sizes })
    }

    /// Returns an array whose dimensions have these true sizes, each from 0 to its bound. `None`
    /// means the bound itself. Sizes known at compile time become slices.
    pub fn bounded(&mut self, data: InstructionId, sizes: &[Option<InstructionId>]) -> Result<InstructionId> {
        let mut result = data;
        let settled = if self.has_named_sizes() && sizes.iter().any(Option::is_some) {
            self.settled_sizes(sizes, &self.sizes(data))?
        } else {
            sizes.to_vec()
        };
        let sizes = settled.as_slice();
        for (dimension, size) in sizes.iter().enumerate() {
            let Some(size) = *size else { continue };
            let bound = self.sizes(result)[dimension];
            match self.fold(size).and_then(|literal| literal.scalar_at(0).as_i64()) {
                Some(known) if known >= bound => {}
                Some(known) => result = self.slice_in(result, dimension, 0, known.max(0))?,
                None => {}
            }
        }
        for (dimension, size) in sizes.iter().enumerate() {
            let Some(size) = *size else { continue };
            if self.fold(size).is_some() {
                continue;
            }
            let mut bound = self.sizes(result)[dimension];
            if bound == 0 {
                continue;
            }
            // Equal sizes get equal bounds, however they are computed.
            let most = if self.has_named_sizes() { self.range(size).high } else { None };
            if let Some(most) = most.filter(|most| (1..bound).contains(most)) {
                result = self.slice_in(result, dimension, 0, most)?;
                bound = most;
            }
            let size = self.within_bound(size, bound)?;
            result = self.static_op(Op::SetDimensionSize { dimension }, &[result, size], None)?;
        }
        Ok(result)
    }

    /// Clamps a size to the range from 0 to a bound, unless it is known to be in range. An invalid
    /// size in a graph thus cannot cause reads beyond the array.
    fn within_bound(&mut self, mut size: InstructionId, bound: i64) -> Result<InstructionId> {
        let range = self.range(size);
        if range.high.is_none_or(|high| high > bound) {
            let most = self.s32(bound)?;
            size = self.op(Op::Minimum {}, &[size, most])?;
        }
        if range.low.is_none_or(|low| low < 0) {
            let none = self.s32(0)?;
            size = self.op(Op::Maximum {}, &[size, none])?;
        }
        let high = range.high.map_or(bound, |high| high.min(bound));
        let known = Range { low: Some(range.low.map_or(0, |low| low.max(0))), high: Some(high) };
        self.note_range(size, known);
        Ok(size)
    }

    /// Returns the true size of a dimension as an `s32` scalar, a constant if the dimension is not
    /// bounded.
    pub fn true_size(&mut self, id: InstructionId, dimension: usize) -> Result<InstructionId> {
        let split = self.split(id)?;
        match split.sizes[dimension] {
            Some(size) => Ok(size),
            None => {
                let size = self.sizes(id)[dimension];
                self.s32(size)
            }
        }
    }

    /// Returns the product of the true sizes of some dimensions as an `s32` scalar.
    pub fn true_count(&mut self, id: InstructionId, dimensions: &[usize]) -> Result<InstructionId> {
        let mut count = self.s32(1)?;
        for &dimension in dimensions {
            let size = self.true_size(id, dimension)?;
            count = self.times(count, size)?;
        }
        Ok(count)
    }

    /// Returns an array with the true sizes of another.
    pub fn with_sizes_of(&mut self, data: InstructionId, like: InstructionId) -> Result<InstructionId> {
        let sizes = self.split(like)?.sizes;
        self.bounded(data, &sizes)
    }

    /// Returns an `s32` constant.
    pub fn s32(&mut self, value: i64) -> Result<InstructionId> {
        let fits = i32::try_from(value).is_ok();
        self.check(fits, || format!("an array of bounded size has too many elements: {value}"))?;
        Ok(self.scalar(PrimitiveType::S32, value as f64))
    }

    /// Returns the product of two `s32` scalars, one of which is often 1.
    pub fn times(&mut self, a: InstructionId, b: InstructionId) -> Result<InstructionId> {
        let known = |cx: &mut Self, id| cx.fold(id).and_then(|literal| literal.scalar_at(0).as_i64());
        match (known(self, a), known(self, b)) {
            (Some(a), Some(b)) => self.s32(a.saturating_mul(b)),
            (Some(1), None) => Ok(b),
            (None, Some(1)) => Ok(a),
            _ => self.mul(a, b),
        }
    }

    /// `min(max(value, low), high)` of `s32` scalars.
    pub fn clamped(
        &mut self,
        value: InstructionId,
        low: InstructionId,
        high: InstructionId,
    ) -> Result<InstructionId> {
        let value = self.op(Op::Maximum {}, &[value, low])?;
        self.op(Op::Minimum {}, &[value, high])
    }
}
