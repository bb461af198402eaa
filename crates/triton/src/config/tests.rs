//! Tests of configurations.

use super::*;
use hlo::SizeRange;
use shape::PrimitiveType;

fn tensor(name: &str, element: PrimitiveType, sizes: &[Size]) -> Tensor {
    Tensor { number: 0, name: name.into(), element, sizes: sizes.to_vec() }
}

const BATCH: Size = Size::Named { argument: 2, range: SizeRange { low: 1, high: 64 } };

/// A program with feeds `x: f32[batch, 4]` and `mask: bool[batch]`, and a fetch
/// `y: bf16[batch, 2]`.
fn signature(is_proven: bool) -> Signature {
    Signature {
        inputs: vec![
            tensor("x", PrimitiveType::F32, &[BATCH, Size::Fixed(4)]),
            tensor("mask", PrimitiveType::Pred, &[BATCH]),
        ],
        outputs: vec![tensor("y", PrimitiveType::Bf16, &[Size::Computed(64), Size::Fixed(2)])],
        rows: Some(Rows { argument: Some(2), low: 1, high: 64 }),
        is_proven,
    }
}

fn message(config: Value) -> String {
    check(&config, &signature(true)).expect_err("a wrong configuration").message().to_owned()
}

#[test]
fn an_empty_configuration_is_completed_from_the_program() {
    let mut config = json!({ "name": "m", "backend": "tfcompile", "max_batch_size": 0, "input": [] });
    assert!(complete(&mut config, &signature(true)));
    assert_eq!(config["max_batch_size"], 64);
    assert_eq!(config["dynamic_batching"], json!({}));
    assert_eq!(
        config["input"],
        json!([
            { "name": "x", "data_type": "TYPE_FP32", "dims": [4] },
            { "name": "mask", "data_type": "TYPE_BOOL", "dims": [1], "reshape": { "shape": [] } },
        ])
    );
    assert_eq!(config["output"], json!([{ "name": "y", "data_type": "TYPE_BF16", "dims": [2] }]));
    assert!(!complete(&mut config, &signature(true)), "nothing is left to complete");
    let settings = check(&config, &signature(true)).expect("complete");
    assert_eq!((settings.rows, settings.threads), (signature(true).rows, 1));
}

#[test]
fn rows_that_may_depend_on_each_other_are_not_joined_unless_the_user_says_so() {
    let mut config = json!({ "max_batch_size": 0 });
    complete(&mut config, &signature(false));
    assert_eq!(config["max_batch_size"], 0);
    assert!(config["dynamic_batching"].is_null());
    assert_eq!(config["input"][0]["dims"], json!([-1, 4]));
    assert_eq!(check(&config, &signature(false)).expect("complete").rows, None);
    let mut config = json!({ "max_batch_size": 16 });
    complete(&mut config, &signature(false));
    assert_eq!(config["input"][0]["dims"], json!([4]));
    assert!(check(&config, &signature(false)).expect("complete").rows.is_some());
}

#[test]
fn what_the_user_wrote_stays_and_gaps_are_filled() {
    let mut config = json!({
        "max_batch_size": 8,
        "sequence_batching": {},
        "input": [{ "name": "x", "data_type": "TYPE_INVALID", "dims": [] }, { "name": "mask", "dims": ["1"] }],
    });
    complete(&mut config, &signature(true));
    assert_eq!(config["max_batch_size"], 8);
    assert!(config["dynamic_batching"].is_null());
    assert_eq!(config["input"][0], json!({ "name": "x", "data_type": "TYPE_FP32", "dims": [4] }));
    assert_eq!(config["input"][1], json!({ "name": "mask", "data_type": "TYPE_BOOL", "dims": ["1"] }));
}

#[test]
fn states_of_sequences_are_inputs_and_outputs_of_the_program_but_not_of_requests() {
    let mut config = json!({
        "max_batch_size": 8,
        "sequence_batching": {
            "state": [{ "input_name": "x", "output_name": "y" }],
            "control_input": [{ "name": "mask" }],
        },
    });
    complete(&mut config, &signature(true));
    assert_eq!((&config["input"], &config["output"]), (&json!([]), &json!([])));
    let settings = check(&config, &signature(true)).expect("states");
    assert_eq!(settings.states, [(0, "y".to_owned())]);
    config["sequence_batching"]["state"][0]["output_name"] = json!("h");
    assert!(message(config).contains("output_name 'h' is no fetch"));
}

#[test]
fn contradictions_are_reported_with_both_sides() {
    let good = |key: &str, value: Value| {
        let mut config = json!({ "max_batch_size": 0 });
        complete(&mut config, &signature(true));
        config[key] = value;
        config
    };
    assert!(message(good("max_batch_size", json!(65))).contains("65, but the program takes at most 64 rows"));
    let x = |dims: Value, kind: &str| json!([{ "name": "x", "data_type": kind, "dims": dims }]);
    let inputs = |dims, kind| message(good("input", x(dims, kind)));
    assert!(
        inputs(json!([4]), "TYPE_FP16").contains("data_type is TYPE_FP16, but the program's is TYPE_FP32")
    );
    assert!(
        inputs(json!([5]), "TYPE_FP32").contains("sizes are [5], but the program's are [4] after the batch")
    );
    assert!(inputs(json!([-1]), "TYPE_FP32").contains("sizes are [-1]"));
    assert!(inputs(json!([-1, 4]), "TYPE_FP32").contains("sizes are [-1, 4]"));
    assert!(inputs(json!([4]), "TYPE_FP32").contains("no input 'mask', which the program needs"));
    let other = json!([{ "name": "logits", "data_type": "TYPE_BF16", "dims": [2] }]);
    assert!(message(good("output", other)).contains("no fetch of this name; it has 'y'"));
    for (name, text, why) in [
        ("threads", "many", "expected a number, got 'many'"),
        ("threads", "0", "expected 1 to 1024, got 0"),
        ("device", "-1", "expected a number"),
    ] {
        let parameters = json!({ name: { "string_value": text } });
        assert!(message(good("parameters", parameters)).contains(why), "{name} {text}");
    }
    let parameters = json!({ "threads": { "string_value": "3" }, "thread": { "string_value": "3" } });
    let settings = check(&good("parameters", parameters), &signature(true)).expect("good parameters");
    assert_eq!((settings.threads, settings.unknown), (3, vec!["thread".to_owned()]));
}

#[test]
fn a_batch_needs_a_dimension_that_all_tensors_share() {
    let fixed = Signature {
        inputs: vec![tensor("x", PrimitiveType::F32, &[Size::Fixed(4)])],
        outputs: vec![tensor("y", PrimitiveType::F32, &[])],
        rows: None,
        is_proven: false,
    };
    let mut config = json!({});
    complete(&mut config, &fixed);
    assert_eq!(config["output"], json!([{ "name": "y", "data_type": "TYPE_FP32", "dims": [1] }]));
    assert!(check(&config, &fixed).is_ok());
    config["max_batch_size"] = json!(4);
    let error = check(&config, &fixed).expect_err("no common dimension");
    assert!(error.message().contains("do not share a leading dimension"), "{error}");
}
