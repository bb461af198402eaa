//! What the back end knows about a compiled program: all that the header and the metadata object are made from.

use crate::constants_file::LayoutHash;
use crate::cpp_name::{self, CppClass};
use shape::{ArrayShape, ProgramShape};
use support::{Error, Result};

/// A compiled program, without its code.
///
/// Arguments are the entry computation's parameters: feeds in the config's order, then variables in the config's
/// order. Results are the elements of its root tuple: fetches in order, then the new value of each variable that is
/// not read-only, in order. [`Artifact::validate`] holds both to that.
#[derive(Clone, Debug)]
pub struct Artifact {
    /// The C symbol of the compiled function; `<entry_point>_constants` is the symbol of its constants.
    pub entry_point: String,
    /// The class that the header defines.
    pub cpp_class: CppClass,
    /// Feeds, then variables.
    pub arguments: Vec<Argument>,
    /// Fetches, then written variables.
    pub results: Vec<ResultEntry>,
    /// The memory of one object.
    pub memory: MemorySizes,
    /// `Some` if the constants are not in the object but in a file of this layout, which the program loads.
    pub constants_file: Option<LayoutHash>,
    /// Whether the constants are found through the pointer `<entry_point>_constants_pointer`, as those that are too far
    /// from the code for its instructions: `codegen::CompiledModule::large_constants`.
    pub constants_pointer: bool,
    /// The entry computation's shape, whose parameters and result are those above.
    pub program_shape: ProgramShape,
    /// What each 64-bit profile counter counts, the total first. Empty: the code does not count.
    pub profile_counters: Vec<ProfileCounter>,
    /// Where the program comes from, for the metadata.
    pub provenance: Provenance,
}

/// What a counter of a profile counts the time of, and what is done in that time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileCounter {
    /// The instruction as text, or `[total]`.
    pub name: String,
    /// The instruction's name with `%`, or `[total]`.
    pub short_name: String,
    /// The opcode, with the kind of a fusion; empty for the total.
    pub category: String,
    /// Simple arithmetic on elements in one run of the program, all rounds of loops included; 0 where it is not known.
    pub flops: u64,
    /// Evaluations of transcendental functions, likewise.
    pub transcendentals: u64,
    /// Bytes read and written, likewise.
    pub bytes: u64,
}

/// One parameter of the entry computation.
#[derive(Clone, Debug)]
pub struct Argument {
    /// The name that the config gives, if it gives one. Any text; the header mangles what is no C++ identifier.
    pub name: Option<String>,
    /// The graph's name: `x_hold:0` for a feed, the node's name for a variable.
    pub node: String,
    /// Static and row-major.
    pub shape: ArrayShape,
    /// Feed or variable.
    pub kind: ArgumentKind,
}

/// What an argument is to the program that calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    /// A tensor that the caller supplies.
    Feed,
    /// A resource variable whose memory outlives a call.
    Variable {
        /// Whether the computation only reads it. If not, there is a result for it.
        readonly: bool,
    },
}

/// One element of the root tuple.
#[derive(Clone, Debug)]
pub struct ResultEntry {
    /// The name that the config gives, if it gives one.
    pub name: Option<String>,
    /// The graph's name: `y:0` for a fetch, the node's name for a variable.
    pub node: String,
    /// Static and row-major.
    pub shape: ArrayShape,
    /// Fetch or variable.
    pub kind: ResultKind,
}

/// Where a result's memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultKind {
    /// In memory of its own.
    Fetch,
    /// In the memory of an argument, which is a variable that is not read-only.
    Variable {
        /// The argument's index among all arguments.
        argument: usize,
    },
}

/// The memory of one object, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemorySizes {
    /// The block of temporaries, aligned to 64.
    pub temps: u64,
    /// The leading part of `temps` that lives on between calls and must be zero before the first.
    pub persistent_temps: u64,
    /// Scratch memory of each worker, a multiple of 64; worker `w` has the bytes from `w * scratch`.
    pub scratch: u64,
    /// The block of constants, in the object or in a file.
    pub constants: u64,
    /// A bound of the stack that a call takes, from the entry on; 0 if it is not known.
    pub stack: u64,
}

/// Where a program comes from. Only goes into the metadata; nothing here may depend on the machine or the time.
#[derive(Clone, Debug, Default)]
pub struct Provenance {
    /// This tool's version.
    pub tool_version: String,
    /// The LLVM target triple, which also decides the format of the metadata object.
    pub target_triple: String,
    /// The LLVM name of the CPU; empty for the triple's default.
    pub target_cpu: String,
    /// LLVM's list of features, `+avx2,+fma`; may be empty.
    pub target_features: String,
    /// The config as text.
    pub config: String,
    /// The input files' roles (`graph`, `config`) with their SHA-256 in hexadecimal digits.
    pub input_hashes: Vec<(String, String)>,
    /// The names of the kernels in the object, in the order of the schedule.
    pub kernels: Vec<String>,
    /// The processors that the object has code for, if it chooses at run time; else empty.
    pub versions: Vec<String>,
    /// The functions in the object with the bytes of their code.
    pub functions: Vec<(String, u64)>,
}

impl ResultEntry {
    /// The dimensions whose sizes only a run knows; the shape has their bounds.
    pub fn bounded_dimensions(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.shape.rank()).filter(|&d| self.shape.dimensions[d].is_dynamic)
    }
}

impl Artifact {
    /// The number of feeds, which is the index of the first variable.
    pub fn feed_count(&self) -> usize {
        self.arguments.iter().take_while(|a| a.kind == ArgumentKind::Feed).count()
    }

