//! Linear algebra: products, decompositions, and matrices of special forms.

pub(crate) mod decompositions;
pub(crate) mod einsum;
pub(crate) mod matrix_diagonals;
pub(crate) mod products;
pub(crate) mod tridiagonal;

use crate::node::rule::Rule;

/// The rules of this folder.
pub(crate) const FAMILIES: &[&[Rule]] =
    &[decompositions::RULES, einsum::RULES, products::RULES, matrix_diagonals::RULES, tridiagonal::RULES];
