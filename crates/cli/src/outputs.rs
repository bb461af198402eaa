//! Writing files: all of them or none.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use support::{Error, Result};
use tempfile::NamedTempFile;

/// Writes files so that each appears complete or not at all, and none if one cannot be written.
///
/// A file is written beside its place and renamed when all are there. What exists and is no regular file (a device, a pipe)
/// is written directly and never replaced.
pub(crate) fn write_all(files: &[(&Path, &[u8])]) -> Result<()> {
    let mut places: Vec<PathBuf> = Vec::new();
    let mut staged: Vec<(NamedTempFile, PathBuf)> = Vec::new();
    let mut direct: Vec<(&Path, &[u8])> = Vec::new();
    for &(path, contents) in files {
        let is_special = fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir());
        if is_special {
            direct.push((path, contents));
            continue;
        }
        // Through a link to the file it means.
        let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if places.contains(&place) {
            return Err(Error::invalid(format!(
                "'{}' is named for two outputs; name two files",
                path.display()
            )));
        }
        staged.push((stage(path, &place, contents)?, place.clone()));
        places.push(place);
    }
    for (path, contents) in direct {
        let written = fs::OpenOptions::new().write(true).open(path).and_then(|mut file| {
            file.write_all(contents)?;
            file.flush()
        });
        written.map_err(|e| cannot_write(path, &e))?;
    }
    let mut finished: Vec<PathBuf> = Vec::new();
    for (file, place) in staged {
        if let Err(error) = file.persist(&place) {
            finished.iter().for_each(|done| drop(fs::remove_file(done)));
            return Err(cannot_write(&place, &error.error));
        }
        finished.push(place);
    }
    Ok(())
}

fn stage(path: &Path, place: &Path, contents: &[u8]) -> Result<NamedTempFile> {
    if place.is_dir() {
        return Err(Error::invalid(format!("cannot write '{}': it is a directory", path.display())));
    }
    let directory = match place.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".tfcompile-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // As any program makes a file: the process's mask takes away from this.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(directory).map_err(|e| cannot_write(path, &e))?;
    file.write_all(contents).and_then(|()| file.flush()).map_err(|e| cannot_write(path, &e))?;
    Ok(file)
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Error {
    Error::invalid(format!("cannot write '{}': {error}", path.display()))
}

/// Writes to standard output.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|e| Error::invalid(format!("cannot write to standard output: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_appears_if_one_file_cannot_be_written() {
        let directory = tempfile::tempdir().expect("a directory");
        let (good, bad) = (directory.path().join("good"), directory.path().join("missing/bad"));
        let error = write_all(&[(&good, b"x"), (&bad, b"y")]).expect_err("no such directory");
        assert!(error.message().contains("missing/bad"), "{error}");
        assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 0);
    }

    #[test]
    fn an_existing_file_is_replaced_and_a_link_is_followed() {
        let directory = tempfile::tempdir().expect("a directory");
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        fs::write(&file, "old").expect("writable");
        #[cfg(unix)]
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        write_all(&[(&link, b"new")]).expect("writable");
        assert_eq!(fs::read(&file).expect("readable"), b"new");
        assert!(fs::symlink_metadata(&link).expect("exists").is_symlink());
    }

    #[test]
    fn a_device_is_written_and_stays_a_device() {
        let full = Path::new("/dev/full");
        if full.exists() {
            let error = write_all(&[(full, b"x")]).expect_err("no space");
            assert!(error.message().contains("/dev/full"), "{error}");
            assert!(!fs::metadata(full).expect("exists").is_file());
        }
    }

    #[test]
    fn one_path_for_two_outputs_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("out");
        fs::write(&path, "old").expect("writable");
        assert!(write_all(&[(&path, b"a"), (&path, b"b")]).is_err());
        assert_eq!(fs::read(&path).expect("readable"), b"old");
    }
}
