//! Checks that a program follows the rules of the language, so that translators can rely on them.
//!
//! - Functions: names are unique and not empty. Callees come before callers. There is at most one
//!   entry, which comes last and takes one address. Only addresses have facts about memory.
//! - Values: each has exactly one definition, before its uses and visible where it is used. Lanes
//!   are 1 to 1024, and addresses are scalars.
//! - Expressions and statements: the operands and results have the types of the operation.
//!   Alignments are powers of two. Stack slots are outside loops and have at most 1 GiB.
//! - Parallel calls: only in the entry. The callee's last three parameters are `I64`.
//! - Kernels of a device: all parameters are addresses. Thread numbers, workgroup memory, barriers,
//!   and products of matrices are only in kernels. All threads of a workgroup reach a barrier or a
//!   product of matrices ([`uniform`]).
//! - Regions: the yields have the number and types that the owner expects. At most 256 regions are
//!   nested.

use crate::language::*;
use crate::text::StatementHead;
use crate::uniform;
use std::collections::BTreeSet;
use support::{Error, Id, Result, is_c_identifier};

const MAX_LANES: u32 = 1024;
const MAX_NESTING: usize = 256;
const MAX_STACK_SLOT: u64 = 1 << 30;
const MAX_THREADS: u32 = 1024;
const MAX_WORKGROUP_MEMORY: u64 = 227 << 10;

/// Checks a program. The error describes the first violation, with the function's name and the
/// statement.
pub fn verify(program: &Program) -> Result<()> {
    let mut names = BTreeSet::new();
    for (id, function) in program.functions.iter() {
        let mut check = || {
            require(!function.name.is_empty(), || "the function has no name".to_owned())?;
            require(names.insert(function.name.as_str()), || {
                "another function has the same name".to_owned()
            })?;
            let last = id.index() + 1 == program.functions.len();
            require(last || function.linkage != Linkage::Entry, || {
                "expected the entry as the last function".to_owned()
            })?;
            Verifier::new(program, id, function).function()
        };
        check().map_err(|e| e.context(format_args!("loop nest {:?}", function.name)))?;
    }
    Ok(())
}

fn require(holds: bool, message: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::internal(message())) }
}

struct Verifier<'p> {
    program: &'p Program,
    id: FunctionId,
    function: &'p Function,
    /// True for each value whose definition was visited.
    defined: Vec<bool>,
    /// True for each value that is visible here.
    visible: Vec<bool>,
    /// The values that become invisible at the end of each open region.
    scopes: Vec<Vec<ValueId>>,
    loops: usize,
}

impl<'p> Verifier<'p> {
    fn new(program: &'p Program, id: FunctionId, function: &'p Function) -> Self {
        let values = function.values.len();
        Self {
            program,
            id,
            function,
            defined: vec![false; values],
            visible: vec![false; values],
            scopes: vec![Vec::new()],
            loops: 0,
        }
    }

    fn function(mut self) -> Result<()> {
        let function = self.function;
        for (id, ty) in function.values.iter() {
            let fine = (1..=MAX_LANES).contains(&ty.lanes) && (ty.scalar != ScalarType::Ptr || ty.lanes == 1);
            require(fine, || format!("{id}: invalid type {ty}"))?;
        }
        for parameter in &function.parameters {
            self.define(parameter.value)?;
            let facts = parameter.pointer;
            let is_pointer = self.ty(parameter.value)? == Type::PTR;
            require(is_pointer || facts == PointerFacts::default(), || {
                format!("parameter {}: facts about memory are only allowed for addresses", parameter.value)
            })?;
            require(facts.alignment.is_power_of_two(), || {
                format!("parameter {}: alignment {} is not a power of two", parameter.value, facts.alignment)
            })?;
        }
        if function.linkage == Linkage::Entry {
            let one_address =
                matches!(&function.parameters[..], [p] if function.values[p.value] == Type::PTR);
            require(one_address, || "expected one address as the entry's only parameter".to_owned())?;
        }
        if let Linkage::Kernel { threads } = function.linkage {
            require((1..=MAX_THREADS).contains(&threads), || {
                format!("a kernel of {threads} threads; expected 1 to {MAX_THREADS}")
            })?;
            let all_addresses = function.parameters.iter().all(|p| function.values[p.value] == Type::PTR);
            require(all_addresses && !function.parameters.is_empty(), || {
                "expected addresses as the parameters of a kernel, the guard first".to_owned()
            })?;
        }
        let results: Vec<Type> = if function.linkage == Linkage::Routine {
            let yields = &function.body.yields;
            require((1..=2).contains(&yields.len()), || {
                "expected one or two results of a routine".to_owned()
            })?;
            yields.iter().map(|&id| self.ty(id)).collect::<Result<_>>()?
        } else {
            Vec::new()
        };
        require(results.iter().all(|ty| ty.lanes == 1), || "expected scalars as results".to_owned())?;
        self.region(&function.body, &results)?;
        uniform::check_barriers(function)?;
        match self.defined.iter().position(|defined| !defined) {
            Some(index) => Err(Error::internal(format!("{} has no definition", ValueId::from_index(index)))),
            None => Ok(()),
        }
    }

