//! Compares timelines with those that TensorFlow's `timeline` module creates from the same
//! `StepStats`.

use serde_json::Value;
use tf::DataType;
use tf::proto::StepStats;
use trace::{Collector, Execution, Output, TimelineOptions, chrome_trace};

fn stats() -> StepStats {
    let text = include_str!("data/steps.pbtxt");
    let metadata = tf::source::parse_run_metadata(text.into(), "steps.pbtxt").expect("valid");
    metadata.step_stats.expect("it has them")
}

fn events(json: &str) -> Vec<Value> {
    let trace: Value = serde_json::from_str(json).expect("JSON");
    trace["traceEvents"].as_array().expect("a list").clone()
}

#[test]
fn bars_arrows_and_memory_are_tensorflows() {
    let both = chrome_trace(&stats(), TimelineOptions { dataflow: true, memory: true });
    for (ours, theirs) in events(&both).iter().zip(&events(include_str!("data/steps_dataflow_memory.json"))) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(events(&both).len(), events(include_str!("data/steps_dataflow_memory.json")).len());
    let plain = chrome_trace(&stats(), TimelineOptions { dataflow: false, memory: false });
    assert_eq!(events(&plain), events(include_str!("data/steps_plain.json")));
    assert!(plain.starts_with("{\n    \"traceEvents\": [\n        {\n"), "indented by four");
}

#[test]
fn executions_become_step_stats_in_the_order_of_time() {
    let collector = Collector::default();
    let execution = |name: &str, device: &str, start: u64| Execution {
        device: device.to_owned(),
        name: name.to_owned(),
        op: "MatMul".to_owned(),
        inputs: vec!["x".to_owned(), "y:1".to_owned()],
        scheduled: start - 500,
        start,
        kernel_start: start + 1_500,
        kernel_end: start + 4_000,
        end: start + 5_999,
        thread: 1,
        ..Execution::default()
    };
    let output = Output {
        slot: 1,
        data_type: DataType::Bfloat16,
        sizes: vec![2, 3],
        bytes: 12,
        address: 64,
        allocator: "cpu",
    };
    std::thread::scope(|scope| {
        scope.spawn(|| collector.record(execution("late", "/device:CPU:0", 9_000_000)));
        scope.spawn(|| {
            let early = execution("early", "/device:CPU:0", 7_000_400);
            collector.record(Execution { outputs: vec![output], temporary_bytes: 7, ..early });
        });
        scope.spawn(|| collector.record(execution("other", "/device:XLA_CPU:0", 8_000_000)));
    });
    let text = tf::source::run_metadata_to_text(&collector.into_run_metadata());
    let expected = r#"step_stats {
  dev_stats {
    device: "/device:CPU:0"
    node_stats {
      node_name: "early"
      all_start_micros: 7000
      op_start_rel_micros: 1
      op_end_rel_micros: 4
      all_end_rel_micros: 5
      output {
        slot: 1
        tensor_description {
          dtype: DT_BFLOAT16
          shape {
            dim {
              size: 2
            }
            dim {
              size: 3
            }
          }
          allocation_description {
            requested_bytes: 12
            allocated_bytes: 12
            allocator_name: "cpu"
            ptr: 64
          }
        }
      }
      timeline_label: "early = MatMul(x, y:1)"
      scheduled_micros: 6999
      thread_id: 1
      memory_stats {
        temp_memory_size: 7
      }
      all_start_nanos: 7000400
      op_start_rel_nanos: 1500
      op_end_rel_nanos: 4000
      all_end_rel_nanos: 5999
      scheduled_nanos: 6999900
    }
"#;
    assert_eq!(&text[..expected.len()], expected);
    let names: Vec<&str> = text.lines().filter_map(|l| l.trim().strip_prefix("node_name: ")).collect();
    assert_eq!(names, ["\"early\"", "\"late\"", "\"other\""]);
}

#[test]
fn the_bar_of_a_cluster_has_the_number_of_its_compilations() {
    let collector = Collector::default();
    let execution = |name: &str, compilations: u64| Execution {
        device: "/device:CPU:0".to_owned(),
        name: name.to_owned(),
        op: "_XlaLaunch".to_owned(),
        inputs: vec!["x".to_owned()],
        compilations,
        ..Execution::default()
    };
    collector.record(execution("once", 1));
    collector.record(execution("unknown", 0));
    let metadata = collector.into_run_metadata();
    let stats = metadata.step_stats.expect("it has them");
    let json = chrome_trace(&stats, TimelineOptions::default());
    let bars: Vec<Value> = events(&json).into_iter().filter(|event| event["ph"] == "X").collect();
    let arguments = |name: &str| {
        let bar = bars.iter().find(|bar| bar["args"]["name"] == name).expect("a bar");
        (bar["args"]["op"].clone(), bar["args"]["input0"].clone(), bar["args"].get("compilations").cloned())
    };
    assert_eq!(arguments("once"), ("_XlaLaunch".into(), "x".into(), Some(1.into())));
    assert_eq!(arguments("unknown"), ("_XlaLaunch".into(), "x".into(), None));
}
