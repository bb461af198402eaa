//! A C++ class for programs without a library: no allocation, no exceptions, and only those
//! standard headers that every compiler provides. All of its memory is inside the object.
//!
//! A static object needs no code before `main`: its constructor is constant, and pointers into its
//! own memory are computed on use.

use super::text::Text;
use super::{Constants, CppNames, accessors, arena, sizes, variables};
use crate::Artifact;
use crate::header::{Arena, literal, standalone};
use crate::quantized;
use std::collections::BTreeSet;
use support::Result;

/// Returns the whole header.
pub(super) fn header(artifact: &Artifact, names: &CppNames) -> Result<String> {
    let arena = Arena::new(artifact, 0)?;
    let mut out = Text::new();
    super::begin(&mut out, artifact);
    let mut emitted_paths = BTreeSet::new();
    standalone::embed_one(&mut out, "tfcompile/frame.h", &mut emitted_paths)?;
    if artifact.constants_file.is_some() {
        standalone::embed_one(&mut out, "tfcompile/constants_format.h", &mut emitted_paths)?;
    }
    let mut shapes = artifact
        .interface
        .arguments()
        .iter()
        .map(|a| &a.shape)
        .chain(artifact.interface.fetches().iter().map(|r| &r.shape));
    if shapes.any(|shape| shape.element_type.is_complex()) {
        standalone::embed_one(&mut out, "tfcompile/complex.h", &mut emitted_paths)?;
    }
    if quantized::converts(&artifact.interface) {
        standalone::embed_one(&mut out, quantized::HEADER, &mut emitted_paths)?;
    }
    if !artifact.interface.variables().is_empty() {
        standalone::embed_one(&mut out, variables::HEADER, &mut emitted_paths)?;
    }
    super::declarations(&mut out, artifact);
    super::open_namespaces(&mut out, artifact);
    comment(&mut out, artifact, names);
    let class = artifact.cpp_class.class_name();
    out.line(&format!("class {class} final {{"));
    out.line(" public:");
    out.indented(|out| {
        super::counts(out, artifact, "kArgSizes[index]");
        memory(out, artifact, &arena);
        constructor(out, class);
        run(out, artifact, names);
        if artifact.constants_file.is_some() {
            set_constants(out);
        }
        set_parallel_for(out, artifact);
        tables(out, artifact);
        variables::method(out, artifact);
        if artifact.interface.size_count() > 0 {
            out.comment("Actual sizes of all bounded dimensions, result by result.");
            out.line("const ::std::int64_t* dynamic_sizes() const { return dynamic_sizes_; }");
            out.blank();
        }
        sizes::freestanding_methods(out, names);
        accessors::arguments(out, artifact, names);
        accessors::results(out, artifact, names);
        accessors::variables(out, artifact, names);
    });
    out.line(" private:");
    out.indented(|out| members(out, artifact, &arena, names));
    out.line("};");
    super::end(&mut out, artifact);
    Ok(out.into_string())
}

fn comment(out: &mut Text, artifact: &Artifact, names: &CppNames) {
    let class = artifact.cpp_class.class_name();
    for line in [
        &format!("{class} is a compiled TensorFlow graph, for programs without any library:"),
        "",
        &format!("  static {class} computation;"),
        "  // ... write the arguments through computation.argN() or computation.argN_data()",
        "  if (!computation.Run()) { /* computation.error_msg() says why */ }",
        "  // ... read computation.resultN() or computation.resultN_data()",
        "",
        "An object contains all of its memory, kArenaBytes, and allocates none. Give it static storage \
         duration: there it needs no code before main(), while elsewhere its constructor fills it with \
         zeros. All buffers are row-major. Use one object per thread.",
        "",
        "The logical function signature is:",
    ] {
        out.paragraph(line);
    }
    super::signature(out, &artifact.interface, names);
    super::memory_comment(out, artifact);
    super::names_comment(out, artifact, names);
}

fn memory(out: &mut Text, artifact: &Artifact, arena: &Arena) {
    out.comment("Sizes in bytes of an object's memory and of the scratch memory of each further worker.");
    for (name, bytes) in [("kArenaBytes", arena.size), ("kScratchBytes", artifact.memory.scratch)] {
        out.line(&format!("static constexpr ::std::size_t {name} = {};", literal(bytes)));
    }
    out.blank();
}

fn constructor(out: &mut Text, class: &str) {
    out.line(&format!("constexpr {class}() = default;"));
    out.line(&format!("{class}(const {class}&) = delete;"));
    out.line(&format!("{class}& operator=(const {class}&) = delete;"));
    out.blank();
}

