"""GCC for another machine, as a distribution installs it: static programs, which an emulator runs."""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "ACTION_NAMES")
load("@bazel_tools//tools/cpp:cc_toolchain_config_lib.bzl", "feature", "flag_group", "flag_set", "tool_path")

def _config(ctx):
    tools = ["ar", "cpp", "gcc", "gcov", "ld", "nm", "objcopy", "objdump", "strip"]
    static = flag_set(
        actions = [ACTION_NAMES.cpp_link_executable],
        flag_groups = [flag_group(flags = ["-static", "-lstdc++", "-lm"])],
    )
    return cc_common.create_cc_toolchain_config_info(
        ctx = ctx,
        abi_libc_version = "unknown",
        abi_version = "unknown",
        compiler = "gcc",
        cxx_builtin_include_directories = [
            "/usr/lib/gcc-cross",
            "/usr/aarch64-linux-gnu/include",
            "/usr/include",
        ],
        features = [feature(name = "static_programs", enabled = True, flag_sets = [static])],
        host_system_name = "local",
        target_cpu = "aarch64",
        target_libc = "unknown",
        target_system_name = "local",
        tool_paths = [tool_path(name = tool, path = ctx.attr.prefix + tool) for tool in tools],
        toolchain_identifier = ctx.label.name,
    )

gcc_toolchain_config = rule(
    attrs = {"prefix": attr.string(mandatory = True)},
    implementation = _config,
    provides = [CcToolchainConfigInfo],
)
