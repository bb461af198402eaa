//! Artifacts of `jax.export`: a FlatBuffer that wraps bytecode and describes the arguments and
//! results.
//!
//! The fields are those of `jax/_src/export/serialization.fbs`, which never renumbers a field.

use crate::sized::SIZES;
use flatbuffer::{Table, Vector};
use mlir::{Attribute, Attributes, Block, Elements, Module, Operation, Type};
use shape::Literal;
use std::collections::BTreeSet;
use support::{Error, Result};

/// The fields of `Exported`.
mod field {
    pub(super) const IN_TREE: usize = 2;
    pub(super) const IN_AVALS: usize = 3;
    pub(super) const OUT_TREE: usize = 4;
    pub(super) const DEVICES_SHORT: usize = 6;
    pub(super) const PLATFORMS: usize = 9;
    pub(super) const ORDERED_EFFECTS: usize = 10;
    pub(super) const UNORDERED_EFFECTS: usize = 11;
    pub(super) const MODULE: usize = 13;
    pub(super) const CALLING_CONVENTION: usize = 14;
    pub(super) const KEPT_ARGUMENTS: usize = 15;
    pub(super) const DEVICES: usize = 18;
    pub(super) const UNIQUE_AVALS: usize = 19;
    pub(super) const IN_AVAL_INDICES: usize = 22;
}

/// Supported calling conventions. In older ones, sizes and tokens are arguments.
const CALLING_CONVENTIONS: std::ops::RangeInclusive<u16> = 9..=10;

/// True if the bytes are a `jax.export` artifact.
pub fn is_export(bytes: &[u8]) -> bool {
    let module = Table::root(bytes).and_then(|root| root.vector(field::MODULE, 1));
    module.is_ok_and(|module| module.as_bytes().starts_with(&mlir::BYTECODE_MAGIC))
}

/// Reads the program of an artifact. Arguments and results without a name in the program are named
/// after their position in the trees of arguments and results. If the program targets several
/// platforms, the code for `cpu` is selected.
pub fn read_export(bytes: &[u8]) -> Result<Module> {
    let root = Table::root(bytes)?;
    check(&root)?;
    let mut module = mlir::parse_bytecode(root.vector(field::MODULE, 1)?.as_bytes())?;
    let platforms = root.vector(field::PLATFORMS, 4)?.texts()?;
    let retained: Vec<usize> = root.u16s(field::KEPT_ARGUMENTS)?.into_iter().map(usize::from).collect();
    take_inner_names(&mut module);
    let arguments = leaf_names(root.table(field::IN_TREE)?, true)?;
    let results = leaf_names(root.table(field::OUT_TREE)?, false)?;
    let Some(main) = main_of(&mut module.operations) else {
        return Err(Error::invalid("the artifact's program has no function 'main'"));
    };
    if platforms.len() > 1 {
        bind_platform(main, &platforms)?;
    }
    let Some(block) = main.regions.first_mut().and_then(|region| region.blocks.first_mut()) else {
        return Err(Error::invalid("the artifact's function 'main' has no body"));
    };
    for (argument, retained) in block.arguments.iter().zip(retained) {
        let value = &mut module.values[*argument];
        if let (true, Some(name)) = (value.name.is_empty(), arguments.get(retained)) {
            value.name.clone_from(name);
        }
    }
    name_results(main, &results);
    let shapes = shapes(&root, field::IN_AVALS, field::IN_AVAL_INDICES)?;
    let retained = root.u16s(field::KEPT_ARGUMENTS)?.into_iter().map(usize::from);
    state_sizes(main, retained.map(|k| shapes.get(k).cloned().unwrap_or_default()).collect());
    Ok(module)
}

/// Rejects programs for several devices, with effects, or in an unsupported calling convention.
fn check(root: &Table<'_>) -> Result<()> {
    let convention = root.u16(field::CALLING_CONVENTION, 0)?;
    if !CALLING_CONVENTIONS.contains(&convention) {
        return Err(Error::unsupported(format!(
            "calling convention {convention} of a jax.export artifact is not supported (only 9 and 10 are): export again with a \
             newer JAX"
        )));
    }
    let devices = match root.u32(field::DEVICES, 0)? {
        0 => u32::from(root.u16(field::DEVICES_SHORT, 0)?),
        devices => devices,
    };
    if devices > 1 {
        return Err(Error::unsupported(format!(
            "the program is exported for {devices} devices: export it for a single device, without shardings"
        )));
    }
    for effects in [field::ORDERED_EFFECTS, field::UNORDERED_EFFECTS] {
        if let Some(effect) = root.vector(effects, 4)?.tables().next() {
            return Err(Error::unsupported(format!(
                "the program has the effect '{}', such as a callback into Python or a print: export it without effects",
                effect?.text(0)?
            )));
        }
    }
    Ok(())
}

