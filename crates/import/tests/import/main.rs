//! Imports graphs given as text, interprets the modules, and compares the results with values that
//! follow from TensorFlow's definition of the ops.

mod element_functions;
mod neural_networks;

use hlo::Op;
use hlo::{Identifier, Origin};
use import::{import_program, supported_ops};
use shape::{Literal, NativeType};
use support::{ErrorKind, Result};

fn program(graph: &str, config: &str) -> tf::Program {
    let graph =
        tf::source::parse_graph_def(graph.to_owned().into(), "graph.pbtxt").expect("the graph should parse");
    let config =
        tf::source::parse_config(config.to_owned().into(), "config.pbtxt").expect("the config should parse");
    tf::prepare(graph, config).expect("the program should be valid")
}

/// Imports the graph, verifies the module, and interprets it.
fn run(graph: &str, config: &str, arguments: &[Literal]) -> Result<Vec<Literal>> {
    let module = import::import(&program(graph, config))?;
    hlo::verify(&module).expect("the module should be valid");
    match evaluator::evaluate(&module, arguments)? {
        Literal::Tuple(results) => Ok(results),
        Literal::Array { .. } => panic!("the root is not a tuple"),
    }
}

fn message(graph: &str, config: &str) -> String {
    import::import(&program(graph, config)).expect_err("the import should fail").to_string()
}

fn node(name: &str, op: &str, inputs: &[&str], attributes: &str) -> String {
    let inputs: String = inputs.iter().map(|i| format!("input: \"{i}\" ")).collect();
    format!("node {{ name: \"{name}\" op: \"{op}\" {inputs} {attributes} }}\n")
}

fn ty(name: &str, data_type: &str) -> String {
    format!("attr {{ key: \"{name}\" value {{ type: {data_type} }} }}")
}

fn int(name: &str, value: i64) -> String {
    format!("attr {{ key: \"{name}\" value {{ i: {value} }} }}")
}

fn placeholder(name: &str, data_type: &str) -> String {
    node(name, "Placeholder", &[], &ty("dtype", data_type))
}

fn dims(sizes: &[i64]) -> String {
    sizes.iter().map(|size| format!("dim {{ size: {size} }} ")).collect()
}

fn int_const(name: &str, sizes: &[i64], values: &[i64]) -> String {
    let values: String = values.iter().map(|v| format!("int_val: {v} ")).collect();
    let tensor = format!("dtype: DT_INT32 tensor_shape {{ {} }} {values}", dims(sizes));
    let attributes =
        format!("{} attr {{ key: \"value\" value {{ tensor {{ {tensor} }} }} }}", ty("dtype", "DT_INT32"));
    node(name, "Const", &[], &attributes)
}

fn feed(name: &str, sizes: &[i64]) -> String {
    format!("feed {{ id {{ node_name: \"{name}\" }} shape {{ {} }} }}\n", dims(sizes))
}

fn fetch(name: &str) -> String {
    format!("fetch {{ id {{ node_name: \"{name}\" }} }}\n")
}

fn variable(name: &str, sizes: &[i64], readonly: bool) -> String {
    let sizes = dims(sizes);
    format!("variable {{ node_name: \"{name}\" shape {{ {sizes} }} type: DT_FLOAT readonly: {readonly} }}\n")
}

fn var_handle(name: &str, sizes: &[i64]) -> String {
    let shape = format!("attr {{ key: \"shape\" value {{ shape {{ {} }} }} }}", dims(sizes));
    let shared = format!("attr {{ key: \"shared_name\" value {{ s: \"{name}\" }} }}");
    node(name, "VarHandleOp", &[], &format!("{} {shape} {shared}", ty("dtype", "DT_FLOAT")))
}

fn values<T: NativeType>(literal: &Literal) -> Vec<T> {
    literal.to_vec().expect("the element type should match")
}

const FLOAT: &str = "DT_FLOAT";

#[test]
fn binary_ops_broadcast_as_numpy_and_carry_the_node_in_their_metadata() {
    let graph = placeholder("x", FLOAT)
        + &placeholder("y", FLOAT)
        + &node("layer/difference", "Sub", &["x", "y"], &ty("T", FLOAT));
    let config = feed("x", &[2, 1]) + &feed("y", &[3]) + &fetch("layer/difference");
    let x = Literal::from_elements(&[2, 1], &[10f32, 20.0]);
    let y = Literal::from_elements(&[3], &[1f32, 2.0, 3.0]);
    let results = run(&graph, &config, &[x, y]).unwrap();
    assert_eq!(results, [Literal::from_elements(&[2, 3], &[9f32, 8.0, 7.0, 19.0, 18.0, 17.0])]);

    let module = import::import(&program(&graph, &config)).unwrap();
    let entry = module.entry_computation();
    let (_, subtract) = entry.instructions().find(|(_, i)| matches!(i.op(), Op::Subtract {})).unwrap();
    assert_eq!(subtract.metadata().op_type, "Sub");
    assert_eq!(subtract.metadata().op_name, "layer/difference");
}

