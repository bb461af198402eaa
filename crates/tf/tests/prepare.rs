//! Feeds, fetches, pruning and functions, on small graphs.

use tf::{DataType, Program, source};

const ADD: &str = "
    node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } }
           attr { key: 'shape' value { shape { dim { size: 2 } dim { size: -1 } } } } }
    node { name: 'c' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } }
           attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 3 } } } }
    node { name: 'sum' op: 'AddV2' input: 'x' input: 'c' attr { key: 'T' value { type: DT_FLOAT } } }
    node { name: 'odd' op: 'NoSuchOp' input: 'sum' }
    node { name: 'bad' op: 'AddV2' input: 'x' input: 'missing:0' attr { key: 'T' value { type: DT_FLOAT } } }";

fn prepare(graph: &str, config: &str) -> Result<Program, String> {
    let graph = source::parse_graph_def(graph.to_owned().into(), "g.pbtxt").expect("a graph");
    let config = source::parse_config(config.to_owned().into(), "c.pbtxt").expect("a config");
    tf::prepare(graph, config).map_err(|e| e.to_string())
}

fn names(graph: &tf::Graph) -> Vec<&str> {
    graph.nodes.values().map(|n| n.name.as_str()).collect()
}

const FEED_X: &str = "feed { id { node_name: 'x' } shape { dim { size: 2 } dim { size: 5 } } }";
const FETCH_SUM: &str = "fetch { id { node_name: 'sum' } }";

#[test]
fn only_what_a_fetch_needs_is_looked_at() {
    let program = prepare(ADD, &format!("{FEED_X} {FETCH_SUM}")).expect("valid");
    assert_eq!(names(&program.graph), ["x", "c", "sum"]);
    assert_eq!(program.feeds[0].shape, [2, 5]);
    assert_eq!(program.feeds[0].data_type, DataType::Float);
    assert_eq!(program.graph.nodes[program.feeds[0].tensor.node].op, "_Arg");
}

#[test]
fn graphs_that_newer_readers_need_are_rejected() {
    let config = format!("{FEED_X} {FETCH_SUM}");
    let with = |versions: &str| prepare(&format!("{ADD} versions {{ {versions} }}"), &config);
    assert!(with("producer: 5000 min_consumer: 1645 bad_consumers: 1644").is_ok());
    let message = with("producer: 5000 min_consumer: 1646").expect_err("too new");
    assert!(message.contains("its min_consumer is 1646"), "{message}");
    let message = with("bad_consumers: 12 bad_consumers: 1645").expect_err("excluded");
    assert!(message.contains("its bad_consumers contain 1645"), "{message}");
}

#[test]
fn any_node_may_be_fed_fetched_twice_or_passed_through() {
    let config = "feed { id { node_name: 'c' } } feed { id { node_name: 'x' } shape { } }
                  fetch { id { node_name: 'c' } } fetch { id { node_name: 'sum' } } fetch { id { node_name: 'sum' } }";
    let program = prepare(ADD, config).expect("valid");
    assert_eq!(names(&program.graph), ["c", "x", "sum"]);
    assert_eq!(program.fetches[0].tensor, program.feeds[0].tensor);
    assert_eq!(program.fetches[1].tensor, program.fetches[2].tensor);
    assert!(program.feeds[0].shape.is_empty(), "the constant's own shape");
}

#[test]
fn a_feed_that_nothing_needs_stays_an_argument() {
    let config = "feed { id { node_name: 'sum' output_index: 0 } shape { dim { size: 4 } } } fetch { id { node_name: 'c' } }";
    let program = prepare(ADD, config).expect("valid");
    assert_eq!(names(&program.graph), ["sum", "c"]);
    let unknown = "feed { id { node_name: 'odd' output_index: 1 } shape { } type: DT_INT32 } fetch { id { node_name: 'c' } }";
    assert_eq!(prepare(ADD, unknown).expect("valid").feeds[0].data_type, DataType::Int32);
}

