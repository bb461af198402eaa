//! Error bounds for batch normalization, which subtracts the mean: if numbers are nearly equal, the
//! results do not indicate the size of the errors.
//!
//! With `u` half an ulp of 1 and `k = min(n, 8 sqrt(n)) + 4` for sums of `n` terms, to first order
//! in `u`:
//! - The mean is off by `e = k u mean |x|`, so each difference `d` from it is off by `e + u |d|`.
//! - The part of the variance that is linear in `e` is `2 e mean d = 0`. What remains is `e^2`, and
//!   `k u` of the whole.
//! - A product is off by the error of each factor times the other factor.

use super::estimate::{Estimate, Known, epsilon, magnitudes};
use hlo::{Instruction, Op};
use shape::PrimitiveType;
use shape::index::row_major_strides;

/// A number and its error bound.
#[derive(Clone, Copy, Debug)]
struct Number {
    value: f64,
    error: f64,
}

impl Number {
    fn magnitude(self) -> f64 {
        self.value.abs()
    }

    /// Returns the largest possible magnitude.
    fn most(self) -> f64 {
        self.value.abs() + self.error
    }

    fn minus(self, other: Self) -> Self {
        Self { value: self.value - other.value, error: self.error + other.error }
    }

    fn times(self, other: Self) -> Self {
        let error = self.error * other.most() + self.magnitude() * other.error;
        Self { value: self.value * other.value, error }
    }

    /// Adds the error of rounding.
    fn round(self, units: f64) -> Self {
        Self { error: self.error + units * self.most(), ..self }
    }

    /// `1 / sqrt(self + epsilon)`, by an approximation with an error of a few units.
    fn reciprocal_root(self, epsilon: f64, units: f64) -> Self {
        let root = |variance: f64| 1.0 / (variance + epsilon).sqrt();
        let value = root(self.value);
        let (high, low) = (root((self.value - self.error).max(-epsilon)), root(self.value + self.error));
        // An exact negative variance yields NaN, as it does in the evaluator.
        let high = if self.error == 0.0 { value } else { high };
        Self { value, error: (high - value).max(value - low) }.round(units)
    }
}

/// Returns the elements of an operand.
fn numbers(known: &Known) -> Option<Vec<Number>> {
    let values = known.value.floats()?;
    Some(values.into_iter().zip(known.errors()).map(|(value, error)| Number { value, error }).collect())
}

/// Sums over the elements of each feature.
struct Features {
    feature: Vec<usize>,
    count: usize,
    /// Half an ulp of 1 in the precision of the computation.
    unit: f64,
}

impl Features {
    /// Returns the number of elements per feature.
    fn each(&self) -> f64 {
        self.feature.len() as f64 / self.count as f64
    }

    fn sums(&self, terms: impl Fn(usize, usize) -> Number) -> Vec<Number> {
        let mut sums = vec![Number { value: 0.0, error: 0.0 }; self.count];
        let mut magnitudes = vec![0.0; self.count];
        for (i, &f) in self.feature.iter().enumerate() {
            let term = terms(i, f);
            sums[f] = Number { value: sums[f].value + term.value, error: sums[f].error + term.error };
            magnitudes[f] += term.most();
        }
        let n = self.each();
        let units = (n.min(8.0 * n.sqrt()) + 4.0) * self.unit;
        sums.iter_mut().zip(magnitudes).for_each(|(sum, magnitude)| sum.error += units * magnitude);
        sums
    }

    fn means(&self, terms: impl Fn(usize, usize) -> Number) -> Vec<Number> {
        let n = self.each();
        let mean = |sum: Number| Number { value: sum.value / n, error: sum.error / n };
        self.sums(terms).into_iter().map(mean).collect()
    }

    fn errors(&self, number: impl Fn(usize, usize) -> Number) -> Vec<f64> {
        self.feature.iter().enumerate().map(|(i, &f)| number(i, f).error).collect()
    }
}

