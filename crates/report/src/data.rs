//! The figures of a report. `docs/report.md` describes the fields for readers of the JSON.

use serde::{Deserialize, Serialize};
use support::{Error, Result};

/// Value of [`Report::schema`].
pub const SCHEMA: &str = "tfcompile-report";

/// Value of [`Report::version`]. A change that makes older readers wrong increases it.
pub const VERSION: u32 = 1;

/// Upper bound of the layers, moments, buffers, and constants of a saved report.
const MAX_ENTRIES: usize = 1_000_000;

/// Where times come from.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Runs on this machine.
    Measured,
    /// The planner's estimate for one core with wide vectors, at best.
    Modeled,
}

/// The figures of one program.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// [`VERSION`].
    pub version: u32,
    /// Name of the model or of the object.
    pub name: String,
    /// `model` or `object`.
    pub kind: String,
    /// Machine for which the code is.
    pub target: String,
    /// Element types that the layers compute with, the one with the most flops first.
    pub precision: Vec<String>,
    /// Time of a run.
    pub time: Option<Time>,
    /// Measured peak rates of this machine.
    pub peak: Option<Peak>,
    /// Sizes of the program.
    pub sizes: Sizes,
    /// Kernels in the order in which they run; of an object, its functions.
    pub layers: Vec<Layer>,
    /// The moments of a run at which kernels run.
    pub moments: Vec<Moment>,
    /// Values and scratch memory in the block of temporaries.
    pub buffers: Vec<Buffer>,
    /// Constants, the largest first.
    pub constants: Vec<Constant>,
    /// Errors of the results; empty unless they were compared.
    pub results: Vec<ResultError>,
    /// Notes on missing figures, with the way to learn them.
    pub missing: Vec<String>,
}

/// Time of a run.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Time {
    /// Where this and the layers' times come from.
    pub source: Source,
    /// Median in seconds; the estimate if modeled.
    pub seconds: f64,
    /// 90th percentile in seconds, if measured.
    pub p90: Option<f64>,
    /// Number of measured runs, or 0.
    pub runs: usize,
    /// Number of threads.
    pub threads: usize,
}

/// Peak rates per second.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Peak {
    /// Operations on `f32`.
    pub flops: f64,
    /// Operations on bytes with groups of products, if the machine has them.
    pub byte_operations: Option<f64>,
    /// Bytes read from memory.
    pub bytes: f64,
}

/// Sizes in bytes.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Sizes {
    /// Machine code of all functions.
    pub code: u64,
    /// Weights and other constants, as they are stored.
    pub constants: u64,
    /// Block of temporaries.
    pub arena: u64,
    /// Scratch memory for each worker.
    pub scratch: u64,
    /// Upper bound of the stack, or 0 if unknown.
    pub stack: u64,
    /// Arrays that the caller passes.
    pub feeds: u64,
    /// Variables that the caller owns.
    pub variables: u64,
    /// Arrays that a run returns.
    pub results: u64,
}

impl Sizes {
    /// Code and constants.
    pub fn size(&self) -> u64 {
        self.code.saturating_add(self.constants)
    }

    /// All memory that a run with one worker writes or is given: everything but code and constants.
    pub fn ram(&self) -> u64 {
        let parts = [self.arena, self.scratch, self.stack, self.feeds, self.variables, self.results];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

/// A kernel.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Layer {
    /// Name of the instruction or of the function.
    pub name: String,
    /// Main operation, such as `convolution`.
    pub kind: String,
    /// Node of the model, whose parts between slashes are its scopes.
    pub node: String,
    /// Nodes that are fused into the layer, [`Self::node`] first. Older versions of the tool wrote
    /// no such list.
    #[serde(default)]
    pub nodes: Vec<String>,
    /// Name of the loop body or branch that contains the kernel; empty in the entry.
    pub group: String,
    /// Shape of the result.
    pub shape: String,
    /// Element types of the operands and the result of the main operation.
    pub precision: String,
    /// Simple operations in one run, a multiply-add counts as two.
    pub flops: u64,
    /// Evaluations of functions such as exp in one run.
    pub transcendentals: u64,
    /// Bytes of operands and results in one run.
    pub bytes: u64,
    /// Executions in a run; `None` if they depend on data, so that the work of one is shown.
    pub runs: Option<u64>,
    /// Time in one run.
    pub seconds: Option<f64>,
    /// Operations per second as a share of the measured peak.
    pub share_of_peak: Option<f64>,
    /// Machine code; `None` if the code is shared with an earlier layer or merged into another
    /// function.
    pub code_bytes: Option<u64>,
    /// Constants that the kernel reads, as they are stored.
    pub weight_bytes: u64,
    /// Chosen strategy.
    pub strategy: String,
    /// Reason for the choice.
    pub reason: String,
    /// Alternatives that were considered, the planner's choice first.
    pub candidates: Vec<String>,
    /// Costs of those candidates that a cost model compares. Rules choose among the others.
    #[serde(default)]
    pub costs: Vec<Cost>,
    /// Agreement with the evaluator, if it was compared.
    pub accuracy: Option<Accuracy>,
    /// Reason for not comparing it.
    pub not_compared: Option<String>,
}

/// Modeled cost of a candidate. Only costs with the same unit are compared.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Cost {
    /// Name of the candidate.
    pub candidate: String,
    /// Number of units.
    pub cost: f64,
    /// Unit, such as `cycles per group`.
    pub unit: String,
}

