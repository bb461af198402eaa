//! Parser for the text of programs. Errors contain the line.

use std::collections::BTreeMap;

use support::{Error, Id, IdVec, Result};

use super::{BINARY, CONVERSIONS, GROUPS, MATRICES, PREDICATES, SCALARS, UNARY, named};
use crate::language::*;

/// Maximum number of nested regions.
const MAX_NESTING: usize = 256;
/// Maximum number of values in a function.
const MAX_VALUES: u32 = 1 << 24;

/// Parses the text of a program without verifying it.
pub fn parse(text: &str) -> Result<Program> {
    let mut reader = Reader { rest: text, line: 1, types: BTreeMap::new(), depth: 0 };
    let mut program = Program::default();
    while !reader.at_end() {
        let function = reader.function().map_err(|e| e.context(format_args!("line {}", reader.line)))?;
        program.functions.push(function);
    }
    Ok(program)
}

pub(super) struct Reader<'t> {
    rest: &'t str,
    line: usize,
    /// Types of the values defined so far in this function.
    types: BTreeMap<u32, Type>,
    depth: usize,
}

impl<'t> Reader<'t> {
    /// Skips whitespace and comments, which begin with `//`.
    fn skip(&mut self) {
        loop {
            let trimmed = self.rest.trim_start();
            let skipped = &self.rest[..self.rest.len() - trimmed.len()];
            self.line += skipped.matches('\n').count();
            self.rest = trimmed;
            if !trimmed.starts_with("//") {
                return;
            }
            self.rest = trimmed.find('\n').map_or("", |end| &trimmed[end..]);
        }
    }

    fn at_end(&mut self) -> bool {
        self.skip();
        self.rest.is_empty()
    }

