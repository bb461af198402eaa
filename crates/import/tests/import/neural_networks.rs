//! Convolutions, pooling, and other ops on images: results computed by hand, errors for invalid
//! attributes, and sizes that would overflow.

use crate::{FLOAT, feed, fetch, int, int_const, message, node, placeholder, run, ty, values};
use shape::Literal;

fn ints(name: &str, values: &[i64]) -> String {
    let values: String = values.iter().map(|value| format!("i: {value} ")).collect();
    format!("attr {{ key: \"{name}\" value {{ list {{ {values} }} }} }}")
}

fn text(name: &str, value: &str) -> String {
    format!("attr {{ key: \"{name}\" value {{ s: \"{value}\" }} }}")
}

/// Returns the graph and the config of one op on the float feeds `x0`, `x1`, ...
fn graph(op: &str, shapes: &[&[i64]], attributes: &[String]) -> (String, String) {
    let names: Vec<String> = (0..shapes.len()).map(|k| format!("x{k}")).collect();
    let inputs: Vec<&str> = names.iter().map(String::as_str).collect();
    let feeds: String = names.iter().map(|name| placeholder(name, FLOAT)).collect();
    let attributes = attributes.concat() + &ty("T", FLOAT);
    let config: String = names.iter().zip(shapes).map(|(name, shape)| feed(name, shape)).collect();
    (feeds + &node("layer", op, &inputs, &attributes), config + &fetch("layer"))
}

fn count(shape: &[i64]) -> usize {
    shape.iter().product::<i64>() as usize
}

/// Returns the result for `x0 = 1, 2, 3, ...`, with 1 for all elements of the other feeds.
fn result(op: &str, shapes: &[&[i64]], attributes: &[String]) -> Vec<f32> {
    let (graph, config) = graph(op, shapes, attributes);
    let mut arguments = Vec::new();
    for (k, shape) in shapes.iter().enumerate() {
        let elements: Vec<f32> =
            (0..count(shape)).map(|i| if k == 0 { i as f32 + 1.0 } else { 1.0 }).collect();
        arguments.push(Literal::from_elements(shape, &elements));
    }
    values(&run(&graph, &config, &arguments).expect("the op should compile and run")[0])
}

fn error_message(op: &str, shapes: &[&[i64]], attributes: &[String]) -> String {
    let (graph, config) = graph(op, shapes, attributes);
    message(&graph, &config)
}

#[test]
fn same_padding_puts_the_odd_element_at_the_end() {
    // 1 2 3
    // 4 5 6
    // 7 8 9
    let shapes: [&[i64]; 2] = [&[1, 3, 3, 1], &[2, 2, 1, 1]];
    let conv = |padding: &str, stride: i64| {
        result("Conv2D", &shapes, &[ints("strides", &[1, stride, stride, 1]), text("padding", padding)])
    };
    assert_eq!(conv("VALID", 1), [12.0, 16.0, 24.0, 28.0]);
    assert_eq!(conv("SAME", 1), [12.0, 16.0, 9.0, 24.0, 28.0, 15.0, 15.0, 17.0, 9.0]);
    assert_eq!(conv("SAME", 2), [12.0, 9.0, 15.0, 9.0]);
}

#[test]
fn explicit_padding_and_dilation() {
    let attributes = [
        ints("strides", &[1, 1, 1, 1]),
        ints("dilations", &[1, 1, 2, 1]),
        text("padding", "EXPLICIT"),
        ints("explicit_paddings", &[0, 0, 0, 0, 1, 0, 0, 0]),
    ];
    // The padded input is 0 1 2 3 4. Elements two apart are added: 0+2, 1+3, 2+4.
    assert_eq!(result("Conv2D", &[&[1, 1, 4, 1], &[1, 2, 1, 1]], &attributes), [2.0, 4.0, 6.0]);
}

#[test]
fn averages_exclude_padding() {
    let attributes = [ints("ksize", &[1, 2, 2, 1]), ints("strides", &[1, 1, 1, 1]), text("padding", "SAME")];
    // 1 2
    // 3 4
    assert_eq!(result("AvgPool", &[&[1, 2, 2, 1]], &attributes), [2.5, 3.0, 3.5, 4.0]);
}

