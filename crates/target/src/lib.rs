//! Description of a target machine for the planner and the lowering: instruction set, vectors,
//! registers, and caches.
//!
//! The crate neither inspects the host nor uses LLVM.

mod arm;
mod gpu;
mod names;
mod riscv;
mod triple;
mod wasm;
mod x86;

pub use gpu::{DEVICE_NAMES, Gpu, parse_devices};
pub use names::{NAMES, NamedTarget, named};
pub use triple::{Architecture, ObjectFormat, Triple};
pub use x86::Level;

use support::Result;

/// Instructions that add four products of bytes to each 32-bit lane. The second factors are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteProducts {
    /// The first factors are unsigned: VNNI of x86.
    Unsigned,
    /// The first factors are signed: the dot products of aarch64.
    Signed,
    /// The first factors are of either kind: aarch64 with `i8mm`.
    Either,
    /// Bytes of either kind are widened to 16 bits and multiplied in pairs, which takes more
    /// registers: SSE2, AVX-512 without VNNI, and WebAssembly.
    Widened,
    /// Like [`Self::Widened`]. Signed bytes of which no second factor is -128 are multiplied
    /// without widening: the second factors take the signs of the first ones (`psignb`), so that
    /// these are unsigned, and no sum of two products exceeds 16 bits (`pmaddubsw`). SSSE3, AVX2.
    Signs,
    /// Signed bytes are multiplied as 16 bits, which are added in pairs to 32 bits: two products in
    /// each of twice as many lanes. NEON without dot products.
    Halves,
    /// The four signed bytes of a word are widened to two pairs of 16 bits, and each pair is
    /// multiplied and added to a word: `smlad` of Cortex-M, for scalars only.
    Dual,
    /// Sixteen signed bytes are multiplied by as many, and all products are added to a word in a
    /// scalar register: `vmladava` of MVE.
    Across,
    /// The four signed bytes of a word are multiplied one by one: no faster than single bytes, but
    /// constants stay small.
    Single,
}

impl ByteProducts {
    /// True if the instructions take first factors of this kind.
    pub fn takes(self, is_signed: bool) -> bool {
        match self {
            Self::Unsigned => !is_signed,
            Self::Signed | Self::Halves | Self::Dual | Self::Single | Self::Across => is_signed,
            Self::Either | Self::Widened | Self::Signs => true,
        }
    }
}

/// Instructions that add products of signed numbers of 16 bits to 32-bit lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShortProducts {
    /// Neighboring products are added: `pmaddwd` of x86, `i32x4.dot_i16x8_s` of WebAssembly.
    Neighbors,
    /// Four numbers times one lane of a vector: `smlal` and `vmlal.s16` of NEON.
    ByLane,
}

/// Instructions that look up bytes in a table of 256 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteLookups {
    /// `vpermi2b`: 128 bytes at once.
    Permute,
    /// `pshufb`: 16 bytes at once.
    Shuffle,
    /// `tbl` of aarch64: 64 bytes at once.
    Registers,
}

/// Machine to compile for.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Target triple.
    pub triple: Triple,
    /// LLVM's name of the processor; empty for the architecture's baseline.
    pub cpu: String,
    /// LLVM's feature string, such as `+avx2,+fma`; empty for the processor's own features.
    pub features: String,
    /// Size of an address in bytes.
    pub pointer_bytes: u32,
    /// Size in bytes of the widest vector register worth using; 4 without vector registers.
    pub vector_bytes: u32,
    /// True if the vectors are MVE's (Helium), which have no double precision.
    pub has_mve: bool,
    /// Number of vector registers.
    pub vector_registers: u32,
    /// True for a processor without an operating system, whose memories for code and for data are
    /// small.
    pub is_microcontroller: bool,
    /// True if arithmetic of `f32` is done by instructions.
    pub has_f32: bool,
    /// True if arithmetic of `f64` is done by instructions.
    pub has_f64: bool,
    /// True if multiply-add is a single instruction.
    pub has_fma: bool,
    /// True if floor, ceil, trunc, and round-to-even are single instructions. Otherwise LLVM would
    /// call a library.
    pub has_rounding: bool,
    /// True if extracting the exponent and mantissa of floats, multiplying by powers of two, and
    /// estimating reciprocals and reciprocal square roots are single instructions.
    pub has_float_parts: bool,
    /// True if conversions between `f16` and `f32` are single instructions.
    pub has_f16_conversion: bool,
    /// True if a population count is a single instruction.
    pub has_popcnt: bool,
    /// Instructions that sum products of bytes; `None` if there are none worth using.
    pub byte_products: Option<ByteProducts>,
    /// Instructions that sum products of numbers of 16 bits; `None` if there are none worth using.
    pub short_products: Option<ShortProducts>,
    /// True if an instruction adds two products of `bf16` to each 32-bit lane.
    pub has_bf16_products: bool,
    /// True if instructions multiply tiles of bytes and of `bf16` and add to tile registers of 16
    /// rows of 16 sums: AMX.
    pub has_tile_products: bool,
    /// Instructions that look up bytes in a table; `None` if each byte is loaded.
    pub byte_lookups: Option<ByteLookups>,
    /// Size in bytes of a core's first-level data cache.
    pub l1_bytes: u64,
    /// Size in bytes of a core's second-level cache.
    pub l2_bytes: u64,
    /// The grid of a GPU; `None` for a processor.
    pub gpu: Option<Gpu>,
}

