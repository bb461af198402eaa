//! Element functions of reductions in a graph: results, and errors for functions that break the
//! rules.

use super::{
    dims, feed, fetch, int_const, message, node, placeholder, run, ty, values, var_handle, variable,
};
use shape::Literal;

fn arguments(count: usize) -> String {
    (0..count).map(|k| format!("input_arg {{ name: \"a{k}\" type: DT_FLOAT }} ")).collect()
}

fn body_node(name: &str, op: &str, inputs: &[&str]) -> String {
    let inputs: String = inputs.iter().map(|i| format!("input: \"{i}\" ")).collect();
    let attribute = ty("T", "DT_FLOAT");
    format!("node_def {{ name: \"{name}\" op: \"{op}\" {inputs} {attribute} }} ")
}

/// Returns a graph that reduces a vector `x` with the function `f`. The function has `count`
/// arguments, the nodes `body`, and returns `result`.
fn reduction(count: usize, body: &str, result: &str, more: &str) -> String {
    let reducer = "attr { key: \"reducer\" value { func { name: \"f\" } } }";
    let over = "attr { key: \"dimensions_to_reduce\" value { list { i: 0 } } }";
    let attributes = format!("{} {reducer} {over}", ty("T", "DT_FLOAT"));
    let zero = format!(
        "{} attr {{ key: \"value\" value {{ tensor {{ dtype: DT_FLOAT tensor_shape {{ }} float_val: 1 }} }} }}",
        ty("dtype", "DT_FLOAT")
    );
    format!(
        "{}{}{}{more} library {{ function {{ signature {{ name: \"f\" {} output_arg {{ name: \"r\" type: DT_FLOAT }} }} \
         {body} ret {{ key: \"r\" value: \"{result}\" }} }} }}",
        placeholder("x", "DT_FLOAT"),
        node("init", "Const", &[], &zero),
        node("y", "XlaReduce", &["x", "init"], &attributes),
        arguments(count),
    )
}

fn config() -> String {
    format!("{}{}", feed("x", &[3]), fetch("y"))
}

#[test]
fn a_function_combines_the_accumulator_with_the_next_element() {
    // f(a, x) = a * x + x, from 1: 1 -> 4 -> 15 -> 80.
    let body = body_node("p", "Mul", &["a0", "a1"]) + &body_node("s", "AddV2", &["p:z:0", "a1"]);
    let x = Literal::from_elements(&[3], &[2f32, 3.0, 5.0]);
    let results = run(&reduction(2, &body, "s:z:0", ""), &config(), &[x]).unwrap();
    assert_eq!(values::<f32>(&results[0]), [80.0]);
}

#[test]
fn a_function_with_another_number_of_arguments_is_refused() {
    let body = body_node("s", "AddV2", &["a0", "a1"]);
    let text = message(&reduction(3, &body, "s:z:0", ""), &config());
    assert!(text.contains("reducer 'f': expected 2 arguments, got a function of 3"), "{text}");
    assert!(text.contains("'y'"), "{text}");
}

#[test]
fn a_function_that_returns_an_array_is_refused() {
    let shape = format!(
        "node_def {{ name: \"c\" op: \"Const\" {} attr {{ key: \"value\" value {{ tensor {{ dtype: DT_INT32 tensor_shape \
         {{ {} }} int_val: 2 }} }} }} }} ",
        ty("dtype", "DT_INT32"),
        dims(&[1])
    );
    let body = shape + &body_node("s", "BroadcastTo", &["a0", "c:output:0"]);
    let text = message(&reduction(2, &body, "s:output:0", ""), &config());
    assert!(text.contains("reducer 'f': expected the result f32[], got f32[2]"), "{text}");
}

#[test]
fn a_function_that_reads_a_variable_is_refused() {
    let handle = var_handle("v", &[]).replace("node {", "node_def {");
    let read = format!(
        "node_def {{ name: \"g\" op: \"ReadVariableOp\" input: \"v:resource:0\" {} }} ",
        ty("dtype", "DT_FLOAT")
    );
    let body = handle + &read + &body_node("s", "AddV2", &["a0", "g:value:0"]);
    let config = format!("{}{}", config(), variable("v", &[], true));
    let text = message(&reduction(2, &body, "s:z:0", &var_handle("v", &[])), &config);
    assert!(text.contains("reducer 'f' reads or writes a variable"), "{text}");
}

#[test]
fn a_data_dependent_size_is_refused_only_by_ops_that_need_a_static_size() {
    let set = node("s", "XlaSetDynamicDimensionSize", &["x", "d", "n"], &ty("T", "DT_FLOAT"));
    let axis = int_const("d", &[], &[0]);
    let graph = |last: String| {
        format!("{}{}{axis}{set}{last}", placeholder("x", "DT_FLOAT"), placeholder("n", "DT_INT32"))
    };
    let config = format!("{}{}{}", feed("x", &[3]), feed("n", &[]), fetch("y"));
    let square = graph(node("y", "Diag", &["s"], &ty("T", "DT_FLOAT")));
    let text = message(&square, &config);
    assert!(text.contains("has a dimension of data-dependent size") && text.contains("'y'"), "{text}");
    let whole = graph(node("y", "XlaRemoveDynamicDimensionSize", &["s", "d"], &ty("T", "DT_FLOAT")));
    let arguments = [Literal::from_elements(&[3], &[2f32, 3.0, 5.0]), Literal::from_elements(&[], &[1i32])];
    let results = run(&whole, &config, &arguments).unwrap();
    assert_eq!(values::<f32>(&results[0]), [2.0, 3.0, 5.0]);
    let negated = graph(node("y", "Neg", &["s"], &ty("T", "DT_FLOAT")));
    let results = run(&negated, &config, &arguments).unwrap();
    assert_eq!(values::<f32>(&results[0]), [-2.0]);
}
