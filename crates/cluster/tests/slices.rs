//! Slices with a dynamic start: the constants among the operands of their cluster.

use crate::build::{Builder, Compiler, UNCOMPILABLE, options};
use cluster::{Candidate, Kernels, Silent, State, cluster};
use tf::DataType;
use tf::proto::attr_value::Value;

/// The compiler of the other tests; the flag tells whether it supports a dynamic start.
struct Slicing(bool);

impl Kernels for Slicing {
    fn compiles(&self, candidate: Candidate<'_>, device: &str) -> Result<(), String> {
        Compiler.compiles(candidate, device)
    }

    fn knows(&self, op: &str) -> bool {
        Compiler.knows(op)
    }

    fn slices_from_run_time(&self) -> bool {
        self.0
    }
}

/// Form of the slice `x[from:to]`.
#[derive(Clone, Copy, Default)]
struct Way {
    /// Selects one element instead of a range.
    is_index: bool,
    /// If set, `to` is `from` plus this value.
    by: Option<&'static str>,
    stride: i32,
}

/// The constant operands of the cluster that contains the slice, in a graph with the inputs `from`,
/// `to`, and `length`.
fn constants(way: Way, kernels: &dyn Kernels) -> Vec<String> {
    let int = DataType::Int32;
    let mut graph = Builder::new();
    graph.placeholder("x");
    for name in ["from", "to", "length"] {
        graph.placeholder(name).ty("dtype", int);
    }
    graph.constant("strides", int, &[1]);
    if let Some(Value::Tensor(strides)) =
        &mut graph.def.node.last_mut().expect("a node").attr.get_mut("value").expect("a value").value
    {
        strides.int_val = vec![way.stride];
    }
    let end = match way.by {
        Some(by) => {
            graph.node("end", "AddV2", &["from", by]).ty("T", int);
            "end"
        }
        None => "to",
    };
    for (name, value) in [("begins", "from"), ("ends", end)] {
        graph.node(name, "Pack", &[value]).ty("T", int).attr("N", Value::I(1)).attr("axis", Value::I(0));
    }
    let slice = graph.node("slice", "StridedSlice", &["x", "begins", "ends", "strides"]).ty("Index", int);
    slice.attr("shrink_axis_mask", Value::I(i64::from(way.is_index)));
    graph.node("twice", "AddV2", &["slice", "slice"]);
    graph.node("out", UNCOMPILABLE, &["twice"]);
    let clustered =
        cluster(&graph.def, &options(), kernels, &mut State::default(), &mut Silent).expect("clusters");
    crate::build::check(&clustered.graph);
    let launch = clustered
        .graph
        .node
        .iter()
        .find(|node| node.op == "_XlaLaunch" && node.input.iter().any(|input| input == "x"));
    let launch = launch.expect("a launch with operand x");
    match &launch.attr["Tconstants"].value {
        Some(Value::List(list)) => launch.input[..list.r#type.len()].to_vec(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_index_may_be_dynamic() {
    let way = Way { is_index: true, stride: 1, ..Way::default() };
    assert_eq!(constants(way, &Slicing(true)), [""; 0]);
    // For XLA both ends are constants, and their sources are computed outside.
    assert_eq!(constants(way, &Slicing(false)), ["begins", "ends"]);
}

#[test]
fn the_start_of_a_range_may_be_dynamic_if_its_length_is_known() {
    let by = |length| Way { by: Some(length), stride: 1, ..Way::default() };
    assert_eq!(constants(by("length"), &Slicing(true)), ["length"]);
    assert_eq!(constants(by("from"), &Slicing(true)), ["from"]);
    // The distance between two unrelated values is unknown.
    let between = Way { stride: 1, ..Way::default() };
    assert_eq!(constants(between, &Slicing(true)), ["begins", "ends"]);
    // With a stride of 2, the number of elements depends on the start.
    let strided = Way { by: Some("length"), stride: 2, ..Way::default() };
    assert_eq!(constants(strided, &Slicing(true)), ["begins", "ends"]);
}

/// XLA would compile the cluster for each value of the variable, so TensorFlow reads the variable
/// outside.
#[test]
fn a_variable_with_the_start_of_a_slice_is_read_outside_as_in_tensorflow() {
    let int = DataType::Int32;
    for slices_from_run_time in [true, false] {
        let mut graph = Builder::new();
        graph.placeholder("x");
        graph.variable("v").ty("dtype", int);
        graph.node("at", "ReadVariableOp", &["v"]).ty("dtype", int);
        graph.node("ends", "Pack", &["at"]).ty("T", int).attr("N", Value::I(1)).attr("axis", Value::I(0));
        graph.constant("strides", int, &[1]);
        let slice = graph.node("slice", "StridedSlice", &["x", "ends", "ends", "strides"]).ty("Index", int);
        slice.attr("shrink_axis_mask", Value::I(1));
        graph.node("twice", "AddV2", &["slice", "slice"]);
        let kernels = Slicing(slices_from_run_time);
        let clustered =
            cluster(&graph.def, &options(), &kernels, &mut State::default(), &mut Silent).expect("clusters");
        let [cluster] = &clustered.report.clusters[..] else { panic!("{:?}", clustered.report.clusters) };
        assert!(cluster.nodes.contains(&"slice".to_owned()), "{cluster:?}");
        assert!(!cluster.nodes.contains(&"at".to_owned()), "{cluster:?}");
    }
}
