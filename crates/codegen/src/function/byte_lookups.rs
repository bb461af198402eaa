//! Translation of lookups in a table of 256 bytes: instructions that permute bytes where the
//! processor has them, otherwise a load for each lane.

use inkwell::IntPredicate;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValueEnum, IntValue, VectorValue};
use nest::ValueId;
use support::{Error, Result};
use target::ByteLookups;

use super::FunctionTranslator;
use crate::llvm::Built;

/// Bytes that an instruction of aarch64 selects from: four registers.
const QUARTER: usize = 64;

/// Bytes that `pshufb` selects from.
const ROW: usize = 16;

/// Rows whose numbers, times 16, are not negative as signed bytes.
const ROWS_ABOVE_ZERO: usize = 8;

/// The rows of a table, so that the exclusive or of the eight rows up to a row, or of fewer at the
/// start, is the row of the table.
fn differences(table: &[u8]) -> Vec<u8> {
    let with_earlier = |bytes: &[u8], distance: usize| -> Vec<u8> {
        let earlier = |at: usize| at.checked_sub(distance).map_or(0, |at| bytes[at]);
        (0..bytes.len()).map(|at| bytes[at] ^ earlier(at)).collect()
    };
    // The exclusive or of all rows up to each, and then each row alone.
    with_earlier(&with_earlier(table, ROWS_ABOVE_ZERO * ROW), ROW)
}

