//! Configs inferred from graphs, and graphs examined for all of their problems.

use tf::proto::{Config, GraphDef};
use tf::source::{config_to_text, parse_config, parse_graph_def};
use tf::{DimSize, InferOptions, Inferred};

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
fn the_one_end_is_fetched_and_the_placeholders_that_it_needs_are_fed() {
    let text = [
        placeholder("in/x", &[2, 3]),
        placeholder("in.x", &[2, 3]),
        placeholder("unused", &[4]),
        node("a/sum", "AddV2", &["in/x", "in.x"], T),
        node("say", "NoOp", &["^a/sum"], ""),
        VERSIONS.to_owned(),
    ]
    .concat();
    let found = infer(&text, &InferOptions::default());
    assert_eq!(found.problems, Vec::<String>::new());
    let feed = |node: &str, name: &str| (node.to_owned(), name.to_owned(), vec![2, 3]);
    assert_eq!(feeds(&found.config), [feed("in/x", "in_x"), feed("in.x", "in_x_2")]);
    assert_eq!(fetches(&found.config), [("a/sum".to_owned(), 0, "a_sum".to_owned())]);
    tf::prepare(graph(&text), found.config).expect("the inferred config is a good one");
}

#[test]
fn of_several_ends_the_user_chooses() {
    let text = [
        placeholder("x", &[2]),
        placeholder("z", &[2]),
        variable("v"),
        node("r", "ReadVariableOp", &["v"], DTYPE),
        node("sum", "AddV2", &["x", "r"], T),
        node("y", "Neg", &["z"], T),
        node("step", "AssignAddVariableOp", &["v", "x"], DTYPE),
        node("train", "NoOp", &["^step"], ""),
        VERSIONS.to_owned(),
    ]
    .concat();
    let found = infer(&text, &InferOptions::default());
    let [problem] = found.problems.as_slice() else { panic!("one problem: {:#?}", found.problems) };
    for line in [
        "--fetch sum  (op AddV2) needs the feeds x; reads the variables v",
        "--fetch y  (op Neg) needs the feeds z",
        "--fetch train  (op NoOp, no result: runs for its updates) needs the feeds x; updates v",
    ] {
        assert!(problem.lines().any(|l| l.trim() == line), "{line}\n{problem}");
    }
    let both =
        InferOptions { fetches: vec![("sum".to_owned(), 0), ("train".to_owned(), 0)], ..Default::default() };
    let found = infer(&text, &both);
    assert_eq!(found.problems, Vec::<String>::new());
    assert!(!found.config.variable[0].readonly);
    let program = tf::prepare(graph(&text), found.config).expect("the inferred config is a good one");
    assert_eq!(program.fetches.len(), 1);
    let updates = InferOptions { fetches: vec![("train".to_owned(), 0)], ..Default::default() };
    assert!(infer(&text, &updates).problems[0].contains("no result"));
}

#[test]
fn unused_nodes_of_training_are_not_results() {
    let string = "attr { key: \"dtype\" value { type: DT_STRING } } \
                  attr { key: \"value\" value { tensor { dtype: DT_STRING tensor_shape {} string_val: \"loss\" } } }";
    let text = [
        placeholder("x", &[2]),
        variable("w"),
        node("w/init", "Neg", &["x"], T),
        node("w/Assign", "AssignVariableOp", &["w", "w/init"], DTYPE),
        node("w/Read", "ReadVariableOp", &["w"], DTYPE),
        node("w/Read/Identity", "Identity", &["w/Read"], T),
        node("r", "ReadVariableOp", &["w"], DTYPE),
        node("loss", "AddV2", &["x", "r"], T),
        node("gradients/zeros_like", "ZerosLike", &["x"], T),
        node("gradients/loss_grad/Neg", "Neg", &["x"], T),
        node("step", "AssignSubVariableOp", &["w", "gradients/loss_grad/Neg"], DTYPE),
        node("shape", "Shape", &["x"], T),
        node("init", "NoOp", &["^w/Assign"], ""),
        node("train", "NoOp", &["^step"], ""),
        node("tags", "Const", &[], string),
        node("summary", "ScalarSummary", &["tags", "loss"], T),
        node("result", "Identity", &["loss", "^train"], T),
        VERSIONS.to_owned(),
    ]
    .concat();
    let found = infer(&text, &InferOptions::default());
    assert_eq!(found.problems, Vec::<String>::new());
    assert_eq!(fetches(&found.config), [("result".to_owned(), 0, "result".to_owned())]);
    // Without it, the loss is a sink, because a summary does not count as a use. The step is not
    // part of it.
    let text: String = text.lines().filter(|line| !line.contains("name: \"result\"")).collect();
    let found = infer(&text, &InferOptions::default());
    let problem = found.problems.concat();
    assert!(problem.contains("--fetch loss ") && problem.contains("--fetch train "), "{problem}");
    assert!(
        !problem.contains("zeros_like") && !problem.contains("init") && !problem.contains("Read"),
        "{problem}"
    );
}

