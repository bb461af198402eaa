//! The types and small functions that a source file needs, each written once before its first use.

use crate::opencl_names::opencl_name;
use crate::spaces::Space;
use nest::{ScalarType, Type};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The interpretation of a lane's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lane {
    Float,
    Unsigned,
    Signed,
}

/// The type of a vector in C, whose number of lanes is a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Vector {
    pub(crate) lane: Lane,
    /// Bytes of a lane.
    pub(crate) bytes: usize,
    pub(crate) lanes: u32,
}

impl Vector {
    /// The type of a vector of numbers. The lanes after the last one have any value.
    pub(crate) fn of(ty: Type) -> Self {
        let lane = if ty.scalar.is_float() { Lane::Float } else { Lane::Unsigned };
        Self { lane, bytes: ty.scalar.byte_size(), lanes: ty.lanes.next_power_of_two() }
    }

    /// The type of a mask whose lanes, 0 or -1, have this size.
    pub(crate) fn mask(bytes: usize, lanes: u32) -> Self {
        Self { lane: Lane::Signed, bytes, lanes: lanes.next_power_of_two() }
    }

    pub(crate) fn with(self, lane: Lane) -> Self {
        Self { lane, ..self }
    }

    pub(crate) fn total(self) -> usize {
        self.bytes * self.lanes as usize
    }

    /// The type of a lane.
    pub(crate) fn scalar(self) -> &'static str {
        match (self.lane, self.bytes) {
            (Lane::Float, 4) => "float",
            (Lane::Float, _) => "double",
            (Lane::Unsigned, 1) => "uint8_t",
            (Lane::Unsigned, 2) => "uint16_t",
            (Lane::Unsigned, 4) => "uint32_t",
            (Lane::Unsigned, _) => "uint64_t",
            (Lane::Signed, 1) => "int8_t",
            (Lane::Signed, 2) => "int16_t",
            (Lane::Signed, 4) => "int32_t",
            (Lane::Signed, _) => "int64_t",
        }
    }

    /// The name of the type.
    pub(crate) fn name(self) -> String {
        let letter = match self.lane {
            Lane::Float => 'f',
            Lane::Unsigned => 'u',
            Lane::Signed => 'i',
        };
        format!("{letter}{}x{}", self.bytes * 8, self.lanes)
    }

    /// The register of x86 that this vector fills, and its size in bits.
    pub(crate) fn register(self) -> Option<Register> {
        let bits = self.total() * 8;
        matches!(bits, 128 | 256 | 512).then_some(Register { vector: self, bits })
    }
}

/// A register of x86.
#[derive(Clone, Copy)]
pub(crate) struct Register {
    vector: Vector,
    pub(crate) bits: usize,
}

impl Register {
    /// The start of the names of the register's intrinsics.
    pub(crate) fn prefix(self) -> &'static str {
        match self.bits {
            128 => "_mm",
            256 => "_mm256",
            _ => "_mm512",
        }
    }

    /// The type of the register for a kind of lanes.
    pub(crate) fn ty(self, lane: Lane) -> String {
        let letter = match (lane, self.vector.bytes) {
            (Lane::Float, 4) => "",
            (Lane::Float, _) => "d",
            _ => "i",
        };
        format!("__m{}{letter}", self.bits)
    }

    /// The end of the names of intrinsics for floats.
    pub(crate) fn float_suffix(self) -> &'static str {
        if self.vector.bytes == 4 { "ps" } else { "pd" }
    }
}

/// An access to memory.
#[derive(Clone, Copy)]
pub(crate) struct Access {
    /// The type of what is loaded or stored.
    pub(crate) ty: Type,
    /// The kind of memory, in OpenCL C.
    pub(crate) space: Space,
    /// True if the address is a multiple of the size of a lane.
    pub(crate) is_aligned: bool,
}

impl Access {
    /// The end of the names of functions in OpenCL C.
    pub(crate) fn ending(self) -> &'static str {
        if self.is_aligned { "" } else { "_from_bytes" }
    }
}

/// C's type of a scalar that is not an address.
pub(crate) fn scalar_type(scalar: ScalarType) -> &'static str {
    match scalar {
        ScalarType::Bool => "bool",
        ScalarType::I8 => "uint8_t",
        ScalarType::I16 => "uint16_t",
        ScalarType::I32 => "uint32_t",
        ScalarType::I64 => "int64_t",
        ScalarType::F32 => "float",
        ScalarType::F64 => "double",
        ScalarType::Ptr => "unsigned char *",
    }
}

