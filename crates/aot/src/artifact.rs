//! Description of a compiled program: the input of the header and metadata generators.

use crate::constants_file::LayoutHash;
use crate::cpp_name::{self, CppClass};
use hlo::{Identifier, Interface, Origin, Role};
use shape::ArrayShape;
use std::fmt;
use support::{Error, Result};

/// Names and shapes of a program, which are known before its code.
///
/// Arguments are feeds, then variables. Results are fetches, then the new value of each variable
/// that is not read-only, in the order of the variables. A new value shares its variable's memory.
/// [`Signature::validate`] checks both.
#[derive(Clone, Copy, Debug)]
pub struct Signature<'a> {
    /// C symbol of the compiled function. `<entry_point>_constants` is the symbol of its constants.
    pub entry_point: &'a str,
    /// Class that the header defines.
    pub cpp_class: &'a CppClass,
    /// Arguments and results.
    pub interface: &'a Interface,
}

/// A compiled program without its code. The first three fields are its [`Signature`].
#[derive(Clone, Debug)]
pub struct Artifact {
    /// C symbol of the compiled function. `<entry_point>_constants` is the symbol of its constants.
    pub entry_point: String,
    /// Class that the header defines.
    pub cpp_class: CppClass,
    /// Arguments and results.
    pub interface: Interface,
    /// Memory of one instance.
    pub memory: MemorySizes,
    /// Layout of the constants file that the program loads, or `None` if the constants are in the
    /// object.
    pub constants_file: Option<LayoutHash>,
    /// True if the program reaches its constants through the pointer
    /// `<entry_point>_constants_pointer` because they may be too far from the code for its
    /// instructions; see `codegen::CompiledModule::large_constants`.
    pub constants_pointer: bool,
    /// Description of each 64-bit profile counter, the total first. Empty if the code does not
    /// count.
    pub profile_counters: Vec<ProfileCounter>,
    /// GPUs that run the program; `None` if the processor does. `memory` is then the device's.
    pub device: Option<DeviceTarget>,
    /// Origin of the program, for the metadata.
    pub provenance: Provenance,
}

/// Driver that runs a program on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceDriver {
    /// NVIDIA's.
    Cuda,
    /// An OpenCL driver that takes SPIR-V.
    OpenCl,
}

/// GPUs that a program has code for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceTarget {
    /// The driver.
    pub driver: DeviceDriver,
    /// NVIDIA's names of the architectures, such as `sm_80`, the least capable one first. Empty for
    /// OpenCL.
    pub architectures: Vec<String>,
}

impl DeviceDriver {
    /// The name for users: `cuda` or `opencl`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cuda => "cuda",
            Self::OpenCl => "opencl",
        }
    }

    /// The enumerator of `tfcompile/device.h`.
    pub(crate) const fn enumerator(self) -> &'static str {
        match self {
            Self::Cuda => "TFCOMPILE_DEVICE_CUDA",
            Self::OpenCl => "TFCOMPILE_DEVICE_OPENCL",
        }
    }
}

/// The instruction that a profile counter measures, and the work that it does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileCounter {
    /// The instruction as text, or `[total]`.
    pub name: String,
    /// The instruction's name with `%`, or `[total]`.
    pub short_name: String,
    /// The opcode, with the kind of a fusion; empty for the total.
    pub category: String,
    /// Simple arithmetic operations on elements in one run, including all loop iterations; 0 if
    /// unknown.
    pub flops: u64,
    /// Evaluations of transcendental functions, counted likewise.
    pub transcendentals: u64,
    /// Bytes read and written, counted likewise.
    pub bytes: u64,
}

/// Memory of one instance, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemorySizes {
    /// Block of temporaries, aligned to 64 bytes.
    pub temps: u64,
    /// Leading part of `temps` that persists between calls and must be zero before the first call.
    pub persistent_temps: u64,
    /// Scratch memory per worker, a multiple of 64. Worker `w` uses the bytes from `w * scratch`.
    pub scratch: u64,
    /// Block of constants, in the object or in a file.
    pub constants: u64,
    /// Upper bound of the stack that a call uses, including the entry's frame; 0 if unknown.
    pub stack: u64,
}

/// Origin of a program. Used only in the metadata. No field may depend on the machine or the time.
#[derive(Clone, Debug)]
pub struct Provenance {
    /// Version of this tool.
    pub tool_version: String,
    /// LLVM target triple, which also determines the format of the metadata object.
    pub target_triple: String,
    /// LLVM name of the CPU; empty for the triple's default.
    pub target_cpu: String,
    /// LLVM's feature list, such as `+avx2,+fma`; may be empty.
    pub target_features: String,
    /// Config as text.
    pub config: String,
    /// Roles of the input files (`graph`, `config`) with their SHA-256 in hexadecimal.
    pub input_hashes: Vec<(String, String)>,
    /// Names of the kernels in the object, in schedule order.
    pub kernels: Vec<String>,
    /// Sizes with code of their own, in ascending order.
    pub sizes: Vec<SizeFacts>,
    /// Processors that the object has code for if it chooses at run time; otherwise empty.
    pub versions: Vec<String>,
    /// Functions in the object with the size of their code in bytes.
    pub functions: Vec<(String, u64)>,
}