#[test]
fn what_comes_out_of_a_pipeline_is_fed() {
    let iterator = node(
        "next",
        "IteratorGetNext",
        &["it"],
        "attr { key: \"output_types\" value { list { type: DT_FLOAT type: DT_FLOAT type: DT_INT64 } } } \
         attr { key: \"output_shapes\" value { list { shape { dim { size: -1 } dim { size: 3 } } \
         shape { dim { size: -1 } } shape { } } } }",
    );
    let handle = node(
        "it",
        "OneShotIterator",
        &[],
        "attr { key: \"dataset_factory\" value { func { name: \"none\" } } } \
         attr { key: \"output_types\" value { list { type: DT_FLOAT type: DT_FLOAT type: DT_INT64 } } } \
         attr { key: \"output_shapes\" value { list { shape { } shape { } shape { } } } }",
    );
    let default = node(
        "keep",
        "PlaceholderWithDefault",
        &["next"],
        &format!(
            "{DTYPE} attr {{ key: \"shape\" value {{ shape {{ dim {{ size: -1 }} dim {{ size: 3 }} }} }} }}"
        ),
    );
    let text = [
        handle,
        iterator,
        default,
        node("a", "Neg", &["keep"], T),
        node("b", "Neg", &["next:1"], T),
        VERSIONS.to_owned(),
    ]
    .concat();
    let options = InferOptions {
        fetches: vec![("a".to_owned(), 0), ("b".to_owned(), 0)],
        dims: [("batch".to_owned(), DimSize::Known(4))].into(),
        ..InferOptions::default()
    };
    let found = infer(&text, &options);
    assert_eq!(found.problems, Vec::<String>::new());
    let feed = |node: &str, name: &str, sizes: &[i64]| (node.to_owned(), name.to_owned(), sizes.to_vec());
    assert_eq!(feeds(&found.config), [feed("next", "next_1", &[4]), feed("keep", "keep", &[4, 3])]);
    tf::prepare(graph(&text), found.config).expect("the inferred config is a good one");
}

#[test]
fn a_placeholder_with_a_default_keeps_it_unless_a_shape_is_given() {
    let value = "attr { key: \"dtype\" value { type: DT_FLOAT } } attr { key: \"value\" value { tensor { \
                 dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: 1 } } }";
    let with_default = format!("{DTYPE} attr {{ key: \"shape\" value {{ shape {{ dim {{ size: 2 }} }} }} }}");
    let text = [
        node("one", "Const", &[], value),
        node("x", "PlaceholderWithDefault", &["one"], &with_default),
        node("y", "Neg", &["x"], T),
        VERSIONS.to_owned(),
    ]
    .concat();
    assert_eq!(feeds(&infer(&text, &InferOptions::default()).config).len(), 0);
    let fed = InferOptions { shapes: [(("x".to_owned(), 0), vec![None])].into(), ..InferOptions::default() };
    assert_eq!(feeds(&infer(&text, &fed).config)[0].2, [2]);
}

