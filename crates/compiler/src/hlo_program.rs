//! Programs in HLO or StableHLO: HLO as text and as messages, StableHLO as text and as portable
//! artifacts.

use crate::open_program::{self, OpenSizes};
use crate::{PassRun, bindings, entry, named_sizes, normalization_pipeline};
use hlo::{
    Computation, ComputationBuilder, InstructionId, Interface, Module, NamedDimension, Op, OpMetadata,
    Program, SizeParameter,
};
use shape::{Literal, Shape};
use std::collections::BTreeMap;
use support::{Error, Result};

/// HLO program with its checks.
#[derive(Clone, Debug)]
pub struct HloProgram {
    /// The program. Its entry takes arrays and returns a tuple of arrays.
    pub program: Program,
    /// Checks of values that the program itself contains. The values are its last results, two for
    /// each check.
    pub checks: Vec<stablehlo::Check>,
    /// Notes for the user about the sizes of its arguments, a line each.
    pub notes: Vec<String>,
    /// Flags about sizes that have no effect on this function, but that another one may need.
    pub unused: Vec<String>,
}

impl HloProgram {
    /// Parses HLO text. Errors begin with the line number.
    pub fn parse_hlo(text: &str, passes: &mut PassRun<'_>) -> Result<Self> {
        let module = hlo::parse(text)?;
        refuse_elided(&module)?;
        check_given(&module)?;
        Self::of_module(module, passes)
    }

    /// Parses a serialized `xla.HloModuleProto`, `xla.HloProto`, or `xla.HloSnapshot`. Also returns
    /// the arguments in a snapshot, one for each of the program's.
    pub fn parse_proto(bytes: &[u8], passes: &mut PassRun<'_>) -> Result<(Self, Vec<Literal>)> {
        let (module, arguments) = hlo::proto::read_hlo_proto(bytes)?;
        check_given(&module)?;
        let program = Self::of_module(module, passes)?;
        let mut leaves = Vec::new();
        arguments.into_iter().for_each(|argument| flat(argument, &mut leaves));
        let signature = program.program.module.entry_computation().program_shape();
        let shapes = leaves.iter().map(Literal::shape);
        if !leaves.is_empty() && shapes.ne(signature.parameters.iter().cloned()) {
            return Err(Error::invalid(
                "the types of the snapshot's arguments differ from those of its module's parameters",
            ));
        }
        Ok((program, leaves))
    }

    /// True if [`Self::parse_proto`] can read the bytes.
    pub fn is_proto(bytes: &[u8]) -> bool {
        hlo::proto::is_hlo_proto(bytes)
    }

    /// Parses StableHLO text. The program is the public function of this name; without a name, its
    /// function `main`, or the only public one. Errors begin with the line number.
    pub fn parse_stablehlo(
        text: &str,
        function: Option<&str>,
        sizes: &OpenSizes,
        passes: &mut PassRun<'_>,
    ) -> Result<Self> {
        Self::of_stablehlo(&mlir::parse(text)?, function, sizes, passes)
    }

    /// Parses a portable artifact of StableHLO, alone or inside a file of `jax.export`.
    pub fn parse_artifact(
        bytes: &[u8],
        function: Option<&str>,
        sizes: &OpenSizes,
        passes: &mut PassRun<'_>,
    ) -> Result<Self> {
        let module = if stablehlo::is_export(bytes) {
            stablehlo::read_export(bytes)?
        } else {
            mlir::parse_bytecode(bytes)?
        };
        Self::of_stablehlo(&module, function, sizes, passes)
    }

    /// True if [`Self::parse_artifact`] can read the bytes.
    pub fn is_artifact(bytes: &[u8]) -> bool {
        bytes.starts_with(&mlir::BYTECODE_MAGIC) || stablehlo::is_export(bytes)
    }