fn run(out: &mut Text, artifact: &Artifact, names: &CppNames) {
    let entry = &artifact.entry_point;
    out.comment("Computes the results. On failure, returns false, and error_msg() returns the message.");
    out.line("bool Run() {");
    let constants = match Constants::of(artifact) {
        Constants::Near => format!("::{entry}_constants"),
        Constants::Far => format!("::{entry}_constants_pointer"),
        Constants::File => {
            out.line("  if (constants_ == nullptr) {");
            out.line("    error_ = \"the constants are not loaded: call SetConstants before Run\";");
            out.line("    return false;");
            out.line("  }");
            "constants_".to_string()
        }
    };
    sizes::freestanding_checks(out, names);
    let tables = [
        ("args", artifact.interface.arguments().len(), "arg"),
        ("results", artifact.interface.results().len(), "result"),
    ];
    for (table, count, accessor) in tables {
        out.line(&format!("  void* {table}[{}];", count.max(1)));
        if count == 0 {
            out.line(&format!("  {table}[0] = nullptr;"));
        }
        for index in 0..count {
            let own = names.sizes.iter().position(|size| table == "args" && size.argument == index);
            let data =
                own.map_or_else(|| format!("{accessor}_data({index})"), |own| format!("&sizes[{own}]"));
            out.line(&format!("  {table}[{index}] = {data};"));
        }
    }
    out.line("  ::tfcompile_frame frame;");
    let counters = if artifact.profile_counters.is_empty() { "nullptr" } else { "profile_counters()" };
    for (field, value) in [
        ("size", "sizeof(frame)"),
        ("version", "TFCOMPILE_FRAME_VERSION"),
        ("reserved", "0"),
        ("args", "args"),
        ("results", "results"),
        ("temps", "arena_ + kTempsOffset"),
        ("constants", &constants),
        ("parallel_for", "parallel_for_"),
        ("context", "context_"),
        ("max_workers", "parallel_for_ == nullptr ? 1 : max_workers_"),
        (
            "scratch",
            if artifact.memory.scratch == 0 {
                "nullptr"
            } else {
                "parallel_for_ == nullptr ? arena_ + kScratchOffset : scratch_"
            },
        ),
        ("profile_counters", counters),
        ("error", "nullptr"),
        ("dynamic_sizes", if artifact.interface.size_count() > 0 { "dynamic_sizes_" } else { "nullptr" }),
        ("device", "nullptr"),
    ] {
        out.line(&format!("  frame.{field} = {value};"));
    }
    out.line(&format!("  const bool succeeded = ::{entry}(&frame) == 0;"));
    out.line("  error_ = succeeded ? nullptr : frame.error != nullptr ? frame.error : \"the compiled function failed\";");
    out.line("  return succeeded;");
    out.line("}");
    out.blank();
    out.comment("Returns the error message of the last call, or \"\" if it succeeded.");
    out.line("const char* error_msg() const { return error_ != nullptr ? error_ : \"\"; }");
    out.blank();
    if !artifact.profile_counters.is_empty() {
        out.comment("Returns the profile counters, summed over all runs.");
        out.line("::std::int64_t* profile_counters() {");
        out.line("  return reinterpret_cast<::std::int64_t*>(arena_ + kCountersOffset);");
        out.line("}");
        out.blank();
    }
}

fn set_constants(out: &mut Text) {
    out.paragraph(
        "Sets the constants of the object to the contents of a constants file. The memory must be aligned \
         to 64 bytes and stay unchanged while in use. Call this before the first run, and between runs to \
         replace the constants. On failure, returns false and changes nothing, and error_msg() returns the \
         message.",
    );
    out.line("bool SetConstants(const void* file, ::std::size_t size) {");
    out.line("  error_ = ::tfcompile_check_constants(file, size, kLayoutHash);");
    out.line("  if (error_ == nullptr && reinterpret_cast<::std::uintptr_t>(file) % 64u != 0) {");
    out.line("    error_ = \"the constants are not aligned to 64 bytes\";");
    out.line("  }");
    out.line("  if (error_ != nullptr) return false;");
    out.line("  constants_ = static_cast<const unsigned char*>(file) + TFCOMPILE_CONSTANTS_HEADER_BYTES;");
    out.line("  return true;");
    out.line("}");
    out.blank();
}

