//! Target triples, as LLVM spells them.

use support::{Error, Result};

/// The instruction sets that this compiler knows something about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Architecture {
    X86,
    X86_64,
    Arm,
    Aarch64,
    Riscv64,
    Wasm32,
    /// Any other that LLVM may know.
    Other,
}

/// The container of machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum ObjectFormat {
    Elf,
    Coff,
    MachO,
    Wasm,
}

/// A parsed triple.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Triple {
    text: String,
    /// The instruction set.
    pub architecture: Architecture,
    /// The container.
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
                "target triple '{text}' is not of the form arch-vendor-os, such as x86_64-pc-linux"
            )));
        }
        let architecture = match parts[0] {
            "x86_64" | "amd64" => Architecture::X86_64,
            "i386" | "i486" | "i586" | "i686" => Architecture::X86,
            "aarch64" | "arm64" => Architecture::Aarch64,
            "riscv64" => Architecture::Riscv64,
            "wasm32" => Architecture::Wasm32,
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

    /// The text it was parsed from.
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
    fn what_is_no_triple_is_refused() {
        for text in ["", "x86_64", "x86_64--linux", "x86 64-pc-linux", "-a-b"] {
            assert!(Triple::parse(text).is_err(), "{text}");
        }
    }
}
