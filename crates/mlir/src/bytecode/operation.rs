//! Operations, their regions, and the values between them.

use super::cursor::Cursor;
use super::pool::Pool;
use super::sections::{self, AttributeIndex, File, OperationName, TypeIndex, since};
use super::{damaged, newer, upgrade, vhlo_operations};
use crate::MAX_NESTING;
use crate::attribute::{Attribute, Attributes};
use crate::ir::{Block, Module, Operation, Region, Value, ValueId};
use crate::types::Type;
use support::{Error, IdVec, Result};

/// Flags for the optional parts of an operation.
mod part {
    pub(super) const ATTRIBUTES: u8 = 1;
    pub(super) const RESULTS: u8 = 1 << 1;
    pub(super) const OPERANDS: u8 = 1 << 2;
    pub(super) const SUCCESSORS: u8 = 1 << 3;
    pub(super) const REGIONS: u8 = 1 << 4;
    pub(super) const USE_LISTS: u8 = 1 << 5;
    pub(super) const PROPERTIES: u8 = 1 << 6;
}

/// Reads the operations of a file.
pub(super) fn read(file: &File<'_>) -> Result<Module> {
    let mut reader =
        Reader { pool: Pool::new(file), values: IdVec::new(), scopes: vec![Scope::default()], depth: 0 };
    let mut cursor = file.operations;
    let block = reader.block(&mut cursor)?;
    if !cursor.is_empty() {
        return Err(damaged("extra bytes after the last operation"));
    }
    Ok(Module { operations: block.operations, values: reader.values })
}

/// The values that operations of an isolated region can name, by number.
#[derive(Default)]
struct Scope {
    values: Vec<Option<ValueId>>,
    /// Number of the next value in each open region.
    next: Vec<usize>,
}

