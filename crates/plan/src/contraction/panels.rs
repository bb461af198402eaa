//! Packed panels: their layout, and how constants are brought into it.

use super::tile;
use shape::{ArrayShape, Literal, PrimitiveType};
use support::for_each_chunk;

/// Layout of a matrix as panels of neighboring columns, `[panel][row][column]`. The last panel is
/// padded with zeros.
///
/// The plan packs constants in this layout, and kernels take the strides of panels from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PanelLayout {
    /// Rows of the matrix.
    pub rows: i64,
    /// Columns of the matrix, without padding.
    pub columns: i64,
    /// Columns of a panel.
    pub width: i64,
    /// Bytes of an element.
    pub element_bytes: i64,
    /// Rows before those of the matrix: sums of the columns.
    pub header: i64,
    /// Rows that are followed by the scales of their columns; 0 if there are no scales.
    pub block_rows: i64,
    /// Bytes of a scale.
    pub scale_bytes: i64,
}

impl PanelLayout {
    /// Panels of a constant matrix: one cache line wide, the same on every target.
    pub(crate) fn of_constant(rows: i64, columns: i64, element_bytes: usize) -> Self {
        let width = tile::panel(columns, element_bytes);
        Self {
            rows,
            columns,
            width,
            element_bytes: element_bytes as i64,
            header: 0,
            block_rows: 0,
            scale_bytes: 0,
        }
    }

    /// Number of panels.
    pub fn count(&self) -> i64 {
        (self.columns + self.width - 1) / self.width
    }

    /// Columns of all panels, with padding.
    pub fn padded_columns(&self) -> i64 {
        self.count() * self.width
    }

    /// Bytes from a row of a panel to the next row.
    pub fn row_bytes(&self) -> i64 {
        self.width * self.element_bytes
    }

    /// Bytes from a panel to the next panel.
    pub fn panel_bytes(&self) -> i64 {
        let blocks = if self.block_rows > 0 { self.rows / self.block_rows } else { 0 };
        (self.header + self.rows) * self.row_bytes() + blocks * self.width * self.scale_bytes
    }

    /// Bytes from a block of rows with scales to the next block; 0 if there are no scales.
    pub fn block_bytes(&self) -> i64 {
        self.block_rows * self.row_bytes() + self.width * self.scale_bytes
    }

    /// Bytes from the start of a panel to the first row of the matrix.
    pub fn header_bytes(&self) -> i64 {
        self.header * self.row_bytes()
    }

    /// Bytes of all panels.
    pub fn bytes(&self) -> i64 {
        self.count() * self.panel_bytes()
    }

    /// Bytes from the first element to a column of the first row.
    pub fn offset(&self, column: i64) -> i64 {
        column / self.width * self.panel_bytes() + column % self.width * self.element_bytes
    }
}

/// Bytes of packed panels that justify another thread.
const BYTES_PER_THREAD: usize = 2 << 20;

/// Calls `fill` with the index and the bytes of each panel of `size` bytes.
pub(super) fn for_each_panel(packed: &mut [u8], size: usize, fill: impl Fn(usize, &mut [u8]) + Sync) {
    let threads = packed.len() / BYTES_PER_THREAD;
    for_each_chunk(packed, size, threads, fill);
}

/// Converts a constant operand to the accumulator's type. That type is of the same kind and not
/// narrower, so the conversion is exact.
pub(super) fn converted(literal: &Literal, accumulator: PrimitiveType) -> Literal {
    let shape = literal.array_shape();
    if shape.element_type == accumulator {
        return literal.clone();
    }
    Literal::from_scalars(ArrayShape::new(accumulator, &shape.sizes()), literal.scalars())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_follow_in_their_panel_and_panels_after_all_rows() {
        let panels = PanelLayout::of_constant(3, 40, 4);
        assert_eq!((panels.width, panels.count(), panels.padded_columns()), (16, 3, 48));
        assert_eq!((panels.row_bytes(), panels.panel_bytes(), panels.bytes()), (64, 192, 576));
        assert_eq!([0, 1, 15, 16, 39].map(|column| panels.offset(column)), [0, 4, 60, 192, 2 * 192 + 28]);
        // A matrix narrower than a line has panels as wide as the next power of two.
        assert_eq!(PanelLayout::of_constant(3, 5, 4).width, 8);
    }
}
