//! Tests the reports of handwritten steps: the choice of the step shown, the averages, and the
//! memory over time.

use tf::DataType;
use trace::{Execution, Instruction, Output, Report, step_report};

const CPU: &str = "/job:localhost/replica:0/task:0/device:CPU:0";

/// Creates a node that runs from `start` for `duration` nanoseconds.
fn execution(name: &str, inputs: &[&str], start: u64, duration: u64) -> Execution {
    Execution {
        device: CPU.to_owned(),
        name: name.to_owned(),
        op: "Add".to_owned(),
        inputs: inputs.iter().map(|&input| input.to_owned()).collect(),
        scheduled: start,
        start,
        kernel_start: start,
        kernel_end: start + duration,
        end: start + duration,
        ..Execution::default()
    }
}

/// Creates an output of `bytes` bytes at an address.
fn output(slot: usize, bytes: u64, address: u64) -> Output {
    Output { slot, data_type: DataType::Float, sizes: vec![1], bytes, address, allocator: "cpu" }
}

fn report(steps: Vec<Vec<Execution>>) -> Report {
    step_report("a model", "how", 5000.0, steps)
}

/// Rows of a node with their times, rounded to a millionth of a nanosecond.
fn durations(report: &Report, node: &str) -> Vec<(String, f64)> {
    let rows = report.kernels.iter().filter(|kernel| kernel.node == node);
    rows.map(|kernel| (kernel.name.clone(), (kernel.duration * 1e6).round() / 1e6)).collect()
}

#[test]
fn no_steps_are_a_report_of_nothing() {
    for steps in [Vec::new(), vec![Vec::new()]] {
        let report = report(steps);
        assert_eq!((report.title.as_str(), report.subtitle.as_str()), ("a model", "how"));
        assert!(report.lanes.is_empty() && report.kernels.is_empty() && report.memory.is_empty());
        assert!(report.peak.is_none());
    }
}

#[test]
fn the_step_of_median_length_is_shown_and_kernels_are_averages() {
    let step = |begin: u64, duration: u64| {
        let mut add = execution("add", &[], begin, duration);
        (add.flops, add.moved_bytes) = (30, 60);
        vec![add]
    };
    // The median of 10, 70, and 400, independent of their order.
    let mut steps = vec![step(5_000, 400), step(1_000, 10), step(9_000, 70)];
    // A node that runs only in some steps counts with time 0 in the others.
    steps[0].push(execution("rare", &[], 5_000, 30));
    let report = report(steps);
    let [lane] = &report.lanes[..] else { panic!("{:?}", report.lanes) };
    assert_eq!(lane.name, "CPU:0, lane 0");
    let [bar] = &lane.bars[..] else { panic!("{:?}", lane.bars) };
    assert_eq!((bar.name.as_str(), bar.kind.as_str(), bar.start, bar.duration), ("add", "Add", 0.0, 70.0));
    assert_eq!(durations(&report, "add"), [("add".to_owned(), 160.0)]);
    assert_eq!(durations(&report, "rare"), [("rare".to_owned(), 10.0)]);
    let add = report.kernels.iter().find(|kernel| kernel.name == "add").expect("a row");
    assert_eq!((add.flops.round(), add.bytes.round()), (30.0, 60.0));
}

#[test]
fn nodes_that_run_at_once_are_in_lanes_of_their_own() {
    let step = vec![
        execution("second", &["first"], 160_000, 50_000),
        execution("beside", &[], 120_000, 100_000),
        execution("first", &[], 100_000, 50_000),
    ];
    let report = report(vec![step]);
    let lanes: Vec<Vec<(&str, f64)>> = report
        .lanes
        .iter()
        .map(|lane| lane.bars.iter().map(|bar| (bar.name.as_str(), bar.start)).collect())
        .collect();
    assert_eq!(lanes, [vec![("first", 0.0), ("second", 60_000.0)], vec![("beside", 20_000.0)]]);
    assert_eq!(report.lanes[0].bars[1].detail, "Add(first)");
}

#[test]
fn instructions_are_rows_below_their_node_which_keeps_what_is_left() {
    let mut launch = execution("cluster_0", &[], 1_000, 100);
    let instruction = |name: &str, kind: &str, depth: usize, start: f64, end: f64| Instruction {
        name: name.to_owned(),
        kind: kind.to_owned(),
        depth,
        start,
        end,
        flops: 7,
        bytes: 9,
        ..Instruction::default()
    };
    launch.flops = 1_000;
    launch.instructions = vec![
        instruction("while.1", "while", 0, 1_010.0, 1_070.0),
        instruction("dot.2", "dot", 1, 1_015.0, 1_045.0),
        instruction("add.3", "add", 0, 1_070.0, 1_080.0),
    ];
    let report = report(vec![vec![launch]]);
    let names: Vec<&str> = report.lanes.iter().map(|lane| lane.name.as_str()).collect();
    assert_eq!(names, ["CPU:0, lane 0", "CPU:0, lane 0: inside", "CPU:0, lane 0: inside"]);
    assert_eq!(report.lanes[1].bars.len(), 2);
    assert_eq!((report.lanes[2].bars[0].start, report.lanes[2].bars[0].duration), (15.0, 30.0));
    // A loop has no row, because its time is that of its instructions. The node's row holds the
    // time that no instruction took.
    let rows = durations(&report, "cluster_0");
    let expected = [("add.3", 10.0), ("cluster_0", 60.0), ("dot.2", 30.0)];
    assert_eq!(rows, expected.map(|(name, time)| (name.to_owned(), time)));
    let node = report.kernels.iter().find(|kernel| kernel.name == "cluster_0").expect("a row");
    assert_eq!((node.flops, node.bytes), (0.0, 0.0), "its instructions have them");
}

#[test]
fn memory_is_held_until_the_last_one_took_it_and_shared_memory_counts_once() {
    let mut make = execution("make", &[], 100, 10);
    make.outputs = vec![output(0, 64, 1), output(1, 16, 2)];
    let mut pass = execution("pass", &["make"], 120, 10);
    // The same memory under another name.
    pass.outputs = vec![output(0, 64, 1)];
    let last = execution("last", &["pass", "make:1"], 140, 10);
    let report = report(vec![vec![make, pass, last]]);
    let [series] = &report.memory[..] else { panic!("{:?}", report.memory) };
    assert_eq!(series.name, "tensors in cpu");
    let most = series.points.iter().map(|&(_, held)| held).fold(0.0, f64::max);
    assert_eq!(most, 80.0);
    assert_eq!(series.points.first(), Some(&(0.0, 0.0)));
    assert_eq!(series.points.last(), Some(&(50.0, 0.0)));
    // Memory does not change between the two consumers.
    let at = |time: f64| series.points.iter().rfind(|point| point.0 <= time).map(|point| point.1);
    assert_eq!((at(5.0), at(35.0)), (Some(80.0), Some(80.0)));
}
