//! Compiles HLO text, runs it in this process, and compares the results with the evaluator's.
#![allow(dead_code, reason = "each test file uses a part")]

pub mod emulator;

use codegen::{CodegenOptions, Constants};
use hlo::{Interface, Output};
use jit::{AlignedBytes, Executable, Memory, Part, Workers};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};
use std::sync::Arc;
use support::Result;
use target::Target;

/// Returns this machine, at its baseline and with all of its features.
pub fn targets() -> Vec<Target> {
    let triple = codegen::host_triple();
    let (cpu, features) = codegen::host_target();
    vec![
        Target::new(&triple, "", "").expect("the host's triple"),
        Target::new(&triple, &cpu, &features).expect("the host's triple"),
    ]
}

/// Compiles a module and runs it `runs` times with the same arguments. Returns the results of the
/// last run.
pub fn run(
    module: &hlo::Module,
    target: &Target,
    arguments: &[Literal],
    runs: usize,
) -> Result<Vec<Literal>> {
    Loaded::new(module, target)?.run(arguments, runs, None)
}

/// An object, and what its caller must know.
pub struct Compiled {
    pub object: Vec<u8>,
    pub memory: Memory,
    pub program: nest::Program,
    plan: plan::ModulePlan,
}

/// Compiles a module to an object whose entry has this name.
pub fn compile(
    module: &hlo::Module,
    target: &Target,
    options: &plan::Options,
    entry: &str,
) -> Result<Compiled> {
    let plan = plan::plan_with(module, target, options)?;
    let schedule = buffers::schedule(module, &plan);
    let mut pool = buffers::ConstantsPool::default();
    let assignment = buffers::assign(module, &plan, &schedule, &mut pool)?;
    buffers::check(module, &plan, &schedule, &assignment)?;
    let program = kernel::lower(module, &plan, &schedule, &assignment, target, entry)?;
    nest::verify(&program).map_err(|e| e.context(format!("\n{program}")))?;
    let block = pool.finish();
    let chunks = block.chunks.iter().map(|(offset, bytes)| (*offset, bytes.as_ref())).collect();
    let constants = Constants { size: block.size, chunks };
    let compiled = codegen::compile(&program, target, &CodegenOptions::new(entry), &constants)?;
    let memory = Memory {
        temps_bytes: assignment.temps_size as usize,
        scratch_bytes: assignment.worker_scratch_size as usize,
        ..Memory::default()
    };
    Ok(Compiled { object: compiled.object, memory, program, plan })
}

/// A compiled module.
pub struct Loaded {
    executable: Executable,
    /// Number of kernels.
    pub kernels: usize,
    /// Number of kernels that are cut into tasks.
    pub parallel_kernels: usize,
}

impl Loaded {
    /// Compiles a module.
    pub fn new(module: &hlo::Module, target: &Target) -> Result<Self> {
        Self::with_options(module, target, &plan::Options::default())
    }

    /// Compiles a module that is planned with the given options.
    pub fn with_options(module: &hlo::Module, target: &Target, options: &plan::Options) -> Result<Self> {
        let compiled = compile(module, target, options, "test_entry")?;
        let interface = Interface::of_module(module)?;
        let executable = Executable::load(&compiled.object, "test_entry", interface, compiled.memory, None)?;
        let plans = || compiled.plan.computations.values().flat_map(|c| c.instructions.values());
        let kernels = plans().filter(|plan| plan.strategy != plan::Strategy::Alias).count();
        let parallel_kernels = plans().filter(|plan| plan.tasks > 1).count();
        Ok(Self { executable, kernels, parallel_kernels })
    }

    /// Runs the module `runs` times with the same arguments on the given workers. Returns the
    /// results of the last run.
    pub fn run(
        &self,
        arguments: &[Literal],
        runs: usize,
        workers: Option<Arc<dyn Workers>>,
    ) -> Result<Vec<Literal>> {
        self.run_on(arguments, runs, |_| workers)
    }

