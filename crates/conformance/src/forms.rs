//! Writes a program in every distribution format, before and after optimization, with arguments and
//! the results of our compiled code, so that XLA can parse, run, and compare it
//! (`scripts/xla_judge.py`).

use crate::export::{draw_between, fusions_as_calls, is_comparable, write_file};
use crate::tolerance::Tolerance;
use compiler::{Executable, NoObserver};
use hlo::Module;
use shape::{Literal, PrimitiveType, Shape};
use stablehlo::WriteOptions;
use std::collections::BTreeMap;
use std::path::Path;
use support::{Error, Result};

/// Input of a program.
pub struct Given {
    /// One per parameter.
    pub arguments: Vec<Literal>,
    /// Recorded tolerance, if any. Some functions amplify the rounding of their operands.
    pub tolerance: Option<Tolerance>,
}

/// Writes to `directory`: `NAME.hlo`, `NAME.pb`, and `NAME.mlir` before optimization;
/// `NAME-optimized.*` after it; and `NAME-optimized-unfused.hlo` with calls in place of fusions,
/// since a back end runs only its own fusions. Runnable forms have an `.npz` with arguments
/// (generated if not given), our results and, if known, their tolerance. If StableHLO cannot
/// express a program, `.refused` contains the reason.
pub fn write_forms(directory: &Path, name: &str, module: &Module, input: Option<Given>) -> Result<()> {
    let options = compiler::in_process_options(compiler::host("")?);
    let compiled = compiler::compile_module(module.clone(), &options, &mut NoObserver)?;
    let is_bounded = !compiled.module.bounded_dimensions().is_empty();
    let optimized = compiler::portable(&compiled.module);
    let arrays = if is_comparable(module) && !is_bounded {
        let input =
            input.or_else(|| Some(Given { arguments: draw_arguments(module, name)?, tolerance: None }));
        input.map(|input| results(module, &compiled, input)).transpose()?
    } else {
        None
    };
    let archive = arrays.map(|arrays| npz::write(&arrays)).transpose()?;
    write_module(directory, name, module, archive.as_deref())?;
    let name = format!("{name}-optimized");
    let unfused = fusions_as_calls(&optimized);
    // With fusions, the text and the messages are only read.
    let text_archive = if unfused.is_some() { None } else { archive.as_deref() };
    write_module_text(directory, &name, &optimized, text_archive)?;
    write_stablehlo(directory, &format!("{name}-mlir"), &optimized, archive.as_deref())?;
    match unfused {
        Some(unfused) => {
            let path = directory.join(format!("{name}-unfused"));
            write_file(&path, "hlo", unfused.to_text().as_bytes())?;
            archive.map_or(Ok(()), |archive| write_file(&path, "npz", &archive))
        }
        None => Ok(()),
    }
}

fn write_module(directory: &Path, name: &str, module: &Module, archive: Option<&[u8]>) -> Result<()> {
    write_module_text(directory, name, module, archive)?;
    write_stablehlo(directory, &format!("{name}-mlir"), module, archive)
}

fn write_module_text(directory: &Path, name: &str, module: &Module, archive: Option<&[u8]>) -> Result<()> {
    let path = directory.join(name);
    write_file(&path, "hlo", module.to_text().as_bytes())?;
    let bytes = hlo::proto::to_hlo_module_proto_bytes(module)?;
    let read = hlo::proto::read_hlo_proto(&bytes)?.0;
    if hlo::proto::to_hlo_module_proto_bytes(&read)? != bytes {
        return Err(Error::internal(format!(
            "{name}: reading back the written message yields a different one"
        )));
    }
    write_file(&path, "pb", &bytes)?;
    archive.map_or(Ok(()), |archive| write_file(&path, "npz", archive))
}

/// Writes the text, which our own reader must accept.
fn write_stablehlo(directory: &Path, name: &str, module: &Module, archive: Option<&[u8]>) -> Result<()> {
    let path = directory.join(name);
    match stablehlo::write(module, &WriteOptions::default()) {
        Ok(text) => {
            stablehlo::import(&mlir::parse(&text)?)
                .and_then(|imported| hlo::verify(&imported.module))
                .map_err(|error| error.context("the written StableHLO cannot be read back"))?;
            write_file(&path, "mlir", text.as_bytes())?;
            archive.map_or(Ok(()), |archive| write_file(&path, "npz", archive))
        }
        Err(error) => write_file(&path, "refused", error.message().as_bytes()),
    }
}

