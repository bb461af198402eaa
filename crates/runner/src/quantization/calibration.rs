//! Scales from the values that a program computes on examples of its inputs.

use super::{CompileModule, QuantizationOptions, measurement};
use crate::Inputs;
use hlo::{InstructionId, Interface, Module};
use quantize::{Histogram, Layer, Method, Points, Range, Sums, with_results};
use shape::{Literal, Quantization};
use support::{Error, Result};

/// Scales and means that the examples show.
#[derive(Clone, Debug, Default)]
pub(super) struct Calibration {
    /// The integers of each group of points.
    pub(super) quantizations: Vec<Quantization>,
    /// The means of each layer's input, as bias correction needs them.
    pub(super) means: Vec<Option<Vec<f64>>>,
}

impl Calibration {
    /// Runs the program on the examples: once for ranges and means, and once more for histograms if
    /// the method reads them.
    pub(super) fn observe(
        module: &Module,
        layers: &[Layer],
        points: &Points,
        inputs: &Inputs,
        options: &QuantizationOptions,
        compile: &mut CompileModule<'_>,
    ) -> Result<Self> {
        let sources = points.sources(module);
        let mut shown: Vec<InstructionId> = sources.iter().map(|&(id, _)| id).collect();
        let is_observed = |layer: &&Layer| layer.computation == module.entry();
        if options.corrects_bias {
            shown.extend(layers.iter().filter(is_observed).map(|layer| layer.input(module)));
            shown.sort_unstable();
            shown.dedup();
        }
        let interface = Interface::of_module(module)?;
        let results = interface.results().len();
        let executable = compile(with_results(module, &shown))?;
        let samples: Vec<u64> = (0..inputs.batch_count().unwrap_or(1)).collect();
        let value = |values: &[Literal], id: InstructionId| -> Result<Literal> {
            let position = shown.iter().position(|&other| other == id);
            let value = position.and_then(|position| values.get(results + position)).cloned();
            value.ok_or_else(|| Error::internal("a value was not observed"))
        };
        let elements = |literal: &Literal| literal.to_vec::<f32>().unwrap_or_default();

        let mut ranges = vec![Range::EMPTY; points.group_count()];
        let mut sums = vec![Sums::new(); layers.len()];
        measurement::run(&executable, inputs, &interface, &[], &samples, |sample, values| {
            for &(id, group) in &sources {
                if !ranges[group].include(elements(&value(&values, id)?)) {
                    let described = module.entry_computation()[id].described();
                    return Err(Error::invalid(format!(
                        "sample {sample} of the data: {described} has a value that is NaN or infinite; remove the sample, or check its preprocessing"
                    )));
                }
            }
            if options.corrects_bias {
                for (layer, sums) in layers.iter().zip(&mut sums).filter(|(layer, _)| is_observed(layer)) {
                    sums.include(&value(&values, layer.input(module))?, &layer.features(module));
                }
            }
            Ok(())
        })?;
        let mut chosen = ranges.clone();
        if options.method != Method::MinMax {
            let mut histograms: Vec<Histogram> = ranges.into_iter().map(Histogram::new).collect();
            measurement::run(&executable, inputs, &interface, &[], &samples, |_, values| {
                for &(id, group) in &sources {
                    histograms[group].include(elements(&value(&values, id)?));
                }
                Ok(())
            })?;
            chosen = histograms.iter().map(|histogram| histogram.choose(options.method)).collect();
        }
        let means = layers
            .iter()
            .zip(sums)
            .map(|(layer, sums)| (options.corrects_bias && is_observed(&layer)).then(|| sums.means()));
        let means = means.collect();
        Ok(Self { quantizations: chosen.into_iter().map(Range::quantization).collect(), means })
    }
}