    fn ty(&self, id: ValueId) -> Result<Type> {
        let ty = self.function.values.get(id).copied();
        ty.ok_or_else(|| Error::internal(format!("{id} is not a value of this function")))
    }

    fn define(&mut self, id: ValueId) -> Result<()> {
        self.ty(id)?;
        require(!self.defined[id.index()], || format!("{id} has two definitions"))?;
        self.defined[id.index()] = true;
        self.visible[id.index()] = true;
        self.scopes.last_mut().expect("expected an open region").push(id);
        Ok(())
    }

    /// Returns the type of a value that is used here.
    fn used(&self, id: ValueId) -> Result<Type> {
        let ty = self.ty(id)?;
        require(self.visible[id.index()], || format!("{id} is not visible here"))?;
        Ok(ty)
    }

    fn used_as(&self, id: ValueId, expected: Type) -> Result<()> {
        let ty = self.used(id)?;
        require(ty == expected, || format!("{id} is {ty}, expected {expected}"))
    }

    fn alike(&self, values: &[ValueId], expected: &[Type], what: &str) -> Result<()> {
        require(values.len() == expected.len(), || {
            format!("{what}: {} values, expected {}", values.len(), expected.len())
        })?;
        values
            .iter()
            .zip(expected)
            .try_for_each(|(&value, &ty)| self.used_as(value, ty).map_err(|e| e.context(what)))
    }

    /// Checks the statements of a region and its yields.
    fn region(&mut self, block: &Block, yields: &[Type]) -> Result<()> {
        require(self.scopes.len() <= MAX_NESTING, || format!("more than {MAX_NESTING} nested regions"))?;
        self.scopes.push(Vec::new());
        for statement in &block.statements {
            self.statement(statement)
                .map_err(|e| e.context(format_args!("`{}`", StatementHead(self.function, statement))))?;
        }
        self.alike(&block.yields, yields, "yield")?;
        for id in self.scopes.pop().expect("pushed above") {
            self.visible[id.index()] = false;
        }
        Ok(())
    }

    /// Checks the initial values and opens a scope that contains the inner ones. Returns their
    /// types.
    fn carried(&mut self, carried: &[Carried]) -> Result<Vec<Type>> {
        let types = carried.iter().map(|c| self.used(c.initial)).collect::<Result<Vec<_>>>()?;
        self.scopes.push(Vec::new());
        for (c, &ty) in carried.iter().zip(&types) {
            self.define(c.inner)?;
            self.used_as(c.inner, ty)?;
        }
        Ok(types)
    }

    fn close_scope(&mut self) {
        for id in self.scopes.pop().expect("expected an open scope") {
            self.visible[id.index()] = false;
        }
    }

    fn results(&mut self, results: impl Iterator<Item = ValueId>, types: &[Type]) -> Result<()> {
        for (id, &ty) in results.zip(types) {
            self.define(id)?;
            self.used_as(id, ty)?;
        }
        Ok(())
    }

    /// Checks a loop. `regions` receives the types of the carried values.
    fn repetition(
        &mut self,
        carried: &[Carried],
        regions: impl FnOnce(&mut Self, &[Type]) -> Result<()>,
    ) -> Result<()> {
        let types = self.carried(carried)?;
        self.loops += 1;
        regions(self, &types)?;
        self.loops -= 1;
        self.close_scope();
        self.results(carried.iter().map(|c| c.result), &types)
    }

