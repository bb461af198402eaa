//! Attributes of each opcode's payload, from the opcode table.

use super::attribute::{AttributePrinter, AttributeReader};
use crate::attributes::*;
use crate::opcode::{Dims, Op, Opcode, for_each_opcode};
use support::Result;

macro_rules! payload_text {
    ($($variant:ident = $text:literal, $arity:expr,
       { $($field:ident : $type:ty $(as $attribute:literal)? $(= $default:expr)?),* }, $traits:ident;)*) => {
        /// Writes the attributes in the payload's order, without those that have their default
        /// value.
        pub(super) fn print_attributes(op: &Op, printer: &mut AttributePrinter<'_>) {
            match op {
                $(Op::$variant { $($field),* } => {
                    $(printer.field([$($attribute,)? stringify!($field)][0], $field, &[$($default)?]);)*
                    let _ = printer;
                })*
            }
        }

        /// Reads the payload of an opcode from its attributes.
        pub(super) fn parse_attributes(opcode: Opcode, reader: &mut AttributeReader<'_, '_>) -> Result<Op> {
            let _ = &reader;
            Ok(match opcode {
                $(Opcode::$variant => Op::$variant {
                    $($field: reader.field([$($attribute,)? stringify!($field)][0], &[$($default)?])?),*
                },)*
            })
        }
    };
}

for_each_opcode!(payload_text);
