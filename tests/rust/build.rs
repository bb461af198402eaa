//! Compiles the same model with its weights in a file, a model with a data-dependent result size,
//! two for any number of rows, and a quantized model.

fn main() {
    tfcompile_build::Model::new("model/scorer.pbtxt")
        .config("model/scorer.config.pbtxt")
        .name("outside")
        .class("scores::Outside")
        .constants_file(true)
        .compile();
    tfcompile_build::Model::new("model/chosen.pbtxt").config("model/chosen.config.pbtxt").compile();
    tfcompile_build::Model::new("model/batched.hlo").compile();
    tfcompile_build::Model::new("model/layer.pbtxt").compile();
    tfcompile_build::Model::new("model/row.tflite").compile();
}
