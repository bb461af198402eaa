//! Parts of a class whose program runs on a GPU.

use super::CppNames;
use super::text::Text;
use crate::Artifact;
use crate::cpp_type::cpp_type;
use shape::ArrayShape;
use std::collections::BTreeSet;
use support::Error;

/// The error of programs that need no library.
pub(crate) fn not_freestanding() -> Error {
    Error::unsupported(
        "--freestanding cannot be combined with a GPU as the target: such a program calls the GPU's driver, a library",
    )
}

/// Returns the first argument of the base class's constructor; empty for processors.
pub(super) fn program(artifact: &Artifact) -> String {
    let entry = &artifact.entry_point;
    artifact
        .device
        .as_ref()
        .map_or(String::new(), |device| format!("{{::{entry}_device, {}}}, ", device.driver.enumerator()))
}

/// Describes the device in the comment of the class.
pub(super) fn comment(out: &mut Text, artifact: &Artifact) {
    let Some(device) = &artifact.device else { return };
    let code = match device.architectures.as_slice() {
        [] => "SPIR-V, for OpenCL devices".to_owned(),
        architectures if architectures.iter().all(|name| name.ends_with('a')) => architectures.join(", "),
        architectures => format!("{}, and later GPUs of NVIDIA's", architectures.join(", ")),
    };
    out.paragraph(&format!(
        "The graph runs on a GPU: {code}. Run copies arguments there and results back. For data that stays \
         on the device see set_device, RunAsync, and the other methods of the base class in \
         tfcompile/device_function.h."
    ));
    out.comment("");
}

/// Writes the typed accessors of device memory.
pub(super) fn accessors(out: &mut Text, artifact: &Artifact, names: &CppNames) {
    if artifact.device.is_none() {
        return;
    }
    for line in [
        "Device memory of RunAsync, by position and by name. For argument N with elements of type T:",
        "",
        "  void set_argN_device_data(const T* data)  sets the caller's device memory.",
        "  T* argN_device_data()                     returns the device memory, or null on failure.",
        "",
        "Results and variables have the same methods.",
    ] {
        out.comment(line);
    }
    out.blank();
    let taken = host_accessors(names);
    let mut write = |kind: &str, index: usize, shape: &ArrayShape, name: &str| {
        let clashes = ["_data", "_size", "_count", ""];
        let of_device = format!("{name}_device");
        if !clashes.iter().any(|end| taken.contains(&format!("{of_device}{end}"))) {
            method(out, kind, index, shape, name);
        }
    };
    let feeds = artifact.interface.feeds().iter().zip(&names.feeds).enumerate();
    for (index, (feed, name)) in feeds {
        write("arg", index, &feed.shape, &format!("arg{index}"));
        if let Some(name) = name {
            write("arg", index, &feed.shape, &format!("arg_{name}"));
        }
    }
    let fetches = artifact.interface.fetches().iter().zip(&names.fetches).enumerate();
    for (index, (fetch, name)) in fetches {
        write("result", index, &fetch.shape, &format!("result{index}"));
        if let Some(name) = name {
            write("result", index, &fetch.shape, &format!("result_{name}"));
        }
    }
    let variables = artifact.interface.variables().iter().zip(&names.variables).enumerate();
    for (position, (variable, name)) in variables {
        if let Some(name) = name {
            let index = artifact.interface.feed_count() + position;
            write("arg", index, &variable.shape, &format!("var_{name}"));
        }
    }
    out.blank();
}

/// Returns the names of the element accessors. A feed `x_device` has an accessor
/// `arg_x_device_data`, which excludes the one for the device memory of a feed `x`.
fn host_accessors(names: &CppNames) -> BTreeSet<String> {
    let group = |prefix: &'static str, names: &[Option<String>]| {
        names.iter().flatten().map(|name| format!("{prefix}_{name}")).collect::<Vec<_>>()
    };
    [group("arg", &names.feeds), group("result", &names.fetches), group("var", &names.variables)]
        .into_iter()
        .flatten()
        .collect()
}

fn method(out: &mut Text, kind: &str, index: usize, shape: &ArrayShape, name: &str) {
    let element = cpp_type(shape.element_type);
    // A feed `device` has an accessor that hides the base class's.
    let base = "DeviceFunction::";
    out.line(&format!(
        "void set_{name}_device_data(const {element}* data) {{ {base}set_{kind}_device_data({index}, data); }}"
    ));
    out.line(&format!(
        "{element}* {name}_device_data() {{ return static_cast<{element}*>({base}{kind}_device_data({index})); }}"
    ));
}
