//! Shapes with possibly unknown rank or sizes.

use crate::proto::TensorShapeProto;
use std::fmt;
use support::{Error, Result};

/// A shape as a graph states it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PartialShape {
    /// The sizes, with `None` for an unknown size. `None` if the rank is unknown.
    pub dimensions: Option<Vec<Option<i64>>>,
}

/// TensorFlow's own limit on the rank of a tensor.
const MAX_RANK: usize = 254;

impl PartialShape {
    /// The shape of unknown rank.
    pub const UNKNOWN: Self = Self { dimensions: None };

    /// Reads a proto. Returns an error for a size below -1, for more than 254 dimensions, and if
    /// the number of elements does not fit 64 bits.
    pub fn from_proto(proto: &TensorShapeProto) -> Result<Self> {
        if proto.unknown_rank {
            return if proto.dim.is_empty() {
                Ok(Self::UNKNOWN)
            } else {
                Err(Error::invalid("a shape of unknown rank must not list dimensions"))
            };
        }
        if proto.dim.len() > MAX_RANK {
            return Err(Error::invalid(format!(
                "a shape has {} dimensions, but at most {MAX_RANK} are supported",
                proto.dim.len()
            )));
        }
        let mut product = 1i64;
        for dim in &proto.dim {
            if dim.size < -1 {
                return Err(Error::invalid(format!("shape size {} is below -1 (-1 is unknown)", dim.size)));
            }
            // Like TensorFlow, rejects an overflow of the other sizes even if one size is zero.
            product = product.checked_mul(dim.size.max(1)).ok_or_else(|| {
                Error::invalid(format!("the shape {} has 2^63 elements or more", Self::dims(proto)))
            })?;
        }
        Ok(Self::dims(proto))
    }

    fn dims(proto: &TensorShapeProto) -> Self {
        Self { dimensions: Some(proto.dim.iter().map(|d| (d.size >= 0).then_some(d.size)).collect()) }
    }

    /// A fully defined shape.
    pub fn known(sizes: &[i64]) -> Self {
        Self { dimensions: Some(sizes.iter().copied().map(Some).collect()) }
    }

    /// The number of dimensions, if known.
    pub fn rank(&self) -> Option<usize> {
        self.dimensions.as_ref().map(Vec::len)
    }

    /// True if a tensor of these sizes matches this shape.
    pub fn allows(&self, sizes: &[i64]) -> bool {
        let Some(dimensions) = &self.dimensions else { return true };
        dimensions.len() == sizes.len()
            && dimensions.iter().zip(sizes).all(|(d, &size)| d.is_none_or(|d| d == size))
    }

    /// All sizes, if all are known.
    pub fn sizes(&self) -> Option<Vec<i64>> {
        self.dimensions.as_ref()?.iter().copied().collect()
    }
}

impl fmt::Display for PartialShape {
    /// Prints the shape as TensorFlow does: `[2,?]`, `<unknown>`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(dimensions) = &self.dimensions else { return f.write_str("<unknown>") };
        let sizes: Vec<String> =
            dimensions.iter().map(|d| d.map_or_else(|| "?".to_owned(), |size| size.to_string())).collect();
        write!(f, "[{}]", sizes.join(","))
    }
}
