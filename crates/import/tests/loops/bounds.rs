//! Upper bounds of loop iterations. Each iteration pushes once to a stack, so that the capacity of
//! the stack shows the bound that the importer found.

use crate::{capacities, evaluate, import, loops, message, module, run, values};
use shape::Literal;

/// Returns a graph with a loop over `i` from `start`, with a stack of `f32[7]` elements that is
/// unlimited in TensorFlow. The condition and the step can use `i`, an invariant `k`, the array
/// `x`, and a feed `n`.
fn counting(start: &str, condition: &str, step: &str, t: &str) -> String {
    format!(
        "x: f32[7]
         n: {t}[]
         unlimited = -1
         stack = StackV2(unlimited) elem_type=f32
         start = {start}
         k = {}
         loop = While(start, k, x, n, stack) T=[{t},{t},f32,{t},res] cond=@cond body=@body
         fn cond(i: {t}, k: {t}, x: f32, n: {t}, stack: res) -> c/bool {{
         {condition}
         }}
         fn body(i: {t}, k: {t}, x: f32, n: {t}, stack: res) -> j/{t}, k/{t}, y, n/{t}, stack/res {{
         {step}
         pushed = StackPushV2(stack, x) T=f32
         y = Neg(pushed) T=f32
         }}",
        if t == "i64" { "3L" } else { "3" },
    )
}

/// Returns a condition that compares `i` with a constant.
fn compare_with_constant(op: &str, limit: &str, t: &str) -> String {
    format!("l = {limit}\nc = {op}(i, l) T={t}")
}

fn add(step: &str, t: &str) -> String {
    format!("d = {step}\nj = AddV2(i, d) T={t}")
}

fn capacity(text: &str) -> i64 {
    let module = module(text, &["loop:2"]);
    let capacities = capacities(&module);
    assert_eq!((loops(&module), capacities.len()), (1, 1), "expected one loop with one buffer: {text}");
    capacities[0]
}

#[test]
fn every_comparison_bounds_a_loop_from_both_sides_in_both_directions_and_types() {
    for (start, op, limit, step, trips) in [
        (0, "Less", 10, 1, 10),
        (0, "Less", 10, 3, 4),
        (4, "Less", 5, 100, 1),
        (-3, "Less", 3, 2, 3),
        (0, "LessEqual", 10, 1, 11),
        (0, "LessEqual", 10, 3, 4),
        (0, "LessEqual", 9, 3, 4),
        (10, "Greater", 0, -1, 10),
        (10, "Greater", 0, -3, 4),
        (10, "GreaterEqual", 0, -2, 6),
        (10, "GreaterEqual", 1, -1, 10),
        (0, "NotEqual", 6, 2, 3),
        (6, "NotEqual", 0, -1, 6),
    ] {
        let mirrored = match op {
            "Less" => "Greater",
            "LessEqual" => "GreaterEqual",
            "Greater" => "Less",
            "GreaterEqual" => "LessEqual",
            other => other,
        };
        for (t, suffix) in [("i32", ""), ("i64", "L")] {
            let [start, limit] = [start, limit].map(|value| format!("{value}{suffix}"));
            let constant = format!("{step}{suffix}");
            let steps = [
                add(&constant, t),
                format!("d = {constant}\nj = AddV2(d, i) T={t}"),
                format!("d = {constant}\nj = Add(i, d) T={t}"),
                format!("d = {}{suffix}\nj = Sub(i, d) T={t}", -step),
                format!("d = {constant}\nh = AddV2(i, d) T={t}\nj = Identity(h) T={t}"),
            ];
            for step in steps {
                let text = counting(&start, &compare_with_constant(op, &limit, t), &step, t);
                assert_eq!(capacity(&text), trips, "{start} {op} {limit}: {step}");
            }
            let other_side = format!("l = {limit}\nc = {mirrored}(l, i) T={t}");
            let text = counting(&start, &other_side, &add(&constant, t), t);
            assert_eq!(capacity(&text), trips, "{limit} {mirrored} {start}");
        }
    }
}

#[test]
fn an_invariant_limit_is_as_good_as_a_constant() {
    assert_eq!(capacity(&counting("0", "c = Less(i, k) T=i32", &add("1", "i32"), "i32")), 3);
}