#[test]
fn nodes_of_one_shared_name_are_one_variable() {
    let shared =
        |name: &str| variable(name).replace(" }\n", " attr { key: \"shared_name\" value { s: \"v\" } } }\n");
    let text = [
        placeholder("x", &[2]),
        shared("first"),
        shared("second"),
        node("w", "AssignVariableOp", &["second", "x"], DTYPE),
        node("r", "ReadVariableOp", &["first", "^w"], DTYPE),
        node("y", "Neg", &["r"], T),
        VERSIONS.to_owned(),
    ]
    .concat();
    let found = infer(&text, &InferOptions::default());
    assert_eq!(found.problems, Vec::<String>::new());
    let [variable] = found.config.variable.as_slice() else { panic!("{:?}", found.config.variable) };
    assert_eq!((variable.node_name.as_str(), variable.readonly), ("first", false));
    let mut twice = found.config.clone();
    tf::prepare(graph(&text), found.config).expect("the inferred config is a good one");
    twice.variable.push(tf::proto::Variable { node_name: "second".to_owned(), ..twice.variable[0].clone() });
    twice.variable[1].name = "other".to_owned();
    let error = tf::prepare(graph(&text), twice).expect_err("one variable listed twice");
    assert!(error.message().contains("'first' and 'second'"), "{}", error.message());
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
    for part in ["'x' of shape [?,3]", "--dim batch=1", "--shape x=1,3"] {
        assert!(asked.problems[0].contains(part), "{part}: {:?}", asked.problems);
    }
    let dims = |dims: &[(&str, i64)]| InferOptions {
        dims: dims.iter().map(|(name, size)| ((*name).to_owned(), DimSize::Known(*size))).collect(),
        ..InferOptions::default()
    };
    assert_eq!(feeds(&infer(&text, &dims(&[("batch", 8)])).config)[0].2, [8, 3]);
    assert_eq!(feeds(&infer(&text, &dims(&[("batch", 8), ("x.0", 7)])).config)[0].2, [7, 3]);
    assert!(infer(&text, &dims(&[("batch", 8), ("x.1", 4)])).problems[0].contains("size 3"));
    assert!(infer(&text, &dims(&[("batch", 8), ("x.2", 4)])).problems[0].contains("x.0, x.1"));
    let shape = |sizes: &[Option<i64>]| InferOptions {
        shapes: [(("x".to_owned(), 0), sizes.to_vec())].into(),
        ..InferOptions::default()
    };
    assert_eq!(feeds(&infer(&text, &shape(&[Some(5), Some(3)])).config)[0].2, [5, 3]);
    assert_eq!(feeds(&infer(&text, &shape(&[Some(5), None])).config)[0].2, [5, 3]);
    let wrong = infer(&text, &shape(&[Some(5), Some(4)]));
    assert!(
        wrong.problems[0].contains("[?,3]") && wrong.problems[0].contains("[5,4]"),
        "{:?}",
        wrong.problems
    );
    let fitting = shape(&[Some(5), Some(3)]);
    let unknown = InferOptions { shapes: [(("q".to_owned(), 0), vec![Some(1)])].into(), ..fitting };
    assert!(infer(&text, &unknown).problems.iter().any(|p| p.contains("'q:0'")));
}

