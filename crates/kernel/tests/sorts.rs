//! Compiled sorts by numbers, compared bit by bit with the evaluator: sorts move elements and never
//! compute them.

use crate::harness::{Backwards, Loaded, Numbers, run, targets};
use hlo::Module;
use shape::{ArrayShape, Literal, PrimitiveType};
use std::sync::Arc;

/// Returns elements of random bits, many of them equal. Floats include zeros of both signs,
/// infinities, and NaN with several payloads.
fn elements(shape: &ArrayShape, numbers: &mut Numbers, with_nan: bool) -> Literal {
    let t = shape.element_type;
    let size = t.byte_size() / if t.is_complex() { 2 } else { 1 };
    let parts = shape.element_count() * if t.is_complex() { 2 } else { 1 };
    let exponent = match t {
        PrimitiveType::F64 => 0x7FF0_0000_0000_0000u64,
        PrimitiveType::F16 => 0x7C00,
        PrimitiveType::Bf16 => 0x7F80,
        PrimitiveType::F8e5m2 => 0x7C,
        _ => 0x7F80_0000,
    };
    let mut bytes = Vec::new();
    for _ in 0..parts {
        let few = numbers.below(9);
        let mut bits = match numbers.below(4) {
            0 => numbers.next(),
            1 => few,
            // Includes quiet NaN and infinities if the type has them.
            2 => exponent + if few == 0 || !with_nan { 0 } else { (exponent >> 1 & !exponent) + few % 2 },
            _ => few << (8 * size - 8),
        };
        if numbers.below(2) == 0 {
            bits ^= 1 << (8 * size - 1);
        }
        if !with_nan && t.is_floating_point() && bits & exponent == exponent {
            bits &= !(exponent - 1) | 1 << (8 * size - 1) | exponent;
            bits &= !((1u64 << exponent.trailing_zeros()) - 1);
        }
        bytes.extend_from_slice(&match t {
            PrimitiveType::Pred => (bits & 1).to_le_bytes()[..1].to_vec(),
            PrimitiveType::U4 => (bits & 15).to_le_bytes()[..1].to_vec(),
            PrimitiveType::S4 => (((bits << 4) as i8 >> 4) as u8).to_le_bytes().to_vec(),
            _ => bits.to_le_bytes()[..size].to_vec(),
        });
    }
    Literal::from_bytes(shape.clone(), bytes.into()).expect("as many bytes as the shape has")
}

