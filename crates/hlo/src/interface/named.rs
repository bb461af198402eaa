//! Dimensions whose sizes the caller of a program chooses.

use crate::computation::Computation;
use crate::ids::InstructionId;
use crate::module::Module;
use crate::opcode::Op;
use std::fmt;

/// The range of a size that the caller of a program chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeRange {
    /// The smallest size.
    pub low: i64,
    /// The largest size, which arrays have.
    pub high: i64,
}

impl SizeRange {
    /// True if the caller may choose this size.
    pub fn contains(self, size: i64) -> bool {
        (self.low..=self.high).contains(&size)
    }
}

impl fmt::Display for SizeRange {
    /// `1..64`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.low, self.high)
    }
}

/// A dimension of an argument whose size the caller chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedDimension {
    /// The dimension.
    pub dimension: usize,
    /// The argument that holds its size; see [`super::Argument::range`].
    pub size: usize,
}

impl super::Interface {
    /// Adds named dimensions to arguments, each with the number of its argument.
    pub fn add_named_dimensions(&mut self, named: impl IntoIterator<Item = (usize, NamedDimension)>) {
        for (argument, named) in named {
            let known = &mut self.arguments[argument].named_dimensions;
            if !known.contains(&named) {
                known.push(named);
            }
        }
    }
}

/// Returns the parameters' dimensions whose sizes are size parameters, as the entry of an imported
/// module sets them. Arguments are numbered as the arrays in all parameters. Passes that remove
/// bounded shapes remove this information.
pub fn named_dimensions(module: &Module) -> Vec<(usize, NamedDimension)> {
    let entry = module.entry_computation();
    let is_size = |number: usize| module.size_parameters().iter().any(|size| size.parameter == number);
    let mut found = Vec::new();
    for (_, instruction) in entry.instructions() {
        let Op::SetDimensionSize { dimension } = *instruction.op() else { continue };
        let mut array = instruction.operands()[0];
        while matches!(entry[array].op(), Op::SetDimensionSize { .. }) {
            array = entry[array].operands()[0];
        }
        let size = instruction.operands()[1];
        let number = entry.parameters().iter().position(|&parameter| parameter == size);
        if number.is_some_and(is_size)
            && let (Some(argument), Some(size)) = (argument(entry, array), argument(entry, size))
        {
            found.push((argument, NamedDimension { dimension, size }));
        }
    }
    found.sort_by_key(|(argument, named)| (*argument, named.dimension));
    found.dedup();
    found
}

/// Returns the number of a parameter's array among the arrays in all parameters.
fn argument(entry: &Computation, mut array: InstructionId) -> Option<usize> {
    let mut path = Vec::new();
    while let Op::GetTupleElement { index } = *entry[array].op() {
        path.push(index);
        array = entry[array].operands()[0];
    }
    path.reverse();
    let parameters = entry.parameters();
    let number = parameters.iter().position(|&parameter| parameter == array)?;
    let within = entry[array].shape().leaves().iter().position(|(index, _)| *index == path)?;
    Some(parameters[..number].iter().map(|&id| entry[id].shape().leaves().len()).sum::<usize>() + within)
}
