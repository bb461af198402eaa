//! Runs artifacts of `jax.export` with symbolic sizes, at the sizes of recorded runs: the arrays
//! `K/in0`, `K/in1`, ... are the arguments of run `K`, `K/out0`, ... the results, and `K/size/b`
//! the size of the name `b`.

use super::{Run, near, with_type};
use compiler::{Executable, HloProgram, NoObserver, OpenSizes, PassRun, host, in_process_options};
use hlo::Interface;
use npz::Archive;
use shape::{ArrayShape, Literal};
use stablehlo::{GivenSize, SizeRequest};
use std::path::Path;
use support::{Error, Result};

/// Agreement of a program's runs, none of which differs from the recorded results.
#[derive(Clone, Copy, Debug, Default)]
pub struct Agreement {
    /// Runs that were compared.
    pub runs: usize,
    /// Runs with the bits of a program that is compiled for their sizes.
    pub same_bits: usize,
}

/// Returns the number of runs of an artifact at several sizes, 0 if it has one size.
pub fn runs(path: &Path) -> usize {
    archive(path).map_or(0, |archive| count(&archive))
}

impl Run {
    /// Compiles an artifact with symbolic sizes once, for all sizes, and runs it at each recorded
    /// one. With `fixed`, compares each run with a program compiled for its sizes, too.
    pub fn symbolic(&self, path: &Path, fixed: bool) -> Result<Agreement> {
        let bytes = std::fs::read(path).map_err(|e| Error::invalid(e.to_string()))?;
        let module = stablehlo::read_export(&bytes)?;
        let request = SizeRequest { default_range: Some((1, 64)), ..SizeRequest::default() };
        let program = Compiled::of(&module, request)?;
        let mut archive = archive(path)?;
        let mut agreement = Agreement { runs: count(&archive), same_bits: 0 };
        if agreement.runs == 0 {
            return Err(Error::invalid("no run is recorded"));
        }
        for run in 0..agreement.runs {
            let context = |error: Error| error.context(format!("run {run}"));
            let results = program.run(&mut archive, run).map_err(context)?;
            for (k, result) in results.iter().enumerate() {
                let expected = archive.require(&format!("{run}/out{k}"))?;
                self.compare(result, &expected).map_err(|e| context(e.context(format!("result {k}"))))?;
            }
            if !fixed {
                continue;
            }
            let fixed = Compiled::of(&module, sizes_of(&mut archive, run)?)
                .and_then(|fixed| fixed.run(&mut archive, run))
                .map_err(|error| context(error.context("compiled for its sizes")))?;
            for (k, (result, fixed)) in results.iter().zip(&fixed).enumerate() {
                self.compare(result, fixed)
                    .map_err(|e| context(e.context(format!("result {k}, compared with fixed sizes"))))?;
            }
            agreement.same_bits += usize::from(results == fixed);
        }
        Ok(agreement)
    }

    fn compare(&self, result: &Literal, expected: &Literal) -> Result<()> {
        let sizes = (result.array_shape().sizes(), expected.array_shape().sizes());
        if sizes.0 != sizes.1 {
            return Err(Error::invalid(format!("has sizes {:?}, not {:?}", sizes.0, sizes.1)));
        }
        near(result, &with_type(expected, result.array_shape())?, self.tolerance)
    }
}

/// A program in this process.
struct Compiled {
    interface: Interface,
    executable: Executable,
}

impl Compiled {
    fn of(module: &mlir::Module, request: SizeRequest) -> Result<Self> {
        let sizes = OpenSizes { request, ..OpenSizes::default() };
        let mut passes = PassRun { disabled: &[], observer: &mut NoObserver };
        let program = HloProgram::of_stablehlo(module, None, &sizes, &mut passes)?.program;
        let interface = program.interface.clone();
        let options = in_process_options(host("native")?);
        let compiled = compiler::guarded(|| compiler::compile_program(program, &options, &mut NoObserver))?;
        Ok(Self { interface, executable: Executable::load(&compiled)? })
    }

    fn run(&self, archive: &mut Archive, run: usize) -> Result<Vec<Literal>> {
        let arguments = sized_arguments(&self.interface, |k| archive.require(&format!("{run}/in{k}")))?;
        self.executable.run(&arguments)
    }
}

fn archive(path: &Path) -> Result<Archive> {
    let answers = std::fs::read(path.with_extension("npz")).map_err(|e| Error::invalid(e.to_string()))?;
    Archive::open(answers.into(), 1 << 30)
}

fn count(archive: &Archive) -> usize {
    (0..).take_while(|run| archive.names().any(|name| name.starts_with(&format!("{run}/")))).count()
}

/// Returns the sizes of a run. A name that no argument has is without effect.
fn sizes_of(archive: &mut Archive, run: usize) -> Result<SizeRequest> {
    let prefix = format!("{run}/size/");
    let names: Vec<String> =
        archive.names().filter_map(|name| Some(name.strip_prefix(&prefix)?.to_owned())).collect();
    let mut request = SizeRequest::default();
    for name in names {
        let size = archive.require(&format!("{prefix}{name}"))?;
        let size = size.scalars().next().and_then(|size| size.as_f64());
        let size = size.ok_or_else(|| Error::invalid(format!("{prefix}{name} is not a number")))?;
        request.given.insert(name.clone(), GivenSize::Known(size as i64));
        request.shared.insert(name);
    }
    Ok(request)
}

/// Returns the arguments for arrays of true sizes: in arrays of the largest sizes, with other bytes
/// around them, and followed by the sizes.
fn sized_arguments(
    interface: &Interface,
    mut array: impl FnMut(usize) -> Result<Literal>,
) -> Result<Vec<Literal>> {
    let count = interface.arguments().iter().filter(|argument| argument.range.is_none()).count();
    let mut arguments = Vec::new();
    let mut sizes = vec![None; interface.arguments().len()];
    for (k, argument) in interface.arguments()[..count].iter().enumerate() {
        let array = array(k)?;
        for named in &argument.named_dimensions {
            sizes[named.size] = Some(array.array_shape().size(named.dimension) as i32);
        }
        arguments.push(embedded(&array, &argument.shape)?);
    }
    for size in &sizes[count..] {
        arguments.push(Literal::scalar(size.ok_or_else(|| Error::invalid("a size belongs to no argument"))?));
    }
    Ok(arguments)
}

/// Returns an array of this shape, with another one in its corner and bytes without meaning around.
fn embedded(array: &Literal, shape: &ArrayShape) -> Result<Literal> {
    let sizes = array.array_shape().sizes();
    if sizes.len() != shape.sizes().len() || sizes.iter().zip(shape.sizes()).any(|(&size, most)| size > most)
    {
        return Err(Error::invalid(format!("an argument has sizes {sizes:?}, more than {shape}")));
    }
    let width = array.bytes().len() / (array.array_shape().element_count().max(1) as usize);
    let mut bytes = vec![0x5b; shape.byte_size() as usize];
    for position in 0..array.array_shape().element_count() {
        let at = shape::index::multi_index(&sizes, position);
        let to = shape::index::linear_index(&shape.sizes(), &at) as usize;
        bytes[to * width..][..width].copy_from_slice(&array.bytes()[position as usize * width..][..width]);
    }
    Ok(Literal::from_bytes(shape.clone(), bytes.into()).expect("as many bytes as the shape has"))
}
