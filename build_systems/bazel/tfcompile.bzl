"""tf_library: a TensorFlow graph as a cc_library, with the parameters of the rule in TensorFlow's tree."""

# LLVM triple of each supported platform. BUILD.bazel has a config_setting for each.
_TRIPLES = {
    "android_aarch64": "aarch64-none-android",
    "android_arm": "armv7-none-android",
    "android_x86_32": "i686-none-android",
    "android_x86_64": "x86_64-none-android",
    "ios_arm64": "arm64-none-ios",
    "ios_x86_64": "x86_64-apple-ios",
    "linux_aarch64": "aarch64-none-linux-gnu",
    "linux_arm": "armv7-none-linux-gnueabihf",
    "linux_ppc": "ppc64le-ibm-linux-gnu",
    "linux_riscv64": "riscv64-none-linux-gnu",
    "linux_s390x": "systemz-none-linux-gnu",
    "linux_x86_32": "i686-none-linux-gnu",
    "linux_x86_64": "x86_64-pc-linux",
    "osx_aarch64": "aarch64-none-darwin",
    "osx_x86_64": "x86_64-none-darwin",
    "windows_aarch64": "aarch64-none-windows",
    "windows_x86_64": "x86_64-none-windows",
}

def _target_flag(flags):
    """Returns the triple of the target platform, unless the flags contain one. The platform is the host of a GPU."""
    names = ["--target_triple", "--target-triple"]
    if "--target=cuda" not in flags and "--target=opencl" not in flags:
        names.append("--target=")
    for flag in names:
        if flag in flags:
            return ""
    choices = {
        "@tfcompile//:" + platform: "--target_triple=" + triple + " "
        for platform, triple in _TRIPLES.items()
    }
    return select(
        choices,
        no_match_error = "tf_library does not support this platform: set --target_triple=TRIPLE in tfcompile_flags",
    )

def _quoted(word):
    return "'" + word.replace("'", "'\\''").replace("$", "$$") + "'"

def _flags(flags):
    """Joins flags: a string is split by the shell, an item of a list is one word."""
    if not flags:
        return ""
    if type(flags) == type(""):
        return flags + " "
    return " ".join([_quoted(flag) for flag in flags]) + " "