    /// Imports a function of a StableHLO module. Arguments whose memory a result uses become
    /// variables.
    pub fn of_stablehlo(
        source: &mlir::Module,
        function: Option<&str>,
        sizes: &OpenSizes,
        passes: &mut PassRun<'_>,
    ) -> Result<Self> {
        let open = stablehlo::dimensions(source, function, &sizes.request)?;
        let unused = sizes.unused(open.as_ref())?;
        if let Some(open) = open {
            let import = |request: &_| Self::of_imported(stablehlo::import_sized(source, function, request)?);
            let whole = import(&sizes.request);
            let notes = open_program::notes(&open);
            // Checks compare values of one size.
            if let Some(whole) = whole.as_ref().ok().filter(|whole| !whole.checks.is_empty()) {
                sizes.refuse_code("the program checks values, which are those of one size")?;
                return Ok(Self { notes, unused, ..whole.clone() });
            }
            let program = whole.map(|whole| whole.program);
            let import = |request: &_| import(request).map(|program| program.program);
            let program = open_program::combined(program, sizes, &open, &import, &mut *passes.observer)?;
            return Ok(Self { program, checks: Vec::new(), notes, unused });
        }
        let imported = stablehlo::import_sized(source, function, &sizes.request)?;
        Ok(Self { unused, ..Self::of_imported(imported)? })
    }

    pub(crate) fn of_imported(imported: stablehlo::Imported) -> Result<Self> {
        let stablehlo::Imported { mut module, mut interface, checks, aliases } = imported;
        if module.size_parameters().is_empty() {
            let named = named_sizes::restore(&mut module);
            interface.set_sizes(&module);
            interface.add_named_dimensions(named);
        }
        let program = bindings::with_variables(Program::new(module, interface), &aliases)?;
        hlo::verify(&program.module)?;
        Ok(Self { program, checks, notes: Vec::new(), unused: Vec::new() })
    }

    /// Returns the program with constants in place of the arguments that have the names of arrays.
    /// Fails if an array fits no argument.
    pub fn with_constants(self, arrays: &BTreeMap<String, Literal>) -> Result<Self> {
        let program = bindings::with_constants(self.program, arrays)?;
        hlo::verify(&program.module)?;
        Ok(Self { program, ..self })
    }

    /// Creates a program from a module. The entry then takes arrays and returns a tuple of arrays:
    /// tuples among parameters and results are flattened, and another compiler's fusions are
    /// expanded. Callers pass arrays in row-major order, whatever their layouts in the module, and
    /// there is one device. Parameters keep their names if possible. The module's aliases are
    /// removed, because the caller of the program owns both arguments and results.
    pub fn of_module(mut module: Module, passes: &mut PassRun<'_>) -> Result<Self> {
        module.set_input_output_alias(Vec::new());
        let stated = named_sizes::restore(&mut module);
        // Normalization removes the bounded shapes that show them.
        let mut named = given_names(&module);
        named.extend(stated);
        passes.run(&normalization_pipeline(), &mut module)?;
        let signature = module.entry_computation().program_shape();
        let entry = module.entry_computation();
        let names: Vec<String> = entry.parameters().iter().map(|&id| entry[id].name().to_owned()).collect();
        let is_array = |shape: &Shape| shape.as_array().is_some();
        let takes_arrays = signature.parameters.iter().all(is_array);
        let is_flat =
            takes_arrays && signature.result.as_tuple().is_some_and(|elements| elements.iter().all(is_array));
        let mut arguments = names.clone();
        if is_array(&signature.result) && takes_arrays && !entry::is_called(&module, module.entry()) {
            let entry = module.entry();
            let computation = module.computation_mut(entry);
            let shape = Shape::Tuple(vec![signature.result.clone()]);
            let root = computation.add("", Op::Tuple {}, shape, &[computation.root()], OpMetadata::default());
            computation.set_root(root);
        } else if !is_flat {
            arguments.clear();
            let wrapped = flatten(&module, &names, &signature, &mut arguments)?;
            entry::replace(&mut module, wrapped);
            let before = |number: usize| &signature.parameters[..number];
            let flat_number = |number| before(number).iter().map(|shape| shape.leaves().len()).sum();
            let sizes = module.size_parameters().iter();
            let sizes = sizes.map(|size| SizeParameter { parameter: flat_number(size.parameter), ..*size });
            module.set_size_parameters(sizes.collect());
        }
        let results: Vec<String> = (0..module.result_count()).map(|k| format!("result{k}")).collect();
        let mut interface = Interface::with_names(&module, &arguments, &results)?;
        interface.add_named_dimensions(named);
        let program = Program::new(module, interface);
        Ok(Self { program, checks: Vec::new(), notes: Vec::new(), unused: Vec::new() })
    }

