//! Complex arithmetic and functions in `f64`. A number is a pair of real and imaginary part.

use crate::operation::{Binary, Unary};
use shape::Scalar;

pub(crate) type Complex = [f64; 2];

const I: Complex = [0.0, 1.0];
const ONE: Complex = [1.0, 0.0];

/// Evaluates a unary function without rounding. Returns `None` if it has no complex meaning.
pub(crate) fn unary(function: Unary, z: Complex) -> Option<Scalar> {
    let [re, im] = z;
    let value = match function {
        Unary::Abs => return Some(Scalar::Float(libm::hypot(re, im))),
        Unary::Real => return Some(Scalar::Float(re)),
        Unary::Imag => return Some(Scalar::Float(im)),
        Unary::Acos => acos(z),
        Unary::Acosh => acosh(z),
        Unary::Asin => over_i(asinh(times_i(z))),
        Unary::Asinh => asinh(z),
        Unary::Atanh => atanh(z),
        Unary::Cbrt => power(z, [1.0 / 3.0, 0.0]),
        Unary::Copy => z,
        Unary::Cos => cosh(times_i(z)),
        Unary::Cosh => cosh(z),
        Unary::Exp => exp(z),
        Unary::Expm1 => expm1(z),
        Unary::Log => log(z),
        Unary::Log1p => log1p(z),
        Unary::Logistic => divide(ONE, add(ONE, exp([-re, -im]))),
        Unary::Negate => [-re, -im],
        Unary::Rsqrt => divide(ONE, sqrt(z)),
        Unary::Sign => match libm::hypot(re, im) {
            0.0 => [0.0, 0.0],
            magnitude => [re / magnitude, im / magnitude],
        },
        Unary::Sin => over_i(sinh(times_i(z))),
        Unary::Sinh => sinh(z),
        Unary::Sqrt => sqrt(z),
        Unary::Tan => over_i(tanh(times_i(z))),
        Unary::Tanh => tanh(z),
        Unary::Ceil
        | Unary::CountLeadingZeros
        | Unary::Erf
        | Unary::Floor
        | Unary::IsFinite
        | Unary::Not
        | Unary::PopulationCount
        | Unary::RoundNearestAfz
        | Unary::RoundNearestEven => return None,
    };
    Some(Scalar::Complex(value[0], value[1]))
}

/// Evaluates a binary function without rounding. Returns `None` if it has no complex meaning.
pub(crate) fn binary(function: Binary, x: Complex, y: Complex) -> Option<Complex> {
    Some(match function {
        Binary::Add => add(x, y),
        Binary::Subtract => [x[0] - y[0], x[1] - y[1]],
        Binary::Multiply => multiply(x, y),
        Binary::Divide => divide(x, y),
        Binary::Power => power(x, y),
        Binary::Atan2 => atan2(x, y),
        Binary::And
        | Binary::Maximum
        | Binary::Minimum
        | Binary::Or
        | Binary::Remainder
        | Binary::ShiftLeft
        | Binary::ShiftRightArithmetic
        | Binary::ShiftRightLogical
        | Binary::Xor => return None,
    })
}

pub(crate) fn add(x: Complex, y: Complex) -> Complex {
    [x[0] + y[0], x[1] + y[1]]
}

pub(crate) fn multiply([a, b]: Complex, [c, d]: Complex) -> Complex {
    [a * c - b * d, a * d + b * c]
}

pub(crate) fn conjugate([re, im]: Complex) -> Complex {
    [re, -im]
}

/// Divides by Smith's method. If both parts are NaN, returns the limit defined by C's Annex G, if
/// there is one: for a division by zero, of an infinity by a finite number, and vice versa.
pub(crate) fn divide([a, b]: Complex, [c, d]: Complex) -> Complex {
    let quotient = smith([a, b], [c, d]);
    if !quotient[0].is_nan() || !quotient[1].is_nan() {
        return quotient;
    }
    // The sign of a NaN is meaningless.
    let unit = |v: f64| match v {
        v if v.is_nan() => 0.0,
        v if v.is_infinite() => 1.0_f64.copysign(v),
        v => 0.0_f64.copysign(v),
    };
    if c == 0.0 && d == 0.0 {
        let infinity = f64::INFINITY.copysign(c);
        return [infinity * a, infinity * b];
    }
    if (a.is_infinite() || b.is_infinite()) && c.is_finite() && d.is_finite() {
        let product = multiply([unit(a), unit(b)], [c, -d]);
        return [f64::INFINITY * product[0], f64::INFINITY * product[1]];
    }
    if (c.is_infinite() || d.is_infinite()) && a.is_finite() && b.is_finite() {
        let product = multiply([a, b], [unit(c), -unit(d)]);
        return [0.0 * product[0], 0.0 * product[1]];
    }
    quotient
}

