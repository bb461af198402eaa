//! Factorizations, solves, Fourier transforms, and batch normalization compared with NumPy and JAX.

use crate::support::*;
use hlo::*;
use shape::PrimitiveType::*;
use shape::{Literal, Shape};

const LOWER: [f64; 9] = [2.0, 0.0, 0.0, 1.0, 3.0, 0.0, 4.0, 5.0, 6.0];

#[test]
fn cholesky_reads_one_triangle_and_clears_the_other() {
    // The ignored triangle contains other values.
    let lower = Literal::from_elements(&[3, 3], &[4.0f64, 99.0, 99.0, 2.0, 5.0, 99.0, 1.0, 3.0, 6.0]);
    assert_close(
        &run_array(Op::Cholesky { lower: true }, F64, &[3, 3], &[&lower]),
        &[2.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.5, 1.25, 2.0463381929681126],
    );
    let upper = lower.transpose(&[1, 0]);
    let factor = run_array(Op::Cholesky { lower: false }, F64, &[3, 3], &[&upper]);
    assert_close(&factor.transpose(&[1, 0]), &[2.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.5, 1.25, 2.0463381929681126]);
    let hermitian = Literal::from_elements(&[2, 2], &[[4.0f64, 0.0], [1.0, 2.0], [1.0, -2.0], [6.0, 0.0]]);
    let expected = &[2.0, 0.0, 0.0, 0.0, 0.5, -1.0, 2.179449471770337, 0.0];
    assert_close(&run_array(Op::Cholesky { lower: true }, C128, &[2, 2], &[&hermitian]), expected);
}

#[test]
fn cholesky_of_an_indefinite_matrix_is_nan_and_leaves_its_neighbors_alone() {
    let stack = Literal::from_elements(&[2, 1, 1], &[-1.0f64, 9.0]);
    let factors =
        run_array(Op::Cholesky { lower: true }, F64, &[2, 1, 1], &[&stack]).to_vec::<f64>().unwrap();
    assert!(factors[0].is_nan());
    assert_eq!(factors[1], 3.0);
}

fn solve(left_side: bool, transpose_a: TriangularTranspose, unit_diagonal: bool, b: &Literal) -> Literal {
    let a = Literal::from_elements(&[3, 3], &LOWER);
    let op = Op::TriangularSolve { left_side, lower: true, unit_diagonal, transpose_a };
    run(op, b.shape(), &[&a, b])
}

