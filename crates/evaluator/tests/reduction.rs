//! Reductions, windows, and sorts compared with XLA on the CPU.

use crate::support::*;
use hlo::*;
use shape::PrimitiveType::*;
use shape::{Literal, Shape};

#[test]
fn reduce_applies_the_computation_from_left_to_right() {
    // (((100 * 2 + 1) * 2 + 2) * 2 + 3) along each row.
    let mut module = Module::new("test");
    let mut c = Computation::new("horner");
    let (x, y) = (parameter(&mut c, Shape::scalar(S32)), parameter(&mut c, Shape::scalar(S32)));
    let two = add(&mut c, Op::Constant { literal: Literal::scalar(2i32) }, Shape::scalar(S32), &[]);
    let doubled = add(&mut c, Op::Multiply {}, Shape::scalar(S32), &[x, two]);
    let root = add(&mut c, Op::Add {}, Shape::scalar(S32), &[doubled, y]);
    c.set_root(root);
    let to_apply = module.add_computation(c);
    let op = Op::Reduce { dimensions: vec![1], to_apply };
    let x = Literal::from_elements(&[2, 3], &[1i32, 2, 3, 4, 5, 6]);
    let shape = Shape::array(S32, &[2]);
    let reduced =
        evaluator::evaluate_instruction(&module, &op, &shape, &[&x, &Literal::scalar(100i32)]).unwrap();
    assert_eq!(reduced.to_vec::<i32>().unwrap(), [811, 832]);
}

#[test]
fn variadic_reduce_finds_the_greatest_and_where_it_is() {
    let mut module = Module::new("test");
    let mut c = Computation::new("argmax");
    let p: Vec<_> = [F32, S32, F32, S32].map(|t| parameter(&mut c, Shape::scalar(t))).to_vec();
    let op = Op::Compare { direction: ComparisonDirection::Ge, comparison_type: ComparisonType::Default };
    let keep = add(&mut c, op, Shape::scalar(Pred), &[p[0], p[2]]);
    let value = add(&mut c, Op::Select {}, Shape::scalar(F32), &[keep, p[0], p[2]]);
    let index = add(&mut c, Op::Select {}, Shape::scalar(S32), &[keep, p[1], p[3]]);
    let pair = Shape::Tuple(vec![Shape::scalar(F32), Shape::scalar(S32)]);
    let root = add(&mut c, Op::Tuple {}, pair, &[value, index]);
    c.set_root(root);
    let to_apply = module.add_computation(c);
    let op = Op::Reduce { dimensions: vec![0], to_apply };
    let x = f32s(&[3, 2], &[1.0, 9.0, 7.0, 9.0, 3.0, -1.0]);
    let at = Literal::from_elements(&[3, 2], &[0i32, 0, 1, 1, 2, 2]);
    let shape = Shape::Tuple(vec![Shape::array(F32, &[2]), Shape::array(S32, &[2])]);
    let operands = [&x, &at, &Literal::scalar(f32::NEG_INFINITY), &Literal::scalar(-1i32)];
    let result = evaluator::evaluate_instruction(&module, &op, &shape, &operands).unwrap();
    let expected = vec![f32s(&[2], &[7.0, 9.0]), Literal::from_elements(&[2], &[1i32, 0])];
    assert_eq!(result, Literal::Tuple(expected));
}

#[test]
fn reduce_window_pads_with_the_initial_value_and_dilates() {
    let mut module = Module::new("test");
    let (max, sum) =
        (binary(&mut module, Op::Maximum {}, F32, F32), binary(&mut module, Op::Add {}, F32, F32));
    let x = pattern(&[3, 5], 7, 11, 4);
    let run = |rows, columns, to_apply, init: f32| {
        let op = Op::ReduceWindow { window: Window { dimensions: vec![rows, columns] }, to_apply };
        let shape = Shape::array(F32, &[2, 5]);
        evaluator::evaluate_instruction(&module, &op, &shape, &[&x, &Literal::scalar(init)]).unwrap()
    };
    let rows = WindowDimension { padding_low: 1, window_dilation: 2, ..WindowDimension::of_size(2) };
    let columns =
        WindowDimension { stride: 2, padding_high: 1, base_dilation: 2, ..WindowDimension::of_size(2) };
    let maxima = run(rows, columns, max, f32::NEG_INFINITY);
    assert_eq!(maxima.to_vec::<f32>().unwrap(), [-2.0, 5.0, 1.0, -3.0, 4.0, 0.0, 3.0, 3.0, 6.0, 6.0]);
    let rows = WindowDimension { stride: 2, padding_high: 1, ..WindowDimension::of_size(2) };
    let columns = WindowDimension { padding_low: 1, padding_high: 1, ..WindowDimension::of_size(3) };
    let sums = run(rows, columns, sum, 0.0);
    assert_eq!(sums.to_vec::<f32>().unwrap(), [2.0, 2.0, 11.0, 9.0, 9.0, -4.0, -1.0, -2.0, 8.0, 5.0]);
}

