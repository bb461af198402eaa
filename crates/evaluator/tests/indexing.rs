//! Slices, pads, gathers, and scatters compared with XLA on the CPU.

use crate::support::*;
use hlo::*;
use shape::PrimitiveType::*;
use shape::{Literal, Shape};

fn table() -> Literal {
    f32s(&[4, 6], &(0..24).map(|i| i as f32).collect::<Vec<_>>())
}

fn iota(sizes: &[i64]) -> Literal {
    let count: i64 = sizes.iter().product();
    Literal::from_elements(sizes, &(0..count as i32).collect::<Vec<_>>())
}

fn values(literal: &Literal) -> Vec<i32> {
    literal.to_vec().expect("s32 elements")
}

#[test]
fn gathers_clamp_their_starts() {
    let numbers = GatherDimensionNumbers {
        offset_dims: vec![1],
        collapsed_slice_dims: vec![0],
        start_index_map: vec![0, 1],
        index_vector_dim: 1,
        ..GatherDimensionNumbers::default()
    };
    let starts = Literal::from_elements(&[3, 2], &[1i32, 5, 9, -3, -1, 2]);
    let op =
        Op::Gather { gather_dimension_numbers: numbers, slice_sizes: vec![1, 3], indices_are_sorted: false };
    let gathered = run_array(op, F32, &[3, 3], &[&table(), &starts]);
    assert_eq!(gathered.to_vec::<f32>().unwrap(), [9.0, 10.0, 11.0, 18.0, 19.0, 20.0, 2.0, 3.0, 4.0]);
}

#[test]
fn gathers_follow_batching_dimensions() {
    let numbers = GatherDimensionNumbers {
        offset_dims: vec![1],
        start_index_map: vec![1],
        operand_batching_dims: vec![0],
        start_indices_batching_dims: vec![0],
        index_vector_dim: 1,
        ..GatherDimensionNumbers::default()
    };
    let starts = Literal::from_elements(&[4, 1], &[4i32, 0, 2, 9]);
    let op =
        Op::Gather { gather_dimension_numbers: numbers, slice_sizes: vec![1, 2], indices_are_sorted: false };
    let gathered = run_array(op, F32, &[4, 2], &[&table(), &starts]);
    assert_eq!(gathered.to_vec::<f32>().unwrap(), [4.0, 5.0, 6.0, 7.0, 14.0, 15.0, 22.0, 23.0]);
}

#[test]
fn scatters_skip_windows_that_do_not_fit_and_combine_equal_indices() {
    let mut module = Module::new("test");
    let to_apply = binary(&mut module, Op::Add {}, F32, F32);
    let numbers = ScatterDimensionNumbers {
        update_window_dims: vec![1],
        inserted_window_dims: vec![0],
        scatter_dims_to_operand_dims: vec![0, 1],
        index_vector_dim: 1,
        ..ScatterDimensionNumbers::default()
    };
    let op = Op::Scatter {
        scatter_dimension_numbers: numbers,
        indices_are_sorted: false,
        unique_indices: false,
        to_apply,
    };
    let starts = Literal::from_elements(&[4, 2], &[1i32, 2, 1, 2, 3, 4, 0, 3]);
    let updates = f32s(&[4, 3], &(0..12).map(|i| (i * 100) as f32).collect::<Vec<_>>());
    let shape = Shape::array(F32, &[4, 6]);
    let result =
        evaluator::evaluate_instruction(&module, &op, &shape, &[&table(), &starts, &updates]).unwrap();
    assert_eq!(
        result.to_vec::<f32>().unwrap(),
        [
            0.0, 1.0, 2.0, 903.0, 1004.0, 1105.0, 6.0, 7.0, 308.0, 509.0, 710.0, 11.0, 12.0, 13.0, 14.0,
            15.0, 16.0, 17.0, 18.0, 19.0, 20.0, 21.0, 22.0, 23.0
        ]
    );
}

#[test]
fn pads_crop_at_negative_edges_and_spread_elements() {
    let padding = PaddingConfig {
        dimensions: vec![
            PaddingDimension { edge_padding_low: 1, edge_padding_high: -1, interior_padding: 1 },
            PaddingDimension { edge_padding_low: -1, edge_padding_high: 2, interior_padding: 0 },
        ],
    };
    let operand = Literal::from_elements(&[2, 3], &[1i32, 2, 3, 4, 5, 6]);
    let padded = run_array(Op::Pad { padding }, S32, &[3, 4], &[&operand, &Literal::scalar(9i32)]);
    assert_eq!(values(&padded), [9, 9, 9, 9, 2, 3, 9, 9, 9, 9, 9, 9]);
}

#[test]
fn elements_move_along_the_dimensions_they_should() {
    let x = iota(&[2, 3]);
    let broadcast = run_array(Op::Broadcast { dimensions: vec![0, 2] }, S32, &[2, 2, 3], &[&x]);
    assert_eq!(values(&broadcast), [0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5]);
    let y = iota(&[2, 3, 1]);
    let transposed = run_array(Op::Transpose { dimensions: vec![1, 2, 0] }, S32, &[3, 1, 2], &[&y]);
    assert_eq!(values(&transposed), [0, 3, 1, 4, 2, 5]);
    let reversed = run_array(Op::Reverse { dimensions: vec![1] }, S32, &[2, 3], &[&x]);
    assert_eq!(values(&reversed), [2, 1, 0, 5, 4, 3]);
    let slice = vec![
        SliceDimension { start: 1, limit: 2, stride: 1 },
        SliceDimension { start: 0, limit: 3, stride: 2 },
    ];
    assert_eq!(values(&run_array(Op::Slice { slice }, S32, &[1, 2], &[&x])), [3, 5]);
    let joined = run_array(Op::Concatenate { dimension: 1 }, S32, &[2, 4], &[&x, &iota(&[2, 1])]);
    assert_eq!(values(&joined), [0, 1, 2, 0, 3, 4, 5, 1]);
    let counted = run_array(Op::Iota { iota_dimension: 0 }, S32, &[2, 3], &[]);
    assert_eq!(values(&counted), [0, 0, 0, 1, 1, 1]);
}

#[test]
fn dynamic_slices_clamp_their_starts() {
    let (x, far, negative) = (iota(&[3, 4]), Literal::scalar(7i32), Literal::scalar(-2i32));
    let op = Op::DynamicSlice { dynamic_slice_sizes: vec![2, 2] };
    assert_eq!(values(&run_array(op, S32, &[2, 2], &[&x, &far, &negative])), [4, 5, 8, 9]);
    let update = Literal::from_elements(&[1, 2], &[-1i32, -2]);
    let updated = run_array(Op::DynamicUpdateSlice {}, S32, &[3, 4], &[&x, &update, &negative, &far]);
    assert_eq!(values(&updated), [0, 1, -1, -2, 4, 5, 6, 7, 8, 9, 10, 11]);
}
