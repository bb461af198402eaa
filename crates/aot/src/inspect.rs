//! Reads metadata back from objects, archives, shared libraries, and programs.
//!
//! The files are untrusted. Sizes are checked against the file before anything is allocated, and
//! the contents of a record are only data.

use crate::metadata::{MAX_JSON, METADATA_MAGIC, METADATA_VERSION};
use crate::object_file::{MACH_O_SECTION, SECTION, SEGMENT};
use flate2::read::ZlibDecoder;
use object::read::archive::ArchiveFile;
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SymbolKind};
use serde_json::Value;
use std::borrow::Cow;
use std::io::Read as _;
use support::{Error, Result};

/// Upper bound of records in one file, which may be a program with many models.
const MAX_RECORDS: usize = 1000;

/// A record and its location.
#[derive(Clone, Debug, PartialEq)]
pub struct MetadataRecord {
    /// Name of the member if the file is an archive.
    pub member: Option<String>,
    /// Contents of the record.
    pub metadata: Value,
}

/// Returns the records of a file in order. A record that occurs in several members is returned
/// once.
///
/// Fails if the file is not an object file, archive, library, or program, if it has no record, or
/// if a record is damaged.
pub fn read_metadata(file: &[u8]) -> Result<Vec<MetadataRecord>> {
    let mut records: Vec<MetadataRecord> = Vec::new();
    let mut left = MAX_JSON;
    let mut add = |member: Option<&str>, object: &[u8]| -> Result<()> {
        for metadata in object_records(object, &mut left)? {
            if records.len() >= MAX_RECORDS {
                return Err(Error::invalid(format!("the file has more than {MAX_RECORDS} metadata records")));
            }
            if records.iter().all(|f| f.metadata != metadata) {
                records.push(MetadataRecord { member: member.map(str::to_owned), metadata });
            }
        }
        Ok(())
    };
    if file.starts_with(b"!<arch>\n") || file.starts_with(b"!<thin>\n") {
        let damaged = |e| Error::invalid(format!("the archive is damaged: {e}"));
        let archive = ArchiveFile::parse(file).map_err(damaged)?;
        for member in archive.members() {
            let member = member.map_err(damaged)?;
            let name = String::from_utf8_lossy(member.name()).into_owned();
            let object = member.data(file).map_err(damaged)?;
            if object.starts_with(&wasm::MAGIC) || object::FileKind::parse(object).is_ok() {
                add(Some(&name), object).map_err(|e| e.context(format!("member '{name}'")))?;
            }
        }
    } else {
        add(None, file)?;
    }
    if records.is_empty() && file.starts_with(&wasm::MAGIC) {
        Err(Error::invalid("the module contains no tfcompile metadata: build it with --emit=wasm,metadata"))
    } else if records.is_empty() {
        Err(Error::invalid(
            "the file contains no tfcompile metadata: expected an object, archive, or library that tfcompile wrote",
        ))
    } else {
        Ok(records)
    }
}

/// Returns the records of an object file or a linked file, whose JSON may have `left` bytes.
fn object_records(object: &[u8], left: &mut usize) -> Result<Vec<Value>> {
    if object.starts_with(&wasm::MAGIC) {
        let mut records = Vec::new();
        for data in wasm::custom_sections(object, &String::from_utf8_lossy(SECTION))? {
            parse_records(data, &mut records, left)?;
        }
        return Ok(records);
    }
    let file = object::File::parse(object).map_err(|e| {
        Error::invalid(format!(
            "not an object file, archive, library, program, or constants file of tfcompile: {e}"
        ))
    })?;
    let mut records = Vec::new();
    for section in file.sections() {
        let is_ours = match (section.segment_name_bytes(), section.name_bytes()) {
            (Ok(Some(segment)), Ok(name)) => segment == SEGMENT && name == MACH_O_SECTION,
            (_, Ok(name)) => name == SECTION,
            _ => false,
        };
        if is_ours {
            let data = section.data().map_err(|e| Error::invalid(format!("the metadata is damaged: {e}")))?;
            parse_records(data, &mut records, left)?;
        }
    }
    Ok(records)
}

/// Parses the records of a section, which follow one another with any padding that a linker
/// inserts.
fn parse_records(mut data: &[u8], records: &mut Vec<Value>, left: &mut usize) -> Result<()> {
    let damaged = |why: &str| Error::invalid(format!("the metadata is damaged: {why}"));
    loop {
        let zeros = data.iter().take_while(|&&byte| byte == 0).count();
        data = &data[zeros..];
        if data.is_empty() {
            return Ok(());
        }
        let (head, rest) = data.split_first_chunk::<16>().ok_or_else(|| damaged("a record is truncated"))?;
        if head[..8] != METADATA_MAGIC {
            return Err(damaged("a record has no magic number"));
        }
        let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (version, length) = (number(8), number(12) as usize);
        let stored = rest.get(..length).ok_or_else(|| damaged("a record is truncated"))?;
        let json = match version {
            1 => Cow::Borrowed(stored),
            METADATA_VERSION => {
                let mut json = Vec::new();
                ZlibDecoder::new(stored)
                    .take(*left as u64 + 1)
                    .read_to_end(&mut json)
                    .map_err(|e| damaged(&format!("zlib cannot unpack a record: {e}")))?;
                Cow::Owned(json)
            }
            _ => {
                return Err(Error::invalid(format!(
                    "unsupported metadata version: expected at most {METADATA_VERSION}, got {version}"
                )));
            }
        };
        if json.len() > *left || records.len() >= MAX_RECORDS {
            return Err(damaged("the records are too large"));
        }
        *left -= json.len();
        let value: Value = serde_json::from_slice(&json).map_err(|e| damaged(&format!("no JSON: {e}")))?;
        if !value.is_object() {
            return Err(damaged("a record is not a JSON object"));
        }
        records.push(value);
        data = &rest[length..];
    }
}

/// Returns the names and sizes of the functions in an object, in address order. In formats without
/// symbol sizes, a function ends where the next one or its section ends.
pub fn function_sizes(object: &[u8]) -> Result<Vec<(String, u64)>> {
    if object.starts_with(&wasm::MAGIC) {
        let sizes = wasm::WasmObject::parse(object)?.function_sizes().into_iter();
        return Ok(sizes.map(|size| (size.name, size.bytes)).collect());
    }
    let file = object::File::parse(object)
        .map_err(|e| Error::internal(format!("cannot parse the compiled object: {e}")))?;
    let mut functions: Vec<(usize, u64, u64, String)> = Vec::new();
    for symbol in file.symbols() {
        if let (SymbolKind::Text, Some(section), Ok(name)) =
            (symbol.kind(), symbol.section_index(), symbol.name())
        {
            functions.push((section.0, symbol.address(), symbol.size(), name.to_owned()));
        }
    }
    functions.sort();
    functions.dedup_by(|b, a| (a.0, a.1, &a.3) == (b.0, b.1, &b.3));
    let ends: Vec<u64> = functions
        .iter()
        .enumerate()
        .map(|(k, (section, ..))| {
            let next = functions[k + 1..].iter().find(|next| next.0 == *section && next.1 > functions[k].1);
            let own = file.section_by_index(object::SectionIndex(*section));
            let end = own.map(|section| section.address().saturating_add(section.size()));
            next.map_or(end.unwrap_or(functions[k].1), |next| next.1)
        })
        .collect();
    let sized = functions.into_iter().zip(ends).map(|((_, address, size, name), end)| {
        (name, if size > 0 { size } else { end.saturating_sub(address) })
    });
    Ok(sized.collect())
}