    /// The number of fetches, which is the index of the first written variable's result.
    pub fn fetch_count(&self) -> usize {
        self.results.iter().take_while(|r| r.kind == ResultKind::Fetch).count()
    }

    /// The feeds, in order.
    pub fn feeds(&self) -> &[Argument] {
        &self.arguments[..self.feed_count()]
    }

    /// The variables, in order.
    pub fn variables(&self) -> &[Argument] {
        &self.arguments[self.feed_count()..]
    }

    /// How many sizes of bounded dimensions a run reports: those of each fetch in turn.
    pub fn dynamic_size_count(&self) -> usize {
        self.fetches().iter().map(|fetch| fetch.bounded_dimensions().count()).sum()
    }

    /// The position among these sizes of the first one of a fetch.
    pub fn first_dynamic_size(&self, fetch: usize) -> usize {
        self.fetches()[..fetch].iter().map(|fetch| fetch.bounded_dimensions().count()).sum()
    }

    /// The fetches, in order.
    pub fn fetches(&self) -> &[ResultEntry] {
        &self.results[..self.fetch_count()]
    }

    /// For each variable the index of its result, or `None` if it is read-only.
    pub fn variable_results(&self) -> Vec<Option<usize>> {
        let result_of =
            |argument: usize| self.results.iter().position(|r| r.kind == ResultKind::Variable { argument });
        (self.feed_count()..self.arguments.len()).map(result_of).collect()
    }

    /// Checks everything that the header and the runtime rely on. A failure is a defect of the stages before,
    /// except for names and shapes that C++ cannot express.
    pub fn validate(&self) -> Result<()> {
        cpp_name::validate_entry_point(&self.entry_point)?;
        cpp_name::validate_distinct(&self.cpp_class, &self.entry_point)?;
        self.validate_order()?;
        self.validate_aliases()?;
        for argument in &self.arguments {
            validate_static(&argument.shape, &argument.node)?;
            validate_shape(&argument.shape, &argument.node)?;
        }
        for result in &self.results {
            if result.kind != ResultKind::Fetch {
                validate_static(&result.shape, &result.node)?;
            }
            validate_shape(&result.shape, &result.node)?;
        }
        if self.memory.persistent_temps > self.memory.temps {
            return Err(Error::internal("the persistent temps are larger than all temps"));
        }
        if !self.memory.scratch.is_multiple_of(64) {
            return Err(Error::internal("the scratch size is no multiple of 64"));
        }
        self.validate_program_shape()
    }

    fn validate_order(&self) -> Result<()> {
        if self.variables().iter().any(|a| a.kind == ArgumentKind::Feed) {
            return Err(Error::internal("a feed stands behind a variable in the arguments"));
        }
        if self.results[self.fetch_count()..].iter().any(|r| r.kind == ResultKind::Fetch) {
            return Err(Error::internal("a fetch stands behind a variable in the results"));
        }
        Ok(())
    }

    /// Written variables and the results behind the fetches correspond one to one, in order.
    fn validate_aliases(&self) -> Result<()> {
        let written: Vec<usize> = (0..self.arguments.len())
            .filter(|&i| self.arguments[i].kind == ArgumentKind::Variable { readonly: false })
            .collect();
        let results = &self.results[self.fetch_count()..];
        if written.len() != results.len() {
            return Err(Error::internal(format!(
                "{} variables are written, but {} results are variables",
                written.len(),
                results.len()
            )));
        }
        for (&argument, result) in written.iter().zip(results) {
            if result.kind != (ResultKind::Variable { argument }) {
                return Err(Error::internal(format!(
                    "the result of variable '{}' is not where its position in the arguments puts it",
                    self.arguments[argument].node
                )));
            }
            if result.shape != self.arguments[argument].shape {
                return Err(Error::internal(format!(
                    "variable '{}' is {} but its new value is {}",
                    self.arguments[argument].node, self.arguments[argument].shape, result.shape
                )));
            }
        }
        Ok(())
    }

    fn validate_program_shape(&self) -> Result<()> {
        let (feeds, variables) = (self.feed_count(), self.arguments.len() - self.feed_count());
        if self.program_shape.parameters.len() != self.arguments.len() {
            return Err(Error::internal(format!(
                "mismatch between feed_size({feeds})+variable_size({variables}) and num_args({})",
                self.program_shape.parameters.len()
            )));
        }
        let elements = self.program_shape.result.as_tuple().map(<[_]>::len);
        if elements != Some(self.results.len()) {
            return Err(Error::internal(format!(
                "mismatch between fetch_size({})+variable_size({}) and tuple_size({elements:?})",
                self.fetch_count(),
                self.results.len() - self.fetch_count()
            )));
        }
        Ok(())
    }
}

/// Only fetches may be bounded.
fn validate_static(shape: &ArrayShape, node: &str) -> Result<()> {
    if !shape.is_static() {
        return Err(Error::unsupported(format!(
            "'{node}' has the bounded shape {shape}: feed it, or keep it in a variable, with a size that is known"
        )));
    }
    Ok(())
}

fn validate_shape(shape: &ArrayShape, node: &str) -> Result<()> {
    if !shape.is_row_major() {
        return Err(Error::internal(format!(
            "'{node}' has the layout of {shape}: callers see row-major arrays"
        )));
    }
    if shape.byte_size() > i64::MAX as u64 {
        return Err(Error::invalid(format!("'{node}' has shape {shape}, which is larger than any memory")));
    }
    Ok(())
}
