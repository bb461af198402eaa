//! Constant weights in few bits, which tiles widen in registers: their form in panels, and the
//! panels' bytes.
//!
//! Numbers of 8 and 16 bits take the place of single summands in a panel. Eight summands of four
//! bits share 32 bits, the first in the lowest ones, signed ones increased by 8. If blocks of
//! summands have scales, each block of a panel ends with the scales of its columns.

use super::extents::DotShape;
use super::operands::{constant_operand, is_read_once};
use super::panels::{PanelLayout, converted};
use super::tile::{self, Tile};
use crate::fusion::{Fusion, Position};
use bytes::Bytes;
use hlo::{InstructionId, NarrowWeights};
use shape::{ArrayShape, Literal, PrimitiveType};
use support::{Error, Result};
use target::{Architecture, Target};

/// Summands of four bits that share 32 bits.
pub const NIBBLES: i64 = 8;

/// Added to signed numbers of four bits, so that they are not negative.
const NIBBLE_BIAS: u8 = 8;

/// Weights in few bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights {
    /// Type of the numbers in the panels.
    pub stored: PrimitiveType,
    /// Blocks of summands with a scale for each column.
    pub blocks: Option<Blocks>,
    /// True if all numbers and scales are finite.
    pub is_finite: bool,
}

/// Blocks of summands with a scale for each column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Summands of a block.
    pub summands: i64,
    /// Type of the scales in the panels.
    pub scale: PrimitiveType,
}

/// The arrays from which the panels are made.
#[derive(Clone, Debug)]
pub(crate) struct WeightArrays<'m> {
    /// Index of the fusion's operand that is the numbers.
    pub(crate) operand: usize,
    numbers: &'m Literal,
    scales: Option<ScaleArray>,
}

#[derive(Clone, Debug)]
struct ScaleArray {
    operand: usize,
    /// The scales as they are in the program.
    source: Bytes,
    /// The scales, in the type of the panels.
    values: Literal,
    /// The dimensions of the numbers: their sizes, and the distances of the scales of neighbors.
    dimensions: Vec<(usize, usize)>,
}

