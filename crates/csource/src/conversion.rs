//! Conversions of the loop-nest language as expressions of C.

use crate::expression::{integer, narrowed, signed_type};
use crate::function::Printer;
use crate::prelude::{Lane, Vector, scalar_type};
use crate::text::{Level, Text};
use nest::{ConvertOp, ScalarType, Type, ValueId};
use support::{Error, Result};

impl Printer<'_, '_> {
    /// A conversion to the type of `id`.
    pub(crate) fn convert(&mut self, id: ValueId, op: ConvertOp, a: ValueId) -> Result<Text> {
        let (from, to) = (self.ty(a), self.ty(id));
        match op {
            ConvertOp::Bitcast => return self.bitcast(id, a),
            ConvertOp::FloatToSigned | ConvertOp::FloatToUnsigned => {
                let is_signed = op == ConvertOp::FloatToSigned;
                let name = if to.lanes == 1 {
                    self.prelude.saturated(is_signed, from.scalar, to.scalar)
                } else {
                    self.prelude.saturated_vector(is_signed, from, to)
                };
                return self.call(&name, &[a]);
            }
            ConvertOp::FloatExtend | ConvertOp::FloatTruncate
                if from.scalar == ScalarType::I16 || to.scalar == ScalarType::I16 =>
            {
                let extends = op == ConvertOp::FloatExtend;
                let name = match (to.lanes, extends) {
                    (1, true) => self.prelude.extend_f16().to_owned(),
                    (1, false) => self.prelude.truncate_to_f16().to_owned(),
                    (lanes, _) => self.prelude.f16_vector(extends, lanes),
                };
                return self.call(&name, &[a]);
            }
            _ => {}
        }
        if to.lanes > 1 {
            return self.convert_vector(id, op, a);
        }
        let x = self.operand(a)?;
        let result = scalar_type(to.scalar);
        Ok(match op {
            ConvertOp::SignExtend if from.scalar == ScalarType::Bool => {
                let ones = integer(to.scalar, -1).text;
                let text = format!("{} ? {ones} : {}", x.at(Level::Unary), integer(to.scalar, 0).text);
                narrowed(to, Text { text, level: Level::Loose, reads: x.reads })
            }
            ConvertOp::ZeroExtend if from.scalar == ScalarType::Bool => {
                let text = format!(
                    "{} ? {} : {}",
                    x.at(Level::Unary),
                    integer(to.scalar, 1).text,
                    integer(to.scalar, 0).text
                );
                narrowed(to, Text { text, level: Level::Loose, reads: x.reads })
            }
            ConvertOp::SignExtend => {
                let x = x.cast(signed_type(from.scalar));
                if to.scalar == ScalarType::I64 {
                    x.cast(result)
                } else {
                    x.cast(signed_type(to.scalar)).cast(result)
                }
            }
            ConvertOp::Truncate if to.scalar == ScalarType::Bool => {
                let one = if from.scalar == ScalarType::I64 { "1" } else { "1u" };
                let zero = if from.scalar == ScalarType::I64 { "0" } else { "0u" };
                let text = format!("({} & {one}) != {zero}", x.at(Level::Unary));
                Text { text, level: Level::Loose, reads: x.reads }
            }
            ConvertOp::SignedToFloat => x.cast(signed_type(from.scalar)).cast(result),
            ConvertOp::UnsignedToFloat if from.scalar == ScalarType::I64 => x.cast("uint64_t").cast(result),
            _ => x.cast(result),
        })
    }

    fn convert_vector(&mut self, id: ValueId, op: ConvertOp, a: ValueId) -> Result<Text> {
        let (from, to) = (self.ty(a), self.ty(id));
        let x = self.operand(a)?;
        let (source, result) = (self.vector(a), self.vector(id));
        if from.scalar == ScalarType::Bool {
            let signed = result.with(Lane::Signed);
            let wide =
                if source.bytes == result.bytes { x.clone() } else { self.prelude.converted(&x, signed) };
            let bits = self.prelude.same_bits(&wide, result);
            return Ok(if op == ConvertOp::ZeroExtend {
                let one = if result.bytes == 8 { "UINT64_C(1)" } else { "1u" };
                let text = format!("{} & {}", bits.text, self.prelude.splat_of(result, one, false).text);
                Text { text, level: Level::Loose, reads: x.reads }
            } else {
                bits
            });
        }
        Ok(match op {
            ConvertOp::SignExtend => {
                let narrow = self.prelude.same_bits(&x, source.with(Lane::Signed));
                let wide = self.widened(&narrow, source.with(Lane::Signed), result.with(Lane::Signed));
                self.prelude.same_bits(&wide, result)
            }
            ConvertOp::ZeroExtend => self.widened(&x, source, result),
            ConvertOp::SignedToFloat => {
                let signed = self.prelude.same_bits(&x, source.with(Lane::Signed));
                self.prelude.converted(&signed, result)
            }
            ConvertOp::Truncate if to.scalar == ScalarType::Bool => {
                let one = if source.bytes == 8 { "UINT64_C(1)" } else { "1u" };
                let zero = one.replace('1', "0");
                let ones = self.prelude.splat_of(source, one, false).text;
                let zeros = self.prelude.splat_of(source, &zero, false).text;
                let text = format!("({} & {ones}) != {zeros}", x.at(Level::Unary));
                self.prelude.mask_of(text, result, x.reads)
            }
            ConvertOp::Truncate if !self.is_opencl() => {
                let name = self.prelude.narrow(source, result);
                Text { text: format!("{name}({})", x.text), level: Level::Primary, reads: x.reads }
            }
            _ => self.prelude.converted(&x, result),
        })
    }

