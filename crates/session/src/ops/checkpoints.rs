//! Checkpoints: what savers write and read.

use super::{Context, Row};
use crate::value::{Strings, Tensor, Value};
use bytes::Bytes;
use shape::Literal;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use support::{Error, Result};
use tf::checkpoint::{self, Checkpoint};

pub(super) const OPS: &[Row] =
    &[("SaveV2", save), ("RestoreV2", |cx| restore(cx, 3)), ("MergeV2Checkpoints", merge)];

/// The name of a file.
fn path(value: &Value) -> Result<PathBuf> {
    let text = value.text()?;
    let text =
        std::str::from_utf8(&text).map_err(|_| Error::invalid("the name of a checkpoint is no UTF-8"))?;
    Ok(PathBuf::from(text))
}

fn text(bytes: &Bytes) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| Error::invalid("the name of a checkpoint's tensor is no UTF-8"))
}

/// `SaveV2(prefix, names, slices, tensors...)`.
fn save(cx: &mut Context<'_>) -> Result<()> {
    let prefix = path(cx.input(0)?)?;
    let (names, slices) = (cx.input(1)?.strings()?, cx.input(2)?.strings()?);
    let tensors = cx.inputs.get(3..).unwrap_or(&[]);
    if names.strings.len() != tensors.len() || slices.strings.len() != tensors.len() {
        return Err(Error::invalid(format!(
            "{} tensors are saved by {} names and {} slices",
            tensors.len(),
            names.strings.len(),
            slices.strings.len()
        )));
    }
    let mut saved: BTreeMap<String, Literal> = BTreeMap::new();
    for ((name, slice), value) in names.strings.iter().zip(&slices.strings).zip(tensors) {
        let name = text(name)?;
        if !slice.is_empty() {
            return Err(Error::unsupported(format!(
                "'{name}' is saved as a slice of a larger tensor, which is not supported: save the whole"
            )));
        }
        let tensor = value.tensor().map_err(|error| error.context(format!("'{name}'")))?;
        if saved.insert(name.to_owned(), tensor.to_literal()).is_some() {
            return Err(Error::invalid(format!("'{name}' is saved twice")));
        }
    }
    write(&prefix, &saved)
}

/// Writes a checkpoint; files appear when they are whole.
fn write(prefix: &Path, tensors: &BTreeMap<String, Literal>) -> Result<()> {
    let failed = |path: &Path, e: std::io::Error| {
        Error::invalid(format!("cannot write '{}': {e}; make its directory first", path.display()))
    };
    if let Some(parent) = prefix.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent).map_err(|e| failed(parent, e))?;
    }
    let bundle = checkpoint::write_v2(tensors)?;
    for (suffix, bytes) in bundle.files() {
        let (path, unfinished) =
            (with_suffix(prefix, suffix), with_suffix(prefix, &format!("{suffix}.tempstate")));
        std::fs::write(&unfinished, bytes).map_err(|e| failed(&unfinished, e))?;
        std::fs::rename(&unfinished, &path).map_err(|e| failed(&path, e))?;
    }
    Ok(())
}

fn with_suffix(prefix: &Path, suffix: &str) -> PathBuf {
    let mut name = prefix.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// `RestoreV2(prefix, names, slices)`.
fn restore(cx: &mut Context<'_>, inputs: usize) -> Result<()> {
    let prefix = path(cx.input(0)?)?;
    let (names, slices) = (cx.input(1)?.strings()?, cx.input(inputs - 1)?.strings()?);
    let types = cx.node.attributes.types("dtypes")?;
    if names.strings.len() != types.len() || slices.strings.len() != types.len() {
        return Err(Error::invalid(format!("{} names for {} outputs", names.strings.len(), types.len())));
    }
    let file = Checkpoint::open(&prefix)?;
    for ((name, slice), data_type) in names.strings.iter().zip(&slices.strings).zip(types) {
        let (name, slice) = (text(name)?, text(slice)?);
        let value = file.restore(name, slice)?.ok_or_else(|| {
            Error::invalid(format!("Key {name} not found in checkpoint '{}'", prefix.display()))
        })?;
        if value.data_type() != data_type {
            return Err(Error::invalid(format!(
                "'{name}' is of {} in the checkpoint, but {data_type} is wanted",
                value.data_type()
            )));
        }
        let value: Value = match value {
            checkpoint::Value::Strings(sizes, strings) => Strings { sizes, strings }.into(),
            value => Tensor::from_literal(value.array()?)?.into(),
        };
        cx.push(value);
    }
    Ok(())
}

/// `MergeV2Checkpoints(prefixes, destination)`.
fn merge(cx: &mut Context<'_>) -> Result<()> {
    let prefixes = cx.input(0)?.strings()?;
    let destination = path(cx.input(1)?)?;
    let deletes = cx.node.attributes.bool_or("delete_old_dirs", true)?;
    let mut tensors = BTreeMap::new();
    let mut sources = Vec::new();
    for prefix in &prefixes.strings {
        let prefix = PathBuf::from(text(prefix)?);
        let file = Checkpoint::open(&prefix)?;
        let names: Vec<String> = file.names().map(str::to_owned).collect();
        for name in names {
            let tensor = file.tensor(&name)?;
            let (_, literal) =
                tensor.ok_or_else(|| Error::internal(format!("'{name}' is listed, but not there")))?;
            if tensors.insert(name.clone(), literal).is_some() {
                return Err(Error::invalid(format!("two of the checkpoints that are merged have '{name}'")));
            }
        }
        sources.push(prefix);
    }
    write(&destination, &tensors)?;
    for source in sources.iter().filter(|source| deletes && **source != destination) {
        for suffix in [".index", ".data-00000-of-00001"] {
            // What is left over harms nobody.
            let _ = std::fs::remove_file(with_suffix(source, suffix));
        }
        if let Some(parent) = source.parent().filter(|parent| Some(*parent) != destination.parent()) {
            // Only if it is empty.
            let _ = std::fs::remove_dir(parent);
        }
    }
    Ok(())
}
