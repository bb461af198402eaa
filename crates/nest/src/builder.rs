//! Builds a function statement by statement, and folds index arithmetic.

use crate::fixed_point::{Factor, Products};
use crate::language::*;
use std::collections::BTreeMap;
use support::{Id, IdVec, Result};

/// A function under construction. A region is built by a closure.
#[derive(Debug)]
pub struct FunctionBuilder {
    name: String,
    parameters: Vec<Parameter>,
    values: IdVec<ValueId, Type>,
    /// Known constants of the values.
    constants: Vec<Option<Constant>>,
    /// Known products of fixed-point numbers.
    products: Products,
    /// Number of open regions at the definition of each value.
    depths: Vec<usize>,
    /// Statements of the open regions, the innermost last.
    open: Vec<Vec<Statement>>,
    linkage: Linkage,
    converts_f16: bool,
    /// Values that are numbers of a narrower format: a number for the format, and their bits in it.
    bits: BTreeMap<ValueId, (u8, ValueId)>,
}

impl FunctionBuilder {
    /// Starts a function.
    pub fn new(name: impl Into<String>, linkage: Linkage) -> Self {
        Self {
            name: name.into(),
            parameters: Vec::new(),
            values: IdVec::new(),
            constants: Vec::new(),
            products: Products::default(),
            depths: Vec::new(),
            open: vec![Vec::new()],
            linkage,
            converts_f16: false,
            bits: BTreeMap::new(),
        }
    }

    /// States that the target converts between `f16` and `F32` by single instructions.
    #[must_use]
    pub fn with_f16_conversion(self, converts_f16: bool) -> Self {
        Self { converts_f16, ..self }
    }

    /// True if the target converts between `f16` and `F32` by single instructions.
    pub fn converts_f16(&self) -> bool {
        self.converts_f16
    }

    /// Returns the bits of a value that is a number of a narrower format, and was only moved since
    /// it was decoded. `format` is the number of the format in [`Self::remember_bits`].
    pub fn bits_in(&self, value: ValueId, format: u8) -> Option<ValueId> {
        self.bits.get(&value).filter(|bits| bits.0 == format).map(|bits| bits.1)
    }

    /// Records the bits, in a narrower format, from which a value was decoded.
    pub fn remember_bits(&mut self, value: ValueId, format: u8, bits: ValueId) {
        self.bits.insert(value, (format, bits));
    }

    /// Returns a value that is made of others without arithmetic. If all have bits in one format,
    /// these are moved in the same way, and are those of the result.
    fn moved(&mut self, from: &[ValueId], mut one: impl FnMut(&mut Self, &[ValueId]) -> ValueId) -> ValueId {
        let value = one(self, from);
        let format = from.first().and_then(|value| self.bits.get(value)).map(|bits| bits.0);
        let bits: Option<Vec<ValueId>> =
            format.and_then(|format| from.iter().map(|&value| self.bits_in(value, format)).collect());
        if let (Some(format), Some(bits)) = (format, bits) {
            let bits = one(self, &bits);
            self.remember_bits(value, format, bits);
        }
        value
    }

    /// Adds a parameter.
    pub fn parameter(&mut self, name: &str, ty: Type, pointer: PointerFacts) -> ValueId {
        let value = self.define_at(ty, 1);
        self.parameters.push(Parameter { name: name.to_owned(), value, pointer });
        value
    }

    /// Returns the finished function.
    pub fn finish(self) -> Function {
        self.finish_yielding(Vec::new())
    }

    /// Returns the finished routine, with its results.
    pub fn finish_yielding(mut self, yields: Vec<ValueId>) -> Function {
        let statements = self.open.pop().expect("the function's body is closed");
        assert!(self.open.is_empty(), "found a region that is still open");
        Function {
            name: self.name,
            parameters: self.parameters,
            values: self.values,
            body: Block { statements, yields },
            linkage: self.linkage,
        }
    }

    /// Returns the type of a value.
    pub fn ty(&self, value: ValueId) -> Type {
        self.values[value]
    }

