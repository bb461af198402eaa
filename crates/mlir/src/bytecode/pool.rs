//! The attributes and types of a file, each read when it is first asked for.
//!
//! Entries refer to each other by number. A few bytes could so describe a value that takes all memory: lists of lists
//! of lists, each naming the one before twice. So every entry knows how many attributes and types it stands for, and
//! those handed out are counted.

use super::cursor::Cursor;
use super::sections::{AttributeIndex, Entry, File, StringIndex, TypeIndex};
use super::{builtin, damaged, vhlo};
use crate::attribute::Attribute;
use crate::types::Type;
use crate::{MAX_NESTING, text};
use support::{Error, Result};

/// How many attributes and types may be handed out: of a file of no size, for each of its bytes, and in all.
const LEAST_BUDGET: u64 = 1 << 18;
const BUDGET_PER_BYTE: u64 = 16;
const GREATEST_BUDGET: u64 = 6_000_000;

/// What was read, with the number of attributes and types in it.
type Known<T> = Option<(T, u64)>;

/// Attributes and types by number.
pub(super) struct Pool<'a> {
    pub(super) file: &'a File<'a>,
    attributes: Vec<Known<Attribute>>,
    types: Vec<Known<Type>>,
    depth: usize,
    /// How many more may be handed out.
    budget: u64,
    /// How many were handed out to the entry that is being read.
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
        let left = self.budget.checked_sub(count);
        self.budget = left.ok_or_else(|| {
            Error::unsupported("the bytecode names more attributes and types than can be held")
        })?;
        Ok(())
    }

    /// The attribute of a number.
    pub(super) fn attribute(&mut self, index: AttributeIndex) -> Result<Attribute> {
        if let Some(Some((known, count))) = self.attributes.get(index.0) {
            let (known, count) = (known.clone(), *count);
            self.charge(count)?;
            return Ok(known);
        }
        let entry = self.file.attribute(index)?;
        let (read, count) = self.nested(|pool| pool.read_attribute(entry))?;
        self.attributes[index.0] = Some((read.clone(), count));
        Ok(read)
    }

    /// The type of a number.
    pub(super) fn type_at(&mut self, index: TypeIndex) -> Result<Type> {
        if let Some(Some((known, count))) = self.types.get(index.0) {
            let (known, count) = (known.clone(), *count);
            self.charge(count)?;
            return Ok(known);
        }
        let entry = self.file.type_at(index)?;
        let (read, count) = self.nested(|pool| pool.read_type(entry))?;
        self.types[index.0] = Some((read.clone(), count));
        Ok(read)
    }

    /// Reads an entry; also how many attributes and types it stands for.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<(T, u64)> {
        if self.depth == MAX_NESTING {
            return Err(Error::unsupported(format!(
                "attributes and types of the bytecode nest deeper than {MAX_NESTING}"
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
            // What other dialects say of a program, such as its sharding, is no matter for one device.
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

    /// The name in a location, empty if it has none: that of the outermost one.
    pub(super) fn location(&mut self, index: AttributeIndex) -> Result<String> {
        let entry = self.file.attribute(index)?;
        let mut cursor = Cursor::new(entry.data);
        if entry.dialect != "builtin" || !entry.is_encoded || cursor.number()? != builtin::NAME_LOCATION {
            return Ok(String::new());
        }
        self.text(&mut cursor)
    }

    /// An attribute named by the next number.
    pub(super) fn next_attribute(&mut self, cursor: &mut Cursor<'_>) -> Result<Attribute> {
        self.attribute(AttributeIndex(cursor.index()?))
    }

    /// An attribute that may lack.
    pub(super) fn next_optional_attribute(&mut self, cursor: &mut Cursor<'_>) -> Result<Option<Attribute>> {
        let (index, is_there) = cursor.number_with_flag()?;
        if is_there { self.attribute(AttributeIndex(index as usize)).map(Some) } else { Ok(None) }
    }

    /// A list of attributes.
    pub(super) fn next_attributes(&mut self, cursor: &mut Cursor<'_>) -> Result<Vec<Attribute>> {
        (0..cursor.count()?).map(|_| self.next_attribute(cursor)).collect()
    }

    /// A type named by the next number.
    pub(super) fn next_type(&mut self, cursor: &mut Cursor<'_>) -> Result<Type> {
        self.type_at(TypeIndex(cursor.index()?))
    }

    /// A list of types.
    pub(super) fn next_types(&mut self, cursor: &mut Cursor<'_>) -> Result<Vec<Type>> {
        (0..cursor.count()?).map(|_| self.next_type(cursor)).collect()
    }

    /// The text of an attribute that is a string.
    pub(super) fn text(&mut self, cursor: &mut Cursor<'_>) -> Result<String> {
        match self.next_attribute(cursor)? {
            Attribute::String(text) => Ok(text),
            _ => Err(damaged("a name that is no string")),
        }
    }

    /// A string named by the next number; bytes that are no UTF-8 are replaced. Each 64 of them count as an attribute.
    pub(super) fn string(&mut self, cursor: &mut Cursor<'_>) -> Result<String> {
        let bytes = self.file.string(StringIndex(cursor.index()?))?;
        self.charge(bytes.len() as u64 / 64)?;
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }
}

/// An entry that its dialect writes as text.
fn assembly<'a>(cursor: &mut Cursor<'a>) -> Result<std::borrow::Cow<'a, str>> {
    Ok(String::from_utf8_lossy(cursor.terminated()?))
}
