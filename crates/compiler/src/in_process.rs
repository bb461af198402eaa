//! Compiled programs that run in this process.

use crate::loadable::Loadable;
use crate::{BackOptions, Compiled, CountedCode, NoObserver, ProfileCounter, compile_module, front, guarded};
use hlo::{Argument, Interface, Output};
use jit::{AlignedBytes, Instance};
use shape::Literal;
use support::{Error, Result};
use target::Target;
use tf::proto::{Config, GraphDef};

/// Compiled program in this process.
#[derive(Debug)]
pub struct Executable {
    code: jit::Executable,
    /// Counters of the code.
    counters: Vec<ProfileCounter>,
}

/// Compiles a graph and its config for a processor of this machine's architecture and loads the
/// code. `cpu` is LLVM's name, empty for the baseline, `native` for this machine's.
pub fn compile_in_process(graph: GraphDef, config: Config, cpu: &str) -> Result<Executable> {
    guarded(|| {
        let front = front::import(graph, config, &mut NoObserver)?;
        let target = host(cpu)?;
        let options = in_process_options(target);
        Executable::load(&compile_module(front.module, &options, &mut NoObserver)?)
    })
}

/// Options for code that [`Executable::load`] can load.
pub fn in_process_options(target: Target) -> BackOptions {
    BackOptions { embed_constants: false, ..BackOptions::new(target, ENTRY_POINT) }
}

/// Symbol of the entry in code that runs in this process.
const ENTRY_POINT: &str = "entry";

/// Target of this machine's architecture. `cpu` is LLVM's name, empty for the baseline, `native`
/// for this machine's.
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

    /// Loads code for devices, to run on this one.
    pub fn load_on(self, device: jit::Device) -> Result<Executable> {
        let Executable { code, counters } = self.load()?;
        Ok(Executable { code: code.on_device(device), counters })
    }
}

impl Executable {
    /// Loads a compiled module.
    pub fn load(compiled: &Compiled) -> Result<Self> {
        let Self { code, counters } = Loadable::of(compiled)?.load()?;
        let code = match &compiled.open_device {
            Some(device) => code.on_device(device.clone()),
            None => code,
        };
        Ok(Self { code, counters })
    }

    /// Loads the code of a compiled module that counts.
    pub fn load_counted(compiled: &Compiled, code: &CountedCode) -> Result<Self> {
        Loadable::of_counted(compiled, code)?.load()
    }

    /// Arguments and results.
    pub fn interface(&self) -> &Interface {
        self.code.interface()
    }

    /// Descriptions of [`Session::profile_counters`]; empty unless the module was compiled with
    /// `is_profiled`.
    pub fn counters(&self) -> &[ProfileCounter] {
        &self.counters
    }

    /// The loaded code, for callers that manage memory themselves.
    pub fn code(&self) -> &jit::Executable {
        &self.code
    }

    /// Runs the program once on fresh state. Takes feeds, then variables; returns fetches, then
    /// written variables.
    pub fn run(&self, arguments: &[Literal]) -> Result<Vec<Literal>> {
        let mut session = self.session(arguments)?;
        session.run()?;
        session.results()
    }

    /// Runs the program once, and returns the results as the optimized HLO does: bounded results
    /// have the sizes of their bounds, and the sizes of their dimensions follow all results.
    pub fn run_whole(&self, arguments: &[Literal]) -> Result<Vec<Literal>> {
        let mut session = self.session(arguments)?;
        session.run()?;
        let mut results = session.whole_results()?;
        results.extend(session.instance.dynamic_sizes().iter().map(|&size| Literal::scalar(size)));
        Ok(results)
    }