    /// Returns the integer value of a scalar, if it is a known constant.
    pub fn known_integer(&self, value: ValueId) -> Option<i64> {
        match self.constants[value.index()] {
            Some(Constant::Integer(i)) => Some(i),
            _ => None,
        }
    }

    /// Returns the constant, equal in all lanes, of a value if it is known.
    pub fn known_constant(&self, value: ValueId) -> Option<Constant> {
        self.constants[value.index()]
    }

    /// Returns the number of values so far.
    pub fn value_count(&self) -> usize {
        self.values.len()
    }

    /// Returns the number of open regions: 1 in the function's body, and one more in each loop or
    /// branch.
    pub fn depth(&self) -> usize {
        self.open.len()
    }

    /// Returns the number of open regions at the definition of a value.
    pub fn depth_of(&self, value: ValueId) -> usize {
        self.depths[value.index()]
    }

    fn define(&mut self, ty: Type) -> ValueId {
        self.define_at(ty, self.open.len())
    }

    fn define_at(&mut self, ty: Type, depth: usize) -> ValueId {
        self.constants.push(None);
        self.depths.push(depth);
        self.values.push(ty)
    }

    fn push(&mut self, statement: Statement) {
        self.open_statements().push(statement);
    }

    /// Returns the statements of the innermost open region so far.
    pub(super) fn open_statements(&mut self) -> &mut Vec<Statement> {
        self.open.last_mut().expect("expected an open region")
    }

    /// Defines a value of a type. Prefer the typed methods below.
    pub fn value(&mut self, ty: Type, expression: Expression) -> ValueId {
        let id = self.define(ty);
        if let Expression::Constant(constant) = expression {
            self.constants[id.index()] = Some(constant);
        }
        let Self { products, values, constants, .. } = self;
        products.learn(id, &expression, |id| values[id], |id| constants[id.index()]);
        self.push(Statement::Let(id, expression));
        id
    }

    /// Returns an integer or `Bool` (0 or 1) constant that is the same in all lanes.
    pub fn integer(&mut self, ty: Type, value: i64) -> ValueId {
        debug_assert!(!ty.scalar.is_float(), "expected an integer type");
        self.value(ty, Expression::Constant(Constant::Integer(value)))
    }

    /// Returns an index constant.
    pub fn index(&mut self, value: i64) -> ValueId {
        self.integer(Type::I64, value)
    }

    /// Returns a float constant that is the same in all lanes. It is rounded to `F32` if that is
    /// the type.
    pub fn float(&mut self, ty: Type, value: f64) -> ValueId {
        let bits = match ty.scalar {
            ScalarType::F32 => u64::from((value as f32).to_bits()),
            ScalarType::F64 => value.to_bits(),
            other => panic!("expected a float type, got {other:?}"),
        };
        self.value(ty, Expression::Constant(Constant::FloatBits(bits)))
    }

    /// An operation on one operand, whose type the result has.
    pub fn unary(&mut self, op: UnaryOp, a: ValueId) -> ValueId {
        self.value(self.ty(a), Expression::Unary(op, a))
    }

    /// An operation on two operands of the same type, which the result has too. Index arithmetic on
    /// known integers is folded.
    pub fn binary(&mut self, op: BinaryOp, a: ValueId, b: ValueId) -> ValueId {
        let ty = self.ty(a);
        assert_eq!(ty, self.ty(b), "the operands of {op:?} have different types");
        if ty == Type::I64 {
            match (op, self.known_integer(a), self.known_integer(b)) {
                (BinaryOp::Add, Some(x), Some(y)) => return self.index(x.wrapping_add(y)),
                (BinaryOp::Subtract, Some(x), Some(y)) => return self.index(x.wrapping_sub(y)),
                (BinaryOp::Multiply, Some(x), Some(y)) => return self.index(x.wrapping_mul(y)),
                (BinaryOp::Add, Some(0), _) | (BinaryOp::Multiply, Some(1), _) => return b,
                (BinaryOp::Add | BinaryOp::Subtract, _, Some(0)) | (BinaryOp::Multiply, _, Some(1)) => {
                    return a;
                }
                (BinaryOp::Multiply, Some(0), _) => return a,
                (BinaryOp::Multiply, _, Some(0)) => return b,
                (BinaryOp::DivideSigned, Some(x), Some(y)) if y > 0 => return self.index(x / y),
                (BinaryOp::RemainderSigned, Some(x), Some(y)) if y > 0 => return self.index(x % y),
                (BinaryOp::DivideSigned, _, Some(1)) => return a,
                (BinaryOp::RemainderSigned, _, Some(1)) => return self.index(0),
                _ => {}
            }
        }
        self.value(ty, Expression::Binary(op, a, b))
    }

