//! The attributes and types of a file, each read on first use.
//!
//! Entries refer to each other by number. A few bytes could therefore describe a value that
//! exhausts memory: lists of lists of lists, each naming the previous one twice. To prevent this,
//! each entry records the number of attributes and types that it expands to, and a budget limits
//! the total handed out.

use super::cursor::Cursor;
use super::sections::{AttributeIndex, Entry, File, StringIndex, TypeIndex};
use super::{builtin, damaged, vhlo};
use crate::attribute::Attribute;
use crate::types::Type;
use crate::{MAX_NESTING, text};
use support::{Error, Result};

/// Limits on the attributes and types handed out: for an empty file, for each byte of a file, and
/// in total.
const LEAST_BUDGET: u64 = 1 << 18;
const BUDGET_PER_BYTE: u64 = 16;
const GREATEST_BUDGET: u64 = 6_000_000;

/// A parsed entry with the number of attributes and types in it.
type Cached<T> = Option<(T, u64)>;

/// Attributes and types by number.
pub(super) struct Pool<'a> {
    pub(super) file: &'a File<'a>,
    attributes: Vec<Cached<Attribute>>,
    types: Vec<Cached<Type>>,
    depth: usize,
    /// Remaining number of attributes and types that may be handed out.
    budget: u64,
    /// Number handed out to the entry that is being read.
    used: u64,
}

impl<'a> Pool<'a> {
    pub(super) fn new(file: &'a File<'a>) -> Self {
        let bytes: usize = file.attributes.iter().chain(&file.types).map(|entry| entry.data.len()).sum();
        let bytes = (bytes + file.operations.remaining() + file.properties.len()) as u64;
        let budget = (LEAST_BUDGET + bytes.saturating_mul(BUDGET_PER_BYTE)).min(GREATEST_BUDGET);
        Self {
            file,
            attributes: vec![None; file.attributes.len()],
            types: vec![None; file.types.len()],
            depth: 0,
            budget,
            used: 0,
        }
    }

    /// Counts attributes and types that are handed out.
    fn charge(&mut self, count: u64) -> Result<()> {
        self.used = self.used.saturating_add(count);
        let remaining = self.budget.checked_sub(count);
        self.budget = remaining
            .ok_or_else(|| Error::unsupported("the bytecode expands to too many attributes and types"))?;
        Ok(())
    }

    /// Returns the attribute with the given number.
    pub(super) fn attribute(&mut self, index: AttributeIndex) -> Result<Attribute> {
        if let Some(Some((cached, count))) = self.attributes.get(index.0) {
            let (cached, count) = (cached.clone(), *count);
            self.charge(count)?;
            return Ok(cached);
        }
        let entry = self.file.attribute(index)?;
        let (read, count) = self.nest(|pool| pool.read_attribute(entry))?;
        self.attributes[index.0] = Some((read.clone(), count));
        Ok(read)
    }

    /// Returns the type with the given number.
    pub(super) fn type_at(&mut self, index: TypeIndex) -> Result<Type> {
        if let Some(Some((cached, count))) = self.types.get(index.0) {
            let (cached, count) = (cached.clone(), *count);
            self.charge(count)?;
            return Ok(cached);
        }
        let entry = self.file.type_at(index)?;
        let (read, count) = self.nest(|pool| pool.read_type(entry))?;
        self.types[index.0] = Some((read.clone(), count));
        Ok(read)
    }

    /// Reads an entry; also returns the number of attributes and types that it expands to.
    fn nest<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<(T, u64)> {
        if self.depth == MAX_NESTING {
            return Err(Error::unsupported(format!(
                "attributes and types of the bytecode nest deeper than {MAX_NESTING} levels"
            )));
        }
        self.depth += 1;
        let outer = std::mem::take(&mut self.used);
        self.charge(1)?;
        let value = read(self)?;
        let count = self.used;
        self.used = outer.saturating_add(count);
        self.depth -= 1;
        Ok((value, count))
    }

    fn read_attribute(&mut self, entry: Entry<'a>) -> Result<Attribute> {
        let mut cursor = Cursor::new(entry.data);
        if !entry.is_encoded {
            return text::parse_attribute(&assembly(&mut cursor)?);
        }
        match entry.dialect {
            "builtin" => builtin::attribute(self, &mut cursor),
            "vhlo" => vhlo::attribute(self, &mut cursor),
            // Attributes of other dialects, such as shardings, do not matter on a single device.
            dialect => Ok(Attribute::Other(format!("#{dialect}"))),
        }
    }

    fn read_type(&mut self, entry: Entry<'a>) -> Result<Type> {
        let mut cursor = Cursor::new(entry.data);
        if !entry.is_encoded {
            return text::parse_type(&assembly(&mut cursor)?);
        }
        match entry.dialect {
            "builtin" => builtin::read_type(self, &mut cursor),
            "vhlo" => vhlo::read_type(self, &mut cursor),
            dialect => Ok(Type::Other(format!("!{dialect}"))),
        }
    }

    /// Returns the outermost name in a location; empty if it has none.
    pub(super) fn location(&mut self, index: AttributeIndex) -> Result<String> {
        let entry = self.file.attribute(index)?;
        let mut cursor = Cursor::new(entry.data);
        if entry.dialect != "builtin" || !entry.is_encoded || cursor.number()? != builtin::NAME_LOCATION {
            return Ok(String::new());
        }
        self.text(&mut cursor)
    }

    /// Reads the attribute that the next number refers to.
    pub(super) fn next_attribute(&mut self, cursor: &mut Cursor<'_>) -> Result<Attribute> {
        self.attribute(AttributeIndex(cursor.index()?))
    }

    /// Reads an attribute that may be absent.
    pub(super) fn next_optional_attribute(&mut self, cursor: &mut Cursor<'_>) -> Result<Option<Attribute>> {
        let (index, is_there) = cursor.number_with_flag()?;
        if is_there { self.attribute(AttributeIndex(index as usize)).map(Some) } else { Ok(None) }
    }

    /// Reads a list of attributes.
    pub(super) fn next_attributes(&mut self, cursor: &mut Cursor<'_>) -> Result<Vec<Attribute>> {
        (0..cursor.count()?).map(|_| self.next_attribute(cursor)).collect()
    }

    /// Reads the type that the next number refers to.
    pub(super) fn next_type(&mut self, cursor: &mut Cursor<'_>) -> Result<Type> {
        self.type_at(TypeIndex(cursor.index()?))
    }

    /// Reads a list of types.
    pub(super) fn next_types(&mut self, cursor: &mut Cursor<'_>) -> Result<Vec<Type>> {
        (0..cursor.count()?).map(|_| self.next_type(cursor)).collect()
    }

    /// Reads the text of a string attribute.
    pub(super) fn text(&mut self, cursor: &mut Cursor<'_>) -> Result<String> {
        match self.next_attribute(cursor)? {
            Attribute::String(text) => Ok(text),
            _ => Err(damaged("a name that is not a string")),
        }
    }

    /// Reads the string that the next number refers to and replaces bytes that are not UTF-8. Every
    /// 64 bytes count as one attribute.
    pub(super) fn string(&mut self, cursor: &mut Cursor<'_>) -> Result<String> {
        let bytes = self.file.string(StringIndex(cursor.index()?))?;
        self.charge(bytes.len() as u64 / 64)?;
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }
}

/// Text of an entry that its dialect does not encode.
fn assembly<'a>(cursor: &mut Cursor<'a>) -> Result<std::borrow::Cow<'a, str>> {
    Ok(String::from_utf8_lossy(cursor.terminated()?))
}
