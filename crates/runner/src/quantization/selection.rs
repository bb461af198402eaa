//! The new form of each layer, and the layers that stay in floating point because they would change
//! the results too much.

use super::calibration::Calibration;
use super::measurement::{self, Differences};
use super::{CompileModule, QuantizationOptions, Scheme};
use crate::difference::Difference;
use crate::{Inputs, Progress};
use hlo::{Interface, Module, Op, Program};
use quantize::{Layer, LayerForm, Method, Points, Weights, correction, weights, with_switches};
use shape::{Literal, PrimitiveType};
use support::{Error, Result};

/// Number of samples on which layers are measured one by one.
pub(super) const LAYER_SAMPLES: u64 = 16;

/// Layers with fewer weights keep them if only weights are quantized.
const LEAST_WEIGHTS: i64 = 1024;

/// A quantized program, and how it was found.
pub(super) struct Selection {
    pub(super) program: Program,
    /// The form of each layer in the program.
    pub(super) forms: Vec<LayerForm>,
    /// For each layer, the error of the results if it alone is quantized.
    pub(super) alone: Vec<Option<f64>>,
    /// The error of each result.
    pub(super) results: Vec<Option<Difference>>,
}

/// The new form of each layer, and the reasons why some stay as they are.
pub(super) fn forms(
    module: &Module,
    layers: &[Layer],
    calibration: &Calibration,
    options: &QuantizationOptions,
) -> (Vec<LayerForm>, Vec<Option<String>>) {
    let form = |(k, layer): (usize, &Layer)| match form(module, k, layer, calibration, options) {
        Ok(form) => (form, None),
        Err(reason) => (LayerForm::UNCHANGED, Some(reason)),
    };
    layers.iter().enumerate().map(form).unzip()
}

fn form(
    module: &Module,
    k: usize,
    layer: &Layer,
    calibration: &Calibration,
    options: &QuantizationOptions,
) -> Result<LayerForm, String> {
    let literal = layer.literal(module).ok_or("its weights are not a constant")?;
    let is_small = literal.array_shape().element_count() < LEAST_WEIGHTS;
    if is_small && options.scheme != Scheme::Int8 {
        return Err(format!("it has fewer than {LEAST_WEIGHTS} weights"));
    }
    let searches = options.method == Method::Mse;
    let integers = || weights::per_channel(literal, layer.channel, searches);
    let of_weights = |weights| Ok(LayerForm { weights, ..LayerForm::UNCHANGED });
    let half = |element_type| {
        let rounded = weights::rounded(literal, element_type);
        rounded.map(Weights::Half).ok_or(format!("a weight is too large for {element_type}"))
    };
    match options.scheme {
        Scheme::Int8 if layer.computation != module.entry() => {
            Err("it is inside a loop or a branch, where values are not observed".to_owned())
        }
        Scheme::Int8 => {
            let integers = integers();
            let old: Vec<f32> = literal.to_vec().unwrap_or_default();
            let errors: Vec<f32> = integers.values().iter().zip(&old).map(|(new, old)| new - old).collect();
            let means = calibration.means.get(k).and_then(Option::as_ref);
            let correction = means.and_then(|means| correction(module, layer, &errors, means));
            Ok(LayerForm { weights: Weights::Integers(integers), has_integer_input: true, correction })
        }
        Scheme::Int8Weights => of_weights(Weights::Integers(integers())),
        Scheme::Int4Weights => of_weights(match blocks(module, layer, literal) {
            Some(blocks) => Weights::Blocks(blocks),
            None => Weights::Integers(integers()),
        }),
        Scheme::Bf16Weights => of_weights(half(PrimitiveType::Bf16)?),
        Scheme::F16Weights => of_weights(half(PrimitiveType::F16)?),
    }
}

/// Blocks of 4 bits of a dot with weights `[K, N]` or `[N, K]`.
fn blocks(module: &Module, layer: &Layer, literal: &Literal) -> Option<weights::QuantizedWeights> {
    let Op::Dot { .. } = module[layer.computation][layer.instruction].op() else { return None };
    match (literal.array_shape().rank(), layer.channel) {
        (2, Some(1)) => weights::blocks_of_s4(literal),
        (2, Some(0)) => weights::blocks_of_s4(&literal.transpose(&[1, 0])),
        _ => None,
    }
}

/// The programs to compare and the data to compare them on.
pub(super) struct Context<'a, 'c, 'p> {
    /// The program before any change.
    pub(super) original: &'a Module,
    /// The program whose layers are quantized.
    pub(super) module: &'a Module,
    pub(super) inputs: &'a Inputs,
    pub(super) interface: &'a Interface,
    pub(super) options: &'a QuantizationOptions,
    pub(super) compile: &'a mut CompileModule<'c>,
    pub(super) progress: &'a mut Progress<'p>,
}