    /// Sum.
    pub fn add(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.binary(BinaryOp::Add, a, b)
    }

    /// Difference.
    pub fn sub(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.binary(BinaryOp::Subtract, a, b)
    }

    /// Product.
    pub fn mul(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.binary(BinaryOp::Multiply, a, b)
    }

    /// Bitwise and.
    pub fn and(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.binary(BinaryOp::And, a, b)
    }

    /// Bitwise or.
    pub fn or(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.binary(BinaryOp::Or, a, b)
    }

    /// An index plus a constant.
    pub fn add_constant(&mut self, a: ValueId, constant: i64) -> ValueId {
        let b = self.integer(self.ty(a), constant);
        self.add(a, b)
    }

    /// An index times a constant.
    pub fn mul_constant(&mut self, a: ValueId, constant: i64) -> ValueId {
        let b = self.integer(self.ty(a), constant);
        self.mul(a, b)
    }

    /// `a * b + c` of floats.
    pub fn multiply_add(&mut self, a: ValueId, b: ValueId, c: ValueId) -> ValueId {
        self.value(self.ty(a), Expression::MultiplyAdd(a, b, c))
    }

    /// `c` plus the products of a group of factors per lane. See [`Expression::GroupMultiplyAdd`].
    pub fn group_multiply_add(&mut self, kind: GroupKind, a: ValueId, b: ValueId, c: ValueId) -> ValueId {
        self.value(self.ty(c), Expression::GroupMultiplyAdd { kind, a, b, c })
    }

    /// The entries of a table of 256 bytes at the unsigned indices `index`.
    pub fn byte_lookup(&mut self, table: Vec<u8>, index: ValueId) -> ValueId {
        self.value(self.ty(index), Expression::ByteLookup { table, index })
    }

    /// `A * B + C` of matrices that a warp holds together. See [`MatrixKind`].
    pub fn matrix_multiply_add(&mut self, kind: MatrixKind, a: ValueId, b: ValueId, c: ValueId) -> ValueId {
        self.value(self.ty(c), Expression::MatrixMultiplyAdd { kind, a, b, c })
    }

    /// Compares two values of the same type.
    pub fn compare(&mut self, predicate: Predicate, a: ValueId, b: ValueId) -> ValueId {
        let ty = self.ty(a);
        assert_eq!(ty, self.ty(b), "the operands of {predicate:?} have different types");
        self.value(ty.with_scalar(ScalarType::Bool), Expression::Compare(predicate, a, b))
    }

    /// `condition ? a : b`.
    pub fn select(&mut self, condition: ValueId, a: ValueId, b: ValueId) -> ValueId {
        assert_eq!(self.ty(a), self.ty(b), "the operands of select have different types");
        self.moved(&[a, b], |builder, from| {
            builder.value(builder.ty(from[0]), Expression::Select(condition, from[0], from[1]))
        })
    }

