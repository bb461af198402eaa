//! Forward transforms of a few points in registers, as straight-line code.

use nest::{FunctionBuilder, Type, UnaryOp, ValueId};
use plan::root_of_unity;

/// Real and imaginary parts of a point, per lane.
#[derive(Clone, Copy)]
pub(super) struct Point {
    pub(super) re: ValueId,
    pub(super) im: ValueId,
}

impl Point {
    pub(super) fn plus(self, b: &mut FunctionBuilder, other: Self) -> Self {
        Self { re: b.add(self.re, other.re), im: b.add(self.im, other.im) }
    }

    pub(super) fn minus(self, b: &mut FunctionBuilder, other: Self) -> Self {
        Self { re: b.sub(self.re, other.re), im: b.sub(self.im, other.im) }
    }

    /// Returns the product.
    pub(super) fn times(self, b: &mut FunctionBuilder, other: Self) -> Self {
        let re = b.mul(self.re, other.re);
        let minus = b.unary(UnaryOp::Negate, self.im);
        let im = b.mul(self.re, other.im);
        Self { re: b.multiply_add(minus, other.im, re), im: b.multiply_add(self.im, other.re, im) }
    }

    /// Returns the sum with `-i` times another point.
    fn plus_turned(self, b: &mut FunctionBuilder, other: Self) -> Self {
        Self { re: b.add(self.re, other.im), im: b.sub(self.im, other.re) }
    }

    /// Returns the sum with `i` times another point.
    fn plus_turned_back(self, b: &mut FunctionBuilder, other: Self) -> Self {
        Self { re: b.sub(self.re, other.im), im: b.add(self.im, other.re) }
    }

    /// Rotates by `-p / n` of a full turn, with `p < n / 2`.
    fn turned(self, b: &mut FunctionBuilder, p: usize, n: usize) -> Self {
        let ty = b.ty(self.re);
        if p == 0 {
            return self;
        }
        if 4 * p == n {
            return Self { re: self.im, im: b.unary(UnaryOp::Negate, self.re) };
        }
        let (re, im) = root_of_unity(p as i64, n as i64);
        if 8 * p == n || 8 * p == 3 * n {
            // Both parts of the root have the same magnitude.
            let (sum, difference) = (b.add(self.re, self.im), b.sub(self.im, self.re));
            let (magnitude, minus) = (b.float(ty, -im), b.float(ty, im));
            return if 8 * p == n {
                Self { re: b.mul(sum, magnitude), im: b.mul(difference, magnitude) }
            } else {
                Self { re: b.mul(difference, magnitude), im: b.mul(sum, minus) }
            };
        }
        let root = Self { re: b.float(ty, re), im: b.float(ty, im) };
        self.times(b, root)
    }
}

/// Transforms a few points.
pub(super) fn butterfly(b: &mut FunctionBuilder, points: &[Point]) -> Vec<Point> {
    if points.len().is_power_of_two() { power_of_two(b, points) } else { odd(b, points) }
}

/// The even frequencies are those of the sums of opposite points. The odd ones are those of the
/// differences, rotated.
fn power_of_two(b: &mut FunctionBuilder, points: &[Point]) -> Vec<Point> {
    let (n, half) = (points.len(), points.len() / 2);
    match points {
        [] | [_] => return points.to_vec(),
        [x, y] => return vec![x.plus(b, *y), x.minus(b, *y)],
        [w, x, y, z] => {
            let (sum, difference) = (w.plus(b, *y), w.minus(b, *y));
            let (other, turned) = (x.plus(b, *z), x.minus(b, *z));
            return vec![
                sum.plus(b, other),
                difference.plus_turned(b, turned),
                sum.minus(b, other),
                difference.plus_turned_back(b, turned),
            ];
        }
        _ => {}
    }
    let (mut sums, mut differences) = (Vec::with_capacity(half), Vec::with_capacity(half));
    for k in 0..half {
        sums.push(points[k].plus(b, points[k + half]));
        let difference = points[k].minus(b, points[k + half]);
        differences.push(difference.turned(b, k, n));
    }
    let (even, odd) = (power_of_two(b, &sums), power_of_two(b, &differences));
    even.into_iter().zip(odd).flat_map(|(even, odd)| [even, odd]).collect()
}

/// Frequencies `k` and `n - k` are the sum and the difference of two sums: a cosine sum over the
/// sums of points `j` and `n - j`, and a sine sum over their differences.
fn odd(b: &mut FunctionBuilder, points: &[Point]) -> Vec<Point> {
    let (n, half) = (points.len(), points.len() / 2);
    let ty = b.ty(points[0].re);
    let mut pairs = Vec::with_capacity(half);
    let mut total = points[0];
    for j in 1..=half {
        let (sum, difference) = (points[j].plus(b, points[n - j]), points[j].minus(b, points[n - j]));
        total = total.plus(b, sum);
        pairs.push((sum, difference));
    }
    let mut transformed = vec![total; n];
    for k in 1..=half {
        let mut cosines = points[0];
        let mut sines: Option<Point> = None;
        for (j, &(sum, difference)) in pairs.iter().enumerate() {
            let (cosine, sine) = root_of_unity(((j + 1) * k) as i64, n as i64);
            cosines = multiply_add(b, ty, cosine, sum, cosines);
            sines = Some(match sines {
                Some(sines) => multiply_add(b, ty, -sine, difference, sines),
                None => {
                    let factor = b.float(ty, -sine);
                    Point { re: b.mul(difference.re, factor), im: b.mul(difference.im, factor) }
                }
            });
        }
        let sines = sines.unwrap_or(cosines);
        transformed[k] = cosines.plus_turned(b, sines);
        transformed[n - k] = cosines.plus_turned_back(b, sines);
    }
    transformed
}

fn multiply_add(b: &mut FunctionBuilder, ty: Type, factor: f64, x: Point, sum: Point) -> Point {
    let factor = b.float(ty, factor);
    Point { re: b.multiply_add(x.re, factor, sum.re), im: b.multiply_add(x.im, factor, sum.im) }
}
