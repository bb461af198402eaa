//! Embeds records in objects and archives of each format, and reads both back.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use aot::{Member, archive, function_sizes, read_metadata, with_metadata};
use object::write::{Object, Relocation, StandardSection, Symbol, SymbolSection};
use object::{
    Architecture, BinaryFormat, Endianness, Object as _, ObjectSection as _, ObjectSymbol as _,
    RelocationEncoding, RelocationFlags, RelocationKind, SymbolFlags, SymbolKind, SymbolScope,
};
use std::io::Read as _;

const FORMATS: [(BinaryFormat, Architecture, Endianness); 6] = [
    (BinaryFormat::Elf, Architecture::X86_64, Endianness::Little),
    (BinaryFormat::Elf, Architecture::Arm, Endianness::Little),
    (BinaryFormat::Elf, Architecture::S390x, Endianness::Big),
    (BinaryFormat::Coff, Architecture::X86_64, Endianness::Little),
    (BinaryFormat::MachO, Architecture::X86_64, Endianness::Little),
    (BinaryFormat::MachO, Architecture::Aarch64, Endianness::Little),
];

/// Returns an object with a global function of 16 bytes that refers to a global constant, and a
/// local function of 8 bytes.
fn object(
    (format, architecture, endianness): (BinaryFormat, Architecture, Endianness),
    name: &str,
) -> Vec<u8> {
    let mut object = Object::new(format, architecture, endianness);
    let text = object.section_id(StandardSection::Text);
    let data = object.section_id(StandardSection::ReadOnlyData);
    let mut symbol = |name: String, kind, scope, size| {
        object.add_symbol(Symbol {
            name: name.into_bytes(),
            value: 0,
            size,
            kind,
            scope,
            weak: false,
            section: SymbolSection::Undefined,
            flags: SymbolFlags::None,
        })
    };
    let entry = symbol(name.to_owned(), SymbolKind::Text, SymbolScope::Dynamic, 16);
    let local = symbol(format!("{name}_local"), SymbolKind::Text, SymbolScope::Compilation, 8);
    let constants = symbol(format!("{name}_constants"), SymbolKind::Data, SymbolScope::Dynamic, 5);
    object.add_symbol_data(entry, text, &[0x90; 16], 16);
    object.add_symbol_data(local, text, &[0x91; 8], 8);
    object.add_symbol_data(constants, data, b"12345", 8);
    if architecture != Architecture::S390x {
        let flags = RelocationFlags::Generic {
            kind: RelocationKind::Absolute,
            encoding: RelocationEncoding::Generic,
            size: if architecture == Architecture::Arm { 32 } else { 64 },
        };
        object.add_relocation(text, Relocation { offset: 8, symbol: constants, addend: 0, flags }).unwrap();
    }
    object.write().unwrap()
}

/// Name, contents, relocations.
type SectionFacts = (String, Vec<u8>, Vec<String>);
/// Name, address, size, section.
type SymbolFacts = (String, u64, u64, Option<usize>);

/// Returns everything that a linker sees of an object: sections with contents and relocations, and
/// symbols.
fn facts(object: &[u8]) -> (Vec<SectionFacts>, Vec<SymbolFacts>) {
    let file = object::File::parse(object).unwrap();
    let sections = file.sections().filter(|s| !s.name().unwrap().contains("tfcompile")).map(|s| {
        let relocations = s.relocations().map(|r| format!("{r:?}")).collect();
        (s.name().unwrap().to_owned(), s.data().unwrap().to_vec(), relocations)
    });
    // The table of section names is itself a section. It grows.
    let sections = sections.filter(|(name, ..)| !name.ends_with("strtab")).collect();
    let symbols = file.symbols().map(|s| {
        (s.name().unwrap().to_owned(), s.address(), s.size(), s.section_index().map(|index| index.0))
    });
    (sections, symbols.collect())
}

