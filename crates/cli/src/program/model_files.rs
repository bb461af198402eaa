//! List of the files from which a model is read.

use crate::args::model::ModelArgs;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use support::{Error, Result};

/// Maximum number of files of one model.
const MAX_FILES: usize = 100_000;

/// Returns the files from which a model is read, and its tuning file. For checkpoints and
/// SavedModels, these are all files in their places, needed or not.
pub(crate) fn inputs(model: &ModelArgs, tuning: Option<&Path>) -> Result<BTreeSet<PathBuf>> {
    let mut files = BTreeSet::new();
    let path = model.model.as_path();
    if path.is_dir() {
        saved_model(path, &mut files)?;
    } else {
        files.insert(path.to_owned());
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("saved_model.") {
            saved_model(directory_of(path), &mut files)?;
        } else if let Some(stem) = name.strip_suffix(".meta") {
            beginning_with(directory_of(path), stem, &mut files)?;
        }
    }
    if let Some(checkpoint) = &model.choice.checkpoint {
        let name = checkpoint.file_name().unwrap_or_default().to_string_lossy();
        let prefix = name.split(['*', '?']).next().unwrap_or_default();
        beginning_with(directory_of(checkpoint), prefix, &mut files)?;
    }
    files.extend(model.config.iter().cloned());
    files.extend(tuning.map(Path::to_path_buf));
    Ok(files)
}

/// Adds the files of a SavedModel: the model itself, its variables, and its assets.
fn saved_model(directory: &Path, files: &mut BTreeSet<PathBuf>) -> Result<()> {
    beginning_with(directory, "saved_model.", files)?;
    for part in ["variables", "assets"] {
        let part = directory.join(part);
        if part.is_dir() {
            beginning_with(&part, "", files)?;
        }
    }
    Ok(())
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Adds the files in a directory whose names begin with `prefix`.
fn beginning_with(directory: &Path, prefix: &str, files: &mut BTreeSet<PathBuf>) -> Result<()> {
    let cannot = |e: std::io::Error| {
        Error::invalid(format!("--depfile: cannot list the directory '{}': {e}", directory.display()))
    };
    for entry in fs::read_dir(directory).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        let path = if directory == Path::new(".") { PathBuf::from(entry.file_name()) } else { entry.path() };
        if entry.file_name().to_string_lossy().starts_with(prefix) && path.is_file() {
            files.insert(path);
        }
        if files.len() > MAX_FILES {
            return Err(Error::invalid(format!(
                "--depfile: the model in '{}' has more than {MAX_FILES} files: remove the flag",
                directory.display()
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_model_is_all_of_its_files() {
        let directory = tempfile::tempdir().expect("a directory");
        for name in ["saved_model.pb", "variables/variables.index", "assets/words.txt", "notes.txt"] {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("created");
            fs::write(path, "").expect("written");
        }
        let mut files = BTreeSet::new();
        saved_model(directory.path(), &mut files).expect("listed");
        let names: Vec<_> = files.iter().map(|p| p.strip_prefix(directory.path()).expect("below")).collect();
        let expected = ["assets/words.txt", "saved_model.pb", "variables/variables.index"];
        assert_eq!(names, expected.map(Path::new));
    }
}
