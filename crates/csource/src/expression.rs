//! Expressions of the loop-nest language as expressions of C.

use crate::function::Printer;
use crate::prelude::{Lane, Vector, scalar_type};
use crate::text::{Level, Text};
use crate::uses::Extremum;
use nest::{BinaryOp, Constant, Expression, GroupKind, Predicate, ScalarType, Type, UnaryOp, ValueId};
use support::{Error, Id, Result};

impl Printer<'_, '_> {
    /// Returns the text of an expression that defines `id`.
    pub(crate) fn expression(&mut self, id: ValueId, expression: &Expression) -> Result<Text> {
        let ty = self.ty(id);
        if ty.lanes > 1 && !self.options.has_vectors() {
            return Err(Error::internal(format!("unexpected vector {ty} in C without vectors")));
        }
        match expression {
            Expression::Constant(constant) => Ok(self.constant(ty, *constant, self.mask_bytes(id))),
            Expression::Unary(op, a) => self.unary(id, *op, *a),
            Expression::Binary(op, a, b) => self.binary(id, *op, *a, *b),
            Expression::MultiplyAdd(a, b, c) => {
                let name = if ty.lanes == 1 {
                    self.prelude.multiply_add(ty.scalar).to_owned()
                } else {
                    self.prelude.multiply_add_vector(ty)
                };
                self.call(&name, &[*a, *b, *c])
            }
            Expression::GroupMultiplyAdd { kind, a, b, c } => self.group(*kind, *a, *b, *c),
            Expression::ByteLookup { table, index } => {
                let table = self.prelude.table(table);
                let index_text = self.operand(*index)?;
                let text = if ty.lanes == 1 {
                    format!("{table}[{}]", index_text.text)
                } else {
                    format!("{}({table}, {})", self.prelude.lookup(ty), index_text.text)
                };
                Ok(Text { text, level: Level::Primary, reads: index_text.reads })
            }
            Expression::Compare(predicate, a, b) => self.compare(*predicate, *a, *b),
            Expression::Select(condition, a, b) => self.selection(id, expression, *condition, *a, *b),
            Expression::Convert(op, a) => self.convert(id, *op, *a),
            Expression::Splat(a) => {
                let a = self.operand_for_lane(*a)?;
                if ty.lanes == 1 {
                    return Ok(a);
                }
                let vector = self.vector(id);
                let lane = match ty.scalar {
                    ScalarType::Bool => format!("{} ? -1 : 0", a.at(Level::Unary)),
                    _ => a.text,
                };
                Ok(self.prelude.splat_of(vector, &lane, a.reads))
            }
            Expression::Extract(vector, lane) => self.extract(*vector, *lane),
            Expression::Insert(vector, lane, scalar) => {
                let vector_type = self.vector(id);
                let name = self.prelude.insert(vector_type, *lane);
                let (v, s) = (self.operand(*vector)?, self.operand_for_lane(*scalar)?);
                let value = if ty.scalar == ScalarType::Bool {
                    format!("{} ? -1 : 0", s.at(Level::Unary))
                } else {
                    s.text
                };
                let text = if self.is_opencl() {
                    format!("{name}({}, {value})", v.text)
                } else {
                    format!("{name}({}, {lane}, {value})", v.text)
                };
                Ok(Text { text, level: Level::Primary, reads: v.reads || s.reads })
            }
            Expression::Shuffle(a, b, lanes) => self.shuffle(id, *a, *b, lanes),
            Expression::Iota => Ok(self.iota(ty)),
            Expression::Offset { pointer, index, scale } => self.offset(*pointer, *index, *scale),
            Expression::Load { pointer, alignment, mask } => self.load(id, *pointer, *alignment, *mask),
            Expression::Thread(index) => self.thread(*index),
            Expression::FunctionAddress(function) => Ok(Text::new(
                Level::Unary,
                format!("(unsigned char *)(uintptr_t)&{}", self.symbols[function.index()]),
            )),
            Expression::Bytes(bytes) => Ok(Text::primary(self.prelude.table(bytes))),
            Expression::CycleCounter => Err(Error::unsupported(
                "C source has no clock, so it cannot be profiled: profile the compiled object instead",
            )),
            Expression::StackSlot { .. }
            | Expression::MatrixMultiplyAdd { .. }
            | Expression::WorkgroupMemory { .. } => {
                Err(Error::internal("unexpected stack slot or part of a device's kernel in an expression"))
            }
        }
    }

