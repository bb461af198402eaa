//! Functions of the C header, all of them `static inline`.

use super::{Access, Buffer, Source, constants, sizes};
use crate::cpp_type::c_type;
use crate::header::{ALIGNMENT, Constants, Text, literal};
use crate::sizes::TrueSizes;

pub(super) fn functions(out: &mut Text, source: &Source<'_>) {
    set_up(out, source);
    sizes::functions(out, source);
    source.arguments.iter().for_each(|buffer| argument(out, source, buffer));
    source.results.iter().for_each(|buffer| result(out, source, buffer));
    if source.artifact.constants_file.is_some() {
        constants::set(out, source);
    }
    set_parallel_for(out, source);
    run(out, source);
    call(out, source);
}

/// Writes the functions that return the size of a state and initialize one.
fn set_up(out: &mut Text, source: &Source<'_>) {
    let (prefix, capitals, arena) = (source.prefix, &source.capitals, &source.arena);
    out.comment("Returns the size of a state in bytes.");
    out.line(&format!(
        "static inline size_t {prefix}_size(void) {{ return (size_t){capitals}_ARENA_BYTES; }}"
    ));
    out.blank();
    out.paragraph(&format!(
        "Initializes a state in {capitals}_ARENA_BYTES bytes of memory, which must outlive the state. \
         Arguments and variables are zeros in the state's own memory. Returns null if memory is null."
    ));
    out.line(&format!("static inline {prefix}_state* {prefix}_init(void* memory) {{"));
    out.line("  unsigned char* start = (unsigned char*)memory;");
    out.line("#if __STDC_HOSTED__");
    out.line("  unsigned char* zeroed;");
    out.line("#else");
    out.line("  // Prevents a call to memset, which a freestanding program may not have.");
    out.line("  volatile unsigned char* zeroed;");
    out.line("#endif");
    out.line("  size_t i;");
    out.line(&format!("  {prefix}_state* state;"));
    out.line("  if (memory == NULL) return NULL;");
    out.line(&format!(
        "  start += ({ALIGNMENT}u - (size_t)((uintptr_t)memory % {ALIGNMENT}u)) % {ALIGNMENT}u;"
    ));
    out.line("  zeroed = start;");
    out.line(&format!("  for (i = 0; i < (size_t){}; ++i) zeroed[i] = 0;", literal(arena.zeroed)));
    out.line(&format!("  state = ({prefix}_state*)(void*)start;"));
    out.line("  state->memory = memory;");
    out.line("  state->frame.size = sizeof(struct tfcompile_frame);");
    out.line("  state->frame.version = TFCOMPILE_FRAME_VERSION;");
    out.line("  state->frame.args = state->args;");
    out.line("  state->frame.results = state->results;");
    let entry = &source.artifact.entry_point;
    match Constants::of(source.artifact) {
        Constants::Near => out.line(&format!("  state->frame.constants = {entry}_constants;")),
        Constants::Far => out.line(&format!("  state->frame.constants = {entry}_constants_pointer;")),
        Constants::File => {}
    }
    out.line("  state->frame.max_workers = 1;");
    if source.artifact.interface.size_count() > 0 {
        out.line("  state->frame.dynamic_sizes = state->dynamic_sizes;");
    }
    let at = |offset: u64| format!("start + (size_t){}", literal(offset));
    out.line(&format!("  state->frame.temps = {};", at(arena.temps)));
    if source.artifact.host_memory().scratch > 0 {
        out.line(&format!("  state->frame.scratch = {};", at(arena.scratch)));
    }
    if !source.artifact.profile_counters.is_empty() {
        out.line(&format!("  state->frame.profile_counters = (int64_t*)(void*)({});", at(arena.counters)));
    }
    for (index, &offset) in arena.arguments.iter().enumerate() {
        let size = source.sizes.iter().position(|size| size.argument == index);
        let place = size.map_or_else(|| at(offset), |size| format!("&state->sizes[{size}].value"));
        out.line(&format!("  state->args[{index}] = {place};"));
    }
    sizes::initialize(out, source);
    for (index, result) in source.artifact.interface.results().iter().enumerate() {
        match result.alias {
            None => out.line(&format!("  state->results[{index}] = {};", at(arena.results[index]))),
            Some(argument) => {
                out.line(&format!("  state->results[{index}] = state->args[{argument}];"));
            }
        }
    }
    super::device::initialize(out, source);
    out.line("  return state;");
    out.line("}");
    out.blank();
    out.comment("For programs that include <stdlib.h>: allocates a state, or returns null; and frees one.");
    out.line(&format!("#define {capitals}_CREATE() {prefix}_init(malloc({prefix}_size()))"));
    out.line(&format!("#define {capitals}_DESTROY(state) {}", super::device::destroy(source)));
    out.blank();
}

