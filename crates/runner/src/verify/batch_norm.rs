//! How far correct code may be from the evaluator in batch normalisation, which takes the mean away: where numbers are
//! nearly equal, the results say nothing of the size of the errors.
//!
//! With `u` half an ulp of 1 and `k = min(n, 8 sqrt(n)) + 4` for sums of `n` terms, to first order in `u`:
//! - the mean is off by `e = k u mean |x|`, so each difference `d` from it by `e + u |d|`;
//! - of the variance, the part that is linear in `e` is `2 e mean d = 0`; what is left is `e^2`, and `k u` of the whole;
//! - a product is off by what each factor's error makes of it.

use super::estimate::{Estimate, Known, epsilon, magnitudes};
use hlo::{Instruction, Op};
use shape::PrimitiveType;
use shape::index::row_major_strides;

/// A number, and how far it may be off.
#[derive(Clone, Copy, Debug)]
struct Number {
    value: f64,
    error: f64,
}

impl Number {
    fn magnitude(self) -> f64 {
        self.value.abs()
    }

    /// The largest magnitude that it may have.
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

    /// Rounded some times.
    fn rounded(self, units: f64) -> Self {
        Self { error: self.error + units * self.most(), ..self }
    }

    /// `1 / sqrt(self + epsilon)`, by an approximation of a few units.
    fn reciprocal_root(self, epsilon: f64, units: f64) -> Self {
        let of = |variance: f64| 1.0 / (variance + epsilon).sqrt();
        let value = of(self.value);
        let (high, low) = (of((self.value - self.error).max(-epsilon)), of(self.value + self.error));
        // An exact negative variance gives NaN, which the evaluator gives too.
        let high = if self.error == 0.0 { value } else { high };
        Self { value, error: (high - value).max(value - low) }.rounded(units)
    }
}

/// The elements of an operand.
fn numbers(of: &Known) -> Option<Vec<Number>> {
    let values = of.value.floats()?;
    Some(values.into_iter().zip(of.errors()).map(|(value, error)| Number { value, error }).collect())
}

/// Sums over the elements of each feature.
struct Features {
    feature: Vec<usize>,
    count: usize,
    /// Of the precision that is computed in, half an ulp of 1.
    unit: f64,
}

impl Features {
    /// How many elements each feature has.
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

    fn errors(&self, of: impl Fn(usize, usize) -> Number) -> Vec<f64> {
        self.feature.iter().enumerate().map(|(i, &f)| of(i, f).error).collect()
    }
}

/// What rounding and the operands' errors do to each array of the result of a batch normalisation; nothing of other
/// instructions.
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
    // Types narrower than `f32` are computed in it.
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
    // NaN and infinities of exact operands are no accident, in their feature.
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
    let centered = |i: usize, f: usize| x[i].minus(mean[f]).rounded(u);
    let variance = features.means(|i, f| {
        let d = centered(i, f);
        // The error of the mean is the same in all of them, and their sum is 0.
        let error = 2.0 * d.magnitude() * (x[i].error + u * d.magnitude()) + d.error * d.error;
        Number { value: d.value * d.value, error }
    });
    let normalized = |i: usize, f: usize| {
        let factor = scale[f].times(variance[f].reciprocal_root(epsilon, 4.0 * u)).rounded(u);
        let scaled = centered(i, f).times(factor).rounded(u);
        let offset = Number { value: -offset[f].value, ..offset[f] };
        scaled.minus(offset).rounded(u)
    };
    let of = |numbers: &[Number]| numbers.iter().map(|n| n.error).collect();
    vec![features.errors(normalized), of(&mean), of(&variance)]
}

