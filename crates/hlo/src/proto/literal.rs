//! Literals as `xla.LiteralProto`: each element type has a separate field. Elements narrower than a
//! byte take one byte each.

use super::messages::LiteralProto;
use super::{row_major, signed, tuple_proto};
use shape::index::{indices, linear_index};
use shape::{ArrayShape, Literal, NativeType, PrimitiveType, Shape};

/// Returns the literal's message.
pub(super) fn proto(literal: &Literal) -> LiteralProto {
    match literal {
        Literal::Tuple(elements) => tuple_message(elements.iter().map(proto).collect()),
        Literal::Array { shape, data } => {
            let mut message = LiteralProto { shape: Some(row_major(shape)), ..LiteralProto::default() };
            fill(&mut message, shape.element_type, data);
            message
        }
    }
}

/// Like [`proto`], with the elements in the order of a shape's layouts, as required for a constant
/// of that shape.
pub(super) fn with_layout(literal: &Literal, shape: &Shape) -> LiteralProto {
    match (literal, shape) {
        (Literal::Tuple(elements), Shape::Tuple(shapes)) => {
            let elements = elements.iter().zip(shapes);
            tuple_message(elements.map(|(element, shape)| with_layout(element, shape)).collect())
        }
        (Literal::Array { shape: array, data }, Shape::Array(ArrayShape { layout: Some(layout), .. }))
            if layout.minor_to_major.len() == array.rank() =>
        {
            let order: Vec<usize> = layout.minor_to_major.iter().rev().copied().collect();
            if order.is_sorted() {
                return proto(literal);
            }
            let mut shape = row_major(array);
            shape.layout.get_or_insert_default().minor_to_major = signed(&layout.minor_to_major);
            let mut message = LiteralProto { shape: Some(shape), ..LiteralProto::default() };
            fill(&mut message, array.element_type, &reorder(array, &order, data));
            message
        }
        _ => proto(literal),
    }
}

/// Converts elements from row-major order to an order in which `order` lists the dimensions,
/// slowest first.
fn reorder(array: &ArrayShape, order: &[usize], data: &[u8]) -> Vec<u8> {
    let sizes = array.sizes();
    let ordered_sizes: Vec<i64> = order.iter().map(|&dimension| sizes[dimension]).collect();
    let width = array.element_type.byte_size();
    let mut result = Vec::with_capacity(data.len());
    let mut index = vec![0; sizes.len()];
    for position in indices(&ordered_sizes) {
        order.iter().zip(&position).for_each(|(&dimension, &position)| index[dimension] = position);
        let start = linear_index(&sizes, &index) as usize * width;
        result.extend_from_slice(&data[start..start + width]);
    }
    result
}

fn tuple_message(tuple_literals: Vec<LiteralProto>) -> LiteralProto {
    let shapes = tuple_literals.iter().filter_map(|element| element.shape.clone()).collect();
    LiteralProto { shape: Some(tuple_proto(shapes)), tuple_literals, ..LiteralProto::default() }
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
        /// Returns the bytes of elements whose type has a field of bytes; empty for other types.
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
