//! Parses the parts of a layout other than the order of the dimensions.

use super::numbers_up_to;
use crate::proto::messages::{LayoutProto, SplitConfigProto, TileProto};
use crate::proto::shape_proto;
use crate::proto::shape_text::COMBINED;
use crate::text::{Lexer, Token, read_shape};
use shape::PrimitiveType;
use support::{Error, Result};

/// `T(8,128)(2,1)L(128)#(u32)*(u8)E(4)S(1)SC(0:1,2)P(s32[2])M(8)`.
pub(in crate::proto) fn fill(message: &mut LayoutProto, text: &str) -> Result<()> {
    let mut lexer = Lexer::new(text, 0);
    while lexer.peek() != Token::End {
        let name = match lexer.take() {
            Token::Word(name) => name.to_owned(),
            Token::Symbol(symbol) => symbol.to_string(),
            _ => return Err(lexer.expected("a part of a layout")),
        };
        lexer.expect_symbol('(')?;
        match name.as_str() {
            "T" => {
                message.tiles.push(tile(&mut lexer)?);
                while lexer.eat_symbol('(') {
                    message.tiles.push(tile(&mut lexer)?);
                }
                continue;
            }
            "SC" => {
                message.split_configs.push(split(&mut lexer)?);
                while lexer.eat_symbol('(') {
                    message.split_configs.push(split(&mut lexer)?);
                }
                continue;
            }
            "L" => message.tail_padding_alignment_in_elements = number(&mut lexer)?,
            "E" => message.element_size_in_bits = number(&mut lexer)?,
            "S" => message.memory_space = number(&mut lexer)?,
            "M" => message.dynamic_shape_metadata_prefix_bytes = number(&mut lexer)?,
            "#" => message.index_primitive_type = element_type(&mut lexer)?,
            "*" => message.pointer_primitive_type = element_type(&mut lexer)?,
            "P" => message.physical_shape = Some(Box::new(shape_proto(&read_shape(&mut lexer)?)?)),
            other => {
                return Err(Error::unsupported(format!("'{other}' in a layout is only supported as text")));
            }
        }
        lexer.expect_symbol(')')?;
    }
    Ok(())
}

fn number(lexer: &mut Lexer<'_>) -> Result<i64> {
    lexer.expect_integer("an integer")
}

/// `8,128)`; `*` is a dimension that is combined with the next one.
fn tile(lexer: &mut Lexer<'_>) -> Result<TileProto> {
    let mut dimensions = Vec::new();
    while !lexer.eat_symbol(')') {
        if !dimensions.is_empty() {
            lexer.expect_symbol(',')?;
        }
        dimensions.push(if lexer.eat_symbol('*') { COMBINED } else { number(lexer)? });
    }
    Ok(TileProto { dimensions })
}

/// `0:1,2)`.
fn split(lexer: &mut Lexer<'_>) -> Result<SplitConfigProto> {
    let dimension = number(lexer)?;
    lexer.expect_symbol(':')?;
    Ok(SplitConfigProto { dimension, split_indices: numbers_up_to(lexer, ')')? })
}

fn element_type(lexer: &mut Lexer<'_>) -> Result<i32> {
    let name = lexer.expect_word("an element type")?;
    let element_type = name.parse::<PrimitiveType>();
    element_type.map(|element_type| element_type as i32).map_err(|_| lexer.error("unknown element type"))
}