struct Reader<'a> {
    pool: Pool<'a>,
    values: IdVec<ValueId, Value>,
    scopes: Vec<Scope>,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn version(&self) -> u64 {
        self.pool.file.version
    }

    /// Reads a block: the number of operations, the block's arguments, and the operations.
    fn block(&mut self, cursor: &mut Cursor<'a>) -> Result<Block> {
        let (count, has_arguments) = cursor.number_with_flag()?;
        let mut block = Block::default();
        if has_arguments {
            block.arguments = self.arguments(cursor)?;
            if self.version() >= since::USE_LISTS && cursor.byte()? != 0 {
                skip_use_lists(cursor, block.arguments.len())?;
            }
        }
        for _ in 0..count {
            block.operations.push(self.operation(cursor)?);
        }
        Ok(block)
    }

    /// Reads the types and locations of a block's arguments.
    fn arguments(&mut self, cursor: &mut Cursor<'a>) -> Result<Vec<ValueId>> {
        let mut types = Vec::new();
        for _ in 0..cursor.count()? {
            let (value_type, location) = if self.version() >= since::ELIDED_LOCATIONS {
                let (value_type, has_location) = cursor.number_with_flag()?;
                (value_type, if has_location { Some(cursor.index()?) } else { None })
            } else {
                (cursor.number()?, Some(cursor.index()?))
            };
            let name = location
                .map_or(Ok(String::new()), |location| self.pool.location(AttributeIndex(location)))?;
            types.push((self.pool.type_at(TypeIndex(value_type as usize))?, name));
        }
        self.define(types)
    }

    /// Adds values to the innermost region.
    fn define(&mut self, types: Vec<(Type, String)>) -> Result<Vec<ValueId>> {
        let scope = self.scopes.last_mut().expect("expected an open scope");
        let mut ids = Vec::new();
        for (value_type, name) in types {
            let id = self.values.push(Value { value_type, name });
            let next = scope.next.last_mut();
            let place = next.and_then(|next| {
                *next += 1;
                scope.values.get_mut(*next - 1)
            });
            *place.ok_or_else(|| damaged("a region defines more values than it declares"))? = Some(id);
            ids.push(id);
        }
        Ok(ids)
    }

    fn operand(&self, index: usize) -> Result<ValueId> {
        let scope = self.scopes.last().expect("expected an open scope");
        let id = scope.values.get(index).copied().flatten();
        id.ok_or_else(|| damaged(format_args!("value {index} is used before it is defined")))
    }

    fn operation(&mut self, cursor: &mut Cursor<'a>) -> Result<Operation> {
        let index = cursor.index()?;
        let name = self.pool.file.operation_names.get(index).copied();
        let name = name.ok_or_else(|| damaged(format_args!("operation name {index} does not exist")))?;
        let parts = cursor.byte()?;
        let has = |part: u8| parts & part != 0;
        let location = self.pool.location(AttributeIndex(cursor.index()?))?;
        let mut attributes = Attributes::default();
        if has(part::ATTRIBUTES) {
            attributes = dictionary(self.pool.next_attribute(cursor)?)?;
        }
        if has(part::PROPERTIES) {
            attributes.extend(self.properties(name, cursor)?);
        }
        let mut results = Vec::new();
        if has(part::RESULTS) {
            for value_type in self.pool.next_types(cursor)? {
                results.push((value_type, String::new()));
            }
        }
        let mut operands = Vec::new();
        if has(part::OPERANDS) {
            for _ in 0..cursor.count()? {
                operands.push(self.operand(cursor.index()?)?);
            }
        }
        if has(part::SUCCESSORS) {
            return Err(Error::unsupported(format!(
                "{}.{} has successors: only structured control flow is supported",
                name.dialect, name.name
            )));
        }
        if self.version() >= since::USE_LISTS && has(part::USE_LISTS) {
            skip_use_lists(cursor, results.len())?;
        }
        // The results are defined before the regions are read, although the regions cannot use
        // them.
        let results = self.define(results)?;
        let regions = if has(part::REGIONS) { self.regions(cursor)? } else { Vec::new() };
        let full_name = format!("{}.{}", name.dialect, name.name);
        let parsed = Operation { name: full_name, operands, results, attributes, regions, location, line: 0 };
        upgrade::upgrade(parsed)
    }

    /// Reads the attributes that are stored as properties.
    fn properties(&mut self, name: OperationName<'_>, cursor: &mut Cursor<'a>) -> Result<Attributes> {
        if !name.is_registered {
            return dictionary(self.pool.next_attribute(cursor)?);
        }
        let index = cursor.index()?;
        let data = self.pool.file.properties.get(index).copied();
        let mut data =
            Cursor::new(data.ok_or_else(|| damaged(format_args!("properties {index} do not exist")))?);
        let mut attributes = Attributes::default();
        match (name.dialect, name.name) {
            ("builtin", "module") => {
                for name in ["sym_name", "sym_visibility"] {
                    if let Some(value) = self.pool.next_optional_attribute(&mut data)? {
                        attributes.set(name, value);
                    }
                }
            }
            ("vhlo", operation) => {
                let names = vhlo_operations::attributes_of(operation);
                for name in names.ok_or_else(|| newer(format_args!("operation {operation}")))? {
                    attributes.set(*name, self.pool.next_attribute(&mut data)?);
                }
            }
            (dialect, operation) => {
                return Err(Error::unsupported(format!(
                    "bytecode with the operation {dialect}.{operation}, whose dialect has no stable encoding: \
                     write a portable artifact, as jax.export and stablehlo-translate --serialize do, or text"
                )));
            }
        }
        if !data.is_empty() {
            return Err(damaged(format_args!("extra bytes after the properties of {}", name.name)));
        }
        Ok(attributes)
    }

    /// Reads regions. Those that are isolated from the surrounding values have a separate section.
    fn regions(&mut self, cursor: &mut Cursor<'a>) -> Result<Vec<Region>> {
        if self.depth == MAX_NESTING {
            return Err(Error::unsupported(format!("regions nest deeper than {MAX_NESTING} levels")));
        }
        self.depth += 1;
        let (count, is_isolated) = cursor.number_with_flag()?;
        if is_isolated {
            self.scopes.push(Scope::default());
        }
        let regions = if is_isolated && self.version() >= since::ISOLATED_SECTIONS {
            let (kind, mut inner) = sections::section(cursor)?;
            if kind != sections::OPERATIONS {
                return Err(damaged(format_args!("a region in a section of kind {kind}")));
            }
            let regions = self.region_list(&mut inner, count)?;
            if !inner.is_empty() {
                return Err(damaged("extra bytes after a region"));
            }
            regions
        } else {
            self.region_list(cursor, count)?
        };
        if is_isolated {
            self.scopes.pop();
        }
        self.depth -= 1;
        Ok(regions)
    }

    fn region_list(&mut self, cursor: &mut Cursor<'a>, count: u64) -> Result<Vec<Region>> {
        (0..count).map(|_| self.region(cursor)).collect()
    }

    fn region(&mut self, cursor: &mut Cursor<'a>) -> Result<Region> {
        match cursor.number()? {
            0 => return Ok(Region::default()),
            1 => {}
            _ => {
                return Err(Error::unsupported(
                    "a region with several blocks: only structured control flow is supported",
                ));
            }
        }
        // Each value has a type, which takes at least one byte, so `count` is a valid bound.
        let count = cursor.count()?;
        let scope = self.scopes.last_mut().expect("expected an open scope");
        let first = scope.values.len();
        scope.values.resize(first + count, None);
        scope.next.push(first);
        let block = self.block(cursor)?;
        let scope = self.scopes.last_mut().expect("expected an open scope");
        scope.values.truncate(first);
        scope.next.pop();
        Ok(Region { blocks: vec![block] })
    }
}

fn dictionary(attribute: Attribute) -> Result<Attributes> {
    match attribute {
        Attribute::Dictionary(fields) => Ok(fields),
        _ => Err(damaged("attributes that are not a dictionary")),
    }
}

/// Skips the order of each value's uses; nothing depends on it.
fn skip_use_lists(cursor: &mut Cursor<'_>, values: usize) -> Result<()> {
    let lists = if values > 1 { cursor.count()? } else { 1 };
    for _ in 0..lists {
        if values > 1 {
            cursor.index()?;
        }
        let (count, _) = cursor.number_with_flag()?;
        for _ in 0..count {
            cursor.index()?;
        }
    }
    Ok(())
}
