//! Reads models of all formats.

use std::path::Path;
use support::{Code, Error, Result};
use tf::model::{LoadOptions, Model};

/// Reads a model: what [`tf::model::load`] reads, or a TensorFlow Lite file.
///
/// Errors: as for [`tf::model::load`] and [`tflite::read`].
pub fn load(path: &Path, options: &LoadOptions) -> Result<Model> {
    // A pipe can be read only once.
    if !path.is_file() {
        return tf::model::load(path, options);
    }
    let bytes = tf::source::read_bytes(path)?;
    if !tflite::is_model(&bytes) {
        return tf::model::load(path, options);
    }
    let refused = [
        ("--tag-set", options.tags.is_some()),
        ("--checkpoint", options.checkpoint.is_some()),
        ("--function", options.function.is_some()),
    ];
    if let Some((flag, _)) = refused.iter().find(|(_, given)| *given) {
        let error = Error::invalid(format!("{} is a TensorFlow Lite model: omit {flag}", path.display()));
        return Err(error.coded(Code::ReadFile));
    }
    let selection = tflite::Selection {
        signature: options.signature.as_deref(),
        keeps_open: !options.infer.shapes.is_empty() || !options.infer.dims.is_empty(),
    };
    let foreign = tflite::read(&bytes, selection).map_err(|e| e.context(path.display().to_string()))?;
    tf::model::load_foreign(path, bytes, foreign, options)
}
