//! Constants with one number for each index of a dimension: scales, offsets, zero points.

use crate::computation::Computation;
use crate::ids::InstructionId;
use crate::opcode::Op;
use shape::Scalar;

/// A number for each index of one dimension, or one number for all.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelConstant {
    /// The dimension of the numbers, `None` if there is only one.
    pub dimension: Option<usize>,
    /// The numbers.
    pub values: Vec<f64>,
}

impl ChannelConstant {
    /// Reads an operand that is a broadcast scalar or vector, or an array with one dimension of a
    /// size other than 1.
    pub fn of(computation: &Computation, id: InstructionId) -> Option<Self> {
        let (source, dimensions) = match computation[id].op() {
            Op::Broadcast { dimensions } => (computation[id].operands()[0], dimensions.clone()),
            _ => (id, (0..computation[id].shape().as_array()?.rank()).collect()),
        };
        let Op::Constant { literal } = computation[source].op() else { return None };
        let shape = literal.shape();
        let shape = shape.as_array()?;
        let wide: Vec<usize> = (0..shape.rank()).filter(|&d| shape.size(d) != 1).collect();
        let dimension = match wide.as_slice() {
            [] => None,
            &[d] => Some(dimensions[d]),
            _ => return None,
        };
        let values: Option<Vec<f64>> = literal.scalars().map(Scalar::as_f64).collect();
        Some(Self { dimension, values: values.filter(|v| !v.is_empty())? })
    }

    /// Reads the two operands of an instruction: one that is not a constant, and one that is. The
    /// constant of a difference or a quotient is the second one.
    pub fn beside(computation: &Computation, id: InstructionId) -> Option<(InstructionId, Self)> {
        let &[a, b] = computation[id].operands() else { return None };
        match Self::of(computation, b) {
            Some(constant) => Some((a, constant)),
            None if matches!(computation[id].op(), Op::Subtract {} | Op::Divide {}) => None,
            None => Some((b, Self::of(computation, a)?)),
        }
    }

    /// Returns one number for all indices.
    pub fn of_all(value: f64) -> Self {
        Self { dimension: None, values: vec![value] }
    }

    /// Returns the only number, `None` if there are several.
    pub fn only(&self) -> Option<f64> {
        let &first = self.values.first()?;
        self.values.iter().all(|value| value.to_bits() == first.to_bits()).then_some(first)
    }

    /// Returns the number of an index.
    pub fn at(&self, index: usize) -> f64 {
        if self.values.len() == 1 { self.values[0] } else { self.values[index] }
    }

    /// Combines the numbers of two constants. `None` if both have a dimension, but not the same.
    pub fn combine(&self, other: &Self, f: impl Fn(f64, f64) -> f64) -> Option<Self> {
        let dimension = match (self.dimension, other.dimension) {
            (Some(a), Some(b)) if a != b => return None,
            (a, b) => a.or(b),
        };
        let count = self.values.len().max(other.values.len());
        Some(Self { dimension, values: (0..count).map(|k| f(self.at(k), other.at(k))).collect() })
    }

    /// Returns the same constant with another number for each.
    pub fn map(&self, f: impl Fn(f64) -> f64) -> Self {
        Self { dimension: self.dimension, values: self.values.iter().map(|&value| f(value)).collect() }
    }
}