    /// Integers in more bytes.
    fn widened(&mut self, x: &Text, from: Vector, to: Vector) -> Text {
        let name = if self.is_opencl() { None } else { self.prelude.widen(from, to) };
        match name {
            Some(name) => Text { text: format!("{name}({})", x.text), level: Level::Primary, reads: x.reads },
            None => self.prelude.converted(x, to),
        }
    }

    fn bitcast(&mut self, id: ValueId, a: ValueId) -> Result<Text> {
        let (from, to) = (self.ty(a), self.ty(id));
        let x = self.operand(a)?;
        let reads = x.reads;
        if from == to {
            return Ok(x);
        }
        if from == Type::PTR {
            return Ok(x.cast("uintptr_t").cast("int64_t"));
        }
        if to == Type::PTR && self.is_opencl() {
            return Err(Error::unsupported("OpenCL C: an address that is computed as a number"));
        }
        if to == Type::PTR {
            return Ok(x.cast("uintptr_t").cast("unsigned char *"));
        }
        let call = |name: &str, x: &str| Text { text: format!("{name}({x})"), level: Level::Primary, reads };
        if from.scalar == ScalarType::Bool || to.scalar == ScalarType::Bool {
            return Ok(self.bitcast_of_mask(id, a, &x));
        }
        let is_power = |ty: Type| ty.lanes == 1 || ty.lanes.is_power_of_two();
        if !is_power(from) || !is_power(to) {
            return Err(Error::internal(format!("unexpected cast of {from} to {to}")));
        }
        if from.lanes > 1 && to.lanes > 1 {
            let vector = self.vector(id);
            return Ok(self.prelude.same_bits(&x, vector));
        }
        match (from.lanes, to.lanes, from.scalar, to.scalar) {
            (1, 1, ScalarType::F32, _) => Ok(call(self.prelude.bits_of(ScalarType::F32), &x.text)),
            (1, 1, ScalarType::F64, _) => {
                Ok(call(self.prelude.bits_of(ScalarType::F64), &x.text).cast("int64_t"))
            }
            (1, 1, _, ScalarType::F32) => Ok(call(self.prelude.of_bits(ScalarType::F32), &x.text)),
            (1, 1, _, ScalarType::F64) => {
                Ok(call(self.prelude.of_bits(ScalarType::F64), &x.cast("uint64_t").text))
            }
            _ => {
                let (from_c, to_c) = (self.c_type(a), self.c_type(id));
                let name = self.prelude.same_bytes(&from_c, &to_c);
                Ok(call(&name, &x.text))
            }
        }
    }

    /// Casts between lanes of one bit and integers.
    fn bitcast_of_mask(&mut self, id: ValueId, a: ValueId, x: &Text) -> Text {
        let (from, to) = (self.ty(a), self.ty(id));
        if from.scalar == ScalarType::Bool {
            let mask = self.vector(a);
            let name = self.prelude.bits_of_mask(mask, from.lanes);
            let bits = Text { text: format!("{name}({})", x.text), level: Level::Primary, reads: x.reads };
            return if to.lanes == 1 {
                bits.cast(scalar_type(to.scalar))
            } else {
                let c = self.c_type(id);
                let bits = bits.cast(&format!("uint{}_t", from.lanes));
                let name = self.prelude.same_bytes(&format!("uint{}_t", from.lanes), &c);
                Text { text: format!("{name}({})", bits.text), level: Level::Primary, reads: x.reads }
            };
        }
        let mask = self.vector(id);
        let bits = if from.lanes == 1 {
            x.cast("uint64_t").text
        } else {
            let word = format!("uint{}_t", to.lanes);
            let c = self.c_type(a);
            format!("{}({})", self.prelude.same_bytes(&c, &word), x.text)
        };
        let name = self.prelude.mask_of_bits(mask, to.lanes);
        Text { text: format!("{name}({bits})"), level: Level::Primary, reads: x.reads }
    }
}
