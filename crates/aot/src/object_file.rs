//! Object files that contain only data, in the format of a target triple.

use object::write::{MachOBuildVersion, Object, StandardSection, Symbol, SymbolSection};
use object::{
    Architecture, BinaryFormat, Endianness, FileFlags, SectionKind, SymbolFlags, SymbolKind, SymbolScope,
};
use support::{Error, Result};

/// Section of the metadata in ELF and COFF.
pub(crate) const SECTION: &[u8] = b".tfcompile";

/// Segment and section of the metadata in Mach-O.
pub(crate) const SEGMENT: &[u8] = b"__LLVM";
pub(crate) const MACH_O_SECTION: &[u8] = b"__tfcompile";

/// Supported formats of object files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Elf,
    Coff,
    MachO,
    Wasm,
}

/// Returns the object file format of a triple.
pub(crate) fn format(triple: &str) -> Result<Format> {
    if is_wasm(triple) {
        return Ok(Format::Wasm);
    }
    Ok(match machine(triple)?.format {
        BinaryFormat::MachO => Format::MachO,
        BinaryFormat::Coff => Format::Coff,
        _ => Format::Elf,
    })
}

/// Properties of an object file's header.
struct Machine {
    format: BinaryFormat,
    architecture: Architecture,
    endianness: Endianness,
    /// ELF's ABI flags. Linkers reject some combinations.
    elf_flags: object::elf::FileFlags,
}

/// Writes an object with the record in a section that is not loaded, and with each symbol's bytes
/// in read-only data.
pub(crate) fn write(triple: &str, record: &[u8], symbols: &[(String, Vec<u8>)]) -> Result<Vec<u8>> {
    if is_wasm(triple) {
        return wasm_object(record, symbols);
    }
    let machine = machine(triple)?;
    let mut object = Object::new(machine.format, machine.architecture, machine.endianness);
    match machine.format {
        BinaryFormat::Elf => {
            object.flags =
                FileFlags::Elf { os_abi: object::elf::OsAbi(0), abi_version: 0, e_flags: machine.elf_flags };
            // Without this section, linkers assume that the object needs an executable stack.
            object.add_section(Vec::new(), b".note.GNU-stack".to_vec(), SectionKind::Other);
        }
        BinaryFormat::MachO => object.set_macho_build_version(build_version(triple)),
        _ => {}
    }
    let (segment, name): (&[u8], &[u8]) = match machine.format {
        BinaryFormat::MachO => (SEGMENT, MACH_O_SECTION),
        _ => (b"", SECTION),
    };
    let section = object.add_section(segment.to_vec(), name.to_vec(), SectionKind::Other);
    object.append_section_data(section, record, 8);
    for (name, bytes) in symbols {
        define(&mut object, name, bytes);
    }
    object.write().map_err(|error| Error::internal(format!("cannot write the metadata object: {error}")))
}

/// True for WebAssembly.
fn is_wasm(triple: &str) -> bool {
    triple.starts_with("wasm32")
}

/// An object with the record as a custom section. Linkers keep such sections.
fn wasm_object(record: &[u8], symbols: &[(String, Vec<u8>)]) -> Result<Vec<u8>> {
    let mut object = wasm::data_object(symbols);
    let section = std::str::from_utf8(SECTION).map_err(|_| Error::internal("a section's name"))?;
    wasm::append_custom_section(&mut object, section, record);
    Ok(object)
}

/// Returns an object file without definitions, for build files that declare more objects than the
/// compiler has to write.
pub fn empty_object(triple: &str) -> Result<Vec<u8>> {
    write(triple, &[], &[])
}

fn define(object: &mut Object<'_>, name: &str, bytes: &[u8]) {
    let section = object.section_id(StandardSection::ReadOnlyData);
    let symbol = object.add_symbol(Symbol {
        name: name.as_bytes().to_vec(),
        value: 0,
        size: 0,
        kind: SymbolKind::Data,
        // Visible within a program or library, but not exported from it.
        scope: SymbolScope::Linkage,
        weak: false,
        section: SymbolSection::Undefined,
        flags: SymbolFlags::None,
    });
    object.add_symbol_data(symbol, section, bytes, 8);
}

/// Returns the format and architecture of an LLVM triple, which is
/// `architecture-vendor-system[-environment]`.
fn machine(triple: &str) -> Result<Machine> {
    let unknown = || {
        Error::unsupported(format!(
            "no metadata object can be written for target triple '{triple}'; known are x86_64, i386 to i686, aarch64, \
             arm, riscv32, riscv64, powerpc64le and s390x, with ELF, COFF (windows) and Mach-O (darwin, macos, ios)"
        ))
    };
    let name = triple.split('-').next().unwrap_or("");
    let none = object::elf::FileFlags(0);
    let (architecture, elf_flags) = match name {
        "x86_64" | "amd64" | "x86_64h" => (Architecture::X86_64, none),
        "i386" | "i486" | "i586" | "i686" => (Architecture::I386, none),
        "aarch64" | "arm64" | "arm64e" => (Architecture::Aarch64, none),
        // Double-precision float ABI and compressed instructions, as on Linux.
        "riscv64" => {
            (Architecture::Riscv64, object::elf::EF_RISCV_FLOAT_ABI_DOUBLE | object::elf::EF_RISCV_RVC)
        }
        "riscv32" => (Architecture::Riscv32, object::elf::EF_RISCV_RVC),
        // Version 2 of the ABI.
        "powerpc64le" | "ppc64le" => (Architecture::PowerPc64, object::elf::FileFlags(2)),
        "s390x" | "systemz" => (Architecture::S390x, none),
        _ if name.starts_with("arm") || name.starts_with("thumb") => {
            (Architecture::Arm, object::elf::EF_ARM_EABI_VER5)
        }
        _ => return Err(unknown()),
    };
    let endianness = if architecture == Architecture::S390x { Endianness::Big } else { Endianness::Little };
    let format = if ["darwin", "macos", "ios", "tvos", "watchos"].iter().any(|system| triple.contains(system))
    {
        BinaryFormat::MachO
    } else if triple.contains("windows") || triple.contains("win32") {
        BinaryFormat::Coff
    } else {
        BinaryFormat::Elf
    };
    let has_format = match format {
        BinaryFormat::MachO | BinaryFormat::Coff => matches!(
            architecture,
            Architecture::X86_64 | Architecture::I386 | Architecture::Aarch64 | Architecture::Arm
        ),
        _ => true,
    };
    if has_format { Ok(Machine { format, architecture, endianness, elf_flags }) } else { Err(unknown()) }
}

/// Returns the platform of a Mach-O object. The versions are the oldest that current linkers
/// support.
fn build_version(triple: &str) -> MachOBuildVersion {
    let mut version = MachOBuildVersion::default();
    let ios = triple.contains("ios");
    version.platform = if ios { object::macho::PLATFORM_IOS } else { object::macho::PLATFORM_MACOS };
    version.minos = object::macho::Version(if ios { 12 << 16 } else { 11 << 16 });
    version.sdk = version.minos;
    version
}