impl<'c> FunctionTranslator<'_, 'c> {
    /// Emits the entries of a table of 256 bytes at the unsigned indices `index`.
    pub(crate) fn byte_lookup(&self, table: &[u8], index: ValueId) -> Result<BasicValueEnum<'c>> {
        let target = self.module.target;
        let lanes = self.source.values[index].lanes;
        let width = match target.byte_lookups {
            _ if lanes == 1 || lanes > target.vector_bytes => None,
            Some(ByteLookups::Permute) => Some(64),
            Some(ByteLookups::Shuffle) => Some(lanes.next_power_of_two().max(16)),
            Some(ByteLookups::Registers) => Some(16),
            None => None,
        };
        let (Some(width), Some(kind)) = (width, target.byte_lookups) else {
            return self.loaded_bytes(table, index);
        };
        let wide = self.resized(self.vector(index)?, width)?;
        let found = match kind {
            ByteLookups::Permute => self.permuted(table, wide)?,
            ByteLookups::Shuffle => self.shuffled_rows(table, wide)?,
            ByteLookups::Registers => self.selected(table, wide)?,
        };
        Ok(self.resized(found, lanes)?.into())
    }

    /// Each of two instructions selects from half of the table by the lower seven bits.
    fn permuted(&self, table: &[u8], index: VectorValue<'c>) -> Result<VectorValue<'c>> {
        let half = |first: usize| {
            let [x, y] = [first, first + 64].map(|at| self.bytes(&table[at..at + 64]));
            self.vector_call("llvm.x86.avx512.vpermi2var.qi.512", &[], &[x, index, y])
        };
        let (lower, upper) = (half(0)?, half(128)?);
        let zero = index.get_type().const_zero();
        let is_upper = self.builder.build_int_compare(IntPredicate::SLT, index, zero, "").built()?;
        match self.builder.build_select(is_upper, upper, lower, "").built()? {
            BasicValueEnum::VectorValue(value) => Ok(value),
            _ => Err(Error::internal("expected a vector of bytes")),
        }
    }

    /// `pshufb` selects by the lower four bits and returns 0 if the upper bit is set. The index
    /// falls by 16 from row to row, so the bit is clear for the eight rows up to that of the index,
    /// or for fewer at the start of the table. What these rows select differs from the wanted byte
    /// by what the rows before it would, which the rows contain ([`differences`]).
    fn shuffled_rows(&self, table: &[u8], mut index: VectorValue<'c>) -> Result<VectorValue<'c>> {
        let width = index.get_type().get_size() as usize;
        let name = match width {
            16 => "llvm.x86.ssse3.pshuf.b.128",
            32 => "llvm.x86.avx2.pshuf.b",
            _ => "llvm.x86.avx512.pshuf.b.512",
        };
        let step = self.bytes(&vec![ROW as u8; width]);
        let mut found: Option<VectorValue<'c>> = None;
        for (number, row) in differences(table).chunks_exact(ROW).enumerate() {
            index = match number {
                0 => index,
                // An index of the lower half stays below 0 to the end.
                _ if number > ROWS_ABOVE_ZERO => {
                    self.vector_call("llvm.ssub.sat", &[index.get_type().into()], &[index, step])?
                }
                _ => self.builder.build_int_sub(index, step, "").built()?,
            };
            let bytes = self.vector_call(name, &[], &[self.bytes(&row.repeat(width / ROW)), index])?;
            found = Some(match found {
                Some(others) => self.builder.build_xor(others, bytes, "").built()?,
                None => bytes,
            });
        }
        found.ok_or_else(|| Error::internal("empty table of bytes"))
    }

    /// Each instruction selects from four registers and returns 0 for other indices.
    fn selected(&self, table: &[u8], index: VectorValue<'c>) -> Result<VectorValue<'c>> {
        let mut found: Option<VectorValue<'c>> = None;
        for (number, quarter) in table.chunks_exact(QUARTER).enumerate() {
            let first = self.bytes(&[(number * QUARTER) as u8; 16]);
            let within = self.builder.build_int_sub(index, first, "").built()?;
            let mut operands: Vec<_> = quarter.chunks_exact(16).map(|bytes| self.bytes(bytes)).collect();
            operands.push(within);
            let bytes = self.vector_call("llvm.aarch64.neon.tbl4", &[index.get_type().into()], &operands)?;
            found = Some(match found {
                Some(others) => self.builder.build_or(others, bytes, "").built()?,
                None => bytes,
            });
        }
        found.ok_or_else(|| Error::internal("empty table of bytes"))
    }

    /// Loads one byte after another.
    fn loaded_bytes(&self, table: &[u8], index: ValueId) -> Result<BasicValueEnum<'c>> {
        let table = self.module.constant_bytes(table);
        let (i8, i64) = (self.module.context.i8_type(), self.module.context.i64_type());
        let load = |index: IntValue<'c>| {
            let index = self.builder.build_int_z_extend(index, i64, "").built()?;
            let at = self.plus(&self.builder, table, index, true)?;
            self.builder.build_load(i8, at, "").built()
        };
        let vector = match self.value(index)? {
            BasicValueEnum::IntValue(index) => return load(index),
            BasicValueEnum::VectorValue(vector) => vector,
            _ => return Err(Error::internal("expected bytes")),
        };
        let mut found = vector.get_type().get_poison();
        for lane in 0..vector.get_type().get_size() {
            let BasicValueEnum::IntValue(index) = self.extract(vector, lane)? else {
                return Err(Error::internal("expected a byte"));
            };
            let byte = load(index)?;
            found = self.builder.build_insert_element(found, byte, self.lane_number(lane), "").built()?;
        }
        Ok(found.into())
    }

    /// The first lanes of a vector; lanes beyond its own have any value.
    fn resized(&self, vector: VectorValue<'c>, lanes: u32) -> Result<VectorValue<'c>> {
        if vector.get_type().get_size() == lanes {
            return Ok(vector);
        }
        let i32 = self.module.context.i32_type();
        let own = vector.get_type().get_size();
        let lane =
            |lane: u32| if lane < own { i32.const_int(u64::from(lane), false) } else { i32.get_poison() };
        let mask = inkwell::types::VectorType::const_vector(&(0..lanes).map(lane).collect::<Vec<_>>());
        self.builder.build_shuffle_vector(vector, vector.get_type().get_poison(), mask, "").built()
    }

    /// A constant vector.
    fn bytes(&self, bytes: &[u8]) -> VectorValue<'c> {
        let i8 = self.module.context.i8_type();
        let bytes: Vec<_> = bytes.iter().map(|&byte| i8.const_int(u64::from(byte), false)).collect();
        inkwell::types::VectorType::const_vector(&bytes)
    }

    fn vector_call(
        &self,
        name: &str,
        types: &[BasicTypeEnum<'c>],
        operands: &[VectorValue<'c>],
    ) -> Result<VectorValue<'c>> {
        let operands: Vec<_> = operands.iter().map(|&operand| operand.into()).collect();
        match self.call(name, types, &operands)? {
            BasicValueEnum::VectorValue(value) => Ok(value),
            _ => Err(Error::internal(format!("intrinsic '{name}' returns no vector"))),
        }
    }
}
