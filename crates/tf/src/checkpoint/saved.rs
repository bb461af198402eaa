//! What is saved: whole tensors, and parts of tensors that several savers, or several variables, store together.

use super::Value;
use super::slices::{self, Region};
use crate::DataType;
use crate::proto::TensorSliceProto;
use support::{Error, Result};

/// A tensor that is saved, or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Saved {
    /// The name of the whole tensor.
    pub name: String,
    /// Which part of the tensor it is, as ops say it (`10 4 0,5:-`: sizes of the whole, then start and length in each
    /// dimension). Empty is the whole.
    pub shape_and_slice: String,
    /// Its elements.
    pub value: Value,
}

impl Saved {
    /// A whole tensor.
    pub fn whole(name: &str, value: Value) -> Self {
        Self { name: name.to_owned(), shape_and_slice: String::new(), value }
    }
}

/// A part with the tensor that it belongs to.
pub(super) struct Part {
    /// The sizes of the whole.
    pub(super) sizes: Vec<i64>,
    pub(super) slice: TensorSliceProto,
    pub(super) region: Region,
}

/// Something saved, with the part that it is.
pub(super) struct Key<'s> {
    pub(super) saved: &'s Saved,
    pub(super) part: Option<Part>,
}

/// What is saved by name, and by the order given where a name has several parts. An error unless all parts of a name are boxes of
/// one tensor, of one type, each at its own place.
pub(super) fn in_order(tensors: &[Saved]) -> Result<Vec<Key<'_>>> {
    let keys = tensors.iter().map(|saved| key(saved).map_err(|e| e.context(format!("'{}'", saved.name))));
    let mut keys: Vec<Key<'_>> = keys.collect::<Result<_>>()?;
    keys.sort_by(|a, b| a.saved.name.cmp(&b.saved.name));
    for same in keys.chunk_by(|a, b| a.saved.name == b.saved.name) {
        let (first, rest) = same.split_first().ok_or_else(|| Error::internal("a name without a tensor"))?;
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
        return Err(Error::invalid(format!("{:?} cannot be the name of a checkpoint's tensor", saved.name)));
    }
    if saved.shape_and_slice.is_empty() {
        return Ok(Key { saved, part: None });
    }
    let text = &saved.shape_and_slice;
    let (sizes, slice) =
        slices::parse(text).ok_or_else(|| Error::invalid(format!("the part '{text}' is not understood")))?;
    let count = shape::index::element_count(&sizes).filter(|_| sizes.iter().all(|&size| size >= 0));
    let region = count.and_then(|_| Region::new(&slice, &sizes));
    let region =
        region.ok_or_else(|| Error::invalid(format!("the part '{text}' lies outside of the tensor")))?;
    if region.sizes != saved.value.sizes() {
        return Err(Error::invalid(format!(
            "the part '{text}' has other sizes than the tensor that is saved, {:?}",
            saved.value.sizes()
        )));
    }
    Ok(Key { saved, part: Some(Part { sizes, slice, region }) })
}
