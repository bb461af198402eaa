//! Products of matrices with integer weights.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule};
use crate::ops::lite::contraction::{Contraction, Hybrid, Scaling, activated, factors, with_bias};
use crate::ops::lite::dynamic;
use crate::ops::lite::operands::Operands;
use bounded::Reducer;
use hlo::{DotDimensionNumbers, InstructionId, Op};
use shape::{Literal, PrimitiveType, Shape};
use support::{Error, Result};

pub(crate) const RULES: &[Rule] =
    &[rule("TFLiteFullyConnected", fully_connected), rule("TFLiteBatchMatmul", batch_matmul)];

/// The weights are (output features, input features). The reference kernel scales sums in double
/// precision.
fn fully_connected(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let operands = Operands::of_node(cx)?;
    let attributes = cx.attributes();
    if attributes.int_or("weights_format", 0)? != 0 {
        return Err(Error::unsupported("shuffled weights are not supported: convert the model again"));
    }
    let (x, (w, from_w)) = (operands.input(cx, 0)?.0, operands.input(cx, 1)?);
    let (x_sizes, w_sizes) = (cx.sizes(x), cx.sizes(w));
    cx.check_rank("the weights", &w_sizes, 2)?;
    let (units, depth) = (w_sizes[0], w_sizes[1]);
    let count = cx.checked_product(&x_sizes)?;
    cx.check(depth > 0 && count % depth == 0, || {
        format!("an input {x_sizes:?} does not fit weights {w_sizes:?}")
    })?;
    let rows = count / depth;
    let contraction = Contraction {
        positions: [0, 1, 2],
        scaling: Scaling::Double,
        hybrid: Hybrid {
            rows: 1,
            is_asymmetric: attributes.bool_or("asymmetric_quantize_inputs", false)?,
            is_stepwise: false,
            order: None,
            has_tanh: true,
        },
    };
    let x = cx.reshape(x, &[rows, depth])?;
    let operands = operands.with_input(0, x);
    let dot_dimension_numbers = DotDimensionNumbers {
        lhs_contracting_dims: vec![1],
        rhs_contracting_dims: vec![1],
        ..DotDimensionNumbers::default()
    };
    let y = if from_w.scales.len() as i64 > units.max(1) {
        blockwise(cx, &operands)?
    } else {
        contraction.build(cx, &operands, &mut |cx, x, w, sum_type| {
            let op = Op::Dot { dot_dimension_numbers: dot_dimension_numbers.clone() };
            cx.op_shaped(&Shape::array(sum_type, &[rows, units]), op, &[x, w])
        })?
    };
    if !attributes.bool_or("keep_num_dims", false)? {
        return Ok(y);
    }
    let (last, outer) = x_sizes.split_last().ok_or_else(|| cx.invalid("the input is a scalar"))?;
    cx.check(*last == depth, || format!("an input {x_sizes:?} does not fit weights {w_sizes:?}"))?;
    cx.reshape(y, &[outer, &[units]].concat())
}

