//! The interface of a program: the arrays that it takes and returns, for every front end.
//!
//! This module is the only place that implements two rules about results: which argument's memory a
//! result uses, and which additional results hold the true sizes of bounded dimensions.

mod batch;
mod named;

pub use named::{NamedDimension, SizeRange, named_dimensions};

use crate::module::{AliasKind, BoundedDimension, InputOutputAlias, Module, SizeParameter};
use shape::{ArrayShape, ProgramShape, Quantization, Shape};
use std::collections::BTreeSet;
use std::fmt;
use support::{Error, Result};

/// A program: its HLO, and its interface.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The HLO. The entry takes the interface's arguments and returns a tuple that begins with its
    /// results.
    pub module: Module,
    /// The arguments and results.
    pub interface: Interface,
    /// The same program for fixed sizes of its only named dimension, in ascending order, if it is
    /// the leading dimension of arrays whose rows are independent. Their parameters are those of
    /// `module` without the size.
    pub sized: Vec<SizedModule>,
    /// The same program for particular sizes of some of its named dimensions. A run of these sizes
    /// takes the first one that fits, and other runs take `module`. Empty if `sized` is not.
    pub exact: Vec<ExactModule>,
}

/// A program's HLO for a fixed size of a named dimension.
#[derive(Clone, Debug, PartialEq)]
pub struct SizedModule {
    /// The size, at least 1.
    pub size: i64,
    /// True if there must be code for this size: it is the smallest one, or the user's choice.
    pub is_required: bool,
    /// The HLO.
    pub module: Module,
}

/// A program's HLO for particular sizes of some named dimensions.
#[derive(Clone, Debug, PartialEq)]
pub struct ExactModule {
    /// The numbers of the arguments that hold these sizes, and the sizes.
    pub sizes: Vec<(usize, i64)>,
    /// The HLO. Its parameters and results are those of the whole program; it reads and writes no
    /// elements beyond the sizes.
    pub module: Module,
}

impl Program {
    /// Returns a program of one module.
    pub fn new(module: Module, interface: Interface) -> Self {
        Self { module, interface, sized: Vec::new(), exact: Vec::new() }
    }
}

/// The identifier of an array in the source of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identifier {
    /// An output of a node. A source with a single output, such as an argument of an HLO program,
    /// is output 0.
    Output {
        /// The node's name.
        node: String,
        /// The number of the output.
        index: i64,
    },
    /// A variable, by its node's name.
    Variable(String),
}

/// The role of an argument for the caller of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// An array that the caller supplies.
    Feed,
    /// State that outlives a call. It is written if a result uses its memory.
    Variable,
}

/// An argument: a parameter of the entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// The name from the user, if any; it can be any text.
    pub name: Option<String>,
    /// Its identifier in the source.
    pub id: Identifier,
    /// Its type and sizes.
    pub shape: ArrayShape,
    /// Feed or variable.
    pub role: Role,
    /// The real numbers that its integers stand for, if they are quantized with one scale.
    pub quantization: Option<Quantization>,
    /// The range of its value, if it is the size of a named dimension: an `s32[]` with the
    /// dimension's name. Such feeds follow all others.
    pub range: Option<SizeRange>,
    /// Its named dimensions, in order. Its shape has their bounds; elements beyond their sizes are
    /// not read.
    pub named_dimensions: Vec<NamedDimension>,
}

/// The origin of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Requested by the user.
    Fetch,
    /// Compared by one of the program's checks.
    Check,
    /// New value of a variable.
    Variable,
}

/// The true size of a bounded dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrueSize {
    /// The dimension.
    pub dimension: usize,
    /// The position of the size among all sizes that a run reports, which follow the interface's
    /// results.
    pub index: usize,
}