    /// A call of a function of the prelude.
    pub(crate) fn call(&mut self, name: &str, arguments: &[ValueId]) -> Result<Text> {
        let mut reads = false;
        let mut list = Vec::with_capacity(arguments.len());
        for &argument in arguments {
            let text = self.operand(argument)?;
            reads |= text.reads;
            list.push(text.text);
        }
        Ok(Text { text: format!("{name}({})", list.join(", ")), level: Level::Primary, reads })
    }

    /// An operand that becomes a lane of a vector. Lanes of 64 bits are unsigned there.
    fn operand_for_lane(&mut self, id: ValueId) -> Result<Text> {
        let text = self.operand(id)?;
        Ok(if self.ty(id).scalar == ScalarType::I64 { text.cast("uint64_t") } else { text })
    }

    /// Returns the text of a constant. The lanes of a mask have `mask_bytes` bytes.
    pub(crate) fn constant(&mut self, ty: Type, constant: Constant, mask_bytes: usize) -> Text {
        if ty.lanes > 1 {
            let (vector, lane) = match ty.scalar {
                ScalarType::Bool => {
                    let is_set = !matches!(constant, Constant::Integer(0) | Constant::FloatBits(0));
                    (Vector::mask(mask_bytes, ty.lanes), Text::primary(if is_set { "-1" } else { "0" }))
                }
                ScalarType::I64 => {
                    let bits = match constant {
                        Constant::Integer(value) => value as u64,
                        Constant::FloatBits(bits) => bits,
                    };
                    (Vector::of(ty), Text::primary(format!("UINT64_C({bits})")))
                }
                scalar => (Vector::of(ty), self.constant(Type::scalar(scalar), constant, 0)),
            };
            return self.prelude.splat_of(vector, &lane.text, false);
        }
        match (ty.scalar, constant) {
            (ScalarType::F32, Constant::FloatBits(bits)) => match decimal_f32(bits as u32) {
                Some(text) => signed(text),
                None => Text::primary(format!("{}({bits:#x}u)", self.prelude.of_bits(ScalarType::F32))),
            },
            (ScalarType::F64, Constant::FloatBits(bits)) => match decimal_f64(bits) {
                Some(text) => signed(text),
                None => {
                    Text::primary(format!("{}(UINT64_C({bits:#x}))", self.prelude.of_bits(ScalarType::F64)))
                }
            },
            (ScalarType::F32, Constant::Integer(value)) => signed(format!("{:?}f", value as f32)),
            (ScalarType::F64, Constant::Integer(value)) => signed(format!("{:?}", value as f64)),
            (scalar, Constant::FloatBits(bits)) => integer(scalar, bits as i64),
            (scalar, Constant::Integer(value)) => integer(scalar, value),
        }
    }

