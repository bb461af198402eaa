//! The report of a quantization, as text and as data.

use super::calibration::Calibration;
use super::measurement::relative_difference;
use super::selection::{LAYER_SAMPLES, Selection};
use super::{QuantizationOptions, Scheme};
use crate::difference::Difference;
use hlo::{Interface, Module, Op};
use quantize::{Layer, LayerForm, Method, Points, Unsuitable, Weights};
use serde_json::{Value, json};
use shape::Quantization;
use std::fmt::Write as _;
use terminal::{Column, Screen, Style, Table, printable};

/// A layer in the report.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerReport {
    /// The source node, or else the instruction.
    pub name: String,
    /// The opcode.
    pub op: &'static str,
    /// Type and sizes of the weights.
    pub weights: String,
    /// The form of the weights, such as `int8`.
    pub form: &'static str,
    /// Why the layer is not in the requested form.
    pub reason: Option<String>,
    /// The integers of the input, if it becomes integers.
    pub input: Option<Quantization>,
    /// Relative error of the weights.
    pub weights_error: f64,
    /// Largest relative error of a result if this layer alone is quantized.
    pub error: Option<f64>,
}

/// A result in the report.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultReport {
    /// The user's name for it.
    pub name: String,
    /// Root of the mean squared error over that of the mean squared value.
    pub relative_error: f64,
    /// Largest absolute error.
    pub max_absolute_error: f64,
}

/// Report of a quantization.
#[derive(Clone, Debug, PartialEq)]
pub struct QuantizationReport {
    /// The options.
    pub options: QuantizationOptions,
    /// Number of samples.
    pub samples: u64,
    /// The layers, in execution order.
    pub layers: Vec<LayerReport>,
    /// Contractions that are not layers: names and reasons.
    pub unsuitable: Vec<(String, String)>,
    /// Arguments and results that are integers, with their meaning.
    pub interface: Vec<(String, Quantization)>,
    /// Errors of the results; empty without data.
    pub results: Vec<ResultReport>,
    /// Bytes of all layers' weights before and after.
    pub weight_bytes: (u64, u64),
    /// Number of pairs of layers with equal ranges.
    pub equalized_pairs: usize,
}

/// Sources of a report.
pub(super) struct Parts<'a> {
    pub(super) options: &'a QuantizationOptions,
    pub(super) module: &'a Module,
    pub(super) layers: &'a [Layer],
    pub(super) unsuitable: Vec<Unsuitable>,
    pub(super) points: &'a Points,
    pub(super) calibration: &'a Calibration,
    pub(super) selection: &'a Selection,
    pub(super) reasons: Vec<Option<String>>,
    pub(super) samples: u64,
    pub(super) equalized_pairs: usize,
}

impl Parts<'_> {
    pub(super) fn report(self) -> QuantizationReport {
        let layers: Vec<LayerReport> = (0..self.layers.len()).map(|k| self.layer(k)).collect();
        let bytes = |k: usize| self.layers[k].literal(self.module).map_or(0, |w| w.bytes().len() as u64);
        let before = (0..self.layers.len()).map(bytes).sum();
        let after =
            (0..self.layers.len()).map(|k| new_bytes(&self.selection.forms[k].weights, bytes(k))).sum();
        let results = self.selection.program.interface.results().iter().zip(&self.selection.results);
        let result = |(output, difference): (&hlo::Output, &Option<Difference>)| {
            difference.map(|difference| ResultReport {
                name: output.label(),
                relative_error: difference.relative(),
                max_absolute_error: difference.largest,
            })
        };
        QuantizationReport {
            options: self.options.clone(),
            samples: self.samples,
            layers,
            results: results.filter_map(result).collect(),
            interface: integers(&self.selection.program.interface),
            unsuitable: self.unsuitable.into_iter().map(|layer| (layer.name, layer.reason)).collect(),
            weight_bytes: (before, after),
            equalized_pairs: self.equalized_pairs,
        }
    }

    fn layer(&self, k: usize) -> LayerReport {
        let layer = &self.layers[k];
        let form: &LayerForm = &self.selection.forms[k];
        let literal = layer.literal(self.module);
        let old: Vec<f32> = literal.and_then(|literal| literal.to_vec()).unwrap_or_default();
        let new: Option<Vec<f32>> = match &form.weights {
            Weights::Float => None,
            Weights::Integers(weights) => Some(weights.values()),
            Weights::Blocks(weights) => Some(match (layer.channel, literal) {
                (Some(0), Some(literal)) => transposed(&weights.values(), &literal.array_shape().sizes()),
                _ => weights.values(),
            }),
            Weights::Half(half) => {
                half.floats().map(|floats| floats.into_iter().map(|float| float as f32).collect())
            }
        };
        let group = self.points.group(layer.input(self.module)).filter(|_| form.has_integer_input);
        let is_restored = form.weights == Weights::Float && self.reasons[k].is_none();
        let reason =
            if is_restored { Some("its error is too large".to_owned()) } else { self.reasons[k].clone() };
        LayerReport {
            name: layer.name(self.module),
            op: match self.module[layer.computation][layer.instruction].op() {
                Op::Convolution { .. } => "convolution",
                _ => "dot",
            },
            weights: literal.map_or_else(String::new, |literal| literal.array_shape().to_string()),
            form: form_name(&form.weights),
            reason,
            input: group.map(|group| self.calibration.quantizations[group]),
            weights_error: new.map_or(0.0, |new| relative_difference(&new, &old)),
            error: self.selection.alone.get(k).copied().flatten(),
        }
    }
}