fn module(text: &str) -> Module {
    hlo::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Runs a module on every target and compares bytes.
fn check(text: &str, with_nan: bool) {
    let module = module(text);
    let entry = module.entry_computation();
    let mut numbers = Numbers::new(text.len() as u64);
    let shape = |id: &hlo::InstructionId| {
        let shape = entry[*id].shape().expect_array();
        ArrayShape::new(shape.element_type, &shape.sizes())
    };
    let arguments: Vec<Literal> =
        entry.parameters().iter().map(|id| elements(&shape(id), &mut numbers, with_nan)).collect();
    let want = match evaluator::evaluate(&module, &arguments).unwrap_or_else(|e| panic!("{e}\n{text}")) {
        Literal::Tuple(elements) => elements,
        array => vec![array],
    };
    for target in targets() {
        let have = run(&module, &target, &arguments, 2).unwrap_or_else(|e| panic!("{e}\n{text}"));
        for (k, (have, want)) in have.iter().zip(&want).enumerate() {
            let difference = have.bytes().iter().zip(want.bytes().iter()).position(|(x, y)| x != y);
            let place = difference.map(|byte| byte / want.array_shape().element_type.byte_size());
            assert_eq!(place, None, "cpu '{}': result {k} differs there\n{text}", target.cpu);
        }
    }
}

/// Returns a sort of one array.
fn alone(shape: &str, dimension: usize, comparison: &str) -> String {
    let t = &shape[..shape.find('[').expect("a shape")];
    format!(
        "HloModule m\n\nbefore {{\n  a = {t}[] parameter(0)\n  b = {t}[] parameter(1)\n  ROOT r = pred[] compare(a, b), {comparison}\n}}\n\nENTRY main {{\n  x = {shape} parameter(0)\n  ROOT r = {shape} sort(x), dimensions={{{dimension}}}, to_apply=before\n}}\n"
    )
}

/// Returns a sort of three arrays by the second one. The first array contains the places, and the
/// third one is permuted too.
fn three(sizes: &str, key: &str, follows: &str, dimension: usize, comparison: &str) -> String {
    let array = |t: &str| format!("{t}{sizes}");
    let (key_array, follower) = (array(key), array(follows));
    format!(
        "HloModule m\n\nbefore {{\n  p0 = s32[] parameter(0)\n  p1 = s32[] parameter(1)\n  a = {key}[] parameter(2)\n  b = {key}[] parameter(3)\n  p2 = {follows}[] parameter(4)\n  p3 = {follows}[] parameter(5)\n  ROOT r = pred[] compare(a, b), {comparison}\n}}\n\nENTRY main {{\n  i = s32{sizes} iota(), iota_dimension={dimension}\n  x = {key_array} parameter(0)\n  y = {follower} parameter(1)\n  ROOT r = (s32{sizes}, {key_array}, {follower}) sort(i, x, y), dimensions={{{dimension}}}, is_stable=true, to_apply=before\n}}\n"
    )
}

const INTEGERS: [&str; 10] = ["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "u4", "s4"];
const FLOATS: [&str; 5] = ["f16", "bf16", "f32", "f64", "f8e5m2"];

const DIRECTIONS: [&str; 4] = ["LT", "GT", "LE", "GE"];

#[test]
fn keys_of_every_type() {
    for (k, t) in INTEGERS.iter().chain(&["pred"]).chain(&FLOATS).enumerate() {
        let order = if FLOATS.contains(t) { ", type=TOTALORDER" } else { "" };
        let comparison = |k: usize| format!("direction={}{order}", DIRECTIONS[k % 4]);
        let length = [33, 100, 257, 18][k % 4];
        check(&alone(&format!("{t}[{length}]"), 0, &comparison(k)), *t != "f8e5m2");
        check(&three(&format!("[3,{length}]"), t, "u16", 1, &comparison(k + 1)), *t != "f8e5m2");
    }
}

#[test]
fn lengths_around_vectors_and_networks() {
    for (k, length) in [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 255, 256, 300, 513, 1100]
        .into_iter()
        .enumerate()
    {
        check(&alone(&format!("f32[{length}]"), 0, "direction=LT, type=TOTALORDER"), true);
        check(
            &match k % 2 {
                0 => alone(&format!("s64[{length}]"), 0, "direction=GT"),
                _ => three(&format!("[{length}]"), "f32", "c64", 0, "direction=GE, type=TOTALORDER"),
            },
            true,
        );
    }
}

#[test]
fn several_chunks_are_merged() {
    // The number of chunks is not a power of two. A chunk occupies a quarter of the second-level
    // cache.
    check(&alone("u64[140001]", 0, "direction=LT"), true);
    check(&three("[70011]", "f64", "s8", 0, "direction=GT, type=TOTALORDER"), true);
}

#[test]
fn sequences_along_any_dimension() {
    let shapes = [
        ("[40,33]", 0),
        ("[40,33]", 1),
        ("[33,70]", 1),
        ("[3,50,4]", 1),
        ("[2,20,37]", 1),
        ("[20,300]", 1),
        ("[5,2]", 1),
        ("[17,1,3]", 1),
        ("[2,600]", 1),
        ("[600,2]", 0),
    ];
    for (k, (sizes, dimension)) in shapes.into_iter().enumerate() {
        if k % 2 == 0 {
            check(&alone(&format!("f32{sizes}"), dimension, "direction=GT, type=TOTALORDER"), true);
            check(&three(sizes, "u64", "bf16", dimension, "direction=GT"), true);
        } else {
            check(&alone(&format!("u8{sizes}"), dimension, "direction=LT"), true);
            check(&three(sizes, "s16", "f64", dimension, "direction=LE"), true);
        }
    }
}

#[test]
fn zeros_that_are_equal_keep_their_order_and_nan_has_none() {
    let mut turn = 0;
    for t in ["f16", "f32", "f64"] {
        for direction in DIRECTIONS {
            let comparison = format!("direction={direction}");
            for with_nan in [false, true] {
                turn += 1;
                let text = match turn % 5 {
                    0 => alone(&format!("{t}[70]"), 0, &comparison),
                    1 => alone(&format!("{t}[37,19]"), 1, &comparison),
                    2 => alone(&format!("{t}[19,37]"), 0, &comparison),
                    3 => three("[20,9]", t, "u8", 1, &comparison),
                    _ => three("[300]", t, "u8", 0, &comparison),
                };
                check(&text, with_nan);
            }
        }
    }
}

#[test]
fn arguments_of_the_comparison_change_places() {
    let text = alone("s32[100]", 0, "direction=LT").replace("compare(a, b)", "compare(b, a)");
    check(&text, false);
}

#[test]
fn comparisons_without_a_numeric_key_are_called() {
    let text = alone("s32[70]", 0, "direction=LT").replace(
        "  ROOT r = pred[] compare(a, b)",
        "  c = s32[] multiply(a, a)\n  ROOT r = pred[] compare(c, b)",
    );
    check(&text, false);
}

#[test]
fn the_first_of_many() {
    for t in ["f32", "u8", "s64", "bf16", "f8e5m2"] {
        for (sizes, k) in [("[300]", 200), ("[40,33]", 20)] {
            for largest in [true, false] {
                let last = sizes.rfind([',', '[']).expect("a dimension") + 1;
                let result = format!("{}{k}]", &sizes[..last]);
                let head = format!("HloModule m\n\nENTRY main {{\n  x = {t}{sizes} parameter(0)\n");
                let pair = format!("r = ({t}{result}, s32{result}) topk(x), k={k}, largest={largest}\n");
                check(&format!("{head}  ROOT {pair}}}\n"), t != "f8e5m2");
                if !largest {
                    continue;
                }
                // Unused places are not computed.
                let values = format!("  {pair}  ROOT v = {t}{result} get-tuple-element(r), index=0\n}}\n");
                check(&format!("{head}{values}"), t != "f8e5m2");
            }
        }
    }
}

#[test]
fn tasks_share_the_sequences() {
    for (sizes, dimension) in [("[1030,64]", 1), ("[64,1030]", 0), ("[20,64,50]", 1), ("[30,5000]", 1)] {
        let text = three(sizes, "f32", "s16", dimension, "direction=LT");
        let module = module(&text);
        let entry = module.entry_computation();
        let mut numbers = Numbers::new(5);
        let arguments: Vec<Literal> = entry
            .parameters()
            .iter()
            .map(|&id| elements(entry[id].shape().expect_array(), &mut numbers, false))
            .collect();
        for target in targets() {
            let loaded = Loaded::new(&module, &target).expect("a program");
            assert!(loaded.parallel_kernels > 0, "{sizes} should have several tasks");
            let alone = loaded.run(&arguments, 1, None).expect("results");
            for workers in [1, 3] {
                let shared = loaded.run(&arguments, 1, Some(Arc::new(Backwards(workers)))).expect("results");
                for (have, want) in shared.iter().zip(&alone) {
                    assert_eq!(have.bytes(), want.bytes(), "{sizes}, {workers} workers");
                }
            }
        }
    }
}