fn inference(
    features: &Features,
    epsilon: f64,
    [x, scale, offset, mean, variance]: [&[Number]; 5],
) -> Vec<Vec<f64>> {
    let u = features.unit;
    let result = |i: usize, f: usize| {
        let factor = scale[f].times(variance[f].reciprocal_root(epsilon, 4.0 * u)).rounded(u);
        let difference = x[i].minus(mean[f]).times(factor);
        // The code may be `x factor + (offset - mean factor)`.
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
    let centered = |i: usize, f: usize| x[i].minus(mean[f]).rounded(u);
    let sum = features.sums(|i, _| gradient[i]);
    let product = features.sums(|i, f| gradient[i].times(centered(i, f)));
    let root = |f: usize| variance[f].reciprocal_root(epsilon, 4.0 * u);
    let of_scale: Vec<f64> =
        (0..features.count).map(|f| product[f].times(root(f)).rounded(u).error).collect();
    let of_operand = |i: usize, f: usize| {
        let inverse = root(f).times(root(f)).rounded(u);
        let along = centered(i, f).times(product[f]).times(inverse).rounded(3.0 * u);
        let g = Number { value: n * gradient[i].value, error: n * gradient[i].error };
        let parts = g.most() + sum[f].most() + along.most();
        let rest = g.minus(sum[f]).minus(along);
        let rest = Number { error: rest.error + 4.0 * u * parts, ..rest };
        let factor = scale[f].times(root(f)).rounded(2.0 * u);
        let result = factor.times(rest).rounded(2.0 * u);
        Number { value: result.value / n, error: result.error / n }
    };
    vec![features.errors(of_operand), of_scale, sum.iter().map(|s| s.error).collect()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use shape::Literal;

    /// The errors of batch normalisations of an operand of one feature, and of numbers for that feature.
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
        errors(&entry[entry.root()], &estimates.iter().collect::<Vec<_>>()).expect("a normalisation")
    }

    /// An ulp of 1 in `f32`.
    const ULP: f64 = 1.0 / (1u64 << 23) as f64;

    #[test]
    fn the_variance_of_equal_numbers_is_the_square_of_the_mean_s_error() {
        let found = errors_of("training", 0.5, &[1000.0; 8], &[1.0, 0.0], None);
        let (normalized, mean, variance) = (found[0][0], found[1][0], found[2][0]);
        // A mean that is off by two ulps, as sums of eight terms may make it, is within; one of 32 ulps is not.
        assert!(2000.0 * ULP < mean && mean < 32_000.0 * ULP, "{mean}");
        assert!((2000.0 * ULP).powi(2) < variance && variance < (32_000.0 * ULP).powi(2), "{variance}");
        assert!(2000.0 * ULP / 0.5f64.sqrt() < normalized && normalized < 64_000.0 * ULP, "{normalized}");
    }

    #[test]
    fn a_variance_next_to_a_large_mean_is_not_lost() {
        // Squares of 1000 in f32 are off by 0.06, what is computed from differences by much less.
        let found = errors_of("training", 0.5, &[999.0, 1001.0, 1001.0, 999.0], &[1.0, 0.0], None);
        assert!(ULP < found[2][0] && found[2][0] < 32.0 * ULP, "{}", found[2][0]);
    }

    #[test]
    fn inference_may_cancel_its_mean() {
        let found = errors_of("inference", 0.0, &[1000.0], &[1.0, 0.0, 1000.0, 4.0], None);
        assert!(500.0 * ULP < found[0][0] && found[0][0] < 8000.0 * ULP, "{}", found[0][0]);
    }

    #[test]
    fn equal_gradients_cancel() {
        let found = errors_of("grad", 0.0, &[1.0, 2.0], &[1.0, 1.5, 0.25], Some(&[7.0, 7.0]));
        // The sum of the gradients, 14, is as exact as a sum of two.
        assert!(14.0 * ULP < found[2][0] && found[2][0] < 14.0 * 8.0 * ULP, "{}", found[2][0]);
        assert!(14.0 * ULP < found[0][0] && found[0][0] < 1000.0 * ULP, "{}", found[0][0]);
    }

    #[test]
    fn what_is_no_number_is_certain_and_an_overflow_is_not() {
        let found = errors_of("training", 0.5, &[f32::INFINITY, 1.0], &[1.0, 0.0], None);
        assert_eq!(found[2], [0.0]);
        let found = errors_of("inference", 0.0, &[1.0], &[1.0, 0.0, 1.0, 0.0], None);
        assert_eq!(found[0], [f64::INFINITY]);
    }
}
