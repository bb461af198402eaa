//! What a machine offers to the planner and the lowering: instruction set, vectors, registers, caches.
//!
//! A pure description: nothing here looks at the host, and nothing names LLVM.

mod arm;
mod names;
mod riscv;
mod triple;
mod x86;

pub use names::{NAMES, NamedTarget, named};
pub use triple::{Architecture, ObjectFormat, Triple};
pub use x86::Level;

use support::Result;

/// The machine that code is made for.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The triple.
    pub triple: Triple,
    /// LLVM's name of the processor; empty is the architecture's baseline.
    pub cpu: String,
    /// LLVM's feature string, such as `+avx2,+fma`; empty is what the processor has.
    pub features: String,
    /// Bytes of an address.
    pub pointer_bytes: u32,
    /// Bytes of the widest vector register worth using; 4 where there are none.
    pub vector_bytes: u32,
    /// How many vector registers there are.
    pub vector_registers: u32,
    /// Whether multiply-add is one instruction.
    pub has_fma: bool,
    /// Whether floor, ceil, trunc and round-to-even are one instruction (elsewhere LLVM would call a library).
    pub has_rounding: bool,
    /// Whether exponent and mantissa of floats, products with powers of two, and estimates of reciprocals and of reciprocal
    /// square roots are one instruction each.
    pub has_float_parts: bool,
    /// Whether conversions between `f16` and `f32` are one instruction.
    pub has_f16_conversion: bool,
    /// Whether a population count is one instruction.
    pub has_popcnt: bool,
    /// Bytes of a core's first-level data cache.
    pub l1_bytes: u64,
    /// Bytes of a core's second-level cache.
    pub l2_bytes: u64,
}

impl Target {
    /// The target of LLVM's names. An error for a malformed triple; processors and features that LLVM knows and this
    /// table does not count as the architecture's baseline. A triple of Linux on RISC-V without processor and without the
    /// features of an instruction set gets those that every distribution wants (rv64gc).
    pub fn new(triple: &str, cpu: &str, features: &str) -> Result<Self> {
        let triple = Triple::parse(triple)?;
        let mut target = Self {
            cpu: cpu.to_owned(),
            features: features.to_owned(),
            pointer_bytes: triple.pointer_bytes(),
            vector_bytes: 16,
            vector_registers: 16,
            has_fma: false,
            has_rounding: false,
            has_float_parts: false,
            has_f16_conversion: false,
            has_popcnt: false,
            l1_bytes: 32 << 10,
            l2_bytes: 512 << 10,
            triple,
        };
        match target.triple.architecture {
            Architecture::X86_64 => x86::describe(&mut target),
            Architecture::Aarch64 => arm::describe_aarch64(&mut target),
            Architecture::Arm => arm::describe_arm(&mut target),
            Architecture::Riscv64 => riscv::describe(&mut target),
            Architecture::X86 => target.vector_registers = 8,
            Architecture::Wasm32 | Architecture::Other => {}
        }
        Ok(target)
    }

    /// What the feature string says of a feature, the last word counts; else what the processor has.
    fn has(&self, feature: &str, by_cpu: bool) -> bool {
        let switches = self.features.split(',').filter_map(|word| {
            let word = word.trim();
            (word.get(1..)? == feature).then(|| word.starts_with('+'))
        });
        switches.fold(by_cpu, |_, on| on)
    }

    /// How many elements of so many bytes a vector holds, at least 1.
    pub fn lanes(&self, element_bytes: usize) -> u32 {
        (self.vector_bytes / element_bytes as u32).max(1)
    }
}
