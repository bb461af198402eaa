//! Attributes: `name=value` after an instruction's operands. Each payload type of the opcode table
//! implements its syntax here.

use super::attribute_list::RawAttribute;
use super::escape::{unescape, write_quoted};
use super::lexer::{Lexer, Token};
use crate::attributes::*;
use crate::ids::ComputationId;
use crate::module::Module;
use shape::{Literal, PrimitiveType};
use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use support::Result;

/// Writes an instruction's attributes, each preceded by a comma.
pub(crate) struct AttributePrinter<'a> {
    pub(super) out: &'a mut String,
    pub(super) computations: &'a BTreeMap<ComputationId, String>,
    /// The element type of the first operand: a conditional on `pred` names its branches
    /// differently.
    pub(super) first_operand: Option<PrimitiveType>,
}

impl AttributePrinter<'_> {
    /// Writes a field of a payload, unless it has its default value.
    pub(crate) fn field<T: Attribute>(&mut self, name: &str, value: &T, default: &[T]) {
        if default.first() != Some(value) {
            value.print(name, self);
        }
    }

    /// Starts an attribute; the caller appends the value to the returned string.
    fn name(&mut self, name: &str) -> &mut String {
        write!(self.out, ", {name}=").expect("writing to a string cannot fail");
        self.out
    }

    fn computation(&mut self, id: ComputationId) {
        match self.computations.get(&id) {
            Some(name) => self.out.push_str(name),
            None => write!(self.out, "{id}").expect("writing to a string cannot fail"),
        }
    }

    fn computation_list(&mut self, name: &str, ids: &[ComputationId]) {
        self.name(name).push('{');
        for (i, &id) in ids.iter().enumerate() {
            self.out.push_str(if i > 0 { ", " } else { "" });
            self.computation(id);
        }
        self.out.push('}');
    }
}

/// Reads an instruction's attributes by name.
pub(crate) struct AttributeReader<'a, 't> {
    pub(super) text: &'t str,
    /// The instruction, for errors.
    pub(super) lexer: Lexer<'t>,
    pub(super) attributes: Vec<RawAttribute<'t>>,
    pub(super) module: &'a Module,
    pub(super) computations: &'a BTreeMap<String, ComputationId>,
    /// Computations written in place of names, by their start positions.
    pub(super) inline: &'a BTreeMap<usize, ComputationId>,
}

impl<'t> AttributeReader<'_, 't> {
    /// Returns the value of an attribute and marks the attribute as used.
    pub(super) fn value(&mut self, name: &str) -> Option<Lexer<'t>> {
        let attribute = self.attributes.iter_mut().find(|attribute| attribute.name == name)?;
        attribute.is_used = true;
        Some(self.lexer.part(attribute.value.clone()))
    }

    /// Reads `{f, g}`; `None` if the text does not have the attribute.
    fn computation_list(&mut self, name: &str) -> Result<Option<Vec<ComputationId>>> {
        let Some(mut lexer) = self.value(name) else { return Ok(None) };
        let ids = read_list(&mut lexer, |lexer| read_computation(lexer, self.computations))?;
        lexer.expect_end()?;
        Ok(Some(ids))
    }

    /// Reads a field of a payload, or returns its default.
    pub(crate) fn field<T: Attribute>(&mut self, name: &str, default: &[T]) -> Result<T> {
        match T::parse(name, self)? {
            Some(value) => Ok(value),
            None => {
                let default = default.first().cloned();
                default.ok_or_else(|| self.lexer.error(&format!("missing attribute '{name}'")))
            }
        }
    }
}

/// A type of a payload's field in the opcode table.
pub(crate) trait Attribute: Sized + Clone + PartialEq {
    /// Writes the attribute under its name, or under several specific names.
    fn print(&self, name: &str, printer: &mut AttributePrinter<'_>);
    /// Reads the attribute; `None` if the text does not have it.
    fn parse(name: &str, reader: &mut AttributeReader<'_, '_>) -> Result<Option<Self>>;
}

/// An attribute that is a single value.
pub(crate) trait Value: Sized + Clone + PartialEq {
    fn write(&self, out: &mut String);
    fn read(lexer: &mut Lexer<'_>) -> Result<Self>;
}

impl<T: Value> Attribute for T {
    fn print(&self, name: &str, printer: &mut AttributePrinter<'_>) {
        self.write(printer.name(name));
    }