    fn parallel(&mut self, function: FunctionId, count: i64, arguments: &[ValueId]) -> Result<()> {
        require(self.function.linkage == Linkage::Entry, || {
            "found a parallel call outside the entry".to_owned()
        })?;
        require(count >= 1, || format!("expected a parallel call over at least 1 item, found {count}"))?;
        let callee = self.callee(function)?;
        let types: Vec<Type> = callee.parameters.iter().map(|p| callee.values[p.value]).collect();
        let [types @ .., Type::I64, Type::I64, Type::I64] = &types[..] else {
            return Err(Error::internal(format!(
                "the last three parameters of {function} are not a range of items and a worker"
            )));
        };
        self.alike(arguments, types, "arguments")
    }

    fn call_external(&mut self, symbol: &str, arguments: &[ValueId], status: ValueId) -> Result<()> {
        require(self.function.linkage == Linkage::Entry, || {
            "found a call of a user function outside the entry".to_owned()
        })?;
        require(is_c_identifier(symbol), || format!("'{symbol}' is not a valid function name"))?;
        self.alike(arguments, &vec![Type::PTR; arguments.len()], "arguments")?;
        require(self.ty(status)? == Type::scalar(ScalarType::I32), || "expected an i32 status".to_owned())?;
        self.define(status)
    }

    fn statement(&mut self, statement: &Statement) -> Result<()> {
        match statement {
            Statement::Let(id, expression) => {
                let ty = self.ty(*id)?;
                self.expression(ty, expression)?;
                self.define(*id)
            }
            Statement::Store { value, pointer, alignment, mask } => {
                let ty = self.used(*value)?;
                self.access(ty, *pointer, *alignment, *mask)
            }
            Statement::For { index, begin, end, step, carried, body } => {
                self.used_as(*begin, Type::I64)?;
                self.used_as(*end, Type::I64)?;
                require(*step >= 1, || format!("expected a step of at least 1, found {step}"))?;
                self.repetition(carried, |verifier, types| {
                    verifier.define(*index)?;
                    verifier.used_as(*index, Type::I64)?;
                    verifier.region(body, types)
                })
            }
            Statement::While { carried, condition, body } => self.repetition(carried, |verifier, types| {
                verifier.region(condition, &[Type::BOOL])?;
                verifier.region(body, types)
            }),
            Statement::If { condition, results, then, otherwise } => {
                self.used_as(*condition, Type::BOOL)?;
                let types = results.iter().map(|&id| self.ty(id)).collect::<Result<Vec<_>>>()?;
                self.region(then, &types)?;
                self.region(otherwise, &types)?;
                self.results(results.iter().copied(), &types)
            }
            Statement::Call { function, arguments } => {
                let callee = self.callee(*function)?;
                let types: Vec<Type> = callee.parameters.iter().map(|p| callee.values[p.value]).collect();
                self.alike(arguments, &types, "arguments")
            }
            Statement::Parallel { function, count, arguments } => self.parallel(*function, *count, arguments),
            Statement::CallExternal { symbol, arguments, status } => {
                self.call_external(symbol, arguments, *status)
            }
            Statement::LeaveIf { condition, status } => {
                require(self.function.linkage == Linkage::Entry, || {
                    "found a return of a status outside the entry".to_owned()
                })?;
                self.used_as(*condition, Type::BOOL)?;
                self.used_as(*status, Type::scalar(ScalarType::I32))
            }
            Statement::CopyBytes { to, from, bytes } => {
                self.used_as(*to, Type::PTR)?;
                self.used_as(*from, Type::PTR)?;
                self.used_as(*bytes, Type::I64)
            }
            Statement::FillBytes { to, byte, bytes } => {
                self.used_as(*to, Type::PTR)?;
                self.used_as(*byte, Type::scalar(ScalarType::I8))?;
                self.used_as(*bytes, Type::I64)
            }
            Statement::Barrier => self.in_kernel("a barrier"),
            Statement::Tiles(operation) => self.tiles(*operation),
            Statement::Prefetch { pointer, cache } => {
                require((1..=2).contains(cache), || {
                    format!("expected a prefetch into cache 1 or 2, found {cache}")
                })?;
                self.used_as(*pointer, Type::PTR)
            }
        }
    }

