//! State of loops: values, invariants, variables, and the properties that must not change.

use crate::{evaluate, import, loops, message, module, run, values};
use shape::Literal;

/// Returns the size of the largest tuple that a loop of the module carries.
fn state_size(module: &hlo::Module) -> usize {
    let all = module.computations().flat_map(|(_, computation)| computation.instructions());
    let whiles = all.filter(|(_, instruction)| matches!(instruction.op(), hlo::Op::While { .. }));
    whiles.filter_map(|(_, instruction)| instruction.shape().as_tuple().map(<[_]>::len)).max().unwrap_or(0)
}

#[test]
fn variables_that_a_body_assigns_keep_their_values_from_iteration_to_iteration() {
    let text = "x: f32[2]
        var v f32[2]
        zero = 0
        loop = While(zero, x, v) T=[i32,f32,res] cond=@cond body=@body
        after = ReadVariableOp(v, ^loop) dtype=f32
        fn cond(i: i32, x: f32, v: res) -> c/bool {
        l = 3
        c = Less(i, l) T=i32
        }
        fn body(i: i32, x: f32, v: res) -> j/i32, x, v/res ^w {
        one = 1
        j = AddV2(i, one) T=i32
        old = ReadVariableOp(v) dtype=f32
        two = AddV2(old, old) T=f32
        new = AddV2(two, x) T=f32
        w = AssignVariableOp(v, new) dtype=f32
        }";
    let [x, v] = [[1f32, 10.0], [0.5, 0.0]].map(|values| Literal::from_elements(&[2], &values));
    let results = run(text, &["after"], &[x, v]);
    // The values of v are 0.5, 2, 5, 11 and 0, 10, 30, 70.
    assert_eq!(values::<f32>(&results[0]), [11.0, 70.0]);
    assert_eq!(results[1], results[0], "the variable should have its new value");
}

#[test]
fn a_condition_reads_the_values_that_the_body_assigned() {
    let text = "x: f32[2]
        var v i32[]
        loop = While(x, v) T=[f32,res] cond=@cond body=@body
        after = ReadVariableOp(v, ^loop) dtype=i32
        fn cond(x: f32, v: res) -> c/bool {
        now = ReadVariableOp(v) dtype=i32
        l = 4
        c = Less(now, l) T=i32
        }
        fn body(x: f32, v: res) -> y, v/res ^w {
        one = 1
        w = AssignAddVariableOp(v, one) dtype=i32
        y = AddV2(x, x) T=f32
        }";
    let x = Literal::from_elements(&[2], &[1f32, 10.0]);
    let results = run(text, &["loop", "after"], &[x, Literal::scalar(1i32)]);
    assert_eq!(values::<f32>(&results[0]), [8.0, 80.0]);
    assert_eq!(values::<i32>(&results[1]), [4]);
}

#[test]
fn invariants_through_functions_and_loops_are_not_carried_and_constants_stay_constants() {
    // The axis passes through an Identity, a call, and an inner loop, and is still a constant for
    // the Sum.
    let text = "x: f32[2,2]
        axis = i32[1] 1
        zero = 0
        loop = While(zero, x, axis) T=[i32,f32,i32] cond=@cond body=@body
        fn cond(i: i32, x: f32, axis: i32) -> c/bool {
        l = 3
        c = Less(i, l) T=i32
        }
        fn body(i: i32, x: f32, axis: i32) -> j/i32, y, inner:1/i32 {
        one = 1
        j = AddV2(i, one) T=i32
        a = PartitionedCall(axis) Tin=[i32] Tout=[i32] f=@same
        zero = 0
        inner = StatelessWhile(zero, a) T=[i32,i32] cond=@inner_cond body=@inner_body
        s = Sum(x, axis) T=f32 Tidx=i32 keep_dims=true
        y = Sub(x, s) T=f32
        }
        fn same(a: i32) -> b/i32 {
        b = Identity(a) T=i32
        }
        fn inner_cond(i: i32, a: i32) -> c/bool {
        l = 2
        c = Less(i, l) T=i32
        }
        fn inner_body(i: i32, a: i32) -> j/i32, a/i32 {
        one = 1
        j = AddV2(i, one) T=i32
        }";
    let x = Literal::from_elements(&[2, 2], &[1f32, 2.0, 3.0, 5.0]);
    let results = run(text, &["loop:1", "loop:2"], &[x]);
    // Each of the three iterations turns a row (a, b) into (-b, -a).
    assert_eq!(values::<f32>(&results[0]), [-2.0, -1.0, -5.0, -3.0]);
    assert_eq!(values::<i32>(&results[1]), [1]);
    assert_eq!(state_size(&module(text, &["loop:1"])), 2, "expected the counter and x");
}

