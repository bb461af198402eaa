//! Writes HLO as StableHLO text, the input format of JAX, PyTorch/XLA, and all MLIR tools.
//!
//! Each instruction becomes the operation of the same name or a few operations. Tuples, which
//! StableHLO's functions and regions do not need, are split into their elements. Fusions are
//! expanded in place, and called computations become functions. HLO functions that StableHLO leaves
//! to CHLO are written as the custom calls `mhlo.NAME` that XLA uses for them, because these are
//! allowed in a portable artifact. An instruction without any equivalent is an error that names it.

mod attributes;
mod body;
mod constant;
mod instruction;
mod structured;
mod types;
mod version;
mod windows;

pub use version::Version;

use body::{Body, Leaf, Value};
use hlo::{ComputationId, Module};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::rc::Rc;
use support::{Error, Result};

/// Maximum number of operations in a text: a computation is written once for each region and fusion
/// that uses it.
const MAX_OPERATIONS: usize = 1 << 20;

/// Attribute of an HLO module, and its name in MLIR.
pub(crate) const FRONTEND: &str = "frontend_attributes";
pub(crate) const FRONTEND_IN_MLIR: &str = "mhlo.frontend_attributes";

/// Options for [`write()`].
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// The target version of StableHLO, which the text also states.
    pub version: Version,
    /// The names of the entry's results, in order; empty to omit them.
    pub result_names: Vec<String>,
}

/// Returns the module as StableHLO text, with the entry as its function `main`.
///
/// An error names the instruction that has no equivalent in StableHLO, or none in the requested
/// version.
pub fn write(module: &Module, options: &WriteOptions) -> Result<String> {
    let mut writer = Writer {
        module,
        version: options.version,
        functions: BTreeMap::new(),
        taken: BTreeSet::from(["main".to_owned()]),
        pending: Vec::new(),
        operations: 0,
    };
    let mut functions = writer.entry(options)?;
    while let Some(id) = writer.pending.pop() {
        functions.push_str(&writer.function(id)?);
    }
    let mut out = String::new();
    let name = types::sanitize(module.name());
    let _ = writeln!(out, "// StableHLO {}", options.version);
    let frontend = frontend_attributes(module);
    let version = options.version;
    let _ =
        writeln!(out, "module @{name} attributes {{{frontend}stablehlo.target_version = \"{version}\"}} {{");
    out.push_str(&functions);
    out.push_str("}\n");
    Ok(out)
}

/// Returns the attributes that XLA keeps without interpreting them, as an attribute of the module.
fn frontend_attributes(module: &Module) -> String {
    let all = module.attributes().iter().find(|(name, _)| name == FRONTEND);
    let Some((_, text)) = all else { return String::new() };
    let inner = text.trim().trim_start_matches('{').trim_end_matches('}');
    // Only values in quotes, whose text is the same in MLIR.
    let is_plain = |name: &str, value: &str| {
        name.trim().chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && value.starts_with('"')
            && !value.contains('\\')
    };
    let mut fields = Vec::new();
    let mut rest = inner;
    while let Some((name, value)) = rest.split_once('=') {
        let end = value.get(1..).and_then(|value| value.find('"')).map(|end| end + 2);
        let Some((value, after)) = end.and_then(|end| value.split_at_checked(end)) else { break };
        if is_plain(name, value) {
            fields.push(format!("{} = {value}", name.trim()));
        }
        rest = after.trim_start_matches([',', ' ']);
    }
    if fields.is_empty() {
        String::new()
    } else {
        format!("{FRONTEND_IN_MLIR} = {{{}}}, ", fields.join(", "))
    }
}

/// A module being written.
struct Writer<'m> {
    module: &'m Module,
    version: Version,
    /// The names of the functions for computations.
    functions: BTreeMap<ComputationId, Rc<str>>,
    taken: BTreeSet<String>,
    /// Called functions that are not yet written.
    pending: Vec<ComputationId>,
    operations: usize,
}