/// Arguments and results that stand for real numbers.
fn integers(interface: &Interface) -> Vec<(String, Quantization)> {
    let arguments = interface.arguments().iter().map(|argument| (argument.label(), argument.quantization));
    let results = interface.results().iter().map(|result| (result.label(), result.quantization));
    arguments.chain(results).filter_map(|(name, quantization)| Some((name, quantization?))).collect()
}

/// `[K, N]` as `[N, K]`, given the sizes `[N, K]`.
fn transposed(values: &[f32], sizes: &[i64]) -> Vec<f32> {
    let (n, k) = (sizes[0] as usize, sizes[1] as usize);
    (0..n * k).map(|at| values[at % k * n + at / k]).collect()
}

fn form_name(weights: &Weights) -> &'static str {
    match weights {
        Weights::Float => "float32",
        Weights::Integers(_) => "int8",
        Weights::Blocks(_) => "int4",
        Weights::Half(literal) => match literal.array_shape().element_type {
            shape::PrimitiveType::Bf16 => "bf16",
            _ => "f16",
        },
    }
}

/// Bytes of new weights. Integers of 4 bits share bytes.
fn new_bytes(weights: &Weights, before: u64) -> u64 {
    match weights {
        Weights::Float => before,
        Weights::Integers(weights) => (weights.integers.bytes().len() + weights.scales.bytes().len()) as u64,
        Weights::Blocks(weights) => {
            (weights.integers.bytes().len() / 2 + weights.scales.bytes().len()) as u64
        }
        Weights::Half(literal) => literal.bytes().len() as u64,
    }
}

impl Scheme {
    /// The name of the scheme in flags and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Int8 => "int8",
            Self::Int8Weights => "int8-weights",
            Self::Int4Weights => "int4-weights",
            Self::Bf16Weights => "bf16-weights",
            Self::F16Weights => "f16-weights",
        }
    }
}

fn method_name(method: Method) -> String {
    match method {
        Method::MinMax => "min-max".to_owned(),
        Method::Percentile(percentage) => format!("percentile {percentage}"),
        Method::Entropy => "entropy".to_owned(),
        Method::Mse => "mse".to_owned(),
    }
}

/// A scale with at least three digits that are not leading zeros.
fn scale(scale: f32) -> String {
    if (1e-4..1e4).contains(&scale) { format!("{scale:.6}") } else { format!("{scale:.3e}") }
}

/// Ratio of signal to noise in decibels.
fn decibels(relative_error: f64) -> f64 {
    -20.0 * relative_error.log10()
}

