//! Tests of the loop-nest language's text form, and of programs that the verifier rejects.

use nest::{parse, verify};

/// Every statement and expression of the language.
const EVERYTHING: &str = r#"inline fn "a \"quoted\" \\ name\u{a}" (v0 "x": ptr noalias readonly align 64, v1 "n": i64, v2 "c": boolx4) {
  v3: i8 = constant -7
  fill_bytes v0, v3, v1
  prefetch 2 v0
  copy_bytes v0, v0, v1
}

internal fn "model/dense:0" (v0 "x": ptr noalias, v1 "n": i64) {
  v2: ptr = stack_slot 128 align 64
  v3: i64 = constant 0
  v4: f32x4 = constant -0.1
  v5: f32 = constant 0x7fc01234
  v6: f64x2 = constant 1e-320
  v7: f64 = constant 0xfff0000000000000
  v8: bool = constant 1
  v9: i32x4 = iota
  v10: ptr = offset v0 + v1 * -8
  v11: i32x4 = load v10 align 4
  v12: boolx4 = compare below v9, v11
  v13: i32x4 = load v10 align 16 mask v12
  v14: i32x4 = shift_right_arithmetic v11, v13
  v15: f32x4 = convert signed_to_float v14
  v16: f32x4 = multiply_add v15, v4, v15
  v17: f32x4 = select v12, v16, v4
  v18: f32x4 = select v8, v16, v17
  v19: f32 = extract v18, 3
  v20: f32x4 = insert v18, 0, v19
  v21: f32x8 = shuffle v18, v20, [0, 7, 1, 6, 2, 5, 3, 4]
  v22: f32x4 = splat v5
  v23: f32x4 = round_even v22
  v24: i64 = not v3
  store v23 to v2 align 64
  store v20 to v0 align 4 mask v12
  v25: f32x4, v26: i64 = for v27 in v3..v1 step 4 carry (v28 = v20, v29 = v3) {
    v30: f32x4 = add v28, v22
    v31: i64 = add v29, v27
    v32: i64 = if v8 {
      yield v31
    } else {
      call f0 (v0, v31, v12)
      yield v29
    }
    yield v30, v32
  }
  v33: i64 = while carry (v34 = v26) {
    v35: bool = compare less v34, v1
    yield v35
  } do {
    v36: i64 = add v34, v34
    yield v36
  }
  for v37 in v3..v33 step 1 {
    if v8 {
    } else {
    }
  }
  store v25 to v0 align 4
}

internal fn "tasks" (v0 "x": ptr, v1 "begin": i64, v2 "end": i64, v3 "worker": i64) {
}

entry fn "entry" (v0 "frame": ptr align 8) {
  v1: ptr = function_address f1
  v2: i64 = convert bitcast v1
  v3: ptr = constant 0
  v4: i64 = cycle_counter
  v5: i32x4 = iota
  v6: i32x4 = group_multiply_add signed_bytes v5, v5, v5
  v7: i32x4 = group_multiply_add unsigned_bytes v6, v5, v6
  v8: f32x4 = constant 1.0
  v9: f32x4 = group_multiply_add bf16 v6, v5, v8
  v10: f32x4 = group_multiply_add bf16 v5, v6, v9
  v11: i8x4 = constant 3
  v12: i8x4 = byte_lookup "TABLE" v11
  v13: i32x4 = multiply_fixed v7, v5
  v14: i32x4 = group_multiply_add signed_byte_pairs v5, v6, v13
  v15: i32x4 = group_multiply_add unsigned_byte_pairs v5, v6, v14
  v16: f32x4 = group_multiply_add bf16_pairs v5, v6, v10
  v17: i32x8 = constant 0
  v18: i32x8 = group_multiply_add signed_byte_halves v5, v6, v17
  v19: i32x4 = group_multiply_add shorts v5, v6, v15
  v20: i64 = constant 64
  v21: i32 = constant 0
  v22: i32 = group_multiply_add signed_byte_vectors v5, v6, v21
  v23: i16x4 = constant 5
  v24: i32x4 = group_multiply_add short v23, v23, v19
  tiles configure 16 8
  tiles zero 3
  tiles load 5 v0, v20
  tiles multiply bf16 3 5 7
  tiles store 3 v0, v20
  tiles release
  call f1 (v0, v2)
  parallel 12 f2 (v0)
}
"#;