#[test]
fn incompatible_shapes_are_refused_with_node_and_shapes() {
    let graph = placeholder("x", FLOAT)
        + &placeholder("y", FLOAT)
        + &node("sum", "AddV2", &["x", "y"], &ty("T", FLOAT));
    let text = message(&graph, &(feed("x", &[2, 3]) + &feed("y", &[4, 2]) + &fetch("sum")));
    assert!(text.starts_with("Incompatible shapes: [2,3] vs. [4,2]"), "{text}");
    assert!(text.contains("node 'sum'"), "{text}");
}

#[test]
fn a_matmul_of_2x3_by_4x2_is_refused_and_of_3x2_transposed_is_not() {
    let graph = |attributes: &str| {
        placeholder("x", FLOAT)
            + &placeholder("y", FLOAT)
            + &node("product", "MatMul", &["x", "y"], &(ty("T", FLOAT) + attributes))
    };
    let text = message(&graph(""), &(feed("x", &[2, 3]) + &feed("y", &[4, 2]) + &fetch("product")));
    assert!(text.contains("[2,3] vs. [4,2]") && text.contains("node 'product'"), "{text}");

    let transposed = graph("attr { key: \"transpose_a\" value { b: true } }");
    let x = Literal::from_elements(&[3, 2], &[1f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let y = Literal::from_elements(&[3, 1], &[1f32, 10.0, 100.0]);
    let config = feed("x", &[3, 2]) + &feed("y", &[3, 1]) + &fetch("product");
    let results = run(&transposed, &config, &[x, y]).unwrap();
    assert_eq!(values::<f32>(&results[0]), [531.0, 642.0]);
}

#[test]
fn shapes_that_follow_from_shapes_are_compile_time_constants() {
    // x[5, 2] reshaped to [Size(x) / 2 rows, -1]: Pack, Shape and StridedSlice fold.
    let graph = placeholder("x", FLOAT)
        + &node("shape", "Shape", &["x"], &ty("T", FLOAT))
        + &int_const("zero", &[1], &[0])
        + &int_const("one", &[1], &[1])
        + &node(
            "rows",
            "StridedSlice",
            &["shape", "zero", "one", "one"],
            &format!("{} {} {}", ty("T", "DT_INT32"), ty("Index", "DT_INT32"), int("shrink_axis_mask", 1)),
        )
        + &int_const("minus_one", &[], &[-1])
        + &node("sizes", "Pack", &["minus_one", "rows"], &format!("{} {}", ty("T", "DT_INT32"), int("N", 2)))
        + &node("y", "Reshape", &["x", "sizes"], &ty("T", FLOAT));
    let x = Literal::from_elements(&[5, 2], &[0f32, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
    let results = run(&graph, &(feed("x", &[5, 2]) + &fetch("y")), std::slice::from_ref(&x)).unwrap();
    assert_eq!(results[0], x.reshape(&[2, 5]).unwrap());
}

#[test]
fn a_shape_that_a_feed_decides_is_refused_with_the_feed() {
    let graph = placeholder("x", FLOAT)
        + &placeholder("s", "DT_INT32")
        + &node("y", "Reshape", &["x", "s"], &ty("T", FLOAT));
    let text = message(&graph, &(feed("x", &[4]) + &feed("s", &[2]) + &fetch("y")));
    let expected =
        "Input 1 to node `y` with op Reshape must be a compile-time constant: it depends on the feed 's:0'";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn all_unsupported_nodes_are_listed_with_op_and_types() {
    let graph = placeholder("x", FLOAT)
        + &node("a", "DeepCopy", &["x"], &ty("T", FLOAT))
        + &node("b", "MatrixSquareRoot", &["x"], &ty("T", FLOAT))
        + &node("c", "MatrixSquareRoot", &["b"], &ty("T", FLOAT));
    let error = import::import(&program(&graph, &(feed("x", &[2]) + &fetch("a") + &fetch("c")))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let text = error.to_string();
    assert!(text.starts_with("3 nodes of the graph cannot be compiled:"), "{text}");
    assert!(text.contains("op DeepCopy (T=float) is not supported: node 'a'"), "{text}");
    assert!(text.contains("op MatrixSquareRoot (T=float) is not supported: nodes 'b', 'c'"), "{text}");
}

#[test]
fn an_unsupported_type_of_a_supported_op_is_named() {
    let strings =
        "attr { key: \"value\" value { tensor { dtype: DT_STRING tensor_shape { } string_val: \"a\" } } }";
    let graph = node("s", "Const", &[], &format!("{} {strings}", ty("dtype", "DT_STRING")))
        + &node("e", "Equal", &["s", "s"], &ty("T", "DT_STRING"));
    let text = message(&graph, &fetch("e"));
    assert!(text.contains("op Equal is supported, but not for T=string"), "{text}");
    assert!(text.contains("node 'e'"), "{text}");
}

/// Returns a graph that runs `v += x`, `v -= x`, and `v += x` in this order, then reads `v`.
/// Only the pairs of types that TensorFlow has kernels for. The node after it would fail instead.
#[test]
fn the_parts_of_a_complex_number_have_the_type_of_its_parts() {
    for (op, ty_in, ty_out, is_right) in [
        ("Imag", "DT_COMPLEX128", "DT_DOUBLE", true),
        ("Imag", "DT_COMPLEX128", "DT_FLOAT", false),
        ("ComplexAbs", "DT_COMPLEX64", "DT_DOUBLE", false),
        ("Angle", "DT_COMPLEX64", "DT_FLOAT", true),
        ("Real", "DT_COMPLEX128", "DT_FLOAT", false),
    ] {
        let types = format!("{} {}", ty("T", ty_in), ty("Tout", ty_out));
        let graph = placeholder("x", ty_in) + &node("y", op, &["x"], &types);
        let config = feed("x", &[2]) + &fetch("y");
        let imported = import::import(&program(&graph, &config));
        if is_right {
            imported.expect("a module");
        } else {
            let text = imported.expect_err("refused").to_string();
            assert!(text.contains("correct Tout") && text.contains("'y'"), "{text}");
        }
    }
}

fn counter_graph() -> String {
    placeholder("x", FLOAT)
        + &var_handle("v", &[2])
        + &node("add", "AssignAddVariableOp", &["v", "x"], &ty("dtype", FLOAT))
        + &node("subtract", "AssignSubVariableOp", &["v", "x", "^add"], &ty("dtype", FLOAT))
        + &node("again", "AssignAddVariableOp", &["v", "x", "^subtract"], &ty("dtype", FLOAT))
        + &node("read", "ReadVariableOp", &["v", "^again"], &ty("dtype", FLOAT))
}

#[test]
fn variables_are_updated_in_execution_order_and_returned_in_place() {
    let config = feed("x", &[2]) + &fetch("read") + &variable("v", &[2], false);
    let result = import_program(&program(&counter_graph(), &config)).unwrap();
    assert_eq!(result.interface.program_shape().parameter_names, ["x", "v"]);
    let results = result.interface.results();
    let origins: Vec<_> = results.iter().map(|result| (&result.id, result.origin, result.alias)).collect();
    let (read, v) = (Identifier::first_of("read"), Identifier::Variable("v".to_owned()));
    assert_eq!(origins, [(&read, Origin::Fetch, None), (&v, Origin::Variable, Some(1))]);
    let alias = &result.module.input_output_alias()[0];
    assert_eq!((alias.output_index.as_slice(), alias.parameter_number), (&[1][..], 1));

    let x = Literal::from_elements(&[2], &[0.5f32, 4.0]);
    let v = Literal::from_elements(&[2], &[1f32, 2.0]);
    let results = run(&counter_graph(), &config, &[x, v]).unwrap();
    assert_eq!(values::<f32>(&results[0]), [1.5, 6.0]);
    assert_eq!(results[0], results[1]);
}

#[test]
fn the_readonly_flag_of_a_variable_must_match_the_graph() {
    let readonly =
        message(&counter_graph(), &(feed("x", &[2]) + &fetch("read") + &variable("v", &[2], true)));
    assert!(readonly.starts_with("Variable \"v\" is marked as readonly, but is modified"), "{readonly}");
    assert!(readonly.contains("node 'add'"), "{readonly}");

    let graph = var_handle("v", &[2]) + &node("read", "ReadVariableOp", &["v"], &ty("dtype", FLOAT));
    let written = message(&graph, &(fetch("read") + &variable("v", &[2], false)));
    assert!(
        written.starts_with("Variable \"v\" is marked as not readonly, but is not modified"),
        "{written}"
    );
}

#[test]
fn communication_with_other_devices_and_programs_is_refused() {
    let send = node(
        "send",
        "XlaSend",
        &["x"],
        &(ty("T", FLOAT) + "attr { key: \"tensor_name\" value { s: \"t\" } }"),
    );
    let graph = placeholder("x", FLOAT) + &send + &node("y", "Identity", &["x", "^send"], &ty("T", FLOAT));
    let sent = message(&graph, &(feed("x", &[2]) + &fetch("y")));
    assert!(
        sent.contains("XlaSend exchanges a tensor with another program") && sent.contains("'send'"),
        "{sent}"
    );

    let keys: String = ["size", "group", "instance"].map(|name| int_const(name, &[], &[2])).concat();
    let merge =
        "attr { key: \"merge_op\" value { s: \"Add\" } } attr { key: \"final_op\" value { s: \"Id\" } }";
    let sum = node("y", "CollectiveReduceV2", &["x", "size", "group", "instance"], &(ty("T", FLOAT) + merge));
    let summed = message(&(placeholder("x", FLOAT) + &keys + &sum), &(feed("x", &[2]) + &fetch("y")));
    assert!(summed.contains("a group of 2 devices"), "{summed}");
}

#[test]
fn gradient_descent_subtracts_the_scaled_gradient() {
    let graph = placeholder("alpha", FLOAT)
        + &placeholder("delta", FLOAT)
        + &var_handle("v", &[3])
        + &node("step", "ResourceApplyGradientDescent", &["v", "alpha", "delta"], &ty("T", FLOAT))
        + &node("read", "ReadVariableOp", &["v", "^step"], &ty("dtype", FLOAT));
    let config = feed("alpha", &[]) + &feed("delta", &[3]) + &fetch("read") + &variable("v", &[3], false);
    let delta = Literal::from_elements(&[3], &[2f32, 4.0, -8.0]);
    let v = Literal::from_elements(&[3], &[1f32, 1.0, 1.0]);
    let results = run(&graph, &config, &[Literal::scalar(0.25f32), delta, v]).unwrap();
    assert_eq!(values::<f32>(&results[1]), [0.5, 0.0, 3.0]);
}

/// Returns a library of two functions: `double(x, v)` returns `x + x`; `store(x, v)` assigns `x` to
/// `v` and returns `x`.
fn library() -> String {
    let signature = |name: &str, inputs: &str| {
        format!("signature {{ name: \"{name}\" {inputs} output_arg {{ name: \"y\" type: DT_FLOAT }} }}")
    };
    let x = "input_arg { name: \"x\" type: DT_FLOAT }";
    let v = "input_arg { name: \"v\" type: DT_RESOURCE }";
    let double = format!(
        "function {{ {} node_def {{ name: \"sum\" op: \"AddV2\" input: \"x\" input: \"x\" {} }} \
         ret {{ key: \"y\" value: \"sum:z:0\" }} }}",
        signature("double", &format!("{x} {v}")),
        ty("T", FLOAT)
    );
    let store = format!(
        "function {{ {} node_def {{ name: \"put\" op: \"AssignVariableOp\" input: \"v\" input: \"x\" {} }} \
         node_def {{ name: \"same\" op: \"Identity\" input: \"x\" input: \"^put\" {} }} \
         ret {{ key: \"y\" value: \"same:output:0\" }} control_ret {{ key: \"put\" value: \"put\" }} }}",
        signature("store", &format!("{x} {v}")),
        ty("dtype", FLOAT),
        ty("T", FLOAT)
    );
    format!("library {{ {double} {store} }}\n")
}

fn function(name: &str, value: &str) -> String {
    format!("attr {{ key: \"{name}\" value {{ func {{ name: \"{value}\" }} }} }}")
}

fn list_types(name: &str, types: &[&str]) -> String {
    let types: String = types.iter().map(|t| format!("type: {t} ")).collect();
    format!("attr {{ key: \"{name}\" value {{ list {{ {types} }} }} }}")
}

#[test]
fn a_conditional_returns_the_variables_that_a_branch_writes() {
    let attributes = [
        ty("Tcond", "DT_BOOL"),
        list_types("Tin", &[FLOAT, "DT_RESOURCE"]),
        list_types("Tout", &[FLOAT]),
        function("then_branch", "store"),
        function("else_branch", "double"),
    ];
    let graph = placeholder("p", "DT_BOOL")
        + &placeholder("x", FLOAT)
        + &var_handle("v", &[2])
        + &node("choice", "If", &["p", "x", "v"], &attributes.join(" "))
        + &library();
    let config = feed("p", &[]) + &feed("x", &[2]) + &fetch("choice") + &variable("v", &[2], false);
    let x = Literal::from_elements(&[2], &[3f32, 5.0]);
    let v = Literal::from_elements(&[2], &[7f32, 9.0]);
    let chosen = run(&graph, &config, &[Literal::scalar(true), x.clone(), v.clone()]).unwrap();
    assert_eq!((values::<f32>(&chosen[0]), values::<f32>(&chosen[1])), (vec![3.0, 5.0], vec![3.0, 5.0]));
    let other = run(&graph, &config, &[Literal::scalar(false), x, v]).unwrap();
    assert_eq!((values::<f32>(&other[0]), values::<f32>(&other[1])), (vec![6.0, 10.0], vec![7.0, 9.0]));
}

#[test]
fn nodes_of_inlined_calls_are_named_after_the_call() {
    let attributes =
        [list_types("Tin", &[FLOAT, "DT_RESOURCE"]), list_types("Tout", &[FLOAT]), function("f", "double")];
    let graph = placeholder("x", FLOAT)
        + &var_handle("v", &[2])
        + &node("call", "StatefulPartitionedCall", &["x", "v"], &attributes.join(" "))
        + &library();
    let config = feed("x", &[2]) + &fetch("call") + &variable("v", &[2], true);
    let module = import::import(&program(&graph, &config)).unwrap();
    assert_eq!(module.computations().count(), 1);
    let entry = module.entry_computation();
    let (_, sum) = entry.instructions().find(|(_, i)| matches!(i.op(), Op::Add {})).unwrap();
    assert_eq!(sum.metadata().op_name, "call/sum");
}

#[test]
fn a_large_constant_of_one_value_becomes_a_broadcast_of_a_scalar() {
    let tensor = "dtype: DT_FLOAT tensor_shape { dim { size: 1000 } dim { size: 1000 } } float_val: 0.5";
    let value = format!("attr {{ key: \"value\" value {{ tensor {{ {tensor} }} }} }}");
    let graph = node("c", "Const", &[], &format!("{} {value}", ty("dtype", FLOAT)));
    let module = import::import(&program(&graph, &fetch("c"))).unwrap();
    let entry = module.entry_computation();
    let constants: Vec<i64> = entry
        .instructions()
        .filter(|(_, i)| matches!(i.op(), Op::Constant { .. }))
        .map(|(_, i)| i.shape().expect_array().element_count())
        .collect();
    assert_eq!(constants, [1]);
}

#[test]
fn relu6_propagates_nan_and_argmax_ignores_it() {
    let graph = placeholder("x", FLOAT)
        + &int_const("axis", &[], &[0])
        + &node("relu6", "Relu6", &["x"], &ty("T", FLOAT))
        + &node("best", "ArgMax", &["x", "axis"], &(ty("T", FLOAT) + &ty("output_type", "DT_INT64")));
    let config = feed("x", &[5]) + &fetch("relu6") + &fetch("best");
    let x = Literal::from_elements(&[5], &[f32::NAN, -1.0, 7.0, 7.0, 2.5]);
    let results = run(&graph, &config, &[x]).unwrap();
    let relu6 = values::<f32>(&results[0]);
    assert!(relu6[0].is_nan());
    assert_eq!(relu6[1..], [0.0, 6.0, 6.0, 2.5]);
    assert_eq!(values::<i64>(&results[1]), [2]);
}

#[test]
fn a_range_of_known_length_may_begin_at_run_time() {
    let index = format!("{} {}", ty("T", "DT_INT32"), ty("Index", "DT_INT32"));
    let graph = placeholder("x", "DT_INT32")
        + &placeholder("i", "DT_INT32")
        + &int_const("two", &[1], &[2])
        + &int_const("one", &[1], &[1])
        + &node("end", "AddV2", &["i", "two"], &ty("T", "DT_INT32"))
        + &node("part", "StridedSlice", &["x", "i", "end", "one"], &index);
    let config = feed("x", &[5]) + &feed("i", &[1]) + &fetch("part");
    let x = Literal::from_elements(&[5], &[10i32, 11, 12, 13, 14]);
    let results = run(&graph, &config, &[x, Literal::from_elements(&[1], &[2i32])]).unwrap();
    assert_eq!(values::<i32>(&results[0]), [12, 13]);
}

#[test]
fn the_table_of_ops_is_sorted_and_names_types() {
    let ops = supported_ops();
    assert!(ops.is_sorted_by(|a, b| a.name < b.name));
    let cast = ops.iter().find(|op| op.name == "Cast").unwrap();
    assert_eq!(cast.types.iter().map(|(attribute, _)| *attribute).collect::<Vec<_>>(), ["SrcT", "DstT"]);
}
