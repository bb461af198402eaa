//! Helpers shared by all test binaries: run one instruction, and build computations on scalars.

#![allow(dead_code, reason = "each test binary uses a part")]

use hlo::{Computation, ComputationId, InstructionId, Module, Op, OpMetadata};
use shape::{Literal, PrimitiveType, Shape};

/// Adds an instruction with a given shape.
pub fn add(c: &mut Computation, op: Op, shape: Shape, operands: &[InstructionId]) -> InstructionId {
    c.add("", op, shape, operands, OpMetadata::default())
}

/// Adds the next parameter.
pub fn parameter(c: &mut Computation, shape: Shape) -> InstructionId {
    let number = c.parameters().len();
    add(c, Op::Parameter { number }, shape, &[])
}

/// Adds the computation `op(p0, p1)` of scalars to the module.
pub fn binary(
    module: &mut Module,
    op: Op,
    element_type: PrimitiveType,
    result: PrimitiveType,
) -> ComputationId {
    let mut c = Computation::new("binary");
    let x = parameter(&mut c, Shape::scalar(element_type));
    let y = parameter(&mut c, Shape::scalar(element_type));
    let root = add(&mut c, op, Shape::scalar(result), &[x, y]);
    c.set_root(root);
    module.add_computation(c)
}

/// Evaluates one instruction that does not call a computation.
pub fn run(op: Op, shape: Shape, operands: &[&Literal]) -> Literal {
    evaluator::evaluate_instruction(&Module::new("test"), &op, &shape, operands).expect("a valid instruction")
}

/// Evaluates one instruction that returns an array.
pub fn run_array(op: Op, element_type: PrimitiveType, sizes: &[i64], operands: &[&Literal]) -> Literal {
    run(op, Shape::array(element_type, sizes), operands)
}

/// Creates an `f32` array.
pub fn f32s(sizes: &[i64], values: &[f32]) -> Literal {
    Literal::from_elements(sizes, values)
}

/// `values[i] = i * step % modulus - offset`: small integers without a pattern along any dimension.
pub fn pattern(sizes: &[i64], step: i64, modulus: i64, offset: i64) -> Literal {
    let count: i64 = sizes.iter().product();
    let values: Vec<f32> = (0..count).map(|i| (i * step % modulus - offset) as f32).collect();
    f32s(sizes, &values)
}

/// Asserts that real parts and imaginary parts agree to a relative error of 1e-13.
pub fn assert_close(literal: &Literal, expected: &[f64]) {
    let mut parts = Vec::new();
    for scalar in literal.scalars() {
        match scalar {
            shape::Scalar::Complex(re, im) => parts.extend([re, im]),
            other => parts.push(other.as_f64().expect("a real number")),
        }
    }
    assert_eq!(parts.len(), expected.len());
    for (i, (got, want)) in parts.iter().zip(expected).enumerate() {
        assert!((got - want).abs() <= 1e-13 * want.abs().max(1.0), "element {i}: {got} is not {want}");
    }
}
