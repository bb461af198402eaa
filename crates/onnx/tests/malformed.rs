//! Malformed and hostile models: each is refused with one error that names the reason.

use bytes::Bytes;
use std::collections::BTreeMap;
use support::{Error, ErrorKind, Result};

/// A message: fields of bytes and of numbers.
#[derive(Clone, Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(mut self, mut value: u64) -> Self {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
        self
    }

    fn int(self, field: u64, value: i64) -> Self {
        self.varint(field << 3).varint(value as u64)
    }

    fn bytes(self, field: u64, content: &[u8]) -> Self {
        let mut message = self.varint(field << 3 | 2).varint(content.len() as u64);
        message.0.extend_from_slice(content);
        message
    }

    fn text(self, field: u64, content: &str) -> Self {
        self.bytes(field, content.as_bytes())
    }

    fn message(self, field: u64, content: &Self) -> Self {
        self.bytes(field, &content.0)
    }
}

fn node(op: &str, inputs: &[&str], outputs: &[&str]) -> Message {
    let message = inputs.iter().fold(Message::default(), |message, input| message.text(1, input));
    outputs.iter().fold(message, |message, output| message.text(2, output)).text(4, op)
}

fn subgraph(name: &str, graph: &Message) -> Message {
    Message::default().text(1, name).message(6, graph).int(20, 5)
}

/// A float array with these sizes.
fn value(name: &str, sizes: &[i64]) -> Message {
    let dims = sizes
        .iter()
        .fold(Message::default(), |shape, &size| shape.message(1, &Message::default().int(1, size)));
    let tensor = Message::default().int(1, 1).message(2, &dims);
    Message::default().text(1, name).message(2, &Message::default().message(1, &tensor))
}

fn graph(nodes: &[Message]) -> Message {
    let message = nodes.iter().fold(Message::default(), |message, node| message.message(1, node));
    message.text(2, "graph").message(11, &value("x", &[2])).message(12, &value("y", &[2]))
}

fn model(graph: &Message) -> Message {
    let opset = Message::default().text(1, "").int(2, 17);
    Message::default().int(1, 8).message(7, graph).message(8, &opset)
}

fn read(model: &Message) -> Result<onnx::Read> {
    let mut external = |path: &str| Err(Error::invalid(format!("no file '{path}'")));
    onnx::read(&Bytes::from(model.0.clone()), &BTreeMap::new(), &mut external)
}

/// Checks that a model is refused with an error that contains a text.
#[track_caller]
fn refused(model: &Message, text: &str) {
    let error = read(model).expect_err("a model that must be refused");
    assert_ne!(error.kind(), ErrorKind::Internal, "{error}");
    assert!(error.to_string().contains(text), "{error}");
}

/// A model that adds a constant.
fn with_constant(tensor: &Message) -> Message {
    model(&graph(&[node("Add", &["x", "c"], &["y"])]).message(5, &tensor.clone().text(8, "c")))
}

fn tensor(sizes: &[i64], data_type: i64, raw: &[u8]) -> Message {
    let tensor = sizes.iter().fold(Message::default(), |tensor, &size| tensor.int(1, size));
    tensor.int(2, data_type).bytes(9, raw)
}

#[test]
fn a_whole_model_is_read() {
    read(&model(&graph(&[node("Relu", &["x"], &["y"])]))).expect("a model");
    read(&with_constant(&tensor(&[2], 1, &[0; 8]))).expect("a model");
}

#[test]
fn the_format_is_recognized_by_its_fields() {
    let whole = model(&graph(&[node("Relu", &["x"], &["y"])]));
    assert!(onnx::is_model(&whole.0));
    assert!(!onnx::is_model(&whole.0[..whole.0.len() - 3]), "cut off");
    // A GraphDef begins with a node, and a SavedModel has no field 7.
    assert!(!onnx::is_model(&Message::default().message(1, &Message::default().text(1, "x")).0));
    assert!(!onnx::is_model(&Message::default().int(1, 1).message(2, &Message::default()).0));
}

