//! Compares C++ headers with golden files, and checks which artifacts are rejected.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use crate::fixtures::rewrite;
use aot::{Artifact, HeaderOptions, header};
use shape::{ArrayShape, PrimitiveType};
use std::path::Path;

/// Compares `text` with the golden file, or writes the file if `BLESS` is set.
fn check(name: &str, artifact: &Artifact, options: HeaderOptions) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    let text = header(artifact, &options).unwrap();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap();
    assert!(
        text == golden,
        "{name} differs from the golden file; review the difference, then run with BLESS=1"
    );
}

const NONE: HeaderOptions = HeaderOptions {
    gen_name_to_index: false,
    gen_program_shape: false,
    standalone: false,
    freestanding: false,
};
const ALL: HeaderOptions = HeaderOptions { gen_name_to_index: true, gen_program_shape: true, ..NONE };

#[test]
fn a_class_without_names() {
    check("add.h", &crate::fixtures::add(), NONE);
}

#[test]
fn a_class_in_namespaces_with_names_program_shape_and_profile() {
    check("matmul_and_add.h", &crate::fixtures::matmul_and_add(), ALL);
}

#[test]
fn variables_with_mangled_names() {
    check("train.h", &crate::fixtures::train(), HeaderOptions { gen_name_to_index: true, ..NONE });
}

#[test]
fn all_types_and_sizes() {
    check("types.h", &crate::fixtures::types(), HeaderOptions { gen_program_shape: true, ..NONE });
}

#[test]
fn quantized_arrays() {
    check("quantized.h", &crate::fixtures::quantized(), NONE);
    let freestanding = HeaderOptions { freestanding: true, ..NONE };
    check("quantized_freestanding.h", &crate::fixtures::quantized(), freestanding);
    let on_device = header(&crate::fixtures::on_cuda(crate::fixtures::quantized()), &NONE).unwrap();
    assert!(on_device.contains("#include \"tfcompile/quantization.h\""), "{on_device}");
    assert!(on_device.contains("void quantize_arg_x(const float* values) {"), "{on_device}");
}

#[test]
fn constants_in_a_file() {
    check("scale.h", &crate::fixtures::scale(), NONE);
}

#[test]
fn named_dimensions() {
    let freestanding = HeaderOptions { freestanding: true, ..NONE };
    check("batched.h", &crate::fixtures::batched(), HeaderOptions { gen_name_to_index: true, ..NONE });
    check("sequences.h", &crate::fixtures::sequences(), NONE);
    check("batched_freestanding.h", &crate::fixtures::batched(), freestanding);
    let mut artifact = crate::fixtures::batched();
    artifact.cpp_class = aot::parse_cpp_class("ns::batch").unwrap();
    let error = header(&artifact, &NONE).unwrap_err();
    assert!(error.message().starts_with("class 'batch' has the name of a method"), "{error}");
}

#[test]
fn programs_for_gpus() {
    let train = crate::fixtures::on_opencl(crate::fixtures::train());
    check("train_opencl.h", &train, HeaderOptions { gen_name_to_index: true, ..NONE });
    check("scale_cuda.h", &crate::fixtures::on_cuda(crate::fixtures::scale()), NONE);
    let error = header(&train, &HeaderOptions { freestanding: true, ..NONE }).unwrap_err();
    assert!(error.message().contains("--freestanding cannot be combined with a GPU"), "{error}");
    let standalone = header(&train, &HeaderOptions { standalone: true, ..NONE }).unwrap();
    let ours = standalone.lines().find(|line| line.trim_start().starts_with("#include \"tfcompile/"));
    assert_eq!(ours, None, "everything is embedded");
    // Embedded headers that a header includes after its declarations stay in their place.
    let place = |text: &str| standalone.find(text).unwrap_or_else(|| panic!("{text}"));
    assert!(place("#define TFCOMPILE_DEVICE_H_") < place("#define TFCOMPILE_DEVICE_DRIVER_H_"));
    assert!(place("#define TFCOMPILE_DEVICE_RUN_H_") < place("#endif  // TFCOMPILE_DEVICE_H_"));
}

#[test]
fn a_feed_whose_accessors_clash_with_those_of_device_memory_keeps_its_own() {
    let float = PrimitiveType::F32;
    let feeds = ["x", "x_device", "device"].map(|name| crate::fixtures::feed(name, "x:0", float, &[2]));
    let fetch = crate::fixtures::fetch("y", "y:0", float, &[2]);
    let artifact =
        crate::fixtures::on_opencl(crate::fixtures::artifact("Clash", feeds.to_vec(), vec![fetch]));
    let text = header(&artifact, &NONE).unwrap();
    assert_eq!(text.matches("* arg_x_device_data() {").count(), 1, "{text}");
    assert_eq!(text.matches("* arg_x_device_device_data() {").count(), 1, "{text}");
    assert!(text.contains("{ return static_cast<float*>(DeviceFunction::arg_device_data(0)); }"), "{text}");
}