/// Generates seeded arguments: small positive numbers, for which training steps are well
/// conditioned and recurrences are not chaotic. Returns `None` if a parameter is not an array of
/// known size.
fn draw_arguments(module: &Module, seed: &str) -> Option<Vec<Literal>> {
    let entry = module.entry_computation();
    let parameters = entry.parameters().iter().enumerate();
    let argument = |(k, &id): (usize, &hlo::InstructionId)| match entry[id].shape() {
        Shape::Array(shape) if shape.is_static() => {
            Some(draw_between(shape, &format!("{seed}/{k}"), 1.0 / 64.0, 9.0 / 64.0))
        }
        _ => None,
    };
    parameters.map(argument).collect()
}

/// Returns arguments, results, and tolerances of the results, as members of an archive.
fn results(
    module: &Module,
    compiled: &compiler::Compiled,
    input: Given,
) -> Result<BTreeMap<String, Literal>> {
    let Given { arguments, tolerance } = input;
    let results = Executable::load(compiled)?.run(&arguments)?;
    let tolerances = match tolerance {
        Some(tolerance) => vec![tolerance; results.len()],
        // Updates divide gradients by their own size. If a gradient cancels, only rounding remains,
        // which becomes a full step.
        None if !module.input_output_alias().is_empty() => sensitivities(module, &arguments)?,
        None => Vec::new(),
    };
    let tolerances = tolerances.into_iter().map(|t| Literal::from_elements(&[2], &[t.absolute, t.relative]));
    let named = |kind: &'static str, literals: Vec<Literal>| {
        literals.into_iter().enumerate().map(move |(k, literal)| (format!("{kind}/{k}"), literal))
    };
    let tolerances = named("tolerance", tolerances.collect());
    Ok(named("in", arguments).chain(named("out", results)).chain(tolerances).collect())
}

/// Returns tolerances for a program that amplifies rounding: eight times the change of each result
/// when single arguments change by a unit in the last place, as they do in correct sums. Computed
/// by the evaluator, so that the bound does not depend on the code under test.
fn sensitivities(module: &Module, arguments: &[Literal]) -> Result<Vec<Tolerance>> {
    const NUDGES: usize = 3;
    let evaluated = |arguments: &[Literal]| match evaluator::evaluate(module, arguments)? {
        Literal::Tuple(results) => Ok(results),
        _ => Err(Error::internal("expected a tuple as the entry's result")),
    };
    let still = evaluated(arguments)?;
    let mut most = vec![0.0; still.len()];
    for nudge in 0..NUDGES {
        let moved: Vec<Literal> =
            arguments.iter().enumerate().map(|(k, argument)| nudge_floats(argument, nudge + k)).collect();
        for (most, (still, moved)) in most.iter_mut().zip(still.iter().zip(evaluated(&moved)?)) {
            let pairs =
                still.floats().unwrap_or_default().into_iter().zip(moved.floats().unwrap_or_default());
            let apart = pairs.map(|(still, moved)| (still - moved).abs()).filter(|apart| apart.is_finite());
            *most = apart.fold(*most, f64::max);
        }
    }
    Ok(most.into_iter().map(|most| Tolerance { absolute: 8.0 * most, relative: 0.0 }).collect())
}

/// Changes single-precision numbers by a unit in the last place up, down, or not at all, depending
/// on `phase`.
fn nudge_floats(argument: &Literal, phase: usize) -> Literal {
    match argument {
        Literal::Array { shape, .. } if shape.element_type == PrimitiveType::F32 => {
            let floats = argument.floats().unwrap_or_default().into_iter().enumerate();
            let moved = floats.map(|(i, x)| {
                let x = x as f32;
                f64::from(match (i + i / 3 + phase) % 3 {
                    0 => x.next_up(),
                    1 => x.next_down(),
                    _ => x,
                })
            });
            Literal::from_floats(shape.clone(), moved)
        }
        other => other.clone(),
    }
}

