//! Object graph that `tf.train.Checkpoint` stores with the tensors. It maps each object's variables
//! to checkpoint keys.

use super::{Checkpoint, Value};
use crate::proto::TrackableObjectGraph;
use prost::Message;
use std::collections::BTreeMap;
use support::{Error, Result};

/// Key of the object graph.
pub const OBJECT_GRAPH_KEY: &str = "_CHECKPOINTABLE_OBJECT_GRAPH";

/// Maximum size of the encoded object graph. Decoding takes a multiple of it.
const MAX_BYTES: usize = 16 << 20;

impl Checkpoint {
    /// Returns the object graph, if the checkpoint has one.
    pub fn object_graph(&self) -> Result<Option<TrackableObjectGraph>> {
        let Some(value) = self.value(OBJECT_GRAPH_KEY)? else { return Ok(None) };
        let error =
            |what: &str| Error::invalid(format!("'{OBJECT_GRAPH_KEY}' of {}: {what}", self.describe()));
        let bytes = match value {
            Value::Strings(sizes, strings) if sizes.is_empty() => {
                strings.into_iter().next().unwrap_or_default()
            }
            _ => return Err(error("expected a scalar string")),
        };
        if bytes.len() > MAX_BYTES {
            return Err(error("larger than the limit of 16 MiB"));
        }
        TrackableObjectGraph::decode(bytes).map(Some).map_err(|e| error(&e.to_string()))
    }

    /// Checkpoint keys of the object graph's variables, by variable name, which is the
    /// `shared_name` of the handle. Omits names shared by several variables.
    pub fn variable_keys(&self) -> Result<BTreeMap<String, String>> {
        let mut keys: BTreeMap<String, Option<String>> = BTreeMap::new();
        let graph = self.object_graph()?.unwrap_or_default();
        for attribute in graph.nodes.into_iter().flat_map(|node| node.attributes) {
            if attribute.full_name.is_empty() || !self.contains(&attribute.checkpoint_key) {
                continue;
            }
            let key = attribute.checkpoint_key;
            keys.entry(attribute.full_name)
                .and_modify(|known| {
                    if known.as_ref() != Some(&key) {
                        *known = None;
                    }
                })
                .or_insert(Some(key.clone()));
        }
        Ok(keys.into_iter().filter_map(|(name, key)| Some((name, key?))).collect())
    }
}