#[test]
fn a_freestanding_class() {
    check("train_freestanding.h", &crate::fixtures::train(), HeaderOptions { freestanding: true, ..NONE });
    for options in
        [HeaderOptions { gen_name_to_index: true, ..NONE }, HeaderOptions { gen_program_shape: true, ..NONE }]
    {
        let error =
            header(&crate::fixtures::add(), &HeaderOptions { freestanding: true, ..options }).unwrap_err();
        assert!(error.message().contains("--freestanding"), "{error}");
    }
}

#[test]
fn constants_far_from_the_code_are_reached_through_a_pointer() {
    let near = header(&crate::fixtures::add(), &NONE).unwrap();
    assert!(near.contains("constants=*/::entry_addcomp_constants,"), "{near}");
    let far = header(&crate::fixtures::far(), &NONE).unwrap();
    assert!(far.contains("extern \"C\" const void* const entry_far_constants_pointer;"), "{far}");
    assert!(far.contains("/*constants_pointer=*/&::entry_far_constants_pointer,"), "{far}");
    assert!(!far.contains("entry_far_constants["), "{far}");
}

#[test]
fn a_standalone_header_includes_nothing_of_ours() {
    for artifact in [crate::fixtures::train(), crate::fixtures::scale()] {
        for freestanding in [false, true] {
            let text = header(&artifact, &HeaderOptions { standalone: true, freestanding, ..NONE }).unwrap();
            let ours = text.lines().find(|line| line.trim_start().starts_with("#include \""));
            assert_eq!(ours, None, "freestanding: {freestanding}");
            assert_eq!(text.matches("#define TFCOMPILE_FRAME_H_").count(), 1);
        }
    }
}

#[test]
fn no_arguments_at_all() {
    let artifact = crate::fixtures::artifact(
        "Constant",
        vec![],
        vec![crate::fixtures::fetch("", "c:0", PrimitiveType::F32, &[])],
    );
    let text = header(&artifact, &ALL).unwrap();
    assert!(text.contains("/*args=*/nullptr,"), "{text}");
    assert!(text.contains("() -> (f32[])"), "{text}");
}

#[test]
fn names_that_the_user_must_mend_are_named() {
    let mut artifact = crate::fixtures::matmul_and_add();
    rewrite(&mut artifact, |arguments, _| arguments[1].name = Some("x".into()));
    let error = header(&artifact, &ALL).unwrap_err();
    assert!(error.message().starts_with("duplicate feed name: x"), "{error}");
    rewrite(&mut artifact, |arguments, _| arguments[1].name = Some("x_data".into()));
    let error = header(&artifact, &ALL).unwrap_err();
    assert!(error.message().starts_with("conflicting feed name: x and x_data"), "{error}");
}

#[test]
fn bounded_results_have_sizes_and_bounded_arguments_are_refused() {
    let mut artifact = crate::fixtures::matmul_and_add();
    assert!(!header(&artifact, &ALL).unwrap().contains("dim_size"));
    rewrite(&mut artifact, |_, results| results[0].shape.dimensions[1].is_dynamic = true);
    let text = header(&artifact, &ALL).unwrap();
    assert!(text.contains("/*num_dynamic_sizes=*/1,"), "{text}");
    let accessor = "::std::int64_t result0_dim_size(::std::size_t dim) const {\n    if (dim == 0u) return 2;\n    if (dim == 1u) \
                    return dynamic_sizes()[0];";
    assert!(text.contains(accessor), "{text}");
    rewrite(&mut artifact, |arguments, _| arguments[0].shape.dimensions[1].is_dynamic = true);
    let error = header(&artifact, &ALL).unwrap_err();
    assert!(error.message().contains("has the bounded shape f32[2,<=2]"), "{error}");
}

#[test]
fn inconsistent_artifacts_are_internal_errors() {
    type Break = fn(&mut Artifact);
    let broken: [(&str, Break); 6] = [
        ("a feed follows", |a| rewrite(a, |arguments, _| arguments.swap(0, 1))),
        ("a fetch follows", |a| rewrite(a, |_, results| results.swap(0, 1))),
        ("but its new value has shape", |a| {
            rewrite(a, |_, results| results[1].shape = ArrayShape::new(PrimitiveType::F32, &[4]));
        }),
        ("not at the position", |a| rewrite(a, |_, results| results[1].alias = Some(2))),
        ("not at the position", |a| rewrite(a, |_, results| results.swap(1, 2))),
        ("persistent temps are larger", |a| a.memory.persistent_temps = 201),
    ];
    for (message, break_it) in broken {
        let mut artifact = crate::fixtures::train();
        break_it(&mut artifact);
        let error = header(&artifact, &NONE).unwrap_err();
        assert!(error.message().contains(message), "{message}: {error}");
        assert_eq!(error.kind(), support::ErrorKind::Internal);
    }
}