    fn unary(&mut self, id: ValueId, op: UnaryOp, a: ValueId) -> Result<Text> {
        let ty = self.ty(id);
        match op {
            UnaryOp::Negate | UnaryOp::Not => {
                let text = self.operand(a)?;
                let operand = text.at(Level::Unary);
                let sign = match (op, ty.scalar, ty.lanes) {
                    (UnaryOp::Negate, ..) => '-',
                    (_, ScalarType::Bool, 1) => '!',
                    _ => '~',
                };
                // Two minus signs would be another operator.
                let operand = if operand.starts_with(sign) { format!("({operand})") } else { operand };
                let new = Text { text: format!("{sign}{operand}"), level: Level::Unary, reads: text.reads };
                Ok(if op == UnaryOp::Not { narrowed(ty, new) } else { new })
            }
            UnaryOp::Exponent
            | UnaryOp::Mantissa
            | UnaryOp::ReciprocalEstimate
            | UnaryOp::ReciprocalRootEstimate => {
                Err(Error::internal("unexpected parts of floats in a plan for C"))
            }
            _ => {
                let name = if ty.lanes == 1 {
                    self.prelude.unary(op, ty.scalar)
                } else {
                    self.prelude.unary_vector(op, ty)
                };
                self.call(&name, &[a])
            }
        }
    }

    fn binary(&mut self, id: ValueId, op: BinaryOp, a: ValueId, b: ValueId) -> Result<Text> {
        let ty = self.ty(id);
        match op {
            BinaryOp::MultiplyFixed => {
                let name = if ty.lanes == 1 {
                    self.prelude.multiply_fixed().to_owned()
                } else {
                    self.prelude.multiply_fixed_vector(ty.lanes)
                };
                return self.call(&name, &[a, b]);
            }
            BinaryOp::Scale => return Err(Error::internal("unexpected parts of floats in a plan for C")),
            BinaryOp::DivideSigned
            | BinaryOp::DivideUnsigned
            | BinaryOp::RemainderSigned
            | BinaryOp::RemainderUnsigned
                if ty.lanes > 1 =>
            {
                let is_signed = matches!(op, BinaryOp::DivideSigned | BinaryOp::RemainderSigned);
                let is_quotient = matches!(op, BinaryOp::DivideSigned | BinaryOp::DivideUnsigned);
                let name = self.prelude.divide(is_signed, is_quotient, ty);
                return self.call(&name, &[a, b]);
            }
            BinaryOp::ShiftLeft | BinaryOp::ShiftRightLogical | BinaryOp::ShiftRightArithmetic => {
                return self.shift(ty, op, a, b);
            }
            BinaryOp::Xor if self.is_flip_of_bytes(ty, b) => {
                let name = self.prelude.flip_bytes(Vector::of(ty));
                return self.call(&name, &[a]);
            }
            _ => {}
        }
        let is_logical = ty == Type::BOOL;
        let (sign, level) = match op {
            BinaryOp::Add => ("+", Level::Add),
            BinaryOp::Subtract => ("-", Level::Add),
            BinaryOp::Multiply => ("*", Level::Multiply),
            BinaryOp::Divide | BinaryOp::DivideSigned | BinaryOp::DivideUnsigned => ("/", Level::Multiply),
            BinaryOp::RemainderSigned | BinaryOp::RemainderUnsigned => ("%", Level::Multiply),
            BinaryOp::And if is_logical => ("&&", Level::Loose),
            BinaryOp::Or if is_logical => ("||", Level::Loose),
            BinaryOp::Xor if is_logical => ("!=", Level::Loose),
            BinaryOp::And => ("&", Level::Loose),
            BinaryOp::Or => ("|", Level::Loose),
            _ => ("^", Level::Loose),
        };
        let (mut x, mut y) = (self.operand_as(a, id)?, self.operand_as(b, id)?);
        let is_known = self.magnitudes.is_known(id);
        let cast = match (op, ty.scalar, ty.lanes) {
            (
                BinaryOp::DivideSigned | BinaryOp::RemainderSigned,
                ScalarType::I8 | ScalarType::I16 | ScalarType::I32,
                1,
            ) => {
                let signed = signed_type(ty.scalar);
                (x, y) = (x.cast(signed), y.cast(signed));
                Some(scalar_type(ty.scalar))
            }
            (BinaryOp::DivideSigned | BinaryOp::RemainderSigned, ..) => None,
            (BinaryOp::DivideUnsigned | BinaryOp::RemainderUnsigned, ScalarType::I64, 1) => {
                (x, y) = (x.cast("uint64_t"), y.cast("uint64_t"));
                Some("int64_t")
            }
            // The product of two narrow numbers could overflow an `int`.
            (BinaryOp::Multiply, ScalarType::I16, 1) => {
                x = x.cast("uint32_t");
                Some("uint16_t")
            }
            (_, ScalarType::I8 | ScalarType::I16, 1) => Some(scalar_type(ty.scalar)),
            (BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Multiply, ScalarType::I64, 1) if !is_known => {
                (x, y) = (x.cast("uint64_t"), y.cast("uint64_t"));
                Some("int64_t")
            }
            _ => None,
        };
        let reads = x.reads || y.reads;
        let right = match level {
            Level::Add => Level::Multiply,
            _ => Level::Unary,
        };
        let left = if level == Level::Loose { Level::Unary } else { level };
        let new = Text { text: format!("{} {sign} {}", x.at(left), y.at(right)), level, reads };
        Ok(match cast {
            Some(ty) => new.cast(ty),
            None => new,
        })
    }

