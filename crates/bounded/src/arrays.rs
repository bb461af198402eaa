//! Arrays of bounded size: dimensions that are only known to be no larger than a bound until the program runs.
//!
//! Such a value is a chain of `set-dimension-size` over an array of the bounds' size: the shapes say which dimensions
//! are bounded, and the sizes are `s32` scalars. What lies behind a true size is undefined. Instructions that are built
//! on bounded operands come out as instructions on the whole arrays, with what lies behind the true sizes masked where
//! it would count, and the result's sizes are set again (`instructions`): so everything but the ends of such chains is
//! HLO of static shapes. Whoever has to know about true sizes asks here.

pub mod crossing;
mod instructions;
mod masks;
mod pieces;
mod reshape;
mod scatter_windows;
mod shapes;
mod sizes;
mod sort;

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
    /// The size of each dimension, `None` if it is not bounded.
    pub sizes: Vec<Option<InstructionId>>,
}

/// The true sizes of bounded dimensions, `None` for the others.
type Sizes = Vec<Option<InstructionId>>;

impl Bounded {
    fn is_static(&self) -> bool {
        self.sizes.iter().all(Option::is_none)
    }
}

impl Builder {
    /// Whether an array has a bounded dimension.
    pub fn is_bounded(&self, id: InstructionId) -> bool {
        self.scope_ref().shape(id).as_array().is_some_and(|array| !array.is_static())
    }

    /// The whole array behind a value and its true sizes.
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
                    "{} is bounded, but nothing sets its size",
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

    /// An array whose dimensions have these true sizes, each from 0 to its bound; `None` is the bound itself. What is
    /// known at compile time is cut off.
    pub fn bounded(&mut self, data: InstructionId, sizes: &[Option<InstructionId>]) -> Result<InstructionId> {
        let mut result = data;
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
            let bound = self.sizes(result)[dimension];
            if bound == 0 {
                continue;
            }
            let size = self.within_bound(size, bound)?;
            result = self.static_op(Op::SetDimensionSize { dimension }, &[result, size], None)?;
        }
        Ok(result)
    }

    /// The size, which lies between 0 and a bound: what says more at run time, against what a graph should, is clamped, so
    /// that nobody reads beyond the array.
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

    /// The true size of a dimension as an `s32` scalar: a constant if the dimension is not bounded.
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

    /// The product of the true sizes of some dimensions as an `s32` scalar.
    pub fn true_count(&mut self, id: InstructionId, dimensions: &[usize]) -> Result<InstructionId> {
        let mut count = self.s32(1)?;
        for &dimension in dimensions {
            let size = self.true_size(id, dimension)?;
            count = self.times(count, size)?;
        }
        Ok(count)
    }

    /// The same elements with other sizes said of them.
    pub fn with_sizes_of(&mut self, data: InstructionId, like: InstructionId) -> Result<InstructionId> {
        let sizes = self.split(like)?.sizes;
        self.bounded(data, &sizes)
    }

    /// An `s32` constant.
    pub fn s32(&mut self, value: i64) -> Result<InstructionId> {
        let fits = i32::try_from(value).is_ok();
        self.check(fits, || format!("{value} elements are too many for an array of bounded size"))?;
        Ok(self.scalar(PrimitiveType::S32, value as f64))
    }

    /// The product of two `s32` scalars, one of which is often 1.
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
