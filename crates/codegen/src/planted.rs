//! Defects for tests of the sanitizers, put into programs on purpose. No part of builds that are given away.

use nest::{Block, Expression, Function, FunctionId, Program, ScalarType, Statement, Type, ValueId};
use std::collections::BTreeSet;
use support::Id;

/// A defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// Each kernel that writes also writes 8 bytes in front of what it writes through.
    OutOfBounds,
    /// Each part of a parallel kernel also writes the first byte of a block that all parts write through.
    Race,
}

/// Puts a defect into a program; returns how many kernels got it.
pub fn plant(program: &mut Program, defect: Planted) -> usize {
    let mut parallel = BTreeSet::new();
    for function in program.functions.values() {
        parallel_callees(&function.body, &mut parallel);
    }
    let last = program.functions.len().saturating_sub(1);
    let ids: Vec<FunctionId> = program.functions.iter().map(|(id, _)| id).collect();
    let mut planted = 0;
    for id in ids {
        let is_wanted =
            id.index() != last && (defect == Planted::OutOfBounds || parallel.contains(&id.index()));
        let Some(pointer) = written_parameter(&program.functions[id]).filter(|_| is_wanted) else { continue };
        let offset = if defect == Planted::OutOfBounds { -8 } else { 0 };
        append_store(&mut program.functions[id], pointer, offset);
        planted += 1;
    }
    planted
}

fn parallel_callees(block: &Block, found: &mut BTreeSet<usize>) {
    for statement in &block.statements {
        match statement {
            Statement::Parallel { function, .. } => drop(found.insert(function.index())),
            Statement::For { body, .. } => parallel_callees(body, found),
            Statement::While { condition, body, .. } => {
                parallel_callees(condition, found);
                parallel_callees(body, found);
            }
            Statement::If { then, otherwise, .. } => {
                parallel_callees(then, found);
                parallel_callees(otherwise, found);
            }
            _ => {}
        }
    }
}

/// A pointer parameter that the function may write through.
fn written_parameter(function: &Function) -> Option<ValueId> {
    let written = |p: &&nest::Parameter| function.values[p.value] == Type::PTR && !p.pointer.read_only;
    function.parameters.iter().rfind(written).map(|p| p.value)
}

/// Appends a store of a byte at an offset from a pointer.
fn append_store(function: &mut Function, pointer: ValueId, offset: i64) {
    let index = function.values.push(Type::I64);
    let address = function.values.push(Type::PTR);
    let value = function.values.push(Type::scalar(ScalarType::I8));
    function.body.statements.extend([
        Statement::Let(index, Expression::Constant(nest::Constant::Integer(offset))),
        Statement::Let(address, Expression::Offset { pointer, index, scale: 1 }),
        Statement::Let(value, Expression::Constant(nest::Constant::Integer(0x2a))),
        Statement::Store { value, pointer: address, alignment: 1, mask: None },
    ]);
}
