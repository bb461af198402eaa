//! Tensor arrays: sizes, overwritten and added elements, and elements that were never written.

use crate::{loops, message, module, run, values};
use shape::Literal;

fn vector(values: &[f32]) -> Literal {
    Literal::from_elements(&[values.len() as i64], values)
}

/// Writes `i * i * x` for i from 0 to 3, the last index first, and gathers the elements as one
/// array.
const REVERSED: &str = "x: f32[2]
    size = 4
    ta = TensorArrayV3(size) dtype=f32
    zero = 0
    loop = While(zero, ta:1, ta, x) T=[i32,f32,res,f32] cond=@cond body=@body
    one = 1
    all = Range(zero, size, one) Tidx=i32
    stacked = TensorArrayGatherV3(ta, all, loop:1) dtype=f32
    fn cond(i: i32, flow: f32, ta: res, x: f32) -> c/bool {
    l = 4
    c = Less(i, l) T=i32
    }
    fn body(i: i32, flow: f32, ta: res, x: f32) -> j/i32, next, ta/res, x {
    one = 1
    j = AddV2(i, one) T=i32
    three = 3
    at = Sub(three, i) T=i32
    f = Cast(i) SrcT=i32 DstT=f32
    ff = Mul(f, f) T=f32
    v = Mul(ff, x) T=f32
    next = TensorArrayWriteV3(ta, at, v, flow) T=f32
    }";

#[test]
fn elements_are_where_they_were_written() {
    let results = run(REVERSED, &["stacked"], &[vector(&[1.0, 10.0])]);
    assert_eq!(values::<f32>(&results[0]), [9.0, 90.0, 4.0, 40.0, 1.0, 10.0, 0.0, 0.0]);
}

#[test]
fn unwritten_elements_are_zero_and_a_second_write_replaces_the_first() {
    let text = "x: f32[2]
        size = 3
        ta = TensorArrayV3(size) dtype=f32
        one = 1
        two = 2
        a = TensorArrayWriteV3(ta, one, x, ta:1) T=f32
        twice = AddV2(x, x) T=f32
        b = TensorArrayWriteV3(ta, one, twice, a) T=f32
        written = TensorArrayReadV3(ta, one, b) dtype=f32
        untouched = TensorArrayReadV3(ta, two, b) dtype=f32
        number = TensorArraySizeV3(ta, b)";
    let results = run(text, &["written", "untouched", "number"], &[vector(&[1.0, 2.0])]);
    assert_eq!(results, [vector(&[2.0, 4.0]), vector(&[0.0, 0.0]), Literal::scalar(3i32)]);
}

#[test]
fn writes_to_a_gradient_array_add_and_equal_sources_share_the_array() {
    let text = "x: f32[2]
        size = 2
        ta = TensorArrayV3(size) dtype=f32
        zero = 0
        w = TensorArrayWriteV3(ta, zero, x, ta:1) T=f32
        g = TensorArrayGradV3(ta, w) source=\"gradients\"
        again = TensorArrayGradV3(ta, w) source=\"gradients\"
        other = TensorArrayGradV3(ta, w) source=\"others\"
        a = TensorArrayWriteV3(g, zero, x, g:1) T=f32
        b = TensorArrayWriteV3(again, zero, x, a) T=f32
        c = TensorArrayWriteV3(other, zero, x, b) T=f32
        summed = TensorArrayReadV3(g, zero, c) dtype=f32
        alone = TensorArrayReadV3(other, zero, c) dtype=f32
        forward = TensorArrayReadV3(ta, zero, c) dtype=f32";
    let x = vector(&[1.0, 2.0]);
    let results = run(text, &["summed", "alone", "forward"], std::slice::from_ref(&x));
    assert_eq!(results, [vector(&[2.0, 4.0]), x.clone(), x]);
}

#[test]
fn a_gradient_array_requested_in_a_loop_adds_over_all_iterations() {
    let text = "x: f32[2]
        size = 2
        ta = TensorArrayV3(size) dtype=f32
        zero = 0
        w = TensorArrayWriteV3(ta, zero, x, ta:1) T=f32
        loop = While(zero, w, ta, x) T=[i32,f32,res,f32] cond=@cond body=@body
        g = TensorArrayGradV3(ta, loop:1) source=\"gradients\"
        summed = TensorArrayReadV3(g, zero, g:1) dtype=f32
        fn cond(i: i32, flow: f32, ta: res, x: f32) -> c/bool {
        l = 5
        c = Less(i, l) T=i32
        }
        fn body(i: i32, flow: f32, ta: res, x: f32) -> j/i32, next, ta/res, x {
        one = 1
        j = AddV2(i, one) T=i32
        zero = 0
        g = TensorArrayGradV3(ta, flow) source=\"gradients\"
        next = TensorArrayWriteV3(g, zero, x, g:1) T=f32
        }";
    assert_eq!(run(text, &["summed"], &[vector(&[1.0, 2.0])]), [vector(&[5.0, 10.0])]);
}

