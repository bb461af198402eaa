//! Configs inferred from graphs, and graphs examined for all of their problems.

use tf::proto::{Config, GraphDef};
use tf::source::{config_to_text, parse_config, parse_graph_def};
use tf::{InferOptions, Inferred};

fn graph(text: &str) -> GraphDef {
    parse_graph_def(text.to_owned().into_bytes().into(), "graph.pbtxt").expect("a graph")
}

fn config(text: &str) -> Config {
    parse_config(text.to_owned().into_bytes().into(), "config.pbtxt").expect("a config")
}

fn infer(text: &str, options: &InferOptions) -> Inferred {
    tf::infer(&graph(text), options).expect("a sound graph")
}

fn placeholder(name: &str, dims: &[i64]) -> String {
    let dims: String = dims.iter().map(|d| format!("dim {{ size: {d} }} ")).collect();
    format!(
        "node {{ name: \"{name}\" op: \"Placeholder\" attr {{ key: \"dtype\" value {{ type: DT_FLOAT }} }} \
         attr {{ key: \"shape\" value {{ shape {{ {dims} }} }} }} }}\n"
    )
}

fn node(name: &str, op: &str, inputs: &[&str], attrs: &str) -> String {
    let inputs: String = inputs.iter().map(|input| format!("input: \"{input}\" ")).collect();
    format!("node {{ name: \"{name}\" op: \"{op}\" {inputs} {attrs} }}\n")
}

const T: &str = "attr { key: \"T\" value { type: DT_FLOAT } }";
const DTYPE: &str = "attr { key: \"dtype\" value { type: DT_FLOAT } }";
const VERSIONS: &str = "versions { producer: 1286 }\n";

fn variable(name: &str) -> String {
    node(
        name,
        "VarHandleOp",
        &[],
        &format!("{DTYPE} attr {{ key: \"shape\" value {{ shape {{ dim {{ size: 2 }} }} }} }}"),
    )
}

/// Node name, C++ name and sizes of each feed.
fn feeds(config: &Config) -> Vec<(String, String, Vec<i64>)> {
    let entry = |feed: &tf::proto::Feed| {
        let sizes = feed.shape.iter().flat_map(|s| s.dim.iter().map(|d| d.size)).collect();
        (feed.id.clone().unwrap_or_default().node_name, feed.name.clone(), sizes)
    };
    config.feed.iter().map(entry).collect()
}

/// Node, output and C++ name of each fetch.
fn fetches(config: &Config) -> Vec<(String, i64, String)> {
    let entry = |fetch: &tf::proto::Fetch| {
        let id = fetch.id.clone().unwrap_or_default();
        (id.node_name, id.output_index, fetch.name.clone())
    };
    config.fetch.iter().map(entry).collect()
}

#[test]
fn sinks_are_fetched_and_the_placeholders_that_they_need_are_fed() {
    let text = [
        placeholder("in/x", &[2, 3]),
        placeholder("in.x", &[2, 3]),
        placeholder("unused", &[4]),
        node("a/sum", "AddV2", &["in/x", "in.x"], T),
        node("a.sum", "Neg", &["in/x"], T),
        node("say", "NoOp", &["^a/sum"], ""),
        VERSIONS.to_owned(),
    ]
    .concat();
    let found = infer(&text, &InferOptions::default());
    assert_eq!(found.problems, Vec::<String>::new());
    let feed = |node: &str, name: &str| (node.to_owned(), name.to_owned(), vec![2, 3]);
    assert_eq!(feeds(&found.config), [feed("in/x", "in_x"), feed("in.x", "in_x_2")]);
    let fetch = |node: &str, name: &str| (node.to_owned(), 0, name.to_owned());
    assert_eq!(fetches(&found.config), [fetch("a/sum", "a_sum"), fetch("a.sum", "a_sum_2")]);
    assert!(found.notes.iter().any(|note| note.contains("all 2 outputs")), "{:?}", found.notes);
    tf::prepare(graph(&text), found.config).expect("the inferred config is a good one");
}

