//! Single nodes: kernels and their keys, host ops, errors, and devices.

use crate::graph::{F, Graph, I, failure, float, floats, ints, shape, text, ty, types};
use cluster::{Flags, JitLevel};
use session::{Options, Strings, Value};
use shape::Literal;
use tf::DataType;
use tf::proto::TensorShapeProto;
use tf::proto::attr_value::Value as Attr;

fn iota(sizes: &[i64]) -> Literal {
    let count: i64 = sizes.iter().product();
    let elements: Vec<f32> = (0..count).map(|k| k as f32).collect();
    Literal::from_elements(sizes, &elements)
}

#[test]
fn shapes_may_change_from_run_to_run() {
    let mut g = Graph::default();
    g.placeholder("x", F).constant("w", Literal::from_elements(&[3, 2], &[1f32, 0.0, 0.0, 1.0, 1.0, 1.0]));
    g.ints("axis", &[0]);
    g.add("y", "MatMul", &["x", "w"], &[("T", ty(F))]);
    g.add("sum", "Sum", &["y", "axis"], &[("T", ty(F)), ("Tidx", ty(I))]);
    g.add("shape", "Shape", &["y"], &[("T", ty(F))]);
    let session = g.session();
    assert_eq!(floats(&session, &[("x", iota(&[1, 3]))], "sum"), [2.0, 3.0]);
    assert_eq!(floats(&session, &[("x", iota(&[2, 3]))], "sum"), [10.0, 12.0]);
    let kernels = session.compiled_kernels();
    assert_eq!(ints(&session, &[("x", iota(&[2, 3]))], "shape"), [2, 2]);
    assert_eq!(floats(&session, &[("x", iota(&[1, 3]))], "sum"), [2.0, 3.0]);
    // Known shapes are not recompiled. The shape of the product is fetched by a separate program.
    assert_eq!(session.compiled_kernels(), kernels);
}

#[test]
fn the_start_of_a_slice_is_not_part_of_its_key() {
    let mut g = Graph::default();
    g.placeholder("x", F).placeholder("at", I).int("one", 1).ints("size", &[2, 2]).int("zero", 0);
    g.ints("ones", &[1]);
    g.add("begin", "Pack", &["zero", "at"], &[("T", ty(I)), ("N", Attr::I(2))]);
    g.add("slice", "Slice", &["x", "begin", "size"], &[("T", ty(F)), ("Index", ty(I))]);
    g.add("next", "AddV2", &["at", "one"], &[("T", ty(I))]);
    g.add("first", "Pack", &["at"], &[("T", ty(I)), ("N", Attr::I(1))]);
    g.add("last", "Pack", &["next"], &[("T", ty(I)), ("N", Attr::I(1))]);
    let row = [("T", ty(F)), ("Index", ty(I)), ("shrink_axis_mask", Attr::I(1))];
    g.add("row", "StridedSlice", &["x", "first", "last", "ones"], &row);
    let session = g.session();
    let at = |k: i32| [("x", iota(&[4, 5])), ("at", Literal::scalar(k))];
    assert_eq!(floats(&session, &at(0), "slice"), [0.0, 1.0, 5.0, 6.0]);
    assert_eq!(floats(&session, &at(0), "row"), [0.0, 1.0, 2.0, 3.0, 4.0]);
    let kernels = session.compiled_kernels();
    assert_eq!(floats(&session, &at(3), "slice"), [3.0, 4.0, 8.0, 9.0]);
    assert_eq!(floats(&session, &at(3), "row"), [15.0, 16.0, 17.0, 18.0, 19.0]);
    assert_eq!(session.compiled_kernels(), kernels);
    let message = failure(&session, &at(4), &["slice"], &[]);
    assert!(message.contains("'slice'") && message.contains("begin[1]"), "{message}");
    let message = failure(&session, &at(4), &["row"], &[]);
    assert!(message.contains("slice index 4 of dimension 0 out of bounds"), "{message}");
}

