//! Sparse constants: dimensions in an order of their own, each of them dense or a list of indices
//! for each index of the dimension before (the format of the Tensor Algebra Compiler).
//!
//! Dimensions may be divided into blocks, which are further dimensions. Every index is checked.

use flatbuffer::Table;
use support::{Error, Result};

/// Largest dense size in bytes.
const MOST_BYTES: usize = 1 << 30;

/// A dimension of the stored array.
enum Dimension {
    Dense(usize),
    /// The indices for index k of the dimension before are those from `segments[k]` to
    /// `segments[k + 1]`.
    Sparse {
        segments: Vec<usize>,
        indices: Vec<usize>,
    },
}

/// A step along a dimension.
struct Level {
    dimension: Dimension,
    /// Number of indices.
    size: usize,
    /// Distance of the elements in the dense array.
    stride: usize,
}

fn wrong(what: &str) -> Error {
    Error::invalid(format!("its sparsity is damaged: {what}"))
}

/// The dense contents of a constant with elements of `width` bytes.
pub(crate) fn dense(table: &Table<'_>, stored: &[u8], sizes: &[i64], width: usize) -> Result<Vec<u8>> {
    let count = sizes.iter().try_fold(width, |bytes, &size| bytes.checked_mul(usize::try_from(size).ok()?));
    let bytes = count.filter(|bytes| *bytes <= MOST_BYTES).ok_or_else(|| {
        Error::unsupported(format!("a sparse tensor of more than {MOST_BYTES} bytes is not supported"))
    })?;
    let levels = levels(table, sizes)?;
    let mut dense = vec![0; bytes];
    let mut elements = stored.chunks_exact(width);
    fill(&levels, 0, 0, &mut elements, &mut dense)?;
    match elements.next() {
        Some(_) => Err(wrong("there are more elements than indices")),
        None => Ok(dense),
    }
}

/// Copies the elements of one index of the level before, whose place in the dense array is known.
fn fill(
    levels: &[Level],
    before: usize,
    place: usize,
    elements: &mut std::slice::ChunksExact<'_, u8>,
    dense: &mut [u8],
) -> Result<()> {
    let Some((level, inner)) = levels.split_first() else {
        let element = elements.next().ok_or_else(|| wrong("there are fewer elements than indices"))?;
        let from = place * element.len();
        let target =
            dense.get_mut(from..from + element.len()).ok_or_else(|| wrong("an index is too large"))?;
        target.copy_from_slice(element);
        return Ok(());
    };
    match &level.dimension {
        Dimension::Dense(size) => {
            for index in 0..*size {
                fill(inner, before * size + index, place + index * level.stride, elements, dense)?;
            }
        }
        Dimension::Sparse { segments, indices } => {
            let ends = segments.get(before..before + 2).ok_or_else(|| wrong("there are too few segments"))?;
            let own = indices.get(ends[0]..ends[1]).ok_or_else(|| wrong("a segment is out of range"))?;
            for (position, &index) in (ends[0]..).zip(own) {
                if index >= level.size {
                    return Err(wrong("an index is too large"));
                }
                fill(inner, position, place + index * level.stride, elements, dense)?;
            }
        }
    }
    Ok(())
}

/// The stored dimensions, outermost first.
fn levels(table: &Table<'_>, sizes: &[i64]) -> Result<Vec<Level>> {
    let number = |number: i32| usize::try_from(number).map_err(|_| wrong("a number is negative"));
    let order: Vec<usize> = table.i32s(0)?.into_iter().map(number).collect::<Result<_>>()?;
    let blocks: Vec<usize> = table.i32s(1)?.into_iter().map(number).collect::<Result<_>>()?;
    let rank = sizes.len();
    let mut dimensions = Vec::new();
    for dimension in table.tables(2)? {
        dimensions.push(self::dimension(&dimension?)?);
    }
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if !sorted.into_iter().eq(0..rank + blocks.len()) || dimensions.len() != order.len() {
        return Err(wrong("its order is not one of all dimensions"));
    }
    // Sizes and distances in the dense array by number: the dimensions, then those within blocks.
    let mut strides = vec![1; rank];
    for k in (1..rank).rev() {
        strides[k - 1] = strides[k] * sizes[k] as usize;
    }
    let mut extents: Vec<usize> = sizes.iter().map(|&size| size as usize).collect();
    for (k, &blocked) in blocks.iter().enumerate() {
        let position = order.iter().position(|&dimension| dimension == rank + k);
        let size = match position.map(|position| &dimensions[position]) {
            Some(Dimension::Dense(size)) if *size > 0 => *size,
            _ => return Err(wrong("a block is not dense")),
        };
        if blocked >= rank || !extents[blocked].is_multiple_of(size) || blocks[..k].contains(&blocked) {
            return Err(wrong("blocks do not divide a dimension"));
        }
        extents[blocked] /= size;
        extents.push(size);
        strides.push(strides[blocked]);
        strides[blocked] *= size;
    }
    let level = |(number, dimension): (usize, Dimension)| {
        if matches!(&dimension, Dimension::Dense(size) if *size != extents[number]) {
            return Err(wrong("a dimension has the wrong size"));
        }
        Ok(Level { dimension, size: extents[number], stride: strides[number] })
    };
    order.iter().copied().zip(dimensions).map(level).collect()
}

fn dimension(table: &Table<'_>) -> Result<Dimension> {
    const DENSE: i8 = 0;
    const SPARSE: i8 = 1;
    match table.i8(0, 0)? {
        DENSE => {
            let size = usize::try_from(table.i32(1, 0)?).map_err(|_| wrong("a size is negative"))?;
            Ok(Dimension::Dense(size))
        }
        SPARSE => Ok(Dimension::Sparse { segments: numbers(table, 2)?, indices: numbers(table, 4)? }),
        _ => Err(Error::unsupported("the format of a sparse dimension is unknown")),
    }
}

/// A vector of one of three widths, whose kind is a field of its own.
fn numbers(table: &Table<'_>, field: usize) -> Result<Vec<usize>> {
    let Some(vector) = table.table(field + 1)? else { return Ok(Vec::new()) };
    let wide: Vec<i64> = match table.u8(field, 0)? {
        1 => vector.i32s(0)?.into_iter().map(i64::from).collect(),
        2 => vector.u16s(0)?.into_iter().map(i64::from).collect(),
        3 => vector.u8s(0)?.into_iter().map(i64::from).collect(),
        _ => return Err(wrong("its indices have an unknown type")),
    };
    wide.into_iter()
        .map(|number| usize::try_from(number).map_err(|_| wrong("an index is negative")))
        .collect()
}
