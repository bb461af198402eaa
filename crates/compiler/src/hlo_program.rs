//! Programs that are HLO from the start: HLO as text and as messages, StableHLO as text and as artefacts.

use crate::Front;
use hlo::{Computation, ComputationBuilder, ComputationId, InstructionId, Module, Op, OpMetadata};
use import::{ImportResult, ResultOrigin};
use passes::{
    CallInliner, DecompositionExpander, Defuser, FlattenCallGraph, LayoutNormalization, Pass,
    ReductionNormalization, SingleDevice,
};
use shape::{ArrayShape, Literal, PrimitiveType, Shape};
use std::collections::BTreeSet;
use support::{Error, Id, Result};

/// A module with names for what it takes and makes.
#[derive(Clone, Debug)]
pub struct HloProgram {
    /// The module; its entry takes arrays and returns a tuple of arrays.
    pub module: Module,
    /// The names of the parameters, each a C++ identifier, none twice.
    pub arguments: Vec<String>,
    /// The names of the results, likewise.
    pub results: Vec<String>,
    /// What the program states of its own values; the values are results behind those that are named.
    pub checks: Vec<stablehlo::Check>,
}

impl HloProgram {
    /// A program of HLO text. An error begins with the line.
    pub fn parse_hlo(text: &str) -> Result<Self> {
        let module = hlo::parse(text)?;
        refuse_elided(&module)?;
        check_given(&module)?;
        Self::of_module(module)
    }

    /// A program of a serialized `xla.HloModuleProto`, `xla.HloProto` or `xla.HloSnapshot`, and the arguments that a
    /// snapshot holds, one for each of the program's.
    pub fn parse_proto(bytes: &[u8]) -> Result<(Self, Vec<Literal>)> {
        let (module, arguments) = hlo::proto::read_hlo_proto(bytes)?;
        check_given(&module)?;
        let program = Self::of_module(module)?;
        let mut leaves = Vec::new();
        arguments.into_iter().for_each(|argument| flat(argument, &mut leaves));
        let signature = program.module.entry_computation().program_shape();
        let shapes = leaves.iter().map(Literal::shape);
        if !leaves.is_empty() && shapes.ne(signature.parameters.iter().cloned()) {
            return Err(Error::invalid(
                "the snapshot's arguments are not of the types that its module takes",
            ));
        }
        Ok((program, leaves))
    }

    /// Whether bytes are what [`Self::parse_proto`] reads.
    pub fn is_proto(bytes: &[u8]) -> bool {
        hlo::proto::is_hlo_proto(bytes)
    }

    /// A program of StableHLO text: its function `main`, or the only public one. An error begins with the line.
    pub fn parse_stablehlo(text: &str) -> Result<Self> {
        Self::of_stablehlo(&mlir::parse(text)?)
    }

    /// A program of a portable artefact of StableHLO, or of `jax.export`, which holds such a one.
    pub fn parse_artefact(bytes: &[u8]) -> Result<Self> {
        match stablehlo::is_export(bytes) {
            true => Self::of_stablehlo(&stablehlo::read_export(bytes)?),
            false => Self::of_stablehlo(&mlir::parse_bytecode(bytes)?),
        }
    }

    /// Whether bytes are what [`Self::parse_artefact`] reads.
    pub fn is_artefact(bytes: &[u8]) -> bool {
        bytes.starts_with(&mlir::BYTECODE_MAGIC) || stablehlo::is_export(bytes)
    }

    /// A program of StableHLO, however it was written.
    pub fn of_stablehlo(source: &mlir::Module) -> Result<Self> {
        let imported = stablehlo::import(source)?;
        hlo::verify(&imported.module)?;
        let names =
            |list: &[stablehlo::Argument]| identifiers(list.iter().map(|argument| argument.name.as_str()));
        Ok(Self {
            arguments: names(&imported.arguments),
            results: names(&imported.results),
            checks: imported.checks,
            module: imported.module,
        })
    }

