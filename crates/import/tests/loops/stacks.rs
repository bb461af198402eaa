//! Stacks: the order of popped elements, and a capacity for all elements that can be pushed.

use crate::{capacities, message, module, run};
use shape::Literal;

fn ones(factor: f32) -> Literal {
    Literal::from_elements(&[7], &[factor; 7])
}

/// Returns a graph with a loop of five iterations, which runs the nodes `body`, followed by `pops`
/// pops from the stack.
fn pushing(body: &str, pops: usize) -> String {
    let pops: String = (0..pops)
        .map(|k| {
            let before = if k == 0 { "loop".to_owned() } else { format!("pop{}", k - 1) };
            format!("pop{k} = StackPopV2(stack, ^{before}) elem_type=f32\n")
        })
        .collect();
    format!(
        "x: f32[7]
         p: bool[]
         unlimited = -1
         stack = StackV2(unlimited) elem_type=f32
         zero = 0
         loop = While(zero, x, p, stack) T=[i32,f32,bool,res] cond=@cond body=@body
         {pops}
         fn cond(i: i32, x: f32, p: bool, stack: res) -> c/bool {{
         l = 5
         c = Less(i, l) T=i32
         }}
         fn body(i: i32, x: f32, p: bool, stack: res) -> j/i32, y, p/bool, stack/res {{
         one = 1
         j = AddV2(i, one) T=i32
         y = AddV2(x, x) T=f32
         {body}
         }}
         fn push(x: f32, stack: res) -> a {{
         a = StackPushV2(stack, x) T=f32
         }}
         fn push_twice(x: f32, stack: res) -> b {{
         m = Neg(x) T=f32
         a = StackPushV2(stack, m) T=f32
         b = StackPushV2(stack, x, ^a) T=f32
         }}
         fn keep(x: f32, stack: res) -> a {{
         a = Identity(x) T=f32
         }}"
    )
}

#[test]
fn elements_are_popped_in_reverse_order() {
    let text = pushing("a = StackPushV2(stack, x) T=f32", 3);
    assert_eq!(capacities(&module(&text, &["pop0"])), [5]);
    let results = run(&text, &["pop0", "pop1", "pop2"], &[ones(1.0), Literal::scalar(true)]);
    assert_eq!(results, [ones(16.0), ones(8.0), ones(4.0)]);
}

#[test]
fn a_second_push_in_the_loop_doubles_the_capacity() {
    let text =
        pushing("a = StackPushV2(stack, x) T=f32\nm = Neg(x) T=f32\nb = StackPushV2(stack, m, ^a) T=f32", 3);
    assert_eq!(capacities(&module(&text, &["pop0"])), [10]);
    let results = run(&text, &["pop0", "pop1", "pop2"], &[ones(1.0), Literal::scalar(true)]);
    assert_eq!(results, [ones(-16.0), ones(16.0), ones(-8.0)]);
}

#[test]
fn a_push_under_a_condition_counts_as_if_it_ran() {
    let branch = |then: &str, other: &str| {
        let choice = format!(
            "a = If(p, x, stack) Tcond=bool Tin=[f32,res] Tout=[f32] then_branch=@{then} else_branch=@{other}"
        );
        pushing(&choice, 2)
    };
    let text = branch("push", "keep");
    assert_eq!(capacities(&module(&text, &["pop0"])), [5]);
    assert_eq!(run(&text, &["pop0", "pop1"], &[ones(1.0), Literal::scalar(true)]), [ones(16.0), ones(8.0)]);
    // Only one branch runs, so the branch with more pushes determines the capacity.
    assert_eq!(capacities(&module(&branch("push", "push"), &["pop0"])), [5]);
    let text = branch("push_twice", "push");
    assert_eq!(capacities(&module(&text, &["pop0"])), [10]);
    let text = branch("push", "push_twice");
    assert_eq!(capacities(&module(&text, &["pop0"])), [10]);
    assert_eq!(run(&text, &["pop0", "pop1"], &[ones(1.0), Literal::scalar(true)]), [ones(16.0), ones(8.0)]);
    assert_eq!(
        run(&text, &["pop0", "pop1"], &[ones(1.0), Literal::scalar(false)]),
        [ones(16.0), ones(-16.0)]
    );
}

