//! Compiles programs for OpenCL devices: the layer of `tests/artifacts` with its weights inside and
//! outside, a program with variables, one with an assertion, and one with a result whose size
//! depends on data.

fn main() {
    let model = |name: &str, file: &str| {
        let path = format!("models/{file}.pbtxt");
        let model = tfcompile_build::Model::new(path).config(format!("models/{file}.config.pbtxt"));
        model.name(name).gpu("opencl")
    };
    model("inside", "layer").compile();
    model("outside", "layer").constants_file(true).compile();
    model("train", "train").compile();
    model("reported", "asserts").argument("--assert=report").compile();
    model("chosen", "chosen").compile();
}