/// A result: an element of the tuple that the entry returns.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// The name from the user, if any.
    pub name: Option<String>,
    /// Its identifier in the source.
    pub id: Identifier,
    /// Its type and sizes; bounded dimensions have their bounds.
    pub shape: ArrayShape,
    /// The origin.
    pub origin: Origin,
    /// The argument whose memory it uses; `None` if it has separate memory.
    pub alias: Option<usize>,
    /// The real numbers that its integers stand for, if they are quantized with one scale.
    pub quantization: Option<Quantization>,
    sizes: Vec<TrueSize>,
}

/// The arguments and results of a program, in the order of the entry's parameters and results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interface {
    arguments: Vec<Argument>,
    results: Vec<Output>,
}

impl Identifier {
    /// Returns the only or first output of a node.
    pub fn first_of(node: impl Into<String>) -> Self {
        Self::Output { node: node.into(), index: 0 }
    }

    /// Returns the node's name.
    pub fn node(&self) -> &str {
        match self {
            Self::Output { node, .. } | Self::Variable(node) => node,
        }
    }

    /// Returns the shortest text that identifies it: the node's name, with the number of the output
    /// unless it is 0.
    pub fn short(&self) -> String {
        match self {
            Self::Output { node, index } if *index != 0 => format!("{node}:{index}"),
            _ => self.node().to_owned(),
        }
    }

    /// Returns the node's name with the number of the output; a variable counts as output 0.
    pub fn long(&self) -> String {
        let index = if let Self::Output { index, .. } = self { *index } else { 0 };
        format!("{}:{index}", self.node())
    }
}

impl fmt::Display for Identifier {
    /// `node:0`; a variable's node alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output { node, index } => write!(f, "{node}:{index}"),
            Self::Variable(node) => f.write_str(node),
        }
    }
}

impl Role {
    /// Returns the role's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Feed => "feed",
            Self::Variable => "variable",
        }
    }
}

impl Argument {
    /// Returns an argument that is not quantized.
    pub fn new(name: Option<String>, id: Identifier, shape: ArrayShape, role: Role) -> Self {
        Self { name, id, shape, role, quantization: None, range: None, named_dimensions: Vec::new() }
    }

    /// Returns its sizes in a run with these values of all arguments that are sizes, by argument.
    pub fn true_sizes(&self, size_of: impl Fn(usize) -> i64) -> Vec<i64> {
        let mut sizes = self.shape.sizes();
        for &NamedDimension { dimension, size } in &self.named_dimensions {
            sizes[dimension] = size_of(size);
        }
        sizes
    }

    /// Returns the user's name for it, or else its identifier.
    pub fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.id.to_string())
    }

    /// True if `text` is the user's name for it or identifies it.
    pub fn is_called(&self, text: &str) -> bool {
        self.name.as_deref() == Some(text) || self.id.short() == text || self.id.long() == text
    }
}

impl Output {
    /// Returns a result with separate memory.
    pub fn new(name: Option<String>, id: Identifier, shape: ArrayShape, origin: Origin) -> Self {
        Self { name, id, shape, origin, alias: None, quantization: None, sizes: Vec::new() }
    }

    /// Returns the new value of a variable, which uses the memory of the argument with the same
    /// identifier, and has its quantization.
    pub fn new_value(
        name: Option<String>,
        id: Identifier,
        shape: ArrayShape,
        arguments: &[Argument],
    ) -> Self {
        let alias = arguments.iter().position(|argument| argument.id == id);
        let quantization = alias.and_then(|argument| arguments[argument].quantization);
        Self { alias, quantization, ..Self::new(name, id, shape, Origin::Variable) }
    }

    /// Returns the user's name for it, or else its identifier.
    pub fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.id.to_string())
    }

    /// Returns the true sizes of its bounded dimensions, in the order of the dimensions.
    pub fn sizes(&self) -> &[TrueSize] {
        &self.sizes
    }

    /// Returns, for each dimension, the position of its true size among those that a run reports;
    /// `None` for a static dimension.
    pub fn size_indices(&self) -> Vec<Option<usize>> {
        let index = |d: usize| self.sizes.iter().find(|size| size.dimension == d).map(|size| size.index);
        (0..self.shape.rank()).map(index).collect()
    }

    /// Returns its sizes in a run that reported these true sizes.
    pub fn true_sizes(&self, reported: &[i64]) -> Vec<i64> {
        let mut sizes = self.shape.sizes();
        self.sizes.iter().for_each(|size| sizes[size.dimension] = reported[size.index]);
        sizes
    }

    /// Returns the shape of its memory, in which every dimension is as large as its bound.
    pub fn whole(&self) -> ArrayShape {
        let mut shape = self.shape.clone();
        shape.dimensions.iter_mut().for_each(|dimension| dimension.is_dynamic = false);
        shape
    }
}

