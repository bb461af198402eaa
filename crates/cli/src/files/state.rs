//! Files of a program's variables: NumPy archives, safetensors, and TensorFlow checkpoints.

use crate::files::outputs::Output;
use hlo::Argument;
use npz::{Archive, Safetensors};
use shape::Literal;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use support::{Error, Result};
use tf::checkpoint::{self, Checkpoint, OBJECT_GRAPH_KEY};

/// Maximum size in bytes of an array read from an archive.
const MAX_ARRAY: u64 = 16 << 30;

/// Maximum number of names that a message lists.
const MAX_LISTED: usize = 20;

/// Open file of named arrays.
pub(crate) enum StateFile {
    Npz(Archive),
    Safetensors(Safetensors),
    /// A checkpoint, with the keys of the variables in its object graph by their names.
    Checkpoint(Box<Checkpoint>, BTreeMap<String, String>),
}

impl StateFile {
    /// Opens an archive, a safetensors file, or the checkpoint with a prefix. The file extension
    /// determines which.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let at_file = |e: Error| e.context(format!("'{}'", path.display()));
        match kind(path) {
            Kind::Npz => {
                let archive = Archive::open(tf::source::read_bytes(path)?, MAX_ARRAY);
                Ok(Self::Npz(archive.map_err(at_file)?))
            }
            Kind::Safetensors => {
                let file = Safetensors::open(tf::source::read_bytes(path)?);
                Ok(Self::Safetensors(file.map_err(at_file)?))
            }
            Kind::Checkpoint => {
                // Accept the name of the index file in place of the prefix.
                let stem = path.with_extension("");
                let is_index = path.extension().is_some_and(|extension| extension == "index");
                let path = if is_index && Checkpoint::exists(&stem) { &stem } else { path };
                if !Checkpoint::exists(path) {
                    return Err(Error::invalid(format!(
                        "'{}' does not hold variables: expected a .npz or .safetensors file, or the prefix of a checkpoint's \
                         files",
                        path.display()
                    )));
                }
                let checkpoint = Checkpoint::open(path)?;
                let keys = checkpoint.variable_keys()?;
                Ok(Self::Checkpoint(Box::new(checkpoint), keys))
            }
        }
    }

    /// Names of the arrays that can be values of variables.
    pub(crate) fn names(&self) -> Vec<String> {
        match self {
            Self::Npz(archive) => archive.names().map(str::to_owned).collect(),
            Self::Safetensors(file) => file.names().map(str::to_owned).collect(),
            Self::Checkpoint(checkpoint, _) => {
                checkpoint.names().filter(|name| *name != OBJECT_GRAPH_KEY).map(str::to_owned).collect()
            }
        }
    }

    /// Returns the array of this name, if there is one.
    pub(crate) fn get(&mut self, name: &str) -> Result<Option<Literal>> {
        match self {
            Self::Npz(archive) => archive.get(name),
            Self::Safetensors(file) => file.get(name),
            Self::Checkpoint(checkpoint, _) => Ok(checkpoint.tensor(name)?.map(|(_, literal)| literal)),
        }
    }

    /// Returns the name in the file of an argument's value: one of the argument's names, or its key
    /// in the checkpoint's object graph.
    pub(crate) fn name_of(&self, argument: &Argument) -> Option<String> {
        let mut names = [argument.id.short(), argument.label(), argument.id.long()].into_iter();
        match self {
            Self::Npz(archive) => names.find(|name| archive.contains(name)),
            Self::Safetensors(file) => names.find(|name| file.contains(name)),
            Self::Checkpoint(checkpoint, keys) => {
                let key = |name: String| {
                    if checkpoint.contains(&name) { Some(name) } else { keys.get(&name).cloned() }
                };
                names.find_map(key)
            }
        }
    }
}

/// Kind of a file by its name.
enum Kind {
    Npz,
    Safetensors,
    Checkpoint,
}

fn kind(path: &Path) -> Kind {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("npz") => Kind::Npz,
        Some("safetensors") => Kind::Safetensors,
        _ => Kind::Checkpoint,
    }
}

/// True if the file is an archive of arrays with names, and not a checkpoint.
pub(crate) fn is_archive(path: &Path) -> bool {
    !matches!(kind(path), Kind::Checkpoint)
}

/// True if [`StateFile::open`] can read the path, that is, if it is not a file with a single array.
pub(crate) fn is_state(path: &Path) -> bool {
    let is_array = path.extension().is_some_and(|extension| extension == "npy");
    !is_array && (!matches!(kind(path), Kind::Checkpoint) || Checkpoint::exists(path))
}

/// Returns the files that hold variables: one file, or those of a checkpoint and the text file
/// `checkpoint`, which names the latest checkpoint.
pub(crate) fn outputs(path: &Path, variables: &BTreeMap<String, Literal>) -> Result<Vec<Output<'static>>> {
    let output = |path: PathBuf, bytes: Vec<u8>| Output { path, parts: vec![Cow::Owned(bytes)] };
    Ok(match kind(path) {
        Kind::Npz => vec![output(path.to_owned(), npz::write_stored(variables)?)],
        Kind::Safetensors => vec![output(path.to_owned(), npz::write_safetensors(variables)?)],
        Kind::Checkpoint => {
            let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(|| {
                Error::invalid(format!("'{}' is not a valid name for a checkpoint", path.display()))
            })?;
            let bundle = checkpoint::write_v2(variables)?;
            let files = bundle.files().map(|(suffix, bytes)| {
                output(path.with_file_name(format!("{name}{suffix}")), bytes.to_vec())
            });
            let state = checkpoint::Bundle::state(name).into_bytes();
            files.into_iter().chain([output(path.with_file_name("checkpoint"), state)]).collect()
        }
    })
}

/// Lists names for a message, and abbreviates long lists.
pub(crate) fn listed<T: AsRef<str>>(names: &[T]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    let mut shown: Vec<String> =
        names.iter().take(MAX_LISTED).map(|name| format!("'{}'", name.as_ref())).collect();
    if names.len() > MAX_LISTED {
        shown.push(format!("and {} more", names.len() - MAX_LISTED));
    }
    shown.join(", ")
}

/// Writes an archive of named arrays. Duplicate names get a suffix.
pub(crate) fn archive(arrays: impl IntoIterator<Item = (String, shape::Literal)>) -> Result<Vec<u8>> {
    let mut named = BTreeMap::new();
    for (name, array) in arrays {
        let mut unique = name.clone();
        let mut number = 1;
        while named.contains_key(&unique) {
            number += 1;
            unique = format!("{name}_{number}");
        }
        named.insert(unique, array);
    }
    npz::write(&named)
}