    /// A shift. Counts beyond the width, whose results are not used, are undefined in C.
    fn shift(&mut self, ty: Type, op: BinaryOp, a: ValueId, b: ValueId) -> Result<Text> {
        let width = 8 * ty.scalar.byte_size() as i64;
        let count = match self.uses.definition(b) {
            Some(Expression::Constant(Constant::Integer(count))) if (0..width).contains(count) => {
                Text::primary(if ty.lanes == 1 { count.to_string() } else { self.operand(b)?.text })
            }
            Some(Expression::Splat(_)) | None if ty.lanes > 1 => self.operand(b)?,
            _ => {
                let count = self.operand(b)?;
                let mask = if ty.scalar == ScalarType::I64 && ty.lanes == 1 {
                    (width - 1).to_string()
                } else if ty.scalar == ScalarType::I64 {
                    format!("UINT64_C({})", width - 1)
                } else {
                    format!("{}u", width - 1)
                };
                let mask = if ty.lanes > 1 {
                    self.prelude.splat_of(Vector::of(ty), &mask, false).text
                } else {
                    mask
                };
                Text {
                    text: format!("{} & {mask}", count.at(Level::Unary)),
                    level: Level::Loose,
                    reads: count.reads,
                }
            }
        };
        let x = self.operand(a)?;
        let reads = x.reads || count.reads;
        let is_left = op == BinaryOp::ShiftLeft;
        let sign = if is_left { "<<" } else { ">>" };
        let is_signed = op == BinaryOp::ShiftRightArithmetic;
        if ty.lanes > 1 {
            let vector = Vector::of(ty);
            let signed = vector.with(Lane::Signed);
            let (x, count) = if is_signed {
                (self.prelude.same_bits(&x, signed).text, self.prelude.same_bits(&count, signed).text)
            } else {
                (x.at(Level::Unary), count.at(Level::Unary))
            };
            let new = Text { text: format!("{x} {sign} {count}"), level: Level::Loose, reads };
            return Ok(if is_signed { self.prelude.same_bits(&new, vector) } else { new });
        }
        let x = match (ty.scalar, is_signed) {
            (ScalarType::I64, true) => x,
            (ScalarType::I64, false) => x.cast("uint64_t"),
            (scalar, true) => x.cast(signed_type(scalar)),
            (ScalarType::I32, false) => x,
            (_, false) => x.cast("uint32_t"),
        };
        let new = Text {
            text: format!("{} {sign} {}", x.at(Level::Unary), count.at(Level::Unary)),
            level: Level::Loose,
            reads,
        };
        let is_natural =
            ty.scalar == ScalarType::I32 && !is_signed || ty.scalar == ScalarType::I64 && is_signed;
        Ok(if is_natural { new } else { new.cast(scalar_type(ty.scalar)) })
    }

