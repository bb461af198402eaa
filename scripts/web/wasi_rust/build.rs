//! Compiles the model of `examples/cargo` in the form that the environment variable `FORM` names:
//! with or without SIMD, with weights in a file, or without the standard library.

use std::env;
use std::path::Path;

fn main() {
    println!("cargo::rerun-if-env-changed=FORM");
    println!("cargo::rustc-check-cfg=cfg(weights_in_a_file, has_threads)");
    let form = env::var("FORM").expect("FORM is set");
    let directory = env::var("CARGO_MANIFEST_DIR").expect("Cargo sets it");
    let models = Path::new(&directory).join("../../../examples/cargo/model");
    let model = tfcompile_build::Model::new(models.join("scorer.pbtxt"))
        .config(models.join("scorer.config.pbtxt"));
    if form != "no-std" {
        println!("cargo::rustc-cfg=has_threads");
    }
    match form.as_str() {
        "plain" => model.compile(),
        "simd" => model.argument("--target=wasm32").compile(),
        "relaxed" => model.argument("--target=wasm32-relaxed").compile(),
        "no-std" => model.argument("--target=wasm32").no_std(true).compile(),
        "file" => {
            println!("cargo::rustc-cfg=weights_in_a_file");
            model.argument("--target=wasm32").constants_file(true).compile()
        }
        other => panic!("unknown form '{other}'"),
    };
}