#[test]
fn every_output_of_a_sink_is_fetched() {
    let axis = node(
        "axis",
        "Const",
        &[],
        "attr { key: \"dtype\" value { type: DT_INT32 } } \
         attr { key: \"value\" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 0 } } }",
    );
    let split =
        node("s", "Split", &["axis", "x"], &format!("{T} attr {{ key: \"num_split\" value {{ i: 2 }} }}"));
    let text = [placeholder("x", &[4]), axis, split, VERSIONS.to_owned()].concat();
    let found = infer(&text, &InferOptions::default());
    let fetch = |index, name: &str| ("s".to_owned(), index, name.to_owned());
    assert_eq!(fetches(&found.config), [fetch(0, "s"), fetch(1, "s_1")]);
}

#[test]
fn open_sizes_are_asked_for_and_taken_from_the_flags() {
    let text = [placeholder("x", &[-1, 3]), node("y", "Neg", &["x"], T), VERSIONS.to_owned()].concat();
    let asked = infer(&text, &InferOptions::default());
    assert_eq!(asked.problems.len(), 1);
    assert!(
        asked.problems[0].contains("[?,3]") && asked.problems[0].contains("--shape x=1,3"),
        "{:?}",
        asked.problems
    );
    let batch = infer(&text, &InferOptions { batch: Some(8), ..InferOptions::default() });
    assert_eq!(feeds(&batch.config)[0].2, [8, 3]);
    let shape = |sizes: &[i64]| InferOptions {
        shapes: [(("x".to_owned(), 0), sizes.to_vec())].into(),
        ..InferOptions::default()
    };
    assert_eq!(feeds(&infer(&text, &shape(&[5, 3])).config)[0].2, [5, 3]);
    let wrong = infer(&text, &shape(&[5, 4]));
    assert!(
        wrong.problems[0].contains("[?,3]") && wrong.problems[0].contains("[5,4]"),
        "{:?}",
        wrong.problems
    );
    let unknown = InferOptions { shapes: [(("q".to_owned(), 0), vec![1])].into(), ..shape(&[5, 3]) };
    assert!(infer(&text, &unknown).problems.iter().any(|p| p.contains("'q:0'")));
}

#[test]
fn a_placeholder_without_sizes_is_of_unknown_rank_in_old_graphs_and_a_scalar_in_new_ones() {
    let graph = |producer| {
        let versions = format!("versions {{ producer: {producer} }}");
        [placeholder("x", &[]), node("y", "Neg", &["x"], T), versions].concat()
    };
    assert_eq!(infer(&graph(23), &InferOptions::default()).problems.len(), 1);
    let found = infer(&graph(24), &InferOptions::default());
    assert_eq!((found.problems.len(), feeds(&found.config)[0].2.len()), (0, 0));
}

#[test]
fn fetches_by_name_leave_the_rest_out() {
    let text = [
        placeholder("x", &[2]),
        placeholder("z", &[2]),
        node("scope/y", "Neg", &["x"], T),
        node("w", "Neg", &["z"], T),
        VERSIONS.to_owned(),
    ]
    .concat();
    let fetch = |name: &str, index| InferOptions {
        fetches: vec![(name.to_owned(), index)],
        ..InferOptions::default()
    };
    let found = infer(&text, &fetch("scope/y", 0));
    assert_eq!((feeds(&found.config).len(), fetches(&found.config).len()), (1, 1));
    assert!(infer(&text, &fetch("y", 0)).problems[0].contains("there is 'scope/y'"));
    assert!(infer(&text, &fetch("w", 1)).problems[0].contains("has 1 outputs"));
}

