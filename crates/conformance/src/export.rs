//! Exports HLO to be checked by another implementation: the texts of the file tests and the modules
//! of graphs, each with seeded arguments and the results of our evaluator.

use crate::select::fnv1a64;
use compiler::NoObserver;
use evaluator::{Evaluator, Limits};
use hlo::{Computation, InstructionId, Module, Op};
use shape::{ArrayShape, Literal, Scalar, Shape};
use std::collections::BTreeMap;
use std::path::Path;
use support::{Error, Result};

/// Separates a test's input from its expected output.
const ARROW: &str = "// ==>";
/// Modules that exceed these limits in the evaluator are only parsed.
const LIMITS: Limits = Limits { max_steps: 1 << 27, max_live_bytes: 1 << 31, max_depth: 64 };
/// Opcodes with implementation-defined results, or that need more than one device.
const NOT_COMPARABLE: [&str; 9] = [
    " rng(",
    " rng-get-and-update-state(",
    " custom-call(",
    " infeed(",
    " outfeed(",
    " send(",
    " recv(",
    " all-reduce(",
    " partition-id(",
];

/// Returns the modules in a file test, both input and expected output, or none if an error is
/// expected.
pub fn modules_of_test(test: &str) -> Vec<&str> {
    if test.lines().any(|line| line.contains("// error:")) {
        return Vec::new();
    }
    let parts = test.split(ARROW);
    parts.filter(|part| part.lines().any(|line| line.starts_with("HloModule"))).collect()
}

/// Imports a graph as a module.
pub fn module_of_graph(graph: &Path, config: &Path) -> Result<Module> {
    let (graph, config) = (tf::source::read_graph_def(graph)?, tf::source::read_config(config)?);
    Ok(compiler::import(graph, config, &mut NoObserver)?.module)
}

/// Imports a model without a config as a module that fetches the given node.
pub fn module_of_model(path: &Path, fetch: &str) -> Result<Module> {
    let infer = tf::InferOptions { fetches: vec![(fetch.to_owned(), 0)], ..tf::InferOptions::default() };
    let options = tf::model::LoadOptions { infer, ..tf::model::LoadOptions::default() };
    let model = compiler::load(path, &options)?;
    let config = model.infer()?.config;
    Ok(compiler::import(model.graph, config, &mut NoObserver)?.module)
}

/// Returns seeded arguments and our results as members of an archive, or `None` if results cannot
/// be compared.
pub fn arguments_and_results(module: &Module, seed: &str) -> Option<BTreeMap<String, Literal>> {
    if !is_comparable(module) {
        return None;
    }
    let entry = &module[module.entry()];
    let mut arguments = Vec::new();
    for (k, &parameter) in entry.parameters().iter().enumerate() {
        match entry[parameter].shape() {
            Shape::Array(shape) if shape.is_static() => arguments.push(draw(shape, &format!("{seed}/{k}"))),
            _ => return None,
        }
    }
    let result = Evaluator::with_limits(module, LIMITS).evaluate(&arguments).ok()?;
    let mut results = Vec::new();
    flatten(result, &mut results);
    let named = |kind: &str, literals: Vec<Literal>| -> Vec<(String, Literal)> {
        literals.into_iter().enumerate().map(|(k, literal)| (format!("{kind}/{k}"), literal)).collect()
    };
    Some(named("in", arguments).into_iter().chain(named("out", results)).collect())
}

/// True if two implementations must agree on the module's results, and XLA can run it.
pub(crate) fn is_comparable(module: &Module) -> bool {
    let text = module.to_text();
    if NOT_COMPARABLE.iter().any(|opcode| text.contains(opcode)) {
        return false;
    }
    // XLA compiles HLO through StableHLO, which has no constants of tuples.
    let tuple_constant = |(_, instruction): (_, &hlo::Instruction)| {
        instruction.opcode() == hlo::Opcode::Constant && instruction.shape().as_array().is_none()
    };
    if module.computations().any(|(_, computation)| computation.instructions().any(tuple_constant)) {
        return false;
    }
    if module.computations().any(|(_, computation)| has_open_reduction(module, computation)) {
        return false;
    }
    let entry = &module[module.entry()];
    entry[entry.root()].shape().leaves().iter().all(|(_, leaf)| leaf.is_static())
}

/// True if a reduction starts from a value that may differ from the identity of its operation. XLA
/// does not specify how often this value is combined with the elements.
fn has_open_reduction(module: &Module, computation: &Computation) -> bool {
    computation.instructions().any(|(_, instruction)| {
        let (Op::Reduce { to_apply, .. } | Op::ReduceWindow { to_apply, .. }) = instruction.op() else {
            return false;
        };
        let reducer = &module[*to_apply];
        let counts = match reducer[reducer.root()].op() {
            Op::Add {} => Some(0.0),
            Op::Multiply {} => Some(1.0),
            _ => None,
        };
        let is_open = |&id: &InstructionId| match (computation[id].op(), counts) {
            (Op::Constant { literal }, Some(identity)) => !literal.scalars().all(|x| is_number(x, identity)),
            (op, _) => !matches!(op, Op::Constant { .. }),
        };
        instruction.operands()[instruction.operands().len() / 2..].iter().any(is_open)
    })
}

/// True if a scalar has this value.
fn is_number(scalar: Scalar, value: f64) -> bool {
    match scalar {
        Scalar::Pred(x) => x == (value != 0.0),
        Scalar::Signed(x) => x as f64 == value,
        Scalar::Unsigned(x) => x as f64 == value,
        Scalar::Float(x) => x == value,
        Scalar::Complex(re, im) => re == value && im == 0.0,
    }
}

