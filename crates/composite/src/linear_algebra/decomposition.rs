//! Decompositions, identified by custom-call targets.

use super::eigh::eigh;
use super::lu::lu;
use super::matrix::{as_stack, of_stack};
use super::qr::{orthonormal_columns, reflections};
use crate::expression::Expression;
use shape::{ArrayShape, PrimitiveType};

/// Decompositions that XLA's client libraries, and JAX for accelerators, emit as custom calls and
/// XLA's own passes expand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decomposition {
    /// `Qr(a) => (packed, taus)`, as [`reflections`].
    Qr,
    /// `ProductOfElementaryHouseholderReflectors(packed, taus) => q`, as [`orthonormal_columns`].
    HouseholderProduct,
    /// `Eigh(a) => (vectors, values)`, as [`eigh`].
    Eigh {
        /// True to read the lower triangle.
        lower: bool,
    },
    /// `LuDecomposition(a) => (factors, pivots, permutation)`, as [`lu`].
    Lu,
}

impl Decomposition {
    /// Returns the decomposition of a custom call's target.
    pub fn of(target: &str, backend_config: &str) -> Option<Self> {
        Some(match target {
            "Qr" => Self::Qr,
            "ProductOfElementaryHouseholderReflectors" => Self::HouseholderProduct,
            // The config is `lower,sort,sweeps,tolerance`. Values are always sorted and fully
            // accurate.
            "Eigh" => {
                Self::Eigh { lower: backend_config.split(',').next().is_none_or(|first| first.trim() != "0") }
            }
            "LuDecomposition" => Self::Lu,
            _ => return None,
        })
    }

    /// True if operands and results have the types and shapes of this decomposition.
    pub fn fits(self, operands: &[ArrayShape], results: &[ArrayShape]) -> bool {
        let types = operands.iter().chain(results.first()).map(|array| array.element_type);
        let is_of =
            |element_type: PrimitiveType| element_type.is_floating_point() || element_type.is_complex();
        if !types.clone().all(is_of) || types.clone().zip(types.skip(1)).any(|(one, next)| one != next) {
            return false;
        }
        let sizes = |shapes: &[ArrayShape]| shapes.iter().map(ArrayShape::sizes).collect::<Vec<_>>();
        let (operands, results) = (sizes(operands), sizes(results));
        let Some((matrix, batch)) =
            operands.first().and_then(|a| Some((a, a.get(..a.len().checked_sub(2)?)?)))
        else {
            return false;
        };
        let (m, n) = (matrix[batch.len()], matrix[batch.len() + 1]);
        let vectors = |length: i64| [batch, &[length]].concat();
        match (self, &operands[1..], &results[..]) {
            (Self::Qr, [], [packed, taus]) => packed == matrix && *taus == vectors(m.min(n)),
            (Self::HouseholderProduct, [taus], [q]) => {
                q == matrix && taus.last().is_some_and(|&count| count <= n.min(m) && *taus == vectors(count))
            }
            (Self::Eigh { .. }, [], [basis, values]) => m == n && basis == matrix && *values == vectors(n),
            (Self::Lu, [], [factors, pivots, permutation]) => {
                factors == matrix && *pivots == vectors(m.min(n)) && *permutation == vectors(m)
            }
            _ => false,
        }
    }

    /// Computes the results from operands with matching shapes, and reshapes them to the results'
    /// shapes.
    pub fn results<'f>(self, results: &[ArrayShape], operands: &[Expression<'f>]) -> Vec<Expression<'f>> {
        let sizes = operands[0].sizes();
        let batch = &sizes[..sizes.len() - 2];
        let a = as_stack(operands[0]);
        let shaped = |x: Expression<'f>, k: usize| x.reshape(&results[k].sizes());
        match self {
            Self::Qr => {
                let (packed, taus) = reflections(a);
                vec![of_stack(packed, batch), shaped(taus, 1)]
            }
            Self::HouseholderProduct => {
                let taus = operands[1];
                let taus = taus.reshape(&[a.sizes()[0], taus.size_from_end(0)]);
                vec![of_stack(orthonormal_columns(a, taus, a.size_from_end(0)), batch)]
            }
            Self::Eigh { lower } => {
                let (values, vectors) = eigh(a, lower);
                vec![of_stack(vectors, batch), shaped(values, 1)]
            }
            Self::Lu => {
                let lu = lu(a);
                let pivots = lu.pivots(sizes[batch.len()].min(sizes[batch.len() + 1]));
                vec![of_stack(lu.factors, batch), shaped(pivots, 1), shaped(lu.permutation, 2)]
            }
        }
    }
}