impl Interface {
    /// Returns the interface with these arguments and results. A run reports the true sizes of all
    /// bounded dimensions in the order of the results.
    pub fn new(arguments: Vec<Argument>, mut results: Vec<Output>) -> Self {
        let shapes: Vec<Option<&ArrayShape>> = results.iter().map(|result| Some(&result.shape)).collect();
        let bounded = bounded_dimensions(&shapes);
        results.iter_mut().for_each(|result| result.sizes.clear());
        for (index, BoundedDimension { result, dimension }) in bounded.into_iter().enumerate() {
            results[result].sizes.push(TrueSize { dimension, index });
        }
        Self { arguments, results }
    }

    /// Returns the interface of a module without further information, imported or optimized:
    /// arguments have the names of the parameters, and those whose memory a result uses are
    /// variables. Returns an error if an argument or result is not an array.
    pub fn of_module(module: &Module) -> Result<Self> {
        let signature = module.entry_computation().program_shape();
        let array = |shape: &Shape| {
            let array = shape.as_array().cloned();
            array.ok_or_else(|| {
                Error::unsupported(format!("an argument or result of shape {shape} is not supported"))
            })
        };
        let elements = signature.result.as_tuple().unwrap_or(std::slice::from_ref(&signature.result));
        let alias = |k: usize| Some(module.alias_of(&[k])?.parameter_number);
        let aliases: Vec<Option<usize>> = (0..module.result_count()).map(alias).collect();
        let identifier = |argument: usize| {
            let name = signature.parameter_names[argument].clone();
            if aliases.contains(&Some(argument)) {
                Identifier::Variable(name)
            } else {
                Identifier::first_of(name)
            }
        };
        let mut arguments = Vec::with_capacity(signature.parameters.len());
        for (k, shape) in signature.parameters.iter().enumerate() {
            let id = identifier(k);
            let role = if matches!(id, Identifier::Variable(_)) { Role::Variable } else { Role::Feed };
            arguments.push(Argument::new(None, id, array(shape)?, role));
        }
        set_ranges(&mut arguments, module);
        for (argument, named) in named_dimensions(module) {
            arguments[argument].named_dimensions.push(named);
        }
        let mut results = Vec::with_capacity(aliases.len());
        for (k, (shape, alias)) in elements.iter().zip(&aliases).enumerate() {
            let shape = array(shape)?;
            results.push(match alias {
                Some(argument) => Output::new_value(None, identifier(*argument), shape, &arguments),
                None => Output::new(None, Identifier::first_of(format!("result{k}")), shape, Origin::Fetch),
            });
        }
        if module.bounded_dimensions().is_empty() {
            return Ok(Self::new(arguments, results));
        }
        for (index, &BoundedDimension { result, dimension }) in module.bounded_dimensions().iter().enumerate()
        {
            results[result].shape.dimensions[dimension].is_dynamic = true;
            results[result].sizes.push(TrueSize { dimension, index });
        }
        Ok(Self { arguments, results })
    }

    /// Returns the interface of a function of unnamed arrays.
    pub fn of_arrays(
        arguments: impl IntoIterator<Item = ArrayShape>,
        results: impl IntoIterator<Item = ArrayShape>,
    ) -> Self {
        let argument = |(k, shape): (usize, ArrayShape)| {
            let id = Identifier::first_of(format!("arg{k}"));
            Argument::new(None, id, shape, Role::Feed)
        };
        let result = |(k, shape): (usize, ArrayShape)| {
            Output::new(None, Identifier::first_of(format!("result{k}")), shape, Origin::Fetch)
        };
        Self::new(
            arguments.into_iter().enumerate().map(argument).collect(),
            results.into_iter().enumerate().map(result).collect(),
        )
    }

