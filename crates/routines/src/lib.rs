//! Functions for operations that a processor has no instruction for: arithmetic of floats, and of
//! integers of 64 bits. Code generators call them by fixed names, those of ARM's ABI or of GNU's
//! compilers. An object contains those that it needs, so that it needs no library.
//!
//! A routine is a function of the loop-nest language whose body yields its result. Floats are
//! passed as their bits, except to functions of the C library.

mod bits;
mod convert;
mod float;
mod integer;

use bits::{Bits, DOUBLE, Format, HALF, LONG, SINGLE, WORD};
use nest::{
    BinaryOp, Function, FunctionBuilder, Linkage, PointerFacts, Predicate, ScalarType, Type, ValueId,
};
use support::Result;

/// Operation of a routine.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Sum(Format),
    Difference(Format),
    Product(Format),
    Quotient(Format),
    SquareRoot(Format),
    /// 1 if a comparison holds.
    Holds(Format, Predicate),
    Unordered(Format),
    /// -1, 0, or 1 by order, or the given number for NaN.
    ThreeWay(Format, i64),
    Widen(Format, Format),
    Narrow(Format, Format),
    FromInteger {
        is_signed: bool,
        is_long: bool,
        to: Format,
    },
    ToInteger {
        from: Format,
        is_signed: bool,
        is_long: bool,
    },
    LongProduct,
    LongShift(BinaryOp),
    ShortProduct,
    Divide {
        is_signed: bool,
        is_long: bool,
        part: Part,
    },
    LeadingZeros {
        is_long: bool,
    },
}

/// Results of a division.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Quotient,
    Remainder,
    Both,
}