#[test]
fn messages_name_feed_and_fetch() {
    for (config, message) in [
        (FETCH_SUM.to_owned(), "placeholders that are needed but not fed: 'x' (needed by 'sum')"),
        (
            format!("feed {{ id {{ node_name: 'x' }} }} {FETCH_SUM}"),
            "Shape [2,?] is not fully defined: it is the shape of feed 'x:0' in the graph",
        ),
        (
            format!("feed {{ id {{ node_name: 'x' }} shape {{ unknown_rank: true }} }} {FETCH_SUM}"),
            "Shape <unknown> is not fully defined: it is the shape of feed 'x:0'",
        ),
        (
            format!("feed {{ id {{ node_name: 'x' output_index: 2 }} shape {{ }} }} {FETCH_SUM}"),
            "Invalid output_index 2 for feed node x",
        ),
        (
            format!("feed {{ id {{ node_name: 'x' }} shape {{ dim {{ size: -7 }} }} }} {FETCH_SUM}"),
            "feed 'x:0': shape size -7 is below -1",
        ),
        (
            format!("feed {{ id {{ node_name: 'odd' }} shape {{ }} }} {FEED_X} {FETCH_SUM}"),
            "the type of feed 'odd:0' is unknown",
        ),
        ("fetch { id { node_name: 'odd' } }".to_owned(), "op 'NoSuchOp' (node 'odd') is not registered"),
        (format!("{FEED_X} fetch {{ id {{ node_name: 'bad' }} }}"), "it is input 'missing:0' of node 'bad'"),
        (
            format!(
                "{FEED_X} fetch {{ id {{ node_name: 'sum' }} name: 'a' }} fetch {{ id {{ node_name: 'c' }} name: 'a_data' }}"
            ),
            "conflicting fetch name: a and a_data",
        ),
        (
            format!("{FEED_X} {FETCH_SUM} variable {{ node_name: 'v' }} variable {{ node_name: 'v' }}"),
            "variable 'v' is listed twice",
        ),
        (
            format!("{FEED_X} {FETCH_SUM} variable {{ node_name: 'sum' readonly: true }}"),
            "names a node with op AddV2, which is not a variable",
        ),
    ] {
        let error = prepare(ADD, &config).expect_err(&config);
        assert!(error.contains(message), "{config}: {error}");
    }
}

#[test]
fn an_unfed_placeholder_with_default_is_its_default() {
    let graph = format!(
        "{ADD} node {{ name: 'p' op: 'PlaceholderWithDefault' input: 'c' attr {{ key: 'dtype' value {{ type: DT_FLOAT }} }}
                attr {{ key: 'shape' value {{ shape {{ }} }} }} }}
         node {{ name: 'n' op: 'Neg' input: 'p' input: '^p' attr {{ key: 'T' value {{ type: DT_FLOAT }} }} }}"
    );
    let program = prepare(&graph, "fetch { id { node_name: 'n' } }").expect("valid");
    assert_eq!(program.graph.nodes[program.graph.find("p").expect("kept")].op, "Identity");
    let program =
        prepare(&graph, "feed { id { node_name: 'p' } } fetch { id { node_name: 'n' } }").expect("valid");
    assert_eq!(names(&program.graph), ["p", "n"]);
    assert!(program.graph.nodes[program.graph.find("n").expect("kept")].control_inputs.is_empty());
}

#[test]
fn wrong_nodes_are_refused_by_name() {
    let node = |text: &str| format!("{ADD} node {{ name: 'w' {text} }}");
    let float = "attr { key: 'T' value { type: DT_FLOAT } }";
    for (text, message) in [
        (
            format!("op: 'Neg' {float}"),
            "node 'w' (op Neg) has 0 inputs, but its signature and attributes require 1",
        ),
        ("op: 'Neg' input: 'c'".to_owned(), "node 'w' (op Neg): NodeDef missing attr 'T' from Op<name=Neg>"),
        (
            format!("op: 'Neg' input: 'c:1' {float}"),
            "node 'w' input 0 is 'c:1', but op Const of that node has only 1 outputs",
        ),
        (format!("op: 'Neg' input: 'c:' {float}"), "node 'w' has the invalid input 'c:'"),
        (
            "op: 'Neg' input: 'c' attr { key: 'T' value { type: DT_STRING } }".to_owned(),
            "Value string is not in the list of allowed values",
        ),
        (
            "op: 'Neg' input: 'c' attr { key: 'T' value { i: 1 } }".to_owned(),
            "attr 'T': expected a value of kind 'type'",
        ),
        (
            format!("op: 'AddN' input: 'c' attr {{ key: 'N' value {{ i: 0 }} }} {float}"),
            "attr 'N': Value 0 is below the minimum 1",
        ),
        (format!("op: 'AddN' input: 'c' attr {{ key: 'N' value {{ i: 9000000000 }} }} {float}"), "attr 'N'"),
        (format!("op: 'Neg' input: 'w' {float}"), "1 nodes in a cycle: 'w'"),
        ("op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } }".to_owned(), "'w' (fetched)"),
    ] {
        let error = prepare(&node(&text), "fetch { id { node_name: 'w' } }").expect_err(&text);
        assert!(error.contains(message), "{text}: {error}");
    }
}

