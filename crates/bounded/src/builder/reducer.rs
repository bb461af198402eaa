//! The scalar computations that reductions and scatters apply.

use crate::builder::{Builder, scalar_literal};
use hlo::{
    ComparisonDirection, ComparisonType, ComputationBuilder, ComputationId, InstructionId, Module, Op,
};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar, Shape};
use support::Result;

/// The operation of a reduction or a scatter on the current value and the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reducer {
    /// `x + y`.
    Add,
    /// `x - y`.
    Subtract,
    /// `x * y`.
    Multiply,
    /// `x / y`.
    Divide,
    /// The larger one, or NaN if either is.
    Maximum,
    /// The largest number. NaN is skipped.
    LargestNumber,
    /// The smaller one, or NaN if either is.
    Minimum,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// The next value, which replaces the current one.
    Replace,
}

impl Reducer {
    fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Subtract => "subtract",
            Self::Multiply => "multiply",
            Self::Divide => "divide",
            Self::Maximum => "maximum",
            Self::LargestNumber => "largest_number",
            Self::Minimum => "minimum",
            Self::And => "and",
            Self::Or => "or",
            Self::Replace => "replace",
        }
    }

    /// Returns the identity of the operation.
    pub fn neutral(self, element_type: PrimitiveType) -> Literal {
        match self {
            Self::Add | Self::Subtract | Self::Or | Self::Replace => scalar_literal(element_type, 0.0),
            Self::And if element_type.is_signed_integer() => scalar_literal(element_type, -1.0),
            Self::And if element_type.is_integer() => highest(element_type),
            Self::Multiply | Self::Divide | Self::And => scalar_literal(element_type, 1.0),
            Self::Maximum | Self::LargestNumber => lowest(element_type),
            Self::Minimum => highest(element_type),
        }
    }

    /// Adds the computation `(x, y) -> x op y` to a module.
    pub fn build(self, module: &mut Module, element_type: PrimitiveType) -> Result<ComputationId> {
        let mut builder = ComputationBuilder::new(format!("{}.{element_type}", self.name()));
        let x = builder.parameter("x", Shape::scalar(element_type));
        let y = builder.parameter("y", Shape::scalar(element_type));
        let op = match self {
            Self::Add => Op::Add {},
            Self::Subtract => Op::Subtract {},
            Self::Multiply => Op::Multiply {},
            Self::Divide => Op::Divide {},
            Self::Maximum => Op::Maximum {},
            Self::LargestNumber if element_type.is_floating_point() => {
                let op = Op::Compare {
                    direction: ComparisonDirection::Gt,
                    comparison_type: ComparisonType::Default,
                };
                // The comparison is false if `y` is NaN. `x` starts at -inf and is never NaN.
                let is_larger = builder.op(module, op, &[y, x])?;
                let root = builder.op(module, Op::Select {}, &[is_larger, y, x])?;
                return Ok(module.add_computation(builder.finish(root)));
            }
            Self::LargestNumber => Op::Maximum {},
            Self::Minimum => Op::Minimum {},
            Self::And => Op::And {},
            Self::Or => Op::Or {},
            Self::Replace => return Ok(module.add_computation(builder.finish(y))),
        };
        let root = builder.op(module, op, &[x, y])?;
        Ok(module.add_computation(builder.finish(root)))
    }
}

impl Builder {
    /// Returns a value that changes nothing in a reduction by a computation with this initial
    /// value: that of its operation, if it has only one, and otherwise the initial value, which
    /// then has to be one.
    pub fn identity_of(&mut self, to_apply: ComputationId, initial: InstructionId) -> InstructionId {
        let element_type = self.element_type(initial);
        let identity = self.module().get(to_apply).and_then(|callee| {
            let root = &callee[callee.root_if_set()?];
            let are_parameters =
                root.operands().iter().all(|&id| matches!(callee[id].op(), Op::Parameter { .. }));
            let reducer = match root.op() {
                _ if !are_parameters || callee.parameters().len() != 2 => return None,
                Op::Multiply {} => Reducer::Multiply,
                Op::Maximum {} => Reducer::Maximum,
                Op::Minimum {} => Reducer::Minimum,
                Op::Add {} if element_type != PrimitiveType::Pred => Reducer::Add,
                Op::And {} if element_type == PrimitiveType::Pred => Reducer::And,
                Op::Or {} => Reducer::Or,
                _ => return None,
            };
            Some(reducer.neutral(element_type))
        });
        match identity {
            Some(identity) if self.fold(initial).as_ref() != Some(&identity) => self.literal(identity),
            _ => initial,
        }
    }
}

fn scalar(element_type: PrimitiveType, value: Scalar) -> Literal {
    Literal::from_scalars(ArrayShape::new(element_type, &[]), [value])
}

/// Returns the smallest value of a type, -inf for floats.
pub fn lowest(element_type: PrimitiveType) -> Literal {
    let bits = element_type.bit_width();
    match element_type {
        PrimitiveType::Pred => scalar(element_type, Scalar::Pred(false)),
        t if t.is_signed_integer() => scalar(t, Scalar::Signed(i64::MIN >> (64 - bits))),
        t if t.is_unsigned_integer() => scalar(t, Scalar::Unsigned(0)),
        t => scalar_literal(t, f64::NEG_INFINITY),
    }
}

/// Returns the largest value of a type, inf for floats.
pub fn highest(element_type: PrimitiveType) -> Literal {
    let bits = element_type.bit_width();
    match element_type {
        PrimitiveType::Pred => scalar(element_type, Scalar::Pred(true)),
        t if t.is_signed_integer() => scalar(t, Scalar::Signed(i64::MAX >> (64 - bits))),
        t if t.is_unsigned_integer() => scalar(t, Scalar::Unsigned(u64::MAX >> (64 - bits))),
        t => scalar_literal(t, f64::INFINITY),
    }
}