fn smith([a, b]: Complex, [c, d]: Complex) -> Complex {
    if c.abs() < d.abs() {
        let ratio = c / d;
        let denominator = c * ratio + d;
        [(a * ratio + b) / denominator, (b * ratio - a) / denominator]
    } else {
        let ratio = d / c;
        let denominator = c + d * ratio;
        [(a + b * ratio) / denominator, (b - a * ratio) / denominator]
    }
}

/// True for negative numbers and -0. NaN is not negative.
fn is_negative(x: f64) -> bool {
    !x.is_nan() && x.is_sign_negative()
}

fn times_i([re, im]: Complex) -> Complex {
    [-im, re]
}

fn over_i([re, im]: Complex) -> Complex {
    [im, -re]
}

/// Returns `magnitude * (cos angle, sin angle)`, exact on the real axis even for an infinite
/// magnitude.
fn from_polar(magnitude: f64, angle: f64) -> Complex {
    if angle == 0.0 {
        return [magnitude, angle];
    }
    [magnitude * libm::cos(angle), magnitude * libm::sin(angle)]
}

fn exp([re, im]: Complex) -> Complex {
    if re == f64::NEG_INFINITY && !im.is_finite() {
        return [0.0, 0.0];
    }
    from_polar(libm::exp(re), im)
}

/// `e^re cos im - 1` without cancellation: `expm1(re) cos im - 2 sin(im/2)^2`.
fn expm1([re, im]: Complex) -> Complex {
    if im == 0.0 {
        return [libm::expm1(re), im];
    }
    let half = libm::sin(im / 2.0);
    [libm::expm1(re) * libm::cos(im) - 2.0 * half * half, libm::exp(re) * libm::sin(im)]
}

fn log(z: Complex) -> Complex {
    [log_abs(z), libm::atan2(z[1], z[0])]
}

/// Returns the logarithm of the magnitude, even if the magnitude is not a normal number.
fn log_abs([re, im]: Complex) -> f64 {
    let size = re.abs().max(im.abs());
    let exponent = if size > 2f64.powi(1000) {
        100
    } else if size < 2f64.powi(-900) {
        -100
    } else {
        0
    };
    let scale = 2f64.powi(-exponent);
    libm::log(libm::hypot(re * scale, im * scale)) + f64::from(exponent) * std::f64::consts::LN_2
}

/// True if `z` is so large (or infinite) that the inverse functions approach the logarithm of
/// `2 z`.
fn is_far([re, im]: Complex) -> bool {
    re.abs() > 2f64.powi(500) || im.abs() > 2f64.powi(500)
}

/// Applies the sign of `x`; NaN counts as positive.
fn with_sign(magnitude: f64, x: f64) -> f64 {
    if is_negative(x) { -magnitude } else { magnitude }
}

/// Near zero, `log |1 + z|` is half of `log1p(2 re + re^2 + im^2)`.
fn log1p([re, im]: Complex) -> Complex {
    let magnitude = if re.abs() < 0.5 && im.abs() < 0.5 {
        0.5 * libm::log1p(re * (2.0 + re) + im * im)
    } else {
        libm::log(libm::hypot(1.0 + re, im))
    };
    [magnitude, libm::atan2(im, 1.0 + re)]
}

/// Returns the root with a nonnegative real part. The imaginary part has the operand's sign.
fn sqrt([re, im]: Complex) -> Complex {
    if re == 0.0 && im == 0.0 {
        return [0.0, im];
    }
    if im.is_infinite() {
        return [f64::INFINITY, im];
    }
    if re.is_infinite() {
        let other = if im.is_nan() { im } else { 0.0_f64.copysign(im) };
        let infinity = if is_negative(im) { f64::NEG_INFINITY } else { f64::INFINITY };
        return if re > 0.0 { [re, other] } else { [other.abs(), infinity] };
    }
    // Half the sum would overflow or underflow at the ends of the range, so scale by a power of 4.
    let exponent = libm::frexp(re.abs().max(im.abs())).1 & !1;
    let (x, y) = (libm::ldexp(re, -exponent), libm::ldexp(im, -exponent));
    let root = libm::ldexp(((x.abs() + libm::hypot(x, y)) / 2.0).sqrt(), exponent / 2);
    let other = libm::ldexp(y, exponent) / (2.0 * root);
    if re >= 0.0 { [root, other] } else { [other.abs(), root.copysign(im)] }
}

fn sinh([re, im]: Complex) -> Complex {
    if im == 0.0 {
        return [libm::sinh(re), im];
    }
    let real = match re {
        0.0 if im.is_finite() => re * libm::cos(im),
        0.0 => re,
        re => libm::sinh(re) * libm::cos(im),
    };
    [real, libm::cosh(re) * libm::sin(im)]
}

fn cosh([re, im]: Complex) -> Complex {
    // An infinity times the zero of the other axis is that zero, and so is NaN times it.
    let imaginary = if im == 0.0 {
        if is_negative(re) { -im } else { im }
    } else if re == 0.0 {
        if im.is_finite() { re * libm::sin(im) } else { re }
    } else {
        libm::sinh(re) * libm::sin(im)
    };
    [libm::cosh(re) * libm::cos(im), imaginary]
}