const LIBRARY: &str = "
    library { function {
        signature { name: 'twice' input_arg { name: 'a' type_attr: 'T' } output_arg { name: 'b' type_attr: 'T' }
                    attr { name: 'T' type: 'type' } }
        node_def { name: 'sum' op: 'AddV2' input: 'a' input: 'a' attr { key: 'T' value { placeholder: 'T' } } }
        node_def { name: 'split' op: 'Split' input: 'zero:output:0' input: 'sum:z:0'
                   attr { key: 'T' value { placeholder: 'T' } } attr { key: 'num_split' value { i: 2 } } }
        node_def { name: 'zero' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } }
                   attr { key: 'value' value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 0 } } } }
        node_def { name: 'unused' op: 'NoSuchOp' }
        ret { key: 'b' value: 'split:output:1' } } }";

fn call(name: &str, op: &str, input: &str, data_type: &str) -> String {
    format!(
        "node {{ name: '{name}' op: '{op}' input: '{input}' attr {{ key: 'T' value {{ type: {data_type} }} }} }}"
    )
}

#[test]
fn a_function_is_made_once_for_each_set_of_attributes() {
    let cast = "node { name: 'i' op: 'Cast' input: 'c' attr { key: 'SrcT' value { type: DT_FLOAT } }
                attr { key: 'DstT' value { type: DT_INT32 } } }";
    let calls = [
        call("f", "twice", "c", "DT_FLOAT"),
        call("g", "twice", "f", "DT_FLOAT"),
        call("h", "twice", "i", "DT_INT32"),
    ];
    let config = "fetch { id { node_name: 'g' } } fetch { id { node_name: 'h' } }";
    let program = prepare(&format!("{ADD} {cast} {} {LIBRARY}", calls.concat()), config).expect("valid");
    let op = |name: &str| &program.graph.nodes[program.graph.find(name).expect("a node")].op;
    assert_eq!(op("f"), op("g"));
    assert_ne!(op("f"), op("h"));
    let function = program.library.get(op("h")).expect("an instance");
    assert_eq!(names(&function.graph), ["a", "sum", "split", "zero"]);
    assert_eq!(function.graph.output_type(function.results[0]), DataType::Int32);
    assert_eq!((function.results[0].index, function.arguments.len()), (1, 1));
    assert_eq!(program.library.functions().count(), 2);
}

#[test]
fn recursion_is_refused() {
    let library = "library { function {
        signature { name: 'f' input_arg { name: 'a' type: DT_FLOAT } output_arg { name: 'b' type: DT_FLOAT } }
        node_def { name: 'again' op: 'f' input: 'a' } ret { key: 'b' value: 'again:b:0' } } }";
    let graph = format!("{ADD} node {{ name: 'call' op: 'f' input: 'c' }} {library}");
    let error = prepare(&graph, "fetch { id { node_name: 'call' } }").expect_err("recursion");
    assert!(error.contains("function 'f' calls itself"), "{error}");
}

#[test]
fn missing_functions_are_named() {
    let graph = format!(
        "{ADD} node {{ name: 'call' op: 'PartitionedCall' input: 'c' attr {{ key: 'f' value {{ func {{ name: 'gone' }} }} }}
         attr {{ key: 'Tin' value {{ list {{ type: DT_FLOAT }} }} }} attr {{ key: 'Tout' value {{ list {{ type: DT_FLOAT }} }} }} }}"
    );
    let error = prepare(&graph, "fetch { id { node_name: 'call' } }").expect_err("missing");
    assert!(error.contains("node 'call'") && error.contains("function 'gone'"), "{error}");
}

#[test]
fn fetch_nodes_are_sorted_and_unique_and_need_a_valid_config() {
    let config = |text: &str| source::parse_config(text.to_owned().into(), "c.pbtxt").expect("a config");
    let fetch =
        |name: &str, index: i64| format!("fetch {{ id {{ node_name: '{name}' output_index: {index} }} }}");
    let text = [fetch("z", 0), fetch("a/b", 1), fetch("z", 2)].concat();
    assert_eq!(tf::fetch_nodes(&config(&text)).expect("valid"), ["a/b", "z"]);
    tf::fetch_nodes(&config("")).expect_err("no fetch");
    tf::fetch_nodes(&config(&fetch("", 0))).expect_err("no name");
}
