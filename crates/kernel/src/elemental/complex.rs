//! Complex arithmetic. A number is its real and imaginary part.

use super::real::copy_sign;
use super::undefined;
use crate::element::Element;
use crate::math;
use hlo::Op;
use nest::{BinaryOp, ConvertOp, FunctionBuilder, Predicate, ScalarType, Type, UnaryOp, ValueId};
use shape::PrimitiveType;
use support::Result;
use target::Target;

/// A complex number. Both parts have the same type.
#[derive(Clone, Copy)]
pub(super) struct Complex {
    pub(super) re: ValueId,
    pub(super) im: ValueId,
}

impl Complex {
    pub(super) fn new(re: ValueId, im: ValueId) -> Self {
        Self { re, im }
    }
}

/// Arithmetic on parts of one type.
pub(super) struct Arithmetic<'b> {
    pub(super) b: &'b mut FunctionBuilder,
    pub(super) target: &'b Target,
    pub(super) ty: Type,
}

/// Emits a function of one complex number. All but the simplest ones are computed in `F64`, in
/// which squares of `F32` numbers neither overflow nor underflow.
pub(super) fn unary(
    b: &mut FunctionBuilder,
    target: &Target,
    op: &Op,
    element_type: PrimitiveType,
    operand: Element,
) -> Result<Element> {
    let (re, im) = operand.parts();
    match op {
        Op::Real {} => return Ok(Element::Real(re)),
        Op::Imag {} => return Ok(Element::Real(im)),
        Op::Negate {} => return Ok(operand.map(|part| b.unary(UnaryOp::Negate, part))),
        _ => {}
    }
    let z = widen(b, operand);
    let mut f = Arithmetic { ty: b.ty(z.re), b, target };
    let value = match op {
        Op::Abs {} => {
            let magnitude = f.abs(z);
            return Ok(Element::Real(narrow(b, element_type, magnitude)));
        }
        Op::Sign {} => f.sign(z),
        Op::Acos {} => f.acos(z)?,
        Op::Acosh {} => f.acosh(z)?,
        Op::Asin {} => f.asin(z)?,
        Op::Asinh {} => f.asinh(z)?,
        Op::Atanh {} => f.atanh(z)?,
        Op::Cos {} => f.cos(z)?,
        Op::Cosh {} => f.cosh(z)?,
        Op::Exp {} => f.exp(z)?,
        Op::Expm1 {} => f.expm1(z)?,
        Op::Log {} => f.log(z)?,
        Op::Log1p {} => f.log1p(z)?,
        Op::Logistic {} => f.logistic(z)?,
        Op::Rsqrt {} => {
            let root = f.sqrt(z);
            let one = f.real(1.0);
            f.divide(one, root)
        }
        Op::Sin {} => f.sin(z)?,
        Op::Sinh {} => f.sinh(z)?,
        Op::Sqrt {} => f.sqrt(z),
        Op::Tan {} => f.tan(z)?,
        Op::Tanh {} => f.tanh(z)?,
        _ => return Err(undefined(op, element_type)),
    };
    Ok(narrow_parts(b, element_type, value))
}

/// Emits a function of two complex numbers.
pub(super) fn binary(
    b: &mut FunctionBuilder,
    target: &Target,
    op: &Op,
    element_type: PrimitiveType,
    lhs: Element,
    rhs: Element,
) -> Result<Element> {
    match op {
        Op::Add {} => return Ok(lhs.zip(rhs, |a, c| b.add(a, c))),
        Op::Subtract {} => return Ok(lhs.zip(rhs, |a, c| b.sub(a, c))),
        Op::Multiply {} => {
            let (x, y) = (parts(lhs), parts(rhs));
            let ty = b.ty(x.re);
            let product = Arithmetic { b, target, ty }.multiply(x, y);
            return Ok(Element::Complex(product.re, product.im));
        }
        _ => {}
    }
    let (x, y) = (widen(b, lhs), widen(b, rhs));
    let mut f = Arithmetic { ty: b.ty(x.re), b, target };
    let value = match op {
        Op::Divide {} => f.divide(x, y),
        Op::Power {} => f.power(x, y)?,
        Op::Atan2 {} => f.atan2(x, y)?,
        _ => return Err(undefined(op, element_type)),
    };
    Ok(narrow_parts(b, element_type, value))
}

fn parts(element: Element) -> Complex {
    let (re, im) = element.parts();
    Complex { re, im }
}