    fn compare(&mut self, predicate: Predicate, a: ValueId, b: ValueId) -> Result<Text> {
        let ty = self.ty(a);
        let (mut x, mut y) = (self.operand(a)?, self.operand_as(b, a)?);
        let (sign, is_unsigned) = match predicate {
            Predicate::Equal => ("==", None),
            Predicate::NotEqual => ("!=", None),
            Predicate::Less => ("<", Some(false)),
            Predicate::LessEqual => ("<=", Some(false)),
            Predicate::Greater => (">", Some(false)),
            Predicate::GreaterEqual => (">=", Some(false)),
            Predicate::Below => ("<", Some(true)),
            Predicate::BelowEqual => ("<=", Some(true)),
            Predicate::Above => (">", Some(true)),
            Predicate::AboveEqual => (">=", Some(true)),
        };
        if ty.lanes > 1 {
            let signed = self.vector(a).with(Lane::Signed);
            if ty.scalar.is_integer() && is_unsigned == Some(false) {
                (x, y) = (self.prelude.same_bits(&x, signed), self.prelude.same_bits(&y, signed));
            }
            let text = format!("{} {sign} {}", x.at(Level::Unary), y.at(Level::Unary));
            return Ok(self.prelude.mask_of(text, signed, x.reads || y.reads));
        }
        if let Some(known) = self.known_comparison(predicate, a, b) {
            return Ok(Text::primary(if known { "true" } else { "false" }));
        }
        match (ty.scalar, is_unsigned) {
            (ScalarType::I64, Some(true)) => (x, y) = (x.cast("uint64_t"), y.cast("uint64_t")),
            (ScalarType::I8 | ScalarType::I16 | ScalarType::I32, Some(false)) => {
                let signed = signed_type(ty.scalar);
                (x, y) = (x.cast(signed), y.cast(signed));
            }
            _ => {}
        }
        let reads = x.reads || y.reads;
        let level = |text: &Text| text.at(if text.level == Level::Loose { Level::Unary } else { Level::Add });
        Ok(Text { text: format!("{} {sign} {}", level(&x), level(&y)), level: Level::Loose, reads })
    }

    /// The result of a comparison with the least or the largest integer, about which compilers
    /// would warn.
    fn known_comparison(&self, predicate: Predicate, a: ValueId, b: ValueId) -> Option<bool> {
        let scalar = self.ty(a).scalar;
        if !scalar.is_integer() {
            return None;
        }
        let bits = 8 * scalar.byte_size() as u32;
        let all = u64::MAX >> (64 - bits);
        let is_unsigned = matches!(
            predicate,
            Predicate::Below | Predicate::BelowEqual | Predicate::Above | Predicate::AboveEqual
        );
        let (least, most) = if is_unsigned { (0, all) } else { (1 << (bits - 1), all >> 1) };
        let is = |id: ValueId, limit: u64| match self.uses.definition(id) {
            Some(Expression::Constant(Constant::Integer(value))) => *value as u64 & all == limit,
            _ => false,
        };
        match predicate {
            Predicate::Less | Predicate::Below if is(a, most) || is(b, least) => Some(false),
            Predicate::Greater | Predicate::Above if is(a, least) || is(b, most) => Some(false),
            Predicate::LessEqual | Predicate::BelowEqual if is(a, least) || is(b, most) => Some(true),
            Predicate::GreaterEqual | Predicate::AboveEqual if is(a, most) || is(b, least) => Some(true),
            _ => None,
        }
    }

