//! Parses the fields of messages from the text in a module; the inverse of the conversion of
//! messages to text.
//!
//! Text without a known field is an error, so that no information is lost silently.

pub(super) mod attribute;
pub(super) mod header;
pub(super) mod layout;
mod sharding;

use super::instruction_messages::{FrontendAttributesMessage, OriginalArrayMessage};
use super::messages::OpMetadataProto;
use crate::text::{Lexer, Token, read_list, unescape};
use support::{Error, Result};

/// Maximum nesting depth of shardings and origins.
const MAX_DEPTH: usize = 20;

fn unknown(what: &str) -> Error {
    Error::unsupported(format!("{what} is only supported as text"))
}

/// `{1,2}`.
fn numbers(lexer: &mut Lexer<'_>) -> Result<Vec<i64>> {
    read_list(lexer, |lexer| lexer.expect_integer("an integer"))
}

/// Reads `1,2` up to and including a closing symbol.
fn numbers_up_to<T: std::str::FromStr>(lexer: &mut Lexer<'_>, close: char) -> Result<Vec<T>> {
    let mut numbers = Vec::new();
    while !lexer.eat_symbol(close) {
        if !numbers.is_empty() {
            lexer.expect_symbol(',')?;
        }
        numbers.push(lexer.expect_integer("an integer")?);
    }
    Ok(numbers)
}

/// `"a string"`.
fn string(lexer: &mut Lexer<'_>) -> Result<String> {
    let Token::Quoted(inside) = lexer.peek() else { return Err(lexer.expected("a quoted string")) };
    lexer.take();
    unescape(inside).ok_or_else(|| lexer.error("invalid escape in a string"))
}

/// Returns the position of a word in a list of names, ignoring case.
fn enumerator(names: &[&str], lexer: &mut Lexer<'_>, what: &str) -> Result<i32> {
    let word = lexer.expect_word(what)?;
    let place = names.iter().position(|name| name.eq_ignore_ascii_case(word));
    place.map(|place| place as i32).ok_or_else(|| unknown(&format!("{what} '{word}'")))
}

/// `{name=value,other=value}`, with or without commas; `read` reads the value.
fn fields(lexer: &mut Lexer<'_>, mut read: impl FnMut(&str, &mut Lexer<'_>) -> Result<()>) -> Result<()> {
    lexer.expect_symbol('{')?;
    while !lexer.eat_symbol('}') {
        let name = lexer.expect_word("a name")?;
        lexer.expect_symbol('=')?;
        read(name, lexer)?;
        lexer.eat_symbol(',');
    }
    Ok(())
}

/// `{key="value",other={1}}`.
fn frontend_attributes(lexer: &mut Lexer<'_>) -> Result<FrontendAttributesMessage> {
    let mut message = FrontendAttributesMessage::default();
    fields(lexer, |key, lexer| {
        let value = match lexer.peek() {
            Token::Quoted(_) => string(lexer)?,
            _ => braced(lexer)?.to_owned(),
        };
        message.map.insert(key.to_owned(), value);
        Ok(())
    })?;
    Ok(message)
}

/// Returns the text between matching braces, including them.
fn braced<'t>(lexer: &mut Lexer<'t>) -> Result<&'t str> {
    let start = lexer.start();
    lexer.expect_symbol('{')?;
    let mut depth = 1;
    while depth > 0 {
        match lexer.take() {
            Token::Symbol('{') => depth += 1,
            Token::Symbol('}') => depth -= 1,
            Token::End => return Err(lexer.expected("'}'")),
            _ => {}
        }
    }
    Ok(lexer.text_from(start).trim_end())
}

/// `{op_type="Add" source_line=3 profile_type={1}}`: all fields in XLA's text.
fn metadata(lexer: &mut Lexer<'_>) -> Result<OpMetadataProto> {
    let mut message = OpMetadataProto::default();
    fields(lexer, |name, lexer| metadata_field(&mut message, name, lexer))?;
    Ok(message)
}

/// Reads one field after its `=`.
fn metadata_field(message: &mut OpMetadataProto, name: &str, lexer: &mut Lexer<'_>) -> Result<()> {
    let number = |lexer: &mut Lexer<'_>| lexer.expect_integer::<i32>("a line or column");
    match name {
        "op_type" => message.op_type = string(lexer)?,
        "op_name" => message.op_name = string(lexer)?,
        "source_file" => message.source_file = string(lexer)?,
        "deduplicated_name" => message.deduplicated_name = string(lexer)?,
        "scheduling_name" => message.scheduling_name = string(lexer)?,
        "source_line" => message.source_line = number(lexer)?,
        "source_end_line" => message.source_end_line = number(lexer)?,
        "source_column" => message.source_column = number(lexer)?,
        "source_end_column" => message.source_end_column = number(lexer)?,
        "profile_type" => {
            message.profile_type = read_list(lexer, |lexer| lexer.expect_integer("a kind of profile"))?;
        }
        _ => return Err(unknown(&format!("the field '{name}' of metadata"))),
    }
    Ok(())
}

/// `"name" {0,1}`, without the index if it is empty; `None` if there is no name.
fn original_array(lexer: &mut Lexer<'_>) -> Result<Option<OriginalArrayMessage>> {
    if !matches!(lexer.peek(), Token::Quoted(_)) {
        return Ok(None);
    }
    let instruction_name = string(lexer)?;
    let shape_index = if lexer.peek() == Token::Symbol('{') { numbers(lexer)? } else { Vec::new() };
    Ok(Some(OriginalArrayMessage { instruction_name, shape_index }))
}
