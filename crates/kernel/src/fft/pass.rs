//! One pass of a transform: butterflies of distant points, followed by rotations. The results are
//! in the order of the frequencies.

use super::butterfly::{Point, butterfly};
use super::lines::{Line, Parts, RootTable, by_turns, for_blocks};
use nest::{FunctionBuilder, ValueId};
use support::Result;

/// A pass over `done * radix * rest` points. Point `i + done (p + rest k)` moves to `i + done
/// (radix p + k)`.
#[derive(Clone, Copy)]
pub(super) struct Pass {
    pub(super) radix: i64,
    /// Size of the transforms that the passes before have completed.
    pub(super) done: i64,
    /// Number of remaining points of each transform.
    pub(super) rest: i64,
    /// Roots that rotate the results. `None` in the last pass.
    pub(super) roots: Option<RootTable>,
    /// Factor of the results.
    pub(super) scale: f64,
    pub(super) from: Line,
    pub(super) to: Line,
}

impl Pass {
    /// Emits the pass with neighboring points in lanes, at most `most` of them.
    pub(super) fn along(&self, b: &mut FunctionBuilder, most: u32) -> Result<()> {
        let fit = |count: i64| most.min(1 << count.ilog2().min(16));
        if self.done == 1 {
            let lanes = fit(self.rest);
            return for_blocks(b, self.rest, i64::from(lanes), |b, p| {
                let mut results = self.results(b, p, lanes);
                for (k, result) in results.iter_mut().enumerate() {
                    *result = self.turned(b, k, p, *result, false);
                }
                self.store_by_turns(b, p, &results);
                Ok(())
            });
        }
        let lanes = fit(self.done);
        for_blocks(b, self.rest, 1, |b, p| {
            for_blocks(b, self.done, i64::from(lanes), |b, i| self.butterfly(b, p, i, lanes))
        })
    }

    /// Emits the pass with the same point of several lines in lanes.
    pub(super) fn columns(&self, b: &mut FunctionBuilder, lanes: u32, vectors: i64) -> Result<()> {
        for_blocks(b, self.rest, 1, |b, p| {
            for_blocks(b, self.done, 1, |b, i| {
                if vectors == 1 {
                    return self.butterfly(b, p, i, lanes);
                }
                for_blocks(b, vectors * i64::from(lanes), i64::from(lanes), |b, column| {
                    let at = |line: Line| Line { column: Some(column), ..line };
                    let pass = Self { from: at(self.from), to: at(self.to), ..*self };
                    pass.butterfly(b, p, i, lanes)
                })
            })
        })
    }

    fn butterfly(&self, b: &mut FunctionBuilder, p: ValueId, i: ValueId, lanes: u32) -> Result<()> {
        let within = b.mul_constant(p, self.done);
        let from = b.add(i, within);
        let results = self.results(b, from, lanes);
        let within = b.mul_constant(p, self.done * self.radix);
        let to = b.add(i, within);
        // Results are rotated one at a time: holding all rotated ones would double the register
        // use.
        for (k, result) in results.into_iter().enumerate() {
            let result = self.turned(b, k, p, result, true);
            let to = b.add_constant(to, k as i64 * self.done);
            self.to.store(b, to, result);
        }
        Ok(())
    }

    /// Returns the results before rotation.
    fn results(&self, b: &mut FunctionBuilder, from: ValueId, lanes: u32) -> Vec<Point> {
        let mut points = Vec::with_capacity(self.radix as usize);
        for k in 0..self.radix {
            let from = b.add_constant(from, k * self.done * self.rest);
            points.push(self.from.load(b, from, lanes));
        }
        butterfly(b, &points)
    }

