//! Parts of tensors. Partitioned variables are stored, and may be restored, as boxes within the
//! whole tensor.

use crate::proto::{TensorSliceProto, slice_extent::Extent};
use bytes::Bytes;
use shape::{ArrayShape, Literal};
use support::{Error, Result};

/// Maximum number of boxes that one tensor may be stored in.
pub(super) const MAX_SLICES: usize = 4096;

/// A box within a tensor, given by its start and size in each dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) starts: Vec<i64>,
    pub(super) sizes: Vec<i64>,
}

impl Region {
    /// The region that covers a whole tensor.
    pub(super) fn whole(sizes: &[i64]) -> Self {
        Self { starts: vec![0; sizes.len()], sizes: sizes.to_vec() }
    }

    /// Converts a proto to a box within a tensor of these sizes. Returns `None` for an invalid box.
    /// A proto without extents means the whole tensor.
    pub(super) fn new(slice: &TensorSliceProto, sizes: &[i64]) -> Option<Self> {
        if slice.extent.is_empty() {
            return Some(Self::whole(sizes));
        }
        if slice.extent.len() != sizes.len() {
            return None;
        }
        let extents = slice.extent.iter().zip(sizes).map(|(extent, &size)| {
            // An extent without a length covers the whole dimension.
            let (start, length) = extent.length.map_or((0, size), |length| (extent.start, length));
            let fits = start >= 0 && length >= 0 && start.checked_add(length)? <= size;
            fits.then_some((start, length))
        });
        let extents: Vec<(i64, i64)> = extents.collect::<Option<_>>()?;
        let (starts, sizes) = extents.into_iter().unzip();
        Some(Self { starts, sizes })
    }

    /// Number of elements. Cannot overflow, because the region lies within a tensor.
    pub(super) fn count(&self) -> i64 {
        self.sizes.iter().product()
    }

    fn overlaps(&self, other: &Self) -> bool {
        let dimensions = self.starts.iter().zip(&self.sizes).zip(other.starts.iter().zip(&other.sizes));
        dimensions.into_iter().all(|((a, n), (b, m))| a < &(b + m) && b < &(a + n))
    }
}

/// True if the regions cover a tensor and each element exactly once.
pub(super) fn tile(regions: &[Region], sizes: &[i64]) -> bool {
    let total: i64 = sizes.iter().product();
    let covered: i128 = regions.iter().map(|region| i128::from(region.count())).sum();
    let disjoint = || {
        let pairs = regions.iter().enumerate();
        pairs.into_iter().all(|(i, a)| !regions[..i].iter().any(|b| a.overlaps(b)))
    };
    covered == i128::from(total) && disjoint()
}

/// Joins parts that [`tile`] a tensor. The bytes of each part are those of its region.
pub(super) fn join(shape: &ArrayShape, parts: &[(Region, Bytes)]) -> Result<Literal> {
    let mut data = Vec::new();
    data.try_reserve_exact(shape.byte_size() as usize)
        .map_err(|_| Error::invalid(format!("out of memory: cannot allocate {shape}")))?;
    data.resize(shape.byte_size() as usize, 0);
    let sizes = shape.sizes();
    for (region, bytes) in parts {
        for_rows(&sizes, region, shape.element_type.byte_size(), |whole, part| {
            data[whole].copy_from_slice(&bytes[part]);
        });
    }
    Literal::from_bytes(shape.clone(), data.into())
        .ok_or_else(|| Error::internal("the byte count of a joined tensor does not match its shape"))
}

/// Copies a region out of a tensor.
pub(super) fn cut(whole: &Literal, region: &Region) -> Result<Literal> {
    let shape = whole.array_shape();
    let sizes = shape.sizes();
    if region.sizes == sizes {
        return Ok(whole.clone());
    }
    let part = ArrayShape::new(shape.element_type, &region.sizes);
    let mut data = vec![0; part.byte_size() as usize];
    for_rows(&sizes, region, shape.element_type.byte_size(), |from, to| {
        data[to].copy_from_slice(&whole.bytes()[from]);
    });
    Literal::from_bytes(part, data.into())
        .ok_or_else(|| Error::internal("the byte count of a part does not match its shape"))
}

/// Calls `copy` with the byte ranges of each row of a region, in the whole tensor and in the region
/// itself.
fn for_rows(
    sizes: &[i64],
    region: &Region,
    element: usize,
    mut copy: impl FnMut(std::ops::Range<usize>, std::ops::Range<usize>),
) {
    if region.count() == 0 {
        return;
    }
    let Some((&length, outer)) = region.sizes.split_last() else { return copy(0..element, 0..element) };
    let row = length as usize * element;
    let mut index = vec![0; outer.len()];
    let mut done = 0;
    loop {
        let position = index.iter().chain([&0]).zip(&region.starts).zip(sizes);
        let linear = position.fold(0, |at, ((i, start), size)| at * size + i + start);
        let whole = linear as usize * element;
        copy(whole..whole + row, done..done + row);
        done += row;
        if !shape::index::advance(outer, &mut index) {
            return;
        }
    }
}

