//! Converts signatures to configs.

use crate::DataType;
use crate::proto::{Config, Feed, Fetch, MetaGraphDef, SignatureDef, TensorId, TensorInfo};
use support::{Error, Result};

/// Key of the signature in which TensorFlow 2 stores the initializer.
pub(crate) const INIT: &str = "__saved_model_init_op";

/// Key of the default signature.
const DEFAULT: &str = "serving_default";

/// Feeds and fetches of a model's signature, sorted by argument name. Unknown sizes are -1.
/// Variables are not included. Without a key, selects the default signature, or the only one.
pub(crate) fn interface(meta: &MetaGraphDef, key: Option<&str>) -> Result<(String, Config)> {
    let mut keys = meta.signature_def.keys().filter(|key| *key != INIT);
    let selected = match (key, keys.next(), keys.next()) {
        (Some(key), ..) => key,
        (None, Some(only), None) => only,
        _ => DEFAULT,
    };
    let signature = meta.signature_def.get(selected).ok_or_else(|| {
        let keys: Vec<String> = meta.signature_def.keys().map(|key| format!("'{key}'")).collect();
        Error::invalid(format!(
            "Unable to find signature_def_key '{selected}' in signature def map of `meta_graph_def`. Available keys: [{}]; \
             select one with --signature, or name outputs with --fetch",
            keys.join(", ")
        ))
    })?;
    if signature.outputs.is_empty() {
        return Err(Error::invalid(format!("Signature key {selected} must have outputs, but saw none")));
    }
    let config = config(signature).map_err(|e| e.context(format!("signature '{selected}'")))?;
    Ok((selected.to_owned(), config))
}

fn config(signature: &SignatureDef) -> Result<Config> {
    let mut config = Config::default();
    for (name, info) in &signature.inputs {
        let id = Some(tensor_id(name, info)?);
        config.feed.push(Feed {
            id,
            shape: info.tensor_shape.clone(),
            name: name.clone(),
            r#type: info.dtype,
            ..Feed::default()
        });
    }
    for (name, info) in &signature.outputs {
        let data_type = DataType::from_number(info.dtype);
        if data_type.is_some_and(|data_type| data_type.primitive_type().is_none()) {
            return Err(Error::unsupported(format!(
                "output '{name}' has type {}, which is not supported for results: name the outputs to compute with --fetch, \
                 or export a signature without it",
                data_type.map_or("", DataType::name)
            )));
        }
        let id = Some(tensor_id(name, info)?);
        config.fetch.push(Fetch { id, name: name.clone(), ..Fetch::default() });
    }
    Ok(config)
}

/// Parses the tensor name `node:output` of an argument.
fn tensor_id(argument: &str, info: &TensorInfo) -> Result<TensorId> {
    if info.name.is_empty() {
        return Err(Error::unsupported(format!(
            "'{argument}' is a sparse or composite tensor: export a signature of dense tensors"
        )));
    }
    let (node, index) = info.name.rsplit_once(':').unwrap_or((&info.name, "0"));
    let output_index = index.parse().ok().filter(|index| *index >= 0);
    let output_index = output_index.ok_or_else(|| {
        Error::invalid(format!("invalid tensor name '{}' of '{argument}': expected NODE:OUTPUT", info.name))
    })?;
    Ok(TensorId { node_name: node.to_owned(), output_index })
}
