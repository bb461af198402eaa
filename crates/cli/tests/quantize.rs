//! `tfcompile quantize` and `build --quantize`.

use crate::support::{refuse, root, succeed, tfcompile};
use npz::{Archive, write, write_npy};
use serde_json::Value;
use shape::Literal;
use std::collections::BTreeMap;
use std::path::Path;

/// A layer of two outputs. Their weights are multiples of 0.01 and 0.02, which 127 steps represent.
const LAYER: &str = "HloModule layer

ENTRY main {
  image = f32[1,2] parameter(0)
  w = f32[2,2] constant({{1.27, -0.5}, {0.3, 2.54}})
  ROOT y = f32[1,2] dot(image, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
";

/// Samples in steps of 0.01 from -1.28 to 1.27, so that the scale is 0.01 and the zero point 0.
const SAMPLES: [f32; 6] = [1.27, -1.28, 0.5, 0.25, 0.0, -0.75];

/// Writes the layer, and samples under a name.
fn write_files(directory: &Path, name: &str, samples: &[f32]) {
    std::fs::write(directory.join("layer.hlo"), LAYER).expect("written");
    let array = Literal::from_elements(&[samples.len() as i64 / 2, 2], samples);
    let archive = write(&BTreeMap::from([(name.to_owned(), array)])).expect("an archive");
    std::fs::write(directory.join("data.npz"), archive).expect("written");
}

#[test]
fn a_model_is_written_that_keeps_its_names_and_its_results() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    write_files(directory, "image", &SAMPLES);
    let flags = ["--data=data.npz", "--method=min-max", "--no-bias-correction", "--json", "--quiet"];
    let output = succeed(tfcompile(directory).args(["quantize", "layer.hlo"]).args(flags));
    let report: Value = serde_json::from_slice(&output.stdout).expect("valid JSON");
    let layer = &report["layers"][0];
    assert_eq!(
        (&layer["form"], &layer["op"], &report["samples"]),
        (&"int8".into(), &"dot".into(), &3.into())
    );
    let scale = layer["input"]["scale"].as_f64().expect("a number");
    assert!((scale - 0.01).abs() < 1e-8 && layer["input"]["zero_point"] == 0, "{layer}");
    let error = report["results"][0]["relative_error"].as_f64().expect("a number");
    assert!(error < 1e-6, "all numbers are steps: {error}");

    let text = std::fs::read_to_string(directory.join("layer.int8.mlir")).expect("a file");
    assert!(text.contains("[[127, -25], [30, 127]]> : tensor<2x2xi8>"), "{text}");
    let image = Literal::from_elements(&[1, 2], &SAMPLES[..2]);
    std::fs::write(directory.join("image.npy"), write_npy(&image)).expect("written");
    let run = ["run", "layer.int8.mlir", "--feed=image=image.npy", "--out=results.npz", "--quiet"];
    succeed(tfcompile(directory).args(run));
    let results = std::fs::read(directory.join("results.npz")).expect("a file");
    let mut results = Archive::open(results.into(), 1 << 20).expect("an archive");
    let result = results.require("result0").expect("the result").to_vec::<f32>().expect("floats");
    // 1.27 x 1.27 - 1.28 x 0.3, and -1.27 x 0.5 - 1.28 x 2.54.
    assert!((result[0] - 1.2289).abs() < 1e-5 && (result[1] + 3.8862).abs() < 1e-5, "{result:?}");
}

#[test]
fn a_build_states_the_integers_of_its_interface() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    write_files(directory, "image", &SAMPLES);
    let flags = ["--quantize=int8", "--data=data.npz", "--method=min-max", "--integer-interface"];
    let files = ["--emit=header,hlo-text", "--no-runtime-headers", "-o", "out", "--quiet"];
    succeed(tfcompile(directory).args(["build", "layer.hlo"]).args(flags).args(files));
    let header = std::fs::read_to_string(directory.join("out/layer.h")).expect("a header");
    assert!(header.contains("arg_image_scale() { return 0.01f; }"), "{header}");
    assert!(header.contains("arg_image_zero_point() { return 0; }"), "{header}");
    assert!(header.contains("dequantize_result0("), "{header}");
    let hlo = std::fs::read_to_string(directory.join("out/layer.hlo")).expect("HLO");
    assert!(hlo.contains("s8[1,2]"), "{hlo}");
}

