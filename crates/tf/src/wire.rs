//! Decodes binary messages, and limits the memory that a small file can allocate.

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

/// Upper bound for the bytes of a message's decoded fields. Stops silently at malformed bytes,
/// because the decoder reports them.
fn memory(mut rest: &[u8], message: &MessageType, depth: usize) -> usize {
    let mut total = 0usize;
    // The decoder has the same limit.
    if depth > 100 {
        return total;
    }
    while !rest.is_empty() {
        let Ok((number, wire_type)) = decode_key(&mut rest) else { return total };
        let length = match wire_type {
            WireType::Varint => {
                let Ok(_) = decode_varint(&mut rest) else { return total };
                // An element of an unpacked list.
                total = total.saturating_add(16);
                0
            }
            WireType::ThirtyTwoBit => 4,
            WireType::SixtyFourBit => 8,
            WireType::LengthDelimited => match decode_varint(&mut rest).map(usize::try_from) {
                Ok(Ok(length)) => length,
                _ => return total,
            },
            WireType::StartGroup | WireType::EndGroup => 0,
        };
        if length > rest.len() {
            return total;
        }
        let (body, tail) = rest.split_at(length);
        rest = tail;
        if wire_type != WireType::LengthDelimited {
            total = total.saturating_add(length * 2);
            continue;
        }
        let Some(field) = message.fields.iter().find(|f| f.number == number) else { continue };
        total = total.saturating_add(match field.kind {
            // Lists grow by doubling, so up to three times the memory is allocated during growth.
            Kind::Message(inner) => {
                let own = if field.repeated { 3 * inner.memory } else { inner.memory };
                own.saturating_add(memory(body, inner, depth + 1))
            }
            Kind::String => length + 72,
            Kind::Bytes => 96,
            Kind::Skipped => 0,
            // A packed list: a varint of one byte may become an element of eight.
            Kind::Int64 | Kind::Uint64 => length.saturating_mul(8),
            Kind::Int32 | Kind::Uint32 | Kind::Enum(_) => length.saturating_mul(4),
            Kind::Bool | Kind::Float | Kind::Double => length.saturating_mul(2),
        });
    }
    total
}
