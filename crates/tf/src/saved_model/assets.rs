//! Asset files of a SavedModel.

use crate::proto::AssetFileDef;
use crate::source;
use bytes::Bytes;
use std::path::{Component, Path, PathBuf};
use support::{Error, Result};

/// Assets of a model, identified by the tensors that contain their file names.
pub(crate) struct Assets<'a> {
    /// Directory of the model. `None` for a model that is a single file.
    directory: Option<PathBuf>,
    files: &'a [AssetFileDef],
}

impl<'a> Assets<'a> {
    /// Creates the assets of the model in a directory.
    pub(crate) fn new(directory: Option<&Path>, files: &'a [AssetFileDef]) -> Self {
        Self { directory: directory.map(Path::to_owned), files }
    }

    /// Returns the name and contents of the file whose name is an output of a node.
    pub(crate) fn read(&self, node: &str) -> Result<(String, Bytes)> {
        let is_named = |asset: &&AssetFileDef| {
            let tensor = asset.tensor_info.as_ref().map_or("", |info| info.name.as_str());
            tensor.split(':').next() == Some(node)
        };
        let (Some(directory), Some(asset)) = (&self.directory, self.files.iter().find(is_named)) else {
            return Err(Error::unsupported(format!(
                "node '{node}' names a file that is not an asset of a SavedModel; export the file as an asset of the model"
            )));
        };
        let name = &asset.filename;
        let assets = directory.join("assets");
        let path = assets.join(name);
        // The model is untrusted, so its names must not lead to files outside its assets.
        let is_plain = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        let escapes = || Error::invalid(format!("asset '{name}' is not in '{}'", assets.display()));
        if name.is_empty() || !is_plain {
            return Err(escapes());
        }
        let read = |path: &Path| {
            path.canonicalize()
                .map_err(|e| Error::invalid(format!("cannot read asset '{}': {e}", path.display())))
        };
        if !read(&path)?.starts_with(read(&assets)?) {
            return Err(escapes());
        }
        Ok((name.clone(), source::read_bytes(&path)?))
    }
}
