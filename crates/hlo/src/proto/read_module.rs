//! Modules from `xla.HloModuleProto`, `xla.HloProto` and `xla.HloSnapshot`.
//!
//! A message becomes text and the text is parsed: so there is one place that knows what an opcode may carry, and what
//! only text carries is read, too. Constants do not go through text: an instruction holds each one's place.

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

/// Whether bytes are one of the messages that [`read_hlo_proto`] reads.
pub fn is_hlo_proto(bytes: &[u8]) -> bool {
    bytes.first() == Some(&0x0a) && module_message(bytes).is_some()
}

/// The module of a serialized `xla.HloModuleProto`, `xla.HloProto` or `xla.HloSnapshot`, and the arguments that a
/// snapshot holds. The module is not verified.
pub fn read_hlo_proto(bytes: &[u8]) -> Result<(Module, Vec<Literal>)> {
    let Some((message, arguments)) = module_message(bytes) else {
        return Err(Error::invalid("the bytes are no HloModuleProto, HloProto or HloSnapshot"));
    };
    let mut constants = Vec::new();
    let text = module_text(&message, &mut constants)?;
    let mut module = parse(&text)?;
    let ids: BTreeMap<String, _> =
        module.computations().map(|(id, computation)| (computation.name().to_owned(), id)).collect();
    for Constant { computation, name, shape, literal } in constants {
        let lost = || Error::internal(format!("constant '{name}' lost its place"));
        let computation = module.computation_mut(*ids.get(&computation).ok_or_else(lost)?);
        let id = computation.find(&name).ok_or_else(lost)?;
        computation.set_op(id, Op::Constant { literal });
        computation.set_shape(id, shape);
    }
    let arguments = arguments.iter().map(read_literal).collect::<Result<_>>()?;
    Ok((module, arguments))
}

/// The module's message, whichever it is in, with the snapshot's arguments.
fn module_message(bytes: &[u8]) -> Option<(HloModuleProto, Vec<super::messages::LiteralProto>)> {
    let is_module = |module: &HloModuleProto| {
        let instructions = module.computations.iter().flat_map(|computation| &computation.instructions);
        let mut instructions = instructions.peekable();
        instructions.peek().is_some() && instructions.all(|instruction| !instruction.opcode.is_empty())
    };
    if instruction_count(bytes) > bytes.len() / LEAST_INSTRUCTION {
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

/// The fewest bytes of an instruction: name, opcode, shape and number. In memory it takes a hundred times as many, so that
/// empty ones would fill it.
const LEAST_INSTRUCTION: usize = 12;

/// How many instructions a message holds, whichever it is.
fn instruction_count(bytes: &[u8]) -> usize {
    let of_module = |module: &[u8]| -> usize {
        entries(module, 3).map(|computation| entries(computation, 2).count()).sum()
    };
    let of_hlo = |hlo: &[u8]| entries(hlo, 1).map(of_module).sum::<usize>();
    let of_snapshot = entries(bytes, 1).map(of_hlo).sum::<usize>();
    of_snapshot.max(of_hlo(bytes)).max(of_module(bytes))
}

/// The messages in a field of a message, up to where it is none.
fn entries(mut bytes: &[u8], field: u64) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        loop {
            let key = decode_varint(&mut bytes).ok()?;
            let skipped = match key & 7 {
                0 => {
                    decode_varint(&mut bytes).ok()?;
                    0
                }
                1 => 8,
                5 => 4,
                2 => usize::try_from(decode_varint(&mut bytes).ok()?).ok()?,
                _ => return None,
            };
            let (value, rest) = bytes.split_at_checked(skipped)?;
            bytes = rest;
            if key == field << 3 | 2 {
                return Some(value);
            }
        }
    })
}