/// Returns what a symbol stands for.
fn operation(symbol: &str) -> Option<Operation> {
    use Operation::*;
    let from_integer = |is_signed, is_long, to| FromInteger { is_signed, is_long, to };
    let to_integer = |from, is_signed, is_long| ToInteger { from, is_signed, is_long };
    let divide = |is_signed, is_long, part| Divide { is_signed, is_long, part };
    Some(match symbol {
        "__aeabi_fadd" | "__addsf3" => Sum(SINGLE),
        "__aeabi_dadd" | "__adddf3" => Sum(DOUBLE),
        "__aeabi_fsub" | "__subsf3" => Difference(SINGLE),
        "__aeabi_dsub" | "__subdf3" => Difference(DOUBLE),
        "__aeabi_fmul" | "__mulsf3" => Product(SINGLE),
        "__aeabi_dmul" | "__muldf3" => Product(DOUBLE),
        "__aeabi_fdiv" | "__divsf3" => Quotient(SINGLE),
        "__aeabi_ddiv" | "__divdf3" => Quotient(DOUBLE),
        "sqrtf" => SquareRoot(SINGLE),
        "sqrt" => SquareRoot(DOUBLE),
        "__aeabi_fcmpeq" => Holds(SINGLE, Predicate::Equal),
        "__aeabi_fcmplt" => Holds(SINGLE, Predicate::Less),
        "__aeabi_fcmple" => Holds(SINGLE, Predicate::LessEqual),
        "__aeabi_fcmpgt" => Holds(SINGLE, Predicate::Greater),
        "__aeabi_fcmpge" => Holds(SINGLE, Predicate::GreaterEqual),
        "__aeabi_dcmpeq" => Holds(DOUBLE, Predicate::Equal),
        "__aeabi_dcmplt" => Holds(DOUBLE, Predicate::Less),
        "__aeabi_dcmple" => Holds(DOUBLE, Predicate::LessEqual),
        "__aeabi_dcmpgt" => Holds(DOUBLE, Predicate::Greater),
        "__aeabi_dcmpge" => Holds(DOUBLE, Predicate::GreaterEqual),
        "__aeabi_fcmpun" | "__unordsf2" => Unordered(SINGLE),
        "__aeabi_dcmpun" | "__unorddf2" => Unordered(DOUBLE),
        "__eqsf2" | "__nesf2" | "__ltsf2" | "__lesf2" => ThreeWay(SINGLE, 1),
        "__gesf2" | "__gtsf2" => ThreeWay(SINGLE, -1),
        "__eqdf2" | "__nedf2" | "__ltdf2" | "__ledf2" => ThreeWay(DOUBLE, 1),
        "__gedf2" | "__gtdf2" => ThreeWay(DOUBLE, -1),
        "__aeabi_f2d" | "__extendsfdf2" => Widen(SINGLE, DOUBLE),
        "__aeabi_h2f" | "__gnu_h2f_ieee" | "__extendhfsf2" => Widen(HALF, SINGLE),
        "__aeabi_d2f" | "__truncdfsf2" => Narrow(DOUBLE, SINGLE),
        "__aeabi_f2h" | "__gnu_f2h_ieee" | "__truncsfhf2" => Narrow(SINGLE, HALF),
        "__aeabi_d2h" | "__truncdfhf2" => Narrow(DOUBLE, HALF),
        "__aeabi_i2f" | "__floatsisf" => from_integer(true, false, SINGLE),
        "__aeabi_ui2f" | "__floatunsisf" => from_integer(false, false, SINGLE),
        "__aeabi_l2f" | "__floatdisf" => from_integer(true, true, SINGLE),
        "__aeabi_ul2f" | "__floatundisf" => from_integer(false, true, SINGLE),
        "__aeabi_i2d" | "__floatsidf" => from_integer(true, false, DOUBLE),
        "__aeabi_ui2d" | "__floatunsidf" => from_integer(false, false, DOUBLE),
        "__aeabi_l2d" | "__floatdidf" => from_integer(true, true, DOUBLE),
        "__aeabi_ul2d" | "__floatundidf" => from_integer(false, true, DOUBLE),
        "__aeabi_f2iz" | "__fixsfsi" => to_integer(SINGLE, true, false),
        "__aeabi_f2uiz" | "__fixunssfsi" => to_integer(SINGLE, false, false),
        "__aeabi_f2lz" | "__fixsfdi" => to_integer(SINGLE, true, true),
        "__aeabi_f2ulz" | "__fixunssfdi" => to_integer(SINGLE, false, true),
        "__aeabi_d2iz" | "__fixdfsi" => to_integer(DOUBLE, true, false),
        "__aeabi_d2uiz" | "__fixunsdfsi" => to_integer(DOUBLE, false, false),
        "__aeabi_d2lz" | "__fixdfdi" => to_integer(DOUBLE, true, true),
        "__aeabi_d2ulz" | "__fixunsdfdi" => to_integer(DOUBLE, false, true),
        "__mulsi3" => ShortProduct,
        "__aeabi_lmul" | "__muldi3" => LongProduct,
        "__aeabi_llsl" | "__ashldi3" => LongShift(BinaryOp::ShiftLeft),
        "__aeabi_llsr" | "__lshrdi3" => LongShift(BinaryOp::ShiftRightLogical),
        "__aeabi_lasr" | "__ashrdi3" => LongShift(BinaryOp::ShiftRightArithmetic),
        "__aeabi_idiv" | "__divsi3" => divide(true, false, Part::Quotient),
        "__aeabi_uidiv" | "__udivsi3" => divide(false, false, Part::Quotient),
        "__modsi3" => divide(true, false, Part::Remainder),
        "__umodsi3" => divide(false, false, Part::Remainder),
        "__divdi3" => divide(true, true, Part::Quotient),
        "__udivdi3" => divide(false, true, Part::Quotient),
        "__moddi3" => divide(true, true, Part::Remainder),
        "__umoddi3" => divide(false, true, Part::Remainder),
        "__aeabi_idivmod" => divide(true, false, Part::Both),
        "__aeabi_uidivmod" => divide(false, false, Part::Both),
        "__aeabi_ldivmod" => divide(true, true, Part::Both),
        "__aeabi_uldivmod" => divide(false, true, Part::Both),
        "__clzsi2" => LeadingZeros { is_long: false },
        "__clzdi2" => LeadingZeros { is_long: true },
        _ => return None,
    })
}

/// True if `symbol` is one that [`routine`] defines.
pub fn is_routine(symbol: &str) -> bool {
    operation(symbol).is_some()
}