impl Weights {
    /// Returns the weights of a dot whose right operand the kernel computes; `None` if the right
    /// operand is in memory.
    pub(crate) fn of<'m>(
        fusion: &Fusion<'m>,
        dot: InstructionId,
        shape: DotShape,
    ) -> Result<Option<(Self, WeightArrays<'m>)>> {
        if let Position::Operand(_) = fusion.position(fusion.body[dot].operands()[1]) {
            return Ok(None);
        }
        let form = NarrowWeights::of(fusion.body, dot);
        let form = form.ok_or_else(|| Error::internal("operand of a dot is not in memory"))?;
        let constant = |id: InstructionId| match fusion.position(id) {
            Position::Operand(number) if is_read_once(fusion, number) => {
                constant_operand(fusion, number).map(|literal| (number, literal))
            }
            _ => None,
        };
        let missing = || Error::internal("weights of a dot are not constants that only it reads");
        let (operand, numbers) = constant(form.stored).ok_or_else(missing)?;
        let mut scales = None;
        let mut blocks = None;
        if let Some(of_blocks) = form.scales {
            let (operand, values) = constant(of_blocks.values).ok_or_else(missing)?;
            let (source, values) = (values.bytes().clone(), narrowed(values));
            let scale = values.array_shape().element_type;
            blocks = Some(Blocks { summands: of_blocks.block, scale });
            let sizes = fusion.body[form.stored].shape().expect_array().sizes();
            let dimensions = sizes.iter().zip(&of_blocks.strides);
            let dimensions = dimensions.map(|(&size, &stride)| (size as usize, stride as usize)).collect();
            scales = Some(ScaleArray { operand, source, values, dimensions });
        }
        let run = blocks.map_or(shape.k, |blocks| blocks.summands);
        let stored = match numbers.array_shape().element_type {
            nibble @ (PrimitiveType::S4 | PrimitiveType::U4) if run % NIBBLES == 0 && shape.n >= NIBBLES => {
                nibble
            }
            PrimitiveType::S4 => PrimitiveType::S8,
            PrimitiveType::U4 => PrimitiveType::U8,
            other => other,
        };
        let is_finite = is_finite(numbers) && scales.as_ref().is_none_or(|scales| is_finite(&scales.values));
        Ok(Some((Self { stored, blocks, is_finite }, WeightArrays { operand, numbers, scales })))
    }

    /// Limits the rows and sets of a tile if there are few registers. Besides its sums, each vector
    /// of columns takes one for what is stored, one for the widened numbers, and one each for
    /// scales and for numbers of four bits.
    pub(crate) fn limited(self, tile: Tile, m: i64, target: &Target) -> Tile {
        const MANY_REGISTERS: u32 = 32;
        if target.vector_registers >= MANY_REGISTERS {
            return tile;
        }
        let is_x86 = target.triple.architecture == Architecture::X86_64;
        let others = if target.has_fma && is_x86 { 3 } else { 5 };
        let of_vector = 2 + u32::from(self.blocks.is_some()) + u32::from(self.are_nibbles());
        let spare = target.vector_registers.saturating_sub(others + of_vector * tile.vectors);
        let tile = tile::with_rows(tile, m, (spare / tile.vectors.max(1)).clamp(1, 8));
        Tile { k_split: tile.k_split.min(2), ..tile }
    }

    /// True if eight summands share 32 bits.
    pub fn are_nibbles(self) -> bool {
        matches!(self.stored, PrimitiveType::S4 | PrimitiveType::U4)
    }

    /// Number that a stored nibble is larger than the weight.
    pub fn bias(self) -> u8 {
        if self.stored == PrimitiveType::S4 { NIBBLE_BIAS } else { 0 }
    }

    /// Summands in one row of a panel.
    pub fn summands_per_row(self) -> i64 {
        if self.are_nibbles() { NIBBLES } else { 1 }
    }

    /// The layout of panels with as many columns as those of the sums' type.
    pub(crate) fn panels(self, shape: DotShape, accumulator: PrimitiveType) -> PanelLayout {
        let per_row = self.summands_per_row();
        let layout = PanelLayout::of_constant(shape.k / per_row, shape.n, accumulator.byte_size());
        PanelLayout {
            element_bytes: if self.are_nibbles() { 4 } else { self.stored.byte_size() as i64 },
            block_rows: self.blocks.map_or(0, |blocks| blocks.summands / per_row),
            scale_bytes: self.blocks.map_or(0, |blocks| blocks.scale.byte_size() as i64),
            ..layout
        }
    }

    /// Fills a panel. `ks` are the positions of the summands among the numbers, and `ns` those of
    /// the panel's columns.
    pub(crate) fn fill(
        self,
        packed: &mut [u8],
        layout: PanelLayout,
        arrays: &WeightArrays<'_>,
        ks: &[usize],
        ns: &[usize],
    ) {
        let (numbers, size) = (arrays.numbers.bytes(), layout.element_bytes as usize);
        let rows = if layout.block_rows > 0 { layout.block_rows } else { layout.rows } as usize;
        let per_row = self.summands_per_row() as usize;
        let block_bytes = layout.block_bytes().max(rows as i64 * layout.row_bytes()) as usize;
        let blocks = packed.chunks_exact_mut(block_bytes.max(1)).zip(ks.chunks(rows * per_row));
        for (block, ks) in blocks {
            let (of_rows, of_scales) = block.split_at_mut(rows * layout.row_bytes() as usize);
            for (row, ks) in of_rows.chunks_exact_mut(layout.row_bytes() as usize).zip(ks.chunks(per_row)) {
                for (to, n) in row.chunks_exact_mut(size).zip(ns) {
                    if self.are_nibbles() {
                        let nibble = |k: &usize| u32::from((numbers[k + n] ^ self.bias()) & 15);
                        let word = ks.iter().rev().fold(0, |word, k| word << 4 | nibble(k));
                        to.copy_from_slice(&word.to_le_bytes());
                    } else {
                        let from = (ks[0] + n) * size;
                        to.copy_from_slice(&numbers[from..from + size]);
                    }
                }
            }
            let Some(scales) = &arrays.scales else { continue };
            let size = layout.scale_bytes as usize;
            for (to, n) in of_scales.chunks_exact_mut(size).zip(ns) {
                let from = scales.place(ks[0] + n) * size;
                to.copy_from_slice(&scales.values.bytes()[from..from + size]);
            }
        }
    }
}

