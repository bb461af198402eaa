//! Decompositions, transforms, normalization, random numbers.

use super::Convert;
use crate::walk::Context;
use hlo::{FftType, InstructionId, Op, RandomAlgorithm, RandomDistribution, TriangularTranspose};
use support::{Error, Result};

pub(super) fn find(name: &str) -> Option<Convert> {
    Some(match name {
        "stablehlo.cholesky" => cholesky,
        "stablehlo.triangular_solve" => triangular_solve,
        "stablehlo.fft" => fft,
        "stablehlo.batch_norm_training" => batch_norm_training,
        "stablehlo.batch_norm_inference" => batch_norm_inference,
        "stablehlo.batch_norm_grad" => batch_norm_grad,
        "stablehlo.rng" => rng,
        "stablehlo.rng_bit_generator" => rng_bit_generator,
        _ => return None,
    })
}

fn cholesky(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let lower = context.view().flag("lower");
    let operands = context.operands()?;
    context.emit(Op::Cholesky { lower }, &operands)
}

fn triangular_solve(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let view = context.view();
    let transpose_a = match view.text("transpose_a")? {
        "NO_TRANSPOSE" => TriangularTranspose::NoTranspose,
        "TRANSPOSE" => TriangularTranspose::Transpose,
        "ADJOINT" => TriangularTranspose::Adjoint,
        other => return Err(Error::invalid(format!("unknown transpose '{other}'"))),
    };
    let op = Op::TriangularSolve {
        left_side: view.flag("left_side"),
        lower: view.flag("lower"),
        unit_diagonal: view.flag("unit_diagonal"),
        transpose_a,
    };
    let operands = context.operands()?;
    context.emit(op, &operands)
}

fn fft(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let view = context.view();
    let fft_type = match view.text("fft_type")? {
        "FFT" => FftType::Fft,
        "IFFT" => FftType::Ifft,
        "RFFT" => FftType::Rfft,
        "IRFFT" => FftType::Irfft,
        other => return Err(Error::invalid(format!("unknown transform '{other}'"))),
    };
    let fft_length = view.integers("fft_length")?;
    let operands = context.operands()?;
    context.emit(Op::Fft { fft_type, fft_length }, &operands)
}

fn normalization(context: &Context<'_, '_>) -> Result<(f32, usize)> {
    let view = context.view();
    Ok((view.float("epsilon")? as f32, view.dimension("feature_index")?))
}

fn batch_norm_training(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let (epsilon, feature_index) = normalization(context)?;
    let operands = context.operands()?;
    context.emit(Op::BatchNormTraining { epsilon, feature_index }, &operands)
}

fn batch_norm_inference(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let (epsilon, feature_index) = normalization(context)?;
    let operands = context.operands()?;
    context.emit(Op::BatchNormInference { epsilon, feature_index }, &operands)
}

fn batch_norm_grad(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let (epsilon, feature_index) = normalization(context)?;
    let operands = context.operands()?;
    context.emit(Op::BatchNormGrad { epsilon, feature_index }, &operands)
}

/// The third operand, the shape, is redundant with the result's type.
fn rng(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let distribution = match context.view().text("rng_distribution")? {
        "UNIFORM" => RandomDistribution::Uniform,
        "NORMAL" => RandomDistribution::Normal,
        other => return Err(Error::invalid(format!("unknown distribution '{other}'"))),
    };
    let operands = [context.operand(0)?, context.operand(1)?];
    context.emit(Op::Rng { distribution }, &operands)
}

fn rng_bit_generator(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let algorithm = match context.view().text("rng_algorithm")? {
        "DEFAULT" => RandomAlgorithm::Default,
        "THREE_FRY" => RandomAlgorithm::ThreeFry,
        "PHILOX" => RandomAlgorithm::Philox,
        other => return Err(Error::invalid(format!("unknown algorithm '{other}'"))),
    };
    let operands = context.operands()?;
    context.emit(Op::RngBitGenerator { algorithm }, &operands)
}
