//! Options of code generation.

use crate::device_target::device_target;
use codegen::{Sanitizer, UnitCache};
use jit::Device;
use std::sync::Arc;
use support::Result;
use target::Target;

/// Assembler of a GPU's machine code.
pub trait Assembler: std::fmt::Debug + Send + Sync {
    /// Returns the machine code for an architecture, such as `sm_80`.
    fn assemble(&self, ptx: &[u8], architecture: &str) -> Result<Vec<u8>>;
}

/// Options of code generation.
#[derive(Clone, Debug)]
pub struct BackOptions {
    /// Target machine; with variants, the one of the lowest version.
    pub target: Target,
    /// Targets of further versions in the same object, in the order of the levels of x86-64. The
    /// entry selects a version when it first runs.
    pub variants: Vec<Target>,
    /// GPUs that run the program, all CUDA's or OpenCL alone; empty to run it on the target itself.
    /// The target then is the host's.
    pub devices: Vec<Target>,
    /// The open device on which the code will run in this process, one of `devices`.
    pub open_device: Option<Device>,
    /// NVIDIA's assembler. If it is given, the object has machine code for each architecture of
    /// `devices`, and PTX only for the first one.
    pub assembler: Option<Arc<dyn Assembler>>,
    /// Symbol of the entry function.
    pub entry_point: String,
    /// Names of passes to skip (`--xla_disable_hlo_passes`).
    pub disabled_passes: Vec<String>,
    /// Options of the plan.
    pub plan: plan::Options,
    /// True if the constants go into the object. Otherwise the caller of the code passes a block of
    /// constants.
    pub embed_constants: bool,
    /// Section of the embedded constants in place of the default one; objects in ELF, and C source.
    pub constants_section: Option<String>,
    /// True if the object must not reference any external symbol, not even `memcpy`.
    pub freestanding: bool,
    /// Sanitizer with which the code is instrumented.
    pub sanitize: Option<Sanitizer>,
    /// Cache of generated code.
    pub cache: Option<Arc<dyn UnitCache>>,
    /// Vectors of C source, if the program becomes C source instead of an object.
    pub c_source: Option<csource::Vectors>,
    /// True if the code counts the time of the program and of each instruction.
    pub is_profiled: bool,
    /// True if observers receive the LLVM IR.
    pub llvm_ir: bool,
    /// True if observers receive the assembly.
    pub assembly: bool,
    /// Defect to plant in the code, for tests of the sanitizers.
    #[cfg(debug_assertions)]
    pub planted: Option<nest::defects::Defect>,
}

impl BackOptions {
    /// Options with all passes, and with the constants in the object.
    pub fn new(target: Target, entry_point: impl Into<String>) -> Self {
        Self {
            target,
            variants: Vec::new(),
            devices: Vec::new(),
            open_device: None,
            assembler: None,
            entry_point: entry_point.into(),
            disabled_passes: Vec::new(),
            plan: plan::Options::default(),
            embed_constants: true,
            constants_section: None,
            freestanding: false,
            sanitize: None,
            cache: None,
            c_source: None,
            is_profiled: false,
            llvm_ir: false,
            assembly: false,
            #[cfg(debug_assertions)]
            planted: None,
        }
    }

    /// Text that identifies the generated code of a module. It omits options that do not affect the
    /// code.
    pub fn cache_key(&self) -> String {
        // Packed constants affect no plan.
        let plan::Options { winograd, allow_tf32, precision, choices, packings: _ } = &self.plan;
        let winograd = match winograd {
            plan::Winograd::Never => "never".to_owned(),
            plan::Winograd::Small => "small".to_owned(),
            plan::Winograd::Large => "large".to_owned(),
            plan::Winograd::Forced(side) => format!("forced {side}"),
        };
        let sanitizer = self.sanitize.map_or("none", |sanitizer| match sanitizer {
            Sanitizer::Address => "address",
            Sanitizer::Thread => "thread",
        });
        let all = std::iter::once(&self.target).chain(&self.variants).chain(&self.devices);
        let mut lines: Vec<String> = all.map(target_key).collect();
        lines.extend([
            format!("entry_point {}", self.entry_point),
            format!("disabled_passes {}", self.disabled_passes.join(",")),
            format!("winograd {winograd}"),
            format!("allow_tf32 {allow_tf32}"),
            format!("precision {}", precision.name()),
            format!("embed_constants {}", self.embed_constants),
            format!("constants_section {:?}", self.constants_section),
            format!("freestanding {}", self.freestanding),
            format!("sanitize {sanitizer}"),
            format!("c_source {:?}", self.c_source),
            format!("is_profiled {}", self.is_profiled),
            format!("choices {}", choices.to_text()),
        ]);
        #[cfg(debug_assertions)]
        lines.push(format!("planted {}", self.planted.map_or("none", nest::defects::Defect::name)));
        lines.join("\n")
    }

    /// Compiles for an open device, and runs the code there.
    pub fn on_device(self, device: Device) -> Result<Self> {
        let target = device_target(&device)?;
        Ok(Self { devices: vec![target], open_device: Some(device), ..self })
    }

    /// Targets of the kernels of all versions.
    pub fn targets(&self) -> Vec<Target> {
        if !self.devices.is_empty() {
            return self.devices.clone();
        }
        std::iter::once(&self.target).chain(&self.variants).cloned().collect()
    }
}

/// Text that identifies a target.
fn target_key(target: &Target) -> String {
    format!(
        "target {} cpu {} features {} pointer_bytes {} vector_bytes {} vector_registers {} fma {} rounding {} float_parts {} \
         f16_conversion {} popcnt {} l1_bytes {} l2_bytes {}",
        target.triple.as_str(),
        target.cpu,
        target.features,
        target.pointer_bytes,
        target.vector_bytes,
        target.vector_registers,
        target.has_fma,
        target.has_rounding,
        target.has_float_parts,
        target.has_f16_conversion,
        target.has_popcnt,
        target.l1_bytes,
        target.l2_bytes
    )
}
