//! Sorts of a device, run by the simulator and compared with the evaluator. Elements are few, so
//! that many are equal.

use crate::device_reductions::check_arguments;
use crate::harness::{Numbers, Tolerance};
use shape::{ArrayShape, Literal, PrimitiveType};

/// Returns elements of a few numbers and their negatives, zeros of both signs among them.
fn few(shape: &ArrayShape, numbers: &mut Numbers) -> Literal {
    let t = shape.element_type;
    let mut bytes = Vec::new();
    for _ in 0..shape.element_count() {
        let number = numbers.below(1 + shape.element_count() as u64 / 2) as i64;
        let number = if numbers.below(2) == 0 { number } else { -number };
        let float = if number == 0 && numbers.below(2) == 0 { -0.0 } else { number as f64 };
        bytes.extend_from_slice(&match t {
            PrimitiveType::F32 => (float as f32).to_le_bytes().to_vec(),
            PrimitiveType::F64 => float.to_le_bytes().to_vec(),
            PrimitiveType::Pred => vec![(number & 1) as u8],
            _ => number.to_le_bytes()[..t.byte_size()].to_vec(),
        });
    }
    Literal::from_bytes(shape.clone(), bytes.into()).expect("as many bytes as the shape has")
}

fn check(text: &str, words: &str) {
    let module = hlo::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let entry = module.entry_computation();
    let mut numbers = Numbers::new(text.len() as u64);
    let shapes = entry.parameters().iter().map(|&parameter| entry[parameter].shape().expect_array());
    let arguments: Vec<Literal> =
        shapes.map(|s| few(&ArrayShape::new(s.element_type, &s.sizes()), &mut numbers)).collect();
    check_arguments(&module, &module, &arguments, Tolerance::Exact, words);
}

/// A sort of one array.
fn alone(element: &str, sizes: &str, dimension: usize, comparison: &str) -> String {
    let array = format!("{element}[{sizes}]");
    format!(
        "HloModule m\nbefore {{\n  a = {element}[] parameter(0)\n  b = {element}[] parameter(1)\n  \
         ROOT r = pred[] compare(a, b), {comparison}\n}}\nENTRY main {{\n  x = {array} parameter(0)\n  \
         ROOT r = {array} sort(x), dimensions={{{dimension}}}, to_apply=before\n}}\n"
    )
}

/// A sort of the places by an array.
fn with_places(element: &str, sizes: &str, dimension: usize, before: &str) -> String {
    let (array, places) = (format!("{element}[{sizes}]"), format!("s32[{sizes}]"));
    format!(
        "HloModule m\nbefore {{\n  a = {element}[] parameter(0)\n  b = {element}[] parameter(1)\n  \
         i = s32[] parameter(2)\n  j = s32[] parameter(3)\n  {before}\n}}\nENTRY main {{\n  \
         x = {array} parameter(0)\n  i = {places} iota(), iota_dimension={dimension}\n  \
         ROOT r = ({array}, {places}) sort(x, i), dimensions={{{dimension}}}, is_stable=true, \
         to_apply=before\n}}\n"
    )
}

const TOTAL: &str = "ROOT r = pred[] compare(a, b), direction=LT, type=TOTALORDER";

#[test]
fn rows_are_sorted_by_keys() {
    check(&alone("s32", "100", 0, "direction=LT"), "sort of 32-bit keys by groups, 1 rows of 128");
    check(&alone("f32", "7,33", 1, "direction=GT, type=TOTALORDER"), "4 rows of 64 each, 1 steps");
    check(&alone("u8", "5,3,4", 1, "direction=GE"), "rows of 4 each");
    check(&alone("f64", "1", 0, "direction=LT, type=TOTALORDER"), "rows of 2 each");
    check(&with_places("f32", "9,50", 0, TOTAL), "sort of keys and places in 64 bits");
    check(&with_places("s8", "300", 0, "ROOT r = pred[] compare(a, b), direction=LE"), "in 32 bits");
    check(&with_places("f64", "300", 0, TOTAL), "sort of pairs of 64 bits");
    check(&with_places("pred", "2,70", 1, "ROOT r = pred[] compare(b, a), direction=LT"), "in 32 bits");
}

#[test]
fn rows_are_sorted_by_comparisons() {
    let by_places = "sort of places by comparison";
    // Zeros of both signs are equal.
    check(&with_places("f32", "3,90", 1, "ROOT r = pred[] compare(a, b), direction=LT"), by_places);
    let by_both = "s = s32[] convert(a)\n  t = s32[] convert(b)\n  three = s32[] constant(3)\n  \
                   u = s32[] and(s, three)\n  v = s32[] and(t, three)\n  \
                   ROOT r = pred[] compare(u, v), direction=GT";
    check(&with_places("s16", "5,4,3", 0, by_both), by_places);
    check(&with_places("s16", "2,300", 1, by_both), by_places);
    // Every element belongs before all others.
    check(&with_places("f32", "50", 0, "ROOT r = pred[] constant(true)"), by_places);
}

#[test]
fn long_rows_are_sorted_in_chunks() {
    check(&alone("s32", "4500", 0, "direction=LT"), "1 rows of 2048 each, 5 steps");
    check(&alone("s16", "9000", 0, "direction=GT"), "1 rows of 2048 each, 7 steps");
    check(&with_places("f64", "2,2100", 1, TOTAL), "1 rows of 2048 each, 3 steps");
    check(&with_places("f32", "4100", 0, "ROOT r = pred[] compare(a, b), direction=GT"), "6 steps");
}

#[test]
fn the_first_elements_of_rows_are_selected() {
    let top = |element: &str, rows: i64, length: i64, k: i64, largest: bool, words: &str| {
        let text = format!(
            "HloModule m\nENTRY main {{\n  x = {element}[{rows},{length}] parameter(0)\n  \
             ROOT r = ({element}[{rows},{k}], s32[{rows},{k}]) topk(x), k={k}, largest={largest}\n}}\n"
        );
        check(&text, words);
    };
    top("f32", 5, 40, 3, true, "4 rows of 64 each, 1 steps");
    top("s32", 1, 100, 100, false, "1 steps");
    // The second chunk has fewer elements than are needed.
    top("f32", 2, 4103, 20, true, "2 steps");
    top("s16", 1, 9000, 500, false, "3 steps");
}
