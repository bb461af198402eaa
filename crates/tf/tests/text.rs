//! Text format: what is accepted, and the messages about what is not.

use tf::source;

fn config(text: &str) -> Result<tf::proto::Config, String> {
    source::parse_config(text.to_owned().into(), "c.pbtxt").map_err(|e| e.to_string())
}

#[test]
fn every_way_to_write_a_field_is_read() {
    let plain =
        config("feed { id { node_name: \"ab\" output_index: 10 } } fetch { id { node_name: \"y\" } }");
    let plain = plain.expect("valid");
    for text in [
        "feed < id < node_name: 'a' \"b\" output_index: 0xA > > fetch: { id: { node_name: \"\\171\" } }",
        "# c\nfeed [{ id { node_name: \"\\x61\\u0062\", output_index: 012; }; }],\nfetch{id{node_name:'y'}}",
        "\u{feff}feed:<id{node_name:\"a\"\n'b' output_index:10}>fetch{id{node_name:'y'}} fetch: []",
    ] {
        assert_eq!(config(text).expect(text), plain, "{text}");
    }
}

#[test]
fn enums_numbers_and_both_spellings_of_readonly_are_read() {
    let a = config("variable { node_name: 'v' type: DT_FLOAT readonly: true }").expect("valid");
    let b = config("variable { node_name: 'v' type: 1 read_only: True }").expect("valid");
    let c = config("variable { node_name: 'v' type: 0x1 readonly: 1 } conversion_options { x: [1, -2.5] }");
    assert_eq!(a, b);
    assert_eq!(a, c.expect("valid"));
    let graph =
        "node { name: 'n' op: 'o' attr { key: 'f' value { list { f: [1, 2.5, -inf, 1e3f, .5, nan] } } } }";
    let graph = source::parse_graph_def(graph.to_owned().into(), "g.pbtxt").expect("valid");
    let floats = tf::Attributes::new("n", "o", graph.node[0].attr.clone()).floats("f").expect("floats");
    assert_eq!(floats[..5], [1.0, 2.5, f32::NEG_INFINITY, 1000.0, 0.5]);
    assert!(floats[5].is_nan());
}

#[test]
fn messages_say_where_and_what() {
    for (text, message) in [
        ("feed { bogus: 1 }", "1:13: Message type \"tensorflow.tf2xla.Feed\" has no field named \"bogus\"."),
        ("feed {\n  id { node_name: 3 }\n}", "2:19: Expected string, got: 3"),
        ("feed { id { output_index: x } }", "1:27: Expected integer, got: x"),
        (
            "feed { id { output_index: 9223372036854775808 } }",
            "1:27: Integer out of range (9223372036854775808)",
        ),
        ("feed { name: 'a' name: 'b' }", "1:22: Non-repeated field \"name\" is specified multiple times."),
        ("feed { type: DT_FLAOT }", "1:14: Unknown enumeration value of \"DT_FLAOT\" for field \"type\"."),
        ("feed { name: 'a\n' }", "1:16: String literals cannot cross line boundaries."),
        ("feed { name: '\\q' }", "1:14: Invalid escape sequence in string literal."),
        ("feed { name: '\\377' }", "1:14: String field \"name\" contains invalid UTF-8."),
        ("feed {", "1:7: Expected identifier, got: "),
        ("feed", "1:5: Expected \"{\", found \"\"."),
        ("}", "1:1: Expected identifier, got: }"),
        ("variable { readonly: 2 }", "1:22: Expected \"true\" or \"false\", got: 2"),
    ] {
        let expected = format!("Can't parse c.pbtxt as text proto: {message}");
        assert_eq!(config(text).expect_err(text), expected);
    }
    let oneof = "node { attr { key: 'a' value { i: 1 f: 2 } } }";
    let error = source::parse_graph_def(oneof.to_owned().into(), "g.pbtxt").expect_err("two values");
    assert!(error.message().contains("another member of oneof \"value\""), "{error}");
}

#[test]
fn content_tells_text_from_binary() {
    let text = "node { name: 'n' op: 'NoOp' }";
    let graph = source::parse_graph_def(text.to_owned().into(), "graph.pb").expect("text in a .pb");
    assert_eq!(graph.node[0].op, "NoOp");
    let binary = prost::Message::encode_to_vec(&graph);
    assert_eq!(source::parse_graph_def(binary.clone().into(), "graph.pbtxt").expect("binary"), graph);
    assert_eq!(source::parse_graph_def(binary.into(), "graph.pb").expect("binary"), graph);
    let error = source::parse_graph_def(vec![0x0a, 0xff, 0x01].into(), "g.pb").expect_err("cut off");
    assert!(error.message().starts_with("Can't parse g.pb as binary proto"), "{error}");
    let error = source::read_graph_def(std::path::Path::new("/nonexistent.pb")).expect_err("missing");
    assert_eq!(error.message(), "/nonexistent.pb; No such file or directory");
    for saved in [&b"\x08\x01\x12\x02\x0a\x00"[..], b"saved_model_schema_version: 1\nmeta_graphs { }"] {
        let error =
            source::parse_graph_def(saved.to_vec().into(), "saved_model.pb").expect_err("a SavedModel");
        assert!(error.message().contains("it is a SavedModel"), "{error}");
    }
}

#[test]
fn graphs_are_printed_as_tensorflow_prints_them() {
    // Made by libprotobuf: each kind of attribute, numbers at the edges of what a form can print,
    // bytes that need escapes.
    let text = include_str!("data/every_kind.pbtxt");
    let graph = source::parse_graph_def(text.to_owned().into(), "g.pbtxt").expect("valid");
    assert_eq!(source::graph_def_to_text(&graph), text);
}

#[test]
fn step_stats_are_printed_as_they_were_read() {
    let text = "step_stats {\n  dev_stats {\n    device: \"/device:CPU:0\"\n    node_stats {\n      node_name: \"a\"\n      \
                all_start_micros: 7\n      timeline_label: \"a = MatMul(x, y)\"\n      thread_id: 4294967295\n      \
                memory_stats {\n      }\n    }\n    thread_names {\n      key: 1\n      value: \"main\"\n    }\n  }\n}\n";
    let metadata = source::parse_run_metadata(text.to_owned().into(), "m.pbtxt").expect("valid");
    assert_eq!(source::run_metadata_to_text(&metadata), text);
}
