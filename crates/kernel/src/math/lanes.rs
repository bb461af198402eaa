//! Values as operands of Rust's operators, so that a function reads like its formula.
//!
//! A [`Scope`] borrows the builder for one region. Each of its [`Lanes`] is a value that is
//! available in the region. Constants are plain Rust numbers: `1.0 - x * 0.5` has the lanes and the
//! type of `x`.

use super::rounding;
use nest::{
    BinaryOp, ConvertOp, FunctionBuilder, Predicate, RegionBuilder as _, ScalarType, Type, UnaryOp, ValueId,
};
use std::cell::RefCell;
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Sub};
use support::Result;
use target::Target;

/// The region under construction.
pub(super) struct Scope<'s> {
    builder: RefCell<&'s mut FunctionBuilder>,
    target: &'s Target,
}

/// A value: a scalar or a vector.
#[derive(Clone, Copy)]
pub(super) struct Lanes<'s> {
    scope: &'s Scope<'s>,
    id: ValueId,
}

/// Builds a function of some values.
pub(super) fn build(
    b: &mut FunctionBuilder,
    target: &Target,
    arguments: &[ValueId],
    function: impl for<'s> FnOnce(&[Lanes<'s>]) -> Lanes<'s>,
) -> Result<ValueId> {
    let results = build_all(b, target, arguments, |arguments| vec![function(arguments)]);
    Ok(results[0])
}

fn build_all(
    b: &mut FunctionBuilder,
    target: &Target,
    arguments: &[ValueId],
    function: impl for<'s> FnOnce(&[Lanes<'s>]) -> Vec<Lanes<'s>>,
) -> Vec<ValueId> {
    let scope = Scope { builder: RefCell::new(b), target };
    let arguments: Vec<Lanes<'_>> = arguments.iter().map(|&id| Lanes { scope: &scope, id }).collect();
    function(&arguments).iter().map(|value| value.id).collect()
}

/// The other operand of an operator: a value, or a number for every lane.
pub(super) trait Operand<'s> {
    /// Returns the operand as a value of the same type as `other`.
    fn like(self, other: Lanes<'s>) -> Lanes<'s>;
}

impl<'s> Operand<'s> for Lanes<'s> {
    fn like(self, _: Lanes<'s>) -> Lanes<'s> {
        self
    }
}

impl<'s> Operand<'s> for f64 {
    fn like(self, other: Lanes<'s>) -> Lanes<'s> {
        let ty = other.ty();
        other.make(|b| b.float(ty, self))
    }
}

impl<'s> Operand<'s> for i64 {
    fn like(self, other: Lanes<'s>) -> Lanes<'s> {
        let ty = other.ty();
        other.make(|b| b.integer(ty, self))
    }
}

macro_rules! operator {
    ($($trait:ident $method:ident $op:ident),*) => {
        $(
            impl<'s, R: Operand<'s>> $trait<R> for Lanes<'s> {
                type Output = Self;
                fn $method(self, other: R) -> Self {
                    let other = other.like(self);
                    self.make(|b| b.binary(BinaryOp::$op, self.id, other.id))
                }
            }
            impl<'s> $trait<Lanes<'s>> for f64 {
                type Output = Lanes<'s>;
                fn $method(self, other: Lanes<'s>) -> Lanes<'s> {
                    self.like(other).$method(other)
                }
            }
        )*
    };
}
operator!(Add add Add, Sub sub Subtract, Mul mul Multiply, Div div Divide);

macro_rules! integer_operator {
    ($($trait:ident $method:ident $op:ident),*) => {
        $(
            impl<'s, R: Operand<'s>> $trait<R> for Lanes<'s> {
                type Output = Self;
                fn $method(self, other: R) -> Self {
                    let other = other.like(self);
                    self.make(|b| b.binary(BinaryOp::$op, self.id, other.id))
                }
            }
        )*
    };
}
integer_operator!(BitAnd bitand And, BitOr bitor Or, BitXor bitxor Xor);

impl Neg for Lanes<'_> {
    type Output = Self;
    /// Negates floats.
    fn neg(self) -> Self {
        self.make(|b| b.unary(UnaryOp::Negate, self.id))
    }
}