    fn tiles(&self, operation: TileOperation) -> Result<()> {
        if let Some(defect) = operation.defect() {
            return Err(Error::internal(defect));
        }
        if let TileOperation::Load { pointer, stride, .. } | TileOperation::Store { pointer, stride, .. } =
            operation
        {
            self.used_as(pointer, Type::PTR)?;
            self.used_as(stride, Type::I64)?;
        }
        Ok(())
    }

    fn in_kernel(&self, what: &str) -> Result<()> {
        require(matches!(self.function.linkage, Linkage::Kernel { .. }), || {
            format!("found {what} outside a kernel of a device")
        })
    }

    fn callee(&self, function: FunctionId) -> Result<&'p Function> {
        require(function < self.id, || format!("{function} does not come before its caller"))?;
        let callee = &self.program.functions[function];
        for parameter in &callee.parameters {
            require(callee.values.get(parameter.value).is_some(), || {
                format!("a parameter of {function} is not one of its values")
            })?;
        }
        Ok(callee)
    }

    /// Checks a load or store of a value of type `ty`.
    fn access(&self, ty: Type, pointer: ValueId, alignment: u32, mask: Option<ValueId>) -> Result<()> {
        require(ty.scalar != ScalarType::Bool, || "Bool cannot be loaded or stored".to_owned())?;
        require(alignment.is_power_of_two(), || format!("alignment {alignment} is not a power of two"))?;
        self.used_as(pointer, Type::PTR)?;
        match mask {
            Some(mask) => {
                require(ty.scalar != ScalarType::Ptr, || {
                    "addresses cannot be loaded or stored with a mask".to_owned()
                })?;
                self.used_as(mask, ty.with_scalar(ScalarType::Bool))
            }
            None => Ok(()),
        }
    }

    fn expression(&self, ty: Type, expression: &Expression) -> Result<()> {
        match expression {
            Expression::Constant(constant) => {
                let fits = match constant {
                    Constant::Integer(value) => match ty.scalar {
                        ScalarType::Ptr => *value == 0,
                        scalar => !scalar.is_float(),
                    },
                    Constant::FloatBits(bits) => {
                        ty.scalar == ScalarType::F64
                            || (ty.scalar == ScalarType::F32 && u32::try_from(*bits).is_ok())
                    }
                };
                require(fits, || format!("the constant does not fit {ty}"))
            }
            Expression::Unary(op, a) => {
                self.used_as(*a, ty)?;
                require(unary_takes(*op, ty.scalar), || format!("{op:?} does not take {ty}"))
            }
            Expression::Binary(op, a, b) => {
                self.used_as(*a, ty)?;
                self.used_as(*b, ty)?;
                require(binary_takes(*op, ty.scalar), || format!("{op:?} does not take {ty}"))
            }
            Expression::MultiplyAdd(a, b, c) => {
                require(ty.scalar.is_float(), || format!("multiply-add does not take {ty}"))?;
                self.alike(&[*a, *b, *c], &[ty; 3], "multiply-add")
            }
            Expression::GroupMultiplyAdd { kind, a, b, c } => {
                let fits = ty.scalar == kind.sum()
                    && (!kind.is_paired() || ty.lanes == 4)
                    && (*kind != GroupKind::SignedByteHalves || ty.lanes == 8)
                    && (*kind != GroupKind::Short || ty.lanes > 1)
                    && (*kind != GroupKind::SignedByteVectors || ty.lanes == 1);
                require(fits, || format!("a sum of products of {kind:?} is not {ty}"))?;
                let lanes = match kind {
                    GroupKind::SignedByteHalves => ty.lanes / 2,
                    GroupKind::SignedByteVectors => 4,
                    _ => ty.lanes,
                };
                let factors = match kind {
                    GroupKind::Short => Type::vector(ScalarType::I16, lanes),
                    _ => Type::vector(ScalarType::I32, lanes),
                };
                self.alike(&[*a, *b, *c], &[factors, factors, ty], "a sum of products of groups")
            }
            Expression::ByteLookup { table, index } => {
                require(ty.scalar == ScalarType::I8, || format!("a byte of a table is not {ty}"))?;
                require(table.len() == 256, || {
                    format!("expected a table of 256 bytes, found {}", table.len())
                })?;
                self.used_as(*index, ty)
            }
            Expression::MatrixMultiplyAdd { kind, a, b, c } => {
                let Linkage::Kernel { threads } = self.function.linkage else {
                    return self.in_kernel("a product of matrices");
                };
                require(threads % 32 == 0, || "a product of matrices needs whole warps".to_owned())?;
                self.used_as(*a, Type::vector(ScalarType::I32, 4))?;
                self.used_as(*b, Type::vector(ScalarType::I32, 2))?;
                self.used_as(*c, Type::vector(kind.sum(), 4))?;
                gives(ty, Type::vector(kind.sum(), 4))
            }
            Expression::Compare(predicate, a, b) => {
                let operand = self.used(*a)?;
                self.used_as(*b, operand)?;
                require(compares(*predicate, operand.scalar), || {
                    format!("{predicate:?} does not take {operand}")
                })?;
                gives(ty, operand.with_scalar(ScalarType::Bool))
            }
            Expression::Select(condition, a, b) => {
                let condition = self.used(*condition)?;
                let fine = condition == Type::BOOL || condition == ty.with_scalar(ScalarType::Bool);
                require(fine, || format!("a condition of type {condition} cannot select {ty}"))?;
                self.alike(&[*a, *b], &[ty; 2], "select")
            }
            Expression::Convert(op, a) => {
                let from = self.used(*a)?;
                require(converts(*op, from, ty), || format!("{op:?} does not convert {from} to {ty}"))
            }
            Expression::Splat(a) => self.used_as(*a, Type::scalar(ty.scalar)),
            Expression::Extract(vector, lane) => {
                let vector = self.used(*vector)?;
                lane_of(*lane, vector)?;
                gives(ty, Type::scalar(vector.scalar))
            }
            Expression::Insert(vector, lane, scalar) => {
                self.used_as(*vector, ty)?;
                lane_of(*lane, ty)?;
                self.used_as(*scalar, Type::scalar(ty.scalar))
            }
            Expression::Shuffle(a, b, lanes) => {
                let operand = self.used(*a)?;
                self.used_as(*b, operand)?;
                require(operand.scalar != ScalarType::Ptr, || "addresses cannot be shuffled".to_owned())?;
                require(lanes.iter().all(|&lane| lane < 2 * operand.lanes), || {
                    format!("a shuffled lane is beyond two vectors of type {operand}")
                })?;
                require(lanes.len() == ty.lanes as usize, || {
                    format!("expected {} lanes for a shuffle to {ty}, found {}", ty.lanes, lanes.len())
                })?;
                gives(ty.with_scalar(operand.scalar), ty)
            }
            Expression::Iota => {
                require(ty.scalar.is_integer(), || format!("expected an integer type for iota, found {ty}"))
            }
            Expression::Offset { pointer, index, .. } => {
                self.used_as(*pointer, Type::PTR)?;
                self.used_as(*index, Type::I64)?;
                gives(ty, Type::PTR)
            }
            Expression::Load { pointer, alignment, mask } => self.access(ty, *pointer, *alignment, *mask),
            Expression::StackSlot { bytes, alignment } => {
                require(self.loops == 0, || "found a stack slot inside a loop".to_owned())?;
                require(*bytes <= MAX_STACK_SLOT, || {
                    format!("a stack slot of {bytes} bytes exceeds {MAX_STACK_SLOT}")
                })?;
                require(alignment.is_power_of_two(), || {
                    format!("alignment {alignment} is not a power of two")
                })?;
                gives(ty, Type::PTR)
            }
            Expression::Bytes(_) => gives(ty, Type::PTR),
            Expression::FunctionAddress(function) => {
                self.callee(*function)?;
                gives(ty, Type::PTR)
            }
            Expression::CycleCounter => gives(ty, Type::I64),
            Expression::Thread(_) => {
                self.in_kernel("a thread number")?;
                gives(ty, Type::I64)
            }
            Expression::WorkgroupMemory { bytes, alignment } => {
                self.in_kernel("workgroup memory")?;
                require(self.loops == 0, || "found workgroup memory inside a loop".to_owned())?;
                require((1..=MAX_WORKGROUP_MEMORY).contains(bytes), || {
                    format!("{bytes} bytes of workgroup memory; expected 1 to {MAX_WORKGROUP_MEMORY}")
                })?;
                require(alignment.is_power_of_two(), || {
                    format!("alignment {alignment} is not a power of two")
                })?;
                gives(ty, Type::PTR)
            }
        }
    }
}

