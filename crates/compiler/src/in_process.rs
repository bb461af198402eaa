//! Code that runs in this process.

use crate::loadable::Loadable;
use crate::{BackOptions, Compiled, NoObserver, ProfileCounter, compile_module, front, guarded};
use hlo::{Argument, Interface, Output};
use jit::{AlignedBytes, Instance};
use shape::Literal;
use support::{Error, Result};
use target::Target;
use tf::proto::{Config, GraphDef};

/// A compiled program in this process.
#[derive(Debug)]
pub struct Executable {
    code: jit::Executable,
    /// What the code counts.
    counters: Vec<ProfileCounter>,
}

/// Compiles a graph and its config for a processor of this machine's architecture and loads the code.
/// `cpu` is LLVM's name, empty for the baseline, `native` for this machine's.
pub fn compile_in_process(graph: GraphDef, config: Config, cpu: &str) -> Result<Executable> {
    guarded(|| {
        let front = front::import(graph, config, &mut NoObserver)?;
        let target = host(cpu)?;
        let options = in_process_options(target);
        Executable::load(&compile_module(front.module, &options, &mut NoObserver)?)
    })
}

/// Options for code that [`Executable::load`] takes.
pub fn in_process_options(target: Target) -> BackOptions {
    BackOptions { embed_constants: false, ..BackOptions::new(target, ENTRY_POINT) }
}

/// The entry's symbol in code that runs in this process.
const ENTRY_POINT: &str = "entry";

/// The target of this machine's architecture; `cpu` is LLVM's name, empty for the baseline, `native` for this machine's.
pub fn host(cpu: &str) -> Result<Target> {
    let triple = codegen::host_triple();
    if cpu == "native" {
        let (cpu, features) = codegen::host_target();
        return Target::new(&triple, &cpu, &features);
    }
    Target::new(&triple, cpu, "")
}

impl Loadable {
    /// Loads the code.
    pub fn load(self) -> Result<Executable> {
        let Self { object, constants, interface, counters, memory, .. } = self;
        let code = jit::Executable::load(&object, ENTRY_POINT, interface, memory, Some(constants))?;
        Ok(Executable { code, counters })
    }
}

impl Executable {
    /// Loads a compiled module.
    pub fn load(compiled: &Compiled) -> Result<Self> {
        Loadable::of(compiled)?.load()
    }

    /// The arguments and results.
    pub fn interface(&self) -> &Interface {
        self.code.interface()
    }

    /// What [`Session::profile_counters`] are about; empty unless the module was compiled with `is_profiled`.
    pub fn counters(&self) -> &[ProfileCounter] {
        &self.counters
    }

    /// The code itself, for whoever brings the memory.
    pub fn code(&self) -> &jit::Executable {
        &self.code
    }

    /// Runs the program once on fresh state: feeds then variables in, fetches then written variables out.
    pub fn run(&self, arguments: &[Literal]) -> Result<Vec<Literal>> {
        let mut session = self.session(arguments)?;
        session.run()?;
        session.results()
    }

    /// The same, and bounded results in their bounds, the sizes of their dimensions behind all results: what the optimised
    /// HLO says.
    pub fn run_whole(&self, arguments: &[Literal]) -> Result<Vec<Literal>> {
        let mut session = self.session(arguments)?;
        session.run()?;
        let mut results = session.whole_results()?;
        results.extend(session.instance.dynamic_sizes().iter().map(|&size| Literal::scalar(size)));
        Ok(results)
    }

    /// Memory for runs one after another, on arguments to begin with.
    pub fn session(&self, arguments: &[Literal]) -> Result<Session<'_>> {
        let expected = self.interface().arguments();
        if arguments.len() != expected.len() {
            return Err(Error::invalid(format!(
                "{} arguments for a program that takes {}",
                arguments.len(),
                expected.len()
            )));
        }
        let mut buffers = Vec::new();
        for (k, (argument, Argument { shape, .. })) in arguments.iter().zip(expected).enumerate() {
            if argument.shape().as_array() != Some(shape) {
                return Err(Error::invalid(format!("argument {k} is {}, not {shape}", argument.shape())));
            }
            buffers.push(AlignedBytes::from_bytes(argument.bytes())?);
        }
        Ok(Session { executable: self, instance: self.code.instance()?, arguments: buffers })
    }
}

/// A program's memory from run to run: variables and random states keep what a run left.
#[derive(Debug)]
pub struct Session<'e> {
    executable: &'e Executable,
    instance: Instance<'e>,
    arguments: Vec<AlignedBytes>,
}

impl Session<'_> {
    /// Shares the work of later runs among so many threads, the caller's included. The results stay the same.
    pub fn set_threads(&mut self, count: usize) -> Result<()> {
        self.instance.set_threads(count)
    }

    /// Puts other elements into an argument.
    pub fn set_argument(&mut self, index: usize, argument: &Literal) -> Result<()> {
        let (Some(buffer), Some(Argument { shape, .. })) =
            (self.arguments.get_mut(index), self.executable.interface().arguments().get(index))
        else {
            return Err(Error::invalid(format!("there is no argument {index}")));
        };
        if argument.shape().as_array() != Some(shape) {
            return Err(Error::invalid(format!("argument {index} is {}, not {shape}", argument.shape())));
        }
        buffer[..argument.bytes().len()].copy_from_slice(argument.bytes());
        Ok(())
    }

    /// Runs the program once more.
    pub fn run(&mut self) -> Result<()> {
        let mut views: Vec<&mut [u8]> = self.arguments.iter_mut().map(|b| &mut b[..]).collect();
        self.instance.run(&mut views)
    }

    /// How long the program and its instructions took in all runs so far, in ticks of the processor's clock.
    pub fn profile_counters(&self) -> &[i64] {
        self.instance.profile_counters()
    }

    /// The last run's results: fetches, then written variables.
    pub fn results(&self) -> Result<Vec<Literal>> {
        (0..self.executable.interface().results().len()).map(|index| self.result(index)).collect()
    }

    /// One of them, with the size that the last run gave it.
    pub fn result(&self, index: usize) -> Result<Literal> {
        let whole = self.whole_result(index)?;
        let sizes = self.executable.interface().results()[index].true_sizes(self.instance.dynamic_sizes());
        whole.corner(&sizes).ok_or_else(|| {
            let shape = whole.array_shape();
            Error::internal(format!("result {index}, {shape}, came out with the sizes {sizes:?}"))
        })
    }

    /// All of them, as large as their bounds.
    pub fn whole_results(&self) -> Result<Vec<Literal>> {
        (0..self.executable.interface().results().len()).map(|index| self.whole_result(index)).collect()
    }

    /// One of them, as large as its bounds.
    fn whole_result(&self, index: usize) -> Result<Literal> {
        let result = self.executable.interface().results().get(index);
        let result = result.ok_or_else(|| Error::invalid(format!("there is no result {index}")))?;
        let (shape, bytes) = (result.whole(), self.memory_of(index, result));
        support::check_memory(bytes.len() as u64, format_args!("result {index}, {shape}, wants memory"))?;
        Literal::from_bytes(shape.clone(), bytes.to_vec().into())
            .ok_or_else(|| Error::internal(format!("result {index} has not the bytes of {shape}")))
    }

    /// The bytes of a result: an argument's, or its own.
    fn memory_of(&self, index: usize, result: &Output) -> &[u8] {
        match result.alias {
            Some(argument) => &self.arguments[argument],
            None => self.instance.result(index),
        }
    }
}