#[test]
fn nodes_that_are_not_in_order_or_form_a_cycle_are_refused() {
    let cycle =
        [node("Add", &["x", "b"], &["a"]), node("Relu", &["a"], &["b"]), node("Relu", &["b"], &["y"])];
    refused(&model(&graph(&cycle)), "value 'b' does not exist");
    refused(&model(&graph(&[node("Relu", &["y"], &["y"])])), "value 'y' does not exist");
    refused(&model(&graph(&[node("Relu", &["x"], &["y"]), node("Relu", &["x"], &["y"])])), "computed twice");
    refused(&model(&graph(&[])), "value 'y' does not exist");
}

#[test]
fn constants_whose_data_does_not_fit_are_refused() {
    refused(&with_constant(&tensor(&[2], 1, &[0; 7])), "7 bytes of data do not fit");
    refused(&with_constant(&tensor(&[-2], 1, &[0; 8])), "not a valid shape");
    refused(&with_constant(&tensor(&[i64::MAX, i64::MAX], 1, &[0; 8])), "not a valid shape");
    refused(&with_constant(&tensor(&[1 << 40], 1, &[0; 8])), "do not fit");
    refused(&with_constant(&tensor(&[2], 99, &[0; 8])), "type 99 does not exist");
    refused(&with_constant(&tensor(&[2], 8, &[0; 8])), "strings are not supported");
    refused(&with_constant(&tensor(&[2], 23, &[0; 1])), "float4e2m1");
}

#[test]
fn negative_sizes_of_inputs_are_refused() {
    let graph = Message::default()
        .message(1, &node("Relu", &["x"], &["y"]))
        .message(11, &value("x", &[-3]))
        .message(12, &value("y", &[]));
    refused(&model(&graph), "size -3 is negative");
}

#[test]
fn a_size_of_minus_one_is_unknown() {
    let graph = Message::default()
        .message(1, &node("Relu", &["x"], &["y"]))
        .message(11, &value("x", &[-1, 3]))
        .message(12, &value("y", &[]));
    let found = read(&model(&graph)).expect("converters of Paddle's models write -1").foreign.config;
    let sizes: Vec<i64> = found.feed[0].shape.as_ref().expect("a shape").dim.iter().map(|d| d.size).collect();
    assert_eq!(sizes, [-1, 3]);
}

#[test]
fn external_data_stays_in_the_folder_of_the_model() {
    let external = |location: &str, offset: &str, length: &str| {
        let entry = |key: &str, value: &str| Message::default().text(1, key).text(2, value);
        let tensor = Message::default().int(1, 2).int(2, 1).int(14, 1);
        let tensor = tensor.message(13, &entry("location", location));
        let tensor = tensor.message(13, &entry("offset", offset)).message(13, &entry("length", length));
        with_constant(&tensor)
    };
    for path in ["../secret", "/etc/passwd", "a/../../b", "", "c:\\x", "a\\..\\b", "\\\\host\\x"] {
        refused(&external(path, "0", "8"), "outside of the folder");
    }
    refused(&external("w.bin", "0", "8"), "no file 'w.bin'");
    let mut file = |_: &str| Ok(Bytes::from_static(&[0; 16]));
    let mut read = |model: &Message| onnx::read(&Bytes::from(model.0.clone()), &BTreeMap::new(), &mut file);
    read(&external("w.bin", "8", "8")).expect("a model");
    for (offset, length) in [("16", "8"), ("18446744073709551615", "8"), ("0", "18446744073709551615")] {
        let error = read(&external("w.bin", offset, length)).expect_err("beyond the end");
        assert!(error.to_string().contains("has 16 bytes"), "{error}");
    }
    let error = read(&external("w.bin", "x", "8")).expect_err("not a number");
    assert!(error.to_string().contains("is not a number"), "{error}");
    let error = read(&external("w.bin", "0", "4")).expect_err("too short");
    assert!(error.to_string().contains("4 bytes of data do not fit"), "{error}");
}