/// The types and functions so far.
#[derive(Default)]
pub(crate) struct Prelude {
    /// True if the text is OpenCL C.
    pub(crate) is_opencl: bool,
    types: BTreeMap<String, Vector>,
    names: BTreeSet<String>,
    functions: String,
    /// Constant bytes and their names.
    tables: BTreeMap<Vec<u8>, String>,
    table_texts: String,
    /// Prototypes of the user's functions, by symbol.
    externals: BTreeMap<String, usize>,
    /// True if an intrinsic of x86 is used.
    pub(crate) uses_x86: bool,
}

impl Prelude {
    /// The prelude of OpenCL C.
    pub(crate) fn opencl() -> Self {
        Self { is_opencl: true, ..Self::default() }
    }

    /// Returns the name of a vector type, and defines it.
    pub(crate) fn vector(&mut self, vector: Vector) -> String {
        if self.is_opencl {
            let lanes = if vector.lanes == 1 { String::new() } else { vector.lanes.to_string() };
            return format!("{}{lanes}", opencl_name(vector.scalar()));
        }
        let name = vector.name();
        self.types.insert(name.clone(), vector);
        name
    }

    /// Defines a function unless it is defined. `make` returns its text.
    pub(crate) fn function(&mut self, name: &str, make: impl FnOnce(&mut Self) -> String) {
        if self.names.insert(name.to_owned()) {
            // The functions of some depend on the processor, so not all are used.
            let mut text = make(self);
            if !self.is_opencl {
                text = text.replace("static inline ", "TFC_HELPER ");
            }
            self.functions += &text;
            self.functions.push('\n');
        }
    }

    /// Returns the name of a table with these bytes.
    pub(crate) fn table(&mut self, bytes: &[u8]) -> String {
        if let Some(name) = self.tables.get(bytes) {
            return name.clone();
        }
        let number = self.tables.len();
        let name = match text_of(bytes) {
            Some(text) if !self.is_opencl => {
                let name = format!("text{number}");
                let _ = writeln!(self.table_texts, "static const unsigned char {name}[] = {text};");
                name
            }
            _ if self.is_opencl => {
                let name = format!("table{number}");
                let _ = writeln!(
                    self.table_texts,
                    "constant uchar {name}[{}] __attribute__((aligned(8))) = {{{}}};",
                    bytes.len(),
                    byte_list(bytes)
                );
                name
            }
            _ => {
                let name = format!("table{number}");
                let _ = writeln!(
                    self.table_texts,
                    "static TFC_ALIGNED(8) const unsigned char {name}[{}] = {{{}}};",
                    bytes.len(),
                    byte_list(bytes)
                );
                name
            }
        };
        self.tables.insert(bytes.to_vec(), name.clone());
        name
    }

    /// Declares a function of the user. Returns the number of parameters of an earlier declaration.
    pub(crate) fn external(&mut self, symbol: &str, parameters: usize) -> usize {
        *self.externals.entry(symbol.to_owned()).or_insert(parameters)
    }

    /// The text of everything so far.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        for (name, vector) in &self.types {
            let _ = writeln!(
                out,
                "typedef {} {name} __attribute__((vector_size({})));",
                vector.scalar(),
                vector.total()
            );
        }
        if !self.types.is_empty() {
            out.push('\n');
        }
        for (symbol, &parameters) in &self.externals {
            let list =
                if parameters == 0 { "void".to_owned() } else { vec!["void *"; parameters].join(", ") };
            let _ = writeln!(out, "int32_t {symbol}({list});\n");
        }
        out += &self.functions;
        if !self.table_texts.is_empty() {
            out += &self.table_texts;
            out.push('\n');
        }
        out
    }
}

/// The bytes as a string literal, without the zero at its end, if they are a text.
fn text_of(bytes: &[u8]) -> Option<String> {
    let (&0, text) = bytes.split_last()? else { return None };
    let printable = |&byte: &u8| byte == b' ' || byte.is_ascii_graphic();
    if text.is_empty() || text.len() > 4000 || !text.iter().all(printable) {
        return None;
    }
    let mut literal = String::from("\"");
    for &byte in text {
        // A question mark could begin a trigraph.
        if matches!(byte, b'"' | b'\\' | b'?') {
            literal.push('\\');
        }
        literal.push(char::from(byte));
    }
    literal.push('"');
    Some(literal)
}

fn byte_list(bytes: &[u8]) -> String {
    let mut list = String::new();
    for (k, byte) in bytes.iter().enumerate() {
        if bytes.len() > 16 && k % 16 == 0 {
            list += "\n  ";
        }
        let _ = write!(list, "{byte:#04x}u{}", if k + 1 == bytes.len() { "" } else { ", " });
    }
    list
}
