//! Memory layouts of the points of a transform, with their loads and stores, and roots of unity.

use super::butterfly::Point;
use nest::{BinaryOp, FunctionBuilder, Predicate, RegionBuilder as _, ScalarType, Type, ValueId};
use plan::Roots;
use support::Result;

/// Layout of the parts of points.
#[derive(Clone, Copy)]
pub(super) enum Parts {
    /// Two arrays.
    Split {
        /// Address of the real parts.
        re: ValueId,
        /// Address of the imaginary parts.
        im: ValueId,
    },
    /// Alternating real and imaginary parts.
    Pairs(ValueId),
    /// Real parts only. Imaginary parts load as zero and are not stored.
    Reals(ValueId),
}

/// The points of a transform.
#[derive(Clone, Copy)]
pub(super) struct Line {
    pub(super) parts: Parts,
    /// Distance in memory between points of the transform, in points.
    pub(super) stride: i64,
    /// Added to a point's place: the first of several columns.
    pub(super) column: Option<ValueId>,
    /// True if real and imaginary parts are exchanged.
    pub(super) is_exchanged: bool,
    /// Type of the parts.
    pub(super) scalar: ScalarType,
}

impl Line {
    fn exchanged(&self, point: Point) -> Point {
        if self.is_exchanged { Point { re: point.im, im: point.re } } else { point }
    }

    /// Returns the place of a point.
    fn place(&self, b: &mut FunctionBuilder, point: ValueId) -> ValueId {
        let first = b.mul_constant(point, self.stride);
        match self.column {
            Some(column) => b.add(first, column),
            None => first,
        }
    }

    /// Returns the address and the alignment of the number at a distance from the first one.
    fn address(&self, b: &mut FunctionBuilder, first: ValueId, number: ValueId) -> (ValueId, u32) {
        let size = self.scalar.byte_size() as u32;
        (b.offset(first, number, i64::from(size)), size)
    }

    /// Loads neighbors in memory, from a point of the transform on.
    pub(super) fn load(&self, b: &mut FunctionBuilder, point: ValueId, lanes: u32) -> Point {
        let ty = Type::vector(self.scalar, lanes);
        let at = self.place(b, point);
        let point = match self.parts {
            Parts::Split { re, im } => {
                let (re, alignment) = self.address(b, re, at);
                let (im, _) = self.address(b, im, at);
                Point { re: b.load(ty, re, alignment), im: b.load(ty, im, alignment) }
            }
            Parts::Reals(first) => {
                let (address, alignment) = self.address(b, first, at);
                Point { re: b.load(ty, address, alignment), im: b.float(ty, 0.0) }
            }
            Parts::Pairs(first) => {
                let number = b.mul_constant(at, 2);
                let (address, alignment) = self.address(b, first, number);
                let low = b.load(ty, address, alignment);
                let second = b.offset_bytes(address, i64::from(lanes * alignment));
                let high = b.load(ty, second, alignment);
                if lanes == 1 {
                    Point { re: low, im: high }
                } else {
                    let every_other = |first: u32| (0..lanes).map(|lane| first + 2 * lane).collect();
                    let (re, im) = (every_other(0), every_other(1));
                    Point { re: b.shuffle(low, high, re), im: b.shuffle(low, high, im) }
                }
            }
        };
        self.exchanged(point)
    }

    /// Loads neighbors in reverse order, starting at a point and going back.
    pub(super) fn load_backward(&self, b: &mut FunctionBuilder, point: ValueId, lanes: u32) -> Point {
        let first = if self.stride == 1 { b.add_constant(point, 1 - i64::from(lanes)) } else { point };
        let point = self.load(b, first, lanes);
        if lanes == 1 || self.stride != 1 {
            return point;
        }
        let mut reversed = |x: ValueId| b.shuffle(x, x, (0..lanes).rev().collect());
        Point { re: reversed(point.re), im: reversed(point.im) }
    }

    /// Stores neighbors.
    pub(super) fn store(&self, b: &mut FunctionBuilder, point: ValueId, value: Point) {
        let value = self.exchanged(value);
        let lanes = b.ty(value.re).lanes;
        let at = self.place(b, point);
        match self.parts {
            Parts::Split { re, im } => {
                let (re, alignment) = self.address(b, re, at);
                let (im, _) = self.address(b, im, at);
                b.store(value.re, re, alignment);
                b.store(value.im, im, alignment);
            }
            Parts::Reals(first) => {
                let (address, alignment) = self.address(b, first, at);
                b.store(value.re, address, alignment);
            }
            Parts::Pairs(first) => {
                let number = b.mul_constant(at, 2);
                let (address, alignment) = self.address(b, first, number);
                let second = b.offset_bytes(address, i64::from(lanes * alignment));
                let [low, high] = if lanes == 1 { [value.re, value.im] } else { zip(b, value.re, value.im) };
                b.store(low, address, alignment);
                b.store(high, second, alignment);
            }
        }
    }
}