/// The size for which a program has code of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ModuleSize {
    /// Pieces of a batch of this many rows.
    Rows(i64),
    /// Runs in which dimensions with these names have these sizes.
    Exact(Vec<(String, i64)>),
}

impl fmt::Display for ModuleSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows(rows) => rows.fmt(f),
            Self::Exact(sizes) => {
                let sizes: Vec<String> = sizes.iter().map(|(name, size)| format!("{name}={size}")).collect();
                f.write_str(&sizes.join(", "))
            }
        }
    }
}

/// A size with code of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeFacts {
    /// The size.
    pub size: ModuleSize,
    /// Bytes of the code that neither a smaller size nor the code for all sizes has.
    pub code: u64,
    /// Bytes of the constants that neither a smaller size nor the code for all sizes has.
    pub constants: u64,
    /// Estimated time of a run in nanoseconds.
    pub nanoseconds: u64,
}

impl SizeFacts {
    /// Estimated number of rows of a batch per second.
    pub fn rows_per_second(&self) -> Option<f64> {
        let ModuleSize::Rows(rows) = self.size else { return None };
        Some(rows as f64 * 1e9 / self.nanoseconds.max(1) as f64)
    }
}

impl Artifact {
    /// Returns the names and shapes.
    pub fn signature(&self) -> Signature<'_> {
        let Self { entry_point, cpp_class, interface, .. } = self;
        Signature { entry_point, cpp_class, interface }
    }

    /// Returns the memory that the host needs for one instance. A program of a GPU has its
    /// temporaries there.
    pub(crate) fn host_memory(&self) -> MemorySizes {
        match self.device {
            None => self.memory,
            Some(_) => MemorySizes { temps: 0, persistent_temps: 0, scratch: 0, ..self.memory },
        }
    }

    /// Checks everything that the header and the runtime rely on. A failure is a defect of earlier
    /// stages, except for names and shapes that C++ cannot express.
    pub fn validate(&self) -> Result<()> {
        self.signature().validate()?;
        if self.memory.persistent_temps > self.memory.temps {
            return Err(Error::internal("persistent temps are larger than all temps"));
        }
        if !self.memory.scratch.is_multiple_of(64) {
            return Err(Error::internal("the scratch size is not a multiple of 64 bytes"));
        }
        if self.device.is_some()
            && let Some((_, size, range)) = self.interface.sizes().next()
        {
            return Err(Error::unsupported(format!(
                "dimension '{}' has the sizes {range}, but programs for GPUs need one size: add --dim {}=N, state the \
                 size in the config, or compile for a processor",
                size.label(),
                size.label()
            )));
        }
        Ok(())
    }
}

impl Signature<'_> {
    /// Checks everything that does not depend on the code. Fails as [`Artifact::validate`] does.
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
            return Err(Error::internal("a feed follows a variable in the arguments"));
        }
        let new_values = &self.interface.results()[self.interface.fetches().len()..];
        if new_values.iter().any(|result| result.origin == Origin::Fetch) {
            return Err(Error::internal("a fetch follows the new value of a variable in the results"));
        }
        Ok(())
    }

    /// Checks that each result after the fetches is the new value of a variable and shares its
    /// memory, and that these results are in the order of the variables.
    fn validate_aliases(&self) -> Result<()> {
        let arguments = self.interface.arguments();
        let mut next = self.interface.feed_count();
        for result in &self.interface.results()[self.interface.fetches().len()..] {
            let place = result.alias.filter(|&argument| argument >= next);
            let variable = place.and_then(|argument| arguments.get(argument));
            let Some(variable) = variable.filter(|variable| variable.id == result.id) else {
                return Err(Error::internal(format!(
                    "the result of variable '{}' is not at the position that the order of the arguments determines",
                    result.id
                )));
            };
            if result.shape != variable.shape {
                return Err(Error::internal(format!(
                    "variable '{}' has shape {}, but its new value has shape {}",
                    variable.id, variable.shape, result.shape
                )));
            }
            next = place.map_or(next, |argument| argument + 1);
        }
        Ok(())
    }
}

/// Rejects bounded shapes, which only fetches may have.
fn validate_static(shape: &ArrayShape, id: &Identifier) -> Result<()> {
    if !shape.is_static() {
        return Err(Error::unsupported(format!(
            "'{id}' has the bounded shape {shape}: feeds and variables need static shapes"
        )));
    }
    Ok(())
}

fn validate_shape(shape: &ArrayShape, id: &Identifier) -> Result<()> {
    if !shape.is_row_major() {
        return Err(Error::internal(format!("expected a row-major array for '{id}', got {shape}")));
    }
    if shape.byte_size() > i64::MAX as u64 {
        return Err(Error::invalid(format!("'{id}' has shape {shape}, which exceeds 2^63 - 1 bytes")));
    }
    Ok(())
}