#[test]
fn the_maximum_of_a_window_ignores_nan() {
    let attributes = [ints("ksize", &[1, 1, 2, 1]), ints("strides", &[1, 1, 2, 1]), text("padding", "VALID")];
    let (graph, config) = graph("MaxPool", &[&[1, 1, 6, 1]], &attributes);
    let x = [f32::NAN, -3.0, 4.0, f32::NAN, f32::NEG_INFINITY, f32::NEG_INFINITY];
    let results = run(&graph, &config, &[Literal::from_elements(&[1, 1, 6, 1], &x)]).unwrap();
    assert_eq!(values::<f32>(&results[0]), [-3.0, 4.0, f32::NEG_INFINITY]);
}

#[test]
fn a_depthwise_convolution_with_bias_and_activation() {
    let attributes = [
        ints("strides", &[1, 1, 1, 1]),
        text("padding", "VALID"),
        "attr { key: \"fused_ops\" value { list { s: \"BiasAdd\" s: \"Relu6\" } } }".to_owned(),
        int("num_args", 1),
    ];
    // Two features, two filters each: (1 + 3, 2 + 4), each plus 1 and clamped to 6.
    let shapes: [&[i64]; 3] = [&[1, 1, 2, 2], &[1, 2, 2, 2], &[4]];
    assert_eq!(result("_FusedDepthwiseConv2dNative", &shapes, &attributes), [5.0, 5.0, 6.0, 6.0]);
}

/// Op, input shapes, attributes, and a part of the expected message.
type ErrorCase<'a> = (&'a str, &'a [&'a [i64]], Vec<String>, &'a str);

#[test]
fn invalid_shapes_and_attributes_are_refused_with_the_node_and_the_reason() {
    let ones = ints("strides", &[1, 1, 1, 1]);
    let same = text("padding", "SAME");
    let image: &[i64] = &[1, 5, 5, 4];
    let filter: &[i64] = &[3, 3, 4, 6];
    let cases: &[ErrorCase<'_>] = &[
        ("Conv2D", &[image, &[3, 3, 3, 6]], vec![ones.clone(), same.clone()], "multiple of the filter's: 4"),
        ("Conv2D", &[image, &[3, 3, 2, 5]], vec![ones.clone(), same.clone()], "divide into 2 groups"),
        ("Conv2D", &[image, &[3, 0, 4, 6]], vec![ones.clone(), same.clone()], "has no elements"),
        ("Conv2D", &[&[5, 5, 4], filter], vec![ones.clone(), same.clone()], "expected 4 dimensions"),
        (
            "Conv2D",
            &[image, filter],
            vec![ints("strides", &[2, 1, 1, 1]), same.clone()],
            "expected 1 for the batch",
        ),
        (
            "Conv2D",
            &[image, filter],
            vec![ints("strides", &[1, 1, 1, 2]), same.clone()],
            "expected 1 for the batch",
        ),
        ("Conv2D", &[image, filter], vec![ints("strides", &[1, 0, 1, 1]), same.clone()], "positive integer"),
        (
            "Conv2D",
            &[image, filter],
            vec![ints("strides", &[1, 1]), same.clone()],
            "each of the 4 dimensions",
        ),
        (
            "Conv2D",
            &[image, filter],
            vec![ones.clone(), same.clone(), ints("dilations", &[1, -1, 1, 1])],
            "dilations: expected",
        ),
        (
            "Conv2D",
            &[image, &[6, 3, 4, 6]],
            vec![ones.clone(), text("padding", "VALID")],
            "spans 6 elements along dimension 1, which has 5",
        ),
        (
            "Conv2D",
            &[image, filter],
            vec![ones.clone(), text("padding", "EXPLICIT"), ints("explicit_paddings", &[0, 0, 1, 1, 1])],
            "a pair for each",
        ),
        (
            "Conv2D",
            &[image, filter],
            vec![
                ones.clone(),
                text("padding", "EXPLICIT"),
                ints("explicit_paddings", &[0, 0, -1, 1, 1, 1, 0, 0]),
            ],
            "expected numbers >= 0",
        ),
        (
            "Conv2D",
            &[image, filter],
            vec![
                ones.clone(),
                text("padding", "EXPLICIT"),
                ints("explicit_paddings", &[1, 0, 1, 1, 1, 1, 0, 0]),
            ],
            "of the batch",
        ),
        (
            "DepthwiseConv2dNative",
            &[image, &[3, 3, 2, 2]],
            vec![ones.clone(), same.clone()],
            "different numbers of features: 4",
        ),
        (
            "AvgPool",
            &[image],
            vec![ints("ksize", &[1, 1, 1, 2]), ones.clone(), same.clone()],
            "means over these dimensions are not defined",
        ),
        ("SpaceToDepth", &[image], vec![int("block_size", 3)], "does not divide into blocks of 3"),
        ("DepthToSpace", &[image], vec![int("block_size", 3)], "square of block_size 3"),
        ("LRN", &[image], vec![int("depth_radius", -1)], "depth_radius"),
    ];
    for (op, shapes, attributes, reason) in cases {
        let text = error_message(op, shapes, attributes);
        assert!(text.contains(reason) && text.contains("node 'layer'"), "{op}: {text}");
    }
}

