//! Operations on tile registers.

use super::{GroupKind, ValueId};

/// An operation on the eight tile registers of a thread (AMX).
///
/// A register has up to 16 rows of up to 64 bytes. [`TileOperation::Configure`] sets their shapes,
/// which depend on their numbers ([`SUM_TILES`], [`LEFT_TILES`], [`RIGHT_TILES`]), and clears them.
/// A function configures the registers before other operations, and releases them before it
/// returns. The registers do not keep their contents when another function is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TileOperation {
    /// Sets the shapes: sums have `rows` rows of 16 lanes of 32 bits, left factors `rows` rows of
    /// `groups` groups, and right factors `groups` rows of 16 groups. Both are from 1 to 16.
    Configure {
        /// Rows of the sums and of the left factors.
        rows: u32,
        /// Groups of 32 bits of each left row.
        groups: u32,
    },
    /// Ends the use of the registers.
    Release,
    /// Clears a register.
    Zero {
        /// Its number.
        tile: u32,
    },
    /// Loads all rows of a register.
    Load {
        /// Its number.
        tile: u32,
        /// The address of the first row.
        pointer: ValueId,
        /// Bytes from a row to the next one, an `I64`.
        stride: ValueId,
    },
    /// Adds the products of groups to sums: row `r` and lane `c` of the sums get the products of
    /// group `k` of row `r` of the left factors and lane `c` of row `k` of the right ones.
    Multiply {
        /// The types of the factors.
        kind: GroupKind,
        /// Number of the register of sums.
        sum: u32,
        /// Number of the register of left factors.
        left: u32,
        /// Number of the register of right factors.
        right: u32,
    },
    /// Stores all rows of a register.
    Store {
        /// Its number.
        tile: u32,
        /// The address of the first row.
        pointer: ValueId,
        /// Bytes from a row to the next one, an `I64`.
        stride: ValueId,
    },
}

/// The tile registers of sums.
pub const SUM_TILES: [u32; 4] = [0, 1, 2, 3];

/// The tile registers of left factors.
pub const LEFT_TILES: [u32; 2] = [4, 5];

/// The tile registers of right factors.
pub const RIGHT_TILES: [u32; 2] = [6, 7];

/// Upper bound of the rows of a tile register, and number of lanes of 32 bits of a row.
pub const TILE_ROWS: u32 = 16;

impl TileOperation {
    /// The values that the operation reads.
    pub fn operands(self) -> Vec<ValueId> {
        match self {
            Self::Load { pointer, stride, .. } | Self::Store { pointer, stride, .. } => {
                vec![pointer, stride]
            }
            Self::Configure { .. } | Self::Release | Self::Zero { .. } | Self::Multiply { .. } => Vec::new(),
        }
    }

    /// The reason why the numbers are not those of registers; `None` if they are.
    pub(crate) fn defect(self) -> Option<&'static str> {
        let is_tile = |tile: u32| tile <= RIGHT_TILES[1];
        let is_valid = match self {
            Self::Configure { rows, groups } => {
                [rows, groups].iter().all(|count| (1..=TILE_ROWS).contains(count))
            }
            Self::Release => true,
            Self::Zero { tile } | Self::Load { tile, .. } | Self::Store { tile, .. } => is_tile(tile),
            Self::Multiply { kind, sum, left, right } => {
                use GroupKind::{Bf16, SignedBytes, UnsignedBytes};
                matches!(kind, SignedBytes | UnsignedBytes | Bf16)
                    && SUM_TILES.contains(&sum)
                    && LEFT_TILES.contains(&left)
                    && RIGHT_TILES.contains(&right)
            }
        };
        (!is_valid).then_some("expected an operation on tile registers of its roles, of 1 to 16 rows")
    }
}