    /// Rotates and scales result `k`. `p` is either the same for all lanes or that of the first
    /// lane.
    fn turned(&self, b: &mut FunctionBuilder, k: usize, p: ValueId, result: Point, is_splat: bool) -> Point {
        let ty = b.ty(result.re);
        let mut result = result;
        if let (Some(roots), Some(line)) = (&self.roots, k.checked_sub(1)) {
            let root = roots.load(b, line as i64, p, ty.lanes, is_splat);
            result = result.times(b, root);
        }
        if self.scale == 1.0 {
            return result;
        }
        let scale = b.float(ty, self.scale);
        Point { re: b.mul(result.re, scale), im: b.mul(result.im, scale) }
    }

    /// Stores results of the first pass. Those of each `p` are neighbors.
    fn store_by_turns(&self, b: &mut FunctionBuilder, p: ValueId, results: &[Point]) {
        let first = b.mul_constant(p, self.radix);
        let lanes = i64::from(b.ty(results[0].re).lanes);
        let re = by_turns(b, &results.iter().map(|result| result.re).collect::<Vec<_>>());
        let im = by_turns(b, &results.iter().map(|result| result.im).collect::<Vec<_>>());
        for (k, (re, im)) in re.into_iter().zip(im).enumerate() {
            let to = b.add_constant(first, k as i64 * lanes);
            self.to.store(b, to, Point { re, im });
        }
    }
}

/// Transposes `lanes` contiguous rows of `numbers` numbers into lines of points.
pub(super) fn into_lines(
    b: &mut FunctionBuilder,
    rows: ValueId,
    numbers: i64,
    to: &Line,
    lanes: u32,
    is_real: bool,
) -> Result<()> {
    let size = to.scalar.byte_size() as u32;
    let ty = nest::Type::vector(to.scalar, lanes);
    for_blocks(b, numbers, i64::from(lanes), |b, number| {
        let mut vectors = Vec::with_capacity(lanes as usize);
        let first = b.offset(rows, number, i64::from(size));
        for row in 0..i64::from(lanes) {
            let address = b.offset_bytes(first, row * numbers * i64::from(size));
            vectors.push(b.load(ty, address, size));
        }
        let columns = crate::transpose::transpose(b, &vectors);
        for (k, column) in columns.into_iter().enumerate() {
            let address = number_of_line(b, to, number, k as i64, is_real);
            b.store(column, address, size);
        }
        Ok(())
    })
}

/// The inverse of [`into_lines`].
pub(super) fn out_of_lines(
    b: &mut FunctionBuilder,
    from: &Line,
    rows: ValueId,
    numbers: i64,
    lanes: u32,
    is_real: bool,
) -> Result<()> {
    let size = from.scalar.byte_size() as u32;
    let ty = nest::Type::vector(from.scalar, lanes);
    for_blocks(b, numbers, i64::from(lanes), |b, number| {
        let mut columns = Vec::with_capacity(lanes as usize);
        for k in 0..i64::from(lanes) {
            let address = number_of_line(b, from, number, k, is_real);
            columns.push(b.load(ty, address, size));
        }
        let vectors = crate::transpose::transpose(b, &columns);
        let first = b.offset(rows, number, i64::from(size));
        for (row, vector) in vectors.into_iter().enumerate() {
            let address = b.offset_bytes(first, row as i64 * numbers * i64::from(size));
            b.store(vector, address, size);
        }
        Ok(())
    })
}

/// Returns the address of the number `k` after an even one in the lines of points. The numbers are
/// real, or they alternate between real and imaginary parts.
fn number_of_line(b: &mut FunctionBuilder, line: &Line, number: ValueId, k: i64, is_real: bool) -> ValueId {
    let size = line.scalar.byte_size() as i64;
    let (Parts::Split { re, .. } | Parts::Pairs(re) | Parts::Reals(re)) = line.parts;
    let (first, per_point) = match line.parts {
        Parts::Split { im, .. } if !is_real && k % 2 == 1 => (im, 2),
        _ => (re, if is_real { 1 } else { 2 }),
    };
    // If the numbers are alternating parts, they count twice per point.
    let first = b.offset(first, number, line.stride * size / per_point);
    b.offset_bytes(first, k / per_point * line.stride * size)
}