fn widen(b: &mut FunctionBuilder, operand: Element) -> Complex {
    parts(operand.map(|part| b.convert(ConvertOp::FloatExtend, part, ScalarType::F64)))
}

fn narrow_parts(b: &mut FunctionBuilder, element_type: PrimitiveType, value: Complex) -> Element {
    Element::Complex(narrow(b, element_type, value.re), narrow(b, element_type, value.im))
}

fn narrow(b: &mut FunctionBuilder, element_type: PrimitiveType, value: ValueId) -> ValueId {
    match element_type {
        PrimitiveType::C64 => b.convert(ConvertOp::FloatTruncate, value, ScalarType::F32),
        _ => value,
    }
}

impl Arithmetic<'_> {
    pub(super) fn float(&mut self, value: f64) -> ValueId {
        self.b.float(self.ty, value)
    }

    /// Returns a real number as a complex one.
    pub(super) fn real(&mut self, value: f64) -> Complex {
        Complex::new(self.float(value), self.float(0.0))
    }

    pub(super) fn scale(&mut self, x: ValueId, factor: f64) -> ValueId {
        let factor = self.float(factor);
        self.b.mul(x, factor)
    }

    pub(super) fn quotient(&mut self, x: ValueId, y: ValueId) -> ValueId {
        self.b.binary(BinaryOp::Divide, x, y)
    }

    pub(super) fn magnitude(&mut self, x: ValueId) -> ValueId {
        self.b.unary(UnaryOp::Abs, x)
    }

    pub(super) fn negated(&mut self, x: ValueId) -> ValueId {
        self.b.unary(UnaryOp::Negate, x)
    }

    pub(super) fn test(&mut self, predicate: Predicate, x: ValueId, limit: f64) -> ValueId {
        let limit = self.float(limit);
        self.b.compare(predicate, x, limit)
    }

    pub(super) fn choose(&mut self, condition: ValueId, x: Complex, y: Complex) -> Complex {
        Complex::new(self.b.select(condition, x.re, y.re), self.b.select(condition, x.im, y.im))
    }

    pub(super) fn add(&mut self, x: Complex, y: Complex) -> Complex {
        Complex::new(self.b.add(x.re, y.re), self.b.add(x.im, y.im))
    }

    pub(super) fn multiply(&mut self, x: Complex, y: Complex) -> Complex {
        let (Complex { re: a, im: b }, Complex { re: c, im: d }) = (x, y);
        let (ac, bd) = (self.b.mul(a, c), self.b.mul(b, d));
        let (ad, bc) = (self.b.mul(a, d), self.b.mul(b, c));
        Complex::new(self.b.sub(ac, bd), self.b.add(ad, bc))
    }

    pub(super) fn times_i(&mut self, Complex { re, im }: Complex) -> Complex {
        Complex::new(self.negated(im), re)
    }

    pub(super) fn over_i(&mut self, Complex { re, im }: Complex) -> Complex {
        Complex::new(im, self.negated(re))
    }

    pub(super) fn conjugate(&mut self, Complex { re, im }: Complex) -> Complex {
        Complex::new(re, self.negated(im))
    }

    /// The larger magnitude times the square root of one plus the squared ratio. Infinite if a part
    /// is infinite, and 0 at 0.
    pub(super) fn abs(&mut self, Complex { re, im }: Complex) -> ValueId {
        let (x, y) = (self.magnitude(re), self.magnitude(im));
        let is_less = self.b.compare(Predicate::Less, x, y);
        let (large, small) = (self.b.select(is_less, y, x), self.b.select(is_less, x, y));
        let ratio = self.quotient(small, large);
        let square = self.b.mul(ratio, ratio);
        let one = self.float(1.0);
        let sum = self.b.add(one, square);
        let root = self.b.unary(UnaryOp::Sqrt, sum);
        let product = self.b.mul(large, root);
        // The product is NaN if both parts are zeros. The sum is the result then, and also for zero
        // and NaN.
        let is_zero = self.test(Predicate::Equal, large, 0.0);
        let both = self.b.add(large, small);
        let product = self.b.select(is_zero, both, product);
        self.infinite_if_either(x, y, product)
    }

    fn infinite_if_either(&mut self, x: ValueId, y: ValueId, otherwise: ValueId) -> ValueId {
        let infinity = self.float(f64::INFINITY);
        let first = self.b.compare(Predicate::Equal, x, infinity);
        let second = self.b.compare(Predicate::Equal, y, infinity);
        let either = self.b.or(first, second);
        self.b.select(either, infinity, otherwise)
    }

    fn sign(&mut self, z: Complex) -> Complex {
        let magnitude = self.abs(z);
        let unit = Complex::new(self.quotient(z.re, magnitude), self.quotient(z.im, magnitude));
        let zero = self.real(0.0);
        let is_zero = self.test(Predicate::Equal, magnitude, 0.0);
        self.choose(is_zero, zero, unit)
    }

    /// Smith's method. A zero or infinite divisor or an infinite dividend gives the limit, as in
    /// C's Annex G.
    pub(super) fn divide(&mut self, x: Complex, y: Complex) -> Complex {
        let (Complex { re: a, im: b }, Complex { re: c, im: d }) = (x, y);
        let (c_size, d_size) = (self.magnitude(c), self.magnitude(d));
        let c_is_less = self.b.compare(Predicate::Less, c_size, d_size);
        // With `p` as the larger and `q` as the smaller part: the ratio is q/p, and the denominator
        // is p + q * ratio.
        let (p, q) = (self.b.select(c_is_less, d, c), self.b.select(c_is_less, c, d));
        let ratio = self.quotient(q, p);
        let correction = self.b.mul(q, ratio);
        let denominator = self.b.add(p, correction);
        let (ar, br) = (self.b.mul(a, ratio), self.b.mul(b, ratio));
        let re_if_less = self.b.add(ar, b);
        let re_else = self.b.add(a, br);
        let im_if_less = self.b.sub(br, a);
        let im_else = self.b.sub(b, ar);
        let re = self.b.select(c_is_less, re_if_less, re_else);
        let im = self.b.select(c_is_less, im_if_less, im_else);
        let finite = Complex::new(self.quotient(re, denominator), self.quotient(im, denominator));
        let limit = self.divide_at_the_edge(x, y, finite);
        let (re_nan, im_nan) = (self.is_nan(finite.re), self.is_nan(finite.im));
        let is_lost = self.b.and(re_nan, im_nan);
        self.choose(is_lost, limit, finite)
    }

    fn divide_at_the_edge(&mut self, x: Complex, y: Complex, otherwise: Complex) -> Complex {
        let infinity = self.float(f64::INFINITY);
        let c_zero = self.test(Predicate::Equal, y.re, 0.0);
        let d_zero = self.test(Predicate::Equal, y.im, 0.0);
        let is_zero = self.b.and(c_zero, d_zero);
        let signed = copy_sign(self.b, infinity, y.re);
        let by_zero = Complex::new(self.b.mul(signed, x.re), self.b.mul(signed, x.im));
        let (x_infinite, y_infinite) = (self.is_infinite(x), self.is_infinite(y));
        let (x_unit, y_unit) = (self.unit(x), self.unit(y));
        let large = self.times_conjugate(x_unit, y);
        let large = Complex::new(self.b.mul(infinity, large.re), self.b.mul(infinity, large.im));
        let small = self.times_conjugate(x, y_unit);
        let small = Complex::new(self.scale(small.re, 0.0), self.scale(small.im, 0.0));
        // The quotient of two infinities is undefined.
        let large = self.choose(y_infinite, otherwise, large);
        let small = self.choose(y_infinite, small, otherwise);
        let result = self.choose(x_infinite, large, small);
        self.choose(is_zero, by_zero, result)
    }

    fn times_conjugate(&mut self, x: Complex, y: Complex) -> Complex {
        let conjugate = self.conjugate(y);
        self.multiply(x, conjugate)
    }

    /// Returns 1 for infinite parts and 0 for others, with their signs. NaN gives positive 0.
    fn unit(&mut self, Complex { re, im }: Complex) -> Complex {
        let (one, zero, infinity) = (self.float(1.0), self.float(0.0), self.float(f64::INFINITY));
        let mut part = |x: ValueId| {
            let size = self.b.unary(UnaryOp::Abs, x);
            let is_infinite = self.b.compare(Predicate::Equal, size, infinity);
            let unit = self.b.select(is_infinite, one, zero);
            let signed = copy_sign(self.b, unit, x);
            let is_nan = self.b.compare(Predicate::NotEqual, x, x);
            self.b.select(is_nan, zero, signed)
        };
        Complex::new(part(re), part(im))
    }

    pub(super) fn is_nan(&mut self, x: ValueId) -> ValueId {
        self.b.compare(Predicate::NotEqual, x, x)
    }

    fn is_infinite(&mut self, Complex { re, im }: Complex) -> ValueId {
        let infinity = self.float(f64::INFINITY);
        let (re, im) = (self.magnitude(re), self.magnitude(im));
        let first = self.b.compare(Predicate::Equal, re, infinity);
        let second = self.b.compare(Predicate::Equal, im, infinity);
        self.b.or(first, second)
    }

    /// The square root with a nonnegative real part. The imaginary part has the operand's sign.
    ///
    /// Its parts are `root = sqrt((|re| + |z|) / 2)` and `im / (2 root)`, in the order given by the
    /// sign of `re`. The operand is scaled down if the sum would overflow and up if it would
    /// underflow.
    pub(super) fn sqrt(&mut self, Complex { re, im }: Complex) -> Complex {
        let (re_size, im_size) = (self.magnitude(re), self.magnitude(im));
        let larger = self.b.compare(Predicate::Greater, re_size, im_size);
        let size = self.b.select(larger, re_size, im_size);
        let is_large = self.test(Predicate::Greater, size, 2f64.powi(1000));
        let is_small = self.test(Predicate::Less, size, 2f64.powi(-900));
        let (one, down, up) = (self.float(1.0), self.float(2f64.powi(-100)), self.float(2f64.powi(200)));
        let factor = self.b.select(is_small, up, one);
        let factor = self.b.select(is_large, down, factor);
        let (root_up, root_down) = (self.float(2f64.powi(50)), self.float(2f64.powi(-100)));
        let back = self.b.select(is_small, root_down, one);
        let back = self.b.select(is_large, root_up, back);
        let scaled = Complex::new(self.b.mul(re, factor), self.b.mul(im, factor));
        let modulus = self.abs(scaled);
        let x_size = self.magnitude(scaled.re);
        let sum = self.b.add(x_size, modulus);
        let half = self.scale(sum, 0.5);
        let root = self.b.unary(UnaryOp::Sqrt, half);
        let doubled = self.b.add(root, root);
        let other = self.quotient(scaled.im, doubled);
        let (root, other) = (self.b.mul(root, back), self.b.mul(other, back));
        let other_size = self.magnitude(other);
        let signed_root = copy_sign(self.b, root, im);
        let is_negative = self.test(Predicate::Less, re, 0.0);
        let result =
            self.choose(is_negative, Complex::new(other_size, signed_root), Complex::new(root, other));
        self.sqrt_at_the_edge(Complex { re, im }, result)
    }

    fn sqrt_at_the_edge(&mut self, Complex { re, im }: Complex, otherwise: Complex) -> Complex {
        let (zero, infinity) = (self.float(0.0), self.float(f64::INFINITY));
        // The sum is not 0 if one part is NaN.
        let (re_size, im_size) = (self.magnitude(re), self.magnitude(im));
        let both = self.b.add(re_size, im_size);
        let is_zero = self.test(Predicate::Equal, both, 0.0);
        let result = self.choose(is_zero, Complex::new(zero, im), otherwise);
        let no_part = copy_sign(self.b, zero, im);
        let im_is_nan = self.is_nan(im);
        let other = self.b.select(im_is_nan, im, no_part);
        let re_is_high = self.b.compare(Predicate::Equal, re, infinity);
        let result = self.choose(re_is_high, Complex::new(infinity, other), result);
        let re_is_low = self.test(Predicate::Equal, re, f64::NEG_INFINITY);
        let other_size = self.magnitude(other);
        let signed = copy_sign(self.b, infinity, im);
        let signed = self.b.select(im_is_nan, infinity, signed);
        let result = self.choose(re_is_low, Complex::new(other_size, signed), result);
        let im_is_infinite = self.b.compare(Predicate::Equal, im_size, infinity);
        self.choose(im_is_infinite, Complex::new(infinity, im), result)
    }

    pub(super) fn math(
        &mut self,
        function: fn(&mut FunctionBuilder, &Target, ValueId) -> Result<ValueId>,
        x: ValueId,
    ) -> Result<ValueId> {
        function(self.b, self.target, x)
    }

    pub(super) fn angle(&mut self, y: ValueId, x: ValueId) -> Result<ValueId> {
        math::atan2(self.b, self.target, y, x)
    }
}
