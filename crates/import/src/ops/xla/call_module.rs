//! `XlaCallModule`: a program of StableHLO inside of a graph, as jax2tf and exporters write it.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule_many};
use bounded::list;
use hlo::{ComputationId, InstructionId, Module, Op};
use shape::PrimitiveType;
use std::collections::BTreeMap;
use support::{Error, Result};

pub(crate) const RULES: &[Rule] = &[rule_many("XlaCallModule", call_module)];

/// The latest version of the op whose attributes are known here.
const LATEST_VERSION: i64 = 10;

/// `XlaCallModule(args)`: the module's function `main` of the arguments. A module for several platforms takes the
/// position of the one that it runs on, among those that it names, as its first argument.
fn call_module(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let mut operands = cx.inputs_from(0)?;
    if let Some(platform) = platform(cx)? {
        operands.insert(0, cx.scalar(PrimitiveType::S32, platform as f64));
    }
    let program = read(cx)?;
    check_operands(cx, &program, &operands)?;
    let entry = adopt(cx.module_mut(), &program.module);
    let result = cx.op(Op::Call { to_apply: entry }, &operands)?;
    // What stands behind the results are values that checks of the program compare.
    (0..program.interface.fetches().len()).map(|k| cx.tuple_element(result, k)).collect()
}

/// Where the processor stands among several platforms; nothing if there is only one.
fn platform(cx: &NodeContext<'_, '_>) -> Result<Option<usize>> {
    let attributes = &cx.attributes();
    let platforms = attributes.strings_or("platforms", Vec::new())?;
    let disabled = attributes.strings_or("disabled_checks", Vec::new())?;
    let found = platforms.iter().position(|platform| platform.eq_ignore_ascii_case(b"cpu"));
    let is_checked = !disabled.iter().any(|check| &check[..] == b"platform");
    cx.check(platforms.is_empty() || found.is_some() || (platforms.len() == 1 && !is_checked), || {
        let names: Vec<_> = platforms.iter().map(|name| String::from_utf8_lossy(name)).collect();
        format!("the module was exported for {}, not for CPU; export it for CPU too", names.join(", "))
    })?;
    Ok(if platforms.len() > 1 { found } else { None })
}

/// The program in the attribute `module`.
fn read(cx: &NodeContext<'_, '_>) -> Result<stablehlo::Imported> {
    let attributes = &cx.attributes();
    if attributes.int_or("version", 0)? > LATEST_VERSION {
        return Err(Error::unsupported("the module's version is newer than any that is known"));
    }
    if !attributes.funcs("function_list").unwrap_or_default().is_empty() {
        return Err(Error::unsupported("a module that calls functions of the graph is not supported"));
    }
    if attributes.bool_or("has_token_input_output", false)? {
        return Err(Error::unsupported("a module that takes a token is not supported"));
    }
    if !attributes.strings_or("dim_args_spec", Vec::new())?.is_empty() {
        return Err(Error::unsupported(
            "a module that takes sizes of its arguments is not supported; export it for fixed sizes",
        ));
    }
    let bytes = attributes.string("module")?;
    let source = match std::str::from_utf8(&bytes) {
        Ok(text) if !bytes.starts_with(&mlir::BYTECODE_MAGIC) => mlir::parse(text),
        _ => mlir::parse_bytecode(&bytes),
    };
    let within = |error: Error| error.context(format!("node {}: its module", cx.node().name));
    stablehlo::import(&source.map_err(within)?).map_err(within)
}

fn check_operands(
    cx: &NodeContext<'_, '_>,
    program: &stablehlo::Imported,
    operands: &[InstructionId],
) -> Result<()> {
    let arguments = program.interface.arguments();
    let (wanted, given) = (arguments.len(), operands.len());
    cx.check(wanted == given, || format!("the module takes {wanted} arguments, but there are {given}"))?;
    for (argument, &operand) in arguments.iter().zip(operands) {
        let given = cx.array(operand);
        let fits =
            argument.shape.element_type == given.element_type && argument.shape.sizes() == given.sizes();
        cx.check(fits, || {
            let [name, sizes] = [argument.label(), list(&given.sizes())];
            format!(
                "the module's argument {name} is {}, but is given {} of {sizes}",
                argument.shape, given.element_type
            )
        })?;
    }
    Ok(())
}

/// Copies all that a program's entry reaches into another module; the entry there.
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
    entry.expect("the entry reaches itself")
}
