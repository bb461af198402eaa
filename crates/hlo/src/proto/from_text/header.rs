//! Parses the attributes in a module's first line.

use super::{frontend_attributes, numbers, original_array, string};
use crate::proto::messages::{
    BufferDonorEntryProto, HloBufferDonorProto, HloModuleProto, OriginalValueRecoveryProto,
    OriginalValueRecoveryTableProto, ProgramShapeProto,
};
use crate::proto::{module_proto, schedule, shape_proto};
use crate::text::{Lexer, Token, parse, read_list, read_shape};
use support::Result;

/// Sets the fields of an attribute of the module. Attributes without a field in XLA's message (such
/// as the number of replicas, or the propagation of shardings) belong to its compiler
/// configuration, which XLA keeps separately.
pub(in crate::proto) fn fill(message: &mut HloModuleProto, name: &str, text: &str) -> Result<()> {
    let mut lexer = Lexer::new(text, 0);
    match name {
        "is_scheduled" if lexer.eat(Token::Word("true")) => message.schedule = Some(schedule(message)),
        "entry_computation_layout" => {
            let shape = message.host_program_shape.get_or_insert_default();
            entry_layout(shape, &mut lexer)?;
        }
        "frontend_attributes" => message.frontend_attributes = Some(frontend_attributes(&mut lexer)?),
        "buffer_donor" => {
            let entries = read_list(&mut lexer, |lexer| {
                lexer.expect_symbol('(')?;
                let parameter_number = lexer.expect_integer("a parameter's number")?;
                lexer.expect_symbol(',')?;
                let parameter_shape_index = numbers(lexer)?;
                lexer.expect_symbol(')')?;
                Ok(BufferDonorEntryProto { parameter_number, parameter_shape_index })
            })?;
            message.buffer_donor = Some(HloBufferDonorProto { entries });
        }
        "origin_recovery_table" => {
            let mut entries = Vec::new();
            lexer.expect_symbol('{')?;
            while !lexer.eat_symbol('}') {
                entries.push(recovery(&mut lexer)?);
            }
            message.original_value_recovery_table = Some(OriginalValueRecoveryTableProto { entries });
        }
        _ => return Ok(()),
    }
    lexer.expect_end()
}

/// `{(f32[2]{0}, s32[])->f32[2]{0}}`.
fn entry_layout(shape: &mut ProgramShapeProto, lexer: &mut Lexer<'_>) -> Result<()> {
    lexer.expect_symbol('{')?;
    lexer.expect_symbol('(')?;
    shape.parameters.clear();
    while !lexer.eat_symbol(')') {
        if !shape.parameters.is_empty() {
            lexer.expect_symbol(',')?;
        }
        shape.parameters.push(shape_proto(&read_shape(lexer)?)?);
    }
    if !lexer.eat(Token::Arrow) {
        return Err(lexer.expected("'->'"));
    }
    shape.result = Some(shape_proto(&read_shape(lexer)?)?);
    lexer.expect_symbol('}')
}

/// `{"old" {0}} : {"new"}, "a module without its first line"`: the computation of a value that a
/// pass removed from one that remains.
fn recovery(lexer: &mut Lexer<'_>) -> Result<OriginalValueRecoveryProto> {
    let array = |lexer: &mut Lexer<'_>| {
        lexer.expect_symbol('{')?;
        let array = original_array(lexer)?;
        lexer.expect_symbol('}')?;
        Ok(array)
    };
    let old_original_array = array(lexer)?;
    lexer.expect_symbol(':')?;
    let new_original_array = array(lexer)?;
    let mut recovery_module = None;
    if lexer.eat_symbol(',') {
        let module = parse(&format!("HloModule recovery_module\n{}", string(lexer)?))?;
        recovery_module = Some(module_proto(&module)?);
    }
    Ok(OriginalValueRecoveryProto { old_original_array, new_original_array, recovery_module })
}