/// The text with the 256 bytes of its table.
fn everything() -> String {
    EVERYTHING.replace("TABLE", &"0f".repeat(256))
}

#[test]
fn text_reads_back() {
    let program = parse(&everything()).expect("well-formed");
    assert_eq!(program.to_string(), everything());
    assert_eq!(program.functions.len(), 4);
    verify(&program).expect("expected a valid program");
}

#[test]
fn comments_and_blanks_do_not_matter() {
    let text = everything().replace('\n', " // the end of a line\n\n").replace(", ", " ,\n ");
    // Whitespace inside strings matters.
    assert_eq!(parse(&text).expect("well-formed").to_string(), everything());
}

#[test]
fn malformed_text_is_refused_with_its_line() {
    for (text, line, message) in [
        ("outer fn", 1, "expected entry, internal, inline, kernel, or routine, found 'outer'"),
        ("kernel fn", 1, "'fn' is not a valid number here"),
        ("entry fn \"e", 1, "missing the end of a string"),
        ("entry fn \"e\\q\" () {\n}", 1, "expected an escape"),
        ("entry fn \"e\" () {\n  v0: i65 = constant 1\n}", 2, "'i65' is not a type"),
        ("entry fn \"e\" () {\n  v0: f32x1 = constant 1\n}", 2, "'f32x1' is not a type"),
        ("entry fn \"e\" () {\n  v0: i64 = constant\n}", 3, "expected a number"),
        (
            "entry fn \"e\" () {\n  v0: i64 = constant 99999999999999999999\n}",
            2,
            "is not a valid number here",
        ),
        ("entry fn \"e\" () {\n  v0: i64 = frobnicate v0\n}", 2, "'frobnicate' is not an operation"),
        ("entry fn \"e\" () {\n  v0: i64 = constant 1\n  v0: i64 = constant 1\n}", 3, "v0 is defined twice"),
        ("entry fn \"e\" () {\n  v1: i64 = constant 1\n}", 3, "v0 has no definition, but v1 has"),
        ("entry fn \"e\" () {\n  v4294967295: i64 = constant 1\n}", 2, "expected a value such as v0"),
        ("entry fn \"e\" () {\n  v0: i64 = add v0\n}", 2, "expected 2 values, found 1"),
        ("entry fn \"e\" () {\n  yield v0\n  v1: i64 = iota\n}", 3, "expected '}'"),
        ("entry fn \"e\" () {\n", 2, "expected a value such as v0"),
    ] {
        let error = parse(text).expect_err(text).to_string();
        assert!(error.starts_with(&format!("line {line}: ")) && error.contains(message), "{text}: {error}");
    }
}

#[test]
fn deep_nesting_is_refused_not_overflowed() {
    let mut text = "entry fn \"e\" (v0 \"c\": bool) {\n".to_owned();
    for _ in 0..100_000 {
        text.push_str("if v0 {\n");
    }
    let error = parse(&text).expect_err("too deep").to_string();
    assert!(error.contains("nested"), "{error}");
}