/// Begin, end, and strides; the masks in the order of the op's attributes; the result's sizes and
/// elements.
type Slice = (&'static [i32], &'static [i32], &'static [i32], [i64; 5], &'static [i64], &'static [f32]);

#[test]
fn strided_slices_match_numpy() {
    // numpy: x = arange(24).reshape(2, 3, 4)
    let cases: [Slice; 5] = [
        // x[:, 1:3, -1]
        (&[0, 1, -1], &[0, 3, 0], &[1, 1, 1], [1, 1, 0, 0, 4], &[2, 2], &[7.0, 11.0, 19.0, 23.0]),
        // x[..., 2]
        (&[0, 2], &[0, 3], &[1, 1], [0, 0, 1, 0, 2], &[2, 3], &[2.0, 6.0, 10.0, 14.0, 18.0, 22.0]),
        // x[1, newaxis, ::-2, 0]
        (&[1, 0, 0, 0], &[2, 0, 0, 1], &[1, 1, -2, 1], [4, 4, 0, 2, 9], &[1, 2], &[20.0, 12.0]),
        // x[1, 1]
        (&[1, 1], &[2, 2], &[1, 1], [0, 0, 0, 0, 3], &[4], &[16.0, 17.0, 18.0, 19.0]),
        // x[0:1, 5:]
        (&[0, 5], &[1, 0], &[1, 1], [0, 2, 0, 0, 0], &[1, 0, 4], &[]),
    ];
    for (begin, end, strides, masks, sizes, expected) in cases {
        let mut g = Graph::default();
        g.constant("x", iota(&[2, 3, 4])).ints("begin", begin).ints("end", end).ints("strides", strides);
        let names = ["begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"];
        let mut attributes = vec![("T", ty(F)), ("Index", ty(I))];
        attributes.extend(names.into_iter().zip(masks).map(|(name, mask)| (name, Attr::I(mask))));
        g.add("y", "StridedSlice", &["x", "begin", "end", "strides"], &attributes);
        let results = g.session().run(&[], &["y"], &[]).expect("a slice");
        assert_eq!(results[0].array_shape().sizes(), sizes, "{begin:?}");
        assert_eq!(results[0].to_vec::<f32>().expect("floats"), expected, "{begin:?}");
    }
}

#[test]
fn shapes_are_computed_on_the_host() {
    let mut g = Graph::default();
    g.placeholder("x", F).ints("flat", &[-1, 2]).int("minus", -1);
    g.add("reshape", "Reshape", &["x", "flat"], &[("T", ty(F))]);
    g.add("shape", "Shape", &["reshape"], &[("T", ty(F))]);
    g.add("expand", "ExpandDims", &["x", "minus"], &[("T", ty(F))]);
    g.add("expanded", "Shape", &["expand"], &[("T", ty(F))]);
    g.add("squeeze", "Squeeze", &["expand"], &[("T", ty(F))]);
    g.add("squeezed", "Shape", &["squeeze"], &[("T", ty(F))]);
    g.add("rank", "Rank", &["x"], &[("T", ty(F))]).add("size", "Size", &["x"], &[("T", ty(F))]);
    g.ints("a", &[3, 1, 5]).ints("b", &[4, 5]);
    g.add("broadcast", "BroadcastGradientArgs", &["a", "b"], &[("T", ty(I))]);
    let session = g.session();
    let x = [("x", iota(&[3, 1, 4]))];
    assert_eq!(ints(&session, &x, "shape"), [6, 2]);
    assert_eq!(ints(&session, &x, "expanded"), [3, 1, 4, 1]);
    assert_eq!(ints(&session, &x, "squeezed"), [3, 4]);
    assert_eq!((ints(&session, &x, "rank"), ints(&session, &x, "size")), (vec![3], vec![12]));
    assert_eq!(ints(&session, &[], "broadcast"), [1]);
    assert_eq!(ints(&session, &[], "broadcast:1"), [0]);
    assert_eq!(session.compiled_kernels(), 0);
    let message = failure(&session, &[("x", iota(&[5]))], &["reshape"], &[]);
    assert!(message.contains("'reshape'") && message.contains("5 values"), "{message}");
}

#[test]
fn tensor_arrays_return_the_written_elements() {
    let mut g = Graph::default();
    g.int("size", 2).int("zero", 0).int("one", 1).float("a", 1.5).float("b", 2.5).ints("both", &[1, 0]);
    let data = [("dtype", ty(F)), ("clear_after_read", Attr::B(true))];
    g.add("array", "TensorArrayV3", &["size"], &data);
    g.add("write_a", "TensorArrayWriteV3", &["array", "zero", "a", "array:1"], &[("T", ty(F))]);
    g.add("write_b", "TensorArrayWriteV3", &["array", "one", "b", "write_a"], &[("T", ty(F))]);
    g.add("gather", "TensorArrayGatherV3", &["array", "both", "write_b"], &[("dtype", ty(F))]);
    g.add("read", "TensorArrayReadV3", &["array", "one", "write_b"], &[("dtype", ty(F))]);
    g.add("again", "TensorArrayReadV3", &["array", "one", "write_b", "^read"], &[("dtype", ty(F))]);
    g.add("grad", "TensorArrayGradV3", &["array", "write_b"], &[("source", text("g"))]);
    g.add("grad_1", "TensorArrayWriteV3", &["grad", "zero", "a", "grad:1"], &[("T", ty(F))]);
    g.add("grad_2", "TensorArrayWriteV3", &["grad", "zero", "b", "grad_1"], &[("T", ty(F))]);
    g.add("sum", "TensorArrayGatherV3", &["grad", "both", "grad_2"], &[("dtype", ty(F))]);
    let session = g.session();
    assert_eq!(floats(&session, &[], "gather"), [2.5, 1.5]);
    assert_eq!(floats(&session, &[], "sum"), [0.0, 4.0]);
    let message = failure(&session, &[], &["again"], &[]);
    assert!(message.contains("Could not read index 1 twice"), "{message}");
}

/// `dynamic_rnn` leaves elements after the longest sequence unwritten, but gathers them. As in
/// TensorFlow, they are zero if all elements have the same shape; otherwise gathering them is an
/// error.
#[test]
fn unwritten_elements_of_a_tensor_array_have_the_shape_of_others() {
    for is_uniform in [true, false] {
        let mut g = Graph::default();
        g.int("size", 3).int("one", 1).ints("all", &[2, 1, 0]).constant("a", iota(&[2]));
        let data = [("dtype", ty(F)), ("identical_element_shapes", Attr::B(is_uniform))];
        g.add("array", "TensorArrayV3", &["size"], &data);
        g.add("write", "TensorArrayWriteV3", &["array", "one", "a", "array:1"], &[("T", ty(F))]);
        g.add("gather", "TensorArrayGatherV3", &["array", "all", "write"], &[("dtype", ty(F))]);
        if is_uniform {
            assert_eq!(floats(&g.session(), &[], "gather"), [0.0, 0.0, 0.0, 1.0, 0.0, 0.0])
        } else {
            let message = failure(&g.session(), &[], &["gather"], &[]);
            assert!(message.contains("the element shape is not fully defined"), "{message}");
        }
    }
}

#[test]
fn tensor_lists_are_values() {
    let mut g = Graph::default();
    g.ints("row", &[2])
        .int("max", -1)
        .int("at", 1)
        .constant("a", iota(&[2]))
        .placeholder("x", F)
        .int("three", 3);
    let attributes = |more: &[(&'static str, Attr)]| [vec![("element_dtype", ty(F))], more.to_vec()].concat();
    let shaped = attributes(&[("shape_type", ty(I))]);
    g.add("empty", "EmptyTensorList", &["row", "max"], &shaped);
    g.add("push", "TensorListPushBack", &["empty", "a"], &attributes(&[]));
    g.add("more", "TensorListPushBack", &["push", "x"], &attributes(&[]));
    g.add("stack", "TensorListStack", &["more", "row"], &attributes(&[]));
    g.add("pop", "TensorListPopBack", &["more", "row"], &attributes(&[]));
    g.add("length", "TensorListLength", &["pop"], &[]);
    g.add("reserve", "TensorListReserve", &["row", "three"], &shaped);
    g.add("set", "TensorListSetItem", &["reserve", "at", "x"], &attributes(&[]));
    g.add("all", "TensorListStack", &["set", "row"], &attributes(&[]));
    let session = g.session();
    let x = [("x", Literal::from_elements(&[2], &[7f32, 8.0]))];
    assert_eq!(floats(&session, &x, "stack"), [0.0, 1.0, 7.0, 8.0]);
    assert_eq!(floats(&session, &x, "pop:1"), [7.0, 8.0]);
    assert_eq!(ints(&session, &x, "length"), [1]);
    assert_eq!(floats(&session, &x, "all"), [0.0, 0.0, 7.0, 8.0, 0.0, 0.0]);
    let message = failure(&session, &[("x", iota(&[3]))], &["stack"], &[]);
    assert!(message.contains("'more'") && message.contains("incompatible shape"), "{message}");
}

#[test]
fn stacks_pop_the_last_element() {
    let mut g = Graph::default();
    g.int("max", 1).float("a", 1.0).float("b", 2.0);
    g.add("stack", "StackV2", &["max"], &[("elem_type", ty(F))]);
    g.add("push", "StackPushV2", &["stack", "a"], &[("T", ty(F))]);
    g.add("pop", "StackPopV2", &["stack", "^push"], &[("elem_type", ty(F))]);
    g.add("full", "StackPushV2", &["stack", "b", "^push"], &[("T", ty(F))]);
    let session = g.session();
    assert_eq!(float(&session, &[], "pop"), 1.0);
    assert!(failure(&session, &[], &["full"], &[]).contains("overflowed its max_size (1)"));
}

#[test]
fn strings_flow_and_are_fetched() {
    let mut g = Graph::default();
    g.string("a", "model").placeholder("b", DataType::String).int("shard", 2).int("of", 5);
    g.add("join", "StringJoin", &["a", "b"], &[("N", Attr::I(2)), ("separator", text("-"))]);
    g.add("name", "ShardedFilename", &["join", "shard", "of"], &[]);
    let session = g.session();
    let b = [("b", Value::from(Strings::scalar("x")))];
    let results = session.run_values(&b, &["name"], &[]).expect("run");
    let Value::Strings(strings) = &results[0] else { panic!("strings") };
    assert_eq!(strings.strings[0], "model-x-00002-of-00005");
    let wrong = session.run(&[("b", Literal::scalar(1f32))], &["name"], &[]);
    assert!(wrong.expect_err("not a string").to_string().contains("feed 'b': expected string"));
}

#[test]
fn results_do_not_depend_on_threads() {
    let mut g = Graph::default();
    g.placeholder("x", F);
    let mut last = Vec::new();
    for k in 0..40 {
        let (a, b) = (format!("a{k}"), format!("b{k}"));
        g.add(&a, "MatMul", &["x", "x"], &[("T", ty(F)), ("transpose_b", Attr::B(k % 2 == 0))]);
        g.add(&b, "Tanh", &[&a], &[("T", ty(F))]);
        last.push(b);
    }
    let inputs: Vec<&str> = last.iter().map(String::as_str).collect();
    g.add("sum", "AddN", &inputs, &[("T", ty(F)), ("N", Attr::I(40))]);
    let elements: Vec<f32> = (0..64 * 64).map(|k| (k % 97) as f32 / 97.0 - 0.4).collect();
    let x = [("x", Literal::from_elements(&[64, 64], &elements))];
    let run = |inter: usize, intra: usize| {
        let options = Options { inter_op_threads: inter, intra_op_threads: intra, ..Options::default() };
        let session = g.session_with(options);
        (0..5).map(|_| floats(&session, &x, "sum")).collect::<Vec<_>>()
    };
    let expected = run(1, 1);
    assert!(expected.iter().all(|result| *result == expected[0]));
    for (inter, intra) in [(2, 1), (3, 2), (1, 3)] {
        assert_eq!(run(inter, intra), expected, "{inter} and {intra} threads");
    }
}

#[test]
fn errors_name_the_invalid_node() {
    let mut g = Graph::default();
    g.placeholder("x", F).ints("two", &[2]);
    g.add("queue", "FIFOQueueV2", &[], &[("component_types", types(&[F]))]);
    g.add("take", "QueueDequeueV2", &["queue"], &[("component_types", types(&[F]))]);
    g.add("bad", "AddV2", &["x", "x"], &[("T", ty(F))]);
    g.add("product", "MatMul", &["x", "x"], &[("T", ty(F))]);
    let session = g.session();
    let message = failure(&session, &[], &["take"], &[]);
    assert!(message.contains("'take'") && message.contains("feed the dequeued"), "{message}");
    let message = failure(&session, &[], &["bad"], &[]);
    assert!(message.contains("You must feed a value for placeholder 'x'"), "{message}");
    let message = failure(&session, &[], &["nothing"], &[]);
    assert!(message.contains("'nothing"), "{message}");
    let message = failure(&session, &[("x", iota(&[2, 3]))], &["product"], &[]);
    assert!(message.contains("'product'"), "{message}");
    let message = failure(&session, &[("x", Literal::scalar(1i32))], &["bad"], &[]);
    assert!(message.contains("feed 'x': expected float"), "{message}");
}

fn placed(device: &str) -> Graph {
    let mut g = Graph::default();
    g.placeholder("x", F);
    g.add("y", "AddV2", &["x", "x"], &[("T", ty(F))]);
    g.def.node.last_mut().expect("a node").device = device.to_owned();
    g.add("z", "Neg", &["y"], &[("T", ty(F))]);
    g
}

#[test]
fn nodes_run_on_their_device() {
    let x = [("x", Literal::scalar(3f32))];
    for device in ["/device:XLA_CPU:0", "/job:localhost/replica:0/task:0/device:CPU:0", "/cpu:0", ""] {
        assert_eq!(float(&placed(device).session(), &x, "z"), -6.0, "{device}");
    }
    for (device, words) in
        [("/device:XLA_GPU:7", "available devices"), ("/device:CPU:7", "available devices")]
    {
        let message = failure(&placed(device).session(), &x, &["z"], &[]);
        assert!(message.contains("operation y:") && message.contains(words), "{message}");
        let soft = Options { allow_soft_placement: true, ..Options::default() };
        assert_eq!(float(&placed(device).session_with(soft), &x, "z"), -6.0);
    }
    let message = failure(&placed("/nonsense").session(), &x, &["z"], &[]);
    assert!(message.contains("Malformed device specification"), "{message}");
}

#[test]
fn every_node_must_compile_on_the_compiling_device() {
    let mut g = placed("");
    let shape = Attr::Shape(TensorShapeProto::default());
    g.add("print", "Print", &["z", "z"], &[("T", ty(F)), ("U", types(&[F])), ("shape", shape)]);
    g.def.node.last_mut().expect("a node").device = "/device:XLA_CPU:0".to_owned();
    let x = [("x", Literal::scalar(3f32))];
    let message = failure(&g.session(), &x, &["print"], &[]);
    assert!(message.contains("operation print:") && message.contains("XLA_CPU"), "{message}");
    let soft = Options { allow_soft_placement: true, ..Options::default() };
    assert_eq!(float(&g.session_with(soft), &x, "print"), -6.0);
}

#[test]
fn variables_are_where_their_users_are() {
    let mut g = Graph::default();
    g.float("one", 1.0);
    g.add("w", "VariableV2", &[], &[("dtype", ty(F)), ("shape", shape(&[]))]);
    g.def.node.last_mut().expect("a node").device = "/device:XLA_CPU:0".to_owned();
    g.add("init", "Assign", &["w", "one"], &[("T", ty(F))]);
    g.add("add", "AssignAdd", &["w", "one", "^init"], &[("T", ty(F))]);
    assert_eq!(float(&g.session(), &[], "add"), 2.0);
    g.def.node.last_mut().expect("a node").device = "/cpu:0".to_owned();
    let message = failure(&g.session(), &[], &["add"], &[]);
    assert!(message.contains("must be colocated"), "{message}");
}

#[test]
fn clusters_are_one_launch_and_traces_show_it() {
    let mut g = Graph::default();
    g.placeholder("x", F).float("half", 0.5);
    for (k, op) in ["Tanh", "Neg", "Exp", "Sqrt", "Square"].iter().enumerate() {
        let input = if k == 0 { "x".to_owned() } else { format!("n{}", k - 1) };
        g.add(&format!("n{k}"), op, &[&input], &[("T", ty(F))]);
    }
    g.add("y", "Mul", &["n4", "half"], &[("T", ty(F))]);
    let x = iota(&[3]);
    let run = |level: JitLevel| {
        let flags = Flags { cpu_global_jit: true, ..Flags::default() };
        let rewrite = session::clusters(cluster::Options::new(level, flags), Box::new(cluster::Silent));
        let session = g.session_with(Options { rewrite: Some(rewrite), ..Options::default() });
        let (values, metadata) = session.run_traced(&[("x", x.clone())], &["y"], &[]).expect("a run");
        let y = &values[0];
        let stats = metadata.step_stats.expect("stats").dev_stats;
        assert_eq!(stats[0].device, "/job:localhost/replica:0/task:0/device:CPU:0");
        let labels: Vec<String> =
            stats[0].node_stats.iter().map(|node| node.timeline_label.clone()).collect();
        assert!(
            stats[0].node_stats.iter().all(|node| node.op_end_rel_nanos >= 0 && node.all_start_nanos > 0)
        );
        (y.to_vec::<f32>().expect("floats"), labels, session.compiled_kernels())
    };
    let (plain, nodes, kernels) = run(JitLevel::Off);
    let (clustered, launches, one) = run(JitLevel::On1);
    assert_eq!((kernels, one), (6, 1));
    assert!(nodes.iter().any(|label| label == "n1 = Neg(n0)"), "{nodes:?}");
    assert!(nodes.iter().all(|label| !label.contains("_XlaLaunch")), "{nodes:?}");
    assert_eq!(launches.iter().filter(|label| label.contains(" = _XlaLaunch(")).count(), 1, "{launches:?}");
    for (k, (&a, &b)) in plain.iter().zip(&clustered).enumerate() {
        // exp(-tanh(x)) / 2
        let exact = (-(k as f32).tanh()).exp() / 2.0;
        assert!((a - exact).abs() < 1e-6 && (b - exact).abs() < 1e-6, "{a} and {b}, not {exact}");
    }
}