    /// Consumes `punctuation` if it comes next. Otherwise nothing is skipped, so that an error
    /// names the line before.
    fn eat(&mut self, punctuation: &str) -> bool {
        let before = (self.rest, self.line);
        self.skip();
        match self.rest.strip_prefix(punctuation) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => {
                (self.rest, self.line) = before;
                false
            }
        }
    }

    fn expect(&mut self, punctuation: &str) -> Result<()> {
        if self.eat(punctuation) {
            return Ok(());
        }
        self.skip();
        Err(self.unexpected(&format!("'{punctuation}'")))
    }

    fn unexpected(&self, expected: &str) -> Error {
        let next: String = self.rest.chars().take_while(|&c| c != '\n').take(24).collect();
        Error::invalid(format!("expected {expected}, found '{next}'"))
    }

    /// Returns the next word of letters, digits, and underscores. It may be empty.
    fn peek_word(&mut self) -> &'t str {
        self.skip();
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        &self.rest[..end]
    }

    pub(super) fn word(&mut self, what: &str) -> Result<&'t str> {
        let word = self.peek_word();
        if word.is_empty() {
            return Err(self.unexpected(what));
        }
        self.rest = &self.rest[word.len()..];
        Ok(word)
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let is_next = self.peek_word() == word;
        if is_next {
            self.rest = &self.rest[word.len()..];
        }
        is_next
    }

    pub(super) fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.eat_word(word) { Ok(()) } else { Err(self.unexpected(&format!("'{word}'"))) }
    }

    /// Consumes a number in Rust syntax: digits, sign, point, exponent, or hexadecimal bits.
    fn number_text(&mut self) -> Result<&'t str> {
        self.skip();
        let mut end = 0;
        let mut previous = ' ';
        for c in self.rest.chars() {
            let range = c == '.' && self.rest[end..].starts_with("..");
            let sign = matches!(c, '-' | '+') && (end == 0 || matches!(previous, 'e' | 'E'));
            if range || !(c.is_ascii_alphanumeric() || c == '.' || sign) {
                break;
            }
            end += c.len_utf8();
            previous = c;
        }
        if end == 0 {
            return Err(self.unexpected("a number"));
        }
        let (number, rest) = self.rest.split_at(end);
        self.rest = rest;
        Ok(number)
    }

    pub(super) fn number<T: std::str::FromStr>(&mut self) -> Result<T> {
        let text = self.number_text()?;
        text.parse().map_err(|_| Error::invalid(format!("'{text}' is not a valid number here")))
    }

    fn quoted(&mut self) -> Result<String> {
        self.expect("\"")?;
        let mut string = String::new();
        loop {
            let mut chars = self.rest.chars();
            let c = chars.next().ok_or_else(|| Error::invalid("missing the end of a string"))?;
            self.rest = chars.as_str();
            match c {
                '"' => return Ok(string),
                '\\' => string.push(self.escape()?),
                c => string.push(c),
            }
        }
    }

    fn escape(&mut self) -> Result<char> {
        if let Some(rest) = self.rest.strip_prefix("u{")
            && let Some((digits, rest)) = rest.split_once('}')
            && let Some(c) = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)
        {
            self.rest = rest;
            return Ok(c);
        }
        let mut chars = self.rest.chars();
        match chars.next() {
            Some(c @ ('"' | '\\')) => {
                self.rest = chars.as_str();
                Ok(c)
            }
            _ => Err(self.unexpected("an escape")),
        }
    }

    fn id<I: Id>(&mut self, prefix: &str, what: &str) -> Result<I> {
        let word = self.word(what)?;
        let number = word.strip_prefix(prefix).and_then(|digits| digits.parse::<u32>().ok());
        match number {
            Some(number) if number < MAX_VALUES => Ok(I::from_index(number as usize)),
            _ => Err(Error::invalid(format!("expected {what}, found '{word}'"))),
        }
    }

    fn value(&mut self) -> Result<ValueId> {
        self.id("v", "a value such as v0")
    }

    fn values(&mut self) -> Result<Vec<ValueId>> {
        let mut values = vec![self.value()?];
        while self.eat(",") {
            values.push(self.value()?);
        }
        Ok(values)
    }

    fn ty(&mut self) -> Result<Type> {
        let word = self.word("a type")?;
        let (scalar, lanes) = match word.split_once('x') {
            Some((scalar, lanes)) => (scalar, lanes.parse().ok().filter(|&lanes| lanes > 1)),
            None => (word, Some(1)),
        };
        match (named(SCALARS, scalar), lanes) {
            (Some(scalar), Some(lanes)) => Ok(Type::vector(scalar, lanes)),
            _ => Err(Error::invalid(format!("'{word}' is not a type"))),
        }
    }

    fn define(&mut self, id: ValueId, ty: Type) -> Result<()> {
        match self.types.insert(id.index() as u32, ty) {
            None => Ok(()),
            Some(_) => Err(Error::invalid(format!("{id} is defined twice"))),
        }
    }

    fn function(&mut self) -> Result<Function> {
        self.types.clear();
        let linkage = match self.word("a function")? {
            "entry" => Linkage::Entry,
            "internal" => Linkage::Internal,
            "inline" => Linkage::Inline,
            "kernel" => Linkage::Kernel { threads: self.number()? },
            "routine" => Linkage::Routine,
            other => {
                return Err(Error::invalid(format!(
                    "expected entry, internal, inline, kernel, or routine, found '{other}'"
                )));
            }
        };
        self.expect_word("fn")?;
        self.skip();
        let name = self.quoted()?;
        self.expect("(")?;
        let mut parameters = Vec::new();
        while !self.eat(")") {
            if !parameters.is_empty() {
                self.expect(",")?;
            }
            parameters.push(self.parameter()?);
        }
        let body = self.region()?;
        let mut values = IdVec::new();
        for (&number, &ty) in &self.types {
            if number as usize != values.len() {
                let missing = ValueId::from_index(values.len());
                return Err(Error::invalid(format!("{missing} has no definition, but v{number} has")));
            }
            let _: ValueId = values.push(ty);
        }
        Ok(Function { name, parameters, values, body, linkage })
    }

    fn parameter(&mut self) -> Result<Parameter> {
        let value = self.value()?;
        self.skip();
        let name = self.quoted()?;
        self.expect(":")?;
        let ty = self.ty()?;
        self.define(value, ty)?;
        let no_alias = self.eat_word("noalias");
        let read_only = self.eat_word("readonly");
        let alignment = if self.eat_word("align") { self.number()? } else { 1 };
        let pointer = PointerFacts { no_alias, read_only, alignment };
        Ok(Parameter { name, value, pointer })
    }

    fn region(&mut self) -> Result<Block> {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            return Err(Error::invalid(format!("more than {MAX_NESTING} nested regions")));
        }
        self.expect("{")?;
        let mut block = Block::default();
        while !self.eat("}") {
            if self.eat_word("yield") {
                block.yields = self.values()?;
                self.expect("}")?;
                break;
            }
            block.statements.push(self.statement()?);
        }
        self.depth -= 1;
        Ok(block)
    }

    fn statement(&mut self) -> Result<Statement> {
        match self.peek_word() {
            "for" => {
                self.expect_word("for")?;
                self.for_loop(&[])
            }
            "while" => {
                self.expect_word("while")?;
                self.while_loop(&[])
            }
            "if" => {
                self.expect_word("if")?;
                self.if_else(&[])
            }
            "store" | "call" | "parallel" | "call_external" | "leave_if" | "copy_bytes" | "fill_bytes"
            | "barrier" | "prefetch" | "tiles" => self.effect(),
            _ => self.definition(),
        }
    }

    /// Parses a statement without regions or results. A function of its own, because
    /// [`Self::statement`] is on the stack once for each nested region.
    #[inline(never)]
    fn effect(&mut self) -> Result<Statement> {
        match self.peek_word() {
            "store" => {
                self.expect_word("store")?;
                let value = self.value()?;
                self.expect_word("to")?;
                let pointer = self.value()?;
                let (alignment, mask) = self.access()?;
                Ok(Statement::Store { value, pointer, alignment, mask })
            }
            "call" => {
                self.expect_word("call")?;
                let function = self.id("f", "a function such as f0")?;
                self.expect("(")?;
                let arguments = if self.eat(")") { Vec::new() } else { self.values_in_parentheses()? };
                Ok(Statement::Call { function, arguments })
            }
            "parallel" => {
                self.expect_word("parallel")?;
                let count = self.number()?;
                let function = self.id("f", "a function such as f0")?;
                self.expect("(")?;
                let arguments = if self.eat(")") { Vec::new() } else { self.values_in_parentheses()? };
                Ok(Statement::Parallel { function, count, arguments })
            }
            "call_external" => {
                self.expect_word("call_external")?;
                let status = self.value()?;
                self.define(status, Type::scalar(ScalarType::I32))?;
                self.skip();
                let symbol = self.quoted()?;
                self.expect("(")?;
                let arguments = if self.eat(")") { Vec::new() } else { self.values_in_parentheses()? };
                Ok(Statement::CallExternal { symbol, arguments, status })
            }
            "leave_if" => {
                self.expect_word("leave_if")?;
                let [condition, status] = self.exactly()?;
                Ok(Statement::LeaveIf { condition, status })
            }
            "copy_bytes" => {
                self.expect_word("copy_bytes")?;
                let [to, from, bytes] = self.exactly()?;
                Ok(Statement::CopyBytes { to, from, bytes })
            }
            "fill_bytes" => {
                self.expect_word("fill_bytes")?;
                let [to, byte, bytes] = self.exactly()?;
                Ok(Statement::FillBytes { to, byte, bytes })
            }
            "barrier" => {
                self.expect_word("barrier")?;
                Ok(Statement::Barrier)
            }
            "prefetch" => {
                self.expect_word("prefetch")?;
                let cache = self.number()?;
                Ok(Statement::Prefetch { pointer: self.value()?, cache })
            }
            "tiles" => self.tiles().map(Statement::Tiles),
            _ => Err(self.unexpected("a statement")),
        }
    }

    fn values_in_parentheses(&mut self) -> Result<Vec<ValueId>> {
        let values = self.values()?;
        self.expect(")")?;
        Ok(values)
    }

    pub(super) fn exactly<const N: usize>(&mut self) -> Result<[ValueId; N]> {
        let values = self.values()?;
        let count = values.len();
        values.try_into().map_err(|_| Error::invalid(format!("expected {N} values, found {count}")))
    }

    /// Parses `v0: type, .. = for | while | if | expression`.
    fn definition(&mut self) -> Result<Statement> {
        let mut results = Vec::new();
        loop {
            let id = self.value()?;
            self.expect(":")?;
            let ty = self.ty()?;
            self.define(id, ty)?;
            results.push((id, ty));
            if !self.eat(",") {
                break;
            }
        }
        self.expect("=")?;
        match self.word("an operation")? {
            "for" => self.for_loop(&results),
            "while" => self.while_loop(&results),
            "if" => self.if_else(&results),
            operation => {
                let &[(id, ty)] = &results[..] else {
                    return Err(Error::invalid(format!("{operation} defines exactly one value")));
                };
                Ok(Statement::Let(id, self.expression(operation, ty)?))
            }
        }
    }

    fn carried(&mut self, results: &[(ValueId, Type)]) -> Result<Vec<Carried>> {
        let mut carried = Vec::new();
        if self.eat_word("carry") {
            self.expect("(")?;
            for &(result, ty) in results {
                if !carried.is_empty() {
                    self.expect(",")?;
                }
                let inner = self.value()?;
                self.define(inner, ty)?;
                self.expect("=")?;
                carried.push(Carried { inner, initial: self.value()?, result });
            }
            self.expect(")")?;
        }
        if carried.len() == results.len() {
            Ok(carried)
        } else {
            Err(self.unexpected("as many carried values as results"))
        }
    }

    fn for_loop(&mut self, results: &[(ValueId, Type)]) -> Result<Statement> {
        let index = self.value()?;
        self.define(index, Type::I64)?;
        self.expect_word("in")?;
        let begin = self.value()?;
        self.expect("..")?;
        let end = self.value()?;
        self.expect_word("step")?;
        let step = self.number()?;
        let carried = self.carried(results)?;
        Ok(Statement::For { index, begin, end, step, carried, body: self.region()? })
    }

    fn while_loop(&mut self, results: &[(ValueId, Type)]) -> Result<Statement> {
        let carried = self.carried(results)?;
        let condition = self.region()?;
        self.expect_word("do")?;
        Ok(Statement::While { carried, condition, body: self.region()? })
    }

    fn if_else(&mut self, results: &[(ValueId, Type)]) -> Result<Statement> {
        let condition = self.value()?;
        let then = self.region()?;
        self.expect_word("else")?;
        let otherwise = self.region()?;
        let results = results.iter().map(|&(id, _)| id).collect();
        Ok(Statement::If { condition, results, then, otherwise })
    }

    fn access(&mut self) -> Result<(u32, Option<ValueId>)> {
        self.expect_word("align")?;
        let alignment = self.number()?;
        let mask = if self.eat_word("mask") { Some(self.value()?) } else { None };
        Ok((alignment, mask))
    }

    fn expression(&mut self, operation: &str, ty: Type) -> Result<Expression> {
        if let Some(op) = named(UNARY, operation) {
            return Ok(Expression::Unary(op, self.value()?));
        }
        if let Some(op) = named(BINARY, operation) {
            let [a, b] = self.exactly()?;
            return Ok(Expression::Binary(op, a, b));
        }
        Ok(match operation {
            "constant" => Expression::Constant(self.constant(ty)?),
            "multiply_add" => {
                let [a, b, c] = self.exactly()?;
                Expression::MultiplyAdd(a, b, c)
            }
            "group_multiply_add" => {
                let word = self.word("a kind of groups")?;
                let kind = named(GROUPS, word)
                    .ok_or_else(|| Error::invalid(format!("'{word}' is not a kind of groups")))?;
                let [a, b, c] = self.exactly()?;
                Expression::GroupMultiplyAdd { kind, a, b, c }
            }
            "matrix_multiply_add" => {
                let word = self.word("a kind of matrices")?;
                let kind = named(MATRICES, word)
                    .ok_or_else(|| Error::invalid(format!("'{word}' is not a kind of matrices")))?;
                let [a, b, c] = self.exactly()?;
                Expression::MatrixMultiplyAdd { kind, a, b, c }
            }
            "compare" => {
                let word = self.word("a predicate")?;
                let predicate = named(PREDICATES, word)
                    .ok_or_else(|| Error::invalid(format!("'{word}' is not a predicate")))?;
                let [a, b] = self.exactly()?;
                Expression::Compare(predicate, a, b)
            }
            "select" => {
                let [condition, a, b] = self.exactly()?;
                Expression::Select(condition, a, b)
            }
            "convert" => {
                let word = self.word("a conversion")?;
                let op = named(CONVERSIONS, word)
                    .ok_or_else(|| Error::invalid(format!("'{word}' is not a conversion")))?;
                Expression::Convert(op, self.value()?)
            }
            "splat" => Expression::Splat(self.value()?),
            "extract" => {
                let vector = self.value()?;
                self.expect(",")?;
                Expression::Extract(vector, self.number()?)
            }
            "insert" => {
                let vector = self.value()?;
                self.expect(",")?;
                let lane = self.number()?;
                self.expect(",")?;
                Expression::Insert(vector, lane, self.value()?)
            }
            "shuffle" => self.shuffle()?,
            "iota" => Expression::Iota,
            "offset" => {
                let pointer = self.value()?;
                self.expect("+")?;
                let index = self.value()?;
                self.expect("*")?;
                Expression::Offset { pointer, index, scale: self.number()? }
            }
            "load" => {
                let pointer = self.value()?;
                let (alignment, mask) = self.access()?;
                Expression::Load { pointer, alignment, mask }
            }
            "stack_slot" => {
                let bytes = self.number()?;
                self.expect_word("align")?;
                Expression::StackSlot { bytes, alignment: self.number()? }
            }
            "workgroup_memory" => {
                let bytes = self.number()?;
                self.expect_word("align")?;
                Expression::WorkgroupMemory { bytes, alignment: self.number()? }
            }
            "thread" => Expression::Thread(ThreadIndex::Local),
            "workgroup" => Expression::Thread(ThreadIndex::Workgroup),
            "cycle_counter" => Expression::CycleCounter,
            "function_address" => Expression::FunctionAddress(self.id("f", "a function such as f0")?),
            "bytes" => Expression::Bytes(self.bytes()?),
            "byte_lookup" => Expression::ByteLookup { table: self.bytes()?, index: self.value()? },
            other => return Err(Error::invalid(format!("'{other}' is not an operation"))),
        })
    }

    /// Parses pairs of hexadecimal digits in quotes.
    fn bytes(&mut self) -> Result<Vec<u8>> {
        self.skip();
        let text = self.quoted()?;
        let byte = |pair: &[u8]| {
            let digits = std::str::from_utf8(pair).ok().filter(|digits| digits.len() == 2)?;
            u8::from_str_radix(digits, 16).ok()
        };
        let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(byte).collect();
        bytes.ok_or_else(|| Error::invalid(format!("'{text}' is not a list of hexadecimal bytes")))
    }

    fn shuffle(&mut self) -> Result<Expression> {
        let a = self.value()?;
        self.expect(",")?;
        let b = self.value()?;
        self.expect(",")?;
        self.expect("[")?;
        let mut lanes = Vec::new();
        while !self.eat("]") {
            if !lanes.is_empty() {
                self.expect(",")?;
            }
            lanes.push(self.number()?);
        }
        Ok(Expression::Shuffle(a, b, lanes))
    }

    fn constant(&mut self, ty: Type) -> Result<Constant> {
        if !ty.scalar.is_float() {
            return Ok(Constant::Integer(self.number()?));
        }
        let text = self.number_text()?;
        let bits = if let Some(digits) = text.strip_prefix("0x") {
            u64::from_str_radix(digits, 16).ok()
        } else if ty.scalar == ScalarType::F32 {
            text.parse::<f32>().ok().map(|value| u64::from(value.to_bits()))
        } else {
            text.parse::<f64>().ok().map(f64::to_bits)
        };
        bits.map(Constant::FloatBits).ok_or_else(|| Error::invalid(format!("'{text}' is not a valid {ty}")))
    }
}
