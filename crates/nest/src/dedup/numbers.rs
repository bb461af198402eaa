//! Sharing of functions that differ only in numbers: the numbers become an argument.
//!
//! Layers of one shape often differ in nothing but the numbers that scale, shift, and limit their
//! results. One function then serves all of them. Its first parameter is the address of the
//! numbers, which it reads once, before everything else.
//!
//! Extents, indices, and numbers on which the choice of instructions depends stay in the code.

use std::collections::{BTreeMap, BTreeSet};

use super::{fingerprint, same_code};
use crate::language::*;
use support::{Id, IdVec};

/// Fewest statements of functions that are shared. Smaller ones are about as large as a call.
const MIN_STATEMENTS: usize = 64;

/// Size and alignment in bytes of a number in memory.
const SLOT: usize = 8;

/// Replaces functions that differ only in numbers by the first of them.
pub(super) fn share(program: &mut Program) {
    let mut shared: BTreeMap<FunctionId, Shared> = BTreeMap::new();
    for Group { members, .. } in groups(program).into_iter().filter(|group| group.members.len() > 1) {
        let first = members[0].0;
        let numbers: Vec<&[Number]> = members.iter().map(|(_, numbers)| &numbers[..]).collect();
        let slots = Slots::of(&numbers);
        for (id, numbers) in &members {
            shared.insert(*id, Shared { first, numbers: slots.bytes(numbers) });
        }
        slots.read(&mut program.functions[first]);
    }
    if shared.is_empty() {
        return;
    }
    program.functions.values_mut().for_each(|function| pass_numbers(function, &shared));
    remove(program, |id| shared.get(&id).is_some_and(|shared| shared.first != id));
}

/// The function that takes the place of another one, or of itself.
struct Shared {
    first: FunctionId,
    /// The numbers that it reads.
    numbers: Vec<u8>,
}

/// Functions that differ only in numbers.
struct Group {
    /// Any of them with zeros in place of the numbers.
    skeleton: Function,
    /// The values of the numbers.
    values: Vec<ValueId>,
    members: Vec<(FunctionId, Vec<Number>)>,
}

/// A number that may be an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Number {
    scalar: ScalarType,
    bits: u64,
}

fn groups(program: &Program) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut by_fingerprint: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (id, function) in program.functions.iter() {
        if function.linkage != Linkage::Internal || function.statement_count() < MIN_STATEMENTS {
            continue;
        }
        let (mut skeleton, mut values, mut numbers) = (function.clone(), Vec::new(), Vec::new());
        visit(&mut skeleton, &mut |id, scalar, constant| {
            values.push(id);
            numbers.push(Number { scalar, bits: bits(*constant) });
            *constant = Constant::Integer(0);
            true
        });
        let alike = by_fingerprint.entry(fingerprint(&skeleton)).or_default();
        let is_alike = |group: &Group| group.values == values && same_code(&group.skeleton, &skeleton);
        match alike.iter().find(|&&group| is_alike(&groups[group])) {
            Some(&group) => groups[group].members.push((id, numbers)),
            None => {
                alike.push(groups.len());
                groups.push(Group { skeleton, values, members: vec![(id, numbers)] });
            }
        }
    }
    groups
}

fn bits(constant: Constant) -> u64 {
    match constant {
        Constant::Integer(number) => number as u64,
        Constant::FloatBits(bits) => bits,
    }
}

/// Visits the numbers of a function that may be arguments, in order: their values, the types of
/// their lanes, and themselves. Removes the definitions for which `visit` returns false. Unused
/// numbers become 0.
fn visit(function: &mut Function, visit: &mut impl FnMut(ValueId, ScalarType, &mut Constant) -> bool) {
    let Uses { all, factors, steering } = Uses::of(function);
    let values = &function.values;
    retain(&mut function.body, &mut |statement| match statement {
        Statement::Let(id, Expression::Constant(constant)) if !all.contains(id) => {
            *constant = match constant {
                Constant::Integer(_) => Constant::Integer(0),
                Constant::FloatBits(_) => Constant::FloatBits(0),
            };
            true
        }
        Statement::Let(id, Expression::Constant(constant)) => {
            let is_shift = factors.contains(id)
                && matches!(constant, Constant::Integer(number) if number.unsigned_abs().is_power_of_two());
            let is_argument = is_plain(values[*id].scalar, *constant) && !steering.contains(id) && !is_shift;
            !is_argument || visit(*id, values[*id].scalar, constant)
        }
        _ => true,
    });
}