/// Kahan's formula. Where `sinh` would overflow, the limit is 1 with a vanishing imaginary part.
fn tanh([re, im]: Complex) -> Complex {
    if re.abs() > 30.0 {
        if !im.is_finite() {
            let is_limit = re.is_infinite();
            return if is_limit { [1.0_f64.copysign(re), 0.0] } else { [f64::NAN, f64::NAN] };
        }
        let vanishing = 4.0 * libm::sin(im) * libm::cos(im) * libm::exp(-2.0 * re.abs());
        return [1.0_f64.copysign(re), vanishing];
    }
    let tangent = libm::tan(im);
    let beta = 1.0 + tangent * tangent;
    let s = libm::sinh(re);
    let rho = (1.0 + s * s).sqrt();
    let denominator = 1.0 + beta * s * s;
    [beta * rho * s / denominator, if im == 0.0 { im } else { tangent / denominator }]
}

/// Kahan: `acos z = (2 atan2(Re sqrt(1-z), Re sqrt(1+z)), asinh(Im(conj(sqrt(1+z)) sqrt(1-z))))`.
fn acos([re, im]: Complex) -> Complex {
    if is_far([re, im]) {
        let log = log_abs([re, im]) + std::f64::consts::LN_2;
        return [libm::atan2(im.abs(), re), with_sign(log, -im)];
    }
    let (plus, minus) = (sqrt([1.0 + re, im]), sqrt([1.0 - re, -im]));
    [2.0 * libm::atan2(minus[0], plus[0]), libm::asinh(multiply(conjugate(plus), minus)[1])]
}

/// Kahan: `acosh z = (asinh(Re(conj(sqrt(z-1)) sqrt(z+1))), 2 atan2(Im sqrt(z-1), Re sqrt(z+1)))`.
fn acosh([re, im]: Complex) -> Complex {
    if is_far([re, im]) {
        return [log_abs([re, im]) + std::f64::consts::LN_2, libm::atan2(im, re)];
    }
    let (plus, minus) = (sqrt([re + 1.0, im]), sqrt([re - 1.0, im]));
    [libm::asinh(multiply(conjugate(minus), plus)[0]), 2.0 * libm::atan2(minus[1], plus[0])]
}

/// `asinh z = i asin(z / i)`, with Kahan's `asin`.
fn asinh(z: Complex) -> Complex {
    let [re, im] = over_i(z);
    if is_far([re, im]) {
        let log = log_abs([re, im]) + std::f64::consts::LN_2;
        return times_i([libm::atan2(re, im.abs()), with_sign(log, im)]);
    }
    let (plus, minus) = (sqrt([1.0 + re, im]), sqrt([1.0 - re, -im]));
    let real = libm::atan2(re, multiply(plus, minus)[0]);
    times_i([real, libm::asinh(multiply(conjugate(minus), plus)[1])])
}

/// Computes `(log1p z - log1p(-z)) / 2`, with a real part that does not cancel.
fn atanh([re, im]: Complex) -> Complex {
    let distance = (1.0 - re) * (1.0 - re) + im * im;
    if distance.is_infinite() || re.is_infinite() {
        let angle = if im.is_nan() { im } else { std::f64::consts::FRAC_PI_2.copysign(im) };
        return [with_sign(0.0, re), angle];
    }
    let angle = libm::atan2(2.0 * im, (1.0 - re) * (1.0 + re) - im * im);
    [0.25 * libm::log1p(4.0 * re / distance), 0.5 * angle]
}

/// `z^w = e^(w log z)`, but 1 for exponent 0 or base 1. Powers of 0 and of positive infinity are
/// limits.
fn power(base: Complex, exponent: Complex) -> Complex {
    if exponent == [0.0, 0.0] || base == ONE {
        return ONE;
    }
    if base == [0.0, 0.0] {
        let nan = [f64::NAN, f64::NAN];
        return if exponent[0] > 0.0 {
            [0.0, 0.0]
        } else if exponent[1] == 0.0 {
            // Infinite, in an undefined direction.
            [f64::INFINITY, f64::NAN]
        } else {
            nan
        };
    }
    if base == [f64::INFINITY, 0.0] && exponent[1] == 0.0 {
        return if exponent[0] > 0.0 { [f64::INFINITY, 0.0] } else { [0.0, 0.0] };
    }
    let logarithm = log(base);
    let [magnitude, angle] = multiply(exponent, logarithm);
    from_polar(libm::exp(magnitude), angle)
}

/// `atan2(y, x) = -i log((x + i y) / sqrt(x^2 + y^2))`.
fn atan2(y: Complex, x: Complex) -> Complex {
    let numerator = add(x, multiply(I, y));
    over_i(log(divide(numerator, sqrt(add(multiply(x, x), multiply(y, y))))))
}
