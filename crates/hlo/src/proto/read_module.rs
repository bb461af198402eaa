//! Modules from `xla.HloModuleProto`, `xla.HloProto`, and `xla.HloSnapshot`.
//!
//! A message is converted to text, and the text is parsed. The rules for opcodes and attributes
//! therefore exist in only one place, which also handles attributes that only text represents.
//! Constants bypass the text: a placeholder instruction represents each one.

use super::messages::{HloModuleProto, HloProto, HloSnapshot};
use super::module_text::{Constant, module_text};
use super::read_literal::read_literal;
use crate::Op;
use crate::module::Module;
use crate::text::parse;
use prost::Message;
use prost::encoding::decode_varint;
use shape::Literal;
use std::collections::BTreeMap;
use support::{Error, Result};

/// True if the bytes are one of the messages that [`read_hlo_proto`] reads.
pub fn is_hlo_proto(bytes: &[u8]) -> bool {
    bytes.first() == Some(&0x0a) && module_message(bytes).is_some()
}

/// Returns the module of a serialized `xla.HloModuleProto`, `xla.HloProto`, or `xla.HloSnapshot`,
/// and the arguments in a snapshot. The module is not verified.
pub fn read_hlo_proto(bytes: &[u8]) -> Result<(Module, Vec<Literal>)> {
    let Some((message, arguments)) = module_message(bytes) else {
        return Err(Error::invalid("the bytes are not an HloModuleProto, HloProto, or HloSnapshot"));
    };
    let mut constants = Vec::new();
    let text = module_text(&message, &mut constants)?;
    let mut module = parse(&text)?;
    let ids: BTreeMap<String, _> =
        module.computations().map(|(id, computation)| (computation.name().to_owned(), id)).collect();
    for Constant { computation, name, shape, literal } in constants {
        let missing = || Error::internal(format!("constant '{name}' has no placeholder"));
        let computation = module.computation_mut(*ids.get(&computation).ok_or_else(missing)?);
        let id = computation.find(&name).ok_or_else(missing)?;
        computation.set_op(id, Op::Constant { literal });
        computation.set_shape(id, shape);
    }
    let arguments = arguments.iter().map(read_literal).collect::<Result<_>>()?;
    Ok((module, arguments))
}

/// Decodes the module's message from any of the formats, with the snapshot's arguments.
fn module_message(bytes: &[u8]) -> Option<(HloModuleProto, Vec<super::messages::LiteralProto>)> {
    let is_module = |module: &HloModuleProto| {
        let instructions = module.computations.iter().flat_map(|computation| &computation.instructions);
        let mut instructions = instructions.peekable();
        instructions.peek().is_some() && instructions.all(|instruction| !instruction.opcode.is_empty())
    };
    if instruction_count(bytes) > bytes.len() / MIN_INSTRUCTION_BYTES {
        return None;
    }
    if let Ok(snapshot) = HloSnapshot::decode(bytes)
        && let Some(module) = snapshot.hlo.and_then(|hlo| hlo.hlo_module).filter(is_module)
    {
        return Some((module, snapshot.arguments));
    }
    if let Ok(HloProto { hlo_module: Some(module) }) = HloProto::decode(bytes)
        && is_module(&module)
    {
        return Some((module, Vec::new()));
    }
    HloModuleProto::decode(bytes).ok().filter(is_module).map(|module| (module, Vec::new()))
}

/// Minimum number of bytes of an instruction: name, opcode, shape, and number. An instruction takes
/// about a hundred times as much memory, so empty ones could exhaust it.
const MIN_INSTRUCTION_BYTES: usize = 12;

/// Number of instructions in a message of any of the formats.
fn instruction_count(bytes: &[u8]) -> usize {
    let count_in_module = |module: &[u8]| -> usize {
        entries(module, 3).map(|computation| entries(computation, 2).count()).sum()
    };
    let count_in_hlo = |hlo: &[u8]| entries(hlo, 1).map(count_in_module).sum::<usize>();
    let snapshot_count = entries(bytes, 1).map(count_in_hlo).sum::<usize>();
    snapshot_count.max(count_in_hlo(bytes)).max(count_in_module(bytes))
}

/// Iterates over the messages in a field of a message, up to the first invalid byte.
fn entries(mut bytes: &[u8], field: u64) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        loop {
            let key = decode_varint(&mut bytes).ok()?;
            let length = match key & 7 {
                0 => {
                    decode_varint(&mut bytes).ok()?;
                    0
                }
                1 => 8,
                5 => 4,
                2 => usize::try_from(decode_varint(&mut bytes).ok()?).ok()?,
                _ => return None,
            };
            let (value, rest) = bytes.split_at_checked(length)?;
            bytes = rest;
            if key == field << 3 | 2 {
                return Some(value);
            }
        }
    })
}
