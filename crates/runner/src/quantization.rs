//! Quantization of a program on examples of its inputs: observes values, chooses scales, measures
//! errors, and returns the program in its new form.

mod batch;
mod calibration;
mod measurement;
mod report;
mod selection;

pub use batch::example_program;
pub use report::{LayerReport, QuantizationReport, ResultReport};

use crate::{Inputs, Progress};
use calibration::Calibration;
use compiler::{Executable, NoObserver, PassRun};
use hlo::{Argument, InstructionId, Interface, Module, OpMetadata, Origin, Output, Program, Role};
use quantize::{Form, Layer, LayerForm, Layers, Method, Points, rewrite};
use selection::Selection;
use shape::{PrimitiveType, Quantization};
use support::{Error, Result};

/// Form of the layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Integers of 8 bits for weights and for values between layers.
    Int8,
    /// Weights as integers of 8 bits with a scale for each output.
    Int8Weights,
    /// Weights as integers of 4 bits with a scale for each 32 summands of an output.
    Int4Weights,
    /// Weights as `bf16`.
    Bf16Weights,
    /// Weights as `f16`.
    F16Weights,
}

/// Options of [`quantize()`].
#[derive(Clone, Debug, PartialEq)]
pub struct QuantizationOptions {
    /// Form of the layers.
    pub scheme: Scheme,
    /// Method of choosing the ranges of values.
    pub method: Method,
    /// Largest relative error of a result. Layers stay in floating point until it is reached.
    pub max_error: Option<f64>,
    /// True if features are scaled so that layers have equal ranges.
    pub equalizes: bool,
    /// True if the mean error of each output is removed.
    pub corrects_bias: bool,
    /// True if arguments and results become integers, too.
    pub integer_interface: bool,
    /// True if the error of each layer alone is measured.
    pub measures_layers: bool,
}

/// Compiles a module for this process.
pub type CompileModule<'a> = dyn FnMut(Module) -> Result<Executable> + 'a;

/// Quantizes a program. `inputs` are examples of the inputs of [`example_program()`], one for each
/// step. The programs of a batch for other sizes follow what it decides.
///
/// Errors: no layer can be quantized, results have sizes that depend on the data, inputs are
/// missing although the options need them, or a value is not a finite number.
pub fn quantize(
    program: Program,
    inputs: Option<&Inputs>,
    options: &QuantizationOptions,
    compile: &mut CompileModule<'_>,
    progress: &mut Progress<'_>,
) -> Result<(Program, QuantizationReport)> {
    let reads_examples = inputs.is_some() || options.scheme == Scheme::Int8;
    let is_batch = program.sized.first().is_some_and(|row| row.size == 1);
    let Program { module, interface, .. } =
        if reads_examples || is_batch { example_program(&program)? } else { program.clone() };
    if interface.size_count() > 0 && reads_examples {
        return Err(Error::unsupported(
            "the sizes of a result depend on the data, and such programs cannot be quantized: fetch values of fixed sizes",
        ));
    }
    let original = canonical(module)?;
    check_layers(&original)?;
    let mut module = original.clone();
    let equalized_pairs = if options.equalizes { quantize::equalize(&mut module)? } else { 0 };
    let Layers { layers, unsuitable } = Layers::of(&module);
    let boundary = Boundary::of(&module, &interface, options);
    let points = points(&module, &layers, &boundary, options);
    let calibration = match (options.scheme, inputs) {
        (Scheme::Int8, Some(inputs)) => {
            progress("observing ranges", 0, 0);
            Calibration::observe(&module, &layers, &points, inputs, options, compile)?
        }
        (Scheme::Int8, None) => return Err(Error::invalid("int8 needs examples of inputs")),
        _ => Calibration::default(),
    };
    let (forms, reasons) = selection::forms(&module, &layers, &calibration, options);
    let build = |forms: &[LayerForm]| {
        let form = Form {
            layers: &layers,
            forms,
            points: &points,
            quantizations: &calibration.quantizations,
            parameters: &boundary.parameters,
            results: &boundary.results,
        };
        let quantized = rewrite(&module, &form)?;
        let interface = boundary.interface(&interface, &module, &points, &calibration.quantizations);
        Ok::<_, Error>(Program::new(quantized, interface))
    };
    let selection = match inputs {
        None => Selection { program: build(&forms)?, forms, alone: Vec::new(), results: Vec::new() },
        Some(inputs) => {
            let mut context = selection::Context {
                original: &original,
                module: &module,
                inputs,
                interface: &interface,
                options,
                compile,
                progress,
            };
            context.select(&layers, &points, &calibration, forms, &build)?
        }
    };
    let report = report::Parts {
        options,
        module: &module,
        layers: &layers,
        unsuitable,
        points: &points,
        calibration: &calibration,
        selection: &selection,
        reasons,
        samples: inputs.map_or(0, |inputs| inputs.batch_count().unwrap_or(1)),
        equalized_pairs,
    };
    let report = report.report();
    let Selection { program: mut quantized, forms, .. } = selection;
    let decisions = Decisions {
        options,
        module: &module,
        layers: &layers,
        points: &points,
        boundary: &boundary,
        forms: &forms,
        quantizations: &calibration.quantizations,
    };
    if is_batch {
        quantized = batch::follow(&program, quantized, &decisions)?;
    }
    quantized.exact = batch::follow_exact(&program, &interface, &decisions)?;
    name_parameters(&mut quantized.module, &quantized.interface);
    Ok((quantized, report))
}