fn set_parallel_for(out: &mut Text, artifact: &Artifact) {
    out.paragraph(
        "Sets the function that distributes the work of runs (see tfcompile_parallel_for). Null selects \
         the calling thread. `scratch` has max_workers times kScratchBytes bytes, aligned to 64; it may be \
         null if that is 0. Returns false and changes nothing if `scratch` is required but null or \
         misaligned. Results do not depend on these settings.",
    );
    out.line("bool set_parallel_for(::tfcompile_parallel_for parallel_for, void* context, ::std::int64_t max_workers,");
    out.line("                      void* scratch) {");
    out.line("  if (max_workers < 2) parallel_for = nullptr;");
    if artifact.memory.scratch > 0 {
        out.line("  const bool usable = scratch != nullptr && reinterpret_cast<::std::uintptr_t>(scratch) % 64u == 0;");
        out.line("  if (parallel_for != nullptr && !usable) return false;");
        out.line("  scratch_ = scratch;");
    } else {
        out.line("  static_cast<void>(scratch);");
    }
    out.line("  parallel_for_ = parallel_for;");
    out.line("  context_ = context;");
    out.line("  max_workers_ = max_workers;");
    out.line("  return true;");
    out.line("}");
    out.blank();
}

/// Writes the accessors of buffers by index, which the other accessors use.
fn tables(out: &mut Text, artifact: &Artifact) {
    out.comment("Arguments by index: feeds, then variables. Setting null selects the object's own memory.");
    if artifact.interface.arguments().is_empty() {
        out.line("void* arg_data(::std::size_t) { return nullptr; }");
    } else {
        out.line("void* arg_data(::std::size_t index) {");
        out.line("  return args_[index] != nullptr ? args_[index] : arena_ + kArgOffsets[index];");
        out.line("}");
        out.line("const void* arg_data(::std::size_t index) const {");
        out.line("  return args_[index] != nullptr ? args_[index] : arena_ + kArgOffsets[index];");
        out.line("}");
        out.line("void set_arg_data(::std::size_t index, const void* data) { args_[index] = const_cast<void*>(data); }");
    }
    out.blank();
    out.comment("Results by index: fetches, then written variables.");
    for constness in ["", "const "] {
        let qualifier = if constness.is_empty() { "" } else { " const" };
        if artifact.interface.results().is_empty() {
            out.line(&format!(
                "{constness}void* result_data(::std::size_t){qualifier} {{ return nullptr; }}"
            ));
            continue;
        }
        out.line(&format!("{constness}void* result_data(::std::size_t index){qualifier} {{"));
        let fetches = artifact.interface.fetches().len();
        if fetches < artifact.interface.results().len() {
            let guard = if fetches == 0 { String::new() } else { format!("if (index >= {fetches}u) ") };
            out.line(&format!("  {guard}return arg_data(kVariables[index - {fetches}u]);"));
        }
        if fetches > 0 {
            out.line("  return arena_ + kResultOffsets[index];");
        }
        out.line("}");
    }
    out.blank();
}

fn members(out: &mut Text, artifact: &Artifact, arena: &Arena, names: &CppNames) {
    super::layout_table(out, artifact, "static constexpr unsigned char kLayoutHash[]");
    for (name, offset, used) in [
        ("kTempsOffset", arena.temps, true),
        ("kScratchOffset", arena.scratch, artifact.memory.scratch > 0),
        ("kCountersOffset", arena.counters, !artifact.profile_counters.is_empty()),
    ] {
        if used {
            out.line(&format!("static constexpr ::std::size_t {name} = {};", literal(offset)));
        }
    }
    let variables = artifact.interface.results().iter().filter_map(|result| Some(result.alias? as u64));
    let sizes = artifact.interface.arguments().iter().map(|argument| argument.shape.byte_size());
    for (name, entries) in [
        ("kArgSizes", sizes.collect::<Vec<_>>()),
        ("kArgOffsets", arena.arguments.clone()),
        ("kResultOffsets", arena.results.clone()),
        ("kVariables", variables.collect()),
    ] {
        let entries: Vec<String> = entries.into_iter().map(literal).collect();
        if !entries.is_empty() {
            out.line(&format!("static constexpr ::std::size_t {name}[] = {{{}}};", entries.join(", ")));
        }
    }
    out.blank();
    out.paragraph(
        "All members are initially zero, so an object with static storage takes no space in the program's \
         file.",
    );
    out.line(&format!("alignas({}) unsigned char arena_[kArenaBytes] = {{}};", arena::ALIGNMENT));
    if !artifact.interface.arguments().is_empty() {
        out.comment("Buffers of the caller, or null.");
        out.line("void* args_[kNumArgs] = {};");
    }
    if artifact.constants_file.is_some() {
        out.line("const void* constants_ = nullptr;");
    }
    out.line("::tfcompile_parallel_for parallel_for_ = nullptr;");
    out.line("void* context_ = nullptr;");
    out.line("::std::int64_t max_workers_ = 0;");
    if artifact.memory.scratch > 0 {
        out.line("void* scratch_ = nullptr;");
    }
    out.line("const char* error_ = nullptr;");
    sizes::freestanding_members(out, names);
    if artifact.interface.size_count() > 0 {
        out.line(&format!("::std::int64_t dynamic_sizes_[{}] = {{}};", artifact.interface.size_count()));
    }
}
