//! What the back end knows about a compiled program: all that the header and the metadata object are made from.

use crate::constants_file::LayoutHash;
use crate::cpp_name::{self, CppClass};
use hlo::{Identifier, Interface, Origin, Role};
use shape::ArrayShape;
use support::{Error, Result};

/// The names and shapes of a program, which are known before its code.
///
/// Arguments are feeds, then variables. Results are fetches, then the new value of each variable that is not read-only, in the
/// order of the variables and in their memory. [`Signature::validate`] holds both to that.
#[derive(Clone, Copy, Debug)]
pub struct Signature<'a> {
    /// The C symbol of the compiled function; `<entry_point>_constants` is the symbol of its constants.
    pub entry_point: &'a str,
    /// The class that the header defines.
    pub cpp_class: &'a CppClass,
    /// The arguments and results.
    pub interface: &'a Interface,
}

/// A compiled program, without its code. The first three fields are its [`Signature`].
#[derive(Clone, Debug)]
pub struct Artifact {
    /// The C symbol of the compiled function; `<entry_point>_constants` is the symbol of its constants.
    pub entry_point: String,
    /// The class that the header defines.
    pub cpp_class: CppClass,
    /// The arguments and results.
    pub interface: Interface,
    /// The memory of one object.
    pub memory: MemorySizes,
    /// `Some` if the constants are not in the object but in a file of this layout, which the program loads.
    pub constants_file: Option<LayoutHash>,
    /// Whether the constants are found through the pointer `<entry_point>_constants_pointer`, as those that are too far
    /// from the code for its instructions: `codegen::CompiledModule::large_constants`.
    pub constants_pointer: bool,
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
#[derive(Clone, Debug)]
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

impl Artifact {
    /// The names and shapes.
    pub fn signature(&self) -> Signature<'_> {
        let Self { entry_point, cpp_class, interface, .. } = self;
        Signature { entry_point, cpp_class, interface }
    }

    /// Checks everything that the header and the runtime rely on. A failure is a defect of the stages before,
    /// except for names and shapes that C++ cannot express.
    pub fn validate(&self) -> Result<()> {
        self.signature().validate()?;
        if self.memory.persistent_temps > self.memory.temps {
            return Err(Error::internal("the persistent temps are larger than all temps"));
        }
        if !self.memory.scratch.is_multiple_of(64) {
            return Err(Error::internal("the scratch size is no multiple of 64"));
        }
        Ok(())
    }
}

impl Signature<'_> {
    /// Checks what does not depend on the code. Fails as [`Artifact::validate`] does.
    pub fn validate(&self) -> Result<()> {
        cpp_name::validate_entry_point(self.entry_point)?;
        cpp_name::validate_distinct(self.cpp_class, self.entry_point)?;
        self.validate_order()?;
        self.validate_aliases()?;
        for argument in self.interface.arguments() {
            validate_static(&argument.shape, &argument.id)?;
            validate_shape(&argument.shape, &argument.id)?;
        }
        for result in self.interface.results() {
            if result.origin != Origin::Fetch {
                validate_static(&result.shape, &result.id)?;
            }
            validate_shape(&result.shape, &result.id)?;
        }
        Ok(())
    }

    fn validate_order(&self) -> Result<()> {
        if self.interface.variables().iter().any(|argument| argument.role == Role::Feed) {
            return Err(Error::internal("a feed stands behind a variable in the arguments"));
        }
        let new_values = &self.interface.results()[self.interface.fetches().len()..];
        if new_values.iter().any(|result| result.origin == Origin::Fetch) {
            return Err(Error::internal("a fetch stands behind a variable in the results"));
        }
        Ok(())
    }

    /// Each result after the fetches is the new value of a variable, and takes its memory; they have the order of the
    /// variables.
    fn validate_aliases(&self) -> Result<()> {
        let arguments = self.interface.arguments();
        let mut next = self.interface.feed_count();
        for result in &self.interface.results()[self.interface.fetches().len()..] {
            let place = result.alias.filter(|&argument| argument >= next);
            let variable = place.and_then(|argument| arguments.get(argument));
            let Some(variable) = variable.filter(|variable| variable.id == result.id) else {
                return Err(Error::internal(format!(
                    "the result of variable '{}' is not where its position in the arguments puts it",
                    result.id
                )));
            };
            if result.shape != variable.shape {
                return Err(Error::internal(format!(
                    "variable '{}' is {} but its new value is {}",
                    variable.id, variable.shape, result.shape
                )));
            }
            next = place.map_or(next, |argument| argument + 1);
        }
        Ok(())
    }
}

/// Only fetches may be bounded.
fn validate_static(shape: &ArrayShape, id: &Identifier) -> Result<()> {
    if !shape.is_static() {
        return Err(Error::unsupported(format!(
            "'{id}' has the bounded shape {shape}: feed it, or keep it in a variable, with a size that is known"
        )));
    }
    Ok(())
}

fn validate_shape(shape: &ArrayShape, id: &Identifier) -> Result<()> {
    if !shape.is_row_major() {
        return Err(Error::internal(format!(
            "'{id}' has the layout of {shape}: callers see row-major arrays"
        )));
    }
    if shape.byte_size() > i64::MAX as u64 {
        return Err(Error::invalid(format!("'{id}' has shape {shape}, which is larger than any memory")));
    }
    Ok(())
}
