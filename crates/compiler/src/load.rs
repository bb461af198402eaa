//! Reads models of all formats.

use bytes::Bytes;
use std::collections::BTreeMap;
use std::path::Path;
use support::{Code, Coded as _, Error, Result};
use tf::DimSize;
use tf::model::{Foreign, LoadOptions, Model};

/// Reads a model: what [`tf::model::load`] reads, a TensorFlow Lite file, the `model.json` of
/// TensorFlow.js, or an ONNX file.
///
/// Errors: as for [`tf::model::load`], [`tflite::read`], [`tfjs::read`], and [`onnx::read`].
pub fn load(path: &Path, options: &LoadOptions) -> Result<Model> {
    // A directory, or no file at all.
    if !path.is_file() {
        return tf::model::load(path, options);
    }
    let bytes = tf::source::read_bytes(path)?;
    if tfjs::is_json(&bytes) {
        refuse(path, "a TensorFlow.js", options)?;
        let meta = tfjs::read(path, &bytes).map_err(|e| e.context(path.display().to_string()))?;
        return tf::model::load_meta_graph(path, ("tfjs".to_owned(), bytes), meta, options);
    }
    let mut options = options.clone();
    match foreign(path, &bytes, &mut options)? {
        Some(foreign) => tf::model::load_foreign(path, bytes, foreign, &options),
        None => tf::model::load(path, &options),
    }
}

/// Reads a model whose format is not one of TensorFlow's own from the bytes of its file. Returns
/// `None` for other formats. Sizes of symbolic dimensions are taken out of the options.
pub fn foreign(path: &Path, bytes: &Bytes, options: &mut LoadOptions) -> Result<Option<Foreign>> {
    let is_lite = tflite::is_model(bytes);
    let has_name = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("onnx"));
    if !is_lite && !has_name && !onnx::is_model(bytes) {
        return Ok(None);
    }
    refuse(path, if is_lite { "a TensorFlow Lite" } else { "an ONNX" }, options)?;
    if let Some(key) = options.signature.as_deref().filter(|_| !is_lite) {
        let error = Error::invalid(format!(
            "{} is an ONNX model, which has no signatures: omit --signature={key}",
            path.display()
        ));
        return Err(error.coded(Code::ReadFile));
    }
    let read = if is_lite {
        let selection = tflite::Selection {
            signature: options.signature.as_deref(),
            keeps_open: !options.infer.shapes.is_empty() || !options.infer.dims.is_empty(),
        };
        tflite::read(bytes, selection)
    } else {
        onnx_model(path, bytes, options)
    };
    read.map(Some).map_err(|e| e.context(path.display().to_string()))
}

/// Refuses options that a format has no use for.
fn refuse(path: &Path, format: &str, options: &LoadOptions) -> Result<()> {
    let refused = [
        ("--tag-set", options.tags.is_some()),
        ("--checkpoint", options.checkpoint.is_some()),
        ("--function", options.function.is_some()),
    ];
    match refused.iter().find(|(_, given)| *given) {
        Some((flag, _)) => {
            let error = Error::invalid(format!("{} is {format} model: omit {flag}", path.display()));
            Err(error.coded(Code::ReadFile))
        }
        None => Ok(()),
    }
}

/// Reads an ONNX model, with the external data beside it.
fn onnx_model(path: &Path, bytes: &Bytes, options: &mut LoadOptions) -> Result<Foreign> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut files: BTreeMap<String, Bytes> = BTreeMap::new();
    let mut external = |location: &str| {
        if let Some(bytes) = files.get(location) {
            return Ok(bytes.clone());
        }
        let file = folder.join(location);
        // A link may lead out of the folder.
        let is_inside = match (file.canonicalize(), folder.canonicalize()) {
            (Ok(file), Ok(folder)) => file.starts_with(folder),
            _ => true,
        };
        if !is_inside {
            return Err(Error::invalid(format!(
                "external data '{location}' is outside of the folder of the model"
            ))
            .coded(Code::ReadFile));
        }
        let bytes = tf::source::read_bytes(&file).coded(Code::ReadFile)?;
        files.insert(location.to_owned(), bytes.clone());
        Ok(bytes)
    };
    let known = options.infer.dims.iter().filter_map(|(name, size)| match size {
        DimSize::Known(size) => Some((name.clone(), *size)),
        DimSize::Range(..) | DimSize::Named(_) => None,
    });
    let known: BTreeMap<String, i64> = known.collect();
    // Sizes of the model's own names are set in the model, whose dimensions then have no names.
    for size in options.infer.dims.values_mut() {
        if let DimSize::Named(name) = size
            && let Some(&known) = known.get(name)
        {
            *size = DimSize::Known(known);
        }
    }
    let read = onnx::read(bytes, &known, &mut external)?;
    options.infer.dims.retain(|name, _| !known.contains_key(name) || !read.dims.contains(name));
    Ok(read.foreign)
}