/// Returns the sizes of each argument or result: numbers, or symbolic sizes.
fn shapes(root: &Table<'_>, avals: usize, indices: usize) -> Result<Vec<Vec<String>>> {
    let list = |vector: Vector<'_>| -> Result<Vec<Vec<String>>> {
        let sizes = |aval: Result<Table<'_>>| {
            Ok(aval?.vector(1, 4)?.texts()?.into_iter().map(str::to_owned).collect())
        };
        vector.tables().map(sizes).collect()
    };
    let unique = list(root.vector(field::UNIQUE_AVALS, 4)?)?;
    let indices = root.u32s(indices)?;
    let shapes: Vec<Vec<String>> =
        indices.iter().filter_map(|&index| unique.get(index as usize).cloned()).collect();
    // Older artifacts repeat each shape.
    if shapes.is_empty() { list(root.vector(avals, 4)?) } else { Ok(shapes) }
}

/// Stores the sizes of arguments that are not all numbers.
fn state_sizes(main: &mut Operation, shapes: Vec<Vec<String>>) {
    if shapes.iter().flatten().all(|size| size.parse::<u64>().is_ok()) {
        return;
    }
    let mut attributes = match main.attribute("arg_attrs") {
        Some(Attribute::Array(list)) => list.clone(),
        _ => Vec::new(),
    };
    attributes.resize(shapes.len().max(attributes.len()), Attribute::Dictionary(Attributes::default()));
    for (attributes, shape) in attributes.iter_mut().zip(shapes) {
        if let Attribute::Dictionary(fields) = attributes {
            fields.set(SIZES, Attribute::Array(shape.into_iter().map(Attribute::String).collect()));
        }
    }
    main.attributes.set("arg_attrs", Attribute::Array(attributes));
}

/// Gives the arguments of `main` the names that they have in the function that it passes them to.
/// With symbolic sizes, `main` only computes those and calls the exported function.
fn take_inner_names(module: &mut Module) {
    const INNER: &str = "_wrapped_jax_export_main";
    let mut functions: Vec<&Operation> = module.operations.iter().collect();
    if let [only] = functions[..] {
        let blocks = only.regions.iter().flat_map(|region| &region.blocks);
        functions = blocks.flat_map(|block| &block.operations).collect();
    }
    let body = |name: &str| {
        let is_named = |f: &&&Operation| f.attribute("sym_name").and_then(Attribute::text) == Some(name);
        functions.iter().find(is_named)?.regions.first()?.blocks.first()
    };
    let (Some(main), Some(inner)) = (body("main"), body(INNER)) else { return };
    let is_call =
        |operation: &&Operation| operation.attribute("callee").and_then(Attribute::text) == Some(INNER);
    let Some(call) = main.operations.iter().find(is_call) else { return };
    let pairs: Vec<_> = call
        .operands
        .iter()
        .zip(&inner.arguments)
        .filter(|(outer, _)| main.arguments.contains(outer))
        .map(|(&outer, &inner)| (outer, module.values[inner].name.clone()))
        .collect();
    for (outer, name) in pairs {
        if module.values[outer].name.is_empty() {
            module.values[outer].name = name;
        }
    }
}

fn main_of(operations: &mut [Operation]) -> Option<&mut Operation> {
    for operation in operations {
        let is_main = operation.attribute("sym_name").and_then(Attribute::text) == Some("main");
        if operation.name == "func.func" && is_main {
            return Some(operation);
        }
        if operation.name == "builtin.module" {
            let blocks = operation.regions.iter_mut().flat_map(|region| &mut region.blocks);
            let main = blocks.flat_map(|block| &mut block.operations).find(|inner| {
                inner.name == "func.func"
                    && inner.attribute("sym_name").and_then(Attribute::text) == Some("main")
            });
            return main;
        }
    }
    None
}

