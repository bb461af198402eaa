//! Checks functions against their definitions: products of factors, sums of roots of unity, values
//! from tables (Abramowitz and Stegun).

use composite::linear_algebra as matrices;
use composite::{Expression, Function, build, special};
use hlo::{FftType, Module, OpMetadata};
use shape::{Literal, PrimitiveType, Shape};

/// Evaluates a function of these arguments.
fn evaluate(
    arguments: &[Literal],
    body: impl for<'f> FnOnce(&'f Function, &[Expression<'f>]) -> Vec<Expression<'f>>,
) -> Literal {
    let mut module = Module::new("test");
    let parameters: Vec<Shape> = arguments.iter().map(Literal::shape).collect();
    let id = build(&mut module, "f", &OpMetadata::default(), &parameters, body).expect("a valid function");
    module.set_entry(id);
    hlo::verify(&module).expect("a valid module");
    evaluator::evaluate(&module, arguments).expect("a value")
}

fn elements(literal: &Literal) -> Vec<f64> {
    literal.to_vec::<f64>().expect("f64")
}

fn vector(values: &[f64]) -> Literal {
    Literal::from_elements(&[values.len() as i64], values)
}

/// Returns pseudorandom numbers.
fn noise(sizes: &[i64], seed: u64) -> Literal {
    let count: i64 = sizes.iter().product();
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64 * 2.0 - 1.0
    };
    let values: Vec<f64> = (0..count).map(|_| next()).collect();
    Literal::from_elements(sizes, &values)
}

#[track_caller]
fn assert_near(got: &[f64], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len());
    for (k, (got, want)) in got.iter().zip(want).enumerate() {
        let near = (got - want).abs() <= tolerance * want.abs().max(1e-300) || got == want;
        assert!(near || (got.is_nan() && want.is_nan()), "element {k} is {got:e}, not {want:e}");
    }
}

#[track_caller]
fn check(function: for<'f> fn(Expression<'f>) -> Expression<'f>, pairs: &[(f64, f64)]) {
    let (x, want): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let got = evaluate(&[vector(&x)], |_, x| vec![function(x[0])]);
    assert_near(&elements(&got), &want, 2e-15);
}

#[test]
fn the_gamma_function_and_its_derivative() {
    let ln_root_pi = std::f64::consts::PI.ln() / 2.0;
    check(
        special::lgamma,
        &[
            (0.5, ln_root_pi),
            (1.0, 0.0),
            (2.0, 0.0),
            (4.0, 6f64.ln()),
            (11.0, 3_628_800f64.ln()),
            (-0.5, ln_root_pi + 2f64.ln()),
            (0.0, f64::INFINITY),
            (-3.0, f64::INFINITY),
            (f64::NEG_INFINITY, f64::INFINITY),
            (f64::NAN, f64::NAN),
        ],
    );
    check(
        special::digamma,
        &[
            (1.0, -0.577_215_664_901_532_9),
            (2.0, 0.422_784_335_098_467_1),
            (0.5, -1.963_510_026_021_423_5),
            (10.0, 2.251_752_589_066_721),
            (-0.5, 0.036_489_973_978_576_52),
            (-1.0, f64::NAN),
        ],
    );
}

#[test]
fn inverse_functions_and_bessel_functions() {
    check(
        special::erf_inv,
        &[(0.5, 0.476_936_276_204_469_9), (-1.0, f64::NEG_INFINITY), (1.5, f64::NAN), (0.0, 0.0)],
    );
    check(special::ndtri, &[(0.975, 1.959_963_984_540_054), (0.5, 0.0), (0.0, f64::NEG_INFINITY)]);
    check(special::bessel_j0, &[(0.0, 1.0), (1.0, 0.765_197_686_557_966_6)]);
    check(special::bessel_k0, &[(1.0, 0.421_024_438_240_708_34), (0.0, f64::INFINITY)]);
    check(special::bessel_i1, &[(1.0, 0.565_159_103_992_485), (-1.0, -0.565_159_103_992_485)]);
}

