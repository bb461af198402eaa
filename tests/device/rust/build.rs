//! Compiles the layer of `tests/artifacts` for OpenCL devices, with its weights inside and outside.

fn main() {
    let model = |name: &str| {
        let layer = tfcompile_build::Model::new("layer.pbtxt").config("layer.config.pbtxt");
        layer.name(name).gpu("opencl")
    };
    model("inside").compile();
    model("outside").constants_file(true).compile();
}