fn program() -> aot::Artifact {
    let mut artifact = crate::fixtures::matmul_and_add();
    artifact.provenance.functions = vec![("entry".to_owned(), 16)];
    artifact.memory.stack = 4096;
    artifact
}

#[test]
fn a_record_changes_nothing_that_a_linker_sees() {
    for format in FORMATS {
        let before = object(format, "entry");
        let after = with_metadata(before.clone(), &program()).unwrap();
        assert_eq!(facts(&before), facts(&after), "{format:?}");
        let found = read_metadata(&after).unwrap();
        assert_eq!(found.len(), 1, "{format:?}");
        assert_eq!(found[0].member, None);
        assert_eq!(found[0].metadata["cpp_class"], "foo::bar::MatMulAndAddComp");
        assert_eq!(found[0].metadata["arguments"][0]["shape"], "f32[2,2]");
        assert_eq!(found[0].metadata["memory"]["stack"], 4096);
        assert_eq!(found[0].metadata["functions"][0]["bytes"], 16);
    }
}

#[test]
fn linkers_are_told_to_leave_the_record_out() {
    for format in FORMATS {
        let after = with_metadata(object(format, "entry"), &program()).unwrap();
        let file = object::File::parse(after.as_slice()).unwrap();
        let section = file.sections().find(|s| s.name().unwrap().contains("tfcompile")).unwrap();
        let left_out = match section.flags() {
            object::SectionFlags::Elf { sh_flags, .. } => sh_flags.0 == 0x8000_0000,
            object::SectionFlags::Coff { characteristics } => characteristics.0 & 0x800 != 0,
            object::SectionFlags::MachO { flags, .. } => flags.0 & 0x0200_0000 != 0,
            _ => false,
        };
        assert!(left_out, "{format:?}: {:?}", section.flags());
    }
}

#[test]
fn archives_have_their_members_and_symbols() {
    for format in FORMATS {
        let one = with_metadata(object(format, "one"), &program()).unwrap();
        let two = object(format, "two");
        let members = [
            Member { name: "one.o", object: &one },
            Member { name: "a_name_of_more_than_sixteen.o", object: &two },
        ];
        let bytes = archive(&members).unwrap();
        assert_eq!(bytes, archive(&members).unwrap());
        let read = object::read::archive::ArchiveFile::parse(bytes.as_slice()).unwrap();
        let names: Vec<(String, &[u8])> = read
            .members()
            .map(|member| {
                let member = member.unwrap();
                (String::from_utf8_lossy(member.name()).into_owned(), member.data(bytes.as_slice()).unwrap())
            })
            .collect();
        assert_eq!(names.len(), 2, "{format:?}");
        for ((name, data), member) in names.iter().zip(&members) {
            assert_eq!(name, member.name, "{format:?}");
            assert!(data.starts_with(member.object), "{format:?}");
            assert!(data.len() - member.object.len() < 8, "{format:?}");
        }
        let prefix = if format.0 == BinaryFormat::MachO { "_" } else { "" };
        let mut expected: Vec<(String, String)> = Vec::new();
        for (member, name) in [("one.o", "one"), ("a_name_of_more_than_sixteen.o", "two")] {
            expected.push((format!("{prefix}{name}"), member.to_owned()));
            expected.push((format!("{prefix}{name}_constants"), member.to_owned()));
        }
        let mut index: Vec<(String, String)> = read
            .symbols()
            .unwrap()
            .unwrap()
            .map(|symbol| {
                let symbol = symbol.unwrap();
                let member = read.member(symbol.offset()).unwrap();
                let name = String::from_utf8_lossy(symbol.name()).into_owned();
                (name, String::from_utf8_lossy(member.name()).into_owned())
            })
            .collect();
        index.sort();
        expected.sort();
        assert_eq!(index, expected, "{format:?}");
        let found = read_metadata(&bytes).unwrap();
        assert_eq!((found.len(), found[0].member.as_deref()), (1, Some("one.o")), "{format:?}");
    }
}

