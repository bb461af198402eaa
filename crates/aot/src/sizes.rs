//! Sizes of named dimensions: their names in generated code, and expressions for the true sizes of
//! arrays.
//!
//! All faces of a program use the same names, so none may clash with a member in any language.

use crate::cpp_name::{MEMBER_NAMES, RUST_KEYWORDS, is_keyword};
use hlo::{Argument, Interface, SizeRange};
use shape::ArrayShape;
use std::collections::BTreeSet;

/// A size that the caller sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    /// The argument that holds it.
    pub(crate) argument: usize,
    /// Name in the graph.
    pub(crate) graph_name: String,
    /// Name of the methods: `batch` and `set_batch`.
    pub(crate) name: String,
    /// Permitted sizes.
    pub(crate) range: SizeRange,
}

/// First parts of the names of accessors and setters.
const PREFIXES: [&str; 7] = ["arg", "result", "var_", "set_", "quantize_", "dequantize_", "load_"];

/// Members of generated classes, functions of C headers, and methods of Rust modules. With `set_`,
/// some would be setters.
#[rustfmt::skip]
const TAKEN: &[&str] = &[
    "DefaultConstants", "Fail", "LoadConstants", "LoadDefaultConstants", "NamedSize", "RunAsync", "SetConstants",
    "SetDefault", "SetDefaultConstants", "SetNamedSize", "Synchronize", "UpdateConstants", "Variables", "call",
    "constants", "constants_owner", "default", "device", "device_instance", "device_options", "dynamic_sizes",
    "dynamic_sizes_device_data", "enter", "error", "frame", "init", "load", "memory", "new", "num_dynamic_sizes",
    "outputs", "parallel_for", "run", "run_async", "run_async_on", "run_on", "scratch", "size", "start", "state",
    "static_data", "stream", "synchronize", "thread_pool", "threads", "workers",
];

impl Size {
    /// Returns the name in constants such as `kBatchMax`.
    pub(crate) fn in_camel_case(&self) -> String {
        let words = self.name.split('_').filter(|word| !word.is_empty());
        words.map(|word| word[..1].to_ascii_uppercase() + &word[1..]).collect()
    }

    /// Returns the message of a run with a size that is out of range.
    pub(crate) fn out_of_range(&self) -> String {
        format!("{} is out of range: {}", self.graph_name, self.range)
    }
}

/// Returns the sizes of an interface, in the order of their arguments.
pub(crate) fn sizes(interface: &Interface) -> Vec<Size> {
    let mut taken = BTreeSet::new();
    let size = |(argument, feed, range): (usize, &Argument, SizeRange)| {
        let graph_name = graph_name(feed);
        let base = cpp_name(graph_name);
        // Constants are in camel case or in capitals.
        let folded = |name: &str| name.replace('_', "").to_ascii_lowercase();
        let numbered = (2..).map(|number| format!("{base}_{number}"));
        let mut candidates = std::iter::once(base.clone()).chain(numbered);
        let name = candidates.find(|name| taken.insert(folded(name))).expect("endless candidates");
        Size { argument, graph_name: graph_name.to_owned(), name, range }
    };
    interface.sizes().map(size).collect()
}

/// Returns the name of the dimension whose size an argument holds.
fn graph_name(size: &Argument) -> &str {
    size.name.as_deref().filter(|name| !name.is_empty()).unwrap_or(size.id.node())
}

/// Returns the name without characters that identifiers cannot contain, and with the prefix `dim_`
/// if it would clash.
fn cpp_name(name: &str) -> String {
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let is_free = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && !name.ends_with('_')
        && !name.contains("__")
        && !PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        && ![MEMBER_NAMES, TAKEN, RUST_KEYWORDS].iter().any(|taken| taken.contains(&name.as_str()))
        && !is_keyword(&name);
    if is_free {
        return name;
    }
    let words: Vec<&str> = name.split('_').filter(|word| !word.is_empty()).collect();
    format!("dim_{}", words.join("_"))
}

/// Returns the shape of an argument with the names of its dimensions, such as `f32[batch,16]`.
pub fn shape_text(interface: &Interface, argument: &Argument) -> String {
    if argument.named_dimensions.is_empty() {
        return argument.shape.to_string();
    }
    let mut sizes: Vec<String> = argument.shape.sizes().iter().map(i64::to_string).collect();
    for named in &argument.named_dimensions {
        sizes[named.dimension] = graph_name(&interface.arguments()[named.size]).to_owned();
    }
    format!("{}[{}]", argument.shape.element_type, sizes.join(","))
}

/// True sizes of an array: an expression for each dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrueSizes {
    /// One for each dimension.
    pub(crate) dimensions: Vec<String>,
    /// Number of elements from one index of dimension 0 to the next.
    stride: i64,
}