    /// Converts to another scalar type with the same number of lanes. Returns the value itself if
    /// it has the type already. The lower half of a rounded product of 64 bits is a product of
    /// fixed-point numbers, for which processors need half the registers.
    pub fn convert(&mut self, op: ConvertOp, a: ValueId, to: ScalarType) -> ValueId {
        let from = self.ty(a);
        let ty = from.with_scalar(to);
        if ty == from {
            return a;
        }
        let product = self.products.of(a).filter(|_| op == ConvertOp::Truncate && to == ScalarType::I32);
        if let Some(factors) = product {
            let [x, y] = factors.map(|factor| match factor {
                Factor::Value(value) => value,
                Factor::Constant(value) => self.integer(ty, value.into()),
            });
            return self.binary(BinaryOp::MultiplyFixed, x, y);
        }
        self.value(ty, Expression::Convert(op, a))
    }

    /// The same bits as another type of the same size.
    pub fn bitcast(&mut self, a: ValueId, to: Type) -> ValueId {
        if to == self.ty(a) { a } else { self.value(to, Expression::Convert(ConvertOp::Bitcast, a)) }
    }

    /// Broadcasts a scalar to all lanes. Returns the scalar itself for one lane.
    pub fn splat(&mut self, scalar: ValueId, lanes: u32) -> ValueId {
        assert_eq!(self.ty(scalar).lanes, 1, "expected a scalar operand of splat");
        if lanes == 1 {
            return scalar;
        }
        self.moved(&[scalar], |builder, from| {
            let vector = Type::vector(builder.ty(from[0]).scalar, lanes);
            let constant = builder.known_constant(from[0]);
            builder.value(vector, constant.map_or(Expression::Splat(from[0]), Expression::Constant))
        })
    }

    /// Returns one lane of a vector, or the value itself if it is a scalar.
    pub fn extract(&mut self, vector: ValueId, lane: u32) -> ValueId {
        if self.ty(vector).lanes == 1 {
            return vector;
        }
        self.moved(&[vector], |builder, from| {
            let scalar = Type::scalar(builder.ty(from[0]).scalar);
            builder.value(scalar, Expression::Extract(from[0], lane))
        })
    }

    /// A vector with one lane replaced.
    pub fn insert(&mut self, vector: ValueId, lane: u32, scalar: ValueId) -> ValueId {
        self.moved(&[vector, scalar], |builder, from| {
            builder.value(builder.ty(from[0]), Expression::Insert(from[0], lane, from[1]))
        })
    }

    /// Lanes of two vectors.
    pub fn shuffle(&mut self, a: ValueId, b: ValueId, lanes: Vec<u32>) -> ValueId {
        self.moved(&[a, b], |builder, from| {
            let ty = Type::vector(builder.ty(from[0]).scalar, lanes.len() as u32);
            builder.value(ty, Expression::Shuffle(from[0], from[1], lanes.clone()))
        })
    }

    /// Lanes 0, 1, 2, ...
    pub fn iota(&mut self, scalar: ScalarType, lanes: u32) -> ValueId {
        self.value(Type::vector(scalar, lanes), Expression::Iota)
    }

    /// `pointer + index * scale` bytes.
    pub fn offset(&mut self, pointer: ValueId, index: ValueId, scale: i64) -> ValueId {
        match self.known_integer(index) {
            Some(0) => pointer,
            _ => self.value(Type::PTR, Expression::Offset { pointer, index, scale }),
        }
    }

    /// `pointer + bytes`.
    pub fn offset_bytes(&mut self, pointer: ValueId, bytes: i64) -> ValueId {
        let index = self.index(bytes);
        self.offset(pointer, index, 1)
    }

    /// Loads a value.
    pub fn load(&mut self, ty: Type, pointer: ValueId, alignment: u32) -> ValueId {
        self.value(ty, Expression::Load { pointer, alignment, mask: None })
    }

    /// Loads the lanes of a mask.
    pub fn load_masked(&mut self, ty: Type, pointer: ValueId, alignment: u32, mask: ValueId) -> ValueId {
        self.value(ty, Expression::Load { pointer, alignment, mask: Some(mask) })
    }

    /// Stores a value.
    pub fn store(&mut self, value: ValueId, pointer: ValueId, alignment: u32) {
        self.push(Statement::Store { value, pointer, alignment, mask: None });
    }