/// The product of a float matrix with weights that have a scale for each block of each row.
fn blockwise(cx: &mut NodeContext<'_, '_>, operands: &Operands) -> Result<InstructionId> {
    let (x, from_x) = operands.input(cx, 0)?;
    let (w, from_w) = operands.input(cx, 1)?;
    let (x_sizes, w_sizes) = (cx.sizes(x), cx.sizes(w));
    let ([rows, units], depth) = ([x_sizes[0], w_sizes[0]], w_sizes[1]);
    let blocks = from_w.scales.len() as i64 / units.max(1);
    let fits = from_x.element_type == PrimitiveType::F32
        && blocks * units == from_w.scales.len() as i64
        && depth % blocks == 0;
    cx.check(fits, || format!("{} scales do not fit weights {w_sizes:?}", from_w.scales.len()))?;
    let quantized = dynamic::quantize(cx, x, 1, true)?;
    let mut x = cx.convert(quantized.values, PrimitiveType::S32)?;
    if let Some(zero_points) = quantized.zero_points {
        let zero_points = cx.broadcast(zero_points, &x_sizes, &[0])?;
        x = cx.sub(x, zero_points)?;
    }
    let x = cx.reshape(x, &[rows, blocks, depth / blocks])?;
    let w = cx.convert(w, PrimitiveType::S32)?;
    let w = cx.reshape(w, &[units, blocks, depth / blocks])?;
    let dot_dimension_numbers = DotDimensionNumbers {
        lhs_batch_dims: vec![1],
        rhs_batch_dims: vec![1],
        lhs_contracting_dims: vec![2],
        rhs_contracting_dims: vec![2],
    };
    let sums = cx.op(Op::Dot { dot_dimension_numbers }, &[x, w])?;
    let sums = cx.convert(sums, PrimitiveType::F32)?;
    let scales = cx.literal(Literal::from_elements(&[units, blocks], &from_w.scales));
    let scales = cx.broadcast(scales, &[blocks, rows, units], &[2, 0])?;
    let scaled = cx.mul(sums, scales)?;
    let y = cx.reduce(scaled, Reducer::Add, &[0])?;
    let row_scales = cx.broadcast(quantized.scales, &[rows, units], &[0])?;
    let y = cx.mul(y, row_scales)?;
    let bias = if operands.has(2) { Some(operands.input(cx, 2)?.0) } else { None };
    let y = with_bias(cx, y, bias)?;
    let activation = cx.attributes().int_or("activation", 0)?;
    activated(cx, y, activation, true)
}

/// Products of matrices in the last two dimensions, optionally transposed. The other dimensions are
/// broadcast.
fn batch_matmul(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let mut operands = Operands::of_node(cx)?;
    let attributes = cx.attributes();
    let (x, from_x) = operands.input(cx, 0)?;
    let (y, from_y) = operands.input(cx, 1)?;
    let (x_sizes, y_sizes) = (cx.sizes(x), cx.sizes(y));
    let (x_rank, y_rank) = (x_sizes.len(), y_sizes.len());
    cx.check(x_rank >= 2 && y_rank >= 2, || {
        format!("expected two or more dimensions, got {x_sizes:?} and {y_sizes:?}")
    })?;
    let (adj_x, adj_y) = (attributes.bool_or("adj_x", false)?, attributes.bool_or("adj_y", false)?);
    // Rows of the input are scaled one by one, so they have to be rows.
    let transposed = |cx: &mut NodeContext<'_, '_>, id, rank: usize| {
        let mut permutation: Vec<usize> = (0..rank).collect();
        permutation.swap(rank - 2, rank - 1);
        cx.transpose(id, &permutation)
    };
    if adj_x {
        operands = operands.with_input(0, transposed(cx, x, x_rank)?);
    }
    let x_sizes = cx.sizes(operands.input(cx, 0)?.0);
    let [rows, depth] = [x_sizes[x_rank - 2], x_sizes[x_rank - 1]];
    let (y_inner, y_outer) = if adj_y { (y_rank - 1, y_rank - 2) } else { (y_rank - 2, y_rank - 1) };
    let [y_depth, columns] = [y_sizes[y_inner], y_sizes[y_outer]];
    cx.check(depth == y_depth, || format!("{x_sizes:?} and {y_sizes:?} do not fit each other"))?;
    let batch = cx.broadcast_sizes(&x_sizes[..x_rank - 2], &y_sizes[..y_rank - 2])?;
    // The input has the rank of the result, so that its rows are those of the result.
    let rank = batch.len() + 2;
    let x_wide = [vec![1; rank - x_rank], x_sizes.clone()].concat();
    let x = operands.input(cx, 0)?.0;
    operands = operands.with_input(0, cx.reshape(x, &x_wide)?);
    let sizes = [&batch[..], &[rows, columns]].concat();
    let mut sum = |cx: &mut NodeContext<'_, '_>, x: InstructionId, y: InstructionId, sum_type| {
        product(cx, [x, y], adj_y, &Shape::array(sum_type, &sizes))
    };
    let output = operands.output(cx, 0)?.element_type;
    if output == PrimitiveType::S32 && from_x.element_type == PrimitiveType::S8 {
        // Plain sums of stored numbers.
        let [x, y] = factors(cx, (operands.input(cx, 0)?.0, 0), (y, 0), PrimitiveType::S32)?;
        return sum(cx, x, y, PrimitiveType::S32);
    }
    cx.check(
        from_x.element_type == from_y.element_type || from_x.element_type == PrimitiveType::F32,
        || "the operands have different types".to_owned(),
    )?;
    let contraction = Contraction {
        positions: [0, 1, 2],
        scaling: Scaling::FixedOfSingle,
        hybrid: Hybrid {
            rows: rank - 1,
            is_asymmetric: attributes.bool_or("asymmetric_quantize_inputs", false)?,
            is_stepwise: false,
            order: reference_rows(&x_sizes, &y_sizes),
            has_tanh: false,
        },
    };
    contraction.build(cx, &operands, &mut sum)
}

