//! Parts of the C header of a program that runs on a GPU.

use super::{Access, Buffer, Source};
use crate::header::Text;
use crate::{Artifact, DeviceTarget};
use std::collections::BTreeSet;

/// Upper bound of the size of the state's members for a device on any machine.
pub(super) fn state_bytes(artifact: &Artifact) -> u64 {
    // The size of struct tfcompile_device_state, with room for its growth.
    const STATE: u64 = 2048;
    let addresses = artifact.interface.arguments().len() + artifact.interface.results().len() + 1;
    if artifact.device.is_some() { STATE + 16 * addresses as u64 } else { 0 }
}

/// States what the program needs besides the object.
pub(super) fn about(artifact: &Artifact) -> String {
    match &artifact.device {
        None => "Nothing else is needed.".to_owned(),
        Some(DeviceTarget { architectures, .. }) if architectures.is_empty() => {
            "The graph runs on a GPU with OpenCL, whose driver is opened at run time.".to_owned()
        }
        Some(DeviceTarget { architectures, .. }) => format!(
            "The graph runs on a GPU of NVIDIA's ({}), whose driver is opened at run time.",
            architectures.join(", ")
        ),
    }
}

/// States who frees memory.
pub(super) fn about_memory(source: &Source<'_>) -> String {
    match source.artifact.device {
        None => "Nothing allocates memory.".to_owned(),
        Some(_) => format!(
            "The first run opens the device and loads the program; {}_close releases both.",
            source.prefix
        ),
    }
}

/// Number of arguments and results.
fn counts(source: &Source<'_>) -> (usize, usize) {
    (source.artifact.interface.arguments().len(), source.artifact.interface.results().len())
}

/// Writes the members of the state.
pub(super) fn members(out: &mut Text, source: &Source<'_>) {
    if source.artifact.device.is_none() {
        return;
    }
    let (arguments, results) = counts(source);
    let count = (arguments + results).max(1);
    out.line("  struct tfcompile_device_state device;");
    out.line(&format!("  tfcompile_device_address chosen[{count}];  // Of the caller; 0 if none."));
    out.line(&format!("  tfcompile_device_address bound[{count}];"));
}

/// Writes a check that the state has the size that its block has room for.
pub(super) fn check_size(out: &mut Text, source: &Source<'_>) {
    if source.artifact.device.is_some() {
        let room = super::state_bytes(&source.artifact.interface) + state_bytes(source.artifact);
        let prefix = source.prefix;
        out.comment("The state must not exceed its part of the block.");
        out.line(&format!("typedef char {prefix}_state_fits[sizeof({prefix}_state) <= {room}u ? 1 : -1];"));
    }
}

/// Writes the statements that initialize the members, which are all zero.
pub(super) fn initialize(out: &mut Text, source: &Source<'_>) {
    if let Some(device) = &source.artifact.device {
        out.line(&format!("  state->device.options.kind = {};", device.driver.enumerator()));
    }
}

/// Writes the statements that load the program before a run.
pub(super) fn load(out: &mut Text, source: &Source<'_>) {
    if source.artifact.device.is_some() {
        let entry = &source.artifact.entry_point;
        out.line(&format!(
            "  status = tfcompile_device_state_load(&state->device, &state->frame, {entry}_device);"
        ));
        out.line("  if (status != 0) return status;");
    }
}

/// Returns the expression that frees a state.
pub(super) fn destroy(source: &Source<'_>) -> String {
    let free = "free((state)->memory)";
    match source.artifact.device {
        None => free.to_owned(),
        Some(_) => format!("({}_close(state), {free})", source.prefix),
    }
}

/// Writes the statement that makes the next run load the program with new constants.
pub(super) fn forget_constants(out: &mut Text, source: &Source<'_>) {
    if source.artifact.device.is_some() {
        out.line("  state->device.constants = NULL;");
    }
}