def tf_library(
        name,
        graph = None,
        config = None,
        debug_info = None,
        freeze_checkpoint = None,
        freeze_saver = None,
        cpp_class = None,
        gen_test = True,
        gen_benchmark = True,
        gen_compiler_log = False,
        visibility = None,
        testonly = None,
        tfcompile_flags = None,
        tfcompile_tool = "@tfcompile//:tfcompile",
        include_standard_runtime_deps = True,
        enable_xla_hlo_profiling = False,
        enable_tracemes = False,
        mlir_components = "None",
        deps = None,
        tags = [],
        copts = [],
        xla_flags = None,
        saved_model = None):
    """Compiles a graph and defines a cc_library for it.

    Also defines `name_test`, `name_benchmark`, and
    `name_session_module.pb`, the HLO as a serialized xla.HloSnapshot. The header is `name.h`. All
    actions are deterministic.

    Args:
      name: of the library.
      graph: the GraphDef, text or binary.
      config: the tensorflow.tf2xla.Config; without, it is inferred.
      debug_info: a GraphDebugInfo. Accepted; messages name nodes.
      freeze_checkpoint: a checkpoint whose values become constants: its file, or for the newer format a
        filegroup of its files.
      freeze_saver: the SaverDef that the checkpoint was saved with.
      cpp_class: `[[namespace::]...]Class`. Required.
      gen_test: whether to define `name_test`.
      gen_benchmark: whether to define `name_benchmark`.
      gen_compiler_log: whether to write the HLO of each stage to `name_compiler.log`.
      visibility: of the library.
      testonly: as in other rules.
      tfcompile_flags: further flags: a string of words, or a list with one word each.
      tfcompile_tool: the compiler.
      include_standard_runtime_deps: ignored, because compiled code calls no library.
      enable_xla_hlo_profiling: whether the code measures the time of its parts.
      enable_tracemes: ignored, because compiled code calls no tracer.
      mlir_components: ignored, because there is only one importer.
      deps: of the library, such as those that define custom calls.
      tags: of all targets.
      copts: of the library, the test, and the benchmark.
      xla_flags: flags for the environment variable XLA_FLAGS.
      saved_model: instead of `graph`: a filegroup of a SavedModel's files.
    """
    if not cpp_class:
        fail("cpp_class must be specified")
    if freeze_saver and not freeze_checkpoint:
        fail("freeze_checkpoint must be specified when freeze_saver is specified")
    if bool(graph) == bool(saved_model):
        fail("tf_library(%s): set exactly one of graph (a file) and saved_model (a filegroup)" % name)
    if enable_tracemes or mlir_components != "None":
        # buildifier: disable=print
        print("%s: enable_tracemes and mlir_components have no effect" % name)
    tool = "$(location %s) " % tfcompile_tool
    srcs = [config] if config else []
    config_flag = "--config=$(location %s) " % config if config else ""

    # Labels that refer to the same file are one source.
    if freeze_checkpoint and graph:
        frozen = "freeze_%s.pb" % name
        if not config:
            fail("tf_library(%s): freeze_checkpoint requires a config, which selects the nodes to keep" % name)
        native.genrule(
            name = "gen_freeze_" + name,
            srcs = depset([graph, config, freeze_checkpoint] + ([freeze_saver] if freeze_saver else [])).to_list(),
            outs = [frozen],
            cmd = (
                # The prefix of a checkpoint with several files.
                "checkpoint=; for file in $(locations %s); do " % freeze_checkpoint +
                "case $$file in *.index) checkpoint=$${file%.index};; esac; " +
                "[ -n \"$$checkpoint\" ] || first=$${first:-$$file}; done; " +
                tool + "freeze --input_graph=$(location %s) " % graph +
                "--input_checkpoint=$${checkpoint:-$$first} --output_graph=$@ " +
                ("--input_saver=$(location %s) " % freeze_saver if freeze_saver else "") +
                "--output_node_names=$$(" + tool + config_flag + "--dump_fetch_nodes)"
            ),
            tools = [tfcompile_tool],
            tags = tags,
            testonly = testonly,
        )
        graph = frozen
    if graph:
        srcs = srcs + [graph]
        find_model = ""
        model_flag = "--graph=$(location %s) " % graph
    else:
        srcs = srcs + [saved_model]
        find_model = (
            "for file in $(locations %s); do " % saved_model +
            "case $$file in */saved_model.pb|*/saved_model.pbtxt) model=$$(dirname $$file);; esac; done; "
        )
        model_flag = "--graph=$$model "
    if debug_info:
        srcs = srcs + [debug_info]
        model_flag += "--debug_info=$(location %s) " % debug_info
    package = native.package_name()
    entry_point = ("__xla_" + package + "__" + name).replace("/", "_").replace("-", "_").replace(".", "_")
    flags = _flags(tfcompile_flags)
    target_flag = _target_flag(flags)
    common = (
        tool + model_flag + config_flag + "--entry_point=" + entry_point + " --cpp_class=" + cpp_class + " " +
        ("--xla_hlo_profile " if enable_xla_hlo_profiling else "") + flags
    )
    environment = find_model + ("XLA_FLAGS=%s " % _quoted(xla_flags) if xla_flags else "")

    header = name + ".h"
    function_object = name + "_tfcompile_function.o"
    metadata_object = name + "_tfcompile_metadata.o"
    test_source = name + "_test.cc"
    benchmark_source = name + "_benchmark.cc"
    outs = [header, function_object, metadata_object]
    out_flags = (
        "--out_header=$(@D)/" + header + " --out_function_object=$(@D)/" + function_object +
        " --out_metadata_object=$(@D)/" + metadata_object + " "
    )
    if gen_test:
        outs.append(test_source)
        out_flags += "--out_test=$(@D)/" + test_source + " "
    if gen_benchmark:
        outs.append(benchmark_source)
        out_flags += "--out_benchmark=$(@D)/" + benchmark_source + " "
    log = ""
    if gen_compiler_log:
        outs.append(name + "_compiler.log")
        environment += "TF_CPP_MIN_VLOG_LEVEL=3 "
        log_file = "$(@D)/" + name + "_compiler.log"

        # Bazel deletes the outputs of a failed action. The end of the log has the reason.
        log = " 2>" + log_file + " || { tail -n 20 " + log_file + " >&2; exit 1; }"
    native.genrule(
        name = "gen_" + name,
        srcs = srcs,
        outs = outs,
        cmd = environment + common + target_flag + out_flags + log,
        tools = [tfcompile_tool],
        message = "Compiling " + name + " with tfcompile",
        tags = tags,
        testonly = testonly,
        visibility = visibility,
    )
    native.genrule(
        name = name + "_session_module",
        srcs = srcs,
        outs = [name + "_session_module.pb"],
        cmd = environment.replace("TF_CPP_MIN_VLOG_LEVEL=3 ", "") + common + target_flag +
              "--out_session_module=$@ --out_header=/dev/null --out_function_object=$@.o " +
              "--out_metadata_object=$@.metadata.o && rm $@.o $@.metadata.o",
        tools = [tfcompile_tool],
        tags = tags,
        testonly = testonly,
        visibility = visibility,
    )
    native.cc_library(
        name = name,
        srcs = [function_object, metadata_object],
        hdrs = [header],
        deps = ["@tfcompile//:runtime"] + (deps or []),
        copts = copts,
        tags = tags,
        testonly = testonly,
        visibility = visibility,
    )
    if gen_test:
        native.cc_test(
            name = name + "_test",
            srcs = [test_source],
            deps = [":" + name],
            copts = copts,
            tags = tags,
            visibility = visibility,
        )
    if gen_benchmark:
        native.cc_binary(
            name = name + "_benchmark",
            srcs = [benchmark_source],
            deps = [":" + name],
            copts = copts,
            tags = tags,
            testonly = testonly,
            visibility = visibility,
        )
