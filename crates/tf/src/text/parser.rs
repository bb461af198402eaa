//! Converts text format to wire format.

use super::messages::{Field, Kind, MessageType};
use super::token::{TextError, Token, TokenKind, Tokenizer, unescape};
use prost::encoding::{WireType, encode_key, encode_varint};

/// Limit for the nesting of messages. The decoder of the wire format has a limit of 100.
const MAX_DEPTH: usize = 90;

/// Translates a text to the wire format of a message. Errors have the form `line:column: message`.
pub(crate) fn to_wire(text: &[u8], message: &'static MessageType) -> Result<Vec<u8>, String> {
    let run = || -> Result<Vec<u8>, TextError> {
        let mut tokenizer = Tokenizer::new(text);
        let token = tokenizer.next()?;
        let mut parser = Parser { tokenizer, token };
        let mut out = Vec::with_capacity(text.len() / 4);
        parser.message(message, None, 0, &mut out)?;
        Ok(out)
    };
    run().map_err(|e| format!("{}:{}: {}", e.line, e.column, e.message))
}

struct Parser<'a> {
    tokenizer: Tokenizer<'a>,
    /// Next token.
    token: Token<'a>,
}

impl<'a> Parser<'a> {
    fn take(&mut self) -> Result<Token<'a>, TextError> {
        let next = self.tokenizer.next()?;
        Ok(std::mem::replace(&mut self.token, next))
    }

    fn is_symbol(&self, symbol: u8) -> bool {
        self.token.kind == TokenKind::Symbol && self.token.text == [symbol]
    }

    fn try_symbol(&mut self, symbol: u8) -> Result<bool, TextError> {
        let is = self.is_symbol(symbol);
        if is {
            self.take()?;
        }
        Ok(is)
    }

    fn expected(&self, what: &str) -> TextError {
        let text = String::from_utf8_lossy(&self.token.text[..self.token.text.len().min(40)]);
        self.token.error(format!("Expected {what}, got: {text}"))
    }

    fn expect_symbol(&mut self, symbol: u8) -> Result<(), TextError> {
        if self.try_symbol(symbol)? {
            Ok(())
        } else {
            Err(self.expected(&format!("\"{}\"", char::from(symbol))).with_suffix(", found", &self.token))
        }
    }

    /// Parses fields up to a closing symbol, or up to the end of the text.
    fn message(
        &mut self,
        message: &'static MessageType,
        end: Option<u8>,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), TextError> {
        if depth > MAX_DEPTH {
            return Err(self.token.error(format!("Message is too deep, more than {MAX_DEPTH} levels.")));
        }
        let mut seen: Vec<&'static Field> = Vec::new();
        loop {
            match end {
                Some(symbol) if self.is_symbol(symbol) => {
                    self.take()?;
                    return Ok(());
                }
                None if self.token.kind == TokenKind::End => return Ok(()),
                _ => self.field(message, &mut seen, depth, out)?,
            }
        }
    }

    fn field(
        &mut self,
        message: &'static MessageType,
        seen: &mut Vec<&'static Field>,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), TextError> {
        if self.token.kind != TokenKind::Identifier {
            return Err(self.expected("identifier"));
        }
        let name = self.take()?;
        let field = message.fields.iter().find(|f| f.name.as_bytes() == name.text).ok_or_else(|| {
            let name = String::from_utf8_lossy(name.text);
            self.token.error(format!("Message type \"{}\" has no field named \"{name}\".", message.name))
        })?;
        if !field.repeated {
            self.check_first(message, field, seen)?;
            seen.push(field);
        }
        let colon = self.try_symbol(b':')?;
        if !colon && !matches!(field.kind, Kind::Message(_) | Kind::Skipped) {
            return Err(self.expected("\":\""));
        }
        if field.repeated && self.try_symbol(b'[')? {
            self.list(field, depth, out)?;
        } else {
            self.value(field, depth, out)?;
        }
        if !self.try_symbol(b';')? {
            self.try_symbol(b',')?;
        }
        Ok(())
    }

    fn check_first(
        &self,
        message: &MessageType,
        field: &Field,
        seen: &[&'static Field],
    ) -> Result<(), TextError> {
        if seen.iter().any(|f| f.number == field.number) {
            let name = field.name;
            return Err(self
                .token
                .error(format!("Non-repeated field \"{name}\" is specified multiple times.")));
        }
        match (message.oneof, seen.first()) {
            (Some(oneof), Some(other)) => Err(self.token.error(format!(
                "Field \"{}\" is specified along with field \"{}\", another member of oneof \"{oneof}\".",
                field.name, other.name
            ))),
            _ => Ok(()),
        }
    }

    fn list(&mut self, field: &'static Field, depth: usize, out: &mut Vec<u8>) -> Result<(), TextError> {
        if self.try_symbol(b']')? {
            return Ok(());
        }
        loop {
            self.value(field, depth, out)?;
            if self.try_symbol(b']')? {
                return Ok(());
            }
            if !self.try_symbol(b',')? {
                return Err(self.expected("\",\" or \"]\""));
            }
        }
    }

    fn value(&mut self, field: &'static Field, depth: usize, out: &mut Vec<u8>) -> Result<(), TextError> {
        match field.kind {
            Kind::Message(message) => {
                let end = self.open()?;
                let mut body = Vec::new();
                self.message(message, Some(end), depth + 1, &mut body)?;
                write_bytes(field.number, &body, out);
            }
            Kind::Skipped => self.skip_value(depth)?,
            Kind::String | Kind::Bytes => {
                let at = self.token;
                let bytes = self.string()?;
                if matches!(field.kind, Kind::String) && std::str::from_utf8(&bytes).is_err() {
                    return Err(at.error(format!("String field \"{}\" contains invalid UTF-8.", field.name)));
                }
                write_bytes(field.number, &bytes, out);
            }
            Kind::Float => {
                let value = self.double()? as f32;
                encode_key(field.number, WireType::ThirtyTwoBit, out);
                out.extend_from_slice(&value.to_le_bytes());
            }
            Kind::Double => {
                let value = self.double()?;
                encode_key(field.number, WireType::SixtyFourBit, out);
                out.extend_from_slice(&value.to_le_bytes());
            }
            Kind::Int32 => self.signed(field, i32::MIN.into(), i32::MAX.into(), out)?,
            Kind::Int64 => self.signed(field, i64::MIN, i64::MAX, out)?,
            Kind::Uint32 => {
                let value = self.unsigned(u32::MAX.into())?;
                write_varint(field.number, value, out);
            }
            Kind::Uint64 => {
                let value = self.unsigned(u64::MAX)?;
                write_varint(field.number, value, out);
            }
            Kind::Bool => {
                let value = self.bool()?;
                write_varint(field.number, value.into(), out);
            }
            Kind::Enum(values) => {
                let value = self.enumeration(field, values.number)?;
                write_varint(field.number, i64::from(value) as u64, out);
            }
        }
        Ok(())
    }

    /// Parses the opening symbol of a message. Returns the closing symbol.
    fn open(&mut self) -> Result<u8, TextError> {
        if self.try_symbol(b'<')? {
            return Ok(b'>');
        }
        self.expect_symbol(b'{').map(|()| b'}')
    }

    fn signed(&mut self, field: &Field, min: i64, max: i64, out: &mut Vec<u8>) -> Result<(), TextError> {
        let negative = self.try_symbol(b'-')?;
        let value = if negative {
            let magnitude = self.unsigned(min.unsigned_abs())?;
            (magnitude as i64).wrapping_neg()
        } else {
            self.unsigned(max.unsigned_abs())? as i64
        };
        write_varint(field.number, value as u64, out);
        Ok(())
    }

    fn unsigned(&mut self, max: u64) -> Result<u64, TextError> {
        if self.token.kind != TokenKind::Integer {
            return Err(self.expected("integer"));
        }
        let value = integer(self.token.text).filter(|&value| value <= max).ok_or_else(|| {
            let text = String::from_utf8_lossy(self.token.text);
            self.token.error(format!("Integer out of range ({text})"))
        })?;
        self.take()?;
        Ok(value)
    }

    fn double(&mut self) -> Result<f64, TextError> {
        let negative = self.try_symbol(b'-')?;
        let text = String::from_utf8_lossy(self.token.text).to_ascii_lowercase();
        let value = match self.token.kind {
            // Octal and hexadecimal numbers are not valid floats.
            TokenKind::Integer if text.len() > 1 && text.starts_with('0') => None,
            TokenKind::Integer | TokenKind::Float => text.trim_end_matches('f').parse().ok(),
            TokenKind::Identifier => match text.as_str() {
                "inf" | "infinity" => Some(f64::INFINITY),
                "nan" => Some(f64::NAN),
                _ => None,
            },
            _ => None,
        };
        let value: f64 = value.ok_or_else(|| self.expected("double"))?;
        self.take()?;
        Ok(if negative { -value } else { value })
    }

    fn bool(&mut self) -> Result<bool, TextError> {
        let value = match (self.token.kind, self.token.text) {
            (TokenKind::Integer, text) => match integer(text) {
                Some(0) => false,
                Some(1) => true,
                _ => return Err(self.expected("\"true\" or \"false\"")),
            },
            (TokenKind::Identifier, b"true" | b"True" | b"t") => true,
            (TokenKind::Identifier, b"false" | b"False" | b"f") => false,
            _ => return Err(self.expected("\"true\" or \"false\"")),
        };
        self.take()?;
        Ok(value)
    }

    fn enumeration(&mut self, field: &Field, lookup: fn(&str) -> Option<i32>) -> Result<i32, TextError> {
        if self.token.kind == TokenKind::Identifier {
            let name = String::from_utf8_lossy(self.token.text);
            let value = lookup(&name).ok_or_else(|| {
                let field = field.name;
                self.token.error(format!("Unknown enumeration value of \"{name}\" for field \"{field}\"."))
            })?;
            self.take()?;
            return Ok(value);
        }
        let negative = self.try_symbol(b'-')?;
        if self.token.kind != TokenKind::Integer {
            return Err(self.expected("integer or identifier"));
        }
        let magnitude = self.unsigned(i32::MAX as u64)? as i32;
        Ok(if negative { -magnitude } else { magnitude })
    }

    /// Parses adjacent string literals and joins them.
    fn string(&mut self) -> Result<Vec<u8>, TextError> {
        if self.token.kind != TokenKind::String {
            return Err(self.expected("string"));
        }
        let mut bytes = Vec::with_capacity(self.token.text.len());
        while self.token.kind == TokenKind::String {
            unescape(self.token.text, &mut bytes).map_err(|message| self.token.error(message))?;
            self.take()?;
        }
        Ok(bytes)
    }

    /// Skips any well-formed value of a field that the structs do not contain.
    fn skip_value(&mut self, depth: usize) -> Result<(), TextError> {
        if depth > MAX_DEPTH {
            return Err(self.token.error(format!("Message is too deep, more than {MAX_DEPTH} levels.")));
        }
        if self.is_symbol(b'{') || self.is_symbol(b'<') {
            let end = self.open()?;
            while !self.try_symbol(end)? {
                self.skip_field(depth)?;
            }
            return Ok(());
        }
        if self.try_symbol(b'[')? {
            while !self.try_symbol(b']')? {
                self.skip_value(depth + 1)?;
                self.try_symbol(b',')?;
            }
            return Ok(());
        }
        self.try_symbol(b'-')?;
        match self.token.kind {
            TokenKind::String => self.string().map(drop),
            TokenKind::Identifier | TokenKind::Integer | TokenKind::Float => self.take().map(drop),
            TokenKind::Symbol | TokenKind::End => Err(self.expected("a value")),
        }
    }

    fn skip_field(&mut self, depth: usize) -> Result<(), TextError> {
        if self.try_symbol(b'[')? {
            // The name of an extension or the type of an `Any`.
            while !self.try_symbol(b']')? {
                if self.token.kind == TokenKind::End {
                    return Err(self.expected("\"]\""));
                }
                self.take()?;
            }
        } else if self.token.kind == TokenKind::Identifier {
            self.take()?;
        } else {
            return Err(self.expected("identifier"));
        }
        self.try_symbol(b':')?;
        self.skip_value(depth + 1)?;
        if !self.try_symbol(b';')? {
            self.try_symbol(b',')?;
        }
        Ok(())
    }
}

impl TextError {
    /// Rewords the error of a missing symbol like libprotobuf: `Expected "{", found "x".`
    fn with_suffix(mut self, word: &str, token: &Token<'_>) -> Self {
        if let Some(at) = self.message.find(", got: ") {
            let text = String::from_utf8_lossy(&token.text[..token.text.len().min(40)]).into_owned();
            self.message.truncate(at);
            self.message.push_str(&format!("{word} \"{text}\"."));
        }
        self
    }
}

/// Value of an integer token: decimal, `0x` hexadecimal, or `0` octal.
fn integer(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        u64::from_str_radix(digits, 16).ok()
    } else if text.len() > 1 && text.starts_with('0') {
        u64::from_str_radix(&text[1..], 8).ok()
    } else {
        text.parse().ok()
    }
}

pub(super) fn write_varint(number: u32, value: u64, out: &mut Vec<u8>) {
    encode_key(number, WireType::Varint, out);
    encode_varint(value, out);
}

pub(super) fn write_bytes(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    encode_key(number, WireType::LengthDelimited, out);
    encode_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}
