//! The same model with its weights in a file, and one whose result's size only a run knows.

fn main() {
    tfcompile_build::Model::new("model/scorer.pbtxt")
        .config("model/scorer.config.pbtxt")
        .name("outside")
        .class("scores::Outside")
        .constants_file(true)
        .compile();
    tfcompile_build::Model::new("model/chosen.pbtxt").config("model/chosen.config.pbtxt").compile();
}
