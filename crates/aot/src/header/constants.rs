//! Parts of a class whose constants are in a file.

use super::text::Text;
use crate::Artifact;

/// Writes the public static methods that set the constants of all objects. Does nothing if the
/// constants are in the object.
pub(super) fn class_methods(out: &mut Text, artifact: &Artifact) {
    if artifact.constants_file.is_none() {
        return;
    }
    out.paragraph(
        "Constants are in a separate file. Set them for all objects of the class with the methods below, \
         or for one object with its LoadConstants(path) or SetConstants(file, size). Set them before the \
         first Run, and between runs to replace them. These methods return false and set *error_msg on \
         failure. The last one shares a file that Constants::Load mapped, and returns false for null.",
    );
    for (name, parameters, arguments, load) in [
        ("LoadDefaultConstants", "const ::std::string& path", "path", "Load"),
        ("SetDefaultConstants", "const void* file, ::std::size_t size", "file, size", "FromMemory"),
    ] {
        out.line(&format!("static bool {name}({parameters}, ::std::string* error_msg = nullptr) {{"));
        out.line("  return SetDefault(DefaultConstants(), kLayoutHash,");
        out.line(&format!(
            "                    ::tfcompile::tfcompile_v1::Constants::{load}({arguments}, error_msg), error_msg);"
        ));
        out.line("}");
    }
    out.line("static bool SetDefaultConstants(::std::shared_ptr<const ::tfcompile::tfcompile_v1::Constants> constants,");
    out.line("                                ::std::string* error_msg = nullptr) {");
    out.line("  return SetDefault(DefaultConstants(), kLayoutHash, ::std::move(constants), error_msg);");
    out.line("}");
    out.blank();
}

/// Writes the private members that these methods use.
pub(super) fn layout_hash(out: &mut Text, artifact: &Artifact) {
    if artifact.constants_file.is_none() {
        return;
    }
    layout_table(out, artifact, "static constexpr unsigned char kLayoutHash[]");
    out.comment("Never destroyed, because objects may run during the program's exit.");
    out.line("static ::tfcompile::tfcompile_v1::DefaultConstants& DefaultConstants() {");
    out.line("  static auto* const defaults = new ::tfcompile::tfcompile_v1::DefaultConstants;");
    out.line("  return *defaults;");
    out.line("}");
    out.blank();
}

/// Writes an array with the layout hash if the constants are in a file.
pub(crate) fn layout_table(out: &mut Text, artifact: &Artifact, declaration: &str) {
    let Some(layout) = artifact.constants_file else { return };
    out.comment("Layout hash, which a constants file must share with the code.");
    out.line(&format!("{declaration} = {{"));
    for row in layout.0.chunks(16) {
        let bytes: Vec<String> = row.iter().map(|byte| format!("0x{byte:02x},")).collect();
        out.line(&format!("    {}", bytes.join(" ")));
    }
    out.line("};");
}