impl Context<'_, '_, '_> {
    /// Quantizes as many layers as the largest error permits.
    pub(super) fn select(
        &mut self,
        layers: &[Layer],
        points: &Points,
        calibration: &Calibration,
        mut forms: Vec<LayerForm>,
        build: &dyn Fn(&[LayerForm]) -> Result<Program>,
    ) -> Result<Selection> {
        let original = (self.compile)(self.original.clone())?;
        let max_error = self.options.max_error;
        let mut alone = Vec::new();
        let mut order = Vec::new();
        let mut restored = 0;
        if self.options.measures_layers || max_error.is_some() {
            let samples = spread(self.inputs.batch_count().unwrap_or(1));
            let mut references = Vec::new();
            measurement::run(&original, self.inputs, self.interface, &[], &samples, |_, results| {
                references.push(results);
                Ok(())
            })?;
            let switched = with_switches(self.module, layers, &forms, points, &calibration.quantizations)?;
            let switched = (self.compile)(switched)?;
            let error = |is_on: &dyn Fn(usize) -> bool| {
                let switches: Vec<bool> = (0..layers.len()).map(is_on).collect();
                let switches = Literal::from_elements(&[layers.len() as i64], &switches);
                let mut differences = Differences::default();
                let mut references = references.iter();
                measurement::run(
                    &switched,
                    self.inputs,
                    self.interface,
                    &[switches],
                    &samples,
                    |_, results| {
                        let reference = references.next().map(Vec::as_slice).unwrap_or_default();
                        differences.include(&results, reference, self.interface);
                        Ok(())
                    },
                )?;
                Ok::<_, support::Error>(differences.largest())
            };
            let has_switch =
                |k: usize| forms[k].weights != Weights::Float && layers[k].computation == self.module.entry();
            for k in 0..layers.len() {
                (self.progress)("measuring layers", k, layers.len());
                alone.push(if has_switch(k) { Some(error(&|other| other == k)?) } else { None });
            }
            // From the layer with the largest error to that with the least.
            order = (0..layers.len()).filter(|&k| forms[k].weights != Weights::Float).collect();
            order.sort_by(|&a, &b| {
                alone[b].unwrap_or(0.0).total_cmp(&alone[a].unwrap_or(0.0)).then(a.cmp(&b))
            });
            if let Some(max_error) = max_error {
                // Errors can cancel, so all layers together may be more exact than some of them.
                let is_exact = error(&|_| true)? <= max_error;
                let (mut least, mut most) = (0, if is_exact { 0 } else { order.len() });
                while least < most {
                    let middle = usize::midpoint(least, most);
                    let is_restored = |k: usize| order[..middle].contains(&k);
                    if error(&|k| !is_restored(k))? <= max_error { most = middle } else { least = middle + 1 }
                }
                restored = least;
            }
        }
        for &k in &order[..restored] {
            forms[k] = LayerForm::UNCHANGED;
        }
        (self.progress)("comparing results", 0, 0);
        loop {
            let program = build(&forms)?;
            let differences = self.differences(&original, &program)?;
            let error = differences.largest();
            let Some(max_error) = max_error.filter(|max_error| error > *max_error) else {
                return Ok(Selection { program, forms, alone, results: differences.0 });
            };
            if restored == order.len() {
                return Err(Error::invalid(format!(
                    "with all layers in float32, the relative error of a result is {error:.3e}, above the largest one of \
                     {max_error:e}: permit a larger one, or neither integers in the interface nor equalization, which \
                     also change the results"
                )));
            }
            forms[order[restored]] = LayerForm::UNCHANGED;
            restored += 1;
        }
    }

    /// Compares a program's results with those of the original on all samples.
    fn differences(&mut self, original: &compiler::Executable, program: &Program) -> Result<Differences> {
        let executable = (self.compile)(program.module.clone())?;
        let all: Vec<u64> = (0..self.inputs.batch_count().unwrap_or(1)).collect();
        let mut differences = Differences::default();
        // Results of a few samples at a time are in memory. Variables keep their values between
        // samples, so programs with variables run all samples in one piece.
        let piece = if self.interface.variables().is_empty() { LAYER_SAMPLES as usize } else { all.len() };
        for samples in all.chunks(piece.max(1)) {
            let mut references = Vec::new();
            measurement::run(original, self.inputs, self.interface, &[], samples, |_, results| {
                references.push(results);
                Ok(())
            })?;
            let mut references = references.iter();
            measurement::run(&executable, self.inputs, &program.interface, &[], samples, |_, results| {
                let reference = references.next().map(Vec::as_slice).unwrap_or_default();
                differences.include(&results, reference, &program.interface);
                Ok(())
            })?;
        }
        Ok(differences)
    }
}

/// Samples at equal distances.
fn spread(count: u64) -> Vec<u64> {
    let chosen = count.min(LAYER_SAMPLES);
    (0..chosen).map(|k| k * count / chosen.max(1)).collect()
}
