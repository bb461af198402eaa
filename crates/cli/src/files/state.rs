//! The variables of a program in a file: a NumPy archive, safetensors, or a checkpoint of TensorFlow's.

use crate::files::outputs::Output;
use hlo::Argument;
use npz::{Archive, Safetensors};
use shape::Literal;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use support::{Error, Result};
use tf::checkpoint::{self, Checkpoint, OBJECT_GRAPH_KEY};

/// The largest array that is read from an archive, in bytes.
const MAX_ARRAY: u64 = 16 << 30;

/// How many names a message lists.
const MAX_LISTED: usize = 20;

/// An open file of arrays by name.
pub(crate) enum StateFile {
    Npz(Archive),
    Safetensors(Safetensors),
    /// With the keys of the variables that its objects hold, by the variables' names.
    Checkpoint(Box<Checkpoint>, BTreeMap<String, String>),
}

impl StateFile {
    /// Opens an archive, a file of safetensors, or the checkpoint of a prefix: the name's end and the content tell.
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
                // One of a checkpoint's files is as good as what they are called.
                let stem = path.with_extension("");
                let is_index = path.extension().is_some_and(|extension| extension == "index");
                let path = if is_index && Checkpoint::exists(&stem) { &stem } else { path };
                if !Checkpoint::exists(path) {
                    return Err(Error::invalid(format!(
                        "'{}' is no file of variables: a .npz or .safetensors file is wanted, or what the files of a \
                         checkpoint are called before .index",
                        path.display()
                    )));
                }
                let checkpoint = Checkpoint::open(path)?;
                let keys = checkpoint.variable_keys()?;
                Ok(Self::Checkpoint(Box::new(checkpoint), keys))
            }
        }
    }

    /// The names of what may be a variable.
    pub(crate) fn names(&self) -> Vec<String> {
        match self {
            Self::Npz(archive) => archive.names().map(str::to_owned).collect(),
            Self::Safetensors(file) => file.names().map(str::to_owned).collect(),
            Self::Checkpoint(checkpoint, _) => {
                checkpoint.names().filter(|name| *name != OBJECT_GRAPH_KEY).map(str::to_owned).collect()
            }
        }
    }

    /// The array of this name, if there is one.
    pub(crate) fn get(&mut self, name: &str) -> Result<Option<Literal>> {
        match self {
            Self::Npz(archive) => archive.get(name),
            Self::Safetensors(file) => file.get(name),
            Self::Checkpoint(checkpoint, _) => Ok(checkpoint.tensor(name)?.map(|(_, literal)| literal)),
        }
    }

    /// Which of the file's names is an argument's: one that it is called, or what the checkpoint's objects say of it.
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

/// What a name says a file is.
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

/// Whether a path is one of [`StateFile::open`]'s, and no single array.
pub(crate) fn is_state(path: &Path) -> bool {
    let is_array = path.extension().is_some_and(|extension| extension == "npy");
    !is_array && (!matches!(kind(path), Kind::Checkpoint) || Checkpoint::exists(path))
}

/// The files that hold variables: one, or those of a checkpoint with the text file `checkpoint`, which names the latest.
pub(crate) fn outputs(path: &Path, variables: &BTreeMap<String, Literal>) -> Result<Vec<Output<'static>>> {
    let output = |path: PathBuf, bytes: Vec<u8>| Output { path, parts: vec![Cow::Owned(bytes)] };
    Ok(match kind(path) {
        Kind::Npz => vec![output(path.to_owned(), npz::write_stored(variables)?)],
        Kind::Safetensors => vec![output(path.to_owned(), npz::write_safetensors(variables)?)],
        Kind::Checkpoint => {
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .ok_or_else(|| Error::invalid(format!("'{}' is no name for a checkpoint", path.display())))?;
            let bundle = checkpoint::write_v2(variables)?;
            let files = bundle.files().map(|(suffix, bytes)| {
                output(path.with_file_name(format!("{name}{suffix}")), bytes.to_vec())
            });
            let state = checkpoint::Bundle::state(name).into_bytes();
            files.into_iter().chain([output(path.with_file_name("checkpoint"), state)]).collect()
        }
    })
}

/// Names for a message, the first few of many.
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

/// An archive of arrays by name; names that come again get a suffix.
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