/// Returns the transform of `n` elements by its definition.
fn transform(re: &[f64], im: &[f64]) -> Vec<(f64, f64)> {
    let n = re.len();
    let root = |p: usize| {
        let angle = -2.0 * std::f64::consts::PI * (p % n) as f64 / n as f64;
        (angle.cos(), angle.sin())
    };
    let term = |j: usize, k: usize| {
        let (c, s) = root(j * k);
        (re[j] * c - im[j] * s, re[j] * s + im[j] * c)
    };
    (0..n).map(|k| (0..n).map(|j| term(j, k)).fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1))).collect()
}

#[test]
fn transforms_of_short_composite_and_prime_lengths() {
    for n in [1, 2, 7, 64, 65, 67, 96, 134, 210] {
        let (signal, imaginary) = (noise(&[1, n], 3), noise(&[1, n], 4));
        let got = evaluate(&[signal.clone(), imaginary.clone()], |_, parts| {
            let there = composite::fft::fft(parts[0].complex(parts[1]), FftType::Fft, &[n], |_, _| false);
            let back = composite::fft::fft(there, FftType::Ifft, &[n], |_, _| false);
            vec![there.real(), there.imag(), back.real()]
        });
        let Literal::Tuple(parts) = got else { panic!("three arrays") };
        let want = transform(&elements(&signal), &elements(&imaginary));
        let (re, im) = (elements(&parts[0]), elements(&parts[1]));
        for ((re, im), want) in re.iter().zip(&im).zip(&want) {
            let near = (re - want.0).abs() < 1e-12 && (im - want.1).abs() < 1e-12;
            assert!(near, "length {n}: {re}, {im} is not {want:?}");
        }
        for (got, want) in elements(&parts[2]).iter().zip(elements(&signal)) {
            assert!((got - want).abs() < 1e-13, "length {n} and back: {got} is not {want}");
        }
    }
}

#[test]
fn long_transforms_are_convolutions() {
    // One wave has one frequency, whose neighbors are no larger than errors.
    let (n, wave) = (8209, 4711);
    let part = |f: fn(f64) -> f64| {
        let angle = |j: i64| 2.0 * std::f64::consts::PI * ((j * wave) % n) as f64 / n as f64;
        Literal::from_elements(&[1, n], &(0..n).map(|j| f(angle(j))).collect::<Vec<f64>>())
    };
    let got = evaluate(&[part(f64::cos), part(f64::sin)], |_, parts| {
        let there = composite::fft::fft(parts[0].complex(parts[1]), FftType::Fft, &[n], |_, _| false);
        vec![there.real(), there.imag()]
    });
    let Literal::Tuple(parts) = got else { panic!("two arrays") };
    for (k, (re, im)) in elements(&parts[0]).iter().zip(elements(&parts[1])).enumerate() {
        let want = if k as i64 == wave { n as f64 } else { 0.0 };
        assert!((re - want).abs() < 1e-9 && im.abs() < 1e-9, "frequency {k}: {re}, {im}");
    }
}

#[test]
fn transforms_of_real_signals_are_halves_of_complex_ones() {
    for n in [1, 2, 3, 7, 16, 63, 64, 66, 67, 81, 100, 126, 134, 256] {
        let (signal, count) = (noise(&[2, n], 5), (n / 2 + 1) as usize);
        let got = evaluate(std::slice::from_ref(&signal), |_, parts| {
            let there = composite::fft::fft(parts[0], FftType::Rfft, &[n], |_, _| false);
            // The imaginary parts of the first frequency, and of the last one of an even length,
            // are ignored.
            let line = there.imag();
            let ignored = if n % 2 == 0 { vec![0, n / 2] } else { vec![0] };
            let place = there.function().iota(PrimitiveType::S32, &line.sizes(), 1);
            let changed =
                ignored.into_iter().fold(line, |line, k| place.equal(k as f64).select(line + 3.0, line));
            let back = composite::fft::fft(there.real().complex(changed), FftType::Irfft, &[n], |_, _| false);
            vec![there.real(), there.imag(), back]
        });
        let Literal::Tuple(parts) = got else { panic!("three arrays") };
        let (re, im, back) = (elements(&parts[0]), elements(&parts[1]), elements(&parts[2]));
        let all = elements(&signal);
        for (row, signal) in all.chunks(n as usize).enumerate() {
            let want = transform(signal, &vec![0.0; signal.len()]);
            for (k, want) in want[..count].iter().enumerate() {
                let (re, im) = (re[row * count + k], im[row * count + k]);
                let near = (re - want.0).abs() < 1e-12 && (im - want.1).abs() < 1e-12;
                assert!(near, "length {n}, frequency {k}: {re}, {im} is not {want:?}");
            }
        }
        for (got, want) in back.iter().zip(&all) {
            assert!((got - want).abs() < 1e-13, "length {n} and back: {got} is not {want}");
        }
    }
}