#[test]
fn a_loop_in_a_branch_and_a_branch_in_a_loop() {
    let text = "x: f32[2]
        p: bool[]
        choice = If(p, x) Tcond=bool Tin=[f32] Tout=[f32] then_branch=@three else_branch=@five
        fn three(x: f32) -> loop:1 {
        zero = 0
        three = 3
        loop = While(zero, x, three) T=[i32,f32,i32] cond=@cond body=@body
        }
        fn five(x: f32) -> loop:1 {
        zero = 0
        five = 5
        loop = While(zero, x, five) T=[i32,f32,i32] cond=@cond body=@body
        }
        fn cond(i: i32, x: f32, l: i32) -> c/bool {
        c = Less(i, l) T=i32
        }
        fn body(i: i32, x: f32, l: i32) -> j/i32, y, l/i32 {
        one = 1
        j = AddV2(i, one) T=i32
        half = 2
        odd = Less(i, half) T=i32
        y = If(odd, x) Tcond=bool Tin=[f32] Tout=[f32] then_branch=@double else_branch=@minus
        }
        fn double(x: f32) -> y {
        y = AddV2(x, x) T=f32
        }
        fn minus(x: f32) -> y {
        y = Neg(x) T=f32
        }";
    let x = Literal::from_elements(&[2], &[1f32, 2.0]);
    let result = |p: bool| values::<f32>(&run(text, &["choice"], &[x.clone(), Literal::scalar(p)])[0]);
    // x is doubled twice, then negated once or three times.
    assert_eq!((result(true), result(false)), (vec![-4.0, -8.0], vec![-4.0, -8.0]));
    assert_eq!(loops(&module(text, &["choice"])), 2);
}

#[test]
fn swapped_values_are_carried() {
    let text = "x: f32[2]
        y: f32[2]
        zero = 0
        loop = While(zero, x, y) T=[i32,f32,f32] cond=@cond body=@body
        fn cond(i: i32, x: f32, y: f32) -> c/bool {
        l = 3
        c = Less(i, l) T=i32
        }
        fn body(i: i32, x: f32, y: f32) -> j/i32, y, x {
        one = 1
        j = AddV2(i, one) T=i32
        }";
    let [x, y] = [[1f32, 2.0], [3.0, 4.0]].map(|values| Literal::from_elements(&[2], &values));
    assert_eq!(run(text, &["loop:1", "loop:2"], &[x.clone(), y.clone()]), [y, x]);
}

#[test]
fn a_shape_that_changes_is_refused_with_the_variable() {
    let text = "x: f32[2]
        n: i32[]
        zero = 0
        loop = While(zero, x, n) T=[i32,f32,i32] cond=@cond body=@body
        fn cond(i: i32, grown: f32, n: i32) -> c/bool {
        c = Less(i, n) T=i32
        }
        fn body(i: i32, grown: f32, n: i32) -> j/i32, y, n/i32 {
        one = 1
        j = AddV2(i, one) T=i32
        zero = 0
        y = ConcatV2(grown, grown, zero) N=2 T=f32 Tidx=i32
        }";
    let message = message(text, &["loop:1"]);
    for part in ["loop variable 1 ('grown')", "f32[2]", "f32[4]", "'loop'"] {
        assert!(message.contains(part), "{part} is missing: {message}");
    }
}

#[test]
fn a_condition_that_assigns_is_refused() {
    let text = "x: f32[2]
        var v f32[2]
        loop = While(x, v) T=[f32,res] cond=@cond body=@body
        fn cond(x: f32, v: res) -> c/bool ^w {
        c = true
        w = AssignVariableOp(v, x) dtype=f32
        }
        fn body(x: f32, v: res) -> x, v/res {
        y = Neg(x) T=f32
        }";
    let message = message(text, &["loop"]);
    assert!(message.contains("the condition of the loop 'loop' writes 'v'"), "{message}");
}

