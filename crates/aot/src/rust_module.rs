//! The Rust module: a struct with typed arrays over the object's entry, for programs that depend on
//! `tfcompile-runtime`.
//!
//! Its accessors have the same names as those of the headers. The text uses full paths for
//! everything, so it can be included in any module, next to other models.

mod methods;
mod quantization;
mod sizes;
mod types;

use crate::artifact::{Artifact, Signature};
use crate::cpp_name::RUST_KEYWORDS;
use crate::header::{CppNames, Text, cpp_names, not_freestanding};
use crate::quantized::Quantized;
use crate::sizes::{Size, TrueSizes, shape_text};
use hlo::{Argument, Identifier, Interface, Output};
use shape::ArrayShape;
use std::collections::BTreeMap;
use support::{Error, Result};

/// Options of the Rust module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RustOptions {
    /// Omits the standard library and allocation: all memory is in the struct, which may be a
    /// static.
    pub no_std: bool,
}

/// Path of the crate that the module uses.
const RUNTIME: &str = "::tfcompile_runtime";

/// Inputs of all parts of the module.
struct Source<'a> {
    artifact: &'a Artifact,
    options: RustOptions,
    /// Name of the struct, and prefix of other names.
    name: &'a str,
    /// Feeds, then variables, without the sizes of named dimensions.
    arguments: Vec<Field<'a>>,
    /// Fetches.
    fetches: Vec<Field<'a>>,
    /// Sizes of named dimensions.
    sizes: Vec<Size>,
}

/// An array in the struct's memory.
struct Field<'a> {
    /// `arg_x`, `arg0`, `var_w`, `result_y`.
    name: String,
    shape: &'a ArrayShape,
    /// Number of the argument or fetch.
    index: usize,
    /// Shape with the names of dimensions.
    shape_text: String,
    /// Identifier in the graph.
    id: &'a Identifier,
    /// Type in memory: `[[f32; 3]; 2]`.
    memory_type: String,
    /// Type for the caller: `[[f32; 3]]` if the size of dimension 0 has a name.
    rust_type: String,
    quantized: Option<Quantized>,
    /// Expressions for its sizes, if they change from run to run. In programs without named
    /// dimensions, arrays have their upper bounds.
    true_sizes: Option<TrueSizes>,
}

/// Returns the Rust module of an artifact, as contents of a file for `include!`.
///
/// Fails as [`header`](crate::header()) does, and if the class name is a Rust keyword.
pub fn rust_module(artifact: &Artifact, options: &RustOptions) -> Result<String> {
    artifact.validate()?;
    check_names(artifact.signature(), artifact.device.is_some())?;
    if options.no_std && artifact.device.is_some() {
        return Err(not_freestanding());
    }
    let names = cpp_names(&artifact.interface)?;
    let source = Source {
        artifact,
        options: *options,
        name: artifact.cpp_class.class_name(),
        arguments: arguments(&artifact.interface, &names),
        fetches: fetches(&artifact.interface, &names),
        sizes: names.sizes,
    };
    let mut out = Text::new();
    types::types(&mut out, &source);
    methods::methods(&mut out, &source);
    Ok(out.into_string())
}

/// Checks the names of a valid signature. Needs no code. Fails as [`rust_module`] does.
///
/// The accessors of device memory are checked by [`rust_module`] only.
pub fn check_rust_module(signature: Signature<'_>) -> Result<()> {
    check_names(signature, false)
}

fn check_names(signature: Signature<'_>, has_device: bool) -> Result<()> {
    let name = signature.cpp_class.class_name();
    if RUST_KEYWORDS.contains(&name) {
        return Err(Error::invalid(format!(
            "class '{name}' is a Rust keyword, but the Rust module defines a struct of this name; choose another"
        )));
    }
    let names = cpp_names(signature.interface)?;
    let (arguments, fetches) = (arguments(signature.interface, &names), fetches(signature.interface, &names));
    // The `_mut`, `_sizes`, or `_on_device` accessor of one array may have the same name as another
    // array's accessor.
    let mut methods = BTreeMap::new();
    let on_device =
        arguments.iter().chain(&fetches).filter(|_| has_device).map(|field| (field, "_on_device"));
    let in_arguments = arguments.iter().flat_map(|a| [(a, ""), (a, "_mut")]);
    let sized = arguments.iter().filter(|a| a.true_sizes.is_some()).map(|a| (a, "_sizes"));
    let in_fetches = fetches.iter().flat_map(|f| [(f, ""), (f, "_sizes")]);
    for (field, suffix) in in_arguments.chain(sized).chain(in_fetches).chain(on_device) {
        if let Some(other) = methods.insert(format!("{}{suffix}", field.name), field.id) {
            return Err(Error::invalid(format!(
                "'{}' and '{other}' would both define the Rust method {}{suffix}; give one of them another name in the \
                 config",
                field.id, field.name
            )));
        }
    }
    // Names that differ only in case have the same constants.
    let mut constants = BTreeMap::new();
    for field in arguments.iter().chain(&fetches).filter(|field| field.quantized.is_some()) {
        let constant = field.constant("SCALE");
        if let Some(other) = constants.insert(constant.clone(), field.id) {
            return Err(Error::invalid(format!(
                "'{}' and '{other}' would both define the Rust constant {constant}; give one of them another name in the \
                 config",
                field.id
            )));
        }
    }
    Ok(())
}