    fn parse(name: &str, reader: &mut AttributeReader<'_, '_>) -> Result<Option<Self>> {
        let Some(mut lexer) = reader.value(name) else { return Ok(None) };
        let value = T::read(&mut lexer)?;
        lexer.expect_end()?;
        Ok(Some(value))
    }
}

fn write_display(value: impl Display, out: &mut String) {
    write!(out, "{value}").expect("writing to a string cannot fail");
}

/// `{1,2}`.
pub(super) fn write_list(values: &[impl Display], out: &mut String) {
    out.push('{');
    for (i, value) in values.iter().enumerate() {
        out.push_str(if i > 0 { "," } else { "" });
        write_display(value, out);
    }
    out.push('}');
}

/// `{a,b}`, each entry read by `read`.
pub(crate) fn read_list<'t, T>(
    lexer: &mut Lexer<'t>,
    mut read: impl FnMut(&mut Lexer<'t>) -> Result<T>,
) -> Result<Vec<T>> {
    lexer.expect_symbol('{')?;
    let mut values = Vec::new();
    while !lexer.eat_symbol('}') {
        if !values.is_empty() {
            lexer.expect_symbol(',')?;
        }
        values.push(read(lexer)?);
    }
    Ok(values)
}

impl Value for bool {
    fn write(&self, out: &mut String) {
        write_display(self, out);
    }
    fn read(lexer: &mut Lexer<'_>) -> Result<Self> {
        if lexer.eat(Token::Word("true")) {
            return Ok(true);
        }
        if lexer.eat(Token::Word("false")) { Ok(false) } else { Err(lexer.expected("true or false")) }
    }
}

impl Value for f32 {
    fn write(&self, out: &mut String) {
        super::number::write_element(PrimitiveType::F32, &self.to_le_bytes(), out);
    }
    fn read(lexer: &mut Lexer<'_>) -> Result<Self> {
        let mut bytes = Vec::new();
        super::number::read_element(PrimitiveType::F32, lexer, &mut bytes)?;
        Ok(<f32 as shape::NativeType>::read_le(&bytes))
    }
}

impl Value for i64 {
    fn write(&self, out: &mut String) {
        write_display(self, out);
    }
    fn read(lexer: &mut Lexer<'_>) -> Result<Self> {
        lexer.expect_integer("an integer")
    }
}

impl Value for u32 {
    fn write(&self, out: &mut String) {
        write_display(self, out);
    }
    fn read(lexer: &mut Lexer<'_>) -> Result<Self> {
        lexer.expect_integer("a nonnegative number")
    }
}

impl Value for String {
    fn write(&self, out: &mut String) {
        write_quoted(self, out);
    }
    fn read(lexer: &mut Lexer<'_>) -> Result<Self> {
        // A backend's configuration can be JSON without quotes.
        if lexer.peek() == Token::Symbol('{') {
            return Ok(lexer.take_rest().to_owned());
        }
        let Token::Quoted(inside) = lexer.peek() else { return Err(lexer.expected("a quoted string")) };
        let text = unescape(inside).ok_or_else(|| lexer.error("invalid escape in a string"))?;
        lexer.take();
        Ok(text)
    }
}

/// A dimension number or an index. XLA writes the only dimension of `concatenate` and similar
/// opcodes as a list.
impl Attribute for usize {
    fn print(&self, name: &str, printer: &mut AttributePrinter<'_>) {
        let out = printer.name(name);
        if name == "dimensions" { write_list(&[self], out) } else { write_display(self, out) }
    }

    fn parse(name: &str, reader: &mut AttributeReader<'_, '_>) -> Result<Option<Self>> {
        let Some(mut lexer) = reader.value(name) else { return Ok(None) };
        let is_list = name == "dimensions";
        if is_list {
            lexer.expect_symbol('{')?;
        }
        let value = lexer.expect_integer("a nonnegative number")?;
        if is_list {
            lexer.expect_symbol('}')?;
        }
        lexer.expect_end()?;
        Ok(Some(value))
    }
}

impl Value for Vec<usize> {
    fn write(&self, out: &mut String) {
        write_list(self, out);
    }
    fn read(lexer: &mut Lexer<'_>) -> Result<Self> {
        read_list(lexer, |lexer| lexer.expect_integer("a dimension number"))
    }
}

impl Value for Vec<i64> {
    fn write(&self, out: &mut String) {
        write_list(self, out);
    }
    fn read(lexer: &mut Lexer<'_>) -> Result<Self> {
        read_list(lexer, |lexer| lexer.expect_integer("an integer"))
    }
}

/// A constant's literal is written in place of operands, so it is not an attribute in the text.
impl Attribute for Literal {
    fn print(&self, _name: &str, _printer: &mut AttributePrinter<'_>) {}

    fn parse(_name: &str, _reader: &mut AttributeReader<'_, '_>) -> Result<Option<Self>> {
        Ok(None)
    }
}

/// Reads the name of a computation defined earlier in the text.
fn read_computation(
    lexer: &mut Lexer<'_>,
    computations: &BTreeMap<String, ComputationId>,
) -> Result<ComputationId> {
    let at = lexer.start();
    let name = lexer.expect_name("the name of a computation")?;
    let unknown = || lexer.error_at(at, &format!("unknown computation '{name}'"));
    computations.get(name).copied().ok_or_else(unknown)
}

impl Attribute for ComputationId {
    fn print(&self, name: &str, printer: &mut AttributePrinter<'_>) {
        printer.name(name);
        printer.computation(*self);
    }

