//! Operations: results, name, then the generic form or the assembly of the dialect; also regions,
//! blocks, and the file.

use super::scanner::Scanner;
use super::{assembly, attribute, forms, types};
use crate::attribute::Attributes;
use crate::ir::{Block, Module, Operation, Region, Value, ValueId};
use crate::types::Type;
use std::collections::HashMap;
use support::{IdVec, Result};

/// Reads operations and tracks the values that they can name.
pub(super) struct Reader<'a> {
    pub(super) scanner: Scanner<'a>,
    values: IdVec<ValueId, Value>,
    /// The values that a name stands for, one for each result of an operation.
    names: HashMap<&'a str, Vec<ValueId>>,
    /// Names to restore in `names` when a region ends, with their previous values.
    shadowed: Vec<(&'a str, Option<Vec<ValueId>>)>,
}

/// An argument of a function or block, or the type of a result.
pub(super) struct Argument<'a> {
    /// The name after the `%`, empty if there is none.
    pub(super) name: &'a str,
    pub(super) value_type: Type,
    pub(super) attributes: Attributes,
    /// The name in its location.
    pub(super) location: String,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            scanner: Scanner::new(text),
            values: IdVec::new(),
            names: HashMap::new(),
            shadowed: Vec::new(),
        }
    }

    /// Reads to the end of the text.
    pub(super) fn file(mut self) -> Result<Module> {
        self.find_definitions()?;
        let mut operations = Vec::new();
        while self.scanner.peek() != 0 {
            if !self.skip_definition()? {
                operations.push(self.operation()?);
            }
        }
        Ok(Module { operations, values: self.values })
    }

    /// Finds aliases and resources before reading anything: aliases can follow their uses, and
    /// resources always do.
    fn find_definitions(&mut self) -> Result<()> {
        let mut depth_zero = self.scanner.clone();
        let mut definitions = (std::collections::BTreeMap::new(), std::collections::BTreeMap::new());
        while depth_zero.peek() != 0 {
            if depth_zero.at("#") || depth_zero.at("!") {
                let start = depth_zero.position();
                let sign = if depth_zero.eat("#") { "#" } else { "!" };
                depth_zero.expect(sign).ok();
                depth_zero.suffix();
                let name = depth_zero.since(start);
                if depth_zero.eat("=") {
                    definitions.0.insert(name, depth_zero.position());
                }
            } else if depth_zero.eat("{-#") {
                read_resources(&mut depth_zero, &mut definitions.1)?;
            } else if depth_zero.at("\"") {
                depth_zero.string()?;
            } else if ["(", "[", "{", "<"].iter().any(|open| depth_zero.eat(open)) {
                depth_zero.skip_balanced()?;
            } else if depth_zero.peek_word().is_empty() {
                let next = depth_zero.position() + depth_zero.next_char_length();
                depth_zero.set_position(next);
            } else {
                depth_zero.word();
            }
        }
        (self.scanner.aliases, self.scanner.resources) = definitions;
        Ok(())
    }

    /// Skips the definition of an alias or the section of resources; true if there was one.
    fn skip_definition(&mut self) -> Result<bool> {
        if self.scanner.eat("{-#") {
            read_resources(&mut self.scanner, &mut std::collections::BTreeMap::new())?;
            return Ok(true);
        }
        if self.scanner.at("#") {
            self.scanner.expect("#")?;
            self.scanner.suffix();
            self.scanner.expect("=")?;
            attribute::read(&mut self.scanner)?;
            return Ok(true);
        }
        if self.scanner.at("!") {
            self.scanner.expect("!")?;
            self.scanner.suffix();
            self.scanner.expect("=")?;
            types::read_type(&mut self.scanner)?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Reads one operation.
    pub(super) fn operation(&mut self) -> Result<Operation> {
        self.scanner.enter()?;
        self.scanner.position();
        let line = self.scanner.line();
        let names = self.result_names()?;
        let start = self.scanner.position();
        let mut operation = Operation { line, ..Operation::default() };
        let result_types = if self.scanner.at("\"") {
            forms::generic(self, &mut operation)?
        } else {
            let word = self.scanner.word();
            if word.is_empty() {
                return Err(self.scanner.expected("an operation"));
            }
            operation.name = assembly::full_name(word).to_owned();
            assembly::read(self, &mut operation)?
        };
        if self.scanner.eat_word("loc") {
            operation.location = self.location()?;
        }
        self.define_results(start, &names, result_types, &mut operation)?;
        self.scanner.leave();
        Ok(operation)
    }

    /// `%a, %b:2 =`: names with their numbers of values.
    fn result_names(&mut self) -> Result<Vec<(&'a str, usize)>> {
        let mut names = Vec::new();
        if !self.scanner.at("%") {
            return Ok(names);
        }
        loop {
            let name = self.value_name()?;
            let count = if self.scanner.eat(":") { self.scanner.integer()? } else { 1 };
            names.push((name, usize::try_from(count).unwrap_or(0)));
            if !self.scanner.eat(",") {
                break;
            }
        }
        self.scanner.expect("=")?;
        Ok(names)
    }

    fn define_results(
        &mut self,
        start: usize,
        names: &[(&'a str, usize)],
        result_types: Vec<Type>,
        operation: &mut Operation,
    ) -> Result<()> {
        let count: usize =
            names.iter().map(|(_, count)| count).fold(0, |sum, count| sum.saturating_add(*count));
        if !names.is_empty() && count != result_types.len() {
            self.scanner.set_position(start);
            let message =
                format!("{} has {} results, but {count} are named", operation.name, result_types.len());
            return Err(self.scanner.error(message));
        }
        let mut result_types = result_types.into_iter();
        for &(name, count) in names {
            let ids: Vec<ValueId> = result_types
                .by_ref()
                .take(count)
                .map(|value_type| self.add_value(value_type, name))
                .collect();
            operation.results.extend(&ids);
            self.bind(name, ids);
        }
        for value_type in result_types {
            let id = self.add_value(value_type, "");
            operation.results.push(id);
        }
        Ok(())
    }

    pub(super) fn add_value(&mut self, value_type: Type, name: &str) -> ValueId {
        self.values.push(Value { value_type, name: name.to_owned() })
    }

    /// Gives a value the name in its location, which is its name in the original program.
    pub(super) fn rename(&mut self, id: ValueId, location: String) {
        if !location.is_empty() {
            self.values[id].name = location;
        }
    }

    /// Lets a name stand for these values up to the end of the region.
    fn bind(&mut self, name: &'a str, ids: Vec<ValueId>) {
        let before = self.names.insert(name, ids);
        self.shadowed.push((name, before));
    }

    /// Reads the name after a `%`.
    pub(super) fn value_name(&mut self) -> Result<&'a str> {
        self.scanner.expect("%")?;
        Ok(self.scanner.suffix())
    }

    /// Reads a use of a value: `%name` or `%name#1`.
    pub(super) fn operand(&mut self) -> Result<ValueId> {
        let start = self.scanner.position();
        let name = self.value_name()?;
        let number = if self.scanner.eat("#") { self.scanner.integer()? } else { 0 };
        let ids = self.names.get(name);
        let id = ids.and_then(|ids| ids.get(usize::try_from(number).ok()?));
        id.copied().ok_or_else(|| {
            let use_text = self.scanner.since(start).trim_end();
            self.scanner.error(format!("{use_text} is used before it is defined"))
        })
    }

    /// Returns the type of a value.
    pub(super) fn type_of(&self, id: ValueId) -> &Type {
        &self.values[id].value_type
    }

    /// Reads a region in braces. `arguments` are those of its first block that are named before it.
    pub(super) fn region(&mut self, arguments: Vec<(&'a str, Type)>) -> Result<Region> {
        self.scanner.expect("{")?;
        let outer = self.shadowed.len();
        let mut block = Block::default();
        for (name, value_type) in arguments {
            block.arguments.push(self.argument(name, value_type));
        }
        if self.scanner.at("^") {
            if !block.arguments.is_empty() {
                return Err(self
                    .scanner
                    .error("unexpected block label: the arguments of this region precede it"));
            }
            self.label(&mut block)?;
        }
        while !self.scanner.eat("}") {
            if self.scanner.at("^") {
                return Err(self
                    .scanner
                    .error("a region with several blocks: only structured control flow is supported"));
            }
            block.operations.push(self.operation()?);
        }
        for (name, before) in self.shadowed.drain(outer..).rev() {
            match before {
                Some(ids) => self.names.insert(name, ids),
                None => self.names.remove(name),
            };
        }
        Ok(Region { blocks: vec![block] })
    }

    fn argument(&mut self, name: &'a str, value_type: Type) -> ValueId {
        let id = self.add_value(value_type, name);
        self.bind(name, vec![id]);
        id
    }

    /// `^bb0(%a: tensor<f32>, %b: tensor<f32>):`
    fn label(&mut self, block: &mut Block) -> Result<()> {
        self.scanner.expect("^")?;
        self.scanner.suffix();
        if self.scanner.at("(") {
            for argument in self.arguments()? {
                block.arguments.push(self.argument(argument.name, argument.value_type));
            }
        }
        self.scanner.expect(":")
    }

    /// Reads `(%a: tensor<f32> {attributes}, ...)`. Names are optional: `(tensor<f32>)`.
    pub(super) fn arguments(&mut self) -> Result<Vec<Argument<'a>>> {
        self.scanner.expect("(")?;
        let mut arguments = Vec::new();
        while !self.scanner.eat(")") {
            if !arguments.is_empty() {
                self.scanner.expect(",")?;
            }
            let mut name = "";
            if self.scanner.at("%") {
                name = self.value_name()?;
                self.scanner.expect(":")?;
            }
            let value_type = types::read_type(&mut self.scanner)?;
            let attributes = if self.scanner.at("{") {
                attribute::read_dictionary(&mut self.scanner)?
            } else {
                Attributes::default()
            };
            let mut location = String::new();
            if self.scanner.eat_word("loc") {
                location = self.location()?;
            }
            arguments.push(Argument { name, value_type, attributes, location });
        }
        Ok(arguments)
    }

    /// Reads the rest of a location after `loc`; returns the outermost name in it.
    fn location(&mut self) -> Result<String> {
        self.scanner.expect("(")?;
        let start = self.scanner.position();
        if self.scanner.at("#") {
            self.scanner.expect("#")?;
            self.scanner.suffix();
            let alias = self.scanner.aliases.get(&self.scanner.since(start)).copied();
            self.scanner.expect(")")?;
            let after = self.scanner.position();
            let Some(alias) = alias else { return Ok(String::new()) };
            self.scanner.set_position(alias);
            let mut name = String::new();
            if self.scanner.eat_word("loc") {
                self.scanner.enter()?;
                name = self.location()?;
                self.scanner.leave();
            }
            self.scanner.set_position(after);
            return Ok(name);
        }
        let mut name = String::new();
        if self.scanner.at("\"") {
            name = self.scanner.string()?.into_owned();
            // After a file name comes the line.
            if self.scanner.at(":") {
                name.clear();
            }
        } else if self.scanner.eat_word("fused") && self.scanner.eat("[") {
            // A name that ends in a colon is the operation's type, next to the name of its source.
            while self.scanner.at("\"") {
                let part = self.scanner.string()?;
                if !part.ends_with(':') {
                    name = part.into_owned();
                }
                if !self.scanner.eat(",") {
                    break;
                }
            }
            self.scanner.skip_balanced()?;
        }
        self.scanner.skip_balanced()?;
        Ok(name)
    }
}

/// Reads the blobs of `dialect_resources: { builtin: { name: "0x..." } } #-}`, by name.
fn read_resources<'a>(
    scanner: &mut Scanner<'a>,
    resources: &mut std::collections::BTreeMap<&'a str, &'a str>,
) -> Result<()> {
    while !scanner.eat("#-}") {
        if scanner.peek() == 0 {
            return Err(scanner.error("missing '#-}' after the resources"));
        }
        let name = scanner.suffix();
        if !name.is_empty() && scanner.eat(":") && scanner.at("\"") {
            let start = scanner.position();
            scanner.string()?;
            resources.insert(name, scanner.since(start).trim_matches('"'));
        } else if name.is_empty() {
            let next = scanner.position() + scanner.next_char_length();
            scanner.set_position(next);
        }
    }
    Ok(())
}