fn arguments<'a>(interface: &'a Interface, names: &CppNames) -> Vec<Field<'a>> {
    let sizes = &names.sizes;
    let size = |number: usize| {
        let size = sizes.iter().find(|size| size.argument == number);
        format!("self.{}()", size.expect("a size for each named dimension").name)
    };
    let names =
        names.feeds.iter().map(|name| ("arg", name)).chain(names.variables.iter().map(|name| ("var", name)));
    let all = interface.arguments().iter().zip(names).enumerate();
    let field = |(index, (argument, (kind, name))): (usize, (&'a Argument, (&str, &Option<String>)))| {
        let quantized = Quantized::new(&argument.shape, argument.quantization);
        let true_sizes = TrueSizes::of_argument(argument, size);
        let is_sliced = argument.named_dimensions.iter().any(|named| named.dimension == 0);
        let shape_text = shape_text(interface, argument);
        let field = field(kind, index, name, &argument.shape, &argument.id, quantized);
        let rust_type = if is_sliced { types::slice_of(&argument.shape) } else { field.rust_type };
        Field { true_sizes, shape_text, rust_type, ..field }
    };
    all.filter(|(_, (argument, _))| argument.range.is_none()).map(field).collect()
}

fn fetches<'a>(interface: &'a Interface, names: &CppNames) -> Vec<Field<'a>> {
    let all = interface.fetches().iter().zip(&names.fetches).enumerate();
    let field = |(index, (fetch, name)): (usize, (&'a Output, &Option<String>))| {
        let quantized = Quantized::new(&fetch.shape, fetch.quantization);
        let field = field("result", index, name, &fetch.shape, &fetch.id, quantized);
        if names.sizes.is_empty() || fetch.shape.is_static() {
            return field;
        }
        let true_sizes = Some(true_sizes(fetch));
        let is_sliced = fetch.shape.dimensions[0].is_dynamic;
        let rust_type = if is_sliced { types::slice_of(&fetch.shape) } else { field.rust_type };
        Field { true_sizes, rust_type, ..field }
    };
    all.map(field).collect()
}

/// Returns Rust expressions for the sizes of a fetch, some of which the run reports.
fn true_sizes(fetch: &Output) -> TrueSizes {
    let indices = fetch.size_indices();
    let size = |index| format!("self.memory.dynamic_sizes[{index}] as usize");
    TrueSizes::new(&fetch.shape, |d| indices[d].map(size))
}

/// Returns the field of an array whose shape is the same in all runs.
fn field<'a>(
    kind: &str,
    index: usize,
    name: &Option<String>,
    shape: &'a ArrayShape,
    id: &'a Identifier,
    quantized: Option<Quantized>,
) -> Field<'a> {
    let name = match name {
        Some(name) => format!("{kind}_{name}"),
        None => format!("{kind}{index}"),
    };
    let memory_type = types::rust_type(shape);
    let (rust_type, shape_text) = (memory_type.clone(), shape.to_string());
    Field { name, shape, index, shape_text, id, memory_type, rust_type, quantized, true_sizes: None }
}

impl Field<'_> {
    /// Returns the name of an associated constant, such as `ARG_X_SCALE`.
    fn constant(&self, what: &str) -> String {
        format!("{}_{what}", self.name.to_ascii_uppercase())
    }

    /// Returns the expression for the number of elements of the caller's slice; `None` if the
    /// caller has an array.
    fn rows(&self) -> Option<&str> {
        let sizes = self.true_sizes.as_ref()?;
        (self.rust_type != self.memory_type).then(|| sizes.dimensions[0].as_str())
    }
}

impl Source<'_> {
    fn feeds(&self) -> &[Field<'_>] {
        &self.arguments[..self.feed_count()]
    }

    fn variables(&self) -> &[Field<'_>] {
        &self.arguments[self.feed_count()..]
    }

    /// Number of feeds that are not sizes.
    fn feed_count(&self) -> usize {
        self.artifact.interface.feed_count() - self.sizes.len()
    }

    /// Returns all arrays in the memory.
    fn fields(&self) -> impl Iterator<Item = &Field<'_>> {
        self.arguments.iter().chain(&self.fetches)
    }
}