#[test]
fn windows_far_larger_than_the_array_cost_no_more_than_the_array() {
    let mut module = Module::new("test");
    let max = binary(&mut module, Op::Maximum {}, F32, F32);
    let x = f32s(&[2, 3], &[3.0, 1.0, 4.0, 1.0, 5.0, 9.0]);
    // Every second element of the array, from the first or the second on: 2^40 elements of the
    // window miss the array.
    let rows = WindowDimension {
        padding_low: 1 << 41,
        padding_high: 1 << 41,
        stride: 1 << 41,
        ..WindowDimension::of_size((1 << 41) + 1)
    };
    let columns = WindowDimension {
        padding_low: 1 << 40,
        padding_high: (1 << 40) - 2,
        window_dilation: 2,
        ..WindowDimension::of_size(1 << 40)
    };
    let op = Op::ReduceWindow { window: Window { dimensions: vec![rows, columns] }, to_apply: max };
    let shape = Shape::array(F32, &[2, 2]);
    let init = Literal::scalar(f32::NEG_INFINITY);
    let maxima = evaluator::evaluate_instruction(&module, &op, &shape, &[&x, &init]).unwrap();
    assert_eq!(maxima.to_vec::<f32>().unwrap(), [4.0, 1.0, 9.0, 5.0]);
}

#[test]
fn windows_that_grow_are_evaluated_from_their_neighbors() {
    let mut module = Module::new("test");
    let sum = binary(&mut module, Op::Add {}, S32, S32);
    let difference = binary(&mut module, Op::Subtract {}, S32, S32);
    let x = Literal::from_elements(&[4, 2], &[1i32, 10, 2, 20, 3, 30, 4, 40]);
    let run = |rows: WindowDimension, counts, to_apply| {
        let op = Op::ReduceWindow {
            window: Window { dimensions: vec![rows, WindowDimension::of_size(1)] },
            to_apply,
        };
        let shape = Shape::array(S32, &[counts, 2]);
        let operands = [&x, &Literal::scalar(100i32)];
        evaluator::evaluate_instruction(&module, &op, &shape, &operands).unwrap().to_vec::<i32>().unwrap()
    };
    let padded = |padding_low, padding_high| WindowDimension {
        padding_low,
        padding_high,
        ..WindowDimension::of_size(4)
    };
    assert_eq!(run(padded(3, 0), 4, sum), [101, 110, 103, 130, 106, 160, 110, 200]);
    assert_eq!(run(padded(4, -1), 4, sum), [100, 100, 101, 110, 103, 130, 106, 160]);
    assert_eq!(run(padded(0, 3), 4, sum), [110, 200, 109, 190, 107, 170, 104, 140]);
    assert_eq!(run(padded(-1, 4), 4, sum), [109, 190, 107, 170, 104, 140, 100, 100]);
    assert_eq!(
        run(padded(5, 1), 7, sum),
        [100, 100, 100, 100, 101, 110, 103, 130, 106, 160, 110, 200, 109, 190]
    );
    assert_eq!(run(padded(3, 0), 4, difference), [99, 90, 97, 70, 94, 40, 90, 0]);
    assert_eq!(run(padded(0, 3), 4, difference), [90, 0, 91, 10, 93, 30, 96, 60]);
}

#[test]
fn a_million_windows_that_grow_cost_a_million_steps() {
    let mut module = Module::new("test");
    let sum = binary(&mut module, Op::Add {}, S32, S32);
    let n = 1 << 20;
    let x = Literal::from_elements(&[n], &vec![1i32; n as usize]);
    for (padding_low, padding_high, last) in [(n - 1, 0, n as i32), (0, n - 1, 1)] {
        let along = WindowDimension { padding_low, padding_high, ..WindowDimension::of_size(n) };
        let op = Op::ReduceWindow { window: Window { dimensions: vec![along] }, to_apply: sum };
        let operands = [&x, &Literal::scalar(0i32)];
        let sums =
            evaluator::evaluate_instruction(&module, &op, &Shape::array(S32, &[n]), &operands).unwrap();
        let sums = sums.to_vec::<i32>().unwrap();
        assert_eq!((sums[0] + sums[sums.len() - 1], sums[sums.len() - 1]), (n as i32 + 1, last));
    }
}

