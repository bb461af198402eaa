//! Functions of LAPACK on matrices of open sizes: on the whole arrays, with a diagonal matrix in
//! the rest of each, which changes no result.

use super::context::Context;
use bounded::{Bounded, Builder, Reducer};
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

/// Returns the function's name in the target of a custom call: `potrf` in `lapack_spotrf_ffi`.
pub(crate) fn lapack_function(target: &str) -> Option<&str> {
    let name = target.strip_prefix("lapack_")?.strip_suffix("_ffi")?;
    let (letter, function) = name.split_at_checked(1)?;
    matches!(letter, "s" | "d" | "c" | "z").then_some(function)
}

impl Context<'_, '_> {
    /// Returns a letter among the call's options, such as `uplo = 76`, an L.
    pub(crate) fn lapack_option(&self, name: &str) -> Option<char> {
        let options = ["mhlo.backend_config", "backend_config"];
        let value = options.iter().find_map(|key| self.view().find(key)?.dictionary()?.get(name)?.integer());
        value.and_then(|value| u8::try_from(value).ok()).map(char::from)
    }
}

/// The operands of a function on whole arrays.
pub(crate) struct Whole {
    /// The arrays.
    pub(crate) data: Vec<InstructionId>,
    /// The array whose true sizes all results have, as far as they have its dimensions.
    pub(crate) like: Bounded,
}

/// Returns whole arrays for a function on these matrices, or `None` if it needs known sizes.
pub(crate) fn whole(context: &mut Context<'_, '_>, operands: &[InstructionId]) -> Result<Option<Whole>> {
    let target = match context.operation.name.as_str() {
        "stablehlo.custom_call" => context.view().text("call_target_name")?,
        _ => return Ok(None),
    };
    let Some(name) = lapack_function(target) else { return Ok(None) };
    let lower = context.lapack_option("uplo").is_none_or(|letter| letter == 'L');
    let left_side = context.lapack_option("side").is_none_or(|letter| letter == 'L');
    let b = &mut context.importer.builder;
    let mut parts = Vec::with_capacity(operands.len());
    for &operand in operands {
        parts.push(b.split(operand)?);
    }
    let sizes = b.all_sizes(operands[0])?;
    let Some((&[rows, columns], _)) = sizes.split_last_chunk::<2>().map(|(batch, matrix)| (matrix, batch))
    else {
        return Ok(None);
    };
    if rows.bound != columns.bound || b.known_difference(rows, columns) != Some(0) {
        return Ok(None);
    }
    let element_type = b.element_type(parts[0].data);
    let beyond = match name {
        "potrf" | "getrf" => b.scalar(element_type, 1.0),
        "syevd" | "heevd" => above_eigenvalues(b, &parts[0], lower)?,
        "trsm" if parts.len() == 2 => {
            b.solved_sizes(&mut parts, left_side)?;
            let data = parts.iter().map(|part| part.data).collect();
            return Ok(Some(Whole { data, like: parts.swap_remove(1) }));
        }
        _ => return Ok(None),
    };
    let data = vec![b.with_diagonal_beyond(&parts[0], beyond)?];
    Ok(Some(Whole { data, like: parts.swap_remove(0) }))
}

/// Returns a number for each matrix that exceeds its eigenvalues: sums of magnitudes of a row and
/// of a column of a triangle are no less.
fn above_eigenvalues(b: &mut Builder, matrices: &Bounded, lower: bool) -> Result<InstructionId> {
    let element_type = b.element_type(matrices.data);
    let sizes = b.sizes(matrices.data);
    let (row, column) = (sizes.len() - 2, sizes.len() - 1);
    let zero = b.scalar(element_type, 0.0);
    let data = b.masked(matrices, &[row, column], zero)?;
    let (rows, columns) =
        (b.iota(PrimitiveType::S32, &sizes, row)?, b.iota(PrimitiveType::S32, &sizes, column)?);
    let direction = if lower { ComparisonDirection::Ge } else { ComparisonDirection::Le };
    let is_inside = b.compare(direction, rows, columns)?;
    let zeros = b.broadcast(zero, &sizes, &[])?;
    let triangle = b.select(is_inside, data, zeros)?;
    let magnitudes = b.op(Op::Abs {}, &[triangle])?;
    let (across, down) =
        (b.reduce(magnitudes, Reducer::Add, &[column])?, b.reduce(magnitudes, Reducer::Add, &[row])?);
    let sums = b.add(across, down)?;
    let most = b.reduce(sums, Reducer::Maximum, &[row])?;
    // Not much larger, so that small eigenvalues remain exact.
    let (twice, one) = (b.mul_scalar(most, 2.0)?, b.splat_like(most, 1.0)?);
    let is_zero = b.compare_scalar(ComparisonDirection::Eq, most, 0.0)?;
    let most = b.select(is_zero, one, twice)?;
    if !element_type.is_complex() {
        return Ok(most);
    }
    let none = b.splat_like(most, 0.0)?;
    b.op(Op::Complex {}, &[most, none])
}
