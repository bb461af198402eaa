//! Complex exponentials, logarithms, circular and hyperbolic functions, from the real ones.

use super::complex::{Arithmetic, Complex};
use super::real::copy_sign;
use crate::ir::{Predicate, UnaryOp, ValueId};
use crate::math;
use support::Result;

impl Arithmetic<'_> {
    /// `magnitude * (cos angle, sin angle)`, exact on the real axis even for an infinite magnitude.
    fn polar(&mut self, magnitude: ValueId, angle: ValueId) -> Result<Complex> {
        let (cos, sin) = (self.math(math::cos, angle)?, self.math(math::sin, angle)?);
        let general = (self.b.mul(magnitude, cos), self.b.mul(magnitude, sin));
        let is_real = self.test(Predicate::Equal, angle, 0.0);
        Ok(self.choose(is_real, (magnitude, angle), general))
    }

    pub(super) fn exp(&mut self, (re, im): Complex) -> Result<Complex> {
        let magnitude = self.math(math::exp, re)?;
        let value = self.polar(magnitude, im)?;
        // Nothing times a direction that is none.
        let zero = self.real(0.0);
        let vanishes = self.test(Predicate::Equal, re, f64::NEG_INFINITY);
        let distance = self.b.sub(im, im);
        let no_direction = self.is_nan(distance);
        let is_nothing = self.b.and(vanishes, no_direction);
        Ok(self.choose(is_nothing, zero, value))
    }

    /// `expm1(re) cos im - 2 sin(im/2)^2` is `e^re cos im - 1` without cancellation.
    pub(super) fn expm1(&mut self, (re, im): Complex) -> Result<Complex> {
        let (minus_one, exp) = (self.math(math::expm1, re)?, self.math(math::exp, re)?);
        let half = self.scale(im, 0.5);
        let half_sin = self.math(math::sin, half)?;
        let square = self.b.mul(half_sin, half_sin);
        let square = self.b.add(square, square);
        let (cos, sin) = (self.math(math::cos, im)?, self.math(math::sin, im)?);
        let product = self.b.mul(minus_one, cos);
        let general = (self.b.sub(product, square), self.b.mul(exp, sin));
        let is_real = self.test(Predicate::Equal, im, 0.0);
        Ok(self.choose(is_real, (minus_one, im), general))
    }

    pub(super) fn log(&mut self, (re, im): Complex) -> Result<Complex> {
        let modulus = self.abs((re, im));
        Ok((self.math(math::log, modulus)?, self.angle(im, re)?))
    }

    /// Near zero `log |1 + z|` is half of `log1p(re (2 + re) + im^2)`.
    pub(super) fn log1p(&mut self, (re, im): Complex) -> Result<Complex> {
        let (one, two) = (self.float(1.0), self.float(2.0));
        let shifted = self.b.add(re, one);
        let more = self.b.add(two, re);
        let (product, square) = (self.b.mul(re, more), self.b.mul(im, im));
        let sum = self.b.add(product, square);
        let near = self.math(math::log1p, sum)?;
        let near = self.scale(near, 0.5);
        let modulus = self.abs((shifted, im));
        let far = self.math(math::log, modulus)?;
        let (re_size, im_size) = (self.magnitude(re), self.magnitude(im));
        let re_near = self.test(Predicate::Less, re_size, 0.5);
        let im_near = self.test(Predicate::Less, im_size, 0.5);
        let is_near = self.b.and(re_near, im_near);
        Ok((self.b.select(is_near, near, far), self.angle(im, shifted)?))
    }

    pub(super) fn logistic(&mut self, (re, im): Complex) -> Result<Complex> {
        let negated = (self.negated(re), self.negated(im));
        let exp = self.exp(negated)?;
        let one = self.real(1.0);
        let sum = self.add(one, exp);
        Ok(self.divide(one, sum))
    }

    pub(super) fn sinh(&mut self, (re, im): Complex) -> Result<Complex> {
        let (sinh, cosh) = (self.math(math::sinh, re)?, self.math(math::cosh, re)?);
        let (sin, cos) = (self.math(math::sin, im)?, self.math(math::cos, im)?);
        let product = self.b.mul(sinh, cos);
        let re_is_zero = self.test(Predicate::Equal, re, 0.0);
        let general = (self.b.select(re_is_zero, re, product), self.b.mul(cosh, sin));
        let is_real = self.test(Predicate::Equal, im, 0.0);
        Ok(self.choose(is_real, (sinh, im), general))
    }

    pub(super) fn cosh(&mut self, (re, im): Complex) -> Result<Complex> {
        let (sinh, cosh) = (self.math(math::sinh, re)?, self.math(math::cosh, re)?);
        let (sin, cos) = (self.math(math::sin, im)?, self.math(math::cos, im)?);
        let product = self.b.mul(sinh, sin);
        let on_an_axis = self.b.mul(re, im);
        let re_is_zero = self.test(Predicate::Equal, re, 0.0);
        let im_is_zero = self.test(Predicate::Equal, im, 0.0);
        let is_axis = self.b.or(re_is_zero, im_is_zero);
        Ok((self.b.mul(cosh, cos), self.b.select(is_axis, on_an_axis, product)))
    }

    /// Kahan's formula; where `sinh` would overflow, the limit: 1 with a vanishing imaginary part.
    pub(super) fn tanh(&mut self, (re, im): Complex) -> Result<Complex> {
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
        let general = (self.quotient(numerator, denominator), self.quotient(tangent, denominator));
        let size = self.magnitude(re);
        let is_far = self.test(Predicate::Greater, size, 30.0);
        let (sin, cos) = (self.math(math::sin, im)?, self.math(math::cos, im)?);
        let exponent = self.scale(size, -2.0);
        let decay = self.math(math::exp, exponent)?;
        let product = self.b.mul(sin, cos);
        let product = self.b.mul(product, decay);
        let vanishing = self.scale(product, 4.0);
        let zero = self.float(0.0);
        let is_nan = self.is_nan(vanishing);
        let vanishing = self.b.select(is_nan, zero, vanishing);
        let limit = copy_sign(self.b, one, re);
        Ok(self.choose(is_far, (limit, vanishing), general))
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

    /// The roots of `1 + z` and `1 - z`.
    fn roots(&mut self, (re, im): Complex) -> (Complex, Complex) {
        let one = self.float(1.0);
        let sum = self.b.add(one, re);
        let difference = self.b.sub(one, re);
        let negated = self.negated(im);
        (self.sqrt((sum, im)), self.sqrt((difference, negated)))
    }

    /// Kahan: `acos z = (2 atan2(Re sqrt(1-z), Re sqrt(1+z)), asinh(Im(conj(sqrt(1+z)) sqrt(1-z))))`.
    pub(super) fn acos(&mut self, z: Complex) -> Result<Complex> {
        let (plus, minus) = self.roots(z);
        let angle = self.angle(minus.0, plus.0)?;
        let conjugate = self.conjugate(plus);
        let product = self.multiply(conjugate, minus);
        Ok((self.b.add(angle, angle), self.math(math::asinh, product.1)?))
    }

    /// Kahan: `asin z = (atan2(Re z, Re(sqrt(1-z) sqrt(1+z))), asinh(Im(conj(sqrt(1-z)) sqrt(1+z))))`.
    pub(super) fn asin(&mut self, z: Complex) -> Result<Complex> {
        let (plus, minus) = self.roots(z);
        let product = self.multiply(plus, minus);
        let conjugate = self.conjugate(minus);
        let other = self.multiply(conjugate, plus);
        Ok((self.angle(z.0, product.0)?, self.math(math::asinh, other.1)?))
    }

    /// Kahan: `acosh z = (asinh(Re(conj(sqrt(z-1)) sqrt(z+1))), 2 atan2(Im sqrt(z-1), Re sqrt(z+1)))`.
    pub(super) fn acosh(&mut self, (re, im): Complex) -> Result<Complex> {
        let one = self.float(1.0);
        let (sum, difference) = (self.b.add(re, one), self.b.sub(re, one));
        let (plus, minus) = (self.sqrt((sum, im)), self.sqrt((difference, im)));
        let conjugate = self.conjugate(minus);
        let product = self.multiply(conjugate, plus);
        let angle = self.angle(minus.1, plus.0)?;
        Ok((self.math(math::asinh, product.0)?, self.b.add(angle, angle)))
    }

    pub(super) fn asinh(&mut self, z: Complex) -> Result<Complex> {
        let rotated = self.over_i(z);
        let value = self.asin(rotated)?;
        Ok(self.times_i(value))
    }

    /// `(log1p z - log1p(-z)) / 2`, its real part without cancellation.
    pub(super) fn atanh(&mut self, (re, im): Complex) -> Result<Complex> {
        let one = self.float(1.0);
        let difference = self.b.sub(one, re);
        let (square, im_square) = (self.b.mul(difference, difference), self.b.mul(im, im));
        let distance = self.b.add(square, im_square);
        let fourfold = self.scale(re, 4.0);
        let ratio = self.quotient(fourfold, distance);
        let log = self.math(math::log1p, ratio)?;
        let quarter = self.scale(log, 0.25);
        let zero = self.float(0.0);
        let nothing = copy_sign(self.b, zero, re);
        let is_far = self.test(Predicate::Equal, distance, f64::INFINITY);
        let real = self.b.select(is_far, nothing, quarter);
        let sum = self.b.add(one, re);
        let product = self.b.mul(difference, sum);
        let x = self.b.sub(product, im_square);
        let y = self.b.add(im, im);
        let angle = self.angle(y, x)?;
        Ok((real, self.scale(angle, 0.5)))
    }

    /// `z^w = e^(w log z)`, but 1 for exponent 0 or base 1, and powers of 0 and of positive infinity taken as limits.
    pub(super) fn power(&mut self, base: Complex, exponent: Complex) -> Result<Complex> {
        let logarithm = self.log(base)?;
        let (log_magnitude, angle) = self.multiply(exponent, logarithm);
        let magnitude = self.math(math::exp, log_magnitude)?;
        let general = self.polar(magnitude, angle)?;
        let (zero, one, infinity) = (self.real(0.0), self.real(1.0), self.real(f64::INFINITY));
        let nan = (self.float(f64::NAN), self.float(f64::NAN));
        let positive = self.test(Predicate::Greater, exponent.0, 0.0);
        let real_exponent = self.test(Predicate::Equal, exponent.1, 0.0);
        let is = |f: &mut Self, z: Complex, re: f64| {
            let first = f.test(Predicate::Equal, z.0, re);
            let second = f.test(Predicate::Equal, z.1, 0.0);
            f.b.and(first, second)
        };
        let of_infinity = self.choose(positive, infinity, zero);
        let is_infinite = is(self, base, f64::INFINITY);
        let is_infinite = self.b.and(is_infinite, real_exponent);
        let result = self.choose(is_infinite, of_infinity, general);
        // Infinite, but nobody knows in which direction.
        let unsigned = (self.float(f64::INFINITY), self.float(f64::NAN));
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
        let rotated = self.times_i(y);
        let numerator = self.add(x, rotated);
        let (x_square, y_square) = (self.multiply(x, x), self.multiply(y, y));
        let sum = self.add(x_square, y_square);
        let root = self.sqrt(sum);
        let direction = self.divide(numerator, root);
        let logarithm = self.log(direction)?;
        Ok(self.over_i(logarithm))
    }
}