/// The model's file has a value for the variable; StableHLO has none.
#[test]
fn lost_values_of_variables_are_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let model = root().join("tests/saved_models/keras2");
    let notes = |flags: &[&str]| {
        let mut command = tfcompile(directory.path());
        command.arg("quantize").arg(&model).args(["--batch=2", "--scheme=int8-weights", "-o", "model.mlir"]);
        String::from_utf8_lossy(&succeed(command.args(flags)).stderr).into_owned()
    };
    let lost = "does not hold the initial values of its variables";
    let fed = notes(&["--variables-to-feed=q/kernel"]);
    assert!(fed.contains(&format!("{lost}: pass those of 'q_kernel'")), "{fed}");
    assert!(!notes(&[]).contains(lost));
}

#[test]
fn errors_say_what_to_change_and_leave_no_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    let quantize = |flags: &[&str]| {
        refuse(tfcompile(directory).args(["quantize", "layer.hlo", "-o", "out.mlir"]).args(flags), directory)
    };
    write_files(directory, "picture", &SAMPLES);
    let message = quantize(&[]);
    assert!(message.contains("int8 needs examples of inputs to choose scales: pass --data"), "{message}");
    let message = quantize(&["--data=data.npz"]);
    assert!(message.contains("the program has 'image', the file has 'picture'"), "{message}");
    write_files(directory, "image", &[0.0, 1.0, f32::NAN, 0.5]);
    let message = quantize(&["--data=data.npz"]);
    assert!(message.contains("sample 1 has the value NaN, which is not a finite number"), "{message}");
    write_files(directory, "image", &[]);
    let message = quantize(&["--data=data.npz"]);
    assert!(message.contains("member 'image': the array has no samples"), "{message}");
    std::fs::write(directory.join("data.npy"), write_npy(&Literal::scalar(1f32))).expect("written");
    let message = quantize(&["--data=data.npy"]);
    assert!(message.contains("--data data.npy: expected a .npz archive"), "{message}");
    std::fs::write(directory.join("batch.hlo"), LAYER.replace("f32[1,2]", "f32[2,2]")).expect("written");
    write_files(directory, "image", &SAMPLES);
    let batch = ["quantize", "batch.hlo", "--data=data.npz", "-o", "out.mlir"];
    let message = refuse(tfcompile(directory).args(batch), directory);
    assert!(message.contains("3 samples cannot be divided into batches of 2"), "{message}");
    let message = quantize(&["--scheme=int4-weights", "--integer-interface"]);
    assert!(message.contains("--integer-interface applies only to int8"), "{message}");
    for (flags, expected) in [
        (
            ["--scheme=int8-weights", "--method=entropy"],
            "--method applies only to int8, and mse and min-max to",
        ),
        (["--scheme=f16-weights", "--method=mse"], "--method applies only to int8"),
        (["--scheme=int4-weights", "--no-bias-correction"], "--no-bias-correction applies only to int8"),
        (["--data=data.npz", "--percentile=99"], "--percentile has no effect: add --method=percentile"),
    ] {
        let message = quantize(&flags);
        assert!(message.contains(expected), "{message}");
    }
    let build = refuse(tfcompile(directory).args(["build", "layer.hlo", "--method=entropy"]), directory);
    assert!(build.contains("--method has no effect without --quantize"), "{build}");
    for flag in ["--precision=bf16", "--target-cpu=native", "--precise"] {
        let message = quantize(&["--data=data.npz", flag]);
        assert!(message.contains("has no effect on quantize"), "{message}");
    }
    let build = refuse(tfcompile(directory).args(["build", "layer.hlo", "--data=data.npz"]), directory);
    assert!(build.contains("--data has no effect without --quantize"), "{build}");
    assert!(!directory.join("out.mlir").exists());
}