/// Agreement of a kernel with the evaluator.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Accuracy {
    /// Kind of input with the largest error.
    pub input: String,
    /// Largest distance in units in the last place.
    pub max_ulp: u64,
    /// Largest relative difference of an element.
    pub max_relative: f64,
    /// Largest difference as a share of the bound that follows from rounding. Above 1 is wrong.
    pub share_of_limit: f64,
}

/// A moment at which a kernel runs.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Moment {
    /// Number of the layer.
    pub layer: Option<usize>,
    /// Name of the instruction.
    pub name: String,
    /// Live bytes of the block of temporaries.
    pub bytes: u64,
}

/// A range of the block of temporaries.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Buffer {
    /// Name of the value, or of the kernel whose scratch memory this is.
    pub name: String,
    /// Node of the model.
    pub node: String,
    /// Shape; empty for scratch memory.
    pub shape: String,
    /// Start in the block.
    pub offset: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// First and last moments of each interval in which the value is live.
    pub live: Vec<(usize, usize)>,
}

/// A constant.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Constant {
    /// Name of the instruction, or of the kernel for which it is packed.
    pub name: String,
    /// Node of the model.
    pub node: String,
    /// Shape, or `packed` for a layout of its own.
    pub shape: String,
    /// Number of bytes.
    pub bytes: u64,
    /// Layers that read it.
    pub layers: Vec<usize>,
}

/// Error of a result, compared with the evaluator's.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ResultError {
    /// Name of the result.
    pub name: String,
    /// Largest absolute difference.
    pub largest: f64,
    /// Root of the mean square of the differences as a share of that of the numbers.
    pub relative: f64,
    /// Largest magnitude of the evaluator's numbers.
    pub magnitude: f64,
}

impl Report {
    /// An empty report of this version.
    pub fn new(name: &str, kind: &str) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            version: VERSION,
            name: name.to_owned(),
            kind: kind.to_owned(),
            ..Self::default()
        }
    }

    /// The report as indented JSON.
    pub fn to_json(&self) -> Result<String> {
        let text = serde_json::to_string_pretty(self);
        text.map(|text| text + "\n").map_err(|e| Error::internal(format!("a report without JSON: {e}")))
    }

    /// Reads a saved report. The file is untrusted.
    pub fn parse(text: &[u8]) -> Result<Self> {
        let value: serde_json::Value =
            serde_json::from_slice(text).map_err(|e| Error::invalid(format!("not a report: {e}")))?;
        let word = |key: &str| value.get(key).cloned().unwrap_or_default();
        if word("schema") != SCHEMA {
            return Err(Error::invalid(format!(
                "not a report: expected \"schema\": \"{SCHEMA}\"; write one with `tfcompile report MODEL --json`"
            )));
        }
        if word("version") != VERSION {
            return Err(Error::invalid(format!(
                "expected version {VERSION} of the report's format, got {}; write it again with this tool",
                word("version")
            )));
        }
        let report: Self =
            serde_json::from_value(value).map_err(|e| Error::invalid(format!("damaged report: {e}")))?;
        report.check()?;
        Ok(report)
    }

    /// Fails unless all numbers of layers and moments exist.
    fn check(&self) -> Result<()> {
        let damaged = |what: &str| Err(Error::invalid(format!("damaged report: {what}")));
        let counts = [self.layers.len(), self.moments.len(), self.buffers.len(), self.constants.len()];
        if counts.iter().any(|&count| count > MAX_ENTRIES) {
            return damaged("a list has more than a million entries");
        }
        let is_layer = |&layer: &usize| layer < self.layers.len();
        if !self.moments.iter().filter_map(|moment| moment.layer.as_ref()).all(is_layer)
            || !self.constants.iter().flat_map(|constant| &constant.layers).all(is_layer)
        {
            return damaged("the number of a layer is too large");
        }
        let is_interval = |&(from, to): &(usize, usize)| from <= to && to < self.moments.len();
        if !self.buffers.iter().flat_map(|buffer| &buffer.live).all(is_interval) {
            return damaged("a buffer is live outside the run");
        }
        Ok(())
    }

    /// Sets [`Report::precision`] from the layers.
    pub fn summarize(&mut self) {
        let mut flops: Vec<(String, u64)> = Vec::new();
        for layer in self.layers.iter().filter(|layer| !layer.precision.is_empty()) {
            match flops.iter_mut().find(|(name, _)| *name == layer.precision) {
                Some((_, sum)) => *sum = sum.saturating_add(layer.flops),
                None => flops.push((layer.precision.clone(), layer.flops)),
            }
        }
        flops.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum));
        self.precision = flops.into_iter().map(|(name, _)| name).collect();
    }

    /// Flops of a run over the time of a run and the peak, if all are known.
    pub fn share_of_peak(&self) -> Option<f64> {
        let shares = self.layers.iter().filter_map(|layer| Some(layer.share_of_peak? * layer.seconds?));
        let time: f64 = self.layers.iter().filter_map(|layer| layer.seconds).sum();
        (self.peak.is_some() && time > 0.0).then(|| shares.sum::<f64>() / time)
    }
}