impl QuantizationReport {
    /// The report as tables.
    pub fn to_text(&self, screen: &Screen) -> String {
        let mut title = format!("scheme {}", self.options.scheme.name());
        if self.options.scheme == Scheme::Int8 {
            let on = |on: bool| if on { "on" } else { "off" };
            let _ = write!(
                title,
                ", ranges by {}, bias correction {}, equalization {}",
                method_name(self.options.method),
                on(self.options.corrects_bias),
                if self.options.equalizes {
                    format!("of {} pairs", self.equalized_pairs)
                } else {
                    "off".to_owned()
                },
            );
        }
        let _ = write!(title, ", {} samples", self.samples);
        let mut text = screen.paragraph(Style::Plain, &title);
        let scope = common_scope(&self.layers);
        if !scope.is_empty() {
            let _ = writeln!(text, "layers of {}:", printable(&scope));
        }
        let mut table = Table::new([
            Column::names("layer"),
            Column::words("op").optional(),
            Column::words("weights").optional(),
            Column::words("form"),
            Column::numbers("input scale").optional(),
            Column::numbers("zero point").optional(),
            Column::numbers("weights error"),
            Column::numbers("error alone"),
        ]);
        for layer in &self.layers {
            table.row([
                layer.name[scope.len()..].to_owned(),
                layer.op.to_owned(),
                layer.weights.clone(),
                layer.form.to_owned(),
                layer.input.map_or("-".to_owned(), |input| scale(input.scale)),
                layer.input.map_or("-".to_owned(), |input| input.zero_point.to_string()),
                format!("{:.4}", layer.weights_error),
                layer.error.map_or("-".to_owned(), |error| format!("{error:.4}")),
            ]);
        }
        text += &table.render(screen);
        if self.layers.iter().any(|layer| layer.error.is_some()) {
            let samples = self.samples.min(LAYER_SAMPLES);
            let legend = format!(
                "error alone: relative error of the results if only that layer is quantized, on {samples} samples"
            );
            text += &screen.paragraph(Style::Faint, &legend);
        }
        let left = self.layers.iter().filter_map(|layer| Some((&layer.name, layer.reason.as_ref()?)));
        let unsuitable = self.unsuitable.iter().map(|(name, reason)| (name, reason));
        let mut sentences = Vec::new();
        for (name, reason) in left.chain(unsuitable) {
            sentences.push(format!("{name} stays in float32: {reason}"));
        }
        for (name, quantization) in &self.interface {
            sentences.push(format!("{name} is int8: {quantization}"));
        }
        for result in &self.results {
            sentences.push(format!(
                "result {}: relative error {:.4} ({:.1} dB), at most {:.4}",
                result.name,
                result.relative_error,
                decibels(result.relative_error),
                result.max_absolute_error
            ));
        }
        let (before, after) = self.weight_bytes;
        sentences.push(format!("weights: {before} bytes before, {after} after"));
        sentences.iter().for_each(|sentence| text += &screen.paragraph(Style::Plain, &printable(sentence)));
        text
    }

    /// The report as JSON.
    pub fn to_json(&self) -> Value {
        let integers = |input: Quantization| json!({"scale": input.scale, "zero_point": input.zero_point});
        let layer = |layer: &LayerReport| {
            json!({
                "name": layer.name,
                "op": layer.op,
                "weights": layer.weights,
                "form": layer.form,
                "reason": layer.reason,
                "input": layer.input.map(integers),
                "weights_error": layer.weights_error,
                "error_alone": layer.error,
            })
        };
        let result = |result: &ResultReport| {
            let sqnr = decibels(result.relative_error);
            json!({
                "name": result.name,
                "relative_error": result.relative_error,
                "sqnr_db": sqnr.is_finite().then_some(sqnr),
                "max_absolute_error": result.max_absolute_error,
            })
        };
        json!({
            "scheme": self.options.scheme.name(),
            "method": method_name(self.options.method),
            "corrects_bias": self.options.corrects_bias,
            "equalized_pairs": self.equalized_pairs,
            "max_error": self.options.max_error,
            "samples": self.samples,
            "layers": self.layers.iter().map(layer).collect::<Vec<_>>(),
            "unsuitable": self.unsuitable.iter().map(|(name, reason)| json!({"name": name, "reason": reason})).collect::<Vec<_>>(),
            "interface": self.interface.iter().map(|(name, meaning)| {
                json!({"name": name, "scale": meaning.scale, "zero_point": meaning.zero_point})
            }).collect::<Vec<_>>(),
            "results": self.results.iter().map(result).collect::<Vec<_>>(),
            "weight_bytes_before": self.weight_bytes.0,
            "weight_bytes_after": self.weight_bytes.1,
        })
    }
}

/// The scopes with which all layers' names begin, up to the last `/` of them.
fn common_scope(layers: &[LayerReport]) -> String {
    let Some(first) = layers.first() else { return String::new() };
    let ends = first.name.match_indices('/').map(|(at, _)| &first.name[..=at]);
    let is_common = |scope: &&str| layers.iter().all(|layer| layer.name.starts_with(*scope));
    ends.take_while(is_common).last().unwrap_or("").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_of_all_sizes_keep_their_digits() {
        assert_eq!([0.003_921_569, 4.25e-6, 1.5e36].map(scale), ["0.003922", "4.250e-6", "1.500e36"]);
    }
}
