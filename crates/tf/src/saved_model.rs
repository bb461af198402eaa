//! Reads SavedModels and MetaGraphs, and derives configs from their signatures.

mod assets;
mod constants;
mod lookup;
pub(crate) mod restore;
mod signature;
mod tables;
mod text_file;
mod trace;

pub(crate) use assets::Assets;
pub(crate) use signature::{INIT, interface};
pub(crate) use tables::{is_table, tables};
pub(crate) use trace::Trace;

use crate::proto::{FunctionDef, MetaGraphDef, SavedModel};
use crate::{source, text};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use support::{Error, Result};

/// Creates the functions that replace a table: one finds values, the other returns the size.
pub(crate) fn table_functions(find: &str, size: &str, table: &tables::Table) -> [FunctionDef; 2] {
    [lookup::find(find, table), lookup::size(size, table)]
}

/// Returns the file of a SavedModel if the path is that file or a directory that contains it.
pub(crate) fn file(path: &Path) -> Result<Option<PathBuf>> {
    let names = ["saved_model.pb", "saved_model.pbtxt"];
    if path.is_dir() {
        if let Some(file) = names.iter().map(|name| path.join(name)).find(|file| file.is_file()) {
            return Ok(Some(file));
        }
        return Err(Error::invalid(if path.join("saved_model.cpb").exists() {
            format!(
                "{} contains a SavedModel in the format for large models (saved_model.cpb), which is not supported: \
                 export it in parts of less than 2 GB, or give a GraphDef",
                path.display()
            )
        } else {
            format!(
                "{} is a directory without saved_model.pb or saved_model.pbtxt: give a SavedModel's directory, or the \
             file of a GraphDef or MetaGraphDef",
                path.display()
            )
        }));
    }
    let is_named = path.file_name().and_then(|name| name.to_str()).is_some_and(|name| names.contains(&name));
    Ok(is_named.then(|| path.to_owned()))
}

/// Returns the MetaGraph with exactly these tags, separated by commas, from a SavedModel's file.
/// Without tags, returns the only MetaGraph, or else the one for serving.
pub(crate) fn meta_graph(bytes: Bytes, name: &str, tags: Option<&str>) -> Result<MetaGraphDef> {
    let model: SavedModel = source::parse(bytes, name, &text::SAVED_MODEL)?;
    if model.meta_graphs.is_empty() {
        return Err(Error::invalid(format!("{name} contains no MetaGraph")));
    }
    let tags_of = |graph: &MetaGraphDef| -> BTreeSet<String> {
        graph.meta_info_def.iter().flat_map(|info| info.tags.iter().cloned()).collect()
    };
    let selected: BTreeSet<String> = match tags {
        None if model.meta_graphs.len() == 1 => tags_of(&model.meta_graphs[0]),
        tags => {
            let tags = tags.unwrap_or("serve").split(',').map(str::trim).filter(|tag| !tag.is_empty());
            tags.map(str::to_owned).collect()
        }
    };
    let valid: Vec<String> = model
        .meta_graphs
        .iter()
        .map(|graph| format!("'{}'", tags_of(graph).into_iter().collect::<Vec<_>>().join(",")))
        .collect();
    model.meta_graphs.into_iter().find(|graph| tags_of(graph) == selected).ok_or_else(|| {
        Error::invalid(format!(
            "MetaGraphDef associated with tag-set {} could not be found in the SavedModel {name}. Please use one of the \
             following tag-sets (--tag-set): [{}]",
            selected.into_iter().collect::<Vec<_>>().join(","),
            valid.join(", ")
        ))
    })
}

/// True for a MetaGraphDef, which is recognized by the suffix `.meta` or the first field of a text.
pub(crate) fn is_meta_graph(path: &Path, bytes: &[u8]) -> bool {
    path.extension().is_some_and(|extension| extension == "meta")
        || source::other_model(bytes) == Some(source::META_GRAPH)
}

/// Reads a MetaGraphDef.
pub(crate) fn parse_meta_graph(bytes: Bytes, name: &str) -> Result<MetaGraphDef> {
    // The bytes of a GraphDef also decode as a MetaGraphDef, but without a graph.
    let graph: MetaGraphDef = source::parse(bytes.clone(), name, &text::META_GRAPH_DEF)?;
    match graph.graph_def {
        Some(_) => Ok(graph),
        None => Err(Error::invalid(format!("{name} is a MetaGraphDef without a graph"))),
    }
}

/// Nodes that initialize a model's tables.
pub(crate) fn initializers(meta: &MetaGraphDef) -> Vec<String> {
    let collections = ["saved_model_main_op", "legacy_init_op", "table_initializer"];
    let lists = collections.iter().filter_map(|key| meta.collection_def.get(*key)?.node_list.as_ref());
    let mut nodes: Vec<String> = lists.flat_map(|list| list.value.iter().cloned()).collect();
    let init = meta.signature_def.get(INIT).into_iter().flat_map(|signature| signature.outputs.values());
    nodes.extend(init.map(|output| output.name.clone()));
    nodes
}