    fn parse(name: &str, reader: &mut AttributeReader<'_, '_>) -> Result<Option<Self>> {
        let Some(mut lexer) = reader.value(name) else { return Ok(None) };
        if let Some(&id) = reader.inline.get(&lexer.start()) {
            return Ok(Some(id));
        }
        let id = read_computation(&mut lexer, reader.computations)?;
        lexer.expect_end()?;
        Ok(Some(id))
    }
}

/// The kind follows from the called body, so it is not printed.
impl Attribute for FusionKind {
    fn print(&self, _name: &str, _printer: &mut AttributePrinter<'_>) {}

    fn parse(name: &str, reader: &mut AttributeReader<'_, '_>) -> Result<Option<Self>> {
        let calls = ComputationId::parse(name, reader)?;
        Ok(calls.map(|calls| Self::of_body(&reader.module[calls])))
    }
}

/// The branches of a conditional: a list, or the true and the false computation for a predicate.
impl Attribute for Vec<ComputationId> {
    fn print(&self, name: &str, printer: &mut AttributePrinter<'_>) {
        if let ([on_true, on_false], Some(PrimitiveType::Pred)) = (&self[..], printer.first_operand) {
            on_true.print("true_computation", printer);
            return on_false.print("false_computation", printer);
        }
        printer.computation_list(name, self);
    }

    fn parse(name: &str, reader: &mut AttributeReader<'_, '_>) -> Result<Option<Self>> {
        if let Some(branches) = reader.computation_list(name)? {
            return Ok(Some(branches));
        }
        let on_true = reader.field("true_computation", &[])?;
        Ok(Some(vec![on_true, reader.field("false_computation", &[])?]))
    }
}

/// All remaining attributes: computations by id, others as text.
impl Attribute for RawAttributes {
    fn print(&self, _name: &str, printer: &mut AttributePrinter<'_>) {
        for (name, value) in self.iter() {
            match value {
                RawValue::Text(text) => printer.name(name).push_str(text),
                RawValue::Computation(id) => id.print(name, printer),
                RawValue::Computations(ids) => printer.computation_list(name, ids),
            }
        }
    }

    fn parse(_name: &str, reader: &mut AttributeReader<'_, '_>) -> Result<Option<Self>> {
        let mut raw = Self::default();
        let remaining: Vec<&str> = reader.attributes.iter().filter(|a| !a.is_used).map(|a| a.name).collect();
        for name in remaining {
            let value = match name {
                "to_apply" | "calls" => ComputationId::parse(name, reader)?.map(RawValue::Computation),
                "called_computations" => reader.computation_list(name)?.map(RawValue::Computations),
                _ => reader.value(name).map(|mut lexer| RawValue::Text(lexer.take_rest().to_owned())),
            };
            value.into_iter().for_each(|value| raw.push(name, value));
        }
        Ok(Some(raw))
    }
}

/// Enums with one word for each variant.
macro_rules! words {
    ($($type:ident: $what:literal { $($text:literal => $variant:ident),* $(,)? })*) => {$(
        impl Value for $type {
            fn write(&self, out: &mut String) {
                out.push_str(match self { $(Self::$variant => $text,)* });
            }
            fn read(lexer: &mut Lexer<'_>) -> Result<Self> {
                $(if lexer.eat(Token::Word($text)) { return Ok(Self::$variant); })*
                Err(lexer.expected($what))
            }
        }
    )*};
}

words! {
    ComparisonDirection: "EQ, NE, GE, GT, LE, or LT" {
        "EQ" => Eq, "NE" => Ne, "GE" => Ge, "GT" => Gt, "LE" => Le, "LT" => Lt,
    }
    XlaFusionKind: "a kind of fusion such as kLoop" {
        "kLoop" => Loop, "kInput" => Input, "kOutput" => Output, "kCustom" => Custom,
    }
    RandomDistribution: "rng_uniform or rng_normal" {
        "rng_uniform" => Uniform, "rng_normal" => Normal,
    }
    RandomAlgorithm: "rng_default, rng_three_fry, or rng_philox" {
        "rng_default" => Default, "rng_three_fry" => ThreeFry, "rng_philox" => Philox,
    }
    FftType: "FFT, IFFT, RFFT, or IRFFT" {
        "FFT" => Fft, "IFFT" => Ifft, "RFFT" => Rfft, "IRFFT" => Irfft,
    }
    TriangularTranspose: "NO_TRANSPOSE, TRANSPOSE, or ADJOINT" {
        "NO_TRANSPOSE" => NoTranspose, "TRANSPOSE" => Transpose, "ADJOINT" => Adjoint,
    }
}

impl Value for ComparisonType {
    fn write(&self, out: &mut String) {
        // The default depends on the operands and is not printed.
        out.push_str("TOTALORDER");
    }
    fn read(lexer: &mut Lexer<'_>) -> Result<Self> {
        match lexer.take() {
            Token::Word("TOTALORDER") => Ok(Self::TotalOrder),
            Token::Word("FLOAT" | "SIGNED" | "UNSIGNED") => Ok(Self::Default),
            _ => {
                Err(lexer
                    .error("expected FLOAT, TOTALORDER, SIGNED, or UNSIGNED as the type of a comparison"))
            }
        }
    }
}
