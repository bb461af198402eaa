//! Flags of quantization, for `quantize` and `build`.

use clap::{Args, ValueEnum};
use runner::{Method, QuantizationOptions, Scheme};
use std::path::PathBuf;
use support::{Code, Error, Result};

/// Form of a model's layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemeName {
    /// Weights and values between layers as integers of 8 bits
    Int8,
    /// Weights as integers of 8 bits with a scale for each output
    Int8Weights,
    /// Weights of matrix products as integers of 4 bits with a scale for each 32 summands, those of
    /// convolutions as integers of 8 bits
    Int4Weights,
    /// Weights as bfloat16
    Bf16Weights,
    /// Weights as float16
    F16Weights,
}

/// Method of choosing ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum MethodName {
    /// From the least to the greatest value
    MinMax,
    /// Without the outermost values; see --percentile
    Percentile,
    /// The range with the least Kullback-Leibler divergence
    Entropy,
    /// The range with the least squared error, for weights too
    Mse,
}

/// Flags that determine the result of a quantization.
#[derive(Args, Clone, Debug)]
pub(crate) struct QuantizationArgs {
    /// Examples of inputs: a .npz archive with an array for each feed, in which samples or batches
    /// come first. Can be repeated. Only int8 needs it; other schemes measure errors with it
    #[arg(long, value_name = "FILE.npz")]
    pub(crate) data: Vec<PathBuf>,
    /// Method of choosing the ranges of values between layers [default: mse]
    #[arg(long, value_enum, value_name = "METHOD")]
    method: Option<MethodName>,
    /// Percentage of values up to the upper end of the range, and from its lower end on, for
    /// --method=percentile [default: 99.99]
    #[arg(long, value_name = "PERCENT")]
    percentile: Option<f64>,
    /// Keep layers in float32, those with the largest errors first, until the relative error of
    /// each result is at most this number: the root of the mean squared error over that of the mean
    /// squared value
    #[arg(long, value_name = "NUMBER")]
    max_error: Option<f64>,
    /// Scale features so that consecutive layers have equal ranges of weights
    #[arg(long)]
    equalize: bool,
    /// Leave the mean error of each layer's outputs uncorrected
    #[arg(long)]
    no_bias_correction: bool,
    /// Pass float32 arguments and results as int8. The report and the header of a build state the
    /// scales; a written model does not hold them
    #[arg(long)]
    integer_interface: bool,
    /// Skip the measurement of each layer alone
    #[arg(long, conflicts_with = "max_error")]
    no_layer_errors: bool,
}

impl SchemeName {
    fn scheme(self) -> Scheme {
        match self {
            Self::Int8 => Scheme::Int8,
            Self::Int8Weights => Scheme::Int8Weights,
            Self::Int4Weights => Scheme::Int4Weights,
            Self::Bf16Weights => Scheme::Bf16Weights,
            Self::F16Weights => Scheme::F16Weights,
        }
    }
}

impl QuantizationArgs {
    /// Returns an error if one of the flags is given, for builds that quantize nothing.
    pub(crate) fn refuse(&self) -> Result<()> {
        let given = [
            ("--data", !self.data.is_empty()),
            ("--method", self.method.is_some()),
            ("--percentile", self.percentile.is_some()),
            ("--max-error", self.max_error.is_some()),
            ("--equalize", self.equalize),
            ("--no-bias-correction", self.no_bias_correction),
            ("--integer-interface", self.integer_interface),
            ("--no-layer-errors", self.no_layer_errors),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((flag, _)) => Err(Error::invalid(format!(
                "{flag} has no effect without --quantize: add --quantize=int8 or another scheme, or remove the flag"
            ))
            .coded(Code::CommandLine)),
            None => Ok(()),
        }
    }

    /// Returns the options of a scheme.
    pub(crate) fn options(&self, scheme: SchemeName) -> Result<QuantizationOptions> {
        let scheme = scheme.scheme();
        let invalid = |message: String| Err(Error::invalid(message).coded(Code::CommandLine));
        let method = self.method.unwrap_or(MethodName::Mse);
        let percentile = self.percentile.unwrap_or(99.99);
        if !(percentile > 50.0 && percentile <= 100.0) {
            return invalid(format!("--percentile {percentile}: expected a number above 50, at most 100"));
        }
        if self.percentile.is_some() && method != MethodName::Percentile {
            return invalid("--percentile has no effect: add --method=percentile, or remove it".to_owned());
        }
        if let Some(max_error) = self.max_error.filter(|max_error| !max_error.is_finite() || *max_error < 0.0)
        {
            return invalid(format!("--max-error {max_error}: expected a number that is not negative"));
        }
        if self.data.is_empty() {
            if scheme == Scheme::Int8 {
                return invalid(
                    "int8 needs examples of inputs to choose scales: pass --data FILE.npz, or choose a scheme for weights alone, such as int8-weights".to_owned()
                );
            }
            if self.max_error.is_some() {
                return invalid("--max-error needs examples of inputs: pass --data FILE.npz".to_owned());
            }
        }
        // Methods choose ranges of values, and two of them also the scales of weights in 8 bits.
        let has_scales =
            scheme == Scheme::Int8Weights && matches!(method, MethodName::Mse | MethodName::MinMax);
        let refused = [
            ("--integer-interface", self.integer_interface),
            ("--equalize", self.equalize),
            ("--no-bias-correction", self.no_bias_correction),
            ("--method", self.method.is_some() && !has_scales),
        ];
        if let Some((flag, _)) = refused.iter().find(|(_, given)| *given && scheme != Scheme::Int8) {
            let kept = if *flag == "--method" { ", and mse and min-max to int8-weights" } else { "" };
            return invalid(format!("{flag} applies only to int8{kept}: remove it, or choose int8"));
        }
        Ok(QuantizationOptions {
            scheme,
            method: match method {
                MethodName::MinMax => Method::MinMax,
                MethodName::Percentile => Method::Percentile(percentile),
                MethodName::Entropy => Method::Entropy,
                MethodName::Mse => Method::Mse,
            },
            max_error: self.max_error,
            equalizes: self.equalize,
            corrects_bias: !self.no_bias_correction && scheme == Scheme::Int8,
            integer_interface: self.integer_interface,
            measures_layers: !self.no_layer_errors,
        })
    }
}
