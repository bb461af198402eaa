//! Compiles models without Rust's standard library.

fn main() {
    tfcompile_build::Model::new("../model/scorer.pbtxt")
        .config("../model/scorer.config.pbtxt")
        .name("static_scorer")
        .no_std(true)
        .compile();
    tfcompile_build::Model::new("../model/row.tflite").name("static_row").no_std(true).compile();
}