#[test]
fn sizes_that_overflow_are_refused() {
    let huge = i64::MAX;
    let ones = ints("strides", &[1, 1, 1, 1]);
    let same = text("padding", "SAME");
    let image: &[i64] = &[1, 5, 5, 1];
    let filter: &[i64] = &[3, 3, 1, 1];
    let explicit = [text("padding", "EXPLICIT"), ints("explicit_paddings", &[0, 0, huge, huge, 0, 0, 0, 0])];
    for padding in [vec![same.clone()], explicit.to_vec()] {
        let text = error_message(
            "Conv2D",
            &[image, filter],
            &[&[ones.clone(), ints("dilations", &[1, huge, 1, 1])][..], &padding].concat(),
        );
        assert!(text.contains("node 'layer'"), "{text}");
    }
    let pool = [ints("ksize", &[1, huge, huge, 1]), ones.clone(), same.clone()];
    assert!(error_message("MaxPool", &[image], &pool).contains("2^60"));
    assert!(error_message("AvgPool", &[image], &pool).contains("2^60"));
    let long = [ints("ksize", &[1, 2, 1, 1]), ones.clone(), same.clone()];
    assert!(error_message("AvgPool", &[&[1, 1 << 40, 1, 1]], &long).contains("but the maximum is"));
    let patches =
        [ints("ksizes", &[1, 1 << 13, 1, 1]), ones.clone(), ints("rates", &[1, 1, 1, 1]), same.clone()];
    let text = error_message("ExtractImagePatches", &[image], &patches);
    assert!(text.contains("the maximum is 4096"), "{text}");
    assert!(
        error_message("SpaceToDepth", &[&[1, 0, 0, 1 << 40]], &[int("block_size", 1 << 20)])
            .contains("too large")
    );
    assert!(
        error_message("DepthToSpace", &[&[1, 1 << 40, 1, 0]], &[int("block_size", 1 << 25)])
            .contains("too large")
    );
}

#[test]
fn a_stride_beyond_the_image_leaves_one_position() {
    let stride = i64::MAX;
    let attributes = [ints("strides", &[1, stride, stride, 1]), text("padding", "VALID")];
    assert_eq!(result("Conv2D", &[&[1, 3, 3, 1], &[2, 2, 1, 1]], &attributes), [12.0]);
}

#[test]
fn resizing_to_an_unsupported_size_is_refused_at_once() {
    for (op, size) in [("ResizeBilinear", 2_000_000_000), ("ResizeNearestNeighbor", 2_000_000_000)] {
        let graph = placeholder("x", FLOAT)
            + &int_const("size", &[2], &[size, 1])
            + &node("layer", op, &["x", "size"], &ty("T", FLOAT));
        let text = message(&graph, &(feed("x", &[1, 2, 2, 0]) + &fetch("layer")));
        assert!(text.contains("node 'layer'") && text.contains("are not supported"), "{text}");
    }
}

#[test]
fn blocks_of_many_elements_are_refused() {
    let graph = placeholder("x", FLOAT)
        + &int_const("blocks", &[3], &[1 << 30, 1 << 30, 1 << 30])
        + &int_const("crops", &[3, 2], &[0; 6])
        + &node("layer", "BatchToSpaceND", &["x", "blocks", "crops"], &ty("T", FLOAT));
    let text = message(&graph, &(feed("x", &[1, 2, 2, 2]) + &fetch("layer")));
    assert!(text.contains("node 'layer'") && text.contains("too large"), "{text}");
}