    fn selection(
        &mut self,
        id: ValueId,
        expression: &Expression,
        condition: ValueId,
        a: ValueId,
        b: ValueId,
    ) -> Result<Text> {
        let ty = self.ty(id);
        match self.uses.extremum(expression) {
            Some(Extremum::Max(a, b)) => {
                let name = self.prelude.extremum(true, ty);
                return self.call(&name, &[a, b]);
            }
            Some(Extremum::Min(a, b)) => {
                let name = self.prelude.extremum(false, ty);
                return self.call(&name, &[a, b]);
            }
            None => {}
        }
        let (x, y) = (self.operand_as(a, id)?, self.operand_as(b, id)?);
        if self.ty(condition).lanes == 1 {
            let c = self.operand(condition)?;
            let reads = c.reads || x.reads || y.reads;
            let text = format!("{} ? {} : {}", c.at(Level::Unary), x.at(Level::Add), y.at(Level::Add));
            return Ok(narrowed(ty, Text { text, level: Level::Loose, reads }));
        }
        let vector = self.vector(id);
        let c = self.mask(condition, vector.bytes)?;
        let reads = c.reads || x.reads || y.reads;
        let text = self.prelude.selected(vector, (&c.text, &x.text, &y.text));
        Ok(Text { text, level: Level::Primary, reads })
    }

    fn extract(&mut self, vector: ValueId, lane: u32) -> Result<Text> {
        let ty = self.ty(vector);
        let x = self.operand(vector)?;
        let lane = self.prelude.lane_of(&x, lane);
        Ok(match ty.scalar {
            ScalarType::Bool => {
                Text { text: format!("{} != 0", lane.text), level: Level::Loose, reads: x.reads }
            }
            ScalarType::I64 => lane.cast("int64_t"),
            _ => lane,
        })
    }

    fn shuffle(&mut self, id: ValueId, a: ValueId, b: ValueId, lanes: &[u32]) -> Result<Text> {
        let (from, to) = (self.ty(a), self.ty(id));
        if from.lanes == 1 {
            let (x, y) = (self.operand_for_lane(a)?, self.operand_for_lane(b)?);
            if let [lane] = lanes {
                return self.operand(if *lane == 0 { a } else { b });
            }
            let as_lane = |text: &Text| match from.scalar {
                ScalarType::Bool => format!("{} ? -1 : 0", text.at(Level::Unary)),
                _ => text.text.clone(),
            };
            let list: Vec<String> =
                lanes.iter().map(|&lane| as_lane(if lane == 0 { &x } else { &y })).collect();
            let vector = self.vector(id);
            return Ok(self.prelude.lanes_of(vector, &list, x.reads || y.reads));
        }
        if let [lane] = lanes {
            return if *lane < from.lanes {
                self.extract(a, *lane)
            } else {
                self.extract(b, lane - from.lanes)
            };
        }
        let padded = from.lanes.next_power_of_two();
        let place = |&lane: &u32| {
            if lane < from.lanes { lane } else { lane - from.lanes + padded }
        };
        let mut list: Vec<u32> = lanes.iter().map(place).collect();
        list.resize(to.lanes.next_power_of_two() as usize, 0);
        let (x, y) = (self.operand(a)?, self.operand_as(b, a)?);
        let vectors = (self.vector(a), self.vector(id));
        Ok(self.prelude.shuffled((&x, &y), vectors, &list))
    }

    fn iota(&mut self, ty: Type) -> Text {
        if ty.lanes == 1 {
            return integer(ty.scalar, 0);
        }
        let vector = Vector::of(ty);
        let list: Vec<String> = (0..vector.lanes).map(|lane| format!("{lane}u")).collect();
        self.prelude.lanes_of(vector, &list, false)
    }

    fn load(&mut self, id: ValueId, pointer: ValueId, alignment: u32, mask: Option<ValueId>) -> Result<Text> {
        let ty = self.ty(id);
        if let Some(text) = self.loaded_from_frame(id, pointer) {
            return Ok(text);
        }
        let at = self.operand(pointer)?;
        let reads = |text: String| Text { text, level: Level::Primary, reads: true };
        let access = self.access(pointer, ty, alignment);
        let Some(mask) = mask else {
            let name =
                if ty.lanes == 1 { self.prelude.load(access) } else { self.prelude.load_vector(access) };
            return Ok(reads(format!("{name}({})", at.text)));
        };
        if ty.lanes == 1 {
            let name = self.prelude.load(access);
            let (condition, at) = (self.operand(mask)?, at.text);
            let zero = self.constant(ty, Constant::Integer(0), 0).text;
            let text = format!("{} ? {name}({at}) : {zero}", condition.at(Level::Unary));
            return Ok(narrowed(ty, Text { text, level: Level::Loose, reads: true }));
        }
        let mask = self.mask(mask, ty.scalar.byte_size())?;
        Ok(reads(format!("{}({}, {})", self.prelude.load_masked(access), at.text, mask.text)))
    }

