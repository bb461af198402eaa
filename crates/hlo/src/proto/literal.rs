//! Literals as `xla.LiteralProto`: each element type has a field of its own. Elements narrower than a byte take one each.

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
    match element_type {
        PrimitiveType::Pred => message.preds = data.iter().map(|&byte| byte != 0).collect(),
        PrimitiveType::S2 => message.s2s = data.to_vec(),
        PrimitiveType::S4 => message.s4s = data.to_vec(),
        PrimitiveType::S8 => message.s8s = data.to_vec(),
        PrimitiveType::S16 => message.s16s = data.to_vec(),
        PrimitiveType::S32 => message.s32s = native(data),
        PrimitiveType::S64 => message.s64s = native(data),
        PrimitiveType::U2 => message.u2s = data.to_vec(),
        PrimitiveType::U4 => message.u4s = data.to_vec(),
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

/// The bytes of the elements of a type that has a field of bytes; none for other types.
pub(super) fn bytes_of(message: &LiteralProto, element_type: PrimitiveType) -> &[u8] {
    match element_type {
        PrimitiveType::S2 => &message.s2s,
        PrimitiveType::S4 => &message.s4s,
        PrimitiveType::S8 => &message.s8s,
        PrimitiveType::S16 => &message.s16s,
        PrimitiveType::U2 => &message.u2s,
        PrimitiveType::U4 => &message.u4s,
        PrimitiveType::U8 => &message.u8s,
        PrimitiveType::U16 => &message.u16s,
        PrimitiveType::F8e5m2 => &message.f8e5m2s,
        PrimitiveType::F8e4m3fn => &message.f8e4m3fns,
        PrimitiveType::F16 => &message.f16s,
        PrimitiveType::Bf16 => &message.bf16s,
        _ => &[],
    }
}
