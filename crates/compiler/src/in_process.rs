//! Code that runs in this process.

use crate::{BackOptions, Compiled, Input, NoObserver, compile_module, front, guarded};
use jit::{AlignedBytes, BufferSpec, Interface, ResultSpec};
use shape::{ArrayShape, Literal};
use support::{Error, Result};
use target::Target;

/// A compiled program in this process.
#[derive(Debug)]
pub struct Executable {
    code: jit::Executable,
    arguments: Vec<ArrayShape>,
    results: Vec<(ArrayShape, Option<usize>)>,
}

/// Compiles a graph and its config for a processor of this machine's architecture and loads the code.
/// `cpu` is LLVM's name, empty for the baseline, `native` for this machine's.
pub fn compile_in_process(graph: &Input, config: &Input, cpu: &str) -> Result<Executable> {
    guarded(|| {
        let front = front::import(graph, config, &mut NoObserver)?;
        let target = host(cpu)?;
        let options = BackOptions { target, entry_point: "entry".to_owned(), disabled_passes: Vec::new() };
        Executable::load(&compile_module(front.import.module, &options, &mut NoObserver)?)
    })
}

/// The target of this machine's architecture.
fn host(cpu: &str) -> Result<Target> {
    let triple = codegen::host_triple();
    if cpu == "native" {
        let (cpu, features) = codegen::host_target();
        return Target::new(&triple, &cpu, &features);
    }
    Target::new(&triple, cpu, "")
}

impl Executable {
    /// Loads a compiled module.
    pub fn load(compiled: &Compiled) -> Result<Self> {
        let entry = compiled.module.entry_computation().program_shape();
        let array = |shape: &shape::Shape| {
            let array = shape.as_array().cloned();
            array.ok_or_else(|| Error::unsupported(format!("{shape} as an argument or result")))
        };
        let arguments: Vec<ArrayShape> = entry.parameters.iter().map(array).collect::<Result<_>>()?;
        let elements =
            entry.result.as_tuple().ok_or_else(|| Error::internal("the entry's result is a tuple"))?;
        let alias_of = |index: usize| {
            let aliases = compiled.module.input_output_alias().iter();
            aliases.filter(|a| a.output_index == [index]).map(|a| a.parameter_number).next()
        };
        let results = elements.iter().enumerate().map(|(k, shape)| Ok((array(shape)?, alias_of(k))));
        let results: Vec<(ArrayShape, Option<usize>)> = results.collect::<Result<_>>()?;
        let bytes = |shape: &ArrayShape| shape.byte_size() as usize;
        let interface = Interface {
            arguments: arguments
                .iter()
                .map(|s| BufferSpec { bytes: bytes(s), alignment: s.element_type.real_part().byte_size() })
                .collect(),
            results: results.iter().map(|(s, alias)| ResultSpec { bytes: bytes(s), alias: *alias }).collect(),
            temps_bytes: compiled.assignment.temps_size as usize,
            ..Interface::default()
        };
        let code = jit::Executable::load(&compiled.code.object, "entry", interface, None)?;
        Ok(Self { code, arguments, results })
    }

    /// Runs the program once on fresh state: feeds then variables in, fetches then written variables out.
    pub fn run(&self, arguments: &[Literal]) -> Result<Vec<Literal>> {
        if arguments.len() != self.arguments.len() {
            return Err(Error::invalid(format!(
                "{} arguments for a program that takes {}",
                arguments.len(),
                self.arguments.len()
            )));
        }
        let mut buffers = Vec::new();
        for (k, (argument, shape)) in arguments.iter().zip(&self.arguments).enumerate() {
            if argument.shape().as_array() != Some(shape) {
                return Err(Error::invalid(format!("argument {k} is {}, not {shape}", argument.shape())));
            }
            buffers.push(AlignedBytes::from_bytes(argument.bytes())?);
        }
        let mut instance = self.code.instance()?;
        let mut views: Vec<&mut [u8]> = buffers.iter_mut().map(|b| &mut b[..]).collect();
        instance.run(&mut views)?;
        let literal = |(k, (shape, alias)): (usize, &(ArrayShape, Option<usize>))| {
            let bytes = match alias {
                Some(argument) => buffers[*argument].to_vec(),
                None => instance.result(k).to_vec(),
            };
            Literal::from_bytes(shape.clone(), bytes.into())
                .ok_or_else(|| Error::internal(format!("result {k} has not the bytes of {shape}")))
        };
        self.results.iter().enumerate().map(literal).collect()
    }
}