/// Removes the statements for which `keep` returns false.
fn retain(block: &mut Block, keep: &mut impl FnMut(&mut Statement) -> bool) {
    block.statements.retain_mut(|statement| {
        let is_kept = keep(statement);
        statement.blocks_mut().for_each(|inner| retain(inner, keep));
        is_kept
    });
}

/// The values that a function uses.
#[derive(Default)]
struct Uses {
    all: BTreeSet<ValueId>,
    /// Factors of integers: a power of two becomes a shift.
    factors: BTreeSet<ValueId>,
    /// Those with which more is done than arithmetic that takes the same instructions for every
    /// other number.
    steering: BTreeSet<ValueId>,
}

impl Uses {
    fn of(function: &Function) -> Self {
        let mut uses = Self::default();
        for statement in function.body.walk() {
            let operands = statement.operands();
            uses.all.extend(&operands);
            let Statement::Let(id, expression) = statement else { continue };
            let is_float = function.values[*id].scalar.is_float();
            match expression {
                Expression::Binary(BinaryOp::Multiply, ..) if !is_float => uses.factors.extend(operands),
                Expression::Binary(
                    BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Multiply | BinaryOp::MultiplyFixed,
                    ..,
                )
                | Expression::MultiplyAdd(..)
                | Expression::Compare(..)
                | Expression::Select(..)
                | Expression::Convert(ConvertOp::Bitcast, _) => {}
                Expression::Splat(_) if is_float => {}
                _ => uses.steering.extend(operands),
            }
        }
        let mut indices = BTreeSet::new();
        add_indices(function, &mut indices);
        uses.steering.extend(indices);
        uses
    }
}

/// Adds the values on which extents and addresses depend to `found`, and with `found` those on
/// which its values depend.
fn add_indices(function: &Function, found: &mut BTreeSet<ValueId>) {
    loop {
        let before = found.len();
        for statement in function.body.walk() {
            match statement {
                Statement::Let(id, expression) if found.contains(id) => found.extend(expression.operands()),
                Statement::Let(_, Expression::Offset { index, .. }) => found.extend([*index]),
                Statement::Let(..) | Statement::Store { .. } => {}
                Statement::For { begin, end, carried, body, .. } => {
                    found.extend([*begin, *end]);
                    add_carried(carried, &body.yields, found);
                }
                Statement::While { carried, body, .. } => add_carried(carried, &body.yields, found),
                Statement::If { results, then, otherwise, .. } => {
                    for ((result, a), b) in results.iter().zip(&then.yields).zip(&otherwise.yields) {
                        if found.contains(result) {
                            found.extend([*a, *b]);
                        }
                    }
                }
                other => found.extend(other.operands()),
            }
        }
        if found.len() == before {
            return;
        }
    }
}

/// Adds the sources of the carried values that were found.
fn add_carried(carried: &[Carried], yields: &[ValueId], found: &mut BTreeSet<ValueId>) {
    for (value, last) in carried.iter().zip(yields) {
        if found.contains(&value.inner) || found.contains(&value.result) {
            found.extend([value.initial, *last]);
        }
    }
}

/// True for a number that simplifies no arithmetic: neither 0 nor the limit of a type.
fn is_plain(scalar: ScalarType, constant: Constant) -> bool {
    match (scalar, constant) {
        (ScalarType::Bool | ScalarType::Ptr, _) => false,
        (ScalarType::F32, Constant::FloatBits(bits)) => is_plain_float(f32::from_bits(bits as u32).into()),
        (_, Constant::FloatBits(bits)) => is_plain_float(f64::from_bits(bits)),
        (_, Constant::Integer(number)) => {
            let ends = [8, 16, 32].map(|bits| 1i64 << (bits - 1));
            let is_limit = |end: i64| number == -end || number == end - 1 || number == 2 * end - 1;
            number != 0 && !ends.into_iter().any(is_limit)
        }
    }
}

fn is_plain_float(number: f64) -> bool {
    number.is_finite() && number != 0.0
}

/// The places in memory of the numbers of a group.
struct Slots {
    /// For each number of a function its place; `None` if all functions have the same number.
    places: Vec<Option<usize>>,
    types: Vec<ScalarType>,
}