#[test]
fn triangular_solves_from_both_sides() {
    use TriangularTranspose::*;
    let b = Literal::from_elements(&[3, 2], &[1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let bt = b.transpose(&[1, 0]);
    assert_close(
        &solve(true, NoTranspose, false, &b),
        &[0.49999999999999994, 1.0, 0.8333333333333333, 1.0, -0.1944444444444444, -0.5],
    );
    assert_close(
        &solve(true, Transpose, false, &b),
        &[
            -0.9722222222222222,
            -0.8333333333333334,
            -0.3888888888888887,
            -0.3333333333333333,
            0.8333333333333333,
            1.0,
        ],
    );
    assert_close(
        &solve(false, NoTranspose, false, &bt),
        &[
            -0.9722222222222223,
            -0.38888888888888895,
            0.8333333333333335,
            -0.8333333333333334,
            -0.33333333333333326,
            1.0,
        ],
    );
    assert_close(
        &solve(false, Transpose, false, &bt),
        &[0.5, 0.8333333333333333, -0.1944444444444444, 1.0, 1.0, -0.49999999999999983],
    );
    assert_close(&solve(true, NoTranspose, true, &b), &[1.0, 2.0, 2.0, 2.0, -9.0, -12.0]);
}

fn transform(
    fft_type: FftType,
    lengths: &[i64],
    element_type: shape::PrimitiveType,
    sizes: &[i64],
    x: &Literal,
) -> Literal {
    run_array(Op::Fft { fft_type, fft_length: lengths.to_vec() }, element_type, sizes, &[x])
}

#[test]
fn roots_at_whole_quarters_of_a_turn_are_exact() {
    let x = Literal::from_elements(&[4], &[-574.25, 3.5, 0.125, -7.0]);
    let spectrum = transform(FftType::Rfft, &[4], C128, &[3], &x);
    assert_eq!(spectrum.to_vec::<[f64; 2]>().unwrap(), [[-577.625, 0.0], [-574.375, -10.5], [-570.625, 0.0]]);
}

#[test]
fn fourier_transforms() {
    let mut z = vec![[1.0, 2.0], [-3.0, 0.5], [0.25, -1.0], [0.0, -2.0], [5.0, 0.0], [2.0, 1.0]];
    let six = Literal::from_elements(&[6], &z);
    assert_close(
        &transform(FftType::Fft, &[6], C128, &[6], &six),
        &[
            5.25,
            0.5,
            -3.424038105676658,
            13.693747686898277,
            -0.6919872981077807,
            -0.03349364905389035,
            7.25,
            1.5,
            -1.5580127018922192,
            -0.46650635094610965,
            -0.825961894323342,
            -3.193747686898277,
        ],
    );
    assert_close(
        &transform(FftType::Ifft, &[6], C128, &[6], &six),
        &[
            0.875,
            0.08333333333333333,
            -0.13766031572055706,
            -0.5322912811497127,
            -0.25966878364870316,
            -0.07775105849101827,
            1.208333333333333,
            0.25,
            -0.11533121635129678,
            -0.005582274842315058,
            -0.5706730176127761,
            2.2822912811497127,
        ],
    );
    z.push([0.0, 1.0]);
    let seven = Literal::from_elements(&[7], &z);
    assert_close(
        &transform(FftType::Fft, &[7], C128, &[7], &seven),
        &[
            5.25,
            1.5,
            -9.084524890322783,
            10.958209427903011,
            4.701798345462431,
            -1.3244312239023432,
            3.3900192591214693,
            5.901674250001741,
            4.596288717094202,
            -3.7144971178837407,
            0.8138653713019035,
            2.162909214598466,
            -2.667446802657225,
            -1.4838645507171337,
        ],
    );
    let real = Literal::from_elements(&[2, 3], &[1.0f64, 2.0, 3.0, 4.0, 5.0, 7.0]);
    assert_close(
        &transform(FftType::Rfft, &[2, 3], C128, &[2, 2], &real),
        &[22.0, 0.0, -3.5, 2.598076211353316, -10.0, 0.0, 0.5, -0.8660254037844386],
    );
    let half = [[1.0, 0.0], [2.0, 1.0], [3.0, 0.0], [4.0, -1.0], [5.0, 2.0], [7.0, 1.0f64]];
    let half = Literal::from_elements(&[2, 3], &half);
    assert_close(
        &transform(FftType::Irfft, &[2, 4], F64, &[2, 4], &half),
        &[3.625, -1.375, 0.125, 0.125, -1.625, 0.375, -0.125, -0.125],
    );
}

#[test]
fn batch_normalization_and_its_gradients() {
    let x = Literal::from_elements(&[2, 2, 2], &[1.0f64, 2.0, 3.0, -4.0, 5.0, 0.5, 7.0, 8.0]);
    let dy = Literal::from_elements(&[2, 2, 2], &[1.0f64, 0.0, 0.5, -1.0, 2.0, 3.0, -1.0, 1.0]);
    let (scale, offset) =
        (Literal::from_elements(&[2], &[1.5, -2.0]), Literal::from_elements(&[2], &[0.25, 1.0]));
    let (mean, variance) =
        (Literal::from_elements(&[2], &[4.0, 1.625]), Literal::from_elements(&[2], &[5.0, 18.421875]));
    let vector = Shape::array(F64, &[2]);
    let shape = Shape::Tuple(vec![x.shape(), vector.clone(), vector]);
    let (epsilon, feature_index) = (0.001, 2);
    let expected = [
        -1.7622599638137229,
        0.8252639312278609,
        -0.420753321271241,
        3.621041031582086,
        0.920753321271241,
        1.524208206316417,
        2.262259963813723,
        -1.970513169126364,
    ];
    // The attribute is the f32 nearest to 0.001.
    let near = |literal: &Literal, expected: &[f64]| {
        for (got, want) in literal.to_vec::<f64>().unwrap().iter().zip(expected) {
            assert!((got - want).abs() < 1e-9, "{got} is not {want}");
        }
    };
    let op = Op::BatchNormTraining { epsilon, feature_index };
    let Literal::Tuple(training) = run(op, shape.clone(), &[&x, &scale, &offset]) else { panic!() };
    near(&training[0], &expected);
    assert_eq!(training[1..], [mean.clone(), variance.clone()]);
    let op = Op::BatchNormInference { epsilon, feature_index };
    near(&run(op, x.shape(), &[&x, &scale, &offset, &mean, &variance]), &expected);
    let op = Op::BatchNormGrad { epsilon, feature_index };
    let Literal::Tuple(gradients) = run(op, shape, &[&x, &scale, &mean, &variance, &dy]) else { panic!() };
    near(
        &gradients[0],
        &[
            -0.20113546278971894,
            0.36992359521795415,
            -0.23473348458104987,
            0.5086631224981748,
            1.0731751361701012,
            -1.1097707856538626,
            -0.6373061887993322,
            0.23118406793773355,
        ],
    );
    near(&gradients[1], &[-2.012259963813723, 2.009464790879599]);
    near(&gradients[2], &[2.5, 3.0]);
}
