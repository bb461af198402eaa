//! Translation of operations on tile registers to those of AMX.

use inkwell::module::Linkage;
use inkwell::values::BasicMetadataValueEnum;
use nest::{GroupKind, LEFT_TILES, RIGHT_TILES, SUM_TILES, TILE_ROWS, TileOperation};
use support::{Error, Result};

use super::FunctionTranslator;
use crate::llvm::Built;

/// Bytes of the description of all registers (Intel 64 and IA-32 Architectures Software Developer's
/// Manual, volume 1, "Palette table and tile configuration").
const CONFIGURATION: usize = 64;
/// Positions in the description: the number of the palette, the bytes of each register's rows in 16
/// bits, and the number of each register's rows.
const PALETTE: usize = 0;
const ROW_BYTES: usize = 16;
const ROWS: usize = 48;

/// Bytes of a group of factors, and of a sum.
const GROUP_BYTES: u32 = 4;

impl<'c> FunctionTranslator<'_, 'c> {
    /// Emits an operation on tile registers.
    pub(crate) fn tiles(&self, operation: TileOperation) -> Result<()> {
        let target = self.module.target;
        if !target.has_tile_products {
            return Err(Error::internal(format!("'{}' has no tile registers", target.cpu)));
        }
        let number = |tile: u32| self.module.context.i8_type().const_int(u64::from(tile), false).into();
        let (name, operands): (&str, Vec<BasicMetadataValueEnum<'c>>) = match operation {
            TileOperation::Configure { rows, groups } => {
                let bytes = self.module.context.const_string(&configuration(rows, groups), false);
                let global = self.module.module.add_global(bytes.get_type(), None, "");
                global.set_linkage(Linkage::Private);
                global.set_initializer(&bytes);
                global.set_constant(true);
                global.set_alignment(CONFIGURATION as u32);
                ("ldtilecfg", vec![global.as_pointer_value().into()])
            }
            TileOperation::Release => ("tilerelease", Vec::new()),
            TileOperation::Zero { tile } => ("tilezero", vec![number(tile)]),
            TileOperation::Load { tile, pointer, stride } => {
                ("tileloadd64", vec![number(tile), self.value(pointer)?.into(), self.value(stride)?.into()])
            }
            TileOperation::Multiply { kind, sum, left, right } => {
                let name = match kind {
                    GroupKind::SignedBytes => "tdpbssd",
                    GroupKind::UnsignedBytes => "tdpbusd",
                    GroupKind::Bf16 => "tdpbf16ps",
                    _ => return Err(Error::internal(format!("tile registers do not multiply {kind:?}"))),
                };
                (name, [sum, left, right].map(number).to_vec())
            }
            TileOperation::Store { tile, pointer, stride } => {
                ("tilestored64", vec![number(tile), self.value(pointer)?.into(), self.value(stride)?.into()])
            }
        };
        let intrinsic = self.module.intrinsic(&format!("llvm.x86.{name}"), &[])?;
        self.builder.build_call(intrinsic, &operands, "").built()?;
        Ok(())
    }
}

/// The description of registers with these shapes.
fn configuration(rows: u32, groups: u32) -> [u8; CONFIGURATION] {
    let mut bytes = [0; CONFIGURATION];
    bytes[PALETTE] = 1;
    let mut set = |tile: u32, rows: u32, lanes: u32| {
        let at = ROW_BYTES + 2 * tile as usize;
        bytes[at..at + 2].copy_from_slice(&((lanes * GROUP_BYTES) as u16).to_le_bytes());
        bytes[ROWS + tile as usize] = rows as u8;
    };
    SUM_TILES.into_iter().for_each(|tile| set(tile, rows, TILE_ROWS));
    LEFT_TILES.into_iter().for_each(|tile| set(tile, rows, groups));
    RIGHT_TILES.into_iter().for_each(|tile| set(tile, groups, TILE_ROWS));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_register_has_the_shape_of_its_role() {
        let bytes = configuration(9, 5);
        assert_eq!((bytes[0], bytes[1]), (1, 0));
        let row_bytes: Vec<u8> = bytes[16..32].iter().copied().step_by(2).collect();
        assert_eq!(row_bytes, [64, 64, 64, 64, 20, 20, 64, 64]);
        assert_eq!(bytes[48..56], [9, 9, 9, 9, 9, 9, 5, 5]);
        assert!(bytes[32..48].iter().chain(&bytes[56..]).all(|&byte| byte == 0));
    }
}
