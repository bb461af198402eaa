//! The files that come with a SavedModel.

use crate::proto::AssetFileDef;
use crate::source;
use bytes::Bytes;
use std::path::{Component, Path, PathBuf};
use support::{Error, Result};

/// The assets of a model, by the tensor that holds the file's name.
pub(crate) struct Assets<'a> {
    /// The model's directory; none for a graph that has none.
    directory: Option<PathBuf>,
    files: &'a [AssetFileDef],
}

impl<'a> Assets<'a> {
    /// The assets of the model of a directory.
    pub(crate) fn new(directory: Option<&Path>, files: &'a [AssetFileDef]) -> Self {
        Self { directory: directory.map(Path::to_owned), files }
    }

    /// The contents of the file whose name is an output of a node.
    pub(crate) fn read(&self, node: &str) -> Result<(String, Bytes)> {
        let of_node = |asset: &&AssetFileDef| {
            let tensor = asset.tensor_info.as_ref().map_or("", |info| info.name.as_str());
            tensor.split(':').next() == Some(node)
        };
        let (Some(directory), Some(asset)) = (&self.directory, self.files.iter().find(of_node)) else {
            return Err(Error::unsupported(format!(
                "node '{node}' names a file that is not an asset of a SavedModel; export the model with the file as an asset"
            )));
        };
        let name = &asset.filename;
        let assets = directory.join("assets");
        let path = assets.join(name);
        // The model is untrusted and chooses the name, but must not name other files of the user.
        let is_plain = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        let escapes =
            || Error::invalid(format!("the asset '{name}' is not a file below '{}'", assets.display()));
        if name.is_empty() || !is_plain {
            return Err(escapes());
        }
        let read = |path: &Path| {
            path.canonicalize().map_err(|e| Error::invalid(format!("the asset '{}': {e}", path.display())))
        };
        if !read(&path)?.starts_with(read(&assets)?) {
            return Err(escapes());
        }
        Ok((name.clone(), source::read_bytes(&path)?))
    }
}