    /// Stores the lanes of a mask.
    pub fn store_masked(&mut self, value: ValueId, pointer: ValueId, alignment: u32, mask: ValueId) {
        self.push(Statement::Store { value, pointer, alignment, mask: Some(mask) });
    }

    /// Calls a function.
    pub fn call(&mut self, function: FunctionId, arguments: Vec<ValueId>) {
        self.push(Statement::Call { function, arguments });
    }

    /// Runs a function over `0..count` in parts. See [`Statement::Parallel`].
    pub fn parallel(&mut self, function: FunctionId, count: i64, arguments: Vec<ValueId>) {
        self.push(Statement::Parallel { function, count, arguments });
    }

    /// Calls a user-provided C function with addresses. Returns its status, an `I32`.
    pub fn call_external(&mut self, symbol: &str, arguments: Vec<ValueId>) -> ValueId {
        let status = self.define(Type::scalar(ScalarType::I32));
        self.push(Statement::CallExternal { symbol: symbol.to_owned(), arguments, status });
        status
    }

    /// Returns a status from the entry if a condition holds.
    pub fn leave_if(&mut self, condition: ValueId, status: ValueId) {
        self.push(Statement::LeaveIf { condition, status });
    }

    /// Copies bytes between memory regions that do not overlap.
    pub fn copy_bytes(&mut self, to: ValueId, from: ValueId, bytes: ValueId) {
        self.push(Statement::CopyBytes { to, from, bytes });
    }

    /// Sets bytes to a value.
    pub fn fill_bytes(&mut self, to: ValueId, byte: ValueId, bytes: ValueId) {
        self.push(Statement::FillBytes { to, byte, bytes });
    }

    /// Waits for all threads of the workgroup.
    pub fn barrier(&mut self) {
        self.push(Statement::Barrier);
    }

    /// Returns a number of the running thread.
    pub fn thread(&mut self, index: ThreadIndex) -> ValueId {
        self.value(Type::I64, Expression::Thread(index))
    }

    /// Returns the address of memory that the threads of a workgroup share.
    pub fn workgroup_memory(&mut self, bytes: u64, alignment: u32) -> ValueId {
        self.outside(1, |b| b.value(Type::PTR, Expression::WorkgroupMemory { bytes, alignment }))
    }

    /// Prefetches the line of an address into the first- or second-level cache.
    pub fn prefetch(&mut self, pointer: ValueId, cache: u32) {
        self.push(Statement::Prefetch { pointer, cache });
    }

    /// Emits an operation on tile registers.
    pub fn tiles(&mut self, operation: TileOperation) {
        self.push(Statement::Tiles(operation));
    }

    fn carry(&mut self, initial: &[ValueId]) -> Vec<Carried> {
        let carry = |&initial: &ValueId| {
            let ty = self.ty(initial);
            let inner = self.define_at(ty, self.open.len() + 1);
            Carried { inner, initial, result: self.define(ty) }
        };
        initial.iter().map(carry).collect()
    }
}

/// Statements that own regions, for all types that contain a builder. The closure of a region
/// receives the type that builds it.
pub trait RegionBuilder: Sized {
    /// Returns the builder.
    fn builder(&mut self) -> &mut FunctionBuilder;

    /// Builds in the open region at a depth, before the loop or branch that is being built there.
    fn outside<R>(&mut self, depth: usize, build: impl FnOnce(&mut Self) -> R) -> R {
        let open = &mut self.builder().open;
        assert!(depth >= 1 && depth <= open.len(), "expected the depth of an open region");
        let inner = open.split_off(depth);
        let result = build(self);
        let open = &mut self.builder().open;
        assert_eq!(open.len(), depth, "found a region that is still open");
        open.extend(inner);
        result
    }

