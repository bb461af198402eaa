//! The parts of a class whose constants are in a file.

use super::text::Text;
use crate::Artifact;

/// The public static methods that set the constants of all objects. Nothing for constants in the object.
pub(super) fn class_methods(out: &mut Text, artifact: &Artifact) {
    if artifact.constants_file.is_none() {
        return;
    }
    for line in [
        "The constants, which are in a file of their own. They are set for all objects of the class, with the",
        "methods here, or for one object, with its LoadConstants(path) or SetConstants(file, size); before its",
        "first Run, and again between runs to swap them. On false, *error_msg says what went wrong.",
    ] {
        out.comment(line);
    }
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
    out.blank();
}

/// The private members behind them.
pub(super) fn layout_hash(out: &mut Text, artifact: &Artifact) {
    if artifact.constants_file.is_none() {
        return;
    }
    layout_table(out, artifact, "static constexpr unsigned char kLayoutHash[]");
    out.comment("Never destroyed: objects may run while the program ends.");
    out.line("static ::tfcompile::tfcompile_v1::DefaultConstants& DefaultConstants() {");
    out.line("  static auto* const defaults = new ::tfcompile::tfcompile_v1::DefaultConstants;");
    out.line("  return *defaults;");
    out.line("}");
    out.blank();
}

/// An array with the layout hash, if the constants are in a file.
pub(crate) fn layout_table(out: &mut Text, artifact: &Artifact, declaration: &str) {
    let Some(layout) = artifact.constants_file else { return };
    out.comment("What a file of constants has to share with the code.");
    out.line(&format!("{declaration} = {{"));
    for row in layout.0.chunks(16) {
        let bytes: Vec<String> = row.iter().map(|byte| format!("0x{byte:02x},")).collect();
        out.line(&format!("    {}", bytes.join(" ")));
    }
    out.line("};");
}