/// Returns the largest magnitude of a difference.
fn distance<'f>(a: Expression<'f>, b: Expression<'f>) -> Expression<'f> {
    (a - b).largest_magnitude(&[0, 1, 2])
}

/// Returns the distance of each matrix's columns from orthonormal.
fn from_orthonormal(x: Expression<'_>) -> Expression<'_> {
    let sizes = x.sizes();
    let identity = matrices::identity(x.function(), x.element_type(), [sizes[0], sizes[2], sizes[2]]);
    distance(matrices::matmul(matrices::adjoint(x), x), identity)
}

#[track_caller]
fn assert_small(errors: &Literal) {
    let Literal::Tuple(errors) = errors else { panic!("several errors") };
    for (k, error) in errors.iter().enumerate() {
        let error = elements(error)[0];
        assert!(error < 1e-12, "error {k} is {error:e}");
    }
}

#[test]
fn factors_multiply_to_what_was_factored() {
    for sizes in [[2, 5, 5], [1, 6, 4], [2, 3, 5], [1, 1, 1]] {
        let a = noise(&sizes, 5);
        assert_small(&evaluate(std::slice::from_ref(&a), |_, a| {
            let (q, r) = matrices::qr(a[0], false);
            let [u, s, v] = matrices::svd(a[0], false);
            let s = s.reshape(&[sizes[0], 1, s.size_from_end(0)]);
            let scaled = u * s.reshape(&[sizes[0], s.size_from_end(0)]).broadcast(&u.sizes(), &[0, 2]);
            vec![
                distance(matrices::matmul(q, r), a[0]),
                from_orthonormal(q),
                distance(matrices::matmul(scaled, matrices::adjoint(v)), a[0]),
                from_orthonormal(u),
                from_orthonormal(v),
            ]
        }));
    }
}

/// Triangular factors of matrices of any form, with and without blocks of columns.
#[test]
fn lu_factors_multiply_to_the_rows_in_order() {
    for sizes in [[2i64, 5, 5], [2, 8, 4], [2, 3, 7], [1, 150, 70], [1, 70, 150]] {
        let [batch, rows, columns] = sizes.map(|size| size as usize);
        let a = noise(&sizes, 8);
        let got = evaluate(std::slice::from_ref(&a), |_, a| {
            let lu = matrices::lu(a[0]);
            vec![lu.factors, lu.permutation]
        });
        let Literal::Tuple(parts) = got else { panic!("two arrays") };
        let (a, factors) = (elements(&a), elements(&parts[0]));
        let order = parts[1].to_vec::<i32>().expect("s32");
        for (b, row) in (0..batch).flat_map(|b| (0..rows).map(move |row| (b, row))) {
            let at = |row: usize, column: usize| factors[(b * rows + row) * columns + column];
            let source = b * rows + order[b * rows + row] as usize;
            for column in 0..columns {
                let last = row.min(column);
                let product: f64 = (0..=last)
                    .filter(|&k| k < columns)
                    .map(|k| if k == row { at(k, column) } else { at(row, k) * at(k, column) })
                    .sum();
                let error = (product - a[source * columns + column]).abs();
                assert!(error < 1e-11, "{sizes:?}: row {row}, column {column}: {error:e}");
            }
        }
    }
}

#[test]
fn a_matrix_without_full_rank_has_whole_factors() {
    // The second column is twice the first, the third is zero.
    let a = Literal::from_elements(&[1, 3, 3], &[1.0f64, 2.0, 0.0, 3.0, 6.0, 0.0, -1.0, -2.0, 0.0]);
    let got = evaluate(&[a], |_, a| {
        let [u, s, v] = matrices::svd(a[0], true);
        vec![s, from_orthonormal(u), from_orthonormal(v)]
    });
    let Literal::Tuple(parts) = got else { panic!("three arrays") };
    let s = elements(&parts[0]);
    assert!((s[0] - 55f64.sqrt()).abs() < 1e-13 && s[1].abs() < 1e-14 && s[2].abs() < 1e-14, "{s:?}");
    assert!(elements(&parts[1])[0] < 1e-13 && elements(&parts[2])[0] < 1e-13);
}

#[test]
fn eigenvectors_keep_their_directions_and_systems_are_solved() {
    for n in [1, 2, 3, 4, 5, 6, 9] {
        let (a, b) = (noise(&[2, n, n], 6), noise(&[2, n, 3], 7));
        assert_small(&evaluate(&[a, b], |_, operands| {
            let (a, b) = (operands[0], operands[1]);
            let symmetric = a + matrices::adjoint(a);
            let (values, v) = matrices::eigh(symmetric, true);
            let scaled = v * values.broadcast(&v.sizes(), &[0, 2]);
            let x = matrices::solve(a, b);
            vec![
                distance(matrices::matmul(symmetric, v), scaled),
                from_orthonormal(v),
                distance(matrices::matmul(a, x), b) * 0.1,
            ]
        }));
    }
}

/// Returns a square matrix with the given elements.
fn matrix(n: i64, element: impl Fn(i64, i64) -> f64) -> Literal {
    let values: Vec<f64> = (0..n * n).map(|at| element(at / n, at % n)).collect();
    Literal::from_elements(&[1, n, n], &values)
}

/// Returns matrices that are hard for methods based on rotations.
fn matrices_of_all_kinds(n: i64) -> Vec<Literal> {
    let on = |i: i64, j: i64, value: f64| if i == j { value } else { 0.0 };
    let noise = elements(&noise(&[n, n], 15));
    let random = |i: i64, j: i64| noise[(i * n + j) as usize];
    vec![
        matrix(n, random),
        matrix(n, |_, _| 0.0),
        matrix(n, |i, j| on(i, j, -2.0)),
        matrix(n, |i, j| on(i, j, (i % 3) as f64)),
        // Only one value is nonzero.
        matrix(n, |i, j| ((i + 1) * (j + 1)) as f64 / 441.0),
        // Wilkinson's: pairs of eigenvalues that differ only in the last places.
        matrix(n, |i, j| if i == j + 1 { 1.0 } else { on(i, j, (i - n / 2).abs() as f64) }),
        matrix(n, |i, j| random(i, j) * 10f64.powi(-(i + j) as i32)),
        matrix(n, |i, j| random(i, j) * 10f64.powi((i + j - 2 * n) as i32)),
        // Independent blocks.
        matrix(n, |i, j| if i / 4 == j / 4 { random(i, j) } else { 0.0 }),
        // Zeros on the diagonal: first, in the middle, last; and an all-zero diagonal.
        matrix(n, |i, j| if i == j { (i % 5).min(n - 1 - i) as f64 } else { on(i + 1, j, 1.0) }),
        matrix(n, |i, j| on(i + 1, j, 1.0)),
        matrix(n, |i, j| random(i, j) * 1e300),
        matrix(n, |i, j| random(i, j) * 1e-310),
    ]
}

#[track_caller]
fn assert_all_below(limit: f64, errors: &Literal, what: &str) {
    let Literal::Tuple(parts) = errors else { panic!("several errors") };
    let errors: Vec<f64> = parts.iter().map(|part| elements(part)[0]).collect();
    assert!(errors.iter().all(|&error| error < limit), "{what}: {errors:?}");
}

/// Returns the largest magnitude, or 1 if it is 0, as an array.
fn unit_of(a: Expression<'_>) -> Expression<'_> {
    let largest = a.largest_magnitude(&[0, 1, 2]);
    largest.gt(0.0).select(largest, 1.0).spread_like(a)
}

/// Returns by how much any element of `[1, n]` is below the previous one.
fn fall(values: Expression<'_>) -> Expression<'_> {
    let n = values.size_from_end(0);
    let fall = values.slice_in(1, 0, n - 1) - values.slice_in(1, 1, n);
    fall.max(0.0).largest_magnitude(&[0, 1])
}

#[test]
fn eigenvectors_of_larger_matrices_of_all_kinds() {
    let n = 13;
    for (k, a) in matrices_of_all_kinds(n).iter().enumerate() {
        let errors = evaluate(std::slice::from_ref(a), |_, a| {
            let lower = matrices::lower_triangle(a[0]);
            let [rows, columns] = [1, 2].map(|d| a[0].function().iota(PrimitiveType::S32, &[1, n, n], d));
            let symmetric = rows.ge(columns).select(a[0], matrices::adjoint(lower));
            let (values, v) = matrices::eigh(a[0], true);
            let unit = unit_of(symmetric);
            let scaled = v * (values.broadcast(&v.sizes(), &[0, 2]) / unit);
            vec![distance(matrices::matmul(symmetric / unit, v), scaled), from_orthonormal(v), fall(values)]
        });
        assert_all_below(4e-14, &errors, &format!("matrix {k}"));
    }
}

#[test]
fn singular_vectors_of_larger_matrices_of_all_kinds() {
    let n = 13;
    for (k, a) in matrices_of_all_kinds(n).iter().enumerate() {
        for columns in [n, 9] {
            let errors = evaluate(std::slice::from_ref(a), |_, a| {
                let a = a[0].slice_in(2, n - columns, n);
                let [u, s, v] = matrices::svd(a, true);
                let unit = unit_of(a);
                let scale =
                    (s / unit.slice_in(1, 0, 1).reshape(&s.sizes())).broadcast(&[1, n, columns], &[0, 2]);
                let product = matrices::matmul(u.slice_in(2, 0, columns) * scale, matrices::adjoint(v));
                vec![
                    distance(product, a / unit),
                    from_orthonormal(u),
                    from_orthonormal(v),
                    fall(-s),
                    fall(s.min(0.0) - s),
                ]
            });
            assert_all_below(4e-14, &errors, &format!("matrix {k}, {columns} columns"));
        }
    }
}

#[test]
fn large_matrices_are_reduced_in_parts() {
    let n = 49;
    let a = noise(&[1, n, n], 18);
    let errors = evaluate(std::slice::from_ref(&a), |_, a| {
        let symmetric = a[0] + matrices::adjoint(a[0]);
        let (values, v) = matrices::eigh(symmetric, true);
        let scaled = v * values.broadcast(&v.sizes(), &[0, 2]);
        let [u, s, w] = matrices::svd(a[0], false);
        let product = matrices::matmul(u * s.broadcast(&u.sizes(), &[0, 2]), matrices::adjoint(w));
        vec![distance(matrices::matmul(symmetric, v), scaled), from_orthonormal(v), distance(product, a[0])]
    });
    assert_all_below(1e-13, &errors, "49 rows");
}

#[test]
fn eigenvectors_of_larger_complex_matrices() {
    for n in [13, 18] {
        let parts = [noise(&[2, n, n], 16), noise(&[2, n, n], 17)];
        assert_small(&evaluate(&parts, |_, parts| {
            let a = parts[0].complex(parts[1]);
            let a = a + matrices::adjoint(a);
            let (values, v) = matrices::eigh(a, false);
            let scale = values.complex(values.splat(0.0)).broadcast(&v.sizes(), &[0, 2]);
            vec![distance(matrices::matmul(a, v), v * scale), from_orthonormal(v)]
        }));
    }
}

#[test]
fn what_is_not_finite_gives_no_numbers() {
    let a = Literal::from_elements(&[1, 2, 2], &[1.0f64, f64::NAN, f64::NAN, 2.0]);
    let got = evaluate(&[a], |_, a| {
        let (values, _) = matrices::eigh(a[0], true);
        vec![values, matrices::svd(a[0], false)[1]]
    });
    let Literal::Tuple(parts) = got else { panic!("two arrays") };
    assert!(parts.iter().all(|part| elements(part).iter().all(|x| x.is_nan())));
}

#[test]
fn large_triangles_are_solved_in_blocks() {
    use hlo::TriangularTranspose::{Adjoint, NoTranspose};
    let n = 150;
    for (lower, transpose_a) in [(true, NoTranspose), (true, Adjoint), (false, NoTranspose), (false, Adjoint)]
    {
        let (a, b) = (noise(&[1, n, n], 8), noise(&[1, n, 5], 9));
        assert_small(&evaluate(&[a, b], |function, operands| {
            let (a, b) = (operands[0], operands[1]);
            let identity = matrices::identity(function, a.element_type(), [1, n, n]);
            // Positive definite, so that nothing grows.
            let gram = matrices::matmul(a, matrices::adjoint(a)) / n as f64 + identity;
            let factor = matrices::cholesky(gram, lower);
            let upper = matrices::adjoint(factor);
            let product =
                if lower { matrices::matmul(factor, upper) } else { matrices::matmul(upper, factor) };
            let options = matrices::Triangular { left_side: true, lower, unit_diagonal: false, transpose_a };
            // The other triangle is ignored.
            let [rows, columns] = [1, 2].map(|d| function.iota(shape::PrimitiveType::S32, &[1, n, n], d));
            let other = if lower { rows.lt(columns) } else { rows.gt(columns) };
            let x = matrices::triangular_solve(other.select(a, factor), b, options);
            let whole = if transpose_a == Adjoint { upper } else { factor };
            vec![distance(product, gram), distance(matrices::matmul(whole, x), b)]
        }));
    }
}

#[test]
fn complex_matrices_have_singular_values() {
    for sizes in [[2, 5, 3], [1, 3, 4], [1, 1, 2], [2, 9, 9], [1, 8, 14]] {
        let parts = [noise(&sizes, 10), noise(&sizes, 11)];
        assert_small(&evaluate(&parts, |_, parts| {
            let a = parts[0].complex(parts[1]);
            let [u, s, v] = matrices::svd(a, true);
            let p = s.size_from_end(0);
            let (u_thin, v_thin) = (u.slice_in(2, 0, p), v.slice_in(2, 0, p));
            let scale = s.complex(s.splat(0.0)).broadcast(&u_thin.sizes(), &[0, 2]);
            let product = matrices::matmul(u_thin * scale, matrices::adjoint(v_thin));
            let falls = s.slice_in(1, 1, p).max(s.slice_in(1, 0, p - 1)) - s.slice_in(1, 0, p - 1);
            vec![
                distance(product, a),
                from_orthonormal(u),
                from_orthonormal(v),
                falls.largest_magnitude(&[0, 1]),
            ]
        }));
    }
}

#[test]
fn least_squares_leave_a_residual_that_nothing_of_the_matrix_reaches() {
    for sizes in [[1, 7, 4], [1, 3, 6]] {
        let (a, b) = (noise(&sizes, 12), noise(&[1, sizes[1], 2], 13));
        assert_small(&evaluate(&[a, b], |function, operands| {
            let (a, b) = (operands[0], operands[1]);
            let zero = function.scalar(shape::PrimitiveType::F64, 0.0);
            let (fast, slow) = (matrices::normal_least_squares(a, b, zero), matrices::least_squares(a, b));
            let left = |x| matrices::matmul(matrices::adjoint(a), matrices::matmul(a, x) - b);
            let none = left(fast).splat(0.0);
            vec![distance(left(fast), none), distance(left(slow), none), distance(fast, slow)]
        }));
    }
}

#[test]
fn exponentials_of_opposites_are_inverses() {
    for (n, scale) in [(1, 3.0), (4, 0.001), (5, 2.0)] {
        let a = noise(&[2, n, n], 14);
        assert_small(&evaluate(&[a], |function, a| {
            let a = a[0] * scale;
            let (there, back) = (matrices::exponential(a), matrices::exponential(-a));
            let identity = matrices::identity(function, a.element_type(), [2, n, n]);
            let half = matrices::exponential(a * 0.5);
            let growth = there.largest_magnitude(&[0, 1, 2]);
            vec![
                distance(matrices::matmul(there, back), identity) / growth,
                distance(matrices::matmul(half, half), there) / growth,
            ]
        }));
    }
}
