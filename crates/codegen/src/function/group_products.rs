//! Translation of sums of products of groups: the processor's instruction if it takes factors of
//! this kind. Otherwise, bytes become products of 16 or 32 bits, and `bf16` becomes `f32`.

use inkwell::types::{BasicTypeEnum, VectorType};
use inkwell::values::{BasicValueEnum, VectorValue};
use nest::{GroupKind, ValueId};
use support::{Error, Result};
use target::{Architecture, ByteProducts, ShortProducts};

use super::FunctionTranslator;
use crate::llvm::Built;

impl<'c> FunctionTranslator<'_, 'c> {
    /// Emits `c` plus the products of a group per lane.
    pub(crate) fn group_multiply_add(
        &self,
        kind: GroupKind,
        a: ValueId,
        b: ValueId,
        c: ValueId,
    ) -> Result<BasicValueEnum<'c>> {
        match kind {
            GroupKind::SignedBytes => self.bytes_multiply_add(true, a, b, c),
            GroupKind::SignedBytesByNarrow => self.narrow_multiply_add(a, b, c),
            GroupKind::UnsignedBytes => self.bytes_multiply_add(false, a, b, c),
            GroupKind::Shorts => self.shorts_multiply_add(a, b, c),
            GroupKind::Short => self.short_multiply_add(a, b, c),
            GroupKind::Bf16 => self.bf16_multiply_add(a, b, c),
            GroupKind::SignedBytePairs => self.pairs_multiply_add("smmla", a, b, c),
            GroupKind::UnsignedBytePairs => self.pairs_multiply_add("usmmla", a, b, c),
            GroupKind::Bf16Pairs => self.pairs_multiply_add("bfmmla", a, b, c),
            GroupKind::SignedByteHalves => self.halves_multiply_add(a, b, c),
            GroupKind::SignedByteVectors => self.across_multiply_add(a, b, c),
        }
    }

    /// Emits `c` plus two products per lane of 32 bits: eight products of bytes at a time become
    /// numbers of 16 bits, which are added in pairs.
    fn halves_multiply_add(&self, a: ValueId, b: ValueId, c: ValueId) -> Result<BasicValueEnum<'c>> {
        let context = self.module.context;
        let (i8s, i16s) = (context.i8_type().vec_type(16), context.i16_type().vec_type(8));
        let is_32_bits = self.module.target.triple.architecture == Architecture::Arm;
        let (a, b, sums) = (self.cast(a, i8s)?, self.cast(b, i8s)?, self.vector(c)?);
        let half = |vector: VectorValue<'c>, lanes: std::ops::Range<u32>| {
            let lanes: Vec<_> =
                lanes.map(|lane| context.i32_type().const_int(u64::from(lane), false)).collect();
            self.builder.build_shuffle_vector(vector, vector, VectorType::const_vector(&lanes), "").built()
        };
        let mut parts = Vec::new();
        for number in 0..2 {
            let bytes = |vector| -> Result<VectorValue<'c>> {
                let bytes = half(vector, 8 * number..8 * number + 8)?;
                self.builder.build_int_s_extend(bytes, i16s, "").built()
            };
            let products = self.builder.build_int_mul(bytes(a)?, bytes(b)?, "").built()?;
            let sum = half(sums, 4 * number..4 * number + 4)?;
            let types: [BasicTypeEnum<'c>; 2] = [sum.get_type().into(), i16s.into()];
            parts.push(if is_32_bits {
                let operands = [sum.into(), products.into()];
                as_vector(self.call("llvm.arm.neon.vpadals.v4i32.v8i16", &types, &operands)?)?
            } else {
                let name = "llvm.aarch64.neon.saddlp.v4i32.v8i16";
                let pairs = as_vector(self.call(name, &types, &[products.into()])?)?;
                self.builder.build_int_add(sum, pairs, "").built()?
            });
        }
        let lanes: Vec<_> = (0..8).map(|lane| context.i32_type().const_int(lane, false)).collect();
        let all = VectorType::const_vector(&lanes);
        Ok(self.builder.build_shuffle_vector(parts[0], parts[1], all, "").built()?.into())
    }

    /// Emits `c` plus the products of two rows and two columns. Only plans for processors with the
    /// instruction contain such products.
    fn pairs_multiply_add(
        &self,
        instruction: &str,
        a: ValueId,
        b: ValueId,
        c: ValueId,
    ) -> Result<BasicValueEnum<'c>> {
        let is_float = instruction == "bfmmla";
        let target = self.module.target;
        let exists = if is_float {
            target.has_bf16_products
        } else {
            target.byte_products == Some(ByteProducts::Either)
        };
        if target.triple.architecture != Architecture::Aarch64 || !exists {
            return Err(Error::internal(format!("'{}' has no instruction {instruction}", target.cpu)));
        }
        let context = self.module.context;
        let factors = if is_float { context.bf16_type().vec_type(8) } else { context.i8_type().vec_type(16) };
        let operands =
            [self.value(c)?, self.cast(a, factors)?.into(), self.cast(b, factors)?.into()].map(Into::into);
        if is_float {
            return self.call("llvm.aarch64.neon.bfmmla", &[], &operands);
        }
        let types: [BasicTypeEnum<'c>; 2] = [self.value(c)?.get_type(), factors.into()];
        self.call(&format!("llvm.aarch64.neon.{instruction}.v4i32.v16i8"), &types, &operands)
    }

    /// Emits `c` plus two products of `bf16` per lane.
    fn bf16_multiply_add(&self, a: ValueId, b: ValueId, c: ValueId) -> Result<BasicValueEnum<'c>> {
        let target = self.module.target;
        let lanes = self.source.values[c].lanes;
        let bytes = lanes * 4;
        if target.has_bf16_products && (16..=target.for_groups().vector_bytes).contains(&bytes) {
            let factors = self.module.context.bf16_type().vec_type(lanes * 2);
            let operands = [self.value(c)?, self.cast(a, factors)?.into(), self.cast(b, factors)?.into()]
                .map(Into::into);
            if target.triple.architecture == Architecture::X86_64 {
                let name = format!("llvm.x86.avx512bf16.dpbf16ps.{}", bytes * 8);
                return self.call(&name, &[], &operands);
            }
            let types: [BasicTypeEnum<'c>; 2] = [self.value(c)?.get_type(), factors.into()];
            let name = format!("llvm.aarch64.neon.bfdot.v{lanes}f32.v{}bf16", lanes * 2);
            return self.call(&name, &types, &operands);
        }
        let mut sum = self.cast(c, self.module.context.f32_type().vec_type(lanes))?;
        for is_upper in [true, false] {
            let factors = [self.widened(is_upper, a)?, self.widened(is_upper, b)?];
            let operands = [factors[0].into(), factors[1].into(), sum.into()];
            sum = as_vector(self.call("llvm.fmuladd", &[sum.get_type().into()], &operands)?)?;
        }
        if lanes == 1 { self.extract(sum, 0) } else { Ok(sum.into()) }
    }

    /// The upper or the lower `bf16` of each lane, as `f32`.
    fn widened(&self, is_upper: bool, groups: ValueId) -> Result<VectorValue<'c>> {
        let lanes = self.source.values[groups].lanes;
        let context = self.module.context;
        let (i32s, f32s) = (context.i32_type().vec_type(lanes), context.f32_type().vec_type(lanes));
        let bits = self.cast(groups, i32s)?;
        let bits = if is_upper {
            self.builder.build_and(bits, splat(i32s, 0xffff_0000)?, "").built()?
        } else {
            self.builder.build_left_shift(bits, splat(i32s, 16)?, "").built()?
        };
        as_vector(self.builder.build_bit_cast(bits, f32s, "").built()?)
    }

    /// Emits `c` plus four products of bytes per lane.
    fn bytes_multiply_add(
        &self,
        is_signed: bool,
        a: ValueId,
        b: ValueId,
        c: ValueId,
    ) -> Result<BasicValueEnum<'c>> {
        let target = self.module.target;
        let lanes = self.source.values[c].lanes;
        let bytes = lanes * 4;
        let fits = (16..=target.for_groups().vector_bytes).contains(&bytes);
        let is_x86 = target.triple.architecture == Architecture::X86_64;
        let is_wasm = target.triple.architecture == Architecture::Wasm32;
        match target.byte_products {
            Some(ByteProducts::Dual) if lanes == 1 && is_signed => self.in_dual(a, b, c),
            Some(ByteProducts::Widened | ByteProducts::Signs) if fits && (is_x86 || is_wasm) => {
                self.in_pairs(is_signed, a, b, c)
            }
            Some(products) if fits && products.takes(is_signed) && products != ByteProducts::Halves => {
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

    /// Emits `c` plus four products of signed bytes per lane, where no second factor is -128. The
    /// second factors take the signs of the first ones: two products of at most 128 times 127 each
    /// fit into 16 bits, so the instruction that adds them does not saturate.
    fn narrow_multiply_add(&self, a: ValueId, b: ValueId, c: ValueId) -> Result<BasicValueEnum<'c>> {
        let target = self.module.target;
        let lanes = self.source.values[c].lanes;
        let [sign, pairs, words] = match lanes {
            4 => ["ssse3.psign.b.128", "ssse3.pmadd.ub.sw.128", "sse2.pmadd.wd"],
            8 => ["avx2.psign.b", "avx2.pmadd.ub.sw", "avx2.pmadd.wd"],
            _ => return self.bytes_multiply_add(true, a, b, c),
        };
        if target.byte_products != Some(ByteProducts::Signs) || 4 * lanes > target.vector_bytes {
            return self.bytes_multiply_add(true, a, b, c);
        }
        let context = self.module.context;
        let (i8s, i16s) = (context.i8_type().vec_type(4 * lanes), context.i16_type().vec_type(2 * lanes));
        let (a, b) = (self.cast(a, i8s)?, self.cast(b, i8s)?);
        // -128 stays, and is read as 128.
        let wraps = context.bool_type().const_zero();
        let magnitudes = self.call("llvm.abs", &[i8s.into()], &[a.into(), wraps.into()])?;
        let signed = self.call(&format!("llvm.x86.{sign}"), &[], &[b.into(), a.into()])?;
        let sums = self.call(&format!("llvm.x86.{pairs}"), &[], &[magnitudes.into(), signed.into()])?;
        let sums = self.call(&format!("llvm.x86.{words}"), &[], &[sums.into(), splat(i16s, 1)?.into()])?;
        Ok(self.builder.build_int_add(self.vector(c)?, as_vector(sums)?, "").built()?.into())
    }

    /// Emits the scalar `c` plus the products of 16 bytes.
    fn across_multiply_add(&self, a: ValueId, b: ValueId, c: ValueId) -> Result<BasicValueEnum<'c>> {
        let target = self.module.target;
        if target.byte_products != Some(ByteProducts::Across) {
            return Err(Error::internal(format!("'{}' has no instruction vmladava", target.cpu)));
        }
        let i8s = self.module.context.i8_type().vec_type(16);
        // Signed, added, and not exchanged.
        let zero = self.module.context.i32_type().const_zero();
        let operands: [BasicValueEnum<'c>; 6] = [
            zero.into(),
            zero.into(),
            zero.into(),
            self.value(c)?,
            self.cast(a, i8s)?.into(),
            self.cast(b, i8s)?.into(),
        ];
        self.call("llvm.arm.mve.vmldava", &[i8s.into()], &operands.map(Into::into))
    }

    /// Bytes with even and with odd numbers become numbers of 16 bits, two of which an instruction
    /// multiplies and adds to a word.
    fn in_dual(&self, a: ValueId, b: ValueId, c: ValueId) -> Result<BasicValueEnum<'c>> {
        let mut sum = self.value(c)?;
        let words = [self.integer(a)?, self.integer(b)?];
        for is_odd in [false, true] {
            let mut pairs = Vec::new();
            for word in words {
                let i32 = self.module.context.i32_type();
                let rotated = [word, word, i32.const_int(8, false)].map(Into::into);
                let word =
                    if is_odd { self.call("llvm.fshr", &[i32.into()], &rotated)? } else { word.into() };
                pairs.push(self.call("llvm.arm.sxtb16", &[], &[word.into()])?);
            }
            sum = self.call("llvm.arm.smlad", &[], &[pairs[0].into(), pairs[1].into(), sum.into()])?;
        }
        Ok(sum)
    }

    /// Emits `c` plus two products of numbers of 16 bits per lane.
    fn shorts_multiply_add(&self, a: ValueId, b: ValueId, c: ValueId) -> Result<BasicValueEnum<'c>> {
        let lanes = self.source.values[c].lanes;
        let context = self.module.context;
        let fits = (16..=self.module.target.vector_bytes).contains(&(4 * lanes));
        if self.module.target.short_products == Some(ShortProducts::Neighbors) && fits {
            let i16s = context.i16_type().vec_type(lanes * 2);
            let factors = [self.cast(a, i16s)?, self.cast(b, i16s)?].map(Into::into);
            let products = as_vector(self.call(self.pair_products(lanes), &[], &factors)?)?;
            return Ok(self.builder.build_int_add(self.vector(c)?, products, "").built()?.into());
        }
        let i32s = context.i32_type().vec_type(lanes);
        let (a, b, mut sum) = (self.cast(a, i32s)?, self.cast(b, i32s)?, self.cast(c, i32s)?);
        for is_upper in [false, true] {
            let factors = [self.part(a, 16, is_upper, true)?, self.part(b, 16, is_upper, true)?];
            let product = self.builder.build_int_mul(factors[0], factors[1], "").built()?;
            sum = self.builder.build_int_add(sum, product, "").built()?;
        }
        if lanes == 1 { self.extract(sum, 0) } else { Ok(sum.into()) }
    }

    /// Emits `c` plus a product of numbers of 16 bits per lane. If all lanes of the first factors
    /// are one lane of a vector, NEON's instruction names that lane as its last operand.
    fn short_multiply_add(&self, a: ValueId, b: ValueId, c: ValueId) -> Result<BasicValueEnum<'c>> {
        let target = self.module.target;
        let (a, b, sum) = (self.vector(a)?, self.vector(b)?, self.vector(c)?);
        let ty = sum.get_type();
        let is_instruction = target.short_products == Some(ShortProducts::ByLane) && ty.get_size() == 4;
        let products = if is_instruction {
            let is_32_bits = target.triple.architecture == Architecture::Arm;
            let name =
                if is_32_bits { "llvm.arm.neon.vmulls.v4i32" } else { "llvm.aarch64.neon.smull.v4i32" };
            as_vector(self.call(name, &[ty.into()], &[b.into(), a.into()])?)?
        } else {
            let wide = |factor| self.builder.build_int_s_extend(factor, ty, "").built();
            self.builder.build_int_mul(wide(a)?, wide(b)?, "").built()?
        };
        Ok(self.builder.build_int_add(sum, products, "").built()?.into())
    }

    /// The instruction that multiplies numbers of 16 bits and adds neighboring products.
    fn pair_products(&self, lanes: u32) -> &'static str {
        match lanes {
            4 if self.module.target.triple.architecture == Architecture::Wasm32 => "llvm.wasm.dot",
            4 => "llvm.x86.sse2.pmadd.wd",
            8 => "llvm.x86.avx2.pmadd.wd",
            _ => "llvm.x86.avx512.pmaddw.d.512",
        }
    }

    /// Bytes with even and with odd numbers become numbers of 16 bits, which are multiplied and
    /// added in pairs.
    fn in_pairs(&self, is_signed: bool, a: ValueId, b: ValueId, c: ValueId) -> Result<BasicValueEnum<'c>> {
        let lanes = self.source.values[c].lanes;
        let name = self.pair_products(lanes);
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