/// Each body belongs to a function of an address, an integer, a float vector, and a condition. The
/// message is the verifier's.
#[test]
fn breaches_are_found() {
    for (body, message) in [
        ("v4: i64 = add v1, v5 v5: i64 = constant 0", "v5 is not visible here"),
        ("v4: f32x4 = add v1, v1", "v1 is i64, expected f32x4"),
        ("v4: boolx4 = compare less v2, v2 v5: boolx4 = add v4, v4", "Add does not take boolx4"),
        ("v4: i64 = divide v1, v1", "Divide does not take i64"),
        ("v4: f32x4 = not v2", "Not does not take f32x4"),
        ("v4: i64 = sqrt v1", "Sqrt does not take i64"),
        ("v4: i64 = multiply_add v1, v1, v1", "multiply-add does not take i64"),
        (
            "v4: i64 = group_multiply_add signed_bytes v1, v1, v1",
            "a sum of products of SignedBytes is not i64",
        ),
        ("v4: f32x4 = group_multiply_add bf16 v2, v2, v2", "v2 is f32x4, expected i32x4"),
        (
            "v4: i32x8 = constant 0 v5: i32x8 = group_multiply_add signed_byte_pairs v4, v4, v4",
            "a sum of products of SignedBytePairs is not i32x8",
        ),
        (
            "v4: i32x4 = constant 0 v5: i32x4 = group_multiply_add signed_byte_halves v4, v4, v4",
            "a sum of products of SignedByteHalves is not i32x4",
        ),
        (
            "v4: i32x4 = constant 0 v5: i32x4 = group_multiply_add short v4, v4, v4",
            "v4 is i32x4, expected i16x4",
        ),
        ("v4: i64 = multiply_fixed v1, v1", "MultiplyFixed does not take i64"),
        ("v4: bool = compare less v2, v2", "the result is boolx4, but the value has type bool"),
        ("v4: boolx4 = compare below v2, v2", "Below does not take f32x4"),
        ("v4: f32x4 = select v1, v2, v2", "a condition of type i64 cannot select f32x4"),
        ("v4: i32 = convert sign_extend v1", "SignExtend does not convert i64 to i32"),
        ("v4: i32x8 = convert bitcast v2", "Bitcast does not convert f32x4 to i32x8"),
        ("v4: f64x2 = convert float_extend v2", "FloatExtend does not convert f32x4 to f64x2"),
        ("v4: ptr = convert bitcast v2", "Bitcast does not convert f32x4 to ptr"),
        ("v4: f32x4 = constant 1", ""),
        ("v4: f32 = extract v2, 4", "f32x4 has no lane 4"),
        ("v4: i64 = extract v1, 0", "i64 is not a vector"),
        ("v4: f32x4 = insert v2, 0, v1", "v1 is i64, expected f32"),
        ("v4: f32x4 = splat v2", "v2 is f32x4, expected f32"),
        ("v4: f32x2 = shuffle v2, v2, [0, 8]", "a shuffled lane is beyond two vectors"),
        ("v4: f32x2 = shuffle v2, v2, [0, 1, 2]", "expected 2 lanes for a shuffle to f32x2, found 3"),
        ("v4: f32x4 = iota", "expected an integer type for iota, found f32x4"),
        ("v4: ptr = offset v1 + v1 * 4", "v1 is i64, expected ptr"),
        ("v4: i64 = offset v0 + v1 * 4", "the result is ptr, but the value has type i64"),
        ("v4: bool = load v0 align 1", "Bool cannot be loaded or stored"),
        ("v4: i64 = load v0 align 3", "alignment 3 is not a power of two"),
        ("v4: f32x4 = load v0 align 4 mask v3", "v3 is bool, expected boolx4"),
        ("store v3 to v0 align 1", "Bool cannot be loaded or stored"),
        ("store v2 to v1 align 1", "v1 is i64, expected ptr"),
        ("v4: ptrx2 = load v0 align 8", "invalid type ptrx2"),
        ("v4: f32x2000 = load v0 align 8", "invalid type f32x2000"),
        ("v4: ptr = stack_slot 2000000000 align 8", "a stack slot of 2000000000 bytes"),
        ("for v4 in v1..v1 step 1 { v5: ptr = stack_slot 8 align 8 }", "found a stack slot inside a loop"),
        ("for v4 in v1..v1 step 0 { }", "expected a step of at least 1, found 0"),
        ("for v4 in v1..v2 step 1 { }", "v2 is f32x4, expected i64"),
        ("for v4 in v1..v1 step 1 { yield v4 }", "yield: 1 values, expected 0"),
        ("for v4 in v1..v1 step 1 { } v5: i64 = add v4, v4", "v4 is not visible here"),
        ("v4: i64 = for v5 in v1..v1 step 1 carry (v6 = v1) { yield v4 }", "v4 is not visible here"),
        ("v4: f32 = for v5 in v1..v1 step 1 carry (v6 = v1) { yield v1 }", "v6 is f32, expected i64"),
        ("v4: i64 = for v5 in v1..v1 step 1 carry (v6 = v1) { } ", "yield: 0 values, expected 1"),
        ("while { yield v1 } do { }", "v1 is i64, expected bool"),
        ("v4: i64 = if v3 { yield v1 } else { yield v2 }", "v2 is f32x4, expected i64"),
        ("if v1 { } else { }", "v1 is i64, expected bool"),
        ("call f1 ()", "f1 does not come before its caller"),
        ("call f7 ()", "f7 does not come before its caller"),
        ("call f0 (v1)", "v1 is i64, expected ptr"),
        ("call f0 ()", "arguments: 0 values, expected 1"),
        ("v4: ptr = constant 1", "the constant does not fit ptr"),
        ("v4: i32 = cycle_counter", "the result is i64, but the value has type i32"),
        ("v4: ptr = function_address f1", "f1 does not come before its caller"),
        ("fill_bytes v0, v1, v1", "v1 is i64, expected i8"),
        ("prefetch 1 v1", "v1 is i64, expected ptr"),
        ("prefetch 3 v0", "expected a prefetch into cache 1 or 2, found 3"),
        ("copy_bytes v0, v1, v1", "v1 is i64, expected ptr"),
        ("parallel 2 f0 (v0)", "found a parallel call outside the entry"),
    ] {
        let text = format!(
            "internal fn \"callee\" (v0 \"p\": ptr) {{ }}\n\
             internal fn \"kernel\" (v0 \"p\": ptr, v1 \"i\": i64, v2 \"x\": f32x4, v3 \"c\": bool) {{\n{body}\n}}"
        );
        let program = parse(&text).unwrap_or_else(|e| panic!("{body}: {e}"));
        match verify(&program) {
            Ok(()) => assert!(message.is_empty(), "{body} is accepted"),
            Err(error) => {
                let error = error.to_string();
                let named = error.starts_with("loop nest \"kernel\": ");
                assert!(!message.is_empty() && named && error.contains(message), "{body}: {error}");
            }
        }
    }
}