fn gives(ty: Type, expected: Type) -> Result<()> {
    require(ty == expected, || format!("the result is {expected}, but the value has type {ty}"))
}

fn lane_of(lane: u32, vector: Type) -> Result<()> {
    require(vector.lanes > 1, || format!("{vector} is not a vector"))?;
    require(lane < vector.lanes, || format!("{vector} has no lane {lane}"))
}

fn unary_takes(op: UnaryOp, scalar: ScalarType) -> bool {
    match op {
        UnaryOp::Negate
        | UnaryOp::Abs
        | UnaryOp::Sqrt
        | UnaryOp::Floor
        | UnaryOp::Ceil
        | UnaryOp::Truncate
        | UnaryOp::RoundEven
        | UnaryOp::Exponent
        | UnaryOp::Mantissa
        | UnaryOp::ReciprocalEstimate
        | UnaryOp::ReciprocalRootEstimate => scalar.is_float(),
        UnaryOp::Not => scalar.is_integer() || scalar == ScalarType::Bool,
        UnaryOp::CountLeadingZeros | UnaryOp::PopulationCount => scalar.is_integer(),
    }
}

fn binary_takes(op: BinaryOp, scalar: ScalarType) -> bool {
    match op {
        BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Multiply => scalar.is_float() || scalar.is_integer(),
        BinaryOp::Divide | BinaryOp::Scale => scalar.is_float(),
        BinaryOp::MultiplyFixed => scalar == ScalarType::I32,
        BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => scalar.is_integer() || scalar == ScalarType::Bool,
        BinaryOp::DivideSigned
        | BinaryOp::DivideUnsigned
        | BinaryOp::RemainderSigned
        | BinaryOp::RemainderUnsigned
        | BinaryOp::ShiftLeft
        | BinaryOp::ShiftRightLogical
        | BinaryOp::ShiftRightArithmetic => scalar.is_integer(),
    }
}

