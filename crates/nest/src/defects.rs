//! Deliberate defects in programs, for tests of the sanitizers. Not part of release builds.

use crate::language::{
    Constant, Expression, Function, FunctionId, Parameter, Program, ScalarType, Statement, Type, ValueId,
};
use std::collections::BTreeSet;
use support::Id;

/// A defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// Each kernel that writes memory also writes the 8 bytes before one of its outputs.
    OutOfBounds,
    /// All parts of a parallel kernel also write the first byte of a block that they share.
    Race,
}

impl Defect {
    /// The name, the same in every build.
    pub fn name(self) -> &'static str {
        match self {
            Self::OutOfBounds => "out-of-bounds",
            Self::Race => "race",
        }
    }
}

/// Adds a defect to a program. Returns the number of changed kernels.
pub fn plant(program: &mut Program, defect: Defect) -> usize {
    let statements = program.functions.values().flat_map(|function| function.body.walk());
    let parallel: BTreeSet<FunctionId> = statements
        .filter_map(|statement| match statement {
            Statement::Parallel { function, .. } => Some(*function),
            _ => None,
        })
        .collect();
    let last = program.functions.len().saturating_sub(1);
    let ids: Vec<FunctionId> = program.functions.iter().map(|(id, _)| id).collect();
    let mut planted = 0;
    for id in ids {
        let is_candidate = id.index() != last && (defect == Defect::OutOfBounds || parallel.contains(&id));
        let Some(pointer) = written_parameter(&program.functions[id]).filter(|_| is_candidate) else {
            continue;
        };
        let offset = if defect == Defect::OutOfBounds { -8 } else { 0 };
        append_store(&mut program.functions[id], pointer, offset);
        planted += 1;
    }
    planted
}

/// Returns a pointer parameter that the function may write through.
fn written_parameter(function: &Function) -> Option<ValueId> {
    let written = |p: &&Parameter| function.values[p.value] == Type::PTR && !p.pointer.read_only;
    function.parameters.iter().rfind(written).map(|p| p.value)
}

/// Appends a store of a byte at an offset from a pointer.
fn append_store(function: &mut Function, pointer: ValueId, offset: i64) {
    let index = function.values.push(Type::I64);
    let address = function.values.push(Type::PTR);
    let value = function.values.push(Type::scalar(ScalarType::I8));
    function.body.statements.extend([
        Statement::Let(index, Expression::Constant(Constant::Integer(offset))),
        Statement::Let(address, Expression::Offset { pointer, index, scale: 1 }),
        Statement::Let(value, Expression::Constant(Constant::Integer(0x2a))),
        Statement::Store { value, pointer: address, alignment: 1, mask: None },
    ]);
}
