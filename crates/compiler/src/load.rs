//! Reads models of all formats.

use std::path::Path;
use support::{Code, Error, Result};
use tf::model::{LoadOptions, Model};

/// Reads a model: what [`tf::model::load`] reads, a TensorFlow Lite file, or the `model.json` of
/// TensorFlow.js.
///
/// Errors: as for [`tf::model::load`], [`tflite::read`], and [`tfjs::read`].
pub fn load(path: &Path, options: &LoadOptions) -> Result<Model> {
    // A pipe can be read only once.
    if !path.is_file() {
        return tf::model::load(path, options);
    }
    let bytes = tf::source::read_bytes(path)?;
    let name = path.display().to_string();
    if tfjs::is_json(&bytes) {
        refuse(&name, "TensorFlow.js", options)?;
        let meta = tfjs::read(path, &bytes).map_err(|e| e.context(name))?;
        return tf::model::load_meta_graph(path, ("tfjs".to_owned(), bytes), meta, options);
    }
    if !tflite::is_model(&bytes) {
        return tf::model::load(path, options);
    }
    refuse(&name, "TensorFlow Lite", options)?;
    let selection = tflite::Selection {
        signature: options.signature.as_deref(),
        keeps_open: !options.infer.shapes.is_empty() || !options.infer.dims.is_empty(),
    };
    let foreign = tflite::read(&bytes, selection).map_err(|e| e.context(name))?;
    tf::model::load_foreign(path, bytes, foreign, options)
}

/// Refuses options that a format has no use for.
fn refuse(name: &str, format: &str, options: &LoadOptions) -> Result<()> {
    let refused = [
        ("--tag-set", options.tags.is_some()),
        ("--checkpoint", options.checkpoint.is_some()),
        ("--function", options.function.is_some()),
    ];
    match refused.iter().find(|(_, given)| *given) {
        Some((flag, _)) => {
            Err(Error::invalid(format!("{name} is a {format} model: omit {flag}")).coded(Code::ReadFile))
        }
        None => Ok(()),
    }
}
