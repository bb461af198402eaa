//! Matrix products and convolutions.

use super::Convert;
use crate::walk::Context;
use hlo::{ConvolutionDimensionNumbers, DotDimensionNumbers, InstructionId, Op, Window, WindowDimension};
use mlir::Attribute;
use support::{Error, Result};

pub(super) fn find(name: &str) -> Option<Convert> {
    Some(match name {
        "stablehlo.dot" => dot,
        "stablehlo.dot_general" => dot_general,
        "stablehlo.convolution" | "stablehlo.dynamic_conv" => convolution,
        _ => return None,
    })
}

/// Contracts the last dimension of the left operand with the first one of the right operand.
fn dot(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let operands = context.operands()?;
    let [lhs, _] = operands[..] else { return Err(Error::invalid("expected two operands")) };
    let last = context.array(lhs)?.rank().checked_sub(1);
    let numbers = DotDimensionNumbers {
        lhs_contracting_dims: last.into_iter().collect(),
        rhs_contracting_dims: last.map(|_| 0).into_iter().collect(),
        ..DotDimensionNumbers::default()
    };
    emit_dot(context, &operands, numbers)
}

fn dot_general(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let view = context.view();
    let numbers = DotDimensionNumbers {
        lhs_batch_dims: view.dimensions_or_none("lhs_batching_dimensions")?,
        lhs_contracting_dims: view.dimensions_or_none("lhs_contracting_dimensions")?,
        rhs_batch_dims: view.dimensions_or_none("rhs_batching_dimensions")?,
        rhs_contracting_dims: view.dimensions_or_none("rhs_contracting_dimensions")?,
    };
    let operands = context.operands()?;
    emit_dot(context, &operands, numbers)
}

fn emit_dot(
    context: &mut Context<'_, '_>,
    operands: &[InstructionId],
    dot_dimension_numbers: DotDimensionNumbers,
) -> Result<Vec<InstructionId>> {
    let operands = same_element_type(context, operands)?;
    context.emit(Op::Dot { dot_dimension_numbers }, &operands)
}

/// Converts operands of different types to the result type, in which the products are accumulated.
fn same_element_type(
    context: &mut Context<'_, '_>,
    operands: &[InstructionId],
) -> Result<Vec<InstructionId>> {
    let arrays = operands.iter().map(|&id| context.array(id)).collect::<Result<Vec<_>>>()?;
    let result_type = context.result_element_type()?;
    if arrays.windows(2).all(|pair| pair[0].element_type == pair[1].element_type) {
        return Ok(operands.to_vec());
    }
    let convert = |(&id, array): (&InstructionId, &shape::ArrayShape)| {
        context.op_with_shape(Op::Convert {}, &[id], array.with_element_type(result_type).into())
    };
    operands.iter().zip(&arrays).map(convert).collect()
}

fn convolution(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let (mut op, operands) = convolution_of(context)?;
    if let (Op::Convolution { window, .. }, "stablehlo.dynamic_conv") =
        (&mut op, context.operation.name.as_str())
    {
        let padding = context.constant_integers(2)?;
        set_padding(window, &padding)?;
    }
    context.emit(op, &operands)
}

/// Returns a convolution and its operands, without a padding that is an operand.
pub(crate) fn convolution_of(context: &mut Context<'_, '_>) -> Result<(Op, Vec<InstructionId>)> {
    let view = context.view();
    let dim_labels = ConvolutionDimensionNumbers {
        input_batch_dimension: view.dimension("input_batch_dimension")?,
        input_feature_dimension: view.dimension("input_feature_dimension")?,
        input_spatial_dimensions: view.dimensions_or_none("input_spatial_dimensions")?,
        kernel_input_feature_dimension: view.dimension("kernel_input_feature_dimension")?,
        kernel_output_feature_dimension: view.dimension("kernel_output_feature_dimension")?,
        kernel_spatial_dimensions: view.dimensions_or_none("kernel_spatial_dimensions")?,
        output_batch_dimension: view.dimension("output_batch_dimension")?,
        output_feature_dimension: view.dimension("output_feature_dimension")?,
        output_spatial_dimensions: view.dimensions_or_none("output_spatial_dimensions")?,
    };
    let operands = [context.operand(0)?, context.operand(1)?];
    let kernel = context.array(operands[1])?;
    let count = dim_labels.kernel_spatial_dimensions.len();
    if dim_labels.kernel_spatial_dimensions.iter().any(|&dimension| dimension >= kernel.rank()) {
        return Err(Error::invalid(format!("a spatial dimension is out of range for the kernel {kernel}")));
    }
    let sizes: Vec<i64> = dim_labels.kernel_spatial_dimensions.iter().map(|&k| kernel.size(k)).collect();
    let mut window = window(context, &sizes, "window_strides", "lhs_dilation", "rhs_dilation")?;
    let reversal = view.integers_or("window_reversal", count, 0)?;
    for (dimension, reversed) in window.dimensions.iter_mut().zip(reversal) {
        dimension.window_reversal = reversed != 0;
    }
    let op = Op::Convolution {
        window,
        dim_labels,
        feature_group_count: view.integer_or("feature_group_count", 1)?,
        batch_group_count: view.integer_or("batch_group_count", 1)?,
    };
    let operands = same_element_type(context, &operands)?;
    Ok((op, operands))
}

/// Returns a window of the given sizes, from the attributes with these names and `padding`.
pub(super) fn window(
    context: &Context<'_, '_>,
    sizes: &[i64],
    strides: &str,
    base_dilations: &str,
    window_dilations: &str,
) -> Result<Window> {
    let view = context.view();
    let count = sizes.len();
    let strides = view.integers_or(strides, count, 1)?;
    let base_dilations = view.integers_or(base_dilations, count, 1)?;
    let window_dilations = view.integers_or(window_dilations, count, 1)?;
    let dimension = |k: usize| WindowDimension {
        stride: strides[k],
        base_dilation: base_dilations[k],
        window_dilation: window_dilations[k],
        ..WindowDimension::of_size(sizes[k])
    };
    let mut window = Window { dimensions: (0..count).map(dimension).collect() };
    if view
        .find("padding")
        .is_some_and(|padding| !matches!(padding, Attribute::Array(list) if list.is_empty()))
    {
        set_padding(&mut window, &view.integers("padding")?)?;
    }
    Ok(window)
}

/// Sets the padding from alternating low and high values.
fn set_padding(window: &mut Window, padding: &[i64]) -> Result<()> {
    if padding.len() != 2 * window.dimensions.len() {
        return Err(Error::invalid(format!(
            "{} padding values for {} dimensions",
            padding.len(),
            window.dimensions.len()
        )));
    }
    for (dimension, pair) in window.dimensions.iter_mut().zip(padding.chunks_exact(2)) {
        dimension.padding_low = pair[0];
        dimension.padding_high = pair[1];
    }
    Ok(())
}
