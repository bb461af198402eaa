//! Dots and convolutions compared with XLA on the CPU.

use crate::support::*;
use hlo::*;
use shape::Literal;
use shape::PrimitiveType::*;

fn window(size: i64) -> WindowDimension {
    WindowDimension::of_size(size)
}

#[test]
fn dots_put_batch_dimensions_first_then_lhs_then_rhs() {
    let numbers = DotDimensionNumbers {
        lhs_batch_dims: vec![0],
        lhs_contracting_dims: vec![2],
        rhs_batch_dims: vec![1],
        rhs_contracting_dims: vec![0],
    };
    let (lhs, rhs) = (pattern(&[2, 3, 4], 7, 11, 4), pattern(&[4, 2, 5], 5, 7, 3));
    let product = run_array(Op::Dot { dot_dimension_numbers: numbers }, F32, &[2, 3, 5], &[&lhs, &rhs]);
    assert_eq!(
        product.to_vec::<f32>().unwrap(),
        [
            7.0, -8.0, 19.0, 11.0, -25.0, -7.0, -19.0, 11.0, -1.0, 1.0, 1.0, 14.0, -8.0, -2.0, -17.0, 13.0,
            7.0, -13.0, -19.0, 17.0, 20.0, -3.0, -5.0, 14.0, -2.0, -17.0, -2.0, -8.0, 14.0, 1.0
        ]
    );
}

#[test]
fn integer_dots_take_the_type_of_the_result() {
    let numbers = DotDimensionNumbers {
        lhs_contracting_dims: vec![1],
        rhs_contracting_dims: vec![0],
        ..DotDimensionNumbers::default()
    };
    let op = Op::Dot { dot_dimension_numbers: numbers };
    let lhs = Literal::from_elements(&[2, 2], &[100i8, -100, 127, 2]);
    let rhs = Literal::from_elements(&[2, 2], &[100i8, 3, -128, 5]);
    assert_eq!(
        run_array(op.clone(), S32, &[2, 2], &[&lhs, &rhs]).to_vec::<i32>().unwrap(),
        [22800, -200, 12444, 391]
    );
    assert_eq!(run_array(op, S8, &[2, 2], &[&lhs, &rhs]).to_vec::<i8>().unwrap(), [16, 56, -100, -121]);
}

#[test]
fn f32_sums_round_once_at_the_end() {
    let numbers = DotDimensionNumbers {
        lhs_contracting_dims: vec![0],
        rhs_contracting_dims: vec![0],
        ..DotDimensionNumbers::default()
    };
    let x = f32s(&[3], &[16_777_216.0, 1.0, -16_777_216.0]);
    let ones = f32s(&[3], &[1.0; 3]);
    let op = Op::Dot { dot_dimension_numbers: numbers };
    assert_eq!(run_array(op, F32, &[], &[&x, &ones]), Literal::scalar(1f32));
}

#[test]
fn convolutions_stride_pad_dilate_and_group() {
    let rows = WindowDimension { stride: 2, padding_low: 1, base_dilation: 2, ..window(2) };
    let columns = WindowDimension { padding_low: 2, padding_high: 1, window_dilation: 2, ..window(3) };
    let dim_labels = ConvolutionDimensionNumbers::canonical(2);
    let op = Op::Convolution {
        window: Window { dimensions: vec![rows, columns] },
        dim_labels,
        feature_group_count: 2,
        batch_group_count: 1,
    };
    let (lhs, rhs) = (pattern(&[2, 4, 5, 4], 7, 11, 4), pattern(&[2, 3, 2, 4], 5, 7, 3));
    let result = run_array(op, F32, &[2, 4, 4, 4], &[&lhs, &rhs]);
    #[rustfmt::skip]
    assert_eq!(result.to_vec::<f32>().unwrap(), [-9.0, -9.0, -23.0, 17.0, 5.0, 1.0, -19.0, 2.0, -4.0, -17.0, -5.0, -24.0, 9.0, 5.0, -5.0, -19.0, 17.0, -3.0, 19.0, 19.0, 9.0, 7.0, -10.0, -7.0, 15.0, 7.0, 12.0, 20.0, -24.0, 9.0, 1.0, -10.0, -1.0, 3.0, -16.0, -1.0, -9.0, -9.0, -23.0, 17.0, 12.0, -2.0, -15.0, -2.0, -2.0, -9.0, 7.0, -23.0, 3.0, -13.0, -7.0, -10.0, 17.0, -3.0, 19.0, 19.0, -2.0, 11.0, -9.0, -2.0, 9.0, 17.0, -9.0, 19.0, 18.0, 4.0, 13.0, 25.0, -1.0, 3.0, -16.0, -1.0, -27.0, 13.0, -25.0, 9.0, 9.0, -1.0, -3.0, -16.0, 11.0, -1.0, 11.0, -17.0, 3.0, -13.0, -7.0, -10.0, 14.0, 4.0, 25.0, 9.0, -2.0, 3.0, 3.0, -7.0, -7.0, 5.0, -13.0, -4.0, 18.0, 4.0, 13.0, 25.0, 11.0, -5.0, -13.0, -2.0, -24.0, 18.0, -13.0, 13.0, -3.0, -11.0, -4.0, -13.0, 11.0, -1.0, 11.0, -17.0, -3.0, -14.0, -7.0, -2.0, 9.0, 11.0, 4.0, 11.0]);
}

fn one_dimensional(window: WindowDimension, batch_group_count: i64) -> Op {
    Op::Convolution {
        window: Window { dimensions: vec![window] },
        dim_labels: ConvolutionDimensionNumbers {
            input_batch_dimension: 0,
            input_feature_dimension: 1,
            input_spatial_dimensions: vec![2],
            kernel_spatial_dimensions: vec![0],
            kernel_input_feature_dimension: 1,
            kernel_output_feature_dimension: 2,
            output_batch_dimension: 0,
            output_feature_dimension: 1,
            output_spatial_dimensions: vec![2],
        },
        feature_group_count: 1,
        batch_group_count,
    }
}

#[test]
fn batch_groups_go_to_output_features() {
    let (lhs, rhs) = (pattern(&[4, 3, 2], 7, 11, 4), pattern(&[2, 3, 4], 5, 7, 3));
    let result = run_array(one_dimensional(window(2), 2), F32, &[2, 4, 1], &[&lhs, &rhs]);
    assert_eq!(result.to_vec::<f32>().unwrap(), [18.0, -18.0, 17.0, -30.0, -19.0, 10.0, 19.0, -32.0]);
}

#[test]
fn reversed_windows_run_backwards() {
    let (lhs, rhs) = (f32s(&[1, 1, 3], &[1.0, 2.0, 4.0]), f32s(&[2, 1, 1], &[10.0, 1.0]));
    let forward = run_array(one_dimensional(window(2), 1), F32, &[1, 1, 2], &[&lhs, &rhs]);
    assert_eq!(forward.to_vec::<f32>().unwrap(), [12.0, 24.0]);
    let reversal = WindowDimension { window_reversal: true, ..window(2) };
    let backward = run_array(one_dimensional(reversal, 1), F32, &[1, 1, 2], &[&lhs, &rhs]);
    assert_eq!(backward.to_vec::<f32>().unwrap(), [21.0, 42.0]);
}
