//! Literals as `xla.LiteralProto`: each element type has a field of its own.

use super::messages::{LiteralProto, ShapeProto};
use super::{TUPLE, array_proto};
use shape::{Literal, NativeType, PrimitiveType};

/// The literal's message.
pub(super) fn proto(literal: &Literal) -> LiteralProto {
    let mut message = LiteralProto::default();
    match literal {
        Literal::Tuple(elements) => {
            message.tuple_literals = elements.iter().map(proto).collect();
            let shapes = message.tuple_literals.iter().filter_map(|element| element.shape.clone());
            let tuple_shapes = shapes.collect();
            message.shape = Some(ShapeProto { element_type: TUPLE, tuple_shapes, ..ShapeProto::default() });
        }
        Literal::Array { shape, data } => {
            message.shape = Some(array_proto(shape));
            fill(&mut message, shape.element_type, data);
        }
    }
    message
}

fn native<T: NativeType>(data: &[u8]) -> Vec<T> {
    data.chunks_exact(T::TYPE.byte_size()).map(T::read_le).collect()
}

fn fill(message: &mut LiteralProto, element_type: PrimitiveType, data: &[u8]) {
    let bits = element_type.bit_width();
    match element_type {
        PrimitiveType::Pred => message.preds = data.iter().map(|&byte| byte != 0).collect(),
        PrimitiveType::S2 => message.s2s = packed(data, bits),
        PrimitiveType::S4 => message.s4s = packed(data, bits),
        PrimitiveType::S8 => message.s8s = data.to_vec(),
        PrimitiveType::S16 => message.s16s = data.to_vec(),
        PrimitiveType::S32 => message.s32s = native(data),
        PrimitiveType::S64 => message.s64s = native(data),
        PrimitiveType::U2 => message.u2s = packed(data, bits),
        PrimitiveType::U4 => message.u4s = packed(data, bits),
        PrimitiveType::U8 => message.u8s = data.to_vec(),
        PrimitiveType::U16 => message.u16s = data.to_vec(),
        PrimitiveType::U32 => message.u32s = native(data),
        PrimitiveType::U64 => message.u64s = native(data),
        PrimitiveType::F8e5m2 => message.f8e5m2s = data.to_vec(),
        PrimitiveType::F8e4m3fn => message.f8e4m3fns = data.to_vec(),
        PrimitiveType::F16 => message.f16s = data.to_vec(),
        PrimitiveType::Bf16 => message.bf16s = data.to_vec(),
        PrimitiveType::F32 => message.f32s = native(data),
        PrimitiveType::F64 => message.f64s = native(data),
        PrimitiveType::C64 => message.c64s = native(data),
        PrimitiveType::C128 => message.c128s = native(data),
    }
}

/// Elements narrower than a byte, packed into bytes, the first in the lowest bits.
fn packed(data: &[u8], bits: u32) -> Vec<u8> {
    let mask = (1u8 << bits) - 1;
    let pack = |chunk: &[u8]| chunk.iter().rev().fold(0u8, |byte, &element| byte << bits | (element & mask));
    data.chunks(8 / bits as usize).map(pack).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_elements_are_packed_lowest_bits_first() {
        assert_eq!(packed(&[0xf8, 0x07, 0x01], 4), [0x78, 0x01]);
        assert_eq!(packed(&[0xff, 0x00, 0x01, 0xfe, 0x02], 2), [0b10_01_00_11, 0b10]);
    }
}