    /// Gives a module an entry that takes arrays and returns a tuple of arrays: parameters and results that are tuples
    /// are taken apart, and so are fusions, which are another compiler's. Callers hand over arrays row by row, whatever their layouts in the module, and there is one device.
    /// Parameters keep their names where these can be; which results live in their memory is left to the caller of the
    /// program, who owns both.
    pub fn of_module(mut module: Module) -> Result<Self> {
        module.set_input_output_alias(Vec::new());
        let _ = LayoutNormalization.run(&mut module)?;
        let _ = Defuser.run(&mut module)?;
        let _ = SingleDevice.run(&mut module)?;
        let _ = DecompositionExpander.run(&mut module)?;
        let _ = ReductionNormalization.run(&mut module)?;
        if import::has_bounded_shapes(&module) {
            let _ = CallInliner.run(&mut module)?;
            module = import::settle_bounded_shapes(&module)?;
        }
        let _ = FlattenCallGraph.run(&mut module)?;
        let signature = module.entry_computation().program_shape();
        let entry = module.entry_computation();
        let names: Vec<String> = entry.parameters().iter().map(|&id| entry[id].name().to_owned()).collect();
        let is_array = |shape: &Shape| shape.as_array().is_some();
        let takes_arrays = signature.parameters.iter().all(is_array);
        let is_flat =
            takes_arrays && signature.result.as_tuple().is_some_and(|elements| elements.iter().all(is_array));
        let mut arguments = names.clone();
        if is_array(&signature.result) && takes_arrays && !is_called(&module, module.entry()) {
            let entry = module.entry();
            let computation = module.computation_mut(entry);
            let shape = Shape::Tuple(vec![signature.result.clone()]);
            let root = computation.add("", Op::Tuple {}, shape, &[computation.root()], OpMetadata::default());
            computation.set_root(root);
        } else if !is_flat {
            arguments.clear();
            let wrapped = flatten(&module, &names, &signature, &mut arguments)?;
            let id = module.add_computation(wrapped);
            module.set_entry(id);
        }
        let entry = module.entry_computation();
        let count = entry[entry.root()].shape().as_tuple().map_or(0, <[Shape]>::len);
        let results: Vec<String> = (0..count).map(|k| format!("result{k}")).collect();
        Ok(Self {
            arguments: identifiers(arguments.iter().map(String::as_str)),
            results,
            module,
            checks: Vec::new(),
        })
    }

    /// The same without its checks, as a program that is given away.
    pub fn without_checks(mut self) -> Result<Self> {
        if self.checks.is_empty() {
            return Ok(self);
        }
        let entry_id = self.module.entry();
        let mut entry = self.module.entry_computation().clone();
        let root = entry.root();
        let kept: Vec<InstructionId> = entry[root].operands()[..self.results.len()].to_vec();
        let shape = Shape::Tuple(kept.iter().map(|&id| entry[id].shape().clone()).collect());
        let root = entry.add("", Op::Tuple {}, shape, &kept, hlo::OpMetadata::default());
        entry.set_root(root);
        *self.module.computation_mut(entry_id) = entry;
        self.checks.clear();
        Ok(self)
    }

    /// The program as one that was imported.
    pub(crate) fn front(self) -> Result<Front> {
        let signature = self.module.entry_computation().program_shape();
        let node = tf::NodeId::from_index(0);
        let feed = |(name, shape): (&String, &Shape)| {
            let array = array_of(shape)?;
            Ok(tf::Feed {
                tensor: tf::OutputId { node, index: 0 },
                id: (name.clone(), 0),
                name: name.clone(),
                shape: array.sizes(),
                data_type: data_type_of(array)?,
            })
        };
        let feeds = self.arguments.iter().zip(&signature.parameters).map(feed).collect::<Result<Vec<_>>>()?;
        let compared =
            (0..2 * self.checks.len()).map(|k| format!("check{}_{}", k / 2, ["actual", "expected"][k % 2]));
        let fetches: Vec<tf::Fetch> = self
            .results
            .iter()
            .cloned()
            .chain(compared)
            .map(|name| tf::Fetch { tensor: tf::OutputId { node, index: 0 }, id: (name.clone(), 0), name })
            .collect();
        let results = (0..fetches.len()).map(ResultOrigin::Fetch).collect();
        let program = tf::Program {
            graph: tf::Graph::default(),
            library: tf::FunctionLibrary::default(),
            feeds,
            fetches,
            variables: Vec::new(),
            loop_bounds: crate::LoopBounds::new(),
        };
        let import = ImportResult {
            parameter_names: self.arguments,
            module: self.module,
            written_variables: Vec::new(),
            results,
        };
        Ok(Front { program, import })
    }
}