    /// `for index in (begin..end).step_by(step)` with carried values. The body receives the index
    /// and the current values, and returns the next ones. Returns the last values.
    fn for_carrying(
        &mut self,
        begin: ValueId,
        end: ValueId,
        step: i64,
        initial: &[ValueId],
        body: impl FnOnce(&mut Self, ValueId, &[ValueId]) -> Result<Vec<ValueId>>,
    ) -> Result<Vec<ValueId>> {
        assert!(step >= 1, "expected a step of at least 1");
        let b = self.builder();
        let index = b.define_at(Type::I64, b.open.len() + 1);
        let carried = b.carry(initial);
        let inner: Vec<ValueId> = carried.iter().map(|c| c.inner).collect();
        let body = region(self, |b| body(b, index, &inner))?;
        assert_eq!(
            body.yields.len(),
            carried.len(),
            "the body of a loop yields another number of values than it carries"
        );
        let results = carried.iter().map(|c| c.result).collect();
        self.builder().push(Statement::For { index, begin, end, step, carried, body });
        Ok(results)
    }

    /// A loop without carried values.
    fn for_each(
        &mut self,
        begin: ValueId,
        end: ValueId,
        step: i64,
        body: impl FnOnce(&mut Self, ValueId) -> Result<()>,
    ) -> Result<()> {
        self.for_carrying(begin, end, step, &[], |b, index, _| body(b, index).map(|()| Vec::new()))
            .map(|_| ())
    }

    /// Repeats the body while `condition` returns a true `Bool`. Returns the last carried values.
    fn while_carrying(
        &mut self,
        initial: &[ValueId],
        condition: impl FnOnce(&mut Self, &[ValueId]) -> Result<ValueId>,
        body: impl FnOnce(&mut Self, &[ValueId]) -> Result<Vec<ValueId>>,
    ) -> Result<Vec<ValueId>> {
        let carried = self.builder().carry(initial);
        let inner: Vec<ValueId> = carried.iter().map(|c| c.inner).collect();
        let condition = region(self, |b| Ok(vec![condition(b, &inner)?]))?;
        let body = region(self, |b| body(b, &inner))?;
        assert_eq!(
            body.yields.len(),
            carried.len(),
            "the body of a loop yields another number of values than it carries"
        );
        let results = carried.iter().map(|c| c.result).collect();
        self.builder().push(Statement::While { carried, condition, body });
        Ok(results)
    }

    /// Runs one of two regions. Both must return the same number of values, of the same types.
    /// Returns the values of the region that ran.
    fn if_else(
        &mut self,
        condition: ValueId,
        then: impl FnOnce(&mut Self) -> Result<Vec<ValueId>>,
        otherwise: impl FnOnce(&mut Self) -> Result<Vec<ValueId>>,
    ) -> Result<Vec<ValueId>> {
        let then = region(self, then)?;
        let otherwise = region(self, otherwise)?;
        let b = self.builder();
        assert_eq!(
            then.yields.len(),
            otherwise.yields.len(),
            "the two regions of a branch yield different numbers of values"
        );
        let types: Vec<Type> = then.yields.iter().map(|&v| b.ty(v)).collect();
        let results: Vec<ValueId> = types.into_iter().map(|ty| b.define(ty)).collect();
        b.push(Statement::If { condition, results: results.clone(), then, otherwise });
        Ok(results)
    }

    /// A region that runs only if the condition holds.
    fn if_then(&mut self, condition: ValueId, then: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.if_else(condition, |b| then(b).map(|()| Vec::new()), |_| Ok(Vec::new())).map(|_| ())
    }
}

impl RegionBuilder for FunctionBuilder {
    fn builder(&mut self) -> &mut FunctionBuilder {
        self
    }
}

fn region<B: RegionBuilder>(
    builder: &mut B,
    build: impl FnOnce(&mut B) -> Result<Vec<ValueId>>,
) -> Result<Block> {
    builder.builder().open.push(Vec::new());
    let yields = build(builder);
    let statements = builder.builder().open.pop().expect("expected the region that was just opened");
    Ok(Block { statements, yields: yields? })
}