impl Slots {
    /// Numbers that are equal in each function share a place.
    fn of(members: &[&[Number]]) -> Self {
        let mut slots = Self { places: Vec::new(), types: Vec::new() };
        let mut known: BTreeMap<Vec<Number>, usize> = BTreeMap::new();
        for (k, &first) in members[0].iter().enumerate() {
            let numbers: Vec<Number> = members.iter().map(|numbers| numbers[k]).collect();
            let place = numbers.iter().any(|&number| number != first).then(|| {
                *known.entry(numbers).or_insert_with(|| {
                    slots.types.push(first.scalar);
                    slots.types.len() - 1
                })
            });
            slots.places.push(place);
        }
        slots
    }

    /// A function's numbers in memory.
    fn bytes(&self, numbers: &[Number]) -> Vec<u8> {
        let mut bytes = vec![0; self.types.len() * SLOT];
        for (place, number) in self.places.iter().zip(numbers) {
            if let Some(place) = place {
                bytes[place * SLOT..][..SLOT].copy_from_slice(&number.bits.to_le_bytes());
            }
        }
        bytes
    }

    /// Makes a function read its numbers.
    fn read(&self, function: &mut Function) {
        let (mut places, mut read) = (self.places.iter(), Vec::new());
        visit(function, &mut |id, _, _| {
            let place = places.next().copied().flatten();
            read.extend(place.map(|place| (id, place)));
            place.is_none()
        });
        let values = &mut function.values;
        let pointer = values.push(Type::PTR);
        let (mut statements, mut scalars) = (Vec::new(), Vec::new());
        for (place, &scalar) in self.types.iter().enumerate() {
            let at = at_distance(values, &mut statements, pointer, place * SLOT);
            let scalar = values.push(Type::scalar(scalar));
            let load = Expression::Load { pointer: at, alignment: SLOT as u32, mask: None };
            statements.push(Statement::Let(scalar, load));
            scalars.push(scalar);
        }
        for (id, place) in read {
            statements.push(Statement::Let(id, Expression::Splat(scalars[place])));
        }
        function.body.statements.splice(0..0, statements);
        let pointer_facts = PointerFacts { no_alias: true, read_only: true, alignment: SLOT as u32 };
        let parameter = Parameter { name: "numbers".to_owned(), value: pointer, pointer: pointer_facts };
        function.parameters.insert(0, parameter);
    }
}

/// Adds the address at a distance in bytes from another one.
fn at_distance(
    values: &mut IdVec<ValueId, Type>,
    statements: &mut Vec<Statement>,
    pointer: ValueId,
    bytes: usize,
) -> ValueId {
    let (index, at) = (values.push(Type::I64), values.push(Type::PTR));
    statements.push(Statement::Let(index, Expression::Constant(Constant::Integer(bytes as i64))));
    statements.push(Statement::Let(at, Expression::Offset { pointer, index, scale: 1 }));
    at
}

/// Makes the calls of a function pass the numbers that the shared functions read. All are in one
/// block of constant bytes.
fn pass_numbers(function: &mut Function, shared: &BTreeMap<FunctionId, Shared>) {
    if !function.callees().any(|callee| shared.contains_key(&callee)) {
        return;
    }
    let Function { body, values, .. } = function;
    let (base, mut bytes, mut statements) = (values.push(Type::PTR), Vec::new(), Vec::new());
    let mut known: BTreeMap<&[u8], ValueId> = BTreeMap::new();
    body.walk_mut(&mut |statement| {
        let Some(callee) = statement.callee_mut() else { return };
        let Some(Shared { first, numbers }) = shared.get(callee) else { return };
        *callee = *first;
        let at = *known.entry(numbers).or_insert_with(|| {
            let place = bytes.len();
            bytes.extend(numbers);
            at_distance(values, &mut statements, base, place)
        });
        if let Statement::Call { arguments, .. } | Statement::Parallel { arguments, .. } = statement {
            arguments.insert(0, at);
        }
    });
    statements.insert(0, Statement::Let(base, Expression::Bytes(bytes)));
    body.statements.splice(0..0, statements);
}

/// Removes functions that are not called.
fn remove(program: &mut Program, is_removed: impl Fn(FunctionId) -> bool) {
    let mut kept: IdVec<FunctionId, Function> = IdVec::new();
    let mut renumbered: BTreeMap<FunctionId, FunctionId> = BTreeMap::new();
    for (number, mut function) in std::mem::take(&mut program.functions).into_values().enumerate() {
        let id = FunctionId::from_index(number);
        if is_removed(id) {
            continue;
        }
        function.body.walk_mut(&mut |statement| {
            if let Some(callee) = statement.callee_mut() {
                *callee = renumbered.get(callee).copied().unwrap_or(*callee);
            }
        });
        renumbered.insert(id, kept.push(function));
    }
    program.functions = kept;
}

