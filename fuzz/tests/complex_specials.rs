//! Every complex function at infinities, NaN, zeros of both signs, and the limits of the range:
//! code and evaluator agree on which results are NaN or infinite, and on the sign of zeros.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use compiler::{Executable, NoObserver, compile_module, host, in_process_options};
use fuzz_graphs::hlo_graph::COMPLEX;
use hlo::{ComputationBuilder, Module, Op};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};

const BINARY: &[Op] =
    &[Op::Add {}, Op::Subtract {}, Op::Multiply {}, Op::Divide {}, Op::Power {}, Op::Atan2 {}];

/// Returns the parts of the operands.
fn parts(element_type: PrimitiveType, is_binary: bool) -> Vec<f64> {
    let largest = if element_type == PrimitiveType::C64 { f64::from(f32::MAX) } else { f64::MAX };
    let least = if element_type == PrimitiveType::C64 { f64::from(f32::from_bits(1)) } else { 5e-324 };
    let mut parts = vec![0.0, 1.0, f64::INFINITY];
    if !is_binary {
        parts.extend([0.75, 1.5, 2.5, 100.0, 1000.0, least, largest, largest / 2.0]);
    }
    let negative: Vec<f64> = parts.iter().map(|x| -x).collect();
    parts.extend(negative);
    parts.push(f64::NAN);
    parts
}

/// Evaluates an op with the evaluator, then with code for each processor.
fn answers(op: &Op, operands: &[Literal]) -> Vec<Literal> {
    let mut module = Module::new("special".to_owned());
    let mut builder = ComputationBuilder::new("main");
    let parameters: Vec<_> = operands
        .iter()
        .enumerate()
        .map(|(k, operand)| builder.parameter(&format!("p{k}"), operand.array_shape().clone().into()))
        .collect();
    let value = builder.op(&module, op.clone(), &parameters).unwrap();
    let root = builder.op(&module, Op::Tuple {}, &[value]).unwrap();
    let entry = module.add_computation(builder.finish(root));
    module.set_entry(entry);
    let evaluated = evaluator::evaluate(&module, operands).unwrap();
    let Literal::Tuple(evaluated) = evaluated else { panic!("a tuple") };
    let mut answers = evaluated;
    for cpu in ["", "x86-64-v3"] {
        let options = in_process_options(host(cpu).unwrap());
        let compiled = compile_module(module.clone(), &options, &mut NoObserver).unwrap();
        answers.extend(Executable::load(&compiled).unwrap().run(operands).unwrap());
    }
    answers
}

/// True if two numbers match: both NaN, infinities of the same sign, zeros of the same sign, or
/// numbers whose difference is negligible relative to the whole number.
fn agree(got: f64, want: f64, whole: f64, element_type: PrimitiveType) -> bool {
    if got.is_nan() || want.is_nan() {
        return got.is_nan() && want.is_nan();
    }
    let (precision, least, largest) = match element_type {
        PrimitiveType::C64 | PrimitiveType::F32 => (1e-6, f64::from(f32::MIN_POSITIVE), f64::from(f32::MAX)),
        _ => (1e-12, f64::MIN_POSITIVE, f64::MAX),
    };
    if got.is_infinite() || want.is_infinite() {
        let is_edge = |x: f64| x.is_infinite() || x.abs() >= largest * (1.0 - precision);
        return got.signum() == want.signum() && is_edge(got) && is_edge(want);
    }
    if got == 0.0 && want == 0.0 {
        return got.is_sign_negative() == want.is_sign_negative();
    }
    let whole = if whole.is_finite() { whole } else { want.abs() };
    (got - want).abs() <= precision * whole + least
}

fn check(op: &Op, operands: &[Literal]) -> Vec<String> {
    let answers = answers(op, operands);
    let element_type = answers[0].array_shape().element_type;
    let mut wrong = Vec::new();
    for answer in &answers[1..] {
        for (k, (got, want)) in answer.scalars().zip(answers[0].scalars()).enumerate() {
            let pairs = match (got, want) {
                (Scalar::Complex(a, b), Scalar::Complex(c, d)) => vec![(a, c), (b, d)],
                (Scalar::Float(a), Scalar::Float(c)) => vec![(a, c)],
                _ => panic!("numbers"),
            };
            let whole = pairs.iter().map(|pair| pair.1.abs()).fold(0.0, f64::max);
            if pairs.iter().any(|&(got, want)| !agree(got, want, whole, element_type)) {
                let values: Vec<Scalar> = operands.iter().map(|o| o.scalars().nth(k).unwrap()).collect();
                wrong.push(format!("{} of {values:?}: {got:?}, not {want:?}", op.opcode().name()));
            }
        }
    }
    wrong
}

fn literal(element_type: PrimitiveType, numbers: &[(f64, f64)]) -> Literal {
    let shape = ArrayShape::new(element_type, &[numbers.len() as i64]);
    Literal::from_scalars(shape, numbers.iter().map(|&(re, im)| Scalar::Complex(re, im)))
}

fn grid(parts: &[f64]) -> Vec<(f64, f64)> {
    parts.iter().flat_map(|&re| parts.iter().map(move |&im| (re, im))).collect()
}

#[test]
fn code_and_evaluator_agree_about_special_complex_numbers() {
    let mut wrong = Vec::new();
    for element_type in [PrimitiveType::C64, PrimitiveType::C128] {
        let numbers = grid(&parts(element_type, false));
        for op in COMPLEX {
            wrong.extend(check(op, &[literal(element_type, &numbers)]));
        }
        let few = grid(&parts(element_type, true));
        let pairs = || few.iter().flat_map(|&x| few.iter().map(move |&y| (x, y)));
        let (x, y): (Vec<_>, Vec<_>) = pairs().unzip();
        for op in BINARY {
            wrong.extend(check(op, &[literal(element_type, &x), literal(element_type, &y)]));
        }
    }
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n"));
}
