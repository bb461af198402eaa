//! The headers of `runtime/include`, embedded in the tool.

macro_rules! runtime_headers {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../../runtime/include/", $path)))),*]
    };
}

const HEADERS: &[(&str, &str)] = runtime_headers![
    "tensorflow/compiler/aot/runtime.h",
    "tensorflow/compiler/tf2xla/xla_compiled_cpu_function.h",
    "tensorflow/compiler/xla/cpu_function_runtime.h",
    "tensorflow/compiler/xla/executable_run_options.h",
    "tensorflow/compiler/xla/service/hlo_profile_printer.h",
    "tensorflow/compiler/xla/service/hlo_profile_printer_data.pb.h",
    "tensorflow/compiler/xla/xla_data.pb.h",
    "tensorflow/core/platform/types.h",
    "tfcompile/complex.h",
    "tfcompile/constants_file.h",
    "tfcompile/constants_format.h",
    "tfcompile/custom_call.h",
    "tfcompile/device.h",
    "tfcompile/device_cuda.h",
    "tfcompile/device_cuda_api.h",
    "tfcompile/device_cupti.h",
    "tfcompile/device_driver.h",
    "tfcompile/device_frame.h",
    "tfcompile/device_function.h",
    "tfcompile/device_instance.h",
    "tfcompile/device_memory.h",
    "tfcompile/device_open.h",
    "tfcompile/device_opencl.h",
    "tfcompile/device_opencl_api.h",
    "tfcompile/device_opencl_buffers.h",
    "tfcompile/device_program.h",
    "tfcompile/device_run.h",
    "tfcompile/device_state.h",
    "tfcompile/eigen_thread_pool.h",
    "tfcompile/frame.h",
    "tfcompile/hlo_profile_printer.h",
    "tfcompile/program_shape.h",
    "tfcompile/quantization.h",
    "tfcompile/state.h",
    "tfcompile/thread_pool.h",
    "tfcompile/types.h",
    "tfcompile/variable.h",
    "tfcompile/xla_compiled_cpu_function.h",
    "third_party/eigen3/Eigen/Core",
    "third_party/eigen3/Eigen/Dense",
    "third_party/eigen3/unsupported/Eigen/CXX11/Tensor",
    "third_party/eigen3/unsupported/Eigen/CXX11/ThreadPool",
    "xla/cpu_function_runtime.h",
    "xla/executable_run_options.h",
    "xla/service/hlo_profile_printer.h",
    "xla/service/hlo_profile_printer_data.pb.h",
    "xla/xla_data.pb.h",
];

/// Returns every header that a program needs as pairs of path below the include directory and
/// content, sorted by path.
pub fn runtime_headers() -> &'static [(&'static str, &'static str)] {
    HEADERS
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    fn files(directory: &Path, out: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { files(&path, out) } else { out.push(path) }
        }
    }

    #[test]
    fn the_list_is_the_whole_directory() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../runtime/include"));
        let mut paths = Vec::new();
        files(root, &mut paths);
        let present: BTreeSet<String> =
            paths.iter().map(|p| p.strip_prefix(root).unwrap().to_str().unwrap().to_string()).collect();
        let listed: BTreeSet<String> = HEADERS.iter().map(|(path, _)| path.to_string()).collect();
        assert_eq!(listed, present);
        assert!(HEADERS.is_sorted());
    }
}
