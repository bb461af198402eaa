//! Names that follow from a model: those of the program, its class, and its files.

use aot::SharedLibrary;
use std::path::Path;
use support::Result;

/// Names of the files of a program for its target.
pub(crate) struct FileNames {
    pub(crate) program: String,
    pub(crate) coff: bool,
    pub(crate) object: String,
    pub(crate) archive: String,
    pub(crate) shared: String,
    pub(crate) metadata: String,
}

impl FileNames {
    /// The names of a library's program.
    pub(crate) fn new(library: &SharedLibrary<'_>) -> Result<Self> {
        let name = library.name;
        let shared = library.file_name()?;
        let coff = shared.ends_with(".dll");
        let suffix = if coff { "obj" } else { "o" };
        Ok(Self {
            program: name.to_owned(),
            coff,
            object: format!("{name}.{suffix}"),
            archive: if coff { format!("{name}.lib") } else { format!("lib{name}.a") },
            shared,
            metadata: format!("{name}.metadata.{suffix}"),
        })
    }
}

/// The name of a model: that of its file, or of its directory where the file's name says nothing.
pub(crate) fn name_of(model: &Path) -> String {
    let model = std::path::absolute(model).unwrap_or_default();
    let stem = |path: &Path| path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    let own = stem(&model);
    let says_nothing = ["graph", "model", "saved_model", "frozen_graph", "frozen_model", "frozen"];
    // A number is the version of a model, which its directory names.
    let says_nothing = says_nothing.contains(&own.as_str()) || own.chars().all(|c| c.is_ascii_digit());
    let chosen = match model.parent() {
        Some(parent) if says_nothing && parent.file_name().is_some() => stem(parent),
        _ => own,
    };
    identifier(&chosen)
}

/// The class of a program that names none.
pub(crate) fn class_of(name: &str) -> String {
    match camel_case(name) {
        same if same == name => format!("{same}Model"),
        class => class,
    }
}

/// A name with all that an identifier cannot have replaced.
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

/// `mobilenet_v2_224` as `MobilenetV2_224`: numbers stay apart.
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
    match out.starts_with(|c: char| c.is_ascii_alphabetic()) {
        true => out,
        false => format!("Model{out}"),
    }
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
