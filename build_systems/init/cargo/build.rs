//! Compiles the model with the tool in the environment variable TFCOMPILE, or the one in PATH.

fn main() {
    tfcompile_build::Model::new("@MODEL@").name("@NAME@")@CONFIG@.compile();
}