#[test]
fn two_stacks_share_a_loop() {
    let text = "x: f32[7]
        unlimited = -1
        stack = StackV2(unlimited) elem_type=f32
        other = StackV2(unlimited) elem_type=i32
        zero = 0
        loop = While(zero, x, stack, other) T=[i32,f32,res,res] cond=@cond body=@body
        top = StackPopV2(stack, ^loop) elem_type=f32
        last = StackPopV2(other, ^loop) elem_type=i32
        fn cond(i: i32, x: f32, stack: res, other: res) -> c/bool {
        l = 5
        c = Less(i, l) T=i32
        }
        fn body(i: i32, x: f32, stack: res, other: res) -> j/i32, y, stack/res, other/res {
        one = 1
        j = AddV2(i, one) T=i32
        y = AddV2(x, x) T=f32
        a = StackPushV2(stack, x) T=f32
        b = StackPushV2(other, i) T=i32
        }";
    assert_eq!(run(text, &["top", "last"], &[ones(1.0)]), [ones(16.0), Literal::scalar(4i32)]);
}

#[test]
fn the_size_in_the_graph_is_the_capacity() {
    let text = pushing("a = StackPushV2(stack, x) T=f32", 1).replace("unlimited = -1", "unlimited = 9");
    assert_eq!(capacities(&module(&text, &["pop0"])), [9]);
    assert_eq!(run(&text, &["pop0"], &[ones(1.0), Literal::scalar(true)]), [ones(16.0)]);
}

#[test]
fn elements_of_two_shapes_are_refused() {
    let text = pushing("a = StackPushV2(stack, x) T=f32\nz = 1.0\nb = StackPushV2(stack, z) T=f32", 1);
    let message = message(&text, &["pop0"]);
    assert!(
        message.contains("all elements of a stack must have one shape") && message.contains("'stack'"),
        "{message}"
    );
}

/// Two calls of a function that contains a loop and a stack.
const CALLED_TWICE: &str = "x: f32[7]
    three = 3
    six = 6
    first = StatefulPartitionedCall(three, x) Tin=[i32,f32] Tout=[f32] f=@reversed
    second = StatefulPartitionedCall(six, x) Tin=[i32,f32] Tout=[f32] f=@reversed
    fn reversed(limit: i32, x: f32) -> back:2 {
    unlimited = -1
    stack = StackV2(unlimited) elem_type=f32
    zero = 0
    loop = While(zero, limit, x, stack) T=[i32,i32,f32,res] cond=@cond body=@body
    minus = f32[7] 0
    back = While(zero, limit, minus, stack, ^loop) T=[i32,i32,f32,res] cond=@cond body=@back_body
    }
    fn cond(i: i32, limit: i32, x: f32, stack: res) -> c/bool {
    c = Less(i, limit) T=i32
    }
    fn body(i: i32, limit: i32, x: f32, stack: res) -> j/i32, limit/i32, y, stack/res {
    one = 1
    j = AddV2(i, one) T=i32
    a = StackPushV2(stack, x) T=f32
    y = AddV2(a, a) T=f32
    }
    fn back_body(i: i32, limit: i32, x: f32, stack: res) -> j/i32, limit/i32, y, stack/res {
    one = 1
    j = AddV2(i, one) T=i32
    a = StackPopV2(stack) elem_type=f32
    y = Sub(a, x) T=f32
    }";

#[test]
fn each_call_of_a_function_has_separate_stacks_and_bounds() {
    assert_eq!(capacities(&module(CALLED_TWICE, &["first", "second"])), [6, 3]);
    let results = run(CALLED_TWICE, &["first", "second"], &[ones(1.0)]);
    // 1 - (2 - (4 - 0)), and 1 - (2 - (4 - (8 - (16 - 32)))).
    assert_eq!(results, [ones(3.0), ones(-21.0)]);
}