/// Parses an op's `shape_and_slice`: the sizes of the whole tensor, then the box, as in `10 4
/// 0,5:-`. Returns `None` for malformed text, and for an empty string.
pub(super) fn parse(text: &str) -> Option<(Vec<i64>, TensorSliceProto)> {
    let mut words: Vec<&str> = text.split_ascii_whitespace().collect();
    let slice = words.pop()?;
    let sizes = words.into_iter().map(|word| word.parse().ok()).collect::<Option<Vec<i64>>>()?;
    let extent = |text: &str| match text.split_once(',') {
        _ if text == "-" => Some(Extent { start: 0, length: None }),
        Some((start, length)) => {
            Some(Extent { start: start.parse().ok()?, length: Some(length.parse().ok()?) })
        }
        None => None,
    };
    let extent = slice.split(':').map(extent).collect::<Option<Vec<_>>>()?;
    (extent.len() == sizes.len()).then_some((sizes, TensorSliceProto { extent }))
}

/// Formats a box in the notation that [`parse`] reads.
pub(super) fn text(sizes: &[i64], slice: &TensorSliceProto) -> String {
    let sizes: String = sizes.iter().map(|size| format!("{size} ")).collect();
    let extents = slice.extent.iter().map(|extent| match extent.length {
        None => "-".to_owned(),
        Some(length) => format!("{},{length}", extent.start),
    });
    sizes + &extents.collect::<Vec<_>>().join(":")
}

/// Key under which a checkpoint stores a box of a tensor: the name, the rank, and the extents, in
/// an order-preserving encoding ("ordered code").
pub(super) fn key(name: &str, slice: &TensorSliceProto) -> Vec<u8> {
    let mut key = vec![0];
    for &byte in name.as_bytes() {
        key.push(byte);
        match byte {
            0 => key.push(0xff),
            0xff => key.push(0),
            _ => {}
        }
    }
    key.extend([0, 1]);
    let rank = (slice.extent.len() as u64).to_be_bytes();
    let rank = &rank[rank.iter().take_while(|&&byte| byte == 0).count()..];
    key.push(rank.len() as u8);
    key.extend_from_slice(rank);
    for extent in &slice.extent {
        push_signed(&mut key, extent.start);
        push_signed(&mut key, extent.length.unwrap_or(-1));
    }
    key
}

/// Appends a signed number. The number of leading one bits is the number of bytes, and the
/// remaining bits hold the number. All bits are inverted for negative numbers.
fn push_signed(key: &mut Vec<u8>, value: i64) {
    let magnitude = if value < 0 { !value } else { value };
    let bits = 64 - magnitude.leading_zeros() as usize;
    let length = bits / 7 + 1;
    let mut bytes = [if value < 0 { 0xff } else { 0 }; 10];
    bytes[2..].copy_from_slice(&value.to_be_bytes());
    let bytes = &mut bytes[10 - length..];
    let header = !(0xffffu32 >> length) as u16;
    bytes[0] ^= (header >> 8) as u8;
    if length > 1 {
        bytes[1] ^= header as u8;
    }
    key.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(value: i64) -> Vec<u8> {
        let mut key = Vec::new();
        push_signed(&mut key, value);
        key
    }

    /// The first line is from a checkpoint written by TensorFlow.
    #[test]
    fn numbers_are_encoded_in_their_order() {
        assert_eq!([encoded(0), encoded(67), encoded(2), encoded(-1)].concat(), b"\x80\xc0\x43\x82\x7f");
        assert_eq!(encoded(63), [0xbf]);
        assert_eq!(encoded(64), [0xc0, 0x40]);
        assert_eq!(encoded(-64), [0x40]);
        assert_eq!(encoded(-65), [0x3f, 0xbf]);
        assert_eq!(encoded(i64::MAX), [0xff, 0xc0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
        let mut numbers: Vec<i64> = (0..63).flat_map(|b| [1i64 << b, (1 << b) - 1, -(1 << b)]).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert!(numbers.windows(2).all(|pair| encoded(pair[0]) < encoded(pair[1])));
    }

    #[test]
    fn boxes_are_read_as_ops_write_them() {
        let (sizes, slice) = parse("10 4 0,5:-").unwrap();
        assert_eq!(sizes, [10, 4]);
        let region = Region::new(&slice, &sizes).unwrap();
        assert_eq!((region.starts, region.sizes), (vec![0, 0], vec![5, 4]));
        assert_eq!(parse(""), None);
        assert_eq!(parse("10 4 0,5"), None);
        assert_eq!(parse("10 x,5"), None);
        let (sizes, slice) = parse("10 8,3").unwrap();
        assert_eq!(Region::new(&slice, &sizes), None);
    }

    #[test]
    fn overlaps_and_gaps_do_not_tile() {
        let region =
            |starts: [i64; 2], sizes: [i64; 2]| Region { starts: starts.into(), sizes: sizes.into() };
        let left = region([0, 0], [2, 1]);
        assert!(tile(&[left.clone(), region([0, 1], [2, 2])], &[2, 3]));
        assert!(!tile(&[left.clone(), region([0, 1], [2, 1])], &[2, 3]));
        assert!(!tile(&[left, region([0, 0], [2, 2])], &[2, 3]));
    }
}
