//! Saved data: whole tensors, and parts of tensors that several savers or several variables store
//! together.

use super::Value;
use super::slices::{self, Region};
use crate::DataType;
use crate::proto::TensorSliceProto;
use support::{Error, Result};

/// A saved tensor, or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Saved {
    /// The name of the whole tensor.
    pub name: String,
    /// Part of the tensor, in the notation of ops: `10 4 0,5:-` lists the sizes of the whole
    /// tensor, then start and length in each dimension. An empty string means the whole tensor.
    pub shape_and_slice: String,
    /// Elements of the tensor or part.
    pub value: Value,
}

impl Saved {
    /// Creates the entry of a whole tensor.
    pub fn whole(name: &str, value: Value) -> Self {
        Self { name: name.to_owned(), shape_and_slice: String::new(), value }
    }
}

/// Location of a part within its tensor.
pub(super) struct Part {
    /// Sizes of the whole tensor.
    pub(super) sizes: Vec<i64>,
    pub(super) slice: TensorSliceProto,
    pub(super) region: Region,
}

/// A saved entry, with its location if it is a part.
pub(super) struct Key<'s> {
    pub(super) saved: &'s Saved,
    pub(super) part: Option<Part>,
}

/// Sorts saved entries by name. Parts of one tensor keep their order.
///
/// # Errors
/// Fails unless all parts of a name are distinct boxes of one tensor and have the same type.
pub(super) fn in_order(tensors: &[Saved]) -> Result<Vec<Key<'_>>> {
    let keys = tensors.iter().map(|saved| key(saved).map_err(|e| e.context(format!("'{}'", saved.name))));
    let mut keys: Vec<Key<'_>> = keys.collect::<Result<_>>()?;
    keys.sort_by(|a, b| a.saved.name.cmp(&b.saved.name));
    for same in keys.chunk_by(|a, b| a.saved.name == b.saved.name) {
        let (first, rest) =
            same.split_first().ok_or_else(|| Error::internal("found a name without a tensor"))?;
        let name = &first.saved.name;
        for (k, key) in rest.iter().enumerate() {
            let (known, found) = (first.whole(), key.whole());
            if known != found {
                return Err(Error::invalid(format!(
                    "'{name}' is saved as {} {:?} and as {} {:?}",
                    known.0, known.1, found.0, found.1
                )));
            }
            let region = |key: &Key<'_>| key.part.as_ref().map(|part| part.region.clone());
            let is_other = |before: &Key<'_>| match (region(before), region(key)) {
                (Some(one), Some(other)) => one != other && one.sizes != known.1 && other.sizes != known.1,
                _ => false,
            };
            if !same[..=k].iter().all(is_other) {
                return Err(Error::invalid(format!("'{name}' is saved twice")));
            }
        }
    }
    Ok(keys)
}

impl Key<'_> {
    /// Type and sizes of the whole tensor.
    fn whole(&self) -> (DataType, Vec<i64>) {
        let sizes = self.part.as_ref().map_or_else(|| self.saved.value.sizes(), |part| part.sizes.clone());
        (self.saved.value.data_type(), sizes)
    }
}

fn key(saved: &Saved) -> Result<Key<'_>> {
    if saved.name.is_empty() || saved.name.starts_with('\0') {
        return Err(Error::invalid(format!("{:?} is not a valid tensor name in a checkpoint", saved.name)));
    }
    if saved.shape_and_slice.is_empty() {
        return Ok(Key { saved, part: None });
    }
    let text = &saved.shape_and_slice;
    let (sizes, slice) = slices::parse(text)
        .ok_or_else(|| Error::invalid(format!("malformed part '{text}'; expected the form '10 4 0,5:-'")))?;
    let count = shape::index::element_count(&sizes).filter(|_| sizes.iter().all(|&size| size >= 0));
    let region = count.and_then(|_| Region::new(&slice, &sizes));
    let region =
        region.ok_or_else(|| Error::invalid(format!("the part '{text}' lies outside the tensor")))?;
    if region.sizes != saved.value.sizes() {
        return Err(Error::invalid(format!(
            "the sizes of the part '{text}' differ from those of the saved tensor, {:?}",
            saved.value.sizes()
        )));
    }
    Ok(Key { saved, part: Some(Part { sizes, slice, region }) })
}