#[test]
fn import_time_is_not_exponential_in_the_depth_of_nested_loops() {
    // Twelve nested loops of two iterations each, and a counter that passes through all of them and
    // is part of the outermost condition.
    const DEPTH: usize = 12;
    let mut text =
        "x: f32[]\nzero = 0\nloop = While(zero, zero, x) T=[i32,i32,f32] cond=@outer body=@body0\n\
                    fn outer(i: i32, k: i32, x: f32) -> c/bool {\nl = 2\nm = 1000000\na = Less(i, l) T=i32\n\
                    b = Less(k, m) T=i32\nc = LogicalAnd(a, b)\n}\n\
                    fn cond(i: i32, k: i32, x: f32) -> c/bool {\nl = 2\nc = Less(i, l) T=i32\n}\n"
            .to_owned();
    for depth in 0..DEPTH {
        let (nodes, results) = if depth + 1 == DEPTH {
            ("y = AddV2(x, f) T=f32\nf = 1.0\nn = AddV2(k, one) T=i32".to_owned(), "n/i32, y")
        } else {
            let next = depth + 1;
            let inner = format!("w = While(zero, k, x) T=[i32,i32,f32] cond=@cond body=@body{next}");
            (format!("zero = 0\n{inner}"), "w:1/i32, w:2")
        };
        text += &format!(
            "fn body{depth}(i: i32, k: i32, x: f32) -> j/i32, {results} {{\none = 1\nj = AddV2(i, one) T=i32\n{nodes}\n}}\n"
        );
    }
    assert_eq!(loops(&module(&text, &["loop:2"])), DEPTH);
    let results = run(&text, &["loop:1", "loop:2"], &[Literal::scalar(0f32)]);
    assert_eq!(results, [Literal::scalar(1 << DEPTH), Literal::scalar((1 << DEPTH) as f32)]);
}

/// Returns a graph whose loop adds two numbers to a total, a single number before the first
/// iteration, until their sum reaches a limit.
fn add_to_a_number(going: &str) -> String {
    format!(
        "x: f32[2]
        limit: f32[]
        {going}
        total = f32[] 0.5
        loop = While(going, total, x, limit) T=[bool,f32,f32,f32] cond=@cond body=@body
        fn cond(going: bool, total: f32, x: f32, limit: f32) -> going/bool {{
        }}
        fn body(going: bool, total: f32, x: f32, limit: f32) -> c/bool, new, x, limit {{
        new = AddV2(total, x) T=f32
        zero = i32[1] 0
        sum = Sum(new, zero) T=f32 Tidx=i32 keep_dims=false
        c = Less(sum, limit) T=f32
        }}"
    )
}

#[test]
fn the_first_iteration_may_change_a_shape_that_the_others_keep() {
    let text = add_to_a_number("going = true");
    let x = Literal::from_elements(&[2], &[1f32, 2.0]);
    let totals = |promises: &[(&str, i64)], limit: f32| {
        let module = import(&text, &["loop:1"], promises).expect("the first iteration should be apart");
        assert_eq!(loops(&module), 1, "the other iterations should be a loop");
        values::<f32>(&evaluate(&module, &[x.clone(), Literal::scalar(limit)])[0])
    };
    // The sums are 4, 7, and 10.
    for (limit, total) in [(3.0, [1.5, 2.5]), (6.5, [2.5, 4.5]), (7.5, [3.5, 6.5])] {
        assert_eq!(totals(&[], limit), total, "{limit}");
    }
    // The iteration that is apart counts.
    for (most, total) in [(1, [1.5, 2.5]), (2, [2.5, 4.5]), (5, [3.5, 6.5])] {
        assert_eq!(totals(&[("loop", most)], 7.5), total, "{most}");
    }
}

#[test]
fn a_loop_that_may_not_run_must_not_change_a_shape() {
    let message = message(&add_to_a_number("going: bool[]"), &["loop:1"]);
    assert!(message.contains("shapes differ: f32[] and f32[2]"), "{message}");
}
