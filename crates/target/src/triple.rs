//! Target triples in LLVM's spelling.

use support::{Code, Error, Result};

/// Instruction sets with specific support in this compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Architecture {
    X86,
    X86_64,
    Arm,
    Aarch64,
    Riscv32,
    Riscv64,
    Wasm32,
    /// NVIDIA's GPUs.
    Nvptx64,
    /// SPIR-V with 64-bit addresses, for OpenCL.
    Spirv64,
    /// Any other instruction set, which LLVM may support.
    Other,
}

/// Object file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum ObjectFormat {
    Elf,
    Coff,
    MachO,
    Wasm,
}

/// Parsed triple.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Triple {
    text: String,
    /// Instruction set.
    pub architecture: Architecture,
    /// Object file format.
    pub object_format: ObjectFormat,
}

impl Triple {
    /// Parses `arch-vendor-os[-environment]`; vendor and environment may be missing.
    pub fn parse(text: &str) -> Result<Self> {
        let parts: Vec<&str> = text.split('-').collect();
        let well_formed = parts.iter().all(|p| {
            !p.is_empty() && p.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '+'))
        });
        if !well_formed || parts.len() < 2 || parts.len() > 5 {
            return Err(Error::invalid(format!(
                "expected a target triple of the form arch-vendor-os, such as x86_64-pc-linux, got '{text}'"
            ))
            .coded(Code::Target));
        }
        let architecture = match parts[0] {
            "x86_64" | "amd64" => Architecture::X86_64,
            "i386" | "i486" | "i586" | "i686" => Architecture::X86,
            "aarch64" | "arm64" | "arm64e" | "aarch64_32" | "arm64_32" => Architecture::Aarch64,
            "riscv32" => Architecture::Riscv32,
            "riscv64" => Architecture::Riscv64,
            "wasm32" => Architecture::Wasm32,
            "nvptx64" => Architecture::Nvptx64,
            "spirv64" => Architecture::Spirv64,
            arm if arm.starts_with("arm") || arm.starts_with("thumb") => Architecture::Arm,
            _ => Architecture::Other,
        };
        let names = |words: &[&str]| parts[1..].iter().any(|p| words.iter().any(|w| p.starts_with(w)));
        let object_format = if architecture == Architecture::Wasm32 {
            ObjectFormat::Wasm
        } else if names(&["darwin", "macos", "ios", "apple"]) {
            ObjectFormat::MachO
        } else if names(&["windows", "win32"]) {
            ObjectFormat::Coff
        } else {
            ObjectFormat::Elf
        };
        Ok(Self { text: text.to_owned(), architecture, object_format })
    }

    /// Size of an address in bytes: the architecture's, except in environments that halve it.
    pub(crate) fn pointer_bytes(&self) -> u32 {
        let name = self.text.split('-').next().unwrap_or_default();
        let halved = ["gnux32", "muslx32", "gnu_ilp32"].iter().any(|e| self.text.ends_with(e));
        let wide = match self.architecture {
            Architecture::X86_64 | Architecture::Riscv64 | Architecture::Nvptx64 | Architecture::Spirv64 => {
                true
            }
            Architecture::Aarch64 => name != "aarch64_32" && name != "arm64_32",
            Architecture::X86 | Architecture::Arm | Architecture::Riscv32 | Architecture::Wasm32 => false,
            Architecture::Other => {
                name.contains("64") || ["s390x", "systemz", "sparcv9", "ve", "bpf"].contains(&name)
            }
        };
        if wide && !halved { 8 } else { 4 }
    }

    /// True if the system is Linux, including Android.
    pub(crate) fn is_linux(&self) -> bool {
        self.text.split('-').skip(1).any(|part| part.starts_with("linux") || part.starts_with("android"))
    }

    /// True if programs run without an operating system: an ELF triple of ARM or RISC-V that names
    /// none.
    pub fn is_bare_metal(&self) -> bool {
        let is_embedded =
            matches!(self.architecture, Architecture::Arm | Architecture::Riscv32 | Architecture::Riscv64);
        let is_bare = |part: &str| matches!(part, "none" | "elf" | "eabi" | "eabihf" | "unknown");
        is_embedded && self.text.split('-').skip(1).all(is_bare)
    }

    /// Text from which the triple was parsed.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triples_of_the_original_are_understood() {
        for (text, architecture, format) in [
            ("x86_64-pc-linux", Architecture::X86_64, ObjectFormat::Elf),
            ("x86_64-none-windows", Architecture::X86_64, ObjectFormat::Coff),
            ("arm64-none-ios", Architecture::Aarch64, ObjectFormat::MachO),
            ("armv7-none-android", Architecture::Arm, ObjectFormat::Elf),
            ("systemz-none-linux-gnu", Architecture::Other, ObjectFormat::Elf),
        ] {
            let triple = Triple::parse(text).expect(text);
            assert_eq!((triple.architecture, triple.object_format), (architecture, format), "{text}");
        }
    }

    #[test]
    fn addresses_have_the_size_of_the_abi() {
        for (text, bytes) in [
            ("x86_64-pc-linux", 8),
            ("x86_64-pc-linux-gnux32", 4),
            ("i686-unknown-linux-gnu", 4),
            ("aarch64-unknown-linux-gnu", 8),
            ("armv7-unknown-linux-gnueabihf", 4),
            ("riscv64-unknown-linux-gnu", 8),
            ("riscv32-unknown-none-elf", 4),
            ("wasm32-unknown-unknown", 4),
            ("powerpc64le-unknown-linux-gnu", 8),
            ("mips-none-linux-gnu", 4),
        ] {
            assert_eq!(Triple::parse(text).expect(text).pointer_bytes(), bytes, "{text}");
        }
    }

    #[test]
    fn triples_without_a_system_are_bare() {
        for (text, is_bare) in [
            ("thumbv7em-none-eabihf", true),
            ("thumbv6m-unknown-none-eabi", true),
            ("riscv32-unknown-none-elf", true),
            ("riscv64-none-elf", true),
            ("armv7-unknown-linux-gnueabihf", false),
            ("armv7-none-android", false),
            ("x86_64-none-elf", false),
            ("wasm32-unknown-unknown", false),
        ] {
            assert_eq!(Triple::parse(text).expect(text).is_bare_metal(), is_bare, "{text}");
        }
    }

    #[test]
    fn malformed_triples_are_rejected() {
        for text in ["", "x86_64", "x86_64--linux", "x86 64-pc-linux", "-a-b"] {
            assert!(Triple::parse(text).is_err(), "{text}");
        }
    }
}