    fn group(&mut self, kind: GroupKind, a: ValueId, b: ValueId, c: ValueId) -> Result<Text> {
        let lanes = self.ty(c).lanes;
        let (is_bytes, flag) = match kind {
            GroupKind::SignedBytes | GroupKind::SignedBytesByNarrow => (true, true),
            GroupKind::UnsignedBytes => (true, false),
            GroupKind::Bf16 => (false, true),
            _ => return Err(Error::internal(format!("unexpected products of {kind:?} in a plan for C"))),
        };
        let name = match (is_bytes, lanes) {
            (true, 1) => self.prelude.byte_products(flag).to_owned(),
            (true, _) => self.prelude.byte_products_vector(flag, lanes),
            (false, 1) => self.prelude.bf16_products().to_owned(),
            (false, _) => {
                let scalar = self.prelude.bf16_products();
                let words = Vector { lane: Lane::Unsigned, bytes: 4, lanes: lanes.next_power_of_two() };
                let floats = words.with(Lane::Float);
                self.prelude.each_lane(scalar, scalar, &[words, words, floats], floats)
            }
        };
        self.call(&name, &[a, b, c])
    }
}

/// The signed type with the width of an integer.
pub(crate) fn signed_type(scalar: ScalarType) -> &'static str {
    match scalar {
        ScalarType::I8 => "int8_t",
        ScalarType::I16 => "int16_t",
        ScalarType::I32 => "int32_t",
        _ => "int64_t",
    }
}

/// Converts the `int` that C computes with to a narrow type again.
pub(crate) fn narrowed(ty: Type, text: Text) -> Text {
    match (ty.scalar, ty.lanes) {
        (ScalarType::I8 | ScalarType::I16, 1) => text.cast(scalar_type(ty.scalar)),
        _ => text,
    }
}

/// An integer constant, or a null pointer.
pub(crate) fn integer(scalar: ScalarType, value: i64) -> Text {
    match scalar {
        ScalarType::Bool => Text::primary(if value & 1 == 0 { "false" } else { "true" }),
        ScalarType::I8 => Text::primary(format!("{}u", value as u8)),
        ScalarType::I16 => Text::primary(format!("{}u", value as u16)),
        ScalarType::I32 => {
            let value = value as u32;
            Text::primary(if value > 0xffff { format!("{value:#x}u") } else { format!("{value}u") })
        }
        ScalarType::Ptr => Text::primary("NULL"),
        _ if value == i64::MIN => Text::primary("INT64_MIN"),
        _ if i32::try_from(value).is_ok() => signed(value.to_string()),
        _ => signed(if value < 0 {
            format!("-INT64_C({})", value.unsigned_abs())
        } else {
            format!("INT64_C({value})")
        }),
    }
}

fn signed(text: String) -> Text {
    let level = if text.starts_with('-') { Level::Unary } else { Level::Primary };
    Text::new(level, text)
}

/// The shortest decimal number with these bits; `None` for infinities and NaN.
fn decimal_f32(bits: u32) -> Option<String> {
    let value = f32::from_bits(bits);
    value.is_finite().then(|| format!("{value:?}f"))
}

fn decimal_f64(bits: u64) -> Option<String> {
    let value = f64::from_bits(bits);
    value.is_finite().then(|| format!("{value:?}"))
}
