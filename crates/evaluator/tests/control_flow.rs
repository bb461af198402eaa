//! Control flow, instructions without effect, and limits.

use crate::support::*;
use ::support::ErrorKind;
use evaluator::{Evaluator, Limits};
use hlo::*;
use shape::PrimitiveType::*;
use shape::{Literal, Shape};

const INT: fn() -> Shape = || Shape::scalar(S32);

fn constant(c: &mut Computation, value: i32) -> InstructionId {
    add(c, Op::Constant { literal: Literal::scalar(value) }, INT(), &[])
}

/// Builds `while (i < limit) (i, sum) = (i + 1, sum + i)`, starting from the parameters.
fn loop_module(limit: i32) -> Module {
    let mut module = Module::new("test");
    let state = Shape::Tuple(vec![INT(), INT()]);
    let mut condition = Computation::new("condition");
    let p = parameter(&mut condition, state.clone());
    let i = add(&mut condition, Op::GetTupleElement { index: 0 }, INT(), &[p]);
    let end = constant(&mut condition, limit);
    let less = Op::Compare { direction: ComparisonDirection::Lt, comparison_type: ComparisonType::Default };
    let root = add(&mut condition, less, Shape::scalar(Pred), &[i, end]);
    condition.set_root(root);
    let mut body = Computation::new("body");
    let p = parameter(&mut body, state.clone());
    let i = add(&mut body, Op::GetTupleElement { index: 0 }, INT(), &[p]);
    let sum = add(&mut body, Op::GetTupleElement { index: 1 }, INT(), &[p]);
    let one = constant(&mut body, 1);
    let next = add(&mut body, Op::Add {}, INT(), &[i, one]);
    let sum = add(&mut body, Op::Add {}, INT(), &[sum, i]);
    let root = add(&mut body, Op::Tuple {}, state.clone(), &[next, sum]);
    body.set_root(root);
    let (condition, body) = (module.add_computation(condition), module.add_computation(body));
    let mut main = Computation::new("main");
    let (i, sum) = (parameter(&mut main, INT()), parameter(&mut main, INT()));
    let init = add(&mut main, Op::Tuple {}, state.clone(), &[i, sum]);
    let root = add(&mut main, Op::While { condition, body }, state, &[init]);
    main.set_root(root);
    let main = module.add_computation(main);
    module.set_entry(main);
    module
}

#[test]
fn loops_run_until_their_condition_fails() {
    let arguments = [Literal::scalar(3i32), Literal::scalar(100i32)];
    let result = evaluator::evaluate(&loop_module(6), &arguments).unwrap();
    assert_eq!(result, Literal::Tuple(vec![Literal::scalar(6i32), Literal::scalar(112i32)]));
}

#[test]
fn endless_loops_and_huge_values_are_errors() {
    let module = loop_module(i32::MAX);
    let limits = Limits { max_steps: 10_000, ..Limits::default() };
    let arguments = [Literal::scalar(0i32), Literal::scalar(0i32)];
    let error = Evaluator::with_limits(&module, limits).evaluate(&arguments).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("more than 10000 steps"), "{error}");
    let huge = Shape::array(F64, &[1 << 40, 1 << 40]);
    let op = Op::Broadcast { dimensions: vec![] };
    let error = evaluator::evaluate_instruction(&module, &op, &huge, &[&Literal::scalar(0f64)]).unwrap_err();
    assert!(error.message().contains("bytes at once"), "{error}");
}

#[test]
fn a_computation_that_calls_itself_is_an_error() {
    let mut module = Module::new("test");
    let mut c = Computation::new("first");
    let p = parameter(&mut c, INT());
    c.set_root(p);
    let id = module.add_computation(c);
    let c = module.computation_mut(id);
    let root = add(c, Op::Call { to_apply: id }, INT(), &[p]);
    c.set_root(root);
    module.set_entry(id);
    let error = evaluator::evaluate(&module, &[Literal::scalar(0i32)]).unwrap_err();
    assert!(error.message().contains("nested more than 64 calls deep"), "{error}");
}