#[test]
fn a_loop_without_iterations_is_removed_and_returns_its_initial_values() {
    for (start, op, limit) in
        [(5, "Less", 5), (5, "Less", -1), (0, "Greater", 0), (4, "NotEqual", 4), (3, "GreaterEqual", 4)]
    {
        let text = counting(
            &start.to_string(),
            &compare_with_constant(op, &limit.to_string(), "i32"),
            &add("1", "i32"),
            "i32",
        );
        let module = module(&text, &["loop:2", "loop"]);
        assert_eq!((loops(&module), capacities(&module)), (0, vec![]), "{start} {op} {limit}");
        let x = Literal::from_elements(&[7], &[1f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        let results = evaluate(&module, &[x.clone(), Literal::scalar(9i32)]);
        assert_eq!(results, [x, Literal::scalar(start)]);
    }
}

/// Nodes that compute `s`, a truth value that depends on the data.
const UNKNOWN: &str =
    "zero = i32[1] 0\nsum = Sum(x, zero) T=f32 Tidx=i32\nlittle = 10.0\ns = Less(sum, little) T=f32";

#[test]
fn a_conjunction_is_bounded_by_its_smallest_known_bound() {
    let and = |terms: &str| counting("0", terms, &add("1", "i32"), "i32");
    let unknown_first = format!("{UNKNOWN}\nl = 8\nb = Less(i, l) T=i32\nc = LogicalAnd(s, b)");
    let unknown_last = format!("{UNKNOWN}\nl = 8\nb = Less(i, l) T=i32\nc = LogicalAnd(b, s)");
    let both = "l = 8\nm = 5\na = Less(i, l) T=i32\nb = Less(i, m) T=i32\nc = LogicalAnd(a, b)";
    let nested = format!(
        "{UNKNOWN}\nl = 8\nm = 5\na = Less(i, l) T=i32\nb = Less(i, m) T=i32\nd = LogicalAnd(a, s)\nc = LogicalAnd(d, b)"
    );
    let feed = "l = 8\na = Less(i, n) T=i32\nb = Less(i, l) T=i32\nc = LogicalAnd(a, b)";
    for (terms, trips) in [(&*unknown_first, 8), (&*unknown_last, 8), (both, 5), (&*nested, 5), (feed, 8)] {
        assert_eq!(capacity(&and(terms)), trips, "{terms}");
    }
}

#[test]
fn a_disjunction_needs_all_its_terms() {
    let known = "l = 8\nm = 5\na = Less(i, l) T=i32\nb = Less(i, m) T=i32\nc = LogicalOr(a, b)";
    assert_eq!(capacity(&counting("0", known, &add("1", "i32"), "i32")), 8);
    let unknown = format!("{UNKNOWN}\nl = 8\nb = Less(i, l) T=i32\nc = LogicalOr(s, b)");
    let text = counting("0", &unknown, &add("1", "i32"), "i32");
    let message = message(&text, &["loop:2"]);
    assert!(message.contains("--loop-bound loop=N"), "{message}");
}

#[test]
fn a_negated_condition_bounds_too() {
    let text =
        counting("0", "l = 10\nb = GreaterEqual(i, l) T=i32\nc = LogicalNot(b)", &add("1", "i32"), "i32");
    assert_eq!(capacity(&text), 10);
}

/// `min(6, max(1, max(lengths)))`, as `dynamic_rnn` guards its loop.
const GUARDED: &str = "x: f32[7]
    lengths: i32[3]
    unlimited = -1
    stack = StackV2(unlimited) elem_type=f32
    start = 0
    axis = i32[1] 0
    longest = Max(lengths, axis) T=i32 Tidx=i32
    one = 1
    least = Maximum(one, longest) T=i32
    steps = 6
    limit = Minimum(steps, least) T=i32
    loop = While(start, limit, x, stack) T=[i32,i32,f32,res] cond=@cond body=@body
    fn cond(i: i32, limit: i32, x: f32, stack: res) -> c/bool {
    c = Less(i, limit) T=i32
    }
    fn body(i: i32, limit: i32, x: f32, stack: res) -> j/i32, limit/i32, y, stack/res {
    one = 1
    j = AddV2(i, one) T=i32
    pushed = StackPushV2(stack, x) T=f32
    y = AddV2(pushed, pushed) T=f32
    }";

#[test]
fn a_data_dependent_limit_is_bounded_by_its_range() {
    assert_eq!(capacities(&module(GUARDED, &["loop:2"])), [6]);
    for (lengths, doublings) in [([2, 4, 3], 4), ([0, 0, 0], 1), ([9, 9, 9], 6), ([-5, 6, 0], 6)] {
        let results = run(
            GUARDED,
            &["loop:2", "loop"],
            &[Literal::from_elements(&[7], &[1f32; 7]), Literal::from_elements(&[3], &lengths)],
        );
        assert_eq!(values::<f32>(&results[0]), [2f32.powi(doublings); 7]);
        assert_eq!(values::<i32>(&results[1]), [doublings]);
    }
}

/// A loop whose end depends on the data, with at most 8 iterations, and a second loop that counts
/// down from the first loop's counter.
const THERE_AND_BACK: &str = "x: f32[7]
    unlimited = -1
    stack = StackV2(unlimited) elem_type=f32
    other = StackV2(unlimited) elem_type=f32
    zero = 0
    there = While(zero, x, stack) T=[i32,f32,res] cond=@cond body=@body
    back = While(there, x, stack, other, ^there) T=[i32,f32,res,res] cond=@back_cond body=@back_body
    fn cond(i: i32, x: f32, stack: res) -> c/bool {
    axis = i32[1] 0
    sum = Sum(x, axis) T=f32 Tidx=i32
    little = 100.0
    small = Less(sum, little) T=f32
    most = 8
    few = Less(i, most) T=i32
    c = LogicalAnd(small, few)
    }
    fn body(i: i32, x: f32, stack: res) -> j/i32, y, stack/res {
    one = 1
    j = AddV2(i, one) T=i32
    pushed = StackPushV2(stack, x) T=f32
    y = AddV2(pushed, pushed) T=f32
    }
    fn back_cond(i: i32, x: f32, stack: res, other: res) -> c/bool {
    one = 1
    c = GreaterEqual(i, one) T=i32
    }
    fn back_body(i: i32, x: f32, stack: res, other: res) -> j/i32, y, stack/res, other/res {
    one = 1
    j = Sub(i, one) T=i32
    popped = StackPopV2(stack) elem_type=f32
    pushed = StackPushV2(other, popped) T=f32
    y = AddV2(x, pushed) T=f32
    }";

#[test]
fn a_backward_loop_is_bounded_by_the_forward_loop_whose_counter_it_uses() {
    assert_eq!(capacities(&module(THERE_AND_BACK, &["back:1"])), [8, 8]);
    // The sums 7, 14, 28, and 56 are below 100: four iterations push x, 2x, 4x, and 8x.
    let results =
        run(THERE_AND_BACK, &["there", "back", "back:1"], &[Literal::from_elements(&[7], &[1f32; 7])]);
    assert_eq!((values::<i32>(&results[0]), values::<i32>(&results[1])), (vec![4], vec![0]));
    assert_eq!(values::<f32>(&results[2]), [16f32; 7]);
    // No iteration runs: nothing is pushed or popped.
    let results = run(THERE_AND_BACK, &["there", "back:1"], &[Literal::from_elements(&[7], &[50f32; 7])]);
    assert_eq!(values::<i32>(&results[0]), [0]);
    assert_eq!(values::<f32>(&results[1]), [50f32; 7]);
    // The bound stops the loop: 8 iterations push 2^-7 to 1.
    let results =
        run(THERE_AND_BACK, &["there", "back:1"], &[Literal::from_elements(&[7], &[0.0078125f32; 7])]);
    assert_eq!(values::<i32>(&results[0]), [8]);
    assert_eq!(values::<f32>(&results[1]), [2f32; 7]);
}

/// Two nested loops. The inner loop runs `i + 1` times in iteration `i` of the outer loop.
const NESTED: &str = "x: f32[7]
    unlimited = -1
    stack = StackV2(unlimited) elem_type=f32
    zero = 0
    loop = While(zero, x, stack) T=[i32,f32,res] cond=@outer_cond body=@outer
    fn outer_cond(i: i32, x: f32, stack: res) -> c/bool {
    l = 4
    c = Less(i, l) T=i32
    }
    fn outer(i: i32, x: f32, stack: res) -> j/i32, inner:2/f32, stack/res {
    one = 1
    j = AddV2(i, one) T=i32
    zero = 0
    inner = While(zero, i, x, stack) T=[i32,i32,f32,res] cond=@inner_cond body=@inner_body
    }
    fn inner_cond(k: i32, i: i32, x: f32, stack: res) -> c/bool {
    c = LessEqual(k, i) T=i32
    }
    fn inner_body(k: i32, i: i32, x: f32, stack: res) -> m/i32, i/i32, y, stack/res {
    one = 1
    m = AddV2(k, one) T=i32
    pushed = StackPushV2(stack, x) T=f32
    y = AddV2(pushed, pushed) T=f32
    }";

#[test]
fn bounds_of_nested_loops_multiply() {
    // The inner loop runs at most 4 times, when i is 3.
    assert_eq!(capacities(&module(NESTED, &["loop:1"])), [16]);
    let results = run(NESTED, &["loop", "loop:1"], &[Literal::from_elements(&[7], &[1f32; 7])]);
    assert_eq!(values::<i32>(&results[0]), [4]);
    assert_eq!(values::<f32>(&results[1]), [1024f32; 7], "1 + 2 + 3 + 4 doublings");
}

#[test]
fn a_limit_is_found_through_calls_and_branches() {
    let text = "x: f32[7]
        p: bool[]
        unlimited = -1
        stack = StackV2(unlimited) elem_type=f32
        five = 5
        nine = 9
        limit = If(p, five, nine) Tcond=bool Tin=[i32,i32] Tout=[i32] then_branch=@first else_branch=@second
        call = StatefulPartitionedCall(limit, x, stack) Tin=[i32,f32,res] Tout=[f32] f=@looping
        fn first(a: i32, b: i32) -> c/i32 {
        c = Identity(a) T=i32
        }
        fn second(a: i32, b: i32) -> c/i32 {
        c = Identity(b) T=i32
        }
        fn looping(limit: i32, x: f32, stack: res) -> loop:2 {
        zero = 0
        loop = While(zero, limit, x, stack) T=[i32,i32,f32,res] cond=@cond body=@body
        }
        fn cond(i: i32, limit: i32, x: f32, stack: res) -> c/bool {
        c = Less(i, limit) T=i32
        }
        fn body(i: i32, limit: i32, x: f32, stack: res) -> j/i32, limit/i32, y, stack/res {
        one = 1
        j = AddV2(i, one) T=i32
        y = StackPushV2(stack, x) T=f32
        }";
    assert_eq!(capacities(&module(text, &["call"])), [9], "expected the larger limit of the two branches");
}

#[test]
fn a_limit_from_a_feed_is_refused_with_loop_condition_and_feed() {
    let text = counting("0", "c = Less(i, n) T=i32", &add("1", "i32"), "i32");
    let message = message(&text, &["loop:2"]);
    for part in [
        "stack 'stack' needs a slot for each iteration",
        "the loop 'loop' (op 'While')",
        "node 'loop/c' (op 'Less')",
        "the feed 'n:0'",
        "--loop-bound loop=N",
    ] {
        assert!(message.contains(part), "{part} is missing: {message}");
    }
}

#[test]
fn a_loop_without_stacks_needs_no_bound() {
    let text = "x: f32[7]
        n: i32[]
        zero = 0
        loop = While(zero, n, x) T=[i32,i32,f32] cond=@cond body=@body
        fn cond(i: i32, n: i32, x: f32) -> c/bool {
        c = Less(i, n) T=i32
        }
        fn body(i: i32, n: i32, x: f32) -> j/i32, n/i32, y {
        one = 1
        j = AddV2(i, one) T=i32
        y = AddV2(x, x) T=f32
        }";
    for (n, factor) in [(5, 32f32), (0, 1.0), (-2, 1.0)] {
        let results = run(text, &["loop:2"], &[Literal::from_elements(&[7], &[1f32; 7]), Literal::scalar(n)]);
        assert_eq!(values::<f32>(&results[0]), [factor; 7]);
    }
}

/// Pushes `n` times, where `n` is a feed, then pops once.
const FED: &str = "x: f32[7]
    n: i32[]
    unlimited = -1
    stack = StackV2(unlimited) elem_type=f32
    zero = 0
    a/while/while_context = While(zero, n, x, stack) T=[i32,i32,f32,res] cond=@cond body=@body
    top = StackPopV2(stack, ^a/while/while_context) elem_type=f32
    fn cond(i: i32, n: i32, x: f32, stack: res) -> c/bool {
    c = Less(i, n) T=i32
    }
    fn body(i: i32, n: i32, x: f32, stack: res) -> j/i32, n/i32, y, stack/res {
    one = 1
    j = AddV2(i, one) T=i32
    pushed = StackPushV2(stack, x) T=f32
    y = AddV2(pushed, pushed) T=f32
    }";

#[test]
fn a_promised_bound_sets_the_capacity_and_stops_the_loop() {
    for name in ["a/while", "a/while/while_context"] {
        let module = import(FED, &["a/while/while_context", "a/while/while_context:2", "top"], &[(name, 3)])
            .expect("the promise should bound the loop");
        assert_eq!(capacities(&module), [3]);
        // A limit up to the promised bound has its normal effect; beyond it the loop stops at the
        // bound.
        for (n, iterations) in [(2, 2), (3, 3), (4, 3), (1000, 3), (0, 0)] {
            let x = Literal::from_elements(&[7], &[1f32; 7]);
            let results = evaluate(&module, &[x, Literal::scalar(n)]);
            assert_eq!(values::<i32>(&results[0]), [iterations]);
            assert_eq!(values::<f32>(&results[1]), [2f32.powi(iterations); 7]);
            if iterations > 0 {
                assert_eq!(values::<f32>(&results[2]), [2f32.powi(iterations - 1); 7]);
            }
        }
    }
    let module = import(FED, &["a/while/while_context:2"], &[("a/while", 0)])
        .expect("the promise should bound the loop");
    assert_eq!(loops(&module), 0);
}

/// Writes `x` to a growing array and doubles `x`, until its sum reaches the feed `limit`.
const GROWING: &str = "x: f32[2]
    limit: f32[]
    size = 0
    ta = TensorArrayV3(size) dtype=f32 dynamic_size=true
    zero = 0
    a/while/while_context = While(zero, x, limit, ta, ta:1) T=[i32,f32,f32,res,f32] cond=@cond body=@body
    number = TensorArraySizeV3(ta, a/while/while_context:4)
    one = 1
    second = TensorArrayReadV3(ta, one, a/while/while_context:4) dtype=f32
    fn cond(i: i32, x: f32, limit: f32, ta: res, flow: f32) -> c/bool {
    axis = 0
    total = Sum(x, axis) T=f32 Tidx=i32
    c = Less(total, limit) T=f32
    }
    fn body(i: i32, x: f32, limit: f32, ta: res, flow: f32) -> j/i32, y, limit/f32, ta/res, w {
    one = 1
    j = AddV2(i, one) T=i32
    y = AddV2(x, x) T=f32
    w = TensorArrayWriteV3(ta, i, x, flow) T=f32
    }";

#[test]
fn a_promised_bound_also_bounds_the_loop_counter() {
    let fetches = ["number", "second", "a/while/while_context"];
    let module = import(GROWING, &fetches, &[("a/while", 4)]).expect("the promise should bound the loop");
    let x = Literal::from_elements(&[2], &[1f32, 1.0]);
    // The sums are 2, 4, 8, 16.
    for (limit, iterations) in [(3f32, 1), (7.0, 2), (16.0, 3), (1e6, 4)] {
        let results = evaluate(&module, &[x.clone(), Literal::scalar(limit)]);
        let second = if iterations > 1 { 2f32 } else { 0.0 };
        assert_eq!(values::<i32>(&results[0]), [iterations], "{limit}");
        assert_eq!(values::<f32>(&results[1]), [second; 2], "{limit}");
        assert_eq!(values::<i32>(&results[2]), [iterations], "{limit}");
    }
    let message = message(GROWING, &fetches);
    assert!(message.contains("'ta'") && message.contains("--loop-bound a/while=N"), "{message}");
}

#[test]
fn a_promise_must_name_a_loop_and_be_possible() {
    let error = |promise: (&str, i64)| {
        import(FED, &["top"], &[promise]).expect_err("the import should fail").to_string()
    };
    let unknown = error(("b/while", 3));
    assert!(unknown.contains("no loop of that name") && unknown.contains("'a/while'"), "{unknown}");
    assert!(error(("a/while", -1)).contains("expected a number of iterations >= 0"));
}

#[test]
fn a_promise_above_the_known_bound_adds_no_guard() {
    let text = counting("0", &compare_with_constant("Less", "10", "i32"), &add("1", "i32"), "i32");
    let without = module(&text, &["loop:2"]);
    let with = import(&text, &["loop:2"], &[("loop", 50)]).expect("the promise should bound the loop");
    assert_eq!(with.to_text(), without.to_text());
    let fewer =
        import(&text, &["loop:2", "loop"], &[("loop", 4)]).expect("the promise should bound the loop");
    assert_eq!(capacities(&fewer), [4]);
    let x = Literal::from_elements(&[7], &[1f32; 7]);
    assert_eq!(values::<i32>(&evaluate(&fewer, &[x, Literal::scalar(0i32)])[1]), [4]);
}

#[test]
fn a_loop_counter_is_a_constant_after_the_loop() {
    let text = "x: f32[7]
        zero = 0
        loop = While(zero, x) T=[i32,f32] cond=@cond body=@body
        filled = Fill(sizes, one)
        one = 1.0
        sizes = Pack(loop) N=1 T=i32
        fn cond(i: i32, x: f32) -> c/bool {
        l = 10
        c = Less(i, l) T=i32
        }
        fn body(i: i32, x: f32) -> j/i32, y {
        d = 4
        j = AddV2(i, d) T=i32
        y = AddV2(x, x) T=f32
        }";
    let text = text.replace("filled = Fill(sizes, one)", "filled = Fill(sizes, one) T=f32 index_type=i32");
    let results = run(&text, &["filled", "loop:1"], &[Literal::from_elements(&[7], &[1f32; 7])]);
    assert_eq!(values::<f32>(&results[0]), [1f32; 12], "the counter should be 0, 4, 8, and finally 12");
    assert_eq!(values::<f32>(&results[1]), [8f32; 7]);
}

#[test]
fn a_condition_of_branches_is_treated_as_a_conjunction() {
    // The form of `i < 6 and sum(x) < 10` in graphs: the else branch returns the first term, or
    // false.
    for other in ["same", "never"] {
        let text = format!(
            "{}
             fn more(b: bool, x: f32) -> s/bool {{
             {UNKNOWN}
             }}
             fn same(b: bool, x: f32) -> c/bool {{
             c = Identity(b) T=bool
             }}
             fn never(b: bool, x: f32) -> c/bool {{
             c = false
             }}",
            counting(
                "0",
                &format!(
                    "l = 6\nb = Less(i, l) T=i32\nc = If(b, b, x) Tcond=bool Tin=[bool,f32] Tout=[bool] then_branch=@more \
                     else_branch=@{other}"
                ),
                &add("1", "i32"),
                "i32"
            )
        );
        assert_eq!(capacity(&text), 6, "{other}");
    }
}

/// Returns a graph whose loop appends one row to an array in each iteration.
fn append_rows(n: &str) -> String {
    format!(
        "x: f32[1,2]
        {n}
        zero = 0
        loop = While(zero, x, n) T=[i32,f32,i32] cond=@cond body=@body
        result = Identity(loop:1) T=f32
        fn cond(i: i32, rows: f32, n: i32) -> c/bool {{
        four = 4
        below = Less(i, four) T=i32
        wanted = Less(i, n) T=i32
        c = LogicalAnd(below, wanted)
        }}
        fn body(i: i32, rows: f32, n: i32) -> j/i32, more, n/i32 {{
        one = 1
        j = AddV2(i, one) T=i32
        number = Cast(j) SrcT=i32 DstT=f32
        sizes = i32[2] 1 2
        row = Fill(sizes, number) T=f32 index_type=i32
        axis = 0
        more = ConcatV2(rows, row, axis) T=f32 N=2 Tidx=i32
        }}"
    )
}

#[test]
fn an_array_whose_shape_grows_needs_a_known_number_of_iterations() {
    let text = append_rows("n = 2");
    let module = import(&text, &["result"], &[]).expect("two known iterations should be unrolled");
    let x = Literal::from_elements(&[1, 2], &[7f32, 8.0]);
    let rows = Literal::from_elements(&[3, 2], &[7f32, 8.0, 1.0, 1.0, 2.0, 2.0]);
    assert_eq!(evaluate(&module, &[x]), [rows]);
    assert_eq!(loops(&module), 0, "the loop should be unrolled, because a shape changes");
    let message = message(&append_rows("n: i32[]"), &["result"]);
    assert!(message.contains("changes its type or shape between the beginning and the end"), "{message}");
}

#[test]
fn a_condition_is_a_scalar_of_truth_values() {
    let with = |condition: &str, t: &str| {
        format!(
            "x: f32[7]
             start = 0
             loop = While(start, x) T=[i32,f32] cond=@cond body=@body
             fn cond(i: i32, x: f32) -> c/{t} {{
             {condition}
             }}
             fn body(i: i32, x: f32) -> j/i32, x {{
             one = 1
             j = AddV2(i, one) T=i32
             }}"
        )
    };
    for (condition, t, found) in [
        ("c = Greater(x, x) T=f32", "bool", "pred[7]"),
        ("c = Neg(i) T=i32", "i32", "s32[]"),
        ("at = 0\nc = Sum(x, at) T=f32 Tidx=i32", "f32", "f32[]"),
    ] {
        let message = message(&with(condition, t), &["loop:0"]);
        assert!(message.contains("'loop'"), "{message}");
        assert!(message.contains(&format!("expected a scalar of type bool, got {found}")), "{message}");
    }
}
