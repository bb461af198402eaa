//! HLO text: the printer, whose output XLA's parser accepts, and the parser, which accepts XLA's
//! output.
//!
//! The grammar is that of `xla/hlo/parser/hlo_parser.cc`. The attributes of an opcode come from the
//! opcode table: each payload type implements its own syntax (`attribute`).

mod attribute;
mod attribute_list;
mod computation;
mod dimension_numbers;
mod escape;
mod instruction;
mod lexer;
mod literal;
mod names;
mod number;
mod parser;
mod payload;
mod printer;
mod shape;

pub(crate) use attribute::{Value, read_list};
pub(crate) use escape::unescape;
pub(crate) use lexer::{Lexer, Token};
pub(crate) use literal::read_shaped_literal;
pub use literal::{literal_to_text, parse_literal};
pub(crate) use names::sanitize;
pub use parser::parse;
pub use printer::instruction_order;
pub use printer::{PrintOptions, instruction_texts, print};
pub(crate) use printer::{computation_order, depth_first};
pub(crate) use shape::read_shape;

use crate::module::Module;
use std::fmt;

impl Module {
    /// The whole module as HLO text, every constant complete.
    pub fn to_text(&self) -> String {
        print(self, PrintOptions::default())
    }
}

/// Returns the module as HLO text for XLA. An error names an instruction of a type that XLA does
/// not support.
pub fn text_for_xla(module: &Module) -> support::Result<String> {
    crate::xla_types::check_xla_types(module)?;
    Ok(module.to_text())
}

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}

/// Reads a standalone shape.
pub(crate) fn parse_shape(text: &str) -> support::Result<::shape::Shape> {
    shape::read_shape(&mut Lexer::new(text, 0))
}

/// Reads a standalone value of an attribute.
pub(crate) fn parse_value<T: Value>(text: &str) -> support::Result<T> {
    let mut lexer = Lexer::new(text, 0);
    let value = T::read(&mut lexer)?;
    lexer.expect_end()?;
    Ok(value)
}