#[test]
fn deep_subgraphs_are_refused() {
    let mut inner = node("Relu", &["x"], &["r"]);
    let other = Message::default().text(2, "e").message(12, &value("x", &[]));
    for _ in 0..40 {
        let branch = Message::default().message(1, &inner).text(2, "branch").message(12, &value("r", &[]));
        inner = node("If", &["c"], &["r"])
            .message(5, &subgraph("then_branch", &branch))
            .message(5, &subgraph("else_branch", &other));
    }
    let to_bool = Message::default().text(1, "to").int(3, 9).int(20, 2);
    let condition = node("Cast", &["x"], &["c"]).message(5, &to_bool);
    let whole = graph(&[condition, inner, node("Relu", &["r"], &["y"])]);
    // The decoder limits the depth of messages.
    refused(&model(&whole), "recursion limit");
}

/// A function of one value that calls others.
fn function(name: &str, calls: &[&str]) -> Message {
    let mut message = Message::default().text(1, name).text(4, "a").text(5, "z").text(10, "own");
    let mut last = "a".to_owned();
    for (k, call) in calls.iter().enumerate() {
        let next = if k + 1 == calls.len() { "z".to_owned() } else { format!("v{k}") };
        let domain = if call.starts_with('f') { "own" } else { "" };
        message = message.message(7, &node(call, &[last.as_str()], &[next.as_str()]).text(7, domain));
        last = next;
    }
    message
}

#[test]
fn functions_that_call_themselves_or_grow_without_bound_are_refused() {
    let main = graph(&[node("f0", &["x"], &["y"]).text(7, "own")]);
    refused(&model(&main).message(25, &function("f0", &["f0"])), "a function calls itself");
    let mut bomb = model(&main);
    for k in 0..40 {
        let next = format!("f{}", k + 1);
        bomb = bomb.message(25, &function(&format!("f{k}"), &[next.as_str(), next.as_str()]));
    }
    bomb = bomb.message(25, &function("f40", &["Relu"]));
    refused(&bomb, "nodes when calls of functions are replaced");
    read(&model(&main).message(25, &function("f0", &["Relu", "Abs"]))).expect("a model");
}

#[test]
fn files_that_would_take_too_much_memory_are_refused() {
    // Nodes without contents: two bytes each.
    let nodes = [1 << 3 | 2, 0].repeat(5_000_000);
    refused(&model(&Message(nodes)), "MiB are supported");
}

/// An ensemble of a test and two leaves. `edit` changes the values of a list by its name.
fn trees(edit: &dyn Fn(&str, &mut Vec<i64>)) -> Message {
    let lists: [(&str, &[i64]); 8] = [
        ("nodes_treeids", &[0, 0, 0]),
        ("nodes_nodeids", &[0, 1, 2]),
        ("nodes_featureids", &[0, 0, 0]),
        ("nodes_truenodeids", &[1, 0, 0]),
        ("nodes_falsenodeids", &[2, 0, 0]),
        ("target_treeids", &[0, 0]),
        ("target_nodeids", &[1, 2]),
        ("target_ids", &[0, 0]),
    ];
    let mut op = node("TreeEnsembleRegressor", &["x"], &["y"]).text(7, "ai.onnx.ml");
    for (name, values) in lists {
        let mut values = values.to_vec();
        edit(name, &mut values);
        let list = values.iter().fold(Message::default().text(1, name), |list, &value| list.int(8, value));
        op = op.message(5, &list.int(20, 7));
    }
    let modes = ["BRANCH_LEQ", "LEAF", "LEAF"];
    let modes = modes.iter().fold(Message::default().text(1, "nodes_modes"), |list, mode| list.text(9, mode));
    op = op.message(5, &modes.int(20, 8));
    for (name, count) in [("nodes_values", 3), ("target_weights", 2)] {
        op = op.message(5, &Message::default().text(1, name).bytes(7, &vec![0; 4 * count]).int(20, 6));
    }
    model(&graph(&[op]))
}