/// Writes all forms of a recorded case's program, run on its own arguments.
pub fn write_case(directory: &Path, name: &str, path: &Path) -> Result<()> {
    let case = crate::case::read_case(path)?;
    let graph = tf::source::parse_graph_def(case.graph, "graph")?;
    let config = tf::source::parse_config(case.config, "config")?;
    let module = compiler::import(graph, config, &mut NoObserver)?.module;
    let parameters = module.entry_computation().parameters().len();
    if parameters != case.arguments.len() {
        return Err(Error::internal(format!(
            "the program has {parameters} parameters, the case {} arguments",
            case.arguments.len()
        )));
    }
    // Some results, such as bases of eigenvectors, are not unique. Then only types and shapes are
    // compared.
    let any = Tolerance { absolute: f64::INFINITY, relative: 0.0 };
    let tolerance = if case.metadata.values { case.metadata.tolerance } else { any };
    let input = Given { arguments: case.arguments, tolerance: Some(tolerance) };
    write_forms(directory, name, &module, Some(input))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::arguments_and_results;

    /// A program with all instructions that become more than one line of StableHLO.
    const TEXT: &str = r#"HloModule m, input_output_alias={ {0}: (0, {}, must-alias) }

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

condition {
  state = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  three = s32[] constant(3)
  ROOT more = pred[] compare(i, three), direction=LT
}

body {
  state = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[4] get-tuple-element(state), index=1
  y = f32[4] tanh(x)
  ROOT t = (s32[], f32[4]) tuple(next, y)
}

when_true {
  p = (f32[4], f32[4]) parameter(0)
  a = f32[4] get-tuple-element(p), index=0
  ROOT r = (f32[4]) tuple(a)
}

when_false {
  p = (f32[4], f32[4]) parameter(0)
  b = f32[4] get-tuple-element(p), index=1
  n = f32[4] negate(b)
  ROOT r = (f32[4]) tuple(n)
}

fused {
  p = f32[4] parameter(0)
  q = f32[4] parameter(1)
  e = f32[4] erf(p)
  ROOT s = f32[4] multiply(e, q)
}

ENTRY main {
  x = f32[4] parameter(0)
  n = s32[] parameter(1)
  zero = s32[] constant(0)
  start = (s32[], f32[4]) tuple(zero, x)
  loop = (s32[], f32[4]) while(start), condition=condition, body=body
  y = f32[4] get-tuple-element(loop), index=1
  f = f32[4] fusion(x, y), kind=kLoop, calls=fused
  is = pred[] compare(n, zero), direction=GT
  pair = (f32[4], f32[4]) tuple(f, y)
  chosen = (f32[4]) conditional(is, pair, pair), true_computation=when_true, false_computation=when_false
  z = f32[4] get-tuple-element(chosen), index=0
  init = f32[] constant(0)
  sum = f32[] reduce(z, init), dimensions={0}, to_apply=add
  top = (f32[2], s32[2]) topk(z), k=2, largest=true
  best = f32[2] get-tuple-element(top), index=0
  where = s32[2] get-tuple-element(top), index=1
  ROOT out = (f32[4], f32[], f32[2], s32[2]) tuple(z, sum, best, where)
}
"#;

    #[test]
    fn stablehlo_computes_what_its_module_computes() {
        let module = hlo::parse(TEXT).expect("a module");
        hlo::verify(&module).expect("a right one");
        let text = stablehlo::write(&module, &WriteOptions::default()).expect("every opcode has a form");
        assert!(text.contains("%x: tensor<4xf32> {tf.aliasing_output = 0 : i32}"), "{text}");
        let back = stablehlo::import(&mlir::parse(&text).expect("MLIR")).expect("StableHLO").module;
        hlo::verify(&back).expect("a right one");
        let expected = arguments_and_results(&module, "seed").expect("it runs");
        assert_eq!(expected.len(), 6);
        assert_eq!(arguments_and_results(&back, "seed").expect("it runs"), expected);
    }

    #[test]
    fn what_has_no_form_in_stablehlo_is_refused_by_name() {
        let rejection = |text: &str, version: &str| {
            let options =
                WriteOptions { version: version.parse().expect("a version"), ..WriteOptions::default() };
            let module = hlo::parse(text).expect("a module");
            stablehlo::write(&module, &options).expect_err("no form").message().to_owned()
        };
        let state = "HloModule m\nENTRY e {\n  ROOT state = u64[2] rng-get-and-update-state(), delta=1\n}\n";
        assert_eq!(
            rejection(state, "1.0.0"),
            "instruction 'state': rng-get-and-update-state has no equivalent in StableHLO"
        );
        let tan = "HloModule m\nENTRY e {\n  x = f32[] parameter(0)\n  ROOT y = f32[] tan(x)\n}\n";
        assert_eq!(
            rejection(tan, "1.3.0"),
            "instruction 'y': tan requires StableHLO 1.4.0 or later, not 1.3.0"
        );
    }
}