#[cfg(test)]
mod tests {
    use crate::{
        BinaryOp, ConvertOp, Expression, FunctionBuilder, FunctionId, Linkage, PointerFacts, Program,
        ScalarType, Statement, Type, dedup, verify,
    };

    /// The instructions that use a number of the functions.
    #[derive(Clone, Copy)]
    enum Use {
        Sum,
        Product,
        Shift,
        Address,
    }

    /// Functions that compute with one number each, and an entry that calls them.
    fn program(number_use: Use, numbers: &[i64]) -> Program {
        let mut program = Program::default();
        let facts = PointerFacts::default();
        let mut ids: Vec<FunctionId> = Vec::new();
        for (k, &number) in numbers.iter().enumerate() {
            let mut b = FunctionBuilder::new(format!("f{k}"), Linkage::Internal);
            let out = b.parameter("out", Type::PTR, facts);
            let ty = Type::vector(ScalarType::I32, 4);
            let mut value = b.load(ty, out, 4);
            for _ in 0..40 {
                value = match number_use {
                    Use::Address => b.add(value, value),
                    Use::Sum | Use::Product | Use::Shift => {
                        let op = match number_use {
                            Use::Product => BinaryOp::Multiply,
                            Use::Shift => BinaryOp::ShiftLeft,
                            Use::Sum | Use::Address => BinaryOp::Add,
                        };
                        let number = b.integer(ty, number);
                        b.binary(op, value, number)
                    }
                };
            }
            let pointer = match number_use {
                Use::Address => {
                    let bits = b.integer(Type::scalar(ScalarType::I32), number);
                    let index = b.convert(ConvertOp::SignExtend, bits, ScalarType::I64);
                    b.offset(out, index, 16)
                }
                Use::Sum | Use::Product | Use::Shift => out,
            };
            for _ in 0..40 {
                b.store(value, pointer, 4);
            }
            ids.push(program.functions.push(b.finish()));
        }
        let mut entry = FunctionBuilder::new("entry", Linkage::Entry);
        let out = entry.parameter("frame", Type::PTR, facts);
        ids.into_iter().for_each(|id| entry.call(id, vec![out]));
        program.functions.push(entry.finish());
        program
    }

    /// Number of functions besides the entry.
    fn remaining(number_use: Use, numbers: &[i64]) -> usize {
        let mut program = program(number_use, numbers);
        verify(&program).expect("a valid program");
        dedup(&mut program);
        verify(&program).expect("a valid program");
        program.functions.len() - 1
    }

    #[test]
    fn a_function_reads_the_numbers_in_which_it_differs() {
        let mut program = program(Use::Sum, &[5, 9, 5, -77]);
        dedup(&mut program);
        verify(&program).expect("a valid program");
        let functions: Vec<_> = program.functions.values().collect();
        let [f, entry] = functions[..] else { panic!("expected one function and the entry") };
        assert_eq!((f.name.as_str(), f.parameters.len()), ("f0", 2));
        let sums = f.body.walk().filter(|s| matches!(s, Statement::Let(_, Expression::Splat(_)))).count();
        assert_eq!(sums, 40, "each use has the number");
        let mut tables = entry.body.walk().filter_map(|statement| match statement {
            Statement::Let(_, Expression::Bytes(bytes)) => Some(bytes),
            _ => None,
        });
        let table: Vec<u8> = [5i64, 9, -77].into_iter().flat_map(i64::to_le_bytes).collect();
        assert_eq!((tables.next(), tables.next()), (Some(&table), None));
        let calls: Vec<usize> = entry
            .body
            .walk()
            .filter_map(|statement| match statement {
                Statement::Call { arguments, .. } => Some(arguments.len()),
                _ => None,
            })
            .collect();
        assert_eq!(calls, [2, 2, 2, 2]);
    }

    #[test]
    fn numbers_that_select_instructions_stay() {
        let table = [
            (Use::Sum, vec![5, 9], 1),
            // Limits of types, and 0, simplify the arithmetic.
            (Use::Sum, vec![5, 127], 2),
            (Use::Sum, vec![0, 9], 2),
            (Use::Product, vec![5, 9], 1),
            (Use::Product, vec![8, 9], 2),
            (Use::Shift, vec![5, 9], 2),
            (Use::Address, vec![5, 9], 2),
        ];
        for (number_use, numbers, expected) in table {
            assert_eq!(remaining(number_use, &numbers), expected, "{numbers:?}");
        }
    }
}
