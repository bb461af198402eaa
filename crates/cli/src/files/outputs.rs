//! Writing of files: either all of them or none.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use support::{Code, Error, Result};
use tempfile::NamedTempFile;

/// File to write, with its contents in pieces.
pub(crate) struct Output<'a> {
    pub(crate) path: PathBuf,
    pub(crate) parts: Vec<Cow<'a, [u8]>>,
}

impl Output<'_> {
    /// Number of bytes of all pieces.
    pub(crate) fn size(&self) -> u64 {
        self.parts.iter().map(|part| part.len() as u64).sum()
    }
}

/// Writes files whose contents are in one piece; see [`write`].
pub(crate) fn write_all(files: &[(&Path, &[u8])]) -> Result<()> {
    let output = |(path, contents): &(&Path, _)| Output {
        path: path.to_path_buf(),
        parts: vec![Cow::Borrowed(*contents)],
    };
    write(&files.iter().map(output).collect::<Vec<_>>())
}

/// Headers that generated headers include, with paths in a directory: all, or those for processors.
pub(crate) fn runtime_headers(directory: &Path, with_gpus: bool) -> Vec<Output<'static>> {
    let output = |(path, contents): &(&str, &'static str)| Output {
        path: directory.join(path),
        parts: vec![Cow::Borrowed(contents.as_bytes())],
    };
    let headers = aot::runtime_headers().iter();
    headers.filter(|(path, _)| with_gpus || !path.starts_with("tfcompile/device")).map(output).collect()
}

/// Creates the directories of files.
pub(crate) fn create_directories(outputs: &[Output<'_>]) -> Result<()> {
    for output in outputs {
        let directory = output.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(directory).map_err(|e| {
            Error::invalid(format!(
                "cannot create the directory '{}': {e}; name another with --output",
                directory.display()
            ))
            .coded(Code::WriteFile)
        })?;
    }
    Ok(())
}

/// Writes files so that each appears complete or not at all, and none appears if one cannot be
/// written.
///
/// Each file is written under a temporary name in its directory, and renamed when all are complete.
/// An existing special file (a device, a pipe) is written directly and never replaced.
pub(crate) fn write(outputs: &[Output<'_>]) -> Result<()> {
    let mut places: BTreeSet<PathBuf> = BTreeSet::new();
    let mut staged: Vec<(NamedTempFile, PathBuf)> = Vec::new();
    let mut direct: Vec<&Output<'_>> = Vec::new();
    for output in outputs {
        let path = output.path.as_path();
        let is_special = fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir());
        if is_special {
            direct.push(output);
            continue;
        }
        // Follow links, so that they are not replaced.
        let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if places.contains(&place) {
            return Err(Error::invalid(format!(
                "'{}' is named for two outputs; name different files",
                path.display()
            )));
        }
        staged.push((stage(output, &place)?, place.clone()));
        places.insert(place);
    }
    for output in direct {
        let written = fs::OpenOptions::new().write(true).open(&output.path);
        let written = written.and_then(|mut file| write_parts(&mut file, output));
        written.map_err(|e| cannot_write(&output.path, &e))?;
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

/// Writes files as [`write`] does, but skips files with one of these extensions whose contents
/// would not change.
pub(crate) fn write_changed(outputs: &[Output<'_>], suffixes: &[&str]) -> Result<()> {
    let may_stay = |path: &Path| suffixes.iter().any(|suffix| path.extension().is_some_and(|e| e == *suffix));
    let stays = |output: &&Output<'_>| {
        may_stay(&output.path)
            && fs::metadata(&output.path).is_ok_and(|m| m.is_file() && m.len() == output.size())
            && fs::read(&output.path).is_ok_and(|bytes| bytes == output.parts.concat())
    };
    let changed = outputs.iter().filter(|output| !stays(output)).map(|output| Output {
        path: output.path.clone(),
        parts: output.parts.iter().map(|part| Cow::Borrowed(&**part)).collect(),
    });
    write(&changed.collect::<Vec<_>>())
}

fn write_parts(file: &mut fs::File, output: &Output<'_>) -> std::io::Result<()> {
    output.parts.iter().try_for_each(|part| file.write_all(part))?;
    file.flush()
}

fn stage(output: &Output<'_>, place: &Path) -> Result<NamedTempFile> {
    let path = output.path.as_path();
    if place.is_dir() {
        let error = Error::invalid(format!("cannot write '{}': it is a directory", path.display()));
        return Err(error.coded(Code::WriteFile));
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
        // The default mode of new files, from which the process's umask removes bits.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(directory).map_err(|e| cannot_write(path, &e))?;
    write_parts(file.as_file_mut(), output).map_err(|e| cannot_write(path, &e))?;
    Ok(file)
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Error {
    // Report only the system's reason: the user does not know the temporary file.
    let text = error.to_string();
    let reason = text.split(" at path ").next().unwrap_or(&text);
    let hint = match error.kind() {
        std::io::ErrorKind::NotFound => "; create its directory first",
        _ => "",
    };
    Error::invalid(format!("cannot write '{}': {reason}{hint}", path.display())).coded(Code::WriteFile)
}

/// Writes text to standard output.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written
        .map_err(|e| Error::invalid(format!("cannot write to standard output: {e}")).coded(Code::WriteFile))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_appears_if_one_file_cannot_be_written() {
        let directory = tempfile::tempdir().expect("a directory");
        let (good, bad) = (directory.path().join("good"), directory.path().join("missing/bad"));
        let error = write_all(&[(&good, b"x"), (&bad, b"y")]).expect_err("no such directory");
        assert!(error.message().contains("missing/bad': No such file"), "{error}");
        assert!(error.message().ends_with("create its directory first"), "{error}");
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
    fn one_path_for_two_outputs_is_an_error() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("out");
        fs::write(&path, "old").expect("writable");
        assert!(write_all(&[(&path, b"a"), (&path, b"b")]).is_err());
        assert_eq!(fs::read(&path).expect("readable"), b"old");
    }
}