    /// Returns the program without its checks, for compiled files.
    pub fn without_checks(mut self) -> Result<Self> {
        if self.checks.is_empty() {
            return Ok(self);
        }
        let Program { module, interface, .. } = &mut self.program;
        let entry_id = module.entry();
        let mut entry = module.entry_computation().clone();
        let root = entry.root();
        let fetches: Vec<InstructionId> = entry[root].operands()[..interface.fetches().len()].to_vec();
        let shape = Shape::Tuple(fetches.iter().map(|&id| entry[id].shape().clone()).collect());
        let root = entry.add("", Op::Tuple {}, shape, &fetches, hlo::OpMetadata::default());
        entry.set_root(root);
        *module.computation_mut(entry_id) = entry;
        *interface = Interface::new(interface.arguments().to_vec(), interface.fetches().to_vec());
        self.checks.clear();
        Ok(self)
    }
}

/// Returns the named dimensions of the entry's arrays: those that it sets, and the bounded
/// dimensions of parameters, whose sizes follow all parameters.
fn given_names(module: &Module) -> Vec<(usize, NamedDimension)> {
    let mut named = hlo::named_dimensions(module);
    let Ok(interface) = Interface::of_module(module) else { return named };
    let mut size = interface.arguments().len();
    for (k, argument) in interface.arguments().iter().enumerate() {
        for (dimension, bounds) in argument.shape.dimensions.iter().enumerate() {
            if bounds.is_dynamic && bounds.size > 0 {
                named.push((k, NamedDimension { dimension, size }));
                size += 1;
            }
        }
    }
    named
}

/// Verifies a module from a file. Violations are errors of the user, not internal errors.
fn check_given(module: &Module) -> Result<()> {
    hlo::verify(module).map_err(|error| Error::invalid(error.message()))
}

/// Rejects text that omits the elements of large constants, which a run needs.
fn refuse_elided(module: &Module) -> Result<()> {
    for (_, computation) in module.computations() {
        for (_, instruction) in computation.instructions() {
            if instruction.annotations().is_some_and(|annotations| annotations.is_elided) {
                return Err(Error::invalid(format!(
                    "the text omits the elements of constant '{}' of {} ({{...}}); print the module with large constants",
                    instruction.name(),
                    computation.name()
                )));
            }
        }
    }
    Ok(())
}

/// Appends the arrays in a value to `leaves`.
fn flat(value: Literal, leaves: &mut Vec<Literal>) {
    match value {
        Literal::Tuple(elements) => elements.into_iter().for_each(|element| flat(element, leaves)),
        array => leaves.push(array),
    }
}

/// Creates an entry that does what the module's entry does. Its parameters are the arrays in the
/// old parameters, and its result is a tuple of the arrays in the old result. Appends the names of
/// the parameters.
fn flatten(
    module: &Module,
    names: &[String],
    signature: &shape::ProgramShape,
    arguments: &mut Vec<String>,
) -> Result<Computation> {
    let mut builder = ComputationBuilder::new("flat");
    let mut operands = Vec::new();
    for (name, shape) in names.iter().zip(&signature.parameters) {
        operands.push(gather(module, &mut builder, shape, name, arguments)?);
    }
    let result = entry::apply(module, &mut builder, &operands);
    let mut leaves = Vec::new();
    for (index, _) in signature.result.leaves() {
        let take = |of, k| entry::element(module, &mut builder, of, k);
        leaves.push(index.into_iter().try_fold(result, take)?);
    }
    let root = builder.op(module, Op::Tuple {}, &leaves)?;
    Ok(builder.finish(root))
}

/// Builds a value of a shape from new parameters.
fn gather(
    module: &Module,
    builder: &mut ComputationBuilder,
    shape: &Shape,
    name: &str,
    arguments: &mut Vec<String>,
) -> Result<InstructionId> {
    match shape {
        Shape::Array(_) => {
            arguments.push(name.to_owned());
            Ok(builder.parameter(name, shape.clone()))
        }
        Shape::Tuple(elements) => {
            let parts = elements
                .iter()
                .enumerate()
                .map(|(k, element)| gather(module, builder, element, &format!("{name}_{k}"), arguments))
                .collect::<Result<Vec<_>>>()?;
            builder.op(module, Op::Tuple {}, &parts)
        }
        Shape::Token => builder.op(module, Op::AfterAll {}, &[]),
    }
}
