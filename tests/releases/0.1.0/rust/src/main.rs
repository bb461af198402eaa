//! Compares variants of a model with results computed by hand.

#![deny(warnings)]

mod outside {
    tfcompile_runtime::include_model!("outside");
}
mod chosen {
    tfcompile_runtime::include_model!("chosen");
}
mod batched {
    tfcompile_runtime::include_model!("batched");
}
mod layer {
    tfcompile_runtime::include_model!("layer");
}
mod row {
    tfcompile_runtime::include_model!("row");
}

use tfcompile_runtime::{Constants, ThreadPool};

const X: [[f32; 3]; 2] = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
const WANT: [[f32; 2]; 2] = [[14.25, 0.5], [32.25, 0.0]];

fn main() {
    // SAFETY: the program has only one thread.
    assert_eq!(unsafe { core_only::score(&X) }, WANT);

    let mut outside = outside::Outside::new();
    *outside.arg_x_mut() = X;
    let error = outside.run().expect_err("no constants");
    assert!(error.message().contains("set_constants"), "{error}");
    let askew = Constants::from_static(b"TFCCONST and nothing else");
    assert!(outside.set_constants(askew).is_err());
    let file = Constants::read(env!("OUTSIDE_CONSTANTS")).expect("the file that the build wrote");
    outside.set_constants(file.clone()).expect("constants of this model");
    outside.run().expect("a run");
    assert_eq!(*outside.result_score(), WANT);
    assert_eq!(*outside.var_rows(), 2);
    let pool = std::sync::Arc::new(ThreadPool::new(2).expect("two threads"));
    outside.set_workers(Some(pool)).expect("scratch for two");
    outside.run().expect("a run");
    assert_eq!((*outside.outputs().result_score, *outside.var_rows()), (WANT, 4));
    assert_eq!(std::fs::read(env!("OUTSIDE_CONSTANTS")).expect("readable").len() % 64, 0);

    let mut chosen = chosen::Chosen::new();
    let outputs = chosen.call(&chosen::ChosenInputs { arg_x: &[0, 7, 0, 0, 9] }).expect("a run");
    assert_eq!(outputs.result_places_sizes, [2, 1]);
    assert_eq!(outputs.result_places[..2], [[1], [4]]);
    let outputs = chosen.call(&chosen::ChosenInputs { arg_x: &[0; 5] }).expect("a run");
    assert_eq!(outputs.result_places_sizes, [0, 1]);

    any_number_of_rows();
    independent_rows();

    // Scale 0.05 and zero point 3: [0, 1, -1, 100] becomes [3, 23, -17, 127], and 0.5 becomes 13.
    let mut row = row::Row::new();
    assert_eq!(
        (row::Row::RESULT_MODEL_MAXIMUM_SCALE, row::Row::ARG_SERVING_DEFAULT_INPUT_1_0_ZERO_POINT),
        (0.05, 3)
    );
    row.quantize_arg_serving_default_input_1_0(&[[[0.5; 4]; 3]; 2]);
    row.quantize_arg_serving_default_input_2_0(&[0.0, 1.0, -1.0, 100.0]);
    assert_eq!(*row.arg_serving_default_input_2_0(), [3, 23, -17, 127]);
    row.run().expect("a run");
    assert_eq!(*row.result_model_maximum(), [[[13, 23, 13, 127]; 3]; 2]);
    let mut greater = [[[0.0; 4]; 3]; 2];
    row.dequantize_result_model_maximum(&mut greater);
    assert!(greater.as_flattened().iter().all(|row| *row == [0.5, 1.0, 0.5, 0.05 * 124.0]), "{greater:?}");
    // SAFETY: the program has only one thread.
    assert_eq!(unsafe { core_only::row(0.5, &[0.0, 1.0, -1.0, 100.0]) }, greater);

    println!("all variants agree");
}

/// Runs batches of independent rows where they are: the model's own memory stays as it was.
fn independent_rows() {
    let mut model = layer::Layer::new();
    model.arg_x_mut().fill([7.0; 3]);
    for rows in (1..=64).rev() {
        let x: Vec<[f32; 3]> =
            (0..rows).map(|i| std::array::from_fn(|k| ((5 * i + 3 * k) % 9) as f32 - 4.0)).collect();
        let want = x.iter().map(|[a, b, c]| {
            [a + 2.0 * b + 3.0 * c, 0.5 * b + 4.0 * c - a].map(|sum| sum.max(0.0))
        });
        let outputs = model.call(&layer::LayerInputs { arg_x: &x }).expect("a run");
        assert_eq!(outputs.result_y, want.collect::<Vec<_>>());
        assert_eq!(outputs.result_y_sizes, [rows, 2]);
    }
    model.set_batch(64).expect("a size in range");
    assert!(model.arg_x().iter().all(|row| *row == [7.0; 3]), "{:?}", model.arg_x());
}

/// Compares sums of products for several sizes with loops. All numbers are integers, so sums are
/// exact in any order.
fn any_number_of_rows() {
    use batched::{Batched, BatchedInputs};
    let w: [[f32; 8]; 16] =
        std::array::from_fn(|k| std::array::from_fn(|j| ((3 * k + 5 * j) % 7) as f32 - 3.0));
    let x: Vec<[f32; 16]> = (0..64).map(|i| std::array::from_fn(|k| ((7 * i + k) % 11) as f32)).collect();
    let z: Vec<[f32; 8]> = (0..64).map(|i| std::array::from_fn(|j| (i * j) as f32)).collect();
    let expected = |i: usize| -> [f32; 8] {
        std::array::from_fn(|j| z[i][j] + (0..16).map(|k| x[i][k] * w[k][j]).sum::<f32>())
    };
    assert_eq!((Batched::BATCH_MIN, Batched::BATCH_MAX), (1, 64));
    let mut model = Batched::new();
    assert_eq!((model.batch(), model.arg_x().len()), (64, 64));
    for size in [64, 1, 7, 33, 64, 2] {
        let inputs = BatchedInputs { arg_x: &x[..size], arg_w: &w, arg_z: &z[..size] };
        let outputs = model.call(&inputs).expect("a run");
        assert_eq!((outputs.result_result0.len(), outputs.result_result0_sizes), (size, [size, 8]));
        assert!(outputs.result_result0.iter().enumerate().all(|(i, row)| *row == expected(i)), "{size}");
    }
    let inputs = BatchedInputs { arg_x: &x[..3], arg_w: &w, arg_z: &z[..4] };
    let error = model.call(&inputs).expect_err("different sizes");
    assert_eq!(error.message(), "arg_x and arg_z have different lengths");
    let inputs = BatchedInputs { arg_x: &[], arg_w: &w, arg_z: &[] };
    assert_eq!(model.call(&inputs).expect_err("no row").message(), "batch is out of range: 1..64");
    for size in [0, 65, usize::MAX] {
        assert_eq!(model.set_batch(size).expect_err("a size").message(), "batch is out of range: 1..64");
    }
    assert_eq!(model.batch(), 2);
    model.set_batch(5).expect("a size in range");
    *model.arg_w_mut() = w;
    model.arg_x_mut().copy_from_slice(&x[10..15]);
    model.arg_z_mut().copy_from_slice(&z[10..15]);
    model.run().expect("a run");
    assert_eq!(
        (model.result_result0().len(), model.result_result0_sizes(), model.arg_x_sizes()),
        (5, [5, 8], [5, 16])
    );
    assert!(model.result_result0().iter().zip(10..).all(|(row, i)| *row == expected(i)));
}
