//! Checkpoint ops: saving and restoring.

use super::{Context, Row};
use crate::value::{Strings, Tensor, Value};
use bytes::Bytes;
use std::path::{Path, PathBuf};
use support::{Error, Result};
use tf::DataType;
use tf::checkpoint::{self, Checkpoint, Saved};

pub(super) const OPS: &[Row] = &[
    ("SaveV2", |cx| {
        let (path, saved) = save_request(cx, true)?;
        write(&path, &checkpoint::write_v2_parts(&saved)?.files())
    }),
    ("RestoreV2", restore),
    ("MergeV2Checkpoints", merge),
    ("Save", |cx| save_v1(cx, false)),
    ("SaveSlices", |cx| save_v1(cx, true)),
    ("Restore", |cx| restore_v1(cx, false)),
    ("RestoreSlice", |cx| restore_v1(cx, true)),
];

/// Path of a file.
fn path(value: &Value) -> Result<PathBuf> {
    let text = value.text()?;
    let text = std::str::from_utf8(&text)
        .map_err(|_| Error::invalid("the name of a checkpoint is not valid UTF-8"))?;
    Ok(PathBuf::from(text))
}

fn text(bytes: &Bytes) -> Result<&str> {
    std::str::from_utf8(bytes)
        .map_err(|_| Error::invalid("the name of a tensor in a checkpoint is not valid UTF-8"))
}

/// The path and the tensors of a save op, with inputs `(path, names, slices, tensors...)`; `slices`
/// is missing if `has_slices` is false.
fn save_request(cx: &Context<'_>, has_slices: bool) -> Result<(PathBuf, Vec<Saved>)> {
    let path = path(cx.input(0)?)?;
    let names = cx.input(1)?.strings()?;
    let slices = if has_slices {
        cx.input(2)?.strings()?.strings.clone()
    } else {
        vec![Bytes::new(); names.strings.len()]
    };
    let tensors = cx.inputs.get(if has_slices { 3 } else { 2 }..).unwrap_or(&[]);
    if names.strings.len() != tensors.len() || slices.len() != tensors.len() {
        return Err(Error::invalid(format!(
            "the op saves {} tensors, but has {} names and {} slices",
            tensors.len(),
            names.strings.len(),
            slices.len()
        )));
    }
    // Use the declared types: arrays do not distinguish quantized integers from others.
    let types = cx.node.attributes.types(if cx.node.op == "SaveV2" { "dtypes" } else { "T" })?;
    let mut saved = Vec::new();
    for (k, ((name, slice), value)) in names.strings.iter().zip(&slices).zip(tensors).enumerate() {
        let name = text(name)?;
        let value = match value.clone().read()? {
            Value::Strings(strings) => {
                checkpoint::Value::Strings(strings.sizes.clone(), strings.strings.clone())
            }
            value => {
                let tensor = value.tensor().map_err(|error| error.context(format!("'{name}'")))?;
                let declared =
                    types.get(k).ok_or_else(|| Error::invalid("the op has more tensors than types"))?;
                checkpoint::Value::Array(declared.base(), tensor.to_literal())
            }
        };
        saved.push(Saved { name: name.to_owned(), shape_and_slice: text(slice)?.to_owned(), value });
    }
    Ok((path, saved))
}

/// Saves in version 1 format: one file.
fn save_v1(cx: &mut Context<'_>, has_slices: bool) -> Result<()> {
    let (path, saved) = save_request(cx, has_slices)?;
    write(&path, &[("", &checkpoint::write_v1(&saved)?)])
}

/// Writes the files of a checkpoint. Each file appears only once it is complete.
fn write(prefix: &Path, files: &[(&str, &[u8])]) -> Result<()> {
    let failed = |path: &Path, e: std::io::Error| {
        Error::invalid(format!(
            "cannot write '{}': {e}; check that the directory exists and is writable",
            path.display()
        ))
    };
    if let Some(parent) = prefix.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent).map_err(|e| failed(parent, e))?;
    }
    for (suffix, bytes) in files {
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
fn restore(cx: &mut Context<'_>) -> Result<()> {
    let prefix = path(cx.input(0)?)?;
    let (names, slices) = (cx.input(1)?.strings()?, cx.input(2)?.strings()?);
    let types = cx.node.attributes.types("dtypes")?;
    if names.strings.len() != types.len() || slices.strings.len() != types.len() {
        return Err(Error::invalid(format!(
            "the op has {} names for {} outputs",
            names.strings.len(),
            types.len()
        )));
    }
    let file = Checkpoint::open(&prefix)?;
    for ((name, slice), data_type) in names.strings.iter().zip(&slices.strings).zip(types) {
        restore_one(cx, &file, &prefix, &TensorName { name: text(name)?, slice: text(slice)? }, data_type)?;
    }
    Ok(())
}

/// `Restore(pattern, name)`, `RestoreSlice(pattern, name, slice)`.
fn restore_v1(cx: &mut Context<'_>, has_slice: bool) -> Result<()> {
    let pattern = path(cx.input(0)?)?;
    let name = cx.input(1)?.text()?;
    let slice = if has_slice { cx.input(2)?.text()? } else { Bytes::new() };
    let data_type = cx.node.attributes.ty("dt")?;
    restore_one(
        cx,
        &Checkpoint::open(&pattern)?,
        &pattern,
        &TensorName { name: text(&name)?, slice: text(&slice)? },
        data_type,
    )
}

/// Name of a tensor in a checkpoint. An empty slice selects the whole tensor.
struct TensorName<'n> {
    name: &'n str,
    slice: &'n str,
}

/// Outputs a tensor of a checkpoint, or a slice of it.
fn restore_one(
    cx: &mut Context<'_>,
    file: &Checkpoint,
    path: &Path,
    &TensorName { name, slice }: &TensorName<'_>,
    data_type: DataType,
) -> Result<()> {
    let value = file.restore(name, slice)?;
    let value = value
        .ok_or_else(|| Error::invalid(format!("Key {name} not found in checkpoint '{}'", path.display())))?;
    if value.data_type() != data_type {
        return Err(Error::invalid(format!(
            "'{name}': expected {data_type}, but the checkpoint has {}",
            value.data_type()
        )));
    }
    let value: Value = match value {
        checkpoint::Value::Strings(sizes, strings) => Strings { sizes, strings }.into(),
        value => Tensor::from_literal(value.array()?)?.into(),
    };
    cx.push(value);
    Ok(())
}

/// `MergeV2Checkpoints(prefixes, destination)`.
fn merge(cx: &mut Context<'_>) -> Result<()> {
    let prefixes = cx.input(0)?.strings()?;
    let destination = path(cx.input(1)?)?;
    let deletes = cx.node.attributes.bool_or("delete_old_dirs", true)?;
    let mut tensors = Vec::new();
    let mut sources = Vec::new();
    for prefix in &prefixes.strings {
        let prefix = PathBuf::from(text(prefix)?);
        tensors.extend(Checkpoint::open(&prefix)?.stored()?);
        sources.push(prefix);
    }
    write(&destination, &checkpoint::write_v2_parts(&tensors)?.files())?;
    for source in sources.iter().filter(|source| deletes && **source != destination) {
        for suffix in [".index", ".data-00000-of-00001"] {
            // Leftover files are harmless.
            let _ = std::fs::remove_file(with_suffix(source, suffix));
        }
        if let Some(parent) = source.parent().filter(|parent| Some(*parent) != destination.parent()) {
            // `remove_dir` succeeds only if the directory is empty.
            let _ = std::fs::remove_dir(parent);
        }
    }
    Ok(())
}
