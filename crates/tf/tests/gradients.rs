//! Gradients of functions: what they become, and what is refused.

use tf::source;

const FLOAT: &str = "attr { key: 'T' value { type: DT_FLOAT } }";

/// A graph that takes the gradient of the library's function `f`, whose body is `nodes`, with the
/// result `result`.
fn prepared(function: &str, nodes: &str, result: &str, outputs: &str) -> support::Result<tf::Program> {
    let text = format!(
        "node {{ name: 'x' op: 'Placeholder' attr {{ key: 'dtype' value {{ type: DT_FLOAT }} }} }}
         node {{ name: 'g' op: 'SymbolicGradient' input: 'x' input: 'x'
                attr {{ key: 'f' value {{ func {{ name: '{function}' }} }} }}
                attr {{ key: 'Tin' value {{ list {{ type: DT_FLOAT type: DT_FLOAT }} }} }}
                attr {{ key: 'Tout' value {{ list {{ {outputs} }} }} }} }}
         library {{ function {{
           signature {{ name: 'f' input_arg {{ name: 'a' type: DT_FLOAT }} output_arg {{ name: 'r' type: DT_FLOAT }} }}
           {nodes}
           ret {{ key: 'r' value: '{result}' }} }} }}"
    );
    let graph = source::parse_graph_def(text.into(), "g.pbtxt").expect("a graph");
    let config = "feed { id { node_name: 'x' } } fetch { id { node_name: 'g' } }";
    tf::prepare(graph, source::parse_config(config.into(), "c.pbtxt").expect("a config"))
}

fn refusal(function: &str, nodes: &str, result: &str, outputs: &str) -> String {
    prepared(function, nodes, result, outputs).expect_err("a refusal").to_string()
}

#[test]
fn a_gradient_is_a_call_of_a_function_of_arguments_and_gradients() {
    let nodes = format!("node_def {{ name: 'n' op: 'Tanh' input: 'a' {FLOAT} }}");
    let program = prepared("f", &nodes, "n:y:0", "type: DT_FLOAT").expect("a gradient");
    let call = program.graph.find("g").expect("the node stays");
    let gradient = program.library.get(&program.graph.nodes[call].op).expect("its op is a function");
    assert_eq!((gradient.arguments.len(), gradient.results.len()), (2, 1));
    let ops: Vec<&str> = gradient.graph.nodes.iter().map(|(_, node)| node.op.as_str()).collect();
    assert!(
        ops.contains(&"Tanh") && ops.contains(&"Square") && !ops.contains(&"SymbolicGradient"),
        "{ops:?}"
    );
}

#[test]
fn ops_without_gradients_are_named() {
    let nodes = format!("node_def {{ name: 'odd' op: 'Lgamma' input: 'a' {FLOAT} }}");
    let message = refusal("f", &nodes, "odd:y:0", "type: DT_FLOAT");
    for part in ["node 'g'", "function 'f'", "node 'odd'", "no gradient of op Lgamma"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn functions_that_are_not_the_gradient_are_rejected() {
    let nodes = format!("node_def {{ name: 'n' op: 'Neg' input: 'a' {FLOAT} }}");
    let message = refusal("f", &nodes, "n:y:0", "type: DT_FLOAT type: DT_FLOAT");
    assert!(
        message
            .contains("outputs (float), but the node has inputs (float, float) and outputs (float, float)"),
        "{message}"
    );
    let message = refusal("Neg", &nodes, "n:y:0", "type: DT_FLOAT");
    assert!(message.contains("'Neg' is not a function in the graph's library"), "{message}");
}

#[test]
fn gradients_of_many_outputs_are_bounded() {
    let nodes = format!(
        "node_def {{ name: 'zero' op: 'Const' attr {{ key: 'dtype' value {{ type: DT_INT32 }} }}
                     attr {{ key: 'value' value {{ tensor {{ dtype: DT_INT32 tensor_shape {{ }} }} }} }} }}
         node_def {{ name: 's' op: 'Split' input: 'zero:output:0' input: 'a' {FLOAT}
                     attr {{ key: 'num_split' value {{ i: 1000000 }} }} }}"
    );
    let message = refusal("f", &nodes, "s:output:7", "type: DT_FLOAT");
    assert!(message.contains("more than 250000 nodes"), "{message}");
}
