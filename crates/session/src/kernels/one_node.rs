//! Builds the program of a single node from the node and its operands.

use super::{Operand, Site};
use crate::op_kind::{is_array, must_compile};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use shape::{ArrayShape, PrimitiveType};
use std::collections::BTreeMap;
use std::sync::Arc;
use support::{Error, Result};
use tf::{DataType, FunctionLibrary, Node, NodeProgram, NodeVariable, Program, VariableState};

/// Source of a node's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A result of the kernel.
    Result(usize),
    /// A reference that the node received.
    Reference(usize),
}

/// The program of a single node.
pub(super) struct OneNode {
    pub(super) program: Program,
    /// For each feed, the index of the node's input.
    pub(super) feeds: Vec<usize>,
    pub(super) outputs: Vec<Source>,
}

/// Builds the program of a node for these operands.
pub(super) fn program(site: &Site, operands: &[Operand], library: &FunctionLibrary) -> Result<OneNode> {
    let mut inputs = NodeProgram::new();
    for bound in bounds(operands) {
        inputs.dimension(bound);
    }
    for (operand, &data_type) in operands.iter().zip(&site.input_types) {
        add_input(&mut inputs, operand, data_type)?;
    }
    let outputs = sources(&site.node)?;
    let mut program = inputs.finish(&site.node, must_compile(&site.node).then_some(library))?;
    for k in 0..program.variables.len() {
        program.variables[k].readonly = !import::may_write(&program, k);
    }
    let is_feed = |operand: &Operand| matches!(operand, Operand::Array(_) | Operand::Sized { .. });
    let feeds = operands.iter().enumerate().filter(|(_, operand)| is_feed(operand));
    Ok(OneNode { program, feeds: feeds.map(|(k, _)| k).collect(), outputs })
}

/// The bound of each name, in the order of their numbers.
pub(super) fn bounds(operands: &[Operand]) -> Vec<i64> {
    let places = named_dimensions(operands);
    let bound = |&(input, dimension): &(usize, usize)| match &operands[input] {
        Operand::Sized { shape, .. } => shape.size(dimension),
        _ => 0,
    };
    places.iter().map(bound).collect()
}

/// An input and a dimension of it with each name, in the order of their numbers.
pub(super) fn named_dimensions(operands: &[Operand]) -> Vec<(usize, usize)> {
    let mut places = BTreeMap::new();
    for (input, operand) in operands.iter().enumerate() {
        let Operand::Sized { named, .. } = operand else { continue };
        for (&dimension, &name) in named {
            places.entry(name).or_insert((input, dimension));
        }
    }
    places.into_values().collect()
}

/// The operands for one size of their only name.
pub(super) fn at_size(operands: &[Operand], size: i64) -> Vec<Operand> {
    let of_operand = |operand: &Operand| {
        let Operand::Sized { shape, named } = operand else { return operand.clone() };
        let mut sizes = shape.sizes();
        named.keys().for_each(|&dimension| sizes[dimension] = size);
        Operand::Array(Arc::new(ArrayShape::new(shape.element_type, &sizes)))
    };
    operands.iter().map(of_operand).collect()
}

/// The source of each output of a node.
fn sources(node: &Node) -> Result<Vec<Source>> {
    let mut results = 0;
    let source = |(index, &data_type): (usize, &DataType)| {
        if data_type.is_ref() {
            // An op that updates a variable returns its first input, the reference.
            return Ok(Source::Reference(0));
        }
        if !is_array(data_type) {
            return Err(Error::unsupported(format!("no kernel supports output {index} of type {data_type}")));
        }
        results += 1;
        Ok(Source::Result(results - 1))
    };
    node.output_types.iter().enumerate().map(source).collect()
}

/// Adds the program's counterpart of a node's input.
fn add_input(program: &mut NodeProgram, operand: &Operand, data_type: DataType) -> Result<()> {
    let is_reference = data_type.is_ref();
    match operand {
        Operand::Array(shape) => program.argument(data_type.base(), shape.sizes(), BTreeMap::new()),
        Operand::Sized { shape, named } => {
            program.argument(data_type.base(), shape.sizes(), named.clone());
        }
        Operand::Constant(tensor) => {
            let content = Bytes::copy_from_slice(tensor.bytes());
            program.constant(data_type.base(), &tensor.shape().sizes(), content);
        }
        Operand::Variable { shape, index, is_replaced } => program.variable(NodeVariable {
            // TensorFlow's names contain no spaces, so this name cannot clash.
            name: &format!("variable {index}"),
            shape: &shape.sizes(),
            data_type: variable_type(shape.element_type)?,
            is_reference,
            state: if *is_replaced { VariableState::Separate } else { VariableState::InPlace },
        }),
        Operand::Unset { name, data_type, .. } => {
            let element_type = data_type.primitive_type().ok_or_else(|| {
                Error::unsupported(format!("no kernel supports variable '{name}' of type {data_type}"))
            })?;
            program.variable(NodeVariable {
                name,
                shape: &[],
                data_type: variable_type(element_type)?,
                is_reference,
                state: VariableState::Uninitialized,
            });
        }
    }
    Ok(())
}

/// The type of a variable with these elements.
fn variable_type(element_type: PrimitiveType) -> Result<DataType> {
    let data_type = DataType::ALL.iter().find(|t| t.primitive_type() == Some(element_type));
    data_type.copied().ok_or_else(|| Error::internal("no TensorFlow type has the variable's element type"))
}

/// Hashes the functions that a node calls, to distinguish functions of the same name.
pub(super) fn hash_of_called(node: &Node, library: &FunctionLibrary) -> Vec<u8> {
    let mut hash = Sha256::new();
    for function in library.called_by(node).functions() {
        hash.update(function.to_bytes());
    }
    hash.finalize().to_vec()
}