    /// Like [`Self::run`], on workers that may access the memory of the results.
    pub fn run_on(
        &self,
        arguments: &[Literal],
        runs: usize,
        workers: impl FnOnce(&[&[u8]]) -> Option<Arc<dyn Workers>>,
    ) -> Result<Vec<Literal>> {
        let mut instance = self.executable.instance()?;
        let outputs = self.executable.interface().results();
        let results: Vec<&[u8]> = (0..outputs.len()).map(|k| instance.result(k)).collect();
        let workers = workers(&results);
        instance.set_workers(workers)?;
        let mut in_out: Vec<AlignedBytes> = Vec::new();
        for _ in 0..runs {
            let mut owned: Vec<AlignedBytes> =
                arguments.iter().map(|a| AlignedBytes::from_bytes(a.bytes())).collect::<Result<_>>()?;
            let mut views: Vec<&mut [u8]> = owned.iter_mut().map(|a| &mut **a).collect();
            instance.run(&mut views)?;
            in_out = owned;
        }
        let literal = |(k, output): (usize, &Output)| {
            let bytes = match output.alias {
                Some(argument) => in_out[argument].to_vec(),
                None => instance.result(k).to_vec(),
            };
            let shape = ArrayShape::new(output.shape.element_type, &output.shape.sizes());
            Literal::from_bytes(shape, bytes.into()).expect("the result's size")
        };
        Ok(outputs.iter().enumerate().map(literal).collect())
    }
}

/// Runs one task at a time, in reverse order, as different workers.
pub struct Backwards(pub usize);

// SAFETY: calls run one at a time, and their worker numbers are below the count.
#[expect(unsafe_code, reason = "implements a schedule")]
unsafe impl Workers for Backwards {
    fn count(&self) -> usize {
        self.0
    }

    fn run(&self, count: i64, part: &Part<'_>) -> i32 {
        (0..count).rev().map(|task| part(task, task + 1, task % self.0 as i64)).find(|&s| s != 0).unwrap_or(0)
    }
}

/// A small random number generator (xorshift64*) with the same results on every machine.
#[derive(Clone)]
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 33) % limit
    }

    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Values of the arguments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Values {
    /// All kinds of numbers: zeros of both signs, extremes, infinities, and NaN.
    Hard,
    /// Numbers of moderate size.
    Tame,
    /// Integers below the limit.
    Below(u64),
}

/// Returns an array of random values.
pub fn random(shape: &ArrayShape, values: Values, numbers: &mut Numbers) -> Literal {
    let element = |_| scalar(shape.element_type, values, numbers);
    Literal::from_scalars(shape.clone(), (0..shape.element_count()).map(element).collect::<Vec<_>>())
}

fn scalar(element_type: PrimitiveType, values: Values, numbers: &mut Numbers) -> Scalar {
    let width = element_type.bit_width();
    match element_type {
        PrimitiveType::Pred => Scalar::Pred(numbers.below(2) == 1),
        t if t.is_signed_integer() => Scalar::Signed(match values {
            Values::Below(limit) => numbers.below(limit) as i64,
            Values::Tame => numbers.below(16) as i64 % (1 << (width - 1)) - 1,
            Values::Hard => integer(width, numbers) as i64,
        }),
        t if t.is_unsigned_integer() => Scalar::Unsigned(match values {
            Values::Below(limit) => numbers.below(limit),
            Values::Tame => numbers.below(16) % (1 << width.min(62)),
            Values::Hard => integer(width, numbers) & (u64::MAX >> (64 - width)),
        }),
        t if t.is_complex() => Scalar::Complex(float(values, t, numbers), float(values, t, numbers)),
        t => Scalar::Float(float(values, t, numbers)),
    }
}

fn integer(width: u32, numbers: &mut Numbers) -> u64 {
    match numbers.below(8) {
        0 => 0,
        1 => u64::MAX,
        2 => 1u64 << (width - 1),
        3 => (1u64 << (width - 1)) - 1,
        4 => numbers.below(40),
        _ => numbers.next() >> numbers.below(64),
    }
}