#[test]
fn all_open_sizes_are_asked_for_at_once() {
    let text = [
        placeholder("x", &[-1, -1, 3]),
        placeholder("y", &[-1]),
        node("a", "Neg", &["x"], T),
        node("b", "Neg", &["y"], T),
        node("c", "AddV2", &["a", "b"], T),
        VERSIONS.to_owned(),
    ]
    .concat();
    let asked = infer(&text, &InferOptions::default());
    let [problem] = asked.problems.as_slice() else { panic!("one problem: {:#?}", asked.problems) };
    assert!(
        problem.contains("'x' of shape [?,?,3]: --dim batch=1 --dim x.1=1, or --shape x=1,1,3"),
        "{problem}"
    );
    assert!(problem.contains("'y' of shape [?]: --dim batch=1, or --shape y=1"), "{problem}");
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
    assert!(infer(&text, &fetch("y", 0)).problems[0].contains("did you mean 'scope/y'?"));
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
        variable("initialized"),
        read("r1", "read"),
        read("r2", "initialized"),
        node("copy", "Identity", &["written"], "attr { key: \"T\" value { type: DT_RESOURCE } }"),
        node("assign", "AssignAddVariableOp", &["copy", "x"], DTYPE),
        // Does not run, because no fetched node waits for it.
        node("initialize", "AssignVariableOp", &["initialized", "x"], DTYPE),
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
            ("initialized", "initialized", true),
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

#[test]
fn an_open_shape_of_a_variable_is_given_by_its_node() {
    let unknown = node(
        "v",
        "VarHandleOp",
        &[],
        &format!("{DTYPE} attr {{ key: \"shape\" value {{ shape {{ unknown_rank: true }} }} }}"),
    );
    let text = [
        unknown,
        node("r", "ReadVariableOp", &["v"], DTYPE),
        node("y", "Neg", &["r"], T),
        VERSIONS.to_owned(),
    ]
    .concat();
    let asked = infer(&text, &InferOptions::default());
    assert!(asked.problems[0].contains("--shape v="), "{:?}", asked.problems);
    let given =
        InferOptions { shapes: [(("v".to_owned(), 0), vec![Some(2)])].into(), ..InferOptions::default() };
    let found = infer(&text, &given);
    assert_eq!(found.problems, Vec::<String>::new());
    assert_eq!(found.config.variable[0].shape.as_ref().map(|s| s.dim[0].size), Some(2));
    tf::prepare(graph(&text), found.config).expect("the inferred config is a good one");
}

#[test]
fn ranges_become_named_dimensions_under_names_that_no_feed_has() {
    let shapes = [placeholder("x", &[-1, 3]), placeholder("batch", &[-1, -1])].concat();
    let text = [shapes, node("y", "AddV2", &["x", "batch"], T), VERSIONS.to_owned()].concat();
    let dims = |dims: &[(&str, DimSize)]| InferOptions {
        dims: dims.iter().map(|(name, size)| ((*name).to_owned(), size.clone())).collect(),
        ..InferOptions::default()
    };
    let named = |name: &str| DimSize::Named(name.to_owned());
    let options =
        dims(&[("batch", DimSize::Range(1, 8)), ("batch.1", named("n")), ("n", DimSize::Range(0, 3))]);
    let found = infer(&text, &options);
    assert_eq!(found.problems, Vec::<String>::new());
    let ranges: Vec<_> = found.config.dimension.iter().map(|d| (d.name.as_str(), d.min, d.max)).collect();
    assert_eq!(ranges, [("batch_2", 1, 8), ("n", 0, 3)], "a feed is called 'batch'");
    let program = tf::prepare(graph(&text), found.config.clone()).expect("the inferred config is a good one");
    assert_eq!(program.feeds[1].shape, [8, 3]);
    assert_eq!(program.feeds[1].dimensions, [(0, 0), (1, 1)].into());
    assert_eq!(program.feeds[0].dimensions, [(0, 0)].into(), "one name is one dimension");
    let printed = config_to_text(&found.config);
    assert_eq!(parse_config(printed.into_bytes().into(), "c.pbtxt").expect("a config"), found.config);

    let open = InferOptions { batch_range: Some((1, 64)), ..InferOptions::default() };
    let asked = infer(&text, &open);
    assert!(asked.problems[0].contains("'batch' of shape [?,?]: --dim batch.1=1, or --shape batch=?,1"));
    assert!(asked.notes[0].contains("'x', 'batch' can have any size from 1 to 64; --dim batch=LOW..HIGH"));
}

#[test]
fn contradictory_dimensions_of_a_config_are_refused() {
    let text = [placeholder("x", &[-1, 3]), node("y", "Neg", &["x"], T), VERSIONS.to_owned()].concat();
    let refused = |name: &str, dimensions: &str| {
        let config = format!(
            "feed {{ id {{ node_name: \"x\" }} name: \"x\" shape {{ dim {{ size: -1 name: \"{name}\" }} dim {{ size: 3 }} }} }} \
             fetch {{ id {{ node_name: \"y\" }} }} {dimensions}"
        );
        let config = parse_config(config.into_bytes().into(), "c.pbtxt").expect("a config");
        tf::prepare(graph(&text), config).expect_err("a contradiction").message().to_owned()
    };
    let dimension =
        |name: &str, min: i64, max: i64| format!("dimension {{ name: \"{name}\" min: {min} max: {max} }}");
    assert!(refused("n", "").contains("dimension { name: \"batch\" min: 1 max: 64 }"));
    for (min, max) in [(3, 2), (-1, 2), (0, 0), (1, 1 << 31), (0, i64::MAX), (i64::MIN, 4)] {
        let message = refused("n", &dimension("n", min, max));
        assert!(message.contains(&format!("impossible range {min}..{max}")), "{message}");
    }
    assert!(refused("n", &[dimension("n", 1, 2), dimension("m", 1, 2)].concat()).contains("'m': remove it"));
    assert!(
        refused("n", &[dimension("n", 1, 2), dimension("n", 1, 3)].concat())
            .contains("dimension 'n' is listed twice")
    );
    assert!(refused("x", &dimension("x", 1, 2)).contains("duplicate feed name: x"));
    assert!(refused("", &dimension("", 1, 2)).contains("has no name"));
    let fixed = "feed { id { node_name: \"x\" } shape { dim { size: -1 name: \"n\" } dim { size: 3 name: \"n\" } } } \
         fetch { id { node_name: \"y\" } } dimension { name: \"n\" min: 1 max: 4 }";
    let config = parse_config(fixed.as_bytes().to_vec().into(), "c.pbtxt").expect("a config");
    let error = tf::prepare(graph(&text), config).expect_err("a contradiction");
    assert!(
        error.message().contains("dimension 1 of feed 'x:0' has the size 3, and the name 'n'"),
        "{error}"
    );
}
