//! Random choices that depend only on the seed, on every machine.

use PrimitiveType::*;
use runner::Random;
use shape::{ArrayShape, Literal, PrimitiveType, Scalar, Shape};

/// Range of the numbers in a graph's arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// Floats in [-4, 4], half of them multiples of 1/64; integers in [-5, 12].
    Gentle,
    /// Like `Gentle`, but one in six is an infinity, NaN, a zero of either sign, a denormal, a
    /// largest number, or a limit of the type.
    Edges,
    /// Arbitrary bits.
    Bits,
}

/// A source of choices.
#[derive(Clone, Debug)]
pub struct Draw {
    random: Random,
}

impl Draw {
    /// Creates a source from a seed.
    pub fn new(seed: u64) -> Self {
        Self { random: Random::new(seed) }
    }

    /// Creates an independent source.
    pub fn fork(&mut self) -> Self {
        Self::new(self.bits())
    }

    /// Returns the next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.random.bits()
    }

    /// Returns a number below `limit`, or 0 if `limit` is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.bits() >> 16) as usize % limit.max(1)
    }

    /// Returns a number from `low` to `high`, inclusive.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1).max(1) as usize) as i64
    }

    /// Returns true once in `times` times on average.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// Returns one of the choices.
    pub fn choose<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Returns a clone of one of the choices.
    pub fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }

    /// Returns a permutation of the numbers below `count`.
    pub fn permutation(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        (0..count).for_each(|d| order.swap(d, self.below(count)));
        order
    }

    /// Returns some of the numbers below `count`, ascending.
    pub fn subset(&mut self, count: usize) -> Vec<usize> {
        (0..count).filter(|_| self.once_in(2)).collect()
    }

    /// Returns the size of a dimension: small, or near a vector's width.
    pub fn size(&mut self) -> i64 {
        match self.below(16) {
            0 => self.choose(&[15, 16, 17, 31, 32, 33]),
            1 => self.choose(&[63, 64, 65, 7, 8, 9]),
            2 if self.once_in(3) => 0,
            2 | 3 => 1,
            _ => self.choose(&[1, 2, 2, 3, 3, 4, 5, 6, 7, 8]),
        }
    }

    /// Returns the sizes of `rank` dimensions with at most `most` elements in total.
    pub fn sizes(&mut self, rank: usize, most: i64) -> Vec<i64> {
        let mut remaining = most;
        let mut sizes: Vec<i64> = (0..rank)
            .map(|_| {
                let size = self.size().min(remaining.max(1));
                remaining /= size.max(1);
                size
            })
            .collect();
        let order = self.permutation(rank);
        sizes = order.into_iter().map(|d| sizes[d]).collect();
        sizes
    }

    /// Returns a rank, rarely above 4.
    pub fn rank(&mut self) -> usize {
        self.choose(&[0, 1, 1, 2, 2, 2, 3, 3, 4, 5])
    }

    /// Returns an element type, usually a common one.
    pub fn element_type(&mut self) -> PrimitiveType {
        const USUAL: &[PrimitiveType] = &[F32, F32, F32, F32, F64, S32, S32, S64, Pred, Bf16, F16, U8, S8];
        if self.once_in(5) { self.choose(&PrimitiveType::ALL) } else { self.choose(USUAL) }
    }

    /// Returns an element.
    pub fn scalar(&mut self, element_type: PrimitiveType, numbers: Numbers) -> Scalar {
        let edge = numbers == Numbers::Edges && self.once_in(6);
        match element_type {
            Pred => Scalar::Pred(self.once_in(2)),
            t if t.is_complex() => {
                let part = t.real_part();
                Scalar::Complex(self.float(part, numbers, edge), self.float(part, numbers, edge))
            }
            t if t.is_floating_point() => Scalar::Float(self.float(t, numbers, edge)),
            t => {
                let value = match numbers {
                    Numbers::Bits => self.bits() as i64,
                    _ if edge => {
                        let ends = [0, 1, -1, i64::MIN, i64::MAX, i32::MIN as i64, i32::MAX as i64];
                        let narrow = [127, -128, 255, 32767, -32768, 65535, 7, -8, u32::MAX as i64];
                        let ends = [&ends[..], &narrow[..]].concat();
                        self.choose(&ends)
                    }
                    _ if t.is_signed_integer() => self.between(-5, 12),
                    _ => self.between(0, 12),
                };
                if t.is_signed_integer() { Scalar::Signed(value) } else { Scalar::Unsigned(value as u64) }
            }
        }
    }

    fn float(&mut self, element_type: PrimitiveType, numbers: Numbers, edge: bool) -> f64 {
        const ENDS: &[f64] = &[
            0.0,
            -0.0,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
            1e-40,
            -1e-45,
            1.0,
            -1.0,
            0.5,
            1e-310,
            3e38,
            -1e30,
            65504.0,
            88.0,
            -104.0,
            2147483648.0,
            -9.3e18,
        ];
        match numbers {
            Numbers::Bits => {
                let x = match element_type {
                    F64 => f64::from_bits(self.bits()),
                    _ => f64::from(f32::from_bits(self.bits() as u32)),
                };
                // NaN payloads are not preserved by all operations, but the total order sees them.
                if x.is_nan() { f64::NAN.copysign(x) } else { x }
            }
            _ if edge => self.choose(ENDS),
            _ if self.once_in(2) => self.between(-256, 256) as f64 / 64.0,
            _ => (self.bits() >> 11) as f64 / (1u64 << 50) as f64 - 4.0,
        }
    }

    /// Returns an array or a tuple of arrays.
    pub fn literal(&mut self, shape: &Shape, numbers: Numbers) -> Literal {
        match shape {
            Shape::Array(array) => {
                let array = ArrayShape::new(array.element_type, &array.sizes());
                let count = array.element_count();
                let scalars: Vec<Scalar> =
                    (0..count).map(|_| self.scalar(array.element_type, numbers)).collect();
                Literal::from_scalars(array, scalars)
            }
            Shape::Tuple(elements) => {
                Literal::Tuple(elements.iter().map(|shape| self.literal(shape, numbers)).collect())
            }
            Shape::Token => Literal::Tuple(Vec::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same() {
        let shape = Shape::array(F32, &[40]);
        let draw = |seed| Draw::new(seed).literal(&shape, Numbers::Edges).bytes().to_vec();
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
    }

    #[test]
    fn sizes_stay_within_their_product() {
        let mut draw = Draw::new(1);
        for _ in 0..1000 {
            let rank = draw.rank();
            assert!(draw.sizes(rank, 500).iter().product::<i64>() <= 500);
        }
    }

    #[test]
    fn permutations_and_subsets_name_each_once() {
        let mut draw = Draw::new(2);
        let mut order = draw.permutation(6);
        order.sort_unstable();
        assert_eq!(order, [0, 1, 2, 3, 4, 5]);
        assert!(draw.subset(9).windows(2).all(|pair| pair[0] < pair[1]));
    }
}
