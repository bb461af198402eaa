//! Description of the variables of a class: the table of `Variables()`, for `tfcompile/state.h`.

use super::lookup_name;
use super::text::{Text, quoted};
use crate::Artifact;
use shape::PrimitiveType;

/// Runtime header that defines the type of the table's rows.
pub(super) const HEADER: &str = "tfcompile/variable.h";

/// Writes the public method if the program has variables.
pub(super) fn method(out: &mut Text, artifact: &Artifact) {
    if artifact.interface.variables().is_empty() {
        return;
    }
    out.paragraph(
        "Returns the names, types, and shapes of the kNumVariables variables, for SaveVariables and \
         LoadVariables of \"tfcompile/state.h\".",
    );
    out.line("static const ::tfcompile::VariableInfo* Variables() {");
    let mut dims = Vec::new();
    let mut rows = Vec::new();
    let first = artifact.interface.feeds().len();
    for (k, variable) in artifact.interface.variables().iter().enumerate() {
        let sizes = variable.shape.sizes();
        let place = if sizes.is_empty() { "nullptr".to_owned() } else { format!("kDims + {}", dims.len()) };
        dims.extend(sizes.iter().map(|size| format!("{size}")));
        let readonly = artifact.interface.new_value(first + k).is_none();
        rows.push(format!(
            "{{{}, {}, \"{}\", {place}, {}, {readonly}, {}u, {}u}}",
            quoted(variable.id.node()),
            quoted(lookup_name(variable)),
            numpy_type(variable.shape.element_type),
            sizes.len(),
            variable.shape.byte_size(),
            first + k
        ));
    }
    if !dims.is_empty() {
        out.line(&format!("  static constexpr ::std::int64_t kDims[] = {{{}}};", dims.join(", ")));
    }
    out.line("  static constexpr ::tfcompile::VariableInfo kVariableInfos[] = {");
    rows.iter().for_each(|row| out.line(&format!("      {row},")));
    out.line("  };");
    out.line("  return kVariableInfos;");
    out.line("}");
    out.blank();
}

/// Returns NumPy's name of the type, or of an integer type with the same bits.
fn numpy_type(element_type: PrimitiveType) -> &'static str {
    use PrimitiveType::*;
    match element_type {
        Pred => "b1",
        S16 => "i2",
        S32 => "i4",
        S64 => "i8",
        U16 | Bf16 => "u2",
        U32 => "u4",
        U64 => "u8",
        F16 => "f2",
        F32 => "f4",
        F64 => "f8",
        C64 => "c8",
        C128 => "c16",
        byte if byte.is_signed_integer() => "i1",
        _ => "u1",
    }
}