#[test]
fn rows_are_scattered_split_gathered_and_concatenated() {
    let text = "x: f32[4,1]
        size = 4
        ta = TensorArrayV3(size) dtype=f32
        order = i32[4] 2 0 3 1
        s = TensorArrayScatterV3(ta, order, x, ta:1) T=f32
        some = i32[2] 3 0
        gathered = TensorArrayGatherV3(ta, some, s) dtype=f32
        concatenated = TensorArrayConcatV3(ta, s) dtype=f32
        two = 2
        parts = TensorArrayV3(two) dtype=f32
        lengths = i64[2] 2 2
        p = TensorArraySplitV3(parts, x, lengths, parts:1) T=f32
        one = 1
        part = TensorArrayReadV3(parts, one, p) dtype=f32";
    let x = Literal::from_elements(&[4, 1], &[1f32, 2.0, 3.0, 4.0]);
    let results = run(text, &["gathered", "concatenated", "concatenated:1", "part"], &[x]);
    assert_eq!(values::<f32>(&results[0]), [3.0, 2.0]);
    // The scatter moved x[0] to 2, x[1] to 0, x[2] to 3, and x[3] to 1.
    assert_eq!(values::<f32>(&results[1]), [2.0, 4.0, 1.0, 3.0]);
    assert_eq!(values::<i64>(&results[2]), [1, 1, 1, 1]);
    assert_eq!(values::<f32>(&results[3]), [3.0, 4.0]);
    let uneven = text.replace("i64[2] 2 2", "i64[2] 1 3");
    assert!(message(&uneven, &["part"]).contains("different lengths [1,3]"));
}

#[test]
fn an_array_grows_to_the_largest_index_written() {
    let text = REVERSED
        .replace("size = 4", "size = 0")
        .replace("dtype=f32\n    zero", "dtype=f32 dynamic_size=true\n    zero")
        .replace(
            "all = Range(zero, size, one)",
            "number = TensorArraySizeV3(ta, loop:1)\nall = Range(zero, number, one)",
        );
    let text = text.replace("three = 3\n    at = Sub(three, i) T=i32", "at = Identity(i) T=i32");
    let results = run(&text, &["stacked", "number"], &[vector(&[1.0, 10.0])]);
    assert_eq!(values::<f32>(&results[0]), [0.0, 0.0, 1.0, 10.0, 4.0, 40.0, 9.0, 90.0]);
    assert_eq!(values::<i32>(&results[1]), [4]);
}

#[test]
fn an_array_that_grows_without_bound_is_refused_with_its_name() {
    let text = "n: i32[]
        x: f32[2]
        size = 0
        ta = TensorArrayV3(size) dtype=f32 dynamic_size=true
        w = TensorArrayWriteV3(ta, n, x, ta:1) T=f32
        zero = 0
        r = TensorArrayReadV3(ta, zero, w) dtype=f32";
    let message = message(text, &["r"]);
    assert!(
        message.contains("'ta' has dynamic_size=true") && message.contains("the feed 'n:0'"),
        "{message}"
    );
}

#[test]
fn empty_arrays_are_valid_and_get_their_element_shape_from_the_loop() {
    let text = REVERSED.replace("size = 4", "size = 0").replace("l = 4", "l = 0");
    let module = module(&text, &["stacked", "loop"]);
    assert_eq!(loops(&module), 0);
    let results = run(&text, &["stacked", "loop"], &[vector(&[1.0, 10.0])]);
    assert_eq!(results, [Literal::from_elements::<f32>(&[0, 2], &[]), Literal::scalar(0i32)]);
}

#[test]
fn sizes_must_be_known_and_elements_must_have_one_shape() {
    let fed = "n: i32[]
        x: f32[2]
        ta = TensorArrayV3(n) dtype=f32
        zero = 0
        w = TensorArrayWriteV3(ta, zero, x, ta:1) T=f32
        r = TensorArrayReadV3(ta, zero, w) dtype=f32";
    assert!(message(fed, &["r"]).contains("the feed 'n:0'"));
    let unlike = "x: f32[2]
        size = 2
        ta = TensorArrayV3(size) dtype=f32
        zero = 0
        w = TensorArrayWriteV3(ta, zero, x, ta:1) T=f32
        s = 1.0
        v = TensorArrayWriteV3(ta, zero, s, w) T=f32
        r = TensorArrayReadV3(ta, zero, v) dtype=f32";
    assert!(
        message(unlike, &["r"])
            .contains("TensorArray 'ta' holds elements of shape [2], but an element of shape []")
    );
}

