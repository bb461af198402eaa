//! Compiles the model with the tool that the environment variable TFCOMPILE names, or the one in PATH.

fn main() {
    tfcompile_build::Model::new("@MODEL@").name("@NAME@")@CONFIG@.compile();
}