/// Returns the effect of rounding and of the operands' errors on each array of the result of a
/// batch normalization, or `None` for other instructions.
pub(super) fn errors(instruction: &Instruction, operands: &[&Estimate]) -> Option<Vec<Vec<f64>>> {
    let (epsilon_added, feature_index) = match *instruction.op() {
        Op::BatchNormTraining { epsilon, feature_index }
        | Op::BatchNormInference { epsilon, feature_index }
        | Op::BatchNormGrad { epsilon, feature_index } => (f64::from(epsilon), feature_index),
        _ => return None,
    };
    let known: Vec<&Known> = operands.iter().flat_map(|o| o.arrays()).collect();
    let shape = known.first()?.value.array_shape();
    let sizes = shape.sizes();
    let count = *sizes.get(feature_index)?;
    let stride = row_major_strides(&sizes)[feature_index];
    // Types narrower than `f32` are computed in `f32`.
    let unit = epsilon(shape.element_type).min(epsilon(PrimitiveType::F32)) / 2.0;
    let feature = (0..shape.element_count()).map(|i| (i / stride.max(1) % count.max(1)) as usize).collect();
    let features = Features { feature, count: count as usize, unit };
    let arrays = known.iter().map(|k| numbers(k)).collect::<Option<Vec<_>>>()?;
    let mut errors = match (instruction.op(), arrays.as_slice()) {
        (Op::BatchNormTraining { .. }, [x, scale, offset]) => {
            training(&features, epsilon_added, [x, scale, offset])
        }
        (Op::BatchNormInference { .. }, [x, scale, offset, mean, variance]) => {
            inference(&features, epsilon_added, [x, scale, offset, mean, variance])
        }
        (Op::BatchNormGrad { .. }, [x, scale, mean, variance, gradient]) => {
            grad(&features, epsilon_added, [x, scale, mean, variance, gradient])
        }
        _ => return None,
    };
    // NaN and infinities of exact operands are expected results within their feature.
    let exact = operands.iter().all(|o| o.is_exact());
    let mut is_special = vec![false; features.count];
    for known in &known {
        let magnitudes = magnitudes(&known.value);
        for (i, _) in magnitudes.iter().enumerate().filter(|(_, m)| !m.is_finite()) {
            is_special[if magnitudes.len() == features.count { i } else { features.feature[i] }] = true;
        }
    }
    for errors in &mut errors {
        let by_feature = errors.len() == features.count;
        for (i, error) in errors.iter_mut().enumerate().filter(|(_, error)| !error.is_finite()) {
            let is_certain = exact && is_special[if by_feature { i } else { features.feature[i] }];
            *error = if is_certain { 0.0 } else { f64::INFINITY };
        }
    }
    Some(errors)
}

fn training(features: &Features, epsilon: f64, [x, scale, offset]: [&[Number]; 3]) -> Vec<Vec<f64>> {
    let u = features.unit;
    let mean = features.means(|i, _| x[i]);
    let centered = |i: usize, f: usize| x[i].minus(mean[f]).round(u);
    let variance = features.means(|i, f| {
        let d = centered(i, f);
        // All differences share the error of the mean, and their sum is 0.
        let error = 2.0 * d.magnitude() * (x[i].error + u * d.magnitude()) + d.error * d.error;
        Number { value: d.value * d.value, error }
    });
    let normalized = |i: usize, f: usize| {
        let factor = scale[f].times(variance[f].reciprocal_root(epsilon, 4.0 * u)).round(u);
        let scaled = centered(i, f).times(factor).round(u);
        let offset = Number { value: -offset[f].value, ..offset[f] };
        scaled.minus(offset).round(u)
    };
    let errors_of = |numbers: &[Number]| numbers.iter().map(|n| n.error).collect();
    vec![features.errors(normalized), errors_of(&mean), errors_of(&variance)]
}

fn inference(
    features: &Features,
    epsilon: f64,
    [x, scale, offset, mean, variance]: [&[Number]; 5],
) -> Vec<Vec<f64>> {
    let u = features.unit;
    let result = |i: usize, f: usize| {
        let factor = scale[f].times(variance[f].reciprocal_root(epsilon, 4.0 * u)).round(u);
        let difference = x[i].minus(mean[f]).times(factor);
        // The code may compute `x factor + (offset - mean factor)`.
        let parts = (x[i].most() + mean[f].most()) * factor.most() + offset[f].most();
        Number { value: difference.value, error: difference.error + offset[f].error + 4.0 * u * parts }
    };
    vec![features.errors(result)]
}