/// Writes the functions for a device.
pub(super) fn functions(out: &mut Text, source: &Source<'_>) {
    if source.artifact.device.is_none() {
        return;
    }
    let (prefix, entry) = (source.prefix, &source.artifact.entry_point);
    let (arguments, results) = counts(source);
    out.paragraph(
        "Selects the device by its number among those of its driver; the default is 0. Call this before the \
         first run. Returns 0 on success.",
    );
    out.line(&format!(
        "static inline int32_t {prefix}_set_device({prefix}_state* state, int32_t ordinal) {{"
    ));
    out.line("  return tfcompile_device_state_select(&state->device, &state->frame, ordinal);");
    out.line("}");
    out.blank();
    out.paragraph(&format!(
        "Returns the device, for the functions above that allocate and copy device memory; opens it if \
         necessary. Returns null on failure, and {prefix}_error returns the message."
    ));
    out.line(&format!(
        "static inline struct tfcompile_device* {prefix}_get_device({prefix}_state* state) {{"
    ));
    out.line("  return tfcompile_device_state_open(&state->device, &state->frame) == 0 ? state->device.device : NULL;");
    out.line("}");
    out.blank();
    out.comment("Returns the program on the device, likewise. Replacing the constants replaces it.");
    out.line(&format!(
        "static inline struct tfcompile_device_instance* {prefix}_get_device_instance({prefix}_state* state) {{"
    ));
    out.line(&format!(
        "  return tfcompile_device_state_load(&state->device, &state->frame, {entry}_device) == 0 ? state->frame.device : NULL;"
    ));
    out.line("}");
    out.blank();
    out.paragraph("Closes the device and frees its memory. The next run opens it again.");
    out.line(&format!("static inline void {prefix}_close({prefix}_state* state) {{"));
    out.line("  tfcompile_device_state_close(&state->device, &state->frame);");
    out.line("}");
    out.blank();
    out.paragraph(
        "Starts a computation on device memory and returns. `stream` is a CUstream or cl_command_queue of the \
         device; null selects the state's own. Returns 0 on success.",
    );
    out.line(&format!("static inline int32_t {prefix}_run_async({prefix}_state* state, void* stream) {{"));
    out.line("  int32_t status;");
    out.line("  state->frame.error = NULL;");
    super::functions::check_constants(out, source, "run_async");
    load(out, source);
    out.line(
        "  return tfcompile_device_state_enqueue(&state->device, &state->frame, state->bound, state->chosen,",
    );
    out.line(&format!("                                        {arguments}u, {results}u, stream);"));
    out.line("}");
    out.blank();
    out.paragraph(
        "Waits for the last asynchronous run. Returns 0 if it and all assertions of the graph succeeded.",
    );
    out.line(&format!("static inline int32_t {prefix}_synchronize({prefix}_state* state) {{"));
    out.line("  return tfcompile_device_state_finish(&state->device, &state->frame);");
    out.line("}");
    out.blank();
    accessors(out, source, arguments);
}

fn accessors(out: &mut Text, source: &Source<'_>, arguments: usize) {
    if source.arguments.is_empty() && source.results.is_empty() {
        return;
    }
    out.paragraph(&format!(
        "Device memory of asynchronous runs: the caller's, which must be aligned to 16 bytes, or by default \
         the state's own. The functions that return it return null on failure, and {}_error returns the \
         message. The new value of a variable is in the variable's memory.",
        source.prefix
    ));
    let all = source.arguments.iter().chain(&source.results);
    let taken: BTreeSet<&str> = all.clone().map(|buffer| buffer.stem.as_str()).collect();
    for buffer in all {
        // A buffer x_device_data has functions with the same names.
        if !taken.contains(format!("{}_device_data", buffer.stem).as_str()) {
            accessor(out, source, buffer, arguments);
        }
    }
    out.blank();
}

fn accessor(out: &mut Text, source: &Source<'_>, buffer: &Buffer<'_>, arguments: usize) {
    let (prefix, entry, stem, index) =
        (source.prefix, &source.artifact.entry_point, &buffer.stem, buffer.index);
    let is_result = buffer.access == Access::Result;
    let (pointer, constant) = (buffer.pointer(false), buffer.pointer(true));
    let place = if is_result { arguments + index } else { index };
    out.line(&format!("static inline {pointer} {prefix}_{stem}_device_data({prefix}_state* state) {{"));
    out.line(&format!(
        "  if (tfcompile_device_state_load(&state->device, &state->frame, {entry}_device) != 0) return NULL;"
    ));
    out.line(&format!("  return ({pointer})(uintptr_t)tfcompile_device_state_address("));
    out.line(&format!(
        "      &state->device, &state->frame, state->chosen[{place}], {}, {index}u);",
        i32::from(is_result)
    ));
    out.line("}");
    out.line(&format!(
        "static inline void {prefix}_set_{stem}_device_data({prefix}_state* state, {constant} data) {{"
    ));
    out.line(&format!("  state->chosen[{place}] = (tfcompile_device_address)(uintptr_t)data;"));
    out.line("}");
}
