//! Functions for vectors of integers for which compilers need a hint.

use crate::function::Printer;
use crate::prelude::{Lane, Prelude, Vector};
use crate::vectors::{for_integers, guarded};
use nest::{Constant, Expression, ScalarType, Type, ValueId};

/// The signs of the four bytes of an integer.
const SIGNS: u32 = 0x8080_8080;

impl Printer<'_, '_> {
    /// True if an exclusive or of integers with `b` changes the signs of all their bytes.
    pub(crate) fn is_flip_of_bytes(&self, ty: Type, b: ValueId) -> bool {
        let is_signs = |constant: Constant| matches!(constant, Constant::Integer(i) if i as u32 == SIGNS);
        let is_splat = match self.uses.definition(b) {
            Some(&Expression::Constant(constant)) => is_signs(constant),
            Some(&Expression::Splat(scalar)) => {
                matches!(self.uses.definition(scalar), Some(&Expression::Constant(c)) if is_signs(c))
            }
            _ => false,
        };
        is_splat && ty.scalar == ScalarType::I32 && ty.lanes > 1 && !self.is_opencl()
    }
}

impl Prelude {
    /// `max_i32x8(a, b)` of lanes that are signed integers in unsigned ones.
    pub(crate) fn integer_extremum(&mut self, is_max: bool, vector: Vector) -> String {
        let select = self.select(vector);
        let (c, signed) = (self.vector(vector), self.vector(vector.with(Lane::Signed)));
        let (word, sign) = if is_max { ("max", '>') } else { ("min", '<') };
        let name = format!("{word}_{signed}");
        self.function(&name, |_| {
            let others = format!("  return {select}(({signed})(({signed})a {sign} ({signed})b), a, b);\n");
            let body = match vector.register() {
                Some(register) => {
                    let (prefix, bits, m) = (register.prefix(), vector.bytes * 8, register.ty(vector.lane));
                    guarded(
                        for_integers(register),
                        &format!("return ({c}){prefix}_{word}_epi{bits}(({m})a, ({m})b);"),
                        &others,
                    )
                }
                None => others,
            };
            format!("/* The lanes are signed. */\nstatic inline {c} {name}({c} a, {c} b)\n{{\n{body}}}\n")
        });
        name
    }

    /// `narrow_u32x16_u8x16(x)`: the low parts of integers, which are the first of their bytes.
    ///
    /// GCC 12 converts one lane after another, but shuffles in few instructions.
    pub(crate) fn narrow(&mut self, from: Vector, to: Vector) -> String {
        let parts = Vector { lanes: from.lanes * (from.bytes / to.bytes) as u32, ..to };
        let (a, part, c) = (self.vector(from), self.vector(parts), self.vector(to));
        let name = format!("narrow_{a}_{c}");
        self.function(&name, |_| {
            let lanes: Vec<String> =
                (0..to.lanes).map(|lane| (lane * (from.bytes / to.bytes) as u32).to_string()).collect();
            format!(
                "static inline {c} {name}({a} x)\n{{\n  return __builtin_shufflevector(({part})x, ({part})x, {});\n}}\n",
                lanes.join(", ")
            )
        });
        name
    }

    /// `flip_bytes_u32x16(x)`: changes the signs of all bytes.
    ///
    /// GCC 12 replaces the operation on equal integers by one before they are repeated, which
    /// needs another instruction. It does not look through the change of type.
    pub(crate) fn flip_bytes(&mut self, vector: Vector) -> String {
        let bytes = Vector { lane: Lane::Unsigned, bytes: 1, lanes: vector.lanes * vector.bytes as u32 };
        let (c, all, splat) = (self.vector(vector), self.vector(bytes), self.splat(bytes));
        let name = format!("flip_bytes_{c}");
        self.function(&name, |_| {
            format!("static inline {c} {name}({c} x)\n{{\n  return ({c})(({all})x ^ {splat}(0x80u));\n}}\n")
        });
        name
    }

    /// `widen_i8x16_i32x16(x)`: integers in more bytes, extended by their signs or by zeros.
    ///
    /// GCC 12 converts one lane after another if it knows how the vector was computed.
    pub(crate) fn widen(&mut self, from: Vector, to: Vector) -> Option<String> {
        let register = to.register()?;
        let is_8_to_16 = to.bytes == 2;
        let condition = match register.bits {
            128 => "__SSE4_1__",
            256 => "__AVX2__",
            _ if is_8_to_16 => "__AVX512BW__",
            _ => "__AVX512F__",
        };
        let x = match from.total() {
            32 => "(__m256i)x",
            16 => "(__m128i)x",
            // A vector of eight bytes is a number in C.
            8 => "_mm_set_epi64x(0, (long long)x)",
            4 => "_mm_cvtsi32_si128((int)x)",
            _ => return None,
        };
        let (a, c) = (self.vector(from), self.vector(to));
        let name = format!("widen_{a}_{c}");
        self.uses_x86 = true;
        self.function(&name, |_| {
            let letter = if from.lane == Lane::Signed { 'i' } else { 'u' };
            let call = format!(
                "return ({c}){}_cvtep{letter}{}_epi{}({x});",
                register.prefix(),
                from.bytes * 8,
                to.bytes * 8
            );
            let others = format!("  return __builtin_convertvector(x, {c});\n");
            let body = guarded(condition, &call, &others);
            format!("static inline {c} {name}({a} x)\n{{\n{body}}}\n")
        });
        Some(name)
    }
}