impl Writer<'_> {
    /// Returns the name of a computation's function, and schedules the function for writing.
    fn function_of(&mut self, id: ComputationId) -> Rc<str> {
        if let Some(name) = self.functions.get(&id) {
            return name.clone();
        }
        let stem = types::sanitize(self.module[id].name());
        let mut name = stem.clone();
        let mut suffix = 0;
        while !self.taken.insert(name.clone()) {
            suffix += 1;
            name = format!("{stem}_{suffix}");
        }
        let name: Rc<str> = name.into();
        self.functions.insert(id, name.clone());
        self.pending.push(id);
        name
    }

    /// Counts an operation.
    fn count(&mut self) -> Result<()> {
        self.operations += 1;
        if self.operations > MAX_OPERATIONS {
            return Err(Error::unsupported(format!(
                "the StableHLO text exceeds {MAX_OPERATIONS} operations"
            )));
        }
        Ok(())
    }

    fn entry(&mut self, options: &WriteOptions) -> Result<String> {
        let (entry, entry_id) = (self.module.entry_computation(), self.module.entry());
        let aliases = self.aliases();
        let mut body = Body::new(self, 2);
        let arguments = body.parameters(entry)?;
        let leaves = flatten(&arguments);
        let root = body.computation(entry_id, arguments)?;
        let results = root.leaves();
        let statements = body.finish("return", &results);
        let mut texts = Vec::new();
        for (k, leaf) in leaves.iter().enumerate() {
            let alias = match aliases.get(&k) {
                Some(result) => format!(" {{tf.aliasing_output = {result} : i32}}"),
                None => String::new(),
            };
            texts.push(format!("{}: {}{alias}{}", leaf.name, leaf.type_text, leaf.location()));
        }
        let results = results.iter().enumerate().map(|(k, leaf)| match options.result_names.get(k) {
            Some(name) => {
                format!("{} {{jax.result_info = {}}}", leaf.type_text, types::quote(name))
            }
            None => leaf.type_text.to_string(),
        });
        let results: Vec<String> = results.collect();
        Ok(function_text("public @main", &texts, &results, &statements))
    }

    /// Returns the argument whose memory each aliased result uses, both counted as leaves.
    fn aliases(&self) -> BTreeMap<usize, usize> {
        let signature = self.module.entry_computation().program_shape();
        let parameters = signature.parameters.iter().enumerate();
        let arguments: Vec<(usize, Vec<usize>)> = parameters
            .flat_map(|(k, shape)| types::leaf_paths(shape).into_iter().map(move |path| (k, path)))
            .collect();
        let results = types::leaf_paths(&signature.result);
        let aliases = self.module.input_output_alias().iter();
        let pair = |alias: &hlo::InputOutputAlias| {
            let argument = (alias.parameter_number, alias.parameter_index.to_vec());
            let argument = arguments.iter().position(|other| *other == argument)?;
            let result = results.iter().position(|path| *path == alias.output_index.to_vec())?;
            Some((argument, result))
        };
        aliases.filter_map(pair).collect()
    }

    fn function(&mut self, id: ComputationId) -> Result<String> {
        let name = self.function_of(id);
        let mut body = Body::new(self, 2);
        let arguments = body.parameters(&body.writer.module[id])?;
        let leaves = flatten(&arguments);
        let root = body.computation(id, arguments)?;
        let results = root.leaves();
        let statements = body.finish("return", &results);
        let arguments: Vec<String> =
            leaves.iter().map(|leaf| format!("{}: {}", leaf.name, leaf.type_text)).collect();
        let results: Vec<String> = results.iter().map(|leaf| leaf.type_text.to_string()).collect();
        Ok(function_text(&format!("private @{name}"), &arguments, &results, &statements))
    }
}

fn flatten(values: &[Value]) -> Vec<Leaf> {
    values.iter().flat_map(Value::leaves).collect()
}

fn function_text(name: &str, arguments: &[String], results: &[String], statements: &str) -> String {
    let arrow = match results {
        [] => String::new(),
        [only] if !only.contains('{') => format!(" -> {only}"),
        _ => format!(" -> ({})", results.join(", ")),
    };
    format!("  func.func {name}({}){arrow} {{\n{statements}  }}\n", arguments.join(", "))
}