impl WeightArrays<'_> {
    /// Index of the fusion's operand that is the scales.
    pub(crate) fn scale_operand(&self) -> Option<usize> {
        self.scales.as_ref().map(|scales| scales.operand)
    }

    /// The bytes from which panels are made.
    pub(crate) fn sources(&self) -> Vec<&Bytes> {
        let scales = self.scales.as_ref().map(|scales| &scales.source);
        std::iter::once(self.numbers.bytes()).chain(scales).collect()
    }

    /// The dimensions of the numbers: their sizes, and the distances of the scales of neighbors.
    pub(crate) fn scale_dimensions(&self) -> &[(usize, usize)] {
        self.scales.as_ref().map_or(&[], |scales| &scales.dimensions)
    }
}

impl ScaleArray {
    /// The place of the scale of the number at a position.
    fn place(&self, mut position: usize) -> usize {
        let mut place = 0;
        for &(size, stride) in self.dimensions.iter().rev() {
            place += position % size * stride;
            position /= size;
        }
        place
    }
}

/// The same scales in the narrowest type that represents all of them. Halving their bytes matters
/// where a block has few bits.
fn narrowed(scales: &Literal) -> Literal {
    let shape = scales.array_shape();
    let as_type = |literal: &Literal, element_type| {
        Literal::from_scalars(ArrayShape::new(element_type, &shape.sizes()), literal.scalars())
    };
    for narrow in [PrimitiveType::F16, PrimitiveType::Bf16] {
        let candidate = as_type(scales, narrow);
        if shape.element_type == PrimitiveType::F32
            && is_finite(&candidate)
            && converted(&candidate, PrimitiveType::F32).bytes() == scales.bytes()
        {
            return candidate;
        }
    }
    scales.clone()
}

/// True if all elements are finite.
fn is_finite(literal: &Literal) -> bool {
    let is_float = literal.array_shape().element_type.is_floating_point();
    !is_float || literal.scalars().all(|scalar| scalar.as_f64().is_some_and(f64::is_finite))
}

#[cfg(test)]
mod tests {
    use super::*;
    use PrimitiveType::{F32, S4};

    #[test]
    fn nibbles_share_words_and_blocks_end_with_their_scales() {
        // Two blocks of eight summands, and two columns.
        let numbers: Vec<i8> = (0..32).map(|i| i % 16 - 8).collect();
        let bytes: Vec<u8> = numbers.iter().map(|&n| n as u8).collect();
        let literal = Literal::from_bytes(ArrayShape::new(S4, &[2, 8, 2]), bytes.into()).expect("32 bytes");
        let values = narrowed(&Literal::from_elements(&[2, 2], &[0.5f32, 2.0, 0.25, -1.0]));
        assert_eq!(values.array_shape().element_type, PrimitiveType::F16);
        let dimensions = vec![(2, 2), (8, 0), (2, 1)];
        let source = values.bytes().clone();
        let scales = Some(ScaleArray { operand: 2, source, values, dimensions });
        let arrays = WeightArrays { operand: 1, numbers: &literal, scales };
        let blocks = Some(Blocks { summands: 8, scale: PrimitiveType::F16 });
        let weights = Weights { stored: S4, blocks, is_finite: true };
        let shape = DotShape { batch: 1, m: 1, n: 2, k: 16 };
        let layout = weights.panels(shape, F32);
        assert_eq!((layout.width, layout.rows, layout.block_bytes(), layout.panel_bytes()), (2, 2, 12, 24));
        let mut packed = vec![0; 24];
        let ks: Vec<usize> = (0..16).map(|k| 2 * k).collect();
        weights.fill(&mut packed, layout, &arrays, &ks, &[0, 1]);
        // Column 0 of block 0 has -8, -6, .. 6, stored as 0, 2, .. 14.
        assert_eq!(packed[..4], 0xeca8_6420_u32.to_le_bytes());
        assert_eq!(packed[4..8], 0xfdb9_7531_u32.to_le_bytes());
        assert_eq!(packed[8..12], [0x00, 0x38, 0x00, 0x40]);
        assert_eq!(packed[20..24], [0x00, 0x34, 0x00, 0xbc]);
    }

    #[test]
    fn scales_stay_wide_if_they_would_be_rounded() {
        let of = |value: f32| narrowed(&Literal::from_elements(&[1], &[value])).array_shape().element_type;
        assert_eq!(of(0.1), F32);
        assert_eq!(of(1.0e30), F32);
        assert_eq!(of(f32::from_bits(0x7149_0000)), PrimitiveType::Bf16);
        assert_eq!(of(0.125), PrimitiveType::F16);
    }
}