/// The rows whose scales the reference kernel uses: it advances by the rows of one matrix along
/// every batch dimension. `None` if each row has its own scale.
fn reference_rows(x: &[i64], y: &[i64]) -> Option<Vec<i64>> {
    let mut sizes = x[..x.len() - 1].to_vec();
    // Matrices that meet the same one on the right count as one.
    if x.len() > 2 && y.len() > 2 && y[y.len() - 3] == 1 {
        let rows = sizes.pop()?;
        *sizes.last_mut()? *= rows;
    }
    let (&rows, batch) = sizes.split_last()?;
    let count: i64 = sizes.iter().product();
    let of = |row: i64| {
        let (mut matrix, mut first) = (row / rows, 0);
        for &size in batch.iter().rev() {
            if size != 1 {
                first += matrix % size * rows;
            }
            matrix /= size;
        }
        first + row % rows
    };
    // Steps along a single batch dimension are right.
    let is_right = batch.iter().filter(|&&size| size != 1).count() <= 1;
    (!is_right).then(|| (0..count).map(of).collect())
}

/// The product of two arrays of matrices, in a shape with broadcast batches.
fn product(
    cx: &mut NodeContext<'_, '_>,
    [x, y]: [InstructionId; 2],
    adj_y: bool,
    shape: &Shape,
) -> Result<InstructionId> {
    let (x_sizes, y_sizes) = (cx.sizes(x), cx.sizes(y));
    let sizes = shape.as_array().expect("it was made as an array").sizes();
    let batches = sizes.len() - 2;
    let element_type = shape.as_array().expect("it was made as an array").element_type;
    let (x_batch, x_matrix) = x_sizes.split_at(batches);
    let (y_batch, y_matrix) = y_sizes.split_at(y_sizes.len() - 2);
    if y_batch.iter().all(|&size| size == 1) && x_batch == &sizes[..batches] {
        let y = cx.reshape(y, y_matrix)?;
        let dot_dimension_numbers = DotDimensionNumbers {
            lhs_contracting_dims: vec![batches + 1],
            rhs_contracting_dims: vec![usize::from(adj_y)],
            ..DotDimensionNumbers::default()
        };
        return cx.op_shaped(&Shape::array(element_type, &sizes), Op::Dot { dot_dimension_numbers }, &[x, y]);
    }
    let x = cx.broadcast_to(x, &[&sizes[..batches], x_matrix].concat())?;
    let y = cx.broadcast_to(y, &[&sizes[..batches], y_matrix].concat())?;
    let batch: Vec<usize> = (0..batches).collect();
    let dot_dimension_numbers = DotDimensionNumbers {
        lhs_batch_dims: batch.clone(),
        rhs_batch_dims: batch,
        lhs_contracting_dims: vec![batches + 1],
        rhs_contracting_dims: vec![batches + usize::from(adj_y)],
    };
    cx.op_shaped(shape, Op::Dot { dot_dimension_numbers }, &[x, y])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offsets are those of the loops in the reference's `batch_matmul.h`.
    #[test]
    fn rows_advance_by_one_matrix_along_every_batch_dimension() {
        assert_eq!(reference_rows(&[2, 3, 4], &[4, 5]), None);
        assert_eq!(reference_rows(&[2, 3, 2, 4], &[4, 5]), Some(vec![0, 1, 2, 3, 4, 5, 2, 3, 4, 5, 6, 7]));
        // The matrices of the second dimension count as one of six rows.
        assert_eq!(reference_rows(&[2, 3, 2, 4], &[2, 1, 4, 5]), None);
    }
}
