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
const RISCV32: &str = "riscv32-unknown-none-elf";

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
    entry(
        "cortex-m0plus",
        "thumbv6m-none-eabi",
        "cortex-m0plus",
        "",
        "Cortex-M0+, such as RP2040: no floats",
    ),
    entry("cortex-m4f", "thumbv7em-none-eabihf", "cortex-m4", "", "Cortex-M4 with single-precision floats"),
    // Half of these processors have no double precision.
    entry(
        "cortex-m7",
        "thumbv7em-none-eabihf",
        "cortex-m7",
        "-fp64",
        "Cortex-M7 with single-precision floats",
    ),
    entry("cortex-m33", "thumbv8m.main-none-eabihf", "cortex-m33", "", "Cortex-M33 with floats and DSP"),
    entry("cortex-m55", "thumbv8.1m.main-none-eabihf", "cortex-m55", "", "Cortex-M55 with Helium (MVE)"),
    entry("rv32imc", RISCV32, "", "+m,+c", "32-bit RISC-V without floats (RV32IMC)"),
    entry("esp32c3", RISCV32, "", "+m,+c", "ESP32-C3, C2, and others with RV32IMC"),
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
            let is_narrow = ["armv7", "wasm32"].iter().any(|start| entry.name.starts_with(start))
                || target.triple.is_bare_metal();
            assert_eq!(target.pointer_bytes == 4, is_narrow, "{}", entry.name);
            assert_eq!(target.is_microcontroller, target.triple.is_bare_metal(), "{}", entry.name);
        }
        assert_eq!(named("x86-64-v3").expect("a name").vector_bytes, 32);
        assert_eq!(named("aarch64-macos").expect("a name").triple.object_format, ObjectFormat::MachO);
        assert_eq!(named("x86_64-windows").expect("a name").triple.object_format, ObjectFormat::Coff);
        assert_eq!(named("aarch64-android").expect("a name").triple.object_format, ObjectFormat::Elf);
        let floats = |name: &str| named(name).map(|target| (target.has_f32, target.has_f64)).expect(name);
        assert_eq!(["cortex-m0plus", "rv32imc", "esp32c3"].map(floats), [(false, false); 3]);
        assert_eq!(["cortex-m4f", "cortex-m7", "cortex-m33"].map(floats), [(true, false); 3]);
        assert_eq!(["cortex-m55", "armv7-linux", "riscv64-linux", "x86-64"].map(floats), [(true, true); 4]);
        let vectors = |name: &str| named(name).expect(name).vector_bytes;
        assert_eq!(["cortex-m0plus", "cortex-m7", "cortex-m55", "esp32c3"].map(vectors), [4, 4, 16, 4]);
    }

    #[test]
    fn the_error_lists_the_names() {
        let error = named("vax").expect_err("no such target").to_string();
        assert!(error.contains("'vax'") && error.contains("riscv64-linux"), "{error}");
        assert!(error.contains("cuda:sm_80,sm_90a, opencl"), "{error}");
    }
}
