//! Compiles the runtime of devices, the same one that users' programs include as a header.

fn main() {
    let include = "../../runtime/include";
    println!("cargo:rerun-if-changed=c/device.c");
    println!("cargo:rerun-if-changed={include}/tfcompile");
    cc::Build::new()
        .std("c99")
        .include(include)
        .define("_GNU_SOURCE", None)
        .file("c/device.c")
        .compile("tfcompile_device");
}
