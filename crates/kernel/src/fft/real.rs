//! Real signals. A signal of even length is treated as a complex one of half the length. Its
//! spectrum contains those of the even and the odd elements.

use super::butterfly::Point;
use super::lines::{Line, RootTable, for_blocks};
use nest::{FunctionBuilder, Predicate, ScalarType, ValueId};
use support::Result;

/// Order in which the points of a step are processed.
#[derive(Clone, Copy)]
pub(super) struct Walk {
    /// Number of lanes: neighboring points, or lines.
    pub(super) lanes: u32,
    /// True if lanes hold neighboring points.
    pub(super) is_along: bool,
}

impl Walk {
    /// Runs the body for the points below a count. It receives the first point in the lanes and the
    /// number of lanes.
    fn for_points(
        self,
        b: &mut FunctionBuilder,
        count: i64,
        body: impl FnOnce(&mut FunctionBuilder, ValueId, u32) -> Result<()>,
    ) -> Result<()> {
        if count <= 0 {
            return Ok(());
        }
        if !self.is_along {
            return for_blocks(b, count, 1, |b, point| body(b, point, self.lanes));
        }
        let lanes = self.lanes.min(1 << count.ilog2().min(16));
        for_blocks(b, count, i64::from(lanes), |b, point| body(b, point, lanes))
    }

    fn root(self, b: &mut FunctionBuilder, roots: &RootTable, point: ValueId, lanes: u32) -> Point {
        roots.load(b, 0, point, lanes, !self.is_along)
    }

    /// Loads the mirror images of some points. The numbers of a point and its image add up to
    /// `sum`.
    fn mirrored(b: &mut FunctionBuilder, from: &Line, sum: i64, point: ValueId, lanes: u32) -> Point {
        let sum = b.index(sum);
        let there = b.sub(sum, point);
        from.load_backward(b, there, lanes)
    }

    /// Returns zero in the lanes of the points below a number, and a value in the others.
    fn zero_below(self, b: &mut FunctionBuilder, point: ValueId, number: i64, value: ValueId) -> ValueId {
        let ty = b.ty(value);
        let zero = b.float(ty, 0.0);
        let is_below = if self.is_along && ty.lanes > 1 {
            let lanes = b.iota(ScalarType::I64, ty.lanes);
            let first = b.splat(point, ty.lanes);
            let (points, limit) = (b.add(lanes, first), b.integer(ty.with_scalar(ScalarType::I64), number));
            b.compare(Predicate::Less, points, limit)
        } else {
            let limit = b.index(number);
            b.compare(Predicate::Less, point, limit)
        };
        b.select(is_below, zero, value)
    }

    /// Computes the first `half + 1` frequencies of a real signal from the spectrum of its `half`
    /// pairs.
    pub(super) fn spectrum_of_pairs(
        self,
        b: &mut FunctionBuilder,
        roots: &RootTable,
        half: i64,
        from: &Line,
        to: &Line,
    ) -> Result<()> {
        // Frequency `half` equals frequency 0.
        let (zero, last) = (b.index(0), b.index(half));
        let first = from.load(b, zero, if self.is_along { 1 } else { self.lanes });
        from.store(b, last, first);
        self.for_points(b, half + 1, |b, point, lanes| {
            let here = from.load(b, point, lanes);
            let there = Self::mirrored(b, from, half, point, lanes);
            let even = Point { re: b.add(here.re, there.re), im: b.sub(here.im, there.im) };
            let odd = Point { re: b.add(here.im, there.im), im: b.sub(there.re, here.re) };
            let root = self.root(b, roots, point, lanes);
            let turned = odd.times(b, root);
            let sum = even.plus(b, turned);
            let scale = b.float(b.ty(sum.re), 0.5);
            let sum = Point { re: b.mul(sum.re, scale), im: b.mul(sum.im, scale) };
            to.store(b, point, sum);
            Ok(())
        })
    }

    /// Computes the spectrum of the `half` pairs of a real signal from the signal's first `half +
    /// 1` frequencies. The first and the last one are treated as real.
    pub(super) fn pairs_of_spectrum(
        self,
        b: &mut FunctionBuilder,
        roots: &RootTable,
        half: i64,
        from: &Line,
        to: &Line,
    ) -> Result<()> {
        self.for_points(b, half, |b, point, lanes| {
            let mut here = from.load(b, point, lanes);
            let mut there = Self::mirrored(b, from, half, point, lanes);
            here.im = self.zero_below(b, point, 1, here.im);
            there.im = self.zero_below(b, point, 1, there.im);
            let even = Point { re: b.add(here.re, there.re), im: b.sub(here.im, there.im) };
            let odd = Point { re: b.sub(here.re, there.re), im: b.add(here.im, there.im) };
            let root = self.root(b, roots, point, lanes);
            let back = Point { re: root.re, im: b.unary(nest::UnaryOp::Negate, root.im) };
            let turned = odd.times(b, back);
            let sum = Point { re: b.sub(even.re, turned.im), im: b.add(even.im, turned.re) };
            to.store(b, point, sum);
            Ok(())
        })
    }

    /// Computes the spectrum of a real signal of length `length` from its first half. Frequencies
    /// that are their own mirror images are treated as real.
    pub(super) fn whole_spectrum(
        self,
        b: &mut FunctionBuilder,
        length: i64,
        from: &Line,
        to: &Line,
    ) -> Result<()> {
        let half = length / 2 + 1;
        self.for_points(b, half, |b, point, lanes| {
            let mut here = from.load(b, point, lanes);
            // With a length of 2, both frequencies are real.
            here.im = self.zero_below(b, point, if length == 2 { 2 } else { 1 }, here.im);
            to.store(b, point, here);
            Ok(())
        })?;
        self.for_points(b, length - half, |b, point, lanes| {
            let mut there = Self::mirrored(b, from, length - half, point, lanes);
            there.im = b.unary(nest::UnaryOp::Negate, there.im);
            let point = b.add_constant(point, half);
            to.store(b, point, there);
            Ok(())
        })
    }

    /// Copies `count` points.
    pub(super) fn copy(self, b: &mut FunctionBuilder, count: i64, from: &Line, to: &Line) -> Result<()> {
        self.for_points(b, count, |b, point, lanes| {
            let value = from.load(b, point, lanes);
            to.store(b, point, value);
            Ok(())
        })
    }
}
