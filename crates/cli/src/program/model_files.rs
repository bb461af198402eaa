//! The files that a model is read from.

use crate::args::model::ModelArgs;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use support::{Error, Result};

/// The most files of one model; what is beyond them is no model.
const MAX_FILES: usize = 100_000;

/// The files that a model is read from, and the file of its tuning. Of a checkpoint and of a SavedModel these are all
/// that lie where its parts lie, whether or not a part is needed.
pub(crate) fn inputs(model: &ModelArgs, tuning: Option<&Path>) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let path = model.model.as_path();
    if path.is_dir() {
        saved_model(path, &mut found)?;
    } else {
        found.insert(path.to_owned());
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("saved_model.") {
            saved_model(directory_of(path), &mut found)?;
        } else if let Some(stem) = name.strip_suffix(".meta") {
            beginning_with(directory_of(path), stem, &mut found)?;
        }
    }
    if let Some(checkpoint) = &model.choice.checkpoint {
        let name = checkpoint.file_name().unwrap_or_default().to_string_lossy();
        let prefix = name.split(['*', '?']).next().unwrap_or_default();
        beginning_with(directory_of(checkpoint), prefix, &mut found)?;
    }
    found.extend(model.config.iter().cloned());
    found.extend(tuning.map(Path::to_path_buf));
    Ok(found)
}

/// The files of a SavedModel: itself, its variables and its assets.
fn saved_model(directory: &Path, found: &mut BTreeSet<PathBuf>) -> Result<()> {
    beginning_with(directory, "saved_model.", found)?;
    for part in ["variables", "assets"] {
        let part = directory.join(part);
        if part.is_dir() {
            beginning_with(&part, "", found)?;
        }
    }
    Ok(())
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The files in a directory whose names begin so.
fn beginning_with(directory: &Path, prefix: &str, found: &mut BTreeSet<PathBuf>) -> Result<()> {
    let cannot = |e: std::io::Error| {
        Error::invalid(format!("--depfile: cannot list the directory '{}': {e}", directory.display()))
    };
    for entry in fs::read_dir(directory).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        let path = if directory == Path::new(".") { PathBuf::from(entry.file_name()) } else { entry.path() };
        if entry.file_name().to_string_lossy().starts_with(prefix) && path.is_file() {
            found.insert(path);
        }
        if found.len() > MAX_FILES {
            return Err(Error::invalid(format!(
                "--depfile: more than {MAX_FILES} files belong to the model in '{}': leave the flag out",
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
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, "").expect("written");
        }
        let mut found = BTreeSet::new();
        saved_model(directory.path(), &mut found).expect("listed");
        let names: Vec<_> = found.iter().map(|p| p.strip_prefix(directory.path()).expect("below")).collect();
        let expected = ["assets/words.txt", "saved_model.pb", "variables/variables.index"];
        assert_eq!(names, expected.map(Path::new));
    }
}
