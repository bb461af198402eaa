//! Translation of sums of products of bytes: the processor's instruction if it takes factors of
//! this kind, otherwise products of 16 or 32 bits.

use inkwell::types::{BasicTypeEnum, VectorType};
use inkwell::values::{BasicValueEnum, VectorValue};
use nest::ValueId;
use support::{Error, Result};
use target::{Architecture, ByteProducts};

use super::FunctionTranslator;
use crate::llvm::Built;

impl<'c> FunctionTranslator<'_, 'c> {
    /// Emits `c` plus four products of bytes per lane.
    pub(crate) fn bytes_multiply_add(
        &self,
        is_signed: bool,
        a: ValueId,
        b: ValueId,
        c: ValueId,
    ) -> Result<BasicValueEnum<'c>> {
        let target = self.module.target;
        let lanes = self.source.values[c].lanes;
        let bytes = lanes * 4;
        let fits = (16..=target.vector_bytes).contains(&bytes);
        let is_x86 = target.triple.architecture == Architecture::X86_64;
        match target.byte_products {
            Some(ByteProducts::Widened) if fits && is_x86 => self.in_pairs(is_signed, a, b, c),
            Some(products) if fits && products.takes(is_signed) => {
                let (sums, bits) = (format!("v{lanes}i32"), bytes * 8);
                let name = match (is_x86, is_signed) {
                    (true, _) => format!("llvm.x86.avx512.vpdpbusd.{bits}"),
                    (false, true) => format!("llvm.aarch64.neon.sdot.{sums}.v{bytes}i8"),
                    (false, false) => format!("llvm.aarch64.neon.usdot.{sums}.v{bytes}i8"),
                };
                let i8s = self.module.context.i8_type().vec_type(bytes);
                let operands =
                    [self.value(c)?, self.cast(a, i8s)?.into(), self.cast(b, i8s)?.into()].map(Into::into);
                // Only the intrinsics of aarch64 are overloaded.
                let types: [BasicTypeEnum<'c>; 2] = [self.value(c)?.get_type(), i8s.into()];
                self.call(&name, if is_x86 { &[] } else { &types }, &operands)
            }
            _ => self.one_by_one(is_signed, a, b, c),
        }
    }

    /// Bytes with even and with odd numbers become numbers of 16 bits, which are multiplied and
    /// added in pairs.
    fn in_pairs(&self, is_signed: bool, a: ValueId, b: ValueId, c: ValueId) -> Result<BasicValueEnum<'c>> {
        let lanes = self.source.values[c].lanes;
        let name = match lanes {
            4 => "llvm.x86.sse2.pmadd.wd",
            8 => "llvm.x86.avx2.pmadd.wd",
            _ => "llvm.x86.avx512.pmaddw.d.512",
        };
        let i16s = self.module.context.i16_type().vec_type(lanes * 2);
        let (a, b) = (self.cast(a, i16s)?, self.cast(b, i16s)?);
        let mut sum = self.vector(c)?;
        for is_odd in [false, true] {
            let factors = [self.part(a, 8, is_odd, is_signed)?, self.part(b, 8, is_odd, true)?];
            let products = self.call(name, &[], &factors.map(Into::into))?;
            sum = self.builder.build_int_add(sum, as_vector(products)?, "").built()?;
        }
        Ok(sum.into())
    }

    /// The upper or the lower half of each lane, extended to the whole lane of `2 * bits` bits.
    fn part(
        &self,
        lanes: VectorValue<'c>,
        bits: u64,
        is_upper: bool,
        is_signed: bool,
    ) -> Result<VectorValue<'c>> {
        let shift = splat(lanes.get_type(), bits)?;
        let upper = if is_upper { lanes } else { self.builder.build_left_shift(lanes, shift, "").built()? };
        self.builder.build_right_shift(upper, shift, is_signed, "").built()
    }

    /// Products of 32 bits, of one byte of each lane after another.
    fn one_by_one(&self, is_signed: bool, a: ValueId, b: ValueId, c: ValueId) -> Result<BasicValueEnum<'c>> {
        let lanes = self.source.values[c].lanes;
        let i32s = self.module.context.i32_type().vec_type(lanes);
        let byte = |x: VectorValue<'c>, number: u64, is_signed: bool| {
            let upper = self.builder.build_left_shift(x, splat(i32s, 24 - 8 * number)?, "").built()?;
            self.builder.build_right_shift(upper, splat(i32s, 24)?, is_signed, "").built()
        };
        let (a, b, mut sum) = (self.cast(a, i32s)?, self.cast(b, i32s)?, self.cast(c, i32s)?);
        for number in 0..4 {
            let factors = (byte(a, number, is_signed)?, byte(b, number, true)?);
            let product = self.builder.build_int_mul(factors.0, factors.1, "").built()?;
            sum = self.builder.build_int_add(sum, product, "").built()?;
        }
        if lanes == 1 { self.extract(sum, 0) } else { Ok(sum.into()) }
    }

    /// The bits of a value as a vector type.
    fn cast(&self, id: ValueId, to: VectorType<'c>) -> Result<VectorValue<'c>> {
        as_vector(self.builder.build_bit_cast(self.value(id)?, to, "").built()?)
    }
}

fn as_vector(value: BasicValueEnum<'_>) -> Result<VectorValue<'_>> {
    match value {
        BasicValueEnum::VectorValue(vector) => Ok(vector),
        _ => Err(Error::internal("expected a vector of integers")),
    }
}

/// A vector of integers with the same number in every lane.
fn splat(ty: VectorType<'_>, number: u64) -> Result<VectorValue<'_>> {
    let BasicTypeEnum::IntType(scalar) = ty.get_element_type() else {
        return Err(Error::internal("expected a vector of integers"));
    };
    Ok(VectorType::const_vector(&vec![scalar.const_int(number, false); ty.get_size() as usize]))
}
