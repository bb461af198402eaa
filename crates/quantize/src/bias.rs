//! Bias correction (Nagel et al., 2019): the error of rounded weights times the mean input of a
//! layer is the mean error of its outputs, which a constant can remove.

use crate::layer::{Layer, elements};
use hlo::analysis::ChannelConstant;
use hlo::{Computation, InstructionId, Module, Op};
use shape::Literal;
use shape::index::row_major_strides;

/// Sums of the elements of an array at each index of some dimensions, over all arrays seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Sums {
    sums: Vec<f64>,
    /// Number of elements in each sum.
    count: f64,
}

impl Sums {
    /// The sums of no arrays.
    pub fn new() -> Self {
        Self { sums: Vec::new(), count: 0.0 }
    }

    /// Adds an array's elements to the sums at the indices of these dimensions.
    pub fn include(&mut self, array: &Literal, dimensions: &[usize]) {
        let sizes = array.array_shape().sizes();
        let strides = row_major_strides(&sizes);
        let kept: usize = dimensions.iter().map(|&d| sizes[d] as usize).product();
        self.sums.resize(kept, 0.0);
        let values = elements(array);
        self.count += values.len() as f64 / kept.max(1) as f64;
        for (k, value) in values.into_iter().enumerate() {
            let index = |&d: &usize| (k as i64 / strides[d] % sizes[d]) as usize;
            let at = dimensions.iter().fold(0, |at, d| at * sizes[*d] as usize + index(d));
            self.sums[at] += f64::from(value);
        }
    }

    /// The means.
    pub fn means(&self) -> Vec<f64> {
        self.sums.iter().map(|sum| sum / self.count.max(1.0)).collect()
    }
}

impl Default for Sums {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns what to add to each output of a layer so that its mean stays the same when its weights
/// change by `errors` (new weights minus old ones), for inputs with these means at each index of
/// [`Layer::features`]. `None` if the outputs are not the last dimension of the result.
pub fn correction(module: &Module, layer: &Layer, errors: &[f32], means: &[f64]) -> Option<Vec<f32>> {
    let (channel_of, feature_of) = (layer.channel_of(module)?, layer.feature_of(module)?);
    let outputs = layer.literal(module)?.array_shape().size(layer.channel?);
    let mut shifts = vec![0f64; outputs as usize];
    for (k, &error) in errors.iter().enumerate() {
        shifts[channel_of(k)] += f64::from(error) * means.get(feature_of(k))?;
    }
    // Holes in a dilated input are zeros, so each output reads only a part of the weights.
    let holes = match module[layer.computation][layer.instruction].op() {
        Op::Convolution { window, .. } => window.dimensions.iter().map(|d| d.base_dilation as f64).product(),
        _ => 1.0,
    };
    Some(shifts.into_iter().map(|shift: f64| (-shift / holes) as f32).collect())
}

/// The numbers that `sum` adds to `value` along the last dimension, if it does only that.
pub(crate) fn bias(computation: &Computation, sum: InstructionId, value: InstructionId) -> Option<Vec<f32>> {
    let Op::Add {} = computation[sum].op() else { return None };
    let &[a, b] = computation[sum].operands() else { return None };
    let other = if a == value { b } else { a };
    if a == b { None } else { channels(computation, other) }
}

/// The number of each index of the last dimension, if an instruction is constant along the others.
pub(crate) fn channels(computation: &Computation, id: InstructionId) -> Option<Vec<f32>> {
    let shape = computation[id].shape().as_array()?;
    let last = shape.rank().checked_sub(1)?;
    let constant = ChannelConstant::of(computation, id)?;
    let is_along = constant.dimension.is_none_or(|dimension| dimension == last);
    is_along.then(|| (0..shape.size(last) as usize).map(|k| constant.at(k) as f32).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::Layers;

    #[test]
    fn means_are_taken_over_the_other_dimensions() {
        let mut sums = Sums::new();
        sums.include(&Literal::from_elements(&[2, 3], &[1f32, 2.0, 3.0, 3.0, 4.0, 5.0]), &[1]);
        sums.include(&Literal::from_elements(&[2, 3], &[0f32; 6]), &[1]);
        assert_eq!(sums.means(), [1.0, 1.5, 2.0]);
    }

    /// Two outputs for each of two features. Means 10 and 100; outputs 0 and 1 read feature 0.
    #[test]
    fn outputs_of_a_group_are_corrected_by_its_features() {
        let text = "HloModule m

ENTRY main {
  x = f32[1,3,2] parameter(0)
  w = f32[2,1,4] constant({{{0, 0, 0, 0}}, {{0, 0, 0, 0}}})
  y = f32[1,2,4] convolution(x, w), window={size=2}, dim_labels=b0f_0io->b0f, feature_group_count=2
  ROOT r = (f32[1,2,4]) tuple(y)
}
";
        let module = hlo::parse(text).expect("a module");
        let layer = &Layers::of(&module).layers[0];
        // Both taps of an output count.
        let errors = [1.0, 2.0, 3.0, 4.0, 0.5, 0.0, 0.0, 0.25];
        let expected = [-15.0, -20.0, -300.0, -425.0];
        assert_eq!(correction(&module, layer, &errors, &[10.0, 100.0]), Some(expected.to_vec()));
    }

    /// A transposed convolution with stride 2. Of the three taps, outputs read the outer ones and
    /// the middle one in turns: 1.5 of them on average.
    #[test]
    fn outputs_of_a_transposed_convolution_read_a_part_of_the_weights() {
        let text = "HloModule m

ENTRY main {
  x = f32[1,8,1] parameter(0)
  w = f32[3,1,1] constant({{{0}}, {{0}}, {{0}}})
  y = f32[1,15,1] convolution(x, w), window={size=3 pad=1_1 lhs_dilate=2}, dim_labels=b0f_0io->b0f
  ROOT r = (f32[1,15,1]) tuple(y)
}
";
        let module = hlo::parse(text).expect("a module");
        let layer = &Layers::of(&module).layers[0];
        assert_eq!(correction(&module, layer, &[1.0, 1.0, 1.0], &[10.0]), Some(vec![-15.0]));
    }
}
