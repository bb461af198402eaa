//! Complex exponentials, logarithms, and circular and hyperbolic functions, based on the real ones.

use super::complex::{Arithmetic, Complex};
use super::real::copy_sign;
use crate::math;
use nest::{Predicate, UnaryOp, ValueId};
use std::f64::consts::{FRAC_PI_2, LN_2};
use support::Result;

impl Arithmetic<'_> {
    /// `magnitude * (cos angle, sin angle)`. Exact on the real axis, even for an infinite
    /// magnitude.
    fn polar(&mut self, magnitude: ValueId, angle: ValueId) -> Result<Complex> {
        let (cos, sin) = (self.math(math::cos, angle)?, self.math(math::sin, angle)?);
        let general = Complex::new(self.b.mul(magnitude, cos), self.b.mul(magnitude, sin));
        let is_real = self.test(Predicate::Equal, angle, 0.0);
        Ok(self.choose(is_real, Complex::new(magnitude, angle), general))
    }

    pub(super) fn exp(&mut self, Complex { re, im }: Complex) -> Result<Complex> {
        let magnitude = self.math(math::exp, re)?;
        let value = self.polar(magnitude, im)?;
        // The result is 0 for a zero magnitude, even without a direction.
        let zero = self.real(0.0);
        let vanishes = self.test(Predicate::Equal, re, f64::NEG_INFINITY);
        let distance = self.b.sub(im, im);
        let no_direction = self.is_nan(distance);
        let is_nothing = self.b.and(vanishes, no_direction);
        Ok(self.choose(is_nothing, zero, value))
    }

    /// `expm1(re) cos im - 2 sin(im/2)^2` equals `e^re cos im - 1` without cancellation.
    pub(super) fn expm1(&mut self, Complex { re, im }: Complex) -> Result<Complex> {
        let (minus_one, exp) = (self.math(math::expm1, re)?, self.math(math::exp, re)?);
        let half = self.scale(im, 0.5);
        let half_sin = self.math(math::sin, half)?;
        let square = self.b.mul(half_sin, half_sin);
        let square = self.b.add(square, square);
        let (cos, sin) = (self.math(math::cos, im)?, self.math(math::sin, im)?);
        let product = self.b.mul(minus_one, cos);
        let general = Complex::new(self.b.sub(product, square), self.b.mul(exp, sin));
        let is_real = self.test(Predicate::Equal, im, 0.0);
        Ok(self.choose(is_real, Complex::new(minus_one, im), general))
    }

    pub(super) fn log(&mut self, Complex { re, im }: Complex) -> Result<Complex> {
        Ok(Complex::new(self.log_abs(Complex { re, im })?, self.angle(im, re)?))
    }

    /// The logarithm of the magnitude, even if the magnitude is not a normal number.
    fn log_abs(&mut self, Complex { re, im }: Complex) -> Result<ValueId> {
        let (re_size, im_size) = (self.magnitude(re), self.magnitude(im));
        let larger = self.b.compare(Predicate::Greater, re_size, im_size);
        let size = self.b.select(larger, re_size, im_size);
        let is_large = self.test(Predicate::Greater, size, 2f64.powi(1000));
        let is_small = self.test(Predicate::Less, size, 2f64.powi(-900));
        let mut choice = |large: f64, usual: f64, small: f64| {
            let (large, usual, small) = (self.float(large), self.float(usual), self.float(small));
            let inner = self.b.select(is_small, small, usual);
            self.b.select(is_large, large, inner)
        };
        let scale = choice(2f64.powi(-100), 1.0, 2f64.powi(100));
        let shift = choice(100.0 * LN_2, 0.0, -100.0 * LN_2);
        let scaled = Complex::new(self.b.mul(re, scale), self.b.mul(im, scale));
        let modulus = self.abs(scaled);
        let log = self.math(math::log, modulus)?;
        Ok(self.b.add(log, shift))
    }

    /// True if a number is so large that inverse functions approach the logarithm of twice the
    /// number.
    fn is_far(&mut self, Complex { re, im }: Complex) -> ValueId {
        let (re, im) = (self.magnitude(re), self.magnitude(im));
        let first = self.test(Predicate::Greater, re, 2f64.powi(500));
        let second = self.test(Predicate::Greater, im, 2f64.powi(500));
        self.b.or(first, second)
    }

    /// The logarithm of twice the magnitude.
    fn log_of_double(&mut self, z: Complex) -> Result<ValueId> {
        let (log, two) = (self.log_abs(z)?, self.float(LN_2));
        Ok(self.b.add(log, two))
    }

    /// Returns a magnitude with the sign of `x`. NaN counts as positive.
    fn with_sign(&mut self, magnitude: ValueId, x: ValueId) -> ValueId {
        let is_nan = self.is_nan(x);
        let signed = copy_sign(self.b, magnitude, x);
        self.b.select(is_nan, magnitude, signed)
    }

    /// Near zero, `log |1 + z|` is half of `log1p(re (2 + re) + im^2)`.
    pub(super) fn log1p(&mut self, Complex { re, im }: Complex) -> Result<Complex> {
        let (one, two) = (self.float(1.0), self.float(2.0));
        let shifted = self.b.add(re, one);
        let more = self.b.add(two, re);
        let (product, square) = (self.b.mul(re, more), self.b.mul(im, im));
        let sum = self.b.add(product, square);
        let near = self.math(math::log1p, sum)?;
        let near = self.scale(near, 0.5);
        let modulus = self.abs(Complex::new(shifted, im));
        let far = self.math(math::log, modulus)?;
        let (re_size, im_size) = (self.magnitude(re), self.magnitude(im));
        let re_near = self.test(Predicate::Less, re_size, 0.5);
        let im_near = self.test(Predicate::Less, im_size, 0.5);
        let is_near = self.b.and(re_near, im_near);
        Ok(Complex::new(self.b.select(is_near, near, far), self.angle(im, shifted)?))
    }

    pub(super) fn logistic(&mut self, Complex { re, im }: Complex) -> Result<Complex> {
        let negated = Complex::new(self.negated(re), self.negated(im));
        let exp = self.exp(negated)?;
        let one = self.real(1.0);
        let sum = self.add(one, exp);
        Ok(self.divide(one, sum))
    }

    pub(super) fn sinh(&mut self, Complex { re, im }: Complex) -> Result<Complex> {
        let (sinh, cosh) = (self.math(math::sinh, re)?, self.math(math::cosh, re)?);
        let (sin, cos) = (self.math(math::sin, im)?, self.math(math::cos, im)?);
        let product = self.b.mul(sinh, cos);
        let without_direction = self.is_nan(cos);
        let on_axis = self.b.mul(re, cos);
        let on_axis = self.b.select(without_direction, re, on_axis);
        let re_is_zero = self.test(Predicate::Equal, re, 0.0);
        let general = Complex::new(self.b.select(re_is_zero, on_axis, product), self.b.mul(cosh, sin));
        let is_real = self.test(Predicate::Equal, im, 0.0);
        Ok(self.choose(is_real, Complex::new(sinh, im), general))
    }

    /// On an axis, infinity or NaN times the zero of the other part is that zero.
    pub(super) fn cosh(&mut self, Complex { re, im }: Complex) -> Result<Complex> {
        let (sinh, cosh) = (self.math(math::sinh, re)?, self.math(math::cosh, re)?);
        let (sin, cos) = (self.math(math::sin, im)?, self.math(math::cos, im)?);
        let product = self.b.mul(sinh, sin);
        let without_direction = self.is_nan(sin);
        let on_other_axis = self.b.mul(re, sin);
        let on_other_axis = self.b.select(without_direction, re, on_other_axis);
        let re_is_zero = self.test(Predicate::Equal, re, 0.0);
        let product = self.b.select(re_is_zero, on_other_axis, product);
        let re_is_nan = self.is_nan(re);
        let one = self.float(1.0);
        let sign = copy_sign(self.b, one, re);
        let sign = self.b.select(re_is_nan, one, sign);
        let on_axis = self.b.mul(im, sign);
        let im_is_zero = self.test(Predicate::Equal, im, 0.0);
        Ok(Complex::new(self.b.mul(cosh, cos), self.b.select(im_is_zero, on_axis, product)))
    }

    /// Kahan's formula. Where `sinh` would overflow, the limit is 1 with a vanishing imaginary
    /// part.
    pub(super) fn tanh(&mut self, Complex { re, im }: Complex) -> Result<Complex> {
        let one = self.float(1.0);
        let tangent = self.math(math::tan, im)?;
        let square = self.b.mul(tangent, tangent);
        let beta = self.b.add(one, square);
        let sinh = self.math(math::sinh, re)?;
        let sinh_square = self.b.mul(sinh, sinh);
        let rho = self.b.add(one, sinh_square);
        let rho = self.b.unary(UnaryOp::Sqrt, rho);
        let scaled = self.b.mul(beta, sinh_square);
        let denominator = self.b.add(one, scaled);
        let numerator = self.b.mul(beta, rho);
        let numerator = self.b.mul(numerator, sinh);
        let im_is_zero = self.test(Predicate::Equal, im, 0.0);
        let slope = self.quotient(tangent, denominator);
        let general =
            Complex::new(self.quotient(numerator, denominator), self.b.select(im_is_zero, im, slope));
        let size = self.magnitude(re);
        let is_far = self.test(Predicate::Greater, size, 30.0);
        let (sin, cos) = (self.math(math::sin, im)?, self.math(math::cos, im)?);
        let exponent = self.scale(size, -2.0);
        let decay = self.math(math::exp, exponent)?;
        let product = self.b.mul(sin, cos);
        let product = self.b.mul(product, decay);
        let vanishing = self.scale(product, 4.0);
        let limit = Complex::new(copy_sign(self.b, one, re), vanishing);
        let far = self.far_tanh(re, limit);
        Ok(self.choose(is_far, far, general))
    }

    /// Returns the limit far from zero. If `im` has no direction, it is the limit at infinity and
    /// NaN before it.
    fn far_tanh(&mut self, re: ValueId, limit: Complex) -> Complex {
        let without_direction = self.is_nan(limit.im);
        let size = self.magnitude(re);
        let is_infinite = self.test(Predicate::Equal, size, f64::INFINITY);
        let (zero, nan) = (self.float(0.0), self.float(f64::NAN));
        let lost = self.choose(is_infinite, Complex::new(limit.re, zero), Complex::new(nan, nan));
        self.choose(without_direction, lost, limit)
    }

    pub(super) fn sin(&mut self, z: Complex) -> Result<Complex> {
        let rotated = self.times_i(z);
        let value = self.sinh(rotated)?;
        Ok(self.over_i(value))
    }

    pub(super) fn cos(&mut self, z: Complex) -> Result<Complex> {
        let rotated = self.times_i(z);
        self.cosh(rotated)
    }

    pub(super) fn tan(&mut self, z: Complex) -> Result<Complex> {
        let rotated = self.times_i(z);
        let value = self.tanh(rotated)?;
        Ok(self.over_i(value))
    }

    /// Returns the square roots of `1 + z` and `1 - z`.
    fn roots(&mut self, Complex { re, im }: Complex) -> (Complex, Complex) {
        let one = self.float(1.0);
        let sum = self.b.add(one, re);
        let difference = self.b.sub(one, re);
        let negated = self.negated(im);
        (self.sqrt(Complex::new(sum, im)), self.sqrt(Complex::new(difference, negated)))
    }

    /// Kahan: `acos z = (2 atan2(Re sqrt(1-z), Re sqrt(1+z)), asinh(Im(conj(sqrt(1+z))
    /// sqrt(1-z))))`.
    pub(super) fn acos(&mut self, z: Complex) -> Result<Complex> {
        let (plus, minus) = self.roots(z);
        let angle = self.angle(minus.re, plus.re)?;
        let conjugate = self.conjugate(plus);
        let product = self.multiply(conjugate, minus);
        let value = Complex::new(self.b.add(angle, angle), self.math(math::asinh, product.im)?);
        let (size, log, negated) = (self.magnitude(z.im), self.log_of_double(z)?, self.negated(z.im));
        let limit = Complex::new(self.angle(size, z.re)?, self.with_sign(log, negated));
        let is_far = self.is_far(z);
        Ok(self.choose(is_far, limit, value))
    }

    /// Kahan's formula:
    /// `asin z = (atan2(Re z, Re(sqrt(1-z) sqrt(1+z))), asinh(Im(conj(sqrt(1-z)) sqrt(1+z))))`.
    pub(super) fn asin(&mut self, z: Complex) -> Result<Complex> {
        let (plus, minus) = self.roots(z);
        let product = self.multiply(plus, minus);
        let conjugate = self.conjugate(minus);
        let other = self.multiply(conjugate, plus);
        let value = Complex::new(self.angle(z.re, product.re)?, self.math(math::asinh, other.im)?);
        let (size, log) = (self.magnitude(z.im), self.log_of_double(z)?);
        let limit = Complex::new(self.angle(z.re, size)?, self.with_sign(log, z.im));
        let is_far = self.is_far(z);
        Ok(self.choose(is_far, limit, value))
    }

    /// Kahan's formula:
    /// `acosh z = (asinh(Re(conj(sqrt(z-1)) sqrt(z+1))), 2 atan2(Im sqrt(z-1), Re sqrt(z+1)))`.
    pub(super) fn acosh(&mut self, Complex { re, im }: Complex) -> Result<Complex> {
        let one = self.float(1.0);
        let (sum, difference) = (self.b.add(re, one), self.b.sub(re, one));
        let (plus, minus) = (self.sqrt(Complex::new(sum, im)), self.sqrt(Complex::new(difference, im)));
        let conjugate = self.conjugate(minus);
        let product = self.multiply(conjugate, plus);
        let angle = self.angle(minus.im, plus.re)?;
        let value = Complex::new(self.math(math::asinh, product.re)?, self.b.add(angle, angle));
        let limit = Complex::new(self.log_of_double(Complex { re, im })?, self.angle(im, re)?);
        let is_far = self.is_far(Complex { re, im });
        Ok(self.choose(is_far, limit, value))
    }

    pub(super) fn asinh(&mut self, z: Complex) -> Result<Complex> {
        let rotated = self.over_i(z);
        let value = self.asin(rotated)?;
        Ok(self.times_i(value))
    }

    /// `(log1p z - log1p(-z)) / 2`, with a real part without cancellation.
    pub(super) fn atanh(&mut self, Complex { re, im }: Complex) -> Result<Complex> {
        let one = self.float(1.0);
        let difference = self.b.sub(one, re);
        let (square, im_square) = (self.b.mul(difference, difference), self.b.mul(im, im));
        let distance = self.b.add(square, im_square);
        let fourfold = self.scale(re, 4.0);
        let ratio = self.quotient(fourfold, distance);
        let log = self.math(math::log1p, ratio)?;
        let quarter = self.scale(log, 0.25);
        let sum = self.b.add(one, re);
        let product = self.b.mul(difference, sum);
        let x = self.b.sub(product, im_square);
        let y = self.b.add(im, im);
        let angle = self.angle(y, x)?;
        let half = self.scale(angle, 0.5);
        let (zero, right) = (self.float(0.0), self.float(FRAC_PI_2));
        let im_is_nan = self.is_nan(im);
        let right = copy_sign(self.b, right, im);
        let limit = Complex::new(self.with_sign(zero, re), self.b.select(im_is_nan, im, right));
        let size = self.magnitude(re);
        let re_is_infinite = self.test(Predicate::Equal, size, f64::INFINITY);
        let is_far = self.test(Predicate::Equal, distance, f64::INFINITY);
        let is_far = self.b.or(is_far, re_is_infinite);
        Ok(self.choose(is_far, limit, Complex::new(quarter, half)))
    }

    /// `z^w = e^(w log z)`, except that the result is 1 for exponent 0 or base 1, and powers of 0
    /// and positive infinity are limits.
    pub(super) fn power(&mut self, base: Complex, exponent: Complex) -> Result<Complex> {
        let logarithm = self.log(base)?;
        let Complex { re: log_magnitude, im: angle } = self.multiply(exponent, logarithm);
        let magnitude = self.math(math::exp, log_magnitude)?;
        let general = self.polar(magnitude, angle)?;
        let (zero, one, infinity) = (self.real(0.0), self.real(1.0), self.real(f64::INFINITY));
        let nan = Complex::new(self.float(f64::NAN), self.float(f64::NAN));
        let positive = self.test(Predicate::Greater, exponent.re, 0.0);
        let real_exponent = self.test(Predicate::Equal, exponent.im, 0.0);
        let is = |f: &mut Self, z: Complex, re: f64| {
            let first = f.test(Predicate::Equal, z.re, re);
            let second = f.test(Predicate::Equal, z.im, 0.0);
            f.b.and(first, second)
        };
        let of_infinity = self.choose(positive, infinity, zero);
        let is_infinite = is(self, base, f64::INFINITY);
        let is_infinite = self.b.and(is_infinite, real_exponent);
        let result = self.choose(is_infinite, of_infinity, general);
        // An infinity in an unknown direction.
        let unsigned = Complex::new(self.float(f64::INFINITY), self.float(f64::NAN));
        let of_zero = self.choose(real_exponent, unsigned, nan);
        let of_zero = self.choose(positive, zero, of_zero);
        let is_zero = is(self, base, 0.0);
        let result = self.choose(is_zero, of_zero, result);
        let is_one = is(self, base, 1.0);
        let no_exponent = is(self, exponent, 0.0);
        let is_one = self.b.or(is_one, no_exponent);
        Ok(self.choose(is_one, one, result))
    }

    /// `atan2(y, x) = -i log((x + i y) / sqrt(x^2 + y^2))`.
    pub(super) fn atan2(&mut self, y: Complex, x: Complex) -> Result<Complex> {
        let i = Complex::new(self.float(0.0), self.float(1.0));
        let rotated = self.multiply(i, y);
        let numerator = self.add(x, rotated);
        let (x_square, y_square) = (self.multiply(x, x), self.multiply(y, y));
        let sum = self.add(x_square, y_square);
        let root = self.sqrt(sum);
        let direction = self.divide(numerator, root);
        let logarithm = self.log(direction)?;
        Ok(self.over_i(logarithm))
    }
}