/// Interleaves the lanes of two vectors.
fn zip(b: &mut FunctionBuilder, x: ValueId, y: ValueId) -> [ValueId; 2] {
    let lanes = b.ty(x).lanes;
    [0, lanes / 2].map(|first| {
        let lane = |k: u32| first + k / 2 + k % 2 * lanes;
        b.shuffle(x, y, (0..lanes).map(lane).collect())
    })
}

/// Interleaves the lanes of any number of vectors: lane 0 of each, lane 1 of each, and so on.
pub(super) fn by_turns(b: &mut FunctionBuilder, vectors: &[ValueId]) -> Vec<ValueId> {
    let (count, lanes) = (vectors.len(), b.ty(vectors[0]).lanes as usize);
    if lanes == 1 || count == 1 {
        return vectors.to_vec();
    }
    if count % 2 == 0 {
        let every_other = |first: usize| vectors.iter().copied().skip(first).step_by(2).collect::<Vec<_>>();
        let (even, odd) = (by_turns(b, &every_other(0)), by_turns(b, &every_other(1)));
        return even.into_iter().zip(odd).flat_map(|(x, y)| zip(b, x, y)).collect();
    }
    (0..count)
        .map(|number| {
            let source = |lane: usize| ((number * lanes + lane) % count, (number * lanes + lane) / count);
            let mut sources: Vec<usize> = (0..lanes).map(|lane| source(lane).0).collect();
            sources.sort_unstable();
            sources.dedup();
            let first = sources[0];
            let mut vector = vectors[first];
            // The first shuffle reads both vectors. Later ones keep the lanes that are already in
            // place.
            for (k, &next) in sources[1..].iter().enumerate() {
                let pick = |lane: usize| match source(lane) {
                    (from, at) if from == next => lanes + at,
                    (_, at) if k == 0 => at,
                    _ => lane,
                };
                vector = b.shuffle(vector, vectors[next], (0..lanes).map(|l| pick(l) as u32).collect());
            }
            vector
        })
        .collect()
}

/// A table of roots of unity.
#[derive(Clone, Copy)]
pub(super) struct RootTable {
    pub(super) table: ValueId,
    pub(super) roots: Roots,
    pub(super) lines: i64,
    pub(super) scalar: ScalarType,
}

impl RootTable {
    /// Returns the roots of a line at consecutive positions, one per lane, or the root at
    /// `position` in all lanes.
    pub(super) fn load(
        &self,
        b: &mut FunctionBuilder,
        line: i64,
        position: ValueId,
        lanes: u32,
        is_splat: bool,
    ) -> Point {
        let size = self.scalar.byte_size() as i64;
        let loaded = if is_splat { 1 } else { lanes };
        let read = |b: &mut FunctionBuilder, offset: i64, width: i64, position: ValueId, lanes: u32| {
            let part = |b: &mut FunctionBuilder, number: i64| {
                let first = b.offset_bytes(self.table, (offset + (2 * line + number) * width) * size);
                let address = b.offset(first, position, size);
                b.load(Type::vector(self.scalar, lanes), address, size as u32)
            };
            Point { re: part(b, 0), im: part(b, 1) }
        };
        let (offset, width) = (self.roots.offset, self.roots.width());
        let root = match self.roots.near {
            None => read(b, offset, width, position, loaded),
            Some(near) => {
                let (shift, mask) = (b.index(i64::from(near.ilog2())), b.index(near - 1));
                let far = b.binary(BinaryOp::ShiftRightLogical, position, shift);
                let within = b.and(position, mask);
                let near = read(b, offset, width, within, loaded);
                let far_offset = offset + 2 * self.lines * width;
                let far = read(b, far_offset, self.roots.far(), far, 1);
                let far = Point { re: b.splat(far.re, loaded), im: b.splat(far.im, loaded) };
                near.times(b, far)
            }
        };
        if is_splat { Point { re: b.splat(root.re, lanes), im: b.splat(root.im, lanes) } } else { root }
    }
}

/// Runs the body for `0, step, ...` below a count. The last index may be less than `step` after the
/// one before, so that all `step` indices from it on are below the count.
pub(super) fn for_blocks(
    b: &mut FunctionBuilder,
    count: i64,
    step: i64,
    body: impl FnOnce(&mut FunctionBuilder, ValueId) -> Result<()>,
) -> Result<()> {
    if count <= step {
        let zero = b.index(0);
        return body(b, zero);
    }
    let (begin, end) = (b.index(0), b.index(count));
    b.for_each(begin, end, step, |b, index| {
        if count % step == 0 {
            return body(b, index);
        }
        let last = b.index(count - step);
        let is_before = b.compare(Predicate::Less, index, last);
        let index = b.select(is_before, index, last);
        body(b, index)
    })
}