/// Writes the accessor of an argument or variable, and its setter.
fn argument(out: &mut Text, source: &Source<'_>, buffer: &Buffer<'_>) {
    let (prefix, stem, index) = (source.prefix, &buffer.stem, buffer.index);
    let pointer = buffer.pointer(false);
    out.line(&format!(
        "static inline {pointer} {prefix}_{stem}({prefix}_state* state) {{ return ({pointer})state->args[{index}]; }}"
    ));
    out.line(&format!(
        "static inline void {prefix}_set_{stem}({prefix}_state* state, {} data) {{",
        buffer.callers_pointer()
    ));
    let own = format!("(unsigned char*)(void*)state + (size_t){}", literal(source.arena.arguments[index]));
    out.line(&format!("  state->args[{index}] = data != NULL ? (void*)data : (void*)({own});"));
    if buffer.access == Access::Variable {
        let result = source.artifact.interface.new_value(index);
        let result = result.expect("every written variable has a result");
        out.line(&format!("  state->results[{result}] = state->args[{index}];"));
    }
    out.line("}");
    if let Some(true_sizes) = &buffer.true_sizes {
        out.comment("Returns the size of a dimension. The buffer has the size of the upper bound.");
        dim_size(out, source, buffer, true_sizes);
    }
    quantize(out, source, buffer);
    if index >= source.artifact.interface.feed_count() {
        dequantize(out, source, buffer);
    }
    out.blank();
}

/// Writes the function that converts floats to the integers of a quantized buffer.
fn quantize(out: &mut Text, source: &Source<'_>, buffer: &Buffer<'_>) {
    let Some((low, high)) = buffer.quantized.and_then(|quantized| quantized.range) else { return };
    let (prefix, stem, element) = (source.prefix, &buffer.stem, c_type(buffer.shape.element_type));
    let macros = format!("{}_{stem}", source.capitals);
    out.paragraph(
        "Writes all elements, each the integer nearest to a real number. Halves are rounded away from zero. \
         Numbers beyond the type's range become its nearest end, and NaN becomes the zero point.",
    );
    out.line(&format!(
        "static inline void {prefix}_quantize_{stem}({prefix}_state* state, const float* values) {{"
    ));
    out.line(&format!("  {element}* const stored = {prefix}_{stem}(state);"));
    out.line("  int64_t i;");
    out.line(&format!("  for (i = 0; i < {}; ++i) {{", count(source, buffer)));
    out.line(&format!(
        "    stored[i] = ({element})tfcompile_quantize(values[i], {macros}_SCALE, {macros}_ZERO_POINT, {low}, {high});"
    ));
    out.line("  }");
    out.line("}");
}

/// Writes the function that converts the integers of a quantized buffer to floats.
fn dequantize(out: &mut Text, source: &Source<'_>, buffer: &Buffer<'_>) {
    if buffer.quantized.is_none_or(|quantized| quantized.range.is_none()) {
        return;
    }
    let (prefix, stem, element) = (source.prefix, &buffer.stem, c_type(buffer.shape.element_type));
    let (macros, is_result) = (format!("{}_{stem}", source.capitals), buffer.access == Access::Result);
    let constant = if is_result { "const " } else { "" };
    out.comment("Copies all elements as real numbers.");
    out.line(&format!(
        "static inline void {prefix}_dequantize_{stem}({constant}{prefix}_state* state, float* values) {{"
    ));
    out.line(&format!("  const {element}* const stored = {prefix}_{stem}(state);"));
    out.line("  int64_t i;");
    out.line(&format!("  for (i = 0; i < {}; ++i) {{", count(source, buffer)));
    out.line(&format!(
        "    values[i] = tfcompile_dequantize(stored[i], {macros}_SCALE, {macros}_ZERO_POINT);"
    ));
    out.line("  }");
    out.line("}");
}

fn result(out: &mut Text, source: &Source<'_>, buffer: &Buffer<'_>) {
    let (prefix, stem, index) = (source.prefix, &buffer.stem, buffer.index);
    let pointer = buffer.pointer(true);
    out.line(&format!(
        "static inline {pointer} {prefix}_{stem}(const {prefix}_state* state) {{ return ({pointer})state->results[{index}]; }}"
    ));
    if let Some(true_sizes) = &buffer.true_sizes {
        out.paragraph(
            "Returns the actual size of a dimension after the last run. The buffer has the size of the \
             upper bound.",
        );
        dim_size(out, source, buffer, true_sizes);
    }
    dequantize(out, source, buffer);
    out.blank();
}

/// Writes the function that returns the size of a dimension.
fn dim_size(out: &mut Text, source: &Source<'_>, buffer: &Buffer<'_>, true_sizes: &TrueSizes) {
    let (prefix, stem) = (source.prefix, &buffer.stem);
    out.line(&format!(
        "static inline int64_t {prefix}_{stem}_dim_size(const {prefix}_state* state, size_t dim) {{"
    ));
    for (d, size) in true_sizes.dimensions.iter().enumerate() {
        out.line(&format!("  if (dim == {d}u) return {size};"));
    }
    out.line("  (void)state;");
    out.line("  return 0;");
    out.line("}");
}