#[test]
fn variables_are_readonly_unless_something_that_runs_writes_them() {
    let read = |name: &str, of: &str| node(name, "ReadVariableOp", &[of], DTYPE);
    let text = [
        placeholder("x", &[2]),
        variable("read"),
        variable("written"),
        variable("written/inside"),
        variable("unused"),
        variable("initialised"),
        read("r1", "read"),
        read("r2", "initialised"),
        node("copy", "Identity", &["written"], "attr { key: \"T\" value { type: DT_RESOURCE } }"),
        node("assign", "AssignAddVariableOp", &["copy", "x"], DTYPE),
        // Not run: nothing that is fetched waits for it.
        node("initialise", "AssignVariableOp", &["initialised", "x"], DTYPE),
        node(
            "call",
            "StatefulPartitionedCall",
            &["written/inside", "r1"],
            "attr { key: \"Tin\" value { list { type: DT_RESOURCE type: DT_FLOAT } } } \
             attr { key: \"Tout\" value { list { type: DT_FLOAT } } } attr { key: \"f\" value { func { name: \"inner\" } } }",
        ),
        node("sum", "AddV2", &["call", "r2"], T),
        node("y", "AddV2", &["sum", "x", "^assign"], T),
        VERSIONS.to_owned(),
        "library { function { signature { name: \"inner\" input_arg { name: \"v\" type: DT_RESOURCE } \
         input_arg { name: \"a\" type: DT_FLOAT } output_arg { name: \"o\" type: DT_FLOAT } is_stateful: true } \
         node_def { name: \"w\" op: \"AssignVariableOp\" input: \"v\" input: \"a\" \
         attr { key: \"dtype\" value { type: DT_FLOAT } } } \
         ret { key: \"o\" value: \"a\" } } }\n"
            .to_owned(),
    ]
    .concat();
    let found = infer(&text, &InferOptions { fetches: vec![("y".to_owned(), 0)], ..InferOptions::default() });
    let variables: Vec<(&str, &str, bool)> =
        found.config.variable.iter().map(|v| (v.node_name.as_str(), v.name.as_str(), v.readonly)).collect();
    assert_eq!(
        variables,
        [
            ("read", "read", true),
            ("written", "written", false),
            ("written/inside", "written_inside", false),
            ("initialised", "initialised", true),
        ]
    );
    tf::prepare(graph(&text), found.config).expect("the inferred config is a good one");
}

#[test]
fn a_config_reads_back_from_its_text() {
    let text = r#"
        feed { id { node_name: "a\"b\\\n" output_index: 2 } shape { dim { size: 3 } dim { size: 4 } } name: "x" type: DT_HALF }
        fetch { id { node_name: "y" } name: "r" shape { unknown_rank: true } }
        variable { node_name: "v" name: "w" shape { } type: DT_INT64 readonly: true }
        variable { node_name: "\303\251" }
    "#;
    let first = config(text);
    let second = config(&config_to_text(&first));
    assert_eq!(first, second);
    assert_eq!(second.variable[1].node_name, "é");
}

#[test]
fn examining_finds_what_preparing_stops_at_and_more() {
    let text = [
        placeholder("x", &[2]),
        placeholder("unfed", &[2]),
        variable("v"),
        node("r", "ReadVariableOp", &["v"], DTYPE),
        node("bad_type", "AddV2", &["x", "r"], "attr { key: \"T\" value { type: DT_INT32 } }"),
        node("bad_attr", "Neg", &["unfed"], "attr { key: \"T\" value { type: DT_STRING } }"),
        node("nothing", "NoSuchOp", &["x"], ""),
        node(
            "y",
            "AddN",
            &["bad_type", "bad_attr", "nothing"],
            &format!("{T} attr {{ key: \"N\" value {{ i: 3 }} }}"),
        ),
        VERSIONS.to_owned(),
    ]
    .concat();
    let config = config(
        r#"feed { id { node_name: "x" } shape { dim { size: 2 } } type: DT_FLOAT }
           feed { id { node_name: "absent" } }
           fetch { id { node_name: "y" } } fetch { id { node_name: "gone" } } fetch { id { node_name: "r" output_index: 4 } }"#,
    );
    let examined = tf::examine(&graph(&text), &config);
    let about: Vec<&str> = examined.problems.iter().map(|p| p.node.as_str()).collect();
    for node in ["absent", "gone", "unfed", "bad_type", "bad_attr", "nothing", "r", "v"] {
        assert!(about.contains(&node), "{node}: {:#?}", examined.problems);
    }
    assert!(examined.warnings.iter().any(|w| w.contains("'absent:0'")), "{:?}", examined.warnings);
    assert_eq!(examined.ops["NoSuchOp"], ["nothing"]);
    assert!(tf::prepare(graph(&text), config).is_err());
}