#[test]
fn functions_have_the_bytes_of_their_code() {
    for format in FORMATS {
        let prefix = if format.0 == BinaryFormat::MachO { "_" } else { "" };
        let sizes = function_sizes(&object(format, "entry")).unwrap();
        assert_eq!(
            sizes,
            [(format!("{prefix}entry"), 16), (format!("{prefix}entry_local"), 8)],
            "{format:?}"
        );
    }
}

#[test]
fn damaged_files_are_refused_and_never_a_crash() {
    for format in FORMATS {
        let good = with_metadata(object(format, "entry"), &program()).unwrap();
        let archive = archive(&[Member { name: "a_member_with_a_long_name.o", object: &good }]).unwrap();
        for file in [&good, &archive] {
            for cut in (0..file.len()).step_by(7) {
                let _ = read_metadata(&file[..cut]);
            }
            for at in (0..file.len()).step_by(3) {
                for value in [0, 0xff, file[at] ^ 0x10] {
                    let mut bad = file.clone();
                    bad[at] = value;
                    let _ = read_metadata(&bad);
                }
            }
        }
    }
    assert!(read_metadata(b"").unwrap_err().message().contains("not an object file"));
    assert!(read_metadata(b"!<arch>\n").unwrap_err().message().contains("no tfcompile metadata"));
    let plain = object(FORMATS[0], "entry");
    assert!(read_metadata(&plain).unwrap_err().message().contains("no tfcompile metadata"));
}

/// An object with one record.
fn with_record(version: u32, contents: &[u8]) -> Vec<u8> {
    let mut record = b"TFCMETA\0".to_vec();
    record.extend_from_slice(&version.to_le_bytes());
    record.extend_from_slice(&(contents.len() as u32).to_le_bytes());
    record.extend_from_slice(contents);
    let mut file = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
    let section = file.add_section(Vec::new(), b".tfcompile".to_vec(), object::SectionKind::Other);
    file.append_section_data(section, &record, 8);
    file.write().unwrap()
}

#[test]
fn records_of_other_versions_are_read_or_refused_by_number() {
    let json = br#"{"cpp_class":"ns::Old"}"#;
    assert_eq!(read_metadata(&with_record(1, json)).unwrap()[0].metadata["cpp_class"], "ns::Old");
    let error = read_metadata(&with_record(3, json)).unwrap_err();
    assert!(error.message().contains("expected at most 2, got 3"), "{error}");
}

#[test]
fn compressed_records_are_bounded_unpacked() {
    let packed = |json: &str| {
        let mut packed = Vec::new();
        flate2::read::ZlibEncoder::new(json.as_bytes(), flate2::Compression::fast())
            .read_to_end(&mut packed)
            .unwrap();
        with_record(2, &packed)
    };
    assert_eq!(read_metadata(&packed(r#"{"a":1}"#)).unwrap()[0].metadata["a"], 1);
    let long = format!(r#"{{"a":"{}"}}"#, " ".repeat(32 << 20));
    assert!(read_metadata(&packed(&long)).unwrap_err().message().contains("too large"));
    assert!(read_metadata(&with_record(2, b"{}")).unwrap_err().message().contains("zlib"));
}

#[test]
fn sections_at_the_end_of_memory_have_functions() {
    let mut file = object(FORMATS[0], "entry");
    let at = |file: &[u8], at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap());
    let (table, entry) = (at(&file, 0x28) as usize, 64);
    let is_code = |header: &usize| at(&file, header + 8) & 4 != 0;
    let code = (table..file.len() - entry + 1).step_by(entry).find(is_code).unwrap();
    file[code + 16..code + 24].fill(0xff);
    assert_eq!(function_sizes(&file).unwrap().iter().map(|f| f.1).collect::<Vec<_>>(), [16, 8]);
}