/// Returns the number of elements that conversions visit. In programs without named dimensions,
/// this is the upper bound.
fn count(source: &Source<'_>, buffer: &Buffer<'_>) -> String {
    match &buffer.true_sizes {
        Some(sizes) if !source.sizes.is_empty() => sizes.extent(1),
        _ => format!("(int64_t){}_{}_COUNT", source.capitals, buffer.stem),
    }
}

fn set_parallel_for(out: &mut Text, source: &Source<'_>) {
    let (prefix, capitals, scratch) =
        (source.prefix, &source.capitals, source.artifact.host_memory().scratch);
    out.paragraph(&format!(
        "Sets the function that distributes the work of runs (see tfcompile_parallel_for above). Null \
         selects the calling thread. `scratch` has max_workers times {capitals}_SCRATCH_BYTES bytes, aligned \
         to 64; it may be null if that is 0. Returns 0 on success. Returns nonzero and changes nothing if \
         `scratch` is required but null or misaligned. Results do not depend on these settings."
    ));
    out.line(&format!("static inline int {prefix}_set_parallel_for({prefix}_state* state, tfcompile_parallel_for parallel_for,"));
    out.line("                                       void* context, int64_t max_workers, void* scratch) {");
    let own = format!("(unsigned char*)(void*)state + (size_t){}", literal(source.arena.scratch));
    out.line("  const int serial = parallel_for == NULL || max_workers < 2;");
    if scratch > 0 {
        out.line("  if (!serial && (scratch == NULL || (uintptr_t)scratch % 64u != 0)) return 1;");
        out.line(&format!("  state->frame.scratch = serial ? (void*)({own}) : scratch;"));
    } else {
        out.line("  (void)scratch;");
    }
    out.line("  state->frame.parallel_for = serial ? NULL : parallel_for;");
    out.line("  state->frame.context = serial ? NULL : context;");
    out.line("  state->frame.max_workers = serial ? 1 : max_workers;");
    out.line("  return 0;");
    out.line("}");
    out.blank();
}

fn run(out: &mut Text, source: &Source<'_>) {
    let (prefix, entry) = (source.prefix, &source.artifact.entry_point);
    out.paragraph(&format!(
        "Computes the results. Returns 0 on success; otherwise {prefix}_error returns the message."
    ));
    out.line(&format!("static inline int32_t {prefix}_run({prefix}_state* state) {{"));
    out.line("  int32_t status;");
    out.line("  state->frame.error = NULL;");
    sizes::check(out, source);
    constants::check(out, source, "run");
    super::device::load(out, source);
    out.line(&format!("  status = {entry}(&state->frame);"));
    out.line("  if (status != 0 && state->frame.error == NULL) state->frame.error = \"the compiled function failed\";");
    out.line("  return status;");
    out.line("}");
    out.blank();
    out.comment("Returns the error message of the last run, or \"\" if it succeeded.");
    out.line(&format!("static inline const char* {prefix}_error(const {prefix}_state* state) {{"));
    out.line("  return state->frame.error != NULL ? state->frame.error : \"\";");
    out.line("}");
    out.blank();
    if !source.artifact.profile_counters.is_empty() {
        out.comment("Returns the profile counters, summed over all runs of the state.");
        out.line(&format!(
            "static inline const int64_t* {prefix}_profile_counters(const {prefix}_state* state) {{"
        ));
        out.line("  return state->frame.profile_counters;");
        out.line("}");
        out.blank();
    }
}

/// Writes the function that takes all arguments and returns all results in one call.
fn call(out: &mut Text, source: &Source<'_>) {
    let prefix = source.prefix;
    let has_args = !source.arguments.is_empty() || !source.sizes.is_empty();
    let has_results = !source.results.is_empty();
    if !has_results && !has_args {
        return;
    }
    out.comment("Runs with these arguments and variables, and stores the addresses of the results.");
    let parameters = match (has_args, has_results) {
        (true, true) => format!("const {prefix}_args* args, {prefix}_results* results"),
        (true, false) => format!("const {prefix}_args* args"),
        _ => format!("{prefix}_results* results"),
    };
    out.line(&format!("static inline int32_t {prefix}_call({prefix}_state* state, {parameters}) {{"));
    for buffer in &source.arguments {
        out.line(&format!("  {prefix}_set_{0}(state, args->{0});", buffer.stem));
    }
    for size in &source.sizes {
        out.line(&format!("  (void){prefix}_set_{0}(state, args->{0});", size.name));
    }
    for buffer in &source.results {
        out.line(&format!("  results->{0} = {prefix}_{0}(state);", buffer.stem));
    }
    out.line(&format!("  return {prefix}_run(state);"));
    out.line("}");
    out.blank();
}