#[test]
fn select_and_scatter_prefers_the_first_of_equals() {
    let mut module = Module::new("test");
    let ge = Op::Compare { direction: ComparisonDirection::Ge, comparison_type: ComparisonType::Default };
    let select = binary(&mut module, ge, F32, Pred);
    let scatter = binary(&mut module, Op::Add {}, F32, F32);
    let pool = WindowDimension { stride: 2, ..WindowDimension::of_size(2) };
    let op = Op::SelectAndScatter { window: Window { dimensions: vec![pool, pool] }, select, scatter };
    let operand = f32s(&[4, 4], &[3., 1., 4., 1., 5., 9., 2., 6., 5., 3., 9., 9., 7., 9., 3., 2.]);
    let source = f32s(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let operands = [&operand, &source, &Literal::scalar(0.5f32)];
    let result =
        evaluator::evaluate_instruction(&module, &op, &Shape::array(F32, &[4, 4]), &operands).unwrap();
    assert_eq!(
        result.to_vec::<f32>().unwrap(),
        [0.5, 0.5, 0.5, 0.5, 0.5, 1.5, 0.5, 2.5, 0.5, 0.5, 4.5, 0.5, 0.5, 3.5, 0.5, 0.5]
    );
}

#[test]
fn sorts_are_stable_and_carry_the_other_operands_along() {
    let mut module = Module::new("test");
    let mut c = Computation::new("less");
    let p: Vec<_> = [F32, F32, S32, S32].map(|t| parameter(&mut c, Shape::scalar(t))).to_vec();
    let op = Op::Compare { direction: ComparisonDirection::Lt, comparison_type: ComparisonType::TotalOrder };
    let root = add(&mut c, op, Shape::scalar(Pred), &[p[0], p[1]]);
    c.set_root(root);
    let to_apply = module.add_computation(c);
    let op = Op::Sort { dimension: 0, is_stable: true, to_apply };
    let keys = f32s(&[6, 1], &[3.0, f32::NAN, -0.0, 0.0, -1.0, 3.0]);
    let values = Literal::from_elements(&[6, 1], &[0i32, 1, 2, 3, 4, 5]);
    let shape = Shape::Tuple(vec![Shape::array(F32, &[6, 1]), Shape::array(S32, &[6, 1])]);
    let result = evaluator::evaluate_instruction(&module, &op, &shape, &[&keys, &values]).unwrap();
    let Literal::Tuple(results) = result else { panic!("a tuple") };
    assert_eq!(results[1].to_vec::<i32>().unwrap(), [4, 2, 3, 0, 5, 1]);
    assert!(results[0].to_vec::<f32>().unwrap()[5].is_nan());
}

#[test]
fn a_comparison_of_bits_sees_those_of_every_nan() {
    let mut module = Module::new("test");
    let mut c = Computation::new("less");
    let p = [F32, F32].map(|t| parameter(&mut c, Shape::scalar(t)));
    let bits = p.map(|p| add(&mut c, Op::BitcastConvert {}, Shape::scalar(S32), &[p]));
    let op = Op::Compare { direction: ComparisonDirection::Lt, comparison_type: ComparisonType::Default };
    let root = add(&mut c, op, Shape::scalar(Pred), &bits);
    c.set_root(root);
    let to_apply = module.add_computation(c);
    let op = Op::Sort { dimension: 0, is_stable: true, to_apply };
    // A quiet NaN, the largest signaling one, the least one, infinity, -0, 1.
    let keys = [0x7fc0_0000, 0x7fbf_ffff, 0x7f80_0001, 0x7f80_0000, 0x8000_0000, 0x3f80_0000_u32];
    let literal = f32s(&[6], &keys.map(f32::from_bits));
    let result =
        evaluator::evaluate_instruction(&module, &op, &Shape::array(F32, &[6]), &[&literal]).unwrap();
    let sorted: Vec<u32> =
        result.bytes().chunks(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect();
    assert_eq!(sorted, [0x8000_0000, 0x3f80_0000, 0x7f80_0000, 0x7f80_0001, 0x7fbf_ffff, 0x7fc0_0000]);
}

#[test]
fn topk_orders_nan_above_all_and_equals_by_index() {
    let x = f32s(&[1, 6], &[3.0, f32::NAN, -0.0, 0.0, -1.0, 3.0]);
    let shape = Shape::Tuple(vec![Shape::array(F32, &[1, 4]), Shape::array(S32, &[1, 4])]);
    let Literal::Tuple(results) = run(Op::TopK { k: 4, largest: true }, shape.clone(), &[&x]) else {
        panic!()
    };
    assert_eq!(results[1].to_vec::<i32>().unwrap(), [1, 0, 5, 3]);
    let Literal::Tuple(results) = run(Op::TopK { k: 4, largest: false }, shape, &[&x]) else { panic!() };
    assert_eq!(results[1].to_vec::<i32>().unwrap(), [4, 2, 3, 0]);
}

#[test]
fn map_calls_its_computation_for_each_element() {
    let mut module = Module::new("test");
    let to_apply = binary(&mut module, Op::Subtract {}, F32, F32);
    let (x, y) = (f32s(&[2], &[5.0, 1.0]), f32s(&[2], &[3.0, 4.0]));
    let op = Op::Map { dimensions: vec![0], to_apply };
    let result = evaluator::evaluate_instruction(&module, &op, &Shape::array(F32, &[2]), &[&x, &y]).unwrap();
    assert_eq!(result, f32s(&[2], &[2.0, -3.0]));
}
