//! Names derived from a model: of the program, its class, and its files.

use crate::artifacts::kind::Kind;
use crate::files::hlo_formats::Format;
use aot::SharedLibrary;
use std::path::Path;
use support::Result;

/// Names of the files of a program for its target.
pub(crate) struct FileNames {
    name: String,
    triple: String,
    shared: String,
}

impl FileNames {
    /// Names of the files of the program `name`. An error for a target without libraries.
    pub(crate) fn new(name: &str, triple: &str) -> Result<Self> {
        let shared = SharedLibrary { triple, entry_point: name, name, has_device: false }.file_name()?;
        Ok(Self { name: name.to_owned(), triple: triple.to_owned(), shared })
    }

    /// Shared library of the program.
    pub(crate) fn library(&self, has_device: bool) -> SharedLibrary<'_> {
        SharedLibrary { triple: &self.triple, entry_point: &self.name, name: &self.name, has_device }
    }

    /// Triple of the target.
    pub(crate) fn triple(&self) -> &str {
        &self.triple
    }

    /// True if object files have Windows's format, COFF.
    pub(crate) fn is_coff(&self) -> bool {
        self.shared.ends_with(".dll")
    }

    /// Name of a file of this kind.
    pub(crate) fn of(&self, kind: Kind) -> String {
        let name = &self.name;
        let object = if self.is_coff() { "obj" } else { "o" };
        match kind {
            Kind::Obj => format!("{name}.{object}"),
            Kind::C => format!("{name}.c"),
            Kind::OpenCl => format!("{name}.cl"),
            Kind::Launches => format!("{name}_opencl.h"),
            Kind::Header => format!("{name}.h"),
            Kind::CHeader => format!("{name}_c.h"),
            Kind::Rust => format!("{name}.rs"),
            Kind::Wasm => format!("{name}.wasm"),
            Kind::JavaScript => format!("{name}.js"),
            Kind::Declarations => format!("{name}.d.ts"),
            Kind::Archive if self.is_coff() => format!("{name}.lib"),
            Kind::Archive => format!("lib{name}.a"),
            Kind::Shared => self.shared.clone(),
            Kind::Test => format!("{name}_test.c"),
            Kind::Benchmark => format!("{name}_benchmark.c"),
            Kind::Metadata => format!("{name}.metadata.{object}"),
            Kind::SessionModule => format!("{name}.{}", Format::Snapshot.suffix()),
            Kind::HloText => format!("{name}.{}", Format::Text.suffix()),
            Kind::HloProto => format!("{name}.{}", Format::Proto.suffix()),
            Kind::Stablehlo => format!("{name}.{}", Format::Stablehlo.suffix()),
            Kind::Dot => format!("{name}.{}", Format::Dot.suffix()),
            Kind::Html => format!("{name}.{}", Format::Html.suffix()),
            Kind::Llvm => format!("{name}.ll"),
            Kind::Asm => format!("{name}.s"),
            Kind::Constants => format!("{name}.constants"),
            Kind::EmptyObject => format!("{name}_constants.{object}"),
        }
    }
}

/// Name of a model: the name of its file, or of its directory if the file's name is generic.
pub(crate) fn name_of(model: &Path) -> String {
    let model = std::path::absolute(model).unwrap_or_default();
    let stem = |path: &Path| path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    let own = stem(&model);
    let generic = ["graph", "model", "saved_model", "frozen_graph", "frozen_model", "frozen"];
    // A number is a version of the model whose name is that of the directory.
    let is_generic = generic.contains(&own.as_str()) || own.chars().all(|c| c.is_ascii_digit());
    let chosen = match model.parent() {
        Some(parent) if is_generic && parent.file_name().is_some() => stem(parent),
        _ => own,
    };
    identifier(&chosen)
}

/// Default class of a program.
pub(crate) fn class_of(name: &str) -> String {
    match camel_case(name) {
        same if same == name => format!("{same}Model"),
        class => class,
    }
}

/// Replaces all characters that identifiers cannot contain.
fn identifier(text: &str) -> String {
    let mut name: String = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if name.is_empty()
        || name.starts_with(|c: char| c.is_ascii_digit())
        || aot::is_keyword(&name)
        || aot::is_taken(&name)
        || name == "main"
    {
        name.insert_str(0, "model_");
    }
    name
}

/// Converts `mobilenet_v2_224` to `MobilenetV2_224`: adjacent numbers stay separated.
fn camel_case(name: &str) -> String {
    let mut out = String::new();
    for word in name.split('_').filter(|word| !word.is_empty()) {
        let digits = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        if digits(out.chars().last()) && digits(word.chars().next()) {
            out.push('_');
        }
        let mut chars = word.chars();
        out.extend(chars.next().map(|c| c.to_ascii_uppercase()));
        out.push_str(chars.as_str());
    }
    if out.starts_with(|c: char| c.is_ascii_alphabetic()) { out } else { format!("Model{out}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_identifiers_and_classes() {
        for (name, class) in
            [("mobilenet_v2_224", "MobilenetV2_224"), ("mlp", "Mlp"), ("_a__b", "AB"), ("_1", "Model1")]
        {
            assert_eq!(camel_case(name), class);
        }
        assert_eq!(identifier("my-model v2"), "my_model_v2");
        assert_eq!(identifier("224"), "model_224");
        assert_eq!(identifier("class"), "model_class");
        assert_eq!(identifier(""), "model_");
        assert_eq!(identifier("select"), "model_select");
    }
}
