//! `XlaCallModule`: a StableHLO program in a graph, as jax2tf and exporters write it.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule_many};
use bounded::list;
use hlo::{ComputationId, InstructionId, Module, Op};
use shape::PrimitiveType;
use std::collections::BTreeMap;
use support::{Error, Result};

pub(crate) const RULES: &[Rule] = &[rule_many("XlaCallModule", call_module)];

/// Latest supported version of the op.
const LATEST_VERSION: i64 = 10;

/// `XlaCallModule(args)`: calls the module's function `main` with the arguments. A module for
/// several platforms takes the index of the current one among their names as its first argument.
fn call_module(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let mut operands = cx.inputs_from(0)?;
    if let Some(platform) = platform(cx)? {
        operands.insert(0, cx.scalar(PrimitiveType::S32, platform as f64));
    }
    let program = read(cx)?;
    check_operands(cx, &program, &operands)?;
    let entry = adopt(cx.module_mut(), &program.module);
    let result = cx.op(Op::Call { to_apply: entry }, &operands)?;
    // The values after the results are compared by checks of the program.
    (0..program.interface.fetches().len()).map(|k| cx.tuple_element(result, k)).collect()
}

/// Returns the index of the CPU among several platforms, or `None` if there is only one.
fn platform(cx: &NodeContext<'_, '_>) -> Result<Option<usize>> {
    let attributes = &cx.attributes();
    let platforms = attributes.strings_or("platforms", Vec::new())?;
    let disabled = attributes.strings_or("disabled_checks", Vec::new())?;
    let position = platforms.iter().position(|platform| platform.eq_ignore_ascii_case(b"cpu"));
    let is_checked = !disabled.iter().any(|check| &check[..] == b"platform");
    cx.check(platforms.is_empty() || position.is_some() || (platforms.len() == 1 && !is_checked), || {
        let names: Vec<_> = platforms.iter().map(|name| String::from_utf8_lossy(name)).collect();
        format!("the module was exported for {}; export it for CPU too", names.join(", "))
    })?;
    Ok(if platforms.len() > 1 { position } else { None })
}

/// Returns the program in the attribute `module`.
fn read(cx: &NodeContext<'_, '_>) -> Result<stablehlo::Imported> {
    let attributes = &cx.attributes();
    if attributes.int_or("version", 0)? > LATEST_VERSION {
        return Err(Error::unsupported("the module's version is newer than the latest supported one"));
    }
    if !attributes.funcs("function_list").unwrap_or_default().is_empty() {
        return Err(Error::unsupported("a module that calls functions of the graph is not supported"));
    }
    if attributes.bool_or("has_token_input_output", false)? {
        return Err(Error::unsupported("a module that takes a token is not supported"));
    }
    if !attributes.strings_or("dim_args_spec", Vec::new())?.is_empty() {
        return Err(Error::unsupported(
            "a module that takes sizes of its arguments is not supported; export it with fixed sizes",
        ));
    }
    let bytes = attributes.string("module")?;
    let source = match std::str::from_utf8(&bytes) {
        Ok(text) if !bytes.starts_with(&mlir::BYTECODE_MAGIC) => mlir::parse(text),
        _ => mlir::parse_bytecode(&bytes),
    };
    let within = |error: Error| error.context(format!("node {}: module", cx.node().name));
    stablehlo::import(&source.map_err(within)?).map_err(within)
}

fn check_operands(
    cx: &NodeContext<'_, '_>,
    program: &stablehlo::Imported,
    operands: &[InstructionId],
) -> Result<()> {
    let arguments = program.interface.arguments();
    let (expected, actual) = (arguments.len(), operands.len());
    cx.check(expected == actual, || format!("the module expects {expected} arguments, got {actual}"))?;
    for (argument, &operand) in arguments.iter().zip(operands) {
        let operand_shape = cx.array(operand);
        let fits = argument.shape.element_type == operand_shape.element_type
            && argument.shape.sizes() == operand_shape.sizes();
        cx.check(fits, || {
            let [name, sizes] = [argument.label(), list(&operand_shape.sizes())];
            format!(
                "the module's argument {name}: expected {}, got {} of shape {sizes}",
                argument.shape, operand_shape.element_type
            )
        })?;
    }
    Ok(())
}

/// Copies everything reachable from a program's entry to another module. Returns the entry there.
fn adopt(module: &mut Module, program: &Module) -> ComputationId {
    let mut copies = BTreeMap::new();
    let mut entry = None;
    for id in program.post_order() {
        let mut computation = program[id].clone();
        computation.map_called_computations(|callee| copies[&callee]);
        let copy = module.add_computation(computation);
        copies.insert(id, copy);
        entry = Some(copy);
    }
    entry.expect("the program has no computations")
}
