//! Small models, and damaged ones.

use bytes::Bytes;
use serde_json::{Value, json};
use shape::Scalar::{self, Float, Signed};
use std::path::Path;
use support::{Error, Result};
use tf::Attributes;
use tf::proto::{MetaGraphDef, NodeDef};

/// Writes the files of a model into a directory, and reads it.
fn read(model: &Value, weights: &[(&str, &[u8])]) -> Result<MetaGraphDef> {
    let place = tempfile::tempdir().expect("a directory");
    for (name, bytes) in weights {
        std::fs::write(place.path().join(name), bytes).expect("writable");
    }
    tfjs::read(&place.path().join("model.json"), &Bytes::from(model.to_string()))
}

fn model(nodes: Value, weights: Value) -> Value {
    json!({
        "format": "graph-model",
        "modelTopology": {"node": nodes, "versions": {"producer": 1087}},
        "weightsManifest": [{"paths": ["a.bin", "b.bin"], "weights": weights}],
    })
}

fn constant(name: &str, data_type: &str) -> Value {
    json!({"name": name, "op": "Const", "attr": {"dtype": {"type": data_type}}})
}

fn nodes(meta: &MetaGraphDef) -> &[NodeDef] {
    &meta.graph_def.as_ref().expect("a graph").node
}

fn attributes(node: &NodeDef) -> Attributes {
    Attributes::new(&node.name, &node.op, node.attr.clone())
}

/// Shape and elements of a constant.
fn value(node: &NodeDef) -> (String, Vec<Scalar>) {
    let literal = attributes(node).tensor("value").expect("a value");
    (literal.array_shape().to_string(), literal.scalars().collect())
}

#[test]
fn weights_of_all_types_become_values() {
    // f32 {1, -2}; uint8 {0, 255} with scale 0.5 and min -1; uint16 {3}; float16 {1.5}; int32 {-7};
    // bool; strings "ab" and "". The second file begins within a weight.
    let mut bytes = Vec::new();
    bytes.extend([1.0f32, -2.0].iter().flat_map(|x| x.to_le_bytes()));
    bytes.extend([0u8, 255]);
    bytes.extend(3u16.to_le_bytes());
    bytes.extend([0x00, 0x3e]);
    bytes.extend((-7i32).to_le_bytes());
    bytes.push(1);
    bytes.extend([2, 0, 0, 0, b'a', b'b', 0, 0, 0, 0]);
    let (first, second) = bytes.split_at(5);
    let names = [
        ("f", "DT_FLOAT"),
        ("q", "DT_FLOAT"),
        ("i", "DT_INT64"),
        ("h", "DT_FLOAT"),
        ("n", "DT_INT64"),
        ("b", "DT_BOOL"),
    ];
    let mut graph: Vec<Value> = names.iter().map(|(name, data_type)| constant(name, data_type)).collect();
    graph.push(constant("s", "DT_STRING"));
    let meta = read(
        &model(
            graph.into(),
            json!([
                {"name": "f", "shape": [2], "dtype": "float32"},
                {"name": "q", "shape": [1, 2], "dtype": "float32",
                 "quantization": {"dtype": "uint8", "scale": 0.5, "min": -1}},
                {"name": "i", "shape": [], "dtype": "int32",
                 "quantization": {"dtype": "uint16", "scale": 2.5, "min": -9}},
                {"name": "h", "shape": [1], "dtype": "float32", "quantization": {"dtype": "float16"}},
                {"name": "n", "shape": [], "dtype": "int32"},
                {"name": "b", "shape": [1], "dtype": "bool"},
                {"name": "s", "shape": [2], "dtype": "string"},
            ]),
        ),
        &[("a.bin", first), ("b.bin", second)],
    )
    .expect("a model");
    let expected = [
        ("f32[2]", vec![Float(1.0), Float(-2.0)]),
        ("f32[1,2]", vec![Float(-1.0), Float(126.5)]),
        ("s64[]", vec![Signed(-1)]),
        ("f32[1]", vec![Float(1.5)]),
        ("s64[]", vec![Signed(-7)]),
        ("pred[1]", vec![Scalar::Pred(true)]),
    ];
    let values: Vec<_> = nodes(&meta)[..6].iter().map(value).collect();
    // 3 * 2.5 - 9 is -1.5, which is rounded up.
    assert_eq!(values, expected.map(|(shape, scalars)| (shape.to_owned(), scalars)));
    let strings = attributes(&nodes(&meta)[6]).tensor_strings("value").expect("strings");
    assert_eq!(strings, [Bytes::from("ab"), Bytes::new()]);
}

#[test]
fn a_constant_takes_its_weight_even_if_the_graph_has_an_empty_value() {
    let mut node = constant("c", "DT_INT32");
    node["attr"]["value"] = json!({"tensor": {"dtype": "DT_INT32", "tensorShape": {"dim": [{"size": "2"}]}}});
    let manifest = json!([{"name": "c", "shape": [2], "dtype": "int32"}]);
    let meta = read(&model(json!([node]), manifest), &[("a.bin", &[1, 0, 0, 0, 2]), ("b.bin", &[0; 3])]);
    let meta = meta.expect("a model");
    assert_eq!(value(&nodes(&meta)[0]).1, [Signed(1), Signed(2)]);
}