impl Not for Lanes<'_> {
    type Output = Self;
    /// Inverts integers and masks.
    fn not(self) -> Self {
        self.make(|b| b.unary(UnaryOp::Not, self.id))
    }
}

macro_rules! comparison {
    ($($(#[$doc:meta])* $name:ident $predicate:ident),*) => {
        $(
            $(#[$doc])*
            pub(super) fn $name(self, other: impl Operand<'s>) -> Self {
                let other = other.like(self);
                self.make(|b| b.compare(Predicate::$predicate, self.id, other.id))
            }
        )*
    };
}

impl<'s> Lanes<'s> {
    comparison!(
        /// Mask of equal lanes.
        equals Equal,
        /// Mask of different lanes. True for NaN.
        differs NotEqual,
        /// Mask of lesser lanes. Integers are signed.
        below Less,
        /// Mask of greater lanes. Integers are signed.
        above Greater,
        /// Mask of greater or equal lanes. Integers are signed.
        at_least GreaterEqual,
        /// Mask of lesser or equal lanes. Integers are signed.
        at_most LessEqual
    );

    fn make(self, build: impl FnOnce(&mut FunctionBuilder) -> ValueId) -> Self {
        Self { scope: self.scope, id: build(&mut self.scope.builder.borrow_mut()) }
    }

    /// Returns the type.
    pub(super) fn ty(self) -> Type {
        self.scope.builder.borrow().ty(self.id)
    }

    /// True if the lanes are `F32`.
    pub(super) fn is_single(self) -> bool {
        self.ty().scalar == ScalarType::F32
    }

    /// True if the target fuses multiply-adds.
    pub(super) fn has_fma(self) -> bool {
        self.scope.target.has_fma
    }

    /// True if the target supports [`Self::scale`], [`Self::exponent`], [`Self::mantissa`], and the
    /// estimates.
    pub(super) fn has_parts(self) -> bool {
        self.scope.target.has_float_parts
    }

    /// Multiplies by 2 to an integral power, rounding once.
    pub(super) fn scale(self, power: Self) -> Self {
        self.make(|b| b.binary(BinaryOp::Scale, self.id, power.id))
    }

    /// Returns the exponent as a float. See [`UnaryOp::Exponent`].
    pub(super) fn exponent(self) -> Self {
        self.make(|b| b.unary(UnaryOp::Exponent, self.id))
    }

    /// Returns the mantissa. See [`UnaryOp::Mantissa`].
    pub(super) fn mantissa(self) -> Self {
        self.make(|b| b.unary(UnaryOp::Mantissa, self.id))
    }

    /// `1 / self` to at least 14 bits, to be refined by a Newton step.
    pub(super) fn reciprocal_estimate(self) -> Self {
        if self.has_parts() {
            return self.make(|b| b.unary(UnaryOp::ReciprocalEstimate, self.id));
        }
        1.0 / self
    }

    /// `1 / sqrt(self)` to 14 bits. See [`UnaryOp::ReciprocalRootEstimate`].
    pub(super) fn reciprocal_root_estimate(self) -> Self {
        self.make(|b| b.unary(UnaryOp::ReciprocalRootEstimate, self.id))
    }

    /// `self * factor + addend`.
    pub(super) fn mul_add(self, factor: impl Operand<'s>, addend: impl Operand<'s>) -> Self {
        let (factor, addend) = (factor.like(self), addend.like(self));
        self.make(|b| b.multiply_add(self.id, factor.id, addend.id))
    }

    /// `c[0] + c[1] * self + c[2] * self^2 + ..`.
    pub(super) fn polynomial(self, coefficients: &[f64]) -> Self {
        let (&last, rest) =
            coefficients.split_last().expect("expected a polynomial with at least one coefficient");
        rest.iter().rev().fold(last.like(self), |sum, &c| sum.mul_add(self, c))
    }

    /// Like [`Self::polynomial`], with the first coefficients where a mask holds and the second
    /// ones elsewhere.
    pub(super) fn polynomial_of(self, mask: Self, first: &[f64], second: &[f64]) -> Self {
        let pick = |k: usize| {
            let coefficient = |table: &[f64]| table.get(k).copied().unwrap_or(0.0).like(self);
            mask.choose(coefficient(first), coefficient(second))
        };
        let degree = first.len().max(second.len()) - 1;
        (0..degree).rev().fold(pick(degree), |sum, k| sum.mul_add(self, pick(k)))
    }

    /// Returns the magnitude.
    pub(super) fn abs(self) -> Self {
        self.make(|b| b.unary(UnaryOp::Abs, self.id))
    }

    /// Returns the square root.
    pub(super) fn sqrt(self) -> Self {
        self.make(|b| b.unary(UnaryOp::Sqrt, self.id))
    }

    /// Truncates toward zero.
    pub(super) fn trunc(self) -> Self {
        let target = self.scope.target;
        self.make(|b| rounding::trunc(b, target, self.id).expect("rounding fails for no target"))
    }

    /// Selects by a mask: `a` where it holds, `b` elsewhere.
    pub(super) fn choose(self, a: Lanes<'s>, b: impl Operand<'s>) -> Self {
        let other = b.like(a);
        self.make(|b| b.select(self.id, a.id, other.id))
    }

    /// Broadcasts a number to the lanes and type of this value.
    pub(super) fn number(self, value: impl Operand<'s>) -> Self {
        value.like(self)
    }

    /// Returns the smaller of the value and a bound. NaN stays NaN.
    pub(super) fn at_most_bound(self, bound: f64) -> Self {
        let limit = bound.like(self);
        self.above(limit).choose(limit, self)
    }

    /// Returns the larger of the value and a bound. NaN stays NaN.
    pub(super) fn at_least_bound(self, bound: f64) -> Self {
        let limit = bound.like(self);
        self.below(limit).choose(limit, self)
    }

    fn integer_type(self) -> ScalarType {
        if self.is_single() { ScalarType::I32 } else { ScalarType::I64 }
    }

    /// Returns the bits of floats as integers of the same size.
    pub(super) fn bits(self) -> Self {
        let ty = self.ty().with_scalar(self.integer_type());
        self.make(|b| b.bitcast(self.id, ty))
    }

    /// Returns the floats with these bits.
    pub(super) fn as_float(self) -> Self {
        let ty = self.ty();
        let scalar = if ty.scalar == ScalarType::I32 { ScalarType::F32 } else { ScalarType::F64 };
        self.make(|b| b.bitcast(self.id, ty.with_scalar(scalar)))
    }

    /// Returns the sign bits of floats as integers, with all other bits 0.
    pub(super) fn sign_bits(self) -> Self {
        let bits = self.bits();
        bits & (i64::MIN >> (64 - 8 * bits.ty().scalar.byte_size()))
    }

    /// Flips the sign where bits of [`Self::sign_bits`] are set.
    pub(super) fn flip_sign(self, sign_bits: Self) -> Self {
        (self.bits() ^ sign_bits).as_float()
    }

    /// Returns the magnitude of this value with the sign of another.
    pub(super) fn with_sign_of(self, other: Self) -> Self {
        (self.abs().bits() | other.sign_bits()).as_float()
    }

    fn shift(self, op: BinaryOp, count: impl Operand<'s>) -> Self {
        let count = count.like(self);
        self.make(|b| b.binary(op, self.id, count.id))
    }

    /// Shifts integers left by less than their width.
    pub(super) fn shl(self, count: impl Operand<'s>) -> Self {
        self.shift(BinaryOp::ShiftLeft, count)
    }

    /// Shifts integers right, filling with zeros.
    pub(super) fn shr(self, count: impl Operand<'s>) -> Self {
        self.shift(BinaryOp::ShiftRightLogical, count)
    }

    /// Shifts integers right, filling with the sign.
    pub(super) fn sar(self, count: impl Operand<'s>) -> Self {
        self.shift(BinaryOp::ShiftRightArithmetic, count)
    }

    /// Converts floats to `F64`.
    pub(super) fn to_double(self) -> Self {
        self.make(|b| b.convert(ConvertOp::FloatExtend, self.id, ScalarType::F64))
    }

    /// Rounds floats to `F32`.
    pub(super) fn to_single(self) -> Self {
        self.make(|b| b.convert(ConvertOp::FloatTruncate, self.id, ScalarType::F32))
    }

    /// Returns the low half of `I64` lanes.
    pub(super) fn to_i32(self) -> Self {
        self.make(|b| b.convert(ConvertOp::Truncate, self.id, ScalarType::I32))
    }

    /// Returns a scalar condition: true if a mask holds in any lane.
    pub(super) fn any(self) -> Self {
        let lanes = self.ty().lanes;
        if lanes == 1 {
            return self;
        }
        if self.scope.target.gpu.is_some() {
            // Truth values of a device are no bits of an integer.
            let lane = |lane| self.make(|b| b.extract(self.id, lane));
            return (1..lanes).map(lane).fold(lane(0), |any, lane| any | lane);
        }
        let zeros = self.make(|b| b.integer(Type::vector(ScalarType::Bool, lanes), 0));
        (0..lanes.div_ceil(64))
            .map(|part| self.any_of_64(zeros, 64 * part))
            .reduce(|a, b| a | b)
            .expect("expected at least one lane")
    }

    /// Returns a scalar condition: true if a mask holds in any of up to 64 lanes. It compares their
    /// bits as one integer.
    fn any_of_64(self, zeros: Self, first: u32) -> Self {
        let lanes = self.ty().lanes;
        let (scalar, width) = match lanes - first {
            0..=8 => (ScalarType::I8, 8),
            9..=16 => (ScalarType::I16, 16),
            17..=32 => (ScalarType::I32, 32),
            _ => (ScalarType::I64, 64),
        };
        let picked: Vec<u32> = (first..first + width).map(|lane| lane.min(lanes)).collect();
        let whole = if lanes == width { self } else { self.make(|b| b.shuffle(self.id, zeros.id, picked)) };
        whole.make(|b| b.bitcast(whole.id, Type::scalar(scalar))).differs(0)
    }

    /// Branches on a scalar condition. Both regions receive `inputs` and return the same number of
    /// values of the same types.
    pub(super) fn if_else(
        self,
        inputs: &[Lanes<'s>],
        then: impl for<'i> FnOnce(&[Lanes<'i>]) -> Vec<Lanes<'i>>,
        otherwise: impl for<'i> FnOnce(&[Lanes<'i>]) -> Vec<Lanes<'i>>,
    ) -> Vec<Lanes<'s>> {
        let target = self.scope.target;
        let inputs: Vec<ValueId> = inputs.iter().map(|input| input.id).collect();
        let results = self.scope.builder.borrow_mut().if_else(
            self.id,
            |b| Ok(build_all(b, target, &inputs, then)),
            |b| Ok(build_all(b, target, &inputs, otherwise)),
        );
        self.all(results)
    }

    /// Repeats a body while a scalar condition holds. Both receive the carried values and the
    /// `others`.
    pub(super) fn while_loop(
        carried: &[Lanes<'s>],
        others: &[Lanes<'s>],
        condition: impl for<'i> FnOnce(&[Lanes<'i>], &[Lanes<'i>]) -> Lanes<'i>,
        body: impl for<'i> FnOnce(&[Lanes<'i>], &[Lanes<'i>]) -> Vec<Lanes<'i>>,
    ) -> Vec<Lanes<'s>> {
        let first = carried[0];
        let target = first.scope.target;
        let initial: Vec<ValueId> = carried.iter().map(|value| value.id).collect();
        let others: Vec<ValueId> = others.iter().map(|value| value.id).collect();
        let count = initial.len();
        let visible = |inner: &[ValueId]| [inner, &others].concat();
        let results = first.scope.builder.borrow_mut().while_carrying(
            &initial,
            |b, inner| build(b, target, &visible(inner), |all| condition(&all[..count], &all[count..])),
            |b, inner| Ok(build_all(b, target, &visible(inner), |all| body(&all[..count], &all[count..]))),
        );
        first.all(results)
    }

    fn all(self, ids: Result<Vec<ValueId>>) -> Vec<Self> {
        let ids = ids.expect("a region of arithmetic failed to build");
        ids.into_iter().map(|id| Self { scope: self.scope, id }).collect()
    }
}