/// Each iteration of the forward loop creates a tensor array. The backward loop requests the
/// gradient of each.
const CREATED_IN_A_LOOP: &str = "x: f32[2]
    unlimited = -1
    handles = StackV2(unlimited) elem_type=res
    others = StackV2(unlimited) elem_type=res
    zero = 0
    there = While(zero, x, handles, others) T=[i32,f32,res,res] cond=@cond body=@body
    back = While(zero, x, handles, others, ^there) T=[i32,f32,res,res] cond=@cond body=@back
    fn cond(i: i32, x: f32, handles: res, others: res) -> c/bool {
    l = 3
    c = Less(i, l) T=i32
    }
    fn body(i: i32, x: f32, handles: res, others: res) -> j/i32, x, handles/res, others/res {
    one = 1
    j = AddV2(i, one) T=i32
    ta = TensorArrayV3(one) dtype=f32
    zero = 0
    w = TensorArrayWriteV3(ta, zero, x, ta:1) T=f32
    a = StackPushV2(handles, ta, ^w) T=res
    b = StackPushV2(others, ta, ^w) T=res
    }
    fn back(i: i32, x: f32, handles: res, others: res) -> j/i32, y, handles/res, others/res {
    one = 1
    j = AddV2(i, one) T=i32
    zero = 0
    flow = 0.0
    a = StackPopV2(handles) elem_type=res
    b = StackPopV2(others) elem_type=res
    ga = TensorArrayGradV3(a, flow) source=\"gradients\"
    wa = TensorArrayWriteV3(ga, zero, x, ga:1) T=f32
    gb = TensorArrayGradV3(b, wa) source=\"gradients\"
    wb = TensorArrayWriteV3(gb, zero, x, gb:1) T=f32
    y = TensorArrayReadV3(ga, zero, wb) dtype=f32
    }";

#[test]
fn the_gradient_of_an_array_is_found_by_a_handle_from_a_stack() {
    // Each backward iteration writes `x` twice to one gradient, which starts as zeros, so that the
    // value doubles three times.
    assert_eq!(run(CREATED_IN_A_LOOP, &["back:1"], &[vector(&[1.0, -2.0])]), [vector(&[8.0, -16.0])]);
    let read = CREATED_IN_A_LOOP.replace("TensorArrayReadV3(ga,", "TensorArrayReadV3(a,");
    let message = message(&read, &["back:1"]);
    assert!(message.contains("only its gradient may be used there"), "{message}");
}

/// Returns a graph that grows an array in a loop over `Less(i, n)` and concatenates its elements.
fn concatenated_growing_array(n: &str) -> String {
    format!(
        "x: f32[2]
        {n}
        size = 0
        zero = 0
        ta = TensorArrayV3(size) dtype=f32 dynamic_size=true
        loop = While(zero, ta:1, ta, x, n) T=[i32,f32,res,f32,i32] cond=@cond body=@body
        all = TensorArrayConcatV3(ta, loop:1) dtype=f32
        fn cond(i: i32, flow: f32, ta: res, x: f32, n: i32) -> c/bool {{
        five = 5
        below = Less(i, five) T=i32
        wanted = Less(i, n) T=i32
        c = LogicalAnd(below, wanted)
        }}
        fn body(i: i32, flow: f32, ta: res, x: f32, n: i32) -> j/i32, next, ta/res, x, n/i32 {{
        one = 1
        j = AddV2(i, one) T=i32
        next = TensorArrayWriteV3(ta, i, x, flow) T=f32
        }}"
    )
}

#[test]
fn an_array_becomes_a_tensor_only_if_its_length_is_known() {
    let x = vector(&[1.0, 2.0]);
    let known = concatenated_growing_array("n = 3");
    assert_eq!(run(&known, &["all"], &[x]), [vector(&[1.0, 2.0, 1.0, 2.0, 1.0, 2.0])]);
    // The array has a capacity of five elements, but their number depends on the data.
    let error = message(&concatenated_growing_array("n: i32[]"), &["all"]);
    assert!(error.contains("TensorArray 'ta' is not known at compile time"), "{error}");
}
