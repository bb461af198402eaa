//! Compares Rust modules with golden files, and checks which classes are rejected.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use aot::{Artifact, RustOptions, parse_cpp_class, rust_module};
use std::path::Path;

/// Compares `text` with the golden file, or writes the file if `BLESS` is set.
fn check(name: &str, artifact: &Artifact, options: &RustOptions) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    let text = rust_module(artifact, options).unwrap();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap();
    assert!(
        text == golden,
        "{name} differs from the golden file; review the difference, then run with BLESS=1"
    );
}

#[test]
fn variables_with_mangled_names() {
    check("train.rs.txt", &crate::fixtures::train(), &RustOptions::default());
}

#[test]
fn constants_in_a_file_without_std() {
    check("scale_no_std.rs.txt", &crate::fixtures::scale(), &RustOptions { no_std: true });
}

#[test]
fn quantized_arrays() {
    check("quantized.rs.txt", &crate::fixtures::quantized(), &RustOptions::default());
    let text = rust_module(&crate::fixtures::quantized(), &RustOptions { no_std: true }).unwrap();
    assert!(text.contains("pub const ARG_X_SCALE: f32 = 0.5;"), "{text}");
    assert!(text.contains("pub fn quantize_arg_x(&mut self, values: &[[[f32; 3]; 1]; 2]) {"), "{text}");
    let mut artifact = crate::fixtures::quantized();
    crate::fixtures::rewrite(&mut artifact, |arguments, _| arguments[3].name = Some("X".into()));
    let error = rust_module(&artifact, &RustOptions::default()).unwrap_err();
    let message = "'bias:0' and 'x:0' would both define the Rust constant ARG_X_SCALE";
    assert!(error.message().contains(message), "{error}");
}

#[test]
fn named_dimensions() {
    check("batched_no_std.rs.txt", &crate::fixtures::batched(), &RustOptions { no_std: true });
    check("sequences.rs.txt", &crate::fixtures::sequences(), &RustOptions::default());
}

#[test]
fn programs_for_gpus() {
    let train = crate::fixtures::on_cuda(crate::fixtures::train());
    check("train_cuda.rs.txt", &train, &RustOptions::default());
    let scale = crate::fixtures::on_opencl(crate::fixtures::scale());
    check("scale_opencl.rs.txt", &scale, &RustOptions::default());
    let error = rust_module(&train, &RustOptions { no_std: true }).unwrap_err();
    assert!(error.message().contains("cannot be combined with a GPU"), "{error}");
}

#[test]
fn constants_far_from_the_code_are_reached_through_a_pointer() {
    let text = rust_module(&crate::fixtures::far(), &RustOptions::default()).unwrap();
    assert!(text.contains("static entry_far_constants_pointer: *const ::core::ffi::c_void;"), "{text}");
    assert!(text.contains("let constants = unsafe { entry_far_constants_pointer };"), "{text}");
}

#[test]
fn every_type_has_a_name_in_rust() {
    let text = rust_module(&crate::fixtures::types(), &RustOptions::default()).unwrap();
    for want in ["bool", "i8", "i64", "u16", "f64", "[f32; 2]", "[f64; 2]"] {
        assert!(
            text.contains(&format!("-> &{want} {{")) || text.contains(&format!("[{want}; ")),
            "{want} in {text}"
        );
    }
}

#[test]
fn a_class_that_is_a_word_of_rusts_is_refused() {
    let mut artifact = crate::fixtures::add();
    artifact.cpp_class = parse_cpp_class("Self").unwrap();
    let error = rust_module(&artifact, &RustOptions::default()).unwrap_err();
    assert!(error.message().contains("class 'Self' is a Rust keyword"), "{error}");
}

#[test]
fn names_whose_methods_would_meet_are_refused() {
    let feeds = ["x", "x_mut"]
        .map(|name| crate::fixtures::feed(name, &format!("{name}:0"), shape::PrimitiveType::F32, &[2]));
    let artifact = crate::fixtures::artifact("Meet", feeds.to_vec(), Vec::new());
    let error = rust_module(&artifact, &RustOptions::default()).unwrap_err();
    assert!(
        error.message().contains("'x_mut:0' and 'x:0' would both define the Rust method arg_x_mut"),
        "{error}"
    );
}

#[test]
fn names_that_meet_on_a_device_are_refused_for_gpus_only() {
    let feeds = ["x", "x_on_device"]
        .map(|name| crate::fixtures::feed(name, &format!("{name}:0"), shape::PrimitiveType::F32, &[2]));
    let artifact = crate::fixtures::artifact("Meet", feeds.to_vec(), Vec::new());
    rust_module(&artifact, &RustOptions::default()).unwrap();
    let artifact = crate::fixtures::on_cuda(artifact);
    let error = rust_module(&artifact, &RustOptions::default()).unwrap_err();
    assert!(error.message().contains("would both define the Rust method arg_x_on_device"), "{error}");
}
