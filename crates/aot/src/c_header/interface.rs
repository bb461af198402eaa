//! Macros for sizes and shapes, structs for pointers.

use super::{Buffer, Source, sizes};
use crate::cpp_type::c_remark;
use crate::header::{Text, layout_table, literal};

/// Writes the macros for counts, sizes, and shapes.
pub(super) fn constants(out: &mut Text, source: &Source<'_>) {
    let artifact = source.artifact;
    let memory = artifact.host_memory();
    let counts: [(&str, u64, &str); 9] = [
        ("NUM_ARGS", artifact.interface.arguments().len() as u64, "Feeds and variables."),
        ("NUM_RESULTS", artifact.interface.results().len() as u64, "Fetches and written variables."),
        ("NUM_VARIABLES", artifact.interface.variables().len() as u64, ""),
        ("NUM_PROFILE_COUNTERS", artifact.profile_counters.len() as u64, ""),
        ("ARENA_BYTES", source.arena_bytes(), "Size of one state with its buffers, for any alignment."),
        ("TEMPS_BYTES", memory.temps, "Part of it that a run needs besides arguments and results."),
        ("SCRATCH_BYTES", memory.scratch, "Scratch memory per worker, if there are several workers."),
        ("STACK_BYTES", memory.stack, "Bound of a run's stack; in C source, of its arrays."),
        ("CONSTANTS_BYTES", memory.constants, "Size of the constants, in the object or in a file."),
    ];
    for (name, number, comment) in counts {
        let line = format!("#define {}_{name} {}", source.capitals, literal(number));
        out.line(&if comment.is_empty() { line } else { format!("{line}  // {comment}") });
    }
    out.blank();
    out.paragraph(
        "Per buffer: index, rank, dimensions (an array initializer), number of elements, and size in bytes.",
    );
    if source.arguments.iter().chain(&source.results).any(|buffer| buffer.quantized.is_some()) {
        out.comment("Quantized arrays of integers stand for real numbers: SCALE * (stored - ZERO_POINT).");
    }
    source.arguments.iter().chain(&source.results).for_each(|buffer| shape(out, &source.capitals, buffer));
    out.blank();
    sizes::limits(out, source);
    if artifact.constants_file.is_some() {
        layout_table(out, artifact, &format!("static const unsigned char {}_layout_hash[]", source.prefix));
        out.blank();
    }
}

fn shape(out: &mut Text, capitals: &str, buffer: &Buffer<'_>) {
    let (stem, shape) = (&buffer.stem, buffer.shape);
    let mut define =
        |name: &str, value: String| out.line(&format!("#define {capitals}_{stem}_{name} {value}"));
    define("INDEX", literal(buffer.index as u64));
    define("RANK", literal(shape.rank() as u64));
    // C has no empty initializers.
    if shape.rank() > 0 {
        let sizes: Vec<String> = shape.sizes().iter().map(|&size| literal(size as u64)).collect();
        define("DIMS", format!("{{ {} }}", sizes.join(", ")));
    }
    define("COUNT", literal(shape.element_count() as u64));
    define("BYTES", literal(shape.byte_size()));
    if let Some(quantized) = &buffer.quantized {
        define("SCALE", format!("{}f", quantized.scale()));
        define("ZERO_POINT", format!("({})", quantized.zero_point));
    }
}

/// Writes the types: pointers to arguments, pointers to results, and the state.
pub(super) fn types(out: &mut Text, source: &Source<'_>) {
    let prefix = source.prefix;
    let pointers = |out: &mut Text, name: &str, comment: &str, buffers: &[Buffer<'_>], sizes: &[String]| {
        // C has no empty structs.
        if buffers.is_empty() && sizes.is_empty() {
            return;
        }
        out.comment(comment);
        out.line(&format!("typedef struct {prefix}_{name} {{"));
        for buffer in buffers {
            let remark = c_remark(buffer.shape.element_type);
            let remark = remark.map_or(String::new(), |remark| format!(" {remark}"));
            let (pointer, stem, shape) = (buffer.callers_pointer(), &buffer.stem, buffer.shape);
            out.line(&format!("  {pointer} {stem};  // {shape}{remark}"));
        }
        sizes.iter().for_each(|size| out.line(size));
        out.line(&format!("}} {prefix}_{name};"));
        out.blank();
    };
    pointers(
        out,
        "args",
        "The caller's memory for arguments and variables. Null selects the state's own memory.",
        &source.arguments,
        &sizes::arguments(source),
    );
    pointers(out, "results", "Addresses of the results after a run.", &source.results, &[]);
    out.comment("One computation with its memory. Access it only through the functions below.");
    out.line(&format!("typedef struct {prefix}_state {{"));
    out.line("  struct tfcompile_frame frame;");
    out.line(&format!("  void* args[{}];", source.artifact.interface.arguments().len().max(1)));
    out.line(&format!("  void* results[{}];", source.artifact.interface.results().len().max(1)));
    if source.artifact.interface.size_count() > 0 {
        out.line(&format!("  int64_t dynamic_sizes[{}];", source.artifact.interface.size_count()));
    }
    sizes::members(out, source);
    out.line(&format!("  void* memory;  // The argument of {prefix}_init."));
    super::device::members(out, source);
    out.line(&format!("}} {prefix}_state;"));
    super::device::check_size(out, source);
    out.blank();
}