/// Decisions on a program, for the same program in another size.
struct Decisions<'a> {
    options: &'a QuantizationOptions,
    /// The program before the change.
    module: &'a Module,
    layers: &'a [Layer],
    points: &'a Points,
    boundary: &'a Boundary,
    /// The form of each layer.
    forms: &'a [LayerForm],
    /// The integers of each group of points.
    quantizations: &'a [Quantization],
}

/// Brings a module into the form in which layers are found.
fn canonical(mut module: Module) -> Result<Module> {
    PassRun { disabled: &[], observer: &mut NoObserver }
        .run(&compiler::quantization_pipeline(), &mut module)?;
    Ok(module)
}

/// The values that become integers.
fn points(module: &Module, layers: &[Layer], boundary: &Boundary, options: &QuantizationOptions) -> Points {
    match options.scheme {
        Scheme::Int8 => Points::of(module, layers, &boundary.values(module)),
        _ => Points::default(),
    }
}

/// True if a program has layers that [`quantize()`] can change.
pub fn has_layers(program: &Program) -> Result<bool> {
    Ok(!Layers::of(&canonical(program.module.clone())?).layers.is_empty())
}

/// Gives the parameters the names of the arguments, which a written module keeps.
fn name_parameters(module: &mut Module, interface: &Interface) {
    let entry = module.entry();
    for (number, argument) in interface.arguments().iter().enumerate() {
        let name = argument.name.clone().unwrap_or_else(|| argument.id.short());
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let name: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
        let computation = module.computation_mut(entry);
        let parameter = computation.parameters()[number];
        if computation[parameter].name() != name && !name.is_empty() {
            computation.rename(parameter, &name);
        }
        // Readers of StableHLO prefer the name of the node.
        computation.set_metadata(parameter, OpMetadata::default());
    }
}

/// Returns an error if no layer can be quantized.
fn check_layers(module: &Module) -> Result<()> {
    let Layers { layers, unsuitable } = Layers::of(module);
    if !layers.is_empty() {
        return Ok(());
    }
    let reasons: Vec<String> =
        unsuitable.iter().take(5).map(|layer| format!("'{}': {}", layer.name, layer.reason)).collect();
    let reasons = if reasons.is_empty() { "there are none".to_owned() } else { reasons.join("; ") };
    Err(Error::invalid(format!(
        "no layer can be quantized: a layer is a dot or a convolution of float32 with constant weights ({reasons})"
    )))
}

/// Arguments and results that become integers.
struct Boundary {
    parameters: Vec<InstructionId>,
    results: Vec<usize>,
}

impl Boundary {
    /// All feeds and fetches of `f32`, if the options request them.
    fn of(module: &Module, interface: &Interface, options: &QuantizationOptions) -> Self {
        if !options.integer_interface || options.scheme != Scheme::Int8 {
            return Self { parameters: Vec::new(), results: Vec::new() };
        }
        let entry = module.entry_computation();
        let elements = entry[entry.root()].operands();
        let feeds = interface.arguments().iter().zip(entry.parameters()).filter(|(argument, _)| {
            argument.role == Role::Feed && argument.shape.element_type == PrimitiveType::F32
        });
        let parameters: Vec<InstructionId> = feeds.map(|(_, &id)| id).collect();
        let is_result = |(k, result): &(usize, &Output)| {
            result.origin == Origin::Fetch
                && result.alias.is_none()
                && result.shape.element_type == PrimitiveType::F32
                && !matches!(entry[elements[*k]].op(), hlo::Op::Constant { .. })
        };
        let results = interface.results().iter().enumerate().filter(is_result).map(|(k, _)| k).collect();
        Self { parameters, results }
    }

    fn values(&self, module: &Module) -> Vec<InstructionId> {
        let entry = module.entry_computation();
        let elements = entry[entry.root()].operands();
        self.parameters.iter().copied().chain(self.results.iter().map(|&k| elements[k])).collect()
    }

    /// The interface with integers and their scales.
    fn interface(
        &self,
        interface: &Interface,
        module: &Module,
        points: &Points,
        quantizations: &[Quantization],
    ) -> Interface {
        let entry = module.entry_computation();
        let elements = entry[entry.root()].operands();
        let quantization = |id: InstructionId| Some(quantizations[points.group(id)?]);
        let mut arguments: Vec<Argument> = interface.arguments().to_vec();
        for (argument, id) in arguments.iter_mut().zip(entry.parameters()) {
            if self.parameters.contains(id) {
                argument.shape = argument.shape.with_element_type(PrimitiveType::S8);
                argument.quantization = quantization(*id);
            }
        }
        let mut results: Vec<Output> = interface.results().to_vec();
        for &k in &self.results {
            results[k].shape = results[k].shape.with_element_type(PrimitiveType::S8);
            results[k].quantization = quantization(elements[k]);
        }
        Interface::new(arguments, results)
    }
}
