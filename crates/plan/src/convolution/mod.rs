//! Convolutions in canonical form: how their loops, tiles and packed kernels look.

mod dims;

pub use dims::{ConvolutionDims, Segment, SpatialDimension};

use crate::{Fusion, InstructionPlan, Position, Strategy, dot};
use shape::{ArrayShape, PrimitiveType};
use support::{Error, Result};
use target::Target;

/// The loops of a convolution.
#[derive(Clone, Debug, PartialEq)]
pub enum ConvolutionKind {
    /// One vector of output features after another, each tap looked up: everything that no other kind covers.
    General {
        /// Output features at once; 1 is a scalar loop.
        lanes: u32,
    },
}

/// How a convolution looks.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvolutionPlan {
    /// Its extents.
    pub dims: ConvolutionDims,
    /// Its loops.
    pub kind: ConvolutionKind,
    /// The type of products and sums.
    pub accumulator: PrimitiveType,
    /// The fusion's operand that is the input.
    pub input_operand: usize,
    /// The fusion's operand that is the kernel.
    pub kernel_operand: usize,
}

/// Plans a body that holds a convolution, with elementwise work behind it.
pub(crate) fn plan(fusion: &Fusion<'_>, target: &Target) -> Result<InstructionPlan> {
    let id = fusion.find_convolution().ok_or_else(|| Error::internal("the body has a convolution"))?;
    dot::check_epilogue(fusion, id)?;
    let operand = |k: usize| -> Result<(usize, &ArrayShape)> {
        let operand = fusion.body[id].operands()[k];
        let Position::Operand(number) = fusion.position(operand) else {
            return Err(Error::internal("a convolution's operands are in memory"));
        };
        Ok((number, fusion.body[operand].shape().expect_array()))
    };
    let ((input_operand, input), (kernel_operand, kernel)) = (operand(0)?, operand(1)?);
    let result = fusion.body[id].shape().expect_array();
    if [input, kernel, result].iter().any(|s| s.element_type == PrimitiveType::Pred) {
        return Err(Error::unsupported(
            "opcode convolution of pred; convert its operands to an integer type",
        ));
    }
    let dims = ConvolutionDims::new(fusion.body[id].op(), input, kernel, result)?;
    let accumulator = dot::accumulator(result.element_type);
    let kind = ConvolutionKind::General { lanes: general_lanes(&dims, accumulator, target) };
    let plan = ConvolutionPlan { dims, kind, accumulator, input_operand, kernel_operand };
    let mut instruction = InstructionPlan::new(Strategy::Convolution(Box::new(plan)));
    instruction.tasks = 1;
    Ok(instruction)
}

/// The widest vector that a group's output features fill.
fn general_lanes(dims: &ConvolutionDims, accumulator: PrimitiveType, target: &Target) -> u32 {
    if accumulator.is_complex() {
        return 1;
    }
    let mut lanes = target.lanes(accumulator.byte_size());
    while i64::from(lanes) > dims.outputs.max(1) {
        lanes /= 2;
    }
    lanes
}

impl std::fmt::Display for ConvolutionPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ConvolutionDims { batch, groups, inputs, outputs, .. } = self.dims;
        let kind = match &self.kind {
            ConvolutionKind::General { .. } => "general convolution",
        };
        write!(f, "{kind} {batch}x{}", self.dims.pixels())?;
        if groups != 1 {
            write!(f, ", {groups} groups")?;
        }
        write!(f, ", {} taps, {inputs} to {outputs} features in {}", self.dims.taps(), self.accumulator)?;
        match &self.kind {
            ConvolutionKind::General { lanes } => write!(f, ", {lanes} lanes"),
        }
    }
}