fn flatten(literal: Literal, out: &mut Vec<Literal>) {
    match literal {
        Literal::Tuple(elements) => elements.into_iter().for_each(|element| flatten(element, out)),
        array @ Literal::Array { .. } => out.push(array),
    }
}

/// Generates small values of every kind: floats within 2 of zero, integers that are also valid
/// indices.
fn draw(shape: &ArrayShape, seed: &str) -> Literal {
    draw_between(shape, seed, -2.0, 2.0)
}

/// Generates small values, with floats in the given range.
pub(crate) fn draw_between(shape: &ArrayShape, seed: &str, least: f64, most: f64) -> Literal {
    let element_type = shape.element_type;
    let mut state = fnv1a64(seed.as_bytes());
    let mut next = || {
        // Knuth's MMIX generator, using its high bits.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 40
    };
    let scaled = |value: f64| least + (value + 2.0) / 4.0 * (most - least);
    let mut real = move || next() as f64 / f64::from(1 << 22) - 2.0;
    let scalars = (0..shape.element_count()).map(|_| {
        let value = real();
        match element_type {
            shape::PrimitiveType::Pred => Scalar::Pred(value < 0.0),
            t if t.is_signed_integer() => Scalar::Signed((value * 2.0).floor() as i64),
            t if t.is_unsigned_integer() => Scalar::Unsigned((value + 2.0) as u64),
            t if t.is_complex() => Scalar::Complex(scaled(value), scaled(real())),
            _ => Scalar::Float(scaled(value)),
        }
    });
    Literal::from_scalars(shape.clone(), scalars.collect::<Vec<_>>())
}

/// Replaces each fusion by a call of its computation, which yields the same program. A back end
/// runs only the fusions that its own passes create. Returns `None` if there is no fusion.
pub(crate) fn fusions_as_calls(module: &Module) -> Option<Module> {
    let mut unfused = module.clone();
    for (id, computation) in module.computations() {
        for (fusion, instruction) in computation.instructions() {
            let Op::Fusion { calls, .. } = *instruction.op() else { continue };
            let (shape, metadata) = (instruction.shape().clone(), instruction.metadata().clone());
            let caller = unfused.computation_mut(id);
            let operands = caller[fusion].operands().to_vec();
            let call = caller.add("call", Op::Call { to_apply: calls }, shape, &operands, metadata);
            caller.replace_all_uses(fusion, call);
            caller.remove(fusion);
        }
    }
    (unfused != *module).then_some(unfused)
}

/// Writes a module to `directory`, with its arguments and results if available. If the module has
/// fusions, writes its text, and the same program with calls to be run.
pub fn write(directory: &Path, name: &str, module: &Module) -> Result<()> {
    if let Some(unfused) = fusions_as_calls(module) {
        write_file(&directory.join(name), "hlo", module.to_text().as_bytes())?;
        return write(directory, &format!("{name}-unfused"), &unfused);
    }
    let path = directory.join(name);
    write_file(&path, "hlo", module.to_text().as_bytes())?;
    match arguments_and_results(module, name) {
        Some(arrays) => write_file(&path, "npz", &npz::write(&arrays)?),
        None => Ok(()),
    }
}

pub(crate) fn write_file(path: &Path, extension: &str, contents: &[u8]) -> Result<()> {
    let path = path.with_extension(extension);
    std::fs::write(&path, contents)
        .map_err(|e| Error::invalid(format!("cannot write {}: {e}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "HloModule m\n\nENTRY main {\n  x = s32[3] parameter(0)\n  y = s32[3] negate(x)\n  \
                        ROOT t = (s32[3], s32[3]) tuple(y, x)\n}\n";

    #[test]
    fn a_test_with_an_arrow_has_two_modules() {
        let test = format!("// test: pass=dce\n// Why.\n\n{TEXT}{ARROW}\n{TEXT}");
        assert_eq!(modules_of_test(&test).len(), 2);
        assert_eq!(modules_of_test(&format!("{TEXT}{ARROW}\nallocation 0: 12 bytes\n")).len(), 1);
        assert!(modules_of_test(&format!("{TEXT}  // error: bad\n")).is_empty());
    }

    #[test]
    fn a_fusion_becomes_a_call_of_the_same_computation() {
        let text = "HloModule m\n\nf {\n  p = s32[3] parameter(0)\n  ROOT n = s32[3] negate(p)\n}\n\n\
                    ENTRY main {\n  x = s32[3] parameter(0)\n  ROOT y = s32[3] fusion(x), kind=kLoop, calls=f\n}\n";
        let unfused = fusions_as_calls(&hlo::parse(text).unwrap()).unwrap();
        assert!(unfused.to_text().contains("s32[3] call(x), to_apply=f"), "{}", unfused.to_text());
        hlo::verify(&unfused).unwrap();
        assert!(fusions_as_calls(&unfused).is_none());
    }

    #[test]
    fn results_are_those_of_the_seeded_arguments() {
        let module = hlo::parse(TEXT).unwrap();
        let arrays = arguments_and_results(&module, "seed").unwrap();
        assert_eq!(arrays.keys().collect::<Vec<_>>(), ["in/0", "out/0", "out/1"]);
        let values = |name: &str| arrays[name].to_vec::<i32>().unwrap();
        assert_eq!(values("out/1"), values("in/0"));
        assert_eq!(values("out/0"), values("in/0").iter().map(|x| -x).collect::<Vec<_>>());
        assert_eq!(arguments_and_results(&module, "seed").unwrap(), arrays);
        assert_ne!(arguments_and_results(&module, "other").unwrap(), arrays);
    }
}
