//! The files of a model.

use crate::Error;
use std::path::{Path, PathBuf};

/// Returns the name of a model: the name of its file, converted to an identifier.
pub(crate) fn name_of(path: &Path) -> Result<String, Error> {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = stem.split('.').next().unwrap_or_default();
    let name: String = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        Ok(name)
    } else {
        Err(Error(format!(
            "cannot derive a name for the model from '{}': set one with Model::name",
            path.display()
        )))
    }
}

/// Returns the files of a checkpoint: the file itself, or the index and data files with this
/// prefix. If there are none, returns the prefix, so that the tool reports what is missing.
pub(crate) fn checkpoint_files(prefix: &Path) -> Vec<PathBuf> {
    if prefix.exists() {
        return vec![prefix.to_owned()];
    }
    let directory = match prefix.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let begin = prefix.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut files: Vec<PathBuf> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            name.strip_prefix(&begin)
                .is_some_and(|rest| rest.starts_with(".index") || rest.starts_with(".data-"))
        })
        .collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_name_models() {
        assert_eq!(name_of(Path::new("a/scorer.pbtxt")), Ok("scorer".to_owned()));
        assert_eq!(name_of(Path::new("my-model")), Ok("my_model".to_owned()));
        assert!(name_of(Path::new("224.pb")).is_err());
    }

    #[test]
    fn a_checkpoint_is_its_index_and_its_data() {
        let directory = std::env::temp_dir().join(format!("tfcompile-build-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        for name in ["w.index", "w.data-00000-of-00001", "w2.index", "w.txt"] {
            std::fs::write(directory.join(name), "").expect("writable");
        }
        let files = checkpoint_files(&directory.join("w"));
        let names: Vec<_> = files.iter().map(|f| f.file_name().expect("a name").to_owned()).collect();
        assert_eq!(names, ["w.data-00000-of-00001", "w.index"]);
        std::fs::remove_dir_all(&directory).expect("it is ours");
    }
}
