//! Optimizers that update some rows of variables. The rows are updated one after another, so that a
//! row that occurs twice is updated twice, as in TensorFlow's kernels. Rows out of range are
//! skipped.

use super::adagrad::{adadelta, adagrad, adagrad_da, adagrad_v2, proximal_adagrad};
use super::adam::{centered_rms_prop, rms_prop};
use super::ftrl::ftrl;
use super::{Update, assign, keras_momentum, momentum, proximal_gradient_descent, variables};
use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule_values};
use crate::values::value::Value;
use bounded::list;
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::{Literal, PrimitiveType};
use support::Result;

type Translate = fn(&mut NodeContext<'_, '_>) -> Result<Vec<Value>>;

/// A rule of an op that updates rows of variables.
const fn update(op: &'static str, translate: Translate) -> Rule {
    rule_values(op, translate).types("T", FLOATS).types("Tindices", ROW_NUMBERS).effect()
}

const ROW_NUMBERS: &[tf::DataType] = &[tf::DataType::Int32, tf::DataType::Int64];

pub(crate) const RULES: &[Rule] = &[
    update("SparseApplyAdagrad", |cx| sparse(cx, 4, adagrad)),
    update("ResourceSparseApplyAdagrad", |cx| sparse(cx, 4, adagrad)),
    update("SparseApplyAdagradV2", |cx| sparse(cx, 5, adagrad_v2)),
    update("ResourceSparseApplyAdagradV2", |cx| sparse(cx, 5, adagrad_v2)),
    update("SparseApplyAdagradDA", |cx| sparse(cx, 4, adagrad_da)),
    update("ResourceSparseApplyAdagradDA", |cx| sparse(cx, 4, adagrad_da)),
    update("SparseApplyProximalAdagrad", |cx| sparse(cx, 6, proximal_adagrad)),
    update("ResourceSparseApplyProximalAdagrad", |cx| sparse(cx, 6, proximal_adagrad)),
    update("SparseApplyProximalGradientDescent", |cx| sparse(cx, 5, proximal_gradient_descent)),
    update("ResourceSparseApplyProximalGradientDescent", |cx| sparse(cx, 5, proximal_gradient_descent)),
    update("SparseApplyAdadelta", |cx| sparse(cx, 7, adadelta)),
    update("ResourceSparseApplyAdadelta", |cx| sparse(cx, 7, adadelta)),
    update("SparseApplyMomentum", |cx| sparse(cx, 4, momentum)),
    update("ResourceSparseApplyMomentum", |cx| sparse(cx, 4, momentum)),
    update("ResourceSparseApplyKerasMomentum", |cx| sparse(cx, 4, keras_momentum)),
    update("SparseApplyRMSProp", |cx| sparse(cx, 8, rms_prop)),
    update("ResourceSparseApplyRMSProp", |cx| sparse(cx, 8, rms_prop)),
    update("SparseApplyCenteredRMSProp", |cx| sparse(cx, 9, centered_rms_prop)),
    update("ResourceSparseApplyCenteredRMSProp", |cx| sparse(cx, 9, centered_rms_prop)),
    update("SparseApplyFtrl", |cx| sparse(cx, 4, |u, values| ftrl(u, values, false))),
    update("ResourceSparseApplyFtrl", |cx| sparse(cx, 4, |u, values| ftrl(u, values, false))),
    update("SparseApplyFtrlV2", |cx| sparse(cx, 4, |u, values| ftrl(u, values, true))),
    update("ResourceSparseApplyFtrlV2", |cx| sparse(cx, 4, |u, values| ftrl(u, values, true))),
];

/// The representation of an input in the loop.
#[derive(Clone)]
enum Inside {
    /// A compile-time constant.
    Known(Literal),
    /// Index of a value that the loop carries.
    Carried(usize),
}