/// A loop whose counter is the limit of another loop. The counter passes through a stack, as in
/// gradients of nested loops.
const COUNTS_OVER_A_STACK: &str = "x: f32[7]
    unlimited = -1
    counts = StackV2(unlimited) elem_type=i32
    stack = StackV2(unlimited) elem_type=f32
    zero = 0
    three = 3
    there = While(zero, three, x, counts) T=[i32,i32,f32,res] cond=@less body=@outer
    back = While(zero, three, x, counts, stack, ^there) T=[i32,i32,f32,res,res] cond=@less_back body=@outer_back
    fn less(i: i32, limit: i32, x: f32, counts: res) -> c/bool {
    c = Less(i, limit) T=i32
    }
    fn less_back(i: i32, limit: i32, x: f32, counts: res, stack: res) -> c/bool {
    c = Less(i, limit) T=i32
    }
    fn outer(i: i32, limit: i32, x: f32, counts: res) -> j/i32, limit/i32, inner:1/f32, counts/res {
    one = 1
    j = AddV2(i, one) T=i32
    zero = 0
    inner = While(zero, x) T=[i32,f32] cond=@some body=@double
    pushed = StackPushV2(counts, inner) T=i32
    }
    fn some(k: i32, x: f32) -> c/bool {
    axis = i32[1] 0
    sum = Sum(x, axis) T=f32 Tidx=i32
    little = 100.0
    small = Less(sum, little) T=f32
    most = 5
    few = Less(k, most) T=i32
    c = LogicalAnd(small, few)
    }
    fn double(k: i32, x: f32) -> m/i32, y {
    one = 1
    m = AddV2(k, one) T=i32
    y = AddV2(x, x) T=f32
    }
    fn outer_back(i: i32, limit: i32, x: f32, counts: res, stack: res) -> j/i32, limit/i32, inner:1/f32, counts/res, stack/res {
    one = 1
    j = AddV2(i, one) T=i32
    count = StackPopV2(counts) elem_type=i32
    inner = While(count, x, stack) T=[i32,f32,res] cond=@positive body=@half
    }
    fn positive(k: i32, x: f32, stack: res) -> c/bool {
    one = 1
    c = GreaterEqual(k, one) T=i32
    }
    fn half(k: i32, x: f32, stack: res) -> m/i32, y, stack/res {
    one = 1
    m = Sub(k, one) T=i32
    a = StackPushV2(stack, x) T=f32
    y = AddV2(a, a) T=f32
    }";

#[test]
fn a_count_keeps_its_range_on_a_stack() {
    assert_eq!(
        capacities(&module(COUNTS_OVER_A_STACK, &["back:2"])),
        [15],
        "expected three times at most five iterations"
    );
    // The sums are 7, 14, 28, 56, and 112: the first outer iteration doubles four times, later ones
    // never.
    let results = run(COUNTS_OVER_A_STACK, &["there:2", "back:2"], &[ones(1.0)]);
    assert_eq!(results, [ones(16.0), ones(16.0)]);
}

#[test]
fn a_push_after_the_pop_invalidates_the_known_range() {
    // Pushes a feed onto the stack of counts, after the loop that pops.
    let late = COUNTS_OVER_A_STACK
        .replace("back = While(", "n: i32[]\nback = While(")
        .replace("    fn less(", "    late = StackPushV2(counts, n, ^back) T=i32\n    fn less(");
    let message = message(&late, &["back:2", "late"]);
    assert!(message.contains("--loop-bound"), "{message}");
}

#[test]
fn nothing_is_popped_from_a_stack_without_pushes() {
    let text = "n = -1
        stack = StackV2(n) elem_type=f32
        top = StackPopV2(stack) elem_type=f32";
    assert!(message(text, &["top"]).contains("nothing is ever pushed on stack 'stack'"));
}