#[test]
fn breaches_of_functions_are_found() {
    for (text, message) in [
        ("internal fn \"a\" () { } internal fn \"a\" () { }", "another function has the same name"),
        ("internal fn \"\" () { }", "the function has no name"),
        (
            "entry fn \"e\" (v0 \"f\": ptr) { } internal fn \"a\" () { }",
            "expected the entry as the last function",
        ),
        ("entry fn \"e\" () { }", "expected one address as the entry's only parameter"),
        ("entry fn \"e\" (v0 \"f\": i64) { }", "expected one address as the entry's only parameter"),
        (
            "internal fn \"a\" (v0 \"p\": ptr) { } entry fn \"e\" (v0 \"f\": ptr) { parallel 2 f0 () }",
            "the last three parameters of f0 are not a range of items and a worker",
        ),
        (
            "internal fn \"a\" (v0 \"b\": i64, v1 \"e\": i64, v2 \"w\": i64) { } \
             entry fn \"e\" (v0 \"f\": ptr) { parallel 0 f0 () }",
            "expected a parallel call over at least 1 item, found 0",
        ),
        (
            "internal fn \"a\" (v0 \"b\": i64, v1 \"e\": i64, v2 \"w\": i64) { } \
             entry fn \"e\" (v0 \"f\": ptr) { parallel 2 f0 (v0) }",
            "arguments: 1 values, expected 0",
        ),
        (
            "internal fn \"a\" (v0 \"n\": i64 noalias) { }",
            "facts about memory are only allowed for addresses",
        ),
        ("internal fn \"a\" (v0 \"p\": ptr align 12) { }", "alignment 12 is not a power of two"),
        ("internal fn \"a\" (v0 \"c\": bool) { yield v0 }", "yield: 1 values, expected 0"),
    ] {
        let error = verify(&parse(text).expect(text)).expect_err(text).to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}