/// Place of a routine in the order of calls: it calls none of the same or of a higher place.
pub fn level(symbol: &str) -> u32 {
    match operation(symbol) {
        Some(Operation::ShortProduct | Operation::LeadingZeros { .. }) => 0,
        Some(Operation::LongProduct | Operation::LongShift(_)) => 1,
        Some(Operation::Divide { .. }) => 2,
        _ => 3,
    }
}

/// Returns the routine with a name that code generators use, or nothing for other names.
pub fn routine(symbol: &str) -> Option<Result<Function>> {
    operation(symbol).map(|operation| build(symbol, operation))
}

fn build(symbol: &str, operation: Operation) -> Result<Function> {
    use Operation::*;
    let mut builder = FunctionBuilder::new(symbol, Linkage::Routine);
    let b = &mut builder;
    let parameters = |b: &mut FunctionBuilder, types: [Type; 2]| {
        types.map(|ty| b.parameter("", ty, PointerFacts::default()))
    };
    let one = |b: &mut FunctionBuilder, ty| b.parameter("", ty, PointerFacts::default());
    let results: Vec<ValueId> = match operation {
        Sum(f) | Difference(f) => {
            let operands = parameters(b, [f.ty; 2]);
            vec![float::sum(b, f, matches!(operation, Difference(_)), operands)?]
        }
        Product(f) => {
            let factors = parameters(b, [f.ty; 2]);
            vec![float::product(b, f, factors)?]
        }
        Quotient(f) => {
            let operands = parameters(b, [f.ty; 2]);
            vec![float::quotient(b, f, operands)?]
        }
        SquareRoot(f) => {
            // The calling convention may have registers for floats.
            let float = Type::scalar(if f == DOUBLE { ScalarType::F64 } else { ScalarType::F32 });
            let x = one(b, float);
            let x = b.bitcast(x, f.ty);
            let root = float::square_root(b, f, x)?;
            vec![b.bitcast(root, float)]
        }
        Holds(f, predicate) => {
            let operands = parameters(b, [f.ty; 2]);
            vec![float::holds(b, f, predicate, operands)]
        }
        Unordered(f) => {
            let operands = parameters(b, [f.ty; 2]);
            vec![float::unordered(b, f, operands)]
        }
        ThreeWay(f, of_nan) => {
            let operands = parameters(b, [f.ty; 2]);
            vec![float::three_way(b, f, of_nan, operands)]
        }
        Widen(from, to) => {
            let x = one(b, from.ty);
            vec![convert::widen(b, from, to, x)?]
        }
        Narrow(from, to) => {
            let x = one(b, from.ty);
            vec![convert::narrow(b, from, to, x)?]
        }
        FromInteger { is_signed, is_long, to } => {
            let x = one(b, words(is_long));
            vec![convert::from_integer(b, is_signed, to, x)?]
        }
        ToInteger { from, is_signed, is_long } => {
            let x = one(b, from.ty);
            vec![convert::to_integer(b, is_signed, from, words(is_long), x)?]
        }
        ShortProduct => {
            let factors = parameters(b, [WORD; 2]);
            vec![integer::short_product(b, factors)?]
        }
        LongProduct => {
            let factors = parameters(b, [LONG; 2]);
            vec![integer::long_product(b, factors)]
        }
        LongShift(op) => {
            let [x, bits] = parameters(b, [LONG, WORD]);
            vec![integer::long_shift(b, op, x, bits)?]
        }
        Divide { is_signed, is_long, part } => {
            let operands = parameters(b, [words(is_long); 2]);
            let [quotient, remainder] = integer::divide(b, is_signed, operands)?;
            match part {
                Part::Quotient => vec![quotient],
                Part::Remainder => vec![remainder],
                // The two registers of a long.
                Part::Both if !is_long => vec![b.join(quotient, remainder)],
                Part::Both => vec![quotient, remainder],
            }
        }
        LeadingZeros { is_long } => {
            let x = one(b, words(is_long));
            vec![integer::leading_zeros(b, x)]
        }
    };
    Ok(builder.finish_yielding(results))
}

/// The type of integers.
const fn words(is_long: bool) -> Type {
    if is_long { LONG } else { WORD }
}
