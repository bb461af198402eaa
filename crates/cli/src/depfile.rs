//! `build --depfile`: a rule for Make and Ninja that says which files a build has read.

use crate::model::ModelArgs;
use crate::outputs::Output;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use support::{Error, Result};

/// The most files of one model; what is beyond them is no model.
const MAX_FILES: usize = 100_000;

/// The rule: what was written depends on what was read. An error for a name that no rule can hold.
pub(crate) fn rule(outputs: &[Output<'_>], inputs: &BTreeSet<PathBuf>) -> Result<String> {
    let targets = outputs.iter().map(|output| escaped(&output.path)).collect::<Result<Vec<_>>>()?;
    let inputs = inputs.iter().map(|path| escaped(path)).collect::<Result<Vec<_>>>()?;
    Ok(format!("{}: \\\n  {}\n", targets.join(" "), inputs.join(" \\\n  ")))
}

/// The files that a model is read from, and others that the flags name. Of a checkpoint and of a SavedModel these are all
/// that lie where its parts lie, whether or not a part is needed.
pub(crate) fn inputs(model: &ModelArgs, others: &[&Path]) -> Result<BTreeSet<PathBuf>> {
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
    found.extend(others.iter().map(|path| path.to_path_buf()));
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
        let path = match directory == Path::new(".") {
            true => PathBuf::from(entry.file_name()),
            false => entry.path(),
        };
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

/// A path as both tools read it.
fn escaped(path: &Path) -> Result<String> {
    let text = path.to_str().filter(|text| !text.contains(['\n', '\r']));
    let text = text.ok_or_else(|| {
        Error::invalid(format!("--depfile: no rule can hold the name {path:?}: use letters and digits"))
    })?;
    let mut out = String::new();
    for c in text.chars() {
        match c {
            ' ' | '#' => out.extend(['\\', c]),
            '$' => out.push_str("$$"),
            _ => out.push(c),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    #[test]
    fn names_are_written_as_make_reads_them() {
        let output = Output { path: "out dir/a$b.o".into(), parts: vec![Cow::Borrowed(b"")] };
        let inputs = BTreeSet::from(["b#1.pb".into(), "a.pbtxt".into()]);
        let rule = rule(&[output], &inputs).expect("a rule");
        assert_eq!(rule, "out\\ dir/a$$b.o: \\\n  a.pbtxt \\\n  b\\#1.pb\n");
        let broken = BTreeSet::from(["a\nb".into()]);
        assert!(super::rule(&[], &broken).is_err());
    }

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