/// What is wrong with a module that somebody else wrote is theirs to mend.
fn check_given(module: &Module) -> Result<()> {
    hlo::verify(module).map_err(|error| Error::invalid(error.message()))
}

/// A text may leave out the elements of large constants; whoever runs it wants them.
fn refuse_elided(module: &Module) -> Result<()> {
    for (_, computation) in module.computations() {
        for (_, instruction) in computation.instructions() {
            if instruction.carried().is_some_and(|carried| carried.is_elided) {
                return Err(Error::invalid(format!(
                    "constant '{}' of {} is {{...}} in the text, which lacks its elements; print it with large constants",
                    instruction.name(),
                    computation.name()
                )));
            }
        }
    }
    Ok(())
}

fn is_called(module: &Module, callee: ComputationId) -> bool {
    let mut instructions = module.computations().flat_map(|(_, computation)| computation.instructions());
    instructions.any(|(_, instruction)| instruction.op().called_computations().contains(&callee))
}

/// The arrays in a value.
fn flat(value: Literal, leaves: &mut Vec<Literal>) {
    match value {
        Literal::Tuple(elements) => elements.into_iter().for_each(|element| flat(element, leaves)),
        array => leaves.push(array),
    }
}

fn array_of(shape: &Shape) -> Result<&ArrayShape> {
    shape
        .as_array()
        .ok_or_else(|| Error::unsupported(format!("the program's arguments are arrays, not {shape}")))
}

/// TensorFlow's type of an array's elements; where it has none, that of the bytes that hold them.
fn data_type_of(array: &ArrayShape) -> Result<tf::DataType> {
    let of = |element_type: PrimitiveType| {
        tf::DataType::ALL.iter().find(|data_type| data_type.primitive_type() == Some(element_type)).copied()
    };
    let element_type = array.element_type;
    let byte = match element_type {
        _ if element_type.byte_size() > 1 => None,
        _ if element_type.is_signed_integer() => of(PrimitiveType::S8),
        _ => of(PrimitiveType::U8),
    };
    of(element_type).or(byte).ok_or_else(|| Error::unsupported(format!("an argument of type {element_type}")))
}

/// An entry around the module's: its parameters are the arrays in those of the old one, its result is a tuple of the
/// arrays in what that returns. Appends the names of the parameters.
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
    let result = builder.op(module, Op::Call { to_apply: module.entry() }, &operands)?;
    let mut leaves = Vec::new();
    for (index, _) in signature.result.leaves() {
        let take = |builder: &mut ComputationBuilder, of, index| {
            builder.op(module, Op::GetTupleElement { index }, &[of])
        };
        leaves.push(index.into_iter().try_fold(result, |of, k| take(&mut builder, of, k))?);
    }
    let root = builder.op(module, Op::Tuple {}, &leaves)?;
    Ok(builder.finish(root))
}

/// A value of a shape, made of new parameters.
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

/// Names as C++ identifiers, none twice.
fn identifiers<'n>(names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let mut list = Vec::new();
    for name in names {
        let kept: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let kept = kept.trim_matches('_');
        let mut name = match kept.chars().next() {
            Some(first) if first.is_ascii_alphabetic() => kept.to_owned(),
            _ => format!("arg{kept}"),
        };
        while !taken.insert(name.clone()) {
            name.push_str("_1");
        }
        list.push(name);
    }
    list
}