fn compares(predicate: Predicate, scalar: ScalarType) -> bool {
    match predicate {
        Predicate::Equal | Predicate::NotEqual => true,
        Predicate::Less | Predicate::LessEqual | Predicate::Greater | Predicate::GreaterEqual => {
            scalar.is_float() || scalar.is_integer()
        }
        Predicate::Below | Predicate::BelowEqual | Predicate::Above | Predicate::AboveEqual => {
            scalar.is_integer()
        }
    }
}

fn converts(op: ConvertOp, from: Type, to: Type) -> bool {
    let bits = |scalar: ScalarType| if scalar == ScalarType::Bool { 1 } else { 8 * scalar.byte_size() };
    let (a, b) = (from.scalar, to.scalar);
    let integral = |scalar: ScalarType| scalar.is_integer() || scalar == ScalarType::Bool;
    if op == ConvertOp::Bitcast {
        let total = |ty: Type| bits(ty.scalar) as u64 * u64::from(ty.lanes);
        let address = a == ScalarType::Ptr || b == ScalarType::Ptr;
        return total(from) == total(to)
            && (!address || matches!(a, ScalarType::I64 | ScalarType::Ptr))
            && (!address || matches!(b, ScalarType::I64 | ScalarType::Ptr));
    }
    let is_wider =
        |types| matches!(types, (ScalarType::F64, ScalarType::F32) | (ScalarType::F32, ScalarType::I16));
    let fits = match op {
        ConvertOp::SignExtend | ConvertOp::ZeroExtend => integral(a) && b.is_integer() && bits(a) < bits(b),
        ConvertOp::Truncate => a.is_integer() && integral(b) && bits(a) > bits(b),
        ConvertOp::SignedToFloat | ConvertOp::UnsignedToFloat => a.is_integer() && b.is_float(),
        ConvertOp::FloatToSigned | ConvertOp::FloatToUnsigned => a.is_float() && b.is_integer(),
        ConvertOp::FloatExtend => is_wider((b, a)),
        ConvertOp::FloatTruncate => is_wider((a, b)),
        ConvertOp::Bitcast => unreachable!("returned above"),
    };
    fits && from.lanes == to.lanes
}