impl TrueSizes {
    /// Returns those of a shape, with expressions for some dimensions.
    pub(crate) fn new(shape: &ArrayShape, expression: impl Fn(usize) -> Option<String>) -> Self {
        let sizes = shape.sizes();
        let dimensions = sizes.iter().enumerate();
        let dimensions = dimensions.map(|(d, size)| expression(d).unwrap_or_else(|| size.to_string()));
        Self { dimensions: dimensions.collect(), stride: sizes.iter().skip(1).product() }
    }

    /// Returns those of an argument with named dimensions; `size` returns the expression of a size.
    pub(crate) fn of_argument(argument: &Argument, size: impl Fn(usize) -> String) -> Option<Self> {
        let named = |d: usize| argument.named_dimensions.iter().find(|named| named.dimension == d);
        let sizes = Self::new(&argument.shape, |d| named(d).map(|named| size(named.size)));
        (!argument.named_dimensions.is_empty()).then_some(sizes)
    }

    /// Returns the number of elements.
    pub(crate) fn count(&self) -> String {
        product(&self.dimensions)
    }

    /// Returns the number of elements, each multiplied by `factor`, from the first one to the end
    /// of dimension 0. Between them may be elements that are not part of the array.
    pub(crate) fn extent(&self, factor: u64) -> String {
        product(&[self.dimensions[0].clone(), self.stride.to_string(), factor.to_string()])
    }
}

/// Multiplies expressions, and numbers among them now.
fn product(factors: &[String]) -> String {
    let numbers = factors.iter().filter_map(|factor| factor.parse::<i64>().ok()).product::<i64>();
    let rest = factors.iter().filter(|factor| factor.parse::<i64>().is_err()).cloned();
    let rest: Vec<String> = rest.collect();
    match (numbers, rest.is_empty()) {
        (0, _) | (_, true) => numbers.to_string(),
        (1, false) => rest.join(" * "),
        (_, false) => format!("{} * {numbers}", rest.join(" * ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hlo::{Identifier, NamedDimension, Role};
    use shape::PrimitiveType;

    fn names(names: &[&str]) -> Vec<String> {
        let scalar = ArrayShape::new(PrimitiveType::S32, &[]);
        let argument = |name: &&str| {
            let id = Identifier::first_of(*name);
            let size = Argument::new(Some((*name).to_owned()), id, scalar.clone(), Role::Feed);
            Argument { range: Some(SizeRange { low: 1, high: 4 }), ..size }
        };
        let interface = Interface::new(names.iter().map(argument).collect(), Vec::new());
        sizes(&interface).into_iter().map(|size| size.name).collect()
    }

    #[test]
    fn names_clash_with_nothing() {
        assert_eq!(names(&["batch", "past_sequence_length", "N"]), ["batch", "past_sequence_length", "N"]);
        let clashing = ["size", "class", "arg_x", "Run", "1", "_b_", "a+b", "type", "results", "threads"];
        let free = clashing.map(cpp_name);
        let expected = ["size", "class", "arg_x", "Run", "1", "b", "", "type", "results", "threads"];
        for (name, expected) in free.iter().zip(expected) {
            assert_eq!(*name, if expected.is_empty() { "a_b".into() } else { format!("dim_{expected}") });
        }
        assert_eq!(names(&["a/b", "a_b", "aB"]), ["a_b", "a_b_2", "aB_3"]);
    }

    #[test]
    fn constants_are_in_camel_case() {
        let size = |name: &str| Size {
            argument: 0,
            graph_name: String::new(),
            name: name.to_owned(),
            range: SizeRange { low: 0, high: 1 },
        };
        assert_eq!(size("past_length").in_camel_case(), "PastLength");
        assert_eq!(size("dim_1").in_camel_case(), "Dim1");
    }

    #[test]
    fn numbers_are_multiplied_and_expressions_are_left() {
        let id = Identifier::first_of("x");
        let mut x = Argument::new(None, id, ArrayShape::new(PrimitiveType::F32, &[8, 4, 3]), Role::Feed);
        assert_eq!(TrueSizes::of_argument(&x, |_| unreachable!()), None);
        x.named_dimensions =
            [(0, 5), (1, 6)].map(|(dimension, size)| NamedDimension { dimension, size }).into();
        let sizes = TrueSizes::of_argument(&x, |argument| format!("size({argument})")).expect("named");
        assert_eq!(sizes.count(), "size(5) * size(6) * 3");
        assert_eq!((sizes.extent(1), sizes.extent(4)), ("size(5) * 12".into(), "size(5) * 48".into()));
        x.named_dimensions.remove(0);
        let sizes = TrueSizes::of_argument(&x, |_| "n".to_owned()).expect("named");
        assert_eq!((sizes.count(), sizes.extent(1)), ("n * 24".to_owned(), "96".to_owned()));
        x.shape = ArrayShape::new(PrimitiveType::F32, &[1, 8]);
        assert_eq!(TrueSizes::of_argument(&x, |_| "n".to_owned()).expect("named").count(), "n");
    }
}