fn grad(
    features: &Features,
    epsilon: f64,
    [x, scale, mean, variance, gradient]: [&[Number]; 5],
) -> Vec<Vec<f64>> {
    let u = features.unit;
    let n = features.each();
    let centered = |i: usize, f: usize| x[i].minus(mean[f]).round(u);
    let sum = features.sums(|i, _| gradient[i]);
    let product = features.sums(|i, f| gradient[i].times(centered(i, f)));
    let root = |f: usize| variance[f].reciprocal_root(epsilon, 4.0 * u);
    let of_scale: Vec<f64> = (0..features.count).map(|f| product[f].times(root(f)).round(u).error).collect();
    let of_operand = |i: usize, f: usize| {
        let inverse = root(f).times(root(f)).round(u);
        let along = centered(i, f).times(product[f]).times(inverse).round(3.0 * u);
        let g = Number { value: n * gradient[i].value, error: n * gradient[i].error };
        let parts = g.most() + sum[f].most() + along.most();
        let rest = g.minus(sum[f]).minus(along);
        let rest = Number { error: rest.error + 4.0 * u * parts, ..rest };
        let factor = scale[f].times(root(f)).round(2.0 * u);
        let result = factor.times(rest).round(2.0 * u);
        Number { value: result.value / n, error: result.error / n }
    };
    vec![features.errors(of_operand), of_scale, sum.iter().map(|s| s.error).collect()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use shape::Literal;

    /// Returns the errors of a batch normalization of an operand with one feature and the given
    /// values for that feature.
    fn errors_of(
        op: &str,
        epsilon: f32,
        x: &[f32],
        vectors: &[f32],
        gradient: Option<&[f32]>,
    ) -> Vec<Vec<f64>> {
        let n = x.len();
        let names = ["a", "b", "c", "d"];
        let mut text = format!("HloModule m\n\nENTRY main {{\n  x = f32[{n},1] parameter(0)\n");
        let mut operands = "x".to_owned();
        for (k, name) in names.iter().take(vectors.len()).enumerate() {
            text += &format!("  {name} = f32[1] parameter({})\n", k + 1);
            operands += &format!(", {name}");
        }
        if gradient.is_some() {
            text += &format!("  g = f32[{n},1] parameter({})\n", vectors.len() + 1);
            operands += ", g";
        }
        let result = match op {
            "inference" => format!("f32[{n},1]"),
            _ => format!("(f32[{n},1], f32[1], f32[1])"),
        };
        text += &format!(
            "  ROOT r = {result} batch-norm-{op}({operands}), epsilon={epsilon}, feature_index=1\n}}\n"
        );
        let module = hlo::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let entry = module.entry_computation();
        let column = |values: &[f32]| Literal::from_elements(&[values.len() as i64, 1], values);
        let mut literals = vec![column(x)];
        literals.extend(vectors.iter().map(|&v| Literal::from_elements(&[1], &[v])));
        literals.extend(gradient.map(column));
        let estimates: Vec<Estimate> = literals.iter().map(Estimate::exact).collect();
        errors(&entry[entry.root()], &estimates.iter().collect::<Vec<_>>()).expect("a normalization")
    }

    /// An ulp of 1 in `f32`.
    const ULP: f64 = 1.0 / (1u64 << 23) as f64;

    #[test]
    fn the_variance_of_equal_numbers_is_the_square_of_the_mean_s_error() {
        let errors = errors_of("training", 0.5, &[1000.0; 8], &[1.0, 0.0], None);
        let (normalized, mean, variance) = (errors[0][0], errors[1][0], errors[2][0]);
        // The bound permits a mean that is off by two ulps, as a sum of eight terms may be, but not
        // one off by 32 ulps.
        assert!(2000.0 * ULP < mean && mean < 32_000.0 * ULP, "{mean}");
        assert!((2000.0 * ULP).powi(2) < variance && variance < (32_000.0 * ULP).powi(2), "{variance}");
        assert!(2000.0 * ULP / 0.5f64.sqrt() < normalized && normalized < 64_000.0 * ULP, "{normalized}");
    }

    #[test]
    fn a_variance_next_to_a_large_mean_is_not_lost() {
        // In f32, squares of 1000 are off by 0.06. A computation with differences is off by much
        // less.
        let errors = errors_of("training", 0.5, &[999.0, 1001.0, 1001.0, 999.0], &[1.0, 0.0], None);
        assert!(ULP < errors[2][0] && errors[2][0] < 32.0 * ULP, "{}", errors[2][0]);
    }

    #[test]
    fn inference_may_cancel_its_mean() {
        let errors = errors_of("inference", 0.0, &[1000.0], &[1.0, 0.0, 1000.0, 4.0], None);
        assert!(500.0 * ULP < errors[0][0] && errors[0][0] < 8000.0 * ULP, "{}", errors[0][0]);
    }

    #[test]
    fn equal_gradients_cancel() {
        let errors = errors_of("grad", 0.0, &[1.0, 2.0], &[1.0, 1.5, 0.25], Some(&[7.0, 7.0]));
        // The sum of the gradients, 14, is as exact as a sum of two.
        assert!(14.0 * ULP < errors[2][0] && errors[2][0] < 14.0 * 8.0 * ULP, "{}", errors[2][0]);
        assert!(14.0 * ULP < errors[0][0] && errors[0][0] < 1000.0 * ULP, "{}", errors[0][0]);
    }

    #[test]
    fn nan_is_certain_and_an_overflow_is_not() {
        let errors = errors_of("training", 0.5, &[f32::INFINITY, 1.0], &[1.0, 0.0], None);
        assert_eq!(errors[2], [0.0]);
        let errors = errors_of("inference", 0.0, &[1.0], &[1.0, 0.0, 1.0, 0.0], None);
        assert_eq!(errors[0], [f64::INFINITY]);
    }
}