    /// Returns the interface of a module with names for its arguments and results, each converted
    /// to a unique C identifier. Further results are compared by checks, two by each.
    pub fn with_names(module: &Module, arguments: &[String], results: &[String]) -> Result<Self> {
        let mut interface = Self::of_module(module)?;
        for (argument, name) in interface.arguments.iter_mut().zip(identifiers(arguments)) {
            argument.id = Identifier::first_of(name.as_str());
            argument.name = Some(name);
        }
        let sides = ["actual", "expected"];
        let check_names = (0..).flat_map(|check| sides.map(|side| format!("check{check}_{side}")));
        let names = identifiers(results).into_iter().chain(check_names);
        for (k, (result, name)) in interface.results.iter_mut().zip(names).enumerate() {
            result.id = Identifier::first_of(name.as_str());
            result.name = Some(name);
            result.origin = if k < results.len() { Origin::Fetch } else { Origin::Check };
        }
        Ok(interface)
    }

    /// Returns the arguments: feeds, then variables.
    pub fn arguments(&self) -> &[Argument] {
        &self.arguments
    }

    /// Returns the results: fetches, then the values that checks compare, then new values of
    /// variables.
    pub fn results(&self) -> &[Output] {
        &self.results
    }

    /// Returns the feeds that are sizes of named dimensions, each with its position and its range.
    pub fn sizes(&self) -> impl Iterator<Item = (usize, &Argument, SizeRange)> {
        let range = |(k, argument): (usize, &'_ Argument)| argument.range.map(|range| (k, range));
        let known: Vec<(usize, SizeRange)> = self.arguments.iter().enumerate().filter_map(range).collect();
        known.into_iter().map(|(k, range)| (k, &self.arguments[k], range))
    }

    /// Marks the arguments that are sizes of named dimensions in a module.
    pub fn set_sizes(&mut self, module: &Module) {
        set_ranges(&mut self.arguments, module);
    }

    /// Returns the arguments before the first variable.
    pub fn feeds(&self) -> &[Argument] {
        &self.arguments[..self.feed_count()]
    }

    /// Returns the arguments from the first variable on.
    pub fn variables(&self) -> &[Argument] {
        &self.arguments[self.feed_count()..]
    }

    /// Returns the results that the user requested.
    pub fn fetches(&self) -> &[Output] {
        let count = self.results.iter().take_while(|result| result.origin == Origin::Fetch).count();
        &self.results[..count]
    }

    /// Number of feeds, which is also the position of the first variable.
    pub fn feed_count(&self) -> usize {
        self.arguments.iter().take_while(|argument| argument.role == Role::Feed).count()
    }

    /// Returns the results with separate memory.
    pub fn own_results(&self) -> impl Iterator<Item = &Output> {
        self.results.iter().filter(|result| result.alias.is_none())
    }

    /// Returns the result that uses an argument's memory: its new value.
    pub fn new_value(&self, argument: usize) -> Option<usize> {
        self.results.iter().position(|result| result.alias == Some(argument))
    }

    /// Number of true sizes that a run reports.
    pub fn size_count(&self) -> usize {
        self.results.iter().map(|result| result.sizes.len()).sum()
    }

    /// Returns the parameters whose memory results use, in the form of a module's aliases.
    pub fn input_output_alias(&self) -> Vec<InputOutputAlias> {
        let alias = |(k, result): (usize, &Output)| {
            Some(InputOutputAlias {
                output_index: vec![k],
                parameter_number: result.alias?,
                parameter_index: Vec::new(),
                kind: AliasKind::Must,
            })
        };
        self.results.iter().enumerate().filter_map(alias).collect()
    }

    /// Returns the shape of the program, without the sizes that a run reports. Parameters have the
    /// user's names, or else those of their nodes.
    pub fn program_shape(&self) -> ProgramShape {
        let name = |argument: &Argument| argument.name.as_deref().unwrap_or(argument.id.node()).to_owned();
        ProgramShape {
            parameters: self.arguments.iter().map(|argument| argument.shape.clone().into()).collect(),
            parameter_names: self.arguments.iter().map(name).collect(),
            result: Shape::Tuple(self.results.iter().map(|result| result.shape.clone().into()).collect()),
        }
    }

    /// Returns the names of the results: the user's, or else the shortest identifiers.
    pub fn result_names(&self) -> Vec<String> {
        let name = |result: &Output| result.name.clone().unwrap_or_else(|| result.id.short());
        self.results.iter().map(name).collect()
    }
}

impl Module {
    /// Number of the entry's results. The remaining elements of its tuple are the true sizes of
    /// bounded dimensions.
    pub fn result_count(&self) -> usize {
        let entry = self.entry_computation();
        let elements = entry[entry.root()].shape().as_tuple().map_or(1, <[Shape]>::len);
        elements.saturating_sub(self.bounded_dimensions().len())
    }

