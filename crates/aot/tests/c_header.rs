//! Compares C headers with golden files, and checks which options are rejected.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use aot::{Artifact, CHeaderOptions, c_header};
use std::path::Path;

/// Compares the header with the golden file, or writes the file if `BLESS` is set.
fn check(name: &str, artifact: &Artifact, options: &CHeaderOptions) {
    compare(name, &c_header(artifact, options).unwrap());
}

/// Compares a text with the golden file, or writes the file if `BLESS` is set.
fn compare(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap();
    assert!(
        text == golden,
        "{name} differs from the golden file; review the difference, then run with BLESS=1"
    );
}

#[test]
fn variables_with_mangled_names() {
    check("train_c.h", &crate::fixtures::train(), &CHeaderOptions::default());
}

#[test]
fn quantized_arrays() {
    check(
        "quantized_c.h",
        &crate::fixtures::quantized(),
        &CHeaderOptions { prefix: Some("quantized".into()) },
    );
}

#[test]
fn named_dimensions() {
    check("batched_c.h", &crate::fixtures::batched(), &CHeaderOptions { prefix: Some("batched".into()) });
    let on_device = crate::fixtures::on_opencl(crate::fixtures::batched());
    let error = c_header(&on_device, &CHeaderOptions::default()).unwrap_err();
    assert!(error.message().starts_with("dimension 'batch' has the sizes 1..8"), "{error}");
}

#[test]
fn constants_in_a_file_under_another_prefix() {
    check("scale_c.h", &crate::fixtures::scale(), &CHeaderOptions { prefix: Some("scale_model".into()) });
}

/// Returns the header without the runtime that it embeds.
fn without_runtime(header: &str) -> String {
    let (head, rest) = header.split_once("// ---- tfcompile/").unwrap();
    let declarations = rest.find("// Defined in the object file").unwrap();
    format!("{head}[...]\n{}", &rest[declarations..])
}

#[test]
fn programs_for_gpus() {
    let options = CHeaderOptions::default();
    for (name, artifact) in [
        ("train_opencl_c.h", crate::fixtures::on_opencl(crate::fixtures::train())),
        ("scale_cuda_c.h", crate::fixtures::on_cuda(crate::fixtures::scale())),
    ] {
        let header = c_header(&artifact, &options).unwrap();
        assert_eq!(header.matches("#define TFCOMPILE_DEVICE_H_").count(), 1);
        assert!(!header.contains("#include \"tfcompile"), "everything is embedded");
        compare(name, &without_runtime(&header));
    }
}

#[test]
fn constants_far_from_the_code_are_reached_through_a_pointer() {
    let text = c_header(&crate::fixtures::far(), &CHeaderOptions::default()).unwrap();
    assert!(text.contains("extern const void* const entry_far_constants_pointer;"), "{text}");
    assert!(text.contains("state->frame.constants = entry_far_constants_pointer;"), "{text}");
    assert!(text.contains("#define ENTRY_FAR_CONSTANTS_BYTES 1073741888u"), "{text}");
}

#[test]
fn sizes_beyond_32_bits_are_wide_literals() {
    let mut artifact = crate::fixtures::add();
    artifact.memory.temps = 1 << 33;
    let text = c_header(&artifact, &CHeaderOptions::default()).unwrap();
    assert!(text.contains("#define ENTRY_ADDCOMP_TEMPS_BYTES 8589934592ull"), "{text}");
}

#[test]
fn a_prefix_that_is_no_identifier_is_refused() {
    for prefix in ["", "3d", "a-b"] {
        let options = CHeaderOptions { prefix: Some(prefix.into()) };
        let error = c_header(&crate::fixtures::add(), &options).unwrap_err();
        assert!(error.message().contains(&format!("prefix '{prefix}'")), "{error}");
    }
}

#[test]
fn memory_larger_than_any_is_refused() {
    let mut artifact = crate::fixtures::add();
    artifact.memory.temps = u64::MAX - 10;
    assert!(c_header(&artifact, &CHeaderOptions::default()).is_err());
}
