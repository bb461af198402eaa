//! Slices that begin where a run says: what of them is constant when their cluster is compiled.

use crate::build::{Builder, Compiler, UNCOMPILABLE, options};
use cluster::{Candidate, Kernels, Silent, State, cluster};
use tf::DataType;
use tf::proto::attr_value::Value;

/// The compiler of the other tests, which slices from anywhere, or not.
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

/// How `x[from:to]` is made.
#[derive(Clone, Copy, Default)]
struct Way {
    /// The element, not the range.
    is_index: bool,
    /// `to` is `from` and so much.
    by: Option<&'static str>,
    stride: i32,
}

/// The constants among the operands of the cluster with the slice, of a graph with the values `from`, `to` and `length`.
fn constants(way: Way, kernels: &dyn Kernels) -> Vec<String> {
    let int = DataType::Int32;
    let mut graph = Builder::new();
    graph.placeholder("x");
    for name in ["from", "to", "length"] {
        graph.placeholder(name).ty("dtype", int);
    }
    graph.constant("strides", int, &[1]);
    if let Some(Value::Tensor(strides)) =
        &mut graph.def.node.last_mut().expect("it").attr.get_mut("value").expect("one").value
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
    let launch = launch.expect("a launch of what slices x");
    match &launch.attr["Tconstants"].value {
        Some(Value::List(list)) => launch.input[..list.r#type.len()].to_vec(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_index_comes_from_the_run() {
    let way = Way { is_index: true, stride: 1, ..Way::default() };
    assert_eq!(constants(way, &Slicing(true)), [""; 0]);
    // For XLA both ends are constants, and what they are made of is computed outside.
    assert_eq!(constants(way, &Slicing(false)), ["begins", "ends"]);
}

#[test]
fn a_range_comes_from_the_run_if_its_length_does_not() {
    let by = |length| Way { by: Some(length), stride: 1, ..Way::default() };
    assert_eq!(constants(by("length"), &Slicing(true)), ["length"]);
    assert_eq!(constants(by("from"), &Slicing(true)), ["from"]);
    // What lies between two values that have nothing to do with each other is any length.
    let between = Way { stride: 1, ..Way::default() };
    assert_eq!(constants(between, &Slicing(true)), ["begins", "ends"]);
    // Of every second element, so many as the begin says.
    let strided = Way { by: Some("length"), stride: 2, ..Way::default() };
    assert_eq!(constants(strided, &Slicing(true)), ["begins", "ends"]);
}

/// XLA would compile the cluster for each value of the variable, so TensorFlow reads it outside.
#[test]
fn a_variable_that_says_where_a_slice_begins_is_read_outside_as_in_tensorflow() {
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
        let [found] = &clustered.report.clusters[..] else { panic!("{:?}", clustered.report.clusters) };
        assert!(found.nodes.contains(&"slice".to_owned()), "{found:?}");
        assert!(!found.nodes.contains(&"at".to_owned()), "{found:?}");
    }
}
