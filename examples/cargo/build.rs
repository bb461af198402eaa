//! Compiles the model into the program.

fn main() {
    tfcompile_build::Model::new("model/scorer.pbtxt").config("model/scorer.config.pbtxt").compile();
}