#[test]
fn trees_whose_lists_do_not_fit_are_refused() {
    read(&trees(&|_, _| {})).expect("a model");
    // Nodes in another order are found by their numbers.
    read(&trees(&|name, values| {
        if name == "nodes_nodeids" {
            *values = vec![5, 2, 1];
        }
    }))
    .expect("a model");
    let edited = |list: &'static str, edited: &'static [i64]| {
        trees(&move |name, values| {
            if name == list {
                *values = edited.to_vec();
            }
        })
    };
    refused(&edited("nodes_nodeids", &[0, 1, 1]), "tree 0 has two nodes 1");
    refused(&edited("nodes_truenodeids", &[3, 0, 0]), "tree 0 has no node 3");
    refused(&edited("nodes_truenodeids", &[-1, 0, 0]), "tree 0 has no node -1");
    refused(&edited("target_nodeids", &[1, i64::MAX]), "tree 0 has no node 9223372036854775807");
    refused(&edited("target_treeids", &[0, 1]), "tree 1 has no node 2");
    refused(&edited("nodes_featureids", &[0]), "the attributes of 3 nodes have lengths");
    refused(&edited("target_ids", &[0]), "the leaves do not fit");
}

#[test]
fn copies_of_lists_are_bounded() {
    // A function with a list of 32 MiB that is called nine times.
    let list = Message::default().text(1, "axes").bytes(8, &vec![1; 4 << 20]).int(20, 7);
    let op = node("ReduceSum", &["a"], &["z"]).message(5, &list);
    let own = Message::default().text(1, "f").text(4, "a").text(5, "z").message(7, &op).text(10, "own");
    let calls: Vec<Message> = (0..9)
        .map(|k| {
            let output = if k == 8 { "y".to_owned() } else { format!("v{k}") };
            node("f", &["x"], &[output.as_str()]).text(7, "own")
        })
        .collect();
    refused(&model(&graph(&calls)).message(25, &own), "lists of more than 256 MiB");
}

/// A loop that carries a sequence, with this number of iterations and these nodes in its body.
fn loop_over_sequence(count: &str, nodes: &[Message], result: &str) -> Message {
    let name = |name: &str| Message::default().text(1, name);
    let body = nodes.iter().fold(Message::default().text(2, "body"), |body, node| body.message(1, node));
    let body = ["i", "c", "s"].iter().fold(body, |body, input| body.message(11, &name(input)));
    let body = ["c", result].iter().fold(body, |body, output| body.message(12, &name(output)));
    let whole = node("Loop", &[count, "", "empty"], &["all"]).message(5, &subgraph("body", &body));
    let to_long = Message::default().text(1, "to").int(3, 7).int(20, 2);
    model(&graph(&[
        node("ReduceSum", &["x"], &["sum"]),
        node("Cast", &["sum"], &["count"]).message(5, &to_long),
        node("SequenceEmpty", &[], &["empty"]),
        whole,
        node("Relu", &["x"], &["y"]),
    ]))
}

#[test]
fn loops_that_carry_sequences_end_when_compiling() {
    refused(&loop_over_sequence("count", &[], "s"), "a constant number of iterations");
    refused(&loop_over_sequence("", &[], "s"), "loops that carry sequences by their iterations");
    let insert = node("SequenceInsert", &["s", "x"], &["longer"]);
    refused(
        &loop_over_sequence("", &[insert], "longer"),
        "copies of sequences and lists of more than 256 MiB",
    );
}

#[test]
fn models_without_parts_are_refused() {
    let whole = model(&graph(&[node("Relu", &["x"], &["y"])]));
    refused(&Message(whole.0[..whole.0.len() / 2].to_vec()), "not an ONNX model");
    refused(&Message::default().int(1, 8), "no graph");
    refused(&Message::default().int(1, 8).message(7, &graph(&[])), "opset_import");
    let old = Message::default().text(1, "").int(2, 3);
    refused(&Message::default().message(7, &graph(&[])).message(8, &old), "version 3 of ONNX's ops");
    refused(&model(&graph(&[node("NoSuchOp", &["x"], &["y"])])), "the op is not supported");
    let elsewhere = node("Relu", &["x"], &["y"]).text(7, "elsewhere");
    refused(&model(&graph(&[elsewhere])), "domain 'elsewhere' is unknown");
    refused(&model(&graph(&[node("Add", &["x"], &["y"])])), "input 1 is missing");
    refused(&model(&graph(&[node("If", &["x"], &["y"])])), "must be a graph");
    refused(&model(&graph(&[node("StringConcat", &["x", "x"], &["y"])])), "it works on strings");
}

#[test]
fn every_op_has_a_signature() {
    for name in onnx::own_ops() {
        assert!(tf::op_signature(&name).is_some(), "{name}");
    }
}
