//! Tensors in every encoding, against the bytes that TensorFlow's decoder makes.

use tf::{Attributes, source};

/// The attribute `value` of a constant with a tensor in text format.
fn constant(tensor: &str) -> Attributes {
    let text =
        format!("node {{ name: 'c' op: 'Const' attr {{ key: 'value' value {{ tensor {{ {tensor} }} }} }} }}");
    let graph =
        source::parse_graph_def(text.into(), "test.pbtxt").unwrap_or_else(|e| panic!("{tensor}: {e}"));
    Attributes::new("c", "Const", graph.node[0].attr.clone())
}

#[test]
fn every_encoding_gives_tensorflows_bytes() {
    let lines: Vec<&str> = include_str!("data/tensors.txt").lines().collect();
    assert!(lines.len() >= 25);
    for line in lines {
        let (text, hex) = line.split_once('\t').expect("two columns");
        let expected: Vec<u8> = (0..hex.len() / 2)
            .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).expect("hexadecimal"))
            .collect();
        let attributes = constant(text);
        let literal = attributes.tensor("value").unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(literal.bytes().as_ref(), expected, "{text}");
        if let Some((scalar, shape)) = attributes.tensor_is_splat("value").expect("numbers") {
            assert!(literal.is_splat(), "{text}");
            assert_eq!(
                (scalar.scalar_at(0), &shape),
                (literal.scalar_at(0), literal.array_shape()),
                "{text}"
            );
        }
    }
}

#[test]
fn a_splat_costs_nothing_however_large() {
    let huge = "dtype: DT_FLOAT tensor_shape { dim { size: 1048576 } dim { size: 1048576 } } float_val: 2.5";
    let attributes = constant(huge);
    let (scalar, shape) = attributes.tensor_is_splat("value").expect("numbers").expect("a splat");
    assert_eq!(scalar, shape::Literal::scalar(2.5f32));
    assert_eq!(shape.sizes(), [1 << 20, 1 << 20]);
    let message = attributes.tensor("value").expect_err("4 TiB").to_string();
    assert!(message.contains("node 'c' (op Const)") && message.contains("256 MiB"), "{message}");
}

#[test]
fn wrong_tensors_are_refused() {
    for (tensor, complaint) in [
        ("tensor_shape { }", "not a valid data type"),
        ("dtype: DT_FLOAT tensor_shape { unknown_rank: true }", "not fully defined"),
        ("dtype: DT_FLOAT tensor_shape { dim { size: -1 } }", "not fully defined"),
        ("dtype: DT_FLOAT tensor_shape { dim { size: -2 } }", "below -1"),
        ("dtype: DT_FLOAT tensor_shape { dim { size: 4611686018427387904 } dim { size: 4 } }", "2^63"),
        ("dtype: DT_FLOAT tensor_shape { dim { size: 2 } } tensor_content: 'abc'", "has 3 bytes"),
        (
            "dtype: DT_STRING tensor_shape { } string_val: 'a'",
            "expected a tensor of numbers or bools, got string",
        ),
        ("dtype: DT_FLOAT_REF tensor_shape { }", "not a valid data type"),
    ] {
        let message = constant(tensor).tensor("value").expect_err(tensor).to_string();
        assert!(message.contains("'c'") && message.contains(complaint), "{tensor}: {message}");
    }
}

#[test]
fn strings_are_kept() {
    let attributes =
        constant("dtype: DT_STRING tensor_shape { dim { size: 3 } } string_val: 'a' string_val: '\\377'");
    let strings = attributes.tensor_strings("value").expect("strings");
    assert_eq!(strings, [&b"a"[..], b"\xff", b"\xff"]);
}

#[test]
fn attributes_name_node_op_and_attribute() {
    let attributes = constant("dtype: DT_FLOAT tensor_shape { }");
    let message = attributes.int("value").expect_err("a tensor").to_string();
    assert_eq!(message, "node 'c' (op Const): attribute 'value': expected an int");
    let message = attributes.ty("dtype").expect_err("absent").to_string();
    assert_eq!(message, "node 'c' (op Const) has no attribute 'dtype'");
    assert_eq!(attributes.int_or("axis", 3).expect("absent"), 3);
}
