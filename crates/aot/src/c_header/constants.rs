//! Constants in a file, in the C header.

use super::Source;
use crate::header::Text;

/// Writes the function that sets the constants of a state.
pub(super) fn set(out: &mut Text, source: &Source<'_>) {
    let prefix = source.prefix;
    out.paragraph(
        "Sets the constants of the state to the contents of a constants file. The memory must be aligned to \
         64 bytes and stay unchanged while in use. Call this before the first run, and between runs to \
         replace the constants. Returns null on success. Otherwise returns an error message and changes \
         nothing.",
    );
    out.line(&format!(
        "static inline const char* {prefix}_set_constants({prefix}_state* state, const void* file, size_t size) {{"
    ));
    out.line(&format!(
        "  const char* const error = tfcompile_check_constants(file, size, {prefix}_layout_hash);"
    ));
    out.line("  if (error != NULL) return error;");
    out.line("  if ((uintptr_t)file % 64u != 0) return \"the constants are not aligned to 64 bytes\";");
    out.line("  state->frame.constants = (const unsigned char*)file + TFCOMPILE_CONSTANTS_HEADER_BYTES;");
    if source.artifact.device.is_some() {
        // The next run loads the program with the new constants.
        out.line("  state->device.constants = NULL;");
    }
    out.line("  return NULL;");
    out.line("}");
    out.blank();
}

/// Writes the statements that fail if the program needs a constants file that is not set.
pub(super) fn check(out: &mut Text, source: &Source<'_>, function: &str) {
    if source.artifact.constants_file.is_some() {
        let prefix = source.prefix;
        out.line("  if (state->frame.constants == NULL) {");
        out.line(&format!(
            "    state->frame.error = \"the constants are not loaded: call {prefix}_set_constants before {prefix}_{function}\";"
        ));
        out.line("    return 1;");
        out.line("  }");
    }
}