/// Replaces the first argument of a program for several platforms, the platform's number, by a
/// constant.
fn bind_platform(main: &mut Operation, platforms: &[&str]) -> Result<()> {
    let Some(number) = platforms.iter().position(|platform| *platform == "cpu") else {
        return Err(Error::unsupported(format!(
            "the program is exported for the platforms {}, but not for cpu: export it with platforms=['cpu']",
            platforms.join(", ")
        )));
    };
    if let Some(Attribute::Type(Type::Function { inputs, results })) =
        main.attribute("function_type").cloned()
    {
        let inputs = inputs.into_iter().skip(1).collect();
        main.attributes.set("function_type", Attribute::Type(Type::Function { inputs, results }));
    }
    if let Some(Attribute::Array(list)) = main.attribute("arg_attrs").cloned() {
        main.attributes.set("arg_attrs", Attribute::Array(list.into_iter().skip(1).collect()));
    }
    let block = main.regions.first_mut().and_then(|region| region.blocks.first_mut());
    let Some(block @ Block { .. }) = block.filter(|block| !block.arguments.is_empty()) else {
        return Err(Error::invalid("the artifact's function 'main' has no argument for the platform"));
    };
    let scalar = Literal::scalar(number as i32);
    let mut attributes = Attributes::default();
    let shape = scalar.array_shape().clone();
    attributes.set("value", Attribute::Elements(Elements { shape, all: None, scalar }));
    let constant = Operation {
        name: "stablehlo.constant".to_owned(),
        results: vec![block.arguments.remove(0)],
        attributes,
        ..Operation::default()
    };
    block.operations.insert(0, constant);
    Ok(())
}

/// Stores the names of results that have none in the program.
fn name_results(main: &mut Operation, names: &[String]) {
    let Some(Attribute::Array(list)) = main.attribute("res_attrs").cloned() else { return };
    let attributes = list.into_iter().enumerate().map(|(k, attributes)| match (attributes, names.get(k)) {
        (Attribute::Dictionary(mut fields), Some(name)) if fields.get("jax.result_info").is_none() => {
            fields.set("jax.result_info", Attribute::String(name.clone()));
            Attribute::Dictionary(fields)
        }
        (attributes, _) => attributes,
    });
    let attributes = attributes.collect();
    main.attributes.set("res_attrs", Attribute::Array(attributes));
}

/// Maximum number of nodes in a tree, and maximum depth.
const MOST_NODES: usize = 100_000;
const DEEPEST: usize = 100;

/// Names the leaves of a tree after the keys and positions that lead to each. For arguments, the
/// first step only separates positional from keyword arguments, so it is omitted.
fn leaf_names(tree: Option<Table<'_>>, is_arguments: bool) -> Result<Vec<String>> {
    let Some(tree) = tree else { return Ok(Vec::new()) };
    let mut walk = Walk { path: Vec::new(), names: Vec::new(), nodes: 0 };
    if is_arguments {
        for (k, part) in tree.vector(1, 4)?.tables().enumerate() {
            let part = part?;
            walk.path = if k == 0 { vec!["arg".to_owned()] } else { Vec::new() };
            walk.visit(part)?;
        }
    } else {
        walk.visit(tree)?
    }
    let mut taken = BTreeSet::new();
    debug_assert!(walk.names.len() <= MOST_NODES, "more leaves than nodes");
    Ok(walk
        .names
        .into_iter()
        .map(|mut name| {
            while !taken.insert(name.clone()) {
                name.push('_');
            }
            name
        })
        .collect())
}

struct Walk {
    path: Vec<String>,
    names: Vec<String>,
    nodes: usize,
}

impl Walk {
    fn visit(&mut self, node: Table<'_>) -> Result<()> {
        self.nodes += 1;
        if self.nodes > MOST_NODES || self.path.len() > DEEPEST {
            return Err(Error::unsupported("the artifact's tree of arguments or results is too large"));
        }
        const LEAF: u8 = 0;
        if node.u8(0, 0)? == LEAF {
            // A positional argument is `arg0`, not `arg_0`.
            let name = self.path.join("_");
            self.names.push(match name.strip_prefix("arg_") {
                Some(rest) => format!("arg{rest}"),
                None => name,
            });
            return Ok(());
        }
        let keys = node.vector(2, 4)?.texts()?;
        for (k, child) in node.vector(1, 4)?.tables().enumerate() {
            let step = keys.get(k).map_or_else(|| k.to_string(), |key| (*key).to_owned());
            self.path.push(step);
            self.visit(child?)?;
            self.path.pop();
        }
        Ok(())
    }
}
