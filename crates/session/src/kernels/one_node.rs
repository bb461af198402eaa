//! From a node and its operands to a program of that node alone.

use super::{Operand, Site};
use crate::op_kind::{is_array, must_compile};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use shape::PrimitiveType;
use support::{Error, Result};
use tf::{DataType, FunctionLibrary, Node, NodeProgram, NodeVariable, Program, VariableState};

/// What an output of a node comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A result of the kernel.
    Result(usize),
    /// The reference that the node got.
    Reference(usize),
}

/// A program of one node.
pub(super) struct OneNode {
    pub(super) program: Program,
    /// Which input of the node each feed is.
    pub(super) feeds: Vec<usize>,
    pub(super) outputs: Vec<Source>,
}

/// The program of a node for operands.
pub(super) fn program(site: &Site, operands: &[Operand], library: &FunctionLibrary) -> Result<OneNode> {
    let mut inputs = NodeProgram::new();
    for (operand, &data_type) in operands.iter().zip(&site.input_types) {
        add_input(&mut inputs, operand, data_type)?;
    }
    let outputs = sources(&site.node)?;
    let mut program = inputs.finish(&site.node, must_compile(&site.node).then_some(library))?;
    for k in 0..program.variables.len() {
        program.variables[k].readonly = !import::may_write(&program, k);
    }
    let feeds = operands.iter().enumerate().filter(|(_, operand)| matches!(operand, Operand::Array(_)));
    Ok(OneNode { program, feeds: feeds.map(|(k, _)| k).collect(), outputs })
}

/// Where each output of a node comes from.
fn sources(node: &Node) -> Result<Vec<Source>> {
    let mut results = 0;
    let source = |(index, &data_type): (usize, &DataType)| {
        if data_type.is_ref() {
            // An op that updates a variable returns the reference that it got first.
            return Ok(Source::Reference(0));
        }
        if !is_array(data_type) {
            return Err(Error::unsupported(format!(
                "output {index} is of {data_type}, and no kernel makes such"
            )));
        }
        results += 1;
        Ok(Source::Result(results - 1))
    };
    node.output_types.iter().enumerate().map(source).collect()
}

/// Adds what stands for an input of a node.
fn add_input(program: &mut NodeProgram, operand: &Operand, data_type: DataType) -> Result<()> {
    let is_reference = data_type.is_ref();
    match operand {
        Operand::Array(shape) => program.argument(data_type.base(), shape.sizes()),
        Operand::Constant(tensor) => {
            let content = Bytes::copy_from_slice(tensor.bytes());
            program.constant(data_type.base(), &tensor.shape().sizes(), content);
        }
        Operand::Variable { shape, index, is_replaced } => program.variable(NodeVariable {
            // No name of TensorFlow's has a space.
            name: &format!("variable {index}"),
            shape: &shape.sizes(),
            data_type: variable_type(shape.element_type)?,
            is_reference,
            state: if *is_replaced { VariableState::Replaced } else { VariableState::Kept },
        }),
        Operand::Unset { name, data_type, .. } => {
            let element_type = data_type.primitive_type().ok_or_else(|| {
                Error::unsupported(format!("variable '{name}' is of {data_type}, and no kernel makes such"))
            })?;
            program.variable(NodeVariable {
                name,
                shape: &[],
                data_type: variable_type(element_type)?,
                is_reference,
                state: VariableState::Unset,
            });
        }
    }
    Ok(())
}

/// The type of a variable with these elements.
fn variable_type(element_type: PrimitiveType) -> Result<DataType> {
    let data_type = DataType::ALL.iter().find(|t| t.primitive_type() == Some(element_type));
    data_type.copied().ok_or_else(|| Error::internal("a variable of no type"))
}

/// What tells the functions that a node calls from others of their names.
pub(super) fn hash_of_called(node: &Node, library: &FunctionLibrary) -> Vec<u8> {
    let mut hash = Sha256::new();
    for function in library.called_by(node).functions() {
        hash.update(function.to_bytes());
    }
    hash.finalize().to_vec()
}
