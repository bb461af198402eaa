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
        PrimitiveType::S32 => message.s32s = native(data),
        PrimitiveType::S64 => message.s64s = native(data),
        PrimitiveType::U32 => message.u32s = native(data),
        PrimitiveType::U64 => message.u64s = native(data),
        PrimitiveType::F32 => message.f32s = native(data),
        PrimitiveType::F64 => message.f64s = native(data),
        PrimitiveType::C64 => message.c64s = native(data),
        PrimitiveType::C128 => message.c128s = native(data),
        narrow => {
            if let Some(bytes) = bytes_mut(message, narrow) {
                *bytes = data.to_vec();
            }
        }
    }
}

macro_rules! byte_fields {
    ($($variant:ident: $field:ident),* $(,)?) => {
        /// The bytes of the elements of a type that has a field of bytes; none for other types.
        pub(super) fn bytes_of(message: &LiteralProto, element_type: PrimitiveType) -> &[u8] {
            match element_type {
                $(PrimitiveType::$variant => &message.$field,)*
                _ => &[],
            }
        }

        fn bytes_mut(message: &mut LiteralProto, element_type: PrimitiveType) -> Option<&mut Vec<u8>> {
            match element_type {
                $(PrimitiveType::$variant => Some(&mut message.$field),)*
                _ => None,
            }
        }
    };
}

byte_fields! {
    S1: s1s, S2: s2s, S4: s4s, S8: s8s, S16: s16s,
    U1: u1s, U2: u2s, U4: u4s, U8: u8s, U16: u16s,
    F4e2m1fn: f4e2m1fns, F8e3m4: f8e3m4s, F8e4m3: f8e4m3s, F8e4m3b11fnuz: f8e4m3b11fnuzs, F8e4m3fn: f8e4m3fns,
    F8e4m3fnuz: f8e4m3fnuzs, F8e5m2: f8e5m2s, F8e5m2fnuz: f8e5m2fnuzs, F8e8m0fnu: f8e8m0fnus,
    F16: f16s, Bf16: bf16s,
}