fn float(values: Values, element_type: PrimitiveType, numbers: &mut Numbers) -> f64 {
    match values {
        Values::Below(limit) => numbers.below(limit) as f64,
        Values::Tame => (numbers.unit() - 0.5) * 8.0,
        Values::Hard => match numbers.below(16) {
            0 => 0.0,
            1 => -0.0,
            2 => f64::INFINITY,
            3 => f64::NEG_INFINITY,
            4 => f64::NAN,
            5 => numbers.below(20) as f64 - 10.0,
            6 => numbers.below(20) as f64 / 2.0 - 5.0,
            7 => (numbers.unit() - 0.5) * 2f64.powi(numbers.below(200) as i32 - 100),
            8 => (numbers.unit() - 0.5) * 2f64.powi(-140),
            9 if element_type == PrimitiveType::F64 => (numbers.unit() - 0.5) * 1e300,
            10 => (numbers.unit() - 0.5) * 1e5,
            11 => (numbers.unit() - 0.5) * 2f64.powi(numbers.below(60) as i32 - 30),
            12 => (numbers.unit() - 0.5) * 1e10,
            _ => (numbers.unit() - 0.5) * 10.0,
        },
    }
}

/// Required accuracy of floating-point results.
#[derive(Clone, Copy, Debug)]
pub enum Tolerance {
    /// Equal values. Any NaN equals NaN.
    Exact,
    /// Error relative to the larger magnitude, or absolute for magnitudes below 1.
    Relative(f64),
    /// Absolute error.
    Absolute(f64),
}

/// Describes the first difference of two literals.
pub fn difference(have: &Literal, want: &Literal, tolerance: Tolerance) -> Option<String> {
    let close = |x: f64, y: f64, size: f64| {
        if x == y || (x.is_nan() && y.is_nan()) {
            return true;
        }
        match tolerance {
            Tolerance::Exact => false,
            Tolerance::Absolute(limit) => (x - y).abs() <= limit,
            Tolerance::Relative(limit) => (x - y).abs() <= limit * x.abs().max(y.abs()).max(size).max(1.0),
        }
    };
    have.scalars().zip(want.scalars()).enumerate().find_map(|(i, (have, want))| {
        let same = match (have, want) {
            (Scalar::Float(x), Scalar::Float(y)) => close(x, y, 0.0),
            (Scalar::Complex(a, b), Scalar::Complex(c, d)) => {
                let size = c.hypot(d);
                close(a, c, size) && close(b, d, size)
            }
            _ => have == want,
        };
        (!same).then(|| format!("element {i}: compiled {have:?}, evaluated {want:?}"))
    })
}

/// Parses a module, runs it on every target with random arguments, and compares the results with
/// the evaluator's.
pub fn check(text: &str, values: &[Values], tolerance: Tolerance) {
    let module = hlo::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let entry = module.entry_computation();
    let mut numbers = Numbers::new(text.len() as u64 + 1);
    let mut arguments = Vec::new();
    for (k, &parameter) in entry.parameters().iter().enumerate() {
        let shape = entry[parameter].shape().expect_array();
        let shape = ArrayShape::new(shape.element_type, &shape.sizes());
        let values = values.get(k).or(values.last()).copied().unwrap_or(Values::Hard);
        arguments.push(random(&shape, values, &mut numbers));
    }
    check_with(&module, &arguments, tolerance);
}

/// Runs a module on every target and compares the results with the evaluator's.
pub fn check_with(module: &hlo::Module, arguments: &[Literal], tolerance: Tolerance) {
    let text = module.to_text();
    let want = match evaluator::evaluate(module, arguments).unwrap_or_else(|e| panic!("{e}\n{text}")) {
        Literal::Tuple(elements) => elements,
        array => vec![array],
    };
    let entry = module.entry_computation();
    for target in targets() {
        let have = run(module, &target, arguments, 1).unwrap_or_else(|e| panic!("{e}\n{text}"));
        for (k, (have, want)) in have.iter().zip(&want).enumerate() {
            if let Some(difference) = difference(have, want, tolerance) {
                let root = &entry[entry.root()];
                let name = root.operands().get(k).map_or(root.name(), |&o| entry[o].name());
                let at: usize = difference["element ".len()..]
                    .split(':')
                    .next()
                    .and_then(|n| n.parse().ok())
                    .unwrap_or(0);
                let inputs: Vec<String> = arguments
                    .iter()
                    .filter(|a| a.array_shape().element_count() > at as i64)
                    .map(|a| format!("{:?}", a.scalar_at(at)))
                    .collect();
                panic!(
                    "result {k} ({name}), cpu '{}': {difference}; arguments there: {}\n{text}",
                    target.cpu,
                    inputs.join(", ")
                );
            }
        }
    }
}
