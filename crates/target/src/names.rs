//! Short names of the tested targets.

use crate::gpu::DEVICE_NAMES;
use crate::{Target, wasm};
use support::{Code, Error, Result};

/// Target with a short name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedTarget {
    /// Short name.
    pub name: &'static str,
    /// LLVM's triple.
    pub triple: &'static str,
    /// LLVM's name of the processor; empty for the architecture's baseline.
    pub cpu: &'static str,
    /// LLVM's feature string.
    pub features: &'static str,
    /// Description for the user.
    pub description: &'static str,
}

const fn entry(
    name: &'static str,
    triple: &'static str,
    cpu: &'static str,
    features: &'static str,
    description: &'static str,
) -> NamedTarget {
    NamedTarget { name, triple, cpu, features, description }
}

/// WebAssembly without a system.
const WASM: &str = "wasm32-unknown-unknown";

const LINUX: &str = "x86_64-unknown-linux-gnu";

/// All short names. Other machines are selected by triple, processor, and features.
pub const NAMES: &[NamedTarget] = &[
    entry("x86-64", LINUX, "x86-64", "", "Linux on every 64-bit x86 (SSE2)"),
    entry("x86-64-v2", LINUX, "x86-64-v2", "", "Linux on x86 from 2009 on (SSE4.2)"),
    entry("x86-64-v3", LINUX, "x86-64-v3", "", "Linux on x86 from 2013 on (AVX2, FMA)"),
    entry("x86-64-v4", LINUX, "x86-64-v4", "", "Linux on x86 with AVX-512"),
    entry("aarch64-linux", "aarch64-unknown-linux-gnu", "", "", "Linux on 64-bit ARM (NEON)"),
    entry(
        "armv7-linux",
        "armv7-unknown-linux-gnueabihf",
        "",
        "+neon",
        "Linux on 32-bit ARM, hard floats, NEON",
    ),
    entry(
        "riscv64-linux",
        "riscv64-unknown-linux-gnu",
        "",
        "+m,+a,+f,+d,+c",
        "Linux on 64-bit RISC-V (rv64gc)",
    ),
    entry(
        "riscv64-linux-v",
        "riscv64-unknown-linux-gnu",
        "",
        "+m,+a,+f,+d,+c,+v",
        "Linux on 64-bit RISC-V with vectors (rv64gcv)",
    ),
    entry("aarch64-android", "aarch64-unknown-linux-android21", "", "", "Android on 64-bit ARM"),
    entry("x86_64-windows", "x86_64-pc-windows-msvc", "x86-64", "", "Windows on 64-bit x86"),
    entry("wasm32", WASM, "", wasm::SIMD, "WebAssembly with SIMD128: browsers since 2023, Node, WASI"),
    entry(
        "wasm32-relaxed",
        WASM,
        "",
        wasm::RELAXED,
        "WebAssembly with relaxed SIMD, whose last bits depend on the machine",
    ),
    entry("wasm32-threads", WASM, "", wasm::THREADS, "WebAssembly with SIMD128, shared memory, and threads"),
    entry("aarch64-macos", "arm64-apple-macosx11.0.0", "apple-a14", "", "macOS on Apple's processors"),
];

/// Returns the target with a short name. The error lists all names.
pub fn named(name: &str) -> Result<Target> {
    let Some(target) = NAMES.iter().find(|entry| entry.name == name) else {
        let known: Vec<&str> = NAMES.iter().map(|entry| entry.name).collect();
        return Err(Error::invalid(format!(
            "unknown target '{name}': expected one of {}, or a GPU: {DEVICE_NAMES}; select other machines by triple, processor, and features",
            known.join(", ")
        )).coded(Code::Target));
    };
    Target::new(target.triple, target.cpu, target.features)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Architecture, ObjectFormat};

    #[test]
    fn every_name_is_a_target() {
        for entry in NAMES {
            let target = named(entry.name).expect(entry.name);
            assert_ne!(target.triple.architecture, Architecture::Other, "{}", entry.name);
            let is_small = entry.name.starts_with("armv7") || entry.name.starts_with("wasm32");
            assert_eq!(target.pointer_bytes == 4, is_small, "{}", entry.name);
        }
        assert_eq!(named("x86-64-v3").expect("a name").vector_bytes, 32);
        assert_eq!(named("aarch64-macos").expect("a name").triple.object_format, ObjectFormat::MachO);
        assert_eq!(named("x86_64-windows").expect("a name").triple.object_format, ObjectFormat::Coff);
        assert_eq!(named("aarch64-android").expect("a name").triple.object_format, ObjectFormat::Elf);
    }

    #[test]
    fn the_error_lists_the_names() {
        let error = named("vax").expect_err("no such target").to_string();
        assert!(error.contains("'vax'") && error.contains("riscv64-linux"), "{error}");
        assert!(error.contains("cuda:sm_80,sm_90a, opencl"), "{error}");
    }
}