    /// Allocates memory for consecutive runs, with initial arguments.
    pub fn session(&self, arguments: &[Literal]) -> Result<Session<'_>> {
        let expected = self.interface().arguments();
        if arguments.len() != expected.len() {
            return Err(Error::invalid(format!(
                "expected {} arguments, got {}",
                expected.len(),
                arguments.len()
            )));
        }
        let mut buffers = Vec::new();
        for (k, (argument, Argument { shape, .. })) in arguments.iter().zip(expected).enumerate() {
            if argument.shape().as_array() != Some(shape) {
                return Err(Error::invalid(format!(
                    "argument {k}: expected {shape}, got {}",
                    argument.shape()
                )));
            }
            buffers.push(AlignedBytes::from_bytes(argument.bytes())?);
        }
        Ok(Session { executable: self, instance: self.code.instance()?, arguments: buffers })
    }
}

/// A program's memory across runs. Variables and random states keep their values.
#[derive(Debug)]
pub struct Session<'e> {
    executable: &'e Executable,
    instance: Instance<'e>,
    arguments: Vec<AlignedBytes>,
}

impl Session<'_> {
    /// Sets the number of threads of later runs, including the caller's. The results do not depend
    /// on it.
    pub fn set_threads(&mut self, count: usize) -> Result<()> {
        self.instance.set_threads(count)
    }

    /// Replaces the elements of an argument.
    pub fn set_argument(&mut self, index: usize, argument: &Literal) -> Result<()> {
        let (Some(buffer), Some(Argument { shape, .. })) =
            (self.arguments.get_mut(index), self.executable.interface().arguments().get(index))
        else {
            return Err(Error::invalid(format!("there is no argument {index}")));
        };
        if argument.shape().as_array() != Some(shape) {
            return Err(Error::invalid(format!(
                "argument {index}: expected {shape}, got {}",
                argument.shape()
            )));
        }
        buffer[..argument.bytes().len()].copy_from_slice(argument.bytes());
        Ok(())
    }

    /// Runs the program once more.
    pub fn run(&mut self) -> Result<()> {
        let mut views: Vec<&mut [u8]> = self.arguments.iter_mut().map(|b| &mut b[..]).collect();
        self.instance.run(&mut views)
    }

    /// Time of the program and its instructions in all runs so far, in ticks of the processor's
    /// clock.
    pub fn profile_counters(&self) -> &[i64] {
        self.instance.profile_counters()
    }

    /// The program on the device, if one runs it.
    pub fn device(&mut self) -> Option<&mut jit::DeviceInstance> {
        self.instance.device()
    }

    /// Results of the last run: fetches, then written variables.
    pub fn results(&self) -> Result<Vec<Literal>> {
        (0..self.executable.interface().results().len()).map(|index| self.result(index)).collect()
    }

    /// One result of the last run, with the sizes determined by that run.
    pub fn result(&self, index: usize) -> Result<Literal> {
        let whole = self.whole_result(index)?;
        let sizes = self.executable.interface().results()[index].true_sizes(self.instance.dynamic_sizes());
        whole.corner(&sizes).ok_or_else(|| {
            let shape = whole.array_shape();
            Error::internal(format!("result {index} of {shape} has invalid sizes {sizes:?}"))
        })
    }

    /// All results of the last run, with the sizes of their bounds.
    pub fn whole_results(&self) -> Result<Vec<Literal>> {
        (0..self.executable.interface().results().len()).map(|index| self.whole_result(index)).collect()
    }

    /// One result of the last run, with the sizes of its bounds.
    fn whole_result(&self, index: usize) -> Result<Literal> {
        let result = self.executable.interface().results().get(index);
        let result = result.ok_or_else(|| Error::invalid(format!("there is no result {index}")))?;
        let (shape, bytes) = (result.whole(), self.memory_of(index, result));
        support::check_memory(bytes.len() as u64, format_args!("result {index}, {shape}"))?;
        Literal::from_bytes(shape.clone(), bytes.to_vec().into()).ok_or_else(|| {
            Error::internal(format!("the size of result {index} differs from the size of {shape}"))
        })
    }

    /// Memory of a result: an argument's, or its own.
    fn memory_of(&self, index: usize, result: &Output) -> &[u8] {
        match result.alias {
            Some(argument) => &self.arguments[argument],
            None => self.instance.result(index),
        }
    }
}
