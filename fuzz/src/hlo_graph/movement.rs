//! Instructions that move elements: reshapes, transposes, broadcasts, slices, padding,
//! concatenations.

use super::Writer;
use hlo::{InstructionId, Op, PaddingConfig, PaddingDimension, SliceDimension};
use shape::{ArrayShape, PrimitiveType};

impl Writer<'_> {
    pub(super) fn movement(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        match self.draw.below(16) {
            0..=2 => self.reshape(x, array),
            3..=5 => self.transpose(x),
            6 | 7 => self.broadcast(x, array),
            8 | 9 => self.slice(x, array),
            10 | 11 => self.pad(x, array),
            12 | 13 => self.concatenate(x, array),
            14 => {
                let dimensions = self.draw.subset(array.rank());
                self.add(Op::Reverse { dimensions }, &[x])
            }
            _ if array.rank() > 0 && array.element_type != PrimitiveType::Pred => {
                let iota_dimension = self.draw.below(array.rank());
                self.add_shaped(array.clone(), Op::Iota { iota_dimension }, &[])
            }
            _ => None,
        }
    }

    /// Adds, drops, splits, or merges dimensions.
    pub(super) fn reshape(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        let mut sizes = array.sizes();
        match self.draw.below(5) {
            0 => sizes.insert(self.draw.below(sizes.len() + 1), 1),
            1 => sizes.retain(|&size| size != 1),
            2 if sizes.len() > 1 => {
                let at = self.draw.below(sizes.len() - 1);
                let merged = sizes.remove(at + 1);
                sizes[at] *= merged;
            }
            3 if !sizes.is_empty() => {
                let at = self.draw.below(sizes.len());
                let factor = self.draw.choose(&[2, 3, 4, 8]);
                if sizes[at] % factor == 0 {
                    sizes[at] /= factor;
                    sizes.insert(at + self.draw.below(2), factor);
                }
            }
            _ => sizes = vec![sizes.iter().product()],
        }
        self.add_shaped(ArrayShape::new(array.element_type, &sizes), Op::Reshape {}, &[x])
    }

    pub(super) fn transpose(&mut self, x: InstructionId) -> Option<InstructionId> {
        let dimensions = self.draw.permutation(self.array(x).rank());
        self.add(Op::Transpose { dimensions }, &[x])
    }

    fn broadcast(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        let mut sizes = array.sizes();
        let mut dimensions: Vec<usize> = (0..sizes.len()).collect();
        for _ in 0..1 + self.draw.below(2) {
            let at = self.draw.below(sizes.len() + 1);
            sizes.insert(at, self.draw.size());
            dimensions.iter_mut().filter(|d| **d >= at).for_each(|d| *d += 1);
        }
        self.add_shaped(ArrayShape::new(array.element_type, &sizes), Op::Broadcast { dimensions }, &[x])
    }

    pub(super) fn slice(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        let slice = array.sizes().into_iter().map(|size| {
            let start = self.draw.between(0, size);
            let limit = self.draw.between(start, size);
            match self.draw.below(3) {
                0 => SliceDimension { start: 0, limit: size, stride: 1 },
                1 => SliceDimension { start: 0, limit: size, stride: self.draw.choose(&[1, 2, 3]) },
                _ => SliceDimension { start, limit, stride: self.draw.choose(&[1, 1, 2, 3, 5]) },
            }
        });
        let slice = slice.collect();
        self.add(Op::Slice { slice }, &[x])
    }

    pub(super) fn pad(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        let value = self.like(&ArrayShape::new(array.element_type, &[]));
        let dimensions = (0..array.rank()).map(|_| PaddingDimension {
            edge_padding_low: self.draw.choose(&[0, 0, 1, -1, 2, 7, -2]),
            edge_padding_high: self.draw.choose(&[0, 0, 1, -1, 5, -2]),
            interior_padding: self.draw.choose(&[0, 0, 0, 1, 2]),
        });
        let padding = PaddingConfig { dimensions: dimensions.collect() };
        self.add(Op::Pad { padding }, &[x, value])
    }

    /// Concatenates values that differ in the dimension, or two slices that may be adjacent.
    fn concatenate(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        if array.rank() == 0 {
            return None;
        }
        let dimension = self.draw.below(array.rank());
        if self.draw.once_in(2) {
            let mut operands = vec![x];
            for _ in 0..self.draw.below(4) {
                let mut sizes = array.sizes();
                if self.draw.once_in(2) {
                    sizes[dimension] = self.draw.size();
                }
                operands.push(self.like(&ArrayShape::new(array.element_type, &sizes)));
            }
            let first = self.draw.below(operands.len());
            operands.swap(0, first);
            return self.add(Op::Concatenate { dimension }, &operands);
        }
        let cut = self.draw.between(0, array.size(dimension));
        let part = |from: i64, to: i64| {
            let whole = |&limit: &i64| SliceDimension { start: 0, limit, stride: 1 };
            let mut slice: Vec<SliceDimension> = array.sizes().iter().map(whole).collect();
            slice[dimension] = SliceDimension { start: from, limit: to, stride: 1 };
            Op::Slice { slice }
        };
        let low = self.add(part(0, cut), &[x])?;
        let high = self.add(part(cut, array.size(dimension)), &[x])?;
        let operands = if self.draw.once_in(3) { [high, low] } else { [low, high] };
        self.add(Op::Concatenate { dimension }, &operands)
    }
}