#[test]
fn fused_nodes_are_completed() {
    let t = json!({"T": {"type": "DT_FLOAT"}, "num_args": {"i": "2"}});
    let graph = json!([
        {"name": "conv", "op": "_FusedConv2D", "input": ["x", "w", "bias", "alpha"], "attr": t},
        {"name": "depthwise", "op": "FusedDepthwiseConv2dNative", "input": ["x", "w"], "attr": {}},
        {"name": "prelu", "op": "Prelu", "input": ["x", "alpha"]},
    ]);
    let meta = read(&json!({"modelTopology": {"node": graph}}), &[]).expect("a model");
    let float = tf::DataType::Float;
    assert_eq!(attributes(&nodes(&meta)[0]).types("TArgs").expect("types"), [float; 2]);
    assert_eq!(nodes(&meta)[1].op, "_FusedDepthwiseConv2dNative");
    assert_eq!(attributes(&nodes(&meta)[2]).ty("T").expect("a type"), float);
}

#[test]
fn a_signature_without_inputs_has_the_placeholders() {
    let placeholder = json!({"name": "x", "op": "Placeholder", "attr": {
        "dtype": {"type": "DT_FLOAT"},
        "shape": {"shape": {"dim": [{"size": "-1"}, {"size": "3"}]}},
    }});
    let with = |place: &str, signature: Value| {
        let mut model = json!({"modelTopology": {"node": [placeholder]}});
        model[place] = signature;
        read(&model, &[]).expect("a model").signature_def
    };
    let outputs = json!({"outputs": {"y": {"name": "x"}}});
    for signatures in
        [with("signature", outputs.clone()), with("userDefinedMetadata", json!({"signature": outputs}))]
    {
        let signature = &signatures["serving_default"];
        assert_eq!(signature.outputs["y"].name, "x:0");
        let input = &signature.inputs["x"];
        let sizes: Vec<i64> =
            input.tensor_shape.as_ref().expect("a shape").dim.iter().map(|dim| dim.size).collect();
        assert_eq!((input.name.as_str(), input.dtype, sizes), ("x:0", 1, vec![-1, 3]));
    }
    assert!(with("signature", json!({"inputs": {}, "outputs": {}})).is_empty());
}

#[track_caller]
fn refused(model: &Value, words: &str) {
    let files: &[(&str, &[u8])] = &[("a.bin", &[0; 8]), ("b.bin", &[])];
    let error: Error = read(model, files).err().unwrap_or_else(|| panic!("accepted: {model}"));
    assert!(error.to_string().contains(words), "{error}");
}

#[test]
fn damaged_models_are_refused() {
    let x = || json!([constant("x", "DT_FLOAT")]);
    let weight = |entry: Value| model(x(), json!([entry]));
    let sized = |shape: Value| weight(json!({"name": "x", "shape": shape, "dtype": "float32"}));
    refused(
        &sized(json!([3])),
        "weight 'x': the files end before the weight: it has 3 elements of the type float32",
    );
    refused(&sized(json!([1, -1])), "weight 'x': shape: expected sizes");
    refused(&sized(json!([1u64 << 40, 1u64 << 40])), "weight 'x': the shape is too large");
    refused(&sized(json!([1u64 << 61])), "weight 'x': the files end before the weight");
    refused(
        &weight(json!({"shape": [], "dtype": "float32"})),
        "weightsManifest[0]: a weight: expected a name",
    );
    refused(&weight(json!({"name": "x", "shape": [], "dtype": "float64"})), "weights of the type float64");
    let quantized = |quantization: Value| {
        weight(json!({"name": "x", "shape": [], "dtype": "float32", "quantization": quantization}))
    };
    refused(&quantized(json!({"dtype": "uint8", "scale": null, "min": 0})), "expected scale and min");
    refused(
        &quantized(json!({"dtype": "uint3", "scale": 1, "min": 0})),
        "weights of the type float32 as uint3",
    );
    refused(
        &weight(json!({"name": "x", "shape": [3], "dtype": "string"})),
        "the files end within the strings",
    );
    refused(
        &weight(json!({"name": "y", "shape": [], "dtype": "float32"})),
        "node 'x': the constant has no value",
    );
    refused(
        &weight(json!({"name": "x", "shape": [], "dtype": "bool"})),
        "node 'x': the constant has the type float",
    );
    let narrow = model(
        json!([constant("x", "DT_INT8")]),
        json!([{"name": "x", "shape": [], "dtype": "int32", "quantization": {"dtype": "uint8", "scale": 1, "min": 500}}]),
    );
    refused(&narrow, "node 'x': the constant has the type int8, but its weight the type s32");
    for path in ["../a.bin", "/etc/passwd", "", "./../a.bin"] {
        let mut model = sized(json!([]));
        model["weightsManifest"][0]["paths"] = json!([path]);
        refused(&model, "is not the name of a file in the directory of the model");
    }
    let mut missing = sized(json!([]));
    missing["weightsManifest"][0]["paths"] = json!(["c.bin"]);
    refused(&missing, "c.bin; No such file or directory");
    refused(
        &json!({"modelTopology": {"node": [{"name": 3}]}}),
        "modelTopology: node[0].name: expected a string",
    );
    refused(&json!({"node": []}), "it has no modelTopology");
    refused(&json!([{"weights": [], "paths": []}]), "lists weights of TensorFlow.js, but no graph");
    refused(&json!({"format": "layers-model", "modelTopology": {}}), "--input_format=tfjs_layers_model");
    refused(
        &json!({"modelTopology": {}, "modelInitializer": {"node": [{"name": 3}]}}),
        "modelInitializer: node[0].name: expected a string",
    );
    let error = tfjs::read(Path::new("m.json"), &Bytes::from("{\"modelTopology\": {")).expect_err("refused");
    assert!(error.to_string().contains("cannot parse the JSON: EOF while parsing"), "{error}");
    let deep = "[".repeat(1 << 20);
    assert!(tfjs::read(Path::new("m.json"), &Bytes::from(format!("{{\"a\": {deep}"))).is_err());
}
