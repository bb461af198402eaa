//! Runs StableHLO programs with expected results: checks inside the program, or answers recorded in
//! a file next to it.

pub mod symbolic;

use compiler::{Executable, NoObserver, host, in_process_options};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};
use stablehlo::{Imported, import, import_each};
use std::path::Path;
use support::{Error, Result};

/// Result of a program in a file.
#[derive(Debug)]
pub struct Outcome {
    /// File, part of the file, and function.
    pub name: String,
    /// The error, if any.
    pub result: Result<()>,
}

/// Options for running programs.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// True to use the evaluator instead of machine code.
    pub evaluates: bool,
    /// Tolerance of recorded numbers, relative to the largest one.
    pub tolerance: f64,
}

impl Run {
    /// Runs the programs of a file: its function `main`, or every function without arguments. Lines
    /// of `// -----` separate the file into independent parts. If NAME.npz exists next to
    /// NAME.mlir, its arrays `in0`, `in1`, ... are the arguments and `out0`, ... the answers.
    /// NAME.mlirbc and NAME.jax require such a file.
    pub fn file(&self, path: &Path) -> Vec<Outcome> {
        let name = path.display().to_string();
        if path.extension().is_some_and(|extension| extension == "jax" || extension == "mlirbc") {
            return vec![Outcome { name, result: self.artifact(path) }];
        }
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(e) => return vec![Outcome { name, result: Err(Error::invalid(e.to_string())) }],
        };
        let answers = path.with_extension("npz");
        if answers.is_file() {
            let result = mlir::parse(&text).and_then(|module| self.run_recorded(&module, &answers));
            return vec![Outcome { name, result }];
        }
        let parts = text.split("// -----").enumerate();
        parts.flat_map(|(part, text)| self.part(&format!("{name}:{part}"), text)).collect()
    }

    /// Runs a portable artifact, or one from `jax.export`, with recorded arguments and results.
    fn artifact(&self, path: &Path) -> Result<()> {
        let bytes = std::fs::read(path).map_err(|e| Error::invalid(e.to_string()))?;
        let module = if stablehlo::is_export(&bytes) {
            stablehlo::read_export(&bytes)?
        } else {
            mlir::parse_bytecode(&bytes)?
        };
        self.run_recorded(&module, &path.with_extension("npz"))
    }

    /// Runs a program with recorded arguments and results.
    fn run_recorded(&self, module: &mlir::Module, answers: &Path) -> Result<()> {
        let program = import(module)?;
        let bytes =
            std::fs::read(answers).map_err(|e| Error::invalid(format!("{}: {e}", answers.display())))?;
        let mut archive = npz::Archive::open(bytes.into(), 1 << 30)?;
        let mut arguments = Vec::new();
        for (k, argument) in program.interface.arguments().iter().enumerate() {
            arguments.push(with_type(&archive.require(&format!("in{k}"))?, &argument.shape)?);
        }
        let shapes: Vec<ArrayShape> =
            program.interface.fetches().iter().map(|result| result.shape.clone()).collect();
        let results = self.execute(program, &arguments)?;
        for (k, (result, shape)) in results.iter().zip(shapes).enumerate() {
            let expected = with_type(&archive.require(&format!("out{k}"))?, &shape)?;
            near(result, &expected, self.tolerance).map_err(|error| error.context(format!("result {k}")))?;
        }
        Ok(())
    }

    /// Runs the programs of a text.
    fn part(&self, name: &str, text: &str) -> Vec<Outcome> {
        let one = |result| vec![Outcome { name: name.to_owned(), result }];
        let module = match mlir::parse(text) {
            Ok(module) => module,
            Err(error) => return one(Err(error)),
        };
        if module.operations.is_empty() {
            return Vec::new();
        }
        if let Some(main) = import(&module).ok().filter(|main| main.interface.arguments().is_empty()) {
            return one(self.run_checked(main));
        }
        match import_each(&module) {
            Err(error) => one(Err(error)),
            Ok(programs) => programs
                .into_iter()
                .map(|(function, imported)| Outcome {
                    name: format!("{name} @{function}"),
                    result: imported.and_then(|program| self.run_checked(program)),
                })
                .collect(),
        }
    }

    /// Runs a self-checking program without arguments.
    fn run_checked(&self, program: Imported) -> Result<()> {
        let checks = program.checks.clone();
        let count = program.interface.fetches().len();
        let results = self.execute(program, &[])?;
        let pairs = results[count..].chunks_exact(2);
        checks.iter().zip(pairs).try_for_each(|(check, pair)| check.verify(&pair[0], &pair[1]))
    }

    /// Returns the results of a program, followed by the values that its checks compare.
    fn execute(&self, program: Imported, arguments: &[Literal]) -> Result<Vec<Literal>> {
        hlo::verify(&program.module)?;
        if self.evaluates {
            return match evaluator::evaluate(&program.module, arguments)? {
                Literal::Tuple(results) => Ok(results),
                array => Ok(vec![array]),
            };
        }
        let options = in_process_options(host("native")?);
        let compiled =
            compiler::guarded(|| compiler::compile_module(program.module, &options, &mut NoObserver))?;
        Executable::load(&compiled)?.run(arguments)
    }
}

/// Converts an array stored as bits to a type without a NumPy equivalent.
fn with_type(stored: &Literal, shape: &ArrayShape) -> Result<Literal> {
    Literal::from_bytes(shape.clone(), stored.bytes().clone())
        .ok_or_else(|| Error::invalid(format!("recorded as {}, but the program has {shape}", stored.shape())))
}

/// Returns an error if two arrays differ by more than a share of the largest element, and by more
/// than two units of the type's accuracy.
fn near(actual: &Literal, expected: &Literal, tolerance: f64) -> Result<()> {
    let unit = match expected.array_shape().element_type.real_part() {
        PrimitiveType::F64 | PrimitiveType::F32 => 0.0,
        PrimitiveType::F16 => 2f64.powi(-10),
        PrimitiveType::Bf16 => 2f64.powi(-7),
        other if other.is_minifloat() => 2f64.powi(-2),
        // Integers must be exact.
        _ => f64::NAN,
    };
    let parts = |scalar| match scalar {
        Scalar::Complex(re, im) => [re, im],
        other => [other.as_f64().unwrap_or(0.0), 0.0],
    };
    let sizes = expected.scalars().flat_map(parts).map(f64::abs).filter(|size| size.is_finite());
    let largest = sizes.fold(1.0, f64::max);
    let allowed = if unit.is_nan() { 0.0 } else { tolerance.max(2.0 * unit) * largest };
    for (index, (a, w)) in actual.scalars().zip(expected.scalars()).enumerate() {
        let agrees = |a: f64, w: f64| a == w || (a.is_nan() && w.is_nan()) || (a - w).abs() <= allowed;
        let ([a_re, a_im], [w_re, w_im]) = (parts(a), parts(w));
        if !agrees(a_re, w_re) || !agrees(a_im, w_im) {
            return Err(Error::invalid(format!("element {index} is {a:?}, not {w:?}")));
        }
    }
    Ok(())
}