    /// Returns the alias of the array at a path of the entry's result.
    pub fn alias_of(&self, output_index: &[usize]) -> Option<&InputOutputAlias> {
        self.input_output_alias().iter().find(|alias| alias.output_index == output_index)
    }
}

fn set_ranges(arguments: &mut [Argument], module: &Module) {
    for &SizeParameter { parameter, low, high } in module.size_parameters() {
        arguments[parameter].range = Some(SizeRange { low, high });
    }
}

/// Returns the bounded dimensions of results, in the order in which a run reports their true sizes.
/// `None` is a result that is not an array.
pub fn bounded_dimensions(results: &[Option<&ArrayShape>]) -> Vec<BoundedDimension> {
    let of_result = |(result, shape): (usize, &Option<&ArrayShape>)| {
        let dimensions = shape.iter().flat_map(|shape| shape.dimensions.iter().enumerate());
        let dynamic = dimensions.filter(|(_, dimension)| dimension.is_dynamic);
        dynamic.map(|(dimension, _)| BoundedDimension { result, dimension }).collect::<Vec<_>>()
    };
    results.iter().enumerate().flat_map(of_result).collect()
}

/// Converts names to unique C identifiers.
fn identifiers(names: &[String]) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let mut list = Vec::new();
    for name in names {
        let stem: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let stem = stem.trim_matches('_');
        let mut name = match stem.chars().next() {
            Some(first) if first.is_ascii_alphabetic() => stem.to_owned(),
            _ => format!("arg{stem}"),
        };
        while !taken.insert(name.clone()) {
            name.push_str("_1");
        }
        list.push(name);
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use shape::PrimitiveType;

    /// A result with bounded rows in separate memory, and one that replaces the second argument.
    const TEXT: &str = "HloModule m, input_output_alias={ {1}: (1, {}, must-alias) }\n\n\
        ENTRY e {\n  x = f32[4,2] parameter(0)\n  v = s32[] parameter(1)\n  \
        rows = f32[<=4,2] set-dimension-size(x, v), dimensions={0}\n  ROOT r = (f32[<=4,2], s32[]) tuple(rows, v)\n}\n";

    #[test]
    fn a_module_has_the_same_interface_before_and_after_sizes_are_results() {
        let module = crate::parse(TEXT).expect("a module");
        let interface = Interface::of_module(&module).expect("arrays");
        let optimized = TEXT
            .replace("must-alias) }", "must-alias) }, bounded_dimensions={ (0, 0) }")
            .replace(
                "ROOT r = (f32[<=4,2], s32[]) tuple(rows, v)",
                "n = s64[] convert(v)\n  ROOT r = (f32[4,2], s32[], s64[]) tuple(x, v, n)",
            )
            .replace("rows = f32[<=4,2] set-dimension-size(x, v), dimensions={0}\n  ", "");
        let Ok(optimized) = crate::parse(&optimized) else { panic!("{optimized}") };
        assert_eq!(Interface::of_module(&optimized).expect("arrays"), interface);
        assert_eq!(optimized.result_count(), 2);
        assert_eq!(interface.results()[0].sizes(), [TrueSize { dimension: 0, index: 0 }]);
        assert_eq!(interface.results()[0].true_sizes(&[3]), [3, 2]);
        assert_eq!((interface.new_value(0), interface.new_value(1)), (None, Some(1)));
        assert_eq!(interface.arguments()[1].role, Role::Variable);
        assert_eq!(interface.input_output_alias(), module.input_output_alias());
    }

    #[test]
    fn arguments_have_the_named_dimensions_that_the_entry_sets() {
        let text = "HloModule m, size_parameters={ (1, 1, 4) }\n\nENTRY e {\n  x = f32[2,4,4] parameter(0)\n  \
            n = s32[] parameter(1)\n  a = f32[2,<=4,4] set-dimension-size(x, n), dimensions={1}\n  \
            b = f32[2,<=4,<=4] set-dimension-size(a, n), dimensions={2}\n  \
            ROOT r = (f32[2,<=4,<=4]) tuple(b)\n}\n";
        let module = crate::parse(text).expect("a module");
        let interface = Interface::of_module(&module).expect("arrays");
        let sizes: Vec<_> = interface.sizes().map(|(k, size, range)| (k, size.label(), range)).collect();
        assert_eq!(sizes, [(1, "n:0".to_owned(), SizeRange { low: 1, high: 4 })]);
        let x = &interface.arguments()[0];
        assert_eq!(x.named_dimensions, [1, 2].map(|dimension| NamedDimension { dimension, size: 1 }));
        assert_eq!(x.true_sizes(|_| 3), [2, 3, 3]);
        assert!(sizes[0].2.contains(4) && !sizes[0].2.contains(0));
    }

    #[test]
    fn true_sizes_are_numbered_in_the_order_of_the_results() {
        let bounded = |sizes: &[i64], dynamic: &[usize]| {
            let mut shape = ArrayShape::new(PrimitiveType::F32, sizes);
            dynamic.iter().for_each(|&d| shape.dimensions[d].is_dynamic = true);
            Output::new(None, Identifier::first_of("y"), shape, Origin::Fetch)
        };
        let results = vec![bounded(&[2, 3], &[1]), bounded(&[5], &[]), bounded(&[4, 4], &[0, 1])];
        let interface = Interface::new(Vec::new(), results);
        let indices: Vec<_> = interface.results().iter().map(Output::size_indices).collect();
        assert_eq!(indices, [vec![None, Some(0)], vec![None], vec![Some(1), Some(2)]]);
        assert_eq!(interface.size_count(), 3);
        assert!(interface.results()[2].whole().is_static());
    }

    #[test]
    fn identifiers_are_found_with_and_without_their_output() {
        let [first, second] = [0, 1].map(|index| Identifier::Output { node: "x".to_owned(), index });
        let matches = |id: &Identifier, text: &str| {
            let shape = ArrayShape::new(PrimitiveType::F32, &[]);
            Argument::new(Some("mine".to_owned()), id.clone(), shape, Role::Feed).is_called(text)
        };
        assert!(matches(&first, "x") && matches(&first, "x:0") && matches(&first, "mine"));
        assert!(!matches(&first, "x:1") && !matches(&first, "xy"));
        assert!(!matches(&second, "x") && matches(&second, "x:1"));
        assert_eq!((first.short(), second.short()), ("x".to_owned(), "x:1".to_owned()));
        let variable = Identifier::Variable("v".to_owned());
        assert!(matches(&variable, "v") && matches(&variable, "v:0"));
        assert_eq!(variable.to_string(), "v");
    }

    #[test]
    fn names_become_unique_identifiers() {
        let names = ["x", "x", "1", "a.b", "_c_"].map(str::to_owned);
        assert_eq!(identifiers(&names), ["x", "x_1", "arg1", "a_b", "c"]);
    }
}