impl Target {
    /// Returns the target with these names of LLVM's, or an error for a malformed triple.
    /// Processors and features that are unknown to this crate count as the architecture's baseline.
    /// A Linux triple for RISC-V without a processor and without instruction-set features gets
    /// those that every distribution requires (rv64gc).
    pub fn new(triple: &str, cpu: &str, features: &str) -> Result<Self> {
        let triple = Triple::parse(triple)?;
        let mut target = Self {
            cpu: cpu.to_owned(),
            features: features.to_owned(),
            pointer_bytes: triple.pointer_bytes(),
            vector_bytes: 16,
            has_mve: false,
            vector_registers: 16,
            is_microcontroller: triple.is_bare_metal() && triple.pointer_bytes() == 4,
            has_f32: true,
            has_f64: true,
            has_fma: false,
            has_rounding: false,
            has_float_parts: false,
            has_f16_conversion: false,
            has_popcnt: false,
            byte_products: None,
            short_products: None,
            has_bf16_products: false,
            has_tile_products: false,
            byte_lookups: None,
            l1_bytes: 32 << 10,
            l2_bytes: 512 << 10,
            gpu: None,
            triple,
        };
        match target.triple.architecture {
            Architecture::X86_64 => x86::describe(&mut target),
            Architecture::Aarch64 => arm::describe_aarch64(&mut target),
            Architecture::Arm => arm::describe_arm(&mut target),
            Architecture::Riscv32 | Architecture::Riscv64 => riscv::describe(&mut target),
            Architecture::Nvptx64 => gpu::describe_cuda(&mut target),
            Architecture::Spirv64 => gpu::describe_opencl(&mut target),
            Architecture::X86 => target.vector_registers = 8,
            Architecture::Wasm32 => wasm::describe(&mut target),
            Architecture::Other => {}
        }
        Ok(target)
    }

    /// Returns the target with vectors of the size that sums of products of groups have: NEON's,
    /// even if SVE has longer ones. MVE has a scalar for each column.
    #[must_use]
    pub fn for_groups(&self) -> Self {
        if self.byte_products == Some(ByteProducts::Across) {
            return Self { vector_bytes: 4, vector_registers: 12, ..self.clone() };
        }
        let is_arm = self.triple.architecture == Architecture::Aarch64;
        let vector_bytes = if is_arm { self.vector_bytes.min(16) } else { self.vector_bytes };
        Self { vector_bytes, ..self.clone() }
    }

    /// True if the target has a feature: according to the last mention in the feature string, or
    /// else to the processor.
    fn has(&self, feature: &str, by_cpu: bool) -> bool {
        let switches = self.features.split(',').filter_map(|word| {
            let word = word.trim();
            (word.get(1..)? == feature).then(|| word.starts_with('+'))
        });
        switches.fold(by_cpu, |_, on| on)
    }

    /// Name of the processor with its features, such as `x86-64-v4 +avx512vnni`.
    pub fn processor(&self) -> String {
        format!("{} {}", self.cpu, self.features).trim().to_owned()
    }

    /// Number of elements of the given size in bytes in a vector, at least 1.
    pub fn lanes(&self, element_bytes: usize) -> u32 {
        (self.vector_bytes / element_bytes as u32).max(1)
    }

    /// Returns the largest number of bytes that are looked up in a table at once.
    pub fn byte_lookup_lanes(&self) -> u32 {
        match self.byte_lookups {
            Some(ByteLookups::Permute) => self.vector_bytes.min(64),
            Some(ByteLookups::Shuffle) => self.vector_bytes,
            Some(ByteLookups::Registers) => 16,
            None => 1,
        }
    }
}
