//! Macros, members, and functions for the sizes of named dimensions.

use super::Source;
use crate::header::{Text, quoted};

/// Writes the macros for the ranges.
pub(super) fn limits(out: &mut Text, source: &Source<'_>) {
    if source.sizes.is_empty() {
        return;
    }
    out.paragraph(
        "Smallest and largest sizes of named dimensions. The macros above are those of the largest sizes.",
    );
    for size in &source.sizes {
        for (end, value) in [("MIN", size.range.low), ("MAX", size.range.high)] {
            out.line(&format!("#define {}_{}_{end} {value}", source.capitals, size.name));
        }
    }
    out.blank();
}

/// Returns the members of the struct of arguments.
pub(super) fn arguments(source: &Source<'_>) -> Vec<String> {
    source.sizes.iter().map(|size| format!("  int64_t {};  // {}", size.name, size.range)).collect()
}

/// Writes the member of the state.
pub(super) fn members(out: &mut Text, source: &Source<'_>) {
    if source.sizes.is_empty() {
        return;
    }
    let count = source.sizes.len();
    out.line(&format!("  struct {{ int32_t value; int32_t is_out_of_range; }} sizes[{count}];"));
}

/// Writes the statements that set the largest sizes.
pub(super) fn initialize(out: &mut Text, source: &Source<'_>) {
    for (index, size) in source.sizes.iter().enumerate() {
        out.line(&format!("  state->sizes[{index}].value = {};", size.range.high));
    }
}

/// Writes the functions that return and set the sizes.
pub(super) fn functions(out: &mut Text, source: &Source<'_>) {
    let prefix = source.prefix;
    for (index, size) in source.sizes.iter().enumerate() {
        let (name, limits) = (&size.name, format!("{}_{}", source.capitals, size.name));
        out.paragraph(&format!(
            "Returns the size of dimension {name}, at first {limits}_MAX. Buffers have room for that, and \
             elements have the same places for all sizes. Runs do not use the contents of arguments beyond \
             the size, and leave results undefined there."
        ));
        out.line(&format!("static inline int64_t {prefix}_{name}(const {prefix}_state* state) {{"));
        out.line(&format!("  return state->sizes[{index}].value;"));
        out.line("}");
        out.blank();
        out.paragraph(
            "Sets the size of the following runs. Returns 0 on success. If the size is out of range, returns \
             nonzero and leaves the size unchanged, and runs fail until a valid size is set.",
        );
        out.line(&format!(
            "static inline int32_t {prefix}_set_{name}({prefix}_state* state, int64_t size) {{"
        ));
        out.line(&format!(
            "  state->sizes[{index}].is_out_of_range = size < {limits}_MIN || size > {limits}_MAX;"
        ));
        out.line(&format!("  if (state->sizes[{index}].is_out_of_range) return 1;"));
        out.line(&format!("  state->sizes[{index}].value = (int32_t)size;"));
        out.line("  return 0;");
        out.line("}");
        out.blank();
    }
}

/// Writes the statements that end a run if a size is out of range.
pub(super) fn check(out: &mut Text, source: &Source<'_>) {
    for (index, size) in source.sizes.iter().enumerate() {
        out.line(&format!("  if (state->sizes[{index}].is_out_of_range) {{"));
        out.line(&format!("    state->frame.error = {};", quoted(&size.out_of_range())));
        out.line("    return 1;");
        out.line("  }");
    }
}