/// Updates the rows of variables that the input at `indices_at` names. The preceding input contains
/// the rows of the gradient. The other inputs are those of the op that updates whole variables.
fn sparse<const N: usize>(
    cx: &mut NodeContext<'_, '_>,
    indices_at: usize,
    step: impl FnOnce(&mut Update<'_, '_, '_>, [InstructionId; N]) -> Result<[InstructionId; N]>,
) -> Result<Vec<Value>> {
    let (element_type, variables, values) = variables::<N>(cx)?;
    let (gradient, indices) = (cx.input(indices_at - 1)?, cx.input(indices_at)?);
    let (sizes, gradient_sizes, index_sizes) = (cx.sizes(values[0]), cx.sizes(gradient), cx.sizes(indices));
    let fits = matches!(index_sizes[..], [_]) && !sizes.is_empty() && !gradient_sizes.is_empty();
    cx.check(
        fits && gradient_sizes[..1] == index_sizes[..] && gradient_sizes[1..] == sizes[1..],
        || {
            format!(
                "the gradient {} does not have one row for each of the row numbers {}, of the shape of the rows of the variable {}",
                list(&gradient_sizes),
                list(&index_sizes),
                list(&sizes)
            )
        },
    )?;
    let (rows, count) = (sizes[0], index_sizes[0]);
    let count = i32::try_from(count).map_err(|_| cx.invalid(format!("too many rows: {count}")))?;
    if count == 0 || sizes.contains(&0) {
        return assign(cx, variables, values);
    }
    let row_sizes = sizes[1..].to_vec();
    let mut carried = values.to_vec();
    carried.extend([gradient, indices]);
    let mut scalars = Vec::new();
    for k in (N..cx.inputs().len()).filter(|&k| k != indices_at && k != indices_at - 1) {
        let id = cx.input(k)?;
        scalars.push(match cx.fold(id) {
            Some(known) => Inside::Known(known),
            None => {
                carried.push(id);
                Inside::Carried(carried.len() - 1)
            }
        });
    }
    let results = cx.counted_loop(count, &carried, |cx, number, state| {
        let row = cx.dynamic_row(state[N + 1], number)?;
        let last = cx.splat_like(row, (rows - 1) as f64)?;
        let zero = cx.splat_like(row, 0.0)?;
        let clamped = cx.op(Op::Clamp {}, &[zero, row, last])?;
        let is_row = cx.compare(ComparisonDirection::Eq, row, clamped)?;
        // Clamp before the conversion, so that it is exact for variables of any feasible size.
        let row = cx.convert(clamped, PrimitiveType::S64)?;
        let mut old = [row; N];
        for (old, &value) in old.iter_mut().zip(state) {
            *old = cx.dynamic_row(value, row)?;
        }
        let number = cx.convert(number, PrimitiveType::S64)?;
        let gradient = cx.dynamic_row(state[N], number)?;
        // The step reads the inputs of the op that updates whole variables.
        let outside = std::mem::take(&mut cx.inputs());
        let mut inputs = outside[..N].to_vec();
        let mut scalars = scalars.iter();
        for k in (N..outside.len()).filter(|&k| k != indices_at) {
            let id = match if k == indices_at - 1 { None } else { scalars.next() } {
                Some(Inside::Known(literal)) => cx.literal(literal.clone()),
                Some(Inside::Carried(at)) => state[*at],
                None => gradient,
            };
            inputs.push(Value::Array(id));
        }
        let sizes = row_sizes.clone();
        let new = cx.with_inputs(inputs, |cx| step(&mut Update { cx, element_type, sizes }, old));
        let mut next = state.to_vec();
        let is_row = cx.broadcast(is_row, &row_sizes, &[])?;
        for (k, new) in new?.into_iter().enumerate() {
            let updated = cx.select(is_row, new, old[k])?;
            next[k] = cx.with_dynamic_row(state[k], updated, row)?;
        }
        Ok(next)
    })?;
    let mut values = values;
    values.copy_from_slice(&results[..N]);
    assign(cx, variables, values)
}
