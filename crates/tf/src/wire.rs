//! Walks the fields of binary messages, decodes them, and limits the memory that a small file can
//! allocate.

use crate::text::{Kind, MessageType};
use bytes::Bytes;
use prost::Message;
use prost::encoding::{WireType, decode_key, decode_varint};

/// Limit for the bytes of a file's decoded messages, without the file itself.
const MAX_MEMORY: usize = 1 << 30;

/// Decodes a message whose byte fields share `bytes`. The error does not name the file.
pub(crate) fn decode<M: Message + Default>(bytes: Bytes, message: &'static MessageType) -> Result<M, String> {
    let memory = memory(&bytes, message, 0);
    if memory > MAX_MEMORY {
        return Err(format!(
            "the decoded message would take {} MiB, but at most {} MiB are supported",
            memory >> 20,
            MAX_MEMORY >> 20
        ));
    }
    M::decode(bytes).map_err(|e| e.to_string())
}

/// Deepest nesting of messages. The decoder has the same limit.
pub const MAX_DEPTH: usize = 100;

/// A field of a message in binary form.
#[derive(Clone, Copy, Debug)]
pub struct Field<'b> {
    /// Its number.
    pub number: u32,
    /// Its form.
    pub wire_type: WireType,
    /// Its value, without the length that precedes it.
    pub value: &'b [u8],
}

/// Malformed bytes of a message.
#[derive(Clone, Copy, Debug)]
pub struct Malformed;

/// Returns the fields of a message in binary form. Malformed bytes end them with an error.
pub fn fields(mut rest: &[u8]) -> impl Iterator<Item = Result<Field<'_>, Malformed>> {
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let field = next_field(&mut rest);
        if field.is_none() {
            rest = &[];
        }
        Some(field.ok_or(Malformed))
    })
}

fn next_field<'b>(rest: &mut &'b [u8]) -> Option<Field<'b>> {
    let (number, wire_type) = decode_key(rest).ok()?;
    let length = match wire_type {
        WireType::Varint => {
            let mut after = *rest;
            decode_varint(&mut after).ok()?;
            rest.len() - after.len()
        }
        WireType::ThirtyTwoBit => 4,
        WireType::SixtyFourBit => 8,
        WireType::LengthDelimited => usize::try_from(decode_varint(rest).ok()?).ok()?,
        WireType::StartGroup | WireType::EndGroup => 0,
    };
    let (value, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(Field { number, wire_type, value })
}

/// Upper bound for the bytes of a message's decoded fields. Stops silently at malformed bytes,
/// because the decoder reports them.
fn memory(bytes: &[u8], message: &MessageType, depth: usize) -> usize {
    if depth > MAX_DEPTH {
        return 0;
    }
    let of_field = |field: Field<'_>| {
        let length = field.value.len();
        match field.wire_type {
            WireType::LengthDelimited => {}
            // An element of an unpacked list.
            WireType::Varint => return 16,
            _ => return length * 2,
        }
        let Some(known) = message.fields.iter().find(|known| known.number == field.number) else { return 0 };
        match known.kind {
            // Lists grow by doubling, so up to three times the memory is allocated during growth.
            Kind::Message(inner) => {
                let own = if known.repeated { 3 * inner.memory } else { inner.memory };
                own.saturating_add(memory(field.value, inner, depth + 1))
            }
            Kind::String => length + 72,
            Kind::Bytes => 96,
            Kind::Skipped => 0,
            // A packed list: a varint of one byte may become an element of eight.
            Kind::Int64 | Kind::Uint64 => length.saturating_mul(8),
            Kind::Int32 | Kind::Uint32 | Kind::Enum(_) => length.saturating_mul(4),
            Kind::Bool | Kind::Float | Kind::Double => length.saturating_mul(2),
        }
    };
    fields(bytes).map_while(Result::ok).map(of_field).fold(0, usize::saturating_add)
}