#[test]
fn conditionals_take_the_last_branch_for_indices_outside() {
    let mut module = Module::new("test");
    let branches: Vec<ComputationId> = (1..=3)
        .map(|factor| {
            let mut c = Computation::new("branch");
            let p = parameter(&mut c, INT());
            let factor = constant(&mut c, factor);
            let root = add(&mut c, Op::Multiply {}, INT(), &[p, factor]);
            c.set_root(root);
            module.add_computation(c)
        })
        .collect();
    let ten = Literal::scalar(10i32);
    let op = Op::Conditional { branch_computations: branches.clone() };
    let indexed = |index: i32| {
        let operands = [&Literal::scalar(index), &ten, &ten, &ten];
        evaluator::evaluate_instruction(&module, &op, &INT(), &operands).unwrap()
    };
    assert_eq!([0, 1, 2, 7, -1].map(indexed), [10, 20, 30, 30, 30].map(Literal::scalar::<i32>));
    let op = Op::Conditional { branch_computations: branches[..2].to_vec() };
    let chosen = |choice: bool| {
        evaluator::evaluate_instruction(&module, &op, &INT(), &[&Literal::scalar(choice), &ten, &ten])
            .unwrap()
    };
    assert_eq!([true, false].map(chosen), [10, 20].map(Literal::scalar::<i32>));
}

#[test]
fn foreign_code_is_unsupported_by_name() {
    let mut module = Module::new("test");
    let mut main = Computation::new("main");
    let op = Op::CustomCall {
        custom_call_target: "mine".into(),
        backend_config: String::new(),
        custom_call_has_side_effect: false,
        attributes: hlo::RawAttributes::default(),
    };
    let root = main.add("my_call", op, INT(), &[], OpMetadata::default());
    main.set_root(root);
    let main = module.add_computation(main);
    module.set_entry(main);
    let error = evaluator::evaluate(&module, &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert_eq!(
        error.message(),
        "my_call (custom-call): the evaluator has no implementation of the custom call \"mine\""
    );
}

#[test]
fn arguments_must_fit_the_parameters() {
    let error =
        evaluator::evaluate(&loop_module(1), &[Literal::scalar(0i32), Literal::scalar(0f32)]).unwrap_err();
    assert_eq!(error.message(), "expected argument 1 of main to be s32[], got f32[]");
}

#[test]
fn dynamic_sizes_pass_through_elementwise_instructions_only() {
    let mut bounded = shape::ArrayShape::new(F32, &[4]);
    bounded.dimensions[0].is_dynamic = true;
    let bounded = Shape::Array(bounded);
    let mut module = Module::new("test");
    let mut main = Computation::new("main");
    let x = parameter(&mut main, Shape::array(F32, &[4]));
    let size = parameter(&mut main, INT());
    let resized = add(&mut main, Op::SetDimensionSize { dimension: 0 }, bounded.clone(), &[x, size]);
    let negated = add(&mut main, Op::Negate {}, bounded.clone(), &[resized]);
    let root = add(&mut main, Op::GetDimensionSize { dimension: 0 }, INT(), &[negated]);
    main.set_root(root);
    let id = module.add_computation(main);
    module.set_entry(id);
    let arguments = |size: i32| [f32s(&[4], &[1.0, 2.0, 3.0, 4.0]), Literal::scalar(size)];
    assert_eq!(evaluator::evaluate(&module, &arguments(3)).unwrap(), Literal::scalar(3i32));
    assert_eq!(evaluator::evaluate(&module, &arguments(4)).unwrap(), Literal::scalar(4i32));
    assert!(evaluator::evaluate(&module, &arguments(5)).is_err());
    let main = module.computation_mut(id);
    let reversed = add(main, Op::Reverse { dimensions: vec![0] }, bounded, &[negated]);
    main.set_root(reversed);
    let error = evaluator::evaluate(&module, &arguments(3)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}
